"""ordered-gp: what it sees of the earlier tasks, where it begins, what it is invariant to."""

import math
from collections.abc import Callable, Sequence

import by_hand
import numpy as np
import pytest
from bowls import bowl, make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.tasks import TaskProcess
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.ordered_gp import (
    MAX_CURRENT,
    MAX_FITTED_SOURCES,
    MAX_SOURCES,
    OrderedGP,
    choose_good_and_random,
    compute_task_distances,
    compute_units,
)

PLACES = (0.2, 0.3, 0.4, 0.5)
"""Optima of four earlier tasks, which drift towards 0.6."""


def make_method(history: list[Evaluations], *, seed: int = 0, **context: float) -> OrderedGP:
    return by_hand.make_method(OrderedGP, history, seed=seed, context=context)


def make_task(place: float, **options: float) -> Evaluations:
    """Twenty evaluations of a bowl with its optimum at place."""
    return make_bowl_task(place=place, trials=20, **options)


def make_drifting_tasks() -> list[Evaluations]:
    return [make_task(place) for place in PLACES]


def best_configuration(task: Evaluations) -> FloatArray:
    return task.values[task.losses.argmin()]


# -- suggestions -----------------------------------------------------------------------------------


def test_first_trials_are_earlier_tasks_bests():
    history = [make_task(place) for place in (0.05, 0.1, *PLACES)]
    # `early_trials`: how many trials choose among earlier tasks' best configurations.
    suggestions = suggest_on_bowl(make_method(history), place=0.6, trials=OrderedGP.early_trials)
    bests = {tuple(best_configuration(task)) for task in history}
    assert {tuple(row) for row in suggestions} <= bests


def test_first_trial_follows_drift():
    # Optima move in steps of 0.1 from 0.0 to 0.8.
    history = [make_bowl_task(place=place, trials=40) for place in np.arange(0.0, 0.9, 0.1)]
    (first,) = suggest_on_bowl(make_method(history), place=0.9, trials=1)
    # Near the best of the latest task.
    assert np.abs(first - best_configuration(history[-1])).max() < 0.15


def test_drifting_smooth_optimum_is_reached():
    suggestions = suggest_on_bowl(make_method(make_drifting_tasks()), place=0.6, trials=15)
    # Earlier optima were at 0.2, 0.3, 0.4 and 0.5.
    assert bowl(suggestions, place=0.6).min() < 1e-4


FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), UNIT_SQUARE)


@pytest.mark.parametrize("history", [[], [FAILED]])
def test_equals_bo_without_finite_history(history):
    """There is no earlier task, or all its evaluations failed."""
    bo = by_hand.make_method(BayesianOptimisation)
    np.testing.assert_array_equal(
        suggest_on_bowl(make_method(history), place=0.3, trials=8),
        suggest_on_bowl(bo, place=0.3, trials=8),
    )


def test_levels_of_tasks_do_not_matter():
    plain = suggest_on_bowl(make_method(make_drifting_tasks()), place=0.6, trials=12)
    # The same four earlier tasks with something added to their losses, and so the current one.
    raised = [make_task(place, offset=100.0 * place) for place in PLACES]
    suggestions = suggest_on_bowl(make_method(raised), place=0.6, trials=12, offset=64.0)
    np.testing.assert_allclose(suggestions, plain, atol=1e-6)


def test_scales_of_earlier_tasks_do_not_matter():
    plain = suggest_on_bowl(make_method(make_drifting_tasks()), place=0.6, trials=12)
    # The current task takes its unit from the nearest earlier one, the last, whose scale stays.
    # The others are powers of two, which hardly change how numbers are rounded.
    factors = (2.0**7, 2.0**-3, 2.0**2, 1.0)
    scaled = []
    for place, factor in zip(PLACES, factors, strict=True):
        scaled.append(make_task(place, factor=factor))
    suggestions = suggest_on_bowl(make_method(scaled), place=0.6, trials=12)
    np.testing.assert_allclose(suggestions, plain, atol=1e-6)


def test_pending_configurations_are_not_repeated():
    """Of nine suggestions, only the first has a result when the last is made."""
    method = make_method(make_drifting_tasks())
    asked = [method.ask() for _ in range(8)]
    method.tell(asked[0], 0.3)
    asked.append(method.ask())
    distinct = {tuple(config.values()) for config in asked}
    assert len(distinct) == 9


def test_correlations_fall_with_distance():
    method = make_method(make_drifting_tasks())
    method.ask()
    correlations = method.task_correlations  # of the current task and earlier ones, nearest first
    assert correlations.shape == (len(PLACES),)
    assert (np.diff(correlations) < 0.0).all()
    assert ((correlations > 0.0) & (correlations < 1.0)).all()


def learn_nearest_correlations(places_of_seed: Callable[[np.random.Generator], FloatArray]):
    """Correlation with the last of thirty tasks that the model learns, for six seeds.

    Losses of the tasks have heavy-tailed scales.
    """
    correlations = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        places = places_of_seed(rng).tolist()
        factors = np.exp(rng.standard_t(3, len(places))).tolist()
        history = [make_task(p, factor=f) for p, f in zip(places, factors, strict=True)]
        method = make_method(history, seed=seed)
        method.ask()
        correlations.append(method.task_correlations[0])
    return correlations


