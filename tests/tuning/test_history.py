"""Evaluations as history: what they hold, whether they fit a task, and results as history."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import Direction, Evaluations, Parameter, SearchSpace
from hpobench_ordered.data import check_history
from hpobench_ordered.errors import EvaluationsError, StoreError
from hpobench_ordered.space import Compare, Comparison
from hpobench_ordered.testing.toy import numeric_space, toy_benchmark
from hpobench_ordered.tuning import history_from_results

SPACE = SearchSpace(
    [
        Parameter.number("rate", 1e-4, 0.5, log=True),
        Parameter.number("depth", 1, 9, integer=True),
        Parameter.choice("kernel", ("linear", "radial")),
        Parameter.number("gamma", 0, 1),
    ],
    conditions={"gamma": Compare(2, Comparison.EQUAL, (1.0,))},
    constants={"trees": 100},
)

VALID_ARGUMENTS: dict[str, Any] = {
    "task": "May",
    "context": {},
    # Columns: rate, depth, kernel (a place), gamma, which is active with kernel 1 alone.
    "values": np.array([[0.1, 3.0, 1.0, 0.5], [0.2, 4.0, 0.0, np.nan]]),
    "objective": np.array([0.9, np.nan]),
    "space": SPACE,
    "direction": Direction.MAXIMIZE,
}
"""Arguments of evaluations, each of which a case below replaces by an invalid one."""

EXCHANGED_COLUMNS = VALID_ARGUMENTS["values"][:, [1, 0, 2, 3]]
WITHOUT_GAMMA = VALID_ARGUMENTS["values"][:, :3]
DEPTH_OF_3_5 = VALID_ARGUMENTS["values"] + [0, 0.5, 0, 0]
ACTIVE_GAMMA_MISSING = [[0.1, 3, 1, np.nan], [0.1, 3, 1, np.nan]]
INACTIVE_GAMMA_SET = [[0.1, 3, 0, 0.5], [0.1, 3, 0, 0.5]]
VALUES_AS_TEXT = [["0.1", "3", "1", "0.5"], ["0.1", "3", "1", "0.5"]]
ROWS_OF_UNEQUAL_LENGTH = [[0.1, 3, 1, 0.5], [0.1]]

INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"values": EXCHANGED_COLUMNS}, r"rate .* got 3.0; row 0: depth .* got 0.1"),
    ({"values": WITHOUT_GAMMA}, r"shape \(2, 4\), one column for each"),
    ({"values": DEPTH_OF_3_5}, "row 0: depth .*, but got 3.5"),
    ({"values": ACTIVE_GAMMA_MISSING}, "row 0: gamma .*, but got nan"),
    ({"values": INACTIVE_GAMMA_SET}, "gamma must be NaN, as it is inac"),
    ({"values": VALUES_AS_TEXT}, "the values .* must be numbers"),
    ({"values": ROWS_OF_UNEQUAL_LENGTH}, "the values of task 'May'"),
    ({"objective": [0.9]}, r"the objective .* shape \(2,\), got"),
    ({"task": 5}, "the name of a task must be text, but got 5"),
    ({"space": None}, "must be a SearchSpace, but got NoneType"),
    ({"direction": "up"}, "unknown direction 'up'"),
]


def test_length_is_number_of_evaluations():
    assert len(Evaluations(**VALID_ARGUMENTS)) == len(VALID_ARGUMENTS["objective"]) == 2


@pytest.mark.parametrize(("invalid_argument", "message"), INVALID_ARGUMENTS)
def test_invalid_evaluations_are_refused(invalid_argument, message):
    with pytest.raises(EvaluationsError, match=message):
        Evaluations(**(VALID_ARGUMENTS | invalid_argument))


def test_losses_of_maximised_objective_are_negated():
    evaluations = Evaluations(**(VALID_ARGUMENTS | {"direction": "maximize"}))
    assert evaluations.losses.tolist() == [-0.9, np.inf]


def test_losses_of_minimised_objective_are_its_values():
    evaluations = Evaluations(**(VALID_ARGUMENTS | {"direction": "minimize"}))
    assert evaluations.losses.tolist() == [0.9, np.inf]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
def test_failed_evaluation_is_worst(direction, failure):
    """A failed evaluation has a worse loss than all others, whatever value stands for it."""
    changes = {"objective": np.array([0.9, failure]), "direction": direction}
    evaluations = Evaluations(**(VALID_ARGUMENTS | changes))
    assert evaluations.losses[1] == np.inf
    assert evaluations.losses.argmin() == 0
    assert np.isnan(evaluations.objective[1])


def test_copy_has_other_arrays():
    """A method gets a copy, on a space of its own, that shares no array with the original."""
    original = Evaluations(**VALID_ARGUMENTS)
    copy = original.copied(SPACE)
    assert copy.values is not original.values


@pytest.mark.parametrize("array", ["values", "objective", "losses"])
@pytest.mark.parametrize(
    "evaluations",
    [Evaluations(**VALID_ARGUMENTS), Evaluations(**VALID_ARGUMENTS).copied(SPACE)],
    ids=["original", "copy"],
)
def test_arrays_are_read_only(evaluations, array):
    assert not getattr(evaluations, array).flags.writeable


def test_frame_has_native_values():
    """The kernels of two evaluations, the numbers 1 and 0, are texts in the table.

    With the linear kernel gamma is inactive, and so missing.
    """
    frame = Evaluations(**VALID_ARGUMENTS).frame(objective="accuracy")
    assert list(frame) == ["task", "rate", "depth", "kernel", "gamma", "accuracy"]
    assert frame["kernel"].tolist() == ["radial", "linear"]
    assert frame["gamma"].isna().tolist() == [False, True]


def test_frame_refuses_name_of_a_hyperparameter():
    with pytest.raises(EvaluationsError, match="'rate' is a hyperparameter"):
        Evaluations(**VALID_ARGUMENTS).frame(task="rate")


def make_evaluations(
    space: SearchSpace, task: str = "May", direction: str = "maximize"
) -> Evaluations:
    """Build four evaluations of random configurations of a space."""
    values = space.decode(space.sample_unit(np.random.default_rng(0), 4))
    return Evaluations(task, {}, values, np.arange(4.0), space=space, direction=direction)


NUMERIC_SPACE = numeric_space()
"""x from -5 to 5, and y."""
WIDER_SPACE = SearchSpace([Parameter.number("x", -5, 9), Parameter.number("z", 1e-4, 1, log=True)])
"""Shares only x with the numeric space, in a wider range."""


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (
            [make_evaluations(NUMERIC_SPACE), make_evaluations(NUMERIC_SPACE)],
            "'May': more than one history of the task",
        ),
        (
            [make_evaluations(NUMERIC_SPACE, "June", "minimize")],
            "'June': its objective is to minimize",
        ),
        (
            [make_evaluations(WIDER_SPACE)],
            r"'May': it is on another .*x: from -5 to 9, now from -5 to 5; .*z: removed",
        ),
        ([make_evaluations(SPACE)], "shares no hyperparameter"),
        (make_evaluations(NUMERIC_SPACE), "list of Evaluations, one per task, but got Evaluations"),
        (
            [make_evaluations(NUMERIC_SPACE).frame()],
            "list of Evaluations, one per task, but got list of Dat",
        ),
    ],
    ids=["task twice", "direction", "wider space", "other space", "no list", "list of tables"],
)
def test_history_that_does_not_fit_is_refused(history, message):
    with pytest.raises(EvaluationsError, match=message):
        check_history(history, NUMERIC_SPACE, Direction.MAXIMIZE)


def test_history_on_changed_space_can_be_allowed():
    """If asked for, an earlier task on another space raises no error.

    Of the wider space, which has x and z, the numeric space shares x.
    """
    check_history([make_evaluations(WIDER_SPACE)], NUMERIC_SPACE, "maximize", changed_spaces=True)


def test_changed_space_must_share_a_hyperparameter():
    with pytest.raises(EvaluationsError, match="shares no hyperparameter"):
        check_history([make_evaluations(SPACE)], NUMERIC_SPACE, "maximize", changed_spaces=True)


def space_of_choices(*choices: object, default: object = None) -> SearchSpace:
    """Build a space of one hyperparameter, `c`."""
    return SearchSpace([Parameter.choice("c", choices, default=default)])  # type: ignore[arg-type]


def test_other_default_is_the_same_space():
    evaluations = make_evaluations(space_of_choices("a", "b"))
    assert evaluations.is_on(space_of_choices("a", "b", default="b"))


@pytest.mark.parametrize(
    ("space", "other_space"),
    [
        (space_of_choices("a", "b"), space_of_choices("b", "a")),
        (space_of_choices(True, False), space_of_choices(1, 0)),  # True == 1 in Python
        (NUMERIC_SPACE, SearchSpace(NUMERIC_SPACE.parameters[::-1])),
    ],
    ids=["order of choices", "type of choices", "order of parameters"],
)
def test_other_coding_is_another_space(space, other_space):
    assert not make_evaluations(space).is_on(other_space)


def test_other_order_of_choices_is_explained():
    """A history whose choices have another order is refused, with an explanation.

    Values are positions among the choices, which have another meaning in another order.
    """
    history = [make_evaluations(space_of_choices("b", "a"))]
    with pytest.raises(EvaluationsError, match="in another order"):
        check_history(history, space_of_choices("a", "b"), "maximize")


def run_methods(
    folder: Path,
    *benchmarks: Any,
    trials: int,
    tasks: int | None = None,
    methods: Sequence[str] = ("random-search",),
    seeds: Sequence[int] = (0,),
) -> hbo.Results:
    """Run an ordered experiment, by default of random search with seed 0."""
    protocol = hbo.Ordered(trials=trials, tasks=tasks)
    return hbo.run(
        benchmarks=benchmarks, protocol=protocol, folder=folder, methods=methods, seeds=seeds
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two methods and two seeds on three tasks of two benchmarks, four trials each."""
    return run_methods(
        tmp_path_factory.mktemp("store") / "results",
        "yahpo-ranger-4154",
        "newsvendor",
        trials=4,
        tasks=3,
        methods=["random-search", "simple-ordered"],
        seeds=[0, 1],
    )


