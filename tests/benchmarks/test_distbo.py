"""The distBO benchmarks: their data, and values against scikit-learn's own models."""

from concurrent.futures import ProcessPoolExecutor
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
from hpobench_ordered.files.bundle import find_card, read_definition
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE, RemoteFile
from hpobench_ordered.registry import benchmark_spec, generator
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing import check_benchmark

HEADER = (
    "subject#,age,sex,test_time,motor_UPDRS,total_UPDRS,Jitter(%),Jitter(Abs),Jitter:RAP,"
    "Jitter:PPQ5,Jitter:DDP,Shimmer,Shimmer(dB),Shimmer:APQ3,Shimmer:APQ5,Shimmer:APQ11,"
    "Shimmer:DDA,NHR,HNR,RPDE,DFA,PPE"
)


@pytest.fixture(scope="module")
def texts(shared, tmp_path_factory):
    """The published texts, written from arrays of the same numbers."""
    folder, source = tmp_path_factory.mktemp("texts"), shared / "data" / "distbo"
    if not source.is_dir():
        pytest.skip(f"no {source}")
    with np.load(source / "protein.npz") as proteins:
        for name in proteins.files:
            path = folder / f"{name}_binary.txt"
            np.savetxt(path, proteins[name], fmt="%d", delimiter=",")
    with np.load(source / "parkinsons.npz") as patients:
        parts = [
            np.column_stack([np.full(len(rows), i), rows[:, :3], rows[:, -2:], rows[:, 3:-2]])
            for i, rows in enumerate((patients[name] for name in patients.files), start=1)
        ]
    path = folder / "parkinsons_updrs.data"
    rows = np.concatenate(parts)
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header=HEADER, comments="")
    return folder


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
    """As in `evaluate`: several threads are slower on small matrices."""
    with one_thread():
        yield


@pytest.fixture
def fetched(cache, monkeypatch):
    """All files are in the cache."""
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))


def configurations(benchmark: hbo.Benchmark, n: int = 20) -> np.ndarray:
    space = benchmark.space
    return space.decode(space.sample_unit(np.random.default_rng(5), n))


def test_the_numbers_are_those_of_the_paper():
    sizes = {name: len(hbo.load(name).tasks) for name in hbo.suite("distbo")}
    assert list(sizes.values()) == [16, 5, 11, 11, 42, 7, 7]
    evaluations = {name: benchmark_spec(name).history_size for name in sizes}
    assert list(evaluations.values()) == [30, 125, 150, 150, 30, 20, 20]
    for name, n in evaluations.items():
        recorded = hbo.load(name).recorded
        assert recorded is not None
        assert [len(run) for run in recorded()] == [n] * sizes[name]
    bounds = [(p.lower, p.upper, p.log) for p in hbo.load("distbo-counterexample").space.parameters]
    assert bounds == [(1e-8, 0.1, True), *[(2**-7, 2**5, True)] * 6]
    bounds = [(p.lower, p.upper) for p in hbo.load("distbo-classification-a").space.parameters]
    assert bounds == [(2**-7, 2**10), *[(2**-3, 2**5)] * 6]


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_artifacts_are_those_of_the_code(name):
    spec = benchmark_spec(name)
    assert spec.artifact is not None
    assert read_definition(spec.artifact) == spec.define()
    assert find_card(spec.artifact) is None
    with pytest.raises(ArtifactError, match="lists no surrogate"):
        benchmark_spec(Path(str(spec.artifact.folder)))


@pytest.mark.parametrize("name", distbo.GENERATED)
def test_data_follow_from_the_seed(name):
    first, other = hbo.load(f"{name}-seed-0"), hbo.load(f"{name}-seed-1")
    for again, same in ((hbo.load(name), True), (other, False)):
        for task in (0, -1):
            left, right = first.tasks[task].data, again.tasks[task].data
            assert left is not None and right is not None
            assert len(left) == first.tasks[task].context["train_size"]
            assert np.array_equal(left.features, right.features) == same
    assert other.recorded is None and other.history_size == benchmark_spec(name).history_size
    if name != "distbo-toy":
        assert {task.best_value for task in other.tasks} == {None}