def test_last_task_says_less_without_an_order():
    """Optima of thirty tasks scatter around 0.5, or take a walk, each near the one before."""
    independent = learn_nearest_correlations(lambda rng: 0.5 + 0.12 * rng.standard_normal(30))
    walk = learn_nearest_correlations(
        lambda rng: np.clip(0.5 + np.cumsum(0.04 * rng.standard_normal(30)), 0.0, 1.0)
    )
    assert max(independent) < min(walk)


# -- what the model sees ---------------------------------------------------------------------------


def make_method_with_large_history() -> tuple[OrderedGP, list[Evaluations]]:
    """Twenty tasks of 1000 evaluations, whose optima move from 0 to 0.95."""
    history = [make_bowl_task(place=k / 20, trials=1000) for k in range(20)]
    return make_method(history), history


def test_model_uses_part_of_large_history():
    method, _ = make_method_with_large_history()
    tasks = OrderedGP.max_earlier_tasks
    # Of twenty earlier tasks of 1000 evaluations.
    assert method.sources.counts.tolist() == [MAX_SOURCES // tasks] * tasks
    assert method.sources.fitted_counts.sum() <= MAX_FITTED_SOURCES


def test_best_values_are_nearest_tasks_first():
    method, history = make_method_with_large_history()
    # Without contexts, the latest tasks are nearest.
    nearest_first = history[::-1][: OrderedGP.max_earlier_tasks]
    expected = [best_configuration(task) for task in nearest_first]
    np.testing.assert_array_equal(method.sources.best_values, expected)


def test_model_uses_best_of_every_task():
    method, _ = make_method_with_large_history()
    for best in method.sources.best_unit_vectors:
        assert (method.sources.unit_vectors == best).all(axis=1).any()


def test_model_uses_part_of_current_task():
    method = make_method([make_task(0.5)])
    values = np.random.default_rng(0).random((2 * MAX_CURRENT, 2))
    for config, loss in zip(
        UNIT_SQUARE.configs(values), bowl(values, place=0.6).tolist(), strict=True
    ):
        method.tell(config, loss)
    method.ask()
    # 20 evaluations of the earlier task, and the most that are used of the current one.
    assert method._process.observed.counts.tolist() == [20, MAX_CURRENT]


def test_model_uses_nearest_tasks_by_context():
    history = [
        make_task(0.1, size=1),
        make_task(0.2, size=9),
        make_task(0.3, size=8),
        make_task(0.4, size=7),
    ]
    two_tasks = type("TwoTasks", (OrderedGP,), {"max_earlier_tasks": 2})
    method = by_hand.make_method(two_tasks, history, context={"size": 0})
    # The sizes nearest to 0 are 1 and 7.
    expected = [best_configuration(history[0]), best_configuration(history[3])]
    np.testing.assert_array_equal(method.sources.best_values, expected)


def test_extended_model_equals_new_one():
    """The model to which each evaluation was added predicts as one made of all of them."""
    method = make_method(make_drifting_tasks())
    suggest_on_bowl(method, place=0.6, trials=9)
    method.ask()
    extended = method._process
    new = TaskProcess(extended.observed, extended.x)
    X = np.random.default_rng(0).random((30, 2))
    np.testing.assert_allclose(extended.predict(X), new.predict(X), atol=1e-8)


# -- distances, units, samples ---------------------------------------------------------------------

SIZES = [{"size": 10.0, "rare": 1.0}, {"size": 1000.0, "rare": 1.0}, {"size": 20.0, "rare": 1.0}]


@pytest.mark.parametrize(
    ("history", "current", "expected"),
    [
        pytest.param(SIZES, {"size": 30.0}, [2, 1, 1, 0], id="ranks of the shared quantity"),
        pytest.param(
            [{"a": 0.0, "b": 5.0}, {"a": 1.0, "b": 5.0}],
            {"a": 0.0, "b": 7.0},
            [0.5, 1.0, 0.0],
            id="mean over quantities",
        ),
        pytest.param([{}, {}], {}, [2, 1, 0], id="indices without contexts"),
        pytest.param([{"a": 1.0}, {}], {"a": 2.0}, [2, 1, 0], id="indices without a shared one"),
    ],
)
def test_distances_from_current_task(history, current, expected):
    """Distances of all tasks, the current one last, whose distance from itself is 0."""
    distances = compute_task_distances(history, current)
    np.testing.assert_array_equal(distances[-1], expected)


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        pytest.param([[-2.0, 0.0, 900.0]], [1.0], id="half the distance of best and median"),
        pytest.param([[0.0, 0.0, 3.0]], [math.sqrt(0.75)], id="root mean square if that is 0"),
        pytest.param([[0.0]], [1.0], id="1 if all losses of all tasks are equal"),
        pytest.param(
            [[-2.0, 0.0, 900.0], [-8.0, 0.0, 0.0], [0.0, 0.0]],
            [1.0, 4.0, 2.0],
            id="geometric mean of others if all losses are equal",
        ),
    ],
)
def test_units_of_losses(losses: Sequence[Sequence[float]], expected: Sequence[float]):
    units = compute_units([np.array(of_task) for of_task in losses])
    assert units == pytest.approx(expected)


@pytest.mark.parametrize("count", [0, 1, 7, 50])
def test_chosen_losses_include_best(count):
    """The best and random others of 50 losses, `count` in all."""
    losses = np.random.default_rng(1).random(50)
    chosen = choose_good_and_random(losses, count, np.random.default_rng(0))
    assert losses.argmin() in chosen
    # The best one even if none is asked for.
    assert len(chosen) == max(1, count)
    # Rows in order, none twice.
    assert (np.diff(chosen) > 0).all()
