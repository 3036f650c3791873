"""Time of one suggestion, beside BoTorch's in the same run.

`botorch_quality.py` compares what is suggested. Each time is that of an everyday suggestion: one
evaluation has been added since the last one. All libraries run on one thread, as in the
experiment's workers.
"""

import importlib.util
import math
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  brings a BLAS of its own, which can only be limited once loaded
from threadpoolctl import threadpool_limits

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

SIZES = (5, 10, 25, 50, 100, 200)
LIMITS = {25: 0.6e-3, 200: 20e-3}  # seconds, median
RATIOS = {25: 200}  # BoTorch's median to ours, at least
ROUNDS, BOTORCH_ROUNDS = 40, 7
SPACE = SearchSpace(
    [
        Parameter.number("learning_rate", 1e-6, 1, log=True),
        Parameter.number("max_depth", 2, 32, log=True, integer=True),
        Parameter.number("min_child_weight", 1e-6, 32, log=True),
        Parameter.number("n_estimators", 2, 256, log=True, integer=True),
    ]
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("botorch") is None,
    reason="BoTorch is not installed: pip install -e '.[compare]'",
)


@pytest.fixture
def botorch():
    """The baseline beside this file."""
    path = Path(__file__).with_name("baselines.py")
    spec = importlib.util.spec_from_file_location("baselines", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BoTorch


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(threads)


def loss(config: Config) -> float:
    return (
        math.sin(math.log(config["learning_rate"]))
        + math.log(config["max_depth"]) ** 2
        + 0.1 * math.log(config["min_child_weight"]) * math.log(config["n_estimators"])
    )


def suggestion_time(method: type[Method], n: int, seed: int) -> float:
    """Seconds of a suggestion after n evaluations, the last of which came after another one."""
    optimiser = method(
        space=SPACE, rng=np.random.default_rng(seed), history=(), context={}, budget=n + 1
    )
    rng = np.random.default_rng([seed, n])
    for config in (SPACE.sample(rng) for _ in range(n - 1)):
        optimiser.tell(config, loss(config))
    optimiser.ask()
    config = SPACE.sample(rng)
    optimiser.tell(config, loss(config))
    begin = time.perf_counter()
    optimiser.ask()
    return time.perf_counter() - begin


def median_time(method: type[Method], n: int, rounds: int) -> float:
    """Median over rounds after a first one, which compiles and imports."""
    return float(np.median([suggestion_time(method, n, seed) for seed in range(rounds + 1)][1:]))


@pytest.mark.filterwarnings("ignore")  # BoTorch's
def test_suggestion_time(botorch, capsys):
    ours, theirs = {}, {}
    for n in SIZES:
        ours[n] = median_time(BayesianOptimisation, n, ROUNDS)
        theirs[n] = median_time(botorch, n, BOTORCH_ROUNDS)
    with capsys.disabled():
        print(f"\n{'evaluations':>12}{'bo, ms':>12}{'BoTorch, ms':>14}{'ratio':>8}")
        for n in SIZES:
            ratio = theirs[n] / ours[n]
            print(f"{n:12}{1e3 * ours[n]:12.2f}{1e3 * theirs[n]:14.1f}{ratio:8.0f}")
    for n, limit in LIMITS.items():
        assert ours[n] <= limit, n
    for n, least in RATIOS.items():
        assert theirs[n] >= least * ours[n], n
