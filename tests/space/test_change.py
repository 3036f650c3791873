import math
import pickle

import numpy as np
import pytest
from histories import minimised
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kstest

from hpobench_ordered import Evaluations, SearchSpace, SpaceChange
from hpobench_ordered.benchmarks._adjustment import Steps
from hpobench_ordered.benchmarks.adjustments import FINITE, SEARCHED
from hpobench_ordered.errors import InvalidSpaceError, UnknownNameError
from hpobench_ordered.space import Change, Compare, Comparison, Connective, Joined
from hpobench_ordered.space.parameters import Kind, Parameter

ADJUSTMENTS = {adjustment.name: adjustment for adjustment in (*FINITE, *SEARCHED)}


def change_of_benchmark(name: str) -> SpaceChange:
    """The change of search space of an adjusted benchmark."""
    adjustment = ADJUSTMENTS[name]
    return SpaceChange.between(adjustment.space(Steps.STEP_1), adjustment.space(Steps.STEP_2))


def number(lower: float, upper: float, *, log: bool = False, integer: bool = False) -> Parameter:
    """A number x with this range."""
    return Parameter.number("x", lower, upper, log=log, integer=integer)


def log(lower: float, upper: float) -> Parameter:
    return number(lower, upper, log=True)


def ints(lower: int, upper: int, *, log: bool = False) -> Parameter:
    return number(lower, upper, log=log, integer=True)


def choices(*values: bool | int | float | str, ordered: bool = False) -> Parameter:
    """A hyperparameter x with these choices."""
    return Parameter.choice("x", values, ordered=ordered)


def ordered(*values: bool | int | float | str) -> Parameter:
    return choices(*values, ordered=True)


def change_of(old: Parameter, new: Parameter) -> SpaceChange:
    """The change between spaces of a single hyperparameter."""
    return SpaceChange.between(SearchSpace([old]), SearchSpace([new]))


GREW, SHRANK, MOVED, SCALE = Change.GREW, Change.SHRANK, Change.MOVED, Change.SCALE
TYPE = Change.TYPE
REPLACED = [Change.CHOICES_ADDED, Change.CHOICES_REMOVED]
LINEAR = "on a linear scale"
LOG = "on a log scale"
GREW_ON_LOG = math.log(8.5 / 4.5) / math.log(8.5 / 0.5)
# Old, new, their intersection (None: not shared), the share that is new, changes, description.
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


SHARED = [(old, new, both, share) for old, new, both, share, _, _ in PAIRS if both is not None]
NOT_SHARED = [(old, new) for old, new, both, _, _, _ in PAIRS if both is None]


@pytest.mark.parametrize(("old", "new", "both", "share", "changes", "text"), PAIRS)
def test_changes_of_a_hyperparameter_are_described(old, new, both, share, changes, text):
    # `both` is the range that they share, None if there is none; then x counts as new.
    change = change_of(old, new)
    line = f"x: {text}" if text else "nothing changed"
    assert list(change.changes["x"]) == changes
    assert change.describe() == [line if both else f"{line} (counted as new)"]


@pytest.mark.parametrize(("old", "new", "both", "share"), SHARED)
def test_overlapping_ranges_are_shared(old, new, both, share):
    """`both` is the intersection of the old and the new range."""
    change = change_of(old, new)
    assert (change.shared, change.only_new) == (("x",), ())
    assert change.shared_space() == SearchSpace([both])


@pytest.mark.parametrize(("old", "new", "both", "share"), SHARED)
def test_new_share_equals_expected_share(old, new, both, share):
    """`share` of the new range was not in the old one."""
    new_share = change_of(old, new).new_share("x")
    assert new_share == (pytest.approx(share) if share else 0)


@pytest.mark.parametrize(("old", "new"), NOT_SHARED)
def test_ranges_without_overlap_are_not_shared(old, new):
    change = change_of(old, new)
    assert (change.shared, change.only_new) == ((), ("x",))
    with pytest.raises(InvalidSpaceError, match="share no hyperparameter"):
        change.shared_space()
    with pytest.raises(UnknownNameError, match="unknown shared hyperparameter 'x'"):
        change.new_share("x")


