"""The contract of methods."""

import pickle
import random
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing._require import (
    Conformance,
    ConformanceError,
    elsewhere,
    global_random_state,
    in_new_process,
    require,
)
from hpobench_ordered.testing.toy import (
    BUDGET,
    conditional_space,
    conditional_space_before,
    integer_space,
    made,
    numeric_space,
    numeric_space_before,
    play,
    random_history,
    toy_benchmark,
    trials,
)

Trials = list[tuple[Config, float]]
Setting = tuple[Task, tuple[Evaluations, ...]]

TIME_LIMIT = 30.0  # seconds that one call on a toy problem may take, including compilation
HISTORY = 3  # earlier tasks in a long history
WORKERS = 4  # number of simulated workers in the test of parallel trials
SEEDS = 10  # runs of a method compared with random search
ADJUSTMENTS = ((numeric_space_before, numeric_space), (conditional_space_before, conditional_space))
"""Search spaces before and after an adjustment."""
TASKS = 4  # tasks of such a run that count: those with enough history for the method
RANDOM_SEARCH_SEEDS = 30
WORTH = 2
"""A method that learns must beat random search with so many times its trials; random search itself
does so in less than 1 % of comparisons of 40 tasks."""
MAXIMISED_SEEDS = 2  # runs that are repeated with the objective maximised


@dataclass(frozen=True)
class _Run:
    """Trials of a run, and whether something it must not change is unchanged."""

    trials: Trials
    untouched: bool


class MethodConformance(Conformance):
    """The contract of methods, one test a property.

    A subclass in a test module names the method; pytest then runs one test per property:

        class TestMine(MethodConformance):
            method = Mine

    The problems are small, with and without conditions, with as little history as the method needs
    and with more; if its spec says `changed_spaces`, also with a history on another search space.
    `check_method` checks the same without pytest.

    Attributes:
        method: A method as `hpobench_ordered.run` takes it.
        seed: Seed of the runs.
        time_limit: Seconds that one call into the method may take; None: no limit.
        executor: Runs the test in another process; None: a child process.
    """

    method: object
    seed: int = 0
    time_limit: float | None = TIME_LIMIT

    def test_suggestions_are_valid(self) -> None:
        """It suggests a valid configuration for each trial in time, even if all have been tried."""
        for setting in self._settings():
            self._first(setting)

    def test_the_global_random_state_stays(self) -> None:
        """The method draws no global random numbers."""
        for setting in self._settings():
            require(self._first(setting).untouched, f"{self._name} uses the global random state")

    def test_the_same_seed_gives_the_same(self) -> None:
        """Suggestions depend on the seed, not on earlier runs or the global random state."""
        for setting in self._settings():
            first = self._first(setting)
            random.seed(self.seed + 1)
            if _played(self._spec, *setting, self.seed) != first.trials:
                _blame_difference(self._spec, *setting, self.seed)

    def test_the_history_stays(self) -> None:
        """The method does not change the history that it gets."""
        for setting in self._settings():
            require(self._beside(setting).untouched, f"{self._name} changes the history it gets")

    def test_runs_side_by_side_share_nothing(self) -> None:
        """Suggestions are the same while another run alternates with it."""
        for setting in self._settings():
            same = self._beside(setting).trials == self._first(setting).trials
            require(same, f"{self._name} shares state between two runs")

    def test_several_are_suggested_before_a_first_result(self) -> None:
        """It suggests several configurations before the first result, as for several workers."""
        for setting in self._settings():
            play(self._spec, *setting, np.random.default_rng(self.seed), workers=WORKERS)

    def test_another_seed_gives_others(self) -> None:
        """Another seed gives other suggestions, unless the method is deterministic."""
        setting = self._settings()[0]
        rng = np.random.default_rng(self.seed)
        untouched = pickle.dumps(rng)
        first = trials(setting[0].space, play(self._spec, *setting, rng))
        if pickle.dumps(rng) != untouched:
            other = _played(self._spec, *setting, self.seed + 1)
            require(first != other, f"{self._name} ignores what it draws from its random generator")

    def test_another_process_gives_the_same(self) -> None:
        """Another process gives the same suggestions for the same seed."""
        setting = self._settings()[0]
        there = elsewhere(self.executor, _played, self._spec, *setting, self.seed)
        same = self._first(setting).trials == there
        require(same, f"{self._name} gives other suggestions in another process")

    @property
    def _spec(self) -> MethodSpec:
        return self._once(self.method, "spec", lambda: as_method_spec(self.method))

    @property
    def _name(self) -> str:
        return self._spec.name

    def _settings(self) -> list[Setting]:
        """Tasks with histories, first the one with the shortest history."""
        return self._once(self.method, "settings", lambda: _toy_settings(self._spec, self.seed))

    def _first(self, setting: Setting) -> _Run:
        """The first run of a setting, and whether the global random state is unchanged."""

        def run() -> _Run:
            before, rng = global_random_state(), np.random.default_rng(self.seed)
            outcome = play(self._spec, *setting, rng, time_limit=self.time_limit)
            return _Run(trials(setting[0].space, outcome), global_random_state() == before)

        return self._once(self.method, ("first", id(setting)), run)

    def _beside(self, setting: Setting) -> _Run:
        """A run that alternates with another, and whether the history is unchanged."""

        def run() -> _Run:
            before = _content(setting[1])
            try:
                with one_thread():
                    played = _played_beside_another(self._spec, *setting, self.seed)
            except Exception as error:
                who = f"{self._name} on task {setting[0].name!r}, beside a run of another seed"
                raise ConformanceError(f"{who}: {type(error).__name__}: {error}") from error
            return _Run(played, _content(setting[1]) == before)

        return self._once(self.method, ("beside", id(setting)), run)


