"""Data of the distBO benchmarks (Law et al. 2019): drawn with a seed, or read from published files.

Notation:
    n, p        points, features
    x, y        features (n, p) and labels (n,) of a task
    i           a source task, from 1
    mu, gamma   mean of a toy task's points, and the mean of the distribution that mu is drawn from
    sigma       bandwidths of a task, (p,)
    D           random frequencies
    U, b        frequencies (D, p) and phases (D,), shared by all tasks
    phi         random Fourier features, sqrt(2 / D) cos(U x / sigma + b), (n, D)
    beta        weights (D,) of a task's own function
    g           logits of the labels, (n,)

Where Law et al. (2019) contradict themselves, section 5 is followed. The standard deviation of a
toy task's mean is 1, although figure 8 gives a mean of about 4 for all far tasks; the authors'
program has 0.5.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.task_data import DataKind, TaskData
from hpobench_ordered.errors import ArtifactError

# First number of every seed, so that the families have different random numbers.
TOY_STREAM = 0
COUNTEREXAMPLE_STREAM = 1
CLASSIFICATION_STREAM = 2
SPLIT_STREAM = 3

TOY_POINTS = 500
TOY_CENTRES = (0.0,) * 3 + (4.0,) * 12 + (0.0,)
"""gamma of every toy task (section 5.1); the target is the last one."""

POINTS = 5000
"""Number of training points of a generated task, and of its test points."""
FEATURES = 6
COUNTEREXAMPLE_PROCESSES = (1, 2, 3, 4, 2)
"""The process i of every task (section 5.2); the target has that of the second source task."""

CLASSIFICATION_SOURCES = 10
BANDWIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Possible bandwidths of a source task (appendix C.4)."""
UNSEEN_BANDWIDTH = 1.5
"""Every bandwidth of the target of experiment B."""
FREQUENCIES = 200
LARGEST_LOGIT = 6.0

TRAINING_SHARE = 0.6
"""Share of a real data set used for training; the rest is for testing."""


@dataclass(frozen=True, slots=True)
class TrainTestSplit:
    """The training data of a task, and the data that its model is tested on."""

    train: TaskData
    test: TaskData


@lru_cache(maxsize=64)
def draw_toy_data(seed: int, task: int) -> TaskData:
    """Draw the points of a toy task, (500, 1), which have no labels (section 5.1).

    The points are Normal(mu, 1). Their mean mu is drawn first, from Normal(gamma, 1), where gamma
    is stated by the paper for each task (`TOY_CENTRES`).
    """
    rng = np.random.default_rng([TOY_STREAM, seed, task])
    gamma = TOY_CENTRES[task]
    mu = rng.normal(gamma)
    points = rng.normal(mu, 1.0, size=(TOY_POINTS, 1))
    return TaskData(points, None, DataKind.UNSUPERVISED)


def compute_toy_mean(seed: int, task: int) -> float:
    """Compute the mean of a toy task's points, at which the task's objective is best."""
    points = draw_toy_data(seed, task).features
    return float(points.mean())


def draw_counterexample_points(seed: int, task: int) -> tuple[FloatArray, FloatArray]:
    """Draw training and test points of a task, x (2n, 6) and y (2n,), before scaling (section 5.2).

    The labels of process i are log(1 + (x_1 x_2 x_(i + 2))^3) with noise of standard deviation 0.5.
    The sign of the third feature is set so that the product of the three is positive. Each feature
    alone remains Normal(0, 2^2), and any two remain independent, so that no statistic of one or two
    features tells the process.
    """
    rng = np.random.default_rng([COUNTEREXAMPLE_STREAM, seed, task])
    process = COUNTEREXAMPLE_PROCESSES[task]
    third = process + 1  # the column of feature process + 2: columns count from 0, features from 1
    x = rng.normal(0.0, 2.0, size=(2 * POINTS, FEATURES))
    x[:, third] = np.sign(x[:, 0] * x[:, 1]) * np.abs(x[:, third])

    product = x[:, 0] * x[:, 1] * x[:, third]
    noise = rng.normal(0.0, 0.5, size=2 * POINTS)
    y = np.log1p(product**3) + noise
    return x, y


