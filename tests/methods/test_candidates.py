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
from hpobench_ordered.methods.registry import method_spec

NINE_NUMBERS = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(9)])
FOUR_NUMBERS = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(4)])
KERNEL_SPACE = make_kernel_space(max_degree=9)
"""Kernels are linear (0), radial (1), which has a gamma, and polynomial (2), which has a degree."""


def make_method(space, *, seed=0, searches_near_best=True):
    """Bayesian optimisation with candidates near the best configuration, or without."""
    variant = type("Variant", (BayesianOptimisation,), {"searches_near_best": searches_near_best})
    return by_hand.make_method(variant, space=space, seed=seed, budget=50)


def optimise(
    method: BayesianOptimisation, loss: Callable[[Config], float], *, trials: int
) -> tuple[list[Config], list[float]]:
    """Play a method, and return its suggestions and their losses."""
    configs = by_hand.optimise(method, loss, trials=trials)
    return configs, [loss(config) for config in configs]


# A configuration of each kernel.
LINEAR: Config = {"kernel": "linear", "cost": 1.0}
RADIAL: Config = {"kernel": "radial", "cost": 1e3, "gamma": 1e-3}
POLYNOMIAL: Config = {"kernel": "polynomial", "cost": 1.0, "degree": 5}


CALLS = 20
"""Number of times that `draw_many_near` draws `CANDIDATES_NEAR` candidates."""


def draw_many_near(region: Region, config: Config) -> FloatArray:
    """Draw 20 times 200 candidates near a configuration, unit vectors (4000, d)."""
    centre = region.space.encode(region.space.values([config]))
    rng = np.random.default_rng(0)
    return np.concatenate([draw_near(region, centre, rng) for _ in range(CALLS)])


def draw_values_near(config: Config) -> FloatArray:
    """Draw 4000 candidates of the kernel space near a configuration, as coded values (4000, 4)."""
    return KERNEL_SPACE.decode(draw_many_near(Region(KERNEL_SPACE), config))


def bowl(config: Config) -> float:
    return sum((config[f"x{j}"] - 0.37) ** 2 for j in range(4))


class TestMixedSpace:
    """Columns of the values are kernel, cost, gamma (radial) and degree (polynomial)."""

    @pytest.mark.parametrize("config", [LINEAR, RADIAL, POLYNOMIAL])
    def test_candidates_are_canonical_configurations(self, config):
        """Canonical unit vectors have integers in the middle of their bins, and inactive ones NaN.

        Candidates are near a configuration of each of the three kernels.
        """
        unit = draw_many_near(Region(KERNEL_SPACE), config)
        assert unit.shape == (CALLS * CANDIDATES_NEAR, KERNEL_SPACE.dimension)
        np.testing.assert_array_equal(unit, KERNEL_SPACE.canonical(unit))
        assert KERNEL_SPACE.allows(KERNEL_SPACE.decode(unit)).all()

    def test_choices_are_redrawn_at_times(self):
        """Near a linear kernel, most candidates keep it; the others draw any of three kernels."""
        kernel, _cost, _gamma, _degree = draw_values_near(LINEAR).T
        is_linear = kernel == 0
        share_of_linear = is_linear.mean()
        expected_share = (1 - REDRAW_PROBABILITY) + REDRAW_PROBABILITY / 3
        np.testing.assert_allclose(share_of_linear, expected_share, atol=0.02)

    def test_activated_number_is_drawn_uniformly(self):
        """A linear kernel has no gamma that candidates with the radial kernel could be near to."""
        unit = draw_many_near(Region(KERNEL_SPACE), LINEAR)
        kernel, _cost, _gamma, _degree = KERNEL_SPACE.decode(unit).T
        _unit_kernel, _unit_cost, unit_gamma, _unit_degree = unit.T
        is_radial = kernel == 1
        gamma_of_radial = unit_gamma[is_radial]
        counts_in_quarters, _ = np.histogram(gamma_of_radial, bins=4, range=(0, 1))
        np.testing.assert_allclose(counts_in_quarters / len(gamma_of_radial), 0.25, atol=0.06)


