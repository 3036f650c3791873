import numpy as np
import pytest

from hpobench_ordered import LeaveOneOut, MethodSpec, Ordered
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.testing.toy import numeric_space, toy_spec


def test_the_history_is_all_tasks_but_the_target(assignments):
    for seed in range(5):
        made = assignments(LeaveOneOut(trials=2, history=6), seed=seed)
        assert [assignment.task.index for assignment in made] == [0, 1, 2, 3]
        for assignment in made:
            sources = [evaluations.task for evaluations in assignment.history]
            assert sources == [t for t in "0123" if t != assignment.task.name]
            assert all(len(e) == 6 and e.is_on(assignment.task.space) for e in assignment.history)
            assert (assignment.budget, assignment.is_recorded) == (2, True)


def test_random_evaluations_are_of_their_task(assignments, toy):
    benchmark = toy.load()
    for assignment in assignments(LeaveOneOut(trials=1)):
        for source in assignment.history:
            assert len(source) == benchmark.history_size
            losses = benchmark.task(source.task).evaluate_many(source.values)
            np.testing.assert_array_equal(source.losses, losses)


def test_all_methods_get_the_same_history(assignments, content):
    protocol = LeaveOneOut(trials=2, history=6)
    first, again, other = (
        content(assignments(protocol, method=method)) for method in ("bo", "bo", "zero-shot")
    )
    assert first == again == other
    assert first != content(assignments(protocol, seed=1))


def test_recorded_evaluations_are_taken(assignments, content, recorded):
    made = assignments(LeaveOneOut(trials=1), benchmark=recorded)
    for assignment in made:
        expected = [recorded.recorded()[t] for t in range(4) if t != assignment.task.index]
        for source, whole in zip(assignment.history, expected, strict=True):
            np.testing.assert_array_equal(source.values, whole.values)
            np.testing.assert_array_equal(source.losses, whole.losses)


def test_a_part_of_them_depends_on_the_seed_alone(assignments, content, recorded):
    protocol = LeaveOneOut(trials=1, history=7)
    parts = [
        content(assignments(protocol, benchmark=recorded, method=method, seed=seed))
        for method, seed in (("bo", 0), ("cts", 0), ("bo", 1))
    ]
    assert parts[0] == parts[1] != parts[2]
    for target in parts[0]:
        for task, _, losses in target:
            assert len(set(losses)) == 7
            assert all(loss // 100 == int(task) for loss in losses)
            assert losses == sorted(losses)  # in the order of recording


@pytest.mark.parametrize(
    ("tasks", "targets"), [(2, [0, 1]), (9, [0, 1, 2, 3]), (("3", 1, "1"), [3, 1]), ([3], [3])]
)
def test_targets(tasks, targets, assignments):
    made = assignments(LeaveOneOut(trials=1, history=2, tasks=tasks))
    assert [assignment.task.index for assignment in made] == targets
    assert all(len(assignment.history) == 3 for assignment in made)  # all the others are sources


def test_unknown_targets_are_refused(toy, assignments):
    with pytest.raises(UnknownNameError, match=r"unknown task '30'.*there are tasks 0 to 3"):
        assignments(LeaveOneOut(tasks=["0", "30"]))
    with pytest.raises(UnknownNameError, match="unknown task 4"):
        assignments(LeaveOneOut(tasks=[4]))
    with pytest.raises(ExperimentError, match=r"such as \['3'\]"):
        LeaveOneOut(tasks="3")


def test_a_method_that_needs_more_source_tasks_is_refused(toy):
    protocol = LeaveOneOut()
    Ordered().check(toy, MethodSpec("four", RandomSearch, "", "", min_history=4))  # takes all
    protocol.check(toy, MethodSpec("three", RandomSearch, "", "", min_history=3))
    with pytest.raises(ExperimentError, match=r"four on toy@1 needs .* 4 source task.* are 3"):
        protocol.check(toy, MethodSpec("four", RandomSearch, "", "", min_history=4))
    with pytest.raises(ExperimentError, match=r"random on toy@1 .* 1 source task.* are 0"):
        alone = toy_spec(numeric_space(), tasks=1)
        protocol.check(alone, MethodSpec("random", RandomSearch, "", ""))
