"""ordered-gp: what it sees of the earlier tasks, where it begins, what it is invariant to."""

import math
from collections.abc import Callable

import by_hand
import numpy as np
import pytest
from bowls import bowl, make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE
from histories import minimised

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
from hpobench_ordered.methods._gp.tasks import TaskProcess
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.ordered_gp import (
    OrderedGP,
    compute_task_distances,
    compute_task_inputs,
    draw_rows,
)
from hpobench_ordered.space.parameters import Parameter

EARLIER_PLACES = (0.2, 0.3, 0.4, 0.5)
"""Optima of four earlier tasks, which drift towards that of the current one, 0.6."""


def make_method(history: list[Evaluations], *, seed: int = 0, **context: float) -> OrderedGP:
    return by_hand.make_method(OrderedGP, history, seed=seed, context=context)


def make_task(place: float, **options: float) -> Evaluations:
    """Make twenty evaluations of a bowl whose optimum is at `place`."""
    return make_bowl_task(place=place, trials=20, **options)


def make_drifting_tasks() -> list[Evaluations]:
    """Make one task for each of `EARLIER_PLACES`, the optima that drift towards the current one."""
    return [make_task(place) for place in EARLIER_PLACES]


def select_best_configuration(task: Evaluations) -> FloatArray:
    """Return the evaluated configuration of a task that has the lowest loss."""
    return task.values[task.losses.argmin()]


# -- suggestions -----------------------------------------------------------------------------------


def test_first_trials_are_earlier_tasks_bests():
    """The first two suggestions are best configurations of earlier tasks, whose optima scatter."""
    for seed in range(4):
        history = [make_task(place) for place in np.random.default_rng(seed).random(8)]
        suggestions = suggest_on_bowl(make_method(history), place=0.6, trials=2)
        best_of_tasks = {tuple(select_best_configuration(task)) for task in history}
        assert {tuple(row) for row in suggestions} <= best_of_tasks


def test_better_configuration_takes_the_place_of_a_best():
    """If earlier tasks equal the current one, an early trial is better than all of their bests.

    Every task is the same bowl, so that the model is sure where better configurations are.
    """
    losses = []
    for seed in range(4):
        # With other numbers of evaluations, tasks have other points.
        history = [make_bowl_task(place=0.6, trials=trials) for trials in range(20, 28)]
        suggestions = suggest_on_bowl(make_method(history, seed=seed), place=0.6, trials=4)
        losses.append(bowl(suggestions, place=0.6).min())

    best_of_tasks = min(task.losses.min() for task in history)
    assert np.median(losses) < best_of_tasks / 2


def test_first_trial_follows_drift():
    """The first trial is near the best configuration of the latest task.

    The optima of earlier tasks move in steps of 0.1 from 0 to 0.8, and the current one is at
    0.9.
    """
    places = np.arange(0.0, 0.9, 0.1)
    history = [make_bowl_task(place=place, trials=40) for place in places]
    (first,) = suggest_on_bowl(make_method(history), place=0.9, trials=1)
    best_of_latest_task = select_best_configuration(history[-1])
    assert np.abs(first - best_of_latest_task).max() < 0.15


def test_drifting_smooth_optimum_is_reached():
    """After optima at 0.2, 0.3, 0.4 and 0.5 on earlier tasks, the one at 0.6 is found."""
    suggestions = suggest_on_bowl(make_method(make_drifting_tasks()), place=0.6, trials=15)
    assert bowl(suggestions, place=0.6).min() < 1e-4


FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), UNIT_SQUARE)


@pytest.mark.parametrize("context", [{}, {"rows": 100.0, "columns": 5.0}])
@pytest.mark.parametrize("history", [[], [FAILED]])
def test_equals_bo_without_finite_history(history, context):
    """The method equals `bo` if there is no earlier task, or if all earlier evaluations failed."""
    bo = by_hand.make_method(BayesianOptimisation)
    np.testing.assert_array_equal(
        suggest_on_bowl(make_method(history, **context), place=0.3, trials=8),
        suggest_on_bowl(bo, place=0.3, trials=8),
    )


def draw_tasks_with_two_quantities(seed: int, *, unit: float = 1.0) -> list[Evaluations]:
    """Eight tasks with random context quantities a and b, whose optimum is at the mean of both.

    Args:
        seed: Seed of the quantities.
        unit: Factor of the first quantity.
    """
    pairs = np.random.default_rng(seed).random((8, 2))
    return [make_task((a + b) / 2, a=unit * a, b=b) for a, b in pairs]


def measure_error_of_optimum(method: OrderedGP, *, place: float) -> float:
    """Largest error of a coordinate of the optimum that a method's model predicts at first."""
    method.ask()  # fits the model
    side = np.linspace(0.0, 1.0, 51)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    means, _ = method._process.predict(method.features(grid))
    return np.abs(grid[means.argmin()] - [place, 1.0 - place]).max()


