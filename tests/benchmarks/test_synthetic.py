"""Synthetic functions: their values, minima, coefficients and names."""

import math
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize, stats

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.synthetic import (
    CORRELATION,
    FAMILIES,
    FORRESTER,
    QUADRATIC,
    SPECS,
    SyntheticBenchmark,
    forrester,
    quadratic,
)
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.analytic import ForresterSurrogate, QuadraticSurrogate

NAMES = ("forrester", "quadratic", "forrester-ordered", "quadratic-ordered")
SEEDS = st.integers(0, 2**64)
MANY = 60_000
"""Tasks whose coefficients are compared with their distribution."""
MARGINALS = {
    FORRESTER: (stats.norm(6, 1), stats.norm(12, 2), stats.uniform(0, 10)),
    QUADRATIC: (stats.uniform(0.1, 0.9),) * 3,
}

EVERY_FAMILY = pytest.mark.parametrize(
    ("function", "ordered"), list(product(MARGINALS, [False, True]))
)


def formula(benchmark: hbo.Benchmark, task: int, x: np.ndarray) -> np.ndarray:
    """The paper's formulas, (n, d) to (n,)."""
    a, b, c = (benchmark.tasks[task].context[name] for name in "abc")
    if benchmark.name.startswith("forrester"):
        return ((a * x - 2) ** 2 * np.sin(b * x - 4) + c)[:, 0]
    return a * (x**2).sum(axis=1) + b * x.sum(axis=1) + c


# -- the benchmarks --------------------------------------------------------------------------------


def test_numbers_are_those_of_the_paper():
    assert tuple(spec.name for spec in SPECS) == NAMES == hbo.suite("synthetic")
    for name in NAMES:
        benchmark = hbo.load(name)
        is_forrester = name.startswith("forrester")
        tasks, history, d, bound = (10, 20, 1, (0, 1)) if is_forrester else (30, 100, 5, (-10, 10))
        assert (len(benchmark.tasks), benchmark.history_size) == (tasks, history)
        bounds = [(p.lower, p.upper) for p in benchmark.space.parameters if not p.log]
        assert bounds == [bound] * d
        assert benchmark.objective.direction is hbo.Direction.MINIMIZE
        assert len(benchmark.evaluations(0, rng=np.random.default_rng(0))) == history
        assert all(tuple(task.context) == ("a", "b", "c") for task in benchmark.tasks)


@given(seed=SEEDS, make=st.sampled_from([forrester, quadratic]), ordered=st.booleans())
def test_values_are_those_of_the_formula(seed, make, ordered):
    benchmark = make(seed=seed, tasks=3, ordered=ordered)
    x = benchmark.space.decode(benchmark.space.sample_unit(np.random.default_rng(seed), 50))
    for task in range(3):
        computed = benchmark.tasks[task].evaluate_many(x)
        np.testing.assert_allclose(computed, formula(benchmark, task, x), rtol=1e-12, atol=1e-12)


# -- minima ----------------------------------------------------------------------------------------

DENSE = np.linspace(0, 1, 100_001)[:, None]


def dense_minimum(model: ForresterSurrogate) -> float:
    """Lowest value on a dense grid and of Brent's method around its ten lowest valleys."""
    values = model.predict(DENSE, 0)
    best = float(values.min())
    valleys = np.flatnonzero((values[1:-1] <= values[:-2]) & (values[1:-1] <= values[2:])) + 1
    for i in valleys[np.argsort(values[valleys])[:10]]:
        minimum = optimize.minimize_scalar(
            lambda x: model.predict_one(np.array([x]), 0),
            bounds=(DENSE[i - 1, 0], DENSE[i + 1, 0]),
            method="bounded",
            options={"xatol": 1e-12},
        )
        best = min(best, float(minimum.fun))
    return best


@pytest.mark.slow
@given(a=st.floats(-4, 14), b=st.floats(-30, 30), c=st.floats(0, 10))
@example(a=6.0, b=12.0, c=0.0)
@example(a=0.0, b=0.0, c=1.0)
@example(a=4.0, b=0.0, c=1.0)  # lowest where the amplitude is zero
@example(a=6.0, b=1.0, c=1.0)  # lowest at the right end
@example(a=-4.0, b=-1.0, c=1.0)
def test_forrester_minimum_is_that_of_a_denser_search(a, b, c):
    model = ForresterSurrogate(np.array([[a, b, c]]))
    (minimum,) = model.minima()
    reached = dense_minimum(model)
    assert 0 <= reached - minimum <= 1e-11 * (1 + abs(a)) ** 2


@given(seed=SEEDS)
@example(seed=193)  # lowest at the right end
def test_no_float_near_the_minimum_beats_it(seed):
    (task,) = forrester(seed=seed, tasks=1).tasks
    a, b, c = task.context.values()
    x = float(DENSE[np.argmin(task.evaluate_many(DENSE)), 0])
    minimum = optimize.minimize_scalar(
        lambda x: (a * x - 2) ** 2 * math.sin(b * x - 4) + c,
        bounds=(max(0.0, x - 1e-5), min(1.0, x + 1e-5)),
        method="bounded",
        options={"xatol": 1e-13},
    )
    steps = np.random.default_rng(seed).integers(-100_000, 100_000, 5000) * 2.0**-53
    near = [np.clip(start + steps, 0, 1)[:, None] for start in (x, minimum.x)]
    regret = task.regret(task.evaluate_many(np.concatenate(near)))
    assert 0 <= regret.min() <= 1e-11


