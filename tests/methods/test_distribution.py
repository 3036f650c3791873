"""The numerics behind methods that look at training data, against independent computations."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data import DataKind, TaskData
from hpobench_ordered.methods._distribution import descriptions, models, product_gp
from hpobench_ordered.methods._distribution.descriptions import (
    FixedDescriptions,
    LearnedDescriptions,
)
from hpobench_ordered.methods._distribution.parts import Embedded
from hpobench_ordered.methods._distribution.product_gp import (
    Hyperparameters,
    ProcessData,
    ProductGP,
)
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._networks.features import Network, compute_features, pad_input_count

TASKS = 4
CURRENT_TASK = TASKS - 1
"""The current task is the last one."""
EVALUATIONS = 25
"""Number of evaluations of all tasks."""
LENGTH_SCALE_OF_FEATURE = np.array([0, 0, 1])
"""Which of two length scales each of three features has: the first two share one."""
SEEDS = st.integers(0, 2**32 - 1)
CLASSIFICATION, REGRESSION = DataKind.CLASSIFICATION, DataKind.REGRESSION
UNSUPERVISED = DataKind.UNSUPERVISED


def make_observations(rng: np.random.Generator, n: int = EVALUATIONS) -> ProcessData:
    """Random features (n, 3), tasks in order, and losses that have nothing to do with them."""
    X = rng.uniform(-1.7, 1.7, (n, 3))
    task = np.sort(rng.integers(TASKS, size=n))
    losses = rng.standard_normal(n)
    return ProcessData(X, LENGTH_SCALE_OF_FEATURE, task, losses)


def make_hyperparameters(rng: np.random.Generator) -> Hyperparameters:
    """Two random log length scales and a random log signal; the log noise is -2."""
    log_length = 0.5 * rng.standard_normal(2)
    log_signal = float(rng.normal(0, 0.3))
    return Hyperparameters(log_length, log_signal, log_noise=np.array([-2.0]))


def make_task_covariance(rng: np.random.Generator) -> FloatArray:
    """A random positive definite matrix (TASKS, TASKS), from its Cholesky factor."""
    factor = np.tril(rng.uniform(0.1, 1.0, (TASKS, TASKS)))
    return factor @ factor.T


# -- the process -----------------------------------------------------------------------------------


def compute_kernel(theta: Hyperparameters, A: FloatArray, B: FloatArray) -> FloatArray:
    """Covariance of configurations with features A and B: scikit-learn's Matern-3/2 kernel."""
    length_scales = np.exp(theta.log_length)[LENGTH_SCALE_OF_FEATURE]  # of the three features
    matern = Matern(length_scale=length_scales, nu=1.5)
    return np.exp(theta.log_signal) * matern(A, B)


def compute_covariance(
    data: ProcessData, theta: Hyperparameters, task_covariance: FloatArray
) -> tuple[FloatArray, float]:
    """Covariance K of the losses, and their common mean that maximises the likelihood.

    The covariance of two evaluations is that of their tasks times that of their configurations.
    """
    of_tasks = task_covariance[data.task][:, data.task]
    of_configurations = compute_kernel(theta, data.X, data.X)
    noise_variances = np.broadcast_to(np.exp(theta.log_noise), TASKS)
    noise = np.diag(noise_variances[data.task])
    K = of_tasks * of_configurations + noise

    # 1^T K^-1 y / 1^T K^-1 1, with a vector 1 of ones.
    inverse = np.linalg.inv(K)
    mean = (inverse @ data.y).sum() / inverse.sum()
    return K, float(mean)


each_noise_count = pytest.mark.parametrize("noise_count", [1, TASKS])