def test_optimum_is_interpolated_between_contexts():
    """The optimum is at 0.65, the mean of the quantities a and b of the current task's context.

    The context is that of no earlier task. Without contexts the model can only say where the optima
    of the earlier tasks are on average. Errors are means over four histories.
    """
    errors = []
    errors_without_contexts = []
    for seed in range(4):
        history = draw_tasks_with_two_quantities(seed)
        method = make_method(history, a=0.7, b=0.6)
        without_contexts = make_method(history)
        errors.append(measure_error_of_optimum(method, place=0.65))
        errors_without_contexts.append(measure_error_of_optimum(without_contexts, place=0.65))

    assert np.mean(errors) < np.mean(errors_without_contexts) / 2


def test_units_of_quantities_do_not_matter():
    history_in_metres = draw_tasks_with_two_quantities(0, unit=1024.0)
    in_metres = make_method(history_in_metres, a=512.0, b=0.5)
    in_kilometres = make_method(draw_tasks_with_two_quantities(0), a=0.5, b=0.5)
    suggestions = suggest_on_bowl(in_metres, place=0.5, trials=8)
    expected = suggest_on_bowl(in_kilometres, place=0.5, trials=8)
    np.testing.assert_allclose(suggestions, expected, atol=1e-6)


def test_levels_of_tasks_do_not_matter():
    """Adding a constant to all losses of a task, an earlier or the current one, changes nothing."""
    raised_history = [make_task(place, offset=100.0 * place) for place in EARLIER_PLACES]
    with_levels = make_method(raised_history)
    without_levels = make_method(make_drifting_tasks())
    suggestions = suggest_on_bowl(with_levels, place=0.6, trials=12, offset=64.0)
    expected = suggest_on_bowl(without_levels, place=0.6, trials=12)
    np.testing.assert_allclose(suggestions, expected, atol=1e-6)


def test_scales_of_earlier_tasks_do_not_matter():
    """Multiplying the losses of an earlier task changes no suggestion, unless it is the last task.

    The last task is the nearest to the current one, which takes its unit of losses from there.
    """
    factors = (2.0**7, 2.0**-3, 2.0**2, 1.0)  # powers of two hardly change rounding
    scaled_history = []
    for place, factor in zip(EARLIER_PLACES, factors, strict=True):
        scaled_history.append(make_task(place, factor=factor))
    suggestions = suggest_on_bowl(make_method(scaled_history), place=0.6, trials=12)
    expected = suggest_on_bowl(make_method(make_drifting_tasks()), place=0.6, trials=12)
    np.testing.assert_allclose(suggestions, expected, atol=1e-6)


def test_correlations_fall_with_distance():
    """The nearer an earlier task is, the higher is its learned correlation with the current."""
    method = make_method(make_drifting_tasks())
    method.ask()  # fits the model
    correlations = method.task_correlations  # of the current task and earlier ones, nearest first
    assert len(correlations) == len(EARLIER_PLACES)
    assert (np.diff(correlations) < 0.0).all()
    assert correlations.max() < 1.0
    assert correlations.min() > 0.0


def draw_independent_places(rng: np.random.Generator) -> FloatArray:
    """Optima of thirty tasks that scatter around 0.5."""
    return 0.5 + 0.12 * rng.standard_normal(30)


def draw_random_walk(rng: np.random.Generator) -> FloatArray:
    """Optima of thirty tasks, each near the one before."""
    steps = 0.04 * rng.standard_normal(30)
    return np.clip(0.5 + np.cumsum(steps), 0.0, 1.0)


def learn_correlations_with_last_task(
    draw_places: Callable[[np.random.Generator], FloatArray],
) -> list[float]:
    """Correlations of the current task with the last of thirty, as learned with six seeds."""
    correlations = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        places = draw_places(rng).tolist()
        # Losses of the tasks differ in scale, some very much.
        factors = np.exp(rng.standard_t(3, len(places))).tolist()
        history = [make_task(p, factor=f) for p, f in zip(places, factors, strict=True)]
        method = make_method(history, seed=seed)
        method.ask()  # fits the model
        correlation_with_nearest, *_ = method.task_correlations
        correlations.append(correlation_with_nearest)
    return correlations


def test_last_task_says_less_without_an_order():
    """The learned correlation with the last task is lower if the order of tasks does not matter.

    Optima of tasks are then independent; in a random walk, each is near the one before.
    """
    without_order = learn_correlations_with_last_task(draw_independent_places)
    with_order = learn_correlations_with_last_task(draw_random_walk)
    assert max(without_order) < min(with_order)


# -- what the model sees ---------------------------------------------------------------------------


def test_model_uses_part_of_large_history():
    """Of thirty tasks of 1000 evaluations, 24 are used, with 25 each, and eight for the fit."""
    history = [make_bowl_task(place=k / 30, trials=1000) for k in range(30)]

    sources = make_method(history).sources

    assert sources.counts.tolist() == [25] * 24
    assert sources.fitted_counts.tolist() == [8] * 24


def test_model_uses_more_evaluations_of_few_tasks():
    """Of four tasks of 1000 evaluations, 50 each are used, and all of these for the fit."""
    history = [make_bowl_task(place=k / 4, trials=1000) for k in range(4)]

    sources = make_method(history).sources

    assert sources.counts.tolist() == [50] * 4
    assert sources.fitted_counts.tolist() == [50] * 4


