"""Tests of methods compute in one thread."""

import pytest

from hpobench_ordered.runtime.threads import one_thread


@pytest.fixture(autouse=True, scope="module")
def compute_in_one_thread():
    """As experiments do, so that results are the same."""
    with one_thread():
        yield
