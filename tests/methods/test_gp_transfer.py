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
"""Column of the first context quantity among the inputs, after x and the two choices."""


def compute_losses(values: FloatArray, place: float) -> FloatArray:
    """The optimum is at x = place and the first choice; level and scale are the task's own."""
    x, choice = values.T
    scale = 1.0 + 100.0 * place
    return scale * ((x - place) ** 2 + 0.3 * choice) + 1000.0 * place


def make_task(place: float, trials: int = 20, **context: float) -> Evaluations:
    """Random evaluations of a task with its optimum at x = place, by default also its context."""
    rng = np.random.default_rng([trials, int(1000 * place)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    losses = compute_losses(values, place)
    return minimised(f"{place}", context or {"place": place}, values, losses, WITH_CHOICE)


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
    # The third task is closest. By unscaled contexts, of which r decides alone, and by Euclidean
    # distance it would be another one.
    history = [
        make_task(0.0, q=1.0, r=3000.0),
        make_task(0.1, q=2.0, r=2000.0),
        make_task(0.2, q=4.0, r=0.0),
    ]
    table = np.array([[1.0, 3000.0], [2.0, 2000.0], [4.0, 0.0], [0.0, 0.0]])
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    differences = scaled[:3] - scaled[3]
    # What the example is for: the two distances disagree.
    assert np.abs(differences).sum(axis=1).argmin() == 2
    assert np.linalg.norm(differences, axis=1).argmin() == 1

    method = make_method(GPTransferClosest, history, q=0.0, r=0.0)
    # All 20 evaluations of the third task.
    assert count_used(method, history) == [0, 0, 20]


def test_last_of_equally_close_tasks_is_used():
    # 1 and 3 are equally far from 2.
    history = [make_task(0.1, q=1.0), make_task(0.2, q=3.0), make_task(0.3, q=9.0)]
    method = make_method(GPTransferClosest, history, q=2.0)
    assert count_used(method, history) == [0, 20, 0]


LARGE_HISTORY = [make_task(0.1, 900), make_task(0.9, 900)]
"""Two tasks, each of more evaluations than are used, with the contexts 0.1 and 0.9."""


def test_large_closest_task_is_subsampled():
    # The history: two tasks, with contexts 0.1 and 0.9, each of more evaluations than are used.
    method = make_method(GPTransferClosest, LARGE_HISTORY, place=0.2)
    assert count_used(method, LARGE_HISTORY) == [MAX_SOURCES, 0]


@pytest.mark.parametrize(("seed", "is_same"), [(0, True), (1, False)])
def test_subsample_depends_on_seed(seed, is_same):
    """The closest task has more evaluations than are used; the first method has the seed 0."""
    first, _ = make_method(GPTransferClosest, LARGE_HISTORY, place=0.2, seed=0).observations()
    other, _ = make_method(GPTransferClosest, LARGE_HISTORY, place=0.2, seed=seed).observations()
    assert np.array_equal(first, other) == is_same


def test_losses_are_standardised_before_subsampling():
    _, y = make_method(GPTransferClosest, LARGE_HISTORY, place=0.2).observations()
    # The closest task's, of which only a part is used.
    losses = LARGE_HISTORY[0].losses
    standardised = (losses - losses.mean()) / losses.std()
    assert np.isin(y.round(9), standardised.round(9)).all()


# -- a sample of every task ------------------------------------------------------------------------


@pytest.mark.parametrize(("tasks", "total"), [(1, 10), (29, 290), (30, 300), (200, 300)])
def test_sample_of_every_task_is_limited(tasks, total):
    """Of so many earlier tasks of 15 evaluations, `total` evaluations are used."""
    history = [make_task(task / tasks, 15) for task in range(tasks)]
    counts = count_used(make_method(GPTransferSubsample, history, place=0.5), history)
    # Up to 10 a task, and up to 300 in all.
    assert sum(counts) == total
    assert max(counts) <= MAX_PER_TASK


@pytest.mark.parametrize("tasks", [1, 29, 30])
def test_sample_of_every_task_is_equal(tasks):
    """Of tasks of 15 evaluations, as many of each as are allowed."""
    history = [make_task(task / tasks, 15) for task in range(tasks)]
    counts = count_used(make_method(GPTransferSubsample, history, place=0.5), history)
    assert counts == [MAX_PER_TASK] * tasks


def test_small_task_is_used_whole():
    # Tasks of 3 and of 30 evaluations.
    history = [make_task(0.1, 3), make_task(0.2, 30)]
    method = make_method(GPTransferSubsample, history, place=0.3)
    assert count_used(method, history) == [3, MAX_PER_TASK]


# -- inputs and losses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(GPTransferClosest, [0, 0, 20]), (GPTransferSubsample, [MAX_PER_TASK] * 3)],
)
def test_index_replaces_missing_common_context(kind, expected):
    """No quantity is known of all tasks, so their order counts: the current one comes last."""
    history = [make_task(0.1, a=1.0), make_task(0.2, b=1.0), make_task(0.3, a=1.0)]
    method = make_method(kind, history, a=1.0)  # 20 evaluations a task
    X, _ = method.observations()
    current = method.features(np.full((1, 2), 0.5))
    earlier_inputs = np.unique(X[:, CONTEXT_COLUMN])
    assert count_used(method, history) == expected
    assert current[0, CONTEXT_COLUMN] > earlier_inputs.max()


def make_method_with_current_evaluations(kind: type[GPTransfer]) -> GPTransfer:
    """A method with three earlier tasks and eight evaluations of the current one."""
    method = make_method(
        kind, [make_task(place, MAX_PER_TASK) for place in (0.1, 0.5, 0.8)], place=0.6
    )
    run_trials(method, place=0.6, trials=8)
    return method


@both_methods
def test_losses_are_standardised_by_task(kind):
    """Of three earlier tasks and the current one, whichever of both methods it is."""
    X, y = make_method_with_current_evaluations(kind).observations()
    # Every task has another context, by which its losses are told apart.
    contexts = X[:, CONTEXT_COLUMN]
    for context in np.unique(contexts):
        of_task = y[contexts == context]
        np.testing.assert_allclose([of_task.mean(), of_task.std()], [0.0, 1.0], atol=1e-9)


@both_methods
def test_current_task_has_context_of_its_own(kind):
    """The context is an input, which no evaluation of an earlier task shares."""
    method = make_method_with_current_evaluations(kind)
    X, _ = method.observations()
    # The eight evaluations of the current task come last.
    used_contexts = set(X[: len(X) - 8, CONTEXT_COLUMN])
    current_contexts = set(X[-8:, CONTEXT_COLUMN])
    assert len(current_contexts) == 1
    assert not current_contexts & used_contexts


@both_methods
def test_incumbent_is_of_current_task(kind):
    """The lowest loss that a suggestion is to improve on."""
    method = make_method_with_current_evaluations(kind)
    _, y = method.observations()
    # The eight evaluations of the current task come last.
    assert method.incumbent(None, y) == y[-8:].min()  # type: ignore[arg-type]


@both_methods
def test_contexts_are_standardised_over_all_tasks(kind):
    """Of three earlier tasks and the current one: q varies, and a quantity is constant."""
    q = np.array([3.0, 50.0, 20.0, 10.0])  # the current task's last
    history = [make_task(0.1 * task, q=q[task], constant=7.0) for task in range(3)]
    method = make_method(kind, history, q=10.0, constant=7.0)
    task_features = method.compute_task_features([task.context for task in history])
    standardised = (q - q.mean()) / q.std()
    np.testing.assert_allclose(task_features[:, 0], standardised / RANGE_IN_SDS + 0.5)
    # What does not vary is put in the middle.
    np.testing.assert_array_equal(task_features[:, 1], 0.5)


@both_methods
def test_contexts_have_their_own_length_scales(kind):
    """`group_features` gives the number of the length scale of each input."""
    history = [make_task(0.1 * task, q=float(task), constant=7.0) for task in range(3)]
    method = make_method(kind, history, q=10.0, constant=7.0)
    # x; the two choices, which share one; q; the constant.
    np.testing.assert_array_equal(method.group_features(), [0, 1, 1, 2, 3])


@both_methods
def test_number_of_observations_is_limited(kind):
    """Separately for earlier tasks and for the current one."""
    # 60 earlier tasks of 400 evaluations, and twice as many of the current one as are used.
    method = make_method(kind, [make_task(task / 60, 400) for task in range(60)], place=0.5)
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
    """Over five seeds, with one or six earlier tasks whose optima lie between x = 0.45 and 0.75, at
    the first choice.
    """
    history = [make_task(place, 40) for place in np.linspace(0.45, 0.75, tasks)]
    firsts = []
    for seed in range(5):
        method = make_method(kind, history, seed=seed, place=0.5)
        (first,) = run_trials(method, place=0.5, trials=1)
        firsts.append(first)
    x, choice = np.array(firsts).T
    assert (choice == 0).all()
    # 0.5 is the current task's optimum; the earlier ones pull away from it.
    assert np.median(np.abs(x - 0.5)) < 0.15


@pytest.mark.parametrize("kind", [GPTransferClosest, GPTransferSubsample, TransferBO])
def test_optimum_is_reached_without_history(kind):
    """All three methods then are Bayesian optimisation of the current task alone."""
    values = run_trials(make_method(kind, [], place=0.3), place=0.3, trials=15)
    # Within 0.05 of the optimum, with the first choice.
    close_enough = np.array([[0.35, 0.0]])
    assert compute_losses(values, 0.3).min() < compute_losses(close_enough, 0.3)[0]
