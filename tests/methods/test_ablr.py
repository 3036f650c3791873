"""Networks shared by tasks: what they learn from, what they are told, what stays fixed."""

from dataclasses import replace

import by_hand
import numpy as np
import pytest
from by_hand import SQUARE
from histories import minimised

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import abrac
from hpobench_ordered.methods._blr.heads import Head
from hpobench_ordered.methods._blr.likelihood import likelihood
from hpobench_ordered.methods._blr.method import LinearHead, standardise_contexts
from hpobench_ordered.methods.ablr import ABLR, EMBEDDING, ABLRContext, ABLREmbeddings, ABLRTransfer
from hpobench_ordered.space.parameters import Parameter

pytestmark = pytest.mark.slow


def loss(values: FloatArray, optimum: float, rate: float = 1.0) -> FloatArray:
    return np.cos(np.pi + rate * (values[:, 0] - optimum)) + (values[:, 1] - optimum) ** 2


def finished(optimum: float, *, seed: int, rate: float = 1.0, n: int = 20) -> Evaluations:
    values = SQUARE.decode(SQUARE.sample_unit(np.random.default_rng(seed), n))
    return minimised(f"{seed}", {"optimum": optimum}, values, loss(values, optimum, rate), SQUARE)


def history(*, rate: float = 1.0) -> list[Evaluations]:
    return [finished(0.3 + 0.1 * t, seed=t, rate=rate) for t in range(3)]


def make(kind, past, *, optimum=0.6):
    return by_hand.make(kind, past, context={"optimum": optimum}, budget=20)


def play(method, trials, *, optimum=0.6):
    return by_hand.play(method, lambda values: loss(values, optimum), trials)


@pytest.mark.parametrize("kind", [ABLRTransfer, abrac.ABRAC])
def test_the_scale_of_a_task_does_not_matter(kind):
    past = history()
    scaled = [replace(task, objective=16.0 * task.losses) for task in past]
    np.testing.assert_array_equal(play(make(kind, past), 6), play(make(kind, scaled), 6))
    assert make(kind, past).fallbacks == 0


@pytest.mark.parametrize(
    ("kind", "learns_on"),
    [
        (abrac.FixedNetwork, False),
        (abrac.ABRAC, False),
        (abrac.ABLRLikelihood, False),
        (abrac.ABLRKitchenSinks, False),
        (ABLRTransfer, True),
    ],
)
def test_a_fixed_network_stays_as_it_was_trained_and_a_shared_one_learns_on(kind, learns_on):
    method = make(kind, history())
    before = method.z.copy()
    play(method, 3)
    np.testing.assert_array_equal(method.z, before)
    play(method, 3)
    assert np.array_equal(method.z, before) is not learns_on
    assert not np.array_equal(before, make(kind, []).z)


def test_alone_every_fit_starts_anew():
    method, other, shared = make(ABLR, history()), make(ABLR, []), make(ABLRTransfer, [])
    played = play(method, 5)
    np.testing.assert_array_equal(played, play(other, 5))  # history has no influence
    np.testing.assert_array_equal(played, play(shared, 5))  # nor is there one to share
    X, y = method.make_inputs(method.evaluated_units()), np.linspace(-1, 1, 5)
    first = method.fit_head(X, y).weights
    np.testing.assert_array_equal(method.fit_head(X, y).weights, first)


def test_context_is_an_input_of_variance_one_over_the_tasks():
    contexts = [{"n": 10.0, "constant": 3.0, "other": 1.0}, {"n": 30.0, "constant": 3.0}]
    contexts.append({"n": 20.0, "constant": 3.0, "other": 2.0})
    scaled = standardise_contexts(contexts)
    np.testing.assert_allclose(scaled, [[-(1.5**0.5), 0], [1.5**0.5, 0], [0, 0]], atol=1e-12)
    past = [finished(optimum, seed=k) for k, optimum in enumerate(np.linspace(0, 1, 30))]
    method = make(ABLRContext, past, optimum=0.5)
    assert method.make_inputs(method.evaluated_units()).shape == (0, 3)
    inputs, _ = method.prepare_sources()
    known = np.array([X[0, 2] for X in inputs])  # scaled as hyperparameters are
    assert len(set(known)) == 30 and known.std() > 0.2 and np.abs(known).max() < 1