class TestSteps:
    """Steps from the middle of a space of nine numbers."""

    steps = draw_many_near(Region(NINE_NUMBERS), {f"x{j}": 0.5 for j in range(9)}) - 0.5
    """Of every candidate, how far each number is from the middle, shape (4000, 9)."""
    moved_counts = np.sum(steps != 0.0, axis=1)
    """How many of its nine numbers are elsewhere, shape (4000,)."""

    def test_steps_move_all_numbers_or_few(self):
        """Half of the candidates differ from the middle in all nine numbers.

        The others differ in a share of them, `SHARE_OF_FEW_MOVED` on average.
        """
        moves_all = self.moved_counts == 9
        np.testing.assert_allclose(moves_all.mean(), 0.5, atol=0.02)
        mean_of_others = self.moved_counts[~moves_all].mean()
        np.testing.assert_allclose(mean_of_others, 9 * SHARE_OF_FEW_MOVED, atol=0.1)

    def test_steps_have_log_uniform_deviations(self):
        """Each step is normal, with a deviation drawn log-uniformly between 0.03 and 0.5.

        The deviation of a step is estimated from its nine numbers, if it moves them all.
        """
        steps_of_all_numbers = self.steps[self.moved_counts == 9]
        estimated_sd = np.std(steps_of_all_numbers, axis=1)
        # The median of a log-uniform distribution is the geometric mean of its ends.
        np.testing.assert_allclose(np.median(estimated_sd), np.sqrt(0.03 * 0.5), rtol=0.15)
        # The smallest deviation is 0.03, and its estimates scatter.
        assert 0.01 < estimated_sd.min() < 0.03


class TestBox:
    """Candidates are drawn in the smallest box around some configurations."""

    configs: ClassVar[list[Config]] = [
        {"kernel": "radial", "cost": 0.1, "gamma": 0.1},
        {"kernel": "polynomial", "cost": 10.0, "degree": 3},
        {"kernel": "polynomial", "cost": 10.0, "degree": 5},
    ]

    @pytest.mark.parametrize(
        "centre",
        [
            pytest.param(configs[0], id="inside"),
            pytest.param({"kernel": "linear", "cost": 1e3}, id="outside"),
        ],
    )
    def test_candidates_stay_in_the_box(self, centre):
        """Candidates near a configuration are in the box, even if that configuration is outside.

        The box spans radial (1) and polynomial kernels (2), costs from 0.1 to 10, and degrees from
        3 to 5.
        """
        box = Box(KERNEL_SPACE, KERNEL_SPACE.values(self.configs))
        kernel, cost, _gamma, degree = KERNEL_SPACE.decode(draw_many_near(box, centre)).T
        is_polynomial = kernel == 2
        assert set(kernel) == {1.0, 2.0}
        assert (cost >= 0.1).all()
        assert (cost <= 10.0).all()
        assert set(degree[is_polynomial]) == {3.0, 4.0, 5.0}


def test_random_candidates_stay_the_same(monkeypatch):
    """Random candidates are the same with and without candidates near the best beside them.

    So suggestions are the same, too, as long as no candidate near the best is chosen.
    """
    # A candidate near the best would have to be better by an infinite factor, so none is chosen.
    monkeypatch.setattr(_model_based, "LOG_ADVANTAGE", np.inf)
    configs, _ = optimise(make_method(FOUR_NUMBERS), bowl, trials=15)
    configs_without, _ = optimise(
        make_method(FOUR_NUMBERS, searches_near_best=False), bowl, trials=15
    )
    assert configs == configs_without


@pytest.mark.parametrize(("excess", "is_chosen"), [(-0.01, False), (0.01, True)])
def test_candidate_near_best_needs_an_advantage(excess, is_chosen):
    """A candidate near the best must promise four times the improvement of random ones.

    Here the logarithm of its improvement is higher by log 4 plus `excess`, just below or above.
    """
    method = make_method(FOUR_NUMBERS)
    optimise(method, bowl, trials=4)

    def score(unit: FloatArray) -> FloatArray:
        """Log expected improvement: 0 of random candidates, and more of those near the best.

        The random ones, `CANDIDATES` of them, come first. The others have log 4 and `excess`.
        """
        scores = np.zeros(len(unit))
        is_near_best = np.arange(len(unit)) >= CANDIDATES  # after the random candidates
        scores[is_near_best] = np.log(4.0) + excess
        return scores

    values = method._choose_best_untried(score, method._draw_near_best())

    assert (configuration_key(values) in method._suggested_near_best) == is_chosen


def config_with_equal_values(value: float) -> Config:
    """The configuration of four numbers, x0 to x3, that are all the same."""
    return {f"x{j}": value for j in range(4)}


