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
from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods import _tpe as tpe
from hpobench_ordered.methods._coding import count_choices
from hpobench_ordered.methods.tpe import TPE

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("x", -5, 5),
        hbo.Parameter.choice("kind", ("a", "b", "c")),
        hbo.Parameter.number("rate", 1e-4, 1, log=True),
    ]
)


def make_evaluations(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Unit vectors (n, 3) of random configurations of `SPACE`, and their losses (n,)."""
    rng = np.random.default_rng(seed)
    unit = SPACE.sample_unit(rng, n)
    return unit, np.nansum((unit - 0.4) ** 2, axis=1) + 0.1 * rng.standard_normal(n)


def code_for_statsmodels(unit: FloatArray, choices: IntArray) -> FloatArray:
    """Choices as indices, which is how statsmodels codes them."""
    return np.where(choices > 0, np.floor(unit * np.maximum(choices, 1)), unit)


def fit_statsmodels(data: FloatArray, choices: IntArray) -> KDEMultivariate:
    """A kernel density of numbers (type c) and unordered choices (type u)."""
    types = "".join("u" if count else "c" for count in choices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of random numbers it does not draw
        coded = code_for_statsmodels(data, choices)
        return KDEMultivariate(coded, types, bw="normal_reference")


CHOICES = count_choices(SPACE.parameters)
"""Number of choices of each hyperparameter of `SPACE`; 0 stands for a number."""


@given(st.integers(0, 10**6), st.integers(20, 120))
def test_bandwidths_equal_those_of_statsmodels(seed, n):
    """Of two numbers and a choice; `CHOICES` is 0 for numbers. Ours are bounded."""
    data, _ = make_evaluations(n, seed)
    density = tpe.Density.fit(data, CHOICES)
    expected = np.maximum(fit_statsmodels(data, CHOICES).bw, tpe.MIN_BANDWIDTH)
    # A choice among three is then drawn uniformly.
    upper_bound = np.where(CHOICES > 0, 2 / 3, np.inf)  # statsmodels has none
    assert_allclose(density.bandwidths, np.minimum(expected, upper_bound), rtol=1e-12)


@given(st.integers(0, 10**6), st.integers(20, 120))
def test_densities_equal_those_of_statsmodels(seed, n):
    """With our bandwidths, of two numbers and, in column 1, one of three choices."""
    data, _ = make_evaluations(n, seed)
    assume(len(np.unique(data[:, 1])) == 3)  # statsmodels counts the choices that occur
    candidates = SPACE.sample_unit(np.random.default_rng(seed + 1), 64)
    density = tpe.Density.fit(data, CHOICES)
    reference = fit_statsmodels(data, CHOICES)
    reference.bw = density.bandwidths
    expected = reference.pdf(code_for_statsmodels(candidates, CHOICES))
    assert_allclose(np.exp(density.log(candidates)), expected, rtol=1e-6, atol=1e-30)


@given(st.integers(0, 10**6), st.integers(40, 120))
def test_score_is_ratio_of_densities(seed, n):
    """The logarithm: of the density of the evaluations of lowest loss over that of the others."""
    unit, losses = make_evaluations(n, seed)
    candidates = SPACE.sample_unit(np.random.default_rng(seed + 1), 64)
    order = np.argsort(losses)
    good_count = max(SPACE.dimension + 1, math.floor(tpe.GOOD_SHARE * n))
    good = tpe.Density.fit(unit[order[:good_count]], CHOICES)
    bad = tpe.Density.fit(unit[order[good_count:]], CHOICES)

    scores = tpe.ParzenModel.fit(unit, losses, CHOICES).score(candidates)

    assert_allclose(scores, good.log(candidates) - bad.log(candidates))


@pytest.mark.parametrize(
    ("evaluations", "good"), [(2, 1), (5, 2), (6, 3), (10, 3), (40, 6), (100, 15)]
)
def test_evaluations_are_split_by_loss(evaluations, good):
    """At first into halves, then at the share of good ones."""
    unit = np.random.default_rng(evaluations).random((evaluations, 2))
    model = tpe.ParzenModel.fit(unit, unit[:, 0], np.zeros(2, dtype=np.int64))
    assert (len(model.good.data), len(model.bad.data)) == (good, evaluations - good)
    assert model.good.data[:, 0].max() < model.bad.data[:, 0].min()


def test_conditional_density_integrates_to_one():
    kind = SPACE.parameters[1]
    x, y = (hbo.Parameter.number(name, 0, 1) for name in "xy")
    only_a = hbo.Compare(0, hbo.Comparison.EQUAL, (0.0,))
    space = hbo.SearchSpace([kind, x, y], conditions={"x": only_a})
    rng = np.random.default_rng(0)
    data = 0.35 + 0.3 * rng.random((15, 3))  # far from the bounds, beyond which density is lost
    # Five of each choice, a, b, c.
    data[:, 0] = np.repeat([0.1, 0.5, 0.9], 5)
    density = tpe.Density.fit(space.canonical(data), count_choices(space.parameters))
    assert density.bandwidths[1:].max() < 0.1

    draws = space.sample_unit(rng, 200_000)

    probability_of_choice = 1 / 3
    # The mean over uniform draws; the density of the choice is a probability.
    integral = np.mean(np.exp(density.log(draws)) / probability_of_choice)
    assert_allclose(integral, 1.0, atol=0.03)


def sample_around(value: float, *, choices: int, bandwidth: float, n: int) -> FloatArray:
    """Draw from a density that is fitted to one value of one hyperparameter.

    The hyperparameter is a choice among so many `choices`, or a number if these are 0.
    """
    density = tpe.Density(np.array([[value]]), np.array([choices]), np.array([bandwidth]))
    return density.sample(np.random.default_rng(0), n)[:, 0]


def test_numbers_are_drawn_from_truncated_normals():
    """Around an evaluated value, wider than the density's kernel by `SAMPLING_WIDTH`."""
    value, bandwidth = 0.1, 0.05
    drawn = sample_around(value, choices=0, bandwidth=bandwidth, n=4000)
    sd = tpe.SAMPLING_WIDTH * bandwidth
    # scipy takes the bounds, 0 and 1, in standard deviations from the mean.
    expected = truncnorm((0 - value) / sd, (1 - value) / sd, loc=value, scale=sd)
    assert kstest(drawn, expected.cdf).pvalue > 1e-3


def test_choices_are_kept_or_drawn_anew():
    """A bandwidth of 0.3 is the probability that one of three choices is drawn instead."""
    drawn = np.floor(3 * sample_around(0.5, choices=3, bandwidth=0.3, n=30_000))
    frequencies = np.bincount(drawn.astype(int), minlength=3) / len(drawn)
    # Kept with probability 0.7, otherwise any of three.
    assert_allclose(frequencies, [0.1, 0.8, 0.1], atol=0.01)


def test_inactive_numbers_are_drawn_uniformly():
    drawn = sample_around(math.nan, choices=0, bandwidth=0.05, n=4000)
    assert kstest(drawn, "uniform").pvalue > 1e-3


def make_tpe(*, random_fraction: float = 1 / 3, seed: int = 0) -> TPE:
    """TPE on `SPACE`, with this share of random suggestions once there is a model."""
    method = make_method(TPE, space=SPACE, seed=seed)
    method.random_fraction = random_fraction
    return method


@pytest.fixture
def fitted_counts(monkeypatch):
    """Numbers of evaluations that models are fitted to, one a fit."""
    counts = []
    original = tpe.ParzenModel.fit

    def fit(unit: FloatArray, losses: FloatArray, choices: IntArray) -> tpe.ParzenModel:
        counts.append(len(losses))
        return original(unit, losses, choices)

    monkeypatch.setattr(tpe.ParzenModel, "fit", fit)
    return counts


def test_models_need_some_evaluations(fitted_counts):
    """Eight in a space of three hyperparameters: the first eight of twelve trials are random."""
    assert tpe.count_needed_evaluations(3) == 8
    optimise(make_tpe(random_fraction=0.0), lambda config: config["x"], trials=12)
    assert fitted_counts == [8, 9, 10, 11]


def test_a_third_of_suggestions_is_random(fitted_counts):
    """After the first 8, a model is fitted for two thirds of the other 300 suggestions."""
    optimise(make_tpe(), lambda config: config["x"], trials=308)
    # 200 on average, with a standard deviation of 8.
    assert 170 <= len(fitted_counts) <= 230


def test_failed_evaluations_are_bad():
    """Negative x fail: the last suggestions avoid them."""
    method = make_tpe(random_fraction=0.0, seed=1)
    for _ in range(60):
        config = method.ask()
        method.tell(config, math.nan if config["x"] < 0 else 1.0 + config["rate"])
    unit_x_of_last = method.evaluated_units()[-20:, 0]
    has_positive_x = unit_x_of_last > 0.5  # x is from -5 to 5
    # Half of random configurations have.
    assert np.mean(has_positive_x) > 0.7
