"""Speed of surrogates: required rates, and ratios against scikit-learn measured in the same run."""

import time

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.neighbors import KNeighborsRegressor

from hpobench_ordered.benchmarks.xgboost_mnist import space
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.nearest import NearestSurrogate, authors_coding, log_coding

BATCH = 1000
TASKS = 5


def sample(seed, n):
    return space().decode(space().sample_unit(np.random.default_rng(seed), n))


def objective(values):
    rate, weight, depth, trees = np.log(values).T
    first = np.tanh(rate + trees) + 0.1 * weight * depth
    return np.stack([first + 0.1 * k * rate for k in range(TASKS)], axis=1)


def seconds(function, repeats=5):
    """Shortest of a few runs: what is slower was disturbed."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times)


@pytest.fixture(scope="module")
def forest():
    values = sample(0, 3000)
    return fit_forest(
        values, objective(values), coding=space_coding(space()), recipe=ForestRecipe(), seed=0
    )


@pytest.fixture(scope="module", params=[authors_coding, log_coding])
def nearest(request):
    values = sample(0, 1000)
    coding = request.param(space(), values)
    return NearestSurrogate.from_evaluations(values, objective(values), coding=coding)


def test_nearest_in_batches(nearest, benchmark):
    queries = sample(1, BATCH)
    features = nearest.coding.encode(queries)
    reference = KNeighborsRegressor(n_neighbors=1).fit(nearest.points, nearest.targets[:, 0])
    by_reference = seconds(lambda: reference.predict(features))
    nearest.predict(queries, 0)
    benchmark(nearest.predict, queries, 0)
    fastest = benchmark.stats.stats.min
    benchmark.extra_info |= {"per_second": BATCH / fastest, "ratio": by_reference / fastest}
    assert BATCH / fastest > 1_000_000
    assert by_reference / fastest > 2


def test_nearest_one_by_one(nearest, benchmark):
    row = sample(1, 1)[0]
    nearest.predict_one(row, 0)
    benchmark(nearest.predict_one, row, 0)
    assert 1 / benchmark.stats.stats.min > 50_000


def test_forest_in_batches(forest, benchmark):
    queries = sample(1, BATCH)
    features = forest.coding.encode(queries)
    recipe = ForestRecipe()
    values = sample(0, 3000)
    reference = ExtraTreesRegressor(
        recipe.trees, min_samples_leaf=recipe.min_samples_leaf, random_state=0
    ).fit(forest.coding.encode(values), objective(values))
    by_reference = seconds(lambda: reference.predict(features))
    forest.predict(queries, 0)
    benchmark(forest.predict, queries, 0)
    fastest = benchmark.stats.stats.min
    benchmark.extra_info |= {"per_second": BATCH / fastest, "ratio": by_reference / fastest}
    assert BATCH / fastest > 200_000
    assert by_reference / fastest > 5


def test_forest_one_by_one(forest, benchmark):
    rows = sample(1, 200)
    forest.predict_one(rows[0], 0)
    benchmark(lambda: [forest.predict_one(row, 0) for row in rows])
    assert len(rows) / benchmark.stats.stats.min > 30_000
