"""Whole arrays are coded as one hyperparameter and one configuration after the other would be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered import SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._coding import Coder
from hpobench_ordered.space.conditions import Compare, Comparison, Condition, Connective, Joined
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.unit_cube import MAX_TABULATED

KINDS = (
    "float",
    "log float",
    "integer",
    "log integer",
    "integer of many values",
    "categorical",
    "ordinal",
)
POSITIVE_FLOATS = st.floats(1e-3, 1e3)


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    """Draw a hyperparameter of any of the `KINDS`."""
    kind = draw(st.sampled_from(KINDS))
    if kind in ("categorical", "ordinal"):
        choices = tuple(range(draw(st.integers(1, 4))))
        return Parameter.choice(name, choices, ordered=kind == "ordinal")
    if kind in ("float", "log float"):
        lower = draw(POSITIVE_FLOATS)
        width = draw(POSITIVE_FLOATS)
        return Parameter.number(name, lower, lower + width, log=kind == "log float")

    lower = draw(st.integers(1, 100))
    if kind == "integer of many values":
        width = 2 * MAX_TABULATED  # the space makes no table of so many
        is_log = draw(st.booleans())
    else:
        width = draw(st.integers(0, 300))
        is_log = kind == "log integer"
    return Parameter.number(name, lower, lower + width, log=is_log, integer=True)


@st.composite
def conditions(draw: st.DrawFn, parents: list[Parameter], depth: int = 2) -> Condition:
    """Draw a condition on the first hyperparameters of a space, `parents`.

    It compares one of them with values, or joins up to three such conditions; joined ones may be
    inside each other, to this depth.
    """
    is_joined = depth > 0 and draw(st.booleans())
    if is_joined:
        number_of_parts = draw(st.integers(1, 3))
        parts = [draw(conditions(parents, depth - 1)) for _ in range(number_of_parts)]
        return Joined(draw(st.sampled_from(Connective)), tuple(parts))

    column = draw(st.integers(0, len(parents) - 1))
    comparison = draw(st.sampled_from(Comparison))
    number_of_values = draw(st.integers(1, 3)) if comparison is Comparison.IN else 1
    unit_values = draw(
        st.lists(st.floats(0, 1), min_size=number_of_values, max_size=number_of_values)
    )
    values = parents[column].decode(np.array(unit_values))
    return Compare(column, comparison, tuple(values.tolist()))


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """Draw a space of up to six hyperparameters; any but the first may depend on those before."""
    dimension = draw(st.integers(1, 6))
    all_parameters = [draw(parameters(f"p{j}")) for j in range(dimension)]
    condition_of = {}
    for j in range(1, dimension):
        is_conditional = draw(st.booleans())
        if is_conditional:
            condition_of[f"p{j}"] = draw(conditions(all_parameters[:j]))
    return SearchSpace(all_parameters, conditions=condition_of)


def hide_inactive(space: SearchSpace, values: FloatArray) -> FloatArray:
    """Coded values, (n, d), with NaN where a hyperparameter is inactive, row by row."""
    result = np.full_like(values, np.nan)
    for row, coded in zip(result, values, strict=True):
        # Hyperparameters come after those that they depend on, so that the row has their values.
        for j, condition in space.ordered_conditions.items():
            # None: the hyperparameter is always active.
            if condition is None or condition.holds_for(row.tolist()):
                row[j] = coded[j]
    return result


def decode_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Turn unit vectors, (n, d), into coded values, one hyperparameter after the other."""
    columns = [p.decode(unit[:, j]) for j, p in enumerate(space.parameters)]
    return hide_inactive(space, np.stack(columns, axis=1))


