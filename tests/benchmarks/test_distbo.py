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
from scipy.stats import kstest, spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.svm import SVC

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import _distbo_data as data
from hpobench_ordered.benchmarks import _distbo_models as models
from hpobench_ordered.benchmarks import distbo
from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError, UnknownNameError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.generation.base import generator
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.surrogates.bundle import find_card, read_definition
from hpobench_ordered.testing import check_benchmark

# Law et al. (2019) use section and appendix numbers below. Real data are published files; those of
# the other benchmarks, `distbo.GENERATED`, are drawn with a seed, 0 unless the name says otherwise.
HEADER = (
    "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),Jitter:RAP,"
    "Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,Shimmer:APQ11,"
    "Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE"
)


@pytest.fixture(scope="module")
def texts(shared, tmp_path_factory):
    """A folder with the published texts, written from arrays of the same numbers."""
    source = shared / "data" / "distbo"
    if not source.is_dir():
        pytest.skip(f"no {source}")
    folder = tmp_path_factory.mktemp("texts")
    write_proteins(source / "protein.npz", folder)
    write_parkinsons(source / "parkinsons.npz", folder / "parkinsons_updrs.data")
    return folder


def write_proteins(source: Path, folder: Path) -> None:
    """Write a text of zeros and ones for each protein."""
    with np.load(source) as proteins:
        for name in proteins.files:
            np.savetxt(folder / f"{name}_binary.txt", proteins[name], fmt="%d", delimiter=",")


def write_parkinsons(source: Path, path: Path) -> None:
    """Write the recordings of all patients, whose numbers are the first column."""
    rows_of_patients = []
    with np.load(source) as patients:
        for number, name in enumerate(patients.files, start=1):
            rows = patients[name]
            # In the text, the targets come before the measurements of the voice.
            age_sex_time, voice, targets = rows[:, :3], rows[:, 3:-2], rows[:, -2:]
            subject = np.full(len(rows), number)
            rows_of_patients.append(np.column_stack([subject, age_sex_time, targets, voice]))
    # With 17 digits, the numbers are read back exactly.
    np.savetxt(
        path,
        np.concatenate(rows_of_patients),
        fmt="%.17g",
        delimiter=",",
        header=HEADER,
        comments="",
    )


