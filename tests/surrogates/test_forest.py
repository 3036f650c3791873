from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.card import r_squared
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.fitting import ForestRecipe, _build_ensemble, fit_forest
from hpobench_ordered.surrogates.forest import LEAF, TaskMix, interpolate
from hpobench_ordered.surrogates.pipeline import SurrogateFit, row_folds

CODING = Coding(
    (
        Feature(FeatureKind.LOG, 0),
        Feature(FeatureKind.IDENTITY, 1, inactive=0.5),
        Feature(FeatureKind.ONE_HOT, 2, 0),
        Feature(FeatureKind.ONE_HOT, 2, 1),
    )
)
SMALL = ForestRecipe(trees=7)


def make_evaluations(seed, n=150):
    """Random configurations, and targets of three outputs, the last one constant; the second
    hyperparameter is inactive with the first choice.
    """
    rng = np.random.default_rng(seed)
    values = np.stack(
        (np.exp(rng.uniform(-9, 0, n)), rng.random(n), rng.integers(0, 2, n).astype(float)), axis=1
    )
    values[values[:, 2] == 0, 1] = np.nan
    active = np.nan_to_num(values[:, 1])
    first = np.sin(np.log(values[:, 0])) + active
    return values, np.stack((first, 100 * first**2 + active, np.full(n, 3.0)), axis=1)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5) | st.just(80))
def test_equals_scikit_learn_up_to_half_a_step(seed, leaf):
    """Predictions are stored as integers, multiples of a step."""
    values, targets = make_evaluations(seed, 80)
    recipe = ForestRecipe(trees=5, min_samples_leaf=leaf)
    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed)
    scale = np.where(targets.std(axis=0) > 0, targets.std(axis=0), 1.0)
    x = CODING.encode(values).astype(np.float32)
    reference = _build_ensemble(recipe, seed, 1).fit(x, (targets - targets.mean(axis=0)) / scale)
    # At the thresholds themselves too: rounded to float32 they must send the same way.
    fitted = np.concatenate([tree.tree_.threshold for tree in reference.estimators_])
    column = np.append(fitted[(fitted > 0) & (fitted < 1)][:200], 0.5)
    at_thresholds = np.stack((np.full(len(column), 0.1), column, np.ones(len(column))), axis=1)
    for queries in (values, at_thresholds, make_evaluations(seed + 1)[0]):
        features = CODING.encode(queries).astype(np.float32)
        expected = reference.predict(features) * scale + targets.mean(axis=0)
        for output in range(3):
            tolerance = 0.51 * forest.step[output] + 1e-9
            np.testing.assert_allclose(
                forest.predict(queries, output), expected[:, output], atol=tolerance, rtol=0
            )


def test_same_seed_same_bytes_whatever_the_workers():
    values, targets = make_evaluations(0)
    recipe = ForestRecipe(trees=9)
    fits = [
        fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed, workers=workers)
        for seed, workers in ((5, 1), (5, 2), (6, 1))
    ]
    first, second, other = (
        {name: array.tobytes() for name, array in fit.to_arrays().items()} for fit in fits
    )
    assert first == second
    assert first != other


def test_contexts_of_outputs_need_no_mix():
    tasks = interpolate((0.05, 0.25, 1.0), (0.05, 0.25, 1.0))
    # Each task is predicted by one output, not by a mean of two.
    assert tasks == (TaskMix(0, 0), TaskMix(1, 1), TaskMix(2, 2))


@pytest.mark.parametrize(
    ("fitted", "context"), [((0.0, 1.0), 1.1), ((0.0, 1.0), -0.1), ((1.0, 0.0), 0.5)]
)
def test_extrapolation_is_refused(fitted, context):
    """A context outside the fitted ones, or fitted ones that do not increase."""
    with pytest.raises(ValueError, match=r"within|increase"):
        interpolate(fitted, (context,))


def test_tasks_between_outputs_are_linear():
    values, targets = make_evaluations(0)
    tasks = interpolate((0.05, 0.25, 1.0), (0.05, 0.1, 0.25, 0.7, 1.0))
    forest = fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=3)
    forest = replace(forest, tasks=tasks)
    at = [forest.predict(values, task) for task in range(5)]
    # 0.1 is a quarter of the way from 0.05 to 0.25, 0.7 is 0.6 of that from 0.25 to 1.
    np.testing.assert_allclose(at[1], 0.75 * at[0] + 0.25 * at[2], rtol=1e-12)
    np.testing.assert_allclose(at[3], 0.4 * at[2] + 0.6 * at[4], rtol=1e-12)