def change_of_constants() -> SpaceChange:
    """Constants are added, removed, changed, and made of a hyperparameter and to one."""
    x, y = Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)
    k = Parameter.number("k", 0, 9, integer=True)
    old_constants = {"k": 3, "same": "a", "gone": 1, "other": 0.1}
    new_constants = {"y": 0.5, "same": "a", "come": True, "other": 0.25}
    old = SearchSpace([x, y], constants=old_constants)
    return SpaceChange.between(old, SearchSpace([k, x], constants=new_constants))


def test_changes_of_constants():
    # k was 3 and is tuned now; x stayed; y was tuned and is 0.5 now; the others are constants.
    assert change_of_constants().changes == {
        "k": (Change.FREED,),
        "x": (),
        "y": (Change.FIXED,),
        "same": (),
        "come": (Change.ADDED,),
        "other": (Change.VALUE,),
        "gone": (Change.REMOVED,),
    }


def test_changes_of_constants_are_described():
    assert change_of_constants().describe() == [
        "k: was fixed to 3, now from 0 to 9",
        "y: was from 0 to 1, now fixed to 0.5",
        "come: new (fixed to True)",
        "other: fixed to 0.1 before, now to 0.25",
        "gone: removed (was fixed to 1)",
    ]


def test_constants_are_not_shared():
    change = change_of_constants()
    assert (change.shared, change.only_new) == (("x",), ("k",))


def kernels(*names: str) -> Parameter:
    return Parameter.choice("kernel", names)


GAMMA = Parameter.number("gamma", 0, 1)
DEGREE = Parameter.number("degree", 2, 5, integer=True)


def conditional(
    kernel: Parameter, *kernels_with_gamma: str, first: tuple[Parameter, ...] = ()
) -> SearchSpace:
    """A space in which gamma is active for some kernels; by default for all, unconditionally."""
    if not kernels_with_gamma:
        return SearchSpace([*first, kernel, GAMMA])
    codes = tuple(kernel.code(name) for name in kernels_with_gamma)
    condition = Compare(len(first), Comparison.IN, codes)
    return SearchSpace([*first, kernel, GAMMA], conditions={"gamma": condition})


def evaluations_before(change: SpaceChange, configs: list[dict[str, float | str]]) -> Evaluations:
    """Evaluations on the old space; losses 0, 1, ..."""
    losses = np.arange(len(configs), dtype=float)
    return minimised("t", {"size": 1.0}, change.old.values(configs), losses, change.old)


class TestConditions:
    old = conditional(kernels("linear", "radial", "sigmoid"), "radial", "sigmoid")
    new = conditional(kernels("radial", "poly", "linear"), "radial", "poly", first=(DEGREE,))
    shared = conditional(kernels("radial", "linear"), "radial")

    def test_shared_space_has_the_new_condition(self):
        shared = SpaceChange.between(self.old, self.new).shared_space()
        assert shared == self.shared
        assert SearchSpace.from_json(shared.to_json()) == shared

    def test_changed_conditions_are_described(self):
        lines = SpaceChange.between(self.old, self.new).describe()
        text = "gamma: was active if kernel in radial, sigmoid, now active if kernel in radial, "
        assert any(line.startswith(text) for line in lines)

    def test_evaluations_are_recoded(self):
        change = SpaceChange.between(self.old, self.new)
        configs = [
            {"kernel": "linear"},
            {"kernel": "sigmoid", "gamma": 0.5},  # this kernel is not in the new space
            {"kernel": "radial", "gamma": 0.25},
        ]

        shared_evaluations = evaluations_before(change, configs).in_shared(change)

        assert self.shared.configs(shared_evaluations.values) == [configs[0], configs[2]]
        # Losses number the evaluations: the second one is dropped.
        assert shared_evaluations.losses.tolist() == [0, 2]

    def test_shared_values_are_recoded(self):
        change = SpaceChange.between(self.old, self.new)
        values = self.shared.values([{"kernel": "linear"}, {"kernel": "radial", "gamma": 0.25}])
        # Columns degree (new, so NaN), kernel (by the new codes), gamma (inactive: NaN).
        expected = [[np.nan, 2, np.nan], [np.nan, 0, 0.25]]
        np.testing.assert_array_equal(change.to_new(values), expected)

    def test_condition_on_new_choice_is_dropped(self):
        old = conditional(kernels("linear", "radial"))
        new = conditional(kernels("linear", "radial", "poly"), "poly")
        change = SpaceChange.between(old, new)
        assert change.shared_space() == conditional(kernels("linear", "radial"))
        assert change.describe() == [
            "kernel: now also poly",
            "gamma: was always active, now active if kernel in poly",
        ]

    def test_condition_on_new_parent_is_dropped(self):
        old = SearchSpace([GAMMA], constants={"kernel": "radial"})
        change = SpaceChange.between(old, conditional(kernels("linear", "radial"), "radial"))
        assert change.shared_space() == SearchSpace([GAMMA])
        assert change.only_new == ("kernel",)

    def test_condition_ignores_order_of_columns(self):
        """The degree was added before the others, and the kernels changed places."""
        old = conditional(kernels("linear", "radial"), "radial")
        new = conditional(kernels("radial", "linear"), "radial", first=(DEGREE,))
        assert SpaceChange.between(old, new).describe() == ["degree: new (from 2 to 5)"]

    def test_evaluations_lacking_values_are_dropped(self):
        """Gamma was inactive with the linear kernel, and is always active now."""
        kernel = kernels("linear", "radial")
        change = SpaceChange.between(conditional(kernel, "radial"), conditional(kernel))
        configs = [{"kernel": "linear"}, {"kernel": "radial", "gamma": 1.0}]
        evaluations = evaluations_before(change, configs)
        assert evaluations.in_shared(change).losses.tolist() == [1]