@pytest.fixture(scope="module")
def cache(texts, tmp_path_factory):
    """A cache that holds the published texts."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(CACHE_VARIABLE, str(folder))
        for file in (*data.PROTEIN_FILES, data.PARKINSONS_FILE):
            file.store(texts / Path(file.name).name)
    return folder


@pytest.fixture(autouse=True)
def _one_thread():
    """Run on one thread as in `evaluate`, as several are slower on small matrices."""
    with one_thread():
        yield


@pytest.fixture
def fetched(cache, monkeypatch):
    """Use the cache that holds all files."""
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))


def sample_values(benchmark: hbo.Benchmark, number: int = 20) -> np.ndarray:
    """Random configurations, coded as values, (number, d)."""
    space = benchmark.space
    rng = np.random.default_rng(5)
    return space.decode(space.sample_unit(rng, number))


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
    """Numbers of tasks, and of evaluations in the recorded run on each task."""
    benchmark = hbo.load(name)

    assert len(benchmark.tasks) == tasks
    assert benchmark.history_size == history_size
    assert benchmark.recorded is not None
    assert [len(run) for run in benchmark.recorded()] == [history_size] * tasks


def test_suite_has_seven_benchmarks():
    # Those of `test_sizes_are_the_papers`.
    assert len(hbo.suite("distbo")) == 7


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        # The regularisation, and the bandwidths of six features.
        ("distbo-counterexample", [(1e-8, 0.1), *[(2**-7, 2**5)] * 6]),
        ("distbo-classification-a", [(2**-7, 2**10), *[(2**-3, 2**5)] * 6]),
    ],
)
def test_bounds_are_the_papers(name, bounds):
    """Of the regularisation and six bandwidths, all on logarithmic scales."""
    parameters = hbo.load(name).space.parameters

    assert [(parameter.lower, parameter.upper) for parameter in parameters] == bounds
    assert all(parameter.log for parameter in parameters)


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_artifacts_store_the_definition(name):
    spec = benchmark_spec(name)

    assert spec.artifact is not None
    assert read_definition(spec.artifact) == spec.define()


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_artifacts_store_no_surrogate(name):
    """Models are trained at every evaluation, so only runs are stored."""
    artifact = benchmark_spec(name).artifact
    assert artifact is not None

    assert find_card(artifact) is None
    folder = Path(str(artifact.folder))
    with pytest.raises(ArtifactError, match="lists no surrogate"):
        benchmark_spec(folder)


# -- data ------------------------------------------------------------------------------------------


def load_features(name: str, task: int) -> np.ndarray:
    """Features of the training data of a task, (n, p)."""
    task_data = hbo.load(name).tasks[task].data
    assert task_data is not None
    return task_data.features


@pytest.mark.parametrize("task", [0, -1])
@pytest.mark.parametrize("name", distbo.GENERATED)
def test_data_follow_from_the_seed(name, task):
    features = load_features(name, task)

    # The seed is 0 unless the name says otherwise.
    assert np.array_equal(features, load_features(f"{name}-seed-0", task))
    assert not np.array_equal(features, load_features(f"{name}-seed-1", task))


@pytest.mark.parametrize("task", [0, -1])
@pytest.mark.parametrize("name", distbo.GENERATED)
def test_context_is_size_of_data(name, task):
    context = hbo.load(name).tasks[task].context

    assert context["train_size"] == len(load_features(name, task))


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_further_seeds_have_no_runs(name):
    """Runs are packaged for seed 0 only; others have the size that runs would have."""
    benchmark = hbo.load(f"{name}-seed-1")

    assert benchmark.recorded is None
    assert benchmark.history_size == benchmark_spec(name).history_size


SEARCHED = [name for name in distbo.GENERATED if name != "distbo-toy"]
"""Benchmarks whose optimum is not known by a formula."""


@pytest.mark.parametrize("name", SEARCHED)
def test_further_seeds_have_no_best_values(name):
    """Only those of seed 0 were searched for."""
    best_values = [task.best_value for task in hbo.load(f"{name}-seed-1").tasks]

    assert set(best_values) == {None}


def test_mean_of_points_is_toy_optimum():
    """The value is exp(-(theta - mean)^2 / 2), at most 1."""
    for task in hbo.load("distbo-toy").tasks:
        assert task.data is not None
        assert task.data.labels is None
        mean = float(task.data.features.mean())

        assert task.evaluate({"theta": mean}) == task.best_value == 1.0
        one_off = task.evaluate({"theta": mean + 1.0})
        assert one_off == pytest.approx(np.exp(-(1.0**2) / 2), rel=1e-12)


UNLIKELY = 1e-4
"""A p-value below this is taken for an error, not for chance."""


@pytest.mark.parametrize(("task", "centre"), [(0, 0.0), (5, 4.0), (15, 0.0)])
def test_toy_means_are_normal(task, centre):
    """Means of different seeds; tasks 3 to 14 of 16 have another centre than the target, 15."""
    means = np.array([data.toy_mean(seed, task) for seed in range(1000)])

    # Variance of the true mean, and of the mean of 500 points around it.
    deviation = np.sqrt(1 + 1 / 500)
    assert kstest(means - centre, "norm", args=(0, deviation)).pvalue > UNLIKELY


@pytest.mark.parametrize("task", range(5))
def test_features_are_pairwise_independent(task):
    """Appendix C.3: no statistic of one or two features tells the tasks apart."""
    x, _ = data.counterexample_points(0, task)

    # Each feature is normal with standard deviation 2.
    for column in x.T:
        assert kstest(column, "norm", args=(0, 2)).pvalue > UNLIKELY
    # Of 10,000 points, the correlation of independent features is about 0.01.
    assert np.abs(np.corrcoef(x.T) - np.eye(6)).max() < 0.05
    assert np.abs(np.corrcoef(np.abs(x).T) - np.eye(6)).max() < 0.05


@pytest.mark.parametrize(("task", "process"), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 2)])
def test_labels_follow_the_process(task, process):
    """Section 5.2: y of process i depends on features 1, 2 and i + 2, by a positive product."""
    x, y = data.counterexample_points(0, task)

    feature_1 = x[:, 0]
    feature_2 = x[:, 1]
    third_feature = x[:, process + 1]  # columns are numbered from 0
    product = feature_1 * feature_2 * third_feature
    assert (product > 0).all()
    # Labels are a function of the product, and normal noise of deviation 0.5.
    noise = y - np.log(1 + product**3)
    assert kstest(noise, "norm", args=(0, 0.5)).pvalue > UNLIKELY


@pytest.mark.parametrize(
    "make_split",
    [partial(data.counterexample_data, 0, 4), partial(data.classification_data, 0, "b", 10)],
    ids=["counterexample", "classification"],
)
def test_training_data_are_standardised(make_split):
    """Features have mean 0 and deviation 1, and labels are in [0, 1]; here of the target tasks."""
    split = make_split()

    x = split.train.features
    y = split.train.labels

    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-12)
    assert (y.min(), y.max()) == (0, 1)
    assert len(split.test) == 5000


def test_test_data_are_scaled_like_training_data():
    """The first 5000 points are for training, and decide how all points are scaled."""
    x, y = data.counterexample_points(0, 4)
    x_train, x_test = x[:5000], x[5000:]
    y_train, y_test = y[:5000], y[5000:]

    test = data.counterexample_data(0, 4).test

    scaled_x = (x_test - x_train.mean(axis=0)) / x_train.std(axis=0)
    np.testing.assert_allclose(test.features, scaled_x)
    range_of_labels = y_train.max() - y_train.min()
    np.testing.assert_allclose(test.labels, (y_test - y_train.min()) / range_of_labels)


# Experiments A and B have ten source tasks, 0 to 9, and the target, 10.
CLASSIFICATION_SEEDS = pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])


@CLASSIFICATION_SEEDS
@pytest.mark.parametrize("task", [0, 9])
def test_experiments_share_source_tasks(seed, task):
    """The first and the last source task have the same data and values in A and B."""
    a = hbo.load(f"distbo-classification-a-seed-{seed}")
    b = hbo.load(f"distbo-classification-b-seed-{seed}")
    data_a = a.tasks[task].data
    data_b = b.tasks[task].data

    assert data_a is not None
    assert data_b is not None
    np.testing.assert_array_equal(data_a.features, data_b.features)
    np.testing.assert_array_equal(data_a.labels, data_b.labels)
    values = sample_values(a, 1)
    assert a.tasks[task].evaluate_many(values) == b.tasks[task].evaluate_many(values)


@CLASSIFICATION_SEEDS
def test_experiments_differ_in_target(seed):
    target = 10  # the last task, after ten source tasks
    features_a = load_features(f"distbo-classification-a-seed-{seed}", target)
    features_b = load_features(f"distbo-classification-b-seed-{seed}", target)

    assert not np.array_equal(features_a, features_b)


@CLASSIFICATION_SEEDS
def test_target_a_has_bandwidths_of_source(seed):
    """Six bandwidths of each task; the target, the last one, has those of a source task."""
    bandwidths = data.classification_bandwidths(seed, "a")

    *sources, target = bandwidths.tolist()
    assert target in sources
    # The possible bandwidths of the paper.
    assert np.isin(bandwidths, data.BANDWIDTHS).all()


@CLASSIFICATION_SEEDS
def test_target_b_has_unseen_bandwidths(seed):
    """The bandwidths of the source tasks are those of experiment A."""
    *sources, target = data.classification_bandwidths(seed, "b").tolist()

    # No source task has the bandwidth 1.5.
    assert target == [1.5] * 6
    assert 1.5 not in data.BANDWIDTHS
    sources_of_a = data.classification_bandwidths(seed, "a")[:10]
    assert sources == sources_of_a.tolist()


# -- models ----------------------------------------------------------------------------------------


@given(
    sigma=st.lists(st.floats(0.01, 30), min_size=6, max_size=6),
    number=st.integers(1, 20),
)
def test_kernel_follows_the_formula(sigma, number):
    """exp(-1/2 sum_j (x_j - x'_j)^2 / sigma_j^2), of points with six features."""
    rng = np.random.default_rng(number)
    left = rng.normal(size=(number, 6))
    right = rng.normal(size=(7, 6))

    kernel = models.compute_ard_kernel(left, right, np.array(sigma))

    differences = (left[:, None] - right[None]) / np.array(sigma)
    expected = np.exp(-0.5 * np.sum(differences**2, axis=2))
    np.testing.assert_allclose(kernel, expected, atol=1e-9)


@pytest.mark.parametrize("decimals", [15, 0, -2], ids=["distinct", "ties", "all equal"])
def test_auc_is_scikit_learns(decimals):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300).astype(float)
    scores = rng.normal(size=300).round(decimals)

    auc = models.compute_auc(labels, scores)

    # Values of models are rounded to six decimals.
    assert auc == pytest.approx(roc_auc_score(labels, scores), abs=1e-6)


def select_first_rows(task_data: hbo.TaskData, number: int) -> hbo.TaskData:
    """A data set of the first rows only."""
    assert task_data.labels is not None
    return hbo.TaskData(task_data.features[:number], task_data.labels[:number], task_data.kind)


def compute_ridge_r_squared(split: data.TrainTestSplit, row: np.ndarray) -> float:
    """Test R2 of scikit-learn's kernel ridge regression, given alpha and the bandwidths."""
    alpha = row[0]
    sigma = row[1:]
    # Of features divided by sigma, the kernel is exp(-1/2 |x - x'|^2).
    model = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5)
    model.fit(split.train.features / sigma, split.train.labels)
    predicted = model.predict(split.test.features / sigma)
    return float(r2_score(split.test.labels, predicted))


