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


def test_killed_worker_loses_nothing(client, tmp_path):
    alone = hbo.run(**SMALL, seeds=range(15), folder=tmp_path / "alone")
    victim = list_pids(client)[0]

    def kill() -> None:
        while len(list((tmp_path / "dask" / "runs").glob("*.parquet"))) < 5:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    on_dask = hbo.run(**SMALL, seeds=range(15), folder=tmp_path / "dask", dask=client)
    killer.join()
    client.wait_for_workers(2)
    assert victim not in list_pids(client)
    assert on_dask.store.digest() == alone.store.digest()
    (session,) = on_dask.store.records.sessions()
    assert session["backend"] == "dask"
    version = package_versions()["hpobench-ordered"]
    machines = session["machines"].values()
    assert [machine["hpobench-ordered"] for machine in machines] == [version] * 2


REASONS = {
    bad.SaysWhere: Reason.RAISED,
    bad.Interrupts: Reason.RAISED,
    bad.Sleeps: Reason.TIMED_OUT,
    bad.HoldsTheLock: Reason.TIMED_OUT,
    bad.Dies: Reason.DIED,
}


@pytest.mark.parametrize("processes", [True, False])
def test_bad_methods_spare_their_worker(tmp_path, processes):
    """Even one that is a thread of the user's process is not ended by a method."""
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=processes, **options) as one, pytest.warns(FailedRunsWarning):
        methods = ["random-search", *REASONS]
        settings = SMALL | {"methods": methods, "seeds": [0], "time_limit": 0.5}
        result = hbo.run(**settings, folder=tmp_path, dask=one.scheduler_address)
    failures = {failure.method: failure for failure in result.failures()}
    reasons = {f"bad_methods.{method.__name__}": reason for method, reason in REASONS.items()}
    assert {name: failure.reason for name, failure in failures.items()} == reasons
    assert f"process {os.getpid()} " not in failures["bad_methods.SaysWhere"].message
    assert "bad_methods.py" in failures["bad_methods.Interrupts"].traceback
    assert len(result.frame()) == 3 * 4


def test_worker_of_other_versions_is_refused(client, tmp_path, monkeypatch):
    client_versions = {**package_versions(), "hpobench-ordered": "0.0.1"}
    monkeypatch.setattr(
        "hpobench_ordered.experiment._dask.package_versions", lambda: client_versions
    )
    with pytest.raises(ExperimentError, match=r"has hpobench-ordered .* instead of 0.0.1"):
        hbo.run(**SMALL, seeds=[0], folder=tmp_path, dask=client)
    assert not list((tmp_path / "runs").iterdir())


RUNS = """
import sys, bad_methods as bad, hpobench_ordered as hbo
try:
    hbo.run(benchmarks=["newsvendor"], methods=[bad.Slow], seeds=range(50),
            protocol=hbo.Ordered(trials=3, tasks=2), folder=sys.argv[1], dask=sys.argv[2])
except hbo.HPOBenchOrderedError as error:
    print(error)
"""


def test_lost_scheduler_is_one_message(tmp_path):
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    path = os.pathsep.join([str(Path(bad.__file__).parent), os.environ.get("PYTHONPATH", "")])
    soon = os.environ | {"PYTHONPATH": path, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": soon}
    parts = [
        ["scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
        ["worker", "--nworkers", "1", "--no-dashboard", "--scheduler-file", str(file)],
    ]
    started = [subprocess.Popen([*dask, *words], **quiet) for words in parts]
    try:
        while not file.exists():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        command = [sys.executable, "-c", RUNS, str(tmp_path / "results"), address]
        runner = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=soon
        )
        while not list((tmp_path / "results").glob("runs/*")):
            assert runner.poll() is None
            time.sleep(0.05)
        started[0].kill()
        output, errors = runner.communicate(timeout=120)
    finally:
        for process in (*started, runner):
            process.kill()
            process.wait()
    assert "the connection to the Dask scheduler was lost" in output
    assert len((output + errors).splitlines()) == 1, errors


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_address_without_scheduler_is_refused(tmp_path, monkeypatch, address):
    monkeypatch.setattr("hpobench_ordered.experiment._dask.CONNECT_SECONDS", 1)
    with pytest.raises(ExperimentError, match=f"no Dask scheduler at '{address}'"):
        hbo.run(**SMALL, seeds=[0], folder=tmp_path, dask=address)
