"""What surrogates of every kind have in common."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.synthetic import ForresterSurrogate, QuadraticSurrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.embedded import EmbeddedSurrogate
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.forest import TaskMix, interpolate
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.surrogates.table import TableSurrogate

SPACE = hbo.SearchSpace([hbo.Parameter.number(name, 1, 9, integer=True) for name in "ab"])
PART = hbo.SearchSpace([SPACE["b"]], constants={"a": 4})
CODING = space_coding(SPACE)
TASKS = 12  # of "10" and "11", which come before "2" in the order of names
RECIPE = ForestRecipe(trees=5)
POINTS = SPACE.decode(SPACE.sample_unit(np.random.default_rng(0), 60))
TARGETS = np.sin(POINTS.sum(axis=1)[:, None] * np.arange(1, TASKS + 1))


def nearest(targets):
    return NearestSurrogate(CODING, CODING.encode(POINTS), targets)


def forest(targets=TARGETS):
    return fit_forest(POINTS, targets, coding=CODING, recipe=RECIPE, seed=0)


def mixed():
    """A forest some of whose tasks lie between its outputs."""
    mixes = (*interpolate((0.0, 1.0, 2.0), np.linspace(0, 2, TASKS - 1)), TaskMix(2, 0, 0.5))
    return replace(forest(TARGETS[:, :3]), tasks=mixes)


def table(tasks, seed=0):
    values = np.random.default_rng(seed).random((tasks, 9, 9))
    return TableSurrogate.from_values(values, lower=(1, 1))


def one_per_task(build):
    """A surrogate of each task, built from the targets of that task."""
    return PerTaskSurrogate(tuple(build(TARGETS[:, [task]]) for task in range(TASKS)))


BUILDERS = {
    "table": lambda: table(TASKS),
    "nearest": lambda: nearest(TARGETS),
    "forest": mixed,
    "forest per task": lambda: one_per_task(forest),
    "nearest per task": lambda: one_per_task(nearest),
    "table per task": lambda: PerTaskSurrogate(tuple(table(1, task) for task in range(TASKS))),
    "embedded": lambda: EmbeddedSurrogate(forest(), SPACE, PART, {}, (*range(TASKS),)),
    "forrester": lambda: ForresterSurrogate(np.random.default_rng(0).random((TASKS, 3))),
    "quadratic": lambda: QuadraticSurrogate(np.random.default_rng(0).random((TASKS, 3))),
}
TYPES = {
    "table": hbo.SurrogateType.TABLE,
    "nearest": hbo.SurrogateType.NEAREST,
    "forest": hbo.SurrogateType.FOREST,
    "forest per task": hbo.SurrogateType.PER_TASK,
    "nearest per task": hbo.SurrogateType.PER_TASK,
    "table per task": hbo.SurrogateType.PER_TASK,
}
"""Types of the surrogates that are stored as arrays."""


@pytest.fixture(scope="module", params=BUILDERS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def surrogate(name):
    return BUILDERS[name]()


@pytest.fixture(scope="module")
def values(surrogate):
    """Configurations of more than two blocks."""
    return np.random.default_rng(1).integers(1, 10, (2500, surrogate.dimension)).astype(float)


@pytest.fixture
def arrays(name, surrogate):
    """The arrays that the surrogate is stored as."""
    if name not in TYPES:
        pytest.skip("it is not stored")
    return surrogate.to_arrays()


def test_has_interface_of_surrogates(surrogate):
    assert isinstance(surrogate, hbo.Surrogate)


@pytest.mark.parametrize("task", range(0, TASKS, 5))
def test_single_rows_agree_with_batch(surrogate, values, task):
    predictions = surrogate.predict(values, task).tolist()

    of_rows = [surrogate.predict_one(row, task) for row in values[:300]]

    assert {type(value) for value in of_rows} == {float}
    assert of_rows == predictions[:300]


@pytest.mark.parametrize("task", range(0, TASKS, 5))
def test_values_do_not_depend_on_batch(surrogate, values, task):
    predictions = surrogate.predict(values, task).tolist()

    reversed_predictions = surrogate.predict(values[::-1], task)
    of_first_rows = surrogate.predict(np.asfortranarray(values)[:700], task)

    assert reversed_predictions[::-1].tolist() == predictions
    assert of_first_rows.tolist() == predictions[:700]


def test_empty_batch_has_no_values(surrogate, values):
    assert surrogate.predict(values[:0], 0).shape == (0,)


def test_unpickled_copy_agrees(surrogate, values):
    copy = pickle.loads(pickle.dumps(surrogate))
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


def test_arrays_need_no_pickle(arrays):
    assert not any(array.dtype.hasobject for array in arrays.values())


def test_surrogate_from_arrays_agrees(name, surrogate, values, arrays):
    # Arrays are found by name.
    in_another_order = dict(reversed(arrays.items()))

    copy = TYPES[name].from_arrays(in_another_order)

    assert copy.to_arrays().keys() == arrays.keys()
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


def test_missing_array_is_refused(name, arrays):
    for missing in arrays:
        others = {key: array for key, array in arrays.items() if key != missing}
        with pytest.raises(ArtifactError):
            TYPES[name].from_arrays(others)


@pytest.mark.parametrize("task", [-1, TASKS])
def test_unknown_tasks_are_refused(surrogate, values, task):
    with pytest.raises(IndexError):
        surrogate.predict(values, task)
    with pytest.raises(IndexError):
        surrogate.predict_one(values[0], task)