@pytest.mark.slow
def test_ridge_regression_is_scikit_learns():
    """Models are trained on the first 1000 of 5000 points, to save time."""
    benchmark = hbo.load("distbo-counterexample")
    task = 2
    whole = data.counterexample_data(0, task)
    split = data.TrainTestSplit(select_first_rows(whole.train, 1000), whole.test)
    for row in sample_values(benchmark):
        (config,) = benchmark.space.configs(row[None])

        r2 = benchmark.tasks[task].evaluate(config)

        assert r2 == pytest.approx(compute_ridge_r_squared(split, row), abs=1e-4)


def compute_rbf_kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """exp(-1/2 |x - x'|^2), of points (m, p) and (n, p) to (m, n)."""
    return np.exp(-0.5 * cdist(left, right, "sqeuclidean"))


def compute_logistic_auc(split: data.TrainTestSplit, row: np.ndarray, inducing: int) -> float:
    """Test AUC of scikit-learn's logistic regression on Nystroem features.

    With K_m, the kernel of the first m points, and its Cholesky factor L, the features of points
    with the kernel K to these are K L'^-1; the row is C and the bandwidths.
    """
    C = row[0]
    sigma = row[1:]
    x = split.train.features / sigma
    x_test = split.test.features / sigma
    inducing_points = x[:inducing]
    # Slightly more on the diagonal, as the matrix may be nearly singular.
    kernel = compute_rbf_kernel(inducing_points, inducing_points) + 1e-8 * np.eye(inducing)
    inverse_root = np.linalg.inv(np.linalg.cholesky(kernel)).T
    features = compute_rbf_kernel(x, inducing_points) @ inverse_root
    test_features = compute_rbf_kernel(x_test, inducing_points) @ inverse_root

    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-8, max_iter=10_000)
    model.fit(features, split.train.labels)
    return float(roc_auc_score(split.test.labels, model.decision_function(test_features)))


