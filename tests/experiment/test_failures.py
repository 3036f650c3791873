"""Methods, benchmarks and processes that fail: other runs are neither lost nor changed."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import bad_methods as bad
import pandas as pd
import psutil
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ArtifactError, FailedRunsWarning
from hpobench_ordered.experiment.job import perform_in_child
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.records import Reason
from hpobench_ordered.runtime.child import StepTimeoutError

SMALL = {
    "benchmarks": ["newsvendor"],
    "protocol": hbo.Ordered(trials=3, tasks=2),
    "seeds": range(2),
}
"""Options of short runs with two seeds on one benchmark."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Digest of the runs of good methods alone."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return hbo.run(methods=["random-search", bad.Good], folder=folder, **SMALL).store.digest()


@pytest.mark.parametrize(
    ("method", "reason", "message"),
    [
        (bad.Raises, Reason.RAISED, "RuntimeError: out of ideas"),
        (bad.Exits, Reason.RAISED, "SystemExit: 3"),
        (bad.RaisesOwn, Reason.RAISED, "trial 1: OwnError"),
        (bad.NoSuper, Reason.RAISED, r"__init__ must call super().__init__(...)"),
        (bad.WrongFallbacks, Reason.RAISED, "`fallbacks` must be a count, but got 'many'"),
        (bad.Nonsense, Reason.INVALID, "a configuration must be a dict, but got 'a configuration'"),
        (bad.Interrupts, Reason.RAISED, "trial 1: KeyboardInterrupt"),
        (bad.Sleeps, Reason.TIMED_OUT, "took longer than 0.3 s"),
    ],
)
def test_bad_method_fails_alone(tmp_path, undisturbed, method, reason, message):
    """Each of three methods runs with two seeds; the runs of the bad one fail in trial 1."""
    methods = ["random-search", method, bad.Good]
    with pytest.warns(FailedRunsWarning, match=r"2 of 6 runs failed"):
        result = hbo.run(methods=methods, folder=tmp_path, time_limit=0.3, **SMALL)

    for failure in result.failures():
        assert failure.method == f"bad_methods.{method.__name__}"
        assert (failure.task, failure.when, failure.reason) == ("0", "trial 1", reason)
        assert message in failure.message
        # The traceback leads to the method's file; of an error that the package noticed itself,
        # such as an invalid configuration, there is only the error.
        assert "bad_methods.py" in failure.traceback or "Error: " in failure.traceback
    assert result.store.digest() == undisturbed


