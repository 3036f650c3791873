"""Search spaces: how configurations are coded, checked and described."""

import math
import pickle
import sys

import ConfigSpace
import numpy as np
import pandas as pd
import pytest
from histories import minimised
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from hpobench_ordered import Parameter, SearchSpace
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError, MissingExtraError


def mixed_configspace() -> ConfigSpace.ConfigurationSpace:
    """A space of ConfigSpace with every kind of hyperparameter and condition there is."""
    kernel = ConfigSpace.Categorical("kernel", ["linear", "poly", "radial"])
    gamma = ConfigSpace.Float("gamma", (1e-3, 10.0), log=True)
    trees = ConfigSpace.Integer("trees", (2, 256), log=True)
    depth = ConfigSpace.Integer("depth", (-3, 4))
    level = ConfigSpace.Categorical("level", [1, 2, 4], ordered=True)
    flag = ConfigSpace.Categorical("flag", [True, False])
    alpha = ConfigSpace.Float("alpha", (0.0, 1.0))
    nested = ConfigSpace.Float("nested", (-5.0, 5.0))
    fixed = ConfigSpace.Constant("fixed", 3)
    space = ConfigSpace.ConfigurationSpace()
    space.add(kernel, gamma, trees, depth, level, flag, alpha, nested, fixed)

    gamma_is_active = ConfigSpace.InCondition(gamma, kernel, ["poly", "radial"])
    alpha_is_active = ConfigSpace.AndConjunction(
        ConfigSpace.EqualsCondition(alpha, flag, True),
        ConfigSpace.GreaterThanCondition(alpha, trees, 10),
    )
    nested_is_active = ConfigSpace.OrConjunction(
        ConfigSpace.LessThanCondition(nested, gamma, 1.0),
        ConfigSpace.NotEqualsCondition(nested, alpha, 0.5),
    )
    space.add(gamma_is_active, alpha_is_active, nested_is_active)
    return space


TWO_CHOICES = {"type": "categorical", "choices": [1, 2]}
FROM_0_TO_9 = {"lower": 0, "upper": 9, "log": False}


@pytest.fixture(scope="module")
def space():
    """A search space with every kind of hyperparameter and condition there is."""
    return SearchSpace.from_configspace(mixed_configspace())


class TestCodings:
    def test_samples_are_valid_for_configspace(self, space):
        """Samples of the package's space are valid in the equal space of ConfigSpace."""
        configspace = mixed_configspace()
        rng = np.random.default_rng(0)

        configs = space.configs(space.decode(space.sample_unit(rng, 300)))

        for config in configs:
            # Raises an error if the configuration is not valid.
            ConfigSpace.Configuration(configspace, values=config)

    def test_samples_of_configspace_are_valid(self, space):
        """Samples of ConfigSpace are the same after they have been coded as a row and decoded."""
        configspace = mixed_configspace()
        configspace.seed(3)

        for config in map(dict, configspace.sample_configuration(300)):
            row = space.row(config)
            assert space.configs(row[None]) == [config]

    @given(st.integers(0, 2**32 - 1))
    def test_unit_vectors_round_trip(self, space, seed):
        """Unit vectors of 20 configurations are the same after they were decoded and encoded."""
        unit_vectors = space.sample_unit(np.random.default_rng(seed), 20)

        again = space.encode(space.decode(unit_vectors))

        np.testing.assert_allclose(again, unit_vectors, atol=1e-12)

    @given(st.integers(0, 2**32 - 1))
    def test_sampled_unit_vectors_are_canonical(self, space, seed):
        """In canonical vectors discrete values are in the middle of their bins, inactive ones NaN.

        So equal configurations have equal ones.
        """
        unit_vectors = space.sample_unit(np.random.default_rng(seed), 20)

        np.testing.assert_array_equal(space.canonical(unit_vectors), unit_vectors)

    @given(st.integers(0, 2**32 - 1))
    def test_configurations_round_trip(self, space, seed):
        """Dicts, a data frame and an array of coded values are read as the same coded values."""
        values = space.decode(space.sample_unit(np.random.default_rng(seed), 20))
        configs = space.configs(values)

        for same_configs in (configs, pd.DataFrame(configs), values):
            np.testing.assert_array_equal(space.values(same_configs), values)

    def test_sampling_is_uniform_on_log_scale(self):
        """An integer is drawn with the share of its bin in the range, on the logarithmic scale.

        The bin of an integer reaches half a step to either side.
        """
        space = SearchSpace([Parameter.number("n", 1, 100, integer=True, log=True)])

        drawn = space.decode(space.sample_unit(np.random.default_rng(0), 200_000))

        width_of_range = math.log(100.5 / 0.5)
        for n in (1, 2, 10, 100):
            width_of_bin = math.log((n + 0.5) / (n - 0.5))
            share = np.mean(drawn == n)
            four_standard_errors = 0.004  # at most
            assert share == pytest.approx(width_of_bin / width_of_range, abs=four_standard_errors)


