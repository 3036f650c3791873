"""Forests: fitted as by scikit-learn, repeatable, interpolated between tasks, and stored."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.card import r_squared
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.fitting import ForestRecipe, _build_ensemble, fit_forest
from hpobench_ordered.surrogates.forest import LEAF, ForestSurrogate, TaskMix, find_task_mixes
from hpobench_ordered.surrogates.pipeline import SurrogateFit

# Of configurations by `make_evaluations`: a number on a log scale, a number, and a choice.
CODING = Coding(
    (
        Feature(FeatureKind.LOG, 0),
        Feature(FeatureKind.IDENTITY, 1, inactive=0.5),
        Feature(FeatureKind.ONE_HOT, 2, 0),
        Feature(FeatureKind.ONE_HOT, 2, 1),
    )
)
SMALL_RECIPE = ForestRecipe(trees=7)
"""A forest of few trees, where its quality does not matter."""
OUTPUTS = 3
"""Targets of a configuration by `make_evaluations`; a forest predicts each of them."""


def make_evaluations(seed: int, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Random configurations, (n, 3), and made-up targets of three outputs, (n, 3).

    A configuration is a number on a log scale, a number, and a choice, 0 or 1. The second number is
    inactive, NaN, with choice 0. The third output is constant.
    """
    rng = np.random.default_rng(seed)
    number_on_log_scale = np.exp(rng.uniform(-9, 0, n))
    number = rng.random(n)
    choice = rng.integers(0, 2, n).astype(float)
    number[choice == 0] = np.nan
    values = np.stack([number_on_log_scale, number, choice], axis=1)

    number_or_zero = np.nan_to_num(number)
    first_output = np.sin(np.log(number_on_log_scale)) + number_or_zero
    second_output = 100 * first_output**2 + number_or_zero
    third_output = np.full(n, 3.0)
    return values, np.stack([first_output, second_output, third_output], axis=1)


class ScikitLearnForest:
    """The same forest by scikit-learn, which is fitted to standardised targets."""

    def __init__(
        self, values: np.ndarray, targets: np.ndarray, recipe: ForestRecipe, seed: int
    ) -> None:
        """Fit the forest; constant targets, without a deviation, are only centred."""
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
    """A forest predicts what scikit-learn's does, for fitted configurations and for others."""
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
    """A number at a tree's threshold goes to the same side, though our thresholds are float32.

    Configurations are made whose second hyperparameter, a number from 0 to 1, is at thresholds.
    """
    values, targets = make_evaluations(seed, 80)
    recipe = ForestRecipe(trees=5, min_samples_leaf=leaf_size)
    reference = ScikitLearnForest(values, targets, recipe, seed)
    trees = [estimator.tree_ for estimator in reference.ensemble.estimators_]
    thresholds = np.concatenate([tree.threshold for tree in trees])
    is_between_0_and_1 = (thresholds > 0) & (thresholds < 1)
    some_thresholds = thresholds[is_between_0_and_1][:200]
    numbers = np.append(some_thresholds, 0.5)  # one more, as there may be none
    numbers_on_log_scale = np.full(len(numbers), 0.1)
    choices = np.ones(len(numbers))
    at_thresholds = np.stack([numbers_on_log_scale, numbers, choices], axis=1)

    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed)

    assert_equal_up_to_half_a_step(forest, reference, at_thresholds)


def fit_bytes(*, seed: int, workers: int = 1) -> dict[str, bytes]:
    """Fit a forest to the same evaluations, and return the bytes of its arrays, by name."""
    values, targets = make_evaluations(0)
    recipe = ForestRecipe(trees=9)
    forest = fit_forest(values, targets, coding=CODING, recipe=recipe, seed=seed, workers=workers)
    return {name: array.tobytes() for name, array in forest.to_arrays().items()}


def test_workers_fit_the_same_bytes():
    assert fit_bytes(seed=5, workers=2) == fit_bytes(seed=5, workers=1)


def test_fitted_tasks_need_no_mix():
    """A forest has an output for each task that it was fitted to; other tasks mix two outputs.

    The tasks here are the fitted ones, told by their contexts. Each "mixes" one output with itself.
    """
    fitted_contexts = (0.05, 0.25, 1.0)

    tasks = find_task_mixes(fitted_contexts, fitted_contexts)

    assert tasks == (
        TaskMix(low=0, high=0, weight=0.0),
        TaskMix(low=1, high=1, weight=0.0),
        TaskMix(low=2, high=2, weight=0.0),
    )


@pytest.mark.parametrize(
    ("fitted_contexts", "context", "message"),
    [((0.0, 1.0), 1.1, "within"), ((0.0, 1.0), -0.1, "within"), ((1.0, 0.0), 0.5, "increase")],
)
def test_context_that_does_not_fit_is_refused(fitted_contexts, context, message):
    """A context outside the range of the fitted ones is refused, or if these do not increase."""
    with pytest.raises(ValueError, match=message):
        find_task_mixes(fitted_contexts, (context,))


