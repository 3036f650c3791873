import hashlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from hpobench_ordered import (
    Adjustment,
    LeaveOneOut,
    Method,
    MethodSpec,
    Ordered,
    SearchSpace,
    Task,
    load,
    registry,
    run,
)
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.errors import ArtifactError, ExperimentError, FailedRunsWarning, StoreError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.records import TIMING
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.protocols import Assignment
from hpobench_ordered.runtime import compiling
from hpobench_ordered.runtime.machine import clock
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before, toy_spec


def run_bytes(folder: Path) -> dict[str, str]:
    """Hash of every run in a store."""
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted((folder / "runs").glob("*.parquet"))
    }


def test_results_say_what_happened(small_plan, folder):
    cells = small_plan()
    store = Store(folder)
    run_cells(cells, store)
    frame = store.read()
    assert len(frame) == 6 * 3 * 4
    benchmark = load("newsvendor")
    for cell in cells:
        configs = store.configurations([cell.key])
        mine = frame[(frame["method"] == cell.method.name) & (frame["seed"] == cell.seed)]
        for task in benchmark.tasks[:3]:
            here = configs[configs["task"] == task.index][list(benchmark.space.names)]
            values = mine[mine["task"] == task.index]["value"].to_numpy()
            np.testing.assert_array_equal(task.evaluate_many(here), values)
    np.testing.assert_array_equal(frame["loss"], -frame["value"])  # profit is maximised
    best = frame["task"].map(lambda index: benchmark.tasks[index].best_value)
    np.testing.assert_array_equal(frame["regret"], best - frame["value"])
    assert (frame["fallbacks"] == 0).all()


def test_history_is_what_the_method_did_before(small_plan, folder):
    store = Store(folder)
    run_cells(small_plan(), store)
    frame = store.read()
    transfer = frame[frame["method"] == "transfer"]
    # The first task has no history, so bo ran; later tasks start from the last one's best.
    assert set(transfer[transfer["task"] == 0]["optimiser"]) == {"bo"}
    assert set(transfer[transfer["task"] > 0]["optimiser"]) == {"transfer"}
    cell = next(c for c in small_plan() if c.method.name == "transfer")
    configs = store.configurations([cell.key])
    losses = transfer[transfer["seed"] == cell.seed].set_index(["task", "trial"])["loss"]
    best = losses.loc[0].idxmin()
    columns = ["price_0", "price_1", "price_2"]
    first = configs[(configs["task"] == 1) & (configs["trial"] == 1)][columns]
    previous = configs[(configs["task"] == 0) & (configs["trial"] == best)][columns]
    np.testing.assert_array_equal(first, previous)


def test_only_recorded_assignments_are_results(monkeypatch, folder):
    """After an adjustment; the time of both steps counts."""
    spec = toy_spec(numeric_space(), tasks=2, previous=numeric_space_before())
    monkeypatch.setattr(registry, "_benchmarks", lambda: {"toy": spec})
    protocol = Adjustment(first_trials=7, trials=4)
    cells = plan(benchmarks=["toy"], methods=["simple-previous"], seeds=[0], protocol=protocol)
    store = Store(folder)
    run_cells(cells, store)
    frame = store.read()
    assert frame["task"].to_list() == [0] * 4 + [1] * 4
    assert frame["trial"].to_list() == [1, 2, 3, 4] * 2
    assert set(frame["optimiser"]) == {"simple-previous"}
    assert frame["regret"].isna().all()  # no best values are known
    found = store.configurations([cells[0].key])
    assert [*found] == ["key", "task", "trial", "value", "loss", "x", "y"]
    assert store.records.timings()["suggestions"].to_list() == [2 * (7 + 4)]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [Ordered(4, tasks=3), LeaveOneOut(4, history=10, tasks=3)])
