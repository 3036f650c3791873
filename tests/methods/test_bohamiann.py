"""bohamiann and bohamiann-ctx: what the network is fitted to, and suggestions."""

from unittest.mock import patch

import by_hand
import numpy as np
import pytest
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._multi_task import RANGE_IN_SDS
from hpobench_ordered.methods.bohamiann import (
    MAX_CURRENT,
    MAX_SOURCES,
    Bohamiann,
    ContextBohamiann,
)

pytestmark = pytest.mark.slow

CURRENT_PLACE = 0.6
"""The x of the optimum of the current task, which is its context."""
CONTEXT_COLUMN = 3
"""Column of the context among the inputs, after x and the two choices."""


def compute_losses(values: FloatArray, place: float) -> FloatArray:
    """A parabola in x with its optimum at `place`; the second choice is worse than the first.

    Every task has a level of its own, which is no matter to methods that standardise losses.
    """
    x, choice = values.T
    level = 50 * place
    return level + (x - place) ** 2 + 0.3 * choice


def make_task(place: float, trials: int = 30) -> Evaluations:
    """Random evaluations of a task with its optimum at x = place, which is also its context."""
    # Every task has a seed of its own.
    rng = np.random.default_rng([trials, int(1000 * place)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    losses = compute_losses(values, place)
    return minimised(f"{place}", {"place": place}, values, losses, WITH_CHOICE)


def make_method(*, seed: int = 0) -> Bohamiann:
    return by_hand.make_method(Bohamiann, space=WITH_CHOICE, seed=seed)


def make_with_context(history: list[Evaluations], *, seed: int = 0) -> ContextBohamiann:
    """The variant with contexts, on the task whose optimum is at `CURRENT_PLACE`."""
    context = {"place": CURRENT_PLACE}
    return by_hand.make_method(
        ContextBohamiann, history, space=WITH_CHOICE, seed=seed, context=context
    )


def run_trials(method: Bohamiann, trials: int) -> FloatArray:
    """Play a method on the current task; return the suggested values, (trials, 2)."""
    return by_hand.run_trials(
        method, lambda values: compute_losses(values, CURRENT_PLACE), trials=trials
    )


# -- what the network is fitted to -----------------------------------------------------------------

ROWS_OF_TASKS = (slice(0, 30), slice(30, 40), slice(40, 43))
"""Observations of two earlier tasks, then of the current one."""


def make_method_with_three_tasks() -> ContextBohamiann:
    """Two earlier tasks, of 30 and 10 evaluations, and 3 of the current one."""
    method = make_with_context([make_task(0.2, 30), make_task(0.9, 10)])
    run_trials(method, trials=3)
    return method


def test_losses_are_standardised_by_task():
    """Losses of each task have mean 0 and deviation 1: of two earlier ones and the current one."""
    _, y = make_method_with_three_tasks().observations()
    assert len(y) == 30 + 10 + 3
    for rows in ROWS_OF_TASKS:
        np.testing.assert_allclose([y[rows].mean(), y[rows].std()], [0.0, 1.0], atol=1e-9)


def test_contexts_are_standardised_over_tasks():
    """The network gets the context of a task on a scale like that of hyperparameters."""
    X, _ = make_method_with_three_tasks().observations()
    # The context of a task is its place: of two earlier tasks, and of the current one.
    places = np.array([0.2, 0.9, CURRENT_PLACE])
    standardised = (places - places.mean()) / places.std()
    # `RANGE_IN_SDS` standard deviations of a context are the range of a hyperparameter, [0, 1].
    expected = standardised / RANGE_IN_SDS + 0.5
    for rows, context in zip(ROWS_OF_TASKS, expected, strict=True):
        np.testing.assert_allclose(X[rows, CONTEXT_COLUMN], context)


def test_large_history_is_subsampled():
    """Of two large tasks, as many evaluations are used as one of them has, half of each."""
    # Two tasks, each of which alone has as many evaluations as are used.
    history = [make_task(0.1, MAX_SOURCES), make_task(0.5, MAX_SOURCES)]
    X, _ = make_with_context(history).observations()
    assert len(X) == MAX_SOURCES
    # The tasks are told apart by their contexts, and drawn from alike.
    share_of_first = np.mean(X[:, CONTEXT_COLUMN] == X[0, CONTEXT_COLUMN])
    assert share_of_first == pytest.approx(0.5, abs=0.05)


def test_latest_current_evaluations_are_used():
    """The network is fitted to the last `MAX_CURRENT` evaluations; the five before are left out."""
    method = make_method()
    x_values = np.linspace(0, 1, MAX_CURRENT + 5)
    for x in x_values.tolist():
        method.tell({"x": x, "c": "a"}, x)
    X, y = method.observations()
    assert len(X) == len(y) == MAX_CURRENT
    latest_x = X[-1, 0]
    assert latest_x == x_values[-1]


# -- suggestions -----------------------------------------------------------------------------------


def test_first_suggestion_follows_earlier_tasks():
    """Their optima lie on both sides of the current place, at the first choice."""
    method = make_with_context([make_task(place) for place in (0.5, 0.55, 0.65, 0.7)])
    ((x, choice),) = run_trials(method, trials=1)
    assert x == pytest.approx(CURRENT_PLACE, abs=0.2)
    assert choice == 0


def test_pending_evaluation_counts_as_mean():
    """A configuration without a result yet is fitted with the mean loss, 0."""
    method = make_method()
    run_trials(method, trials=5)
    pending = method.ask()
    network = method._network
    with patch.object(network, "fit", wraps=network.fit) as fit:
        method.ask()
    # The network is fitted to five evaluations, and the pending one after them.
    X, y = fit.call_args.args
    assert len(X) == len(y) == 6
    pending_unit = WITH_CHOICE.encode(WITH_CHOICE.row(pending)[None])
    (pending_features,) = method.features(pending_unit)
    np.testing.assert_array_equal(X[-1], pending_features)
    # The pending one counts as if it had the mean of the standardised losses.
    assert y[-1] == 0.0
