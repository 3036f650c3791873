import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.errors import ExperimentError

TIED_LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 5, (4, 3, 2, 3)).astype(float)
)


@given(TIED_LOSSES, st.integers(1, 3))
def test_counts_agree_with_single_comparisons(losses, trial):
    counted = count_wins(losses, "abcd", trial=trial)

    best_losses = losses[..., :trial].min(axis=-1).reshape(4, -1)  # (methods, runs)
    for a in range(4):
        for b in range(4):
            gaps = best_losses[a] - best_losses[b]
            assert counted.wins[a, b] == (gaps < 0).sum()
            assert counted.losses[a, b] == (gaps > 0).sum()
            ties = 0 if a == b else (gaps == 0).sum()
            assert counted.ties[a, b] == ties


def test_first_task_can_be_left_out():
    losses = np.zeros((2, 5, 3, 2))  # (A, S, T, M)
    losses[0, :, 0] = -1  # better on the first task alone

    every_task = count_wins(losses, "ab", trial=2)
    later_tasks = count_wins(losses, "ab", trial=2, first_task=1)

    assert every_task.wins[0, 1] == 5
    assert later_tasks.wins.sum() == 0
    assert later_tasks.ties[0, 1] == 10


@pytest.mark.parametrize("trial", [0, 3])
def test_trial_must_be_within_runs(trial):
    losses = np.zeros((2, 5, 3, 2))  # two trials
    with pytest.raises(ExperimentError, match="1 to 2"):
        count_wins(losses, "ab", trial=trial)
