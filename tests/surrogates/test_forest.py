"""Forests: fitted as by scikit-learn, repeatable, interpolated between tasks, and stored."""

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
from hpobench_ordered.surrogates.forest import LEAF, ForestSurrogate, TaskMix, interpolate
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
"""A forest of few trees, where its quality does not matter."""
OUTPUTS = 3
"""Of `make_evaluations`."""


def make_evaluations(seed: int, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Random configurations, and targets of three outputs, the last of which is constant.

    A configuration is a number on a log scale, a number, and a choice, 0 or 1. The second number is
    inactive with choice 0.
    """
    rng = np.random.default_rng(seed)
    number_on_log_scale = np.exp(rng.uniform(-9, 0, n))
    number = rng.random(n)
    choice = rng.integers(0, 2, n).astype(float)
    number[choice == 0] = np.nan
    values = np.stack([number_on_log_scale, number, choice], axis=1)

    active = np.nan_to_num(number)
    first = np.sin(np.log(number_on_log_scale)) + active
    second = 100 * first**2 + active
    third = np.full(n, 3.0)
    return values, np.stack([first, second, third], axis=1)


class ScikitLearnForest:
    """The same forest by scikit-learn, which is fitted to standardised targets."""

    def __init__(
        self, values: np.ndarray, targets: np.ndarray, recipe: ForestRecipe, seed: int
    ) -> None:
        self.mean = targets.mean(axis=0)
        deviation = targets.std(axis=0)
        self.scale = np.where(deviation > 0, deviation, 1.0)
        scaled_targets = (targets - self.mean) / self.scale
        self.ensemble = _build_ensemble(recipe, seed, workers=1)
        self.ensemble.fit(self.encode(values), scaled_targets)

    def encode(self, values: np.ndarray) -> np.ndarray:
        return CODING.encode(values).astype(np.float32)

    def predict(self, values: np.ndarray) -> np.ndarray:
        return self.ensemble.predict(self.encode(values)) * self.scale + self.mean


def assert_equal_up_to_half_a_step(
    forest: ForestSurrogate, reference: ScikitLearnForest, values: np.ndarray
) -> None:
    """Compare predictions; those of our forest are stored as integers, multiples of a step."""
    expected = reference.predict(values)
    for output in range(OUTPUTS):
        # Slightly more than half a step, for rounding errors.
        tolerance = 0.51 * forest.step[output] + 1e-9
        np.testing.assert_allclose(
            forest.predict(values, output), expected[:, output], atol=tolerance, rtol=0
        )


LEAF_SIZES = st.integers(1, 5) | st.just(80)
"""Smallest sizes of leaves; with 80, of all evaluations, each tree is a single leaf."""


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), LEAF_SIZES)
def test_predictions_are_scikit_learns(seed, leaf_size):
    values, targets = make_evaluations(seed, 80)
    recipe = ForestRecipe(trees=5, min_samples_leaf=leaf_size)
    reference = ScikitLearnForest(values, targets, recipe, seed)

    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed)

    other_values, _ = make_evaluations(seed + 1)
    assert_equal_up_to_half_a_step(forest, reference, values)
    assert_equal_up_to_half_a_step(forest, reference, other_values)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1), LEAF_SIZES)
def test_predictions_at_thresholds_are_scikit_learns(seed, leaf_size):
    """A number at a threshold goes to the same side, though thresholds are stored as float32."""
    values, targets = make_evaluations(seed, 80)
    recipe = ForestRecipe(trees=5, min_samples_leaf=leaf_size)
    reference = ScikitLearnForest(values, targets, recipe, seed)
    trees = [estimator.tree_ for estimator in reference.ensemble.estimators_]
    thresholds = np.concatenate([tree.threshold for tree in trees])
    # The second number is from 0 to 1: thresholds in between are taken for its own.
    is_of_number = (thresholds > 0) & (thresholds < 1)
    at_most_200 = thresholds[is_of_number][:200]
    numbers = np.append(at_most_200, 0.5)  # one more, as there may be none
    numbers_on_log_scale = np.full(len(numbers), 0.1)
    choices = np.ones(len(numbers))

    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed)

    at_thresholds = np.stack([numbers_on_log_scale, numbers, choices], axis=1)
    assert_equal_up_to_half_a_step(forest, reference, at_thresholds)


def fit_bytes(*, seed: int, workers: int = 1) -> dict[str, bytes]:
    """Bytes of every array of a forest that is fitted with a seed on some workers."""
    values, targets = make_evaluations(0)
    recipe = ForestRecipe(trees=9)
    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed, workers=workers)
    return {name: array.tobytes() for name, array in forest.to_arrays().items()}


def test_workers_fit_the_same_bytes():
    assert fit_bytes(seed=5, workers=2) == fit_bytes(seed=5, workers=1)


def test_seeds_fit_different_bytes():
    assert fit_bytes(seed=6) != fit_bytes(seed=5)


def test_fitted_tasks_need_no_mix():
    """A forest has an output for each task it was fitted to; others are mixtures of two outputs.

    The tasks here are the fitted ones, told by their contexts, so each is one output alone.
    """
    fitted_contexts = (0.05, 0.25, 1.0)

    tasks = interpolate(fitted_contexts, fitted_contexts)

    # `low` and `high` are the outputs that are mixed: the same one, so that there is no mixture.
    alone = [TaskMix(low=output, high=output, weight=0.0) for output in range(3)]
    assert tasks == tuple(alone)


@pytest.mark.parametrize(
    ("fitted_contexts", "context", "message"),
    [((0.0, 1.0), 1.1, "within"), ((0.0, 1.0), -0.1, "within"), ((1.0, 0.0), 0.5, "increase")],
)
def test_context_that_does_not_fit_is_refused(fitted_contexts, context, message):
    """A context outside the fitted ones, or fitted ones that do not increase."""
    with pytest.raises(ValueError, match=message):
        interpolate(fitted_contexts, (context,))


def test_tasks_between_outputs_are_linear():
    values, targets = make_evaluations(0)
    forest = fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=3)
    contexts_of_outputs = (0.05, 0.25, 1.0)
    contexts_of_tasks = (0.05, 0.1, 0.25, 0.7, 1.0)

    tasks = interpolate(contexts_of_outputs, contexts_of_tasks)

    interpolated = replace(forest, tasks=tasks)
    at_005, at_010, at_025, at_070, at_100 = (interpolated.predict(values, k) for k in range(5))
    # 0.1 is a quarter of the way from 0.05 to 0.25, and 0.7 is 0.6 of the way from 0.25 to 1.
    np.testing.assert_allclose(at_010, 0.75 * at_005 + 0.25 * at_025, rtol=1e-12)
    np.testing.assert_allclose(at_070, 0.4 * at_025 + 0.6 * at_100, rtol=1e-12)


def measure_error_of_first_output(output_weights: tuple[float, float]) -> float:
    """Cross-validated squared error of an output, next to which a second is pure noise."""
    values, targets = make_evaluations(0, 300)
    noise = np.random.default_rng(0).normal(size=300)
    first_and_noise = np.stack([targets[:, 0], noise], axis=1)
    recipe = ForestRecipe(trees=20, output_weights=output_weights, min_samples_leaf=5)
    fitter = partial(fit_forest, coding=CODING, recipe=recipe)
    fit = SurrogateFit.of_all_tasks(fitter, values, first_and_noise, seed=0, folds=3)
    predicted = fit.cross_validate()
    return float(np.mean((predicted[:, 0] - targets[:, 0]) ** 2))


def test_output_weights_favour_an_output():
    """The error of the first of two outputs is lower with a large weight than with a small one."""
    error_with_large_weight = measure_error_of_first_output((20.0, 1.0))
    error_with_small_weight = measure_error_of_first_output((1.0, 20.0))

    # Clearly lower: by at least a quarter.
    assert error_with_large_weight < 0.75 * error_with_small_weight


def test_every_output_needs_a_weight():
    values, targets = make_evaluations(0)
    of_two_outputs = targets[:, :2]
    one_weight = ForestRecipe(output_weights=(1,))

    with pytest.raises(ValueError, match="2 positive output weights"):
        fit_forest(values, of_two_outputs, coding=CODING, recipe=one_weight, seed=0)


@pytest.fixture
def noise_fit():
    """A forest fitted to pure noise, with leaves of single evaluations, and five folds of rows."""
    values, _ = make_evaluations(0, 60)
    noise = np.random.default_rng(0).normal(size=(60, 1))
    recipe = ForestRecipe(trees=20, min_samples_leaf=1)
    fitter = partial(fit_forest, coding=CODING, recipe=recipe)
    return SurrogateFit.of_all_tasks(fitter, values, noise, seed=0, folds=5)


def test_fitted_targets_are_reproduced(noise_fit):
    predicted = noise_fit.model.predict(noise_fit.values, 0)

    np.testing.assert_allclose(predicted, noise_fit.targets[:, 0], atol=1e-4)


def test_cross_validation_does_not_see_targets(noise_fit):
    """Noise is reproduced if it was fitted to, but cannot be predicted."""
    predicted = noise_fit.cross_validate()

    correlation = np.corrcoef(predicted[:, 0], noise_fit.targets[:, 0])[0, 1]
    # It would be 1 if the targets had been fitted to.
    assert correlation < 0.6


def test_cross_validation_reports_each_fold(noise_fit):
    reports = []

    noise_fit.cross_validate(lambda: reports.append("fold"))

    assert reports == ["fold"] * 5


def test_cross_validation_needs_two_folds():
    with pytest.raises(ValueError, match="folds"):
        row_folds(n=60, folds=1, seed=0)


def test_too_few_columns_are_refused():
    values, targets = make_evaluations(0, 50)
    forest = fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0)
    # The forest has three hyperparameters.
    two_columns = values[:, :2]

    with pytest.raises(ValueError, match="values need shape"):
        forest.predict(two_columns, 0)
    with pytest.raises(ValueError, match="a row needs 3"):
        forest.predict_one(two_columns[0], 0)


@pytest.mark.parametrize(
    "targets",
    [np.zeros(50), np.zeros((49, 3)), np.full((50, 1), np.nan)],
    ids=["one dimension", "one row too few", "not finite"],
)
def test_targets_that_do_not_fit_are_refused(targets):
    """Targets of 50 configurations are finite numbers, (50, number of outputs)."""
    values, _ = make_evaluations(0, 50)

    with pytest.raises(ValueError, match="targets must be finite"):
        fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0)


def fit_arrays() -> dict[str, np.ndarray]:
    """The arrays that a small forest is stored as."""
    values, targets = make_evaluations(0, 50)
    return fit_forest(values, targets, coding=CODING, recipe=SMALL, seed=0).to_arrays()


def swap_root_and_leaf(feature: np.ndarray) -> np.ndarray:
    """Make a leaf of the root, node 0, and of the first leaf a node that splits on feature 0."""
    swapped = feature.copy()
    first_leaf = np.flatnonzero(feature == LEAF)[0]
    swapped[0] = LEAF
    swapped[first_leaf] = 0
    return swapped


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("feature", swap_root_and_leaf),
        ("feature", lambda feature: feature[:-1]),
        ("feature", lambda feature: np.where(feature == 0, 4, feature)),  # there are four: 0 to 3
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
    """One array of a stored forest no longer fits the others."""
    arrays = fit_arrays()
    arrays[name] = damage(arrays[name])

    with pytest.raises(ArtifactError):
        SurrogateType.FOREST.from_arrays(arrays)


def test_quality_does_not_depend_on_memory_layout():
    """Sums of the same numbers in another order could have other last digits."""
    rng = np.random.default_rng(0)
    targets, predicted = rng.normal(size=(2, 1000, 20))
    values = np.zeros((1000, 3))
    fitter = partial(fit_forest, coding=CODING, recipe=SMALL)

    with_rows_contiguous = SurrogateFit.of_all_tasks(fitter, values, targets, seed=0)
    with_columns_contiguous = SurrogateFit.of_all_tasks(
        fitter, values, np.asfortranarray(targets), seed=0
    )

    # `truth` is what predictions are compared with: the targets.
    r2 = r_squared(with_rows_contiguous.truth(), predicted)
    assert r_squared(with_columns_contiguous.truth(), predicted).tolist() == r2.tolist()
