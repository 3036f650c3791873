import numpy as np
import pytest

from hpobench_ordered import Adjustment, MethodSpec, list_methods
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before

BO = method_spec("bo")


def test_tasks_are_optimised_on_both_spaces(make_assignments):
    protocol = Adjustment(first_trials=5, trials=3, tasks=["2", 0])
    assignments = make_assignments(protocol, method="simple-previous")
    # First on the old space by the first method, whose result is not recorded, then on the new.
    steps = [
        (a.task.index, a.task.space, a.method.name, a.budget, a.is_recorded) for a in assignments
    ]
    assert steps == [
        (2, numeric_space_before(), "bo", 5, False),
        (2, numeric_space(), "simple-previous", 3, True),
        (0, numeric_space_before(), "bo", 5, False),
        (0, numeric_space(), "simple-previous", 3, True),
    ]


def test_history_is_the_first_optimisation(make_assignments):
    # Of the one task: on the old space, then on the new.
    first, second = make_assignments(Adjustment(first_trials=5, trials=3, tasks=1))
    assert first.history == ()
    (history,) = second.history
    assert (history.task, len(history)) == (first.task.name, 5)
    assert history.space == numeric_space_before()
    np.testing.assert_array_equal(history.losses, first.task.evaluate_many(history.values))


def test_history_is_common_to_methods(make_assignments, list_history):
    protocol = Adjustment(first_trials=6, trials=2)
    history_of_bo = list_history(make_assignments(protocol, method="bo"))
    assert list_history(make_assignments(protocol, method="simple-previous")) == history_of_bo


def test_history_varies_with_seed_and_method(make_assignments, list_history):
    protocol = Adjustment(first_trials=6, trials=2)
    history = list_history(make_assignments(protocol))
    assert list_history(make_assignments(protocol, seed=1)) != history
    by_random_search = Adjustment(first_trials=6, trials=2, first_method="random-search")
    assert list_history(make_assignments(by_random_search)) != history


@pytest.mark.parametrize("name", list_methods())
def test_methods_must_support_changed_spaces(toy, name):
    method = method_spec(name)
    if method.changed_spaces:
        # Raises no error.
        Adjustment().check(toy, method)
        return
    with pytest.raises(ExperimentError, match=f"{name} needs its history on the same search space"):
        Adjustment().check(toy, method)


TWO_TASKS = MethodSpec("two", RandomSearch, "", "", min_history=2, changed_spaces=True)


@pytest.mark.parametrize(
    ("protocol", "method", "error", "message"),
    [
        (Adjustment(first_method="zero-shot"), BO, ExperimentError, "there are none"),
        (Adjustment(first_method="boo"), BO, UnknownNameError, "did you mean 'bo'"),
        (Adjustment(tasks=["9"]), BO, UnknownNameError, "unknown task '9'"),
        (Adjustment(), TWO_TASKS, ExperimentError, "two needs 2 earlier tasks"),
    ],
)
def test_impossible_settings_are_refused(protocol, method, error, message, toy):
    """The first method has no earlier tasks; the toy benchmark has tasks 0 to 3."""
    with pytest.raises(error, match=message):
        protocol.check(toy, method)


def test_benchmarks_without_adjustment_are_refused(toy):
    with pytest.raises(ExperimentError, match=r"newsvendor@1 was never adjusted.*: .*toy"):
        Adjustment().check(benchmark_spec("newsvendor"), BO)
