import pickle

import numpy as np
import pytest

from hpobench_ordered import MethodSpec, Ordered, load
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.random_search import RandomSearch

TRANSFER = MethodSpec("transfer", RandomSearch, "", "", min_history=2)


@pytest.mark.parametrize("settings", [{"trials": 0}, {"tasks": 0}, {"workers_simulated": 0}])
def test_protocol_needs_something_to_do(settings):
    with pytest.raises(ExperimentError, match="at least 1 "):
        Ordered(**settings)


def test_settings_tell_protocols_apart():
    settings = Ordered(trials=3, workers_simulated=4).settings()
    assert settings == {"trials": 3, "tasks": None, "workers_simulated": 4}
    assert pickle.loads(pickle.dumps(Ordered(tasks=2))) == Ordered(tasks=2)


def test_assignments():
    benchmark, protocol = load("newsvendor"), Ordered(trials=3, workers_simulated=2)
    evaluated: list[Evaluations] = []
    for position, optimiser in enumerate(["bo", "bo", "transfer", "transfer"]):
        rng = np.random.default_rng(0)
        assignment = protocol.assignment(
            benchmark, TRANSFER, position=position, evaluated=evaluated, rng=rng
        )
        assert assignment.method.name == optimiser
        assert assignment.task is benchmark.tasks[position]
        assert (assignment.history, assignment.budget, assignment.workers_simulated) == (
            tuple(evaluated),
            3,
            2,
        )
        values = benchmark.space.values([{"price_0": 1, "price_1": 2, "price_2": position}])
        evaluated.append(assignment.task.evaluated(values, values[:, 0]))


@pytest.mark.parametrize(("tasks", "length"), [(None, 9), (4, 4), (50, 9)])
def test_length(tasks, length):
    assert Ordered(tasks=tasks).length(load("newsvendor")) == length
