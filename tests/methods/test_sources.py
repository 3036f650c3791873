"""What methods share that fit a process to every earlier task."""

import math

import numpy as np
import pytest
from bowls import beside_bo, bowl, played, source
from by_hand import SQUARE, make
from histories import minimised

from hpobench_ordered.methods._sources import MAX_PER_TASK, FromSources, find_ordered_pairs
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.fsbo import FSBO
from hpobench_ordered.methods.hyperbo import HyperBO, in_units_of
from hpobench_ordered.methods.rgpe import RGPE
from hpobench_ordered.methods.stacked_gp import StackedGP
from hpobench_ordered.methods.tst import TAFR, TSTR

PLACES = (0.2, 0.3, 0.4)
ALL: list[type[FromSources]] = [RGPE, StackedGP, TSTR, TAFR, HyperBO]
EVERY = pytest.mark.parametrize("kind", ALL)
FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), SQUARE)


@EVERY
@pytest.mark.parametrize("history", [[], [FAILED]])
def test_without_a_finite_history_it_is_bo(kind, history):
    bo = make(BayesianOptimisation)
    np.testing.assert_array_equal(played(make(kind, history), 0.3, 6), played(bo, 0.3, 6))


@EVERY
def test_the_first_suggestion_is_near_the_optimum_of_the_earlier_tasks(kind):
    first = played(make(kind, [source(0.3)] * 2), 0.3, 1)
    assert bowl(first, 0.3)[0] < 0.02


@EVERY
def test_levels_and_scales_of_tasks_change_nothing(kind):
    plain = played(make(kind, [source(p) for p in PLACES]), 0.5, 7)
    changed = [source(p, factor=f, offset=8 * f) for p, f in zip(PLACES, (4, 64, 0.5), strict=True)]
    np.testing.assert_allclose(played(make(kind, changed), 0.5, 7, factor=32.0), plain, atol=1e-6)


@EVERY
def test_no_more_than_so_many_evaluations_of_a_task_are_learned_from(kind):
    method = make(kind, [source(0.3, trials=1000), source(0.2, trials=7)])
    assert [len(y) for _, y in method.sources] == [min(kind.max_per_task, MAX_PER_TASK), 7]


@EVERY
def test_a_smooth_optimum_is_found(kind):
    assert bowl(played(make(kind, [source(p) for p in PLACES]), 0.5, 15), 0.5).min() < 2e-3


@pytest.mark.parametrize(
    ("kind", "count"), [(StackedGP, 1), (StackedGP, 5), (HyperBO, 5), (FSBO, 3)]
)
def test_what_misleads_is_unlearned(kind, count):
    history = [source(0.4 + 0.001 * k, factor=-1.0) for k in range(count)]
    _, ours, of_bo = beside_bo(kind, history, trials=20)
    assert ours < max(20 * of_bo, 2e-3)


def test_what_was_fitted_to_earlier_tasks_is_fitted_once():
    method = make(RGPE, [source(p) for p in PLACES])
    played(method, 0.5, 2)
    before = method.processes
    played(method, 0.5, 3)
    assert all(a is b for a, b in zip(method.processes, before, strict=True))


def test_equal_losses_are_no_pair():
    pairs = set(zip(*find_ordered_pairs(np.array([2.0, 1.0, 2.0])), strict=True))
    assert pairs == {(1, 0), (1, 2)}


def test_losses_get_the_mean_and_the_variance_that_are_expected():
    rng = np.random.default_rng(0)
    mean, y = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.5, -1.5])
    L = np.array([[1.0, 0.0, 0.0], [0.8, 0.3, 0.0], [-0.2, 0.5, 0.7]])
    y = (y - y.mean()) / y.std()
    drawn = mean + rng.standard_normal((200_000, 3)) @ L.T
    units = in_units_of(mean, L @ L.T, y)
    np.testing.assert_allclose(units.mean(), mean.mean())
    np.testing.assert_allclose(units.var(), drawn.var(axis=1).mean(), rtol=1e-2)
    np.testing.assert_allclose(np.corrcoef(units, y)[0, 1], 1.0)