def test_logistic_regression_is_scikit_learns():
    """On 400 points, of which the first 60 are inducing points."""
    whole = data.classification_data(0, "a", 0)
    split = data.TrainTestSplit(
        select_first_rows(whole.train, 400), select_first_rows(whole.test, 400)
    )
    for row in sample_values(hbo.load("distbo-classification-a"), 8):
        auc = models.evaluate_logistic(split, row, inducing=60)

        assert auc == pytest.approx(compute_logistic_auc(split, row, inducing=60), abs=1e-4)


@pytest.mark.slow
def test_fewer_ridge_points_rank_alike():
    """Training on 1000 of 5000 points ranks configurations nearly as training on all."""
    benchmark = hbo.load("distbo-counterexample")
    split_of_target = data.counterexample_data(0, 4)
    values = sample_values(benchmark, 6)

    with_some_points = benchmark.tasks[-1].evaluate_many(values)

    with_all_points = [compute_ridge_r_squared(split_of_target, row) for row in values]
    assert spearmanr(with_some_points, with_all_points).statistic > 0.9


@pytest.mark.slow
def test_fewer_inducing_points_rank_alike():
    """The usual number of inducing points, 250, is nearly as good as 800."""
    benchmark = hbo.load("distbo-classification-a")
    split_of_target = data.classification_data(0, "a", 10)
    values = sample_values(benchmark, 8)

    aucs = benchmark.tasks[-1].evaluate_many(values)

    aucs_with_many = [
        models.evaluate_logistic(split_of_target, row, inducing=800) for row in values
    ]
    assert np.abs(aucs - aucs_with_many).mean() < 0.03
    assert spearmanr(aucs, aucs_with_many).statistic > 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    ("name", "read_split", "features"),
    [
        ("distbo-parkinsons", data.parkinsons_data, 17),
        ("distbo-protein-svm", data.protein_data, 166),
        ("distbo-protein-forest", data.protein_data, 166),
    ],
)
def test_real_training_data_are_sixty_percent(name, read_split, features):
    """The others are test data; each benchmark has its number of features."""
    for task in hbo.load(name).tasks:
        assert task.data is not None
        train_size = len(task.data)
        test_size = len(read_split(task.index).test)

        assert task.data.features.shape == (task.context["train_size"], features)
        # Up to rounding to whole rows.
        assert train_size / (train_size + test_size) == pytest.approx(0.6, abs=0.005)


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_trained_surrogates_conform(name):
    """They pass the public checks of benchmarks, also in another process."""
    trained = hbo.load(name, surrogate="trained")

    # A process that is started now uses the cache of this test.
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        check_benchmark(trained, configurations=6, executor=executor)


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("patient", [0, 17])
def test_parkinsons_is_scikit_learns_ridge(patient):
    benchmark = hbo.load("distbo-parkinsons", surrogate="trained")
    split = data.parkinsons_data(patient)
    rows = sample_values(benchmark)

    r2_of_rows = benchmark.tasks[patient].evaluate_many(rows)

    for (alpha, gamma), r2 in zip(rows, r2_of_rows, strict=True):
        model = KernelRidge(alpha=alpha, gamma=gamma, kernel="rbf")
        model.fit(split.train.features, split.train.labels)
        expected = r2_score(split.test.labels, model.predict(split.test.features))
        assert r2 == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("protein", range(7))
