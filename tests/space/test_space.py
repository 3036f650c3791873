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
    """Every kind of hyperparameter and condition there is."""
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
    return SearchSpace.from_configspace(mixed_configspace())


class TestCodings:
    def test_every_sample_is_a_configuration_for_configspace(self, space):
        reference = mixed_configspace()
        rng = np.random.default_rng(0)
        for config in space.configs(space.decode(space.sample_unit(rng, 300))):
            ConfigSpace.Configuration(reference, values=config)  # raises if it is not

    def test_every_sample_of_configspace_is_valid_here(self, space):
        reference = mixed_configspace()
        reference.seed(3)
        for theirs in reference.sample_configuration(300):
            config = dict(theirs)
            row = space.row(config)
            assert space.configs(row[None])[0] == config

    @given(st.integers(0, 2**32 - 1))
    def test_round_trips(self, space, seed):
        unit = space.sample_unit(np.random.default_rng(seed), 20)
        values = space.decode(unit)
        configs = space.configs(values)
        np.testing.assert_allclose(space.encode(values), unit, atol=1e-12)
        np.testing.assert_array_equal(space.values(configs), values)
        np.testing.assert_array_equal(space.values(pd.DataFrame(configs)), values)
        np.testing.assert_array_equal(space.values(values), values)
        np.testing.assert_array_equal(space.canonical(unit), unit)

    def test_sampling_is_uniform_on_the_scale(self):
        log_integer = SearchSpace([Parameter.number("n", 1, 100, integer=True, log=True)])
        drawn = log_integer.decode(log_integer.sample_unit(np.random.default_rng(0), 200_000))
        span = math.log(100.5 / 0.5)
        for n in (1, 2, 10, 100):
            expected = math.log((n + 0.5) / (n - 0.5)) / span
            assert np.mean(drawn == n) == pytest.approx(expected, abs=0.004)


class TestValidation:
    config = {  # noqa: RUF012
        "kernel": "radial",
        "gamma": 5.0,
        "trees": 5,
        "depth": 0,
        "level": 2,
        "flag": False,
        "nested": 1.0,
    }

    @pytest.mark.parametrize(
        ("change", "words"),
        [
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
        ],
    )
    def test_says_what_is_wrong(self, space, change, words):
        space.validate(self.config)
        wrong = {**self.config, **change}
        with pytest.raises(InvalidConfigError) as one:
            space.validate(wrong)
        with pytest.raises(InvalidConfigError, match="configuration 1"):
            space.values([self.config, wrong])
        with pytest.raises(InvalidConfigError):
            space.values(pd.DataFrame([self.config, wrong], dtype=object))
        assert all(word in str(one.value) for word in words), str(one.value)

    def test_missing(self, space):
        with pytest.raises(InvalidConfigError, match="'gamma' is missing: a number in"):
            space.validate({k: v for k, v in self.config.items() if k != "gamma"})
        frame = pd.DataFrame([self.config])  # without a column for alpha, which is inactive
        assert np.isnan(space.values(frame)[0, space.names.index("alpha")])
        for name in ("trees", "gamma"):
            with pytest.raises(InvalidConfigError, match=f"'{name}' is missing"):
                space.values(frame.drop(columns=name))
        for wrong in (None, 3, [0.1, 5], "kernel"):
            with pytest.raises(InvalidConfigError, match="a configuration must be a dict, but got"):
                space.validate(wrong)

    def test_forms_of_configurations(self, space):
        expected = space.values([self.config] * 2)
        np.testing.assert_array_equal(space.values(iter([self.config] * 2)), expected)
        theirs = ConfigSpace.Configuration(mixed_configspace(), values={**self.config, "fixed": 3})
        np.testing.assert_array_equal(space.values([theirs]), expected[:1])
        numbers = {"trees": np.int32(5), "depth": 0.0, "gamma": np.float32(5.0)}
        np.testing.assert_array_equal(space.values([{**self.config, **numbers}]), expected[:1])
        frame = pd.DataFrame([self.config])
        for empty in ([], frame.iloc[:0], frame.iloc[:0].astype(object), pd.DataFrame()):
            assert space.values(empty).shape == (0, space.dimension)
        for wrong in (self.config, {}, pd.Series(self.config), [1, 2], [[0.0] * 8], "abc"):
            with pytest.raises(InvalidConfigError, match="configurations must be a list of dicts"):
                space.values(wrong)

    def test_arrays(self, space):
        with pytest.raises(InvalidConfigError, match=r"shape \(n, 8\)"):
            space.values(np.zeros((3, 2)))
        with pytest.raises(InvalidConfigError, match="numeric"):
            space.values(np.full((1, 8), "a"))
        row = space.row(self.config)
        row[space.names.index("kernel")] = 3
        with pytest.raises(InvalidConfigError, match="configuration 0: kernel must be the index"):
            space.values(row[None])

    def test_entries_of_inactive_hyperparameters_are_ignored(self, space):
        row = space.row(self.config)
        filled = np.where(np.isnan(row), 1e9, row)
        np.testing.assert_array_equal(space.values(filled[None])[0], row)
        configs = [self.config, {**self.config, "kernel": "linear", "gamma": "junk"}]
        np.testing.assert_array_equal(space.values(pd.DataFrame(configs)), space.values(configs))
        out_of_bounds = [{**self.config, "alpha": 1e9}, {**self.config, "alpha": math.inf}]
        expected = space.values([self.config] * 2)
        np.testing.assert_array_equal(space.values(pd.DataFrame(out_of_bounds)), expected)


