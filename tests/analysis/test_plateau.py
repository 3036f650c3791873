import numpy as np

from hpobench_ordered.analysis.plateau import near_best


def test_near_is_a_twentieth_of_the_way_to_the_median():
    losses = np.array([[0.0], [0.5], [0.51], [10.0], [10.0], [10.0], [99.0]])
    np.testing.assert_allclose(near_best(losses), [2 / 7])  # the median is 10


def test_where_the_median_is_the_best_half_are_near():
    losses = np.array([[7.0], [7.0], [7.0], [9.0]])
    np.testing.assert_allclose(near_best(losses), [3 / 4])


def test_near_a_best_value_that_is_known():
    losses = np.array([[1.0], [2.0], [20.0], [20.0], [20.0]])
    np.testing.assert_allclose(near_best(losses, best=np.array([0.0])), [1 / 5])  # within 1
