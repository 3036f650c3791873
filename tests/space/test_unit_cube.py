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
    is_log = kind in ("log float", "log integer") or (kind == "many" and draw(st.booleans()))
    if "float" in kind:
        low, width = draw(FLOATS), draw(FLOATS)
        return Parameter.number(name, low, low + width, log=is_log)
    low = draw(st.integers(1, 100))
    high = low + (2 * MAX_TABULATED if kind == "many" else draw(st.integers(0, 300)))
    return Parameter.number(name, low, high, log=is_log, integer=True)


@st.composite
def conditions(draw: st.DrawFn, parents: list[Parameter], depth: int = 2) -> Condition:
    """A condition on some of the hyperparameters before."""
    if depth and draw(st.booleans()):
        parts = [draw(conditions(parents, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return Joined(draw(st.sampled_from(Connective)), tuple(parts))
    column = draw(st.integers(0, len(parents) - 1))
    parent, comparison = parents[column], draw(st.sampled_from(Comparison))
    count = draw(st.integers(1, 3)) if comparison is Comparison.IN else 1
    units = draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
    return Compare(column, comparison, tuple(parent.decode(np.array(units)).tolist()))


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """A space of up to six hyperparameters, of which any but the first may be conditional."""
    chosen = [draw(parameters(f"p{j}")) for j in range(draw(st.integers(1, 6)))]
    conditional = [j for j in range(1, len(chosen)) if draw(st.booleans())]
    made = {chosen[j].name: draw(conditions(chosen[:j])) for j in conditional}
    return SearchSpace(chosen, conditions=made)


def active_by_hand(space: SearchSpace, values: FloatArray) -> FloatArray:
    """Values with NaN where a hyperparameter is inactive, one configuration after the other."""
    result = np.full_like(values, np.nan)
    for row, coded in zip(result, values, strict=True):
        for j, condition in space.ordered_conditions.items():
            if condition is None or condition.holds_for(row.tolist()):
                row[j] = coded[j]
    return result


def decoded_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    columns = [p.decode(unit[:, j]) for j, p in enumerate(space.parameters)]
    return active_by_hand(space, np.stack(columns, axis=1))


def canonical_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    columns = [
        p.encode(p.decode(unit[:, j])) if p.is_discrete else unit[:, j]
        for j, p in enumerate(space.parameters)
    ]
    inactive = np.isnan(decoded_by_hand(space, np.stack(columns, axis=1)))
    return np.where(inactive, np.nan, np.stack(columns, axis=1))


def features_by_hand(space: SearchSpace, unit: FloatArray) -> FloatArray:
    columns = []
    for p, column in zip(space.parameters, unit.T, strict=True):
        if p.kind is Kind.CATEGORICAL:
            coded = p.decode(column)
            columns += [(coded == k).astype(float) for k in range(len(p.choices))]
        else:
            columns.append(np.where(np.isnan(column), 0.5, column))
    return np.stack(columns, axis=1)


def same_bits(array: FloatArray, expected: FloatArray) -> None:
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@given(spaces(), st.integers(0, 2**32 - 1), st.data())
def test_what_becomes_active_is_drawn(space, seed, data):
    """Any hyperparameter is changed, or lacks its value: the result is a configuration."""
    rng = np.random.default_rng(seed)
    unit = space.sample_unit(rng, 20)
    changed = data.draw(st.integers(0, space.dimension - 1))
    moved = unit.copy()
    moved[:, changed] = rng.random(20)
    moved[rng.random(unit.shape) < 0.2] = np.nan
    completed = space.completed(moved, rng)
    assert space.allows(space.decode(completed)).all()
    given_values = space.canonical(moved)
    kept = ~np.isnan(given_values) & ~np.isnan(completed)
    np.testing.assert_array_equal(completed[kept], given_values[kept])


@given(spaces(), st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_arrays_are_coded_as_each_hyperparameter_says(space, seed, n):
    drawn = np.random.default_rng(seed).random((n, space.dimension))
    unit = space.canonical(drawn)
    same_bits(unit, canonical_by_hand(space, drawn))
    values = space.decode(unit)
    same_bits(values, decoded_by_hand(space, unit))
    same_bits(space.decode(drawn), decoded_by_hand(space, drawn))
    same_bits(space.active(values), ~np.isnan(values))
    encoded = [p.encode(values[:, j]) for j, p in enumerate(space.parameters)]
    same_bits(space.encode(values), np.stack(encoded, axis=1))
    same_bits(space.features(unit), features_by_hand(space, unit))
    coder = Coder(space)
    same_bits(coder.canonical(drawn), unit)
    same_bits(coder.features(unit), space.features(unit))


@given(spaces(), st.integers(0, 2**32 - 1))
def test_a_configuration_is_coded_alike_alone_and_among_others(space, seed):
    drawn = np.random.default_rng(seed).random((10, space.dimension))
    values = space.decode(space.canonical(drawn))
    for row, config, expected in zip(drawn, space.configs(values), values, strict=True):
        same_bits(space.decode(space.canonical(row[None]))[0], expected)
        same_bits(space.row(config), expected)


@pytest.mark.parametrize("corner", [0.0, 1.0, math.nan])
@given(space=spaces())
def test_corners_and_what_is_missing(corner, space):
    drawn = np.full((2, space.dimension), corner)
    unit = space.canonical(drawn)
    same_bits(unit, canonical_by_hand(space, drawn))
    same_bits(space.decode(unit), decoded_by_hand(space, unit))


def test_neither_given_arrays_nor_other_spaces_are_changed():
    space = SearchSpace([Parameter.number("n", 1, 9, integer=True, log=True)])
    drawn = np.random.default_rng(0).random((9, 1))
    expected, copy = space.canonical(drawn), pickle.loads(pickle.dumps(space))
    same_bits(copy.canonical(drawn), expected)
    vandalise([copy])
    same_bits(space.canonical(drawn), expected)
    same_bits(SearchSpace(space.parameters).canonical(drawn), expected)
    for code, given_values in ((space.canonical, 0.3), (space.decode, 0.3), (space.encode, 3.0)):
        array = np.full((4, 1), given_values)
        array.flags.writeable = False
        code(array)
        code(np.asfortranarray(np.repeat(array, 2, axis=0))[::2])


def test_blocks_of_random_search_are_what_single_draws_are():
    space = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b", "c"))])
    setting = {"space": space, "history": (), "context": {}, "budget": 3}
    method = RandomSearch(rng=np.random.default_rng(7), **setting)
    one_by_one = np.random.default_rng(7)
    for _ in range(60):
        assert method.ask() == space.sample(one_by_one)