def test_the_optimum_of_a_toy_task_is_the_mean_of_its_points():
    benchmark = hbo.load("distbo-toy")
    for task in benchmark.tasks:
        assert task.data is not None and task.data.labels is None
        mean = float(task.data.features.mean())
        assert task.evaluate({"theta": mean}) == task.best_value == 1.0
        value = task.evaluate({"theta": mean + 1.0})
        assert value == pytest.approx(np.exp(-0.5), rel=1e-12)


def test_means_of_toy_tasks_are_normal_around_their_centre():
    means = np.array([[data.toy_mean(seed, task) for task in (0, 5, 15)] for seed in range(1000)])
    for column, centre in zip(means.T, (0.0, 4.0, 0.0), strict=True):
        assert kstest(column - centre, "norm", args=(0, np.sqrt(1 + 1 / 500))).pvalue > 1e-4


@pytest.mark.parametrize("task", range(5))
def test_features_of_the_counterexample_are_normal_and_pairwise_independent(task):
    """Appendix C.3: no statistic of one or two features tells the tasks apart."""
    x, y = data.counterexample_points(0, task)
    process = (1, 2, 3, 4, 2)[task]
    for column in x.T:
        assert kstest(column, "norm", args=(0, 2)).pvalue > 1e-4
    assert np.abs(np.corrcoef(x.T) - np.eye(6)).max() < 0.05
    assert np.abs(np.corrcoef(np.abs(x).T) - np.eye(6)).max() < 0.05
    product = x[:, 0] * x[:, 1] * x[:, process + 1]
    assert (product > 0).all()
    noise = y - np.log(1 + product**3)
    assert kstest(noise, "norm", args=(0, 0.5)).pvalue > 1e-4


def test_features_are_standardised_and_labels_of_a_regression_between_0_and_1():
    for split in (data.counterexample_data(0, 4), data.classification_data(0, "b", 10)):
        x, y = split.train.features, split.train.labels
        np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(x.std(axis=0), 1, rtol=1e-12)
        assert y is not None and (y.min(), y.max()) == (0, 1)
        assert len(split.test) == 5000
    x, y = data.counterexample_points(0, 4)
    split = data.counterexample_data(0, 4)
    train = x[:5000]
    np.testing.assert_allclose(split.test.features, (x[5000:] - train.mean(0)) / train.std(0))
    lowest, highest = y[:5000].min(), y[:5000].max()
    np.testing.assert_allclose(split.test.labels, (y[5000:] - lowest) / (highest - lowest))


@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_a_and_b_share_their_source_tasks_and_differ_in_the_target(seed):
    a, b = (hbo.load(f"distbo-classification-{name}-seed-{seed}") for name in "ab")
    row = configurations(a, 1)
    for task in (0, 9):
        left, right = a.tasks[task].data, b.tasks[task].data
        assert left is not None and right is not None
        np.testing.assert_array_equal(left.features, right.features)
        np.testing.assert_array_equal(left.labels, right.labels)
        assert a.tasks[task].evaluate_many(row) == b.tasks[task].evaluate_many(row)
    left, right = a.tasks[10].data, b.tasks[10].data
    assert left is not None and right is not None
    assert not np.array_equal(left.features, right.features)
    similar = data.classification_bandwidths(seed, "a")
    assert (similar[:10] == similar[10]).all(axis=1).any()
    assert np.isin(similar, data.BANDWIDTHS).all()
    other = data.classification_bandwidths(seed, "b")
    np.testing.assert_array_equal(other[:10], similar[:10])
    assert (other[10] == 1.5).all()


