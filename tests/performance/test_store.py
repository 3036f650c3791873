"""How long results of many runs take to read, in a file each and packed."""

import shutil
import time

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.store import Store

RUNS = 1000
TASKS = 5
TRIALS = 10


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A store with a file for each of a thousand runs."""
    folder = tmp_path_factory.mktemp("unpacked")
    with pytest.MonkeyPatch.context() as patch:
        # From this number of runs on, their files are packed into one: never here.
        patch.setattr("hpobench_ordered.experiment.parallel.MIN_FILES_TO_PACK", 100 * RUNS)
        hbo.run(
            benchmarks=["newsvendor"],
            methods=["random-search"],
            seeds=range(RUNS),
            protocol=hbo.Ordered(trials=TRIALS, tasks=TASKS),
            folder=folder,
        )
    return Store(folder)


@pytest.fixture(scope="module")
def packed(unpacked, tmp_path_factory):
    """A store with the same runs in one file."""
    folder = tmp_path_factory.mktemp("packed") / "store"
    shutil.copytree(unpacked.folder, folder)
    store = Store(folder)
    assert store.compact() == RUNS
    return store


def count_bytes_of_runs(store: Store) -> int:
    """Count the bytes of all files with runs."""
    files = [*(store.folder / "runs").iterdir(), *(store.folder / "packed").iterdir()]
    return sum(path.stat().st_size for path in files)


def test_packing_takes_third_of_bytes(unpacked, packed):
    assert count_bytes_of_runs(packed) < count_bytes_of_runs(unpacked) / 3


def test_reading_a_file_a_run(benchmark, unpacked):
    """Measure how long a thousand runs in a file each take to read; no limit is asserted."""
    trials = benchmark.pedantic(unpacked.read, rounds=3)

    assert len(trials) == RUNS * TASKS * TRIALS


def test_packed_runs_are_read_five_times_faster(benchmark, unpacked, packed):
    """A thousand runs in one file, beside the same in a file each."""
    start = time.perf_counter()
    unpacked.read()
    seconds_of_unpacked = time.perf_counter() - start

    trials = benchmark.pedantic(packed.read, rounds=5)

    assert len(trials) == RUNS * TASKS * TRIALS
    assert benchmark.stats.stats.median < seconds_of_unpacked / 5


def test_reading_of_overview(benchmark, packed):
    """Measure how long the overview of a thousand runs takes; no limit is asserted."""
    overview = benchmark.pedantic(make_overview, args=(packed,), rounds=5)

    assert len(overview.runs) == RUNS
