"""bounding-box: the box around the previous tasks' optima, and the search in it."""

import math
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
from hpobench_ordered.space import Compare, Comparison

KERNEL_SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.choice("kernel", ("linear", "radial", "polynomial", "sigmoid")),
        hbo.Parameter.number("cost", 1e-3, 1e3, log=True),
        hbo.Parameter.number("gamma", 1e-3, 1e3, log=True),
        hbo.Parameter.number("degree", 1, 64, log=True, integer=True),
    ],
    conditions={"gamma": Compare(0, Comparison.EQUAL, (1.0,))},
)
"""gamma is active with the radial kernel alone."""
KERNEL, COST, GAMMA, DEGREE = range(4)
"""Columns of coded values."""
LINEAR, RADIAL, POLYNOMIAL, SIGMOID = range(4)
"""Coded values of the kernel."""

Values = tuple[float, float, float, float]
"""A configuration: coded values of kernel, cost, gamma and degree."""


def make_values(kernel: float, *, cost: float, degree: float, gamma: float = math.nan) -> Values:
    """A configuration; gamma is inactive (NaN) unless the kernel is radial."""
    return (kernel, cost, gamma, degree)


def make_box(*configurations: Values) -> Box:
    """Make the smallest box that contains these configurations."""
    return Box(KERNEL_SPACE, np.array(configurations))


def make_history(*optima: Values) -> list[hbo.Evaluations]:
    """Tasks with these best configurations, each beside two that are worse."""
    worst = make_values(SIGMOID, cost=1e-3, degree=1)
    second_best = make_values(LINEAR, cost=1e3, degree=64)
    losses = np.array([3.0, 2.0, 1.0])
    tasks = []
    for number, optimum in enumerate(optima):
        values = np.array([worst, second_best, optimum])
        tasks.append(minimised(f"task {number}", {}, values, losses, KERNEL_SPACE))
    return tasks


make_method = partial(by_hand.make_method, BoundingBox, space=KERNEL_SPACE)


def run_trials(method: hbo.Method, trials: int) -> FloatArray:
    """Play a method, and return its suggestions as rows of coded values.

    The loss is lowest at cost 1 and degree 1.
    """

    def loss(config: Config) -> float:
        distance_of_cost = abs(np.log10(config["cost"]))
        return float(distance_of_cost + config["degree"] / 64)

    return KERNEL_SPACE.values(by_hand.optimise(method, loss, trials=trials))


# -- the box ---------------------------------------------------------------------------------------


def test_hyperparameter_inactive_in_all_is_unrestricted():
    """gamma, inactive in both configurations, keeps its whole range, [0, 1] in the unit cube."""
    box = make_box(
        make_values(POLYNOMIAL, cost=0.1, degree=3), make_values(LINEAR, cost=10.0, degree=9)
    )
    assert box._lower[GAMMA] == 0.0
    assert box._width[GAMMA] == 1.0


def sample_values(box: Box) -> FloatArray:
    return KERNEL_SPACE.decode(box.sample_unit(np.random.default_rng(0), 20_000))


def test_samples_are_canonical():
    """Canonical unit vectors have integers in the middle of their bins, and inactive ones NaN."""
    box = make_box(
        make_values(RADIAL, cost=0.1, gamma=0.5, degree=2),
        make_values(SIGMOID, cost=10.0, gamma=2.0, degree=5),
    )
    unit = box.sample_unit(np.random.default_rng(0), 20_000)
    np.testing.assert_array_equal(unit, KERNEL_SPACE.canonical(unit))


def test_choices_and_numbers_are_drawn_uniformly():
    """Each kernel is drawn equally often, and costs are around the middle of their range."""
    # Two kernels, and costs from 0.1 to 10, on a logarithmic scale around 1.
    values = sample_values(
        make_box(
            make_values(RADIAL, cost=0.1, gamma=0.5, degree=2),
            make_values(SIGMOID, cost=10.0, gamma=2.0, degree=5),
        )
    )
    assert np.mean(values[:, KERNEL] == RADIAL) == pytest.approx(0.5, abs=0.02)
    assert np.mean(np.log10(values[:, COST])) == pytest.approx(0.0, abs=0.02)


