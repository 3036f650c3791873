"""ablr, abrac and their variants: what networks and heads are fitted to, and their inputs."""

from collections.abc import Sequence
from dataclasses import replace

import by_hand
import numpy as np
import pytest
from by_hand import UNIT_SQUARE
from histories import minimised

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import abrac
from hpobench_ordered.methods._blr.heads import Head
from hpobench_ordered.methods._blr.likelihood import compute_likelihood
from hpobench_ordered.methods._blr.method import LinearHead, standardise_contexts
from hpobench_ordered.methods.ablr import ABLR, ABLRContext, ABLREmbeddings, ABLRTransfer
from hpobench_ordered.space.parameters import Parameter

pytestmark = pytest.mark.slow

OPTIMUM_OF_CURRENT_TASK = 0.6
"""Both coordinates of its optimum, near those of the earlier tasks."""


def compute_losses(values: FloatArray, optimum: float, frequency: float = 1.0) -> FloatArray:
    """A wave in x and a parabola in y, both with their minimum at the optimum."""
    x, y = values.T
    return np.cos(np.pi + frequency * (x - optimum)) + (y - optimum) ** 2


def make_task(optimum: float, *, seed: int, frequency: float = 1.0, n: int = 20) -> Evaluations:
    """Evaluate n random points of the unit square on a task whose context is its optimum."""
    values = UNIT_SQUARE.sample_unit(np.random.default_rng(seed), n)
    losses = compute_losses(values, optimum, frequency)
    task_name = f"task {seed}"  # every task has a seed of its own
    return minimised(task_name, {"optimum": optimum}, values, losses, UNIT_SQUARE)


def make_history(*, frequency: float = 1.0) -> list[Evaluations]:
    """Three tasks with their optima at 0.3, 0.4 and 0.5, and waves of this frequency."""
    return [make_task(0.3 + 0.1 * t, seed=t, frequency=frequency) for t in range(3)]


def make_method(
    kind: type[LinearHead],
    history: Sequence[Evaluations],
    *,
    optimum: float = OPTIMUM_OF_CURRENT_TASK,
) -> LinearHead:
    """A method whose context is the optimum of the current task."""
    budget = 20  # more trials than any of these tests runs
    return by_hand.make_method(kind, history, context={"optimum": optimum}, budget=budget)


def run_trials(
    method: LinearHead, trials: int, *, optimum: float = OPTIMUM_OF_CURRENT_TASK
) -> FloatArray:
    """Play a method on the current task; return the suggested values, (trials, 2)."""
    return by_hand.run_trials(method, lambda values: compute_losses(values, optimum), trials=trials)


# -- history ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ABLRTransfer, abrac.ABRAC])
def test_scale_of_task_does_not_matter(kind):
    """A method whose earlier tasks have losses on another scale makes the same six suggestions."""
    history = make_history()
    # A power of two, so that no rounding differs.
    scaled = [replace(task, objective=16.0 * task.losses) for task in history]
    np.testing.assert_array_equal(
        run_trials(make_method(kind, history), trials=6),
        run_trials(make_method(kind, scaled), trials=6),
    )


def make_method_for_150_of_600_evaluations(monkeypatch: pytest.MonkeyPatch) -> LinearHead:
    """A method with three tasks of 200 evaluations, of which at most 150 may be used in all."""
    monkeypatch.setattr("hpobench_ordered.methods._blr.method.MAX_SOURCES", 150)
    history = [make_task(optimum, seed=seed, n=200) for seed, optimum in enumerate((0.0, 0.1, 0.2))]
    return make_method(abrac.ABRAC, history)


def test_large_history_is_subsampled(monkeypatch):
    """Of 600 evaluations of three tasks, 150 are used."""
    inputs, losses = make_method_for_150_of_600_evaluations(monkeypatch).prepare_sources()
    counts = [len(X) for X in inputs]
    assert counts == [len(y) for y in losses]
    assert sum(counts) == 150
    # About 50 of each of the three tasks, as the subsample is drawn from all.
    assert min(counts) > 30


# -- when networks are fitted ----------------------------------------------------------------------

FIXED = [abrac.FixedNetwork, abrac.ABRAC, abrac.ABLRLikelihood, abrac.ABLRKitchenSinks]


