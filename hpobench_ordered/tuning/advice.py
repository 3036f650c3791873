"""Advice on which method to tune with, from the user's own earlier tasks.

They are replayed: methods optimise surrogates of the tasks in order.

Notation:
    A, S, T, M  methods, seeds, tasks, trials per task
    n           random configurations, the same on all tasks
    l           lowest loss that a method found with a seed on a task up to a trial
    b, m        of a task: the best loss known or found, and the median of the random configurations

    share left  (l - b) / (m - b): 0 is the best, 1 no better than half of all configurations

A method is within error of the best if it leaves more by at most the least significant difference
over the tasks: Fisher's, one-sided at 5 %, with the pooled error of all methods.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import mean_intervals
from hpobench_ordered.analysis.copying import best_and_random_losses, copying_regrets
from hpobench_ordered.analysis.labels import format_count, join_names
from hpobench_ordered.analysis.samples import Resampling, independent_samples
from hpobench_ordered.analysis.scores import lowest_losses, normalised_regrets
from hpobench_ordered.analysis.significance import least_significant_difference
from hpobench_ordered.data.benchmark import Benchmark, Definition, TaskDefinition
from hpobench_ordered.data.history import Evaluations, align_history, check_history
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.errors import EvaluationsError, ExperimentError, PoorSurrogateWarning
from hpobench_ordered.experiment.api import Results, run
from hpobench_ordered.experiment.plan import as_list
from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.experiment.user_methods.factory import as_method_spec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.card import TaskQuality
from hpobench_ordered.tuning.own_benchmarks.making import (
    OF_THE_USER,
    FittedEvaluations,
    build_benchmark,
    parse_surrogate_type,
)

if TYPE_CHECKING:
    import pandas as pd


METHODS = (
    "random-search",
    "bo",
    "tpe",
    "bounding-box",
    "cts",
    "zero-shot",
    "transfer-bo",
    "simple-ordered",
    "simple-previous",
    "best-first",
    "transfer-tpe-best-first",
    "ordered-gp",
)
"""Methods compared by default: fast ones of Hellan et al. (2023), Stoll et al. (2020) and ours."""
TRIALS = 15
FEWEST_TASKS = 3
LOWEST_CORRELATION = 0.5
"""Rank correlation below which a surrogate is called poor."""
SAMPLE_SIZE = 2000
"""Number of random configurations n that the median m is taken over."""


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """Result of replaying earlier tasks.

    Attributes:
        benchmark: The surrogate of the tasks.
        methods: A row per method, the best first: `method`; whether it `needs_history`; the share
            left after the `first` trial and after all of them (`left`, from `lower` to `upper`);
            how much more than the best it leaves (`behind`), and whether that is at most the
            `margin` (`is_within_error`). Means over seeds and over the tasks from the second on;
            intervals of 95 % over these tasks, which are taken as independent, NaN of fewer than
            five.
        margin: Difference in the share left that may be chance; NaN with one method.
        trials: Trials per task, M.
        copied: Share that the best configuration of the previous task leaves in one trial, for each
            task from the second on, shape (T - 1,).
        results: The runs.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> bench = hbo.load("newsvendor")
        >>> advice = hbo.advise(
        ...     [bench.evaluations(t, rng=np.random.default_rng(t), n=40) for t in range(3)],
        ...     space=bench.space,
        ...     direction="maximize",
        ...     methods=["random-search"],
        ...     trials=2,
        ...     surrogate="nearest",
        ... )
        >>> advice.best, advice.within_error, len(advice.copied)
        ('random-search', ('random-search',), 2)
    """

    benchmark: Benchmark
    methods: "pd.DataFrame"
    margin: float
    trials: int
    copied: FloatArray
    results: Results

    def __repr__(self) -> str:
        """The table of methods, and the advice in words."""
        table = self.methods.to_string(index=False, float_format="{:.2f}".format)
        return "\n".join([table, "", *self.sentences])

    @property
    def quality(self) -> tuple[TaskQuality, ...]:
        """The cross-validated quality of the surrogate on each task."""
        fitted = cast("FittedEvaluations", self.benchmark.recorded)  # the history, and its fit
        return fitted.fit.figures

    @property
    def best(self) -> str:
        """The method with the smallest share left."""
        return str(self.methods["method"].iloc[0])

    @property
    def within_error(self) -> tuple[str, ...]:
        """The best method, and those that leave so little more that it may be chance."""
        return tuple(self.methods.loc[self.methods["is_within_error"], "method"])

    @property
    def poor_tasks(self) -> tuple[str, ...]:
        """Tasks whose surrogate ranks configurations poorly."""
        # A constant surrogate has no rank correlation, NaN, and is not good.
        good = {task.name for task in self.quality if task.spearman >= LOWEST_CORRELATION}
        return tuple(task.name for task in self.quality if task.name not in good)

    @property
    def warning(self) -> str:
        """Warning about the quality of the surrogate, "" if it is good enough."""
        # A constant surrogate has no rank correlation, NaN; it counts as 0.
        correlations = np.nan_to_num([task.spearman for task in self.quality])
        mean = float(np.mean(correlations))
        if mean >= LOWEST_CORRELATION:
            return ""

        all_tasks = format_count(len(self.quality), "task")
        return (
            "The surrogate is poor, so this advice is unreliable: on configurations that it was "
            f"not fitted to its rank correlation is {mean:.2f} on average, and less than "
            f"{LOWEST_CORRELATION} on {len(self.poor_tasks)} of {all_tasks}. More evaluations of "
            "each task would help."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice in words."""
        on_methods = f"{self._sentence_on_best} {self._sentence_on_others}".rstrip()
        sentences = (on_methods, self._sentence_on_copying)
        if self.warning:
            return (self.warning, *sentences)
        return sentences

    @property
    def _sentence_on_best(self) -> str:
        """What share the best method leaves, with its interval."""
        best = self.methods.iloc[0]
        interval = ""
        has_interval = not np.isnan(best["lower"])  # too few tasks have none
        if has_interval:
            interval = f" ({best['lower']:.2f} to {best['upper']:.2f})"
        return (
            f"After {format_count(self.trials, 'trial')} {self.best} leaves least: "
            f"{best['left']:.2f}{interval} of the distance from the median to the best, over "
            f"{format_count(len(self.copied), 'task')} with a history."
        )

    @property
    def _sentence_on_others(self) -> str:
        """Which other methods may be as good as the best, "" if it is the only one."""
        others = [name for name in self.methods["method"] if name != self.best]
        as_good = self.within_error[1:]  # without the best method itself, which comes first
        if not others:
            return ""
        if len(as_good) == len(others):
            return "These tasks cannot tell the methods apart: all are within error of it."

        text = f"Up to {self.margin:.2f} more may be chance:"
        if not as_good:
            return f"{text} all other methods leave more."
        verb = "is" if len(as_good) == 1 else "are"
        return f"{text} {join_names(as_good, most=len(as_good))} {verb} within error of it."

    @property
    def _sentence_on_copying(self) -> str:
        """What share copying leaves, next to the best method that needs no history.

        `copied` is the share left on each task by the best configuration of the task before.
        """
        left_by_copying = float(np.nanmean(self.copied))
        text = (
            "Copying alone, the best configuration of the last task first, leaves "
            f"{left_by_copying:.2f} in one trial."
        )
        without_history = self.methods[~self.methods["needs_history"]]  # the best method first
        if without_history.empty:
            return text

        best = without_history.iloc[0]
        verdict = "wins" if left_by_copying <= best["left"] else "is not enough"
        trials = format_count(self.trials, "trial")
        return (
            f"{text} Copying {verdict}: {trials} of {best['method']}, without any history, leave "
            f"{best['left']:.2f}."
        )