def test_integers_are_drawn_by_width_of_bins():
    """Degrees are from 2 to 5 in the box.

    On their logarithmic scale, the bins of larger ones are narrower.
    """
    values = sample_values(
        make_box(
            make_values(RADIAL, cost=0.1, gamma=0.5, degree=2),
            make_values(SIGMOID, cost=10.0, gamma=2.0, degree=5),
        )
    )
    degrees = np.arange(2, 6)
    bin_widths = np.log(degrees + 0.5) - np.log(degrees - 0.5)  # the scale is logarithmic
    shares = [np.mean(values[:, DEGREE] == degree) for degree in degrees]
    np.testing.assert_allclose(shares, bin_widths / bin_widths.sum(), atol=0.02)


def test_features_span_unit_interval():
    """The range of a number in the box becomes the range of its feature, 0 to 1."""
    # One kernel; the three numbers have ranges.
    box = make_box(
        make_values(RADIAL, cost=0.1, gamma=0.5, degree=2),
        make_values(RADIAL, cost=10.0, gamma=2.0, degree=5),
    )
    features = box.features(box.sample_unit(np.random.default_rng(0), 5000))
    features_of_numbers = features[:, 4:]  # after the one-hot columns of four kernels
    feature_of_cost = features_of_numbers[:, 0]
    assert features_of_numbers.min() >= 0.0
    assert features_of_numbers.max() <= 1.0
    # 5000 samples come close to both ends.
    assert np.ptp(feature_of_cost) > 0.99


def test_blocks_contain_whole_finite_box():
    """Two kernels and degrees from 3 to 7; the cost has one value, gamma is inactive."""
    box = make_box(
        make_values(POLYNOMIAL, cost=0.1, degree=3), make_values(LINEAR, cost=0.1, degree=7)
    )
    blocks = list(iter_candidate_blocks(box, np.random.default_rng(0)))
    values = KERNEL_SPACE.decode(np.concatenate(blocks))
    expected = set(product((LINEAR, POLYNOMIAL), range(3, 8)))
    assert {(row[KERNEL], row[DEGREE]) for row in values} == expected


# -- the method ------------------------------------------------------------------------------------


def make_history_of_three() -> list[hbo.Evaluations]:
    """Three tasks, whose optima have two kernels, costs from 0.1 to 10, degrees from 3 to 9."""
    return make_history(
        make_values(RADIAL, cost=0.1, gamma=0.5, degree=3),
        make_values(POLYNOMIAL, cost=10.0, degree=9),
        make_values(RADIAL, cost=2.0, gamma=2.0, degree=5),
    )


def test_suggested_choices_occur_in_optima():
    """Only kernels are suggested that were the best on one of the earlier tasks."""
    # These are the kernels of the three earlier optima.
    values = run_trials(make_method(make_history_of_three()), trials=60)
    assert set(values[:, KERNEL]) == {RADIAL, POLYNOMIAL}


@pytest.mark.parametrize(
    ("column", "lowest", "highest"), [(COST, 0.1, 10.0), (GAMMA, 0.5, 2.0), (DEGREE, 3, 9)]
)
def test_suggested_numbers_lie_between_optima(column, lowest, highest):
    """The lowest and highest value of three earlier optima bound cost, gamma or degree."""
    values = run_trials(make_method(make_history_of_three()), trials=60)[:, column]
    assert lowest <= np.nanmin(values)
    assert np.nanmax(values) <= highest


def test_equal_optima_leave_whole_space():
    """The box would be a single point, so the method suggests as `bo` does."""
    optimum = make_values(RADIAL, cost=0.1, gamma=0.5, degree=3)
    same_optimum = make_history(optimum, optimum, optimum)
    bo = by_hand.make_method(BayesianOptimisation, space=KERNEL_SPACE)
    np.testing.assert_array_equal(
        run_trials(make_method(same_optimum), trials=12), run_trials(bo, trials=12)
    )