@pytest.mark.parametrize("kind", [*FIXED, ABLRTransfer])
def test_network_is_trained_on_history(kind):
    # z: the parameters of the network.
    assert not np.array_equal(make_method(kind, make_history()).z, make_method(kind, []).z)


@pytest.mark.parametrize(
    ("kind", "trials", "is_changed"),
    [*((kind, 6, False) for kind in FIXED), (ABLRTransfer, 3, False), (ABLRTransfer, 6, True)],
)
def test_only_shared_network_learns_on(kind, trials, is_changed):
    """All networks are trained on the history; that of `ABLRTransfer` then learns on.

    It learns with its first model, which follows three random trials: its parameters are the same
    after three trials, and others after six.
    """
    method = make_method(kind, make_history())
    parameters_before = method.z.copy()
    run_trials(method, trials=trials)
    has_learned = not np.array_equal(method.z, parameters_before)
    assert has_learned == is_changed


def test_ablr_ignores_history():
    values = run_trials(make_method(ABLR, make_history()), trials=5)
    np.testing.assert_array_equal(values, run_trials(make_method(ABLR, []), trials=5))


def test_ablr_transfer_equals_ablr_without_history():
    values = run_trials(make_method(ABLRTransfer, []), trials=5)
    np.testing.assert_array_equal(values, run_trials(make_method(ABLR, []), trials=5))


def test_fit_of_ablr_maximises_likelihood():
    """No precisions on a grid make the losses of six evaluations likelier than the fitted ones do.

    By the model, losses are a linear function of the network's features Phi, plus noise.
    """
    method = make_method(ABLR, [])
    X = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    y = np.array([-1.5, -0.5, 0.0, 0.0, 0.5, 1.5])
    precisions = method.fit_head(X, y).precisions
    Phi = method.features(X)  # of the six evaluations

    # Precisions of weights (alpha) and of noise (beta) on a grid up to the bounds of the fit.
    highest_log_alpha = 2 * np.log(6)  # as there are six evaluations
    lowest_rho = np.inf  # rho is minus the log likelihood
    for log_alpha in np.linspace(-8, highest_log_alpha, 25):
        for log_beta in np.linspace(0, 10, 25):
            rho = compute_likelihood(Phi, y, np.array([log_alpha]), log_beta).rho
            lowest_rho = min(lowest_rho, rho)

    fitted = compute_likelihood(Phi, y, precisions.log_alpha, precisions.log_beta)
    # The fit stops before its optimum is exact to the last hundredth.
    assert fitted.rho < lowest_rho + 0.02


# -- inputs ----------------------------------------------------------------------------------------


def test_common_contexts_are_standardised():
    """Over the tasks, each quantity that all of them have gets mean 0 and deviation 1."""
    contexts = [
        {"n": 10.0, "constant": 3.0, "other": 1.0},
        {"n": 30.0, "constant": 3.0},
        {"n": 20.0, "constant": 3.0, "other": 2.0},
    ]
    # 10, 30 and 20 lie -10, 10 and 0 from their mean, with a standard deviation of 10 / 1.5**0.5. A
    # constant becomes 0; what only some tasks have is left out.
    expected = [[-(1.5**0.5), 0], [1.5**0.5, 0], [0, 0]]
    np.testing.assert_allclose(standardise_contexts(contexts), expected, atol=1e-12)


def test_context_is_input_of_network():
    """The network gets the context of a task after the hyperparameters of each evaluation."""
    optima = np.linspace(0, 1, 30)
    history = [make_task(optimum, seed=seed) for seed, optimum in enumerate(optima)]
    inputs, _ = make_method(ABLRContext, history, optimum=0.5).prepare_sources()
    context_column = 2  # after the two hyperparameters
    contexts = np.array([X[0, context_column] for X in inputs])
    # The 30 tasks have different contexts, on a scale like that of hyperparameters.
    assert len(set(contexts)) == 30
    assert contexts.std() > 0.2
    assert np.abs(contexts).max() < 1


