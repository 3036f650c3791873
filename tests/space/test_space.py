"""Search spaces: how configurations are coded, checked and described."""

import math
import pickle

import ConfigSpace
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered import Parameter, SearchSpace
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError


def mixed_configspace() -> ConfigSpace.ConfigurationSpace:
    """A space of ConfigSpace with every kind of hyperparameter and condition there is."""
    space = ConfigSpace.ConfigurationSpace()
    kernel = ConfigSpace.Categorical("kernel", ["linear", "poly", "radial"])
    gamma = ConfigSpace.Float("gamma", (1e-3, 10.0), log=True)
    trees = ConfigSpace.Integer("trees", (2, 256), log=True)
    depth = ConfigSpace.Integer("depth", (-3, 4))
    level = ConfigSpace.Categorical("level", [1, 2, 4], ordered=True)
    flag = ConfigSpace.Categorical("flag", [True, False])
    alpha = ConfigSpace.Float("alpha", (0.0, 1.0))
    nested = ConfigSpace.Float("nested", (-5.0, 5.0))
    fixed = ConfigSpace.Constant("fixed", 3)
    space.add(kernel, gamma, trees, depth, level, flag, alpha, nested, fixed)
    space.add(
        ConfigSpace.InCondition(gamma, kernel, ["poly", "radial"]),
        ConfigSpace.AndConjunction(
            ConfigSpace.EqualsCondition(alpha, flag, True),
            ConfigSpace.GreaterThanCondition(alpha, trees, 10),
        ),
        ConfigSpace.OrConjunction(
            ConfigSpace.LessThanCondition(nested, gamma, 1.0),
            ConfigSpace.NotEqualsCondition(nested, alpha, 0.5),
        ),
    )
    return space


CHOICE = {"type": "categorical", "choices": [1, 2]}
RANGE = {"lower": 0, "upper": 9, "log": False}


@pytest.fixture(scope="module")
def space():
    """A search space with every kind of hyperparameter and condition there is."""
    return SearchSpace.from_configspace(mixed_configspace())


class TestCodings:
    def test_samples_are_valid_for_configspace(self, space):
        configspace = mixed_configspace()
        rng = np.random.default_rng(0)

        configs = space.configs(space.decode(space.sample_unit(rng, 300)))

        for config in configs:
            # Raises an error if the configuration is not valid.
            ConfigSpace.Configuration(configspace, values=config)

    def test_samples_of_configspace_are_valid(self, space):
        """They are the same after they have been coded as a row and decoded."""
        configspace = mixed_configspace()
        configspace.seed(3)

        for config in map(dict, configspace.sample_configuration(300)):
            row = space.row(config)
            assert space.configs(row[None]) == [config]

    @given(st.integers(0, 2**32 - 1))
    def test_unit_vectors_round_trip(self, space, seed):
        unit = space.sample_unit(np.random.default_rng(seed), 20)

        again = space.encode(space.decode(unit))

        np.testing.assert_allclose(again, unit, atol=1e-12)

    @given(st.integers(0, 2**32 - 1))
    def test_sampled_unit_vectors_are_canonical(self, space, seed):
        unit = space.sample_unit(np.random.default_rng(seed), 20)

        np.testing.assert_array_equal(space.canonical(unit), unit)

    @given(st.integers(0, 2**32 - 1))
    def test_configurations_round_trip(self, space, seed):
        """Given as dicts, as a data frame, or as an array of coded values."""
        values = space.decode(space.sample_unit(np.random.default_rng(seed), 20))
        configs = space.configs(values)

        for same_configs in (configs, pd.DataFrame(configs), values):
            np.testing.assert_array_equal(space.values(same_configs), values)

    def test_sampling_is_uniform_on_log_scale(self):
        """Each integer is a bin that reaches half a step to either side."""
        space = SearchSpace([Parameter.number("n", 1, 100, integer=True, log=True)])

        drawn = space.decode(space.sample_unit(np.random.default_rng(0), 200_000))

        log_range = math.log(100.5 / 0.5)
        for n in (1, 2, 10, 100):
            probability = math.log((n + 0.5) / (n - 0.5)) / log_range
            share = np.mean(drawn == n)
            # Four standard errors or more.
            assert share == pytest.approx(probability, abs=0.004)


