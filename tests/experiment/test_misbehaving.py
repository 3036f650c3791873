"""Methods that break what all runs need, such as files or random numbers, break only their own."""

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
"""Options of short runs with one seed on one benchmark."""
OTHERS = ["random-search", bad_methods.Good, "simple-previous"]
"""Methods that behave well."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, str]:
    """Trials of the runs of other methods, alone, by the key of the run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    hbo.run(methods=OTHERS, folder=folder, **SMALL)
    return rows_of_runs(folder)


def rows_of_runs(folder: Path) -> dict[str, str]:
    """Read the trials of each finished run, as text, by the key of the run."""
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
    trials_of_run = rows_of_runs(folder)
    assert {key: trials_of_run[key] for key in undisturbed} == undisturbed

    names = {f"misbehaving.{method.__name__}" for method in methods}
    failures = result.failures()
    assert {failure.method for failure in failures} <= names
    for failure in failures:
        assert failure.message.startswith(failure.method)

    finished = len(trials_of_run) - len(undisturbed)
    assert finished + len(failures) == len(methods)
    assert not list((folder / "running").iterdir())  # no run is left marked as in progress
    return failures


def test_misbehaving_methods_are_many():
    assert len(misbehaving.METHODS) >= 100


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_all_break_only_own_runs(undisturbed, tmp_path, workers):
    """More than a hundred methods run between others, which stay undisturbed."""
    failures = run_between_others(undisturbed, tmp_path, misbehaving.METHODS, workers=workers)
    # The others misbehave in ways that leave their own run finished.
    assert len(failures) > 40


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_some_break_only_own_runs(undisturbed, tmp_path, workers):
    """A part of the methods that misbehave, as all of them take long."""
    every_twelfth_method = misbehaving.METHODS[3::12]  # from the fourth on; any would do
    failures = run_between_others(undisturbed, tmp_path, every_twelfth_method, workers=workers)
    assert failures


@pytest.mark.long
def test_all_break_only_own_runs_on_dask(undisturbed, tmp_path):
    """More than a hundred methods run between others, on two worker processes."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        run_between_others(
            undisturbed, tmp_path, misbehaving.METHODS, dask=cluster.scheduler_address
        )
