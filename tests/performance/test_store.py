"""How long results of many runs take to read, in a file each and packed."""

import shutil
from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.store import Store

RUNS = 1000
FASTER = 5
"""How many times faster packed runs are read, at least."""


@pytest.fixture(scope="module")
def loose(tmp_path_factory):
    """A file a run."""
    folder = tmp_path_factory.mktemp("loose")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hpobench_ordered.experiment.parallel.MANY", 100 * RUNS)
        settings = {"protocol": hbo.Ordered(trials=10, tasks=5), "seeds": range(RUNS)}
        hbo.run(benchmarks=["newsvendor"], methods=["random-search"], folder=folder, **settings)
    return Store(folder)


@pytest.fixture(scope="module")
def packed(loose, tmp_path_factory):
    """All runs in one file."""
    store = Store(Path(shutil.copytree(loose.folder, tmp_path_factory.mktemp("packed") / "store")))
    assert store.compact() == RUNS
    return store


def size(store: Store) -> int:
    """Bytes of all files with runs."""
    files = [*(store.folder / "runs").iterdir(), *(store.folder / "packed").iterdir()]
    return sum(path.stat().st_size for path in files)


def test_packing_makes_it_smaller(loose, packed):
    # A third of the bytes of a file a run.
    assert size(packed) < size(loose) / 3


def test_reading_a_file_a_run(benchmark, loose):
    # A run has 5 tasks of 10 trials.
    assert len(benchmark.pedantic(loose.read, rounds=3)) == RUNS * 50
    # The next test compares with it.
    test_reading_a_file_a_run.median = benchmark.stats.stats.median


def test_reading_packed_runs(benchmark, packed):
    # A run has 5 tasks of 10 trials.
    assert len(benchmark.pedantic(packed.read, rounds=5)) == RUNS * 50
    slower = test_reading_a_file_a_run.median
    assert benchmark.stats.stats.median < slower / FASTER


def test_reading_of_overview(benchmark, packed):
    assert len(benchmark.pedantic(make_overview, args=(packed,), rounds=5).runs) == RUNS