def test_output_weights_favour_an_output():
    values, targets = make_evaluations(0, 300)
    rng = np.random.default_rng(0)
    # One output to learn, and one of pure noise.
    both = np.stack((targets[:, 0], rng.normal(size=300)), axis=1)
    errors = []
    for weights in ((20.0, 1.0), (1.0, 20.0)):
        recipe = ForestRecipe(trees=20, output_weights=weights, min_samples_leaf=5)
        fitter = partial(fit_forest, coding=CODING, recipe=recipe)
        predicted = SurrogateFit.of_all_tasks(
            fitter, values, both, seed=0, folds=3
        ).cross_validate()
        errors.append(np.mean((predicted[:, 0] - both[:, 0]) ** 2))
    # The error of the first output is lower if it has the larger weight.
    assert errors[0] < 0.75 * errors[1]
    with pytest.raises(ValueError, match="2 positive output weights"):
        fit_forest(values, both, coding=CODING, recipe=ForestRecipe(output_weights=(1,)), seed=0)


def test_cross_validation_never_predicts_what_it_was_fitted_to():
    values, _ = make_evaluations(0, 60)
    noise = np.random.default_rng(0).normal(size=(60, 1))
    recipe = ForestRecipe(trees=20, min_samples_leaf=1)
    seen = fit_forest(values, noise, coding=CODING, recipe=recipe, seed=0).predict(values, 0)
    calls = []
    fitter = partial(fit_forest, coding=CODING, recipe=recipe)
    fit = SurrogateFit.of_all_tasks(fitter, values, noise, seed=0, folds=5)
    unseen = fit.cross_validate(lambda: calls.append(1))
    # The targets are noise: they are reproduced if seen, and not predicted otherwise.
    np.testing.assert_allclose(seen, noise[:, 0], atol=1e-4)
    assert np.corrcoef(unseen[:, 0], noise[:, 0])[0, 1] < 0.6
    assert len(calls) == 5
    with pytest.raises(ValueError, match="folds"):
        row_folds(60, 1, 0)


def test_too_few_columns_are_refused():
    values, targets = make_evaluations(0, 50)
    forest = fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0)
    # The forest has three hyperparameters.
    with pytest.raises(ValueError, match="values need shape"):
        forest.predict(values[:, :2], 0)
    with pytest.raises(ValueError, match="a row needs 3"):
        forest.predict_one(values[0, :2], 0)


@pytest.mark.parametrize("targets", [np.zeros(50), np.zeros((49, 3)), np.full((50, 1), np.nan)])
def test_targets_that_do_not_fit_are_refused(targets):
    values, _ = make_evaluations(0, 50)
    with pytest.raises(ValueError, match="targets must be finite"):
        fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0)


def fitted_arrays() -> dict[str, np.ndarray]:
    values, targets = make_evaluations(0, 50)
    return fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0).to_arrays()


def swap_root_and_leaf(feature: np.ndarray) -> np.ndarray:
    """The root becomes a leaf, and a leaf becomes an inner node."""
    swapped = feature.copy()
    first_leaf = np.flatnonzero(swapped == LEAF)[0]
    swapped[[0, first_leaf]] = LEAF, 0
    return swapped


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("feature", swap_root_and_leaf),
        ("feature", lambda feature: feature[:-1]),
        ("feature", lambda feature: np.where(feature == 0, 4, feature)),
        ("nodes", lambda nodes: nodes[::-1] + 1),
        ("nodes", lambda nodes: nodes[:0]),
        ("threshold", lambda threshold: threshold[1:]),
        ("codes", lambda codes: codes[:, 1:]),
        ("codes", lambda codes: codes[0]),
        ("offset", lambda offset: offset[1:]),
        ("task_outputs", lambda outputs: outputs + 1),
        ("task_weights", lambda weights: weights[1:]),
        ("coding", lambda table: table[:, 1:]),
    ],
)
def test_damaged_arrays_are_refused(name, damage):
    """One array of a stored forest is damaged."""
    arrays = fitted_arrays()
    arrays[name] = damage(arrays[name])
    with pytest.raises(ArtifactError):
        SurrogateType.FOREST.from_arrays(arrays)


def test_figures_do_not_depend_on_the_layout_in_memory():
    rng = np.random.default_rng(0)
    targets, predicted = rng.normal(size=(2, 1000, 20))
    fitter = partial(fit_forest, coding=CODING, recipe=SMALL)
    # The same targets with rows, then with columns, contiguous in memory.
    rows, columns = (
        SurrogateFit.of_all_tasks(fitter, np.zeros((1000, 3)), laid_out, seed=0).truth()
        for laid_out in (targets, np.asfortranarray(targets))
    )
    assert r_squared(rows, predicted).tolist() == r_squared(columns, predicted).tolist()
