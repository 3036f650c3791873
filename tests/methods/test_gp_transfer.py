"""gp-transfer-closest and gp-transfer-subsample: which evaluations they use, and how."""

import by_hand
import numpy as np
import pytest
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._multi_task import RANGE_IN_SDS
from hpobench_ordered.methods.bo import MAX_CONDITIONED
from hpobench_ordered.methods.gp_transfer import (
    MAX_PER_TASK,
    MAX_SOURCES,
    GPTransfer,
    GPTransferClosest,
    GPTransferSubsample,
)
from hpobench_ordered.methods.transfer_bo import TransferBO

both_methods = pytest.mark.parametrize("kind", [GPTransferClosest, GPTransferSubsample])

CONTEXT_COLUMN = 3
"""Column of the model's inputs that has the first context quantity, after x and two choices."""


def compute_losses(values: FloatArray, place: float) -> FloatArray:
    """A parabola in x with its optimum at `place`; the second choice is worse than the first.

    Every task has a level and a scale of its own, which are no matter to standardised losses.
    """
    x, choice = values.T
    level = 1000.0 * place
    scale = 1.0 + 100.0 * place
    return level + scale * ((x - place) ** 2 + 0.3 * choice)


def make_task(place: float, trials: int = 20, **context: float) -> Evaluations:
    """Random evaluations of a task with its optimum at x = place.

    If no context is passed, it is the place.
    """
    rng = np.random.default_rng([trials, int(1000 * place)])  # every task has other points
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    losses = compute_losses(values, place)
    if not context:
        context = {"place": place}
    return minimised(f"{place}", context, values, losses, WITH_CHOICE)


def make_method(
    kind: type[GPTransfer], history: list[Evaluations], *, seed: int = 0, **context: float
) -> GPTransfer:
    """A method on a task with this context."""
    return by_hand.make_method(kind, history, space=WITH_CHOICE, seed=seed, context=context)


def run_trials(method: GPTransfer, place: float, trials: int) -> FloatArray:
    return by_hand.run_trials(method, lambda values: compute_losses(values, place), trials=trials)


def count_used(method: GPTransfer, history: list[Evaluations]) -> list[int]:
    """Count the evaluations of each earlier task among the observations.

    They are recognised by x, the first input, which no two tasks share.
    """
    X, _ = method.observations()
    earlier_rows = len(X) - method.evaluation_count  # those of the current task come last
    x = X[:earlier_rows, 0]
    return [int(np.isin(x, task.values[:, 0]).sum()) for task in history]


# -- the closest task ------------------------------------------------------------------------------


def test_distance_is_l1_of_standardised_contexts():
    """The third task is closest by the sum of differences of its two standardised quantities.

    The Euclidean distance would prefer the second.
    """
    contexts = np.array([[1.0, 3000.0], [2.0, 2000.0], [4.0, 0.0]])
    current_context = np.zeros(2)
    all_contexts = np.array([*contexts, current_context])
    differences = (contexts - current_context) / all_contexts.std(axis=0)
    assert np.abs(differences).sum(axis=1).argmin() == 2
    assert np.linalg.norm(differences, axis=1).argmin() == 1

    history = [make_task(0.1 * task, q=q, r=r) for task, (q, r) in enumerate(contexts)]
    method = make_method(GPTransferClosest, history, q=0.0, r=0.0)
    # All 20 evaluations of the third task.
    assert count_used(method, history) == [0, 0, 20]


def test_last_of_equally_close_tasks_is_used():
    """Of two equally close tasks, the later one is nearer to the current one in time."""
    # The contexts 1 and 3 of the first two tasks are equally far from the current one, 2.
    history = [make_task(0.1, q=1.0), make_task(0.2, q=3.0), make_task(0.3, q=9.0)]
    method = make_method(GPTransferClosest, history, q=2.0)
    # All 20 evaluations of the second task.
    assert count_used(method, history) == [0, 20, 0]


LARGE_HISTORY = [make_task(0.1, 900), make_task(0.9, 900)]
"""Two tasks, each of more evaluations than are used, with the contexts 0.1 and 0.9."""


def test_large_closest_task_is_subsampled():
    """If the closest task has too many evaluations, `MAX_SOURCES` of them are used.

    Of the two earlier tasks, with contexts 0.1 and 0.9, the first is closest to the current one.
    """
    method = make_method(GPTransferClosest, LARGE_HISTORY, place=0.2)
    assert count_used(method, LARGE_HISTORY) == [MAX_SOURCES, 0]


# -- a sample of every task ------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "total"), [(1, 10), (29, 290), (30, 300), (200, 300)])
def test_sample_of_every_task_is_limited(tasks, total):
    """Up to 10 evaluations of each earlier task are used, and up to 300 in all.

    Every task has 15 evaluations. With so many tasks, `total` evaluations are used.
    """
    history = [make_task(task / tasks, 15) for task in range(tasks)]
    counts = count_used(make_method(GPTransferSubsample, history, place=0.5), history)
    assert sum(counts) == total
    assert max(counts) <= MAX_PER_TASK


# -- inputs and losses -----------------------------------------------------------------------------


def make_history_without_common_context() -> list[Evaluations]:
    """Three tasks of 20 evaluations: the first and the third have the context `a`, the second `b`.

    So there is no context quantity that all tasks have.
    """
    return [make_task(0.1, a=1.0), make_task(0.2, b=1.0), make_task(0.3, a=1.0)]


def test_last_task_is_closest_without_common_context():
    """If tasks have no context quantity in common, the last of the earlier tasks is closest.

    All 20 evaluations of that task are used.
    """
    history = make_history_without_common_context()
    method = make_method(GPTransferClosest, history, a=1.0)
    assert count_used(method, history) == [0, 0, 20]


