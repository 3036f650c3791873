"""The protocol in which tasks come in order, each with all earlier ones as its history."""

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.random_search import RandomSearch

NEEDS_TWO_EARLIER_TASKS = hbo.MethodSpec("transfer", RandomSearch, "", "", min_history=2)
"""A method that needs two earlier tasks."""


ZERO_SETTINGS = [
    (hbo.Ordered, "trials"),
    (hbo.Ordered, "tasks"),
    (hbo.Ordered, "workers_simulated"),
    (hbo.LeaveOneOut, "trials"),
    (hbo.LeaveOneOut, "tasks"),
    (hbo.LeaveOneOut, "history"),
    (hbo.Adjustment, "trials"),
    (hbo.Adjustment, "tasks"),
    (hbo.Adjustment, "first_trials"),
]


@pytest.mark.parametrize(("protocol", "setting"), ZERO_SETTINGS)
def test_settings_must_be_positive(protocol, setting):
    with pytest.raises(ExperimentError, match="at least 1 "):
        protocol(**{setting: 0})


@pytest.mark.parametrize("tasks", [(), -1])
def test_tasks_must_not_be_empty(tasks):
    with pytest.raises(ExperimentError, match="at least 1 "):
        hbo.LeaveOneOut(tasks=tasks)


@pytest.fixture
def assignments():
    """The first four tasks of a run on newsvendor, each with its method and its history.

    One evaluation is made up for each task. Its last price is the position of the task, which later
    tells the tasks of a history.
    """
    benchmark = hbo.load("newsvendor")
    protocol = hbo.Ordered(trials=3, workers_simulated=2)
    evaluated: list[hbo.Evaluations] = []
    assignments = []
    for position in range(4):
        assignment = protocol.assignment(
            benchmark,
            NEEDS_TWO_EARLIER_TASKS,
            position=position,
            evaluated=evaluated,
            rng=np.random.default_rng(0),
        )
        assignments.append(assignment)
        values = benchmark.space.values([{"price_0": 1, "price_1": 2, "price_2": position}])
        any_profit = values[:, 0]
        evaluated.append(assignment.task.evaluated(values, any_profit))
    return assignments


def test_tasks_come_in_order(assignments):
    assert [assignment.task.index for assignment in assignments] == [0, 1, 2, 3]


def test_history_is_all_earlier_tasks(assignments):
    """On each task one configuration was evaluated, whose last price is the task's position.

    So the history of the task at position 3 has the last prices 0, 1 and 2.
    """
    for position, assignment in enumerate(assignments):
        last_prices = [evaluations.values[0, 2] for evaluations in assignment.history]
        assert last_prices == list(range(position))


def test_history_grows_by_last_task(assignments):
    """The history of each task is the beginning of the history of the last one."""
    history_of_last = assignments[-1].history
    for position, assignment in enumerate(assignments):
        assert assignment.history == history_of_last[:position]


def test_bo_runs_until_there_is_history(assignments):
    """The method of the run, `transfer`, needs two earlier tasks: before, `bo` stands in for it."""
    names = [assignment.method.name for assignment in assignments]
    assert names == ["bo", "bo", "transfer", "transfer"]


def test_settings_are_those_of_the_protocol(assignments):
    """Every task is optimised with the protocol's three trials and two simulated workers."""
    assert {assignment.budget for assignment in assignments} == {3}
    assert {assignment.workers_simulated for assignment in assignments} == {2}


@pytest.mark.parametrize(("tasks", "length"), [(None, 9), (4, 4), (50, 9)])
def test_length_is_at_most_all_tasks(tasks, length):
    """A run has as many tasks as asked for, but no more than newsvendor's nine."""
    assert hbo.Ordered(tasks=tasks).length(hbo.load("newsvendor")) == length
