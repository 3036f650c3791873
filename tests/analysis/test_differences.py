import numpy as np
import pytest

from hpobench_ordered.analysis.differences import Difference, difference, pooled
from hpobench_ordered.analysis.scores import Scores


def scores() -> Scores:
    """Three methods, four seeds, five tasks, two trials; task 3 is undefined."""
    values = np.random.default_rng(0).random((3, 4, 5, 2))
    values[:, :, 3] = np.nan
    return Scores(("a", "b", "c"), values)


def test_differences_are_paired_by_seed_and_leave_out_undefined_tasks():
    gap = difference(scores(), "c", "a", trial=2)
    values = scores().values
    expected = (values[2] - values[0])[:, [0, 1, 2, 4], 1]
    np.testing.assert_array_equal(gap.values, expected)
    assert gap.tasks == 4
    assert gap.mean == pytest.approx(expected.mean())
    errors = 2 * expected.mean(axis=1).std(ddof=1) / 2
    assert gap.two_standard_errors == pytest.approx(errors)
    assert gap.better == (expected.mean(axis=0) < 0).sum()


def test_alike_is_within_the_errors_or_the_margin():
    # Means 0, 5 and 10 with errors 2, 2 and 0.
    gap = Difference(np.array([[-1.0, 4.0, 10.0], [1.0, 6.0, 10.0]]))
    assert [gap.alike(margin=m) for m in (0, 4, 5, 10)] == [1, 1, 2, 3]


def test_pooled():
    gap = difference(scores(), "c", "a", trial=1)
    both = pooled([gap, gap])
    assert (both.tasks, both.better) == (2 * gap.tasks, 2 * gap.better)
    assert both.mean == pytest.approx(gap.mean)


def test_one_seed_and_no_task():
    one = Difference(np.array([[1.0, -1.0]]))
    assert np.isnan(one.two_standard_errors)
    assert one.alike(margin=1) == 2
    none = Difference(np.empty((3, 0)))
    assert np.isnan(none.mean) and np.isnan(none.two_standard_errors)
