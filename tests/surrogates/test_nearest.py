"""Nearest neighbours: exact, as published, better on log scales, and stored."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.benchmarks.xgboost_mnist import SIZES, make_space, read_published
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind
from hpobench_ordered.surrogates.nearest import NearestSurrogate, authors_coding, log_coding


def make_surrogate(points: np.ndarray) -> NearestSurrogate:
    """A surrogate of two tasks; on task 0 the value of each point is its index.

    So a prediction says which of the points is the nearest one.
    """
    index = np.arange(float(len(points)))
    targets = np.stack([index, -index], axis=1)
    features = [Feature(FeatureKind.IDENTITY, column) for column in range(points.shape[1])]
    return NearestSurrogate(Coding(tuple(features)), points, targets)


def find_nearest_points(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Index of the nearest point of each query, the first of several, from all distances.

    Squares are summed in blocks of four features, as the surrogate does: in another order, sums
    could have other last bits, and ties another winner.
    """
    squares = (points[None, :, :] - queries[:, None, :]) ** 2  # queries, points, features
    n_queries, n_points, n_features = squares.shape
    squared_distances = np.zeros((n_queries, n_points))
    for begin in range(0, n_features, 4):
        first_feature, *others = np.moveaxis(squares[:, :, begin : begin + 4], 2, 0)
        sum_of_block = first_feature
        for feature in others:
            sum_of_block = sum_of_block + feature
        squared_distances = squared_distances + sum_of_block
    return np.argmin(squared_distances, axis=1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 9), st.booleans())
def test_nearest_point_is_that_of_brute_force(seed, n_points, n_features, has_ties):
    """The point that is found is the nearest by all distances, and the first of equal ones.

    On task 0 the value of a point is its index, so that predictions are indices.
    """
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_points, n_features))
    queries = rng.normal(size=(40, n_features))
    if has_ties:
        # On a grid of whole numbers, many distances are equal, and some points are the same.
        points = np.round(points)
        queries = np.round(queries)

    predicted = make_surrogate(points).predict(queries, 0)

    assert predicted.tolist() == find_nearest_points(points, queries).tolist()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param({"points": np.zeros((2, 2))}, id="fewer points than targets"),
        pytest.param({"points": np.empty((0, 2)), "targets": np.empty((0, 2))}, id="no points"),
        pytest.param({"points": np.full((3, 2), np.nan)}, id="missing numbers"),
        pytest.param({"targets": np.zeros(3)}, id="targets without tasks"),
    ],
)
def test_damaged_arrays_are_refused(damage):
    """Stored arrays that do not fit together are refused.

    The undamaged ones are three points with two features, and their targets on two tasks.
    """
    arrays = make_surrogate(np.zeros((3, 2))).to_arrays()

    with pytest.raises(ArtifactError):
        SurrogateType.NEAREST.from_arrays({**arrays, **damage})


@pytest.fixture(scope="module")
def published(shared, tmp_path_factory):
    """What the authors of xgboost-mnist published: 1000 configurations, (1000, 4), and errors.

    Each was evaluated on 28 tasks, which are sizes of training sets.
    """
    packed = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    path = tmp_path_factory.mktemp("published") / "aggregated_experiments.json"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return read_published(path)


def test_values_are_those_of_the_authors(published, shared):
    """Predictions equal 300 recorded values, for which the authors' own benchmark was asked."""
    values, errors = published
    coding = authors_coding(make_space(), values)
    records = json.loads((shared / "reference" / "xgboost_mnist_recorded.json").read_text())
    assert len(records) == 300

    surrogate = NearestSurrogate.from_evaluations(values, errors, coding=coding)

    for record in records:
        row = make_space().row({name: record[name] for name in make_space().names})
        task = SIZES.index(record["train_size"])
        assert surrogate.predict_one(row, task) == record["error_count"]


def test_log_scales_predict_better(published):
    """A coding with log scales predicts clearly better than the authors' coding, without them.

    Of 1000 published configurations, 800 are stored and 200 are predicted, on one of the tasks.
    """
    task = SIZES.index(723)
    values, errors = published
    stored_values, held_out_values = values[:800], values[800:]
    stored_errors, held_out_errors = errors[:800], errors[800:, task]

    squared_error = {}
    for make_coding in (authors_coding, log_coding):
        coding = make_coding(make_space(), stored_values)
        surrogate = NearestSurrogate.from_evaluations(stored_values, stored_errors, coding=coding)
        predicted = surrogate.predict(held_out_values, task)
        squared_error[make_coding] = np.mean((predicted - held_out_errors) ** 2)

    # Clearly better: by at least 30 %.
    assert squared_error[log_coding] < 0.7 * squared_error[authors_coding]