def test_proteins_are_split_by_class(protein):
    """Training and test data have the same share of molecules that bind, up to rounding."""
    split = data.protein_data(protein)

    assert split.train.labels is not None
    assert split.test.labels is not None
    assert split.train.labels.mean() == pytest.approx(split.test.labels.mean(), abs=2e-3)


@pytest.mark.usefixtures("fetched")
def test_protein_svm_is_scikit_learns():
    """Its kernel is one minus the Jaccard distance of the molecules' keys."""
    benchmark = hbo.load("distbo-protein-svm", surrogate="trained")
    protein = 4
    split = data.protein_data(protein)
    x = split.train.features.astype(bool)
    x_test = split.test.features.astype(bool)
    train_kernel = 1 - cdist(x, x, "jaccard")
    test_kernel = 1 - cdist(x_test, x, "jaccard")
    for row in sample_values(benchmark):
        (accuracy,) = benchmark.tasks[protein].evaluate_many(row[None])

        # C is the only hyperparameter.
        model = SVC(C=row[0], kernel="precomputed").fit(train_kernel, split.train.labels)
        expected = accuracy_score(split.test.labels, model.predict(test_kernel))
        # One molecule may be classified otherwise, as sums are rounded differently.
        assert accuracy == pytest.approx(expected, abs=1.1 / len(x_test))


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_protein_forest_is_scikit_learns():
    benchmark = hbo.load("distbo-protein-forest", surrogate="trained")
    split = data.protein_data(0)
    for row in sample_values(benchmark, 6):
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
    """The default surrogate is a forest, fitted to trainings."""
    forest = hbo.load(name)
    trained = hbo.load(name, surrogate="trained")
    values = sample_values(forest, 40)

    values_of_forest = forest.tasks[0].evaluate_many(values)

    values_of_trained = trained.tasks[0].evaluate_many(values)
    assert spearmanr(values_of_forest, values_of_trained).statistic > 0.9