def check_method(
    method: object,
    *,
    seed: int = 0,
    time_limit: float | None = TIME_LIMIT,
    executor: Executor | None = None,
) -> None:
    """Check that a method keeps the contract of this package.

    Runs the tests of `MethodConformance`, on small problems with and without conditions, with as
    little history as the method needs and with more, and if its spec says `changed_spaces`, with a
    history on another search space. It must suggest a valid configuration for each trial within the
    time limit, even if the space has fewer, several of them before the first result. A seed gives
    the same suggestions, whatever the global random state, in another process, and alternating with
    another run; another seed gives others, unless the method is deterministic. The history is not
    changed.

    Args:
        method: A method as `hpobench_ordered.run` takes it.
        seed: Seed of the runs.
        time_limit: Seconds that one call into the method may take; None: no limit.
        executor: Runs the check in another process; None: a child process.

    Raises:
        ConformanceError: With the first violation.
    """
    MethodConformance.check(method=method, seed=seed, time_limit=time_limit, executor=executor)


def check_beats_random_search(method: object, *, trials: int = BUDGET, seeds: int = SEEDS) -> None:
    """Check that a method learns: it must be better than random search with twice the trials.

    The method is run under the ordered protocol on toy benchmarks, with and without conditions,
    whose optimum moves slowly from task to task. The median of its best losses, over seeds and
    tasks with history, must be below that of random search with twice the trials. Its suggestions
    must be the same if the objective is maximised. Not for `random-search` and similar methods.

    Args:
        method: A method as `hpobench_ordered.run` takes it.
        trials: Its trials on a task; some methods learn little from a few.
        seeds: Number of its runs on each benchmark.

    Raises:
        ConformanceError: It is not better, or depends on the objective's direction.
    """
    spec = as_method_spec(method)
    first = max(1, spec.min_history)
    for space in (numeric_space(), conditional_space()):
        runs = [_ordered(spec, space, first + TASKS, seed, budget=trials) for seed in range(seeds)]
        median = float(np.median([task.losses.min() for run in runs for task in run[first:]]))
        random_search = _random_search_median(space, first + TASKS, WORTH * trials)
        require(
            median < random_search,
            f"{spec.name} is not better than random search with twice the trials on toy tasks: its "
            f"median best loss is {median:.3g}, random search's {random_search:.3g}",
        )
        for seed, minimised in enumerate(runs[:MAXIMISED_SEEDS]):
            maximised = _ordered(
                spec, space, first + TASKS, seed, Direction.MAXIMIZE, budget=trials
            )
            pairs = zip(minimised, maximised, strict=True)
            same = all(np.array_equal(a.values, b.values, equal_nan=True) for a, b in pairs)
            require(same, f"{spec.name} gives other suggestions where the objective is maximised")


