import pytest

from hpobench_ordered.runtime.threads import one_thread


@pytest.fixture(autouse=True, scope="module")
def as_in_an_experiment():
    with one_thread():
        yield
