"""Candidates near the best configuration: where they lie, when they are chosen, what they bring."""

from collections.abc import Callable
from dataclasses import replace

import by_hand
import numpy as np
import pytest
from by_hand import kernels

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods import _model_based
from hpobench_ordered.methods._candidates import (
    CANDIDATES,
    NEAR,
    Region,
    configuration_key,
    draw_near,
)
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.bounding_box import Box
from hpobench_ordered.registry import method_spec

NINE = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(9)])
FOUR = hbo.SearchSpace([hbo.Parameter.number(f"x{j}", 0, 1) for j in range(4)])
MIXED = kernels(9)


def make(space, *, seed=0, searches_near_best=True):
    kind = type("Variant", (BayesianOptimisation,), {"searches_near_best": searches_near_best})
    return by_hand.make(kind, space=space, seed=seed, budget=50)


def optimise(method, loss, *, trials):
    configs = by_hand.optimise(method, loss, trials)
    return configs, [loss(config) for config in configs]


LINEAR: Config = {"kernel": "linear", "cost": 1.0}
MIDDLE: Config = {f"x{j}": 0.5 for j in range(9)}


def many_near(region: Region, config: Config) -> FloatArray:
    centre = region.space.encode(region.space.values([config]))
    rng = np.random.default_rng(0)
    return np.concatenate([draw_near(region, centre, rng) for _ in range(20)])


def bowl(config: Config) -> float:
    return sum((config[f"x{j}"] - 0.37) ** 2 for j in range(4))


@pytest.mark.parametrize(
    "config",
    [
        {"kernel": "linear", "cost": 1.0},
        {"kernel": "radial", "cost": 1e3, "gamma": 1e-3},
        {"kernel": "polynomial", "cost": 0.2, "degree": 9},
    ],
)
def test_they_are_canonical_configurations_of_the_space(config):
    unit = many_near(Region(MIXED), config)
    assert unit.shape == (20 * NEAR, 4)
    np.testing.assert_array_equal(unit, MIXED.canonical(unit))
    assert MIXED.allows(MIXED.decode(unit)).all()


def test_another_choice_has_probability_a_fifth_and_what_it_makes_active_is_drawn_anew():
    unit = many_near(Region(MIXED), LINEAR)
    values = MIXED.decode(unit)
    np.testing.assert_allclose(np.mean(values[:, 0] == 0), 0.8 + 0.2 / 3, atol=0.02)
    gamma, degree = unit[values[:, 0] == 1, 2], values[values[:, 0] == 2, 3]
    np.testing.assert_allclose(np.histogram(gamma, 4, (0, 1))[0] / len(gamma), 0.25, atol=0.06)
    assert set(degree) == set(range(2, 10))


def test_integers_move_by_whole_steps():
    config = {"kernel": "polynomial", "cost": 1, "degree": 5}
    values = MIXED.decode(many_near(Region(MIXED), config))
    degree = values[values[:, 0] == 2, 3]
    assert (degree == np.rint(degree)).all()
    assert np.mean(np.abs(degree - 5) <= 1) > 0.5
    assert {2, 9} <= set(degree)


def test_half_of_them_move_all_numbers_and_half_a_third_of_them_by_log_uniform_scales():
    moved = many_near(Region(NINE), MIDDLE) - 0.5
    count = np.sum(moved != 0.0, axis=1)
    np.testing.assert_allclose(np.mean(count == 9), 0.5, atol=0.02)
    np.testing.assert_allclose(count[count < 9].mean(), 3.0, atol=0.1)
    sd = np.std(moved[count == 9], axis=1)
    np.testing.assert_allclose(np.median(sd), np.sqrt(0.03 * 0.5), rtol=0.15)
    assert 0.01 < sd.min() < 0.03


def test_they_stay_in_the_box():
    configs = [
        {"kernel": "radial", "cost": 0.1, "gamma": 0.1},
        {"kernel": "polynomial", "cost": 10.0, "degree": 3},
        {"kernel": "polynomial", "cost": 10.0, "degree": 5},
    ]
    box = Box(MIXED, MIXED.values(configs))
    for config in (configs[0], {"kernel": "linear", "cost": 1e3}):  # one of them lies outside
        values = MIXED.decode(many_near(box, config))
        assert set(values[:, 0]) == {1.0, 2.0}
        assert (values[:, 1] >= 0.1).all() and (values[:, 1] <= 10.0).all()
        assert set(values[values[:, 0] == 2, 3]) == {3.0, 4.0, 5.0}


