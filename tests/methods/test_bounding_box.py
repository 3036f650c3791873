"""bounding-box: the box around the previous tasks' optima, and the search in it."""

from functools import partial
from itertools import product

import by_hand
import numpy as np
import pytest
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods._candidates import iter_candidate_blocks
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.bounding_box import BoundingBox, Box

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.choice("kernel", ("linear", "radial", "polynomial", "sigmoid")),
        hbo.Parameter.number("cost", 1e-3, 1e3, log=True),
        hbo.Parameter.number("gamma", 1e-3, 1e3, log=True),
        hbo.Parameter.number("degree", 1, 64, log=True, integer=True),
    ],
    conditions={"gamma": hbo.Compare(0, hbo.Comparison.EQUAL, (1.0,))},
)
"""gamma is active with the radial kernel, 1, alone."""
KERNEL, COST, GAMMA, DEGREE = range(4)
NAN = np.nan

Values = tuple[float, float, float, float]
"""A configuration: coded values of kernel, cost, gamma and degree."""


def make_box(*configurations: Values) -> Box:
    """The box around configurations (kernel, cost, gamma, degree)."""
    return Box(SPACE, np.array(configurations))


def make_history(*optima: Values) -> list[hbo.Evaluations]:
    """Tasks with these best configurations, each beside two that are worse.

    An optimum is (kernel, cost, gamma, degree), with gamma NAN where the kernel is not 1.
    """
    worse: list[Values] = [(3, 1e-3, NAN, 1), (0, 1e3, NAN, 64)]
    tasks = []
    for name, optimum in enumerate(optima):
        values = np.array([*worse, optimum])
        tasks.append(minimised(f"{name}", {}, values, np.array([3.0, 2.0, 1.0]), SPACE))
    return tasks


make_method = partial(by_hand.make_method, BoundingBox, space=SPACE)


def run_trials(method: hbo.Method, trials: int) -> FloatArray:
    """Coded values of suggestions; the loss is lowest at cost 1 and degree 1."""

    def loss(config: Config) -> float:
        return float(abs(np.log10(config["cost"])) + config["degree"] / 64)

    return SPACE.values(by_hand.optimise(method, loss, trials=trials))


# -- the box ---------------------------------------------------------------------------------------


def test_hyperparameter_inactive_in_all_is_unrestricted():
    """gamma, NAN in both configurations, keeps its range of the unit cube."""
    box = make_box((2, 0.1, NAN, 3), (0, 10.0, NAN, 9))
    assert box._lower[GAMMA] == 0.0
    assert box._width[GAMMA] == 1.0


def test_only_occurring_choices_are_drawn():
    # Of configurations (kernel, cost, gamma, degree): kernels 2 and 0 of four.
    box = make_box((2, 0.1, NAN, 3), (0, 10.0, NAN, 9))
    values = SPACE.decode(box.sample_unit(np.random.default_rng(0), 200))
    assert set(values[:, KERNEL]) == {0.0, 2.0}


def sample_values(box: Box) -> FloatArray:
    return SPACE.decode(box.sample_unit(np.random.default_rng(0), 20_000))


def test_samples_are_canonical():
    """The box is around two configurations (kernel, cost, gamma, degree)."""
    box = make_box((1, 0.1, 0.5, 2), (3, 10.0, 2.0, 5))
    unit = box.sample_unit(np.random.default_rng(0), 20_000)
    np.testing.assert_array_equal(unit, SPACE.canonical(unit))


def test_choices_and_numbers_are_drawn_uniformly():
    # Of configurations (kernel, cost, gamma, degree): kernels 1 and 3; costs from 0.1 to 10, on a
    # logarithmic scale around 1.
    values = sample_values(make_box((1, 0.1, 0.5, 2), (3, 10.0, 2.0, 5)))
    assert np.mean(values[:, KERNEL] == 1) == pytest.approx(0.5, abs=0.02)
    assert np.mean(np.log10(values[:, COST])) == pytest.approx(0.0, abs=0.02)


