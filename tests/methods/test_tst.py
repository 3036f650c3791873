"""The two-stage surrogate and the acquisition function with rankings, by the papers' formulas."""

import numpy as np
import pytest
from bowls import beside_bo, played, source
from by_hand import make
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from hpobench_ordered.methods.tst import (
    BANDWIDTH,
    TAFR,
    TSTR,
    epanechnikov,
    share_of_misranked_pairs,
)

BOTH = pytest.mark.parametrize("kind", [TSTR, TAFR])
UNLIKE = [source(0.4, factor=-1.0), source(0.95), source(0.05)]


def test_distances_are_the_papers_double_sums():
    rng = np.random.default_rng(0)
    mean, y = rng.standard_normal((2, 11))
    pairs = [(j, k) for j in range(11) for k in range(11) if j != k]
    wrong = sum((mean[j] > mean[k]) != (y[j] > y[k]) for j, k in pairs)
    assert share_of_misranked_pairs(mean, y) == wrong / (11 * 10)
    assert share_of_misranked_pairs(-y, y) == 1.0
    assert share_of_misranked_pairs(5.0 * y + 1.0, y) == 0.0
    assert share_of_misranked_pairs(mean[:1], y[:1]) == 0.0  # without a pair


def test_the_kernel_by_hand():
    assert_array_equal(epanechnikov(np.array([0.0, 0.5, 1.0, 3.0])), [0.75, 0.5625, 0.0, 0.0])


@BOTH
def test_only_tasks_that_rank_alike_have_weight(kind):
    method = make(kind, [source(0.4), source(0.41, factor=100.0), *UNLIKE])
    played(method, 0.4, 10)
    X, y = method.observations()
    weights = method.compute_weights(X, y, method.fit_target(X, y))
    distances = [share_of_misranked_pairs(process.predict(X)[0], y) for process in method.processes]
    expected = 0.75 * np.maximum(1.0 - (np.array(distances) / BANDWIDTH) ** 2, 0.0)
    assert_allclose(weights[:-1], expected)
    assert weights[-1] == 0.75
    assert weights[0] > 0.7
    assert weights[1] > 0.0
    assert (weights[2:-1] == 0.0).all()


def test_the_surrogate_is_the_weighted_mean_with_the_variance_of_the_target():
    method = make(TSTR, [source(0.4), source(0.41)])
    played(method, 0.4, 6)
    method.ask()
    X = np.random.default_rng(0).random((20, 2))
    mean, sd = method._predict(X)
    means = [process.predict(X)[0] for process in method.used_processes]
    assert_allclose(mean, np.average(means, axis=0, weights=method.used_weights))
    assert_array_equal(sd, method.used_processes[-1].predict(X)[1])


def test_the_acquisition_function_is_the_weighted_mean_of_improvements():
    method = make(TAFR, [source(0.4), source(0.45)])
    played(method, 0.4, 5)
    score = method.make_scorer()
    unit = np.random.default_rng(0).random((200, 2))
    *sources, target = method.used_processes
    here, y = method.observations()
    improvements = [
        np.maximum(process.predict(here)[0].min() - process.predict(unit)[0], 0.0)
        for process in sources
    ]
    mean, sd = target.predict(unit)
    z = (y.min() - mean) / sd
    improvements.append(sd * (z * norm.cdf(z) + norm.pdf(z)))
    expected = sum(w * i for w, i in zip(method.used_weights, improvements, strict=True))
    some = expected > 1e-9
    assert some.sum() > 50
    assert_allclose(np.exp(score(unit))[some], expected[some], rtol=1e-6)


@BOTH
def test_unlike_tasks_leave_bo(kind):
    methods, ours, of_bo = beside_bo(kind, UNLIKE, trials=15)
    assert all(method.used_weights.tolist() == [1.0] for method in methods)
    assert ours < max(10 * of_bo, 1e-3)