class TestPlateau:
    """A loss that was seen before, after a step, ends the search near the best."""

    def make_method(self) -> tuple[BayesianOptimisation, list[float]]:
        """A method after five evaluations of a bowl, and their losses."""
        method = make_method(FOUR_NUMBERS)
        _, losses = optimise(method, bowl, trials=5)
        return method, losses

    def suggest_near_best_and_tell(
        self, method: BayesianOptimisation, config: Config, loss: float
    ) -> None:
        """Tell the loss of a configuration as if it had been suggested near the best."""
        key = configuration_key(FOUR_NUMBERS.row(config))
        method._suggested_near_best.add(key)
        method.tell(config, loss)

    def test_repeated_loss_near_best_ends_search(self):
        """A loss that was seen before means a plateau: no more candidates near the best."""
        method, earlier_losses = self.make_method()
        config = config_with_equal_values(0.2)
        self.suggest_near_best_and_tell(method, config, loss=earlier_losses[1])
        assert method._draw_near_best() is None

    def test_failures_near_best_continue_search(self):
        """Failures have the same loss, infinity, but are not as good as each other."""
        method, _ = self.make_method()
        method.tell(config_with_equal_values(0.9), np.inf)
        self.suggest_near_best_and_tell(method, config_with_equal_values(0.1), loss=np.inf)
        assert method._draw_near_best() is not None

    def test_repeated_loss_elsewhere_continues_search(self):
        """A loss that was seen before means no plateau unless it was found near the best."""
        method, earlier_losses = self.make_method()
        far_away = config_with_equal_values(0.9)
        method.tell(far_away, earlier_losses[0])
        assert method._draw_near_best() is not None


def test_small_space_has_no_candidates_near_best():
    """In a space of at most `CANDIDATES` configurations, all are candidates anyway."""
    space = hbo.SearchSpace([hbo.Parameter.number("k", 1, CANDIDATES, integer=True)])
    method = make_method(space)
    optimise(method, lambda config: float(config["k"]), trials=4)
    assert method._draw_near_best() is None


def regret_on_quadratic(*, searches_near_best: bool) -> float:
    """Mean regret of `bo` after 50 trials on tasks 4 and 20.

    The regret is the distance from the best value. `searches_near_best` switches candidates near
    the best configuration on or off.
    """
    benchmark = hbo.load("quadratic")
    spec = method_spec("bo")
    variant = type("Variant", (spec.method,), {"searches_near_best": searches_near_best})
    # Every task has two generators of its own, of the method and of its history, which do not
    # depend on the variant.
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


def test_regret_on_smooth_objective_falls_tenfold():
    """Candidates near the best lower it to less than a tenth of that with random ones alone."""
    regret = regret_on_quadratic(searches_near_best=True)
    regret_of_random = regret_on_quadratic(searches_near_best=False)
    assert regret < 0.1 * regret_of_random


def make_plateaus() -> Callable[[Config], float]:
    """A loss of four numbers that is constant around each of 60 points.

    The loss of a point is that of a bowl with its optimum at 0.4, and noise.
    """
    rng = np.random.default_rng(5)
    points = rng.random((60, 4))
    bowl_at_points = np.sum((points - 0.4) ** 2, axis=1)
    loss_of_point = bowl_at_points + 0.1 * rng.standard_normal(60)

    def loss(config: Config) -> float:
        """The loss of the nearest of the 60 points."""
        x = np.array(list(config.values()))
        squared_distances = np.sum((points - x) ** 2, axis=1)
        return float(loss_of_point[squared_distances.argmin()])

    return loss


class TestOnPlateaus:
    loss = staticmethod(make_plateaus())

    @pytest.mark.parametrize("seed", range(5))
    def test_at_most_one_step_is_wasted(self, seed):
        """A step is a suggestion near the best; it is wasted if its loss was seen before."""
        method = make_method(FOUR_NUMBERS, seed=seed)
        configs, losses = optimise(method, self.loss, trials=25)
        wasted_steps = 0
        for trial, config in enumerate(configs):
            is_step = configuration_key(FOUR_NUMBERS.row(config)) in method._suggested_near_best
            has_repeated_loss = losses[trial] in losses[:trial]
            if is_step and has_repeated_loss:
                wasted_steps += 1
        assert wasted_steps <= 1
