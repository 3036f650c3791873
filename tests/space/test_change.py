"""Changes of a search space: what is shared, what is new, and how evaluations are recoded."""

import math

import numpy as np
import pytest
from histories import minimised
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kstest

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered.benchmarks._adjustment import Steps
from hpobench_ordered.benchmarks.adjustments import FINITE, SEARCHED
from hpobench_ordered.errors import InvalidSpaceError, UnknownNameError
from hpobench_ordered.space import Change, Compare, Comparison, Connective, Joined, SpaceChange
from hpobench_ordered.space.parameters import Kind, Parameter

ADJUSTMENT_OF_BENCHMARK = {adjustment.name: adjustment for adjustment in (*FINITE, *SEARCHED)}


def change_of_benchmark(name: str) -> SpaceChange:
    """The change of search space in the middle of a benchmark, as of "svm-b" and "nas-b"."""
    adjustment = ADJUSTMENT_OF_BENCHMARK[name]
    space_before = adjustment.make_space(Steps.STEP_1)
    space_after = adjustment.make_space(Steps.STEP_2)
    return SpaceChange.between(space_before, space_after)


def number(lower: float, upper: float, *, log: bool = False, integer: bool = False) -> Parameter:
    """A number x with this range."""
    return Parameter.number("x", lower, upper, log=log, integer=integer)


def log(lower: float, upper: float) -> Parameter:
    """A number x with this range on a logarithmic scale."""
    return number(lower, upper, log=True)


def ints(lower: int, upper: int, *, log: bool = False) -> Parameter:
    """An integer x with this range."""
    return number(lower, upper, log=log, integer=True)


def choices(*values: bool | int | float | str, ordered: bool = False) -> Parameter:
    """A hyperparameter x with these choices."""
    return Parameter.choice("x", values, ordered=ordered)


def ordered(*values: bool | int | float | str) -> Parameter:
    """An ordinal hyperparameter x with these choices."""
    return choices(*values, ordered=True)


def change_of(old: Parameter, new: Parameter) -> SpaceChange:
    """The change from a space of this hyperparameter alone to a space of that one alone."""
    return SpaceChange.between(SearchSpace([old]), SearchSpace([new]))


