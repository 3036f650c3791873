"""Time of one suggestion of TPE, beside Optuna's sampler of that name."""

import statistics
import time
import warnings

import numpy as np
import optuna
import pytest

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

LIMITS = {25: 0.5e-3, 200: 2e-3}  # seconds, median
SPACE = SearchSpace([Parameter.number(name, 0, 1) for name in "abcd"])


def loss(config: Config) -> float:
    return sum((float(x) - 0.3) ** 2 for x in config.values())


def by_optuna(n: int) -> float:
    """Median seconds of Optuna's suggestions with n finished trials."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
        space = {name: optuna.distributions.FloatDistribution(0, 1) for name in SPACE.names}
        rng = np.random.default_rng(0)
        for _ in range(n):
            config = SPACE.sample(rng)
            study.add_trial(
                optuna.trial.create_trial(params=config, distributions=space, value=loss(config))
            )
        seconds = []
        for _ in range(25):
            begin = time.perf_counter()
            study.ask(space)
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


@pytest.mark.parametrize("n", LIMITS)
def test_suggestion(benchmark, n):
    method = TPE(space=SPACE, rng=np.random.default_rng(0), history=(), context={}, budget=n)
    method.random_fraction = 0.0
    rng = np.random.default_rng(1)
    for _ in range(n):
        config = SPACE.sample(rng)
        method.tell(config, loss(config))

    def ask() -> Config:
        method._pending.clear()
        return method.ask()

    benchmark.pedantic(ask, rounds=50, warmup_rounds=5)
    theirs = by_optuna(n)
    ratio = theirs / benchmark.stats.stats.median
    benchmark.extra_info["Optuna's time, in ours"] = ratio
    print(
        f"\nwith {n} evaluations Optuna's TPE takes {theirs * 1e3:.2f} ms, {ratio:.0f} times ours"
    )
    assert benchmark.stats.stats.median <= LIMITS[n]
