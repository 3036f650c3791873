"""Runs: what is stored and timed of them, in which order, and after a kill."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import bad_methods as bad
import numpy as np
import pytest

from hpobench_ordered import Adjustment, Direction, LeaveOneOut, Method, MethodSpec, Ordered, load
from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks import registry
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.protocols import Assignment
from hpobench_ordered.experiment.records import TIMING_COLUMNS
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.testing.toy import (
    numeric_space,
    numeric_space_before,
    toy_benchmark,
    toy_spec,
)


@dataclass(frozen=True)
class ConstantSurrogate:
    value: float

    def predict(self, values, task):
        return np.full(len(values), self.value)

    def predict_one(self, row, task):
        return self.value


def run_hashes(folder: Path) -> dict[str, str]:
    """Compute the hash of every run in a store, by the name of its file."""
    files = sorted((folder / "runs").glob("*.parquet"))
    return {file.name: hash_file(file) for file in files}


@pytest.fixture(scope="module")
def cells(small_plan):
    """Six planned runs: of random search and simple-previous-no-bo, with three seeds each."""
    return small_plan()


@pytest.fixture(scope="module")
def store(cells, tmp_path_factory):
    """A store of the six runs, finished, which no test changes."""
    store = Store(tmp_path_factory.mktemp("finished"))
    run_cells(cells, store)
    return store


def test_every_trial_is_stored(store):
    """The store has six runs on three tasks, with four trials on each."""
    trials = store.read()
    assert len(trials) == 6 * 3 * 4


def test_fallbacks_are_stored(store):
    """A trial has the number of fallbacks of its run so far: here 0, as no model failed.

    A fallback is a random suggestion in place of the method's own, whose model failed.
    """
    trials = store.read()
    assert (trials["fallbacks"] == 0).all()


def test_values_are_those_of_configurations(cells, store):
    """Each stored configuration has the value that its task gives when evaluated again.

    Runs are on the first three tasks.
    """
    benchmark = load("newsvendor")
    names = list(benchmark.space.names)
    for cell in cells:
        trials = store.configurations([cell.key])
        for task in benchmark.tasks[:3]:
            trials_on_task = trials[trials["task"] == task.index]
            values = task.evaluate_many(trials_on_task[names])
            np.testing.assert_array_equal(values, trials_on_task["value"])


def test_table_has_values_of_configurations(cells, store):
    """A trial has the same value in the table of all trials and in that with configurations.

    `read` gives the first table, and `configurations` the second one for some runs.
    """
    trials = store.read()
    for cell in cells:
        is_of_run = (trials["method"] == cell.method.name) & (trials["seed"] == cell.seed)
        with_configurations = store.configurations([cell.key])
        np.testing.assert_array_equal(trials.loc[is_of_run, "value"], with_configurations["value"])


def test_losses_are_negative_profits(store):
    """The loss is the negated value, as the objective of newsvendor is a profit to maximise."""
    trials = store.read()
    np.testing.assert_array_equal(trials["loss"], -trials["value"])


def test_regret_is_distance_to_best_value(store):
    """The regret of a trial is the best known value of its task, a profit, minus its own value."""
    tasks = load("newsvendor").tasks
    trials = store.read()
    best_values = trials["task"].map(lambda index: tasks[index].best_value)
    np.testing.assert_array_equal(trials["regret"], best_values - trials["value"])


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
def test_failed_evaluations_are_worst(failure, direction, folder):
    """The value of a failed evaluation is stored as NaN, its loss and regret as infinity.

    All evaluations of the benchmark fail.
    """
    benchmark = toy_benchmark(
        numeric_space(), tasks=1, direction=direction, model=ConstantSurrogate(failure)
    )
    task = replace(benchmark.tasks[0], best_value=0.0)
    store = Store(folder)
    cells = plan(
        benchmarks=[replace(benchmark, tasks=(task,))],
        methods=["random-search"],
        seeds=[0],
        protocol=Ordered(trials=3),
    )

    run_cells(cells, store)

    trials = store.read()
    assert trials["value"].isna().all()
    assert trials["loss"].tolist() == [np.inf] * 3
    assert trials["regret"].tolist() == [np.inf] * 3


def test_bo_replaces_method_without_history(store):
    """On the first task, which has no history, `bo` makes the trials of simple-previous-no-bo."""
    trials = store.read()
    transfer = trials[trials["method"] == "simple-previous-no-bo"]
    assert set(transfer[transfer["task"] == 0]["optimiser"]) == {"bo"}
    assert set(transfer[transfer["task"] > 0]["optimiser"]) == {"simple-previous-no-bo"}


def test_history_has_trials_of_last_task(cells, store):
    """The method simple-previous-no-bo begins a task with the best configuration of the last one.

    Tasks are numbered from 0, trials from 1.
    """
    run_of_transfer = next(cell for cell in cells if cell.method.name == "simple-previous-no-bo")
    trials = store.configurations([run_of_transfer.key]).set_index(["task", "trial"])
    configurations = trials[["price_0", "price_1", "price_2"]]
    losses_on_first_task = trials["loss"].loc[0]
    best_trial = losses_on_first_task.idxmin()

    best_of_first_task = configurations.loc[(0, best_trial)]
    begin_of_second_task = configurations.loc[(1, 1)]
    np.testing.assert_array_equal(begin_of_second_task, best_of_first_task)


@pytest.fixture
def adjustment_run_and_store(monkeypatch, folder):
    """A run on two tasks with an adjusted search space, and the store of it.

    On each task there are seven trials on the space before the adjustment, and four on the new.
    """
    toy_with_adjustment = toy_spec(numeric_space(), tasks=2, previous=numeric_space_before())
    monkeypatch.setattr(registry, "_find_registered_specs", lambda: {"toy": toy_with_adjustment})
    protocol = Adjustment(first_trials=7, trials=4)
    (cell,) = plan(benchmarks=["toy"], methods=["simple-previous"], seeds=[0], protocol=protocol)
    store = Store(folder)
    run_cells([cell], store)
    return cell, store


def test_trials_before_adjustment_are_no_results(adjustment_run_and_store):
    """On each of two tasks only the four trials on the new space are stored.

    The method of the run, simple-previous, made these. The seven trials on the old space, which
    another method made before, are its history.
    """
    _, store = adjustment_run_and_store
    trials = store.read()
    task_and_trial = list(zip(trials["task"], trials["trial"], strict=True))
    assert task_and_trial == list(product((0, 1), (1, 2, 3, 4)))
    assert set(trials["optimiser"]) == {"simple-previous"}


def test_configurations_are_on_adjusted_space(adjustment_run_and_store):
    """Stored configurations have the hyperparameters of the adjusted space, x and y."""
    cell, store = adjustment_run_and_store
    columns = list(store.configurations([cell.key]))
    assert columns == ["key", "task", "trial", "value", "loss", "x", "y"]


def test_timing_counts_trials_before_adjustment(adjustment_run_and_store):
    """Timings count all suggestions: on each of two tasks 7 before the adjustment, 4 after it."""
    _, store = adjustment_run_and_store
    assert store.records.timings()["suggestions"].to_list() == [2 * (7 + 4)]


def test_regret_without_best_value_is_missing(adjustment_run_and_store):
    _, store = adjustment_run_and_store
    assert store.read()["regret"].isna().all()


EVERY_PROTOCOL_OF_HISTORY = pytest.mark.parametrize(
    "protocol", [Ordered(4, tasks=3), LeaveOneOut(4, history=10, tasks=3)]
)


def run_and_hash(cells, folder: Path, *, workers: int = 1) -> dict[str, str]:
    """Run cells into a folder; return the hash of every run, by the name of its file."""
    run_cells(cells, Store(folder), workers=workers)
    return run_hashes(folder)


@pytest.mark.slow
@EVERY_PROTOCOL_OF_HISTORY
def test_two_workers_write_same_bytes(protocol, small_plan, tmp_path):
    """The files of six runs are the same whether one process makes them or two."""
    cells = small_plan(methods=["random-search", "simple-ordered"], protocol=protocol)

    hashes_of_one = run_and_hash(cells, tmp_path / "one")
    hashes_of_two = run_and_hash(cells, tmp_path / "two", workers=2)

    assert len(hashes_of_one) == 6
    assert hashes_of_two == hashes_of_one


@pytest.mark.slow
@EVERY_PROTOCOL_OF_HISTORY
def test_resumed_experiment_writes_same_bytes(protocol, small_plan, tmp_path):
    """The files of six runs are the same whether or not three were stored before the others."""
    cells = small_plan(methods=["random-search", "simple-ordered"], protocol=protocol)
    three_cells = cells[::2]

    hashes = run_and_hash(cells, tmp_path / "at once")
    run_and_hash(three_cells, tmp_path / "resumed")
    hashes_of_resumed = run_and_hash(cells, tmp_path / "resumed")

    assert hashes_of_resumed == hashes


def test_progress_counts_stored_runs(cells, folder):
    """Progress is reported as (finished, all) runs; three of six are stored before."""
    three_cells = cells[::2]
    run_cells(three_cells, Store(folder))
    reported = []

    run_cells(
        cells, Store(folder), progress=lambda finished, total: reported.append((finished, total))
    )

    assert reported == [(3, 6), (4, 6), (5, 6), (6, 6)]


def test_file_of_killed_start_does_no_harm(cells, folder):
    """Runs are stored in a folder where an earlier experiment was killed while it began a store.

    It left the temporary file that should have become `store.json`.
    """
    folder.mkdir()
    temporary_file = folder / ".store.json-0123"
    temporary_file.write_text("")

    run_cells(cells, Store(folder))

    stored_runs = run_hashes(folder)
    assert len(stored_runs) == len(cells)


@pytest.mark.parametrize(
    ("simulated_workers", "order_of_calls"),
    [
        (1, "a1 t1 a2 t2 a3 t3 a4 t4 a5 t5 a6 t6"),
        (2, "a1 a2 t1 a3 t2 a4 t3 a5 t4 a6 t5 t6"),
        (4, "a1 a2 a3 a4 t1 a5 t2 a6 t3 t4 t5 t6"),
        (9, "a1 a2 a3 a4 a5 a6 t1 t2 t3 t4 t5 t6"),
    ],
)
def test_simulated_workers_delay_results(simulated_workers, order_of_calls):
    """With several workers, further configurations are asked for before results are told.

    In the order of calls, "a1" is the call of `ask` that gives the first of six trials, and "t1"
    the call of `tell` with its result. With two workers, the calls begin with a1 a2 t1 a3 t2.
    """
    optimise_and_record(simulated_workers)
    assert " ".join(RecordsCalls.calls) == order_of_calls


@pytest.mark.parametrize("simulated_workers", [1, 2, 4, 9])
def test_outcome_is_in_order_of_asking(simulated_workers):
    """Configurations and values are in the order of suggestions, not in that of results.

    The method suggests 1, 2, ..., 6 as its first price, and 0 as the two others.
    """
    task, outcome = optimise_and_record(simulated_workers)
    np.testing.assert_array_equal(outcome.values[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(outcome.values[:, 1:], 0)
    np.testing.assert_array_equal(outcome.objective, task.evaluate_many(outcome.values))


@pytest.mark.parametrize("simulated_workers", [1, 2, 4, 9])
def test_outcome_has_fallbacks_at_asking(simulated_workers):
    """A trial has the count of fallbacks when it was asked for, not when its result was told.

    The method counts one fallback more in each of six trials.
    """
    _, outcome = optimise_and_record(simulated_workers)
    np.testing.assert_array_equal(outcome.fallbacks, [1, 2, 3, 4, 5, 6])


def optimise_and_record(simulated_workers: int) -> tuple[Task, Outcome]:
    """Let the method `RecordsCalls` make six trials on a task; return the task and the outcome."""
    RecordsCalls.calls = []
    task = load("newsvendor").tasks[3]  # any task would do
    spec = MethodSpec("records", RecordsCalls, "", "")
    no_history = ()
    assignment = Assignment(spec, task, no_history, budget=6, workers_simulated=simulated_workers)
    return task, optimise(assignment, np.random.default_rng(0))


class RecordsCalls(Method):
    """A method that records its calls, and suggests the number of each suggestion."""

    calls: list[str] = []  # noqa: RUF012

    def ask(self):
        """Count a fallback, and suggest its number as the first price."""
        self.fallbacks += 1
        number_of_suggestion = self.fallbacks
        self.calls.append(f"a{number_of_suggestion}")
        return {"price_0": number_of_suggestion, "price_1": 0, "price_2": 0}

    def tell(self, config, loss):
        assert loss == -load("newsvendor").tasks[3].evaluate(config)
        self.calls.append(f"t{config['price_0']}")


SCRIPT_OF_SIXTEEN_RUNS = """
import sys

