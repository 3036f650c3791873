"""The contract of benchmarks."""

import pickle
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.benchmark import Benchmark, Task
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.registry import load
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing._require import (
    ConformanceError,
    elsewhere,
    require,
    untouched_global_random_state,
)

CONFIGURATIONS = 40


def check_benchmark(
    benchmark: str | Benchmark, *, seed: int = 0, executor: Executor | None = None
) -> None:
    """Check that a benchmark keeps the contract of this package.

    One by one, in a batch, shuffled, from a DataFrame, after pickling and in another process a
    configuration has the same value, bit by bit; inactive hyperparameters and the global random
    state have no influence and the latter stays as it is; invalid configurations are refused; no
    random configuration is better than the best known value.

    Args:
        benchmark: A benchmark, or its name.
        seed: Seed of the random configurations.
        executor: Runs the check in another process; one is started if None.

    Raises:
        ConformanceError: With the first violation.
    """
    if isinstance(benchmark, str):
        benchmark = load(benchmark)
    space = benchmark.space
    _check_tasks(benchmark)
    configs = space.configs(
        space.decode(space.sample_unit(np.random.default_rng(seed), CONFIGURATIONS))
    )
    for index in {0, len(benchmark.tasks) // 2}:
        task = benchmark.tasks[index]
        with untouched_global_random_state(f"evaluating {benchmark.id}"):
            values = np.array([task.evaluate(config) for config in configs])
        _check_values(task, configs, values, np.random.default_rng(seed))
        _check_refusals(task, configs)
    last = benchmark.tasks[-1]
    here = last.evaluate_many(configs)
    require(np.isfinite(here).all(), f"{benchmark.id} gives values that are not finite")
    unpickled: Task = pickle.loads(pickle.dumps(last))
    _same(unpickled.evaluate_many(configs), here, "values after pickling")
    _same(elsewhere(executor, _evaluate, last, configs), here, "values in another process")


def _check_tasks(benchmark: Benchmark) -> None:
    names = [task.name for task in benchmark.tasks]
    require(len(set(names)) == len(names), f"{benchmark.id} has tasks of the same name")
    places = [task.index for task in benchmark.tasks]
    require(places == list(range(len(names))), f"{benchmark.id} has tasks out of order")
    contexts = {tuple(task.context) for task in benchmark.tasks}
    require(len(contexts) == 1, f"{benchmark.id} has tasks with different kinds of context")
    space = SearchSpace.from_json(benchmark.space.to_json())
    require(space == benchmark.space, f"the space of {benchmark.id} changes through JSON")


def _check_values(
    task: Task, configs: Sequence[Config], values: FloatArray, rng: np.random.Generator
) -> None:
    import pandas as pd

    space = task.space
    require(type(task.evaluate(configs[0])) is float, "evaluate does not return a float")
    _same(task.evaluate_many(configs), values, "values in a batch")
    _same(task.evaluate_many(pd.DataFrame(configs)), values, "values from a DataFrame")
    _same(task.evaluate_many(space.values(configs)), values, "values from an array")
    order = rng.permutation(len(configs))
    _same(task.evaluate_many([configs[i] for i in order]), values[order], "values in another order")
    part = slice(0, len(configs) // 3)
    _same(task.evaluate_many(configs[part]), values[part], "values in a smaller batch")
    _same(
        task.evaluate_many([_with_inactive(c, space) for c in configs]),
        values,
        "values with inactive hyperparameters given",
    )
    if task.best_value is not None:
        worst = float(task.regret(values).min())
        require(worst >= 0, f"a random configuration beats the best known value by {-worst}")


def _check_refusals(task: Task, configs: Sequence[Config]) -> None:
    config = configs[0]
    name = next(n for n in config if n in task.space.names)
    wrong: dict[str, Config] = {
        "an unknown hyperparameter": {**config, "no such hyperparameter": 1},
        "a missing hyperparameter": {k: v for k, v in config.items() if k != name},
        "NaN": {**config, name: float("nan")},
        "a value of another type": {**config, name: "no such value"},
    }
    for number in (p for p in task.space.parameters if not p.choices):
        beyond = number.upper - number.lower + 1
        for active in [c for c in configs if number.name in c][:1]:
            above, below = number.upper + beyond, number.lower - beyond
            wrong[f"{number.name} above its bounds"] = {**active, number.name: above}
            wrong[f"{number.name} below its bounds"] = {**active, number.name: below}
    for what, bad in wrong.items():
        try:
            task.evaluate(bad)
        except InvalidConfigError:
            continue
        raise ConformanceError(f"task {task.name!r} accepts {what}: {bad}")


def _with_inactive(config: Config, space: SearchSpace) -> Config:
    """The configuration with a value for every inactive hyperparameter."""
    middle = {p.name: p.value(float(p.decode(np.array([0.9]))[0])) for p in space.parameters}
    return {**middle, **config}


def _evaluate(task: Task, configs: Sequence[Config]) -> FloatArray:
    return task.evaluate_many(configs)


def _same(values: FloatArray, expected: FloatArray, what: str) -> None:
    different = np.flatnonzero(values != expected)
    if len(values) != len(expected) or len(different):
        raise ConformanceError(
            f"{what} differ from those one by one: {len(different)} of {len(expected)}"
        )
