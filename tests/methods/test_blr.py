"""Bayesian linear regression: heads and joint marginal likelihood against direct computations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr import joint
from hpobench_ordered.methods._blr.heads import Head, Precisions
from hpobench_ordered.methods._blr.likelihood import Likelihood, likelihood
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._networks import features, runtime

SMALL = features.Network(8, (6,))


def covariance(Phi: FloatArray, precisions: Precisions) -> FloatArray:
    """Sigma (n, n) as defined, without any of the core's formulas."""
    weights = np.eye(Phi.shape[1]) / np.exp(precisions.log_alpha)
    return Phi @ weights @ Phi.T + np.eye(len(Phi)) / np.exp(precisions.log_beta)


def direct_rho(Phi: FloatArray, y: FloatArray, precisions: Precisions) -> float:
    Sigma = covariance(Phi, precisions)
    return float(0.5 * np.linalg.slogdet(Sigma)[1] + 0.5 * y @ np.linalg.solve(Sigma, y))


def problem(n: int, d: int, *, ard: bool, seed: int) -> tuple[FloatArray, FloatArray, Precisions]:
    rng = np.random.default_rng([seed, n, d])
    precisions = Precisions(rng.normal(0, 1, d if ard else 1), float(rng.uniform(0, 6)))
    return rng.standard_normal((n, d)), rng.standard_normal(n), precisions


def ours(Phi: FloatArray, y: FloatArray, precisions: Precisions) -> Likelihood:
    return likelihood(Phi, y, precisions.log_alpha, precisions.log_beta)


SIZES = st.tuples(st.integers(1, 12), st.integers(1, 8), st.booleans(), st.integers(0, 10**6))


@given(SIZES)
def test_likelihood_and_prediction_are_those_of_the_covariance_matrix(sizes):
    n, d, ard, seed = sizes
    Phi, y, precisions = problem(n, d, ard=ard, seed=seed)
    candidates = np.random.default_rng(seed).standard_normal((5, d))
    head = Head(Phi, y, precisions)
    assert_allclose(ours(Phi, y, precisions).rho, direct_rho(Phi, y, precisions), rtol=1e-8)
    everything = covariance(np.concatenate([candidates, Phi]), precisions)
    cross = everything[:5, 5:]
    solved = np.linalg.solve(everything[5:, 5:], cross.T)
    variance = np.diag(everything)[:5] - np.exp(-precisions.log_beta)
    variance = variance - np.sum(cross * solved.T, axis=1)
    mean, sd = head.predict(candidates)
    assert_allclose(mean, solved.T @ y, rtol=1e-8, atol=1e-8)
    assert_allclose(sd**2, variance, rtol=1e-8, atol=1e-8)