def assert_history_has_tasks_and_objective(
    history: Sequence[Evaluations], benchmark: hbo.Benchmark
) -> None:
    """Check that a history is of a benchmark's first tasks, with their contexts and values."""
    check_history(history, benchmark.space, benchmark.objective.direction)
    tasks = benchmark.tasks[: len(history)]
    assert [evaluations.task for evaluations in history] == [task.name for task in tasks]
    for task, evaluations in zip(tasks, history, strict=True):
        assert evaluations.context == task.context
        np.testing.assert_array_equal(task.evaluate_many(evaluations.values), evaluations.objective)


@pytest.mark.parametrize(
    ("name", "by_folder"),
    [("yahpo-ranger-4154", False), ("newsvendor", True)],
    ids=["results", "folder"],
)
def test_results_are_read_as_history(results, name, by_folder):
    """The trials of one run, on three tasks, are one history.

    The run is found in the results, or in the folder where they are stored.
    """
    source = results.store.folder if by_folder else results
    benchmark = hbo.load(name)

    history = history_from_results(source, method="simple-ordered", seed=1, benchmark=name)

    assert len(history) == 3
    assert_history_has_tasks_and_objective(history, benchmark)
    trials = results.frame()
    is_on_benchmark = trials["benchmark"] == benchmark.id
    is_of_run = (trials["method"] == "simple-ordered") & (trials["seed"] == 1)
    trials_of_run = trials[is_on_benchmark & is_of_run]
    for task_index, evaluations in enumerate(history):
        trials_of_task = trials_of_run[trials_of_run["task"] == task_index]
        np.testing.assert_array_equal(evaluations.objective, trials_of_task["value"])
        np.testing.assert_array_equal(evaluations.losses, trials_of_task["loss"])


