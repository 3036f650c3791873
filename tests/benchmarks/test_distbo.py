"""The distBO benchmarks: their data, and values against scikit-learn's own models."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import kstest, norm, spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.svm import SVC

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import _distbo_data as data
from hpobench_ordered.benchmarks import _distbo_models as models
from hpobench_ordered.benchmarks import distbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data import TaskData
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.errors import DownloadError, NotFetchedError, UnknownNameError
from hpobench_ordered.generation.base import generator
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.surrogates.bundle import read_definition
from hpobench_ordered.testing import check_benchmark

# Law et al. (2019) use section and appendix numbers below. Real data are published files; those of
# the other benchmarks, `distbo.GENERATED`, are drawn with a seed. A seed also splits the real data;
# it is 0 unless the name says otherwise.
HEADER_OF_PARKINSONS = (
    "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),Jitter:RAP,"
    "Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,Shimmer:APQ11,"
    "Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE"
)


@pytest.fixture(scope="module")
def folder_of_texts(shared, tmp_path_factory):
    """A folder of text files as their authors publish them: of proteins and of recorded voices.

    They are written here from arrays, in which the shared data hold the same numbers.
    """
    folder_of_arrays = shared / "data" / "distbo"
    if not folder_of_arrays.is_dir():
        pytest.skip(f"no {folder_of_arrays}")

    folder = tmp_path_factory.mktemp("texts")
    write_proteins(folder_of_arrays / "protein.npz", folder)
    write_parkinsons(folder_of_arrays / "parkinsons.npz", folder / "parkinsons_updrs.data")
    return folder


def write_proteins(path_of_arrays: Path, folder: Path) -> None:
    """Write a text file of zeros and ones for each protein."""
    with np.load(path_of_arrays) as proteins:
        for name in proteins.files:
            np.savetxt(folder / f"{name}_binary.txt", proteins[name], fmt="%d", delimiter=",")


def write_parkinsons(path_of_arrays: Path, path: Path) -> None:
    """Write the recordings of all patients into one text file.

    The text file numbers the patients, and has the targets before the measurements of the voice;
    arrays are in another order.
    """
    rows_of_patients = []
    with np.load(path_of_arrays) as patients:
        for patient, name in enumerate(patients.files, start=1):
            array = patients[name]
            number_of_patient = np.full(len(array), patient)
            age_sex_time = array[:, :3]
            voice = array[:, 3:-2]
            targets = array[:, -2:]
            columns = [number_of_patient, age_sex_time, targets, voice]
            rows_of_patients.append(np.column_stack(columns))

    np.savetxt(
        path,
        np.concatenate(rows_of_patients),
        fmt="%.17g",  # with 17 digits, the numbers are read back exactly
        delimiter=",",
        header=HEADER_OF_PARKINSONS,
        comments="",  # no sign before the header
    )


@pytest.fixture(scope="module")
def folder_of_full_cache(folder_of_texts, tmp_path_factory):
    """The folder of a cache of downloads that holds all published text files."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(CACHE_VARIABLE, str(folder))
        for file in (*data.PROTEIN_FILES, data.PARKINSONS_FILE):
            name_without_folders = Path(file.name).name
            file.store(folder_of_texts / name_without_folders)
    return folder


@pytest.fixture(autouse=True)
def _compute_on_one_thread():
    """Run every test of this file on one thread: more are slower on its small matrices."""
    with one_thread():
        yield


