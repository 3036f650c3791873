"""The contract of methods."""

import pickle
import random
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing._require import (
    Conformance,
    ConformanceError,
    call_in_other_process,
    read_global_random_state,
    require,
)
from hpobench_ordered.testing.toy import (
    BUDGET,
    conditional_space,
    conditional_space_before,
    construct_method,
    integer_space,
    list_trials,
    numeric_space,
    numeric_space_before,
    random_history,
    run_method,
    toy_benchmark,
)

Trials = list[tuple[Config, float]]
Setting = tuple[Task, tuple[Evaluations, ...]]

TIME_LIMIT = 30.0  # seconds that one call on a toy problem may take, including compilation
LONG_HISTORY = 3  # earlier tasks in a long history
WORKERS = 4  # number of simulated workers in the test of parallel trials
ADJUSTMENTS = ((numeric_space_before, numeric_space), (conditional_space_before, conditional_space))
"""Search spaces before and after an adjustment."""

SEEDS = 10  # runs of a method that are compared with random search
TASKS_COMPARED = 4  # tasks of such a run that count: those with enough history for the method
RANDOM_SEARCH_SEEDS = 30
RANDOM_SEARCH_TRIALS_FACTOR = 2
"""A method that learns must beat random search with so many times its trials; random search itself
does so in less than 1 % of comparisons of 40 tasks."""
MAXIMISED_SEEDS = 2  # runs that are repeated with the objective maximised


@dataclass(frozen=True)
class _Run:
    """Trials of a run, and whether it left alone what it must not change."""

    trials: Trials
    is_unchanged: bool


