"""Levels of the loss that a fraction of runs attains, by trial."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.curves import attained_levels

RANDOM_RUNS = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 7, (5, 4)).astype(float)
)
"""Incumbents of five runs after each of four trials."""


@given(RANDOM_RUNS, st.sampled_from([0.2, 0.25, 0.5, 0.6, 0.75, 1.0]))
def test_attained_levels_are_quantiles(runs, fraction):
    """The level is the lowest loss that at least this fraction of runs attains by a trial."""
    (level,) = attained_levels(runs, [fraction])

    np.testing.assert_array_equal(level, np.quantile(runs, fraction, axis=0, method="inverted_cdf"))

    share_at_level = (runs <= level).mean(axis=0)
    share_below_level = (runs < level).mean(axis=0)
    rounding = 1e-12
    assert (share_at_level >= fraction - rounding).all()
    assert (share_below_level < fraction).all()


def test_quartiles_include_failed_runs():
    """A failed run, of infinite loss, counts as one that attains no level."""
    runs = np.array([1.0, 2, 3, np.inf])[:, None]  # four runs of one trial, one of which failed

    quartiles = attained_levels(runs)  # by default 25, 50 and 75 %, shape (fractions, trials)
    level_of_all_runs = attained_levels(runs, [1.0])

    assert quartiles.tolist() == [[1], [2], [3]]
    assert level_of_all_runs.tolist() == [[np.inf]]
