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
    FunctionFamily,
    SyntheticBenchmark,
    forrester,
    quadratic,
)
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.analytic import ForresterSurrogate, QuadraticSurrogate

NAMES = ("forrester", "quadratic", "forrester-ordered", "quadratic-ordered")
SEEDS = st.integers(0, 2**64)
MANY_TASKS = 60_000
"""Tasks whose coefficients are compared with their distribution."""
# Distributions of the coefficients a, b and c (Horvath et al. 2021, section 5).
MARGINALS = {
    FORRESTER: (stats.norm(6, 1), stats.norm(12, 2), stats.uniform(0, 10)),
    QUADRATIC: (stats.uniform(0.1, 0.9),) * 3,
}

EVERY_FAMILY = pytest.mark.parametrize(
    ("function", "ordered"), list(product(MARGINALS, [False, True]))
)


def make_benchmark(
    function: FunctionFamily, *, ordered: bool = False, seed: int = 0, tasks: int = MANY_TASKS
) -> SyntheticBenchmark:
    """A benchmark whose tasks are a function with different coefficients, by default many tasks.

    Coefficients of consecutive tasks are correlated if it is ordered, and independent otherwise.
    """
    return SyntheticBenchmark(function, ordered=ordered, seed=seed, tasks=tasks)


def apply_formula(benchmark: hbo.Benchmark, task: int, x: np.ndarray) -> np.ndarray:
    """The paper's formulas with the coefficients of a task, (n, d) to (n,)."""
    context = benchmark.tasks[task].context
    a, b, c = context["a"], context["b"], context["c"]
    if benchmark.name.startswith("forrester"):
        x = x[:, 0]
        return (a * x - 2) ** 2 * np.sin(b * x - 4) + c
    return a * (x**2).sum(axis=1) + b * x.sum(axis=1) + c


# -- the benchmarks --------------------------------------------------------------------------------


def test_suite_has_all_registered_benchmarks():
    assert tuple(spec.name for spec in SPECS) == NAMES == hbo.suite("synthetic")


@pytest.mark.parametrize("suffix", ["", "-ordered"])
@pytest.mark.parametrize(
    ("function", "tasks", "history_size"), [("forrester", 10, 20), ("quadratic", 30, 100)]
)
def test_sizes_are_the_papers(function, tasks, history_size, suffix):
    """Numbers of tasks and of evaluations of a source task (Horvath et al. 2021, section 5)."""
    benchmark = hbo.load(f"{function}{suffix}")

    evaluations = benchmark.evaluations(0, rng=np.random.default_rng(0))

    assert len(benchmark.tasks) == tasks
    assert len(evaluations) == benchmark.history_size == history_size


@pytest.mark.parametrize("suffix", ["", "-ordered"])
@pytest.mark.parametrize(
    ("function", "bounds"), [("forrester", [(0, 1)]), ("quadratic", [(-10, 10)] * 5)]
)
def test_spaces_are_the_papers(function, bounds, suffix):
    """One number from 0 to 1 for Forrester, five from -10 to 10 for the quadratic function."""
    parameters = hbo.load(f"{function}{suffix}").space.parameters

    assert [(parameter.lower, parameter.upper) for parameter in parameters] == bounds
    assert not any(parameter.log for parameter in parameters)


@pytest.mark.parametrize("name", NAMES)
def test_functions_are_minimised(name):
    assert hbo.load(name).objective.direction is hbo.Direction.MINIMIZE


@pytest.mark.parametrize("name", NAMES)
def test_contexts_are_the_coefficients(name):
    assert all(tuple(task.context) == ("a", "b", "c") for task in hbo.load(name).tasks)


@given(seed=SEEDS, make=st.sampled_from([forrester, quadratic]), ordered=st.booleans())
def test_values_are_those_of_formula(seed, make, ordered):
    benchmark = make(seed=seed, tasks=3, ordered=ordered)
    x = benchmark.space.decode(benchmark.space.sample_unit(np.random.default_rng(seed), 50))
    for task in range(3):
        values = benchmark.tasks[task].evaluate_many(x)

        expected = apply_formula(benchmark, task, x)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