@both_methods
def test_index_replaces_missing_common_context(kind):
    """If tasks have no context quantity in common, the model gets the index of the task instead.

    The current task comes after the earlier ones, so that its index is the largest.
    """
    history = make_history_without_common_context()
    context_of_current_task = {"a": 1.0}  # the second of the earlier tasks has only `b`
    method = make_method(kind, history, **context_of_current_task)

    inputs_of_earlier_tasks, _ = method.observations()
    any_configuration = np.full((1, 2), 0.5)
    (inputs_on_current_task,) = method.features(any_configuration)

    indices_of_earlier_tasks = inputs_of_earlier_tasks[:, CONTEXT_COLUMN]
    index_of_current_task = inputs_on_current_task[CONTEXT_COLUMN]
    assert index_of_current_task > indices_of_earlier_tasks.max()


CURRENT_EVALUATIONS = 8
"""Number of evaluations of the current task, which come last among the observations."""


def make_method_with_current_evaluations(kind: type[GPTransfer]) -> GPTransfer:
    """A method with three earlier tasks and eight evaluations of the current one."""
    history = [make_task(place, MAX_PER_TASK) for place in (0.1, 0.5, 0.8)]
    method = make_method(kind, history, place=0.6)
    run_trials(method, place=0.6, trials=CURRENT_EVALUATIONS)
    return method


@both_methods
def test_losses_are_standardised_by_task(kind):
    """The losses of each of three earlier tasks and of the current one have mean 0, deviation 1."""
    X, y = make_method_with_current_evaluations(kind).observations()
    # Every task has another context, by which its losses are told apart.
    contexts = X[:, CONTEXT_COLUMN]
    for context in np.unique(contexts):
        losses = y[contexts == context]
        np.testing.assert_allclose([losses.mean(), losses.std()], [0.0, 1.0], atol=1e-9)


@both_methods
def test_incumbent_is_of_current_task(kind):
    """Suggestions are to improve on the lowest loss of the current task, not of earlier ones."""
    method = make_method_with_current_evaluations(kind)
    _, y = method.observations()
    no_model = None  # the incumbent does not depend on it
    assert method.incumbent(no_model, y) == y[-CURRENT_EVALUATIONS:].min()  # type: ignore[arg-type]


@both_methods
def test_contexts_are_standardised_over_all_tasks(kind):
    """The mean and the deviation of a context quantity are those of all four tasks.

    Three are earlier tasks, one is the current one. A quantity that is the same on all tasks
    cannot be standardised, and becomes 0.5.
    """
    *earlier_q, current_q = 3.0, 50.0, 20.0, 10.0
    history = [make_task(0.1 * task, q=q, constant=7.0) for task, q in enumerate(earlier_q)]
    method = make_method(kind, history, q=current_q, constant=7.0)
    task_features = method.compute_task_features([task.context for task in history])
    feature_of_q, feature_of_constant = task_features.T

    q = np.array([*earlier_q, current_q])
    standardised = (q - q.mean()) / q.std()
    # `RANGE_IN_SDS` standard deviations are the range of a hyperparameter, [0, 1].
    np.testing.assert_allclose(feature_of_q, standardised / RANGE_IN_SDS + 0.5)
    np.testing.assert_array_equal(feature_of_constant, 0.5)


@both_methods
def test_number_of_observations_is_limited(kind):
    """Evaluations of earlier tasks are limited to `MAX_SOURCES`, others to `MAX_CONDITIONED`.

    The others are those of the current task. Both limits are exceeded here: there are 60 earlier
    tasks of 400 evaluations each, and twice as many evaluations of the current one as are used.
    """
    history = [make_task(task / 60, 400) for task in range(60)]
    method = make_method(kind, history, place=0.5)
    unit = WITH_CHOICE.sample_unit(np.random.default_rng(0), 2 * MAX_CONDITIONED)
    values = WITH_CHOICE.decode(unit)
    losses = compute_losses(values, 0.5)
    for config, loss in zip(WITH_CHOICE.configs(values), losses.tolist(), strict=True):
        method.tell(config, loss)
    X, y = method.observations()
    assert len(X) == len(y) == MAX_SOURCES + MAX_CONDITIONED


# -- suggestions -----------------------------------------------------------------------------------


@both_methods
@pytest.mark.parametrize("tasks", [1, 6])
def test_first_suggestion_is_near_earlier_optima(kind, tasks):
    """The optima of one or six earlier tasks lie between x = 0.45 and 0.75, at the first choice.

    The current task has its optimum at x = 0.5; a method is run with five seeds.
    """
    history = [make_task(place, 40) for place in np.linspace(0.45, 0.75, tasks)]
    firsts = []
    for seed in range(5):
        method = make_method(kind, history, seed=seed, place=0.5)
        (first,) = run_trials(method, place=0.5, trials=1)
        firsts.append(first)
    x, choice = np.array(firsts).T
    assert (choice == 0).all()
    # The earlier optima pull away from the current one.
    assert np.median(np.abs(x - 0.5)) < 0.15


@pytest.mark.parametrize("kind", [GPTransferClosest, GPTransferSubsample, TransferBO])
def test_optimum_is_reached_without_history(kind):
    """All three methods then are Bayesian optimisation of the current task alone."""
    values = run_trials(make_method(kind, [], place=0.3), place=0.3, trials=15)
    losses = compute_losses(values, 0.3)
    # The loss at a distance of 0.05 from the optimum, with the first choice.
    (small_loss,) = compute_losses(np.array([[0.35, 0.0]]), 0.3)
    assert losses.min() < small_loss