@pytest.mark.parametrize(
    ("chosen_run", "message"),
    [
        ({}, "2 runs of .* 'newsvendor@1' or 'yahpo-ranger"),
        ({"method": "random-serch"}, r"did you mean 'random-search'\?"),
        ({"seed": 7}, "no finished run of seed 7"),
        ({"benchmark": "svm-a"}, "of benchmark 'svm-a@1'"),
        ({"protocol": "leave-one-out"}, "of protocol"),
    ],
    ids=["ambiguous", "method", "seed", "benchmark", "protocol"],
)
def test_ambiguous_or_unknown_results_are_refused(results, chosen_run, message):
    """The results are of two benchmarks, so that a method and a seed alone are ambiguous."""
    default_run = {"method": "random-search", "seed": 0}
    with pytest.raises(StoreError, match=message):
        history_from_results(results, **(default_run | chosen_run))


def test_store_without_runs_is_refused(tmp_path):
    with pytest.raises(StoreError, match="no finished run"):
        history_from_results(tmp_path, method="random-search", seed=0)


def test_ambiguous_protocol_is_refused(tmp_path):
    """The name alone does not tell two protocols of different settings apart."""
    run_methods(tmp_path, "newsvendor", trials=2, tasks=1)
    run_methods(tmp_path, "newsvendor", trials=3, tasks=1)
    with pytest.raises(StoreError, match=r"say which: protocol 'ordered\(trials=2"):
        history_from_results(tmp_path, method="random-search", seed=0, protocol="ordered")


