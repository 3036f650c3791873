"""Runs: what is stored and timed of them, in which order, and after a kill."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import bad_methods as bad
import numpy as np
import pytest
from numba import njit

from hpobench_ordered import Adjustment, LeaveOneOut, Method, MethodSpec, Ordered, load, registry
from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.records import TIMING
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.writing import file_sha256
from hpobench_ordered.protocols import Assignment
from hpobench_ordered.runtime import compiling
from hpobench_ordered.runtime.machine import cpu_clock, wall_clock
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before, toy_spec


def run_hashes(folder: Path) -> dict[str, str]:
    """Compute the hash of every run in a store, by the name of its file."""
    files = sorted((folder / "runs").glob("*.parquet"))
    return {file.name: file_sha256(file) for file in files}


@pytest.fixture
def cells(small_plan):
    return small_plan()


@pytest.fixture
def store(cells, folder):
    """The store of finished runs of `small_plan`."""
    store = Store(folder)
    run_cells(cells, store)
    return store


def test_every_trial_is_stored(store):
    trials = store.read()
    runs, tasks, trials_on_task = 6, 3, 4
    assert len(trials) == runs * tasks * trials_on_task
    assert (trials["fallbacks"] == 0).all()


def test_values_are_those_of_configurations(cells, store):
    """Each stored configuration has the value that its task gives when evaluated again."""
    benchmark = load("newsvendor")
    for cell in cells:
        trials = store.configurations([cell.key])
        for task in benchmark.tasks[:3]:
            on_task = trials[trials["task"] == task.index]
            values = task.evaluate_many(on_task[list(benchmark.space.names)])
            np.testing.assert_array_equal(values, on_task["value"])


def test_table_has_values_of_configurations(cells, store):
    trials = store.read()
    for cell in cells:
        is_of_cell = (trials["method"] == cell.method.name) & (trials["seed"] == cell.seed)
        stored = store.configurations([cell.key])
        np.testing.assert_array_equal(trials.loc[is_of_cell, "value"], stored["value"])


def test_losses_are_negative_profits(store):
    """The objective of newsvendor is a profit, which is maximised."""
    trials = store.read()
    np.testing.assert_array_equal(trials["loss"], -trials["value"])


def test_regret_is_distance_to_best_value(store):
    tasks = load("newsvendor").tasks
    trials = store.read()
    best_values = trials["task"].map(lambda index: tasks[index].best_value)
    np.testing.assert_array_equal(trials["regret"], best_values - trials["value"])


def test_bo_replaces_method_without_history(store):
    """The method `transfer` needs a history, which the first task does not have."""
    trials = store.read()
    transfer = trials[trials["method"] == "transfer"]
    assert set(transfer[transfer["task"] == 0]["optimiser"]) == {"bo"}
    assert set(transfer[transfer["task"] > 0]["optimiser"]) == {"transfer"}


def test_history_has_trials_of_last_task(cells, store):
    """The method `transfer` begins with the best configuration of the last task."""
    cell = next(cell for cell in cells if cell.method.name == "transfer")
    trials = store.configurations([cell.key]).set_index(["task", "trial"])
    configurations = trials[["price_0", "price_1", "price_2"]]
    losses_on_first_task = trials["loss"].loc[0]
    best_trial = losses_on_first_task.idxmin()
    begin_of_second_task = configurations.loc[(1, 1)]
    np.testing.assert_array_equal(begin_of_second_task, configurations.loc[(0, best_trial)])


@pytest.fixture
def adjustment(monkeypatch, folder):
    """A run on two tasks, and its store: seven trials before an adjustment, four after it."""
    spec = toy_spec(numeric_space(), tasks=2, previous=numeric_space_before())
    monkeypatch.setattr(registry, "_benchmarks", lambda: {"toy": spec})
    protocol = Adjustment(first_trials=7, trials=4)
    (cell,) = plan(benchmarks=["toy"], methods=["simple-previous"], seeds=[0], protocol=protocol)
    store = Store(folder)
    run_cells([cell], store)
    return cell, store


def test_trials_before_adjustment_are_no_results(adjustment):
    """Of seven trials before it and four after it, on each of two tasks, the four are stored."""
    _, store = adjustment
    trials = store.read()
    task_and_trial = list(zip(trials["task"], trials["trial"], strict=True))
    assert task_and_trial == list(product((0, 1), (1, 2, 3, 4)))
    assert set(trials["optimiser"]) == {"simple-previous"}


def test_configurations_are_on_adjusted_space(adjustment):
    """The adjusted space has the hyperparameters x and y."""
    cell, store = adjustment
    columns = list(store.configurations([cell.key]))
    assert columns == ["key", "task", "trial", "value", "loss", "x", "y"]


def test_timing_counts_trials_before_adjustment(adjustment):
    """On each of two tasks there are seven trials before it and four after it."""
    _, store = adjustment
    assert store.records.timings()["suggestions"].to_list() == [2 * (7 + 4)]


def test_regret_without_best_value_is_missing(adjustment):
    _, store = adjustment
    assert store.read()["regret"].isna().all()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [Ordered(4, tasks=3), LeaveOneOut(4, history=10, tasks=3)])
def test_workers_and_resuming_change_no_byte(protocol, small_plan, tmp_path):
    """Six runs by one process, by two, and by one that goes on after three runs."""
    cells = small_plan(methods=["random-search", "simple-ordered"], protocol=protocol)
    (tmp_path / "one").mkdir()
    # What an experiment leaves that was killed before its first run does no harm.
    (tmp_path / "one" / ".store.json-0123").write_text("")
    for name, workers in (("one", 1), ("two", 2)):
        run_cells(cells, Store(tmp_path / name), workers=workers)
    resumed = Store(tmp_path / "resumed")
    run_cells(cells[::2], resumed)  # three of six
    reported = []
    run_cells(cells, resumed, progress=lambda done, total: reported.append((done, total)))
    expected = run_hashes(tmp_path / "one")
    assert len(expected) == 6
    assert run_hashes(tmp_path / "two") == run_hashes(tmp_path / "resumed") == expected
    assert reported == [(3, 6), (4, 6), (5, 6), (6, 6)]


@pytest.mark.parametrize(
    ("workers", "order"),
    [
        (1, "a1 t1 a2 t2 a3 t3 a4 t4 a5 t5 a6 t6"),
        (2, "a1 a2 t1 a3 t2 a4 t3 a5 t4 a6 t5 t6"),
        (4, "a1 a2 a3 a4 t1 a5 t2 a6 t3 t4 t5 t6"),
        (9, "a1 a2 a3 a4 a5 a6 t1 t2 t3 t4 t5 t6"),
    ],
)
def test_simulated_workers_delay_results(workers, order):
    """In `order`, a1 is the first configuration that is asked for, t1 its result that is told."""
    optimise_and_record(workers)
    assert " ".join(Records.calls) == order


@pytest.mark.parametrize("workers", [1, 2, 4, 9])
def test_outcome_is_in_order_of_asking(workers):
    """The method suggests 1, 2, ..., 6 as its first price, and 0 as the others."""
    task, outcome = optimise_and_record(workers)
    np.testing.assert_array_equal(outcome.values[:, 0], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(outcome.values[:, 1:], 0)
    np.testing.assert_array_equal(outcome.objective, task.evaluate_many(outcome.values))
    np.testing.assert_array_equal(outcome.fallbacks, [1, 2, 3, 4, 5, 6])


def optimise_and_record(workers: int) -> tuple[Task, Outcome]:
    """Let the method `Records` make six trials on a task; return the task and the outcome."""
    Records.calls = []
    task = load("newsvendor").tasks[3]
    spec = MethodSpec("records", Records, "", "")
    assignment = Assignment(spec, task, (), budget=6, workers_simulated=workers)
    return task, optimise(assignment, np.random.default_rng(0))


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


SCRIPT_OF_SIXTEEN_RUNS = (
    "import sys, hpobench_ordered as hbo\n"
    "hbo.run(benchmarks=['newsvendor'], methods=['random-search', 'bo'], seeds=range(8),"
    " protocol=hbo.Ordered(trials=20, tasks=4), folder=sys.argv[1], workers=int(sys.argv[2]))"
)


def start_sixteen_runs(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """Start an experiment in a process group of its own, which can be killed as a whole."""
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
def test_killed_experiment_is_continued(tmp_path):
    """Two processes, killed or not, write the same bytes as one."""
    folder = tmp_path / "killed"
    kill_after_five_runs(start_sixteen_runs(folder, workers=2), folder)
    finished = run_hashes(folder)
    assert 5 <= len(finished) < 16
    # A run is stored before its timing: of two in flight at most the timings are missing.
    timings = Store(folder).records.timings()
    assert len(finished) - 2 <= len(timings) <= len(finished)

    assert start_sixteen_runs(folder, workers=2).wait(timeout=120) == 0
    assert start_sixteen_runs(tmp_path / "undisturbed", workers=1).wait(timeout=120) == 0

    expected = run_hashes(tmp_path / "undisturbed")
    assert run_hashes(folder) == expected
    assert finished.items() <= expected.items()


@pytest.mark.slow
def test_first_run_is_on_one_thread(folder):
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


def test_new_store_is_empty(folder):
    store = Store(folder)
    assert store.records.timings().empty
    assert store.read().empty


@pytest.fixture
def timed_cells_and_store(small_plan, folder):
    """Runs of two methods on three tasks of four trials, and the store.

    Every suggestion of `Slow` waits for 0.1 seconds; `BusyInThread` computes for 0.02.
    """
    cells = small_plan(methods=[bad.BusyInThread, bad.Slow], seeds=range(1))
    store = Store(folder)
    run_cells(cells, store)
    return cells, store


def test_timings_cover_every_run(timed_cells_and_store):
    """Each run has three tasks of four trials."""
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
    cells, store = timed_cells_and_store
    results = Results(store, tuple(cells[:1]))
    assert list(results.timings()["key"]) == [cells[0].key]


@pytest.mark.parametrize(
    ("clock", "clock_that_goes_on"),
    [(wall_clock, time.perf_counter), (cpu_clock, time.process_time)],
    ids=["wall", "cpu"],
)
def test_clock_stops_while_numba_compiles(clock, clock_that_goes_on):
    """The package's clock, beside the one of Python that goes on."""
    assert compiling.compilation_times  # it is imported, as by any method that compiles
    compiled = njit(lambda values: np.exp(values).sum())
    start = clock()
    start_that_goes_on = clock_that_goes_on()
    compiled(np.ones(3))  # compiles it, which takes nearly all of the time
    elapsed = clock_that_goes_on() - start_that_goes_on
    assert 0 <= clock() - start < 0.5 * elapsed


