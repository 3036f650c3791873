"""The protocol in which each task is optimised after random evaluations of all others.

The toy benchmark has the tasks "0" to "3".
"""

import numpy as np
import pytest

from hpobench_ordered import LeaveOneOut, MethodSpec, Ordered
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.testing.toy import numeric_space, toy_spec


def make_method_that_needs(tasks: int) -> MethodSpec:
    """Make a method, called `mine`, that needs a history of at least so many tasks."""
    return MethodSpec("mine", RandomSearch, "", "", min_history=tasks)


def test_every_task_is_a_target(make_assignments):
    """Each of the four tasks of the toy benchmark is optimised, with two trials."""
    assignments = make_assignments(LeaveOneOut(trials=2, history=6))

    assert [assignment.task.index for assignment in assignments] == [0, 1, 2, 3]
    assert {assignment.budget for assignment in assignments} == {2}
    assert all(assignment.is_recorded for assignment in assignments)


@pytest.mark.parametrize("seed", range(5))
def test_history_is_all_other_tasks(make_assignments, seed):
    """The history of a target has six evaluations of each other task, of "0" to "3"."""
    for assignment in make_assignments(LeaveOneOut(trials=2, history=6), seed=seed):
        other_tasks = [name for name in "0123" if name != assignment.task.name]
        assert [evaluations.task for evaluations in assignment.history] == other_tasks
        for evaluations in assignment.history:
            assert len(evaluations) == 6
            assert evaluations.is_on(assignment.task.space)


def test_random_evaluations_are_of_their_task(make_assignments, toy):
    """Evaluations of a source task have the losses of that task, not of another."""
    benchmark = toy.load()
    for assignment in make_assignments(LeaveOneOut(trials=1)):
        for source in assignment.history:
            # The default number of evaluations.
            assert len(source) == benchmark.history_size
            losses = benchmark.task(source.task).evaluate_many(source.values)
            np.testing.assert_array_equal(source.losses, losses)


def test_history_is_common_to_methods(make_assignments, list_history):
    """Methods that are compared get the same random evaluations of the other tasks."""
    protocol = LeaveOneOut(trials=2, history=6)

    history_of_bo = list_history(make_assignments(protocol, method="bo"))
    history_of_zero_shot = list_history(make_assignments(protocol, method="zero-shot"))

    assert history_of_bo == history_of_zero_shot


def test_history_varies_with_seed(make_assignments, list_history):
    """Another seed draws other random evaluations of the other tasks."""
    protocol = LeaveOneOut(trials=2, history=6)

    history = list_history(make_assignments(protocol, method="bo", seed=0))
    history_of_other_seed = list_history(make_assignments(protocol, method="bo", seed=1))

    assert history_of_other_seed != history


def test_history_is_recorded_evaluations(make_assignments, recorded):
    """If a benchmark has recorded evaluations, they are the history instead of random ones."""
    all_recorded = recorded.recorded()
    for assignment in make_assignments(LeaveOneOut(trials=1), benchmark=recorded):
        expected = [source for source in all_recorded if source.task != assignment.task.name]
        for evaluations, source in zip(assignment.history, expected, strict=True):
            np.testing.assert_array_equal(evaluations.values, source.values)
            np.testing.assert_array_equal(evaluations.losses, source.losses)


def test_sample_of_recorded_evaluations_keeps_order(make_assignments, recorded):
    """Seven of the 30 recorded evaluations of each task are drawn, in their order.

    The recorded losses of task t are 100 t, 100 t + 1, ..., so that they tell the task.
    """
    for assignment in make_assignments(LeaveOneOut(trials=1, history=7), benchmark=recorded):
        for evaluations in assignment.history:
            losses = evaluations.losses.tolist()
            hundreds = {loss // 100 for loss in losses}
            assert len(set(losses)) == 7
            assert losses == sorted(losses)
            assert hundreds == {int(evaluations.task)}


def test_sample_of_recorded_varies_with_seed(make_assignments, list_history, recorded):
    """The seed decides which seven of 30 recorded evaluations of each task are drawn."""
    protocol = LeaveOneOut(trials=1, history=7)

    history = list_history(make_assignments(protocol, benchmark=recorded, seed=0))
    history_of_other_seed = list_history(make_assignments(protocol, benchmark=recorded, seed=1))

    assert history_of_other_seed != history


def test_sample_of_recorded_is_common_to_methods(make_assignments, list_history, recorded):
    """Two methods get the same seven of 30 recorded evaluations of each task."""
    protocol = LeaveOneOut(trials=1, history=7)

    assignments_of_bo = make_assignments(protocol, benchmark=recorded, method="bo")
    assignments_of_cts = make_assignments(protocol, benchmark=recorded, method="cts")

    assert list_history(assignments_of_bo) == list_history(assignments_of_cts)


@pytest.mark.parametrize(
    ("tasks", "targets"), [(2, [0, 1]), (9, [0, 1, 2, 3]), (("3", 1, "1"), [3, 1]), ([3], [3])]
)
def test_targets_may_be_chosen(tasks, targets, make_assignments):
    """A number of tasks means the first ones; a list has their names or indices.

    The history of a target is always of all three other tasks.
    """
    assignments = make_assignments(LeaveOneOut(trials=1, history=2, tasks=tasks))

    assert [assignment.task.index for assignment in assignments] == targets
    assert {len(assignment.history) for assignment in assignments} == {3}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [(["0", "30"], r"unknown task '30'.*there are tasks 0 to 3"), ([4], "unknown task 4")],
)
def test_unknown_targets_are_refused(make_assignments, tasks, message):
    """Targets must be tasks of the benchmark: the toy benchmark has the tasks "0" to "3"."""
    with pytest.raises(UnknownNameError, match=message):
        make_assignments(LeaveOneOut(tasks=tasks))


def test_targets_must_be_listed():
    """A text such as "3" might be the name of a task or their number."""
    with pytest.raises(ExperimentError, match=r"such as \['3'\]"):
        LeaveOneOut(tasks="3")


def test_enough_source_tasks_are_accepted(toy):
    """Of the toy benchmark's four tasks, three are sources; no error is raised."""
    LeaveOneOut().check(toy, make_method_that_needs(3))


def test_too_few_source_tasks_are_refused(toy):
    """The method needs four source tasks, but of four tasks only three are no target."""
    with pytest.raises(ExperimentError, match=r"mine on toy@1 needs .* 4 source task.* are 3"):
        LeaveOneOut().check(toy, make_method_that_needs(4))


def test_single_task_is_refused():
    """In this protocol every run has a history, even that of a method which needs none."""
    spec_with_one_task = toy_spec(numeric_space(), tasks=1)
    with pytest.raises(ExperimentError, match=r"mine on toy@1 .* 1 source task.* are 0"):
        LeaveOneOut().check(spec_with_one_task, make_method_that_needs(0))


def test_ordered_accepts_any_method(toy):
    """Also one that needs more earlier tasks than there are; no error is raised."""
    Ordered().check(toy, make_method_that_needs(4))