def test_of_a_very_long_history_a_random_part_is_learned_from(monkeypatch):
    past = [finished(0.1 * t, seed=t, n=200) for t in range(3)]
    monkeypatch.setattr("hpobench_ordered.methods._blr.method.MAX_SOURCES", 150)
    inputs, losses = make(abrac.ABRAC, past).prepare_sources()
    assert sum(map(len, inputs)) == sum(map(len, losses)) == 150
    assert all(30 < len(X) < 70 for X in inputs)
    again, _ = make(abrac.ABRAC, past).prepare_sources()
    assert all(np.array_equal(X, other) for X, other in zip(inputs, again, strict=True))


def test_a_change_of_choice_is_no_farther_than_the_range_of_a_number():
    space = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b", "c"))])
    method = by_hand.make(ABLR, space=space)
    configs = [{"x": 0, "c": "a"}, {"x": 1, "c": "a"}, {"x": 0, "c": "b"}]
    X = method.make_inputs(space.encode(space.values(configs)))
    a_range, a_choice = np.linalg.norm(X[1:] - X[0], axis=1)
    typical = a_range / 3  # mean distance of two numbers drawn uniformly
    assert 0.8 * typical < a_choice < 1.2 * typical


def test_a_head_alone_is_fitted_as_the_others_are():
    method = make(ABLR, [])
    X = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    y = np.array([-1.5, -0.5, 0.0, 0.0, 0.5, 1.5])
    head = method.fit_head(X, y)
    Phi = method.features(X)
    least = min(
        likelihood(Phi, y, np.array([log_alpha]), log_beta).rho
        for log_alpha in np.linspace(-8, 2 * np.log(6), 25)
        for log_beta in np.linspace(0, 10, 25)
    )
    fitted = likelihood(Phi, y, head.precisions.log_alpha, head.precisions.log_beta)
    assert fitted.rho < least + 0.02


def test_first_suggestions_follow_the_context():
    past = [finished(optimum, seed=k, n=30) for k, optimum in enumerate(np.linspace(0, 1, 8))]
    for optimum in (0.1, 0.9):
        own = play(make(ABLRContext, past, optimum=optimum), 4, optimum=optimum)[3]
        assert np.abs(own - optimum).max() < 0.35


def test_embeddings_are_learned_for_every_task():
    past = history()
    method = make(ABLREmbeddings, past)
    before = method.embeddings.copy()
    assert before.shape == (len(past) + 1, EMBEDDING)
    play(method, 5)
    assert (method.embeddings != before).all()
    assert method.features(np.zeros((2, 2))).shape == (2, 50)


def test_adaptive_heads_switch_features_off_and_others_do_not():
    heads: dict[type[LinearHead], Head] = {}
    for kind in (abrac.ABRAC, abrac.FixedNetwork):
        method = make(kind, history())
        values = SQUARE.decode(SQUARE.sample_unit(np.random.default_rng(9), 15))
        losses = loss(values, 0.6)
        X = method.make_inputs(SQUARE.encode(values))
        heads[kind] = method.fit_head(X, (losses - losses.mean()) / losses.std())
    adaptive = heads[abrac.ABRAC].precisions.log_alpha
    assert adaptive.shape == (20,)
    assert 1 <= np.sum(adaptive < 2.0 * np.log(15) - 1.0) < 15
    assert heads[abrac.FixedNetwork].precisions.log_alpha.shape == (1,)


def test_a_prior_keeps_the_precisions_near_each_other():
    method, other = make(abrac.ABRACPrior, history()), make(abrac.ABRAC, history())
    np.testing.assert_array_equal(method.z, other.z)
    X = np.random.default_rng(9).uniform(-1, 1, (15, 2))
    y = np.sin(3 * X[:, 0])
    y = (y - y.mean()) / y.std()
    apart = [m.fit_head(X, y).precisions.log_alpha.std() for m in (method, other)]
    assert 0 < apart[0] < 0.7 * apart[1]


def test_the_length_scale_of_random_features_is_that_of_the_previous_tasks():
    smooth, rough = (make(abrac.ABLRKitchenSinks, history(rate=rate)).z[0] for rate in (1.0, 15.0))
    assert rough < smooth - 0.5


def test_a_history_without_finite_losses_is_none():
    past = [replace(task, objective=np.full(20, np.nan)) for task in history()]
    np.testing.assert_array_equal(make(abrac.ABRAC, past).z, make(abrac.ABRAC, []).z)
