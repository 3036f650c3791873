import sys
import time

import pytest

MEGABYTES = 10**6


@pytest.fixture
def bounded():
    """Neither gigabytes nor minutes."""
    resource = pytest.importorskip("resource")
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 600 * MEGABYTES
    assert time.process_time() - begin < 30