@given(SIZES)
def test_gradient_of_a_likelihood(sizes):
    n, d, ard, seed = sizes
    Phi, y, precisions = problem(n, d, ard=ard, seed=seed)
    x = np.append(precisions.log_alpha, precisions.log_beta)
    of = ours(Phi, y, precisions)
    by_alpha = of.by_alpha if ard else of.by_alpha.sum(keepdims=True)
    numeric = approx_fprime(x, lambda x: direct_rho(Phi, y, Precisions(x[:-1], x[-1])), 1e-6)
    assert_allclose(np.append(by_alpha, of.by_beta), numeric, rtol=1e-3, atol=1e-3)
    flat = Phi.ravel()
    numeric = approx_fprime(flat, lambda f: direct_rho(f.reshape(n, d), y, precisions), 1e-6)
    assert_allclose(of.by_features.ravel(), numeric, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n", [3, 20, 21, 60])
def test_both_forms_where_the_other_one_would_be_used_next(n):
    # A feature that is always 0 changes nothing but the form: with it, n may be at most d.
    Phi, y, precisions = problem(n, 20, ard=False, seed=0)
    wide = np.concatenate([Phi, np.zeros((n, 60))], axis=1)
    narrow, other = Head(Phi, y, precisions), Head(wide, y, precisions)
    rho = ours(Phi, y, precisions).rho
    assert_allclose(ours(wide, y, precisions).rho, rho, rtol=1e-8)
    assert_allclose(narrow.weights, other.weights[:20], rtol=1e-8, atol=1e-10)
    assert_allclose(narrow.predict(Phi)[1], other.predict(wide)[1], rtol=1e-8)


def test_relevance_determination_finds_three_of_twenty_features():
    rng, relevant = np.random.default_rng(0), [2, 7, 11]

    def losses(Phi: FloatArray) -> FloatArray:
        return Phi[:, relevant] @ [1.0, -0.7, 0.5]

    Phi, fresh = rng.standard_normal((30, 20)), np.random.default_rng(1).standard_normal((500, 20))
    y = losses(Phi) + 0.05 * rng.standard_normal(30)
    ard, plain = (Head.fit(Phi, y, Precisions.initial(count)) for count in (20, 1))
    log_alpha = ard.precisions.log_alpha
    assert_array_equal(np.sort(np.argsort(log_alpha)[:3]), relevant)
    others = np.setdiff1d(np.arange(20), relevant)
    assert np.median(log_alpha[others]) == 2.0 * np.log(30)  # switched off
    assert np.abs(ard.weights[others] * np.exp(-0.5 * log_alpha[others])).max() < 0.05
    assert len(plain.precisions.log_alpha) == 1
    errors = [np.mean((head.predict(fresh)[0] - losses(fresh)) ** 2) for head in (ard, plain)]
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("n", [6, 30])
def test_a_prior_is_part_of_what_is_minimised(n):
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 4))
    y = Phi @ [1.0, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(n)
    spread = 0.7

    def posterior(x: FloatArray) -> float:
        own = Precisions(x[:-1], float(x[-1]))
        normal = norm.logpdf(x[:-1], x[:-1].mean(), spread) - norm.logpdf(0, 0, spread)
        return direct_rho(Phi, y, own) - float(normal.sum())

    found = Head.fit(Phi, y, Precisions.initial(4), spread=spread).precisions
    start = np.append(np.zeros(4), 2.0)
    bounds = [(-12.0, 2.0 * np.log(n))] * 4 + [(0.0, 10.0)]
    best = minimize(posterior, start, bounds=bounds)
    assert posterior(np.append(found.log_alpha, found.log_beta)) < best.fun + 0.02


@pytest.mark.parametrize("n", [10, 50])
def test_a_fit_is_no_worse_than_a_grid(n):
    rng = np.random.default_rng(n)
    Phi = rng.standard_normal((n, 15))
    y = Phi @ rng.standard_normal(15) / 4 + 0.3 * rng.standard_normal(n)
    value = ours(Phi, y, Head.fit(Phi, y, Precisions.initial(1)).precisions).rho
    grid = product(np.linspace(-6, 8, 29), np.linspace(0, 12, 25))
    assert value < min(direct_rho(Phi, y, Precisions(np.array([a]), b)) for a, b in grid) + 0.02


def test_pending_evaluations_leave_the_mean_and_shrink_the_deviation():
    Phi, y, precisions = problem(8, 12, ard=True, seed=3)
    pending, candidates = np.split(np.random.default_rng(1).standard_normal((6, 12)), [2])
    head = Head(Phi, y, precisions)
    other, losses = head.with_fantasies(pending)
    assert_allclose(losses, head.predict(pending)[0])
    assert_allclose(other.predict(candidates)[0], head.predict(candidates)[0], atol=1e-8)
    assert (other.predict(candidates)[1] < head.predict(candidates)[1]).all()
    with pytest.raises(ModelError):
        Head(Phi * np.nan, y, precisions)


# -- many tasks, one network -----------------------------------------------------------------------


def tasks(counts: list[int], *, inputs: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = [rng.random((n, inputs)) for n in counts]
    return X, [np.sin(4 * x[:, 0] + t) for t, x in enumerate(X)]


def random_parameters(phi: features.Network, inputs: int, count: int, k: int) -> joint.Parameters:
    rng = np.random.default_rng(5)
    log_alpha, log_beta = rng.normal(0, 1, count), rng.uniform(0, 5, count)
    z = phi.initial(rng, inputs + k)
    return joint.Parameters(z, rng.standard_normal((count, k)), log_alpha, log_beta)


@pytest.mark.parametrize("k", [0, 2])
def test_the_joint_likelihood_is_the_sum_of_the_tasks(k):
    counts = [3, 6, 7, 0, 103]  # few and many, in several blocks
    X, y = tasks(counts, inputs=3)
    parameters = random_parameters(SMALL, 3, 5, k)
    value, gradient = joint.value_and_gradient(SMALL, X, y, parameters)
    expected = 0.0
    for t, (x, losses) in enumerate(zip(X, y, strict=True)):
        inputs = np.concatenate([np.tile(parameters.embedded[t], (len(x), 1)), x], axis=1)
        Phi = features.compute_features(SMALL, parameters.z, inputs)
        own = Precisions(parameters.log_alpha[t : t + 1], parameters.log_beta[t])
        expected += direct_rho(Phi, losses, own) if len(x) else 0.0
    assert_allclose(value, expected, rtol=1e-8)
    again = joint._split(joint._join(parameters), parameters)
    for name in ("z", "embedded", "log_alpha", "log_beta"):
        assert_array_equal(getattr(again, name), getattr(parameters, name))
    assert np.isfinite(gradient).all()


def test_gradient_of_the_joint_likelihood():
    X, y = tasks([4, 55, 0, 70], inputs=2)
    parameters = random_parameters(SMALL, 2, 4, 1)

    def at(x: FloatArray) -> tuple[float, FloatArray]:
        return joint.value_and_gradient(SMALL, X, y, joint._split(x, parameters))

    x = joint._join(parameters)
    numeric = [(at(x + step)[0] - at(x - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(x))]
    assert_allclose(at(x)[1], numeric, rtol=1e-4, atol=1e-4)


def test_a_joint_fit_predicts_a_new_task_better_than_its_own_evaluations_alone():
    phi = features.Network(8, (20, 20))
    X, y = tasks([20] * 6 + [4], inputs=1)
    start = joint.Parameters.initial(phi.initial(np.random.default_rng(0), 1), np.zeros((7, 0)))
    fresh = np.linspace(0, 1, 50)[:, None]
    truth, errors = np.sin(4 * fresh[:, 0] + 6), []
    for chosen in (range(7), [6]):
        own = joint.Parameters(start.z, *(a[list(chosen)] for a in (start.embedded, start.log_alpha,
                                                               start.log_beta)))  # fmt: skip
        data = [X[t] for t in chosen], [y[t] for t in chosen]
        best = joint.fit_jointly(phi, *data, own, evaluations=60)
        before, after = (joint.value_and_gradient(phi, *data, p)[0] for p in (own, best))
        assert after < before - 1.0
        Phi = features.compute_features(phi, best.z, X[6])
        head = Head.fit(Phi, y[6], best.median_precisions(max(1, len(chosen) - 1)))
        mean, _ = head.predict(features.compute_features(phi, best.z, fresh))
        errors.append(float(np.mean((mean - truth) ** 2)))
    assert errors[0] < 0.5 * errors[1]


def test_numbers_of_tasks_and_evaluations_need_no_other_program():
    phi = features.Network(8, (4,))

    def evaluate(counts: list[int]) -> int:
        X, y = tasks(counts, inputs=2)
        joint.value_and_gradient(phi, X, y, random_parameters(phi, 2, len(counts), 0))
        return runtime.count_programs()

    before = [evaluate(counts) for counts in ([3], [100], [1000])][-1]  # a program a size
    assert [evaluate(counts) for counts in ([3], [40, 0, 200], [2500, 7, 7])] == [before] * 3


# -- random kitchen sinks --------------------------------------------------------------------------


def test_random_kitchen_sinks_approach_their_kernel():
    phi = features.RandomKitchenSinks(8, 20_000)
    z = phi.initial(np.random.default_rng(0), 3)
    X = np.random.default_rng(1).random((12, 3))
    y = np.sin(5 * X).sum(axis=1)
    Phi = features.compute_features(phi, z, X)
    kernel = RBF(np.exp(z[0]), "fixed")
    assert_allclose(Phi @ Phi.T, kernel(X), atol=0.03)
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X[:10], y[:10])
    mean, sd = model.predict(X, return_std=True)
    own_mean, own_sd = Head(Phi[:10], y[:10], Precisions(np.zeros(1), -np.log(0.1))).predict(Phi)
    assert_allclose(own_mean, mean, atol=0.1)
    assert_allclose(own_sd, sd, atol=0.05)