import hpobench_ordered as hbo

folder, workers = sys.argv[1:]
hbo.run(
    benchmarks=["newsvendor"],
    methods=["random-search", "bo"],
    seeds=range(8),
    protocol=hbo.Ordered(trials=20, tasks=4),
    folder=folder,
    workers=int(workers),
)
"""


def start_sixteen_runs(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start an experiment, and its workers, in a group of processes that can be killed together."""
    command = [sys.executable, "-c", SCRIPT_OF_SIXTEEN_RUNS, str(folder), str(workers)]
    return subprocess.Popen(command, start_new_session=True)


def kill_after_five_runs(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Kill an experiment and its workers when five runs are stored."""
    deadline = time.monotonic() + 120
    while len(list(folder.glob("runs/*.parquet"))) < 5:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes have no groups there")
def test_killed_experiment_is_continued(tmp_path):
    """An experiment of two workers is killed and started again.

    It writes the same bytes as one that runs undisturbed with one worker. A run is stored before
    its timing, so that at most the timings in flight, one for each worker, are missing.
    """
    folder = tmp_path / "killed"
    kill_after_five_runs(start_sixteen_runs(folder, workers=2), folder)
    hashes_when_killed = run_hashes(folder)
    assert 5 <= len(hashes_when_killed) < 16
    n_timings = len(Store(folder).records.timings())
    assert len(hashes_when_killed) - 2 <= n_timings <= len(hashes_when_killed)

    exit_code = start_sixteen_runs(folder, workers=2).wait(timeout=120)
    exit_code_of_other = start_sixteen_runs(tmp_path / "undisturbed", workers=1).wait(timeout=120)

    assert (exit_code, exit_code_of_other) == (0, 0)
    hashes_of_undisturbed = run_hashes(tmp_path / "undisturbed")
    assert run_hashes(folder) == hashes_of_undisturbed
    # What was finished before was right, too.
    assert hashes_when_killed.items() <= hashes_of_undisturbed.items()


@pytest.mark.slow
def test_first_run_is_on_one_thread(folder):
    """A method may be the first to load SciPy, whose linear algebra (BLAS) has threads of its own.

    The script fails unless it has one thread. No environment variable limits the threads here.
    """
    limits = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    without_limits = {name: value for name, value in os.environ.items() if name not in limits}

    script = SCRIPT_THAT_COUNTS_THREADS
    subprocess.run([sys.executable, "-c", script, str(folder)], env=without_limits, check=True)


SCRIPT_THAT_COUNTS_THREADS = """
import sys

import hpobench_ordered as hbo


class CountsThreads(hbo.Method):
    def ask(self):
        import scipy.linalg
        import threadpoolctl

        pools = threadpoolctl.threadpool_info()
        threads = {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}
        assert threads == {1}, pools
        return self.space.sample(self.rng)

    def tell(self, config, loss):
        pass


hbo.run(
    benchmarks=["newsvendor"],
    methods=[CountsThreads],
    seeds=[0],
    folder=sys.argv[1],
    protocol=hbo.Ordered(tasks=1),
)
"""


def test_new_store_is_empty(folder):
    store = Store(folder)
    assert store.records.timings().empty
    assert store.read().empty


@pytest.fixture(scope="module")
def timed_cells_and_store(small_plan, tmp_path_factory):
    """Two finished runs, on three tasks with four trials each, and the store of them.

    A suggestion of the method `Slow` waits for 0.1 seconds; one of `BusyInThread` computes for
    0.02 seconds in a thread.
    """
    cells = small_plan(methods=[bad.BusyInThread, bad.Slow], seeds=range(1))
    store = Store(tmp_path_factory.mktemp("timed"))
    run_cells(cells, store)
    return cells, store


def test_timings_cover_every_run(timed_cells_and_store):
    """Each run made four suggestions on each of three tasks."""
    cells, store = timed_cells_and_store
    timings = store.records.timings().set_index("key")
    assert set(timings.index) == store.keys()
    for cell in cells:
        timing = timings.loc[cell.key]
        assert (timing["benchmark"], timing["seed"]) == ("newsvendor@1", cell.seed)
        assert timing["suggestions"] == 3 * 4
        assert timing["method_cpu_seconds"] > 0


def test_waiting_is_no_cpu_time(timed_cells_and_store):
    """Each suggestion, of four on three tasks, waits for 0.1 seconds."""
    _, store = timed_cells_and_store
    timing = store.records.timings().set_index("method").loc["bad_methods.Slow"]
    seconds_of_waiting = 3 * 4 * 0.1
    assert timing["seconds"] >= seconds_of_waiting
    assert timing["method_cpu_seconds"] < seconds_of_waiting


def test_cpu_time_of_threads_counts(timed_cells_and_store):
    """Each suggestion, of four on three tasks, computes for 0.02 seconds in a thread."""
    _, store = timed_cells_and_store
    timing = store.records.timings().set_index("method").loc["bad_methods.BusyInThread"]
    assert timing["method_cpu_seconds"] >= 3 * 4 * 0.02


def test_results_have_timings_of_their_cells(timed_cells_and_store):
    """The store has two runs, the results only the first of them."""
    (first_cell, _), store = timed_cells_and_store
    results = Results(store, (first_cell,))
    assert list(results.timings()["key"]) == [first_cell.key]


class ImportsSlowModule(Method):
    """A method whose first suggestion imports a module that computes for 0.2 CPU seconds."""

    def ask(self) -> Config:
        import slow_module  # noqa: F401  found in the folder of the test

        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        pass


def test_imports_are_no_time_of_method(tmp_path, monkeypatch):
    lines = [
        "import time",
        "end = time.process_time() + 0.2",
        "while time.process_time() < end: pass",
    ]
    (tmp_path / "slow_module.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    spec = MethodSpec("imports", ImportsSlowModule, "", "")
    assignment = Assignment(spec, load("newsvendor").tasks[0], (), budget=2)

    outcome = optimise(assignment, np.random.default_rng(0))

    assert 0 < outcome.cpu_seconds < 0.1


def make_timing(**changed_fields: object) -> dict[str, object]:
    """Make the timing of a run whose key is "a", unless some fields are changed."""
    usual_values = ("a", "newsvendor@1", "table", "bo", "1", 0, "ordered()", 25, 2.0, 1.0, "9.9")
    usual_fields = dict(zip(TIMING_COLUMNS, usual_values, strict=True))
    return usual_fields | changed_fields


def make_empty_store(folder: Path) -> Store:
    """Make a store of no runs, whose folder exists already."""
    store = Store(folder)
    store.prepare()
    return store


def test_damaged_timings_are_left_out(folder):
    """Lines that are broken off, lack fields, are no record or no text are not read.

    A timing that is written after a broken line begins a new one.
    """
    store = make_empty_store(folder)
    store.records.write_timing(make_timing())
    path = folder / "timings.jsonl"
    broken_line = path.read_bytes()[:-20]
    lacks_fields, no_record, no_text = b'{"key": 1}', b"[]", b"\xff"
    lines = [broken_line, lacks_fields, no_record, no_text, broken_line]
    path.write_bytes(b"\n".join(lines))

    store.records.write_timing(make_timing(key="b"))

    assert list(store.records.timings()["key"]) == ["b"]


def test_shortest_time_of_repeated_run_counts(folder):
    """Other work on the machine can only make a run longer, so the shortest time is nearest."""
    store = make_empty_store(folder)
    for seconds in (9.0, 3.0, 5.0):
        store.records.write_timing(make_timing(seconds=seconds))

    assert list(store.records.timings()["seconds"]) == [3.0]


def test_unwritable_timings_are_one_error(folder):
    """A folder is in the place of the file of timings."""
    store = make_empty_store(folder)
    (folder / "timings.jsonl").mkdir()

    with pytest.raises(StoreError, match="cannot write results"):
        store.records.write_timing(make_timing())


@pytest.mark.slow
def test_simultaneous_timings_are_all_written(folder):
    """Two processes write 200 timings, in lines so long that they could mix."""
    store = make_empty_store(folder)
    keys = [str(number) for number in range(200)]
    long_text = "ordered()" * 1000
    timings = [make_timing(key=key, protocol=long_text) for key in keys]

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(store.records.write_timing, timings))

    assert set(store.records.timings()["key"]) == set(keys)