# -- minima ----------------------------------------------------------------------------------------

DENSE_GRID = np.linspace(0, 1, 100_001)[:, None]
"""Configurations of the Forrester function, 1e-5 apart."""


def search_minimum(model: ForresterSurrogate) -> float:
    """Lowest value of task 0 on a dense grid, and of Brent's method around its lowest valleys."""
    values = model.predict(DENSE_GRID, 0)
    inner = values[1:-1]
    is_valley = (inner <= values[:-2]) & (inner <= values[2:])
    valleys = np.flatnonzero(is_valley) + 1
    ten_lowest_valleys = valleys[np.argsort(values[valleys])[:10]]

    lowest = float(values.min())
    for index in ten_lowest_valleys:
        minimum = optimize.minimize_scalar(
            lambda x: model.predict_one(np.array([x]), 0),
            bounds=(DENSE_GRID[index - 1, 0], DENSE_GRID[index + 1, 0]),
            method="bounded",
            options={"xatol": 1e-12},
        )
        lowest = min(lowest, float(minimum.fun))
    return lowest


@pytest.mark.slow
@given(a=st.floats(-4, 14), b=st.floats(-30, 30), c=st.floats(0, 10))
@example(a=6.0, b=12.0, c=0.0)  # the usual Forrester function
@example(a=0.0, b=0.0, c=1.0)  # constant
@example(a=4.0, b=0.0, c=1.0)  # lowest where the amplitude is zero
@example(a=6.0, b=1.0, c=1.0)  # lowest at the right end
@example(a=-4.0, b=-1.0, c=1.0)
def test_dense_search_confirms_forrester_minimum(a, b, c):
    model = ForresterSurrogate(np.array([[a, b, c]]))

    (minimum,) = model.minima()

    # The search finds nothing better, and comes close, as far as rounding errors allow.
    rounding_error = 1e-11 * (1 + abs(a)) ** 2
    assert 0 <= search_minimum(model) - minimum <= rounding_error


@given(seed=SEEDS)
@example(seed=193)  # lowest at the right end
def test_no_float_beats_forrester_minimum(seed):
    """Thousands of numbers, a few of the smallest steps around the best two known, are no better.

    The two are the best of a grid, and that of Brent's method near it.
    """
    (task,) = forrester(seed=seed, tasks=1).tasks
    a, b, c = task.context.values()
    best_on_grid = float(DENSE_GRID[np.argmin(task.evaluate_many(DENSE_GRID)), 0])
    best_of_brent = optimize.minimize_scalar(
        lambda x: (a * x - 2) ** 2 * math.sin(b * x - 4) + c,
        bounds=(max(0.0, best_on_grid - 1e-5), min(1.0, best_on_grid + 1e-5)),
        method="bounded",
        options={"xatol": 1e-13},
    ).x
    # Numbers of at most 1 are multiples of 2^-53.
    steps = np.random.default_rng(seed).integers(-100_000, 100_000, 5000) * 2.0**-53
    near_both = np.concatenate([best_on_grid + steps, best_of_brent + steps])
    x = np.clip(near_both, 0, 1)[:, None]

    regrets = task.regret(task.evaluate_many(x))

    assert 0 <= regrets.min() <= 1e-11


@pytest.mark.slow
@given(seed=SEEDS, ordered=st.booleans())
def test_scipy_confirms_quadratic_minimum(seed, ordered):
    """By minimising the paper's formula from a random start."""
    benchmark = quadratic(seed=seed, tasks=2, ordered=ordered)
    rng = np.random.default_rng(seed)
    for index, task in enumerate(benchmark.tasks):
        start = rng.uniform(-10, 10, 5)
        minimum = optimize.minimize(
            lambda x, index=index: apply_formula(benchmark, index, x[None])[0],
            start,
            bounds=[(-10, 10)] * 5,
            options={"ftol": 1e-15, "gtol": 1e-9},
        )

        assert minimum.fun == pytest.approx(task.best_value, abs=1e-8)


