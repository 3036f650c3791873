import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.surrogates.coding import Coding, Feature, FeatureKind, space_coding

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("rate", 1e-4, 1.0, log=True),
        hbo.Parameter.number("depth", 2, 10, integer=True),
        hbo.Parameter.choice("kernel", ["linear", "radial"]),
    ]
)


def test_every_kind_of_feature():
    coding = space_coding(
        SPACE, products=[("rate", "depth")], ratios=[("rate", "depth")], also_raw=["rate"]
    )
    features = coding.encode(np.array([[0.1, 4.0, 1.0], [np.nan, np.nan, np.nan]]))
    log_middle = math.log(1e-4) / 2
    kinds = ["LOG", "IDENTITY", "ONE_HOT", "ONE_HOT", "LOG_PRODUCT", "LOG_RATIO", "IDENTITY"]
    assert [feature.kind for feature in coding.features] == [FeatureKind[kind] for kind in kinds]
    expected = [math.log(0.1), 4, 0, 1, math.log(0.4), math.log(0.025), 0.1]
    np.testing.assert_allclose(features[0], expected)
    other_middle = (math.log(2) + math.log(10)) / 2
    assert features[1, :4].tolist() == [log_middle, 6, 0, 0]
    assert features[1, 4] == pytest.approx(log_middle + other_middle)
    assert features[1, 5] == pytest.approx(log_middle - other_middle)
    assert features[1, 6] == (1e-4 + 1) / 2
    raw = space_coding(SPACE, log_scales=False)
    assert raw.encode(np.array([[0.1, 4.0, 0.0]])).tolist() == [[0.1, 4, 1, 0]]


@given(st.integers(0, 2**32 - 1))
def test_standardised_features_have_mean_zero_and_variance_one(seed):
    values = SPACE.decode(SPACE.sample_unit(np.random.default_rng(seed), 50))
    coding = space_coding(SPACE, products=[("rate", "depth")]).standardised(values)
    features = coding.encode(values)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-12)
    assert coding.standardised(values) == coding == Coding.from_table(coding.table)
    constant = Coding((Feature(FeatureKind.IDENTITY, 0),)).standardised(np.full((3, 1), 7.0))
    assert constant.encode(np.array([[7.0], [8.0]])).tolist() == [[0], [1]]  # only centred


def test_values_that_lack_columns_are_refused():
    coding = space_coding(SPACE, ratios=[("rate", "depth")])
    assert (coding.width, Coding(coding.features[-1:]).width) == (3, 2)
    for values in (np.zeros((4, 2)), np.zeros(3)):
        with pytest.raises(ValueError, match=r"\(n, 3\)"):
            coding.encode(values)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 5)),
        np.zeros(6),
        np.array([[9.0, 0, 0, 0, 0, 1]]),
        np.array([[0.0, -1, 0, 0, 0, 1]]),
        np.array([[0.0, 0, 0, 0, 0, 0]]),
        np.array([[0.0, 0, 0, np.nan, 0, 1]]),
        np.empty((0, 6)),
    ],
)
def test_damaged_tables_are_refused(table):
    with pytest.raises(ValueError):
        Coding.from_table(table)
