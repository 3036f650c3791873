"""Methods, benchmarks and processes that fail: other runs are neither lost nor changed."""

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

SHORT_RUNS = {
    "benchmarks": ["newsvendor"],
    "protocol": hbo.Ordered(trials=3, tasks=2),
    "seeds": range(2),
}
"""Options of short runs with two seeds on one benchmark."""


@pytest.fixture(scope="module")
def digest_without_bad_method(tmp_path_factory):
    """A hash of the results of two good methods that run alone."""
    folder = tmp_path_factory.mktemp("without_bad_method")
    results = hbo.run(methods=["random-search", bad.Good], folder=folder, **SHORT_RUNS)
    return results.store.digest()


BAD_METHODS = {
    bad.Raises: (Reason.RAISED, "RuntimeError: out of ideas"),
    bad.Exits: (Reason.RAISED, "SystemExit: 3"),
    bad.NoSuper: (Reason.RAISED, r"__init__ must call super().__init__(...)"),
    bad.WrongFallbacks: (Reason.RAISED, "`fallbacks` must be a count, but got 'many'"),
    bad.Nonsense: (Reason.INVALID, "a configuration must be a dict, but got 'a configuration'"),
    bad.Interrupts: (Reason.RAISED, "trial 1: KeyboardInterrupt"),
    bad.Sleeps: (Reason.TIMED_OUT, "took longer than 0.3 s"),
}
"""Methods that fail in their first trial, each with the reason and a part of the message."""


@pytest.fixture(scope="module")
def results_with_bad_methods(tmp_path_factory):
    """Results of two good methods, between which the bad ones ran; each had two seeds."""
    methods = ["random-search", *BAD_METHODS, bad.Good]
    folder = tmp_path_factory.mktemp("with_bad_methods")
    with pytest.warns(FailedRunsWarning, match=r"14 of 18 runs failed"):
        return hbo.run(methods=methods, folder=folder, time_limit=0.3, **SHORT_RUNS)


def test_good_runs_stay_the_same(results_with_bad_methods, digest_without_bad_method):
    """Bad methods change nothing in the results of good ones before and after them."""
    assert results_with_bad_methods.store.digest() == digest_without_bad_method


@pytest.mark.parametrize("method", BAD_METHODS, ids=lambda method: method.__name__)
def test_failure_tells_its_reason(results_with_bad_methods, method):
    """Both runs of a bad method fail in the first trial."""
    name = f"bad_methods.{method.__name__}"
    failures = [each for each in results_with_bad_methods.failures() if each.method == name]

    reason, message = BAD_METHODS[method]
    assert len(failures) == 2
    for failure in failures:
        assert (failure.task, failure.when, failure.reason) == ("0", "trial 1", reason)
        assert message in failure.message
        # An error that the package noticed itself, such as of an invalid configuration, has no
        # traceback into the method's file.
        assert "bad_methods.py" in failure.traceback or "Error: " in failure.traceback


# The script sets the handlers itself: processes of a shell in the background ignore interrupts,
# and the command `hpobench-ordered` takes SIGTERM for an interrupt, too.
SCRIPT_OF_SLOW_RUNS = """
import signal
import sys

import bad_methods
import hpobench_ordered as hbo

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.default_int_handler)
if __name__ == "__main__":
    hbo.run(
        benchmarks=["newsvendor"],
        methods=["random-search", bad_methods.Slow],
        protocol=hbo.Ordered(trials=10, tasks=2),
        folder="results",
        workers=int(sys.argv[1]),
    )
"""


