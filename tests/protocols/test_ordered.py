import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.random_search import RandomSearch

TRANSFER = hbo.MethodSpec("transfer", RandomSearch, "", "", min_history=2)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((hbo.Ordered, {name: 0}) for name in ("trials", "tasks", "workers_simulated")),
        *((hbo.LeaveOneOut, {name: 0}) for name in ("trials", "tasks", "history")),
        *((hbo.LeaveOneOut, {"tasks": tasks}) for tasks in ((), -1)),
        *((hbo.Adjustment, {name: 0}) for name in ("trials", "tasks", "first_trials")),
    ],
)
def test_protocols_need_something_to_do(kind, settings):
    with pytest.raises(ExperimentError, match="at least 1 "):
        kind(**settings)


def test_ordered_assignments():
    benchmark, protocol = hbo.load("newsvendor"), hbo.Ordered(trials=3, workers_simulated=2)
    evaluated: list[hbo.Evaluations] = []
    for position, optimiser in enumerate(["bo", "bo", "transfer", "transfer"]):
        rng = np.random.default_rng(0)
        assignment = protocol.assignment(
            benchmark, TRANSFER, position=position, evaluated=evaluated, rng=rng
        )
        assert assignment.method.name == optimiser
        assert assignment.task is benchmark.tasks[position]
        assert (assignment.budget, assignment.workers_simulated) == (3, 2)
        assert assignment.history == tuple(evaluated)
        values = benchmark.space.values([{"price_0": 1, "price_1": 2, "price_2": position}])
        evaluated.append(assignment.task.evaluated(values, values[:, 0]))
    assert [hbo.Ordered(tasks=tasks).length(benchmark) for tasks in (None, 4, 50)] == [9, 4, 9]
