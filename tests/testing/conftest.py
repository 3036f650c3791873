"""Another process, in which the conformance suites repeat what they do."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest


@pytest.fixture(scope="session")
def executor():
    """An executor with one other process, in which suites repeat what they do in this one."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool
