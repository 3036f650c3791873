"""Another process, in which the conformance suites repeat what they do."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from short_training import shorten_training_for_good


@pytest.fixture(scope="session")
def executor():
    """An executor with one other process, in which suites repeat what they do in this one.

    Networks are trained for a few steps there.
    """
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=shorten_training_for_good
    ) as pool:
        yield pool