# -- source runs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("distbo-parkinsons", 1e-5),
        ("distbo-protein-svm", 2e-3),  # about one molecule
        pytest.param("distbo-protein-forest", 1e-5, marks=pytest.mark.slow),
    ],
)
def test_recorded_runs_can_be_repeated(name, tolerance):
    """The first three evaluations on each of three tasks."""
    trained = hbo.load(name, surrogate="trained")
    assert trained.recorded is not None
    runs = trained.recorded()
    for task, run in zip(trained.tasks[:3], runs[:3], strict=True):
        objective_values = task.evaluate_many(run.values[:3])

        losses = task.objective.losses(objective_values)
        np.testing.assert_allclose(run.losses[:3], losses, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHED)
def test_runs_on_generated_data_can_be_repeated(name):
    """The last two evaluations on each task, by models that are trained again."""
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        objective_values = task.evaluate_many(run.values[-2:])

        losses = task.objective.losses(objective_values)
        np.testing.assert_allclose(run.losses[-2:], losses, atol=1e-5)


@pytest.mark.parametrize("name", SEARCHED)
def test_best_values_are_no_worse_than_runs(name):
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        assert task.best_value is not None
        best_loss = task.objective.loss(task.best_value)
        assert best_loss <= run.losses.min()


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-toy", "distbo-protein-svm"])
def test_artifacts_are_generated_again(name, texts, tmp_path):
    """To the byte; generators of real data read them from a folder."""
    folder_of_data = texts if name in distbo.REAL else None

    generator(name).generate(tmp_path / name, local=folder_of_data)

    packaged = Artifact.packaged(name)
    for file in ("runs.npz", "benchmark.json"):
        assert (tmp_path / name / file).read_bytes() == packaged.read(file)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty cache of downloads; data that were read before are forgotten, too."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for cached_function in (data.protein_data, data.parkinsons_data, data._read_recordings):
        cached_function.cache_clear()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_training_without_files_names_command(name):
    with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate trained"):
        hbo.load(name, surrogate="trained")


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_data_without_files_name_command(name):
    task = hbo.load(name).tasks[0]

    with pytest.raises(NotFetchedError, match=f"fetch {name}$"):
        # The data are read now.
        _ = task.data


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        # Of a protein: a 2, no first row, another first number.
        (data.PROTEIN_FILES[0], lambda text: text.replace("1", "2", 1), "zeros and ones"),
        (data.PROTEIN_FILES[0], lambda text: text.partition("\n")[2], "1100 rows of 168"),
        (data.PROTEIN_FILES[0], lambda text: "1" + text[1:], "are not those of adam17"),
        # Of the recordings: another name of a column, no last row, no patient 1.
        (data.PARKINSONS_FILE, lambda text: text.replace("age", "years", 1), "columns must be"),
        (
            data.PARKINSONS_FILE,
            lambda text: text.rstrip().rpartition("\n")[0],
            r"must have shape \(5875, 22\)",
        ),
        (data.PARKINSONS_FILE, lambda text: text.replace("\n1,", "\n2,"), "must be 1 to 42"),
    ],
)
def test_changed_files_are_refused(texts, tmp_path, monkeypatch, file, change, message):
    """The published text of a file is changed before it is copied into the cache."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    name = Path(file.name).name
    published_text = (texts / name).read_text()
    changed_copy = tmp_path / name
    changed_copy.write_text(change(published_text))

    with pytest.raises(DownloadError, match=message):
        file.store(changed_copy)


@pytest.mark.parametrize(
    "name", ["distbo-toy-seed-01", "distbo-parkinsons-seed-1", "distbo-seed-1"]
)
def test_other_names_are_unknown(name):
    """Seeds have no leading zeros, and real data have no seed."""
    with pytest.raises(UnknownNameError):
        hbo.load(name)
    with pytest.raises(UnknownNameError):
        generator(name)


FURTHER_SEED = "distbo-toy-seed-7"
"""A benchmark whose runs are not packaged; users can generate them."""


@pytest.fixture
def generated_runs(tmp_path, monkeypatch):
    """The folder of source runs that a user generated for `FURTHER_SEED`."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    runs_generator = generator(FURTHER_SEED)
    return runs_generator.generate(runs_generator.home() / FURTHER_SEED)