def test_integers_are_drawn_by_width_of_bins():
    """Degrees, the last values, are from 2 to 5 in the box; larger ones share the logarithmic scale
    more closely.
    """
    values = sample_values(make_box((1, 0.1, 0.5, 2), (3, 10.0, 2.0, 5)))
    degrees = np.arange(2, 6)
    bin_widths = np.log(degrees + 0.5) - np.log(degrees - 0.5)  # the scale is logarithmic
    shares = [np.mean(values[:, DEGREE] == degree) for degree in degrees]
    np.testing.assert_allclose(shares, bin_widths / bin_widths.sum(), atol=0.02)


def test_features_span_unit_interval():
    # Of configurations (kernel, cost, gamma, degree): one kernel; the others have ranges.
    box = make_box((1, 0.1, 0.5, 2), (1, 10.0, 2.0, 5))
    features = box.features(box.sample_unit(np.random.default_rng(0), 5000))
    numbers = features[:, 4:]  # after four columns of the kernel
    cost = numbers[:, 0]
    assert numbers.min() >= 0.0
    assert numbers.max() <= 1.0
    # 5000 samples come close to both ends.
    assert np.ptp(cost) > 0.99


def test_blocks_contain_whole_finite_box():
    """Kernels 0 and 2 with degrees 3 to 7; the cost has one value, gamma is inactive."""
    box = make_box((2, 0.1, NAN, 3), (0, 0.1, NAN, 7))
    blocks = list(iter_candidate_blocks(box, np.random.default_rng(0)))
    values = SPACE.decode(np.concatenate(blocks))
    expected = set(product((0, 2), range(3, 8)))
    assert {(row[KERNEL], row[DEGREE]) for row in values} == expected


# -- the method ------------------------------------------------------------------------------------


def make_history_of_three() -> list[hbo.Evaluations]:
    return make_history((1, 0.1, 0.5, 3), (2, 10.0, NAN, 9), (1, 2.0, 2.0, 5))


def test_suggested_choices_occur_in_optima():
    # Earlier optima have the kernels 1 and 2.
    values = run_trials(make_method(make_history_of_three()), trials=60)
    assert set(values[:, KERNEL]) == {1.0, 2.0}


@pytest.mark.parametrize(
    ("column", "lowest", "highest"), [(COST, 0.1, 10.0), (GAMMA, 0.5, 2.0), (DEGREE, 3, 9)]
)
def test_suggested_numbers_lie_between_optima(column, lowest, highest):
    """Of cost, gamma or degree, by the column of its values."""
    # The ends are the smallest and largest values of three earlier optima.
    values = run_trials(make_method(make_history_of_three()), trials=60)[:, column]
    assert lowest <= np.nanmin(values)
    assert np.nanmax(values) <= highest


def test_suggestions_span_box():
    # Earlier optima have costs from 0.1 to 10.
    cost = run_trials(make_method(make_history_of_three()), trials=60)[:, COST]
    assert cost.min() < 0.3
    assert cost.max() > 5.0


def test_equal_optima_leave_whole_space():
    """The box would be a single point, so the method suggests as `bo` does.

    An optimum is (kernel, cost, gamma, degree).
    """
    optimum = (1, 0.1, 0.5, 3)
    same_optimum = make_history(optimum, optimum, optimum)
    bo = by_hand.make_method(BayesianOptimisation, space=SPACE)
    np.testing.assert_array_equal(
        run_trials(make_method(same_optimum), trials=12), run_trials(bo, trials=12)
    )


def test_small_box_is_exhausted_before_repeats():
    """Four configurations: two kernels (2 and 3) and two degrees (3 and 4) with one cost.

    The box counts as infinite because of gamma, which would be free but is inactive.
    """
    method = make_method(make_history((2, 0.1, NAN, 3), (3, 0.1, NAN, 4)))
    assert method.region.size == np.inf
    configurations = [row.tobytes() for row in run_trials(method, trials=8)]
    first_four = set(configurations[:4])
    assert len(first_four) == 4
    assert set(configurations) == first_four
    assert method.fallbacks == 0


def test_equal_numbers_are_kept():
    # Both earlier optima, (kernel, cost, gamma, degree), have cost 0.1; gamma is inactive (NAN).
    method = make_method(make_history((2, 0.1, NAN, 3), (3, 0.1, NAN, 4)))
    assert run_trials(method, trials=8)[:, COST] == pytest.approx(0.1, rel=1e-12)
