import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.errors import ExperimentError

SMALL = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 5, (4, 3, 2, 3)).astype(float)
)


@given(SMALL, st.integers(1, 3))
def test_counts_agree_with_single_comparisons(losses, trial):
    counted = count_wins(losses, "abcd", trial=trial)
    rows = losses[..., :trial].min(axis=-1).reshape(4, -1)
    for a in range(4):
        for b in range(4):
            gaps = [x - y for x, y in zip(rows[a], rows[b], strict=True)]
            assert counted.wins[a, b] == sum(gap < 0 for gap in gaps)
            assert counted.losses[a, b] == sum(gap > 0 for gap in gaps)
            assert counted.ties[a, b] == (a != b) * sum(gap == 0 for gap in gaps)


def test_first_task_can_be_left_out():
    losses = np.zeros((2, 5, 3, 2))
    losses[0, :, 0] = -1  # better on the first task alone
    assert count_wins(losses, "ab", trial=2).wins[0, 1] == 5
    rest = count_wins(losses, "ab", trial=2, first_task=1)
    assert rest.wins.sum() == 0
    assert rest.ties[0, 1] == 10
    for trial in (0, 3):
        with pytest.raises(ExperimentError, match="1 to 2"):
            count_wins(losses, "ab", trial=trial)
