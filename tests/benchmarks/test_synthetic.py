"""Synthetic functions: their values, minima, coefficients and names."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize, stats

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.benchmarks.synthetic import (
    CORRELATION,
    FAMILIES,
    FORRESTER,
    QUADRATIC,
    FunctionFamily,
    SyntheticBenchmark,
    forrester,
    quadratic,
)
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.surrogates.analytic import ForresterSurrogate, QuadraticSurrogate

NAMES_OF_BENCHMARKS = ("forrester", "quadratic", "forrester-ordered", "quadratic-ordered")
ANY_SEED = st.integers(0, 2**64)
MANY_TASKS = 60_000
"""Tasks whose coefficients are compared with their distribution."""

DISTRIBUTIONS_OF_COEFFICIENTS = {
    FORRESTER: (stats.norm(6, 1), stats.norm(12, 2), stats.uniform(0, 10)),
    QUADRATIC: (stats.uniform(0.1, 0.9),) * 3,
}
"""Distributions of a, b and c (Horvath et al. 2021, section 5)."""

EVERY_FAMILY = pytest.mark.parametrize(
    ("function", "ordered"), list(product(DISTRIBUTIONS_OF_COEFFICIENTS, [False, True]))
)


def make_benchmark(
    function: FunctionFamily, *, ordered: bool = False, seed: int = 0, tasks: int = MANY_TASKS
) -> SyntheticBenchmark:
    """Make a benchmark of one function, whose coefficients differ from task to task.

    If it is ordered, those of consecutive tasks are correlated, otherwise they are independent.
    """
    return SyntheticBenchmark(function, ordered=ordered, seed=seed, tasks=tasks)


def apply_formula(benchmark: hbo.Benchmark, task: int, x: np.ndarray) -> np.ndarray:
    """Apply the paper's formula of a benchmark, Forrester's or the quadratic one, (n, d) to (n,).

    The context of a task holds its coefficients a, b and c.
    """
    context = benchmark.tasks[task].context
    a, b, c = context["a"], context["b"], context["c"]
    if benchmark.name.startswith("forrester"):
        only_column = x[:, 0]
        return (a * only_column - 2) ** 2 * np.sin(b * only_column - 4) + c
    return a * (x**2).sum(axis=1) + b * x.sum(axis=1) + c


# -- the benchmarks --------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", NAMES_OF_BENCHMARKS)
def test_contexts_are_the_coefficients(name):
    assert all(tuple(task.context) == ("a", "b", "c") for task in hbo.load(name).tasks)


@given(seed=ANY_SEED, make_function=st.sampled_from([forrester, quadratic]), ordered=st.booleans())
def test_values_are_those_of_formula(seed, make_function, ordered):
    """Values of fifty random configurations are those of the paper's formula."""
    benchmark = make_function(seed=seed, tasks=3, ordered=ordered)
    space = benchmark.space
    fifty_configs = space.decode(space.sample_unit(np.random.default_rng(seed), 50))
    for task in benchmark.tasks:
        values = task.evaluate_many(fifty_configs)

        expected = apply_formula(benchmark, task.index, fifty_configs)
        np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


# -- minima ----------------------------------------------------------------------------------------

GRID_OF_FORRESTER = np.linspace(0, 1, 100_001)[:, None]
"""Configurations of the Forrester function, 1e-5 apart."""


@given(seed=ANY_SEED)
@example(seed=193)  # lowest at the right end
def test_no_float_beats_forrester_minimum(seed):
    """No number close to the optimum has a lower value than the stored minimum, by rounding errors.

    Thousands are tried around the best point of a grid, and around what Brent's method finds there.
    """
    (task,) = forrester(seed=seed, tasks=1).tasks
    best_on_grid = find_best_of_grid(task)
    best_of_brent = find_best_by_brent(task, near=best_on_grid)
    smallest_step = 2.0**-53  # between numbers below 1
    steps = smallest_step * np.random.default_rng(seed).integers(-100_000, 100_000, 5000)
    near_both = np.concatenate([best_on_grid + steps, best_of_brent + steps])
    x = np.clip(near_both, 0, 1)[:, None]

    regrets = task.regret(task.evaluate_many(x))

    assert 0 <= regrets.min() <= 1e-11


def find_best_of_grid(task: hbo.Task) -> float:
    """Find the point of a dense grid at which Forrester's function is lowest."""
    best_row = np.argmin(task.evaluate_many(GRID_OF_FORRESTER))
    return float(GRID_OF_FORRESTER[best_row, 0])


def find_best_by_brent(task: hbo.Task, near: float) -> float:
    """Minimise Forrester's formula by Brent's method, at most 1e-5 from a point."""
    a, b, c = task.context.values()
    minimum = optimize.minimize_scalar(
        lambda x: (a * x - 2) ** 2 * math.sin(b * x - 4) + c,
        bounds=(max(0.0, near - 1e-5), min(1.0, near + 1e-5)),
        method="bounded",
        options={"xatol": 1e-13},
    )
    return float(minimum.x)


