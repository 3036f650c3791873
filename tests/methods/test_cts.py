"""Copula Thompson sampling: normal scores, what it learns from, degenerate histories."""

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
from hpobench_ordered.methods import cts
from hpobench_ordered.space import SearchSpace


def finished(
    n: int, *, seed: int = 0, scale: float = 1.0, noise: float = 0.0, space: SearchSpace = SQUARE
) -> Evaluations:
    """A task with its optimum at 0.2, randomly evaluated."""
    rng = np.random.default_rng(seed)
    unit = space.sample_unit(rng, n)
    losses = scale * (((unit - 0.2) ** 2).sum(axis=1) + noise * rng.standard_normal(n))
    return minimised(f"{seed}", {}, space.decode(unit), losses, space)


make = partial(by_hand.make, cts.CopulaThompsonSampling)


def suggestions(method, trials=25, *, loss=0.0):
    return by_hand.optimise(method, lambda config: loss, trials)


def distances(configs: list[Config]) -> FloatArray:
    return np.array([math.hypot(c["x"] - 0.2, c["y"] - 0.2) for c in configs])


# -- normal scores ---------------------------------------------------------------------------------


def test_normal_scores_by_hand():
    delta = 1 / (4 * 4**0.25 * math.sqrt(math.pi * math.log(4)))
    z = cts.compute_normal_scores(np.array([30.0, -1.0, 7.0, 10.0]), np.random.default_rng(0))
    assert_allclose(norm.cdf(z), [0.75, delta, 0.25, 0.5])
    assert 0 < delta < 0.25


@pytest.mark.parametrize("n", [1, 2, 3, 25, 1000, 100_000])
def test_scores_are_finite_and_winsorised(n):
    z = cts.compute_normal_scores(np.arange(float(n)), np.random.default_rng(0))
    assert np.isfinite(z).all()
    assert np.abs(z).max() < 3.5
    assert (np.diff(z) >= 0).all()


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40))
def test_scores_rank_the_losses_whatever_their_scale(losses):
    array = np.array(losses, dtype=float)
    z = cts.compute_normal_scores(array, np.random.default_rng(0))
    assert_array_equal(z, cts.compute_normal_scores(1e6 * array**3, np.random.default_rng(0)))
    order = np.argsort(array, kind="stable")
    different = np.diff(array[order]) > 0
    assert (np.diff(z[order])[different] >= 0).all()


def test_equal_losses_get_ranks_by_chance():
    z = cts.compute_normal_scores(np.ones(2000), np.random.default_rng(0))
    assert kstest(norm.cdf(z), "uniform").pvalue > 1e-3
    assert not np.array_equal(z, cts.compute_normal_scores(np.ones(2000), np.random.default_rng(1)))


# -- suggestions -----------------------------------------------------------------------------------


def test_suggestions_gather_where_previous_tasks_are_good():
    near = distances(suggestions(make([finished(50, seed=s) for s in range(5)])))
    far = distances([SQUARE.sample(np.random.default_rng(s)) for s in range(25)])
    assert np.median(near) < 0.5 * np.median(far)


def test_scales_of_tasks_and_results_of_this_task_do_not_matter():
    history = [finished(30, seed=s) for s in range(4)]
    scaled = [finished(30, seed=s, scale=4.0**s) for s in range(4)]
    expected = suggestions(make(history))
    assert suggestions(make(scaled)) == expected
    assert suggestions(make(history), loss=math.nan) == expected


def test_more_noise_means_wider_suggestions():
    def width(noise: float) -> float:
        history = [finished(60, seed=s, noise=noise) for s in range(8)]
        return float(np.median(distances(suggestions(make(history)))))

    assert width(0.5) > 2 * width(0.0)


def test_standard_deviation_is_that_of_unseen_evaluations():
    history = [finished(500, seed=s, noise=100.0) for s in range(4)]
    assert make(history)._sd > 0.9  # nothing to learn: z varies as a standard normal, or more


# -- histories -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10, 11, 25])
def test_few_evaluations(n):
    method = make([finished(n)])
    assert len({tuple(c.items()) for c in suggestions(method)}) == 25
    assert method.fallbacks == 0
    assert math.isfinite(method._sd)


@pytest.mark.parametrize(
    "history", [[], [minimised("", {}, finished(3).values, np.full(3, math.nan), SQUARE)]]
)
def test_without_a_finite_loss_suggestions_are_random(history):
    method = make(history)
    assert len({tuple(c.items()) for c in suggestions(method, 5)}) == 5
    assert method.fallbacks == 5


def test_only_so_many_evaluations_are_fitted(monkeypatch):
    monkeypatch.setattr("hpobench_ordered.methods.cts.MAX_EVALUATIONS", 100)
    near = distances(suggestions(make([finished(200, seed=s) for s in range(5)])))
    assert np.median(near) < 0.2