def canonical_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Make unit vectors, (n, d), canonical, one hyperparameter after the other.

    Discrete hyperparameters move to the middle of their bins; inactive ones become NaN.
    """
    canonical = unit.copy()
    for j, parameter in enumerate(space.parameters):
        if parameter.is_discrete:
            canonical[:, j] = parameter.encode(parameter.decode(unit[:, j]))
    is_inactive = np.isnan(decode_by_hand(space, canonical))
    canonical[is_inactive] = np.nan
    return canonical


def features_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """The features of canonical unit vectors, (n, d) to (n, p), column by column.

    A categorical hyperparameter has a column of 0 and 1 for each choice, another one its unit
    value, or 0.5 where it is inactive.
    """
    columns = []
    for parameter, column in zip(space.parameters, unit.T, strict=True):
        if parameter.kind is Kind.CATEGORICAL:
            codes = parameter.decode(column)
            for code in range(len(parameter.choices)):
                columns.append((codes == code).astype(float))
        else:
            columns.append(np.where(np.isnan(column), 0.5, column))
    return np.stack(columns, axis=1)


def assert_same_array(array: FloatArray, expected: FloatArray) -> None:
    """Check that arrays have the same type and exactly the same numbers, NaN at the same places."""
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@st.composite
def spaces_and_units(draw: st.DrawFn) -> tuple[SearchSpace, FloatArray]:
    """Draw a space, and any unit vectors of up to 30 configurations, (n, d).

    They need not be canonical: discrete values are anywhere in their bins, and none are NaN.
    """
    space = draw(spaces())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number_of_configurations = draw(st.integers(0, 30))
    return space, rng.random((number_of_configurations, space.dimension))


@st.composite
def spaces_and_incomplete_units(draw: st.DrawFn) -> tuple[SearchSpace, FloatArray]:
    """Draw a space, and unit vectors of 20 configurations with missing values, NaN.

    One hyperparameter has new values: others that depend on it may become active, and then lack a
    value, or inactive. A fifth of all values is missing besides.
    """
    space = draw(spaces())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    unit = space.sample_unit(rng, 20)
    changed_column = draw(st.integers(0, space.dimension - 1))
    unit[:, changed_column] = rng.random(20)
    is_missing = rng.random(unit.shape) < 0.2
    unit[is_missing] = np.nan
    return space, unit


@given(spaces_and_incomplete_units())
def test_completed_configurations_are_valid(space_and_unit):
    """`completed` draws the values that active hyperparameters lack in unit vectors."""
    space, unit = space_and_unit

    completed = space.completed(unit, np.random.default_rng(0))

    assert space.allows(space.decode(completed)).all()


@given(spaces_and_incomplete_units())
def test_completing_keeps_values_that_are_active(space_and_unit):
    """`completed` draws missing values, NaN, and keeps the others of active hyperparameters.

    It makes them canonical: a discrete value moves to the middle of its bin.
    """
    space, unit = space_and_unit

    completed = space.completed(unit, np.random.default_rng(0))

    canonical = space.canonical(unit)
    had_value = ~np.isnan(canonical)
    is_active = ~np.isnan(completed)
    is_kept = had_value & is_active
    np.testing.assert_array_equal(completed[is_kept], canonical[is_kept])


@given(spaces_and_units())
def test_canonical_treats_each_hyperparameter_singly(space_and_unit):
    """All columns of unit vectors become canonical at once as they do one after the other."""
    space, unit = space_and_unit

    assert_same_array(space.canonical(unit), canonical_by_hand(space, unit))


@given(spaces_and_units())
def test_decode_treats_each_hyperparameter_singly(space_and_unit):
    """All columns are decoded at once as they are one after the other, from any unit vectors."""
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    assert_same_array(space.decode(unit), decode_by_hand(space, unit))
    assert_same_array(space.decode(canonical), decode_by_hand(space, canonical))


@given(spaces_and_units())
def test_encode_treats_each_hyperparameter_singly(space_and_unit):
    """All columns of values are encoded at once as they are one after the other."""
    space, unit = space_and_unit
    values = space.decode(unit)
    columns = []
    for parameter, column in zip(space.parameters, values.T, strict=True):
        columns.append(parameter.encode(column))

    assert_same_array(space.encode(values), np.stack(columns, axis=1))


@given(spaces_and_units())
def test_features_treat_each_hyperparameter_singly(space_and_unit):
    """Features for models are computed at once as they are one hyperparameter after the other."""
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    assert_same_array(space.features(canonical), features_by_hand(space, canonical))


@given(spaces_and_units())
def test_compiled_coder_agrees_with_space(space_and_unit):
    """The `Coder` of methods, which Numba compiles, codes exactly as the space does."""
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    coder = Coder(space)

    assert_same_array(coder.canonical(unit), canonical)
    assert_same_array(coder.features(canonical), space.features(canonical))


@given(spaces(), st.integers(0, 2**32 - 1))
def test_coding_ignores_other_rows(space, seed):
    """Each configuration alone, as a unit vector or as a dict, is coded as among others."""
    unit = np.random.default_rng(seed).random((10, space.dimension))
    values = space.decode(space.canonical(unit))

    for unit_row, config, expected in zip(unit, space.configs(values), values, strict=True):
        (alone,) = space.decode(space.canonical(unit_row[None]))
        assert_same_array(alone, expected)
        assert_same_array(space.row(config), expected)


@pytest.mark.parametrize("unit_value", [0.0, 1.0, math.nan])
@given(space=spaces())
def test_corners_and_missing_values_are_coded(unit_value, space):
    """All hyperparameters are at the lower ends (0) or upper ends (1), or are missing (NaN)."""
    unit = np.full((2, space.dimension), unit_value)

    canonical = space.canonical(unit)

    assert_same_array(canonical, canonical_by_hand(space, unit))
    assert_same_array(space.decode(canonical), decode_by_hand(space, canonical))


def log_integer_space() -> SearchSpace:
    """A space of one integer from 1 to 9 on a logarithmic scale."""
    return SearchSpace([Parameter.number("n", 1, 9, integer=True, log=True)])


@pytest.mark.parametrize(
    ("function", "number"), [("canonical", 0.3), ("decode", 0.3), ("encode", 3.0)]
)
def test_arguments_may_be_readonly_or_strided(function, number):
    """An array to be coded, here of one number, may be read-only, or not in one piece.

    The strided array is every second row of a larger one. `function` is a name such as "decode".
    """
    code = getattr(log_integer_space(), function)
    readonly = np.full((4, 1), number)
    readonly.flags.writeable = False
    twice_as_long = np.asfortranarray(np.repeat(readonly, 2, axis=0))
    strided = twice_as_long[::2]

    assert_same_array(code(strided), code(readonly))
