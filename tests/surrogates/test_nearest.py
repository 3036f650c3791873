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


def surrogate_of(points):
    """A surrogate of these points; on task 0 the value of a point is its number."""
    targets = np.stack((np.arange(len(points)), -np.arange(len(points))), axis=1).astype(float)
    raw = Coding(tuple(Feature(FeatureKind.IDENTITY, j) for j in range(points.shape[1])))
    return NearestSurrogate(raw, points, targets)


def brute_force(points, queries):
    """Lowest index of the nearest point, distances summed as documented: four by four."""
    squares = (points[None, :, :] - queries[:, None, :]) ** 2
    total = np.zeros(squares.shape[:2])
    for begin in range(0, points.shape[1], 4):
        block = squares[:, :, begin : begin + 4]
        partial = block[:, :, 0]
        for j in range(1, block.shape[2]):
            partial = partial + block[:, :, j]
        total = total + partial
    return np.argmin(total, axis=1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 9), st.booleans())
def test_equals_brute_force(seed, m, p, tied):
    rng = np.random.default_rng(seed)
    points, queries = rng.normal(size=(m, p)), rng.normal(size=(40, p))
    if tied:  # a coarse grid: many equal distances, and stored points that are the same
        points, queries = np.round(points), np.round(queries)
    expected = brute_force(points, queries)
    predicted = surrogate_of(points).predict(queries, 0)
    # On task 0, the value of a point is its number.
    assert predicted.tolist() == expected.tolist()


def test_too_few_columns_are_refused():
    model = surrogate_of(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="values need shape"):
        model.predict(np.zeros((1, 1)), 0)
    with pytest.raises(ValueError, match="a row needs 2"):
        model.predict_one(np.zeros(1), 0)


@pytest.mark.parametrize(
    "damage",
    [
        {"points": np.zeros((2, 2))},
        {"points": np.empty((0, 2)), "targets": np.empty((0, 2))},
        {"points": np.full((3, 2), np.nan)},
        {"targets": np.zeros(3)},
    ],
)
def test_damaged_arrays_are_refused(damage):
    arrays = surrogate_of(np.zeros((3, 2))).to_arrays()
    with pytest.raises(ArtifactError):
        SurrogateType.NEAREST.from_arrays({**arrays, **damage})


@pytest.fixture(scope="module")
def published(shared, tmp_path_factory):
    packed = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    path = tmp_path_factory.mktemp("published") / "aggregated_experiments.json"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return read_published(path)


def test_reproduces_every_recorded_evaluation_of_the_authors(published, shared):
    values, errors = published
    coding = authors_coding(space(), values)
    model = NearestSurrogate.from_evaluations(values, errors, coding=coding)
    recorded = json.loads((shared / "reference" / "xgboost_mnist_recorded.json").read_text())
    assert len(recorded) == 300
    for evaluation in recorded:
        row = space().row({name: evaluation[name] for name in space().names})
        predicted = model.predict_one(row, SIZES.index(evaluation["train_size"]))
        assert predicted == evaluation["error_count"]


def test_log_scales_predict_held_out_evaluations_better(published):
    """Of 1000 published configurations, 800 are stored and 200 are predicted."""
    values, errors = published
    stored, held_out = slice(0, 800), slice(800, 1000)
    error = []
    for make in (authors_coding, log_coding):
        coding = make(space(), values[stored])
        model = NearestSurrogate.from_evaluations(values[stored], errors[stored], coding=coding)
        # On task 10.
        error.append(np.mean((model.predict(values[held_out], 10) - errors[held_out, 10]) ** 2))
    assert error[1] < 0.7 * error[0]