@pytest.fixture
def benchmark_in_memory():
    """A benchmark that no name stands for; its objective is maximised."""
    return toy_benchmark(NUMERIC_SPACE, tasks=2, direction=Direction.MAXIMIZE)


@pytest.fixture
def results_in_memory(tmp_path, benchmark_in_memory):
    """Results of random search, seed 0, on a benchmark that cannot be loaded by its name."""
    return run_methods(tmp_path / "store", benchmark_in_memory, trials=3)


def test_results_in_memory_have_their_benchmark(results_in_memory, benchmark_in_memory):
    history = history_from_results(results_in_memory, method="random-search", seed=0)
    assert_history_has_tasks_and_objective(history, benchmark_in_memory)


def test_folder_is_read_with_given_benchmark(results_in_memory, benchmark_in_memory):
    """A folder gives the same history as the results in it.

    The objective is maximised, so that losses are its negative values.
    """
    folder = results_in_memory.store.folder

    history = history_from_results(
        folder, method="random-search", seed=0, benchmark=benchmark_in_memory
    )

    expected = history_from_results(results_in_memory, method="random-search", seed=0)
    for evaluations, expected_evaluations in zip(history, expected, strict=True):
        assert expected_evaluations.direction is Direction.MAXIMIZE
        np.testing.assert_array_equal(evaluations.values, expected_evaluations.values)
        negated_objective = -evaluations.objective
        np.testing.assert_array_equal(negated_objective, expected_evaluations.losses)


def test_folder_needs_benchmark_in_memory(results_in_memory):
    """The folder has the runs of a benchmark that cannot be loaded by its name."""
    folder = results_in_memory.store.folder
    with pytest.raises(StoreError, match="Give the benchmark"):
        history_from_results(folder, method="random-search", seed=0)


@pytest.mark.parametrize(
    "other_benchmark",
    [
        toy_benchmark(NUMERIC_SPACE, tasks=2, direction=Direction.MINIMIZE),
        toy_benchmark(WIDER_SPACE, tasks=2, direction=Direction.MAXIMIZE),
    ],
    ids=["direction", "space"],
)
def test_folder_refuses_another_benchmark(results_in_memory, other_benchmark):
    """The folder has runs of another benchmark, on a numeric space and to maximise.

    The one that is passed is to minimise, or on a wider space.
    """
    folder = results_in_memory.store.folder
    with pytest.raises(StoreError, match="no finished run of benchmark"):
        history_from_results(folder, method="random-search", seed=0, benchmark=other_benchmark)


def test_optuna_is_imported_on_first_use():
    """Importing the package must not import Optuna, which takes long."""
    code = """
import sys
import hpobench_ordered
assert "optuna" not in sys.modules
hpobench_ordered.record_history
assert "optuna" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