CONFIG = {
    "kernel": "radial",
    "gamma": 5.0,
    "trees": 5,
    "depth": 0,
    "level": 2,
    "flag": False,
    "nested": 1.0,
}

WRONG_VALUES = [
    ({"trees": 1}, ["trees", "[2, 256]", "got 1"]),
    ({"trees": 2.5}, ["trees", "an integer", "2.5"]),
    ({"gamma": math.nan}, ["gamma", "[0.001, 10.0]", "nan"]),
    ({"gamma": math.inf}, ["gamma", "inf"]),
    ({"gamma": "a lot"}, ["gamma", "'a lot'", "str"]),
    ({"gamma": None}, ["gamma", "None"]),
    ({"gamma": [0.1]}, ["gamma", "list"]),
    ({"gamma": 10**400}, ["gamma", "[0.001, 10.0]", "too large for a float"]),
    ({"trees": 10**400}, ["trees", "an integer", "too large for a float"]),
    ({"trees": -(10**5000)}, ["trees", "an integer", "too large for a float"]),
    ({"gamma": np.complex128(0.1)}, ["gamma", "a number", "complex128"]),
    ({"gamma": 0.1 + 0j}, ["gamma", "a number", "complex"]),
    ({"kernel": "radical"}, ["kernel", "did you mean 'radial'"]),
    ({"kernel": ["radial"]}, ["kernel", "one of"]),
    ({"flag": 0}, ["flag", "one of True, False", "got 0"]),
    ({"depth": True}, ["depth", "bool"]),
    ({"fixed": 4}, ["fixed", "always 3", "got 4"]),
    ({"tree": 5}, ["unknown", "'tree'", "did you mean 'trees'"]),
]


class TestValidation:
    @pytest.mark.parametrize(("change", "words"), WRONG_VALUES)
    def test_message_names_value_and_range(self, space, change, words):
        """One value of a valid configuration is wrong; the message has these words."""
        wrong_config = {**CONFIG, **change}

        with pytest.raises(InvalidConfigError) as caught:
            space.validate(wrong_config)

        for word in words:
            assert word in str(caught.value)

    @pytest.mark.parametrize("change", [change for change, _ in WRONG_VALUES])
    def test_wrong_values_are_refused_in_lists(self, space, change):
        """Configurations are counted from 0: the second one is wrong."""
        wrong_config = {**CONFIG, **change}

        with pytest.raises(InvalidConfigError, match="configuration 1"):
            space.values([CONFIG, wrong_config])

    @pytest.mark.parametrize("change", [change for change, _ in WRONG_VALUES])
    def test_wrong_values_are_refused_in_frames(self, space, change):
        """One value of the second configuration is wrong."""
        wrong_config = {**CONFIG, **change}
        frame = pd.DataFrame([CONFIG, wrong_config], dtype=object)

        with pytest.raises(InvalidConfigError):
            space.values(frame)

    def test_valid_configuration_passes(self, space):
        space.validate(CONFIG)

    def test_missing_hyperparameter_is_named(self, space):
        without_gamma = {name: value for name, value in CONFIG.items() if name != "gamma"}

        with pytest.raises(InvalidConfigError, match="'gamma' is missing: a number in"):
            space.validate(without_gamma)

    @pytest.mark.parametrize("name", ["trees", "gamma"])
    def test_missing_column_is_named(self, space, name):
        with pytest.raises(InvalidConfigError, match=f"'{name}' is missing"):
            space.values(pd.DataFrame([CONFIG]).drop(columns=name))

    def test_column_may_be_missing_if_inactive(self, space):
        """The frame has no column for alpha, which is inactive because flag is False."""
        frame_without_alpha = pd.DataFrame([CONFIG])

        values = space.values(frame_without_alpha)

        assert np.isnan(values[0, space.names.index("alpha")])

    @pytest.mark.parametrize("wrong", [None, 3, [0.1, 5], "kernel"])
    def test_configuration_must_be_a_dict(self, space, wrong):
        with pytest.raises(InvalidConfigError, match="a configuration must be a dict, but got"):
            space.validate(wrong)

    @pytest.mark.parametrize(
        "configs",
        [
            iter([CONFIG]),
            [ConfigSpace.Configuration(mixed_configspace(), values={**CONFIG, "fixed": 3})],
            [{**CONFIG, "trees": np.int32(5), "depth": 0.0, "gamma": np.float32(5.0)}],
        ],
        ids=["iterator", "ConfigSpace", "numpy"],
    )
    def test_other_forms_are_coded_alike(self, space, configs):
        np.testing.assert_array_equal(space.values(configs), space.values([CONFIG]))

    @pytest.mark.parametrize(
        "empty",
        [
            [],
            pd.DataFrame([CONFIG]).iloc[:0],
            pd.DataFrame([CONFIG]).iloc[:0].astype(object),
            pd.DataFrame(),
        ],
    )
    def test_no_configurations_have_shape(self, space, empty):
        assert space.values(empty).shape == (0, space.dimension)

    @pytest.mark.parametrize(
        "wrong", [CONFIG, {}, pd.Series(CONFIG), [1, 2], [[0.0] * 8], "abc"], ids=repr
    )
    def test_configurations_must_be_listed_dicts(self, space, wrong):
        with pytest.raises(InvalidConfigError, match="configurations must be a list of dicts"):
            space.values(wrong)

    def test_arrays_must_have_a_column_each(self, space):
        """The space has eight hyperparameters."""
        two_columns = np.zeros((3, 2))

        with pytest.raises(InvalidConfigError, match=r"shape \(n, 8\)"):
            space.values(two_columns)

    def test_arrays_must_be_numeric(self, space):
        texts = np.full((1, 8), "a")

        with pytest.raises(InvalidConfigError, match="numeric"):
            space.values(texts)

    def test_codes_of_arrays_must_be_choices(self, space):
        """There are three kernels, with the codes 0, 1 and 2."""
        row = space.row(CONFIG)
        row[space.names.index("kernel")] = 3

        with pytest.raises(InvalidConfigError, match="configuration 0: kernel must be the index"):
            space.values(row[None])