VALID_CONFIG = {
    "kernel": "radial",
    "gamma": 5.0,
    "trees": 5,
    "depth": 0,
    "level": 2,
    "flag": False,
    "nested": 1.0,
}
"""A valid configuration of `mixed_configspace`; alpha is inactive in it, as flag is False."""

# What makes a valid configuration wrong, by name, and words of the message that says so.
WRONG_VALUES = [
    ({"trees": 1}, ["trees", "[2, 256]", "got 1"]),
    ({"trees": 2.5}, ["trees", "an integer", "2.5"]),
    ({"gamma": math.nan}, ["gamma", "[0.001, 10.0]", "nan"]),
    ({"gamma": "a lot"}, ["gamma", "'a lot'", "str"]),
    ({"gamma": None}, ["gamma", "None"]),
    ({"kernel": "radical"}, ["kernel", "did you mean 'radial'"]),
    ({"flag": 0}, ["flag", "one of True, False", "got 0"]),
    ({"depth": True}, ["depth", "bool"]),
    ({"fixed": 4}, ["fixed", "always 3", "got 4"]),
    ({"tree": 5}, ["unknown", "'tree'", "did you mean 'trees'"]),
]


class TestValidation:
    @pytest.mark.parametrize(("wrong_value", "words"), WRONG_VALUES)
    def test_message_names_value_and_range(self, space, wrong_value, words):
        """One value of a configuration is wrong, and the message has these words."""
        wrong_config = {**VALID_CONFIG, **wrong_value}

        with pytest.raises(InvalidConfigError) as caught:
            space.validate(wrong_config)

        for word in words:
            assert word in str(caught.value)

    def test_wrong_values_are_refused_in_lists(self, space):
        """The error tells the number of the wrong configuration: 1 is the second, after 0."""
        wrong_config = {**VALID_CONFIG, "trees": 1}

        with pytest.raises(InvalidConfigError, match="configuration 1"):
            space.values([VALID_CONFIG, wrong_config])

    @pytest.mark.parametrize("wrong_value", [wrong_value for wrong_value, _ in WRONG_VALUES])
    def test_wrong_values_are_refused_in_frames(self, space, wrong_value):
        """One value of the second configuration, a row of a data frame, is wrong."""
        wrong_config = {**VALID_CONFIG, **wrong_value}
        frame = pd.DataFrame([VALID_CONFIG, wrong_config], dtype=object)

        with pytest.raises(InvalidConfigError):
            space.values(frame)

    def test_missing_hyperparameter_is_named(self, space):
        without_gamma = {name: value for name, value in VALID_CONFIG.items() if name != "gamma"}

        with pytest.raises(InvalidConfigError, match="'gamma' is missing: a number in"):
            space.validate(without_gamma)

    @pytest.mark.parametrize("name", ["trees", "gamma"])
    def test_missing_column_is_named(self, space, name):
        with pytest.raises(InvalidConfigError, match=f"'{name}' is missing"):
            space.values(pd.DataFrame([VALID_CONFIG]).drop(columns=name))

    def test_column_may_be_missing_if_inactive(self, space):
        """The valid configuration has no alpha, which is inactive because flag is False."""
        frame_without_alpha = pd.DataFrame([VALID_CONFIG])

        values = space.values(frame_without_alpha)

        column_of_alpha = space.names.index("alpha")
        assert np.isnan(values[0, column_of_alpha])

    def test_configuration_must_be_a_dict(self, space):
        with pytest.raises(InvalidConfigError, match="a configuration must be a dict, but got"):
            space.validate([0.1, 5])

    @pytest.mark.parametrize(
        "configs",
        [
            iter([VALID_CONFIG]),
            [ConfigSpace.Configuration(mixed_configspace(), values={**VALID_CONFIG, "fixed": 3})],
            [{**VALID_CONFIG, "trees": np.int32(5), "depth": 0.0, "gamma": np.float32(5.0)}],
        ],
        ids=["iterator", "ConfigSpace", "numpy"],
    )
    def test_other_forms_are_coded_alike(self, space, configs):
        np.testing.assert_array_equal(space.values(configs), space.values([VALID_CONFIG]))

    @pytest.mark.parametrize("empty", [[], pd.DataFrame([VALID_CONFIG]).iloc[:0]])
    def test_no_configurations_have_shape(self, space, empty):
        assert space.values(empty).shape == (0, space.dimension)

    @pytest.mark.parametrize("wrong", [VALID_CONFIG, [[0.0] * 8]], ids=["dict", "list of lists"])
    def test_configurations_must_be_listed_dicts(self, space, wrong):
        with pytest.raises(InvalidConfigError, match="configurations must be a list of dicts"):
            space.values(wrong)

    def test_arrays_must_have_a_column_each(self, space):
        """The space has eight hyperparameters."""
        two_columns = np.zeros((3, 2))

        with pytest.raises(InvalidConfigError, match=r"shape \(n, 8\)"):
            space.values(two_columns)

    def test_codes_of_arrays_must_be_choices(self, space):
        """There are three kernels, with the codes 0, 1 and 2: there is no kernel 3."""
        row = space.row(VALID_CONFIG)
        row[space.names.index("kernel")] = 3
        array_of_one_row = row[None]

        with pytest.raises(InvalidConfigError, match="configuration 0: kernel must be the index"):
            space.values(array_of_one_row)