@each_noise_count
@given(seed=SEEDS)
def test_likelihood_is_joint_normal_one(noise_count, seed):
    """The losses of all evaluations on all tasks have one joint normal distribution."""
    rng = np.random.default_rng(seed)
    data = make_observations(rng)
    theta = replace(make_hyperparameters(rng), log_noise=rng.uniform(-3, 0, noise_count))
    task_covariance = make_task_covariance(rng)

    likelihood = product_gp.compute_likelihood(data, theta, task_covariance)

    K, mean = compute_covariance(data, theta, task_covariance)
    expected = -multivariate_normal(np.full(EVALUATIONS, mean), K).logpdf(data.y)
    # `nll` leaves out the constant of the normal density.
    constant = 0.5 * EVALUATIONS * np.log(2 * np.pi)
    assert likelihood.nll + constant == pytest.approx(expected, rel=1e-8)


@each_noise_count
@given(seed=SEEDS)
def test_prediction_is_joint_normal_one(noise_count, seed):
    """Losses of six new configurations on the current task, conditioned on all evaluations.

    K is the covariance of the evaluations' losses.
    """
    rng = np.random.default_rng(seed)
    data = make_observations(rng)
    theta = replace(make_hyperparameters(rng), log_noise=rng.uniform(-3, 0, noise_count))
    task_covariance = make_task_covariance(rng)
    X = rng.uniform(-1.7, 1.7, (6, 3))

    process = ProductGP(data, theta, task_covariance, CURRENT_TASK)
    predicted_mean, predicted_sd = process.predict(X)

    K, mean = compute_covariance(data, theta, task_covariance)
    with_current_task = task_covariance[data.task, CURRENT_TASK][:, None]
    cross_covariance = with_current_task * compute_kernel(theta, data.X, X)
    solved = np.linalg.solve(K, cross_covariance)
    expected_mean = mean + solved.T @ (data.y - mean)
    prior_variance = task_covariance[CURRENT_TASK, CURRENT_TASK] * np.exp(theta.log_signal)
    expected_variance = prior_variance - (cross_covariance * solved).sum(axis=0)
    np.testing.assert_allclose(predicted_mean, expected_mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(predicted_sd**2, expected_variance, rtol=1e-6, atol=1e-8)


def make_process() -> ProductGP:
    """A process with random hyperparameters that predicts the current task."""
    rng = np.random.default_rng(0)
    theta = make_hyperparameters(rng)
    task_covariance = make_task_covariance(rng)
    return ProductGP(make_observations(rng), theta, task_covariance, CURRENT_TASK)


PENDING_FEATURES = np.array([[0.1, -0.5, 0.9], [-0.8, 0.3, 0.2]])
"""Features of two configurations without a result, which are assumed to have the mean."""


def test_pending_evaluations_give_posterior_mean():
    """Fantasies are the losses that pending evaluations are assumed to have."""
    process = make_process()
    _, fantasies = process.with_fantasies(PENDING_FEATURES)
    mean, _ = process.predict(PENDING_FEATURES)
    np.testing.assert_allclose(fantasies, mean)


# -- gradients -------------------------------------------------------------------------------------


def make_datasets(kind: DataKind, rng: np.random.Generator) -> list[TaskData]:
    """Data of each task, with the labels of the kind; tasks differ in size and spread."""
    datasets = []
    for task in range(TASKS):
        spread = 1.0 + 0.3 * task
        X = rng.standard_normal((30 + task, 3)) * spread
        numbers = np.sin(X[:, 0] + task)
        classes = (numbers > 0.2).astype(float)
        labels_of_kind = {UNSUPERVISED: None, REGRESSION: numbers, CLASSIFICATION: classes}
        datasets.append(TaskData(X, labels_of_kind[kind], kind))
    return datasets


def make_learned_descriptions(
    kind: DataKind,
    rng: np.random.Generator,
    *,
    of_regression: Embedded = Embedded.CONCATENATED,
) -> LearnedDescriptions:
    """Embeddings of each task's data; of points with numeric labels, `of_regression`."""
    return LearnedDescriptions(make_datasets(kind, rng), of_regression=of_regression)


def make_task_kernel(name: str, rng: np.random.Generator) -> models.TaskKernel:
    """Covariances of tasks, which are parameters themselves, or follow from descriptions.

    Names are "free" for the former, "fixed" for fixed descriptions; for learned ones, kinds of data
    and what is embedded of regressions.
    """
    if name == "free":
        return models.FreeTasks(TASKS)
    if name == "fixed":
        return models.DescribedTasks(FixedDescriptions(rng.standard_normal((TASKS, 3))))
    if name in Embedded.__members__:
        learned = make_learned_descriptions(REGRESSION, rng, of_regression=Embedded[name])
        return models.DescribedTasks(learned)
    return models.DescribedTasks(make_learned_descriptions(DataKind(name), rng))


def assert_gradient_is_numeric(
    model: models.JointModel, data: ProcessData, x: FloatArray, direction: FloatArray
) -> None:
    """Compare the slope at parameters x along a direction with the central difference."""
    _, gradient = model.value_and_gradient(data, x)
    step = 1e-6
    above, _ = model.value_and_gradient(data, x + step * direction)
    below, _ = model.value_and_gradient(data, x - step * direction)
    numeric_slope = (above - below) / (2 * step)
    assert gradient @ direction == pytest.approx(numeric_slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "free",
        "fixed",
        "JOINT",
        "CONDITIONAL",
        "PAIRS",
        pytest.param(UNSUPERVISED.value, marks=pytest.mark.slow),
        pytest.param(CLASSIFICATION.value, marks=pytest.mark.slow),
        pytest.param(REGRESSION.value, marks=pytest.mark.slow),
    ],
)
def test_gradient_of_process_is_numeric_one(name):
    """The name says where covariances of tasks come from, as in `make_task_kernel`."""
    rng = np.random.default_rng(0)
    model = models.ProcessModel(make_task_kernel(name, rng), 2, rng)  # with two length scales
    # At the start gradients may vanish.
    parameters = model.x + 0.1 * rng.standard_normal(len(model.x))
    direction = rng.standard_normal(len(parameters))
    assert_gradient_is_numeric(model, make_observations(rng), parameters, direction)