@lru_cache(maxsize=16)
def draw_counterexample_data(seed: int, task: int) -> TrainTestSplit:
    """Draw the data of a counterexample task: standardised features, labels scaled to [0, 1].

    The first half of the points is for training, the second half for testing.
    """
    x, y = draw_counterexample_points(seed, task)
    return _standardise_and_split(x, y, DataKind.REGRESSION, train_size=POINTS)


def draw_classification_bandwidths(seed: int, experiment: str) -> FloatArray:
    """Draw the bandwidths that the data of experiment "a" or "b" are made with, (11, 6).

    A row has the bandwidths of the six features in one task; the target is the last task. In
    experiment "a" it has the bandwidths of a random source task, in experiment "b" a value that no
    source task has (appendix C.4).
    """
    rng = np.random.default_rng([CLASSIFICATION_STREAM, seed])
    bandwidths_of_sources = rng.choice(BANDWIDTHS, size=(CLASSIFICATION_SOURCES, FEATURES))
    if experiment == "b":
        bandwidths_of_target = np.full(FEATURES, UNSEEN_BANDWIDTH)
    else:
        random_source = rng.integers(CLASSIFICATION_SOURCES)
        bandwidths_of_target = bandwidths_of_sources[random_source]
    return np.concatenate([bandwidths_of_sources, bandwidths_of_target[None]])


def draw_classification_data(seed: int, experiment: str, task: int) -> TrainTestSplit:
    """Draw the data of a task of experiment "a" or "b", with standardised features.

    Both experiments have the same source tasks and differ in the target, the last task.
    """
    is_source = task < CLASSIFICATION_SOURCES
    if is_source:
        # Always under the same name, so that the cache holds a source task once.
        return _draw_classification_task(seed, "a", task)
    return _draw_classification_task(seed, experiment, task)


@lru_cache(maxsize=16)
def _draw_classification_task(seed: int, experiment: str, task: int) -> TrainTestSplit:
    """Draw data whose labels follow a kernel logistic regression (appendix C.4).

    Its kernel is approximated by D random Fourier features phi, with frequencies U, phases b,
    bandwidths sigma and weights beta. The logits

        g = phi beta,  phi = sqrt(2 / D) cos(U x / sigma + b)

    are scaled to [-6, 6], and P(y = 1) is their logistic function. All tasks share U and b, which
    have no task index in the paper, unlike sigma and beta.
    """
    sigma = draw_classification_bandwidths(seed, experiment)[task]
    U, b = _draw_frequencies_and_phases(seed)
    rng = np.random.default_rng([CLASSIFICATION_STREAM, seed, task, ord(experiment)])
    x = rng.standard_normal((2 * POINTS, FEATURES))
    beta = rng.standard_normal(FREQUENCIES)
    phi = np.sqrt(2.0 / FREQUENCIES) * np.cos((x / sigma) @ U.T + b)
    g = phi @ beta

    g_from_0_to_1 = (g - g.min()) / (g.max() - g.min())
    logits = LARGEST_LOGIT * (2.0 * g_from_0_to_1 - 1.0)
    probability = 1.0 / (1.0 + np.exp(-logits))
    y = (rng.random(2 * POINTS) < probability).astype(np.float64)
    return _standardise_and_split(x, y, DataKind.CLASSIFICATION, train_size=POINTS)


def _draw_frequencies_and_phases(seed: int) -> tuple[FloatArray, FloatArray]:
    """Draw the frequencies U (D, p) and the phases b (D,), which all tasks of a seed share."""
    # The bandwidths are drawn by the same seed without the 1, which makes other random numbers.
    rng = np.random.default_rng([CLASSIFICATION_STREAM, seed, 1])
    frequencies = rng.standard_normal((FREQUENCIES, FEATURES))
    phases = rng.uniform(0.0, 2.0 * np.pi, size=FREQUENCIES)
    return frequencies, phases


