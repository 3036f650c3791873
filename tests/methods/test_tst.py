"""tst-r and taf-r: distances, weights, surrogate and acquisition by the papers' formulas."""

from itertools import permutations

import numpy as np
import pytest
from bowls import make_bowl_task, suggest_on_bowl
from by_hand import make_method
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.tst import (
    BANDWIDTH,
    TAFR,
    TSTR,
    compute_share_of_misranked_pairs,
    evaluate_epanechnikov_kernel,
)

both_methods = pytest.mark.parametrize("kind", [TSTR, TAFR])
DISSIMILAR_TASKS = [
    make_bowl_task(place=0.4, factor=-1.0),
    make_bowl_task(place=0.95),
    make_bowl_task(place=0.05),
]
"""Tasks whose rankings are of no use for the bowl at 0.4."""


# -- distances and kernel --------------------------------------------------------------------------

RNG = np.random.default_rng(0)
PREDICTED_MEAN, OBSERVED_LOSSES = RNG.standard_normal((2, 11))
"""Mean of an earlier task's process at eleven evaluations of the current task, and their losses."""


def test_distance_is_papers_double_sum():
    """The share of pairs of eleven evaluations that the mean orders unlike the losses."""
    pairs = list(permutations(range(11), 2))
    misranked_pairs = 0
    for j, k in pairs:
        predicted_order = PREDICTED_MEAN[j] > PREDICTED_MEAN[k]
        observed_order = OBSERVED_LOSSES[j] > OBSERVED_LOSSES[k]
        misranked_pairs += predicted_order != observed_order

    share = compute_share_of_misranked_pairs(PREDICTED_MEAN, OBSERVED_LOSSES)
    assert share == misranked_pairs / len(pairs)


def test_epanechnikov_kernel():
    """It is 0.75 (1 - t^2) for distances t up to 1, and 0 beyond."""
    weights = evaluate_epanechnikov_kernel(np.array([0.0, 0.5, 1.0, 3.0]))
    assert_array_equal(weights, [0.75, 0.75 * (1 - 0.5**2), 0.0, 0.0])


# -- weights ---------------------------------------------------------------------------------------


def compute_weights(method: TSTR) -> FloatArray:
    """Weights of the earlier tasks and, last, of the current one."""
    X, y = method.observations()
    return method.compute_weights(X, y, method.fit_target(X, y))


def make_started_method(kind: type[TSTR]) -> TSTR:
    """A method after ten trials on the bowl at 0.4, with five earlier tasks.

    They are the same task, a similar one of larger losses, and three dissimilar ones.
    """
    same = make_bowl_task(place=0.4)
    similar = make_bowl_task(place=0.41, factor=100.0)
    method = make_method(kind, [same, similar, *DISSIMILAR_TASKS])
    suggest_on_bowl(method, place=0.4, trials=10)
    return method


@both_methods
def test_weights_are_kernel_of_distances(kind):
    """The weight of a task is the Epanechnikov kernel of its distance, in units of the bandwidth.

    The distance of an earlier task is the share of pairs that its process ranks unlike the losses.
    """
    method = make_started_method(kind)
    X, losses = method.observations()
    distances = []
    for process in method.processes:
        mean, _sd = process.predict(X)
        distances.append(compute_share_of_misranked_pairs(mean, losses))
    distance_of_current_task = 0.0  # from itself

    t = np.array([*distances, distance_of_current_task]) / BANDWIDTH
    expected = 0.75 * np.maximum(1.0 - t**2, 0.0)
    assert_allclose(compute_weights(method), expected)


@both_methods
def test_only_similar_tasks_have_weight(kind):
    """Of five earlier tasks, the first is like the current one, the second similar."""
    weights = compute_weights(make_started_method(kind))
    of_same, of_similar, *of_dissimilar, _of_current = weights
    highest_weight = 0.75  # of a task at distance 0
    assert of_same > highest_weight - 0.05
    assert of_similar > 0.0
    assert of_dissimilar == [0.0, 0.0, 0.0]


# -- surrogate and acquisition ---------------------------------------------------------------------


def make_fitted_tst() -> TSTR:
    """tst-r with two earlier tasks, after six trials, whose processes and weights are fitted."""
    method = make_method(TSTR, [make_bowl_task(place=0.4), make_bowl_task(place=0.41)])
    suggest_on_bowl(method, place=0.4, trials=6)
    method.ask()
    return method


def test_surrogate_has_weighted_mean():
    """The mean over the processes of all tasks, by their weights."""
    method = make_fitted_tst()
    X = np.random.default_rng(0).random((20, 2))
    means = [process.predict(X)[0] for process in method.used_processes]
    mean, _ = method._predict(X)
    assert_allclose(mean, np.average(means, axis=0, weights=method.used_weights))


def test_surrogate_has_targets_deviation():
    """The target is the current task, whose process comes last."""
    method = make_fitted_tst()
    X = np.random.default_rng(0).random((20, 2))
    _, sd = method._predict(X)
    _, sd_of_target = method.used_processes[-1].predict(X)
    assert_array_equal(sd, sd_of_target)


def expected_improvement(mean: FloatArray, sd: FloatArray, best: float) -> FloatArray:
    """Expected improvement on the best loss of normal losses, in closed form."""
    z = (best - mean) / sd
    return sd * (z * norm.cdf(z) + norm.pdf(z))


def compute_improvements(method: TAFR, candidates: FloatArray) -> FloatArray:
    """Improvement of each candidate on each task, the current one last.

    On an earlier task it is how far the mean of its process lies below the lowest mean at an
    evaluated configuration, on the current task the expected improvement on the lowest loss.
    """
    *processes_of_earlier_tasks, process_of_current = method.used_processes
    evaluated, losses = method.observations()
    improvements = []
    for process in processes_of_earlier_tasks:
        mean_of_evaluated, _sd = process.predict(evaluated)
        mean_of_candidates, _sd = process.predict(candidates)
        improvements.append(np.maximum(mean_of_evaluated.min() - mean_of_candidates, 0.0))
    mean, sd = process_of_current.predict(candidates)
    improvements.append(expected_improvement(mean, sd, losses.min()))
    return np.array(improvements)


def test_acquisition_is_weighted_mean_improvement():
    """The score is the logarithm of a weighted sum of the improvements on all tasks."""
    method = make_method(TAFR, [make_bowl_task(place=0.4), make_bowl_task(place=0.45)])
    suggest_on_bowl(method, place=0.4, trials=5)
    score = method.make_scorer()
    candidates = np.random.default_rng(0).random((200, 2))

    improvements = compute_improvements(method, candidates)
    expected = method.used_weights @ improvements

    is_comparable = expected > 1e-9  # below, the formula without logarithms loses its digits
    assert is_comparable.sum() > 50  # of 200 candidates
    actual = np.exp(score(candidates))
    assert_allclose(actual[is_comparable], expected[is_comparable], rtol=1e-6)