@given(seed=ANY_SEED, ordered=st.booleans())
def test_no_float_beats_quadratic_minimum(seed, ordered):
    """A sum of a x^2 + b x over five coordinates has its minimum at -b / (2 a) in each.

    No configuration that is up to fifty floats away in each coordinate is better by rounding.
    """
    (task,) = quadratic(seed=seed, tasks=1, ordered=ordered).tasks
    optimum = np.full(5, -task.context["b"] / (2 * task.context["a"]))
    floats_apart = np.random.default_rng(seed).integers(-50, 50, (2000, 5))
    neighbours = optimum + floats_apart * np.spacing(optimum)

    (regret_of_optimum,) = task.regret(task.evaluate_many(optimum[None]))
    regrets_of_neighbours = task.regret(task.evaluate_many(neighbours))

    assert regret_of_optimum == 0.0
    assert regrets_of_neighbours.min() >= 0
    assert regrets_of_neighbours.max() < 1e-12


# -- coefficients ----------------------------------------------------------------------------------


@given(seed=ANY_SEED, fewer=st.integers(1, 20), more=st.integers(0, 20))
@EVERY_FAMILY
def test_fewer_tasks_are_the_first(function, ordered, seed, fewer, more):
    """A benchmark of fewer tasks has exactly the first tasks of one with more."""
    few = make_benchmark(function, ordered=ordered, seed=seed, tasks=fewer)
    many = make_benchmark(function, ordered=ordered, seed=seed, tasks=fewer + more)

    assert few.draw_coefficients().tobytes() == many.draw_coefficients()[:fewer].tobytes()


@given(seed=ANY_SEED, tasks=st.integers(1, 20))
@EVERY_FAMILY
def test_seeds_share_no_coefficients(function, ordered, seed, tasks):
    """Each seed draws coefficients of its own: two seeds have none in common."""
    first = make_benchmark(function, ordered=ordered, seed=seed, tasks=tasks).draw_coefficients()
    second = make_benchmark(
        function, ordered=ordered, seed=seed + 1, tasks=tasks
    ).draw_coefficients()

    assert not np.isin(first, second).any()


@EVERY_FAMILY
def test_coefficients_follow_the_papers_distributions(function, ordered):
    """The coefficients a, b and c of many tasks are compared with a distribution each."""
    coefficients = make_benchmark(function, ordered=ordered, seed=1).draw_coefficients()
    independent = thin_to_independent(coefficients, ordered=ordered)

    distributions = DISTRIBUTIONS_OF_COEFFICIENTS[function]
    for column, distribution in zip(independent.T, distributions, strict=True):
        assert stats.kstest(column, distribution.cdf).pvalue > 0.01
        lowest, highest = distribution.support()
        assert lowest <= column.min() <= column.max() <= highest


def thin_to_independent(coefficients: np.ndarray, *, ordered: bool) -> np.ndarray:
    """Keep the coefficients of tasks that are as good as independent, at least 600.

    Ordered tasks are correlated, but no longer if they are a hundred apart.
    """
    spacing = 100 if ordered else 1
    independent = coefficients[::spacing]
    assert len(independent) >= 600
    return independent


def compute_normal_scores(function: FunctionFamily, coefficients: np.ndarray) -> np.ndarray:
    """Transform the coefficients of T tasks so that each is standard normal, (T, 3) to (3, T).

    A coefficient becomes the normal number with the same quantile.
    """
    scores = []
    distributions = DISTRIBUTIONS_OF_COEFFICIENTS[function]
    for distribution, column in zip(distributions, coefficients.T, strict=True):
        quantiles = distribution.cdf(column)
        scores.append(stats.norm.ppf(quantiles))
    return np.array(scores)


@pytest.mark.parametrize("lag", [1, 2, 9, 29])
@EVERY_FAMILY
def test_correlation_decays_with_lag(function, ordered, lag):
    """Ordered tasks have the correlation 0.95^lag, if they are `lag` apart; others have none.

    It is that of their coefficients after each was transformed to be normal.
    """
    coefficients = make_benchmark(function, ordered=ordered, seed=2).draw_coefficients()

    # The package's constant is the correlation of a task and the next, 0.95.
    expected = CORRELATION**lag if ordered else 0.0
    for scores in compute_normal_scores(function, coefficients):
        correlation = np.corrcoef(scores[lag:], scores[:-lag])[0, 1]
        # Up to the error of estimates from 60,000 correlated tasks.
        assert correlation == pytest.approx(expected, abs=0.04)


# -- names -----------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**18 - 1),  # a name has at most 18 digits
    tasks=st.integers(1, 40),
    make_function=st.sampled_from([forrester, quadratic]),
    ordered=st.booleans(),
)
def test_benchmarks_are_loaded_by_id(seed, tasks, make_function, ordered):
    """The id names function, order, seed and number of tasks, which decide the whole benchmark."""
    benchmark = make_function(seed=seed, tasks=tasks, ordered=ordered)

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
    """They have an impossible seed, number of tasks or function; the error tells the form."""
    (family_of_synthetic,) = FAMILIES

    assert family_of_synthetic.spec(name) is None
    with pytest.raises(UnknownNameError, match="FUNCTION-seed-SEED"):
        hbo.load(name)


# -- the surrogates as such ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "coefficients", [np.zeros((2, 2)), np.full((1, 3), np.nan)], ids=["shape", "NaN"]
)
@pytest.mark.parametrize("surrogate_class", [ForresterSurrogate, QuadraticSurrogate])
def test_invalid_coefficients_are_refused(surrogate_class, coefficients):
    with pytest.raises(ValueError, match="coefficients must be finite"):
        surrogate_class(coefficients)
