"""Bayesian optimisation: initial design, repeats, failures, determinism, quality."""

import math

import by_hand
import numpy as np
import pytest
from by_hand import SPACE_OF_TWELVE, optimise

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.methods import bo
from hpobench_ordered.methods._candidates import (
    CANDIDATES,
    Region,
    TriedConfigurations,
    iter_candidate_blocks,
)
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.space import Compare, Comparison

TWO_NUMBERS = hbo.SearchSpace(
    [hbo.Parameter.number("x", 0, 1), hbo.Parameter.number("y", 1e-4, 1, log=True)]
)
"""Two numbers, without conditions."""


def make_method(space, *, seed=0, **attributes):
    """A method with some attributes or functions of `BayesianOptimisation` replaced."""
    variant = type("Variant", (bo.BayesianOptimisation,), attributes)
    return by_hand.make_method(variant, space=space, seed=seed)


def bowl(config: Config) -> float:
    """Loss with its optimum, 0, at x = 0.3 and y = 10^-2.4."""
    return (config["x"] - 0.3) ** 2 + (math.log10(config["y"]) / 4 + 0.6) ** 2


def make_with_evaluations(count: int) -> bo.BayesianOptimisation:
    """A method that was told the losses of so many random configurations."""
    method = make_method(TWO_NUMBERS)
    unit = TWO_NUMBERS.sample_unit(np.random.default_rng(2), count)
    for config in TWO_NUMBERS.configs(TWO_NUMBERS.decode(unit)):
        method.tell(config, bowl(config))
    return method


def count_distinct(configs: list[Config]) -> int:
    return len({tuple(config.items()) for config in configs})


class TestInitialConfigurations:
    initial = [{"x": x, "y": 0.1} for x in (0.1, 0.2, 0.1, 0.3)]  # noqa: RUF012

    def make_method(self) -> bo.BayesianOptimisation:
        return make_method(TWO_NUMBERS, initial_configurations=lambda method: self.initial)

    def test_initial_configurations_come_first(self):
        """Without repetition: the third of four equals the first, and is left out."""
        configs = optimise(self.make_method(), bowl, trials=3)
        assert configs == [self.initial[0], self.initial[1], self.initial[3]]


@pytest.mark.parametrize("random_trials", [0, 3])
def test_first_trials_equal_random_search(random_trials):
    """The first `random_trials` suggestions, and no more, are those of random search.

    Both methods draw from a generator of the same seed.
    """
    ours = optimise(make_method(TWO_NUMBERS, random_trials=random_trials), bowl, trials=6)
    random = optimise(by_hand.make_method(RandomSearch, space=TWO_NUMBERS), bowl, trials=6)
    assert ours[:random_trials] == random[:random_trials]
    assert ours[random_trials] != random[random_trials]


def test_random_trials_last_until_enough_results():
    """Suggestions are random until the model has three results, however many were asked for."""
    method = make_method(TWO_NUMBERS, seed=0)
    # What random search draws with the same seed.
    same_rng = np.random.default_rng(0)
    random_configs = [TWO_NUMBERS.sample(same_rng) for _ in range(6)]

    asked = [method.ask() for _ in range(4)]
    for config in asked[:2]:
        method.tell(config, bowl(config))
    asked.append(method.ask())
    # After four requests there are only two results: the fifth suggestion is random, too.
    assert asked == random_configs[:5]

    # With the third result, the sixth is the model's.
    method.tell(asked[2], bowl(asked[2]))
    assert method.ask() != random_configs[5]


def test_last_untried_configuration_is_found():
    """The search in blocks of candidates finds the only configuration that was not tried.

    A block has up to `CANDIDATES` configurations, so those of the whole space take several blocks.
    """
    largest_k = CANDIDATES + 9
    untried_k = 234
    space = hbo.SearchSpace([hbo.Parameter.number("k", 1, largest_k, integer=True)])
    tried = TriedConfigurations(space)
    for k in range(1, largest_k + 1):
        if k != untried_k:
            tried.add(np.array([float(k)]))

    rng = np.random.default_rng(0)
    found = set()
    for block in iter_candidate_blocks(Region(space), rng):
        any_scores = rng.random(len(block))
        row_and_values = tried.find_best_untried(block, any_scores)
        if row_and_values is not None:
            _, (k_value,) = row_and_values
            found.add(float(k_value))
    assert found == {untried_k}


class TestBlocksOfConditionalSpace:
    degree = hbo.Parameter.number("degree", 2, 5, integer=True)
    space = hbo.SearchSpace(
        [hbo.Parameter.choice("kernel", ("linear", "polynomial")), degree],
        conditions={"degree": Compare(0, Comparison.EQUAL, (1.0,))},
    )

    def test_whole_conditional_space_is_suggested(self):
        """The space has five configurations: linear, and polynomial with the degrees 2 to 5."""

        def loss(config: Config) -> float:
            return float(config.get("degree", 0))

        configs = optimise(make_method(self.space), loss, trials=5)
        assert count_distinct(configs) == 5


class TestEvaluationsThatWereNotSuggested:
    def make_method(self) -> bo.BayesianOptimisation:
        """A method that was told losses of four configurations that it had not suggested.

        They are all those with c = a, of twelve.
        """
        method = make_method(SPACE_OF_TWELVE, random_trials=0)
        for k in range(1, 5):
            method.tell({"k": k, "c": "a"}, float(k))
        return method

    def test_configurations_told_unasked_are_not_suggested(self):
        """Of twelve configurations, the four with c = a were told, and eight are left."""
        method = self.make_method()
        configs = [method.ask() for _ in range(8)]
        assert "a" not in {config["c"] for config in configs}

    def test_configurations_told_unasked_must_be_valid(self):
        """A configuration that is told need not have been suggested, but must be in the space."""
        outside = {"k": 5, "c": "a"}  # k has the range 1 to 4
        with pytest.raises(InvalidConfigError):
            self.make_method().tell(outside, 1.0)


