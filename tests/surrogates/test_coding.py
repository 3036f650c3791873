"""Codings: how configurations become numbers for nearest neighbours and forests."""

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
"""A coding with seven features, of every kind."""
# Inactive numbers are coded as the middle of their range; here of the logarithms.
LOG_MIDDLE_OF_RATE = (math.log(1e-4) + math.log(1.0)) / 2
LOG_MIDDLE_OF_DEPTH = (math.log(2) + math.log(10)) / 2


@pytest.mark.parametrize(
    ("index", "kind", "number_if_active", "number_if_inactive"),
    [
        (0, "LOG", math.log(0.1), LOG_MIDDLE_OF_RATE),
        (1, "IDENTITY", 4, (2 + 10) / 2),
        (2, "ONE_HOT", 0, 0),  # is the kernel linear?
        (3, "ONE_HOT", 1, 0),  # is it radial?
        (4, "LOG_PRODUCT", math.log(0.1 * 4), LOG_MIDDLE_OF_RATE + LOG_MIDDLE_OF_DEPTH),
        (5, "LOG_RATIO", math.log(0.1 / 4), LOG_MIDDLE_OF_RATE - LOG_MIDDLE_OF_DEPTH),
        (6, "IDENTITY", 0.1, (1e-4 + 1) / 2),  # the rate once more, without its log scale
    ],
)
def test_feature_of_every_kind(index, kind, number_if_active, number_if_inactive):
    """A feature is a number that is made of a configuration, in a way that its kind says.

    One of the seven features of `CODING` is looked at: for a configuration whose hyperparameters
    are all active, and for one where none is.
    """
    rate, depth, radial_kernel = 0.1, 4.0, 1.0  # choices are coded as their places
    all_active = [rate, depth, radial_kernel]
    all_inactive = [np.nan, np.nan, np.nan]

    encoded = CODING.encode(np.array([all_active, all_inactive]))

    assert CODING.features[index].kind is FeatureKind[kind]
    numbers = encoded[:, index]
    np.testing.assert_allclose(numbers, [number_if_active, number_if_inactive], rtol=1e-12)


def test_coding_without_log_scales_is_raw():
    """The rate and the depth are unchanged; a kernel gives two numbers: is linear, is radial."""
    coding = space_coding(SPACE, log_scales=False)
    rate, depth, linear_kernel = 0.1, 4.0, 0.0  # choices are coded as their places

    encoded = coding.encode(np.array([[rate, depth, linear_kernel]]))

    assert encoded.tolist() == [[0.1, 4, 1, 0]]


SEEDS = st.integers(0, 2**32 - 1)
CODING_WITH_PRODUCT = space_coding(SPACE, products=[("rate", "depth")])
"""A coding to be standardised; one of its features is the product of rate and depth."""


def sample_configurations(seed: int) -> np.ndarray:
    """Fifty random configurations, (50, 3)."""
    return SPACE.decode(SPACE.sample_unit(np.random.default_rng(seed), 50))


@given(SEEDS)
def test_standardised_features_have_unit_variance(seed):
    """Over the configurations that a coding is standardised for, its features also have mean 0."""
    values = sample_configurations(seed)

    coding = CODING_WITH_PRODUCT.standardise(values)

    features = coding.encode(values)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-12)


@given(SEEDS)
def test_coding_round_trips_through_table(seed):
    """A coding is stored as a table of numbers, of which each row describes a feature."""
    coding = CODING_WITH_PRODUCT.standardise(sample_configurations(seed))

    assert Coding.from_table(coding.table) == coding


def test_constant_feature_is_only_centred():
    """A feature that is always 7 has no deviation that it could be divided by."""
    always_seven = np.full((3, 1), 7.0)
    unchanged_number = Coding((Feature(FeatureKind.IDENTITY, 0),))

    coding = unchanged_number.standardise(always_seven)

    assert coding.encode(np.array([[7.0], [8.0]])).tolist() == [[0], [1]]


def test_width_is_up_to_last_column_needed():
    """The columns of a configuration are rate, depth and kernel; a ratio needs the first two.

    The width of a coding is the number of columns that it needs.
    """
    coding = space_coding(SPACE, ratios=[("rate", "depth")])
    *_, ratio = coding.features

    assert coding.width == 3
    assert Coding((ratio,)).width == 2


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 5)),  # a number too few a row
        np.zeros(6),  # no rows
        np.array([[9.0, 0, 0, 0, 0, 1]]),  # no kind has the number 9
        np.array([[0.0, -1, 0, 0, 0, 1]]),  # a negative column
        np.array([[0.0, 0, 0, 0, 0, 0]]),  # a scale of 0
        np.array([[0.0, 0, 0, np.nan, 0, 1]]),  # no value where it is inactive
        np.empty((0, 6)),  # no feature
    ],
)
def test_damaged_tables_are_refused(table):
    """Each row of a stored coding describes a feature by six numbers, one of which is wrong here.

    They are kind, column, second column or choice, value where it is inactive, mean and scale.
    """
    with pytest.raises(ValueError):
        Coding.from_table(table)