@given(seed=SEEDS, ordered=st.booleans())
def test_no_float_beats_quadratic_minimum(seed, ordered):
    """The minimum of a x^2 + b x is at -b / (2 a) in each of five coordinates."""
    (task,) = quadratic(seed=seed, tasks=1, ordered=ordered).tasks
    optimum = np.full(5, -task.context["b"] / (2 * task.context["a"]))
    # Neighbours, up to fifty floats apart in each coordinate.
    steps = np.random.default_rng(seed).integers(-50, 50, (2000, 5))
    neighbours = optimum + steps * np.spacing(optimum)

    (regret_of_optimum,) = task.regret(task.evaluate_many(optimum[None]))
    regrets_of_neighbours = task.regret(task.evaluate_many(neighbours))

    assert regret_of_optimum == 0.0
    assert regrets_of_neighbours.min() >= 0
    assert regrets_of_neighbours.max() < 1e-12


# -- coefficients ----------------------------------------------------------------------------------


@given(seed=SEEDS, fewer=st.integers(1, 20), more=st.integers(0, 20))
@EVERY_FAMILY
def test_fewer_tasks_are_the_first(function, ordered, seed, fewer, more):
    few = make_benchmark(function, ordered=ordered, seed=seed, tasks=fewer)
    many = make_benchmark(function, ordered=ordered, seed=seed, tasks=fewer + more)

    assert few.coefficients().tobytes() == many.coefficients()[:fewer].tobytes()


@given(seed=SEEDS, tasks=st.integers(1, 20))
@EVERY_FAMILY
def test_seeds_share_no_coefficients(function, ordered, seed, tasks):
    first = make_benchmark(function, ordered=ordered, seed=seed, tasks=tasks).coefficients()
    second = make_benchmark(function, ordered=ordered, seed=seed + 1, tasks=tasks).coefficients()

    assert not np.isin(first, second).any()


@EVERY_FAMILY
def test_coefficients_follow_the_papers_distributions(function, ordered):
    coefficients = make_benchmark(function, ordered=ordered, seed=1).coefficients()

    # Ordered tasks are correlated, but a hundred apart they are as good as independent.
    spacing = 100 if ordered else 1
    independent = coefficients[::spacing]
    # At least 600 tasks remain, so the standard error of a mean is at most std / 24.
    assert len(independent) >= 600
    for column, marginal in zip(independent.T, MARGINALS[function], strict=True):
        assert stats.kstest(column, marginal.cdf).pvalue > 0.01
        four_standard_errors = 4 * marginal.std() / 24
        assert column.mean() == pytest.approx(marginal.mean(), abs=four_standard_errors)
        assert column.std() == pytest.approx(marginal.std(), rel=0.1)
        low, high = marginal.support()
        assert low <= column.min() <= column.max() <= high


def compute_scores(function: FunctionFamily, coefficients: np.ndarray) -> np.ndarray:
    """Normal scores of coefficients, (T, 3) to (3, T): the standard normal of equal quantile."""
    scores = []
    for marginal, column in zip(MARGINALS[function], coefficients.T, strict=True):
        quantiles = marginal.cdf(column)
        scores.append(stats.norm.ppf(quantiles))
    return np.array(scores)


@pytest.mark.parametrize("lag", [1, 2, 9, 29])
@EVERY_FAMILY
def test_correlation_decays_with_lag(function, ordered, lag):
    """Normal scores of ordered tasks k apart have the correlation 0.95^k, of others none."""
    coefficients = make_benchmark(function, ordered=ordered, seed=2).coefficients()

    expected = CORRELATION**lag if ordered else 0.0
    for scores in compute_scores(function, coefficients):
        correlation = np.corrcoef(scores[lag:], scores[:-lag])[0, 1]
        # Up to the error of estimates from 60,000 correlated tasks.
        assert correlation == pytest.approx(expected, abs=0.04)


