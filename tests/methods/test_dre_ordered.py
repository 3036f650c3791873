"""dre-ordered: its start, which evaluations count as good, and suggestions."""

import math

import by_hand
import numpy as np
import pytest
from by_hand import UNIT_SQUARE, optimise
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import kstest

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.methods.dre_ordered import MIN_EVALUATIONS, DREOrdered, is_good
from hpobench_ordered.methods.simple_ordered import TRANSFERRED, order_configurations


def make_task(n: int, *, seed: int = 0) -> hbo.Evaluations:
    """Evaluations of n random configurations with random losses."""
    rng = np.random.default_rng(seed)
    values = UNIT_SQUARE.sample_unit(rng, n)
    losses = rng.random(n)
    return minimised(f"task {seed}", {}, values, losses, UNIT_SQUARE)


def make_method(history: list[hbo.Evaluations]) -> DREOrdered:
    return by_hand.make_method(DREOrdered, history)


def bowl(config: Config) -> float:
    return math.hypot(config["x"] - 0.7, config["y"] - 0.4)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=40))
def test_good_is_below_interpolated_quantile(losses):
    """A loss is good if it is below the first quartile, which numpy interpolates between losses."""
    losses = np.array(losses, dtype=float)
    first_quartile = np.quantile(losses, 0.25)
    assert_array_equal(is_good(losses), losses < first_quartile)


FAILED = minimised("", {}, np.ones((1, 2)), np.array([math.nan]), UNIT_SQUARE)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([make_task(20, seed=seed) for seed in range(7)], id="seven tasks"),
        pytest.param([make_task(2, seed=1)], id="two evaluations"),
        pytest.param([], id="none"),
        pytest.param([FAILED], id="failed"),
    ],
)
def test_random_configurations_follow_ordered_ones(history):
    """The first trials are the best configurations of earlier tasks, as `simple-ordered` has them.

    Random ones follow until there are enough evaluations for a model. The history has several
    tasks, few evaluations, failures alone, or nothing.
    """
    ordered = UNIT_SQUARE.configs(order_configurations(history, count=TRANSFERRED))
    rng = np.random.default_rng(0)
    random = [UNIT_SQUARE.sample(rng) for _ in range(MIN_EVALUATIONS - len(ordered))]
    configs = optimise(make_method(history), bowl, trials=MIN_EVALUATIONS)
    assert configs == [*ordered, *random]


@pytest.mark.parametrize(
    ("evaluations", "is_split"),
    [
        pytest.param(6, False, id="too few"),
        pytest.param(16, True, id="enough"),
    ],
)
def test_trees_are_split_with_enough_evaluations(evaluations, is_split):
    """The score of a candidate is the sum of trees, which are equal everywhere without a split."""
    method = make_method([make_task(20, seed=1)])
    optimise(method, bowl, trials=evaluations)
    candidates = np.random.default_rng(0).random((50, 2))
    scores = method.make_scorer()(candidates)
    scores_differ = len(set(scores)) > 1
    assert scores_differ == is_split


def test_equally_probable_candidates_are_chosen_uniformly():
    """All losses are equal, so that the model prefers no candidate."""
    configs = optimise(make_method([make_task(5)]), lambda config: 1.0, trials=300)
    suggested_by_model = configs[MIN_EVALUATIONS:]
    x = [config["x"] for config in suggested_by_model]
    assert kstest(x, "uniform").pvalue > 1e-3