def test_same_bytes_with_one_and_two_workers_and_when_resumed(protocol, small_plan, tmp_path):
    cells = small_plan(methods=["random-search", "simple-ordered"], protocol=protocol)
    for name, workers in (("one", 1), ("two", 2)):
        run_cells(cells, Store(tmp_path / name), workers=workers)
    resumed = Store(tmp_path / "resumed")
    run_cells(cells[::2], resumed)
    finished = []
    run_cells(cells, resumed, progress=lambda done, total: finished.append((done, total)))
    expected = run_bytes(tmp_path / "one")
    assert len(expected) == 6
    assert run_bytes(tmp_path / "two") == run_bytes(tmp_path / "resumed") == expected
    assert finished == [(3, 6), (4, 6), (5, 6), (6, 6)]


@pytest.mark.parametrize(
    ("workers", "order"),
    [
        (1, "a1 t1 a2 t2 a3 t3 a4 t4 a5 t5 a6 t6"),
        (2, "a1 a2 t1 a3 t2 a4 t3 a5 t4 a6 t5 t6"),
        (4, "a1 a2 a3 a4 t1 a5 t2 a6 t3 t4 t5 t6"),
        (9, "a1 a2 a3 a4 a5 a6 t1 t2 t3 t4 t5 t6"),
    ],
)
def test_results_are_told_while_others_are_awaited(workers, order):
    Records.calls = []
    task = load("newsvendor").tasks[3]
    spec = MethodSpec("records", Records, "", "")
    outcome = optimise(Assignment(spec, task, (), 6, workers), np.random.default_rng(0))
    assert " ".join(Records.calls) == order
    # Results are in the order of asking.
    np.testing.assert_array_equal(outcome.values[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(outcome.values[:, 1:], 0)
    np.testing.assert_array_equal(outcome.objective, task.evaluate_many(outcome.values))
    np.testing.assert_array_equal(outcome.fallbacks, [1, 2, 3, 4, 5, 6])


class Records(Method):
    """Writes down what it is asked and told; asks for the number of its suggestion."""

    calls: list[str] = []  # noqa: RUF012

    def ask(self):
        self.fallbacks += 1
        self.calls.append(f"a{self.fallbacks}")
        return {"price_0": self.fallbacks, "price_1": 0, "price_2": 0}

    def tell(self, config, loss):
        assert loss == -load("newsvendor").tasks[3].evaluate(config)
        self.calls.append(f"t{config['price_0']}")


def test_simulated_workers_do_not_change_what_is_asked_at_random(small_plan, tmp_path):
    losses = []
    for workers in (1, 3):
        protocol = Ordered(trials=4, tasks=3, workers_simulated=workers)
        store = Store(tmp_path / str(workers))
        run_cells(small_plan(methods=["random-search"], protocol=protocol), store)
        losses.append(store.read().sort_values(["seed", "task", "trial"])["loss"].to_list())
        assert set(store.read()["protocol"]) == {
            f"ordered(trials=4, tasks=3, workers_simulated={workers})"
        }
    assert losses[0] == losses[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("newsvendor", "Ordered(trials=20, tasks=4)"),
        ("toy", "Adjustment(first_trials=10, trials=20)"),
    ],
)
def test_killed_and_started_again(name, protocol, toy_package, tmp_path):
    """Two processes, killed or not, write the same bytes as one."""
    script = (
        "import sys, hpobench_ordered as hbo\n"
        f"hbo.run(benchmarks=[{name!r}], methods=['random-search', 'bo'], seeds=range(8),"
        f" protocol=hbo.{protocol}, folder=sys.argv[1], workers=int(sys.argv[2]))"
    )

    def start(folder: Path, workers: int = 2) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", script, str(folder), str(workers)]
        environment = {**os.environ, "PYTHONPATH": str(toy_package)}
        return subprocess.Popen(command, start_new_session=True, env=environment)

    killed = start(tmp_path / "killed")
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "killed").glob("runs/*.parquet"))) < 5:
        assert killed.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = run_bytes(tmp_path / "killed")
    assert 5 <= len(kept) < 16
    # Of those in flight at most the timing is lost.
    assert len(kept) - 2 <= len(Store(tmp_path / "killed").records.timings()) <= len(kept)
    assert start(tmp_path / "killed").wait(timeout=120) == 0
    assert start(tmp_path / "undisturbed", workers=1).wait(timeout=120) == 0
    expected = run_bytes(tmp_path / "undisturbed")
    assert run_bytes(tmp_path / "killed") == expected
    assert kept.items() <= expected.items()