@EVERY_FAMILY
def test_coefficients_are_independent_of_another(function, ordered):
    """The correlations between a, b and c are 0, up to the error of their estimates."""
    coefficients = make_benchmark(function, ordered=ordered, seed=2).coefficients()

    correlations = np.corrcoef(compute_scores(function, coefficients))
    assert np.abs(correlations - np.eye(3)).max() < 0.1


def test_benchmarks_of_same_seed_differ():
    """No coefficient of any task of any benchmark occurs twice."""
    coefficients = []
    for name in NAMES:
        for task in hbo.load(f"{name}-seed-5").tasks:
            coefficients += task.context.values()

    assert len(set(coefficients)) == len(coefficients)


# -- names -----------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**18 - 1),  # a name has at most 18 digits
    tasks=st.integers(1, 40),
    make=st.sampled_from([forrester, quadratic]),
    ordered=st.booleans(),
)
def test_benchmarks_are_loaded_by_name(seed, tasks, make, ordered):
    benchmark = make(seed=seed, tasks=tasks, ordered=ordered)

    loaded = hbo.load(benchmark.id)

    assert loaded.name == benchmark.name
    assert len(loaded.tasks) == tasks
    for loaded_task, task in zip(loaded.tasks, benchmark.tasks, strict=True):
        assert loaded_task.context == task.context
        assert loaded_task.best_value == task.best_value


@pytest.mark.parametrize(
    ("name", "shortest_id"),
    [
        ("forrester-seed-0", "forrester@1"),
        ("quadratic-ordered-seed-0-tasks-30", "quadratic-ordered@1"),
        ("quadratic-seed-4-tasks-30", "quadratic-seed-4@1"),
    ],
)
def test_ids_leave_out_defaults(name, shortest_id):
    """The seed 0, and the 30 tasks of the quadratic function."""
    assert benchmark_spec(name).id == shortest_id


def test_id_names_seed_and_tasks():
    benchmark = quadratic(seed=2, tasks=7, ordered=True)

    assert benchmark.id == "quadratic-ordered-seed-2-tasks-7@1"


@pytest.mark.parametrize(("seed", "tasks"), [(-1, 3), (0, 0), (0, -2)])
def test_impossible_seeds_and_tasks_are_refused(seed, tasks):
    with pytest.raises(ExperimentError, match=f"seed {seed} and {tasks} tasks"):
        forrester(seed=seed, tasks=tasks)


@pytest.mark.parametrize(
    "name",
    [
        "forrester-seed-",
        "forrester-seed-01",  # a leading zero
        "forrester-seed--1",
        "forrester-seed-1-tasks-0",
        "forrester-tasks-3",  # without a seed
        "forrester-ordered-ordered-seed-1",
        "branin-seed-1",  # no such function
    ],
)
def test_other_names_are_unknown(name):
    """Names with another seed, number of tasks or function than can be."""
    assert FAMILIES[0].spec(name) is None
    with pytest.raises(UnknownNameError, match="FUNCTION-seed-SEED"):
        hbo.load(name)


# -- the surrogates as such ------------------------------------------------------------------------


@pytest.mark.parametrize("surrogate_class", [ForresterSurrogate, QuadraticSurrogate])
def test_unpickled_coefficients_are_read_only(surrogate_class):
    surrogate = surrogate_class(np.full((4, 3), 0.5))

    unpickled = pickle.loads(pickle.dumps(surrogate))

    with pytest.raises(ValueError, match="read-only"):
        unpickled.coefficients[0, 0] = 1


@pytest.mark.parametrize(
    "coefficients", [np.zeros((2, 2)), np.full((1, 3), np.nan)], ids=["shape", "NaN"]
)
@pytest.mark.parametrize("surrogate_class", [ForresterSurrogate, QuadraticSurrogate])
def test_invalid_coefficients_are_refused(surrogate_class, coefficients):
    with pytest.raises(ValueError, match="coefficients must be finite"):
        surrogate_class(coefficients)