def test_choices_are_as_distant_as_numbers():
    """Two choices are about as far apart as two random values of a number are on average.

    Otherwise losses at one choice would say hardly anything about those at another.
    """
    space = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b", "c"))])
    method = by_hand.make_method(ABLR, space=space)
    configs = [{"x": 0, "c": "a"}, {"x": 1, "c": "a"}, {"x": 0, "c": "b"}]
    first, other_number, other_choice = method.make_inputs(space.encode(space.values(configs)))
    # The numbers 0 and 1 are the ends of the range.
    length_of_range = np.linalg.norm(other_number - first)
    mean_distance_of_numbers = length_of_range / 3  # of two that are uniform on it
    distance_of_choices = np.linalg.norm(other_choice - first)
    assert distance_of_choices == pytest.approx(mean_distance_of_numbers, rel=0.2)


@pytest.mark.parametrize("optimum", [0.1, 0.9])
def test_suggestions_follow_context(optimum):
    """The context of the current task is its optimum, near one end of the range or the other."""
    # Of eight earlier tasks, each has another optimum, which its context tells.
    earlier_optima = np.linspace(0, 1, 8)
    history = [make_task(earlier, seed=seed, n=30) for seed, earlier in enumerate(earlier_optima)]
    method = make_method(ABLRContext, history, optimum=optimum)

    # The first three trials are random.
    *_random_values, first_of_model = run_trials(method, trials=4, optimum=optimum)

    # On the right side of the square, whose sides have length one.
    assert np.abs(first_of_model - optimum).max() < 0.35


# -- embeddings ------------------------------------------------------------------------------------


def test_embeddings_are_learned():
    """Five trials change each number that describes a task."""
    method = make_method(ABLREmbeddings, make_history())
    before = method.embeddings.copy()
    run_trials(method, trials=5)
    assert (method.embeddings != before).all()


# -- variants of abrac -----------------------------------------------------------------------------


def fit_head_to_current_task(kind: type[LinearHead]) -> Head:
    """The head of 15 evaluations of the current task, on a network trained on the history."""
    method = make_method(kind, make_history())
    values = UNIT_SQUARE.sample_unit(np.random.default_rng(9), 15)
    losses = compute_losses(values, OPTIMUM_OF_CURRENT_TASK)
    y = (losses - losses.mean()) / losses.std()
    return method.fit_head(method.make_inputs(UNIT_SQUARE.encode(values)), y)


def test_adaptive_head_switches_features_off():
    """A feature is off if the precision of its weight is at the upper bound of the fit."""
    log_alpha = fit_head_to_current_task(abrac.ABRAC).precisions.log_alpha
    upper_bound = 2.0 * np.log(15)  # with 15 evaluations
    is_used = log_alpha < upper_bound - 1.0  # clearly below
    # The network has 20 features, each with a precision of its own.
    assert log_alpha.shape == (20,)
    # Some of the 20 are used, and more than a quarter of them are off.
    assert 1 <= is_used.sum() < 15


def test_prior_keeps_precisions_together():
    """A prior draws the log precisions of weights towards their mean."""
    X = np.random.default_rng(9).uniform(-1, 1, (15, 2))
    y = np.sin(3 * X[:, 0])
    y = (y - y.mean()) / y.std()
    with_prior = make_method(abrac.ABRACPrior, make_history())
    without = make_method(abrac.ABRAC, make_history())
    # Both have the same network, so that only the prior on precisions differs.
    np.testing.assert_array_equal(with_prior.z, without.z)

    spread_with_prior = with_prior.fit_head(X, y).precisions.log_alpha.std()
    spread_without = without.fit_head(X, y).precisions.log_alpha.std()
    # Clearly closer, but not equal.
    assert 0 < spread_with_prior < 0.7 * spread_without


def test_length_scale_of_random_features_is_fitted():
    """Losses that wave fifteen times as fast are modelled with a shorter length scale."""
    smooth = make_method(abrac.ABLRKitchenSinks, make_history(frequency=1.0))
    rough = make_method(abrac.ABLRKitchenSinks, make_history(frequency=15.0))
    # The first parameter of random features is their log length scale.
    log_smooth_scale, log_rough_scale = smooth.z[0], rough.z[0]
    assert log_rough_scale < log_smooth_scale - 0.5