def joined(connective: Connective, comparison: Comparison = Comparison.GREATER) -> SearchSpace:
    """A space in which gamma is active depending on the kernel and on the degree."""
    parts = (Compare(1, Comparison.EQUAL, (1.0,)), Compare(0, comparison, (3.0,)))
    conditions = {"gamma": Joined(connective, parts)}
    return SearchSpace([DEGREE, kernels("linear", "radial"), GAMMA], conditions=conditions)


@pytest.mark.parametrize("connective", Connective)
class TestJoinedConditions:
    def test_are_shared_if_all_parts_are(self, connective):
        old = SearchSpace([GAMMA, kernels("linear", "radial"), DEGREE])
        new = joined(connective)
        assert SpaceChange.between(old, new).shared_space().conditions == new.conditions

    def test_are_dropped_if_part_is_new(self, connective):
        old = SearchSpace([kernels("linear", "radial"), GAMMA])  # without the degree
        assert SpaceChange.between(old, joined(connective)).shared_space().conditions == {}

    def test_change_if_a_part_does(self, connective):
        old = joined(connective, Comparison.LESS)
        change = SpaceChange.between(old, joined(connective))
        assert change.changes["gamma"] == (Change.CONDITION,)


def test_unknown_name_suggests_a_shared_one():
    with pytest.raises(UnknownNameError, match=r"'kost'.*did you mean 'cost'"):
        change_of_benchmark("svm-b").new_share("kost")


def test_unshared_names_cannot_be_drawn():
    with pytest.raises(UnknownNameError, match="unknown shared hyperparameter 'gamma'"):
        change_of_benchmark("svm-b").draw_only_new("gamma", np.random.default_rng(0))


def test_unchanged_space_has_no_new_range():
    space = change_of_benchmark("svm-b").new
    # From the space to itself.
    change = SpaceChange.between(space, space)
    with pytest.raises(InvalidSpaceError, match="no part of the range of 'cost' is new"):
        change.draw_only_new("cost", np.random.default_rng(0))


def test_pickled_change_is_the_same():
    space = change_of_benchmark("svm-b").new
    # From a space to itself.
    change = pickle.loads(pickle.dumps(SpaceChange.between(space, space)))
    assert change.describe() == ["nothing changed"]
    assert (change.shared, change.only_new) == (space.names, ())


def test_evaluations_on_another_space_are_refused():
    other_space = SearchSpace([Parameter.number("cost", 1, 2)])
    evaluations = minimised("t", {}, np.ones((1, 1)), np.zeros(1), other_space)
    with pytest.raises(InvalidSpaceError, match="task 't' are neither on the old search space"):
        evaluations.in_shared(change_of_benchmark("svm-b"))


