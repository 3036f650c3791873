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


CODING = space_coding(
    SPACE, products=[("rate", "depth")], ratios=[("rate", "depth")], also_raw=["rate"]
)
LOG_MIDDLE_OF_RATE = math.log(1e-4) / 2
LOG_MIDDLE_OF_DEPTH = (math.log(2) + math.log(10)) / 2


@pytest.mark.parametrize(
    ("feature", "kind", "value", "inactive"),
    [
        (0, "LOG", math.log(0.1), LOG_MIDDLE_OF_RATE),
        (1, "IDENTITY", 4, 6),
        (2, "ONE_HOT", 0, 0),
        (3, "ONE_HOT", 1, 0),
        (4, "LOG_PRODUCT", math.log(0.4), LOG_MIDDLE_OF_RATE + LOG_MIDDLE_OF_DEPTH),
        (5, "LOG_RATIO", math.log(0.025), LOG_MIDDLE_OF_RATE - LOG_MIDDLE_OF_DEPTH),
        (6, "IDENTITY", 0.1, (1e-4 + 1) / 2),
    ],
)
def test_feature_of_every_kind(feature, kind, value, inactive):
    # Rate 0.1, depth 4, radial kernel; then all inactive, which are coded as their middle.
    encoded = CODING.encode(np.array([[0.1, 4.0, 1.0], [np.nan, np.nan, np.nan]]))
    assert CODING.features[feature].kind is FeatureKind[kind]
    np.testing.assert_allclose(encoded[:, feature], [value, inactive], rtol=1e-12)


def test_coding_without_log_scales_is_raw():
    raw = space_coding(SPACE, log_scales=False)
    # The choice is one-hot coded.
    assert raw.encode(np.array([[0.1, 4.0, 0.0]])).tolist() == [[0.1, 4, 1, 0]]


@given(st.integers(0, 2**32 - 1))
def test_standardised_features_have_unit_variance(seed):
    values = SPACE.decode(SPACE.sample_unit(np.random.default_rng(seed), 50))
    coding = space_coding(SPACE, products=[("rate", "depth")]).standardised(values)
    features = coding.encode(values)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-12)
    # Again nothing changes, and the table holds everything.
    assert coding.standardised(values) == coding == Coding.from_table(coding.table)


def test_constant_feature_is_only_centred():
    constant = Coding((Feature(FeatureKind.IDENTITY, 0),)).standardised(np.full((3, 1), 7.0))
    assert constant.encode(np.array([[7.0], [8.0]])).tolist() == [[0], [1]]


def test_too_few_columns_are_refused():
    coding = space_coding(SPACE, ratios=[("rate", "depth")])
    # A coding needs the columns up to the last that it uses: a ratio of the first two needs two.
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
    """Rows of six numbers describe features: kind, column, other column or choice, value if
    inactive, shift and scale.
    """
    with pytest.raises(ValueError):
        Coding.from_table(table)