def _standardise_and_split(
    x: FloatArray, y: FloatArray, kind: DataKind, train_size: int
) -> TrainTestSplit:
    """Standardise the features, scale labels of a regression to [0, 1], and split the points.

    The first `train_size` points are for training. They alone determine means and ranges, as test
    points are unknown in training; so labels of test points may lie outside [0, 1].

    Args:
        x: Features of all points, (n, p).
        y: Labels of all points, (n,).
        kind: Regression or classification.
        train_size: Number of training points.
    """
    mean = x[:train_size].mean(axis=0)
    deviation = x[:train_size].std(axis=0)
    divisor = np.where(deviation > 0.0, deviation, 1.0)  # so that a constant feature becomes 0
    x = (x - mean) / divisor

    if kind is DataKind.REGRESSION:
        lowest = y[:train_size].min()
        highest = y[:train_size].max()
        y = (y - lowest) / (highest - lowest)

    return TrainTestSplit(
        train=TaskData(x[:train_size], y[:train_size], kind),
        test=TaskData(x[train_size:], y[train_size:], kind),
    )


PROTEINS = {
    "adam17": (1100, "0e14a112492c5468f151124b0ad712483b9c29c81e41a62050ee121d2008d26f"),
    "akt1": (1745, "a6be648afe181eef0f5c762c847794b4dc494b2bcee39fc4ec67a62fc48c7bc3"),
    "braf": (1808, "fc64f1540ead5452c6d5b2801e6a8e15dc11d700b4becc2f5d8425ed4ad2f932"),
    "cox1": (1689, "f0caeebc982d8d6446e65a1c76deed62ab345ffab0ea6d45059159ce32e725e7"),
    "fxa": (1037, "e3cfdfe6838ce578cac1d16dbd65821e3e0d4681e68f1825a05660bc752c2f0e"),
    "gr": (1271, "3252c6b4f3337536169ba0e9ef679725d2d7d813380de6b2a3d9afc393a8e5bc"),
    "vegfr2": (4434, "f2129a6339438e32776329ccfab4822aefd38069b84c6b76037c7f12cdc1fb03"),
}
"""Number of molecules of each protein, and SHA-256 of the rows with one byte per number."""
PROTEIN_COLUMNS = 168
"""An unused column, 166 MACCS keys, and the label: whether the molecule binds."""

PATIENTS = 42
RECORDINGS = 5875
_FIRST_COLUMNS = ("subject#", "age", "sex", "test_time", "motor_UPDRS", "total_UPDRS", "Jitter(%)")
_PARKINSONS_COLUMNS = 22


def _parse_protein(data: bytes, name: str) -> FloatArray:
    """Parse the published file of a protein as zeros and ones, a row for each molecule, (n, 168).

    Raises:
        ValueError: The bytes are not those of the published file.
    """
    number_of_molecules, expected_sha256 = PROTEINS[name]
    rows = np.loadtxt(io.BytesIO(data), delimiter=",", dtype=np.float64, ndmin=2)
    is_binary = np.isin(rows, (0.0, 1.0)).all()
    if rows.shape != (number_of_molecules, PROTEIN_COLUMNS) or not is_binary:
        raise ValueError(
            f"{name} must be {number_of_molecules} rows of {PROTEIN_COLUMNS} zeros and ones, but "
            f"got shape {rows.shape}"
        )

    sha256 = hash_arrays(rows.astype(np.uint8))
    if sha256 != expected_sha256:
        raise ValueError(f"the zeros and ones are not those of {name}")
    return rows


def _parse_recordings(data: bytes) -> FloatArray:
    """Parse the published file of voice recordings, a row for each recording, (5875, 22).

    Raises:
        ValueError: The bytes are not those of the published file.
    """
    first_line, _, _ = data.partition(b"\n")
    header = tuple(first_line.decode("ascii", "replace").strip().split(","))
    first_columns = header[: len(_FIRST_COLUMNS)]
    if first_columns != _FIRST_COLUMNS:
        raise ValueError(
            f"the columns must be {', '.join(_FIRST_COLUMNS)}, ..., but got {first_columns}"
        )

    rows = np.loadtxt(io.BytesIO(data), delimiter=",", skiprows=1, dtype=np.float64, ndmin=2)
    if rows.shape != (RECORDINGS, _PARKINSONS_COLUMNS) or not np.isfinite(rows).all():
        raise ValueError(f"recordings must have shape ({RECORDINGS}, 22), but got {rows.shape}")
    patients = np.unique(rows[:, 0])
    if not np.array_equal(patients, np.arange(1, PATIENTS + 1)):
        raise ValueError(f"the patients of the recordings must be 1 to {PATIENTS}")
    return rows