def test_seed_without_runs_has_plain_identity(tmp_path, monkeypatch):
    """There is no content, whose hash would be part of the identity."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))

    spec = benchmark_spec(FURTHER_SEED)

    assert spec.recorded is None
    assert spec.identity() == f"{FURTHER_SEED}@1"


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_generated_runs_change_identity():
    """After the plus sign comes the hash of the runs."""
    assert benchmark_spec(FURTHER_SEED).identity().startswith(f"{FURTHER_SEED}@1+")


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_seed_with_runs_is_not_listed():
    assert FURTHER_SEED not in hbo.list_benchmarks()


@pytest.mark.slow
def test_workers_generate_same_runs(generated_runs, tmp_path):
    in_parallel = generator(FURTHER_SEED).generate(tmp_path / "parallel", workers=2)

    for file in generated_runs.iterdir():
        assert (in_parallel / file.name).read_bytes() == file.read_bytes()


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_generated_runs_have_values_of_tasks():
    benchmark = hbo.load(FURTHER_SEED)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        # As many evaluations as in the paper's runs.
        assert len(run) == 30
        losses = task.objective.losses(task.evaluate_many(run.values))
        np.testing.assert_array_equal(run.losses, losses)


@pytest.mark.slow
@pytest.mark.usefixtures("generated_runs")
def test_generated_runs_come_close_to_optimum():
    """As Bayesian optimisation does; thirty random numbers are rarely so near."""
    benchmark = hbo.load(FURTHER_SEED)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        best_of_run = -run.losses.min()  # values are maximised
        (regret,) = task.regret(np.array([best_of_run]))
        assert regret < 0.01


@pytest.mark.slow
def test_damaged_runs_are_an_error(generated_runs):
    (generated_runs / "benchmark.json").write_text("{}")

    with pytest.raises(ArtifactError, match="damaged"):
        hbo.load(FURTHER_SEED).recorded()