@pytest.mark.slow
def test_linear_algebra_runs_on_one_thread_from_the_first_run_on(folder):
    """In a fresh process, where a method is the first to load SciPy, with a BLAS of its own."""
    script = (
        "import sys, hpobench_ordered as hbo\n"
        "class Checks(hbo.Method):\n"
        "    def ask(self):\n"
        "        import scipy.linalg, threadpoolctl\n"
        "        pools = threadpoolctl.threadpool_info()\n"
        "        threads = {p['num_threads'] for p in pools if p['user_api'] == 'blas'}\n"
        "        assert threads == {1}, pools\n"
        "        return self.space.sample(self.rng)\n"
        "    def tell(self, config, loss): pass\n"
        "hbo.run(benchmarks=['newsvendor'], methods=[Checks], seeds=[0], folder=sys.argv[1],"
        " protocol=hbo.Ordered(tasks=1))"
    )
    threads = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    environment = {name: value for name, value in os.environ.items() if name not in threads}
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environment, check=True)


def test_timings(small_plan, folder):
    store = Store(folder)
    assert store.records.timings().empty
    cells = small_plan(methods=["random-search", MethodSpec("sleeps", Sleeps, "", "")])
    run_cells(cells, store)
    timings = store.records.timings().set_index("key")
    assert set(timings.index) == store.keys()
    for cell in cells:
        timing = timings.loc[cell.key]
        assert (timing["benchmark"], timing["seed"]) == ("newsvendor@1", cell.seed)
        assert timing["suggestions"] == 3 * 4
        assert timing["seconds"] >= timing["method_seconds"] > 0
    by_method = timings.groupby("method")["method_seconds"]
    assert by_method.min()["sleeps"] >= 3 * 0.001 * (1 + 4 + 4)
    assert by_method.min()["random-search"] < by_method.min()["sleeps"]
    assert set(Results(store, tuple(cells[:2])).timings()["key"]) == {c.key for c in cells[:2]}


def test_what_numba_compiles_takes_no_time_of_a_method():
    assert compiling.seconds_compiling() >= 0  # it is imported, as by any method that compiles
    total = njit(lambda values: np.exp(values).sum())
    start, begun = clock(), time.perf_counter()
    total(np.ones(3))
    assert 0 <= clock() - start < 0.5 * (time.perf_counter() - begun)


def timing_of(key: str, protocol: str = "ordered()") -> dict[str, object]:
    """How long a run took."""
    values = (key, "newsvendor@1", "table", "bo", "1", 0, protocol, 25, 2.0, 1.0, "9.9")
    return dict(zip(TIMING, values, strict=True))


class Sleeps(Method):
    """Takes a millisecond to be made, to be asked, and to be told."""

    def prepare(self) -> None:
        time.sleep(0.001)

    def ask(self):
        time.sleep(0.001)
        return self.space.sample(self.rng)

    def tell(self, config, loss):
        time.sleep(0.001)


def test_damaged_timings_are_left_out_and_hide_no_others(folder):
    store = Store(folder)
    store.prepare()
    timing = timing_of("a")
    store.records.write_timing(timing)
    path = folder / "timings.jsonl"
    broken_off = path.read_bytes()[:-20]
    path.write_bytes(broken_off + b'\n{"key": 1}\n[]\n\xff\n' + broken_off)
    store.records.write_timing(timing | {"key": "b"})
    store.records.write_timing(timing | {"key": "c", "seconds": 9.0})
    store.records.write_timing(timing | {"key": "c", "seconds": 3.0})
    timings = store.records.timings()
    assert timings["key"].to_list() == ["b", "c"]
    assert timings["seconds"].to_list() == [2.0, 3.0]


