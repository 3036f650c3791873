"""The numerics behind methods that look at training data, against independent computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._distribution import descriptions, models, product_gp
from hpobench_ordered.methods._distribution.descriptions import (
    FixedDescriptions,
    LearnedDescriptions,
)
from hpobench_ordered.methods._model_based import ModelError

T, N = 4, 25
GROUPS = np.array([0, 0, 1])
SEEDS = st.integers(0, 2**32 - 1)
CLASSIFICATION, REGRESSION = hbo.DataKind.CLASSIFICATION, hbo.DataKind.REGRESSION
UNSUPERVISED = hbo.DataKind.UNSUPERVISED


def observations(rng: np.random.Generator, n: int = N) -> product_gp.Observations:
    X = rng.uniform(-1.7, 1.7, (n, 3))
    return product_gp.Observations(
        X, GROUPS, np.sort(rng.integers(T, size=n)), rng.standard_normal(n)
    )


def hyperparameters(rng: np.random.Generator) -> product_gp.Hyperparameters:
    return product_gp.Hyperparameters(0.5 * rng.standard_normal(2), float(rng.normal(0, 0.3)), -2.0)


def covariance(rng: np.random.Generator) -> FloatArray:
    L = np.tril(rng.uniform(0.1, 1.0, (T, T)))
    return L @ L.T


def kernel(theta: product_gp.Hyperparameters, A: FloatArray, B: FloatArray) -> FloatArray:
    """Matern-3/2 by scikit-learn."""
    from sklearn.gaussian_process.kernels import Matern

    scales = np.exp(theta.log_length)[GROUPS]
    K: FloatArray = Matern(length_scale=scales, nu=1.5)(A, B)
    return np.exp(theta.log_signal) * K


def datasets(kind: hbo.DataKind, rng: np.random.Generator, points: int = 30) -> list[hbo.TaskData]:
    made = []
    for t in range(T):
        X = rng.standard_normal((points + t, 3)) * (1.0 + 0.3 * t)
        labels = np.sin(X[:, 0] + t)
        if kind is CLASSIFICATION:
            labels = (labels > 0.2).astype(float)
        made.append(hbo.TaskData(X, None if kind is UNSUPERVISED else labels, kind))
    return made


@given(SEEDS)
def test_likelihood_and_prediction_are_those_of_the_joint_normal_distribution(seed):
    rng = np.random.default_rng(seed)
    data, theta, P = observations(rng), hyperparameters(rng), covariance(rng)
    K = kernel(theta, data.X, data.X) * P[np.ix_(data.task, data.task)]
    K += np.exp(theta.log_noise) * np.eye(N)
    ones = np.ones(N)
    mean = ones @ np.linalg.solve(K, data.y) / (ones @ np.linalg.solve(K, ones))
    expected = -multivariate_normal(np.full(N, mean), K).logpdf(data.y)
    of = product_gp.compute_likelihood(data, theta, P)
    assert of.nll + 0.5 * N * np.log(2 * np.pi) == pytest.approx(expected, rel=1e-9)
    new = rng.uniform(-1.7, 1.7, (6, 3))
    cross = kernel(theta, data.X, new) * P[data.task, -1][:, None]
    predicted, sd = product_gp.ProductGP(data, theta, P, T - 1).predict(new)
    solved = np.linalg.solve(K, cross)
    np.testing.assert_allclose(predicted, mean + solved.T @ (data.y - mean), rtol=1e-8, atol=1e-8)
    variance = np.exp(theta.log_signal) * P[-1, -1] - (cross * solved).sum(axis=0)
    np.testing.assert_allclose(sd**2, variance, rtol=1e-6, atol=1e-8)


def test_pending_evaluations_leave_the_mean_and_shrink_the_deviation():
    rng = np.random.default_rng(0)
    model = product_gp.ProductGP(observations(rng), hyperparameters(rng), covariance(rng), T - 1)
    pending, new = rng.uniform(-1, 1, (2, 3)), rng.uniform(-1, 1, (5, 3))
    after, losses = model.with_fantasies(pending)
    np.testing.assert_allclose(losses, model.predict(pending)[0])
    assert (after.predict(pending)[1] < model.predict(pending)[1]).all()
    assert (after.predict(new)[1] <= model.predict(new)[1] + 1e-9).all()


KINDS = [(UNSUPERVISED, False), (CLASSIFICATION, False), (REGRESSION, False), (REGRESSION, True)]


def task_kernels(rng: np.random.Generator) -> list[models.TaskKernel]:
    learned = [LearnedDescriptions(datasets(kind, rng), joint=joint) for kind, joint in KINDS]
    described = [
        models.DescribedTasks(one)
        for one in (FixedDescriptions(rng.standard_normal((T, 3))), *learned)
    ]
    return [*described, models.FreeTasks(T)]


def assert_gradient(
    model: models.JointModel, data: product_gp.Observations, x: FloatArray, way: FloatArray
) -> None:
    """Along one direction, beside the central difference."""
    above, below = (model.value_and_gradient(data, x + s * way)[0] for s in (1e-6, -1e-6))
    slope = float(model.value_and_gradient(data, x)[1] @ way)
    assert slope == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "which", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2, 3)), 4, 5]
)
def test_gradients_of_the_process_are_finite_differences(which):
    rng = np.random.default_rng(which)
    model = models.ProcessModel(task_kernels(rng)[which], 2, rng)
    data = observations(rng)
    x = model.x + 0.1 * rng.standard_normal(len(model.x))
    assert_gradient(model, data, x, rng.standard_normal(len(x)))


@pytest.mark.parametrize("which", range(3))
def test_gradients_of_the_regression_are_finite_differences(which):
    rng = np.random.default_rng(which)
    of = [
        FixedDescriptions(np.eye(T)),
        *(LearnedDescriptions(datasets(k, rng), joint=False) for k in (REGRESSION,) * 2),
    ]
    model = models.LinearModel(of[which], 3, rng)
    way = rng.standard_normal(len(model.x)) / np.sqrt(len(model.x))
    assert_gradient(model, observations(rng, 80), model.x.copy(), way)


def embedded(data: list[hbo.TaskData], seed: int = 0, *, joint: bool = False) -> FloatArray:
    of = LearnedDescriptions(data, joint=joint)
    return of.table(of.initial(np.random.default_rng(seed)))[:, :-1]


def network(z: FloatArray, X: FloatArray, inputs: int) -> tuple[FloatArray, FloatArray]:
    """Outputs of a network of 20 and 10 units, by numpy; and the parameters after its own."""
    A, a, B, b, rest = np.split(z, np.cumsum([20 * inputs, 20, 200, 10]))
    hidden = np.tanh(X @ A.reshape(inputs, 20)[: X.shape[1]] + a)
    return hidden @ B.reshape(20, 10) + b, rest


def test_conditional_embedding_is_the_direct_formula():
    rng = np.random.default_rng(3)
    data = datasets(REGRESSION, rng)
    of = LearnedDescriptions(data, joint=False)
    z = of.initial(rng)
    table = of.table(z)
    for one, row in zip(data, table, strict=True):
        X = (one.features - one.features.mean(axis=0)) / one.features.std(axis=0)
        assert one.labels is not None
        y = (one.labels - one.labels.min()) / (one.labels.max() - one.labels.min())
        phi_x, rest = network(z, X, 8)
        phi_y, log_lambda = network(rest, y[:, None], 1)
        s = len(X)
        gram = phi_x @ phi_x.T + s * np.exp(log_lambda[0]) * np.eye(s)
        conditional = phi_y.T @ np.linalg.solve(gram, phi_x)
        np.testing.assert_allclose(row[:10], phi_x.mean(axis=0), rtol=1e-8)
        np.testing.assert_allclose(row[10:110], conditional.ravel(), rtol=1e-8, atol=1e-8)
    joint = LearnedDescriptions(data, joint=True).table(z)
    np.testing.assert_allclose(joint[-1, :100], (phi_y.T @ phi_x / s).ravel(), rtol=1e-8)
    np.testing.assert_allclose(table[:, -1], [len(one) / len(data[-1]) for one in data])


@pytest.mark.slow
def test_samples_of_one_distribution_are_closer_than_those_of_two():
    rng = np.random.default_rng(0)

    def sample(slope: float) -> hbo.TaskData:
        X = rng.standard_normal((800, 2))
        return hbo.TaskData(X, slope * X[:, 0] + 0.1 * rng.standard_normal(800), REGRESSION)

    def classes(share: float) -> hbo.TaskData:
        X = rng.standard_normal((800, 2))
        return hbo.TaskData(X, (rng.random(800) < share).astype(float), CLASSIFICATION)

    def points(mean: float) -> hbo.TaskData:
        return hbo.TaskData(rng.normal(mean, 1.0, (800, 1)), None, UNSUPERVISED)

    for seed in range(5):
        for draw, one, two in ((sample, 1.0, -1.0), (classes, 0.5, 0.1), (points, 0.0, 2.0)):
            a, b, other = embedded([draw(one), draw(one), draw(two)], seed)
            assert 2 * np.linalg.norm(a - b) < np.linalg.norm(a - other)


def test_of_many_points_evenly_spaced_ones_are_looked_at(monkeypatch):
    monkeypatch.setattr(descriptions, "MAX_POINTS", 10)
    points = np.random.default_rng(0).standard_normal((30, 2))
    few = [hbo.TaskData(part, None, UNSUPERVISED) for part in (points[::3], points[:7])]
    many = [hbo.TaskData(points, None, UNSUPERVISED), few[1]]
    np.testing.assert_array_equal(embedded(many), embedded(few))


def test_free_tasks_start_correlated_by_a_half():
    free = models.FreeTasks(5)
    x = free.initial(np.random.default_rng(0))
    np.testing.assert_allclose(free.matrix(x), 0.5 + 0.5 * np.eye(5), atol=1e-12)


def related(n: int, seed: int = 0) -> product_gp.Observations:
    """Smooth functions of two inputs that differ by task, without noise."""
    rng = np.random.default_rng(seed)
    X, task = rng.uniform(-1.7, 1.7, (n, 3)), np.sort(rng.integers(T, size=n))
    y = np.sin(2.0 * X[:, 0] + 0.3 * task) + np.square(X[:, 1] - 0.2 * task)
    return product_gp.Observations(X, GROUPS, task, (y - y.mean()) / y.std())


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
@pytest.mark.parametrize("kind", ["process", "regression"])
def test_a_fit_explains_what_there_is_to_explain(kind, seed):
    """Half the losses foretell the other half, and the likelihood is far above that of noise."""
    rng, whole = np.random.default_rng(seed), related(300, seed)
    seen, unseen = np.flatnonzero(whole.task < T - 1), np.flatnonzero(whole.task == T - 1)
    shown = np.sort(np.concatenate([seen, unseen[::2]]))
    data = product_gp.Observations(whole.X[shown], GROUPS, whole.task[shown], whole.y[shown])
    model: models.JointModel
    if kind == "process":
        model = models.ProcessModel(models.FreeTasks(T), 2, rng)
    else:
        model = models.LinearModel(FixedDescriptions(np.eye(T)), 3, rng)
    mean, _ = model.fit(data).predict(whole.X[unseen[1::2]])
    assert model.value_and_gradient(data, model.x)[0] < -0.5 * len(data.y)
    assert np.mean((mean - whole.y[unseen[1::2]]) ** 2) < 0.1


def test_a_poor_fit_is_no_fit():
    """Without noise and length scales to fit, a process is sure of what contradicts it."""
    rng, data = np.random.default_rng(0), observations(np.random.default_rng(0))
    model = models.ProcessModel(models.FreeTasks(T), 2, rng)
    model.x[-4:] = (5.0, 5.0, 0.0, -12.0)  # lengths, signal and noise
    model.bounds = (model.x, model.x)
    with pytest.raises(ModelError, match=r"the fit is poor: .* nats per evaluation"):
        model.fit(data)
