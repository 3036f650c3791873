"""The ranking-weighted ensemble: losses and weights by the paper's formulas, what misleads."""

import numpy as np
import pytest
from bowls import beside_bo, bowl, played, source
from by_hand import make
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered.methods import rgpe
from hpobench_ordered.methods._gp.acquisition import log_expected_improvement


def test_ranking_losses_are_the_papers_double_sums():
    rng = np.random.default_rng(0)
    f, y = rng.standard_normal((5, 9)), rng.standard_normal(9)
    pairs = [(j, k) for j in range(9) for k in range(9) if j != k]
    base = [sum((s[j] < s[k]) != (y[j] < y[k]) for j, k in pairs) for s in f]
    left_out = [sum((s[j] < y[k]) != (y[j] < y[k]) for j, k in pairs) for s in f]
    assert_array_equal(rgpe.compute_ranking_losses(f, y), base)
    assert_array_equal(rgpe.compute_left_out_ranking_losses(f, y), left_out)


def test_weights_by_hand():
    # Of four samples the first process ranks best in the first and, with the target, in the
    # second. The second process is left out: its median 8 is above 4.85, the target's quantile.
    losses = np.array([[1.0, 2.0, 4.0, 9.0], [8.0, 9.0, 0.0, 8.0], [5.0, 2.0, 3.0, 4.0]])
    assert_array_equal(rgpe.compute_ranking_weights(losses), [1.5 / 4, 0.0, 2.5 / 4])
    losses[1] = [4.0, 4.0, 0.0, 4.0]  # best in the third and, with the target, in the last
    assert_array_equal(rgpe.compute_ranking_weights(losses), [1.5 / 4, 1.5 / 4, 1.0 / 4])


def test_many_useless_processes_do_not_dilute():
    rng = np.random.default_rng(0)
    target = rng.integers(20, 40, size=256)
    losses = np.stack([*rng.integers(30, 80, size=(300, 256)), target]).astype(float)
    assert rgpe.compute_ranking_weights(losses)[-1] == 1.0


def test_weights_are_equal_until_there_are_rankings():
    method = make(rgpe.RGPE, [source(0.2), source(0.9)])
    for n in range(rgpe.MIN_RANKED):
        method.ask()
        assert_allclose(method.used_weights, np.full(3, 1 / 3))
        method.tell(dict(zip("xy", (0.1 * n, 0.5), strict=True)), float(n))


def test_the_ensemble_is_the_weighted_sum_of_processes():
    method = make(rgpe.RGPE, [source(0.2), source(0.3), source(0.9)])
    played(method, 0.35, 6)
    score = method.make_scorer()
    X = np.random.default_rng(0).random((20, 2))
    means, sds = zip(*(process.predict(X) for process in method.used_processes), strict=True)
    mean, sd = method._predict(X)
    w = method.used_weights
    assert w.sum() == pytest.approx(1.0)
    assert_allclose(mean, sum(a * m for a, m in zip(w, means, strict=True)))
    assert_allclose(sd**2, sum((a * s) ** 2 for a, s in zip(w, sds, strict=True)))
    lowest = method._predict(method.features(method.evaluated_units()))[0].min()
    assert_array_equal(score(X), log_expected_improvement(mean, sd, lowest))


def weights_now(method: rgpe.RGPE) -> np.ndarray:
    X, y = method.observations()
    return method.compute_weights(X, y, method.fit_target(X, y))


def test_a_task_like_this_one_has_weight_and_unlike_ones_have_none():
    method = make(rgpe.RGPE, [source(0.4), source(0.4, factor=-1.0), source(0.95)])
    played(method, 0.4, 10)
    like, negated, unlike, _ = weights_now(method)
    assert like > 0.2
    assert negated == 0.0
    assert unlike < 0.05


@pytest.mark.parametrize("count", [1, 20])
def test_negated_tasks_lose_their_weight_and_leave_bo(count):
    history = [source(0.4 + 0.001 * k, factor=-1.0) for k in range(count)]
    methods, ours, of_bo = beside_bo(rgpe.RGPE, history, trials=15)
    assert all(weights_now(method)[-1] == 1.0 for method in methods)
    assert ours < max(10 * of_bo, 1e-3)


def test_of_many_evaluations_a_part_is_ranked():
    method, X = (
        make(rgpe.RGPE, [source(0.4)]),
        np.random.default_rng(0).random((4 * rgpe.MAX_RANKED, 2)),
    )
    y = bowl(X, 0.4)
    assert_allclose(method.compute_weights(X, y, method.fit_target(X, y)).sum(), 1.0)
