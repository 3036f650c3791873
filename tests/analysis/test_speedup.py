import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.speedup import (
    geometric_mean,
    reference_targets,
    speedups,
    trials_to_reach,
)
from hpobench_ordered.errors import ExperimentError, UnknownNameError

LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 10, (3, 4, 2, 6)).astype(float)
)


def test_speedup_computed_by_hand():
    slow = [[9, 5, 4, 3, 3, 3], [9, 9, 6, 6, 6, 2]]  # (S, M); after 3 trials 4 and 6: mean 5
    fast = [[5, 9, 9, 9, 9, 9], [7, 4, 9, 9, 9, 9]]
    never = [[6, 6, 6, 6, 6, 6], [7, 7, 5, 7, 7, 7]]
    losses = np.array([slow, fast, never], dtype=float)[:, :, None]
    computed = speedups(losses, ["slow", "fast", "never"], reference="slow", budgets=[3])
    assert reference_targets(losses[0], [3]) == [[5.0]]
    # slow needs 2 and 6 trials, fast 1 and 2; never fails once, which counts as 6, and needs 3.
    np.testing.assert_allclose(computed.values[:, 0, 0], [1, 4 / 1.5, 4 / 4.5])
    np.testing.assert_allclose(computed.failure_rates[:, 0, 0], [0, 0, 0.5])
    np.testing.assert_allclose(computed.mean_failure_rate[:, 0], [0, 0, 0.5])


@given(LOSSES)
def test_trials_agree_with_counting(losses):
    targets = np.array([[3.0, 1.0], [5.0, 0.5]])  # (tasks, budgets)
    computed = trials_to_reach(losses, targets)
    for method, seed, task, budget in np.ndindex(computed.shape):
        run = losses[method, seed, task]
        target = targets[task, budget]
        reaching_trials = [trial for trial, loss in enumerate(run, 1) if loss <= target]
        first_trial = reaching_trials[0] if reaching_trials else 0  # 0: never reached
        assert computed[method, seed, task, budget] == first_trial


@given(LOSSES)
def test_reference_has_speedup_one(losses):
    computed = speedups(losses, "abc", reference="b", budgets=[1, 4])
    assert computed.values.shape == (3, 2, 2)
    np.testing.assert_array_equal(computed.values[1], 1)
    assert ((computed.values > 0) & (computed.values <= losses.shape[-1])).all()
    assert ((computed.failure_rates >= 0) & (computed.failure_rates <= 1)).all()


def test_means_over_tasks_are_geometric():
    losses = np.random.default_rng(0).random((2, 20, 4, 30))  # four tasks
    computed = speedups(losses, "ab", reference="a", budgets=[5])
    product_over_tasks = computed.values[1].prod(axis=0)
    np.testing.assert_allclose(computed.mean[1], product_over_tasks ** (1 / 4))


def test_geometric_mean_by_hand():
    np.testing.assert_allclose(geometric_mean(np.array([[2.0, 8.0]]), axis=1), [4])


def test_first_task_can_be_left_out():
    losses = np.random.default_rng(0).random((2, 20, 4, 30))
    all_tasks = speedups(losses, "ab", reference="a", budgets=[5])
    later_tasks = speedups(losses, "ab", reference="a", budgets=[5], first_task=1)
    np.testing.assert_allclose(later_tasks.values, all_tasks.values[:, 1:])


def test_unknown_reference_suggests_nearest():
    losses = np.zeros((2, 1, 1, 10))
    with pytest.raises(UnknownNameError, match="did you mean 'simple-ordered'"):
        speedups(losses, ["bo", "simple-ordered"], reference="simple-order", budgets=[5])


def test_budgets_beyond_trials_are_refused():
    losses = np.zeros((2, 1, 1, 10))  # 10 trials; the default budgets are 10, 20 and 40
    with pytest.raises(ExperimentError, match=r"\[20, 40\]"):
        speedups(losses, ["bo", "cts"], reference="bo")
