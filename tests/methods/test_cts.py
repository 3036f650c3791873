"""cts: normal scores, suggestions, and degenerate histories."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from by_hand import SQUARE
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
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
    values = SQUARE.sample_unit(rng, n)
    bowl = ((values - OPTIMUM) ** 2).sum(axis=1)
    losses = scale * (bowl + noise * rng.standard_normal(n))
    return minimised(f"{seed}", {}, values, losses, SQUARE)


def make_history(tasks: int, n: int, *, noise: float = 0.0) -> list[Evaluations]:
    return [make_task(n, seed=seed, noise=noise) for seed in range(tasks)]


def suggest(method: CopulaThompsonSampling, trials: int = 25, *, loss: float = 0.0) -> list[Config]:
    """Suggestions, where every result is the same loss; the method does not learn from it."""
    return by_hand.optimise(method, lambda config: loss, trials=trials)


def distances_from_optimum(configs: list[Config]) -> FloatArray:
    return np.array([math.hypot(c["x"] - OPTIMUM, c["y"] - OPTIMUM) for c in configs])


# -- normal scores ---------------------------------------------------------------------------------


def score(losses: FloatArray, *, seed: int = 0) -> FloatArray:
    return compute_normal_scores(losses, np.random.default_rng(seed))


def test_scores_are_winsorised_normal_quantiles():
    """A loss that is above k of n others has the quantile k / n; 0 is raised to the paper's delta,
    so that its normal score is finite.
    """
    z = score(np.array([30.0, -1.0, 7.0, 10.0]))
    n = 4
    delta = 1 / (4 * n**0.25 * math.sqrt(math.pi * math.log(n)))
    assert_allclose(norm.cdf(z), [3 / n, delta, 1 / n, 2 / n])


@pytest.mark.parametrize("n", [1, 2, 3, 25, 1000, 100_000])
def test_scores_are_bounded(n):
    """As quantiles are kept in [delta, 1 - delta]: of 100 000 losses, scores are within 2.9."""
    z = score(np.arange(float(n)))
    assert np.isfinite(z).all()
    assert np.abs(z).max() < 3.5


LOSSES = st.lists(st.integers(-50, 50), min_size=1, max_size=40).map(
    lambda losses: np.array(losses, dtype=float)
)


@given(LOSSES)
def test_scale_of_losses_does_not_matter(losses):
    # A cube keeps the order.
    assert_array_equal(score(losses), score(1e6 * losses**3))


@given(LOSSES)
def test_scores_rank_losses(losses):
    z = score(losses)
    order = np.argsort(losses, kind="stable")
    loss_increases = np.diff(losses[order]) > 0
    # Of equal losses any may come first.
    assert (np.diff(z[order])[loss_increases] >= 0).all()


def test_ties_are_broken_uniformly():
    z = score(np.ones(2000))
    assert kstest(norm.cdf(z), "uniform").pvalue > 1e-3


def test_ties_are_broken_by_generator():
    assert not np.array_equal(score(np.ones(2000)), score(np.ones(2000), seed=1))


# -- suggestions -----------------------------------------------------------------------------------


def test_suggestions_are_near_good_configurations():
    # Five earlier tasks of 50 evaluations, with the same optimum.
    suggested = distances_from_optimum(suggest(make_method(make_history(5, 50))))
    random = [SQUARE.sample(np.random.default_rng(seed)) for seed in range(25)]
    assert np.median(suggested) < 0.5 * np.median(distances_from_optimum(random))


def test_scales_of_tasks_do_not_matter():
    history = [make_task(30, seed=seed) for seed in range(4)]
    # Powers of two, so that no rounding differs.
    scaled = [make_task(30, seed=seed, scale=4.0**seed) for seed in range(4)]
    assert suggest(make_method(scaled)) == suggest(make_method(history))


def test_results_of_this_task_do_not_matter():
    history = make_history(4, 30)
    # Every result fails, or every one is 0.
    assert suggest(make_method(history), loss=math.nan) == suggest(make_method(history))


def test_noise_widens_suggestions():
    exact = distances_from_optimum(suggest(make_method(make_history(8, 60))))
    noisy = distances_from_optimum(suggest(make_method(make_history(8, 60, noise=0.5))))
    assert np.median(noisy) > 2 * np.median(exact)


def test_standard_deviation_is_of_unseen_evaluations():
    """The losses are mostly noise, so that a model cannot predict their normal scores, whose
    standard deviation is 1; on the evaluations that it is fitted to, its errors would be smaller.
    """
    method = make_method(make_history(4, 500, noise=100.0))
    assert method._sd > 0.9


# -- histories -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10, 11, 25])
def test_few_evaluations_suffice(n):
    """After one task of n evaluations a model is fitted, and its standard deviation estimated.

    From 11 on, a tenth is held out for that.
    """
    method = make_method([make_task(n)])
    configs = suggest(method)
    assert len({tuple(config.items()) for config in configs}) == 25
    # Suggestions that were random because no model could be fitted.
    assert method.fallbacks == 0
    assert math.isfinite(method._sd)


FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), SQUARE)


@pytest.mark.parametrize("history", [[], [FAILED]])
def test_suggestions_are_random_without_finite_loss(history):
    """There is no earlier task, or all its evaluations failed."""
    method = make_method(history)
    configs = suggest(method, 5)
    assert len({tuple(config.items()) for config in configs}) == 5
    # All five were random for want of a model.
    assert method.fallbacks == 5


def test_limited_subset_of_history_suffices(monkeypatch):
    monkeypatch.setattr("hpobench_ordered.methods.cts.MAX_EVALUATIONS", 100)
    # Of 1000 evaluations of five tasks, 100 are used; random points are at 0.56.
    suggested = distances_from_optimum(suggest(make_method(make_history(5, 200))))
    assert np.median(suggested) < 0.2
