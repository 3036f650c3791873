"""What all tests share: folders, settings of the property tests, and the order of files."""

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest

SCRATCH = Path(tempfile.mkdtemp(prefix="hpobench-ordered-tests-"))
"""A folder of this process of tests, which is deleted when it ends."""

# Before any test module is imported: some benchmarks ask for the folder when they are. The tests
# neither see the user's benchmarks nor touch them.
os.environ["HPOBENCH_ORDERED_BENCHMARKS"] = str(SCRATCH / "benchmarks")

# Before NumPy is imported: threads of linear algebra that wait for each other would take most of
# the time, above all beside another process of tests.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

QUICK = "not slow and not long"
"""The marks that `pytest` runs by default, as pyproject.toml says."""


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory):
    """Let the temporary folders that the package and other processes make be deleted at the end.

    They are made in the scratch folder, while the folders `tmp_path` stay where pytest makes them.
    """
    tmp_path_factory.getbasetemp()  # makes pytest's own folder, before the place changes
    folder = SCRATCH / "tmp"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TMPDIR", str(folder))
        patched.setattr(tempfile, "tempdir", str(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def _working_folder():
    """Let the tests work in an empty folder instead of the checkout.

    Python looks for modules of `python -c` and `python -m` in the folder where it starts. Processes
    that the tests start in the checkout would import the package from there, and compile it anew,
    although another copy may be installed and tested.
    """
    folder = SCRATCH / "work"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        yield


def pytest_unconfigure() -> None:
    """Delete the scratch folder."""
    shutil.rmtree(SCRATCH, ignore_errors=True)


@pytest.fixture(scope="session")
def shared():
    """Folder of the public data and recorded values that are not part of the project."""
    checkout = Path(__file__).absolute().parents[1]
    beside_checkout = checkout.parent / "shared"
    folder = Path(os.environ.get("HPOBENCH_ORDERED_SHARED", beside_checkout))
    if not (folder / "data").is_dir():
        pytest.skip(f"no shared data at {folder}; set HPOBENCH_ORDERED_SHARED to its folder")
    return folder


@pytest.fixture(scope="session")
def finished_results(tmp_path_factory):
    """Results of two methods, two seeds each, on newsvendor and on forrester.

    The whole session shares them: a test that changes the store works on a copy of its folder.
    """
    import hpobench_ordered as hbo

    return hbo.run(
        benchmarks=["newsvendor", "forrester"],
        methods=["random-search", "cts"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=4, tasks=4),
        folder=tmp_path_factory.mktemp("finished"),
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let property tests take any time, with half of the examples in the quick run.

    Examples are the same in every run; `--hypothesis-seed=random` draws others.
    """
    from hypothesis import HealthCheck, settings

    # The width of somebody's terminal would change what the command line prints.
    os.environ.pop("COLUMNS", None)

    is_quick = config.option.markexpr == QUICK
    settings.register_profile(
        "project",
        deadline=None,
        derandomize=config.getoption("--hypothesis-seed") is None,
        max_examples=20 if is_quick else 40,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("project")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without collecting garbage, and spare it what was loaded for them.

    Modules and tests live until the end. Looking through them again and again would take a tenth of
    the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after pytest has left out the tests that are not asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with files that have slow tests, and among them and the others with the longest.

    So no process is left with a slow file when the others have finished.
    """
    number_of_tests = Counter(item.path for item in items)
    files_with_slow_tests = {item.path for item in items if item.get_closest_marker("slow")}

    def rank_of_file(item: pytest.Item) -> tuple[bool, int]:
        has_slow_tests = item.path in files_with_slow_tests
        return not has_slow_tests, -number_of_tests[item.path]

    items.sort(key=rank_of_file)
