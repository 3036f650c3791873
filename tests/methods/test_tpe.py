"""TPE beside statsmodels' kernel densities; conditions, few and failed evaluations."""

import math
import warnings

import numpy as np
import pytest
from by_hand import make_method, optimise
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import kstest, truncnorm
from statsmodels.nonparametric.kernel_density import KDEMultivariate

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.methods import _tpe as tpe
from hpobench_ordered.methods._coding import count_choices
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.space import Compare, Comparison

MIXED_SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("x", -5, 5),
        hbo.Parameter.choice("kind", ("a", "b", "c")),
        hbo.Parameter.number("rate", 1e-4, 1, log=True),
    ]
)
"""Two numbers and, in column 1, one of three choices."""


def make_evaluations(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Unit vectors (n, 3) of random configurations of `MIXED_SPACE`, and their losses (n,)."""
    rng = np.random.default_rng(seed)
    unit = MIXED_SPACE.sample_unit(rng, n)
    bowl = np.sum((unit - 0.4) ** 2, axis=1)
    return unit, bowl + 0.1 * rng.standard_normal(n)


CHOICE_COUNTS = count_choices(MIXED_SPACE.parameters)
"""Number of choices of each hyperparameter of `MIXED_SPACE`; 0 stands for a number."""


def code_for_statsmodels(unit: FloatArray) -> FloatArray:
    """Unit vectors of `MIXED_SPACE`, with choices as indices, as statsmodels has them."""
    index_of_choice = np.floor(unit * CHOICE_COUNTS)
    return np.where(CHOICE_COUNTS > 0, index_of_choice, unit)


def fit_statsmodels(unit: FloatArray) -> KDEMultivariate:
    """Fit statsmodels' kernel density to unit vectors of `MIXED_SPACE`."""
    types = "cuc"  # a continuous number, an unordered choice, a number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of random numbers it does not draw
        return KDEMultivariate(code_for_statsmodels(unit), types, bw="normal_reference")


@given(st.integers(0, 10**6), st.integers(20, 120))
def test_bandwidths_equal_those_of_statsmodels(seed, n):
    """Bandwidths are those of statsmodels, which has no bounds, moved to the nearest of ours.

    The bandwidth of a choice among three is at most 2 / 3, at which all three are equally probable.
    """
    unit, _losses = make_evaluations(n, seed)
    density = tpe.Density.fit(unit, CHOICE_COUNTS)
    upper_bounds = [np.inf, 2 / 3, np.inf]
    expected = np.clip(fit_statsmodels(unit).bw, tpe.MIN_BANDWIDTH, upper_bounds)
    assert_allclose(density.bandwidths, expected, rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(20, 120))
def test_densities_equal_those_of_statsmodels(seed, n):
    """With our bandwidths, statsmodels computes the same densities."""
    unit, _losses = make_evaluations(n, seed)
    # Statsmodels counts the choices that occur, so all three must.
    occurring_choices = np.unique(unit[:, 1])
    assume(len(occurring_choices) == 3)
    candidates = MIXED_SPACE.sample_unit(np.random.default_rng(seed + 1), 64)
    density = tpe.Density.fit(unit, CHOICE_COUNTS)
    reference = fit_statsmodels(unit)
    reference.bw = density.bandwidths
    expected = reference.pdf(code_for_statsmodels(candidates))
    assert_allclose(np.exp(density.log(candidates)), expected, rtol=1e-6, atol=1e-30)


@given(st.integers(0, 10**6), st.integers(40, 120))
def test_score_is_ratio_of_densities(seed, n):
    """The score is a log ratio: of the density of the best evaluations over that of the others."""
    unit, losses = make_evaluations(n, seed)
    candidates = MIXED_SPACE.sample_unit(np.random.default_rng(seed + 1), 64)
    order = np.argsort(losses)
    good_count = max(MIXED_SPACE.dimension + 1, math.floor(tpe.GOOD_SHARE * n))
    good = tpe.Density.fit(unit[order[:good_count]], CHOICE_COUNTS)
    bad = tpe.Density.fit(unit[order[good_count:]], CHOICE_COUNTS)

    scores = tpe.ParzenModel.fit(unit, losses, CHOICE_COUNTS).score(candidates)

    assert_allclose(scores, good.log(candidates) - bad.log(candidates))


@pytest.mark.parametrize(
    ("evaluations", "good"), [(2, 1), (5, 2), (6, 3), (10, 3), (40, 6), (100, 15)]
)
def test_evaluations_are_split_by_loss(evaluations, good):
    """The best 15 % of evaluations are good ones, or three if that is more, but at most half.

    The loss is the first of two numbers, so that it is known of evaluations on either side.
    """
    unit = np.random.default_rng(evaluations).random((evaluations, 2))
    losses = unit[:, 0]
    choice_counts = np.zeros(2, dtype=np.int64)  # both are numbers
    model = tpe.ParzenModel.fit(unit, losses, choice_counts)
    losses_of_good = model.good.data[:, 0]
    losses_of_bad = model.bad.data[:, 0]
    assert len(losses_of_good) == good
    assert len(losses_of_bad) == evaluations - good
    assert losses_of_good.max() < losses_of_bad.min()


def test_conditional_density_integrates_to_one():
    """The integral over a conditional space is estimated from uniform draws.

    The space has a choice of three kinds, of which the first alone has a number x, and a number y
    for all.
    """
    kind = hbo.Parameter.choice("kind", ("a", "b", "c"))
    x = hbo.Parameter.number("x", 0, 1)
    y = hbo.Parameter.number("y", 0, 1)
    is_a = Compare(0, Comparison.EQUAL, (0.0,))
    space = hbo.SearchSpace([kind, x, y], conditions={"x": is_a})
    rng = np.random.default_rng(0)
    # Numbers are far from their bounds, as the density beyond would be lost.
    data = 0.35 + 0.3 * rng.random((15, 3))
    unit_values_of_kinds = [0.1, 0.5, 0.9]
    data[:, 0] = np.repeat(unit_values_of_kinds, 5)
    density = tpe.Density.fit(space.canonical(data), count_choices(space.parameters))
    _bandwidth_of_kind, *bandwidths_of_numbers = density.bandwidths
    assert max(bandwidths_of_numbers) < 0.1

    uniform_draws = space.sample_unit(rng, 200_000)
    densities = np.exp(density.log(uniform_draws))
    # Of a choice, the density is a probability: it sums to 1 over three kinds, each drawn with 1/3.
    integral = np.mean(densities) / (1 / 3)
    assert_allclose(integral, 1.0, atol=0.03)


def sample_around(value: float, *, choices: int, bandwidth: float, n: int) -> FloatArray:
    """Draw n unit values around a single evaluated one of a single hyperparameter.

    It is a choice among so many `choices`, or a number if these are 0.
    """
    unit = np.array([[value]])
    density = tpe.Density(unit, np.array([choices]), np.array([bandwidth]))
    samples = density.sample(np.random.default_rng(0), n)
    return samples[:, 0]


def test_numbers_are_drawn_from_truncated_normals():
    """The normal distribution is wider than the density's kernel, by `SAMPLING_WIDTH`.

    It is truncated to the range of unit values, 0 to 1.
    """
    value, bandwidth = 0.1, 0.05
    drawn = sample_around(value, choices=0, bandwidth=bandwidth, n=4000)
    sd = tpe.SAMPLING_WIDTH * bandwidth
    # scipy takes the bounds in standard deviations from the mean.
    lower, upper = (0 - value) / sd, (1 - value) / sd
    expected = truncnorm(lower, upper, loc=value, scale=sd)
    assert kstest(drawn, expected.cdf).pvalue > 1e-3


def test_choices_are_kept_or_drawn_anew():
    """A bandwidth of 0.3 is the probability that a choice is drawn anew, as any of three.

    The evaluated choice is the second, whose unit value is 0.5.
    """
    unit_values = sample_around(0.5, choices=3, bandwidth=0.3, n=30_000)
    choices = np.floor(3 * unit_values).astype(int)
    frequencies = np.bincount(choices, minlength=3) / len(choices)
    assert_allclose(frequencies, [0.1, 0.7 + 0.1, 0.1], atol=0.01)


def make_tpe(*, random_fraction: float = 1 / 3, seed: int = 0) -> TPE:
    """TPE on `MIXED_SPACE`, with this share of random suggestions once there is a model."""
    method = make_method(TPE, space=MIXED_SPACE, seed=seed)
    method.random_fraction = random_fraction
    return method


@pytest.fixture
def fitted_counts(monkeypatch):
    """A list that gets the number of evaluations of every model when it is fitted."""
    counts = []
    original = tpe.ParzenModel.fit

    def fit(unit: FloatArray, losses: FloatArray, choices: IntArray) -> tpe.ParzenModel:
        counts.append(len(losses))
        return original(unit, losses, choices)

    monkeypatch.setattr(tpe.ParzenModel, "fit", fit)
    return counts


def test_models_need_some_evaluations(fitted_counts):
    """In a space of three hyperparameters, a model is fitted from the ninth trial on.

    Each of its two densities needs four evaluations, one more than there are hyperparameters.
    """
    optimise(make_tpe(random_fraction=0.0), lambda config: config["x"], trials=12)
    assert tpe.count_needed_evaluations(3) == 8
    assert fitted_counts == [8, 9, 10, 11]  # in the trials 9 to 12


def test_a_third_of_suggestions_is_random(fitted_counts):
    """After the first 8, a model is fitted for two thirds of the other 300 suggestions."""
    optimise(make_tpe(), lambda config: config["x"], trials=308)
    # Expected are 2 / 3 of 300, which is 200, with a deviation of (300 * 2/3 * 1/3)^(1/2) = 8.
    assert 170 <= len(fitted_counts) <= 230


def test_failing_region_is_avoided():
    """Evaluations fail where x, from -5 to 5, is negative: the last suggestions avoid that."""
    method = make_tpe(random_fraction=0.0, seed=1)

    def compute_loss(config: Config) -> float:
        return math.nan if config["x"] < 0 else 1.0 + config["rate"]

    configs = optimise(method, compute_loss, trials=60)
    has_positive_x = [config["x"] > 0 for config in configs[-20:]]
    # Of random configurations, only half have a positive x.
    assert np.mean(has_positive_x) > 0.7