@given(st.lists(st.floats(0.01, 30), min_size=6, max_size=6), st.integers(1, 20))
def test_the_kernel_is_that_of_the_formula(sigma, n):
    rng = np.random.default_rng(n)
    left, right = rng.normal(size=(n, 6)), rng.normal(size=(7, 6))
    scaled = (left[:, None] - right[None]) / np.array(sigma)
    expected = np.exp(-0.5 * np.sum(scaled**2, axis=2))
    np.testing.assert_allclose(
        models.compute_ard_kernel(left, right, np.array(sigma)), expected, atol=1e-9
    )


def test_area_under_the_curve_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300).astype(float)
    for scores in (rng.normal(size=300), np.round(rng.normal(size=300)), np.zeros(300)):
        expected = roc_auc_score(labels, scores)
        assert models.compute_auc(labels, scores) == pytest.approx(expected, abs=1e-6)


def exact_ridge(split: data.TrainTestSplit, row: np.ndarray) -> float:
    x, x_test = split.train.features / row[1:], split.test.features / row[1:]
    model = KernelRidge(alpha=row[0], kernel="rbf", gamma=0.5).fit(x, split.train.labels)
    return float(r2_score(split.test.labels, model.predict(x_test)))


@pytest.mark.slow
def test_ridge_regression_is_that_of_scikit_learn():
    benchmark = hbo.load("distbo-counterexample")
    whole = data.counterexample_data(0, 2)
    assert whole.train.labels is not None
    first = hbo.TaskData(whole.train.features[:1000], whole.train.labels[:1000], whole.train.kind)
    for row in configurations(benchmark):
        value = benchmark.tasks[2].evaluate(benchmark.space.configs(row[None])[0])
        assert value == pytest.approx(
            exact_ridge(data.TrainTestSplit(first, whole.test), row), abs=1e-4
        )


def test_logistic_regression_is_that_of_scikit_learn():
    whole = data.classification_data(0, "a", 0)
    parts = ((part.features, part.labels, part.kind) for part in (whole.train, whole.test))
    split = data.TrainTestSplit(*(hbo.TaskData(x[:400], y[:400], kind) for x, y, kind in parts))
    for row in configurations(hbo.load("distbo-classification-a"), 8):
        x, x_test = split.train.features / row[1:], split.test.features / row[1:]
        inner = np.exp(-0.5 * cdist(x[:60], x[:60], "sqeuclidean")) + 1e-8 * np.eye(60)
        root = np.linalg.inv(np.linalg.cholesky(inner)).T
        features, features_test = (
            np.exp(-0.5 * cdist(part, x[:60], "sqeuclidean")) @ root for part in (x, x_test)
        )
        model = LogisticRegression(C=row[0], fit_intercept=False, tol=1e-8, max_iter=10_000)
        model.fit(features, split.train.labels)
        expected = roc_auc_score(split.test.labels, model.decision_function(features_test))
        value = models.evaluate_logistic(split, row, inducing=60)
        assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_ridge_regression_of_some_points_ranks_as_that_of_all():
    benchmark, split = hbo.load("distbo-counterexample"), data.counterexample_data(0, 4)
    values = configurations(benchmark, n=6)
    exact = np.array([exact_ridge(split, row) for row in values])
    ours = benchmark.tasks[-1].evaluate_many(values)
    assert spearmanr(ours, exact).statistic > 0.9


@pytest.mark.slow
def test_few_inducing_points_against_many_in_logistic_regression():
    benchmark = hbo.load("distbo-classification-a")
    split = data.classification_data(0, "a", 10)
    values = configurations(benchmark, n=8)
    many = np.array([models.evaluate_logistic(split, row, inducing=800) for row in values])
    ours = benchmark.tasks[-1].evaluate_many(values)
    assert np.abs(ours - many).mean() < 0.03
    assert spearmanr(ours, many).statistic > 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", distbo.REAL)