def _toy_settings(spec: MethodSpec, seed: int) -> list[Setting]:
    """Toy tasks with random evaluations of earlier ones, or of themselves before an adjustment."""
    settings = []
    for space in (numeric_space(), conditional_space(), integer_space(5)):
        for earlier in sorted({spec.min_history, max(spec.min_history, HISTORY)}):
            *before, task = toy_benchmark(space, tasks=earlier + 1).tasks
            settings.append((task, random_history(before, seed=seed)))
    for old, new in ADJUSTMENTS if spec.changed_spaces else ():
        (task,) = toy_benchmark(new(), tasks=1).tasks
        earlier_tasks = toy_benchmark(old(), tasks=1).tasks
        settings.append((task, random_history(earlier_tasks, seed=seed)))
    return settings


def _played(spec: MethodSpec, task: Task, history: Sequence[Evaluations], seed: int) -> Trials:
    return trials(task.space, play(spec, task, history, np.random.default_rng(seed)))


def _content(history: Sequence[Evaluations]) -> list[tuple[object, ...]]:
    """Content of a history, without what its search spaces cache."""
    return [
        (e.task, dict(e.context), e.values.tobytes(), e.objective.tobytes(), e.losses.tobytes())
        + (str(e.space.to_json()), e.direction)
        for e in history
    ]


def _blame_difference(
    spec: MethodSpec, task: Task, history: Sequence[Evaluations], seed: int
) -> None:
    """Explain why a method gave other suggestions for the same seed."""
    try:
        anew = [in_new_process(_played, spec, task, history, seed) for _ in range(2)]
    except ConformanceError:  # it cannot be sent there
        raise ConformanceError(
            f"{spec.name} gives other suggestions for the same seed: it keeps state from one run "
            "to the next, or uses other random numbers than those of its generator"
        ) from None
    if anew[0] == anew[1]:
        raise ConformanceError(
            f"{spec.name} keeps state from one run to the next: in new processes the same seed "
            "gives the same suggestions, in one process it does not"
        )
    raise ConformanceError(
        f"{spec.name} gives other suggestions for the same seed, in new processes too: it uses "
        "other random numbers than those of its generator"
    )


def _played_beside_another(
    spec: MethodSpec, task: Task, history: Sequence[Evaluations], seed: int
) -> Trials:
    """Trials of a run that alternates with one of another seed."""
    this, other = (made(spec, task, history, np.random.default_rng(s)) for s in (seed, seed + 1))
    played: Trials = []
    for _ in range(BUDGET):
        for method in (this, other):
            config = method.ask()
            values = task.space.values([config])
            loss = task.objective.loss(task.evaluate(config))
            method.tell(config, loss)
            if method is this:
                played.append((task.space.configs(values)[0], loss))
    return played


def _ordered(
    spec: MethodSpec,
    space: SearchSpace,
    tasks: int,
    seed: int,
    direction: Direction = Direction.MINIMIZE,
    *,
    budget: int = BUDGET,
) -> list[Outcome]:
    """Run a method on a toy benchmark under the ordered protocol."""
    benchmark = toy_benchmark(space, tasks=tasks, direction=direction)

    def rng(position: int) -> np.random.Generator:
        return np.random.default_rng([seed, position])

    try:
        with one_thread():
            return list(follow(Ordered(trials=budget), benchmark, spec, rng=rng, protocol_rng=rng))
    except MethodError as error:
        raise ConformanceError(str(error)) from error


@cache
def _random_search_median(space: SearchSpace, tasks: int, trials: int) -> float:
    """Median best loss of random search after a number of trials."""
    spec = method_spec("random-search")
    runs = [
        _ordered(spec, space, tasks, seed, budget=trials) for seed in range(RANDOM_SEARCH_SEEDS)
    ]
    return float(np.median([task.losses.min() for run in runs for task in run]))