def test_model_uses_nearest_tasks_by_context():
    """The current task has size 0; of four others, the two with the nearest sizes are used."""
    task_of_size_1 = make_task(0.1, size=1)
    task_of_size_9 = make_task(0.2, size=9)
    task_of_size_8 = make_task(0.3, size=8)
    task_of_size_7 = make_task(0.4, size=7)
    history = [task_of_size_1, task_of_size_9, task_of_size_8, task_of_size_7]

    class WithTwoTasks(OrderedGP):
        max_earlier_tasks = 2

    method = by_hand.make_method(WithTwoTasks, history, context={"size": 0})
    expected = [select_best_configuration(task) for task in (task_of_size_1, task_of_size_7)]
    np.testing.assert_array_equal(method.sources.best_values, expected)


def test_bounds_of_scores_do_not_change_suggestions(monkeypatch):
    """In a space of 729 configurations, suggestions are those of exact scores.

    The best candidates were often tried; the scores of all others might then be mere bounds.
    """
    history = [make_grid_task(place) for place in EARLIER_PLACES]
    suggestions = suggest_on_grid(history)
    with monkeypatch.context() as patch:
        patch.setattr(TaskProcess, "score_candidates", score_exactly)
        expected = suggest_on_grid(history)
    np.testing.assert_array_equal(suggestions, expected)


GRID = SearchSpace([Parameter.number(name, 0, 8, integer=True) for name in "xyz"])
"""A space of 729 configurations."""


def make_grid_task(place: float) -> Evaluations:
    """Make thirty random evaluations of a bowl on the grid, with its optimum at 8 `place`."""
    rng = np.random.default_rng(int(1000 * place))
    values = rng.integers(0, 9, (30, 3)).astype(float)
    losses = compute_grid_losses(values, place)
    return minimised(str(place), {}, values, losses, GRID)


def compute_grid_losses(values: FloatArray, place: float) -> FloatArray:
    """Compute the losses (n,) of a bowl and a ripple at configurations (n, 3) of the grid."""
    distances = values / 8 - place
    bowl_losses = (distances**2).sum(axis=1)
    ripple = 0.1 * np.sin(7.0 * values[:, 0])
    return bowl_losses + ripple


def suggest_on_grid(history: list[Evaluations]) -> FloatArray:
    """Play `ordered-gp` for twenty trials on the task at 0.6; return its suggestions, (20, 3)."""

    def compute_losses(values: FloatArray) -> FloatArray:
        return compute_grid_losses(values, 0.6)

    method = by_hand.make_method(OrderedGP, history, space=GRID)
    return by_hand.run_trials(method, compute_losses, trials=20)


def score_exactly(process: TaskProcess, X: FloatArray, best: float, *, slack: float) -> FloatArray:
    """Compute the exact log expected improvement (m,) of all candidates, features X (m, p)."""
    means, sds = process.predict(X)
    return log_expected_improvement(means, sds, best)


def test_extended_model_equals_new_one():
    """The model to which each evaluation was added predicts as one made of all of them."""
    method = make_method(make_drifting_tasks())
    suggest_on_bowl(method, place=0.6, trials=9)
    method.ask()  # adds the last evaluation to the model
    extended = method._process
    made_at_once = TaskProcess(extended.observed, extended.x)
    candidates = np.random.default_rng(0).random((30, 2))
    expected = made_at_once.predict(candidates)
    np.testing.assert_allclose(extended.predict(candidates), expected, atol=1e-8)


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
    """The distance of tasks is the difference of their contexts' ranks, or that of their indices.

    It is the mean over the quantities that all tasks have. Expected are the distances of the
    current task from all tasks, the last of which is 0, from itself.
    """
    distances_of_tasks = compute_task_distances(history, current)
    np.testing.assert_array_equal(distances_of_tasks[-1], expected)


@pytest.mark.parametrize(
    ("history", "current", "quantities"),
    [
        pytest.param([{"a": 0.0, "b": 5.0}], {"a": 1.0, "b": 2.0}, 2, id="two shared"),
        pytest.param([{"a": 0.0, "b": 5.0}], {"a": 1.0}, 0, id="a single one"),
        pytest.param([{}], {"a": 1.0, "b": 2.0}, 0, id="none"),
        pytest.param([], {"a": 1.0, "b": 2.0}, 0, id="no earlier task"),
    ],
)
def test_number_of_inputs(history, current, quantities):
    """Quantities that all tasks have are inputs, if there are two or more and an earlier task."""
    inputs = compute_task_inputs(history, current)
    assert inputs.shape == (len(history) + 1, quantities)


@pytest.mark.parametrize(("count", "expected"), [(7, 7), (50, 50), (60, 50)])
def test_drawn_rows(count, expected):
    """`count` of 50 rows are drawn, and all if more are asked for."""
    rows = draw_rows(50, count, np.random.default_rng(0))
    assert len(set(rows.tolist()) & set(range(50))) == len(rows) == expected
    assert (np.diff(rows) > 0).all()