@pytest.mark.slow
def test_timings_written_at_the_same_time(folder):
    store = Store(folder)
    store.prepare()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        timings = [timing_of(str(i), protocol="ordered()" * 1000) for i in range(200)]
        list(pool.map(store.records.write_timing, timings))
    assert set(store.records.timings()["key"]) == {str(i) for i in range(200)}


def test_timings_that_cannot_be_written(folder):
    store = Store(folder)
    store.prepare()
    (folder / "timings.jsonl").mkdir()
    with pytest.raises(StoreError, match="cannot write results"):
        store.records.write_timing(timing_of("a"))


def test_killed_before_the_first_run(small_plan, folder):
    folder.mkdir()
    (folder / ".store.json-0123").write_text("")
    run_cells(small_plan(seeds=[0]), Store(folder))
    assert len(run_bytes(folder)) == 2


def test_a_failing_surrogate_is_not_blamed_on_the_method(monkeypatch, folder):
    def fail(self: Task, row: object) -> float:
        raise ArtifactError("the surrogate is broken")

    monkeypatch.setattr(Task, "evaluate_row", fail)
    with pytest.warns(FailedRunsWarning, match="newsvendor@1: ArtifactError: the surrogate is"):
        run(benchmarks=["newsvendor"], methods=["random-search"], seeds=[0], folder=folder)


def test_a_configuration_is_coded_once(monkeypatch):
    row, coded = SearchSpace.row, []

    def counted(space: SearchSpace, config: Config) -> FloatArray:
        coded.append(config)
        return row(space, config)

    task = load("newsvendor").tasks[0]
    monkeypatch.setattr(SearchSpace, "row", counted)
    assignment = Assignment(registry.method_spec("random-search"), task, (), 4)
    optimise(assignment, np.random.default_rng(0))
    assert len(coded) == 4


def test_no_worker(folder):
    with pytest.raises(ExperimentError, match="at least 1 worker"):
        run(benchmarks=["newsvendor"], methods=["bo"], folder=folder, workers=0)


def test_a_folder_of_something_else_is_not_touched(folder):
    folder.mkdir()
    (folder / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="not a result store"):
        Store(folder)
    (folder / "thesis.tex").unlink()
    folder.rmdir()
    folder.write_text("")
    with pytest.raises(StoreError, match="not a folder"):
        Store(folder)


def test_stores_merge_by_copying(small_plan, tmp_path):
    cells = small_plan()
    halves = [Store(tmp_path / name) for name in ("a", "b")]
    run_cells(cells[:3], halves[0])
    run_cells(cells[3:], halves[1])
    for path in (tmp_path / "b" / "runs").iterdir():
        path.rename(tmp_path / "a" / "runs" / path.name)
    run_cells(cells, Store(tmp_path / "whole"))
    assert run_bytes(tmp_path / "a") == run_bytes(tmp_path / "whole")


def test_empty_store(folder):
    assert Store(folder).read().empty
    assert Store(folder).configurations(["0"]).empty


def test_maximised_and_minimised_alike(folder):
    """Losses go down for both: the direction is taken into account once."""
    benchmarks = ["newsvendor", "xgboost-mnist"]
    cells = plan(
        benchmarks=benchmarks,
        methods=[MethodSpec("greedy", BestSoFar, "", "")],
        seeds=[0],
        protocol=Ordered(trials=6, tasks=1),
    )
    store = Store(folder)
    run_cells(cells, store)
    for (name,), group in store.read().groupby(["benchmark"], observed=True):
        best = group["value"].max() if name.startswith("newsvendor") else group["value"].min()
        assert group["value"].iloc[-1] == best


class BestSoFar(Method):
    """Random, but ends with the configuration of the lowest loss it was told."""

    best: tuple[float, dict] = (np.inf, {})
    asked = 0

    def ask(self):
        self.asked += 1
        return self.best[1] if self.asked == self.budget else self.space.sample(self.rng)

    def tell(self, config, loss):
        self.best = min(self.best, (loss, config), key=lambda pair: pair[0])