@pytest.mark.parametrize("count", [3, 0])
def test_no_shared_evaluations_have_right_shape(count):
    """All evaluations are at x = 1, outside the new range, or there are none."""
    change = change_of(number(0, 10), number(5, 6))
    evaluations = minimised("t", {}, np.ones((count, 1)), np.zeros(count), change.old)
    shared = evaluations.in_shared(change)
    assert (shared.values.shape, shared.losses.shape) == ((0, 1), (0,))
    assert change.to_new(shared.values).shape == (0, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (log(2**-5, 2**5), log(2**-10, 2**12)),
        (number(0.2, 0.3), number(0, 1)),
        (number(-1, 0.7), number(0, 1)),
        (number(0.3, 2), number(0, 1)),
    ],
)
def test_new_floats_follow_the_prior(old, new):
    change = change_of(old, new)
    rng = np.random.default_rng(0)
    drawn = np.array([change.draw_only_new("x", rng) for _ in range(2000)])
    prior = new.decode(rng.random(20000))
    # What uniform draws on the new range give outside of the old one.
    only_new = prior[(prior < old.lower) | (prior > old.upper)]
    assert kstest(new.encode(drawn), new.encode(only_new)).pvalue > 0.01


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ints(3, 4), ints(1, 8)),
        (ints(3, 4), ints(1, 8, log=True)),
        (choices("a", "b"), choices("c", "a", "d", "e")),
        (choices(4, 8, ordered=True), choices(2, 4, 8, 16, 32, ordered=True)),
    ],
)
def test_new_discrete_values_follow_the_prior(old, new):
    change = change_of(old, new)
    rng = np.random.default_rng(0)
    drawn = [new.value(change.draw_only_new("x", rng)) for _ in range(4000)]
    prior = [new.value(coded) for coded in new.decode(rng.random(40000)).tolist()]
    # What uniform draws on the new range give outside of the old one.
    only_new = [value for value in prior if not is_allowed(value, old)]
    assert set(drawn) == set(only_new)
    for value in set(drawn):
        share = only_new.count(value) / len(only_new)
        assert drawn.count(value) / len(drawn) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize(
    ("old_range", "only_new"),
    [((math.nextafter(0.1, 1), 1.0), 0.1), ((0.1, math.nextafter(1, 0)), 1.0)],
)
def test_only_new_float_is_drawn(old_range, only_new):
    """Rounding would lead to the old range, which is one float smaller."""
    change = change_of(number(*old_range), number(0.1, 1))
    rng = np.random.default_rng(0)
    assert {change.draw_only_new("x", rng) for _ in range(100)} == {only_new}


def is_allowed(value: bool | int | float | str, parameter: Parameter) -> bool:
    """Whether a native value is in the range or among the choices, without the package's codes."""
    if parameter.choices:
        return any(type(value) is type(choice) and value == choice for choice in parameter.choices)
    return parameter.lower <= float(value) <= parameter.upper


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    """Any hyperparameter of this name."""
    kind = draw(st.sampled_from(Kind))
    if kind in {Kind.CATEGORICAL, Kind.ORDINAL}:
        values = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
        return Parameter.choice(name, tuple(values), ordered=kind is Kind.ORDINAL)
    log = draw(st.booleans())
    if kind is Kind.INTEGER:
        whole = st.integers(1 if log else -9, 30)
        low, high = sorted((draw(whole), draw(whole)))
    else:
        real = st.floats(1e-6 if log else -10, 30)
        low, high = sorted((draw(real), draw(real)))
        assume(not math.isclose(low, high, abs_tol=1e-9))
    return Parameter.number(name, low, high, log=log, integer=kind is Kind.INTEGER)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """A space of hyperparameters with some of six names, without conditions."""
    names = draw(st.lists(st.sampled_from("uvwxyz"), min_size=1, unique=True))
    return SearchSpace([draw(parameters(name)) for name in names])


def sample_values(space: SearchSpace, n: int = 30) -> np.ndarray:
    return space.decode(space.sample_unit(np.random.default_rng(0), n))


def changes() -> st.SearchStrategy[SpaceChange]:
    return st.builds(SpaceChange.between, spaces(), spaces())


def shared_changes() -> st.SearchStrategy[SpaceChange]:
    """Changes between spaces that share a hyperparameter."""
    return changes().filter(lambda change: bool(change.shared))


