"""Nearest neighbours: exact, as published, better on log scales, and stored."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.benchmarks.xgboost_mnist import SIZES, read_published, space
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.nearest import NearestSurrogate, authors_coding, log_coding


def make_surrogate(points: np.ndarray) -> NearestSurrogate:
    """A surrogate of two tasks; on task 0 the value of each point is its index."""
    index = np.arange(float(len(points)))
    targets = np.stack([index, -index], axis=1)
    features = [Feature(FeatureKind.IDENTITY, column) for column in range(points.shape[1])]
    return NearestSurrogate(Coding(tuple(features)), points, targets)


def find_nearest_points(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Index of the nearest point of each query, the lowest of ties, from all squared distances.

    They are summed in blocks of four features, as the surrogate does, to be the same to the bit.
    """
    squares = (points[None, :, :] - queries[:, None, :]) ** 2
    distances = np.zeros(squares.shape[:2])
    for begin in range(0, points.shape[1], 4):
        block = squares[:, :, begin : begin + 4]
        sum_of_block = block[:, :, 0]
        for column in range(1, block.shape[2]):
            sum_of_block = sum_of_block + block[:, :, column]
        distances = distances + sum_of_block
    return np.argmin(distances, axis=1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 9), st.booleans())
def test_nearest_point_is_that_of_brute_force(seed, n_points, n_features, has_ties):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features))
    queries = rng.normal(size=(40, n_features))
    if has_ties:
        # On a grid of whole numbers, many distances are equal, and some points are the same.
        points = np.round(points)
        queries = np.round(queries)

    predicted = make_surrogate(points).predict(queries, 0)

    # On task 0, the value of a point is its index.
    assert predicted.tolist() == find_nearest_points(points, queries).tolist()


def test_too_few_columns_are_refused():
    surrogate = make_surrogate(np.zeros((3, 2)))

    with pytest.raises(ValueError, match="values need shape"):
        surrogate.predict(np.zeros((1, 1)), 0)
    with pytest.raises(ValueError, match="a row needs 2"):
        surrogate.predict_one(np.zeros(1), 0)


@pytest.mark.parametrize(
    "damage",
    [
        {"points": np.zeros((2, 2))},  # fewer than targets
        {"points": np.empty((0, 2)), "targets": np.empty((0, 2))},  # none
        {"points": np.full((3, 2), np.nan)},
        {"targets": np.zeros(3)},  # of no tasks
    ],
)
def test_damaged_arrays_are_refused(damage):
    """Stored are three points with two features, and their targets on two tasks."""
    arrays = make_surrogate(np.zeros((3, 2))).to_arrays()

    with pytest.raises(ArtifactError):
        SurrogateType.NEAREST.from_arrays({**arrays, **damage})


@pytest.fixture(scope="module")
def published(shared, tmp_path_factory):
    """The authors' evaluations: configurations, (1000, 4), and their errors on 28 tasks."""
    packed = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    path = tmp_path_factory.mktemp("published") / "aggregated_experiments.json"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return read_published(path)


def test_values_are_those_of_the_authors(published, shared):
    """Recorded values of the authors' own benchmark, with their configurations."""
    values, errors = published
    coding = authors_coding(space(), values)
    records = json.loads((shared / "reference" / "xgboost_mnist_recorded.json").read_text())
    assert len(records) == 300

    surrogate = NearestSurrogate.from_evaluations(values, errors, coding=coding)

    for record in records:
        row = space().row({name: record[name] for name in space().names})
        # Tasks are sizes of training sets, numbered in ascending order.
        task = SIZES.index(record["train_size"])
        assert surrogate.predict_one(row, task) == record["error_count"]


def test_log_scales_predict_better(published):
    """Of 1000 published configurations, 800 are stored and 200 are predicted, on one task."""
    task = SIZES.index(723)  # tasks are sizes of training sets; this is one of 28
    values, errors = published
    stored = slice(0, 800)
    held_out = slice(800, 1000)

    squared_error = {}
    for make_coding in (authors_coding, log_coding):
        coding = make_coding(space(), values[stored])
        surrogate = NearestSurrogate.from_evaluations(values[stored], errors[stored], coding=coding)
        predicted = surrogate.predict(values[held_out], task)
        squared_error[make_coding] = np.mean((predicted - errors[held_out, task]) ** 2)

    # Clearly better: by at least 30 %.
    assert squared_error[log_coding] < 0.7 * squared_error[authors_coding]