class TestInactiveHyperparameters:
    def test_inactive_values_of_arrays_are_ignored(self, space):
        """In a row, an inactive hyperparameter is NaN; another number for it becomes NaN again."""
        row = space.row(VALID_CONFIG)
        outside_any_range = 1e9
        filled_row = np.where(np.isnan(row), outside_any_range, row)

        values = space.values(filled_row[None])

        np.testing.assert_array_equal(values, row[None])

    @pytest.mark.parametrize(
        "wrong_but_inactive",
        [{"alpha": 1e9}, {"alpha": math.inf}, {"kernel": "linear", "gamma": "junk"}],
    )
    def test_inactive_values_of_frames_are_ignored(self, space, wrong_but_inactive):
        """alpha is inactive as flag is False, and gamma is with the linear kernel."""
        configs = [VALID_CONFIG, {**VALID_CONFIG, **wrong_but_inactive}]

        values = space.values(pd.DataFrame(configs))

        np.testing.assert_array_equal(values, space.values(configs))


class TestDescription:
    def test_configspace_round_trips(self, space):
        assert SearchSpace.from_configspace(space.to_configspace()) == space

    def test_optuna_gets_all_but_constants(self, space):
        """Conditional hyperparameters are among them, as Optuna's distributions have no conditions.

        `level` is an ordinal, which Optuna does not have.
        """
        assert space.to_optuna() == {
            "alpha": FloatDistribution(0.0, 1.0),
            "depth": IntDistribution(-3, 4),
            "flag": CategoricalDistribution((True, False)),
            "gamma": FloatDistribution(1e-3, 10.0, log=True),
            "kernel": CategoricalDistribution(("linear", "poly", "radial")),
            "level": CategoricalDistribution((1, 2, 4)),
            "nested": FloatDistribution(-5.0, 5.0),
            "trees": IntDistribution(2, 256, log=True),
        }

    def test_missing_optuna_is_named(self, space, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna.distributions", None)  # importing it fails
        with pytest.raises(MissingExtraError, match="pip install optuna"):
            space.to_optuna()

    def test_json_round_trips(self, space):
        assert SearchSpace.from_json(space.to_json()) == space

    def test_default_of_number_is_middle(self):
        assert Parameter.number("x", 1, 100).default == pytest.approx(50.5)
        assert Parameter.number("x", 1, 100, log=True).default == pytest.approx(10)

    def test_defaults_round_trip_through_json(self):
        """Written and read again, a space has the same default values."""
        x = Parameter.number("x", 1, 100, log=True)
        c = Parameter.choice("c", (1, 2))
        space = SearchSpace([x, c])

        again = SearchSpace.from_json(space.to_json())

        assert again == space
        assert again["x"].default == x.default
        assert again["c"].default == c.default

    def test_pickle_round_trips(self, space):
        assert pickle.loads(pickle.dumps(space)) == space

    def test_text_names_conditions(self, space):
        assert space.describe_condition("gamma") == "kernel in poly, radial"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Parameter.number("x", 2, 1), "empty range"),
            (lambda: Parameter.number("x", 0, 1, log=True), "positive lower bound"),
            (lambda: Parameter.number("x", 0, math.inf), "finite"),
            (lambda: Parameter.choice("x", ("a", "a")), "repeated"),
            (lambda: Parameter.choice("x", ()), "no choices"),
            (lambda: Parameter.choice("x", ("a", "b"), default="c"), "default of x"),
            (lambda: SearchSpace([]), "at least one"),
            (lambda: SearchSpace([Parameter.number("x", 0, 1)] * 2), "defined twice"),
        ],
    )
    def test_impossible_definition_is_refused(self, make, message):
        with pytest.raises(InvalidSpaceError, match=message):
            make()

    @pytest.mark.parametrize(
        ("description", "message"),
        [
            ({**TWO_CHOICES, "weights": [1, 3]}, r"x: weights.*1, 3\]"),
            ({"type": "uniform_int", **FROM_0_TO_9, "q": 3}, "q = 3"),
            ({"type": "normal_float"}, "unsupported hyperparameter type"),
        ],
    )
    def test_unsupported_details_are_refused(self, description, message):
        """What changes the distribution of draws, which spaces do not support, is refused.

        Here that is unequal weights of choices, integers in steps of 3, or a normal distribution.
        """
        with pytest.raises(InvalidSpaceError, match=message):
            SearchSpace.from_json({"hyperparameters": [{"name": "x", **description}]})

    @pytest.mark.parametrize(
        "description",
        [
            {**TWO_CHOICES, "weights": [2, 2]},
            {"type": "uniform_int", **FROM_0_TO_9, "q": 1},
        ],
    )
    def test_details_without_effect_are_accepted(self, description):
        """Details that say what holds anyway are accepted: equal weights, and steps of 1."""
        space = SearchSpace.from_json({"hyperparameters": [{"name": "x", **description}]})

        assert SearchSpace.from_json(space.to_json()) == space

    @pytest.mark.parametrize(
        ("incomplete", "missing_key"),
        [
            ({"type": "uniform_float", "lower": 1e-4, "upper": 1.0}, "log"),
            ({"type": "uniform_int", "upper": 9, "log": True}, "lower"),
            ({"type": "categorical"}, "choices"),
            ({"type": "ordinal"}, "sequence"),
            ({"type": "constant"}, "value"),
            ({"lower": 0, "upper": 1, "log": False}, "type"),
        ],
    )
    def test_missing_keys_are_named(self, incomplete, missing_key):
        """The description of the hyperparameter "rate" lacks a key that its type needs."""
        description = {"name": "rate", **incomplete}

        with pytest.raises(
            InvalidSpaceError, match=f"hyperparameter 'rate' has no {missing_key!r}"
        ):
            SearchSpace.from_json({"hyperparameters": [description]})

    @pytest.mark.parametrize(
        ("children_and_parents", "message"),
        [
            ([("a", "fixed")], "condition of 'a' on constant 'fixed'"),
            ([("fixed", "a")], "condition of constant 'fixed'"),
            ([("a", "missing")], "condition of 'a' on unknown hyperparameter 'missing'"),
            ([("missing", "a")], "condition of unknown hyperparameter 'missing'"),
            ([("a", "b"), ("b", "a")], "depend on each other"),
        ],
    )
    def test_unsupported_conditions_are_refused(self, children_and_parents, message):
        """Conditions of or on a constant or an unknown name are refused, and those in a circle.

        A condition tells that a child is active if its parent is 1.
        """
        hyperparameters = [
            {"type": "categorical", "name": "a", "choices": [1, 2]},
            {"type": "categorical", "name": "b", "choices": [1, 2]},
            {"type": "constant", "name": "fixed", "value": 1},
        ]
        conditions = []
        for child, parent in children_and_parents:
            condition = {"type": "EQ", "child": child, "parent": parent, "value": 1}
            conditions.append(condition)

        with pytest.raises(InvalidSpaceError, match=message):
            SearchSpace.from_json({"hyperparameters": hyperparameters, "conditions": conditions})