@pytest.mark.parametrize("is_learned", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_gradient_of_regression_is_numeric_one(is_learned, seed):
    """Tasks have fixed descriptions, or learned embeddings of their data."""
    rng = np.random.default_rng(seed)
    if is_learned:
        task_descriptions = make_learned_descriptions(REGRESSION, rng)
    else:
        task_descriptions = FixedDescriptions(np.eye(TASKS))
    model = models.LinearModel(task_descriptions, 3, rng)  # of three features
    # A step in a direction of length one on average is short, although there are many parameters.
    direction = rng.standard_normal(len(model.x)) / np.sqrt(len(model.x))
    assert_gradient_is_numeric(model, make_observations(rng, n=80), model.x.copy(), direction)


@pytest.mark.parametrize("kind", ["process", "regression"])
def test_gradient_with_noise_per_task_is_numeric_one(kind):
    """The last parameters are the noises of the tasks; each derivative is compared by itself.

    One of the tasks, the current one, has no evaluations.
    """
    rng = np.random.default_rng(0)
    model = make_model(kind, rng, noise_count=TASKS)
    x = model.x.copy()
    x[-TASKS:] += rng.uniform(-1, 1, TASKS)
    all_data = make_observations(rng, n=80)
    for data in (all_data, select(all_data, np.flatnonzero(all_data.task != CURRENT_TASK))):
        for direction in np.eye(len(x))[-TASKS:]:
            assert_gradient_is_numeric(model, data, x, direction)
        direction = rng.standard_normal(len(x)) / np.sqrt(len(x))
        assert_gradient_is_numeric(model, data, x, direction)


def test_regression_with_noise_per_task_is_joint_normal_one():
    """Likelihood and prediction are those of a normal distribution of network outputs Phi.

    Losses have the covariance Phi Phi^T / alpha, with the variance 1 / beta_t of the noise of their
    task on the diagonal.
    """
    rng = np.random.default_rng(0)
    model = make_model("regression", rng, noise_count=TASKS)
    log_alpha = 0.3
    log_beta = rng.uniform(0, 4, TASKS)
    model.x[-TASKS - 1 :] = (log_alpha, *log_beta)
    data = make_observations(rng, n=80)
    X = rng.uniform(-1.7, 1.7, (6, 3))

    # The network's inputs are the one-hot task and the features, its parameters come first in x.
    network = Network(pad_input_count(TASKS + 3), models.HIDDEN)
    parameters = model.x[: -TASKS - 1]
    Phi = compute_features(network, parameters, np.hstack([np.eye(TASKS)[data.task], data.X]))
    current_code = np.eye(TASKS)[np.full(len(X), CURRENT_TASK)]
    new_Phi = compute_features(network, parameters, np.hstack([current_code, X]))
    prior = Phi @ Phi.T / np.exp(log_alpha)
    covariance = prior + np.diag(np.exp(-log_beta)[data.task])
    expected_nll = -multivariate_normal(np.zeros(80), covariance).logpdf(data.y)
    cross = Phi @ new_Phi.T / np.exp(log_alpha)
    solved = np.linalg.solve(covariance, cross)
    prior_variance = np.square(new_Phi).sum(axis=1) / np.exp(log_alpha)

    nll, _ = model.value_and_gradient(data, model.x)
    mean, sd = model.condition(data).predict(X)
    assert nll + 0.5 * 80 * np.log(2 * np.pi) == pytest.approx(expected_nll, rel=1e-8)
    np.testing.assert_allclose(mean, solved.T @ data.y, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sd**2, prior_variance - (cross * solved).sum(axis=0), rtol=1e-6)


# -- embeddings ------------------------------------------------------------------------------------


def evaluate_network(
    parameters: FloatArray, X: FloatArray, padded_inputs: int
) -> tuple[FloatArray, FloatArray]:
    """Evaluate a network of 20 hidden units, with weights W and offsets b, and 10 outputs, V and c.

    Returns:
        The outputs, and the parameters that follow those of the network.
    """
    # Weights and offsets of the hidden units, then of the outputs.
    sizes = [padded_inputs * 20, 20, 20 * 10, 10]
    W, b, V, c, following = np.split(parameters, np.cumsum(sizes))
    # Weights of inputs that are padding have no effect.
    used_W = W.reshape(padded_inputs, 20)[: X.shape[1]]
    hidden = np.tanh(X @ used_W + b)
    return hidden @ V.reshape(20, 10) + c, following


def evaluate_networks(z: FloatArray, data: TaskData) -> tuple[FloatArray, FloatArray, float]:
    """Features of s points and of their labels, (s, 10) each, and the regularisation lambda.

    z has the parameters of the network of points, of that of labels, and log lambda.
    """
    standardised_X = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    scaled_labels = (data.labels - data.labels.min()) / np.ptp(data.labels)
    # The points' three features are padded to eight.
    Phi_x, following = evaluate_network(z, standardised_X, padded_inputs=8)
    Phi_y, (log_lambda,) = evaluate_network(following, scaled_labels[:, None], padded_inputs=1)
    return Phi_x, Phi_y, np.exp(log_lambda)


def make_regression_descriptions(embedded: Embedded) -> tuple[LearnedDescriptions, FloatArray]:
    """Descriptions learned from the regression data, and their initial parameters z."""
    rng = np.random.default_rng(3)
    learned = make_learned_descriptions(REGRESSION, rng, of_regression=embedded)
    return learned, learned.initial(rng)


REGRESSION_DATA = make_datasets(REGRESSION, np.random.default_rng(3))
"""The data that `make_regression_descriptions` makes of the same seed, one data set a task."""


@pytest.mark.parametrize("task", range(TASKS))
def test_conditional_embedding_is_direct_formula(task):
    """The embedding of a task has the mean features of its points, and the conditional operator.

    The operator, Phi_y^T (Phi_x Phi_x^T + s lambda I)^-1 Phi_x, maps features of points to features
    of labels; Phi_x and Phi_y are these of the task's s points, (s, 10).
    """
    learned, z = make_regression_descriptions(Embedded.CONCATENATED)
    Phi_x, Phi_y, regularisation = evaluate_networks(z, REGRESSION_DATA[task])
    s = len(Phi_x)
    gram = Phi_x @ Phi_x.T + s * regularisation * np.eye(s)
    operator = Phi_y.T @ np.linalg.solve(gram, Phi_x)

    description = learned.describe(z)[task]
    mean_features, flat_operator, _relative_size = np.split(description, [10, 10 + 10 * 10])
    np.testing.assert_allclose(mean_features, Phi_x.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(flat_operator, operator.ravel(), rtol=1e-8, atol=1e-8)


def test_conditional_embedding_alone_is_operator():
    """Without the mean features, the operator of the concatenated embedding is left."""
    learned, z = make_regression_descriptions(Embedded.CONDITIONAL)
    Phi_x, Phi_y, regularisation = evaluate_networks(z, REGRESSION_DATA[CURRENT_TASK])
    s = len(Phi_x)
    gram = Phi_x @ Phi_x.T + s * regularisation * np.eye(s)
    operator = Phi_y.T @ np.linalg.solve(gram, Phi_x)
    *embedding, _relative_size = learned.describe(z)[CURRENT_TASK]
    np.testing.assert_allclose(embedding, operator.ravel(), rtol=1e-8, atol=1e-8)


def test_embedding_of_pairs_is_mean_over_points():
    """It is the mean over points of a network on the vector [x, y], with x standardised."""
    learned, z = make_regression_descriptions(Embedded.PAIRS)
    data = REGRESSION_DATA[CURRENT_TASK]
    X = (data.features - data.features.mean(axis=0)) / data.features.std(axis=0)
    y = (data.labels - data.labels.min()) / np.ptp(data.labels)
    pairs = np.column_stack([X, y])
    # Phi_xy: outputs for four numbers, which are padded to eight.
    Phi_xy, _of_unused_network = evaluate_network(z, pairs, padded_inputs=8)
    *embedding, _relative_size = learned.describe(z)[CURRENT_TASK]
    np.testing.assert_allclose(embedding, Phi_xy.mean(axis=0), rtol=1e-8)


def test_joint_embedding_is_mean_product():
    """The mean over points of the products of their features, Phi_x, and label features, Phi_y."""
    learned, z = make_regression_descriptions(Embedded.JOINT)
    Phi_x, Phi_y, _regularisation = evaluate_networks(z, REGRESSION_DATA[CURRENT_TASK])
    expected = Phi_y.T @ Phi_x / len(Phi_x)
    *embedding, _relative_size = learned.describe(z)[CURRENT_TASK]
    np.testing.assert_allclose(embedding, expected.ravel(), rtol=1e-8)


def embed(datasets: list[TaskData], seed: int = 0) -> FloatArray:
    """Embeddings of data sets by networks with random weights."""
    learned = LearnedDescriptions(datasets, of_regression=Embedded.CONCATENATED)
    random_parameters = learned.initial(np.random.default_rng(seed))
    descriptions_of_tasks = learned.describe(random_parameters)
    return descriptions_of_tasks[:, :-1]  # without the last number, the relative size


def sample_regression(slope: float, rng: np.random.Generator) -> TaskData:
    """800 points with labels proportional to the first feature, and a little noise."""
    X = rng.standard_normal((800, 2))
    labels = slope * X[:, 0] + 0.1 * rng.standard_normal(800)
    return TaskData(X, labels, REGRESSION)


def sample_classes(share: float, rng: np.random.Generator) -> TaskData:
    """800 points of which a share is of class 1, whatever their features."""
    X = rng.standard_normal((800, 2))
    labels = (rng.random(800) < share).astype(float)
    return TaskData(X, labels, CLASSIFICATION)


def sample_points(mean: float, rng: np.random.Generator) -> TaskData:
    return TaskData(rng.normal(mean, 1.0, (800, 1)), None, UNSUPERVISED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("sample", "parameter", "other_parameter"),
    [(sample_regression, 1.0, -1.0), (sample_classes, 0.5, 0.1), (sample_points, 0.0, 2.0)],
)
def test_samples_of_same_distribution_are_close(sample, parameter, other_parameter, seed):
    """Embeddings of two samples are closer to each other than to one of another distribution.

    The function `sample` draws data from a distribution that has a single parameter.
    """
    rng = np.random.default_rng(seed)
    datasets = [sample(parameter, rng), sample(parameter, rng), sample(other_parameter, rng)]
    first, second, of_other_distribution = embed(datasets, seed)
    distance_of_same = np.linalg.norm(first - second)
    distance_of_different = np.linalg.norm(first - of_other_distribution)
    assert distance_of_same < 0.5 * distance_of_different


def test_large_datasets_are_thinned_evenly(monkeypatch):
    """Of 30 points, at most 10 are used: every third."""
    monkeypatch.setattr(descriptions, "MAX_POINTS", 10)
    points = np.random.default_rng(0).standard_normal((30, 2))
    small = TaskData(points[:7], None, UNSUPERVISED)
    large = TaskData(points, None, UNSUPERVISED)
    every_third = TaskData(points[::3], None, UNSUPERVISED)
    # The second task's data are few enough as they are.
    np.testing.assert_array_equal(embed([large, small]), embed([every_third, small]))


# -- fits ------------------------------------------------------------------------------------------


def make_related_observations(n: int, seed: int) -> ProcessData:
    """Losses without noise, a wave in one feature and a parabola in another, shifted by task."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (n, 3))
    task = np.sort(rng.integers(TASKS, size=n))
    wave = np.sin(2.0 * X[:, 0] + 0.3 * task)
    parabola = np.square(X[:, 1] - 0.2 * task)
    losses = wave + parabola
    standardised = (losses - losses.mean()) / losses.std()
    return ProcessData(X, LENGTH_SCALE_OF_FEATURE, task, standardised)


def select(data: ProcessData, rows: FloatArray) -> ProcessData:
    return ProcessData(data.X[rows], data.groups, data.task[rows], data.y[rows])


def make_model(kind: str, rng: np.random.Generator, *, noise_count: int = 1) -> models.JointModel:
    """A model of all tasks and three features: a process of two length scales, or a regression."""
    if kind == "process":
        return models.ProcessModel(models.FreeTasks(TASKS), 2, rng, noise_count=noise_count)
    return models.LinearModel(FixedDescriptions(np.eye(TASKS)), 3, rng, noise_count=noise_count)


each_kind = pytest.mark.parametrize("kind", ["process", "regression"])
each_seed = pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)


@each_kind
@each_seed
def test_fit_predicts_unseen_evaluations(kind, seed):
    """The process and the linear model learn from related tasks; both have a small error."""
    data = make_related_observations(300, seed)
    # Every second evaluation of the current task is held back.
    current = np.flatnonzero(data.task == CURRENT_TASK)
    unseen = current[1::2]
    seen = np.setdiff1d(np.arange(300), unseen)
    model = make_model(kind, np.random.default_rng(seed))
    mean, _ = model.fit(select(data, seen)).predict(data.X[unseen])
    squared_error = np.mean((mean - data.y[unseen]) ** 2)
    assert squared_error < 0.1  # the losses have variance 1


def test_poor_fit_is_refused():
    """A process of flat functions and hardly any noise contradicts random losses."""
    model = models.ProcessModel(models.FreeTasks(TASKS), 2, np.random.default_rng(0))
    long_log_lengths = (5.0, 5.0)
    log_signal = 0.0
    low_log_noise = -12.0
    # The last four parameters, after those of tasks.
    model.x[-4:] = (*long_log_lengths, log_signal, low_log_noise)
    # Equal bounds keep all parameters as they are: the fit cannot mend them.
    model.bounds = (model.x, model.x)
    with pytest.raises(ModelError, match=r"the fit is poor: .* nats per evaluation"):
        model.fit(make_observations(np.random.default_rng(0)))