GREW, SHRANK, MOVED, SCALE = Change.GREW, Change.SHRANK, Change.MOVED, Change.SCALE
TYPE = Change.TYPE
REPLACED = [Change.CHOICES_ADDED, Change.CHOICES_REMOVED]
LINEAR = "on a linear scale"
LOG = "on a log scale"
SHARE_OF_5_TO_8 = math.log(8.5 / 4.5) / math.log(8.5 / 0.5)
"""Share of 5 to 8 in the integers from 1 to 8 on a log scale; each reaches half a step further."""
# fmt: off
ONE_HYPERPARAMETER = [
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
    (ints(1, 4, log=True), ints(1, 8, log=True), ints(1, 4, log=True), SHARE_OF_5_TO_8, [GREW],
     "from 1 to 4, now from 1 to 8"),
    (ints(1, 4), number(0, 8), number(1, 4), 5 / 8, [TYPE, GREW],
     "from 1 to 4 (an integer), now from 0 to 8 (a number)"),
    (number(0, 8), ints(1, 8), None, None, [TYPE, SHRANK],
     "from 0 to 8 (a number), now from 1 to 8 (an integer)"),
    (ints(1, 2), choices(1, 2), None, None, [TYPE],
     "from 1 to 2 (an integer), now 1 or 2 (without an order)"),
    (ordered(5, 10, 15), ints(5, 20), ints(5, 15), 5 / 16, [TYPE],
     "5, 10 or 15 (in this order), now from 5 to 20 (an integer)"),
    (ordered(0.0, 0.5, 1.0), number(0, 1), number(0, 1), 0, [TYPE],
     "0, 0.5 or 1 (in this order), now from 0 to 1 (a number)"),
    (ordered(5, 10, 15), ints(5, 12), ints(5, 12), 0, [TYPE],
     "5, 10 or 15 (in this order), now from 5 to 12 (an integer)"),
    (ints(1, 100), ordered(1, 11, 21, 31), ordered(1, 11, 21, 31), 0, [TYPE],
     "from 1 to 100 (an integer), now 1, 11, 21 or 31 (in this order)"),
    (ordered(10, 20, 30), ordered(5, 15, 25, 35), ordered(15, 25), 0.5,
     REPLACED, "10, 20 or 30, now 5, 15, 25 or 35"),
    (choices(1, 2), ints(1, 4), None, None, [TYPE],
     "1 or 2 (without an order), now from 1 to 4 (an integer)"),
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
"""The hyperparameter x in an old and in a new space, and what follows.

These are the hyperparameter with the values that both allow (None if there are none: then x is not
shared), the share of the new range that is new, the kinds of changes, and their description.
"""


DESCRIBED = [
    (old, new, both is not None, changes, text)
    for old, new, both, _, changes, text in ONE_HYPERPARAMETER
]
SHARED = [(old, new, both) for old, new, both, _, _, _ in ONE_HYPERPARAMETER if both is not None]
SHARES = [(old, new, share) for old, new, _, share, _, _ in ONE_HYPERPARAMETER if share is not None]
NOT_SHARED = [(old, new) for old, new, both, _, _, _ in ONE_HYPERPARAMETER if both is None]


@pytest.mark.parametrize(("old", "new", "is_shared", "changes", "text"), DESCRIBED)
def test_changes_of_a_hyperparameter_are_described(old, new, is_shared, changes, text):
    """The hyperparameter x has changed from `old` to `new`; without a change there is no text.

    It counts as new if the old and the new one have no value in common.
    """
    change = change_of(old, new)

    line = f"x: {text}" if text else "nothing changed"
    note = "" if is_shared else " (counted as new)"
    assert list(change.changes["x"]) == changes
    assert change.describe() == [line + note]


@pytest.mark.parametrize(("old", "new", "intersection"), SHARED)
def test_overlapping_ranges_are_shared(old, new, intersection):
    """The hyperparameter x is in both spaces; the shared space has the values that both allow."""
    change = change_of(old, new)

    assert change.shared == ("x",)
    assert change.only_new == ()
    assert change.shared_space() == SearchSpace([intersection])


@pytest.mark.parametrize(("old", "new", "expected_share"), SHARES)
def test_new_share_equals_expected_share(old, new, expected_share):
    """The share of the new range of x that the old one lacks."""
    new_share = change_of(old, new).new_share("x")

    # A share of 0 must be exact: it says that there is nothing new to draw.
    assert new_share == pytest.approx(expected_share, rel=1e-6, abs=0)


@pytest.mark.parametrize(("old", "new"), NOT_SHARED)
def test_ranges_without_overlap_are_not_shared(old, new):
    """The hyperparameter x is in both spaces, but counts as new: no value of it is in both."""
    change = change_of(old, new)

    assert change.shared == ()
    assert change.only_new == ("x",)
    with pytest.raises(InvalidSpaceError, match="share no hyperparameter"):
        change.shared_space()


def change_of_constants() -> SpaceChange:
    """A change that adds, removes and changes constants, fixes a hyperparameter and frees one.

    x stays a hyperparameter, k becomes one, and y becomes a constant.
    """
    x = Parameter.number("x", 0, 1)
    y = Parameter.number("y", 0, 1)
    k = Parameter.number("k", 0, 9, integer=True)
    old = SearchSpace([x, y], constants={"k": 3, "kept": "a", "dropped": 1, "altered": 0.1})
    new = SearchSpace([k, x], constants={"y": 0.5, "kept": "a", "added": True, "altered": 0.25})
    return SpaceChange.between(old, new)


def test_changes_of_constants_are_found():
    """Each name has its kind of change, and x and `kept`, which stayed the same, have none.

    k was 3 and is tuned now; y was tuned and is 0.5 now; the others are constants.
    """
    assert change_of_constants().changes == {
        "k": (Change.FREED,),
        "x": (),
        "y": (Change.FIXED,),
        "kept": (),
        "added": (Change.ADDED,),
        "altered": (Change.VALUE,),
        "dropped": (Change.REMOVED,),
    }


def test_changes_of_constants_are_described():
    """There is a line for all that changed, but none for x and `kept`."""
    assert change_of_constants().describe() == [
        "k: was fixed to 3, now from 0 to 9",
        "y: was from 0 to 1, now fixed to 0.5",
        "added: new (fixed to True)",
        "altered: fixed to 0.1 before, now to 0.25",
        "dropped: removed (was fixed to 1)",
    ]


def kernels(*names: str) -> Parameter:
    """A categorical hyperparameter "kernel" with these choices."""
    return Parameter.choice("kernel", names)


GAMMA = Parameter.number("gamma", 0, 1)
DEGREE = Parameter.number("degree", 2, 5, integer=True)


def space_with_gamma(
    kernel: Parameter, *kernels_with_gamma: str, first: tuple[Parameter, ...] = ()
) -> SearchSpace:
    """A space of a kernel and gamma, which is active for these kernels; without any, for all.

    The hyperparameters `first` come before them.
    """
    hyperparameters = [*first, kernel, GAMMA]
    if not kernels_with_gamma:
        return SearchSpace(hyperparameters)
    column_of_kernel = len(first)
    codes = tuple(kernel.code(name) for name in kernels_with_gamma)  # their places in the choices
    condition = Compare(column_of_kernel, Comparison.IN, codes)
    return SearchSpace(hyperparameters, conditions={"gamma": condition})


def evaluations_before(change: SpaceChange, configs: list[dict[str, float | str]]) -> Evaluations:
    """Evaluations of configurations of the old space, with the losses 0, 1, ... in their order."""
    losses = np.arange(len(configs), dtype=float)
    any_context = {"size": 1.0}
    return minimised("t", any_context, change.old.values(configs), losses, change.old)


OLD_KERNELS = space_with_gamma(kernels("linear", "radial", "sigmoid"), "radial", "sigmoid")
NEW_KERNELS = space_with_gamma(
    kernels("radial", "poly", "linear"), "radial", "poly", first=(DEGREE,)
)
SHARED_KERNELS = space_with_gamma(kernels("radial", "linear"), "radial")
"""Both have the kernels linear and radial, the latter with gamma.

The kernel sigmoid is only in the old space; the kernel poly and the degree are only in the new one.
"""


def change_of_kernels() -> SpaceChange:
    """The change from the space of the kernels linear, radial and sigmoid to a new one.

    The new space has the degree, the kernels radial, poly and linear in this order, and gamma.
    """
    return SpaceChange.between(OLD_KERNELS, NEW_KERNELS)


class TestConditions:
    def test_shared_space_has_the_new_condition(self):
        """Gamma is active for the radial kernel, the only one with gamma in both spaces."""
        assert change_of_kernels().shared_space() == SHARED_KERNELS

    def test_changed_conditions_are_described(self):
        """In the old space sigmoid was the other kernel with gamma, in the new one it is poly."""
        lines = change_of_kernels().describe()

        before = "gamma: was active if kernel in radial, sigmoid"
        after = "now active if kernel in radial, "
        assert any(line.startswith(f"{before}, {after}") for line in lines)

    def test_evaluations_are_recoded(self):
        """An evaluation with the kernel sigmoid, which the new space lacks, is dropped."""
        change = change_of_kernels()
        linear = {"kernel": "linear"}
        sigmoid = {"kernel": "sigmoid", "gamma": 0.5}
        radial = {"kernel": "radial", "gamma": 0.25}
        evaluations = evaluations_before(change, [linear, sigmoid, radial])  # losses 0, 1 and 2

        shared_evaluations = evaluations.in_shared(change)

        assert SHARED_KERNELS.configs(shared_evaluations.values) == [linear, radial]
        assert shared_evaluations.losses.tolist() == [0, 2]

    def test_shared_values_are_recoded(self):
        """Values of the shared space, a kernel and gamma, become those of the new space.

        It has the degree before them, which is new and becomes NaN, and the kernels radial, poly
        and linear with the codes 0, 1 and 2.
        """
        configs = [{"kernel": "linear"}, {"kernel": "radial", "gamma": 0.25}]

        new_values = change_of_kernels().to_new(SHARED_KERNELS.values(configs))

        linear = [np.nan, 2, np.nan]  # gamma is inactive
        radial = [np.nan, 0, 0.25]
        np.testing.assert_array_equal(new_values, [linear, radial])

    def test_condition_on_new_choice_is_dropped(self):
        """If gamma is active for new kernels alone, it is always active in the shared space.

        The kernel poly, the only one with gamma in the new space, is not in the old one.
        """
        old = space_with_gamma(kernels("linear", "radial"))
        new = space_with_gamma(kernels("linear", "radial", "poly"), "poly")

        change = SpaceChange.between(old, new)

        assert change.shared_space() == space_with_gamma(kernels("linear", "radial"))
        assert change.describe() == [
            "kernel: now also poly",
            "gamma: was always active, now active if kernel in poly",
        ]

    def test_condition_on_new_parent_is_dropped(self):
        """If gamma depends on a new hyperparameter, it is always active in the shared space.

        The kernel was a constant and is a hyperparameter now.
        """
        old = SearchSpace([GAMMA], constants={"kernel": "radial"})
        new = space_with_gamma(kernels("linear", "radial"), "radial")

        change = SpaceChange.between(old, new)

        assert change.shared_space() == SearchSpace([GAMMA])
        assert change.only_new == ("kernel",)

    def test_evaluations_lacking_values_are_dropped(self):
        """An evaluation without a value that the new space always needs is dropped.

        Gamma was active for the radial kernel alone, and is always active now.
        """
        kernel = kernels("linear", "radial")
        old = space_with_gamma(kernel, "radial")
        new = space_with_gamma(kernel)
        change = SpaceChange.between(old, new)
        linear_without_gamma = {"kernel": "linear"}
        radial = {"kernel": "radial", "gamma": 1.0}
        evaluations = evaluations_before(change, [linear_without_gamma, radial])  # losses 0 and 1

        shared = evaluations.in_shared(change)

        assert shared.losses.tolist() == [1]


def space_with_joined_condition(
    connective: Connective, comparison_of_degree: Comparison = Comparison.GREATER
) -> SearchSpace:
    """A space of the degree, the kernel and gamma, which is active depending on both of the others.

    With `Connective.AND`, the kernel must be radial and the degree greater than 3 (or compare with
    3 in another way); with `Connective.OR`, one of these must be so.
    """
    column_of_degree, column_of_kernel = 0, 1
    code_of_radial = 1.0
    is_radial = Compare(column_of_kernel, Comparison.EQUAL, (code_of_radial,))
    has_degree = Compare(column_of_degree, comparison_of_degree, (3.0,))
    conditions = {"gamma": Joined(connective, (is_radial, has_degree))}
    return SearchSpace([DEGREE, kernels("linear", "radial"), GAMMA], conditions=conditions)


@pytest.mark.parametrize("connective", Connective)
class TestJoinedConditions:
    def test_joined_condition_is_shared_if_all_parts_are(self, connective):
        """The shared space has a condition on the kernel and the degree, as both are shared."""
        old = SearchSpace([GAMMA, kernels("linear", "radial"), DEGREE])
        new = space_with_joined_condition(connective)

        shared = SpaceChange.between(old, new).shared_space()

        assert shared.conditions == new.conditions

    def test_joined_condition_is_dropped_if_part_is_new(self, connective):
        """The shared space has no condition on the kernel and the degree, as the degree is new."""
        old = SearchSpace([kernels("linear", "radial"), GAMMA])
        new = space_with_joined_condition(connective)

        shared = SpaceChange.between(old, new).shared_space()

        assert shared.conditions == {}

    def test_joined_condition_changes_if_a_part_does(self, connective):
        """Gamma's condition has changed if one of its two parts has.

        The degree had to be less than 3, and has to be greater now.
        """
        old = space_with_joined_condition(connective, Comparison.LESS)
        new = space_with_joined_condition(connective, Comparison.GREATER)

        change = SpaceChange.between(old, new)

        assert change.changes["gamma"] == (Change.CONDITION,)


def test_unknown_name_suggests_a_shared_one():
    with pytest.raises(UnknownNameError, match=r"'kost'.*did you mean 'cost'"):
        change_of_benchmark("svm-b").new_share("kost")


def change_to_same_space() -> SpaceChange:
    """A change that changes nothing, from the space of the benchmark svm-b to itself."""
    space = change_of_benchmark("svm-b").new
    return SpaceChange.between(space, space)


def test_unchanged_space_has_no_new_range():
    with pytest.raises(InvalidSpaceError, match="no part of the range of 'cost' is new"):
        change_to_same_space().draw_only_new("cost", np.random.default_rng(0))


def test_evaluations_on_another_space_are_refused():
    """The space of the evaluations is neither the old one nor the new one of the change."""
    other_space = SearchSpace([Parameter.number("cost", 1, 2)])
    evaluations = minimised("t", {}, np.ones((1, 1)), np.zeros(1), other_space)

    with pytest.raises(InvalidSpaceError, match="task 't' are neither on the old search space"):
        evaluations.in_shared(change_of_benchmark("svm-b"))


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
    """Draws are distributed like draws from the new range that happen to lie outside the old one.

    The test of Kolmogorov and Smirnov compares them on the unit scale of the new range.
    """
    change = change_of(old, new)
    rng = np.random.default_rng(0)

    drawn = np.array([change.draw_only_new("x", rng) for _ in range(2000)])

    from_prior = new.decode(rng.random(20000))
    is_only_new = (from_prior < old.lower) | (from_prior > old.upper)
    expected = from_prior[is_only_new]
    p_value_of_same_distribution = kstest(new.encode(drawn), new.encode(expected)).pvalue
    assert p_value_of_same_distribution > 0.01


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
    """Draws are distributed like draws from the new range that the old one does not allow."""
    change = change_of(old, new)
    rng = np.random.default_rng(0)

    drawn = [new.value(change.draw_only_new("x", rng)) for _ in range(4000)]

    from_prior = [new.value(coded) for coded in new.decode(rng.random(40000)).tolist()]
    expected = [value for value in from_prior if not is_allowed(value, old)]
    assert set(drawn) == set(expected)
    for value in set(drawn):
        share = drawn.count(value) / len(drawn)
        expected_share = expected.count(value) / len(expected)
        five_standard_errors = 0.04  # of a share of 4000 draws, about
        assert share == pytest.approx(expected_share, abs=five_standard_errors)


def is_allowed(value: bool | int | float | str, parameter: Parameter) -> bool:
    """Whether a hyperparameter may have a value, found out without the package's codes."""
    if parameter.choices:
        # In Python, True equals 1; as choices, they are different.
        return any(type(value) is type(choice) and value == choice for choice in parameter.choices)
    return parameter.lower <= float(value) <= parameter.upper


@st.composite
def parameters(draw: st.DrawFn, name: str) -> Parameter:
    """Draw any hyperparameter of this name: choices, an integer or a real number."""
    kind = draw(st.sampled_from(Kind))
    if kind in {Kind.CATEGORICAL, Kind.ORDINAL}:
        choices = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
        return Parameter.choice(name, tuple(choices), ordered=kind is Kind.ORDINAL)

    log = draw(st.booleans())  # a logarithmic scale begins above 0
    if kind is Kind.INTEGER:
        integers = st.integers(1 if log else -9, 30)
        lower, upper = sorted((draw(integers), draw(integers)))
    else:
        floats = st.floats(1e-6 if log else -10, 30)
        lower, upper = sorted((draw(floats), draw(floats)))
        is_empty_range = math.isclose(lower, upper, abs_tol=1e-9)
        assume(not is_empty_range)
    return Parameter.number(name, lower, upper, log=log, integer=kind is Kind.INTEGER)


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    """Draw a space of up to six hyperparameters, u to z, without conditions."""
    names = draw(st.lists(st.sampled_from("uvwxyz"), min_size=1, unique=True))
    return SearchSpace([draw(parameters(name)) for name in names])


def sample_values(space: SearchSpace, n: int = 30) -> np.ndarray:
    """Sample the coded values of n configurations, shape (n, d), the same at each call."""
    return space.decode(space.sample_unit(np.random.default_rng(0), n))


def changes() -> st.SearchStrategy[SpaceChange]:
    """Changes between any two spaces."""
    return st.builds(SpaceChange.between, spaces(), spaces())


def shared_changes() -> st.SearchStrategy[SpaceChange]:
    """Changes between spaces that share a hyperparameter."""
    return changes().filter(lambda change: bool(change.shared))


@given(changes())
def test_every_hyperparameter_is_shared_or_new(change):
    """Each hyperparameter of the new space; shared ones are in the old space, too."""
    assert sorted(change.shared + change.only_new) == sorted(change.new.names)
    assert set(change.shared) <= set(change.old.names)


@given(shared_changes())
def test_shared_space_lies_in_both(change):
    """Each value of its configurations is allowed in the old space and in the new one."""
    shared = change.shared_space()

    assert shared.names == change.shared
    for config in shared.configs(sample_values(shared)):
        for name, value in config.items():
            assert is_allowed(value, change.old[name])
            assert is_allowed(value, change.new[name])


@given(shared_changes())
def test_evaluations_outside_new_ranges_are_dropped(change):
    """An evaluation is kept if the new space allows the values of its shared hyperparameters.

    Of its configuration, these hyperparameters are kept.
    """
    values = sample_values(change.old)
    losses = np.arange(len(values), dtype=float)
    evaluations = minimised("t", {"size": 1.0}, values, losses, change.old)
    expected_losses = []
    expected_configs = []
    for loss, config in zip(losses, change.old.configs(values), strict=True):
        shared_config = {name: config[name] for name in change.shared}
        if all(is_allowed(value, change.new[name]) for name, value in shared_config.items()):
            expected_losses.append(loss)
            expected_configs.append(shared_config)

    shared = evaluations.in_shared(change)

    assert shared.losses.tolist() == expected_losses
    assert shared.space.configs(shared.values) == expected_configs


@given(shared_changes())
def test_shared_configurations_survive_recoding(change):
    """Configurations of the shared space are still the same after they were coded by the new one.

    The hyperparameters that only the new space has get any values.
    """
    shared = change.shared_space()
    configs = shared.configs(sample_values(shared))

    new_values = complete_new_values(change, shared.values(configs))

    for config, new_config in zip(configs, change.new.configs(new_values), strict=True):
        assert {name: new_config[name] for name in change.shared} == config


@given(shared_changes())
def test_evaluations_on_new_space_are_shared(change):
    """Evaluations on the new space can be converted to the shared one, too.

    Their values here are allowed in both spaces, so that all evaluations are kept.
    """
    shared = change.shared_space()
    values = sample_values(shared)
    new_values = complete_new_values(change, values)
    losses = np.zeros(len(new_values))
    evaluations = minimised("t", {}, new_values, losses, change.new)

    shared_evaluations = evaluations.in_shared(change)

    assert shared.configs(shared_evaluations.values) == shared.configs(values)


def complete_new_values(change: SpaceChange, values: np.ndarray) -> np.ndarray:
    """Turn coded values of the shared space, (n, d), into those of whole configurations of the new.

    `SpaceChange.to_new` leaves NaN for hyperparameters that only the new space has; any values are
    filled in for them.
    """
    new_values = change.to_new(values)
    assert new_values.shape == (len(values), change.new.dimension)
    is_only_new = np.isin(change.new.names, change.only_new)
    assert np.isnan(new_values[:, is_only_new]).all()

    any_values = sample_values(change.new, len(values))
    new_values[:, is_only_new] = any_values[:, is_only_new]
    return new_values


@given(shared_changes(), st.integers(0, 2**32 - 1))
def test_draws_lie_in_new_range_only(change, seed):
    """`draw_only_new` draws a value that the new space allows and the old one does not."""
    rng = np.random.default_rng(seed)
    names_with_new_part = [name for name in change.shared if change.new_share(name) > 0]

    for name in names_with_new_part:
        drawn = change.draw_only_new(name, rng)
        assert change.new[name].allows(np.array([drawn])).all()
        assert not is_allowed(change.new[name].value(drawn), change.old[name])


@given(shared_changes())
def test_zero_share_means_old_range_suffices(change):
    """If no share of a range is new, the old range has all of its values."""
    names_without_new_part = [name for name in change.shared if change.new_share(name) == 0]

    for name in names_without_new_part:
        new = change.new[name]
        for coded in sample_values(SearchSpace([new])).ravel():
            assert is_allowed(new.value(coded), change.old[name])
