from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest


@pytest.fixture(scope="session")
def executor():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool
