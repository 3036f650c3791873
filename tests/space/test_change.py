import math
import pickle

import numpy as np
import pytest
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from hpobench_ordered import Evaluations, SearchSpace, SpaceChange
from hpobench_ordered.benchmarks._adjustment import Steps
from hpobench_ordered.benchmarks.adjustments import FINITE, SEARCHED
from hpobench_ordered.errors import InvalidSpaceError, UnknownNameError
from hpobench_ordered.space import Change, Compare, Comparison, Connective, Joined
from hpobench_ordered.space.parameters import Kind, Parameter

ADJUSTMENTS = {adjustment.name: adjustment for adjustment in (*FINITE, *SEARCHED)}


def adjusted(name: str) -> SpaceChange:
    adjustment = ADJUSTMENTS[name]
    return SpaceChange.between(adjustment.space(Steps.STEP_1), adjustment.space(Steps.STEP_2))


def number(lower: float, upper: float, *, log: bool = False, integer: bool = False) -> Parameter:
    return Parameter.number("x", lower, upper, log=log, integer=integer)


def log(lower: float, upper: float) -> Parameter:
    return number(lower, upper, log=True)


def ints(lower: int, upper: int, *, log: bool = False) -> Parameter:
    return number(lower, upper, log=log, integer=True)


def choices(*values: bool | int | float | str, ordered: bool = False) -> Parameter:
    return Parameter.choice("x", values, ordered=ordered)


def ordered(*values: bool | int | float | str) -> Parameter:
    return choices(*values, ordered=True)


def between(old: Parameter, new: Parameter) -> SpaceChange:
    return SpaceChange.between(SearchSpace([old]), SearchSpace([new]))


GREW, SHRANK, MOVED, SCALE = Change.GREW, Change.SHRANK, Change.MOVED, Change.SCALE
REPLACED, TYPE = [Change.CHOICES_ADDED, Change.CHOICES_REMOVED], Change.TYPE
LINEAR, LOG = "on a linear scale", "on a log scale"
GREW_ON_LOG = math.log(8.5 / 4.5) / math.log(8.5 / 0.5)
# Both, the intersection (None: not shared), the share that is new, changes, and what is said.
# fmt: off
PAIRS = [
    (number(0, 1), number(0, 1), number(0, 1), 0, [], None),
    (number(0, 1), number(-1, 3), number(0, 1), 3 / 4, [GREW], "from 0 to 1, now from -1 to 3"),
    (number(0, 4), number(1, 3), number(1, 3), 0, [SHRANK], "from 0 to 4, now from 1 to 3"),
    (number(0, 4), number(3, 5), number(3, 4), 1 / 2, [MOVED], "from 0 to 4, now from 3 to 5"),
    (number(0, 1), number(1, 2), None, None, [MOVED], "from 0 to 1, now from 1 to 2"),
    (number(0, 1), log(0.01, 100), log(0.01, 1), 1 / 2, [MOVED, SCALE],
     f"from 0 to 1 {LINEAR}, now from 0.01 to 100 {LOG}"),
    (log(0.5, 1), number(0, 2), number(0.5, 1), 3 / 4, [GREW, SCALE],
     f"from 0.5 to 1 {LOG}, now from 0 to 2 {LINEAR}"),
    (ints(1, 3), ints(3, 6), ints(3, 3), 3 / 4, [MOVED], "from 1 to 3, now from 3 to 6"),
    (ints(1, 3), ints(4, 6), None, None, [MOVED], "from 1 to 3, now from 4 to 6"),
    (ints(1, 4, log=True), ints(1, 8, log=True), ints(1, 4, log=True), GREW_ON_LOG, [GREW],
     "from 1 to 4, now from 1 to 8"),
    (ints(1, 4), number(0, 8), number(1, 4), 5 / 8, [TYPE, GREW],
     "from 1 to 4 (an integer), now from 0 to 8 (a number)"),
    (number(0, 8), ints(1, 8), None, None, [TYPE, SHRANK],
     "from 0 to 8 (a number), now from 1 to 8 (an integer)"),
    (ints(1, 2), choices(1, 2), None, None, [TYPE],
     "from 1 to 2 (an integer), now 1 or 2 (without an order)"),
    (choices(*"abc"), choices(*"dca"), choices(*"ca"), 1 / 3, REPLACED, "now also d, no longer b"),
    (choices(*"ab"), choices(*"ba"), choices(*"ba"), 0, [], None),
    (choices(*"ab"), choices(*"cd"), None, None, REPLACED, "a or b, now c or d"),
    (choices(1, 2), choices(True, 2), choices(2), 1 / 2, REPLACED, "now also True, no longer 1"),
    (ordered(1, 10, 100), ordered(0, 1, 100, 1000), ordered(1, 100), 1 / 2, REPLACED,
     "now also 0 and 1000, no longer 10"),
    (ordered(*"lh"), ordered(*"hl"), ordered(*"hl"), 0, [Change.REORDERED],
     "l or h (in this order), now h or l (in this order)"),
    (choices(*"lh"), ordered(*"lh"), ordered(*"lh"), 0, [TYPE],
     "l or h (without an order), now l or h (in this order)"),
]
# fmt: on


@pytest.mark.parametrize(("old", "new", "both", "share", "became", "said"), PAIRS)
def test_one_hyperparameter(old, new, both, share, became, said):
    change = between(old, new)
    said = f"x: {said}" if said else "nothing changed"
    assert change.describe() == [said if both else f"{said} (counted as new)"]
    assert list(change.changes["x"]) == became
    if both is None:
        assert (change.shared, change.only_new) == ((), ("x",))
        with pytest.raises(InvalidSpaceError, match="share no hyperparameter"):
            change.shared_space()
        with pytest.raises(UnknownNameError, match="unknown shared hyperparameter 'x'"):
            change.new_share("x")
    else:
        assert (change.shared, change.only_new) == (("x",), ())
        assert change.shared_space() == SearchSpace([both])
        assert change.new_share("x") == pytest.approx(share)
        assert (change.new_share("x") == 0) == (share == 0)


def test_constants_come_go_and_change():
    x, y = Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)
    old = SearchSpace([x, y], constants={"k": 3, "same": "a", "gone": 1, "other": 0.1})
    new = SearchSpace(
        [Parameter.number("k", 0, 9, integer=True), x],
        constants={"y": 0.5, "same": "a", "come": True, "other": 0.25},
    )
    change = SpaceChange.between(old, new)
    assert change.changes == {
        "k": (Change.FREED,),
        "x": (),
        "y": (Change.FIXED,),
        "same": (),
        "come": (Change.ADDED,),
        "other": (Change.VALUE,),
        "gone": (Change.REMOVED,),
    }
    assert change.describe() == [
        "k: was fixed to 3, now from 0 to 9",
        "y: was from 0 to 1, now fixed to 0.5",
        "come: new (fixed to True)",
        "other: fixed to 0.1 before, now to 0.25",
        "gone: removed (was fixed to 1)",
    ]
    assert (change.shared, change.only_new) == (("x",), ("k",))


def kernels(*names: str) -> Parameter:
    return Parameter.choice("kernel", names)


GAMMA, DEGREE = Parameter.number("gamma", 0, 1), Parameter.number("degree", 2, 5, integer=True)


def conditional(kernel: Parameter, *when: str, extra: tuple[Parameter, ...] = ()) -> SearchSpace:
    """Gamma is active for some kernels."""
    codes = tuple(kernel.code(name) for name in when)
    column = len(extra)
    conditions = {"gamma": Compare(column, Comparison.IN, codes)} if when else {}
    return SearchSpace([*extra, kernel, GAMMA], conditions=conditions)


def on_old(change: SpaceChange, configs: list[dict[str, float | str]]) -> Evaluations:
    """Evaluations on the old space; losses 0, 1, ..."""
    losses = np.arange(len(configs), dtype=float)
    return minimised("t", {"size": 1.0}, change.old.values(configs), losses, change.old)


class TestConditions:
    def test_condition_of_the_new_space_is_that_of_the_shared_one(self):
        old = conditional(kernels("linear", "radial", "sigmoid"), "radial", "sigmoid")
        new = conditional(kernels("radial", "poly", "linear"), "radial", "poly", extra=(DEGREE,))
        change = SpaceChange.between(old, new)
        shared = change.shared_space()
        assert shared == conditional(kernels("radial", "linear"), "radial")
        assert SearchSpace.from_json(shared.to_json()) == shared
        assert "gamma: was active if kernel in radial, sigmoid, now active if kernel in " in str(
            change.describe()
        )
        kept = [{"kernel": "linear"}, {"kernel": "radial", "gamma": 0.25}]
        evaluations = on_old(change, [kept[0], {"kernel": "sigmoid", "gamma": 0.5}, kept[1]])
        left = evaluations.in_shared(change)
        assert shared.configs(left.values) == kept
        assert left.losses.tolist() == [0, 2]
        coded = change.to_new(left.values)
        np.testing.assert_array_equal(coded, [[np.nan, 2, np.nan], [np.nan, 0, 0.25]])

    def test_condition_on_what_is_not_shared_is_left_out(self):
        old = conditional(kernels("linear", "radial"))
        change = SpaceChange.between(old, conditional(kernels("linear", "radial", "poly"), "poly"))
        assert change.shared_space() == conditional(kernels("linear", "radial"))
        assert change.describe() == [
            "kernel: now also poly",
            "gamma: was always active, now active if kernel in poly",
        ]
        before = SearchSpace([GAMMA], constants={"kernel": "radial"})
        change = SpaceChange.between(before, conditional(kernels("linear", "radial"), "radial"))
        assert change.shared_space() == SearchSpace([Parameter.number("gamma", 0, 1)])
        assert change.only_new == ("kernel",)

    @pytest.mark.parametrize("connective", Connective)
    def test_joined_conditions_are_kept_whole_or_not_at_all(self, connective):
        def joined(comparison: Comparison) -> SearchSpace:
            parts = Compare(1, Comparison.EQUAL, (1.0,)), Compare(0, comparison, (3.0,))
            conditions = {"gamma": Joined(connective, parts)}
            return SearchSpace([DEGREE, kernel, GAMMA], conditions=conditions)

        kernel = kernels("linear", "radial")
        new, other = joined(Comparison.GREATER), joined(Comparison.LESS)
        same = SearchSpace([GAMMA, kernel, DEGREE])  # both parts are on what is shared
        assert SpaceChange.between(same, new).shared_space().conditions == new.conditions
        lacks = SearchSpace([kernel, GAMMA])  # degree is new
        assert SpaceChange.between(lacks, new).shared_space().conditions == {}
        assert SpaceChange.between(other, new).changes["gamma"] == (Change.CONDITION,)

    def test_same_condition_with_other_columns_is_no_change(self):
        kernel = kernels("linear", "radial")
        new = conditional(kernels("radial", "linear"), "radial", extra=(DEGREE,))
        change = SpaceChange.between(conditional(kernel, "radial"), new)
        assert change.describe() == ["degree: new (from 2 to 5)"]

    def test_what_was_inactive_and_is_active_now_is_left_out(self):
        kernel = kernels("linear", "radial")
        change = SpaceChange.between(conditional(kernel, "radial"), conditional(kernel))
        evaluations = on_old(change, [{"kernel": "linear"}, {"kernel": "radial", "gamma": 1.0}])
        assert evaluations.in_shared(change).losses.tolist() == [1]


def test_errors_name_what_was_given():
    change = adjusted("svm-b")
    with pytest.raises(UnknownNameError, match=r"'kost'.*did you mean 'cost'"):
        change.new_share("kost")
    with pytest.raises(UnknownNameError, match="unknown shared hyperparameter 'gamma'"):
        change.draw_only_new("gamma", np.random.default_rng(0))
    same = pickle.loads(pickle.dumps(SpaceChange.between(change.new, change.new)))
    assert same.describe() == ["nothing changed"]
    assert (same.shared, same.only_new) == (change.new.names, ())
    with pytest.raises(InvalidSpaceError, match="no part of the range of 'cost' is new"):
        same.draw_only_new("cost", np.random.default_rng(0))
    other = SearchSpace([Parameter.number("cost", 1, 2)])
    with pytest.raises(InvalidSpaceError, match="task 't' are neither on the old search space"):
        minimised("t", {}, np.ones((1, 1)), np.zeros(1), other).in_shared(change)


def test_evaluations_without_any_left_have_the_right_shape():
    change = between(number(0, 10), number(5, 6))
    for n in (3, 0):
        left = minimised("t", {}, np.ones((n, 1)), np.zeros(n), change.old).in_shared(change)
        assert (left.values.shape, left.losses.shape) == ((0, 1), (0,))
        assert change.to_new(left.values).shape == (0, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (log(2**-5, 2**5), log(2**-10, 2**12)),
        (number(0.2, 0.3), number(0, 1)),
        (number(-1, 0.7), number(0, 1)),
        (number(0.3, 2), number(0, 1)),
    ],
)
def test_draws_of_floats_follow_the_prior_outside_the_old_range(old, new):
    change = between(old, new)
    rng = np.random.default_rng(0)
    drawn = new.encode(np.array([change.draw_only_new("x", rng) for _ in range(2000)]))
    prior = new.decode(rng.random(20000))
    outside = new.encode(prior[(prior < old.lower) | (prior > old.upper)])
    assert kstest(drawn, outside).pvalue > 0.01


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ints(3, 4), ints(1, 8)),
        (ints(3, 4), ints(1, 8, log=True)),
        (choices("a", "b"), choices("c", "a", "d", "e")),
        (choices(4, 8, ordered=True), choices(2, 4, 8, 16, 32, ordered=True)),
    ],
)
def test_draws_of_discrete_values_follow_the_prior_outside_the_old_range(old, new):
    change = between(old, new)
    rng = np.random.default_rng(0)
    drawn = [new.value(change.draw_only_new("x", rng)) for _ in range(4000)]
    prior = [new.value(x) for x in new.decode(rng.random(40000)).tolist()]
    outside = [value for value in prior if not allowed(value, old)]
    assert set(drawn) == set(outside)
    for value in set(drawn):
        share = outside.count(value) / len(outside)
        assert drawn.count(value) / len(drawn) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("only", [0.1, 1.0])
def test_a_new_range_of_one_float_is_drawn_although_rounding_leads_to_the_old_one(only):
    lower, upper = (math.nextafter(0.1, 1), 1) if only == 0.1 else (0.1, math.nextafter(1, 0))
    change = between(number(lower, upper), number(0.1, 1))
    rng = np.random.default_rng(0)
    assert {change.draw_only_new("x", rng) for _ in range(100)} == {only}


def allowed(value: bool | int | float | str, parameter: Parameter) -> bool:
    """Whether a native value is in the range or among the choices, without the package's codes."""
    if parameter.choices:
        return any(type(value) is type(choice) and value == choice for choice in parameter.choices)
    return parameter.lower <= float(value) <= parameter.upper


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    kind = draw(st.sampled_from(Kind))
    if kind in {Kind.CATEGORICAL, Kind.ORDINAL}:
        values = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
        return Parameter.choice(name, tuple(values), ordered=kind is Kind.ORDINAL)
    log = draw(st.booleans())
    if kind is Kind.INTEGER:
        ends = st.integers(1 if log else -9, 30)
        low, high = sorted((draw(ends), draw(ends)))
    else:
        real = st.floats(1e-6 if log else -10, 30)
        ends = st.lists(real, min_size=2, max_size=2)
        low, high = sorted(draw(ends.filter(lambda of: not math.isclose(*of, abs_tol=1e-9))))
    return Parameter.number(name, low, high, log=log, integer=kind is Kind.INTEGER)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    names = draw(st.lists(st.sampled_from("uvwxyz"), min_size=1, unique=True))
    return SearchSpace([draw(parameters(name)) for name in names])


def sampled(space: SearchSpace, n: int = 30) -> np.ndarray:
    return space.decode(space.sample_unit(np.random.default_rng(0), n))


def shared_changes() -> st.SearchStrategy[SpaceChange]:
    return st.builds(SpaceChange.between, spaces(), spaces()).filter(lambda c: bool(c.shared))


@given(st.builds(SpaceChange.between, spaces(), spaces()))
def test_every_hyperparameter_of_the_new_space_is_shared_or_new(change):
    assert sorted(change.shared + change.only_new) == sorted(change.new.names)
    assert set(change.shared) <= set(change.old.names)
    assert set(change.changes) == {*change.old.names, *change.new.names}
    changed = [name for name, became in change.changes.items() if became]
    assert [s.partition(":")[0] for s in change.describe() if ":" in s] == changed


@given(shared_changes())
def test_shared_space_lies_in_both(change):
    shared = change.shared_space()
    assert shared.names == change.shared
    for config in shared.configs(sampled(shared)):
        for name, value in config.items():
            assert allowed(value, change.old[name])
            assert allowed(value, change.new[name])


@given(shared_changes())
def test_evaluations_are_left_out_exactly_where_a_shared_value_is_not_allowed(change):
    values = sampled(change.old)
    evaluations = minimised("t", {"size": 1.0}, values, np.arange(30.0), change.old)
    left = evaluations.in_shared(change)
    configs = [
        {name: config[name] for name in change.shared} for config in change.old.configs(values)
    ]
    inside = [all(allowed(c[name], change.new[name]) for name in c) for c in configs]
    assert left.losses.tolist() == np.flatnonzero(inside).tolist()
    assert (left.task, left.context) == ("t", {"size": 1.0})
    assert left.space == change.shared_space()
    kept = [config for config, is_inside in zip(configs, inside, strict=True) if is_inside]
    assert left.space.configs(left.values) == kept


@given(shared_changes())
def test_configurations_of_the_intersection_are_kept_and_coded_by_the_new_space(change):
    shared = change.shared_space()
    configs = shared.configs(sampled(shared))
    coded = change.to_new(shared.values(configs))
    assert coded.shape == (30, change.new.dimension)
    only_new = [change.new.names.index(name) for name in change.only_new]
    assert np.isnan(coded[:, only_new]).all()
    coded[:, only_new] = sampled(change.new)[:, only_new]
    for config, again in zip(configs, change.new.configs(coded), strict=True):
        assert {name: again[name] for name in change.shared} == config
    left = minimised("t", {}, coded, np.arange(30.0), change.new).in_shared(change)
    assert shared.configs(left.values) == configs


@given(shared_changes(), st.integers(0, 2**32 - 1))
def test_draws_lie_in_the_new_range_and_not_in_the_old(change, seed):
    rng = np.random.default_rng(seed)
    for name in change.shared:
        old, new = change.old[name], change.new[name]
        assert 0 <= change.new_share(name) <= 1
        if change.new_share(name) == 0:
            assert all(allowed(new.value(x), old) for x in sampled(SearchSpace([new]))[:, 0])
            continue
        for _ in range(5):
            drawn = change.draw_only_new(name, rng)
            assert new.allows(np.array([drawn])).all()
            assert not allowed(new.value(drawn), old)


@pytest.mark.parametrize("name", ["nas-b", "svm-b"])
def test_share_is_that_of_the_prior(name):
    change = adjusted(name)
    values = sampled(change.new, 20000)
    for parameter, column in zip(change.new.parameters, values.T, strict=True):
        old = change.old[parameter.name]
        new = [not allowed(parameter.value(x), old) for x in column.tolist()]
        assert np.mean(new) == pytest.approx(change.new_share(parameter.name), abs=0.02)