@pytest.fixture
def fetched(folder_of_full_cache, monkeypatch):
    """All published files have been downloaded: the cache of downloads is full."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder_of_full_cache))


def sample_rows(benchmark: hbo.Benchmark, number: int = 20) -> np.ndarray:
    """Sample configurations, each coded as a row of d numbers; returns (number, d)."""
    space = benchmark.space
    rng = np.random.default_rng(5)
    numbers_from_0_to_1 = space.sample_unit(rng, number)
    return space.decode(numbers_from_0_to_1)


# -- definitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tasks", "history_size"),
    [
        ("distbo-toy", 16, 30),
        ("distbo-counterexample", 5, 125),
        ("distbo-classification-a", 11, 150),
        ("distbo-classification-b", 11, 150),
        ("distbo-parkinsons", 42, 30),
        ("distbo-protein-svm", 7, 20),
        ("distbo-protein-forest", 7, 20),
    ],
)
def test_sizes_are_the_papers(name, tasks, history_size):
    """Each benchmark has a number of tasks, and of evaluations in the recorded run on a task."""
    benchmark = hbo.load(name)

    assert len(benchmark.tasks) == tasks
    assert benchmark.history_size == history_size
    assert benchmark.recorded is not None
    lengths_of_runs = [len(run) for run in benchmark.recorded()]
    assert lengths_of_runs == [history_size] * tasks


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        # The regularisation, and the bandwidths of six features.
        ("distbo-counterexample", [(1e-8, 0.1), *[(2**-7, 2**5)] * 6]),
        ("distbo-classification-a", [(2**-7, 2**10), *[(2**-3, 2**5)] * 6]),
    ],
)
def test_bounds_are_the_papers(name, bounds):
    """The hyperparameters are a regularisation and six bandwidths, all on logarithmic scales."""
    parameters = hbo.load(name).space.parameters

    assert [(parameter.lower, parameter.upper) for parameter in parameters] == bounds
    assert all(parameter.log for parameter in parameters)


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_artifacts_store_the_definition(name):
    """The stored definition of search space and tasks is the one that the package's code builds."""
    spec = benchmark_spec(name)

    assert spec.artifact is not None
    assert read_definition(spec.artifact) == spec.define()


# -- data ------------------------------------------------------------------------------------------


def load_features(name: str, task: int) -> np.ndarray:
    """Load the features of a task's training data: a row for each point, (n, p)."""
    task_data = hbo.load(name).tasks[task].data
    assert task_data is not None
    return task_data.features


@pytest.mark.parametrize("task", [0, -1])
@pytest.mark.parametrize("name", distbo.GENERATED)
def test_data_follow_from_the_seed(name, task):
    """The same seed draws the same data, another seed draws others."""
    features = load_features(name, task)

    # The seed is 0 unless the name says otherwise.
    assert np.array_equal(features, load_features(f"{name}-seed-0", task))
    assert not np.array_equal(features, load_features(f"{name}-seed-1", task))


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_further_seeds_have_no_runs(name):
    """Runs come with the package for seed 0 alone; other seeds still know the size of a run."""
    benchmark = hbo.load(f"{name}-seed-1")

    assert benchmark.recorded is None
    assert benchmark.history_size == benchmark_spec(name).history_size


WITHOUT_FORMULA_OF_OPTIMUM = [name for name in distbo.GENERATED if name != "distbo-toy"]
"""Benchmarks whose optimum is not known by a formula."""


def test_mean_of_points_is_toy_optimum():
    """A task has points without labels; its value is exp(-(theta - mean)^2 / 2), at most 1."""
    for task in hbo.load("distbo-toy").tasks:
        assert task.data is not None
        assert task.data.labels is None
        mean = float(task.data.features.mean())

        value_at_mean = task.evaluate({"theta": mean})
        value_one_above = task.evaluate({"theta": mean + 1.0})

        assert value_at_mean == task.best_value == 1.0
        assert value_one_above == pytest.approx(np.exp(-(1.0**2) / 2), rel=1e-12)


SMALLEST_PLAUSIBLE_P_VALUE = 1e-4
"""A p-value below this is taken for an error, not for chance."""


@pytest.mark.parametrize(("task", "centre"), [(0, 0.0), (5, 4.0), (15, 0.0)])
def test_toy_means_are_normal(task, centre):
    """A task draws a true mean from N(centre, 1), and then 500 points from N(true mean, 1).

    The mean of its points is compared with this distribution over many seeds. Tasks 3 to 14 have
    the centre 4, the others, among them the target, 15, the centre 0.
    """
    means = np.array([data.compute_toy_mean(seed, task) for seed in range(1000)])

    variance_of_true_mean = 1
    variance_of_mean_of_points = 1 / 500
    deviation = np.sqrt(variance_of_true_mean + variance_of_mean_of_points)
    p_value = kstest(means, norm(centre, deviation).cdf).pvalue
    assert p_value > SMALLEST_PLAUSIBLE_P_VALUE


@pytest.mark.parametrize("task", range(5))
def test_features_are_pairwise_independent(task):
    """Neither the six features of a point are correlated nor their absolute values.

    So no statistic of two features tells the tasks apart (appendix C.3).
    """
    x, _ = data.draw_counterexample_points(0, task)

    correlations = np.corrcoef(x.T)
    correlations_of_absolutes = np.corrcoef(np.abs(x).T)

    # Estimates from 10,000 points of independent features are off by about 0.01.
    uncorrelated = np.eye(6)
    np.testing.assert_allclose(correlations, uncorrelated, atol=0.05)
    np.testing.assert_allclose(correlations_of_absolutes, uncorrelated, atol=0.05)


