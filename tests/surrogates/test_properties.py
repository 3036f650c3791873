"""What surrogates of every kind have in common; each test runs for all of them."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.synthetic import ForresterSurrogate, QuadraticSurrogate
from hpobench_ordered.data.embedded import EmbeddedSurrogate
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.base import StoredSurrogate
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.forest import ForestSurrogate, TaskMix, find_task_mixes
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.surrogates.table import TableSurrogate

SPACE = hbo.SearchSpace([hbo.Parameter.number(name, 1, 9, integer=True) for name in "ab"])
"""Two whole numbers from 1 to 9."""
PART = hbo.SearchSpace([SPACE["b"]], constants={"a": 4})
CODING = space_coding(SPACE)
TASKS = 12
"""More than ten, as names of arrays begin with their task, and "10" is before "2" as a text."""
RECIPE = ForestRecipe(trees=5)
POINTS = SPACE.decode(SPACE.sample_unit(np.random.default_rng(0), 60))
"""Sixty random configurations."""
TARGETS = np.sin(POINTS.sum(axis=1)[:, None] * np.arange(1, TASKS + 1))
"""Their made-up values on each task, (60, 12)."""


SOME_TASKS = (0, 5, 10)
"""Of the twelve tasks of each surrogate, to save time."""


def make_nearest(targets: np.ndarray) -> NearestSurrogate:
    return NearestSurrogate(CODING, CODING.encode(POINTS), targets)


def make_forest(targets: np.ndarray = TARGETS) -> ForestSurrogate:
    return fit_forest(POINTS, targets, coding=CODING, recipe=RECIPE, seed=0)


def make_mixed_forest() -> ForestSurrogate:
    """A forest of three outputs and twelve tasks, each of which is a mixture of two outputs.

    Eleven tasks are between neighbours, outputs 0 and 1 or 1 and 2; the last one mixes 2 and 0.
    """
    forest = make_forest(TARGETS[:, :3])
    between_neighbours = find_task_mixes((0.0, 1.0, 2.0), np.linspace(0, 2, TASKS - 1))
    between_last_and_first = TaskMix(low=2, high=0, weight=0.5)
    return replace(forest, tasks=(*between_neighbours, between_last_and_first))


def make_table(tasks: int, seed: int = 0) -> TableSurrogate:
    """A table of random values of all configurations: two whole numbers from 1 to 9."""
    values = np.random.default_rng(seed).random((tasks, 9, 9))
    return TableSurrogate.from_values(values, lower=(1, 1))


def make_table_per_task() -> PerTaskSurrogate:
    return PerTaskSurrogate(tuple(make_table(1, seed=task) for task in range(TASKS)))


def make_per_task(make_single: Callable[[np.ndarray], StoredSurrogate]) -> PerTaskSurrogate:
    """A surrogate of each task, made from the targets of that task."""
    return PerTaskSurrogate(tuple(make_single(TARGETS[:, [task]]) for task in range(TASKS)))


MAKERS = {
    "table": lambda: make_table(TASKS),
    "nearest": lambda: make_nearest(TARGETS),
    "forest": make_mixed_forest,
    "forest per task": lambda: make_per_task(make_forest),
    "nearest per task": lambda: make_per_task(make_nearest),
    "table per task": make_table_per_task,
    "embedded": lambda: EmbeddedSurrogate(make_forest(), SPACE, PART, {}, (*range(TASKS),)),
    "forrester": lambda: ForresterSurrogate(np.random.default_rng(0).random((TASKS, 3))),
    "quadratic": lambda: QuadraticSurrogate(np.random.default_rng(0).random((TASKS, 3))),
}
"""Functions that make a surrogate of each kind, by a name."""
TYPES = {
    "table": SurrogateType.TABLE,
    "nearest": SurrogateType.NEAREST,
    "forest": SurrogateType.FOREST,
    "forest per task": SurrogateType.PER_TASK,
    "nearest per task": SurrogateType.PER_TASK,
    "table per task": SurrogateType.PER_TASK,
}
"""Types of those that can be stored as arrays; the others are made anew from a few numbers."""


@pytest.fixture(scope="module", params=MAKERS)
def name(request):
    """Name of the surrogate."""
    return request.param


@pytest.fixture(scope="module")
def surrogate(name):
    """A surrogate of twelve tasks; tests that use it run once for every kind."""
    return MAKERS[name]()


@pytest.fixture(scope="module")
def values(surrogate):
    """2500 random configurations: more than two blocks, in which batches are evaluated."""
    return np.random.default_rng(1).integers(1, 10, (2500, surrogate.dimension)).astype(float)


@pytest.fixture
def arrays(name, surrogate):
    """The arrays that the surrogate is stored as, by name; some kinds cannot be stored so."""
    if name not in TYPES:
        pytest.skip("this surrogate cannot be stored as arrays")
    return surrogate.to_arrays()


@pytest.mark.parametrize("task", SOME_TASKS)
def test_single_rows_agree_with_batch(surrogate, values, task):
    """A row has the same value alone and in a batch; 300 rows are tried, as each takes long."""
    predictions = surrogate.predict(values, task).tolist()

    single_predictions = [surrogate.predict_one(row, task) for row in values[:300]]

    assert {type(value) for value in single_predictions} == {float}
    assert single_predictions == predictions[:300]


@pytest.mark.parametrize("task", SOME_TASKS)
def test_values_do_not_depend_on_order_of_rows(surrogate, values, task):
    """Each row of a batch is predicted by itself, so that a reversed batch has the same values."""
    predictions = surrogate.predict(values, task).tolist()

    predictions_of_reversed = surrogate.predict(values[::-1], task)

    assert predictions_of_reversed[::-1].tolist() == predictions


@pytest.mark.parametrize("task", SOME_TASKS)
def test_values_do_not_depend_on_size_of_batch(surrogate, values, task):
    """The first 700 rows have the same values alone as among all rows."""
    predictions = surrogate.predict(values, task).tolist()

    predictions_of_first = surrogate.predict(values[:700], task)

    assert predictions_of_first.tolist() == predictions[:700]


@pytest.mark.parametrize("task", SOME_TASKS)
def test_values_do_not_depend_on_memory_layout(surrogate, values, task):
    """The rows of a batch, or its columns, may be contiguous; a part of a batch has gaps."""
    predictions = surrogate.predict(values, task).tolist()
    with_contiguous_columns = np.asfortranarray(values)

    predictions_of_first = surrogate.predict(with_contiguous_columns[:700], task)

    assert predictions_of_first.tolist() == predictions[:700]


def test_empty_batch_has_no_values(surrogate, values):
    no_rows = values[:0]

    assert surrogate.predict(no_rows, 0).shape == (0,)


def test_unpickled_copy_agrees(surrogate, values):
    copy = pickle.loads(pickle.dumps(surrogate))
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


def test_surrogate_from_arrays_agrees(name, surrogate, values, arrays):
    """Arrays are found by name, so that their order does not matter."""
    in_another_order = dict(reversed(arrays.items()))

    copy = TYPES[name].from_arrays(in_another_order)

    assert copy.to_arrays().keys() == arrays.keys()
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


@pytest.mark.parametrize("task", [-1, TASKS])
def test_unknown_tasks_are_refused(surrogate, values, task):
    """Tasks are numbered from 0 to 11, and -1 does not count from the end."""
    with pytest.raises(IndexError):
        surrogate.predict(values, task)
    with pytest.raises(IndexError):
        surrogate.predict_one(values[0], task)
