"""Methods that break what all need break only their own runs."""

from pathlib import Path

import bad_methods
import misbehaving
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import FailedRunsWarning
from hpobench_ordered.experiment.store import Store

SMALL = {
    "benchmarks": ["newsvendor"],
    "protocol": hbo.Ordered(trials=3, tasks=2),
    "seeds": [0],
    "time_limit": 1.5,
    "progress": False,
}
OTHERS = ["random-search", bad_methods.Good, "simple-previous"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    """Digests of the runs of other methods, alone, by key."""
    folder = tmp_path_factory.mktemp("undisturbed")
    hbo.run(methods=OTHERS, folder=folder, **SMALL)
    return rows_of_runs(folder)


def rows_of_runs(folder: Path) -> dict[str, str]:
    """The rows of each finished run, by key."""
    store = Store(folder)
    frame = store.read()
    assert set(frame["key"]) == store.keys()
    groups = frame.astype({"key": str}).groupby("key")
    return {key: rows.drop(columns="key").to_csv(index=False) for key, rows in groups}


def run_between_others(undisturbed, folder, methods, **options):
    """Run methods between others, whose runs must stay the same; return the failures."""
    before, after = OTHERS[:2], OTHERS[2:]
    with pytest.warns(FailedRunsWarning):
        result = hbo.run(methods=[*before, *methods, *after], folder=folder, **SMALL, **options)
    digests = rows_of_runs(folder)
    assert {key: digests[key] for key in undisturbed} == undisturbed

    names = {f"misbehaving.{method.__name__}" for method in methods}
    failures = result.failures()
    assert {failure.method for failure in failures} <= names
    for failure in failures:
        assert failure.message.startswith(failure.method)

    finished = len(digests) - len(undisturbed)
    assert finished + len(failures) == len(methods)
    assert not [*(folder / "running").iterdir()]
    return failures


def test_misbehaving_methods_are_many():
    assert len(misbehaving.METHODS) >= 100


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_all_break_only_own_runs(undisturbed, tmp_path, workers):
    failures = run_between_others(undisturbed, tmp_path, misbehaving.METHODS, workers=workers)
    assert len(failures) > 40


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_some_break_only_own_runs(undisturbed, tmp_path, workers):
    methods = misbehaving.METHODS[3::12]
    assert run_between_others(undisturbed, tmp_path, methods, workers=workers)


@pytest.mark.long
def test_all_break_only_own_runs_on_dask(undisturbed, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        run_between_others(
            undisturbed, tmp_path, misbehaving.METHODS, dask=cluster.scheduler_address
        )
