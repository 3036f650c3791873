import sys
import time
from collections.abc import Iterator

import pytest

MEGABYTES = 10**6


@pytest.fixture
def bounded() -> Iterator[None]:
    """Neither gigabytes nor minutes."""
    resource = pytest.importorskip("resource")
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 600 * MEGABYTES
    assert time.monotonic() - begin < 30
