"""Bayesian optimisation: initial design, repeats, failures, determinism, quality."""

import math
import time

import by_hand
import numpy as np
import pytest
from by_hand import TWELVE, optimise

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
from hpobench_ordered.methods._gp.model import standardise
from hpobench_ordered.methods.random_search import RandomSearch

PLAIN = hbo.SearchSpace(
    [hbo.Parameter.number("x", 0, 1), hbo.Parameter.number("y", 1e-4, 1, log=True)]
)


def make(space, *, seed=0, **settings):
    kind = type("Variant", (bo.BayesianOptimisation,), settings)
    return by_hand.make(kind, space=space, seed=seed)


def bowl(config: Config) -> float:
    return (config["x"] - 0.3) ** 2 + (math.log10(config["y"]) / 4 + 0.6) ** 2


def told_at_random(evaluations: int) -> bo.BayesianOptimisation:
    method, unit = make(PLAIN), PLAIN.sample_unit(np.random.default_rng(2), evaluations)
    for config in PLAIN.configs(PLAIN.decode(unit)):
        method.tell(config, bowl(config))
    return method


def test_initial_configurations_come_first_once_and_replace_the_random_ones():
    initial = [{"x": x, "y": 0.1} for x in (0.1, 0.2, 0.1, 0.3)]
    method = make(PLAIN, initial_configurations=lambda self: initial)
    before = method.rng.bit_generator.state
    assert optimise(method, bowl, trials=3) == [initial[0], initial[1], initial[3]]
    assert method.rng.bit_generator.state == before
    assert method.ask() not in initial


@pytest.mark.parametrize("random_trials", [0, 1, 3, 5])
def test_the_first_trials_are_those_of_random_search(random_trials):
    ours = optimise(make(PLAIN, random_trials=random_trials), bowl, trials=6)
    theirs = optimise(by_hand.make(RandomSearch, space=PLAIN), bowl, trials=6)
    assert [a == b for a, b in zip(ours, theirs, strict=True)].index(False) == random_trials


def test_random_trials_go_on_until_there_are_as_many_results():
    method, peer = make(PLAIN), np.random.default_rng(0)
    asked = [method.ask() for _ in range(4)]
    for config in asked[:2]:
        method.tell(config, bowl(config))
    asked.append(method.ask())
    method.tell(asked[2], bowl(asked[2]))
    drawn = [PLAIN.sample(peer) for _ in range(6)]
    assert asked == drawn[:5]
    assert method.ask() != drawn[5]


def test_a_space_larger_than_a_block_is_exhausted_too():
    space = hbo.SearchSpace([hbo.Parameter.number("k", 1, CANDIDATES + 9, integer=True)])
    tried, rng = TriedConfigurations(space), np.random.default_rng(0)
    for k in set(range(1, CANDIDATES + 10)) - {234}:
        tried.add(np.array([float(k)]))
    blocks = iter_candidate_blocks(Region(space), rng)
    starts = [tried.find_best_untried(unit, rng.random(len(unit))) for unit in blocks]
    assert {float(found[1][0]) for found in starts if found is not None} == {234.0}


def test_blocks_of_a_conditional_space_are_canonical_and_complete():
    degree = hbo.Parameter.number("degree", 2, 5, integer=True)
    space = hbo.SearchSpace(
        [hbo.Parameter.choice("kernel", ("linear", "polynomial")), degree],
        conditions={"degree": hbo.Compare(0, hbo.Comparison.EQUAL, (1.0,))},
    )
    (block,) = iter_candidate_blocks(Region(space), np.random.default_rng(0))
    np.testing.assert_array_equal(block, space.canonical(block))
    configs = {tuple(c.items()) for c in space.configs(space.decode(block))}
    assert len(configs) == 5
    ours = optimise(make(space), lambda c: float(c.get("degree", 0)), trials=5)
    assert {tuple(c.items()) for c in ours} == configs


def test_evaluations_nobody_asked_for_are_learnt_from_and_not_suggested():
    method = make(TWELVE, random_trials=0)
    for k in range(1, 5):
        method.tell({"k": k, "c": "a"}, float(k))
    assert all(c["c"] != "a" for c in (method.ask() for _ in range(8)))
    with pytest.raises(InvalidConfigError):
        method.tell({"k": 5, "c": "a"}, 1.0)