def spread_of_pending(seed: int, *, forgets_pending: bool) -> float:
    """How far apart six configurations are that a method suggests without a result in between.

    In units of the range of a hyperparameter; `forgets_pending` makes the method forget which
    suggestions have no result yet.
    """
    method = make_method(TWO_NUMBERS, seed=seed)
    optimise(method, bowl, trials=4)
    points = []
    for _ in range(6):
        config = method.ask()
        # Both coordinates on a range of length one: log10(y) is from -4 to 0.
        points.append((config["x"], math.log10(config["y"]) / 4))
        if forgets_pending:
            method._pending.clear()
    return float(np.linalg.norm(np.std(points, axis=0)))


def test_pending_configurations_repel_others():
    """Suggestions without results lie farther apart than if the method forgets them.

    The sums are over five seeds.
    """
    spread = sum(spread_of_pending(seed, forgets_pending=False) for seed in range(5))
    spread_if_forgotten = sum(spread_of_pending(seed, forgets_pending=True) for seed in range(5))
    assert spread > 1.5 * spread_if_forgotten


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_failed_evaluations_count_as_the_worst(loss):
    """A method that is told a failure suggests as one that is told the worst loss so far.

    Evaluations fail where x is above 0.6.
    """
    method = make_method(TWO_NUMBERS, seed=1)
    method_told_worst = make_method(TWO_NUMBERS, seed=1)
    worst = -math.inf
    failures = 0
    for _ in range(20):
        config = method.ask()
        assert config == method_told_worst.ask()
        if config["x"] > 0.6:
            failures += 1
            method.tell(config, loss)
            method_told_worst.tell(config, worst)
        else:
            worst = max(worst, bowl(config))
            method.tell(config, bowl(config))
            method_told_worst.tell(config, bowl(config))
    # Some of 20 failed, and not most of them.
    assert 0 < failures < 12
    assert method.fallbacks == 0


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda c: 3.0, id="constant"),
        pytest.param(lambda c: -1e300, id="huge constant"),
        pytest.param(lambda c: 1e308 if c["x"] > 0.5 else -1e308, id="range"),
        pytest.param(lambda c: 1e12 * bowl(c), id="scaled"),
        pytest.param(lambda c: 1e12 + bowl(c), id="offset"),
        pytest.param(lambda c: 1e-300 * bowl(c), id="tiny"),
        pytest.param(lambda c: 5e-324 if c["x"] > 0.5 else 0.0, id="subnormal"),
        pytest.param(lambda c: math.exp(60 * c["x"]), id="skewed"),
    ],
)
def test_losses_of_any_scale_are_modelled(loss):
    """Losses may be equal, huge, tiny, skewed or far from 0: a model is fitted to all of them.

    No suggestion falls back to a random one for want of a model, and none repeats another.
    """
    method = make_method(TWO_NUMBERS)
    configs = optimise(method, loss, trials=20)
    assert method.fallbacks == 0
    assert count_distinct(configs) == 20


def test_suggestions_do_not_depend_on_scale():
    """Losses are standardised, so that their unit does not matter."""
    # A power of two scales losses without rounding.
    configs = optimise(make_method(TWO_NUMBERS), bowl, trials=15)
    assert configs == optimise(make_method(TWO_NUMBERS), lambda c: 2.0**40 * bowl(c), trials=15)


def test_trials_without_model_count_as_fallbacks():
    """If no model can be fitted, the method suggests at random, and counts these fallbacks."""
    method = make_method(TWO_NUMBERS)
    optimise(method, bowl, trials=3)
    # An infinite input makes every fit fail.
    method._evaluated_units[0] = np.array([math.inf, 0.5])

    configs = optimise(method, bowl, trials=4)

    assert count_distinct(configs) == 4
    assert method.fallbacks == 4


class TestBestAndRandom:
    """`MAX_CONDITIONED` rows are chosen: those of the `BEST_CONDITIONED` lowest losses, others at
    random.
    """

    losses = np.random.default_rng(0).permutation(3 * bo.MAX_CONDITIONED).astype(float)
    """The numbers from 0 on, shuffled."""

    def test_chosen_rows_contain_the_best(self):
        """All of the `BEST_CONDITIONED` rows with the lowest losses are chosen."""
        rows = bo.choose_best_and_random(self.losses, np.random.default_rng(1))
        # Losses are the numbers from 0 on, shuffled, so this many are below that number.
        best_rows = np.flatnonzero(self.losses < bo.BEST_CONDITIONED)
        assert np.isin(best_rows, rows).all()

    def test_chosen_rows_keep_order_of_evaluation(self):
        rows = bo.choose_best_and_random(self.losses, np.random.default_rng(1))
        assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("evaluations_above_limit", [1, 900])
class TestManyEvaluations:
    def test_number_of_observations_is_limited(self, evaluations_above_limit):
        """The model is fitted to at most `MAX_CONDITIONED` evaluations."""
        method = make_with_evaluations(bo.MAX_CONDITIONED + evaluations_above_limit)
        X, y = method.observations()
        hyperparameters = 2
        assert X.shape == (bo.MAX_CONDITIONED, hyperparameters)
        assert y.shape == (bo.MAX_CONDITIONED,)

    def test_many_evaluations_lead_to_optimum(self, evaluations_above_limit):
        """The model sees a part of many evaluations, and yet leads to the optimum."""
        method = make_with_evaluations(bo.MAX_CONDITIONED + evaluations_above_limit)
        configs = optimise(method, bowl, trials=5)
        assert min(map(bowl, configs)) < 1e-3  # the optimum is 0
        assert method.fallbacks == 0
