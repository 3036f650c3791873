"""Methods that break what all runs need, such as files or random numbers, break only their own."""

from pathlib import Path

import bad_methods
import misbehaving
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import FailedRunsWarning
from hpobench_ordered.experiment.store import Store

SHORT_RUNS = {
    "benchmarks": ["newsvendor"],
    "protocol": hbo.Ordered(trials=3, tasks=2),
    "seeds": [0],
    "time_limit": 1.5,
    "progress": False,
}
"""Options of short runs with one seed on one benchmark."""
GOOD_METHODS = ["random-search", bad_methods.Good, "simple-previous"]
"""Methods that behave well."""


@pytest.fixture(scope="module")
def trials_of_good_methods(tmp_path_factory) -> dict[str, str]:
    """The trials, as text, of good methods that run alone, by the key of the run."""
    folder = tmp_path_factory.mktemp("good_methods")
    hbo.run(methods=GOOD_METHODS, folder=folder, **SHORT_RUNS)
    return read_trials_of_runs(folder)


def read_trials_of_runs(folder: Path) -> dict[str, str]:
    """Read the trials of each finished run as text, so that they can be compared by ==."""
    store = Store(folder)
    all_trials = store.read()
    assert set(all_trials["key"]) == store.keys()

    trials_of_runs = {}
    for key, trials in all_trials.astype({"key": str}).groupby("key"):
        trials_of_runs[key] = trials.drop(columns="key").to_csv(index=False)
    return trials_of_runs


# A child process breaks in the same way with one worker and on Dask, so two workers tell most.
@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.slow)]
)
def test_misbehaving_break_only_own_runs(trials_of_good_methods, tmp_path, workers):
    """Methods that misbehave run between good ones, whose trials are the same as alone."""
    run_between_good_methods(trials_of_good_methods, tmp_path, workers=workers)


@pytest.mark.long
def test_misbehaving_break_only_own_runs_on_dask(trials_of_good_methods, tmp_path):
    """Methods that misbehave change no trials of good ones that run on the same Dask workers."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        run_between_good_methods(trials_of_good_methods, tmp_path, dask=cluster.scheduler_address)


def run_between_good_methods(trials_of_good_methods, folder, **options) -> None:
    """Run methods that misbehave, one run each, between good ones.

    The trials of the good methods must be the same as alone, and the runs of the others fail, or at
    least end.
    """
    before, after = GOOD_METHODS[:2], GOOD_METHODS[2:]
    all_methods = [*before, *misbehaving.METHODS, *after]
    with pytest.warns(FailedRunsWarning):
        result = hbo.run(methods=all_methods, folder=folder, **SHORT_RUNS, **options)

    trials_of_runs = read_trials_of_runs(folder)
    for key, expected_trials in trials_of_good_methods.items():
        assert trials_of_runs[key] == expected_trials

    failures = result.failures()
    failed = {failure.method.removeprefix("misbehaving.") for failure in failures}
    assert failed >= {method.__name__ for method in misbehaving.METHODS_THAT_FAIL}
    assert failed <= {method.__name__ for method in misbehaving.METHODS}
    n_finished = len(trials_of_runs) - len(trials_of_good_methods)
    assert n_finished + len(failures) == len(misbehaving.METHODS)