def test_pending_configurations_repel_the_next_ones():
    def spread(seed: int, *, told: bool) -> float:
        method = make(PLAIN, seed=seed)
        optimise(method, bowl, trials=4)
        points = []
        for _ in range(6):
            config = method.ask()
            points.append((config["x"], math.log10(config["y"]) / 4))
            if not told:
                method._pending.clear()  # as if nothing were known of it
        return float(np.linalg.norm(np.std(points, axis=0)))

    apart = sum(spread(seed, told=True) for seed in range(5))
    assert apart > 1.5 * sum(spread(seed, told=False) for seed in range(5))


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_counts_as_the_worst(loss):
    method, peer, worst = make(PLAIN, seed=1), make(PLAIN, seed=1), -math.inf
    for _ in range(20):
        config = method.ask()
        assert config == peer.ask()
        value = loss if config["x"] > 0.6 else bowl(config)
        method.tell(config, value)
        worst = max(worst, value) if math.isfinite(value) else worst
        peer.tell(config, value)
    assert method.fallbacks == 0
    expected = [x if math.isfinite(x) else worst for x in method._losses]
    np.testing.assert_array_equal(method.evaluated_losses(), expected)
    assert sum(not math.isfinite(x) for x in method._losses) < 12


@pytest.mark.parametrize(
    "loss",
    [
        lambda c: 3.0,
        lambda c: -1e300,
        lambda c: 1e308 if c["x"] > 0.5 else -1e308,
        lambda c: 1e12 * bowl(c),
        lambda c: 1e12 + bowl(c),
        lambda c: 1e-300 * bowl(c),
        lambda c: 5e-324 if c["x"] > 0.5 else 0.0,
        lambda c: math.exp(60 * c["x"]),
    ],
    ids=["constant", "huge constant", "range", "scaled", "offset", "tiny", "subnormal", "skewed"],
)
def test_losses_of_any_scale_are_modelled_without_falling_back(loss):
    method = make(PLAIN)
    configs = optimise(method, loss, trials=20)
    assert method.fallbacks == 0
    assert len({tuple(c.items()) for c in configs}) == 20


def test_suggestions_do_not_depend_on_scale_and_offset():
    plain = optimise(make(PLAIN), bowl, trials=15)
    assert plain == optimise(make(PLAIN), lambda c: 2.0**40 * bowl(c), trials=15)


def test_a_model_that_fails_is_counted_and_replaced_by_a_random_trial():
    method = make(PLAIN)
    optimise(method, bowl, trials=3)
    method._evaluated_units[0] = np.array([math.inf, 0.5])
    assert len({tuple(c.items()) for c in optimise(method, bowl, trials=4)}) == 4
    assert method.fallbacks == 4


def test_above_the_limit_the_best_and_random_others_are_conditioned_on():
    losses = np.random.default_rng(0).permutation(3 * bo.MAX_CONDITIONED).astype(float)
    rng = np.random.default_rng(1)
    first, second = (bo.choose_best_and_random(losses, rng) for _ in range(2))
    for chosen in (first, second):
        assert len(set(chosen.tolist())) == bo.MAX_CONDITIONED
        assert set(np.flatnonzero(losses < bo.BEST_CONDITIONED)) <= set(chosen.tolist())
    shared = len(np.intersect1d(first, second)) - bo.BEST_CONDITIONED
    assert 0.2 < shared / (bo.MAX_CONDITIONED - bo.BEST_CONDITIONED) < 0.6
    in_order_of_evaluation = np.diff(first) > 0
    assert in_order_of_evaluation.all()


@pytest.mark.parametrize("extra", [0, 1, 900])
def test_observations_are_at_most_so_many(extra):
    method = told_at_random(bo.MAX_CONDITIONED + extra)
    X, y = method.observations()
    assert (X.shape, y.shape) == ((bo.MAX_CONDITIONED, 2), (bo.MAX_CONDITIONED,))
    np.testing.assert_allclose(y.min(), standardise(method.evaluated_losses()).min())
    assert min(map(bowl, optimise(method, bowl, trials=5))) < 1e-3
    assert method.fallbacks == 0


@pytest.mark.slow
def test_a_suggestion_costs_no_more_with_many_more_evaluations():
    def once(evaluations: int) -> float:
        method = told_at_random(evaluations)
        optimise(method, bowl, trials=1)  # with the first fit
        begun = time.process_time()
        optimise(method, bowl, trials=2 * bo.SECOND_START_INTERVAL)
        return time.process_time() - begun

    def seconds(evaluations: int) -> float:  # other work only ever adds to it
        return min(once(evaluations) for _ in range(5))

    assert seconds(5 * bo.MAX_CONDITIONED) < 3 * seconds(bo.MAX_CONDITIONED)
