"""Whole arrays are coded as one hyperparameter and one configuration after the other would be."""

import math
import pickle

import numpy as np
import pytest
from bad_methods import vandalise
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered import SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._coding import Coder
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.space.conditions import Compare, Comparison, Condition, Connective, Joined
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.unit_cube import MAX_TABULATED

KINDS = ("float", "log float", "integer", "log integer", "many", "categorical", "ordinal")
FLOATS = st.floats(1e-3, 1e3)


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    """A hyperparameter of any kind."""
    kind = draw(st.sampled_from(KINDS))
    if kind in ("categorical", "ordinal"):
        choices = tuple(range(draw(st.integers(1, 4))))
        return Parameter.choice(name, choices, ordered=kind == "ordinal")
    if kind in ("float", "log float"):
        low = draw(FLOATS)
        width = draw(FLOATS)
        return Parameter.number(name, low, low + width, log=kind == "log float")

    lowest = draw(st.integers(1, 100))
    if kind == "many":  # too many values for a table of them
        range_size = 2 * MAX_TABULATED
        is_log = draw(st.booleans())
    else:
        range_size = draw(st.integers(0, 300))
        is_log = kind == "log integer"
    return Parameter.number(name, lowest, lowest + range_size, log=is_log, integer=True)


@st.composite
def conditions(draw: st.DrawFn, parents: list[Parameter], depth: int = 2) -> Condition:
    """A condition on some of the hyperparameters before, joined up to `depth` times."""
    if depth and draw(st.booleans()):
        parts = [draw(conditions(parents, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return Joined(draw(st.sampled_from(Connective)), tuple(parts))
    column = draw(st.integers(0, len(parents) - 1))
    comparison = draw(st.sampled_from(Comparison))
    count = draw(st.integers(1, 3)) if comparison is Comparison.IN else 1
    units = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    values = parents[column].decode(np.array(units))
    return Compare(column, comparison, tuple(values.tolist()))


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """A space of up to six hyperparameters, of which any but the first may be conditional."""
    dimension = draw(st.integers(1, 6))
    all_parameters = [draw(parameters(f"p{j}")) for j in range(dimension)]
    condition_of = {}
    for j in range(1, dimension):
        if draw(st.booleans()):
            condition_of[f"p{j}"] = draw(conditions(all_parameters[:j]))
    return SearchSpace(all_parameters, conditions=condition_of)


def hide_inactive(space: SearchSpace, values: FloatArray) -> FloatArray:
    """Values with NaN where a hyperparameter is inactive, one configuration after the other."""
    result = np.full_like(values, np.nan)
    for row, coded in zip(result, values, strict=True):
        # Parents come before what depends on them; None: the hyperparameter is always active.
        for j, condition in space.ordered_conditions.items():
            if condition is None or condition.holds_for(row.tolist()):
                row[j] = coded[j]
    return result


def decode_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Decode one hyperparameter after the other."""
    columns = [p.decode(unit[:, j]) for j, p in enumerate(space.parameters)]
    return hide_inactive(space, np.stack(columns, axis=1))


def canonical_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Move one discrete hyperparameter after the other to the middle of its bins, (n, d).

    Inactive hyperparameters become NaN.
    """
    canonical = unit.copy()
    for j, parameter in enumerate(space.parameters):
        if parameter.is_discrete:
            canonical[:, j] = parameter.encode(parameter.decode(unit[:, j]))
    canonical[np.isnan(decode_by_hand(space, canonical))] = np.nan
    return canonical


def features_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """One-hot columns for choices; other hyperparameters as they are, 0.5 if inactive."""
    columns = []
    for parameter, column in zip(space.parameters, unit.T, strict=True):
        if parameter.kind is Kind.CATEGORICAL:
            codes = parameter.decode(column)
            for code in range(len(parameter.choices)):
                columns.append((codes == code).astype(float))
        else:
            columns.append(np.where(np.isnan(column), 0.5, column))
    return np.stack(columns, axis=1)


def assert_same_bits(array: FloatArray, expected: FloatArray) -> None:
    """Equal numbers of the same type."""
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@st.composite
def spaces_and_units(draw: st.DrawFn) -> tuple[SearchSpace, FloatArray]:
    """A space, and unit vectors of up to 30 configurations that are not canonical."""
    space = draw(spaces())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return space, rng.random((draw(st.integers(0, 30)), space.dimension))


@st.composite
def spaces_and_incomplete_units(draw: st.DrawFn) -> tuple[SearchSpace, FloatArray]:
    """A space, and unit vectors that need not be those of configurations.

    A hyperparameter has other values, on which others may depend, and some values are missing.
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
    space, unit = space_and_unit

    completed = space.completed(unit, np.random.default_rng(0))

    assert space.allows(space.decode(completed)).all()


@given(spaces_and_incomplete_units())
def test_completing_keeps_values_that_are_active(space_and_unit):
    """Values that are given, not NaN, stay unless their hyperparameter becomes inactive, NaN.

    Only to the middle of its bin, which is canonical, a discrete value may move.
    """
    space, unit = space_and_unit

    completed = space.completed(unit, np.random.default_rng(0))

    canonical = space.canonical(unit)
    is_kept = ~np.isnan(canonical) & ~np.isnan(completed)
    np.testing.assert_array_equal(completed[is_kept], canonical[is_kept])


@given(spaces_and_units())
def test_canonical_treats_each_hyperparameter_singly(space_and_unit):
    space, unit = space_and_unit

    assert_same_bits(space.canonical(unit), canonical_by_hand(space, unit))


@given(spaces_and_units())
def test_decode_treats_each_hyperparameter_singly(space_and_unit):
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    assert_same_bits(space.decode(unit), decode_by_hand(space, unit))
    assert_same_bits(space.decode(canonical), decode_by_hand(space, canonical))


@given(spaces_and_units())
def test_decoded_values_are_nan_where_inactive(space_and_unit):
    space, unit = space_and_unit

    values = space.decode(unit)

    assert_same_bits(space.active(values), ~np.isnan(values))


@given(spaces_and_units())
def test_encode_treats_each_hyperparameter_singly(space_and_unit):
    space, unit = space_and_unit
    values = space.decode(unit)
    columns = []
    for parameter, column in zip(space.parameters, values.T, strict=True):
        columns.append(parameter.encode(column))

    assert_same_bits(space.encode(values), np.stack(columns, axis=1))


@given(spaces_and_units())
def test_features_treat_each_hyperparameter_singly(space_and_unit):
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    assert_same_bits(space.features(canonical), features_by_hand(space, canonical))


@given(spaces_and_units())
def test_compiled_coder_agrees_with_space(space_and_unit):
    space, unit = space_and_unit
    canonical = space.canonical(unit)

    coder = Coder(space)

    assert_same_bits(coder.canonical(unit), canonical)
    assert_same_bits(coder.features(canonical), space.features(canonical))


@given(spaces(), st.integers(0, 2**32 - 1))
def test_coding_ignores_other_rows(space, seed):
    """Each configuration alone, as a unit vector or as a dict, is coded as among others."""
    unit = np.random.default_rng(seed).random((10, space.dimension))
    values = space.decode(space.canonical(unit))

    for unit_row, config, expected in zip(unit, space.configs(values), values, strict=True):
        (alone,) = space.decode(space.canonical(unit_row[None]))
        assert_same_bits(alone, expected)
        assert_same_bits(space.row(config), expected)


@pytest.mark.parametrize("corner", [0.0, 1.0, math.nan])
@given(space=spaces())
def test_corners_and_missing_values_are_coded(corner, space):
    """All hyperparameters are at their lower ends, at their upper ends, or missing."""
    unit = np.full((2, space.dimension), corner)

    canonical = space.canonical(unit)

    assert_same_bits(canonical, canonical_by_hand(space, unit))
    assert_same_bits(space.decode(canonical), decode_by_hand(space, canonical))


def log_integer_space() -> SearchSpace:
    """A space of one integer from 1 to 9 on a logarithmic scale."""
    return SearchSpace([Parameter.number("n", 1, 9, integer=True, log=True)])


def test_pickled_space_codes_alike():
    """Its tables are computed at the first use, which is before it is pickled."""
    unit = np.random.default_rng(0).random((9, 1))
    space = log_integer_space()
    expected = space.canonical(unit)

    copy = pickle.loads(pickle.dumps(space))

    assert_same_bits(copy.canonical(unit), expected)


def test_spaces_share_no_arrays():
    """To overwrite all arrays inside a copy changes neither the space nor others like it."""
    unit = np.random.default_rng(0).random((9, 1))
    space = log_integer_space()
    expected = space.canonical(unit)
    copy = pickle.loads(pickle.dumps(space))

    vandalise([copy])

    assert_same_bits(space.canonical(unit), expected)
    another = SearchSpace(space.parameters)
    assert_same_bits(another.canonical(unit), expected)


@pytest.mark.parametrize(
    ("function", "argument"), [("canonical", 0.3), ("decode", 0.3), ("encode", 3.0)]
)
def test_arguments_may_be_readonly_or_strided(function, argument):
    """A strided array is not contiguous in memory: every second row of a larger one."""
    code = getattr(log_integer_space(), function)
    readonly = np.full((4, 1), argument)
    readonly.flags.writeable = False
    strided = np.asfortranarray(np.repeat(readonly, 2, axis=0))[::2]

    assert_same_bits(code(strided), code(readonly))


def test_random_search_draws_one_by_one():
    """It draws in blocks, but suggests what single draws would be."""
    space = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b", "c"))])
    same_seed = 7
    method = RandomSearch(
        rng=np.random.default_rng(same_seed), space=space, history=(), context={}, budget=3
    )
    rng = np.random.default_rng(same_seed)

    for _ in range(60):  # more than a block
        assert method.ask() == space.sample(rng)