def test_training_data_of_real_tasks_and_what_is_trained_on_them(name):
    benchmark = hbo.load(name)
    rows = {"distbo-parkinsons": (data.parkinsons_data, 17)}.get(name, (data.protein_data, 166))
    for task in benchmark.tasks:
        assert task.data is not None
        n, features = task.data.features.shape
        assert (n, features) == (task.context["train_size"], rows[1])
        share = n / (n + len(rows[0](task.index).test))
        assert share == pytest.approx(0.6, abs=0.005)
    if "forest" not in name:
        with ProcessPoolExecutor(1, get_context("spawn")) as started_now:  # with this cache folder
            trained = hbo.load(name, surrogate="trained")
            check_benchmark(trained, configurations=6, executor=started_now)


@pytest.mark.usefixtures("fetched")
def test_parkinsons_is_scikit_learns_kernel_ridge_regression():
    benchmark = hbo.load("distbo-parkinsons", surrogate="trained")
    for index in (0, 17):
        split, task = data.parkinsons_data(index), benchmark.tasks[index]
        rows = configurations(benchmark)
        for row, value in zip(rows, task.evaluate_many(rows), strict=True):
            model = KernelRidge(alpha=row[0], gamma=row[1], kernel="rbf")
            model.fit(split.train.features, split.train.labels)
            expected = r2_score(split.test.labels, model.predict(split.test.features))
            assert value == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("fetched")
def test_protein_svm_is_scikit_learns_with_scipys_distances():
    for split in map(data.protein_data, range(7)):  # by class
        assert split.train.labels is not None and split.test.labels is not None
        assert split.train.labels.mean() == pytest.approx(split.test.labels.mean(), abs=2e-3)
    benchmark = hbo.load("distbo-protein-svm", surrogate="trained")
    task, split = benchmark.tasks[4], data.protein_data(4)
    x, x_test = split.train.features.astype(bool), split.test.features.astype(bool)
    inner, outer = 1 - cdist(x, x, "jaccard"), 1 - cdist(x_test, x, "jaccard")
    np.testing.assert_allclose(models._protein_kernels(4)[0], inner, atol=1e-12)
    for row in configurations(benchmark):
        model = SVC(C=row[0], kernel="precomputed").fit(inner, split.train.labels)
        expected = accuracy_score(split.test.labels, model.predict(outer))
        assert task.evaluate_many(row[None])[0] == pytest.approx(expected, abs=1.1 / len(outer))


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_protein_forest_is_scikit_learns():
    benchmark = hbo.load("distbo-protein-forest", surrogate="trained")
    task, split = benchmark.tasks[0], data.protein_data(0)
    for row in configurations(benchmark, n=6):
        model = RandomForestClassifier(
            int(row[0]),
            max_depth=int(row[1]),
            min_samples_split=row[2],
            min_samples_leaf=row[3],
            random_state=0,
        ).fit(split.train.features, split.train.labels)
        expected = accuracy_score(split.test.labels, model.predict(split.test.features))
        assert task.evaluate_many(row[None])[0] == expected


def test_points_without_features_are_alike():
    points = np.array([[0.0, 0, 0], [1, 0, 1], [1, 1, 0]])
    with np.errstate(all="raise"):
        similarity = models.compute_jaccard_similarity(points, points)
    np.testing.assert_allclose(similarity, [[1, 0, 0], [0, 1, 1 / 3], [0, 1 / 3, 1]])


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-parkinsons", "distbo-protein-svm"])
def test_the_forest_stands_in_for_training(name):
    forest, trained = hbo.load(name), hbo.load(name, surrogate="trained")
    values = configurations(forest, 40)
    here = forest.tasks[0].evaluate_many(values)
    assert spearmanr(here, trained.tasks[0].evaluate_many(values)).statistic > 0.9


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * ("forest" in n)) for n in distbo.REAL]
)
def test_recorded_runs_are_trained_again_with_the_same_result(name):
    trained = hbo.load(name, surrogate="trained")
    assert trained.recorded is not None
    for task, run in list(zip(trained.tasks, trained.recorded(), strict=True))[:3]:
        again = task.objective.losses(task.evaluate_many(run.values[:3]))
        np.testing.assert_allclose(run.losses[:3], again, atol=2e-3 if "svm" in name else 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in distbo.GENERATED if name != "distbo-toy"])
