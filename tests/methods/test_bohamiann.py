"""Bayesian optimisation with a sampled network: what it is fitted to."""

import by_hand
import numpy as np
import pytest
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered.methods.bohamiann import MAX_OWN, MAX_SOURCES, Bohamiann, ContextBohamiann

pytestmark = pytest.mark.slow


def loss(values: np.ndarray, place: float) -> np.ndarray:
    return 50 * place + (values[:, 0] - place) ** 2 + 0.3 * values[:, 1]


def task(place: float, trials: int = 30) -> Evaluations:
    rng = np.random.default_rng([trials, int(1000 * place)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    return minimised(f"{place}", {"place": place}, values, loss(values, place), WITH_CHOICE)


def make(kind=Bohamiann, history=(), *, seed=0):
    return by_hand.make(kind, history, space=WITH_CHOICE, seed=seed, context={"place": 0.6})


def play(method, trials):
    return by_hand.play(method, lambda values: loss(values, 0.6), trials)


def test_the_network_is_fitted_to_all_tasks_standardised_one_by_one():
    history = (task(0.2), task(0.9, 10))
    method = make(ContextBohamiann, history)
    play(method, 3)
    X, y = method.observations()
    assert X.shape == (43, 4)
    for rows in (slice(0, 30), slice(30, 40), slice(40, 43)):
        assert len(np.unique(X[rows, 3])) == 1
        np.testing.assert_allclose([y[rows].mean(), y[rows].std()], [0.0, 1.0], atol=1e-9)
    places = np.array([0.2, 0.9, 0.6])
    expected = (places - places.mean()) / places.std() / 4 + 0.5
    np.testing.assert_allclose(X[[0, 30, 40], 3], expected)


def test_a_random_part_of_a_history_too_large():
    history = tuple(task(p, MAX_SOURCES) for p in (0.1, 0.5))
    one, other = (make(ContextBohamiann, history, seed=s).observations()[0] for s in (0, 1))
    assert len(one) == MAX_SOURCES
    assert not np.array_equal(one, other)
    assert 0.45 < np.mean(one[:, 3] == one[0, 3]) < 0.55


def test_no_more_than_so_many_of_its_own():
    method = make()
    for x in np.linspace(0, 1, MAX_OWN + 5):
        method.tell({"x": float(x), "c": "a"}, float(x))
    X, y = method.observations()
    assert len(X) == len(y) == MAX_OWN
    assert X[-1, 0] == 1.0


def test_the_first_suggestion_follows_other_tasks():
    method = make(ContextBohamiann, (task(0.5), task(0.55), task(0.65), task(0.7)))
    ((x, c),) = play(method, 1)
    assert abs(x - 0.6) < 0.2
    assert c == 0


def test_pending_evaluations_are_taken_to_give_the_mean_loss():
    method = make()
    play(method, 5)
    waiting = method.ask()
    fitted: list[tuple[np.ndarray, np.ndarray]] = []
    network = method._network
    assert network is not None
    original = network.fit
    network.fit = lambda X, y: (fitted.append((X, y)), original(X, y))[1]
    assert method.ask() != waiting
    ((X, y),) = fitted
    assert X.shape == (6, 3)
    assert y[5] == 0.0
    np.testing.assert_array_equal(
        X[5], method.features(WITH_CHOICE.encode(WITH_CHOICE.row(waiting)[None]))[0]
    )