class TestDescription:
    def test_round_trips(self, space):
        assert SearchSpace.from_configspace(space.to_configspace()) == space
        assert SearchSpace.from_json(space.to_json()) == space
        assert pickle.loads(pickle.dumps(space)) == space
        made = SearchSpace([Parameter.number("x", 1, 100, log=True), Parameter.choice("c", (1, 2))])
        assert [p.default for p in made.parameters] == [pytest.approx(10), 1]
        assert SearchSpace.from_json(made.to_json()) == made

    def test_text_names_ranges(self, space):
        assert "gamma: a number in [0.001, 10.0] (log scale)" in repr(space)
        assert space.describe_condition("gamma") == "kernel in poly, radial"

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Parameter.number("x", 2, 1), "empty range"),
            (lambda: Parameter.number("x", 2**60, 2**60, integer=True), "too narrow for floats"),
            (lambda: Parameter.number("x", 0, 1, log=True), "positive lower bound"),
            (lambda: Parameter.number("x", 0, math.inf), "finite"),
            (lambda: Parameter.choice("x", ("a", "a")), "repeated"),
            (lambda: Parameter.choice("x", ()), "no choices"),
            (lambda: Parameter.choice("x", ("a", "b"), default="c"), "default of x"),
            (lambda: SearchSpace([]), "at least one"),
            (lambda: SearchSpace([Parameter.number("x", 0, 1)] * 2), "defined twice"),
        ],
    )
    def test_nonsense_is_refused(self, make, message):
        with pytest.raises(InvalidSpaceError, match=message):
            make()

    @pytest.mark.parametrize(
        ("item", "message"),
        [
            ({**CHOICE, "weights": [1, 3]}, r"x: weights.*1, 3\]"),
            ({**CHOICE, "probabilities": [0.4, 0.6]}, "x: weights"),
            ({**CHOICE, "probabilities": None}, ""),
            ({**CHOICE, "probabilities": [1 / 2] * 2}, ""),
            ({**CHOICE, "weights": [2, 2]}, ""),
            ({"type": "uniform_float", **RANGE, "q": 0.1}, "q = 0.1"),
            ({"type": "uniform_float", **RANGE, "q": None}, ""),
            ({"type": "uniform_int", **RANGE, "q": 3}, "q = 3"),
            ({"type": "uniform_int", **RANGE, "q": 1}, ""),
            ({"type": "normal_float"}, "unsupported hyperparameter type"),
        ],
    )
    def test_details_are_refused_where_they_change_something(self, item, message):
        description = {"hyperparameters": [{"name": "x", **item}]}
        if not message:
            space = SearchSpace.from_json(description)
            assert SearchSpace.from_json(space.to_json()) == space
            return
        with pytest.raises(InvalidSpaceError, match=message):
            SearchSpace.from_json(description)

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
        with pytest.raises(InvalidSpaceError, match=f"hyperparameter 'rate' has no {key!r}"):
            SearchSpace.from_json({"hyperparameters": [{"name": "rate", **item}]})

    @pytest.mark.parametrize(
        ("pairs", "message"),
        [
            ([("a", "fixed")], "condition of 'a' on constant 'fixed'"),
            ([("fixed", "a")], "condition of constant 'fixed'"),
            ([("a", "z")], "condition of 'a' on unknown hyperparameter 'z'"),
            ([("z", "a")], "condition of unknown hyperparameter 'z'"),
            ([("a", "b"), ("b", "a")], "depend on each other"),
        ],
    )
    def test_unsupported_conditions(self, pairs, message):
        items = [{"type": "categorical", "name": n, "choices": [1, 2], "default": 1} for n in "ab"]
        items.append({"type": "constant", "name": "fixed", "value": 1})
        plain = [{"type": "EQ", "child": c, "parent": p, "value": 1} for c, p in pairs]
        joined = [{"type": "AND", "child": one["child"], "conditions": [one] * 2} for one in plain]
        for conditions in (plain, joined):
            with pytest.raises(InvalidSpaceError, match=message):
                SearchSpace.from_json({"hyperparameters": items, "conditions": conditions})