def test_tasks_between_outputs_are_linear():
    """Values at a context between two fitted ones are interpolated between theirs.

    0.1 is a quarter of the way from 0.05 to 0.25, and 0.7 is 0.6 of the way from 0.25 to 1.
    """
    values, targets = make_evaluations(0)
    forest = fit_forest(values, targets, coding=CODING, recipe=SMALL_RECIPE, seed=3)
    contexts = (0.05, 0.1, 0.25, 0.7, 1.0)

    tasks = find_task_mixes((0.05, 0.25, 1.0), contexts)

    interpolated = replace(forest, tasks=tasks)
    at = {context: interpolated.predict(values, task) for task, context in enumerate(contexts)}
    np.testing.assert_allclose(at[0.1], 0.75 * at[0.05] + 0.25 * at[0.25], rtol=1e-12)
    np.testing.assert_allclose(at[0.7], 0.4 * at[0.25] + 0.6 * at[1.0], rtol=1e-12)


def measure_error_of_first_output(output_weights: tuple[float, float]) -> float:
    """Measure how badly a forest of two outputs, the second of pure noise, predicts the first.

    It is the mean squared error on configurations that the forest was not fitted to.
    """
    values, targets = make_evaluations(0, 300)
    first_output = targets[:, 0]
    noise = np.random.default_rng(0).normal(size=300)
    recipe = ForestRecipe(trees=20, output_weights=output_weights, min_samples_leaf=5)
    fit_with_weights = partial(fit_forest, coding=CODING, recipe=recipe)
    fit = SurrogateFit.of_all_tasks(
        fit_with_weights, values, np.stack([first_output, noise], axis=1), seed=0, folds=3
    )
    predicted = fit.cross_validate()
    return float(np.mean((predicted[:, 0] - first_output) ** 2))


def test_output_weights_favour_an_output():
    """An output with a larger weight than the other one has a clearly lower error."""
    error_with_large_weight = measure_error_of_first_output((20.0, 1.0))
    error_with_small_weight = measure_error_of_first_output((1.0, 20.0))

    # Lower by at least a quarter.
    assert error_with_large_weight < 0.75 * error_with_small_weight


@pytest.fixture
def noise_fit():
    """A forest fitted to pure noise, to be cross-validated in five folds of the evaluations.

    It has leaves of single evaluations, so that it can reproduce what it was fitted to.
    """
    values, _ = make_evaluations(0, 60)
    noise = np.random.default_rng(0).normal(size=(60, 1))
    recipe = ForestRecipe(trees=20, min_samples_leaf=1)
    fit_to_noise = partial(fit_forest, coding=CODING, recipe=recipe)
    return SurrogateFit.of_all_tasks(fit_to_noise, values, noise, seed=0, folds=5)


def test_fitted_targets_are_reproduced(noise_fit):
    """With a leaf for every evaluation, a forest reproduces even noise, to a few digits."""
    predicted = noise_fit.model.predict(noise_fit.values, 0)

    np.testing.assert_allclose(predicted, noise_fit.targets[:, 0], atol=1e-4)


def test_cross_validation_does_not_see_targets(noise_fit):
    """Cross-validated predictions of noise hardly correlate with it.

    Noise cannot be predicted from other evaluations. If the forest had been fitted to the same
    ones, the correlation would be about 1.
    """
    predicted = noise_fit.cross_validate()

    correlation = pearsonr(predicted[:, 0], noise_fit.targets[:, 0]).statistic
    assert correlation < 0.6


def fit_arrays() -> dict[str, np.ndarray]:
    """The arrays that a small forest is stored as."""
    values, targets = make_evaluations(0, 50)
    return fit_forest(values, targets, coding=CODING, recipe=SMALL_RECIPE, seed=0).to_arrays()


def swap_root_and_leaf(feature: np.ndarray) -> np.ndarray:
    """Damage the features that nodes of trees split on, where `LEAF` stands for no split.

    The root, node 0, becomes a leaf, and the first leaf a node that splits on feature 0.
    """
    swapped = feature.copy()
    first_leaf = np.flatnonzero(feature == LEAF)[0]
    swapped[0] = LEAF
    swapped[first_leaf] = 0
    return swapped


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("feature", swap_root_and_leaf),
        ("feature", lambda feature: feature[:-1]),  # shorter than `threshold`
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
    """A stored forest is not read if one array, by its name, no longer fits the others."""
    arrays = fit_arrays()
    arrays[name] = damage(arrays[name])

    with pytest.raises(ArtifactError):
        SurrogateType.FOREST.from_arrays(arrays)


def test_quality_does_not_depend_on_memory_layout():
    """Whether rows or columns of targets are contiguous, R2 is the same to the last digit.

    Sums of the same numbers in another order could have other last digits.
    """
    rng = np.random.default_rng(0)
    targets, predicted = rng.normal(size=(2, 1000, 20))
    values = np.zeros((1000, 3))
    fit_small_forest = partial(fit_forest, coding=CODING, recipe=SMALL_RECIPE)

    r2_by_layout = []
    for make_contiguous in (np.ascontiguousarray, np.asfortranarray):
        fit = SurrogateFit.of_all_tasks(fit_small_forest, values, make_contiguous(targets), seed=0)
        true_targets = fit.compute_truth()
        r2_by_layout.append(r_squared(true_targets, predicted).tolist())

    with_contiguous_rows, with_contiguous_columns = r2_by_layout
    assert with_contiguous_columns == with_contiguous_rows