@given(changes())
def test_every_hyperparameter_is_shared_or_new(change):
    assert sorted(change.shared + change.only_new) == sorted(change.new.names)
    assert set(change.shared) <= set(change.old.names)


@given(changes())
def test_every_change_is_described(change):
    assert set(change.changes) == {*change.old.names, *change.new.names}
    changed_names = [name for name, changes in change.changes.items() if changes]
    described_names = [line.partition(":")[0] for line in change.describe() if ":" in line]
    assert described_names == changed_names


@given(shared_changes())
def test_shared_space_lies_in_both(change):
    shared = change.shared_space()
    assert shared.names == change.shared
    for config in shared.configs(sample_values(shared)):
        for name, value in config.items():
            assert is_allowed(value, change.old[name])
            assert is_allowed(value, change.new[name])


@given(shared_changes())
def test_evaluations_outside_new_ranges_are_dropped(change):
    values = sample_values(change.old)
    losses = np.arange(len(values), dtype=float)
    evaluations = minimised("t", {"size": 1.0}, values, losses, change.old)

    shared = evaluations.in_shared(change)

    # By loss, the shared part of each configuration that the new space allows.
    expected = {}
    for loss, config in zip(losses, change.old.configs(values), strict=True):
        shared_config = {name: config[name] for name in change.shared}
        if all(is_allowed(value, change.new[name]) for name, value in shared_config.items()):
            expected[loss] = shared_config
    assert (shared.task, shared.context) == ("t", {"size": 1.0})
    assert shared.space == change.shared_space()
    assert shared.losses.tolist() == list(expected)
    assert shared.space.configs(shared.values) == list(expected.values())


@given(shared_changes())
def test_shared_configurations_survive_recoding(change):
    shared = change.shared_space()
    configs = shared.configs(sample_values(shared))
    # As values of the new space, whose other hyperparameters are drawn.
    coded = complete_new_values(change, shared.values(configs))
    for config, new_config in zip(configs, change.new.configs(coded), strict=True):
        assert {name: new_config[name] for name in change.shared} == config


@given(shared_changes())
def test_evaluations_on_new_space_are_shared(change):
    shared = change.shared_space()
    values = sample_values(shared)
    coded = complete_new_values(change, values)
    evaluations = minimised("t", {}, coded, np.arange(float(len(coded))), change.new)
    assert shared.configs(evaluations.in_shared(change).values) == shared.configs(values)


def complete_new_values(change: SpaceChange, values: np.ndarray) -> np.ndarray:
    """Code values of the shared space by the new one; hyperparameters that are new are drawn."""
    coded = change.to_new(values)
    assert coded.shape == (len(values), change.new.dimension)
    is_only_new = np.isin(change.new.names, change.only_new)
    assert np.isnan(coded[:, is_only_new]).all()
    coded[:, is_only_new] = sample_values(change.new, len(values))[:, is_only_new]
    return coded


@given(shared_changes(), st.integers(0, 2**32 - 1))
def test_draws_lie_in_new_range_only(change, seed):
    rng = np.random.default_rng(seed)
    for name in change.shared:
        if change.new_share(name) == 0:
            # No part of its range is new.
            continue
        drawn = change.draw_only_new(name, rng)
        assert change.new[name].allows(np.array([drawn])).all()
        assert not is_allowed(change.new[name].value(drawn), change.old[name])


@given(shared_changes())
def test_zero_share_means_old_range_suffices(change):
    """If no share of a range is new, the old range has all of its values."""
    for name in change.shared:
        assert 0 <= change.new_share(name) <= 1
        if change.new_share(name) == 0:
            new = change.new[name]
            for coded in sample_values(SearchSpace([new]))[:, 0]:
                assert is_allowed(new.value(coded), change.old[name])


@pytest.mark.parametrize("name", ["nas-b", "svm-b"])
def test_new_share_equals_prior_probability(name):
    change = change_of_benchmark(name)
    values = sample_values(change.new, 20000)
    for parameter, column in zip(change.new.parameters, values.T, strict=True):
        old = change.old[parameter.name]
        # Of 20000 random configurations of the new space.
        is_new = [not is_allowed(parameter.value(coded), old) for coded in column.tolist()]
        assert np.mean(is_new) == pytest.approx(change.new_share(parameter.name), abs=0.02)
