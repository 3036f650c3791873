"""Gaussian processes over evaluations of other tasks: which ones, standardised how."""

import by_hand
import numpy as np
import pytest
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered.methods.bo import MAX_CONDITIONED
from hpobench_ordered.methods.gp_transfer import (
    MAX_PER_TASK,
    MAX_SOURCES,
    GPTransfer,
    GPTransferClosest,
    GPTransferSubsample,
)
from hpobench_ordered.methods.transfer_bo import TransferBO

BOTH = pytest.mark.parametrize("kind", [GPTransferClosest, GPTransferSubsample])


def loss(values: np.ndarray, place: float) -> np.ndarray:
    """The optimum is at x = place; offset and scale are the task's own."""
    scale = 1.0 + 100.0 * place
    return scale * ((values[:, 0] - place) ** 2 + 0.3 * values[:, 1]) + 1000.0 * place


def task(place: float, trials: int = 20, **context: float) -> Evaluations:
    rng = np.random.default_rng([trials, int(1000 * place)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    return minimised(
        f"{place}", context or {"place": place}, values, loss(values, place), WITH_CHOICE
    )


def make(kind, history, *, seed=0, **context):
    return by_hand.make(kind, history, space=WITH_CHOICE, seed=seed, context=context)


def play(method, place, trials):
    return by_hand.play(method, lambda values: loss(values, place), trials)


def sources(method: GPTransfer, history: list[Evaluations]) -> list[int]:
    """How many of its observations are evaluations of each task."""
    X, _ = method.observations()
    seen = X[: len(X) - method.evaluation_count, 0].tolist()
    return [sum(x in set(t.values[:, 0].tolist()) for x in seen) for t in history]


def test_the_closest_task_is_that_of_the_smallest_l1_distance_of_standardised_contexts():
    # Unscaled, r alone decides, and by Euclid's distance another task is closest.
    contexts = [(1.0, 3000.0), (2.0, 2000.0), (4.0, 0.0), (0.0, 0.0)]
    table = np.array(contexts)
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    assert np.abs(scaled[:3] - scaled[3]).sum(axis=1).argmin() == 2
    assert np.linalg.norm(scaled[:3] - scaled[3], axis=1).argmin() == 1
    history = [task(0.1 * t, q=q, r=r) for t, (q, r) in enumerate(contexts[:3])]
    assert sources(make(GPTransferClosest, history, q=0.0, r=0.0), history) == [0, 0, 20]


def test_of_equally_close_tasks_the_last_is_the_closest():
    history = [task(0.1, q=1.0), task(0.2, q=3.0), task(0.3, q=9.0)]
    assert sources(make(GPTransferClosest, history, q=2.0), history) == [0, 20, 0]


@BOTH
def test_without_a_common_context_the_place_in_the_history_stands_for_it(kind):
    history = [task(0.1, a=1.0), task(0.2, b=1.0), task(0.3, a=1.0)]
    method = make(kind, history, a=1.0)
    expected = [0, 0, 20] if kind is GPTransferClosest else [MAX_PER_TASK] * 3
    assert sources(method, history) == expected
    X, _ = method.observations()
    inputs = [*np.unique(X[:, 3]), method.features(np.full((1, 2), 0.5))[0, 3]]
    assert (np.diff(inputs) > 0).all()


def test_no_more_evaluations_of_the_closest_task_than_in_the_paper():
    history = [task(0.1, 900), task(0.9, 900)]
    method = make(GPTransferClosest, history, place=0.2)
    assert sources(method, history) == [MAX_SOURCES, 0]
    other, again = (make(GPTransferClosest, history, place=0.2, seed=s) for s in (1, 0))
    X, y = method.observations()
    assert not np.array_equal(X, other.observations()[0])
    np.testing.assert_array_equal(X, again.observations()[0])
    losses = history[0].losses
    standardised = (losses - losses.mean()) / losses.std()
    assert np.isin(y.round(9), standardised.round(9)).all()  # over all 900, not over the 300


@pytest.mark.parametrize(("tasks", "total"), [(1, 10), (29, 290), (30, 300), (200, 300)])
def test_some_evaluations_of_every_other_task_but_never_too_many(tasks, total):
    history = [task(t / tasks, 15) for t in range(tasks)]
    counts = sources(make(GPTransferSubsample, history, place=0.5), history)
    assert sum(counts) == total
    assert max(counts) <= MAX_PER_TASK
    assert set(counts) == {MAX_PER_TASK} or tasks > MAX_SOURCES / MAX_PER_TASK
    few = [task(0.1, 3), task(0.2, 30)]
    assert sources(make(GPTransferSubsample, few, place=0.3), few) == [3, MAX_PER_TASK]


@BOTH
def test_losses_are_standardised_task_by_task(kind):
    history = [task(p, MAX_PER_TASK) for p in (0.1, 0.5, 0.8)]
    method = make(kind, history, place=0.6)
    play(method, 0.6, 8)
    X, y = method.observations()
    assert len(np.unique(X[:, 3])) == len(np.unique(method._source_task_features)) + 1
    for place in np.unique(X[:, 3]):
        mine = y[X[:, 3] == place]
        np.testing.assert_allclose([mine.mean(), mine.std()], [0.0, 1.0], atol=1e-9)
    assert method.incumbent(None, y) == y[-8:].min()  # type: ignore[arg-type]


@BOTH
def test_contexts_are_standardised_over_all_tasks_with_length_scales_of_their_own(kind):
    numbers = np.array([3.0, 50.0, 20.0, 10.0])
    history = [task(0.1 * t, q=q, constant=7.0) for t, q in enumerate(numbers[:3])]
    method = make(kind, history, q=10.0, constant=7.0)
    inputs = method.compute_task_features([t.context for t in history])
    np.testing.assert_allclose(4 * (inputs[:, 0] - 0.5), (numbers - numbers.mean()) / numbers.std())
    np.testing.assert_array_equal(inputs[:, 1], 0.5)
    np.testing.assert_array_equal(method.group_features(), [0, 1, 1, 2, 3])


@BOTH
def test_observations_stay_bounded(kind):
    history = [task(t / 60, 400) for t in range(60)]
    method = make(kind, history, place=0.5)
    rng = np.random.default_rng(0)
    for values in WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, 2 * MAX_CONDITIONED)):
        method.tell(WITH_CHOICE.configs(values[None])[0], float(loss(values[None], 0.5)[0]))
    X, y = method.observations()
    assert len(X) == len(y) == MAX_SOURCES + MAX_CONDITIONED


@BOTH
@pytest.mark.parametrize("tasks", [1, 6])
def test_the_first_suggestions_use_what_is_known_of_other_tasks(kind, tasks):
    history = [task(p, 40) for p in np.linspace(0.45, 0.75, tasks)]
    firsts = [play(make(kind, history, seed=s, place=0.5), 0.5, 1)[0] for s in range(5)]
    assert all(c == 0 for _, c in firsts)
    assert np.median([abs(x - 0.5) for x, _ in firsts]) < 0.15


@pytest.mark.parametrize("kind", [GPTransferClosest, GPTransferSubsample, TransferBO])
def test_without_history_it_is_bo(kind):
    values = play(make(kind, [], place=0.3), 0.3, 15)
    assert loss(values, 0.3).min() < loss(np.array([[0.35, 0.0]]), 0.3)[0]
