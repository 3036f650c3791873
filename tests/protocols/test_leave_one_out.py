import numpy as np
import pytest

from hpobench_ordered import LeaveOneOut, MethodSpec, Ordered
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.testing.toy import numeric_space, toy_spec


def needing(tasks: int) -> MethodSpec:
    """A method that needs a history of some tasks."""
    return MethodSpec("mine", RandomSearch, "", "", min_history=tasks)


def test_every_task_is_a_target(make_assignments):
    assignments = make_assignments(LeaveOneOut(trials=2, history=6))
    # The toy benchmark has four tasks.
    assert [assignment.task.index for assignment in assignments] == [0, 1, 2, 3]
    assert {(a.budget, a.is_recorded) for a in assignments} == {(2, True)}


@pytest.mark.parametrize("seed", range(5))
def test_history_is_all_other_tasks(make_assignments, seed):
    for assignment in make_assignments(LeaveOneOut(trials=2, history=6), seed=seed):
        other_tasks = [name for name in "0123" if name != assignment.task.name]
        assert [evaluations.task for evaluations in assignment.history] == other_tasks
        for evaluations in assignment.history:
            assert len(evaluations) == 6
            assert evaluations.is_on(assignment.task.space)


def test_random_evaluations_are_of_their_task(make_assignments, toy):
    benchmark = toy.load()
    for assignment in make_assignments(LeaveOneOut(trials=1)):
        for source in assignment.history:
            # The default number of evaluations.
            assert len(source) == benchmark.history_size
            losses = benchmark.task(source.task).evaluate_many(source.values)
            np.testing.assert_array_equal(source.losses, losses)


def test_history_is_common_to_methods(make_assignments, list_history):
    protocol = LeaveOneOut(trials=2, history=6)
    history = list_history(make_assignments(protocol, method="bo"))
    assert list_history(make_assignments(protocol, method="zero-shot")) == history
    # Another seed draws another history.
    assert list_history(make_assignments(protocol, method="bo", seed=1)) != history


def test_history_is_recorded_evaluations(make_assignments, recorded):
    for assignment in make_assignments(LeaveOneOut(trials=1), benchmark=recorded):
        sources = [e for e in recorded.recorded() if e.task != assignment.task.name]
        for evaluations, source in zip(assignment.history, sources, strict=True):
            np.testing.assert_array_equal(evaluations.values, source.values)
            np.testing.assert_array_equal(evaluations.losses, source.losses)


def test_sample_of_recorded_evaluations_keeps_order(make_assignments, recorded):
    """Seven of 30 recorded evaluations of each task."""
    for assignment in make_assignments(LeaveOneOut(trials=1, history=7), benchmark=recorded):
        for evaluations in assignment.history:
            losses = evaluations.losses.tolist()  # of task t: 100 t, 100 t + 1, ...
            assert len(set(losses)) == 7
            assert losses == sorted(losses)
            assert {loss // 100 for loss in losses} == {int(evaluations.task)}


def test_sample_of_recorded_varies_with_seed(make_assignments, list_history, recorded):
    """Seven of 30 recorded evaluations of each task, the same for all methods."""
    protocol = LeaveOneOut(trials=1, history=7)

    def sample(method: str, seed: int) -> list[object]:
        return list_history(
            make_assignments(protocol, benchmark=recorded, method=method, seed=seed)
        )

    assert sample("bo", seed=0) == sample("cts", seed=0)
    assert sample("bo", seed=0) != sample("bo", seed=1)


@pytest.mark.parametrize(
    ("tasks", "targets"), [(2, [0, 1]), (9, [0, 1, 2, 3]), (("3", 1, "1"), [3, 1]), ([3], [3])]
)
def test_targets_may_be_chosen(tasks, targets, make_assignments):
    """The first so many of four tasks, or some by name or index."""
    assignments = make_assignments(LeaveOneOut(trials=1, history=2, tasks=tasks))
    assert [assignment.task.index for assignment in assignments] == targets
    assert {len(assignment.history) for assignment in assignments} == {3}  # all other tasks


@pytest.mark.parametrize(
    ("tasks", "message"),
    [(["0", "30"], r"unknown task '30'.*there are tasks 0 to 3"), ([4], "unknown task 4")],
)
def test_unknown_targets_are_refused(make_assignments, tasks, message):
    with pytest.raises(UnknownNameError, match=message):
        make_assignments(LeaveOneOut(tasks=tasks))


def test_targets_must_be_listed():
    with pytest.raises(ExperimentError, match=r"such as \['3'\]"):
        LeaveOneOut(tasks="3")


def test_enough_source_tasks_are_accepted(toy):
    """Of four tasks, three are sources. No error is raised."""
    LeaveOneOut().check(toy, needing(3))


def test_too_few_source_tasks_are_refused(toy):
    with pytest.raises(ExperimentError, match=r"mine on toy@1 needs .* 4 source task.* are 3"):
        LeaveOneOut().check(toy, needing(4))


def test_single_task_is_refused():
    with pytest.raises(ExperimentError, match=r"mine on toy@1 .* 1 source task.* are 0"):
        LeaveOneOut().check(toy_spec(numeric_space(), tasks=1), needing(0))


def test_ordered_accepts_any_method(toy):
    Ordered().check(toy, needing(4))
