"""Time of one suggestion, beside scikit-learn's Gaussian process doing the same.

BLAS runs on one thread, as in the experiment's workers: with more, both take many times longer.
"""

import math

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods._candidates import CANDIDATES
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

SIZES = (5, 10, 25, 50, 100, 200)
LIMITS = {25: 0.6e-3, 200: 20e-3}  # seconds, median
SPACE = SearchSpace(
    [
        Parameter.number("learning_rate", 1e-6, 1, log=True),
        Parameter.number("max_depth", 2, 32, log=True, integer=True),
        Parameter.number("min_child_weight", 1e-6, 32, log=True),
        Parameter.number("n_estimators", 2, 256, log=True, integer=True),
    ]
)


@pytest.fixture(autouse=True)
def one_blas_thread():
    with threadpool_limits(1):
        yield


def loss(config: Config) -> float:
    return (
        math.sin(math.log(config["learning_rate"]))
        + math.log(config["max_depth"]) ** 2
        + 0.1 * math.log(config["min_child_weight"]) * math.log(config["n_estimators"])
    )


def observed(n: int, *, seed: int) -> BayesianOptimisation:
    """A method told of n random configurations, that suggested something before the last one."""
    method = BayesianOptimisation(
        space=SPACE, rng=np.random.default_rng(seed), history=(), context={}, budget=n
    )
    rng = np.random.default_rng([seed, n])
    for i in range(n):
        if i == n - 1:
            method.ask()
            method._pending.clear()
        config = SPACE.sample(rng)
        method.tell(config, loss(config))
    return method


@pytest.mark.parametrize("n", SIZES)
def test_suggestion(benchmark, n):
    seeds = iter(range(1000))

    def fresh() -> tuple[tuple[BayesianOptimisation], dict[str, object]]:
        return (observed(n, seed=next(seeds)),), {}

    benchmark.pedantic(BayesianOptimisation.ask, setup=fresh, rounds=60, warmup_rounds=5)
    assert benchmark.stats.stats.median <= LIMITS.get(n, math.inf)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n", SIZES)
def test_suggestion_by_scikit_learn(benchmark, n):
    rng = np.random.default_rng(1)
    configs = [SPACE.sample(rng) for _ in range(n)]
    features = SPACE.features(SPACE.encode(SPACE.values(configs)))
    losses = np.array([loss(config) for config in configs])
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
        [0.7] * 4, (1e-2, 1e2), nu=2.5
    ) + WhiteKernel(1e-3, (1e-6, 1.0))

    def suggest() -> FloatArray:
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(features, losses)
        unit = SPACE.sample_unit(rng, CANDIDATES)
        mean, sd = model.predict(SPACE.features(unit), return_std=True)
        z = (losses.min() - mean) / sd
        return unit[np.argmax(sd * (z * norm.cdf(z) + norm.pdf(z)))]

    benchmark.pedantic(suggest, rounds=5, warmup_rounds=1)


def test_run_of_25_trials(benchmark):
    seeds = iter(range(1000))

    def run() -> None:
        method = BayesianOptimisation(
            space=SPACE, rng=np.random.default_rng(next(seeds)), history=(), context={}, budget=25
        )
        for _ in range(25):
            config = method.ask()
            method.tell(config, loss(config))

    benchmark.pedantic(run, rounds=20, warmup_rounds=2)
