"""A toy task to tune, with the history before it."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.testing.toy import conditional_space, random_history, toy_benchmark

METHODS = [
    "random-search",
    "bo",
    "simple-ordered",
    *(pytest.param(n, marks=pytest.mark.slow) for n in ("cts", "tpe", "transfer-tpe-best-first")),
]
"""Parameters of tests."""
TASKS = 3


def make_task_and_history(space=None, direction=hbo.Direction.MINIMIZE):
    """A task, and the history before it."""
    tasks = toy_benchmark(space or conditional_space(), tasks=TASKS, direction=direction).tasks
    return tasks[-1], random_history(tasks[:-1], seed=1)  # no row twice, as in a table


def options_of(method, task, history, options):
    """What a method is made with: a history if it looks at one."""
    looks = hbo.adapters.as_method_spec(method).uses_history
    return {"history": history if looks else (), "context": task.context, "budget": 12} | options


def make_tuner(method="bo", *, space=None, direction=hbo.Direction.MINIMIZE, **options):
    task, history = make_task_and_history(space, direction)
    options = options_of(method, task, history, options)
    return hbo.optimiser(method, space=task.space, direction=direction, **options), task


def tune(tuner, task, trials=12) -> list[Config]:
    asked = []
    for _ in range(trials):
        asked.append(tuner.ask())
        tuner.tell(asked[-1], task.evaluate(asked[-1]))
    return asked
