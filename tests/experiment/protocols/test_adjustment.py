"""The protocol of an adjustment: each task is optimised on the old search space, then on the new.

The toy benchmark has the tasks "0" to "3"; `numeric_space_before()` is its old space.
"""

import numpy as np
import pytest

from hpobench_ordered import Adjustment, MethodSpec, list_methods
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before

BO = method_spec("bo")


def test_tasks_are_optimised_on_both_spaces(make_assignments):
    """Each task is first optimised on the old space by `bo`, whose trials are not recorded.

    Then it is optimised on the new space by the method of the run.
    """
    # A task is given by its name or its index; they are not in their usual order.
    two_tasks = ["2", 0]
    protocol = Adjustment(first_trials=5, trials=3, tasks=two_tasks)

    assignments = make_assignments(protocol, method="simple-previous")

    old_space, new_space = numeric_space_before(), numeric_space()
    steps = []
    for step in assignments:
        task = step.task
        steps.append((task.index, task.space, step.method.name, step.budget, step.is_recorded))
    assert steps == [
        (2, old_space, "bo", 5, False),
        (2, new_space, "simple-previous", 3, True),
        (0, old_space, "bo", 5, False),
        (0, new_space, "simple-previous", 3, True),
    ]


def test_first_optimisation_has_no_history(make_assignments):
    """A task is optimised on the old search space, and then on the new."""
    on_old_space, _ = make_assignments(Adjustment(first_trials=5, trials=3, tasks=1))

    assert on_old_space.history == ()


def test_history_is_from_old_space(make_assignments):
    """On the new search space, the history is of the same task on the old space."""
    on_old_space, on_new_space = make_assignments(Adjustment(first_trials=5, trials=3, tasks=1))

    (history,) = on_new_space.history
    assert history.task == on_old_space.task.name
    assert history.space == numeric_space_before()
    assert len(history) == 5
    losses_on_old_space = on_old_space.task.evaluate_many(history.values)
    np.testing.assert_array_equal(history.losses, losses_on_old_space)


def test_history_is_common_to_methods(make_assignments, list_history):
    """The first method, by default `bo`, makes the history, whichever method is run afterwards."""
    protocol = Adjustment(first_trials=6, trials=2)

    history_of_bo = list_history(make_assignments(protocol, method="bo"))
    history_of_simple = list_history(make_assignments(protocol, method="simple-previous"))

    assert history_of_bo == history_of_simple


def test_history_varies_with_seed(make_assignments, list_history):
    """The trials of the first method, which are the history, are random."""
    protocol = Adjustment(first_trials=6, trials=2)

    history = list_history(make_assignments(protocol, seed=0))
    history_of_other_seed = list_history(make_assignments(protocol, seed=1))

    assert history_of_other_seed != history


def test_history_varies_with_first_method(make_assignments, list_history):
    """The first method, which tunes on the old search space, makes the history."""
    by_bo = Adjustment(first_trials=6, trials=2)  # the default first method
    by_random_search = Adjustment(first_trials=6, trials=2, first_method="random-search")

    history_by_bo = list_history(make_assignments(by_bo))
    history_by_random_search = list_history(make_assignments(by_random_search))

    assert history_by_bo != history_by_random_search


@pytest.mark.parametrize("name", list_methods())
def test_methods_must_support_changed_spaces(toy, name):
    """Only methods with the attribute `changed_spaces` can use a history on another space.

    For them the check raises no error.
    """
    method = method_spec(name)
    if method.changed_spaces:
        Adjustment().check(toy, method)
        return

    with pytest.raises(ExperimentError, match=f"{name} needs its history on the same search space"):
        Adjustment().check(toy, method)


NEEDS_TWO_TASKS = MethodSpec("two", RandomSearch, "", "", min_history=2, changed_spaces=True)


@pytest.mark.parametrize(
    ("protocol", "method", "error", "message"),
    [
        (Adjustment(first_method="zero-shot"), BO, ExperimentError, "there are none"),
        (Adjustment(first_method="boo"), BO, UnknownNameError, "did you mean 'bo'"),
        (Adjustment(tasks=["9"]), BO, UnknownNameError, "unknown task '9'"),
        (Adjustment(), NEEDS_TWO_TASKS, ExperimentError, "two needs 2 earlier tasks"),
    ],
)
def test_impossible_settings_are_refused(protocol, method, error, message, toy):
    """A setting of the protocol is wrong, or a method needs more history than it would get.

    The first method gets no history, the method of the run that of a single task.
    """
    with pytest.raises(error, match=message):
        protocol.check(toy, method)


def test_benchmarks_without_adjustment_are_refused(toy):
    with pytest.raises(ExperimentError, match=r"newsvendor@1 was never adjusted.*: .*toy"):
        Adjustment().check(benchmark_spec("newsvendor"), BO)