def test_random_candidates_stay_the_same_with_them(monkeypatch):
    monkeypatch.setattr(_model_based, "LOG_ADVANTAGE", np.inf)  # so that none of them is chosen
    with_them, _ = optimise(make(FOUR), bowl, trials=15)
    without, _ = optimise(make(FOUR, searches_near_best=False), bowl, trials=15)
    assert with_them == without


def test_one_is_chosen_only_if_it_is_expected_to_improve_four_times_as_much():
    method = make(FOUR)
    optimise(method, bowl, trials=4)

    def score(unit: FloatArray) -> FloatArray:
        scores = np.zeros(len(unit))
        scores[CANDIDATES:] = advantage
        return scores

    around = method._draw_near_best()
    advantage = np.log(4.0) - 0.01
    method._choose_best_untried(score, around)
    assert not method._suggested_near_best
    advantage = np.log(4.0) + 0.01
    assert (
        configuration_key(method._choose_best_untried(score, around)) in method._suggested_near_best
    )


def test_a_loss_seen_before_ends_them_if_it_comes_after_a_step():
    method = make(FOUR)
    _, losses = optimise(method, bowl, trials=5)
    method.tell({f"x{j}": 0.9 for j in range(4)}, losses[0])  # not after a step
    assert method._draw_near_best() is not None
    for step, loss in ((0.1, 7.0), (0.2, losses[1])):
        config = {f"x{j}": step for j in range(4)}
        method._suggested_near_best.add(configuration_key(FOUR.row(config)))
        method.tell(config, loss)
        assert (method._draw_near_best() is not None) == (loss == 7.0)
    small = make(hbo.SearchSpace([hbo.Parameter.number("k", 1, CANDIDATES, integer=True)]))
    optimise(small, lambda c: float(c["k"]), trials=4)
    assert small._draw_near_best() is None  # where all configurations are candidates


def regret_on_quadratic(name: str, *, searches_near_best: bool) -> float:
    """Mean regret after 50 trials on two tasks, after 100 random evaluations of all others."""
    benchmark, spec = hbo.load("quadratic"), method_spec(name)
    kind = type("Variant", (spec.method,), {"searches_near_best": searches_near_best})
    protocol = hbo.LeaveOneOut(trials=50, history=100, tasks=[4, 20])
    outcomes = follow(
        protocol,
        benchmark,
        replace(spec, method=kind),
        rng=lambda position: np.random.default_rng([0, position]),
        protocol_rng=lambda position: np.random.default_rng([1, position]),
    )
    return float(np.mean([benchmark.tasks[o.task].regret(o.objective).min() for o in outcomes]))


@pytest.mark.parametrize("name", ["bo", pytest.param("abrac", marks=pytest.mark.slow)])
def test_on_a_smooth_objective_regret_falls_by_an_order_of_magnitude(name):
    with_them, without = (regret_on_quadratic(name, searches_near_best=x) for x in (True, False))
    assert with_them < 0.1 * without


def nearest_of_few() -> Callable[[Config], float]:
    """The loss of the nearest of 60 points of a rough function: a plateau around each."""
    rng = np.random.default_rng(5)
    points = rng.random((60, 4))
    levels = np.sum((points - 0.4) ** 2, axis=1) + 0.1 * rng.standard_normal(60)

    def loss(config: Config) -> float:
        x = np.array(list(config.values()))
        return float(levels[np.argmin(np.sum((points - x) ** 2, axis=1))])

    return loss


def test_on_plateaus_they_cost_one_trial_at_most():
    loss = nearest_of_few()
    wasted, best = [], []
    for seed in range(20):
        method = make(FOUR, seed=seed)
        configs, losses = optimise(method, loss, trials=25)
        steps = [
            configuration_key(FOUR.row(config)) in method._suggested_near_best for config in configs
        ]
        wasted.append(sum(steps[i] and losses[i] in losses[:i] for i in range(25)))
        _, without = optimise(make(FOUR, seed=seed, searches_near_best=False), loss, trials=25)
        best.append((min(losses), min(without)))
    assert max(wasted) == 1
    difference = np.subtract(*np.array(best).T)
    assert difference.mean() < 2 * difference.std(ddof=1) / np.sqrt(20)
