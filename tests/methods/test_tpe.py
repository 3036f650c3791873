"""TPE beside statsmodels' kernel densities; conditions, few and failed evaluations."""

import math
import warnings

import numpy as np
import pytest
from by_hand import make, optimise
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
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


def evaluated(space: hbo.SearchSpace, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    unit = space.sample_unit(rng, n)
    return unit, np.nansum((unit - 0.4) ** 2, axis=1) + 0.1 * rng.standard_normal(n)


def indices(unit: FloatArray, choices: IntArray) -> FloatArray:
    """Choices as indices, which is how statsmodels codes them."""
    return np.where(choices > 0, np.floor(unit * np.maximum(choices, 1)), unit)


def by_statsmodels(data: FloatArray, choices: IntArray) -> KDEMultivariate:
    types = "".join("u" if c else "c" for c in choices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of random numbers it does not draw
        return KDEMultivariate(indices(data, choices), types, bw="normal_reference")


@given(st.integers(0, 10**6), st.integers(40, 120))
def test_densities_and_ranking_are_those_of_statsmodels(seed, n):
    choices = count_choices(SPACE.parameters)
    unit, losses = evaluated(SPACE, n, seed)
    model = tpe.ParzenModel.fit(unit, losses, choices)
    candidates = SPACE.sample_unit(np.random.default_rng(seed + 1), 64)
    count = max(SPACE.dimension + 1, math.floor(tpe.GOOD_SHARE * n))
    order = np.argsort(losses)
    densities = []
    for density, rows in ((model.good, order[:count]), (model.bad, order[count:])):
        reference = by_statsmodels(unit[rows], choices)
        free = density.bandwidths < np.where(choices > 0, 2 / 3, np.inf)  # not at its bound
        reference.bw = np.maximum(reference.bw, tpe.MIN_BANDWIDTH)
        assert_allclose(density.bandwidths[free], reference.bw[free], rtol=1e-12)
        reference.bw = density.bandwidths
        if len(np.unique(unit[rows][:, 1])) == 3:  # statsmodels counts the choices that occur
            expected = reference.pdf(indices(candidates, choices))
            assert_allclose(np.exp(density.log(candidates)), expected, rtol=1e-6, atol=1e-30)
            densities.append(np.maximum(tpe.MIN_DENSITY, expected))
    if len(densities) == 2:
        ours, theirs = model.score(candidates), densities[0] / densities[1]
        gaps = np.diff(np.sort(np.log(theirs)))
        if gaps.min() > 1e-9:
            assert_array_equal(np.argsort(ours), np.argsort(theirs))


def test_few_evaluations_are_halved_and_many_split_by_share():
    choices = np.zeros(2, dtype=np.int64)
    for n, good in ((2, 1), (5, 2), (6, 3), (10, 3), (40, 6), (100, 15)):
        unit = np.random.default_rng(n).random((n, 2))
        model = tpe.ParzenModel.fit(unit, unit[:, 0], choices)
        assert len(model.good.data) == good and len(model.bad.data) == n - good
        assert model.good.data[:, 0].max() < model.bad.data[:, 0].min()


def test_the_density_of_conditional_configurations_integrates_to_one():
    kind, x, y = (*SPACE.parameters[1:2], *(hbo.Parameter.number(name, 0, 1) for name in "xy"))
    only_a = hbo.Compare(0, hbo.Comparison.EQUAL, (0.0,))
    space = hbo.SearchSpace([kind, x, y], conditions={"x": only_a})
    rng = np.random.default_rng(0)
    middle = 0.35 + 0.3 * rng.random((15, 3))
    middle[:, 0] = np.repeat([0.1, 0.5, 0.9], 5)
    density = tpe.Density.fit(space.canonical(middle), count_choices(space.parameters))
    assert density.bandwidths[1:].max() < 0.1
    draws = space.sample_unit(rng, 200_000)  # of density 1 / 3 for each choice
    assert_allclose((np.exp(density.log(draws)) * 3.0).mean(), 1.0, atol=0.03)


def test_candidates_come_from_truncated_normals_around_the_good():
    data, h = np.array([[0.1], [0.1]]), np.array([0.05])
    density = tpe.Density(data, np.zeros(1, dtype=np.int64), h)
    drawn = density.sample(np.random.default_rng(0), 4000)[:, 0]
    wide = tpe.SAMPLING_WIDTH * 0.05
    expected = truncnorm((0 - 0.1) / wide, (1 - 0.1) / wide, loc=0.1, scale=wide)
    assert kstest(drawn, expected.cdf).pvalue > 1e-3
    of_choice = tpe.Density(np.array([[0.5], [0.5]]), np.array([3]), np.array([0.3]))
    drawn = np.floor(of_choice.sample(np.random.default_rng(0), 30_000) * 3)[:, 0]
    frequencies = np.bincount(drawn.astype(int), minlength=3) / len(drawn)
    assert_allclose(frequencies, [0.1, 0.8, 0.1], atol=0.01)
    missing = tpe.Density(np.array([[np.nan]]), np.zeros(1, dtype=np.int64), h)
    assert kstest(missing.sample(np.random.default_rng(0), 4000)[:, 0], "uniform").pvalue > 1e-3


def made(space: hbo.SearchSpace, *, fraction: float = 1 / 3, seed: int = 0) -> TPE:
    method = make(TPE, space=space, seed=seed)
    method.random_fraction = fraction
    return method


@pytest.fixture
def fits(monkeypatch):
    """Numbers of evaluations that models are fitted to."""
    seen, original = [], tpe.ParzenModel.fit
    monkeypatch.setattr(tpe.ParzenModel, "fit", lambda *a: seen.append(len(a[1])) or original(*a))
    return seen


def test_there_is_a_model_from_two_more_than_twice_the_hyperparameters_on(fits):
    optimise(made(SPACE, fraction=0.0), lambda config: config["x"], 12)
    assert tpe.count_needed_evaluations(3) == 8 and fits == [8, 9, 10, 11]


def test_a_third_of_the_suggestions_is_random(fits):
    optimise(made(SPACE), lambda config: config["x"], 308)
    assert 170 <= len(fits) <= 230


def test_failed_evaluations_are_bad():
    method = made(SPACE, fraction=0.0, seed=1)
    for _ in range(60):
        config = method.ask()
        method.tell(config, math.nan if config["x"] < 0 else 1.0 + config["rate"])
    assert np.mean(method.evaluated_units()[-20:, 0] > 0.5) > 0.7
