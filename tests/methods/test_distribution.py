"""The numerics behind methods that look at training data, against independent computations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._distribution import descriptions, models, product_gp
from hpobench_ordered.methods._distribution.descriptions import (
    FixedDescriptions,
    LearnedDescriptions,
)
from hpobench_ordered.methods._distribution.product_gp import (
    Hyperparameters,
    ProcessData,
    ProductGP,
)
from hpobench_ordered.methods._model_based import ModelError

T, N = 4, 25
"""Tasks, and their evaluations."""
GROUPS = np.array([0, 0, 1])
"""Length scale of each of three features."""
SEEDS = st.integers(0, 2**32 - 1)
CLASSIFICATION, REGRESSION = hbo.DataKind.CLASSIFICATION, hbo.DataKind.REGRESSION
UNSUPERVISED = hbo.DataKind.UNSUPERVISED


def make_observations(rng: np.random.Generator, n: int = N) -> ProcessData:
    """Random features (n, 3), tasks in order, and losses that have nothing to do with them."""
    X = rng.uniform(-1.7, 1.7, (n, 3))
    return ProcessData(X, GROUPS, np.sort(rng.integers(T, size=n)), rng.standard_normal(n))


def make_hyperparameters(rng: np.random.Generator) -> Hyperparameters:
    """Random log length scales of two groups and log signal; the log noise is -2."""
    return Hyperparameters(0.5 * rng.standard_normal(2), float(rng.normal(0, 0.3)), -2.0)


def make_task_covariance(rng: np.random.Generator) -> FloatArray:
    """A random positive definite matrix (T, T)."""
    L = np.tril(rng.uniform(0.1, 1.0, (T, T)))
    return L @ L.T


# -- the process -----------------------------------------------------------------------------------


def compute_kernel(theta: Hyperparameters, A: FloatArray, B: FloatArray) -> FloatArray:
    """Matern-3/2 by scikit-learn, times the variance of the signal."""
    scales = np.exp(theta.log_length)[GROUPS]
    return np.exp(theta.log_signal) * Matern(length_scale=scales, nu=1.5)(A, B)


def compute_covariance(
    data: ProcessData, theta: Hyperparameters, P: FloatArray
) -> tuple[FloatArray, float]:
    """Covariance of the losses, and their mean that maximises the likelihood."""
    K = compute_kernel(theta, data.X, data.X) * P[np.ix_(data.task, data.task)]
    K += np.exp(theta.log_noise) * np.eye(len(data.y))
    inverse = np.linalg.inv(K)
    return K, float((inverse @ data.y).sum() / inverse.sum())


@given(SEEDS)
def test_likelihood_is_joint_normal_one(seed):
    rng = np.random.default_rng(seed)
    data = make_observations(rng)
    theta, P = make_hyperparameters(rng), make_task_covariance(rng)
    likelihood = product_gp.compute_likelihood(data, theta, P)
    K, mean = compute_covariance(data, theta, P)
    expected = -multivariate_normal(np.full(N, mean), K).logpdf(data.y)
    # `nll` leaves out the constant.
    assert likelihood.nll + 0.5 * N * np.log(2 * np.pi) == pytest.approx(expected, rel=1e-8)


@given(SEEDS)
def test_prediction_is_joint_normal_one(seed):
    rng = np.random.default_rng(seed)
    data = make_observations(rng)
    theta, P = make_hyperparameters(rng), make_task_covariance(rng)
    X = rng.uniform(-1.7, 1.7, (6, 3))
    # T - 1: the current task is the last one.
    predicted_mean, predicted_sd = ProductGP(data, theta, P, T - 1).predict(X)

    K, mean = compute_covariance(data, theta, P)
    cross = compute_kernel(theta, data.X, X) * P[data.task, -1][:, None]
    solved = np.linalg.solve(K, cross)
    expected_mean = mean + solved.T @ (data.y - mean)
    expected_variance = np.exp(theta.log_signal) * P[-1, -1] - (cross * solved).sum(axis=0)
    np.testing.assert_allclose(predicted_mean, expected_mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(predicted_sd**2, expected_variance, rtol=1e-6, atol=1e-8)


def make_process() -> ProductGP:
    rng = np.random.default_rng(0)
    theta, P = make_hyperparameters(rng), make_task_covariance(rng)
    # T - 1: the current task is the last one.
    return ProductGP(make_observations(rng), theta, P, T - 1)


PENDING = np.array([[0.1, -0.5, 0.9], [-0.8, 0.3, 0.2]])
"""Features of two configurations without a result, which are assumed to have the mean."""


def test_pending_evaluations_give_posterior_mean():
    """Fantasies are the losses that pending evaluations are assumed to have."""
    process = make_process()
    _, losses = process.with_fantasies(PENDING)
    mean, _ = process.predict(PENDING)
    np.testing.assert_allclose(losses, mean)


def test_pending_evaluations_shrink_deviation():
    """At the pending configurations themselves."""
    process = make_process()
    with_pending, _ = process.with_fantasies(PENDING)
    _, sd_before = process.predict(PENDING)
    _, sd_after = with_pending.predict(PENDING)
    assert (sd_after < sd_before).all()


def test_pending_evaluations_enlarge_no_deviation():
    """Neither elsewhere; 1e-9 is for rounding."""
    process = make_process()
    with_pending, _ = process.with_fantasies(PENDING)
    X = np.random.default_rng(1).uniform(-1, 1, (5, 3))
    _, sd_before = process.predict(X)
    _, sd_after = with_pending.predict(X)
    assert (sd_after <= sd_before + 1e-9).all()


# -- gradients -------------------------------------------------------------------------------------


def make_datasets(kind: hbo.DataKind, rng: np.random.Generator) -> list[hbo.TaskData]:
    """Data of T tasks, which differ in size and spread, with the labels of the kind."""
    datasets = []
    for task in range(T):
        X = rng.standard_normal((30 + task, 3)) * (1.0 + 0.3 * task)
        numbers = np.sin(X[:, 0] + task)
        classes = (numbers > 0.2).astype(float)
        labels = {UNSUPERVISED: None, REGRESSION: numbers, CLASSIFICATION: classes}[kind]
        datasets.append(hbo.TaskData(X, labels, kind))
    return datasets


def make_learned(
    kind: hbo.DataKind, rng: np.random.Generator, *, joint: bool = False
) -> LearnedDescriptions:
    return LearnedDescriptions(make_datasets(kind, rng), joint=joint)


def make_task_kernel(name: str, rng: np.random.Generator) -> models.TaskKernel:
    """Covariances of tasks: free parameters, of given descriptions, or of learned ones."""
    if name == "free":
        return models.FreeTasks(T)
    if name == "fixed":
        return models.DescribedTasks(FixedDescriptions(rng.standard_normal((T, 3))))
    if name == "joint":
        return models.DescribedTasks(make_learned(REGRESSION, rng, joint=True))
    return models.DescribedTasks(make_learned(hbo.DataKind(name), rng))


def assert_gradient_is_numeric(
    model: models.JointModel, data: ProcessData, x: FloatArray, direction: FloatArray
) -> None:
    """Compare the slope along a direction with the central difference."""
    _, gradient = model.value_and_gradient(data, x)
    above, _ = model.value_and_gradient(data, x + 1e-6 * direction)
    below, _ = model.value_and_gradient(data, x - 1e-6 * direction)
    assert gradient @ direction == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "free",
        "fixed",
        "joint",
        pytest.param(UNSUPERVISED.value, marks=pytest.mark.slow),
        pytest.param(CLASSIFICATION.value, marks=pytest.mark.slow),
        pytest.param(REGRESSION.value, marks=pytest.mark.slow),
    ],
)
def test_gradient_of_process_is_numeric_one(name):
    """The name says how tasks are described: "free", "fixed", or by learned embeddings."""
    rng = np.random.default_rng(0)
    # Two length scales.
    model = models.ProcessModel(make_task_kernel(name, rng), 2, rng)
    # Away from the start, where gradients may vanish.
    x = model.x + 0.1 * rng.standard_normal(len(model.x))
    direction = rng.standard_normal(len(x))
    assert_gradient_is_numeric(model, make_observations(rng), x, direction)


@pytest.mark.parametrize("is_learned", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_of_regression_is_numeric_one(is_learned, seed):
    """Tasks have fixed descriptions, or learned embeddings of their data."""
    rng = np.random.default_rng(seed)
    task_descriptions = FixedDescriptions(np.eye(T))
    if is_learned:
        task_descriptions = make_learned(REGRESSION, rng)
    # Three features.
    model = models.LinearModel(task_descriptions, 3, rng)
    # Of length one on average.
    direction = rng.standard_normal(len(model.x)) / np.sqrt(len(model.x))
    assert_gradient_is_numeric(model, make_observations(rng, 80), model.x.copy(), direction)


# -- embeddings ------------------------------------------------------------------------------------


def evaluate_network(
    z: FloatArray, X: FloatArray, padded_inputs: int
) -> tuple[FloatArray, FloatArray]:
    """Outputs of a network of 20 and 10 units, and the parameters that follow its own."""
    # Weights and biases of 20 hidden units, then of 10 outputs.
    sizes = [20 * padded_inputs, 20, 20 * 10, 10]
    W, b, V, c, following = np.split(z, np.cumsum(sizes))
    hidden = np.tanh(X @ W.reshape(padded_inputs, 20)[: X.shape[1]] + b)
    return hidden @ V.reshape(20, 10) + c, following


def evaluate_networks(z: FloatArray, data: hbo.TaskData) -> tuple[FloatArray, FloatArray, float]:
    """Features of s points and of their labels, (s, 10) each, and the regularisation lambda.

    z has the parameters of the network of points, of that of labels, and log lambda.
    """
    X = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    y = (data.labels - data.labels.min()) / np.ptp(data.labels)
    Phi_x, following = evaluate_network(z, X, 8)
    Phi_y, (log_lambda,) = evaluate_network(following, y[:, None], 1)
    return Phi_x, Phi_y, np.exp(log_lambda)


def make_regression_descriptions(*, joint: bool) -> tuple[LearnedDescriptions, FloatArray]:
    """Descriptions learned from the regression data, and their initial parameters z."""
    rng = np.random.default_rng(3)
    learned = make_learned(REGRESSION, rng, joint=joint)
    return learned, learned.initial(rng)


REGRESSION_DATA = make_datasets(REGRESSION, np.random.default_rng(3))
"""The data that `make_regression_descriptions` makes of the same seed, one data set a task."""


@pytest.mark.parametrize("task", range(T))
def test_conditional_embedding_is_direct_formula(task):
    """Of one task's s points; Phi_x and Phi_y are features of points and of labels, (s, 10)."""
    learned, z = make_regression_descriptions(joint=False)
    Phi_x, Phi_y, regularisation = evaluate_networks(z, REGRESSION_DATA[task])
    s = len(Phi_x)
    gram = Phi_x @ Phi_x.T + s * regularisation * np.eye(s)
    conditional = Phi_y.T @ np.linalg.solve(gram, Phi_x)
    # Ten mean features, then the operator from features to label features, 10 by 10.
    embedding = learned.table(z)[task]
    np.testing.assert_allclose(embedding[:10], Phi_x.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(embedding[10:110], conditional.ravel(), rtol=1e-8, atol=1e-8)


def test_joint_embedding_is_mean_product():
    """Of the last task; Phi_x and Phi_y are features of its points and of their labels."""
    learned, z = make_regression_descriptions(joint=True)
    Phi_x, Phi_y, _ = evaluate_networks(z, REGRESSION_DATA[-1])
    expected = Phi_y.T @ Phi_x / len(Phi_x)
    # The last number is the relative size of the data.
    np.testing.assert_allclose(learned.table(z)[-1, :100], expected.ravel(), rtol=1e-8)


def test_relative_size_is_last_description():
    learned, z = make_regression_descriptions(joint=False)
    sizes = np.array([len(data) for data in REGRESSION_DATA])
    np.testing.assert_allclose(learned.table(z)[:, -1], sizes / sizes.max())


def embed(datasets: list[hbo.TaskData], seed: int = 0) -> FloatArray:
    """Embeddings without sizes, by networks with random weights."""
    learned = LearnedDescriptions(datasets, joint=False)
    return learned.table(learned.initial(np.random.default_rng(seed)))[:, :-1]


def sample_regression(slope: float, rng: np.random.Generator) -> hbo.TaskData:
    """800 points with labels proportional to the first feature."""
    X = rng.standard_normal((800, 2))
    return hbo.TaskData(X, slope * X[:, 0] + 0.1 * rng.standard_normal(800), REGRESSION)


def sample_classes(share: float, rng: np.random.Generator) -> hbo.TaskData:
    """800 points of which a share is of class 1, whatever their features."""
    X = rng.standard_normal((800, 2))
    return hbo.TaskData(X, (rng.random(800) < share).astype(float), CLASSIFICATION)


def sample_points(mean: float, rng: np.random.Generator) -> hbo.TaskData:
    return hbo.TaskData(rng.normal(mean, 1.0, (800, 1)), None, UNSUPERVISED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sample", "parameter", "other_parameter"),
    [(sample_regression, 1.0, -1.0), (sample_classes, 0.5, 0.1), (sample_points, 0.0, 2.0)],
)
def test_samples_of_same_distribution_are_close(sample, parameter, other_parameter, seed):
    """Embeddings of data that `sample` draws, from distributions with one parameter."""
    rng = np.random.default_rng(seed)
    # Two samples of one distribution, and one of another.
    datasets = [sample(parameter, rng), sample(parameter, rng), sample(other_parameter, rng)]
    first, second, other = embed(datasets, seed)
    distance_of_same = np.linalg.norm(first - second)
    distance_of_other = np.linalg.norm(first - other)
    assert 2 * distance_of_same < distance_of_other


def test_large_datasets_are_thinned_evenly(monkeypatch):
    """Of 30 points, at most 10 are used: every third."""
    monkeypatch.setattr(descriptions, "MAX_POINTS", 10)
    points = np.random.default_rng(0).standard_normal((30, 2))
    small = hbo.TaskData(points[:7], None, UNSUPERVISED)
    large = hbo.TaskData(points, None, UNSUPERVISED)
    every_third = hbo.TaskData(points[::3], None, UNSUPERVISED)
    # The second task's data are few enough as they are.
    np.testing.assert_array_equal(embed([large, small]), embed([every_third, small]))


# -- fits ------------------------------------------------------------------------------------------


def test_free_tasks_start_half_correlated():
    free_tasks = models.FreeTasks(5)
    P = free_tasks.matrix(free_tasks.initial(np.random.default_rng(0)))
    np.testing.assert_allclose(P, 0.5 + 0.5 * np.eye(5), atol=1e-12)


def make_related_observations(n: int, seed: int) -> ProcessData:
    """Smooth functions of two of three inputs, which differ a little by task, without noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (n, 3))
    task = np.sort(rng.integers(T, size=n))
    y = np.sin(2.0 * X[:, 0] + 0.3 * task) + np.square(X[:, 1] - 0.2 * task)
    return ProcessData(X, GROUPS, task, (y - y.mean()) / y.std())


def select(data: ProcessData, rows: FloatArray) -> ProcessData:
    return ProcessData(data.X[rows], data.groups, data.task[rows], data.y[rows])


def make_model(kind: str, rng: np.random.Generator) -> models.JointModel:
    """A model of T tasks and three features, a process with two length scales or a regression."""
    if kind == "process":
        return models.ProcessModel(models.FreeTasks(T), 2, rng)
    return models.LinearModel(FixedDescriptions(np.eye(T)), 3, rng)


each_kind = pytest.mark.parametrize("kind", ["process", "regression"])
each_seed = pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)


@each_kind
@each_seed
def test_fit_predicts_unseen_evaluations(kind, seed):
    """By the process and by the linear model, on related tasks."""
    data = make_related_observations(300, seed)
    # Every second evaluation of the current task, the last one, is held back.
    current = np.flatnonzero(data.task == T - 1)
    unseen = current[1::2]
    seen = np.setdiff1d(np.arange(300), unseen)
    model = make_model(kind, np.random.default_rng(seed))
    mean, _ = model.fit(select(data, seen)).predict(data.X[unseen])
    # The losses have variance 1.
    assert np.mean((mean - data.y[unseen]) ** 2) < 0.1


@each_kind
@each_seed
def test_fit_is_likelier_than_noise(kind, seed):
    """By the process and by the linear model, on related tasks."""
    data = make_related_observations(250, seed)
    model = make_model(kind, np.random.default_rng(seed))
    model.fit(data)
    nll, _ = model.value_and_gradient(data, model.x)
    # Independent standard normal losses have 0.5 nats each, without the constant.
    assert nll < -0.5 * len(data.y)


def test_poor_fit_is_refused():
    # With fixed long length scales and hardly any noise, the process contradicts the losses.
    rng = np.random.default_rng(0)
    model = models.ProcessModel(models.FreeTasks(T), 2, rng)
    log_lengths, log_signal, log_noise = (5.0, 5.0), 0.0, -12.0
    model.x[-4:] = (*log_lengths, log_signal, log_noise)  # after the parameters of tasks
    model.bounds = (model.x, model.x)  # which fixes all parameters
    with pytest.raises(ModelError, match=r"the fit is poor: .* nats per evaluation"):
        model.fit(make_observations(np.random.default_rng(0)))