@pytest.mark.parametrize(("task", "process"), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 2)])
def test_labels_follow_the_process(task, process):
    """Labels of process i are log(1 + product^3) and noise from N(0, 0.5^2) (section 5.2).

    The product, which is positive, is that of the features 1, 2 and i + 2.
    """
    x, y = data.draw_counterexample_points(0, task)

    # Columns are numbered from 0, features from 1.
    feature_1 = x[:, 0]
    feature_2 = x[:, 1]
    feature_of_process = x[:, process + 1]
    product = feature_1 * feature_2 * feature_of_process
    assert (product > 0).all()

    noise = y - np.log(1 + product**3)
    p_value = kstest(noise, norm(0, 0.5).cdf).pvalue
    assert p_value > SMALLEST_PLAUSIBLE_P_VALUE


@pytest.mark.parametrize(
    "make_data_of_target",
    [
        partial(data.draw_counterexample_data, 0, 4),
        partial(data.draw_classification_data, 0, "b", 10),
    ],
    ids=["counterexample", "classification"],
)
def test_training_data_are_standardised(make_data_of_target):
    """Features have mean 0 and standard deviation 1, and labels reach from 0 to 1."""
    split = make_data_of_target()

    x = split.train.features
    y = split.train.labels

    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-12)
    assert (y.min(), y.max()) == (0, 1)


def test_test_data_are_scaled_like_training_data():
    """The first 5000 points are for training, and decide how all points are scaled."""
    seed, task = 0, 4
    x, y = data.draw_counterexample_points(seed, task)
    x_train, x_test = x[:5000], x[5000:]
    y_train, y_test = y[:5000], y[5000:]

    test = data.draw_counterexample_data(seed, task).test

    standardised_x = (x_test - x_train.mean(axis=0)) / x_train.std(axis=0)
    np.testing.assert_allclose(test.features, standardised_x)
    range_of_labels = y_train.max() - y_train.min()
    scaled_y = (y_test - y_train.min()) / range_of_labels
    np.testing.assert_allclose(test.labels, scaled_y)


# Experiments A and B have ten source tasks, 0 to 9, and the target, 10.
CLASSIFICATION_SEEDS = pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])


@CLASSIFICATION_SEEDS
@pytest.mark.parametrize("task", [0, 9])
def test_experiments_share_source_tasks(seed, task):
    """The first and the last source task have the same data and values in experiments A and B."""
    a = hbo.load(f"distbo-classification-a-seed-{seed}")
    b = hbo.load(f"distbo-classification-b-seed-{seed}")
    data_a = a.tasks[task].data
    data_b = b.tasks[task].data

    assert data_a is not None
    assert data_b is not None
    np.testing.assert_array_equal(data_a.features, data_b.features)
    np.testing.assert_array_equal(data_a.labels, data_b.labels)

    one_row = sample_rows(a, 1)
    assert a.tasks[task].evaluate_many(one_row) == b.tasks[task].evaluate_many(one_row)


@CLASSIFICATION_SEEDS
def test_target_a_has_bandwidths_of_source(seed):
    """Each task has six bandwidths; the last task, the target, has the same as a source task."""
    bandwidths_of_tasks = data.draw_classification_bandwidths(seed, "a").tolist()

    *sources, target = bandwidths_of_tasks
    assert target in sources


@CLASSIFICATION_SEEDS
def test_bandwidths_of_a_are_the_papers(seed):
    bandwidths = data.draw_classification_bandwidths(seed, "a")

    possible_bandwidths = data.BANDWIDTHS
    assert np.isin(bandwidths, possible_bandwidths).all()


@CLASSIFICATION_SEEDS
def test_target_b_has_unseen_bandwidths(seed):
    """The last task of experiment B, its target, has six bandwidths that no source task has."""
    *_, target = data.draw_classification_bandwidths(seed, "b").tolist()

    assert target == [1.5] * 6
    possible_bandwidths_of_sources = data.BANDWIDTHS
    assert 1.5 not in possible_bandwidths_of_sources


