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
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning
from hpobench_ordered.experiment.records import Reason
from hpobench_ordered.runtime.machine import package_versions

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "benchmarks": ["newsvendor"],
    "methods": ["random-search", "simple-previous"],
    "protocol": hbo.Ordered(trials=4, tasks=3),
}
"""Options of short runs of two methods, without seeds and folder."""


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes on this machine."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster):
    """One connection: each new one starts a thread, which a busy machine may delay too long."""
    with Client(cluster) as connected:
        yield connected


def list_pids(client: Client) -> list[int]:
    return list(client.run(os.getpid).values())


def kill_after_five_runs(pid: int, folder: Path) -> None:
    """Kill a process as soon as five runs are stored in the folder."""
    while len(list(folder.glob("runs/*.parquet"))) < 5:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)


def test_killed_worker_loses_nothing(client, tmp_path):
    """One of two workers is killed while runs are made; Dask starts another one for it.

    The record of the session tells that it was on Dask, and the versions on both workers.
    """
    settings = SMALL | {"seeds": range(15)}
    without_dask = hbo.run(**settings, folder=tmp_path / "alone")
    victim = list_pids(client)[0]
    killer = threading.Thread(target=kill_after_five_runs, args=(victim, tmp_path / "dask"))
    killer.start()

    on_dask = hbo.run(**settings, folder=tmp_path / "dask", dask=client)

    killer.join()
    client.wait_for_workers(2)  # Dask replaces the killed one
    assert victim not in list_pids(client)
    assert on_dask.store.digest() == without_dask.store.digest()

    (session,) = on_dask.store.records.sessions()
    assert session["backend"] == "dask"
    version = package_versions()["hpobench-ordered"]
    packages_of_machine = session["machines"].values()
    versions_on_machines = [packages["hpobench-ordered"] for packages in packages_of_machine]
    assert versions_on_machines == [version] * 2


REASON_OF_METHOD = {
    bad.SaysWhere: Reason.RAISED,
    bad.Interrupts: Reason.RAISED,
    bad.Sleeps: Reason.TIMED_OUT,
    bad.HoldsTheLock: Reason.TIMED_OUT,
    bad.Dies: Reason.DIED,
}
"""Methods that fail, and the recorded reason of their failure."""


@pytest.mark.parametrize("processes", [True, False])
def test_bad_methods_spare_their_worker(tmp_path, processes):
    """Also where the worker is a thread of this process, which must survive `Dies`."""
    methods = ["random-search", *REASON_OF_METHOD]
    settings = SMALL | {"methods": methods, "seeds": [0], "time_limit": 0.5}
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}

    with LocalCluster(processes=processes, **options) as own, pytest.warns(FailedRunsWarning):
        result = hbo.run(**settings, folder=tmp_path, dask=own.scheduler_address)

    failures = {failure.method: failure for failure in result.failures()}
    reasons = {name: failure.reason for name, failure in failures.items()}
    assert reasons == {
        f"bad_methods.{method.__name__}": reason for method, reason in REASON_OF_METHOD.items()
    }
    # Methods run in a process of their own.
    message_with_process = failures["bad_methods.SaysWhere"].message
    assert f"process {os.getpid()} " not in message_with_process
    assert "bad_methods.py" in failures["bad_methods.Interrupts"].traceback
    # Random search finished its trials: four on each of three tasks.
    assert len(result.frame()) == 3 * 4


def test_worker_of_other_versions_is_refused(client, tmp_path, monkeypatch):
    """The client is made to believe that it has version 0.0.1, unlike its workers."""
    client_versions = {**package_versions(), "hpobench-ordered": "0.0.1"}
    monkeypatch.setattr(
        "hpobench_ordered.experiment._dask.package_versions", lambda: client_versions
    )
    with pytest.raises(ExperimentError, match=r"has hpobench-ordered .* instead of 0.0.1"):
        hbo.run(**SMALL, seeds=[0], folder=tmp_path, dask=client)
    assert not list((tmp_path / "runs").iterdir())


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
def environment() -> dict[str, str]:
    """Variables of processes that can import `bad_methods`, and wait only 3 s for connections."""
    folders = [str(Path(bad.__file__).parent), os.environ.get("PYTHONPATH", "")]
    variables = {
        "PYTHONPATH": os.pathsep.join(folders),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    }
    return os.environ | variables


@pytest.fixture
def scheduler(tmp_path, environment):
    """Start a scheduler with one worker; yield the scheduler's process and its address."""
    file = tmp_path / "scheduler.json"
    processes = []
    for words in (["scheduler", "--port", "0"], ["worker", "--nworkers", "1"]):
        options = ["--no-dashboard", "--scheduler-file", str(file)]
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        processes.append(process)
    try:
        while not file.exists():
            time.sleep(0.05)
        yield processes[0], json.loads(file.read_text())["address"]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_lost_scheduler_is_one_message(scheduler, environment, tmp_path):
    """The scheduler is killed while an experiment, in another process, runs on it."""
    scheduler_process, address = scheduler
    folder = tmp_path / "results"
    experiment = subprocess.Popen(
        [sys.executable, "-c", SCRIPT_OF_FIFTY_RUNS, str(folder), address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        while not list(folder.glob("runs/*")):
            assert experiment.poll() is None
            time.sleep(0.05)

        scheduler_process.kill()

        output, errors = experiment.communicate(timeout=120)
    finally:
        experiment.kill()
        experiment.wait()
    assert "the connection to the Dask scheduler was lost" in output
    assert len((output + errors).splitlines()) == 1, errors


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_address_without_scheduler_is_refused(tmp_path, monkeypatch, address):
    """Nothing listens on port 9, and Dask knows no such kind of address as the other."""
    monkeypatch.setattr("hpobench_ordered.experiment._dask.CONNECT_SECONDS", 1)
    with pytest.raises(ExperimentError, match=f"no Dask scheduler at '{address}'"):
        hbo.run(**SMALL, seeds=[0], folder=tmp_path, dask=address)
