"""Conformance suites: what every benchmark and every method must hold to.

    check_benchmark("my-benchmark")
    check_method("my-method")                # or a subclass of Method
    check_beats_random_search("my-method")   # of methods that learn

raise `ConformanceError` with the first thing that is wrong. Third-party packages call them in
their own tests.
"""

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, cast

import numpy as np

from hpobench_ordered._parameters import Parameter
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmark import Benchmark, Evaluations, Task
from hpobench_ordered.errors import HPOBenchOrderedError, InvalidConfigError
from hpobench_ordered.experiment.plan import as_method_spec
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.registry import load
from hpobench_ordered.space import SearchSpace

P = ParamSpec("P")
T = TypeVar("T")

CONFIGURATIONS = 40
BUDGET = 12
HISTORY = 3
"""Earlier tasks a method gets, besides the fewest it needs."""
RUNS = 20
CLEARLY_BETTER = 0.6
"""Share of random search's median loss that a method which learns must stay below."""


class ConformanceError(HPOBenchOrderedError, AssertionError):
    """A benchmark or method does not hold to its contract."""


def check_benchmark(
    benchmark: str | Benchmark, *, seed: int = 0, executor: Executor | None = None
) -> None:
    """Check that a benchmark holds to the contract of this package.

    One by one, in a batch, shuffled, from a DataFrame, after pickling and in another process a
    configuration has the same value, bit by bit; inactive hyperparameters and the global random
    state have no influence and the latter stays as it is; invalid configurations are refused; no
    random configuration is better than the best known value.

    Args:
        benchmark: A benchmark, or its name.
        seed: Seed of the random configurations.
        executor: Runs the check in another process; one is started for it without.

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
        with _untouched_global_random_state(f"evaluating {benchmark.id}"):
            values = np.array([task.evaluate(config) for config in configs])
        _check_values(task, configs, values, np.random.default_rng(seed))
        _check_refusals(task, configs)
    last = benchmark.tasks[-1]
    here = last.evaluate_many(configs)
    _require(np.isfinite(here).all(), f"{benchmark.id} gives values that are not finite")
    unpickled: Task = pickle.loads(pickle.dumps(last))
    _same(unpickled.evaluate_many(configs), here, "values after pickling")
    _same(_elsewhere(executor, _evaluate, last, configs), here, "values in another process")


def check_method(
    method: str | type[Method] | MethodSpec, *, seed: int = 0, executor: Executor | None = None
) -> None:
    """Check that a method holds to the contract of this package.

    On small problems with and without conditions, with as little history as it needs and with more,
    it suggests valid configurations, as many as its budget, more than there are if need be; the
    same seed gives the same suggestions, whatever the global random state, in another process, and
    beside another run; another seed gives others, unless the method draws nothing at random; the
    history it is given stays as it is.

    Args:
        method: A method, or its name.
        seed: Seed of the runs.
        executor: Runs the check in another process; one is started for it without.

    Raises:
        ConformanceError: With the first violation.
    """
    spec = as_method_spec(method)
    for tasks in sorted({spec.min_history, max(spec.min_history, HISTORY)}):
        for problem in (numeric_problem(), conditional_problem(), tiny_problem()):
            _check_runs(spec, problem, problem.history(tasks, seed=seed), seed)
    problem, history = numeric_problem(), numeric_problem().history(spec.min_history, seed=seed)
    rng = np.random.default_rng(seed)
    untouched = pickle.dumps(rng)
    (first,) = _take_turns(spec, problem, history, (rng,))
    if pickle.dumps(rng) != untouched:
        other = play(spec, problem, history, seed + 1)
        _require(first != other, f"{spec.name} ignores what it draws from its random generator")
    elsewhere = _elsewhere(executor, play, spec, problem, history, seed)
    _require(first == elsewhere, f"{spec.name} gives other suggestions in another process")


def check_beats_random_search(method: str | type[Method] | MethodSpec) -> None:
    """Check that a method learns: it must be clearly better than random search.

    On small problems, with and without conditions, whose optimum drifts slowly from task to task,
    the median over seeds of the best loss must be well below that of random search. A method that
    maximises the loss fails. Of `random-search` itself and methods like it nothing of the kind can
    be asked.

    Args:
        method: A method, or its name.

    Raises:
        ConformanceError: It is not clearly better.
    """
    compared = (as_method_spec(method), as_method_spec("random-search"))
    for problem in (numeric_problem(), conditional_problem()):
        own, random_search = (_median_best_loss(spec, problem) for spec in compared)
        _require(
            own < CLEARLY_BETTER * random_search,
            f"{compared[0].name} is not clearly better than random search on a toy problem: its "
            f"median best loss is {own:.3g}, random search's {random_search:.3g}",
        )


# -- small problems --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ToyProblem:
    """A sequence of tasks whose optimum drifts slowly: quadratic in the unit cube.

    Attributes:
        space: The search space.
        drift: How far the optimum moves from task to task.
    """

    space: SearchSpace
    drift: float = 0.02

    def loss(self, config: Config, task: int = 0) -> float:
        """Squared distance from the task's optimum, over what is active."""
        unit = self.space.encode(self.space.row(config)[None])
        return float(np.nansum((unit - 0.3 - self.drift * task) ** 2))

    def history(self, tasks: int, *, seed: int, trials: int = 20) -> tuple[Evaluations, ...]:
        """Random evaluations of the tasks before task 0, oldest first."""
        rng = np.random.default_rng(seed)
        finished = []
        for index in range(-tasks, 0):
            values = self.space.decode(self.space.sample_unit(rng, trials))
            losses = np.array([self.loss(c, index) for c in self.space.configs(values)])
            finished.append(Evaluations(f"task {index}", {"index": index}, values, losses))
        return tuple(finished)