def start_slow_runs(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start an experiment of about ten seconds in another process, in which interrupts end it.

    Its results are in the subfolder "results".
    """
    (folder / "slow.py").write_text(SCRIPT_OF_SLOW_RUNS)
    folder_of_bad_methods = str(Path(bad.__file__).parent)
    other_folders = os.environ.get("PYTHONPATH", "")
    return subprocess.Popen(
        [sys.executable, "slow.py", str(workers)],
        cwd=folder,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([folder_of_bad_methods, other_folders])},
    )


def wait_until(is_fulfilled: Callable[[], bool]) -> None:
    """Wait until a condition is fulfilled, but at most a minute; the test then checks it itself."""
    deadline = time.monotonic() + 60
    while not is_fulfilled() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there are no such signals")
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_user_interrupt_ends_experiment(tmp_path, interrupt):
    """Ctrl+C, or the signal to terminate, ends an experiment.

    The run that it interrupts, of the method `Slow`, is not recorded as failed.
    """
    experiment = start_slow_runs(tmp_path, workers=1)
    wait_until(lambda: any((tmp_path / "results").glob("runs/*")))
    time.sleep(0.5)  # until a run of `Slow` has begun, which takes two seconds

    experiment.send_signal(interrupt)

    _, errors = experiment.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert not any((tmp_path / "results" / "failures").iterdir())


@pytest.mark.parametrize(
    ("error", "message"),
    [(ValueError("surrogate broke"), "ValueErr"), (ArtifactError("x"), "Artifact")],
)
def test_bad_benchmark_fails_alone(tmp_path, monkeypatch, error, message):
    """If all evaluations of one benchmark raise an error, results on another stay the same.

    Evaluations fail on forrester. The two methods have two seeds each, also on newsvendor.
    """
    methods = ["random-search", "simple-previous"]
    alone = hbo.run(methods=methods, folder=tmp_path / "newsvendor alone", **SHORT_RUNS)
    evaluate = hbo.Task.evaluate_row

    def fail_on_forrester(task: hbo.Task, row: Any) -> float:
        """Evaluate as usual on newsvendor; forrester is the benchmark of one dimension."""
        if task.space.dimension == 1:
            raise error
        return evaluate(task, row)

    monkeypatch.setattr(hbo.Task, "evaluate_row", fail_on_forrester)
    both = {**SHORT_RUNS, "benchmarks": ["newsvendor", "forrester"]}

    with pytest.warns(FailedRunsWarning, match=r"4 of 8 runs failed"):
        result = hbo.run(methods=methods, folder=tmp_path / "both", **both)

    for failure in result.failures():
        assert failure.benchmark.startswith("forrester")
        assert failure.reason is Reason.BENCHMARK
        assert message in failure.message
    assert result.store.digest() == alone.store.digest()


class KillerOfWaitingProcesses(threading.Thread):
    """Kills processes whose numbers are names of files in a folder, until so many are killed."""

    def __init__(self, folder: Path, number_to_kill: int) -> None:
        super().__init__()
        self.folder = folder
        self.number_to_kill = number_to_kill
        self.killed: set[int] = set()

    def run(self) -> None:
        wait_until(self.kill_new_and_tell_whether_done)

    def kill_new_and_tell_whether_done(self) -> bool:
        """Kill processes that appeared in the folder; return whether that is all by now."""
        pids = {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal()}
        for pid in pids - self.killed:
            os.kill(pid, signal.SIGKILL)
            self.killed.add(pid)
        return len(self.killed) >= self.number_to_kill


@pytest.mark.slow
def test_runs_survive_kills_from_outside(tmp_path, monkeypatch):
    """Runs whose process is killed, here three times, are repeated, and none counts as failed.

    The method `WaitsToBeKilled` writes the number of its process into a folder and waits.
    """
    folder_of_waiting = tmp_path / "waiting"
    folder_of_waiting.mkdir()
    monkeypatch.setenv(bad.WaitsToBeKilled.FOLDER, str(folder_of_waiting))
    killer = KillerOfWaitingProcesses(folder_of_waiting, number_to_kill=bad.WaitsToBeKilled.KILLS)
    killer.start()
    options: dict[str, Any] = SHORT_RUNS | {"seeds": range(4), "workers": 2}

    result = hbo.run(methods=[bad.WaitsToBeKilled], folder=tmp_path / "results", **options)

    killer.join()
    assert len(killer.killed) == bad.WaitsToBeKilled.KILLS
    assert not result.failures()
    assert len(result.store.keys()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(bad.HoldsTheLock, id="no other thread can run"),
        pytest.param(bad.Loops, id="all exceptions are caught"),
    ],
)
def test_endless_call_ends_with_its_process(tmp_path, method):
    """A call that no exception can end is ended by killing its process, after the time limit."""
    one_run: dict[str, Any] = SHORT_RUNS | {"seeds": [0], "workers": 2, "time_limit": 0.2}
    with pytest.warns(FailedRunsWarning, match="1 of 1 runs failed"):
        result = hbo.run(methods=[method], folder=tmp_path, **one_run)

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
    """The method `Vandal` changes whatever it is given, such as its history, in place.

    Another method runs after it, and must make the same trials as alone.
    """
    method = "simple-previous"
    # It claims to support changed search spaces, as the protocol of adjustments requires.
    vandal = hbo.MethodSpec("vandal", bad.Vandal, "", "", changed_spaces=True)
    options: dict[str, Any] = {"benchmarks": [name], "seeds": [0], "protocol": protocol}
    trials_alone = hbo.run(methods=[method], folder=tmp_path / "alone", **options).frame()

    after_vandal = hbo.run(methods=[vandal, method], folder=tmp_path / "after", **options)

    _, run_of_method = after_vandal.cells  # in the order of methods
    trials = after_vandal.store.read([run_of_method.key])
    # The types of columns depend on which methods there are, such as those of categories.
    trials_of_same_types = trials.astype(trials_alone.dtypes)
    pd.testing.assert_frame_equal(trials_of_same_types, trials_alone)


def fail_and_list_times(folder: Path, *, retry_failed: bool = False) -> set[int]:
    """Run a method that fails; list when its two failures were written, in nanoseconds."""
    with pytest.warns(FailedRunsWarning, match="2 of 2"):
        hbo.run(methods=[bad.Raises], folder=folder, retry_failed=retry_failed, **SHORT_RUNS)
    return {path.stat().st_mtime_ns for path in (folder / "failures").iterdir()}


class ProcessesThatHang:
    """Stands for processes in which the import of a method takes longer than its limit, 300 s."""

    def call(self, *arguments: Any) -> None:
        raise StepTimeoutError("\nwhile it was imported", limit=300.0, report="")


def test_slow_import_names_its_own_limit():
    """If the import of a method takes too long, the error names the limit of imports, 300 s.

    The time limit of a run, here 5 s, is for calls into the method.
    """
    (cell,) = plan(
        benchmarks=["newsvendor"], methods=["bo"], seeds=[0], protocol=SHORT_RUNS["protocol"]
    )

    failed_run = perform_in_child(cell, time_limit=5.0, children=ProcessesThatHang())

    assert "while it was imported: took longer than 300 s" in str(failed_run.error)


def test_failed_runs_are_not_repeated(tmp_path):
    """An experiment that is started again leaves its failed runs, and their files, as they are."""
    times_of_failures = fail_and_list_times(tmp_path)
    times_after_second_start = fail_and_list_times(tmp_path)

    assert times_after_second_start == times_of_failures


def test_failed_runs_are_retried_on_request(tmp_path):
    """With `retry_failed`, failed runs are made again; here they fail again, and are rewritten."""
    times_of_failures = fail_and_list_times(tmp_path)
    times_of_retries = fail_and_list_times(tmp_path, retry_failed=True)

    assert min(times_of_retries) > max(times_of_failures)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes have no parents there")
def test_processes_end_with_their_parent(tmp_path):
    """When an experiment with two workers is killed, the processes of its workers end, too."""
    with start_slow_runs(tmp_path, workers=2) as experiment:
        wait_until(lambda: len(list_pids_of_workers(experiment.pid)) >= 2)
        workers = list_pids_of_workers(experiment.pid)
        experiment.kill()
    wait_until(lambda: not any(map(psutil.pid_exists, workers)))

    assert len(workers) >= 2
    assert not any(map(psutil.pid_exists, workers))


def list_pids_of_workers(pid: int) -> set[int]:
    """List the processes that an experiment's process started to run methods in."""
    pids = set()
    with suppress(psutil.Error):  # one may have just ended
        for child in psutil.Process(pid).children():
            # The function that workers run is called `child.serve`.
            if "child.serve" in " ".join(child.cmdline()):
                pids.add(child.pid)
    return pids


@pytest.mark.filterwarnings("ignore::hpobench_ordered.errors.FailedRunsWarning")
def test_results_without_runs_have_a_text(tmp_path):
    """If all runs failed, the text of results is their short one: there are no means to show."""
    results = hbo.run(methods=[bad.Raises], folder=tmp_path, **SHORT_RUNS)
    assert str(results) == repr(results)
