"""The box around the previous tasks' optima."""

from functools import partial

import by_hand
import numpy as np
import pytest
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered.methods._candidates import iter_candidate_blocks
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.bounding_box import BoundingBox, Box

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.choice("kernel", ("linear", "radial", "polynomial", "sigmoid")),
        *(hbo.Parameter.number(name, 1e-3, 1e3, log=True) for name in ("cost", "gamma")),
        hbo.Parameter.number("degree", 1, 64, log=True, integer=True),
    ],
    conditions={"gamma": hbo.Compare(0, hbo.Comparison.EQUAL, (1.0,))},
)
NAN = np.nan


def rows(*configurations: tuple[float, float, float, float]) -> np.ndarray:
    return np.array(configurations)


def history(*optima: tuple[float, float, float, float]) -> list[hbo.Evaluations]:
    """Tasks with these best configurations, each beside two that are worse."""
    others, losses = rows((3, 1e-3, NAN, 1), (0, 1e3, NAN, 64)), np.array([3.0, 2.0, 1.0])
    tables = (np.concatenate([others, rows(best)]) for best in optima)
    return [minimised(f"{i}", {}, values, losses, SPACE) for i, values in enumerate(tables)]


make = partial(by_hand.make, BoundingBox, space=SPACE)


def play(method, trials):
    def loss(config):
        return abs(np.log10(config["cost"])) + config["degree"] / 64

    return SPACE.values(by_hand.optimise(method, loss, trials))


def test_every_suggestion_lies_between_the_optima():
    tasks = history((1, 0.1, 0.5, 3), (2, 10.0, NAN, 9), (1, 2.0, 2.0, 5))
    kernel, cost, gamma, degree = play(make(tasks), 60).T
    assert set(kernel) == {1.0, 2.0}
    assert 0.1 <= cost.min() < 0.3 and 5.0 < cost.max() <= 10.0
    assert np.nanmin(gamma) >= 0.5 and np.nanmax(gamma) <= 2.0
    assert set(degree) <= set(range(3, 10))


def test_what_is_inactive_in_all_optima_is_not_restricted():
    box = Box(SPACE, rows((2, 0.1, NAN, 3), (0, 10.0, NAN, 9)))
    np.testing.assert_array_equal(box._lower[2], 0.0)
    np.testing.assert_array_equal(box._width[2], 1.0)
    assert not len(set(box.sample_unit(np.random.default_rng(0), 200)[:, 0]) - {0.125, 0.625})


def test_samples_are_uniform_in_the_box():
    box = Box(SPACE, rows((1, 0.1, 0.5, 2), (3, 10.0, 2.0, 5)))
    unit = box.sample_unit(np.random.default_rng(0), 20_000)
    values = SPACE.decode(unit)
    np.testing.assert_array_equal(unit, SPACE.canonical(unit))
    assert np.mean(values[:, 0] == 1) == pytest.approx(0.5, abs=0.02)
    assert np.mean(np.log10(values[:, 1])) == pytest.approx(0.0, abs=0.02)
    # Integers on a log scale are drawn in proportion to their bins, as in the whole space.
    widths = np.log(np.arange(2, 6) + 0.5) - np.log(np.arange(2, 6) - 0.5)
    shares = [np.mean(values[:, 3] == k) for k in range(2, 6)]
    np.testing.assert_allclose(shares, widths / widths.sum(), atol=0.02)


def test_features_span_the_unit_interval_within_the_box():
    box = Box(SPACE, rows((1, 0.1, 0.5, 2), (1, 10.0, 2.0, 5)))
    features = box.features(box.sample_unit(np.random.default_rng(0), 5000))
    assert (features[:, 1] == 1).all()
    assert features[:, 4:].min() >= 0.0 and features[:, 4:].max() <= 1.0
    assert np.ptp(features[:, 4]) > 0.99


def test_the_same_optimum_everywhere_leaves_the_whole_space_to_bo():
    tasks = history(*[(1, 0.1, 0.5, 3)] * 3)
    plain = by_hand.make(BayesianOptimisation, space=SPACE)
    np.testing.assert_array_equal(play(make(tasks), 12), play(plain, 12))


def test_a_box_of_few_configurations_is_exhausted_and_then_repeats():
    method = make(history((2, 0.1, NAN, 3), (3, 0.1, NAN, 4)))
    assert method.region.size == np.inf  # gamma would be free, were it active
    values = play(method, 8)
    assert set(values[:, 1]) == {SPACE.decode(SPACE.encode(rows((2, 0.1, NAN, 3))))[0, 1]}
    asked = [row.tobytes() for row in values]
    assert len(set(asked[:4])) == len(set(asked)) == 4
    assert method.fallbacks == 0


def test_blocks_of_a_finite_box_hold_each_of_its_configurations():
    box = Box(SPACE, rows((2, 0.1, NAN, 3), (0, 0.1, NAN, 7)))
    blocks = list(iter_candidate_blocks(box, np.random.default_rng(0)))
    values = SPACE.decode(np.concatenate(blocks))
    assert {(row[0], row[3]) for row in values} == {(k, n) for k in (0, 2) for n in range(3, 8)}