@CLASSIFICATION_SEEDS
def test_sources_of_b_have_bandwidths_of_a(seed):
    """Experiments A and B share their source tasks; only the last task, the target, differs."""
    *sources_of_a, _ = data.draw_classification_bandwidths(seed, "a").tolist()
    *sources_of_b, _ = data.draw_classification_bandwidths(seed, "b").tolist()

    assert sources_of_b == sources_of_a


# -- models ----------------------------------------------------------------------------------------


@given(
    bandwidths=st.lists(st.floats(0.01, 30), min_size=6, max_size=6),
    n_left=st.integers(1, 20),
)
def test_kernel_follows_the_formula(bandwidths, n_left):
    """The kernel of points x and x' is exp(-1/2 sum_j (x_j - x'_j)^2 / sigma_j^2).

    Here x are some points on the left, x' seven points on the right, all with six features j, and
    sigma the bandwidths.
    """
    sigma = np.array(bandwidths)
    rng = np.random.default_rng(n_left)
    left = rng.normal(size=(n_left, 6))
    right = rng.normal(size=(7, 6))

    kernel = models.compute_ard_kernel(left, right, sigma)

    scaled_differences = (left[:, None] - right[None]) / sigma  # (left, right, features)
    expected = np.exp(-0.5 * np.sum(scaled_differences**2, axis=2))
    np.testing.assert_allclose(kernel, expected, atol=1e-9)


@pytest.mark.parametrize("decimals", [15, 0, -2], ids=["distinct", "ties", "all equal"])
def test_auc_is_scikit_learns(decimals):
    """Scores that are rounded to few decimals have ties, which an AUC must count by half."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300).astype(float)
    scores = rng.normal(size=300).round(decimals)

    auc = models.compute_auc(labels, scores)

    # Values of models are rounded to six decimals.
    assert auc == pytest.approx(roc_auc_score(labels, scores), abs=1e-6)


def select_first_rows(task_data: TaskData, number: int) -> TaskData:
    """Select the first rows of a data set."""
    assert task_data.labels is not None
    return TaskData(task_data.features[:number], task_data.labels[:number], task_data.kind)


def compute_ridge_r_squared(split: data.TrainTestSplit, row: np.ndarray) -> float:
    """Compute R2 on test data of scikit-learn's kernel ridge regression.

    A row is alpha, the regularisation, and a bandwidth sigma of each feature.
    """
    alpha = row[0]
    sigma = row[1:]
    x = split.train.features / sigma
    x_test = split.test.features / sigma

    # With the features scaled already, the kernel is exp(-gamma |x - x'|^2).
    model = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5)
    model.fit(x, split.train.labels)
    return float(r2_score(split.test.labels, model.predict(x_test)))


@pytest.mark.slow
def test_ridge_regression_is_scikit_learns():
    """The benchmark trains on the first 1000 of 5000 points, to save time."""
    benchmark = hbo.load("distbo-counterexample")
    source_task = 2
    all_points = data.draw_counterexample_data(0, source_task)
    split = data.TrainTestSplit(select_first_rows(all_points.train, 1000), all_points.test)
    for row in sample_rows(benchmark):
        (config,) = benchmark.space.configs(row[None])

        r2 = benchmark.tasks[source_task].evaluate(config)

        assert r2 == pytest.approx(compute_ridge_r_squared(split, row), abs=1e-4)


def compute_rbf_kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compute exp(-1/2 |x - x'|^2) of all pairs of points: (m, p) and (n, p) to (m, n)."""
    return np.exp(-0.5 * cdist(left, right, "sqeuclidean"))


def compute_nystroem_features(x: np.ndarray, inducing_points: np.ndarray) -> np.ndarray:
    """Compute features whose inner products approximate the kernel of points, (n, p) to (n, m).

    If K_m = L L' is the kernel of the m inducing points among themselves, and K that of all points
    to them, the features are K L'^-1 (Nystroem's method).
    """
    kernel_of_inducing = compute_rbf_kernel(inducing_points, inducing_points)
    # Slightly more on the diagonal, as the matrix may be nearly singular.
    kernel_of_inducing += 1e-8 * np.eye(len(inducing_points))
    L = np.linalg.cholesky(kernel_of_inducing)
    return compute_rbf_kernel(x, inducing_points) @ np.linalg.inv(L).T