def test_recorded_runs_of_generated_data_are_trained_again_with_the_same_result(name):
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    for task, run in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        again = task.objective.losses(task.evaluate_many(run.values[-2:]))
        np.testing.assert_allclose(run.losses[-2:], again, atol=1e-5)
        assert task.best_value is not None
        assert task.objective.loss(task.best_value) <= run.losses.min()


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("name", ["distbo-toy", "distbo-protein-svm"])
def test_artifacts_are_generated_again_byte_by_byte(name, texts, tmp_path):
    local = texts if name in distbo.REAL else None
    generator(name).generate(tmp_path / name, local=local)
    packaged = Artifact.packaged(name)
    for file in ("runs.npz", "benchmark.json"):
        assert (tmp_path / name / file).read_bytes() == packaged.read(file)


def test_what_is_not_fetched_says_how(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    for cached in (data.protein_data, data.parkinsons_data, data._read_recordings):
        cached.cache_clear()
    for name in ("distbo-parkinsons", "distbo-protein-svm"):
        with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate trained"):
            hbo.load(name, surrogate="trained")
        with pytest.raises(NotFetchedError, match=f"fetch {name}$"):
            hbo.load(name).tasks[0].data  # noqa: B018
        assert benchmark_spec(name).data is not None


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (0, lambda text: text.replace("1", "2", 1), "zeros and ones"),
        (0, lambda text: text.partition("\n")[2], "1100 rows of 168"),
        (0, lambda text: "1" + text[1:], "are not those of adam17"),
        (7, lambda text: text.replace("age", "years", 1), "the columns must be"),
        (7, lambda text: text.rstrip().rpartition("\n")[0], r"must have shape \(5875, 22\)"),
        (7, lambda text: text.replace("\n1,", "\n2,"), "must be 1 to 42"),
    ],
)
def test_other_files_are_refused(texts, tmp_path, monkeypatch, number, change, message):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    file: RemoteFile = (*data.PROTEIN_FILES, data.PARKINSONS_FILE)[number]
    name = Path(file.name).name
    (tmp_path / name).write_text(change((texts / name).read_text()))
    with pytest.raises(DownloadError, match=message):
        file.store(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["distbo-toy-seed-01", "distbo-parkinsons-seed-1", "distbo-seed-1"]
)
def test_other_names_are_unknown(name):
    with pytest.raises(UnknownNameError):
        hbo.load(name)
    with pytest.raises(UnknownNameError):
        generator(name)


@pytest.mark.slow
def test_source_runs_of_a_seed_are_found_once_they_are_generated(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    name = "distbo-toy-seed-7"
    before = benchmark_spec(name)
    assert (before.recorded, before.identity()) == (None, f"{name}@1")
    made = generator(name)
    made.generate(made.home() / name)
    made.generate(tmp_path / "parallel", workers=2)
    for file in (made.home() / name).iterdir():
        assert (tmp_path / "parallel" / file.name).read_bytes() == file.read_bytes()
    after = benchmark_spec(name)
    assert after.identity().startswith(f"{name}@1+")
    assert name not in hbo.list_benchmarks()
    benchmark = hbo.load(name)
    assert benchmark.recorded is not None
    runs = benchmark.recorded()
    assert [len(run) for run in runs] == [30] * 16
    for task, run in zip(benchmark.tasks, runs, strict=True):
        again = task.objective.losses(task.evaluate_many(run.values))
        np.testing.assert_array_equal(run.losses, again)
        # The method found the optimum; thirty random numbers are rarely so near.
        assert task.regret(np.array([-run.losses.min()]))[0] < 0.01
    (made.home() / name / "benchmark.json").write_text("{}")
    with pytest.raises(ArtifactError, match="damaged"):
        hbo.load(name).recorded()