def numeric_problem() -> ToyProblem:
    """Two floats, one of them on a log scale."""
    space = [Parameter.number("x", -5, 5), Parameter.number("y", 1e-4, 1, log=True)]
    return ToyProblem(SearchSpace(space))


def conditional_problem() -> ToyProblem:
    """Every kind of hyperparameter, conditions and a constant."""
    description = {
        "hyperparameters": [
            {"type": "categorical", "name": "kind", "choices": ["a", "b", "c"]},
            {"type": "ordinal", "name": "level", "sequence": [1, 10, 100]},
            {"type": "uniform_int", "name": "n", "lower": 1, "upper": 50, "log": True},
            {"type": "uniform_float", "name": "x", "lower": 0, "upper": 1, "log": False},
            {"type": "constant", "name": "fixed", "value": "always"},
        ],
        "conditions": [{"type": "IN", "child": "x", "parent": "kind", "values": ["a", "b"]}],
    }
    return ToyProblem(SearchSpace.from_json(description))


def tiny_problem() -> ToyProblem:
    """Fewer configurations than trials."""
    return ToyProblem(SearchSpace([Parameter.number("n", 0, 4, integer=True)]))


def play(
    spec: MethodSpec, problem: ToyProblem, history: Sequence[Evaluations], seed: int
) -> list[tuple[Config, float]]:
    """Let a method optimise task 0 of a toy problem.

    Raises:
        ConformanceError: It suggests something that is no configuration.
    """
    return _take_turns(spec, problem, history, (np.random.default_rng(seed),))[0]


def _take_turns(
    spec: MethodSpec,
    problem: ToyProblem,
    history: Sequence[Evaluations],
    rngs: Sequence[np.random.Generator],
) -> list[list[tuple[Config, float]]]:
    """Let a method run several times at once, the runs taking turns."""
    methods = [
        spec.method(
            space=problem.space, rng=rng, history=history, context={"index": 0}, budget=BUDGET
        )
        for rng in rngs
    ]
    played: list[list[tuple[Config, float]]] = [[] for _ in rngs]
    for _ in range(BUDGET):
        for method, trials in zip(methods, played, strict=True):
            config = method.ask()
            try:
                loss = problem.loss(config)
            except (InvalidConfigError, TypeError) as error:
                raise ConformanceError(f"{spec.name} suggests {config!r}: {error}") from None
            method.tell(dict(config), loss)
            trials.append((dict(config), loss))
    return played


# -- checks ----------------------------------------------------------------------------------------


def _check_tasks(benchmark: Benchmark) -> None:
    names = [task.name for task in benchmark.tasks]
    _require(len(set(names)) == len(names), f"{benchmark.id} has tasks of the same name")
    places = [task.index for task in benchmark.tasks]
    _require(places == list(range(len(names))), f"{benchmark.id} has tasks out of order")
    contexts = {tuple(task.context) for task in benchmark.tasks}
    _require(len(contexts) == 1, f"{benchmark.id} has tasks with different kinds of context")
    space = SearchSpace.from_json(benchmark.space.to_json())
    _require(space == benchmark.space, f"the space of {benchmark.id} changes through JSON")


def _check_values(
    task: Task, configs: Sequence[Config], values: FloatArray, rng: np.random.Generator
) -> None:
    import pandas as pd

    space = task.space
    _require(type(task.evaluate(configs[0])) is float, "evaluate does not return a float")
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
        _require(worst >= 0, f"a random configuration beats the best known value by {-worst}")


def _check_runs(
    spec: MethodSpec, problem: ToyProblem, history: Sequence[Evaluations], seed: int
) -> None:
    before = pickle.dumps(history)
    with _untouched_global_random_state(f"running {spec.name}"):
        first = play(spec, problem, history, seed)
    _require(pickle.dumps(history) == before, f"{spec.name} changes the history it is given")
    random.seed(seed + 1)
    again = play(spec, problem, history, seed)
    _require(first == again, f"{spec.name} gives other suggestions for the same seed")
    rngs = (np.random.default_rng(seed), np.random.default_rng(seed + 1))
    interleaved = _take_turns(spec, problem, history, rngs)
    _require(first == interleaved[0], f"{spec.name} shares state between two runs")


def _median_best_loss(spec: MethodSpec, problem: ToyProblem) -> float:
    best = []
    for seed in range(RUNS):
        history = problem.history(max(spec.min_history, HISTORY), seed=1000 + seed)
        best.append(min(loss for _, loss in play(spec, problem, history, seed)))
    return float(np.median(best))


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


@contextmanager
def _untouched_global_random_state(what: str) -> Iterator[None]:
    numpy_before, python_before = pickle.dumps(np.random.get_state()), random.getstate()  # noqa: NPY002
    yield
    numpy_after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    untouched = numpy_after == numpy_before and random.getstate() == python_before
    _require(untouched, f"{what} uses the global random state")


def _evaluate(task: Task, configs: Sequence[Config]) -> FloatArray:
    return task.evaluate_many(configs)


def _elsewhere(
    executor: Executor | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in another process."""
    if executor is not None:
        return executor.submit(function, *args, **kwargs).result()
    from joblib import Parallel, delayed

    # With two workers joblib starts processes, and sends them classes of scripts and notebooks too.
    (result,) = Parallel(n_jobs=2)([delayed(function)(*args, **kwargs)])
    return cast("T", result)


def _same(values: FloatArray, expected: FloatArray, what: str) -> None:
    different = np.flatnonzero(values != expected)
    if len(values) != len(expected) or len(different):
        raise ConformanceError(
            f"{what} differ from those one by one: {len(different)} of {len(expected)}"
        )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ConformanceError(message)