def compute_logistic_auc(split: data.TrainTestSplit, row: np.ndarray, inducing: int) -> float:
    """Compute the AUC on test data of scikit-learn's logistic regression on kernel features.

    A row is C, the regularisation, and a bandwidth sigma of each feature; the first training points
    are the inducing points of the kernel's approximation.
    """
    C = row[0]
    sigma = row[1:]
    x = split.train.features / sigma
    x_test = split.test.features / sigma
    inducing_points = x[:inducing]

    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-8, max_iter=10_000)
    model.fit(compute_nystroem_features(x, inducing_points), split.train.labels)
    scores = model.decision_function(compute_nystroem_features(x_test, inducing_points))
    return float(roc_auc_score(split.test.labels, scores))


def test_logistic_regression_is_scikit_learns():
    """The AUCs are those of scikit-learn's logistic regression, trained on kernel features.

    To save time, here are only 400 points, of which the first 60 are the inducing points.
    """
    all_points = data.draw_classification_data(0, "a", 0)
    split = data.TrainTestSplit(
        select_first_rows(all_points.train, 400), select_first_rows(all_points.test, 400)
    )
    for row in sample_rows(hbo.load("distbo-classification-a"), 8):
        auc = models.evaluate_logistic(split, row, inducing=60)

        assert auc == pytest.approx(compute_logistic_auc(split, row, inducing=60), abs=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    ("name", "read_train_and_test", "n_features"),
    [
        ("distbo-parkinsons", data.read_parkinsons_data, 17),
        ("distbo-protein-svm", data.read_protein_data, 166),
        ("distbo-protein-forest", data.read_protein_data, 166),
    ],
)
def test_real_training_data_are_sixty_percent(name, read_train_and_test, n_features):
    """The data of a task are for training; further rows of the published data are for testing."""
    for task in hbo.load(name).tasks:
        assert task.data is not None
        train_size = len(task.data)
        test_size = len(read_train_and_test(0, task.index).test)

        assert task.data.features.shape == (task.context["train_size"], n_features)
        share_of_training = train_size / (train_size + test_size)
        assert share_of_training == pytest.approx(0.6, abs=0.005)  # rounded to whole rows


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_trained_surrogates_conform(name):
    """Benchmarks that train models pass `check_benchmark`, the public check.

    It also evaluates in another process, which must give the same values.
    """
    trained = hbo.load(name, surrogate="trained")

    # The process is started here, as it then uses this test's cache of downloads.
    with ProcessPoolExecutor(1, get_context("spawn")) as other_process:
        check_benchmark(trained, configurations=3, executor=other_process)


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("patient", [0, 17])
def test_parkinsons_is_scikit_learns_ridge(patient):
    """The model of a patient is a kernel ridge regression, whose value is R2 on test data."""
    benchmark = hbo.load("distbo-parkinsons", surrogate="trained")
    split = data.read_parkinsons_data(0, patient)
    rows = sample_rows(benchmark)

    r2_of_rows = benchmark.tasks[patient].evaluate_many(rows)

    for (alpha, gamma), r2 in zip(rows, r2_of_rows, strict=True):
        model = KernelRidge(alpha=alpha, gamma=gamma, kernel="rbf")
        model.fit(split.train.features, split.train.labels)
        expected = r2_score(split.test.labels, model.predict(split.test.features))
        assert r2 == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("fetched")
