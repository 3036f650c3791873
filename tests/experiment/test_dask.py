"""Experiments on Dask: the same results as without it, and one line about what is wrong."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import bad_methods as bad
import pytest
from distributed import Client, LocalCluster

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning, WaitingWarning
from hpobench_ordered.experiment.records import Reason
from hpobench_ordered.runtime.machine import package_versions

pytestmark = pytest.mark.slow

SHORT_RUNS: dict[str, Any] = {
    "benchmarks": ["newsvendor"],
    "methods": ["random-search", "simple-previous"],
    "protocol": hbo.Ordered(trials=4, tasks=3),
}
"""Options of short runs of two methods, without seeds and folder."""


@pytest.fixture(scope="module")
def cluster_of_two_workers():
    """A Dask cluster of two worker processes on this machine."""
    any_free_port = ":0"
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": any_free_port}
    with LocalCluster(processes=True, **options) as started:
        yield started


@pytest.fixture(scope="module")
def client_of_two_workers(cluster_of_two_workers):
    """A connection to the cluster that all tests of this file share.

    A new one for each test would start a thread each time, at which a busy machine may be too slow.
    """
    with Client(cluster_of_two_workers) as connected:
        yield connected


def list_pids_of_workers(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def kill_after_five_runs(pid: int, folder: Path) -> None:
    """Kill a process as soon as five runs are stored in the folder."""
    while len(list(folder.glob("runs/*.parquet"))) < 5:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)


def test_killed_worker_loses_nothing(client_of_two_workers, tmp_path):
    """One of two workers is killed while runs are made; Dask starts another one for it."""
    settings = SHORT_RUNS | {"seeds": range(15)}
    without_dask = hbo.run(**settings, folder=tmp_path / "alone")
    victim = list_pids_of_workers(client_of_two_workers)[0]
    killer = threading.Thread(target=kill_after_five_runs, args=(victim, tmp_path / "dask"))
    killer.start()

    on_dask = hbo.run(**settings, folder=tmp_path / "dask", dask=client_of_two_workers)

    killer.join()
    client_of_two_workers.wait_for_workers(2)
    assert victim not in list_pids_of_workers(client_of_two_workers)
    assert on_dask.store.digest() == without_dask.store.digest()


def test_session_tells_versions_on_workers(client_of_two_workers, tmp_path):
    """The record of an experiment's start tells that it was on Dask, and what both workers have."""
    results = hbo.run(**SHORT_RUNS, seeds=[0], folder=tmp_path, dask=client_of_two_workers)

    (session,) = results.store.records.sessions()
    assert session["backend"] == "dask"
    own_version = package_versions()["hpobench-ordered"]
    packages_of_workers = session["machines"].values()
    versions = [packages["hpobench-ordered"] for packages in packages_of_workers]
    assert versions == [own_version, own_version]


REASON_OF_METHOD = {
    bad.SaysWhere: Reason.RAISED,
    bad.Interrupts: Reason.RAISED,
    bad.Sleeps: Reason.TIMED_OUT,
    bad.HoldsTheLock: Reason.TIMED_OUT,
    bad.Dies: Reason.DIED,
}
"""Methods that fail, and the recorded reason of their failure."""


# Methods run in processes of their own in both cases; in a thread they could do more harm.
PROCESS_OR_THREAD = [
    pytest.param(True, id="process", marks=pytest.mark.long),
    pytest.param(False, id="thread"),
]


@pytest.fixture(scope="module", params=PROCESS_OR_THREAD)
def results_of_bad_methods(request, tmp_path_factory):
    """Results of random search and of methods that fail, on a cluster of a single worker.

    The worker is a process of its own, or else a thread of this process.
    """
    methods = ["random-search", *REASON_OF_METHOD]
    settings = SHORT_RUNS | {"methods": methods, "seeds": [0], "time_limit": 0.5}
    any_free_port = ":0"
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=request.param,
        dashboard_address=any_free_port,
    )
    with cluster, pytest.warns(FailedRunsWarning):
        folder = tmp_path_factory.mktemp("bad_methods")
        return hbo.run(**settings, folder=folder, dask=cluster.scheduler_address)


def test_bad_methods_spare_their_worker(results_of_bad_methods):
    """Methods that fail, one of them by killing its process, are recorded with the reason.

    Random search, which runs on the same worker, finishes its trials.
    """
    failures = results_of_bad_methods.failures()
    reasons = {failure.method: failure.reason for failure in failures}
    expected_reasons = {}
    for method, reason in REASON_OF_METHOD.items():
        expected_reasons[f"bad_methods.{method.__name__}"] = reason
    assert reasons == expected_reasons

    four_trials_on_three_tasks = 3 * 4
    assert len(results_of_bad_methods.frame()) == four_trials_on_three_tasks


def test_methods_run_in_processes_of_their_own(results_of_bad_methods):
    """The method `SaysWhere` raises an error that names its process.

    That is not this one, although the worker may be a thread of this one.
    """
    failures = results_of_bad_methods.failures()
    (message,) = [failure.message for failure in failures if "SaysWhere" in failure.method]
    assert "in process" in message
    assert f"process {os.getpid()} " not in message


