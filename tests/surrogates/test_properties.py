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


def apart(kind):
    return PerTaskSurrogate(tuple(kind(TARGETS[:, [task]]) for task in range(TASKS)))


MADE = {
    "table": lambda: table(TASKS),
    "nearest": lambda: nearest(TARGETS),
    "forest": mixed,
    "forests apart": lambda: apart(forest),
    "nearest apart": lambda: apart(nearest),
    "tables apart": lambda: PerTaskSurrogate(tuple(table(1, task) for task in range(TASKS))),
    "embedded": lambda: EmbeddedSurrogate(forest(), SPACE, PART, {}, (*range(TASKS),)),
    "forrester": lambda: ForresterSurrogate(np.random.default_rng(0).random((TASKS, 3))),
    "quadratic": lambda: QuadraticSurrogate(np.random.default_rng(0).random((TASKS, 3))),
}
STORED = {"table", "nearest", "forest", "forests apart", "nearest apart", "tables apart"}


@pytest.fixture(scope="module", params=MADE)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def surrogate(name):
    return MADE[name]()


@pytest.fixture(scope="module")
def values(surrogate):
    """Configurations of more than two blocks."""
    return np.random.default_rng(1).integers(1, 10, (2500, surrogate.dimension)).astype(float)


@pytest.fixture
def arrays(name, surrogate):
    if name not in STORED:
        pytest.skip("it is not stored")
    return surrogate.to_arrays()


def kind_of(name):
    by_name = {"table": hbo.SurrogateType.TABLE, "nearest": hbo.SurrogateType.NEAREST}
    return {**by_name, "forest": hbo.SurrogateType.FOREST}.get(name, hbo.SurrogateType.PER_TASK)


@pytest.mark.parametrize("task", range(0, TASKS, 5))
def test_rows_and_parts_have_the_values_of_the_whole_batch(surrogate, values, task):
    assert isinstance(surrogate, hbo.Surrogate)
    whole = surrogate.predict(values, task).tolist()
    rows = [surrogate.predict_one(row, task) for row in values[:300]]
    assert {type(value) for value in rows} == {float}
    assert rows == whole[:300]
    assert surrogate.predict(values[::-1], task)[::-1].tolist() == whole
    assert surrogate.predict(np.asfortranarray(values)[:700], task).tolist() == whole[:700]
    assert surrogate.predict(values[:0], task).shape == (0,)


def test_copies_agree(surrogate, values):
    copy = pickle.loads(pickle.dumps(surrogate))
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


def test_what_is_stored_agrees(name, surrogate, values, arrays):
    assert not any(array.dtype.hasobject for array in arrays.values())
    copy = kind_of(name).from_arrays(dict(reversed(arrays.items())))
    assert copy.to_arrays().keys() == arrays.keys()
    for task in range(TASKS):
        assert (copy.predict(values, task) == surrogate.predict(values, task)).all()


def test_without_one_of_its_arrays_it_is_refused(name, arrays):
    for lost in arrays:
        with pytest.raises(ArtifactError):
            kind_of(name).from_arrays({k: v for k, v in arrays.items() if k != lost})


@pytest.mark.parametrize("task", [-1, TASKS])
def test_unknown_tasks_are_refused(surrogate, values, task):
    for predict, given in ((surrogate.predict, values), (surrogate.predict_one, values[0])):
        with pytest.raises(IndexError):
            predict(given, task)
