"""transfer-bo: one model over all tasks, with the context as an input."""

import by_hand
import numpy as np
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.transfer_bo import LARGEST_HISTORY, MAX_OBSERVATIONS, TransferBO

SIZE_COLUMN = 3
"""Column of the context among the features, after those of x and of the two choices."""


def compute_losses(values: FloatArray, size: float) -> FloatArray:
    """A parabola in x whose optimum moves from 0 to 1 as the size grows from 1 to 10000.

    The second choice is worse than the first, and losses are higher on small sizes.
    """
    x, choice = values.T
    best_x = np.log10(size) / 4
    level = 100 / size
    return level + (x - best_x) ** 2 + 0.3 * choice


def make_task(size: float, *, trials: int = 20, seed: int = 0) -> Evaluations:
    """Random evaluations, of a number and a choice, on a task whose context is its size."""
    rng = np.random.default_rng([seed, int(size)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    losses = compute_losses(values, size)
    return minimised(f"{size}", {"size": size}, values, losses, WITH_CHOICE)


def make_method(history: list[Evaluations], size: float, *, seed: int = 0) -> TransferBO:
    """A method on a task whose context is its size."""
    context = {"size": size}
    return by_hand.make_method(TransferBO, history, space=WITH_CHOICE, seed=seed, context=context)


def run_trials(method: TransferBO, size: float, trials: int) -> FloatArray:
    return by_hand.run_trials(method, lambda values: compute_losses(values, size), trials=trials)


def test_first_suggestion_follows_optimum_trend():
    """The optimum of x moves from 0 to 0.75 over four tasks, and is 1 on the current one."""
    firsts = []
    for seed in range(5):
        history = [make_task(size, seed=seed) for size in (1, 10, 100, 1000)]
        (first,) = run_trials(make_method(history, 10_000), size=10_000, trials=1)
        firsts.append(first)
    x, choice = np.array(firsts).T
    assert (choice == 0).all()
    # Beyond the last earlier optimum.
    assert np.median(x) > 0.75 + 0.05


def test_context_ranks_are_features():
    """The ranks of four sizes are scaled to [0, 1]; the current size, 100, is the third."""
    method = make_method([make_task(1), make_task(10), make_task(1000)], 100)
    X_of_earlier_tasks, _losses = method.observations()
    any_configuration = np.zeros((1, 2))
    (features_on_current_task,) = method.features(WITH_CHOICE.encode(any_configuration))
    ranks_of_earlier_sizes = np.unique(X_of_earlier_tasks[:, SIZE_COLUMN])
    np.testing.assert_array_equal(ranks_of_earlier_sizes, [0.0, 1 / 3, 1.0])
    assert features_on_current_task[SIZE_COLUMN] == 2 / 3


def test_losses_are_standardised_together():
    """The losses of all tasks together have mean 0 and deviation 1."""
    method = make_method([make_task(1), make_task(10), make_task(1000)], 100)
    _, y = method.observations()
    np.testing.assert_allclose([y.mean(), y.std()], [0.0, 1.0], atol=1e-9)


def make_history_beyond_paper() -> list[Evaluations]:
    """Three tasks, each as large as the paper's whole histories."""
    return [make_task(size, trials=LARGEST_HISTORY) for size in (1, 10, 100)]


def test_all_current_evaluations_are_used():
    """All trials of the current task are among the observations, beside a large history."""
    method = make_method(make_history_beyond_paper(), 10_000)
    suggested_x, _choice = run_trials(method, size=10_000, trials=method.budget).T
    X, _losses = method.observations()
    # The size column holds ranks; that of the current size, the largest, is 1.
    is_of_current_task = X[:, SIZE_COLUMN] == 1.0
    used_x = X[is_of_current_task, 0]
    assert len(X) == MAX_OBSERVATIONS
    np.testing.assert_array_equal(np.sort(used_x), np.sort(suggested_x))


def test_incumbent_is_of_current_task():
    """No loss of the earlier task of size 1 is the incumbent, although all are lower by a million.

    The incumbent is the loss to improve on. Standardised over all tasks, losses are about -1 on
    the easy task and about 1 on the others.
    """
    task = make_task(1)
    easy = minimised("easy", {"size": 1}, task.values, task.losses - 1e6, WITH_CHOICE)
    method = make_method([easy, make_task(100)], 1000)
    run_trials(method, size=1000, trials=4)
    _X, standardised_losses = method.observations()
    no_model = None  # the incumbent does not depend on it
    assert method.incumbent(no_model, standardised_losses) > 0.9
