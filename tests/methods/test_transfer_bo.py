"""One model over all tasks."""

import by_hand
import numpy as np
import pytest
from by_hand import WITH_CHOICE
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered.methods.transfer_bo import LARGEST_HISTORY, MAX_OBSERVATIONS, TransferBO


def loss(values: np.ndarray, size: float) -> np.ndarray:
    """The optimum moves from 0 to 1 as the size grows from 1 to 10000; b is always worse."""
    return (values[:, 0] - np.log10(size) / 4) ** 2 + 0.3 * values[:, 1] + 100 / size


def task(size: float, *, trials: int = 20, seed: int = 0) -> Evaluations:
    rng = np.random.default_rng([seed, int(size)])
    values = WITH_CHOICE.decode(WITH_CHOICE.sample_unit(rng, trials))
    return minimised(f"{size}", {"size": size}, values, loss(values, size), WITH_CHOICE)


def make(history, size, *, seed=0):
    context = {"size": size}
    return by_hand.make(TransferBO, history, space=WITH_CHOICE, seed=seed, context=context)


def play(method, size, trials):
    return by_hand.play(method, lambda values: loss(values, size), trials)


def test_the_first_suggestion_follows_the_trend_of_the_optimum():
    sizes = [1, 10, 100, 1000]
    firsts = [play(make([task(s, seed=k) for s in sizes], 10_000), 1e4, 1) for k in range(5)]
    values = np.concatenate(firsts)
    assert (values[:, 1] == 0).all()
    assert np.median(values[:, 0]) > 0.8  # the last task's optimum is at 0.75


def test_the_context_is_a_feature_with_a_length_scale_of_its_own():
    method = make([task(1), task(10), task(1000)], 100)
    X, y = method.observations()
    assert X.shape == (60, 4)
    np.testing.assert_array_equal(np.unique(X[:, 3]), [0.0, 1 / 3, 1.0])
    features = method.features(WITH_CHOICE.encode(np.zeros((2, 2))))
    np.testing.assert_array_equal(features[:, 3], 2 / 3)
    np.testing.assert_array_equal(method.feature_groups(), [0, 1, 1, 2])
    np.testing.assert_allclose([y.mean(), y.std()], [0.0, 1.0], atol=1e-9)


def test_no_more_than_so_many_observations_are_used_and_others_every_time():
    method = make([task(s, trials=70) for s in (1, 10, 100, 1000)], 10_000)
    (X, y), (other, _) = method.observations(), method.observations()
    assert len(np.unique(X, axis=0)) == len(X) == len(y) == MAX_OBSERVATIONS
    assert not np.array_equal(X, other)


def test_of_a_history_larger_than_the_papers_a_part_is_kept_beside_all_own_evaluations():
    sizes = (1, 10, 100)
    whole = make([task(s, trials=LARGEST_HISTORY // 3) for s in sizes], 10_000)
    assert len(whole._source_losses) == LARGEST_HISTORY
    method = make([task(s, trials=LARGEST_HISTORY) for s in sizes], 10_000)
    before, _ = method.observations()
    assert len(before) == MAX_OBSERVATIONS - 25
    assert set(before[:, 3]) == {0.0, 1 / 3, 2 / 3}  # of all tasks
    values = play(method, 1e4, 25)
    after, _ = method.observations()
    assert len(after) == MAX_OBSERVATIONS
    same_task = after[after[:, 3] == 1.0, 0]
    np.testing.assert_array_equal(np.sort(same_task), np.sort(values[:, 0]))


def test_improvement_is_measured_on_the_current_task():
    # Every loss on the small sizes is far below those here: they must not be the incumbent.
    easy = minimised("easy", {"size": 1}, task(1).values, task(1).losses - 1e6, WITH_CHOICE)
    method = make([easy, task(100)], 1000)
    play(method, 1000, 4)
    _, y = method.observations()
    assert method.incumbent(None, y) > 0.9  # standardised: the easy task lies at -1, all else at 1


@pytest.mark.parametrize(
    "contexts", [({}, {}), ({"size": 3.0}, {"size": 3.0}), ({"a": 1}, {"b": 2})]
)
def test_tasks_that_nothing_tells_apart(contexts):
    previous = minimised("p", contexts[0], task(10).values, task(10).losses, WITH_CHOICE)
    method = by_hand.make(TransferBO, [previous], space=WITH_CHOICE, context=contexts[1])
    assert np.abs(play(method, 10, 3)[:, 0] - 0.25).min() < 0.1
    assert method.fallbacks == 0
