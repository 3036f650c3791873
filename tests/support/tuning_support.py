"""A toy task to tune, with the history before it."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.testing.toy import conditional_space, random_history, toy_benchmark

METHODS = [
    "bo",
    "simple-ordered",
    pytest.param("cts", marks=pytest.mark.slow),
    pytest.param("tpe", marks=pytest.mark.slow),
]
"""Methods as parameters of tests."""
TASKS = 3


def make_task_and_history(space=None, direction=hbo.Direction.MINIMIZE):
    """The last of some toy tasks, and a history of the earlier ones."""
    benchmark = toy_benchmark(space or conditional_space(), tasks=TASKS, direction=direction)
    *earlier_tasks, task = benchmark.tasks
    # With this seed no configuration is drawn twice, as a table of evaluations requires.
    return task, random_history(earlier_tasks, seed=1)


def options_of(method, task, history, options):
    """Options of `hbo.optimiser` for a method: some are passed, the others get defaults.

    Only methods that use a history get one, as others warn of it.
    """
    uses_history = hbo.tuning.as_method_spec(method).uses_history
    defaults = {"context": task.context, "budget": 12}
    defaults["history"] = history if uses_history else ()
    return defaults | options


def make_tuner(method="bo", *, space=None, direction=hbo.Direction.MINIMIZE, **options):
    """An optimiser of the toy task, and the task."""
    task, history = make_task_and_history(space, direction)
    options = options_of(method, task, history, options)
    tuner = hbo.optimiser(method, space=task.space, direction=direction, **options)
    return tuner, task


def tune(tuner, task, trials=12) -> list[Config]:
    """Run trials; returns the configurations that were suggested."""
    configs = []
    for _ in range(trials):
        config = tuner.ask()
        tuner.tell(config, task.evaluate(config))
        configs.append(config)
    return configs
