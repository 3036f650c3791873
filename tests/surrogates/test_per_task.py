"""Surrogates that consist of one surrogate per task."""

import numpy as np
import pytest

from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.base import StoredSurrogate
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

CODING = Coding((Feature(FeatureKind.IDENTITY, 0), Feature(FeatureKind.LOG, 1)))
KINDS = (SurrogateType.FOREST, SurrogateType.NEAREST)


def sample_values(seed: int, n: int) -> np.ndarray:
    """Random configurations of two numbers, (n, 2)."""
    return np.random.default_rng(seed).uniform(0.1, 1, (n, 2))


def make_single(kind: SurrogateType, task: int, coding: Coding = CODING) -> StoredSurrogate:
    """A surrogate of one task, from made-up evaluations.

    Each task has another number of them, and other values.
    """
    values = sample_values(seed=task, n=40 + task)
    targets = np.sin(values.sum(axis=1) * (task + 1))[:, None]
    if kind is SurrogateType.NEAREST:
        return NearestSurrogate.from_evaluations(values, targets, coding=coding)
    return fit_forest(values, targets, coding=coding, recipe=ForestRecipe(trees=5), seed=task)


def make_per_task(kind: SurrogateType, n_tasks: int) -> PerTaskSurrogate:
    """A surrogate of several tasks, each of which has a surrogate of its own."""
    return PerTaskSurrogate(tuple(make_single(kind, task) for task in range(n_tasks)))


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_predicted_by_own_surrogates(kind):
    """Predictions differ between tasks, so that no task is mistaken for another."""
    n_tasks = 12
    surrogate = make_per_task(kind, n_tasks)
    queries = sample_values(seed=99, n=50)

    distinct_predictions = set()
    for task in range(n_tasks):
        expected = make_single(kind, task).predict(queries, 0).tolist()
        assert surrogate.predict(queries, task).tolist() == expected
        distinct_predictions.add(tuple(expected))
    assert len(distinct_predictions) == n_tasks


def test_surrogates_of_two_kinds_are_refused():
    """The surrogates of all tasks must be forests, or all nearest neighbours."""
    forest = make_single(SurrogateType.FOREST, 0)
    nearest = make_single(SurrogateType.NEAREST, 0)

    with pytest.raises(ValueError, match="one kind"):
        PerTaskSurrogate((forest, nearest))


def test_nested_surrogates_per_task_are_refused():
    """The surrogate of a task cannot have surrogates per task itself."""
    per_task = make_per_task(SurrogateType.FOREST, n_tasks=1)

    with pytest.raises(ValueError, match="PER_TASK"):
        PerTaskSurrogate((per_task,))
