"""DREOrdered: its start, what counts as good, suggestions."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from by_hand import SQUARE
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.stats import kstest

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.methods.dre_ordered import DREOrdered, is_good
from hpobench_ordered.methods.simple_ordered import order_configurations


def finished(n: int, *, seed: int = 0, space: hbo.SearchSpace = SQUARE) -> hbo.Evaluations:
    rng = np.random.default_rng(seed)
    return minimised(f"{seed}", {}, space.decode(space.sample_unit(rng, n)), rng.random(n), space)


make = partial(by_hand.make, DREOrdered)


def bowl(config: Config) -> float:
    return math.hypot(config["x"] - 0.7, config["y"] - 0.4)


def optimise(method, loss=bowl, trials=25):
    return by_hand.optimise(method, loss, trials)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=40))
def test_good_is_what_lies_below_the_interpolated_quantile(losses):
    array = np.array(losses, dtype=float)
    assert_array_equal(is_good(array), array < np.quantile(array, 0.25))


FAILED = minimised("", {}, np.ones((1, 2)), np.array([math.nan]), SQUARE)
SEVEN = [finished(20, seed=s) for s in range(7)]


@pytest.mark.parametrize("history", [SEVEN, [finished(2, seed=1)], [], [FAILED]])
def test_first_the_ordered_configurations_then_random_ones(history):
    ordered = SQUARE.configs(order_configurations(history, count=5))
    rng = np.random.default_rng(0)
    drawn = [SQUARE.sample(rng) for _ in range(6 - len(ordered))]
    assert optimise(make(history), trials=6) == ordered + drawn


def test_six_results_are_too_few_to_tell_candidates_apart():
    method, unit = make([finished(20, seed=1)]), np.random.default_rng(0).random((50, 2))
    optimise(method, trials=6)
    assert len(set(method.make_scorer()(unit))) == 1
    optimise(method, trials=10)
    assert len(set(method.make_scorer()(unit))) > 1


def test_among_equally_probable_ones_it_chooses_at_random():
    chosen = optimise(make([finished(5)]), loss=lambda _: 1.0, trials=300)[6:]
    assert kstest([c["x"] for c in chosen], "uniform").pvalue > 1e-3
