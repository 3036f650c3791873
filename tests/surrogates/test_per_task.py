import numpy as np
import pytest

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

CODING = Coding((Feature(FeatureKind.IDENTITY, 0), Feature(FeatureKind.LOG, 1)))
KINDS = (SurrogateType.FOREST, SurrogateType.NEAREST)


def configurations(seed, n):
    """n random configurations of two numbers."""
    return np.random.default_rng(seed).uniform(0.1, 1, (n, 2))


def single(kind, task, coding=CODING):
    """A surrogate of task `task`, fitted to configurations of its own."""
    values = configurations(task, 40 + task)
    targets = np.sin(values.sum(axis=1) * (task + 1))[:, None]
    if kind is SurrogateType.NEAREST:
        return NearestSurrogate.from_evaluations(values, targets, coding=coding)
    return fit_forest(values, targets, coding=coding, recipe=ForestRecipe(trees=5), seed=task)


def per_task(kind, tasks=12):
    """A surrogate of so many tasks, each with one of its own."""
    return PerTaskSurrogate(tuple(single(kind, task) for task in range(tasks)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_is_predicted_by_its_own_surrogate(kind):
    surrogate, queries = per_task(kind), configurations(99, 50)
    assert (surrogate.kind, surrogate.dimension) == (kind, 2)
    seen = set()
    for task in range(12):
        expected = single(kind, task).predict(queries, 0).tolist()
        assert surrogate.predict(queries, task).tolist() == expected
        seen.add(tuple(expected))
    # All twelve predict differently.
    assert len(seen) == 12


def test_surrogates_that_do_not_go_together_are_refused():
    """None, two kinds, two dimensions, or one that is per task itself."""
    forest, nearest = (single(kind, 0) for kind in KINDS)
    narrow = single(SurrogateType.NEAREST, 0, Coding(CODING.features[:1]))
    for models, message in (
        ((), "at least one"),
        ((forest, nearest), "one kind"),
        ((nearest, narrow), r"one dimension, but got \[1, 2\]"),
        ((PerTaskSurrogate((forest,)),), "PER_TASK"),
    ):
        with pytest.raises(ValueError, match=message):
            PerTaskSurrogate(models)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_arrays_are_refused(kind):
    arrays = per_task(kind, 3).to_arrays()
    whole_task_missing = {k: v for k, v in arrays.items() if not k.startswith("1/")}
    for damaged in (
        {**arrays, "kind": np.array("CRYSTAL")},
        {**arrays, "kind": np.array("PER_TASK")},
        {**arrays, "first/points": np.zeros(3)},
        {"kind": arrays["kind"]},
        whole_task_missing,
    ):
        with pytest.raises(ArtifactError):
            SurrogateType.PER_TASK.from_arrays(damaged)
