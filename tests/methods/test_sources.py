"""What all methods share that fit a process to every earlier task."""

import math

import numpy as np
import pytest
from bowls import bowl, compare_with_bo, make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE, make_method
from histories import minimised

from hpobench_ordered.methods._sources import MAX_PER_TASK, FromSources, find_ordered_pairs
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.fsbo import FSBO
from hpobench_ordered.methods.hyperbo import HyperBO
from hpobench_ordered.methods.rgpe import RGPE
from hpobench_ordered.methods.stacked_gp import StackedGP
from hpobench_ordered.methods.tst import TAFR, TSTR

EARLIER_PLACES = (0.2, 0.3, 0.4)
"""Optima of three earlier tasks."""
FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), UNIT_SQUARE)

METHODS: list[type[FromSources]] = [RGPE, StackedGP, TSTR, TAFR, HyperBO]
each_method = pytest.mark.parametrize("kind", METHODS)


@each_method
@pytest.mark.parametrize("history", [[], [FAILED]])
def test_equals_bo_without_finite_history(kind, history):
    """The method equals `bo` if there is no earlier task, or if all earlier evaluations failed."""
    bo = make_method(BayesianOptimisation)
    np.testing.assert_array_equal(
        suggest_on_bowl(make_method(kind, history), place=0.3, trials=6),
        suggest_on_bowl(bo, place=0.3, trials=6),
    )


@each_method
def test_first_suggestion_is_near_earlier_optimum(kind):
    """Two earlier tasks and the current one have the same optimum."""
    method = make_method(kind, [make_bowl_task(place=0.3), make_bowl_task(place=0.3)])
    suggestions = suggest_on_bowl(method, place=0.3, trials=1)
    # The loss is the squared distance from the optimum.
    (loss_of_first,) = bowl(suggestions, place=0.3)
    assert loss_of_first < 0.02


@each_method
def test_levels_and_scales_do_not_matter(kind):
    """Suggestions stay if losses are multiplied by a factor and raised by an offset.

    Every earlier task has other ones; the current task has a factor alone.
    """
    plain_history = [make_bowl_task(place=place) for place in EARLIER_PLACES]
    # Powers of two, so that hardly anything is rounded differently.
    changed_history = [
        make_bowl_task(place=0.2, factor=4, offset=32),
        make_bowl_task(place=0.3, factor=64, offset=512),
        make_bowl_task(place=0.4, factor=0.5, offset=4),
    ]
    plain = suggest_on_bowl(make_method(kind, plain_history), place=0.5, trials=7)
    changed = suggest_on_bowl(make_method(kind, changed_history), place=0.5, trials=7, factor=32.0)
    np.testing.assert_allclose(changed, plain, atol=1e-6)


@each_method
def test_large_tasks_are_subsampled(kind):
    """Only a part of a task of 1000 evaluations is used, but all of a task of seven."""
    large_task = make_bowl_task(place=0.3, trials=1000)
    small_task = make_bowl_task(place=0.2, trials=7)
    method = make_method(kind, [large_task, small_task])
    used_evaluations = [len(losses) for _X, losses in method.sources]
    # Some methods use fewer than `MAX_PER_TASK`.
    assert used_evaluations == [min(kind.max_per_task, MAX_PER_TASK), 7]


@each_method
def test_smooth_optimum_is_reached(kind):
    """The optimum of the current task is at 0.5, and the lowest loss 0."""
    # Earlier optima are at 0.2, 0.3 and 0.4.
    method = make_method(kind, [make_bowl_task(place=place) for place in EARLIER_PLACES])
    suggestions = suggest_on_bowl(method, place=0.5, trials=15)
    assert bowl(suggestions, place=0.5).min() < 2e-3


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [(StackedGP, 1), (HyperBO, 5), pytest.param(FSBO, 3, marks=pytest.mark.slow)],
)
def test_misleading_tasks_are_unlearned(kind, tasks):
    """With earlier tasks that rank in reverse, the regret comes close to that of `bo`."""
    history = [make_bowl_task(place=0.4 + 0.001 * task, factor=-1.0) for task in range(tasks)]
    _, regret, regret_of_bo = compare_with_bo(kind, history, trials=20)
    # At most twenty times as large, or small.
    assert regret < max(20 * regret_of_bo, 2e-3)


def test_earlier_tasks_are_fitted_once():
    """The processes of earlier tasks are the same objects after three more trials."""
    method = make_method(RGPE, [make_bowl_task(place=place) for place in EARLIER_PLACES])
    suggest_on_bowl(method, place=0.5, trials=2)
    processes_before = list(method.processes)
    suggest_on_bowl(method, place=0.5, trials=3)
    for process, process_before in zip(method.processes, processes_before, strict=True):
        assert process is process_before


def test_equal_losses_are_no_pair():
    """A pair has the index of a lower loss, here 1, and that of a higher one, here 0 or 2."""
    lower, higher = find_ordered_pairs(np.array([2.0, 1.0, 2.0]))
    assert set(zip(lower, higher, strict=True)) == {(1, 0), (1, 2)}
