"""Time of the methods that look at training data, at the sizes of the paper's experiments.

Processor time on one thread, as in the experiment's workers: a first suggestion, which fits the
model beforehand, and one after a further evaluation. pytest-benchmark is not used: a fit is not
repeated from the same state. Run with `-s` to see the table.
"""

import time

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods.base import Method
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread

SPACE = hbo.SearchSpace([hbo.Parameter.number(f"x{i}", 0, 1) for i in range(7)])
POINTS, FEATURES = 1000, 6
TASKS = 10
PROCESSES = ("dist-gp", "manual-gp", "multi-gp")
REGRESSIONS = ("dist-blr", "manual-blr", "multi-blr")
SUGGESTIONS = 3
GROWTH = 1.5
"""Time of 1500 evaluations over that of 300, as a multiple of what is linear."""


@pytest.fixture(autouse=True)
def one_blas_thread():
    with one_thread():
        yield


def made(name: str, evaluations: int) -> Method:
    rng = np.random.default_rng(0)
    history, data = [], []
    for task in range(TASKS + 1):
        X = rng.standard_normal((POINTS, FEATURES))
        labels = np.sin(X @ rng.standard_normal(FEATURES))
        data.append(hbo.TaskData(X, labels, hbo.DataKind.REGRESSION))
        values = rng.random((evaluations // TASKS, 7))
        objective = np.square(values - 0.05 * task).sum(axis=1)
        history.append(
            Evaluations(str(task), {}, values, objective, space=SPACE, direction="minimize")
        )
    spec = method_spec(name)
    setting = {"data": data} if spec.uses_data else {}
    rng = np.random.default_rng(1)
    return spec.method(space=SPACE, rng=rng, history=history[:-1], context={}, budget=50, **setting)


def seconds(name: str, evaluations: int) -> tuple[float, float]:
    """Of the fit beforehand with the first suggestion, and of one later; compiled before."""
    warm = made(name, 20)
    for value in (1.0, 0.5):
        warm.tell(warm.ask(), value)
    method = made(name, evaluations)
    if method.random_trials:
        method.tell(method.ask(), 1.0)
    times = []
    for value in np.linspace(0.9, 0.5, SUGGESTIONS + 1):
        start = time.process_time()
        config = method.ask()
        times.append(time.process_time() - start)
        method.tell(config, float(value))
    return times[0], float(np.median(times[1:]))


@pytest.mark.parametrize("name", PROCESSES)
def test_gaussian_processes(name):
    for evaluations in (120, 500):
        first, later = seconds(name, evaluations)
        print(f"{name} {evaluations}: first {first:.2f} s, later {later:.3f} s")


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_grow_linearly(name):
    found = {}
    for evaluations in (120, 300, 1500):
        first, found[evaluations] = seconds(name, evaluations)
        print(f"{name} {evaluations}: first {first:.2f} s, later {found[evaluations]:.3f} s")
    assert found[1500] <= GROWTH * 5 * found[300]