TIMING_VALUES = ("a", "newsvendor@1", "table", "bo", "1", 0, "ordered()", 25, 2.0, 1.0, "9.9")
"""Values of one line of timings, in the order of its fields `TIMING`: its key is "a"."""


def test_damaged_timings_are_left_out(folder):
    """Lines of the file that are broken off, lack fields, are no record or no text."""
    store = Store(folder)
    store.prepare()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))  # of a run with the key "a"
    store.records.write_timing(timing)
    path = folder / "timings.jsonl"
    broken_off = path.read_bytes()[:-20]
    path.write_bytes(broken_off + b'\n{"key": 1}\n[]\n\xff\n' + broken_off)
    store.records.write_timing(timing | {"key": "b"})  # begins a new line after what broke off
    assert list(store.records.timings()["key"]) == ["b"]


def test_shortest_time_of_repeated_run_counts(folder):
    """A run with three timings, as other work on the machine only adds to it."""
    store = Store(folder)
    store.prepare()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))
    for seconds in (9.0, 3.0, 5.0):
        store.records.write_timing(timing | {"seconds": seconds})
    assert list(store.records.timings()["seconds"]) == [3.0]


def test_wall_times_of_earlier_versions_are_not_read(folder):
    store = Store(folder)
    store.prepare()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))
    cpu_seconds = timing.pop("method_cpu_seconds")  # earlier, wall time was written instead
    store.records.write_timing(timing | {"method_seconds": cpu_seconds})
    (read,) = store.records.timings().to_dict("records")
    assert np.isnan(read.pop("method_cpu_seconds"))
    assert read == timing


def test_repetition_with_cpu_time_counts(folder):
    """Of two timings of a run the one without CPU time does not count, though it is shorter."""
    store = Store(folder)
    store.prepare()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))
    store.records.write_timing(timing | {"seconds": 0.1, "method_cpu_seconds": None})
    store.records.write_timing(timing)
    assert list(store.records.timings()["method_cpu_seconds"]) == [timing["method_cpu_seconds"]]


def test_unwritable_timings_are_one_error(folder):
    """A folder is in the place of the file of timings."""
    store = Store(folder)
    store.prepare()
    (folder / "timings.jsonl").mkdir()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))
    with pytest.raises(StoreError, match="cannot write results"):
        store.records.write_timing(timing)


@pytest.mark.slow
def test_simultaneous_timings_are_all_written(folder):
    store = Store(folder)
    store.prepare()
    timing = dict(zip(TIMING, TIMING_VALUES, strict=True))
    long_timing = timing | {"protocol": "ordered()" * 1000}  # so that lines could mix
    keys = [str(number) for number in range(200)]
    timings = [long_timing | {"key": key} for key in keys]

    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(store.records.write_timing, timings))

    assert set(store.records.timings()["key"]) == set(keys)
