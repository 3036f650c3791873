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
    Conformance,
    ConformanceError,
    elsewhere,
    global_random_state,
    require,
)


class BenchmarkConformance(Conformance):
    """The contract of benchmarks, one test a property.

    A subclass in a test module names the benchmark; pytest then runs one test per property:

        class TestMine(BenchmarkConformance):
            benchmark = "my-benchmark"

    `check_benchmark` checks the same without pytest.

    Attributes:
        benchmark: A benchmark, or its name.
        seed: Seed of the random configurations.
        configurations: Number of random configurations; fewer where evaluating takes seconds.
        executor: Runs the test in another process; None: a child process.
    """

    benchmark: str | Benchmark
    seed: int = 0
    configurations: int = 40

    def test_tasks_are_in_order(self) -> None:
        """Tasks have consecutive indices, different names, and contexts with the same features."""
        tasks, name = self._benchmark.tasks, self._benchmark.id
        names = [task.name for task in tasks]
        require(len(set(names)) == len(names), f"{name} has tasks of the same name")
        in_order = [task.index for task in tasks] == list(range(len(tasks)))
        require(in_order, f"{name} has tasks out of order")
        contexts = {tuple(task.context) for task in tasks}
        require(len(contexts) == 1, f"{name} has tasks with different kinds of context")

    def test_the_space_survives_json(self) -> None:
        """The search space is the same after writing and reading it as JSON."""
        space = self._benchmark.space
        same = SearchSpace.from_json(space.to_json()) == space
        require(same, f"the space of {self._benchmark.id} changes through JSON")

    def test_the_global_random_state_stays(self) -> None:
        """Evaluating draws no global random numbers."""
        for task in self._tasks():
            untouched = self._evaluated(task)[1]
            require(untouched, f"evaluating {self._benchmark.id} uses the global random state")

    def test_values_are_finite_floats(self) -> None:
        """Values are finite floats, one by one and in a batch."""
        for task in self._tasks():
            require(type(task.evaluate(self._configs[0])) is float, "evaluate returns no float")
        finite = np.isfinite(self._benchmark.tasks[-1].evaluate_many(self._configs)).all()
        require(finite, f"{self._benchmark.id} gives values that are not finite")

    def test_batches_have_the_values_of_single_configurations(self) -> None:
        """Lists, DataFrames, arrays, other orders and parts of a batch have the same values."""
        import pandas as pd

        configs = self._configs
        order = np.random.default_rng(self.seed).permutation(len(configs))
        part = slice(0, len(configs) // 3)
        for task in self._tasks():
            values = self._values(task)
            many = task.evaluate_many
            _same(many(configs), values, "values in a batch")
            _same(many(pd.DataFrame(configs)), values, "values from a DataFrame")
            _same(many(task.space.values(configs)), values, "values from an array")
            _same(many([configs[i] for i in order]), values[order], "values in another order")
            _same(many(configs[part]), values[part], "values in a smaller batch")

    def test_inactive_hyperparameters_have_no_influence(self) -> None:
        """Inactive hyperparameters may be given any value."""
        for task in self._tasks():
            parameters, unit = task.space.parameters, np.array(0.9)
            all_values = {p.name: p.value(float(p.decode(unit))) for p in parameters}
            with_inactive = [all_values | config for config in self._configs]
            what = "values with inactive hyperparameters given"
            _same(task.evaluate_many(with_inactive), self._values(task), what)

    def test_no_configuration_beats_the_best_known_value(self) -> None:
        """No random configuration is better than the best known value."""
        for task in self._tasks():
            if task.best_value is not None:
                worst = float(task.regret(self._values(task)).min())
                message = f"a random configuration beats the best known value by {-worst}"
                require(worst >= 0, message)

    def test_invalid_configurations_are_refused(self) -> None:
        """Unknown or missing hyperparameters, and values out of range or of other types."""
        for task in self._tasks():
            for what, config in _invalid(task.space, self._configs).items():
                try:
                    task.evaluate(config)
                except InvalidConfigError:
                    continue
                raise ConformanceError(f"task {task.name!r} accepts {what}: {config}")

    def test_values_are_the_same_after_pickling(self) -> None:
        """An unpickled task has the same values, bit by bit."""
        task = self._benchmark.tasks[-1]
        unpickled: Task = pickle.loads(pickle.dumps(task))
        here = task.evaluate_many(self._configs)
        _same(unpickled.evaluate_many(self._configs), here, "values after pickling")

    def test_values_are_the_same_in_another_process(self) -> None:
        """Another process computes the same values, bit by bit."""
        task = self._benchmark.tasks[-1]
        there = elsewhere(self.executor, task.evaluate_many, self._configs)
        _same(there, task.evaluate_many(self._configs), "values in another process")

    @property
    def _benchmark(self) -> Benchmark:
        def loaded() -> Benchmark:
            return load(self.benchmark) if isinstance(self.benchmark, str) else self.benchmark

        return self._once(self.benchmark, "benchmark", loaded)

    def _tasks(self) -> list[Task]:
        """The first and the middle task."""
        tasks = self._benchmark.tasks
        return [tasks[index] for index in sorted({0, len(tasks) // 2})]

    @property
    def _configs(self) -> list[Config]:
        def drawn() -> list[Config]:
            space, rng = self._benchmark.space, np.random.default_rng(self.seed)
            return space.configs(space.decode(space.sample_unit(rng, self.configurations)))

        return self._once(self.benchmark, "configs", drawn)

    def _values(self, task: Task) -> FloatArray:
        """Values of the configurations, evaluated one by one."""
        return self._evaluated(task)[0]

    def _evaluated(self, task: Task) -> tuple[FloatArray, bool]:
        """Values of the configurations, and whether the global random state is unchanged."""

        def evaluated() -> tuple[FloatArray, bool]:
            before = global_random_state()
            values = np.array([task.evaluate(config) for config in self._configs])
            return values, global_random_state() == before

        return self._once(self.benchmark, task.index, evaluated)


def check_benchmark(
    benchmark: str | Benchmark,
    *,
    seed: int = 0,
    configurations: int = 40,
    executor: Executor | None = None,
) -> None:
    """Check that a benchmark keeps the contract of this package.

    Runs the tests of `BenchmarkConformance`: a configuration has the same value, bit by bit, one by
    one, in a batch, shuffled, from a DataFrame, after pickling and in another process; inactive
    hyperparameters and the global random state have no influence, and evaluating does not change
    that state; invalid configurations are errors; no random configuration is better than the best
    known value.

    Args:
        benchmark: A benchmark, or its name.
        seed: Seed of the random configurations.
        configurations: Number of random configurations; fewer where evaluating takes seconds.
        executor: Runs the check in another process; None: a child process.

    Raises:
        ConformanceError: With the first violation.
    """
    BenchmarkConformance.check(
        benchmark=benchmark, seed=seed, configurations=configurations, executor=executor
    )


def _invalid(space: SearchSpace, configs: Sequence[Config]) -> dict[str, Config]:
    """Invalid configurations, by what is wrong with them."""
    config = configs[0]
    name = next(n for n in config if n in space.names)
    wrong: dict[str, Config] = {
        "an unknown hyperparameter": {**config, "no such hyperparameter": 1},
        "a missing hyperparameter": {k: v for k, v in config.items() if k != name},
        "NaN": {**config, name: float("nan")},
        "a value of another type": {**config, name: "no such value"},
    }
    for number in (p for p in space.parameters if not p.choices):
        beyond = number.upper - number.lower + 1
        for active in [c for c in configs if number.name in c][:1]:
            above, below = number.upper + beyond, number.lower - beyond
            wrong[f"{number.name} above its bounds"] = {**active, number.name: above}
            wrong[f"{number.name} below its bounds"] = {**active, number.name: below}
    return wrong


def _same(values: FloatArray, expected: FloatArray, what: str) -> None:
    different = np.flatnonzero(values != expected)
    if len(values) != len(expected) or len(different):
        raise ConformanceError(
            f"{what} differ from those evaluated one by one: {len(different)} of {len(expected)}"
        )