def test_traceback_of_interrupt_leads_to_method(results_of_bad_methods):
    """The method `Interrupts` raises `KeyboardInterrupt`."""
    failures = {failure.method: failure for failure in results_of_bad_methods.failures()}
    assert "bad_methods.py" in failures["bad_methods.Interrupts"].traceback


def test_worker_of_other_versions_is_refused(client_of_two_workers, tmp_path, monkeypatch):
    """This process is made to believe that it has version 0.0.1, unlike the workers."""
    versions_here = {**package_versions(), "hpobench-ordered": "0.0.1"}
    monkeypatch.setattr("hpobench_ordered.experiment._dask.package_versions", lambda: versions_here)
    with pytest.raises(ExperimentError, match=r"has hpobench-ordered .* instead of 0.0.1"):
        hbo.run(**SHORT_RUNS, seeds=[0], folder=tmp_path, dask=client_of_two_workers)

    no_run_was_stored = not list((tmp_path / "runs").iterdir())
    assert no_run_was_stored


SCRIPT_OF_FIFTY_RUNS = """
import sys

import bad_methods
import hpobench_ordered as hbo

folder, address = sys.argv[1:]
try:
    hbo.run(
        benchmarks=["newsvendor"],
        methods=[bad_methods.Slow],
        seeds=range(50),
        protocol=hbo.Ordered(trials=3, tasks=2),
        folder=folder,
        dask=address,
    )
except hbo.HPOBenchOrderedError as error:
    print(error)
"""


@pytest.fixture
def environment_with_bad_methods() -> dict[str, str]:
    """Environment variables for other processes: they find `bad_methods`, and give up after 3 s.

    They then take a connection for lost.
    """
    folder_of_bad_methods = str(Path(bad.__file__).parent)
    other_folders = os.environ.get("PYTHONPATH", "")
    variables = {
        "PYTHONPATH": os.pathsep.join([folder_of_bad_methods, other_folders]),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    }
    return os.environ | variables


@pytest.fixture
def scheduler(tmp_path, environment_with_bad_methods):
    """A Dask scheduler with one worker, both in other processes: its process and its address.

    The scheduler writes its address into a file, which the worker reads.
    """
    file_of_address = tmp_path / "scheduler.json"
    commands = [["scheduler", "--port", "0"], ["worker", "--nworkers", "1"]]
    options = ["--no-dashboard", "--scheduler-file", str(file_of_address)]
    processes = []
    for command in commands:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *command, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment_with_bad_methods,
        )
        processes.append(process)

    try:
        while not file_of_address.exists():
            time.sleep(0.05)
        scheduler_process, _ = processes
        yield scheduler_process, json.loads(file_of_address.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_lost_scheduler_is_one_message(scheduler, environment_with_bad_methods, tmp_path):
    """The scheduler is killed while an experiment runs on it, as soon as one run is stored.

    The experiment, in another process, then ends and prints this one line.
    """
    scheduler_process, address = scheduler
    folder = tmp_path / "results"
    experiment = subprocess.Popen(
        [sys.executable, "-c", SCRIPT_OF_FIFTY_RUNS, str(folder), address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment_with_bad_methods,
    )
    try:
        while not list(folder.glob("runs/*")):
            experiment_goes_on = experiment.poll() is None
            assert experiment_goes_on
            time.sleep(0.05)

        scheduler_process.kill()

        output, errors = experiment.communicate(timeout=120)
    finally:
        experiment.kill()
        experiment.wait()

    assert "the connection to the Dask scheduler was lost" in output
    all_lines = (output + errors).splitlines()
    assert len(all_lines) == 1, errors


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_address_without_scheduler_is_refused(tmp_path, monkeypatch, address):
    """Nothing listens at the address, or Dask does not know its kind."""
    # It does not wait as long as usual for an answer.
    monkeypatch.setattr("hpobench_ordered.experiment._dask.CONNECT_SECONDS", 1)
    with pytest.raises(ExperimentError, match=f"no Dask scheduler at '{address}'"):
        hbo.run(**SHORT_RUNS, seeds=[0], folder=tmp_path, dask=address)


def test_adaptive_cluster_without_workers_is_waited_for(tmp_path, monkeypatch):
    """The cluster starts workers, two at most, once there are runs to make."""
    monkeypatch.setattr("hpobench_ordered.experiment._dask.CONNECT_SECONDS", 0.1)
    settings = SHORT_RUNS | {"seeds": range(3)}
    without_dask = hbo.run(**settings, folder=tmp_path / "alone")

    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=":0") as cluster:
        cluster.adapt(minimum=0, maximum=2)
        with Client(cluster) as client, pytest.warns(WaitingWarning, match="no workers yet"):
            on_dask = hbo.run(**settings, folder=tmp_path / "dask", dask=client)

    assert on_dask.store.digest() == without_dask.store.digest()