TENTHS = Parameter.number("x", 0, 0.3)
LOG_RATE = Parameter.number("x", 1e-6, 32.0, log=True)
BEYOND_BY_ROUNDING = [
    (TENTHS, 0.1 + 0.2, 0.3),
    (TENTHS, np.float32(0.3), 0.3),
    (TENTHS, -1e-11, 0.0),
    (LOG_RATE, 10 ** np.log10(32.0), 32.0),
    (LOG_RATE, np.float32(1e-6), 1e-6),
    (Parameter.number("x", 1, 1000, integer=True), 1000.0000000000001, 1000),
]
"""A hyperparameter, a number that rounding took out of its range, and the bound."""
BEYOND = [
    (TENTHS, 0.3 + 1e-8),
    (TENTHS, np.float32(0.3001)),
    (TENTHS, -1e-8),
    (LOG_RATE, 32.0 * (1 + 1e-7)),
    (LOG_RATE, 0.0),
]


class TestRounding:
    @pytest.mark.parametrize(("parameter", "number", "bound"), BEYOND_BY_ROUNDING)
    def test_rounded_bound_is_the_bound(self, parameter, number, bound):
        """In a dict, a frame, coded values, and evaluations of a history."""
        space = SearchSpace([parameter])
        array = np.array([[number]])  # of the number's own precision
        evaluations = minimised("t", {}, array, np.zeros(1), space)

        assert space.row({"x": number}).tolist() == [bound]
        assert space.values(pd.DataFrame(array, columns=["x"])).tolist() == [[bound]]
        assert space.values(array).tolist() == [[bound]]
        assert evaluations.values.tolist() == [[bound]]

    @pytest.mark.parametrize(("parameter", "number"), BEYOND)
    def test_numbers_beyond_rounding_are_refused(self, parameter, number):
        space = SearchSpace([parameter])
        array = np.array([[number]])

        for configs in ([{"x": number}], pd.DataFrame(array, columns=["x"]), array):
            with pytest.raises(InvalidConfigError, match="x must be a number in"):
                space.values(configs)

    @given(st.floats(1e-8, 1e3), st.floats(1.01, 1e6), st.sampled_from([np.float64, np.float32]))
    def test_log_bounds_survive_logarithms(self, lower, ratio, precision):
        parameter = Parameter.number("x", lower, lower * ratio, log=True)

        for bound in (parameter.lower, parameter.upper):
            assert parameter.code(10 ** np.log10(bound)) == pytest.approx(bound, rel=1e-12)
            assert parameter.code(precision(bound)) == pytest.approx(bound, rel=1e-6)

    @given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(0, 1))
    def test_numbers_inside_keep_their_bits(self, lower, width, share):
        parameter = Parameter.number("x", lower, lower + width)
        number = min(lower + share * width, lower + width)

        coded = parameter.code(number)

        assert coded == number
        assert parameter.move_to_bounds(np.array([number])).tolist() == [number]

    def test_rounded_default_is_the_bound(self):
        description = {"type": "uniform_float", "name": "x", **FROM_0_TO_9, "default": 9 + 1e-12}

        space = SearchSpace.from_json({"hyperparameters": [description]})

        assert space["x"].default == 9