def test_protein_svm_is_scikit_learns():
    """The kernel of two molecules is one minus the Jaccard distance of their binary features."""
    benchmark = hbo.load("distbo-protein-svm", surrogate="trained")
    protein = 4
    split = data.read_protein_data(0, protein)
    x = split.train.features.astype(bool)
    x_test = split.test.features.astype(bool)
    train_kernel = 1 - cdist(x, x, "jaccard")
    test_kernel = 1 - cdist(x_test, x, "jaccard")
    # One molecule may be classified otherwise, as sums are rounded differently.
    share_of_one_molecule = 1.1 / len(x_test)
    for row in sample_rows(benchmark):
        (accuracy,) = benchmark.tasks[protein].evaluate_many(row[None])

        (C,) = row  # the only hyperparameter
        model = SVC(C=C, kernel="precomputed").fit(train_kernel, split.train.labels)
        expected = accuracy_score(split.test.labels, model.predict(test_kernel))
        assert accuracy == pytest.approx(expected, abs=share_of_one_molecule)


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_protein_forest_is_scikit_learns():
    """The model of a protein is a random forest, whose value is the accuracy on test data."""
    benchmark = hbo.load("distbo-protein-forest", surrogate="trained")
    split = data.read_protein_data(0, 0)
    for row in sample_rows(benchmark, 6):
        (accuracy,) = benchmark.tasks[0].evaluate_many(row[None])

        trees, depth, share_to_split, share_of_leaf = row
        model = RandomForestClassifier(
            int(trees),
            max_depth=int(depth),
            min_samples_split=share_to_split,
            min_samples_leaf=share_of_leaf,
            random_state=0,
        )
        model.fit(split.train.features, split.train.labels)
        assert accuracy == accuracy_score(split.test.labels, model.predict(split.test.features))


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    ("name", "split_data"),
    [
        ("distbo-parkinsons", data.read_parkinsons_data),
        ("distbo-protein-svm", data.read_protein_data),
    ],
)
def test_seeds_split_real_data_anew(name, split_data):
    """Another seed has as many points for training, but other ones; seed 0 is the packaged one."""
    of_package = load_features(name, 3)
    of_seed_1 = load_features(f"{name}-seed-1", 3)

    assert np.array_equal(of_package, load_features(f"{name}-seed-0", 3))
    assert of_package.shape == of_seed_1.shape
    assert not np.array_equal(of_package, of_seed_1)
    # All points are used by every seed: only the split differs.
    assert len(split_data(0, 3).test) == len(split_data(1, 3).test)


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_best_value_of_trained_models_is_that_of_run(name):
    """The forest has best values of its own, which were searched on it."""
    trained = hbo.load(name, surrogate="trained")
    assert trained.recorded is not None
    for task, run in zip(trained.tasks, trained.recorded(), strict=True):
        assert task.best_value is not None
        assert task.objective.loss(task.best_value) == run.losses.min()


def test_points_without_features_are_similar():
    """The Jaccard similarity is the share of common features; of none and none it is 1, not 0/0."""
    no_features = [0.0, 0, 0]
    first_and_third = [1.0, 0, 1]
    first_and_second = [1.0, 1, 0]
    points = np.array([no_features, first_and_third, first_and_second])

    with np.errstate(all="raise"):
        similarity = models.compute_jaccard_similarity(points, points)

    # The last two have one of three features in common.
    np.testing.assert_allclose(similarity, [[1, 0, 0], [0, 1, 1 / 3], [0, 1 / 3, 1]])


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_forests_rank_like_trained_models(name):
    """The default surrogate is a forest, fitted to values of models that were trained."""
    forest = hbo.load(name)
    trained = hbo.load(name, surrogate="trained")
    rows = sample_rows(forest, 40)

    values_of_forest = forest.tasks[0].evaluate_many(rows)

    values_of_trained = trained.tasks[0].evaluate_many(rows)
    assert spearmanr(values_of_forest, values_of_trained).statistic > 0.9


# -- source runs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    ("name", "tolerance_of_loss"),
    [
        ("distbo-parkinsons", 1e-5),
        ("distbo-protein-svm", 2e-3),  # about one molecule
        pytest.param("distbo-protein-forest", 1e-5, marks=pytest.mark.slow),
    ],
)
def test_recorded_runs_can_be_repeated(name, tolerance_of_loss):
    """Models are trained again for the first three evaluations on each of three tasks."""
    trained = hbo.load(name, surrogate="trained")
    assert trained.recorded is not None
    runs = trained.recorded()
    for task, run in zip(trained.tasks[:3], runs[:3], strict=True):
        objective_values = task.evaluate_many(run.values[:3])

        losses = task.objective.losses(objective_values)
        np.testing.assert_allclose(run.losses[:3], losses, atol=tolerance_of_loss)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_FORMULA_OF_OPTIMUM)
def test_runs_on_generated_data_can_be_repeated(name):
    """Models are trained again for the last two evaluations on each task."""
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        objective_values = task.evaluate_many(run.values[-2:])

        losses = task.objective.losses(objective_values)
        np.testing.assert_allclose(run.losses[-2:], losses, atol=1e-5)