def advise(
    history: Sequence[Evaluations],
    *,
    space: SpaceLike,
    direction: Direction | str,
    methods: Iterable[object] = METHODS,
    trials: int = TRIALS,
    seeds: Iterable[int] = range(5),
    surrogate: SurrogateType | str = SurrogateType.FOREST,
    folder: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: bool | Callable[[int, int], None] = True,
) -> Advice:
    """Say which method would have tuned earlier tasks best, with the previous ones as history.

    The tasks are replayed under the protocol `Ordered` on a surrogate of each, which is fitted to
    that task's evaluations; tasks need not have been evaluated on the same configurations. Failed
    evaluations are left out. The advice is as good as the surrogate, `Advice.quality`: as each task
    has its own, few evaluations make tasks look less similar, and a history less useful, than they
    are.

    Args:
        history: Evaluations of earlier tasks, oldest first, such as `read_history` gives: at least
            3 tasks with 10 different configurations each.
        space: The search space that all of them are on.
        direction: Whether the objective is minimised or maximised.
        methods: The methods to compare, as `run` takes them.
        trials: Trials per task.
        seeds: Seeds of the methods.
        surrogate: "forest", which needs the extra `generate`, or "nearest".
        folder: Where runs are stored and resumed; default: a temporary folder.
        workers: Number of processes.
        progress: As `run` takes it.

    Raises:
        EvaluationsError: The history has too few tasks or evaluations, does not fit the space or
            the direction, or all configurations are equally good.
        ExperimentError: The methods, trials or seeds are not as described, or no method could be
            run.
        UnknownNameError: An unknown method.
        MissingExtraError: scikit-learn is not installed, and a forest is asked for.

    Warns:
        PoorSurrogateWarning: The surrogate is poor, so the advice is unreliable.
        FailedRunsWarning: A method failed, and counts on the seeds that it finished.

    Examples:
        >>> import numpy as np
        >>> import hpobench_ordered as hbo
        >>> bench = hbo.load("newsvendor")
        >>> history = [bench.evaluations(t, rng=np.random.default_rng(t), n=40) for t in range(4)]
        >>> advice = hbo.advise(
        ...     history,
        ...     space=bench.space,
        ...     direction="maximize",
        ...     methods=["random-search", "simple-ordered"],
        ...     trials=5,
        ...     seeds=range(2),
        ...     surrogate="nearest",
        ... )
        >>> advice.best
        'simple-ordered'
    """
    specs = [as_method_spec(method) for method in as_list(methods, "method")]
    protocol = Ordered(trials=trials)
    benchmark = make_benchmark_of_history(
        history, to_search_space(space), direction, surrogate=surrogate
    )
    best_known, random_losses = best_and_random_losses(benchmark, SAMPLE_SIZE)
    copied = copying_regrets(random_losses, best=best_known)
    if np.isnan(copied).all():
        raise EvaluationsError("no configuration is better than another on any task but the first")
    results = run(
        benchmarks=[benchmark],
        methods=specs,
        seeds=seeds,
        protocol=protocol,
        folder=None if folder is None else Path(folder),
        workers=workers,
        progress=progress,
    )
    scores, unscored = results.scored()
    if not scores:
        raise ExperimentError(f"no method could be replayed: {unscored[0]}")

    # A method may find a better configuration than the best known one.
    best = np.fmin(best_known, lowest_losses(scores[0].losses))
    medians = np.median(random_losses, axis=0)
    shares_left = normalised_regrets(scores[0].losses, best, medians)
    shares_left[~scores[0].is_finished] = np.nan
    table, margin = compare_methods(shares_left, scores[0].methods)
    needs_history = {spec.name: spec.min_history > 0 for spec in specs}
    table["needs_history"] = table["method"].map(needs_history)

    advice = Advice(benchmark, table, margin, trials, copied, results)
    if advice.warning:
        warnings.warn(advice.warning, PoorSurrogateWarning, stacklevel=2)
    return advice