class MethodConformance(Conformance):
    """The contract of methods, one test a property.

    If a subclass in a test module names the method, pytest runs one test per property:

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
        """The method suggests a valid configuration for each trial, within the time limit.

        It must do so even if all configurations of the space have been tried.
        """
        for setting in self._settings():
            self._first_run(setting)  # raises if a suggestion is invalid or late

    def test_the_global_random_state_stays(self) -> None:
        """The method does not change the global random generators of Python and numpy."""
        for setting in self._settings():
            is_unchanged = self._first_run(setting).is_unchanged
            require(is_unchanged, f"{self._name} uses the global random state")

    def test_the_same_seed_gives_the_same(self) -> None:
        """Suggestions depend on the seed, not on earlier runs or the global random state."""
        for setting in self._settings():
            first_trials = self._first_run(setting).trials
            random.seed(self.seed + 1)  # another global state, which must have no influence
            second_trials = _run_trials(self._spec, *setting, self.seed)
            require(
                second_trials == first_trials,
                f"{self._name} gives other suggestions for the same seed: it keeps state from one "
                "run to the next, or uses other random numbers than those of its generator",
            )

    def test_the_history_stays(self) -> None:
        """The method does not change the history that it gets."""
        for setting in self._settings():
            is_unchanged = self._alternating_run(setting).is_unchanged
            require(is_unchanged, f"{self._name} changes the history it gets")

    def test_failures_in_the_history_are_accepted(self) -> None:
        """The method runs where every other earlier evaluation failed, and all of one task."""
        for task, history in self._settings():
            rng = np.random.default_rng(self.seed)
            run_method(self._spec, task, _with_failures(history), rng)

    def test_a_history_at_the_bounds_is_accepted(self) -> None:
        """The method runs where all earlier configurations lie at the bounds of the space.

        Small steps from there lead out of range, which a method must not suggest.
        """
        for task, history in self._settings():
            is_on_same_space = all(evaluations.is_on(task.space) for evaluations in history)
            if is_on_same_space:  # the bounds of another space mean nothing on this one
                rng = np.random.default_rng(self.seed)
                run_method(self._spec, task, _move_to_bounds(history), rng)

    def test_runs_side_by_side_share_nothing(self) -> None:
        """A run has the same suggestions alone as when it alternates with another run."""
        for setting in self._settings():
            trials_alone = self._first_run(setting).trials
            trials_beside_another = self._alternating_run(setting).trials
            is_same = trials_beside_another == trials_alone
            require(is_same, f"{self._name} shares state between two runs")

    def test_several_are_suggested_before_a_first_result(self) -> None:
        """The method suggests several configurations before the first result, one per worker."""
        for setting in self._settings():
            run_method(self._spec, *setting, np.random.default_rng(self.seed), workers=WORKERS)

    def test_another_seed_gives_others(self) -> None:
        """Another seed gives other suggestions, unless the method is deterministic."""
        task, history = self._settings()[0]
        rng = np.random.default_rng(self.seed)
        state_before = pickle.dumps(rng)
        trials = list_trials(task.space, run_method(self._spec, task, history, rng))

        # A method that draws nothing leaves its generator unchanged.
        is_deterministic = pickle.dumps(rng) == state_before
        if not is_deterministic:
            other_trials = _run_trials(self._spec, task, history, self.seed + 1)
            require(
                other_trials != trials,
                f"{self._name} ignores what it draws from its random generator",
            )

    def test_another_process_gives_the_same(self) -> None:
        """Another process gives the same suggestions for the same seed."""
        setting = self._settings()[0]
        trials = call_in_other_process(self.executor, _run_trials, self._spec, *setting, self.seed)
        is_same = trials == self._first_run(setting).trials
        require(is_same, f"{self._name} gives other suggestions in another process")

    @property
    def _spec(self) -> MethodSpec:
        """The spec of the tested method."""
        return self._compute_once(self.method, "spec", lambda: as_method_spec(self.method))

    @property
    def _name(self) -> str:
        """The name of the tested method, for messages."""
        return self._spec.name

    def _settings(self) -> list[Setting]:
        """Return the tasks with histories that the method is run on, the shortest history first."""
        return self._compute_once(
            self.method, "settings", lambda: _toy_settings(self._spec, self.seed)
        )

    def _first_run(self, setting: Setting) -> _Run:
        """Run the method on a setting, once for all tests.

        Args:
            setting: A task and its history, one of `_settings`.

        Returns:
            The trials, and whether the global random state is the same after as before.
        """
        task, history = setting

        def run() -> _Run:
            state_before = read_global_random_state()
            rng = np.random.default_rng(self.seed)
            outcome = run_method(self._spec, task, history, rng, time_limit=self.time_limit)
            is_unchanged = read_global_random_state() == state_before
            return _Run(list_trials(task.space, outcome), is_unchanged)

        # A setting cannot be a key itself, as arrays in it have no hash. Its `id` can: `_settings`
        # returns the same objects to every test.
        return self._compute_once(self.method, ("first run", id(setting)), run)

    def _alternating_run(self, setting: Setting) -> _Run:
        """Run the method on a setting, alternating with a run of another seed, once for all tests.

        Args:
            setting: A task and its history, one of `_settings`.

        Returns:
            The trials of the first run, and whether the history is the same after as before.

        Raises:
            ConformanceError: The method raises an exception.
        """
        task, history = setting

        def run() -> _Run:
            content_before = _list_content(history)
            try:
                with one_thread():
                    trials = _run_beside_another(self._spec, task, history, self.seed)
            except Exception as error:
                raise ConformanceError(
                    f"{self._name} on task {task.name!r}, beside a run of another seed: "
                    f"{type(error).__name__}: {error}"
                ) from error
            is_unchanged = _list_content(history) == content_before
            return _Run(trials, is_unchanged)

        # By its `id`, as in `_first_run`.
        return self._compute_once(self.method, ("alternating run", id(setting)), run)


def check_method(
    method: object,
    *,
    seed: int = 0,
    time_limit: float | None = TIME_LIMIT,
    executor: Executor | None = None,
) -> None:
    """Check that a method keeps the contract of this package.

    The contract has these parts:

    - The method suggests a valid configuration for each trial within the time limit. It does so
      even if there are fewer configurations than trials.
    - It suggests several configurations before the first result, as parallel workers need them.
    - The same seed gives the same suggestions: whatever the global random state is, in another
      process, and if another run takes turns with this one.
    - Another seed gives other suggestions, unless the method is deterministic.
    - The method changes neither its history nor the global random state.
    - It accepts histories with failed evaluations, and with configurations at the bounds.

    The method is run on small problems with and without conditions. It gets as little history as it
    needs, and more. If its spec says `changed_spaces`, it also gets a history on another search
    space. The tests are those of `MethodConformance`.

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
    must be the same if the objective is maximised. Methods that do not learn, such as
    `random-search`, fail this check.

    Args:
        method: A method as `hpobench_ordered.run` takes it.
        trials: Its trials on a task; some methods learn little from a few.
        seeds: Number of its runs on each benchmark.

    Raises:
        ConformanceError: It is not better, or depends on the objective's direction.
    """
    spec = as_method_spec(method)
    for space in (numeric_space(), conditional_space()):
        runs = []
        for seed in range(seeds):
            runs.append(_run_ordered(spec, space, seed, trials=trials))
        _require_better_than_random_search(spec, space, runs, trials)
        for seed, minimised_run in enumerate(runs[:MAXIMISED_SEEDS]):
            maximised_run = _run_ordered(
                spec, space, seed, trials=trials, direction=Direction.MAXIMIZE
            )
            _require_same_suggestions(spec, minimised_run, maximised_run)


def _require_better_than_random_search(
    spec: MethodSpec, space: SearchSpace, runs: Sequence[Sequence[Outcome]], trials: int
) -> None:
    """Raise `ConformanceError` unless a method is better than random search with more trials.

    The median of the best losses is compared, over all runs and all tasks with history.

    Args:
        spec: The method.
        space: Search space of the toy benchmark.
        runs: Runs of the method, each with one outcome per task.
        trials: Trials of the method on a task.
    """
    tasks_without_history = _count_tasks(spec) - TASKS_COMPARED
    best_losses = _list_best_losses(runs, first_task=tasks_without_history)
    median = float(np.median(best_losses))

    random_search_trials = RANDOM_SEARCH_TRIALS_FACTOR * trials
    random_search = _compute_random_search_median(space, _count_tasks(spec), random_search_trials)
    require(
        median < random_search,
        f"{spec.name} is not better than random search with twice the trials on toy tasks: its "
        f"median best loss is {median:.3g}, random search's {random_search:.3g}",
    )


def _require_same_suggestions(
    spec: MethodSpec, minimised_run: Sequence[Outcome], maximised_run: Sequence[Outcome]
) -> None:
    """Raise `ConformanceError` unless two runs have the same configurations on each task.

    The objective of the second run is that of the first with the opposite sign.
    """
    for minimised, maximised in zip(minimised_run, maximised_run, strict=True):
        is_same = np.array_equal(minimised.values, maximised.values, equal_nan=True)
        require(is_same, f"{spec.name} gives other suggestions where the objective is maximised")


def _toy_settings(spec: MethodSpec, seed: int) -> list[Setting]:
    """Make the toy tasks that a method is tested on, each with a random history.

    The history is of earlier tasks: as few as the method needs, or more. For a method that can use
    it, there are also histories of the same task on the search space before an adjustment.
    """
    settings: list[Setting] = []
    numbers_of_earlier_tasks = sorted({spec.min_history, max(spec.min_history, LONG_HISTORY)})
    for space in (numeric_space(), conditional_space(), integer_space(5)):
        for number in numbers_of_earlier_tasks:
            *earlier_tasks, task = toy_benchmark(space, tasks=number + 1).tasks
            settings.append((task, random_history(earlier_tasks, seed=seed)))

    if spec.changed_spaces:
        for make_space_before, make_space in ADJUSTMENTS:
            (task,) = toy_benchmark(make_space(), tasks=1).tasks
            tasks_before = toy_benchmark(make_space_before(), tasks=1).tasks
            settings.append((task, random_history(tasks_before, seed=seed)))
    return settings


def _with_failures(history: Sequence[Evaluations]) -> tuple[Evaluations, ...]:
    """Return a history in which many evaluations failed, and have the objective NaN.

    Every other evaluation of each task failed, and on the last task all of them did.
    """
    with_failures = []
    for evaluations in history:
        objective = evaluations.objective.copy()
        is_last_task = evaluations is history[-1]
        if is_last_task:
            objective[:] = np.nan
        else:
            objective[::2] = np.nan
        with_failures.append(replace(evaluations, objective=objective))
    return tuple(with_failures)


def _move_to_bounds(history: Sequence[Evaluations]) -> tuple[Evaluations, ...]:
    """Return a history in which every value is moved to the nearer end of its range.

    Of several choices, that is the first or the last one.
    """
    at_bounds = []
    for evaluations in history:
        space = evaluations.space
        # In the unit cube the ends of all ranges are 0 and 1.
        corners = np.rint(space.encode(evaluations.values))
        at_bounds.append(replace(evaluations, values=space.decode(corners)))
    return tuple(at_bounds)


def _run_trials(spec: MethodSpec, task: Task, history: Sequence[Evaluations], seed: int) -> Trials:
    """Run a method with a seed, and return its configurations and losses in order."""
    outcome = run_method(spec, task, history, np.random.default_rng(seed))
    return list_trials(task.space, outcome)


def _list_content(history: Sequence[Evaluations]) -> list[tuple[object, ...]]:
    """List all content of a history, to compare it with its content at another time.

    It does not contain what search spaces cache when they are used.
    """
    return [
        (
            evaluations.task,
            dict(evaluations.context),
            evaluations.values.tobytes(),
            evaluations.objective.tobytes(),
            evaluations.losses.tobytes(),
            str(evaluations.space.to_json()),
            evaluations.direction,
        )
        for evaluations in history
    ]


def _run_beside_another(
    spec: MethodSpec, task: Task, history: Sequence[Evaluations], seed: int
) -> Trials:
    """Alternate a run with one of another seed, and return the trials of the first."""
    method = construct_method(spec, task, history, np.random.default_rng(seed))
    other_method = construct_method(spec, task, history, np.random.default_rng(seed + 1))
    trials: Trials = []
    for _ in range(BUDGET):
        trials.append(_make_trial(method, task))
        _make_trial(other_method, task)  # changes any state that the two share
    return trials


def _make_trial(method: Method, task: Task) -> tuple[Config, float]:
    """Let a method make one trial: ask it, evaluate its suggestion, and tell it the loss.

    Returns:
        The configuration and its loss. The configuration is a copy, which the method cannot change.
    """
    config = method.ask()
    values = task.space.values([config])
    value = task.evaluate(config)
    loss = task.objective.loss(value)
    method.tell(config, loss)
    (copy_of_config,) = task.space.configs(values)
    return copy_of_config, loss


def _count_tasks(spec: MethodSpec) -> int:
    """Return the number of tasks of a run that is compared with random search.

    The first ones, before the method has enough history, do not count in the comparison.
    """
    return max(1, spec.min_history) + TASKS_COMPARED


def _run_ordered(
    spec: MethodSpec,
    space: SearchSpace,
    seed: int,
    *,
    trials: int,
    tasks: int | None = None,
    direction: Direction = Direction.MINIMIZE,
) -> list[Outcome]:
    """Run a method on a toy benchmark under the ordered protocol, and return an outcome per task.

    Args:
        spec: The method.
        space: Search space of the benchmark.
        seed: Seed of the run.
        trials: Trials on each task.
        tasks: Number of tasks; default: `_count_tasks`, as many as the comparison needs.
        direction: Whether the objective is minimised or maximised.

    Raises:
        ConformanceError: The method fails.
    """
    benchmark = toy_benchmark(space, tasks=tasks or _count_tasks(spec), direction=direction)

    def rng(position: int) -> np.random.Generator:
        """Make the generator of the method, and of the protocol, for the task at a position."""
        return np.random.default_rng([seed, position])

    try:
        with one_thread():
            outcomes = follow(Ordered(trials=trials), benchmark, spec, rng=rng, protocol_rng=rng)
            return list(outcomes)
    except MethodError as error:
        raise ConformanceError(str(error)) from error


@cache
def _compute_random_search_median(space: SearchSpace, tasks: int, trials: int) -> float:
    """Return the median, over tasks and seeds, of the best loss that random search finds."""
    spec = method_spec("random-search")
    runs = [
        _run_ordered(spec, space, seed, trials=trials, tasks=tasks)
        for seed in range(RANDOM_SEARCH_SEEDS)
    ]
    return float(np.median(_list_best_losses(runs)))


def _list_best_losses(runs: Sequence[Sequence[Outcome]], first_task: int = 0) -> list[float]:
    """List the best loss on each task of each run, without the tasks before `first_task`."""
    best_losses = []
    for outcomes in runs:
        best_losses += [float(outcome.losses.min()) for outcome in outcomes[first_task:]]
    return best_losses
