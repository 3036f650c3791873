"""The contract of benchmarks."""

import pickle
from collections.abc import Sequence
from concurrent.futures import Executor

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, Value
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing._require import (
    Conformance,
    ConformanceError,
    call_in_other_process,
    read_global_random_state,
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
        """Tasks have the indices 0, 1, 2 ..., different names, and the same context features."""
        benchmark = self._benchmark
        names = [task.name for task in benchmark.tasks]
        has_unique_names = len(set(names)) == len(names)
        require(has_unique_names, f"{benchmark.id} has tasks of the same name")

        indices = [task.index for task in benchmark.tasks]
        is_in_order = indices == list(range(len(names)))
        require(is_in_order, f"{benchmark.id} has tasks out of order")

        kinds_of_context = {tuple(task.context) for task in benchmark.tasks}
        has_one_kind = len(kinds_of_context) == 1
        require(has_one_kind, f"{benchmark.id} has tasks with different kinds of context")

    def test_the_space_survives_json(self) -> None:
        """The search space is the same after writing and reading it as JSON."""
        space = self._benchmark.space
        is_same = SearchSpace.from_json(space.to_json()) == space
        require(is_same, f"the space of {self._benchmark.id} changes through JSON")

    def test_the_global_random_state_stays(self) -> None:
        """Evaluating does not change the global random generators of Python and numpy."""
        for task in self._tested_tasks():
            _, is_unchanged = self._evaluate(task)
            require(is_unchanged, f"evaluating {self._benchmark.id} uses the global random state")

    def test_values_are_finite_floats(self) -> None:
        """The value of one configuration is a float, and all values in a batch are finite."""
        for task in self._tested_tasks():
            value = task.evaluate(self._configs[0])
            is_float = type(value) is float
            require(is_float, "evaluate returns no float")

        last_task = self._benchmark.tasks[-1]
        values = last_task.evaluate_many(self._configs)
        is_finite = np.isfinite(values).all()
        require(is_finite, f"{self._benchmark.id} gives values that are not finite")

    def test_batches_have_the_values_of_single_configurations(self) -> None:
        """A configuration has the same value alone and in a batch of any type, order or size."""
        import pandas as pd

        configs = self._configs
        order = np.random.default_rng(self.seed).permutation(len(configs))
        first_third = slice(0, len(configs) // 3)
        for task in self._tested_tasks():
            values = self._values_one_by_one(task)
            evaluate = task.evaluate_many
            _require_same(evaluate(configs), values, "values in a batch")
            _require_same(evaluate(pd.DataFrame(configs)), values, "values from a DataFrame")
            _require_same(evaluate(task.space.values(configs)), values, "values from an array")
            shuffled = [configs[index] for index in order]
            _require_same(evaluate(shuffled), values[order], "values in another order")
            third_of_values = evaluate(configs[first_third])
            _require_same(third_of_values, values[first_third], "values in a smaller batch")

    def test_inactive_hyperparameters_have_no_influence(self) -> None:
        """A value that is given for an inactive hyperparameter does not change the objective."""
        for task in self._tested_tasks():
            any_values: dict[str, Value] = {}
            for parameter in task.space.parameters:
                decoded = float(parameter.decode(np.array(0.9)))
                any_values[parameter.name] = parameter.value(decoded)

            # The configurations lack inactive hyperparameters, and here get a value for them.
            complete_configs = [any_values | config for config in self._configs]
            _require_same(
                task.evaluate_many(complete_configs),
                self._values_one_by_one(task),
                "values with inactive hyperparameters given",
            )

    def test_no_configuration_beats_the_best_known_value(self) -> None:
        """No random configuration is better than the best known value."""
        for task in self._tested_tasks():
            if task.best_value is None:
                continue
            # The regret is the distance from the best known value, negative if this is beaten.
            regrets = task.regret(self._values_one_by_one(task))
            smallest_regret = float(regrets.min())
            require(
                smallest_regret >= 0,
                f"a random configuration beats the best known value by {-smallest_regret}",
            )

    def test_invalid_configurations_are_refused(self) -> None:
        """A task refuses unknown or missing hyperparameters, and values that the space forbids."""
        for task in self._tested_tasks():
            config_of_defect = _make_invalid_configs(task.space, self._configs)
            for defect, config in config_of_defect.items():
                is_refused = _refuses(task, config)
                require(is_refused, f"task {task.name!r} accepts {defect}: {config}")

    def test_values_are_the_same_after_pickling(self) -> None:
        """An unpickled task has the same values, bit by bit."""
        task = self._benchmark.tasks[-1]
        unpickled: Task = pickle.loads(pickle.dumps(task))
        _require_same(
            unpickled.evaluate_many(self._configs),
            task.evaluate_many(self._configs),
            "values after pickling",
        )

    def test_values_are_the_same_in_another_process(self) -> None:
        """Another process computes the same values, bit by bit."""
        task = self._benchmark.tasks[-1]
        _require_same(
            call_in_other_process(self.executor, task.evaluate_many, self._configs),
            task.evaluate_many(self._configs),
            "values in another process",
        )

    @property
    def _benchmark(self) -> Benchmark:
        """The tested benchmark, which is loaded if the suite has only its name."""

        def load_benchmark() -> Benchmark:
            if isinstance(self.benchmark, str):
                return load(self.benchmark)
            return self.benchmark

        return self._compute_once(self.benchmark, "benchmark", load_benchmark)

    def _tested_tasks(self) -> list[Task]:
        """Return the first task and the middle one; a benchmark with one task gives only that."""
        tasks = self._benchmark.tasks
        indices = sorted({0, len(tasks) // 2})
        return [tasks[index] for index in indices]

    @property
    def _configs(self) -> list[Config]:
        """The random configurations that the tests evaluate, the same for all tests."""

        def draw_configs() -> list[Config]:
            space = self._benchmark.space
            unit_values = space.sample_unit(np.random.default_rng(self.seed), self.configurations)
            return space.configs(space.decode(unit_values))

        return self._compute_once(self.benchmark, "configs", draw_configs)

    def _values_one_by_one(self, task: Task) -> FloatArray:
        """Return the values of the random configurations on a task, evaluated one by one."""
        values, _ = self._evaluate(task)
        return values

    def _evaluate(self, task: Task) -> tuple[FloatArray, bool]:
        """Evaluate the random configurations on a task one by one, once for all tests.

        Returns:
            The values, and whether the global random state is the same after as before.
        """

        def evaluate_one_by_one() -> tuple[FloatArray, bool]:
            state_before = read_global_random_state()
            values = np.array([task.evaluate(config) for config in self._configs])
            is_unchanged = read_global_random_state() == state_before
            return values, is_unchanged

        return self._compute_once(self.benchmark, task.index, evaluate_one_by_one)


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


def _make_invalid_configs(space: SearchSpace, configs: Sequence[Config]) -> dict[str, Config]:
    """Make invalid configurations, each by one change of a valid configuration.

    Args:
        space: The search space.
        configs: Valid configurations.

    Returns:
        The invalid configurations; the key of each says in words what is wrong with it.
    """
    valid_config = configs[0]
    name = next(name for name in valid_config if name in space.names)
    config_without_name = {other: value for other, value in valid_config.items() if other != name}
    config_of_defect: dict[str, Config] = {
        "an unknown hyperparameter": {**valid_config, "no such hyperparameter": 1},
        "a missing hyperparameter": config_without_name,
        "NaN": {**valid_config, name: float("nan")},
        "a value of another type": {**valid_config, name: "no such value"},
    }
    for parameter in space.parameters:
        is_number = not parameter.choices
        # A value out of bounds is only an error where the hyperparameter is active.
        active_config = next((config for config in configs if parameter.name in config), None)
        if not is_number or active_config is None:
            continue
        distance = parameter.upper - parameter.lower + 1
        too_high = {parameter.name: parameter.upper + distance}
        too_low = {parameter.name: parameter.lower - distance}
        config_of_defect[f"{parameter.name} above its bounds"] = {**active_config, **too_high}
        config_of_defect[f"{parameter.name} below its bounds"] = {**active_config, **too_low}
    return config_of_defect


def _refuses(task: Task, config: Config) -> bool:
    """Return whether a task refuses a configuration with an `InvalidConfigError`."""
    try:
        task.evaluate(config)
    except InvalidConfigError:
        return True
    return False


def _require_same(values: FloatArray, expected: FloatArray, description: str) -> None:
    """Raise `ConformanceError` unless values equal those evaluated one by one, bit by bit.

    Args:
        values: The values to check, (n,).
        expected: The values evaluated one by one, (n,).
        description: Words for `values` in the error.
    """
    if len(values) != len(expected):
        raise ConformanceError(f"{description} are {len(values)} instead of {len(expected)}")
    number_different = np.count_nonzero(values != expected)
    if number_different > 0:
        raise ConformanceError(
            f"{description} differ from those evaluated one by one: {number_different} of "
            f"{len(expected)}"
        )