def make_benchmark_of_history(
    history: Sequence[Evaluations],
    space: SearchSpace,
    direction: Direction | str,
    *,
    surrogate: SurrogateType | str,
) -> Benchmark:
    """Make a benchmark whose tasks are surrogates of the tasks of a history.

    Failed evaluations, and tasks without any other, are left out.

    Raises:
        EvaluationsError: As by `advise`: fewer than 3 tasks are left, or evaluations do not fit.
    """
    kind = parse_surrogate_type(surrogate)
    chosen_direction = Direction.of(direction)
    successful = [leave_out_failures(e) for e in align_history(history, space)]
    tasks = [evaluations for evaluations in successful if len(evaluations) > 0]
    check_history(tasks, space, chosen_direction)
    if len(tasks) < FEWEST_TASKS:
        names = ", ".join(repr(evaluations.task) for evaluations in tasks)
        raise EvaluationsError(
            f"advice needs evaluations of at least {FEWEST_TASKS} tasks, but got "
            f"{len(tasks)}: {names or 'none'}"
        )

    tasks = keep_shared_contexts(tasks)  # a benchmark has the same numbers known of each task
    definition = Definition(
        name="history",
        version=1,
        summary="Earlier tasks.",
        space=space,
        objective=Objective("objective", unit="", direction=chosen_direction),
        tasks=tuple(TaskDefinition(e.task, e.context) for e in tasks),
        provenance=OF_THE_USER,
    )
    return build_benchmark(definition, tuple(tasks), kind=kind)


