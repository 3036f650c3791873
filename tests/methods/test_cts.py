"""cts: normal scores, suggestions, and degenerate histories."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from by_hand import UNIT_SQUARE
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import kstest, norm

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods.cts import CopulaThompsonSampling, compute_normal_scores

OPTIMUM = 0.2
"""Both coordinates of the optimum of all tasks."""

make_method = partial(by_hand.make_method, CopulaThompsonSampling)


def make_task(n: int, *, seed: int = 0, scale: float = 1.0, noise: float = 0.0) -> Evaluations:
    """Random evaluations of a bowl with both coordinates of its optimum at `OPTIMUM`.

    Losses have normal noise with a standard deviation, `noise`, and are multiplied by `scale`.
    """
    rng = np.random.default_rng(seed)
    values = UNIT_SQUARE.sample_unit(rng, n)
    bowl = ((values - OPTIMUM) ** 2).sum(axis=1)
    losses = scale * (bowl + noise * rng.standard_normal(n))
    return minimised(f"task {seed}", {}, values, losses, UNIT_SQUARE)


def make_history(tasks: int, n: int, *, noise: float = 0.0) -> list[Evaluations]:
    return [make_task(n, seed=seed, noise=noise) for seed in range(tasks)]


def suggest(method: CopulaThompsonSampling, trials: int = 25, *, loss: float = 0.0) -> list[Config]:
    """Suggestions of a method that is told the same loss of each of them."""
    return by_hand.optimise(method, lambda config: loss, trials=trials)


def distances_from_optimum(configs: list[Config]) -> FloatArray:
    return np.array([math.hypot(c["x"] - OPTIMUM, c["y"] - OPTIMUM) for c in configs])


# -- normal scores ---------------------------------------------------------------------------------


def score(losses: FloatArray, *, seed: int = 0) -> FloatArray:
    return compute_normal_scores(losses, np.random.default_rng(seed))


def test_scores_are_winsorised_normal_quantiles():
    """The quantile of a loss is the share of losses below it.

    The lowest loss gets `delta` instead of 0, by the paper's formula, so that its normal score is
    finite.
    """
    scores = score(np.array([30.0, -1.0, 7.0, 10.0]))
    n = 4  # losses
    delta = 1 / (4 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    quantiles = norm.cdf(scores)
    assert_allclose(quantiles, [3 / n, delta, 1 / n, 2 / n])


LOSSES = st.lists(st.integers(-50, 50), min_size=1, max_size=40).map(
    lambda losses: np.array(losses, dtype=float)
)


@given(LOSSES)
def test_scores_rank_losses(losses):
    """A higher loss has no lower score; of equal losses any may have the higher one."""
    scores = score(losses)
    is_lower_loss = losses[:, None] < losses
    is_higher_score = scores[:, None] > scores
    assert not (is_lower_loss & is_higher_score).any()


def test_ties_are_broken_uniformly():
    z = score(np.ones(2000))
    assert kstest(norm.cdf(z), "uniform").pvalue > 1e-3


# -- suggestions -----------------------------------------------------------------------------------


def test_suggestions_are_near_good_configurations():
    """Their distance from the common optimum is less than half of that of random ones."""
    method = make_method(make_history(tasks=5, n=50))
    suggested = suggest(method)
    random = [UNIT_SQUARE.sample(np.random.default_rng(seed)) for seed in range(25)]
    median_distance = np.median(distances_from_optimum(suggested))
    median_distance_of_random = np.median(distances_from_optimum(random))
    assert median_distance < 0.5 * median_distance_of_random


def test_scales_of_tasks_do_not_matter():
    """Multiplying all losses of a task changes no suggestion, as only their ranks count."""
    history = [make_task(30, seed=seed) for seed in range(4)]
    # Powers of two, so that no rounding differs.
    scaled = [make_task(30, seed=seed, scale=4.0**seed) for seed in range(4)]
    assert suggest(make_method(scaled)) == suggest(make_method(history))


def test_results_of_this_task_do_not_matter():
    """Suggestions are the same whether all current evaluations fail or all have the loss 0."""
    history = make_history(4, 30)
    after_failures = suggest(make_method(history), loss=math.nan)
    after_zeros = suggest(make_method(history), loss=0.0)
    assert after_failures == after_zeros


def test_standard_deviation_is_of_unseen_evaluations():
    """The standard deviation of suggestions is that of the model's errors on other evaluations.

    Here losses are mostly noise, so that no model predicts their normal scores, whose standard
    deviation is 1. On the evaluations that the model is fitted to, its errors would be smaller.
    """
    method = make_method(make_history(4, 500, noise=100.0))
    assert method._sd > 0.9


# -- histories -------------------------------------------------------------------------------------


FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), UNIT_SQUARE)


@pytest.mark.parametrize("history", [[], [FAILED]])
def test_suggestions_are_random_without_finite_loss(history):
    """Suggestions are random if there is no earlier task, or if all earlier evaluations failed."""
    method = make_method(history)
    configs = suggest(method, 5)
    assert len({tuple(config.items()) for config in configs}) == 5
    # All five were random for want of a model.
    assert method.fallbacks == 5