@pytest.mark.slow
@given(seed=SEEDS, ordered=st.booleans())
def test_quadratic_minimum_is_that_of_scipy(seed, ordered):
    benchmark = quadratic(seed=seed, tasks=2, ordered=ordered)
    rng = np.random.default_rng(seed)
    for index, task in enumerate(benchmark.tasks):
        minimum = optimize.minimize(
            lambda x, index=index: formula(benchmark, index, x[None])[0],
            rng.uniform(-10, 10, 5),
            bounds=[(-10, 10)] * 5,
            options={"ftol": 1e-15, "gtol": 1e-9},
        )
        assert minimum.fun == pytest.approx(task.best_value, abs=1e-8)
        best = np.full(5, -task.context["b"] / (2 * task.context["a"]))
        near = best + rng.integers(-50, 50, (2000, 5)) * np.spacing(best)
        regrets = task.regret(task.evaluate_many(np.vstack([best, near])))
        assert regrets[0] == 0.0
        assert 0 <= regrets.min() <= regrets.max() < 1e-12


# -- coefficients ----------------------------------------------------------------------------------


@given(seed=SEEDS, fewer=st.integers(1, 20), more=st.integers(0, 20))
@EVERY_FAMILY
def test_fewer_tasks_are_the_first_of_more(function, ordered, seed, fewer, more):
    few = SyntheticBenchmark(function, ordered, seed, fewer).coefficients()
    many = SyntheticBenchmark(function, ordered, seed, fewer + more).coefficients()
    assert few.tobytes() == many[:fewer].tobytes()
    other = SyntheticBenchmark(function, ordered, seed + 1, fewer).coefficients()
    assert not np.isin(few, other).any()


@EVERY_FAMILY
def test_coefficients_follow_the_papers_distributions(function, ordered):
    coefficients = SyntheticBenchmark(function, ordered, 1, MANY).coefficients()
    spacing = 100 if ordered else 1  # what is further apart is as good as independent
    for column, marginal in zip(coefficients[::spacing].T, MARGINALS[function], strict=True):
        assert stats.kstest(column, marginal.cdf).pvalue > 0.01
        assert column.mean() == pytest.approx(marginal.mean(), abs=4 * marginal.std() / 24)
        assert column.std() == pytest.approx(marginal.std(), rel=0.1)
        low, high = marginal.support()
        assert low <= column.min() <= column.max() <= high


@EVERY_FAMILY
def test_scores_are_correlated_as_documented(function, ordered):
    coefficients = SyntheticBenchmark(function, ordered, 2, MANY).coefficients()
    shares = [m.cdf(column) for m, column in zip(MARGINALS[function], coefficients.T, strict=True)]
    scores = stats.norm.ppf(shares)
    for lag in (1, 2, 9, 29):
        expected = CORRELATION**lag if ordered else 0.0
        for column in scores:
            correlation = np.corrcoef(column[lag:], column[:-lag])[0, 1]
            assert correlation == pytest.approx(expected, abs=0.04)
    across = np.corrcoef(scores)[np.triu_indices(3, k=1)]
    assert np.abs(across).max() < 0.1


def test_benchmarks_of_a_seed_are_unrelated():
    tasks = [task for name in NAMES for task in hbo.load(f"{name}-seed-5").tasks]
    found = [value for task in tasks for value in task.context.values()]
    assert len(set(found)) == len(found)


# -- names -----------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**18 - 1),  # a name has at most 18 digits
    tasks=st.integers(1, 40),
    function=st.sampled_from(["forrester", "quadratic"]),
    ordered=st.booleans(),
)
def test_every_benchmark_is_found_by_its_name(seed, tasks, function, ordered):
    make = {"forrester": forrester, "quadratic": quadratic}[function]
    made = make(seed=seed, tasks=tasks, ordered=ordered)
    loaded = hbo.load(made.id)
    assert (loaded.name, len(loaded.tasks)) == (made.name, tasks)
    for ours, found in zip(made.tasks, loaded.tasks, strict=True):
        assert (found.context, found.best_value) == (ours.context, ours.best_value)


def test_one_benchmark_has_one_name():
    for name, one in (
        ("forrester-seed-0", "forrester@1"),
        ("quadratic-ordered-seed-0-tasks-30", "quadratic-ordered@1"),
        ("quadratic-seed-4-tasks-30", "quadratic-seed-4@1"),
        (quadratic(seed=2, tasks=7, ordered=True).id, "quadratic-ordered-seed-2-tasks-7@1"),
    ):
        assert benchmark_spec(name).id == one
    for seed, tasks in ((-1, 3), (0, 0), (0, -2)):
        with pytest.raises(ExperimentError, match=f"seed {seed} and {tasks} tasks"):
            forrester(seed=seed, tasks=tasks)


@pytest.mark.parametrize(
    "name",
    [
        *(f"forrester-seed-{seed}" for seed in ("", "01", "-1", "1-tasks-0", "\u0663")),
        *("forrester-tasks-3", "forrester-ordered-ordered-seed-1", "branin-seed-1"),
    ],
)
def test_other_names_are_unknown(name):
    assert FAMILIES[0].spec(name) is None
    with pytest.raises(UnknownNameError, match="FUNCTION-seed-SEED"):
        hbo.load(name)


# -- the surrogates as such ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ForresterSurrogate, QuadraticSurrogate])
def test_coefficients_are_finite_and_read_only(kind):
    model = kind(np.random.default_rng(0).uniform(0.1, 1, (4, 3)))
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(model)).coefficients[0, 0] = 1
    for bad in (np.zeros((2, 2)), np.full((1, 3), np.nan)):
        with pytest.raises(ValueError, match="coefficients must be finite"):
            kind(bad)