def start_slow_runs(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start an experiment of about ten seconds in a process, with its results in the folder."""
    # The script sets the handlers itself: processes of a shell in the background ignore
    # interrupts, and the command `hpobench-ordered` takes SIGTERM for an interrupt, too.
    script = (
        "import signal, bad_methods as bad, hpobench_ordered as hbo\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(number, signal.default_int_handler)\n"
        "if __name__ == '__main__':\n"
        "    hbo.run(benchmarks=['newsvendor'], methods=['random-search', bad.Slow],"
        f" protocol=hbo.Ordered(trials=10, tasks=2), folder='results', workers={workers})\n"
    )
    (folder / "slow.py").write_text(script)
    paths = os.pathsep.join([str(Path(bad.__file__).parent), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "slow.py"],
        cwd=folder,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
    )


def wait_until(is_fulfilled: Callable[[], bool]) -> None:
    """Wait for a condition for at most a minute; the test then tells what is missing."""
    deadline = time.monotonic() + 60
    while not is_fulfilled() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_user_interrupt_ends_experiment(tmp_path, interrupt):
    """By Ctrl+C or the signal to terminate; the interrupted run is not recorded as failed."""
    experiment = start_slow_runs(tmp_path, workers=1)
    wait_until(lambda: any((tmp_path / "results").glob("runs/*")))
    time.sleep(0.5)  # by now a run of `Slow` has begun, which takes two seconds

    experiment.send_signal(interrupt)

    _, errors = experiment.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert not any((tmp_path / "results" / "failures").iterdir())


BAD_BENCHMARKS = {
    "raises": (ValueError("surrogate broke"), "ValueErr"),
    "raises own error": (ArtifactError("x"), "Artifact"),
    "changes values": (None, "values must not depend on earlier calls"),
}


@pytest.mark.parametrize(("error", "message"), BAD_BENCHMARKS.values(), ids=BAD_BENCHMARKS)
def test_bad_benchmark_fails_alone(tmp_path, monkeypatch, error, message):
    """Two methods run with two seeds each on newsvendor, and on forrester, which is bad."""
    methods = ["random-search", "simple-previous"]
    undisturbed = hbo.run(methods=methods, folder=tmp_path / "undisturbed", **SMALL)
    evaluate = hbo.Task.evaluate_row
    calls = itertools.count()

    def evaluate_badly_on_forrester(task: hbo.Task, row: Any) -> float:
        is_on_newsvendor = task.space.dimension > 1  # forrester has one dimension
        if is_on_newsvendor:
            return evaluate(task, row)
        if error is not None:
            raise error
        # Without an error, the value changes from call to call.
        return evaluate(task, row) + next(calls)

    monkeypatch.setattr(hbo.Task, "evaluate_row", evaluate_badly_on_forrester)
    both = {**SMALL, "benchmarks": ["newsvendor", "forrester"]}
    with pytest.warns(FailedRunsWarning, match=r"4 of 8 runs failed"):
        result = hbo.run(methods=methods, folder=tmp_path / "disturbed", **both)

    for failure in result.failures():
        assert failure.benchmark.startswith("forrester")
        assert failure.reason is Reason.BENCHMARK
        assert message in failure.message
    assert result.store.digest() == undisturbed.store.digest()


def kill_waiting_processes(folder: Path, killed: set[int]) -> None:
    """Kill each process that wrote its number into the folder, until as many as `KILLS` are."""

    def kill_and_tell_whether_all() -> bool:
        pids = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
        for pid in pids - killed:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        return len(killed) >= bad.WaitsToBeKilled.KILLS

    wait_until(kill_and_tell_whether_all)


@pytest.mark.slow
def test_runs_survive_kills_from_outside(tmp_path, monkeypatch):
    """Each process of a run tells its number in a folder; some of them are killed."""
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    monkeypatch.setenv(bad.WaitsToBeKilled.FOLDER, str(waiting))
    killed: set[int] = set()
    killer = threading.Thread(target=kill_waiting_processes, args=(waiting, killed))
    killer.start()
    options: dict[str, Any] = SMALL | {"seeds": range(4), "workers": 2}

    result = hbo.run(methods=[bad.WaitsToBeKilled], folder=tmp_path / "results", **options)

    killer.join()
    assert len(killed) == bad.WaitsToBeKilled.KILLS
    assert not result.failures()
    assert len(result.store.keys()) == 4


@pytest.mark.slow
@pytest.mark.parametrize("method", [bad.HoldsTheLock, bad.Loops])
def test_endless_call_ends_with_its_process(tmp_path, method):
    """Nothing else can end it: it holds the lock of Python, or catches all exceptions."""
    small: dict[str, Any] = SMALL | {"seeds": [0], "workers": 2, "time_limit": 0.2}
    with pytest.warns(FailedRunsWarning, match="1 of 1 runs failed"):
        result = hbo.run(methods=[method], folder=tmp_path, **small)
    (failure,) = result.failures()
    assert failure.reason is Reason.TIMED_OUT
    assert "bad_methods.py" in failure.traceback


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("openml-svm", hbo.LeaveOneOut(trials=3, history=20, tasks=3)),
        ("svm-a", hbo.Adjustment(first_trials=3, trials=3, tasks=2)),
    ],
)
def test_vandal_changes_no_other_run(tmp_path, name, protocol):
    """The vandal changes whatever it is given, such as its history, in place.

    It runs before another method, whose trials must be those that it makes alone.
    """
    method = "simple-previous"
    vandal = hbo.MethodSpec("vandal", bad.Vandal, "", "", changed_spaces=True)
    options: dict[str, Any] = {"benchmarks": [name], "seeds": [0], "protocol": protocol}
    expected = hbo.run(methods=[method], folder=tmp_path / "alone", **options).frame()

    after_vandal = hbo.run(methods=[vandal, method], folder=tmp_path / "after", **options)

    _, cell_of_method = after_vandal.cells  # in the order of methods
    trials = after_vandal.store.read([cell_of_method.key])
    pd.testing.assert_frame_equal(trials.astype(expected.dtypes), expected)


def run_failing(folder: Path, *, retry_failed: bool = False) -> set[int]:
    """Run a method that fails; return when its failures were written, in nanoseconds."""
    with pytest.warns(FailedRunsWarning, match="2 of 2"):
        hbo.run(methods=[bad.Raises], folder=folder, retry_failed=retry_failed, **SMALL)
    return {path.stat().st_mtime_ns for path in (folder / "failures").iterdir()}


class ChildrenThatHang:
    """Stands for the processes of methods: importing takes longer than its limit."""

    def call(self, *arguments: Any) -> None:
        raise StepTimeoutError("\nwhile it was imported", limit=300.0, report="")


def test_slow_import_names_its_own_limit():
    (cell,) = plan(benchmarks=["newsvendor"], methods=["bo"], seeds=[0], protocol=SMALL["protocol"])
    # The time limit is that of a call into the method, and does not hold for the import.
    failed_run = perform_in_child(cell, time_limit=5.0, children=ChildrenThatHang())
    assert "while it was imported: took longer than 300 s" in str(failed_run.error)


def test_failed_runs_are_not_repeated(tmp_path):
    times_of_failures = run_failing(tmp_path)
    times_of_failures_afterwards = run_failing(tmp_path)
    assert times_of_failures_afterwards == times_of_failures


def test_failed_runs_are_retried_on_request(tmp_path):
    times_of_failures = run_failing(tmp_path)
    times_of_retries = run_failing(tmp_path, retry_failed=True)
    assert min(times_of_retries) > max(times_of_failures)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes have no parents there")
def test_processes_end_with_their_parent(tmp_path):
    """An experiment with two workers is killed; its workers, their processes, must end, too."""
    children: set[int] = set()

    def collect_and_tell_whether_two() -> bool:
        children.update(list_pids_of_children(parent.pid))
        return len(children) >= 2

    with start_slow_runs(tmp_path, workers=2) as parent:
        wait_until(collect_and_tell_whether_two)
        parent.kill()
    wait_until(lambda: not any(map(psutil.pid_exists, children)))

    assert len(children) >= 2
    assert not any(map(psutil.pid_exists, children))


def list_pids_of_children(pid: int) -> set[int]:
    """Numbers of the processes that this process started to run methods in."""
    pids = set()
    with suppress(psutil.Error):  # a child may have just ended
        for child in psutil.Process(pid).children():
            if "child.serve" in " ".join(child.cmdline()):
                pids.add(child.pid)
    return pids
