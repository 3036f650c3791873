"""Candidates near the best configuration: where they lie, when they are chosen, what they bring."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import by_hand
import numpy as np
import pytest
from by_hand import make_kernel_space

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods import _model_based
from hpobench_ordered.methods._candidates import (
    CANDIDATES,
    CANDIDATES_NEAR,
    REDRAW_PROBABILITY,
    SHARE_OF_FEW_MOVED,
    Region,
    configuration_key,
    draw_near,
)
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.bounding_box import Box
from hpobench_ordered.registry import method_spec

NINE = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(9)])
FOUR = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(4)])
MIXED = make_kernel_space(9)


def make_method(space, *, seed=0, searches_near_best=True):
    """Bayesian optimisation with candidates near the best configuration, or without."""
    variant = type("Variant", (BayesianOptimisation,), {"searches_near_best": searches_near_best})
    return by_hand.make_method(variant, space=space, seed=seed, budget=50)


def optimise(
    method: BayesianOptimisation, loss: Callable[[Config], float], *, trials: int
) -> tuple[list[Config], list[float]]:
    """Play a method; return its suggestions and their losses."""
    configs = by_hand.optimise(method, loss, trials=trials)
    return configs, [loss(config) for config in configs]


LINEAR: Config = {"kernel": "linear", "cost": 1.0}
RADIAL: Config = {"kernel": "radial", "cost": 1e3, "gamma": 1e-3}
POLYNOMIAL: Config = {"kernel": "polynomial", "cost": 1.0, "degree": 5}


def draw_many_near(region: Region, config: Config) -> FloatArray:
    """4000 candidates near a configuration, unit vectors."""
    centre = region.space.encode(region.space.values([config]))
    rng = np.random.default_rng(0)
    # Each call draws 200.
    return np.concatenate([draw_near(region, centre, rng) for _ in range(20)])


def bowl(config: Config) -> float:
    return sum((config[f"x{j}"] - 0.37) ** 2 for j in range(4))


class TestMixedSpace:
    """Columns of the values are kernel, cost, gamma (radial) and degree (polynomial)."""

    @pytest.mark.parametrize("config", [LINEAR, RADIAL, POLYNOMIAL])
    def test_candidates_are_canonical_configurations(self, config):
        """Near a configuration of each of the three kernels."""
        unit = draw_many_near(Region(MIXED), config)
        # Drawn in 20 calls, of four hyperparameters.
        assert unit.shape == (20 * CANDIDATES_NEAR, 4)
        np.testing.assert_array_equal(unit, MIXED.canonical(unit))
        assert MIXED.allows(MIXED.decode(unit)).all()

    def test_choices_are_redrawn_at_times(self):
        """The kernel, linear (0), is kept or redrawn as any of three."""
        values = MIXED.decode(draw_many_near(Region(MIXED), LINEAR))
        share_of_linear = np.mean(values[:, 0] == 0)
        probability = (1 - REDRAW_PROBABILITY) + REDRAW_PROBABILITY / 3
        np.testing.assert_allclose(share_of_linear, probability, atol=0.02)

    def test_activated_hyperparameters_are_drawn_uniformly(self):
        """Near a linear kernel, gamma (of radial, 1) and degree (of polynomial, 2) have no value
        to be near to. Columns are kernel, cost, gamma and degree.
        """
        unit = draw_many_near(Region(MIXED), LINEAR)
        values = MIXED.decode(unit)
        kernel = values[:, 0]
        unit_gamma = unit[kernel == 1, 2]
        degree = values[kernel == 2, 3]
        counts_in_quarters, _ = np.histogram(unit_gamma, bins=4, range=(0, 1))
        np.testing.assert_allclose(counts_in_quarters / len(unit_gamma), 0.25, atol=0.06)
        # All degrees from 2 to 9.
        assert set(degree) == set(range(2, 10))

    def test_integers_move_by_whole_steps(self):
        """Most by at most one, and some to the ends of the range, 2 and 9.

        The degree is column 3, active where the kernel, column 0, is polynomial (2).
        """
        values = MIXED.decode(draw_many_near(Region(MIXED), POLYNOMIAL))
        degree = values[values[:, 0] == 2, 3]
        assert (degree == np.rint(degree)).all()
        assert np.mean(np.abs(degree - POLYNOMIAL["degree"]) <= 1) > 0.5
        assert {2, 9} <= set(degree)


class TestSteps:
    """From the middle of a space of nine numbers."""

    steps = draw_many_near(Region(NINE), {f"x{j}": 0.5 for j in range(9)}) - 0.5
    moved_counts = np.sum(steps != 0.0, axis=1)

    def test_steps_move_all_numbers_or_few(self):
        """Half of the candidates differ in all nine numbers, the others in a third of them on
        average.
        """
        np.testing.assert_allclose(np.mean(self.moved_counts == 9), 0.5, atol=0.02)
        few = self.moved_counts[self.moved_counts < 9]
        np.testing.assert_allclose(few.mean(), 9 * SHARE_OF_FEW_MOVED, atol=0.1)

    def test_steps_have_log_uniform_deviations(self):
        """Each step is normal, with a deviation drawn log-uniformly between 0.03 and 0.5.

        It is estimated from steps that move all nine numbers.
        """
        sd = np.std(self.steps[self.moved_counts == 9], axis=1)
        # The median of a log-uniform distribution is the geometric mean of its ends.
        np.testing.assert_allclose(np.median(sd), np.sqrt(0.03 * 0.5), rtol=0.15)
        # Estimates from nine numbers scatter around the smallest deviation.
        assert 0.01 < sd.min() < 0.03


class TestBox:
    """The region spans these configurations."""

    configs: ClassVar[list[Config]] = [
        {"kernel": "radial", "cost": 0.1, "gamma": 0.1},
        {"kernel": "polynomial", "cost": 10.0, "degree": 3},
        {"kernel": "polynomial", "cost": 10.0, "degree": 5},
    ]

    @pytest.mark.parametrize("centre", [configs[0], {"kernel": "linear", "cost": 1e3}])
    def test_candidates_stay_in_the_box(self, centre):
        """Even if the configuration that they are near to lies outside.

        The box spans kernels 1 and 2, costs from 0.1 to 10 and degrees from 3 to 5.
        """
        box = Box(MIXED, MIXED.values(self.configs))
        kernel, cost, _, degree = MIXED.decode(draw_many_near(box, centre)).T
        assert set(kernel) == {1.0, 2.0}
        assert (cost >= 0.1).all()
        assert (cost <= 10.0).all()
        assert set(degree[kernel == 2]) == {3.0, 4.0, 5.0}


def test_random_candidates_stay_the_same(monkeypatch):
    """They are drawn alike whether or not there are candidates near the best beside them."""
    # An infinite advantage would be needed to choose one near the best, so none is chosen.
    monkeypatch.setattr(_model_based, "LOG_ADVANTAGE", np.inf)
    configs, _ = optimise(make_method(FOUR), bowl, trials=15)
    configs_without, _ = optimise(make_method(FOUR, searches_near_best=False), bowl, trials=15)
    assert configs == configs_without


@pytest.mark.parametrize(("excess", "is_chosen"), [(-0.01, False), (0.01, True)])
def test_candidate_needs_an_advantage(excess, is_chosen):
    """One near the best is chosen only if it promises four times the improvement of others."""
    method = make_method(FOUR)
    optimise(method, bowl, trials=4)

    def score(unit: FloatArray) -> FloatArray:
        """Log expected improvement: 0 of random candidates, which come first.

        That of candidates near the best is log 4 and a small excess, which may be negative.
        """
        scores = np.zeros(len(unit))
        scores[CANDIDATES:] = np.log(4.0) + excess
        return scores

    values = method._choose_best_untried(score, method._draw_near_best())

    assert (configuration_key(values) in method._suggested_near_best) == is_chosen


def config_with_equal_values(place: float) -> Config:
    """The configuration of four numbers, x0 to x3, that are all the same."""
    return {f"x{j}": place for j in range(4)}


class TestPlateau:
    """A loss that was seen before, after a step, ends the search near the best."""

    def make_method(self) -> tuple[BayesianOptimisation, list[float]]:
        """A method after five evaluations of a bowl, and their losses."""
        method = make_method(FOUR)
        _, losses = optimise(method, bowl, trials=5)
        return method, losses

    def suggest_near_best_and_tell(
        self, method: BayesianOptimisation, place: float, loss: float
    ) -> None:
        """Tell a loss of a configuration as if it had been suggested near the best."""
        method._suggested_near_best.add(
            configuration_key(FOUR.row(config_with_equal_values(place)))
        )
        method.tell(config_with_equal_values(place), loss)

    def test_repeated_loss_near_best_ends_search(self):
        """A loss that was seen before means a plateau: no more candidates near the best."""
        method, earlier_losses = self.make_method()
        self.suggest_near_best_and_tell(method, 0.2, loss=earlier_losses[1])
        assert method._draw_near_best() is None

    def test_new_loss_near_best_continues_search(self):
        method, earlier_losses = self.make_method()
        new_loss = 7.0
        assert new_loss not in earlier_losses
        self.suggest_near_best_and_tell(method, 0.1, loss=new_loss)
        assert method._draw_near_best() is not None

    def test_repeated_loss_elsewhere_continues_search(self):
        """Of a configuration that was not suggested near the best."""
        method, earlier_losses = self.make_method()
        method.tell(config_with_equal_values(0.9), earlier_losses[0])
        assert method._draw_near_best() is not None


def test_small_spaces_need_no_steps():
    """All configurations are candidates anyway, so none are drawn near the best."""
    method = make_method(hbo.SearchSpace([hbo.Parameter.number("k", 1, CANDIDATES, integer=True)]))
    optimise(method, lambda config: float(config["k"]), trials=4)
    assert method._draw_near_best() is None


def regret_on_quadratic(name: str, *, searches_near_best: bool) -> float:
    """Mean regret after 50 trials on tasks 4 and 20, with 100 random evaluations of all others.

    `searches_near_best` switches candidates near the best configuration on or off.
    """
    benchmark = hbo.load("quadratic")
    spec = method_spec(name)
    variant = type("Variant", (spec.method,), {"searches_near_best": searches_near_best})
    # Every task follows its own generators, the same for both variants.
    outcomes = follow(
        hbo.LeaveOneOut(trials=50, history=100, tasks=[4, 20]),
        benchmark,
        replace(spec, method=variant),
        rng=lambda position: np.random.default_rng([0, position]),
        protocol_rng=lambda position: np.random.default_rng([1, position]),
    )
    regrets = []
    for outcome in outcomes:
        task = benchmark.tasks[outcome.task]
        regrets.append(task.regret(outcome.objective).min())
    return float(np.mean(regrets))


@pytest.mark.parametrize("name", ["bo", pytest.param("abrac", marks=pytest.mark.slow)])
def test_regret_on_smooth_objective_falls_tenfold(name):
    """With candidates near the best, compared with random candidates alone."""
    regret = regret_on_quadratic(name, searches_near_best=True)
    regret_of_random = regret_on_quadratic(name, searches_near_best=False)
    assert regret < 0.1 * regret_of_random


def make_plateaus() -> Callable[[Config], float]:
    """The loss of the nearest of 60 points of a rough function: a plateau around each."""
    rng = np.random.default_rng(5)
    points = rng.random((60, 4))
    levels = np.sum((points - 0.4) ** 2, axis=1) + 0.1 * rng.standard_normal(60)

    def loss(config: Config) -> float:
        x = np.array(list(config.values()))
        nearest = np.argmin(np.sum((points - x) ** 2, axis=1))
        return float(levels[nearest])

    return loss


class TestOnPlateaus:
    loss = staticmethod(make_plateaus())

    @pytest.mark.parametrize("seed", range(20))
    def test_at_most_one_step_is_wasted(self, seed):
        """A step, a suggestion near the best, is wasted if its loss was seen before."""
        method = make_method(FOUR, seed=seed)
        configs, losses = optimise(method, self.loss, trials=25)
        wasted = 0
        for trial, config in enumerate(configs):
            is_step = configuration_key(FOUR.row(config)) in method._suggested_near_best
            is_repeated_loss = losses[trial] in losses[:trial]
            wasted += is_step and is_repeated_loss
        assert wasted <= 1

    def test_steps_do_no_harm_on_plateaus(self):
        """Best losses are not significantly worse than without steps, over 20 seeds."""
        differences = []
        for seed in range(20):
            _, losses = optimise(make_method(FOUR, seed=seed), self.loss, trials=25)
            without = make_method(FOUR, seed=seed, searches_near_best=False)
            _, losses_without = optimise(without, self.loss, trials=25)
            differences.append(min(losses) - min(losses_without))
        standard_error = np.std(differences, ddof=1) / np.sqrt(20)
        # Two standard errors are about the 95 % confidence limit.
        assert np.mean(differences) < 2 * standard_error
