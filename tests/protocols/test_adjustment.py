import numpy as np
import pytest

from hpobench_ordered import Adjustment, MethodSpec, list_methods
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before


def test_each_task_is_optimised_on_the_old_space_then_on_the_new_one(assignments):
    made = assignments(Adjustment(first_trials=5, trials=3, tasks=["2", 0]), method="bo")
    for first, second, index in zip(made[::2], made[1::2], (2, 0), strict=True):
        assert first.task.index == second.task.index == index
        assert first.task.space == numeric_space_before()
        assert second.task.space == numeric_space()
        assert (first.method.name, first.budget, first.is_recorded) == ("bo", 5, False)
        assert (second.method.name, second.budget, second.is_recorded) == ("bo", 3, True)
        assert first.history == ()


def test_the_history_is_what_the_first_step_evaluated(assignments):
    made = assignments(Adjustment(first_trials=5, trials=3))
    for first, second in zip(made[::2], made[1::2], strict=True):
        (history,) = second.history
        assert (history.task, len(history)) == (first.task.name, 5)
        assert history.space == numeric_space_before()
        np.testing.assert_array_equal(history.losses, first.task.evaluate_many(history.values))


def test_the_first_step_is_the_same_for_all_methods(assignments, content):
    protocol = Adjustment(first_trials=6, trials=2)
    first, other = (
        content(assignments(protocol, method=method)) for method in ("bo", "simple-previous")
    )
    assert first == other != content(assignments(protocol, method="bo", seed=1))
    by_random_search = Adjustment(first_trials=6, trials=2, first_method="random-search")
    assert first != content(assignments(by_random_search))


def test_a_method_that_needs_the_same_search_space_is_refused(toy):
    with pytest.raises(ExperimentError, match="cts needs its history on the same search space"):
        Adjustment().check(toy, method_spec("cts"))
    for name in list_methods():
        if method_spec(name).changed_spaces:
            Adjustment().check(toy, method_spec(name))


TWO = MethodSpec("two", RandomSearch, "", "", min_history=2, changed_spaces=True)


@pytest.mark.parametrize(
    ("protocol", "method", "error", "message"),
    [
        (Adjustment(first_method="zero-shot"), "bo", ExperimentError, "there are none"),
        (Adjustment(first_method="boo"), "bo", UnknownNameError, "did you mean 'bo'"),
        (Adjustment(tasks=["9"]), "bo", UnknownNameError, "unknown task '9'"),
        (Adjustment(), TWO, ExperimentError, "two needs 2 earlier tasks"),
    ],
)
def test_nonsense_is_refused(protocol, method, error, message, toy):
    with pytest.raises(error, match=message):
        protocol.check(toy, method if method is TWO else method_spec(method))
    with pytest.raises(ExperimentError, match=r"newsvendor@1 was never adjusted.*: .*toy"):
        protocol.check(benchmark_spec("newsvendor"), method_spec("bo"))