def leave_out_failures(evaluations: Evaluations) -> Evaluations:
    """Leave out the evaluations without a value."""
    is_finite = np.isfinite(evaluations.objective)
    return replace(
        evaluations,
        values=evaluations.values[is_finite],
        objective=evaluations.objective[is_finite],
    )


def keep_shared_contexts(history: Sequence[Evaluations]) -> list[Evaluations]:
    """Leave out the numbers of contexts that not all tasks have."""
    shared = set(history[0].context)
    for evaluations in history:
        shared &= set(evaluations.context)
    reduced: list[Evaluations] = []
    for evaluations in history:
        context = {name: evaluations.context[name] for name in sorted(shared)}
        reduced.append(replace(evaluations, context=context))
    return reduced


def compare_methods(
    shares_left: FloatArray, methods: Sequence[str]
) -> "tuple[pd.DataFrame, float]":
    """Compare methods by how much is left to the best loss after all trials.

    Args:
        shares_left: (lowest loss so far - best) / (median - best), (methods, seeds, tasks, trials):
            0 is the best, 1 no better than half of all configurations. The first task does not
            count, as it has no history.
        methods: Names of the methods.

    Returns:
        `Advice.methods` without `needs_history`, and `Advice.margin`.
    """
    import pandas as pd

    # Mean over seeds on each task but the first, (tasks - 1, methods, trials).
    means_of_tasks = independent_samples(shares_left, Resampling.TASKS, first_task=1)
    intervals = mean_intervals(
        means_of_tasks, rng=np.random.default_rng(0), possible=(0, np.inf)
    )  # of the means over tasks, each (methods, trials)
    margin = least_significant_difference(means_of_tasks[..., -1])
    left_at_end = intervals.mean[:, -1]
    behind = left_at_end - left_at_end.min()
    table = pd.DataFrame(
        {
            "method": methods,
            "first": intervals.mean[:, 0],
            "left": left_at_end,
            "lower": intervals.lower[:, -1],
            "upper": intervals.upper[:, -1],
            "behind": behind,
            # Not `behind <= margin`: with one method the margin is NaN, and that method the best.
            "is_within_error": ~(behind > margin),
        }
    )
    return table.sort_values("left", kind="stable", ignore_index=True), margin