class TestInactiveHyperparameters:
    def test_entries_of_arrays_are_ignored(self, space):
        """Inactive hyperparameters, NaN, get a number outside every range, and are NaN again."""
        row = space.row(CONFIG)
        filled = np.where(np.isnan(row), 1e9, row)

        values = space.values(filled[None])

        np.testing.assert_array_equal(values, row[None])

    @pytest.mark.parametrize(
        "change", [{"alpha": 1e9}, {"alpha": math.inf}, {"kernel": "linear", "gamma": "junk"}]
    )
    def test_entries_of_frames_are_ignored(self, space, change):
        """The entry changed is of alpha, which is inactive, or of gamma with the linear kernel."""
        configs = [CONFIG, {**CONFIG, **change}]

        values = space.values(pd.DataFrame(configs))

        np.testing.assert_array_equal(values, space.values(configs))

    def test_numeric_columns_are_ignored(self, space):
        """alpha is inactive, and its numbers would be out of range."""
        frame = pd.DataFrame([{**CONFIG, "alpha": 1e9}, {**CONFIG, "alpha": math.inf}])

        values = space.values(frame)

        np.testing.assert_array_equal(values, space.values([CONFIG, CONFIG]))


class TestDescription:
    def test_configspace_round_trips(self, space):
        assert SearchSpace.from_configspace(space.to_configspace()) == space

    def test_json_round_trips(self, space):
        assert SearchSpace.from_json(space.to_json()) == space

    def test_default_of_number_is_middle(self):
        assert Parameter.number("x", 1, 100).default == pytest.approx(50.5)
        assert Parameter.number("x", 1, 100, log=True).default == pytest.approx(10)

    def test_default_of_choices_is_first(self):
        assert Parameter.choice("c", (1, 2)).default == 1

    def test_defaults_round_trip_through_json(self):
        space = SearchSpace(
            [Parameter.number("x", 1, 100, log=True), Parameter.choice("c", (1, 2))]
        )

        again = SearchSpace.from_json(space.to_json())

        assert again == space
        assert again["x"].default == space["x"].default
        assert again["c"].default == space["c"].default

    def test_pickle_round_trips(self, space):
        assert pickle.loads(pickle.dumps(space)) == space

    def test_text_names_ranges(self, space):
        assert "gamma: a number in [0.001, 10.0] (log scale)" in repr(space)

    def test_text_names_conditions(self, space):
        assert space.describe_condition("gamma") == "kernel in poly, radial"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Parameter.number("x", 2, 1), "empty range"),
            (lambda: Parameter.number("x", 1e300, 1.0000000000000002e300, log=True), "too narrow"),
            (lambda: Parameter.number("x", 0, 2**53 + 1, integer=True), "between -2\\*\\*53 and"),
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
        ("item", "message"),
        [
            ({**CHOICE, "weights": [1, 3]}, r"x: weights.*1, 3\]"),
            ({**CHOICE, "probabilities": [0.4, 0.6]}, "x: weights"),
            ({"type": "uniform_float", **RANGE, "q": 0.1}, "q = 0.1"),
            ({"type": "uniform_int", **RANGE, "q": 3}, "q = 3"),
            ({"type": "normal_float"}, "unsupported hyperparameter type"),
        ],
    )
    def test_unsupported_details_are_refused(self, item, message):
        """Unequal weights of choices, steps other than 1, and a normal distribution."""
        with pytest.raises(InvalidSpaceError, match=message):
            SearchSpace.from_json({"hyperparameters": [{"name": "x", **item}]})

    @pytest.mark.parametrize(
        "item",
        [
            {**CHOICE, "probabilities": None},
            {**CHOICE, "probabilities": [1 / 2] * 2},
            {**CHOICE, "weights": [2, 2]},
            {"type": "uniform_float", **RANGE, "q": None},
            {"type": "uniform_int", **RANGE, "q": 1},
        ],
    )
    def test_details_without_effect_are_accepted(self, item):
        """Equal weights of choices, steps of 1, and details that are None."""
        space = SearchSpace.from_json({"hyperparameters": [{"name": "x", **item}]})

        assert SearchSpace.from_json(space.to_json()) == space

    @pytest.mark.parametrize(
        ("item", "key"),
        [
            ({"type": "uniform_float", "lower": 1e-4, "upper": 1.0}, "log"),
            ({"type": "uniform_int", "upper": 9, "log": True}, "lower"),
            ({"type": "categorical"}, "choices"),
            ({"type": "ordinal"}, "sequence"),
            ({"type": "constant"}, "value"),
            ({"lower": 0, "upper": 1, "log": False}, "type"),
        ],
    )
    def test_missing_keys_are_named(self, item, key):
        """The description of a hyperparameter, `item`, lacks this key."""
        with pytest.raises(InvalidSpaceError, match=f"hyperparameter 'rate' has no {key!r}"):
            SearchSpace.from_json({"hyperparameters": [{"name": "rate", **item}]})

    @pytest.mark.parametrize("is_joined", [False, True], ids=["plain", "joined"])
    @pytest.mark.parametrize(
        ("children_and_parents", "message"),
        [
            ([("a", "fixed")], "condition of 'a' on constant 'fixed'"),
            ([("fixed", "a")], "condition of constant 'fixed'"),
            ([("a", "z")], "condition of 'a' on unknown hyperparameter 'z'"),
            ([("z", "a")], "condition of unknown hyperparameter 'z'"),
            ([("a", "b"), ("b", "a")], "depend on each other"),
        ],
    )
    def test_unsupported_conditions_are_refused(self, children_and_parents, message, is_joined):
        """Children are active depending on their parents: a and b are hyperparameters, z is not.

        A condition stands alone, or twice in a conjunction.
        """
        hyperparameters = [
            {"type": "categorical", "name": "a", "choices": [1, 2]},
            {"type": "categorical", "name": "b", "choices": [1, 2]},
            {"type": "constant", "name": "fixed", "value": 1},
        ]
        conditions = []
        for child, parent in children_and_parents:
            condition = {"type": "EQ", "child": child, "parent": parent, "value": 1}
            if is_joined:
                condition = {"type": "AND", "child": child, "conditions": [condition, condition]}
            conditions.append(condition)

        with pytest.raises(InvalidSpaceError, match=message):
            SearchSpace.from_json({"hyperparameters": hyperparameters, "conditions": conditions})
