"""The method over tasks: what it sees of them, where it begins, what changes nothing."""

import math
from functools import partial

import by_hand
import numpy as np
import pytest
from bowls import bowl, played, source
from by_hand import SQUARE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.ordered_gp import (
    FIT_SOURCES,
    MAX_HERE,
    MAX_SOURCES,
    OrderedGP,
    good_and_random,
    task_distances,
    units_of,
)


def make(history: list[Evaluations], *, seed: int = 0, **context: float) -> OrderedGP:
    return by_hand.make(OrderedGP, history, seed=seed, context=context)


task = partial(source, trials=20)


PLACES = (0.2, 0.3, 0.4, 0.5)


def test_it_begins_with_bests_of_earlier_tasks():
    history = [task(p) for p in (0.05, 0.1, *PLACES)]
    bests = {tuple(t.values[t.losses.argmin()]) for t in history}
    assert set(map(tuple, played(make(history), 0.6, OrderedGP.early))) <= bests


def test_where_tasks_drift_it_begins_with_the_last_one():
    history = [source(p, trials=40) for p in np.arange(0.0, 0.9, 0.1)]
    latest = history[-1].values[history[-1].losses.argmin()]
    assert np.abs(played(make(history), 0.9, 1)[0] - latest).max() < 0.15


def test_it_finds_a_smooth_optimum_that_drifts():
    history = [task(p) for p in PLACES]
    assert bowl(played(make(history), 0.6, 15), 0.6).min() < 1e-4


FAILED = minimised("failed", {}, np.full((3, 2), 0.5), np.full(3, math.nan), SQUARE)


@pytest.mark.parametrize("history", [[], [FAILED]])
def test_without_a_finite_history_it_is_bo(history):
    bo = by_hand.make(BayesianOptimisation)
    np.testing.assert_array_equal(played(make(history), 0.3, 8), played(bo, 0.3, 8))


def test_levels_of_tasks_and_scales_of_earlier_ones_change_nothing():
    history = [task(p) for p in PLACES]
    plain = played(make(history), 0.6, 12)
    raised = [task(p, offset=100.0 * p) for p in PLACES]
    np.testing.assert_allclose(played(make(raised), 0.6, 12, offset=64.0), plain, atol=1e-6)
    scaled = [task(p, factor=2.0**k) for k, p in zip((7, -3, 2), PLACES[:3], strict=True)]
    scaled.append(history[-1])
    np.testing.assert_allclose(played(make(scaled), 0.6, 12), plain, atol=1e-6)


def test_the_model_sees_the_nearest_tasks_and_a_part_of_many_evaluations():
    history = [source(p / 20, trials=1000) for p in range(20)]
    method = make(history)
    sources = method.sources
    assert sources.counts.tolist() == [MAX_SOURCES // OrderedGP.nearest] * OrderedGP.nearest
    assert sources.fitted_counts.sum() <= FIT_SOURCES
    nearest = [t.values[t.losses.argmin()] for t in history[: -OrderedGP.nearest - 1 : -1]]
    np.testing.assert_array_equal(sources.best_values, nearest)
    for best in sources.bests:
        assert (sources.unit == best).all(axis=1).any()


def test_of_many_evaluations_of_this_task_it_sees_a_part():
    method = make([task(0.5)])
    for row in np.random.default_rng(0).random((2 * MAX_HERE, 2)):
        method.tell(SQUARE.configs(row[None])[0], float(bowl(row[None], 0.6)[0]))
    method.ask()
    assert method._process.observed.counts.tolist() == [20, MAX_HERE]


def test_a_model_that_grew_is_one_that_was_made_anew():
    from hpobench_ordered.methods._gp.tasks import TaskProcess

    method = make([task(p) for p in PLACES])
    played(method, 0.6, 9)
    method.ask()
    grown = method._process
    C = np.random.default_rng(0).random((30, 2))
    anew = TaskProcess(grown.observed, grown.x)
    np.testing.assert_allclose(grown.predict(C), anew.predict(C), atol=1e-8)


def test_distances_are_those_of_contexts_by_rank():
    contexts = [{"size": s, "rare": 1.0} for s in (10.0, 1000.0, 20.0)]
    several = [{"a": 0.0, "b": 5.0}, {"a": 1.0, "b": 5.0}]
    for known, here, expected in (
        (contexts, {"size": 30.0}, [2, 1, 1, 0]),
        (several, {"a": 0.0, "b": 7.0}, [0.5, 1.0, 0.0]),
        ([{}, {}], {}, [2, 1, 0]),  # without contexts those of places
        ([{"a": 1.0}, {}], {"a": 2.0}, [2, 1, 0]),
    ):
        np.testing.assert_array_equal(task_distances(known, here)[-1], expected)


def test_the_nearest_tasks_by_context_are_seen():
    history = [task(p, size=s) for p, s in zip((0.1, 0.2, 0.3, 0.4), (1, 9, 8, 7), strict=True)]
    method = by_hand.make(type("Two", (OrderedGP,), {"nearest": 2}), history, context={"size": 0})
    nearest = [history[i].values[history[i].losses.argmin()] for i in (0, 3)]
    np.testing.assert_array_equal(method.sources.best_values, nearest)


def test_units_are_robust_and_never_zero():
    losses = [np.array([-2.0, 0.0, 900.0]), np.array([0.0, 0.0, 3.0]), np.zeros(4)]
    units = units_of(losses)
    assert units[:2] == [1.0, pytest.approx(math.sqrt(0.75))]
    assert units[2] == pytest.approx(math.sqrt(units[0] * units[1]))
    assert units_of([np.zeros(1)]) == [1.0]


@pytest.mark.parametrize("count", [0, 1, 7, 50])
def test_good_and_random(count):
    losses = np.random.default_rng(1).random(50)
    chosen = good_and_random(losses, count, np.random.default_rng(0))
    assert len(set(chosen)) == len(chosen) == max(1, count)
    assert losses.argmin() in chosen
    assert (np.diff(chosen) > 0).all()


def test_pending_evaluations_keep_it_from_asking_for_the_same_again():
    method = make([task(p) for p in PLACES])
    asked = [tuple(method.ask().values()) for _ in range(8)]
    assert len(set(asked)) == 8
    method.tell(dict(zip(("x", "y"), asked[0], strict=True)), 0.3)
    assert tuple(method.ask().values()) not in asked