@pytest.mark.parametrize("name", WITHOUT_FORMULA_OF_OPTIMUM)
def test_best_values_are_no_worse_than_runs(name):
    """The best value known of a task is at least as good as all recorded evaluations."""
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        assert task.best_value is not None
        best_loss = task.objective.loss(task.best_value)
        assert best_loss <= run.losses.min()


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    "name", ["distbo-toy", pytest.param("distbo-protein-svm", marks=pytest.mark.long)]
)
def test_artifacts_are_generated_again(name, folder_of_texts, tmp_path):
    """The generator writes the packaged files to the byte.

    Data of real benchmarks are read from a folder; those of the others are drawn.
    """
    folder_of_data = folder_of_texts if name in distbo.REAL else None

    generator(name).generate(tmp_path / name, local=folder_of_data)

    packaged = Artifact.packaged(name)
    for file in ("runs.npz", "benchmark.json"):
        assert (tmp_path / name / file).read_bytes() == packaged.read(file)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """No file has been downloaded, and no data that earlier tests read are kept in memory."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for read_once in (data.read_protein_data, data.read_parkinsons_data, data._read_recordings):
        read_once.cache_clear()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_training_without_files_names_command(name):
    with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate trained"):
        hbo.load(name, surrogate="trained")


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_data_without_files_name_command(name):
    """Nothing has been downloaded, which the forest does not need, but a task's data do."""
    task = hbo.load(name).tasks[0]

    with pytest.raises(NotFetchedError, match=f"fetch {name}$"):
        _ = task.data  # reads the data


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        # Of a protein: a 2, another first number.
        (data.PROTEIN_FILES[0], lambda text: text.replace("1", "2", 1), "zeros and ones"),
        (data.PROTEIN_FILES[0], lambda text: "1" + text[1:], "are not those of adam17"),
        # Of the recordings: another name of a column.
        (data.PARKINSONS_FILE, lambda text: text.replace("age", "years", 1), "columns must be"),
    ],
)
def test_changed_files_are_refused(folder_of_texts, tmp_path, monkeypatch, file, change, message):
    """A published text is changed, and then copied into the cache of downloads."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    name = Path(file.name).name
    published_text = (folder_of_texts / name).read_text()
    changed_copy = tmp_path / name
    changed_copy.write_text(change(published_text))

    with pytest.raises(DownloadError, match=message):
        file.store(changed_copy)


@pytest.mark.parametrize("name", ["distbo-toy-seed-01", "distbo-seed-1"])
def test_other_names_are_unknown(name):
    """No seed is written with a leading zero, and every name has a benchmark's."""
    with pytest.raises(UnknownNameError):
        hbo.load(name)
    with pytest.raises(UnknownNameError):
        generator(name)


TOY_OF_SEED_7 = "distbo-toy-seed-7"
"""A benchmark whose runs are not packaged; users can generate them."""


@pytest.fixture
def generated_runs(tmp_path, monkeypatch):
    """The folder of the runs that a user generated for the toy benchmark of seed 7."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    runs_generator = generator(TOY_OF_SEED_7)
    return runs_generator.generate(runs_generator.home() / TOY_OF_SEED_7)


def test_seed_without_runs_has_plain_identity(tmp_path, monkeypatch):
    """If nobody has generated runs, the identity has no hash of them after the version, 1."""
    no_generated_runs = tmp_path
    monkeypatch.setenv(LOCAL_VARIABLE, str(no_generated_runs))

    spec = benchmark_spec(TOY_OF_SEED_7)

    assert spec.recorded is None
    assert spec.identity() == f"{TOY_OF_SEED_7}@1"


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_generated_runs_change_identity():
    """If a user generated runs, their hash follows the version, 1, after a plus sign."""
    assert benchmark_spec(TOY_OF_SEED_7).identity().startswith(f"{TOY_OF_SEED_7}@1+")


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_seeds_have_other_random_configurations():
    """A source run begins with ten random configurations, which each seed draws anew."""
    packaged = hbo.load("distbo-toy")
    of_seed_7 = hbo.load(TOY_OF_SEED_7)
    assert packaged.recorded is not None
    assert of_seed_7.recorded is not None
    for run, other_run in zip(packaged.recorded(), of_seed_7.recorded(), strict=True):
        assert not np.isin(run.values[:10], other_run.values[:10]).any()


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_generated_runs_have_values_of_tasks():
    """The runs that a user generated hold the losses of the configurations evaluated again."""
    benchmark = hbo.load(TOY_OF_SEED_7)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        # As many evaluations as in the paper's runs.
        assert len(run) == 30
        losses = task.objective.losses(task.evaluate_many(run.values))
        np.testing.assert_array_equal(run.losses, losses)
