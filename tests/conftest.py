import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpobench_ordered.registry import LOCAL_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def no_own_benchmarks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep benchmarks that the developer generated for himself out of the tests, and in place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCAL_VARIABLE, str(tmp_path_factory.mktemp("own") / "benchmarks"))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the public data and recorded values that are not part of the project."""
    default = Path(__file__).absolute().parents[2] / "shared"
    folder = Path(os.environ.get("HPOBENCH_ORDERED_SHARED", default))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}; set HPOBENCH_ORDERED_SHARED to its folder")
    return folder


def pytest_configure() -> None:
    """Let examples of property tests take any time: it says more of the machine than of the code."""
    from hypothesis import settings

    settings.register_profile("project", deadline=None)
    settings.load_profile("project")