def _check_protein(data: bytes, *, name: str) -> None:
    """Raise a ValueError unless the bytes are the published file of a protein."""
    _parse_protein(data, name)


def _check_parkinsons(data: bytes) -> None:
    """Raise a ValueError unless the bytes are the published file of recordings."""
    _parse_recordings(data)


PROTEIN_FILES = tuple(
    RemoteFile(
        name=f"distbo/{name}_binary.txt",
        url="https://raw.githubusercontent.com/hcllaw/distBO/"
        f"f9b7e1f93dbb794c4b66b35c88b0670ebaf7a8e2/protein/{name}_binary.txt",
        sha256=None,
        check=partial(_check_protein, name=name),
    )
    for name in PROTEINS
)
PARKINSONS_FILE = RemoteFile(
    name="distbo/parkinsons_updrs.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/parkinsons/telemonitoring/"
    "parkinsons_updrs.data",
    sha256=None,
    check=_check_parkinsons,
)


@lru_cache(maxsize=len(PROTEINS))
def read_protein_data(seed: int, task: int) -> TrainTestSplit:
    """Read the molecules of a protein, and split those of each class at random, 60 % to train.

    Each seed is another split. The features are the 166 bits of the molecule, and the label is
    whether it binds to the protein.
    """
    parse = partial(_parse_protein, name=list(PROTEINS)[task])
    rows = _read_rows(PROTEIN_FILES[task], parse, "distbo-protein-svm")
    x = rows[:, 1:-1]  # the first column is not used
    y = rows[:, -1]

    # The second part of the seed, 0 for proteins and 1 for patients, makes their splits differ.
    rng = np.random.default_rng([SPLIT_STREAM, 0, task, seed])
    is_training = np.zeros(len(y), dtype=np.bool_)
    for label in (0.0, 1.0):
        rows_of_class = rng.permutation(np.flatnonzero(y == label))
        train_size = round(TRAINING_SHARE * len(rows_of_class))
        is_training[rows_of_class[:train_size]] = True

    kind = DataKind.CLASSIFICATION
    return TrainTestSplit(
        train=TaskData(x[is_training], y[is_training], kind),
        test=TaskData(x[~is_training], y[~is_training], kind),
    )


@lru_cache(maxsize=PATIENTS)
def read_parkinsons_data(seed: int, task: int) -> TrainTestSplit:
    """Read the recordings of a patient, and split them at random, 60 % to train.

    Each seed is another split. The features are the time of the recording and 16 voice
    measurements, standardised; age and sex are left out, because they are constant for a patient.
    The label is the total UPDRS, a score of symptoms, scaled to [0, 1].
    """
    recordings = _read_recordings()
    patient_of_row = recordings[:, 0]
    patient = task + 1  # patients count from 1
    rows = recordings[patient_of_row == patient]

    # The second part of the seed, 0 for proteins and 1 for patients, makes their splits differ.
    rng = np.random.default_rng([SPLIT_STREAM, 1, task, seed])
    rows = rows[rng.permutation(len(rows))]

    # Columns: patient, age, sex, time, motor UPDRS, total UPDRS, and then the voice measurements.
    time = rows[:, 3:4]
    total_updrs = rows[:, 5]
    voice = rows[:, 6:]
    return _standardise_and_split(
        np.concatenate([time, voice], axis=1),
        total_updrs,
        DataKind.REGRESSION,
        train_size=round(TRAINING_SHARE * len(rows)),
    )


@lru_cache(maxsize=1)
def _read_recordings() -> FloatArray:
    """Read the recordings of all patients, (5875, 22), once for all tasks."""
    return _read_rows(PARKINSONS_FILE, _parse_recordings, "distbo-parkinsons")


def _read_rows(
    file: RemoteFile, parse: Callable[[bytes], FloatArray], benchmark: str
) -> FloatArray:
    """Read the rows of a downloaded file.

    Args:
        file: The file.
        parse: Turns its bytes into rows; a ValueError says that they are not the published ones.
        benchmark: The benchmark to download, which an error names if the file is missing.

    Raises:
        NotFetchedError: The file must be downloaded first.
        ArtifactError: The file is not the published one.
    """
    content = file.open_path(benchmark).read_bytes()
    try:
        return parse(content)
    except ValueError as error:
        raise ArtifactError(f"{file.path} differs from the published file: {error}") from None
