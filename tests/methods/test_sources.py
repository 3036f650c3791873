"""What all methods share that fit a process to every earlier task."""

import math

import numpy as np
import pytest
from bowls import bowl, make_bowl_task, play_beside_bo, play_on_bowl
from by_hand import SQUARE, make
from histories import minimised

from hpobench_ordered.methods._sources import MAX_PER_TASK, FromSources, find_ordered_pairs
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.fsbo import FSBO
from hpobench_ordered.methods.hyperbo import HyperBO
from hpobench_ordered.methods.rgpe import RGPE
from hpobench_ordered.methods.stacked_gp import StackedGP
from hpobench_ordered.methods.tst import TAFR, TSTR

PLACES = (0.2, 0.3, 0.4)
"""Optima of three earlier tasks."""
FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), SQUARE)

METHODS: list[type[FromSources]] = [RGPE, StackedGP, TSTR, TAFR, HyperBO]
each_method = pytest.mark.parametrize("kind", METHODS)


@each_method
@pytest.mark.parametrize("history", [[], [FAILED]])
def test_equals_bo_without_finite_history(kind, history):
    bo = make(BayesianOptimisation)
    np.testing.assert_array_equal(
        play_on_bowl(make(kind, history), 0.3, 6), play_on_bowl(bo, 0.3, 6)
    )


@each_method
def test_first_suggestion_is_near_earlier_optimum(kind):
    suggestions = play_on_bowl(make(kind, [make_bowl_task(0.3), make_bowl_task(0.3)]), 0.3, 1)
    assert bowl(suggestions, 0.3)[0] < 0.02


@each_method
def test_levels_and_scales_do_not_matter(kind):
    plain_history = [make_bowl_task(place) for place in PLACES]
    changed_history = [
        make_bowl_task(0.2, factor=4, offset=32),
        make_bowl_task(0.3, factor=64, offset=512),
        make_bowl_task(0.4, factor=0.5, offset=4),
    ]
    plain = play_on_bowl(make(kind, plain_history), 0.5, 7)
    changed = play_on_bowl(make(kind, changed_history), 0.5, 7, factor=32.0)
    np.testing.assert_allclose(changed, plain, atol=1e-6)


@each_method
def test_large_tasks_are_subsampled(kind):
    method = make(kind, [make_bowl_task(0.3, trials=1000), make_bowl_task(0.2, trials=7)])
    counts = [len(losses) for _, losses in method.sources]
    assert counts == [min(kind.max_per_task, MAX_PER_TASK), 7]


@each_method
def test_smooth_optimum_is_reached(kind):
    method = make(kind, [make_bowl_task(place) for place in PLACES])
    assert bowl(play_on_bowl(method, 0.5, 15), 0.5).min() < 2e-3


@pytest.mark.parametrize(
    ("kind", "tasks"), [(StackedGP, 1), (StackedGP, 5), (HyperBO, 5), (FSBO, 3)]
)
def test_misleading_tasks_are_unlearned(kind, tasks):
    history = [make_bowl_task(0.4 + 0.001 * task, factor=-1.0) for task in range(tasks)]
    _, regret, regret_of_bo = play_beside_bo(kind, history, trials=20)
    assert regret < max(20 * regret_of_bo, 2e-3)


def test_earlier_tasks_are_fitted_once():
    method = make(RGPE, [make_bowl_task(place) for place in PLACES])
    play_on_bowl(method, 0.5, 2)
    processes = list(method.processes)
    play_on_bowl(method, 0.5, 3)
    assert all(now is before for now, before in zip(method.processes, processes, strict=True))


def test_equal_losses_are_no_pair():
    lower, higher = find_ordered_pairs(np.array([2.0, 1.0, 2.0]))
    assert set(zip(lower, higher, strict=True)) == {(1, 0), (1, 2)}
