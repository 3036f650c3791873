"""The Python interface to experiments."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.incumbent_trials import select_incumbents
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.tables import CONFIG_PREFIX
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning
from hpobench_ordered.experiment.joined import (
    JoinedRuns,
    choose_protocol_and_seeds,
    join_overviews,
    open_runs_to_compare,
)
from hpobench_ordered.experiment.method_records import read_method_records
from hpobench_ordered.experiment.overview import Overview, State, make_overview
from hpobench_ordered.experiment.parallel import (
    TIME_LIMIT,
    check_workers,
    run_cells,
)
from hpobench_ordered.experiment.plan import Cell, as_list, grid_of_cells, plan, select_shard
from hpobench_ordered.experiment.protocols import Ordered, Protocol
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.reference import BEST_LOSSES_ONLY_MESSAGE, read_reference
from hpobench_ordered.experiment.scored import score_runs
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.experiment.user_methods.identity import (
    MethodIdentity,
    identify_here,
    identify_method,
)
from hpobench_ordered.experiment.user_methods.source import end_script
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.runtime.progress import show_progress

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client


SHORT_COLUMNS = (
    "benchmark",
    "method",
    "trial",
    "rank",
    "rank_low",
    "rank_high",
    "score",
    "regret",
    "seeds",
    "failed",
    "seconds",
)
"""Columns of `Results.leaderboard`."""

DEFAULT_SEEDS = range(5)
NUMBER_OF_TRIAL_COLUMNS = 5
"""Columns of `StoredRuns.configurations` before those of hyperparameters."""


@dataclass(frozen=True)
class Results:
    """The runs (`cells`) of an experiment, and the `store` that holds them.

    Without cells, they are all runs of the store. If they are compared with another store,
    `against`, then `leaderboard`, `timings`, `overview`, charts and reports cover both.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> results = hbo.run(
        ...     benchmarks=["newsvendor"],
        ...     methods=["random-search"],
        ...     seeds=[0],
        ...     protocol=hbo.Ordered(trials=2, tasks=1),
        ... )
        >>> results.frame()["trial"].tolist()
        [1, 2]
    """

    store: StoredRuns
    cells: tuple[Cell, ...]
    against: StoredRuns | None = None

    def __repr__(self) -> str:
        number_of_runs = len(self.cells) or len(self.store.keys())  # no cells: the whole store
        return f"Results({number_of_runs} runs in {str(self.store.folder)!r})"

    def __str__(self) -> str:
        """Mean results of the methods over all benchmarks after the last trial."""
        try:
            board = self.leaderboard()
        except ExperimentError:  # no runs that can be compared
            return repr(self)
        if board.empty:  # all runs failed
            return repr(self)
        # The leaderboard begins with the rows over all benchmarks.
        benchmark, trial = board[["benchmark", "trial"]].iloc[0]
        is_overall = board["benchmark"] == benchmark
        overall = board.loc[is_overall, ["method", "rank", "score", "regret"]]
        table = overall.to_string(index=False, float_format="{:.3g}".format)
        return f"{self!r}\n{benchmark}, after trial {trial}:\n{table}"

    def frame(self, *, configurations: bool = False) -> "pd.DataFrame":
        """One row per trial: key, benchmark, method, seed, task, trial, value, loss, ...

        Where the evaluation failed, the value is NaN and the loss infinite.

        Args:
            configurations: Whether to add the version of the method, and every hyperparameter in a
                column config.NAME: missing where it is inactive, or of another benchmark.

        Raises:
            ExperimentError: Reference results, which do not have all trials.
        """
        if not self.store.has_all_trials:
            raise ExperimentError(BEST_LOSSES_ONLY_MESSAGE)
        overview = make_overview(self.store, self.cells or None)  # no cells: the whole store
        trials = without_categories(self.store.read(overview.keys(State.DONE)))
        if not configurations:
            return trials
        return add_configurations(trials, overview.runs, self.store)

    def incumbents(self) -> "pd.DataFrame":
        """The trials that are better than all before them on the same task of the same run.

        The columns are those of `frame`. The best loss after m trials is that of the last row whose
        trial is at most m. Reference results have these trials; if the results are compared with
        others, the table covers both.

        Examples:
            >>> import hpobench_ordered as hbo
            >>> incumbents = hbo.reference("newsvendor", methods=["bo"]).incumbents()
            >>> first_ten = incumbents[incumbents["trial"] <= 10]
            >>> best = first_ten.groupby(["method", "seed", "task"])["loss"].last()
            >>> len(best)  # 10 seeds on 9 tasks
            90
        """
        trials = self.joined.read(self.overview().keys(State.DONE))
        return without_categories(select_incumbents(trials))

    def leaderboard(
        self, trial: int | None = None, *, full: bool = False, measured_only: bool = False
    ) -> "pd.DataFrame":
        """How the methods compare: see `hpobench_ordered.analysis.leaderboard`.

        Args:
            trial: The trial, counted from 1; default: the last.
            full: All columns; default: `SHORT_COLUMNS`, `protocol` and `surrogate` of several, and
                `failed_evaluations` if there are any.
            measured_only: Whether to leave out interpolated tasks and stand-in surrogates.
        """
        # Not needed here: the reasons why some benchmarks have no scores.
        scores, _ = self.scored(measured_only=measured_only)
        board = leaderboard(scores, trial=trial)
        if full:
            return board
        # Protocol and surrogate are shown only if they tell rows of a benchmark apart.
        varying = []
        for column in ("protocol", "surrogate"):
            values_per_benchmark = board.groupby("benchmark")[column].nunique()
            if values_per_benchmark.gt(1).any():
                varying.append(column)
        counts = ["failed_evaluations"] if board["failed_evaluations"].any() else []
        return board[[*varying, *SHORT_COLUMNS, *counts]]

    def scored(self, *, measured_only: bool = False) -> tuple[list[BenchmarkScores], list[str]]:
        """Scores by benchmark, surrogate and protocol, and reasons why others have none."""
        return score_runs(self.joined, self.overview(), measured_only=measured_only)

    @property
    def joined(self) -> StoredRuns:
        """The store, joined with the one that it is compared with."""
        if self.against is None:
            return self.store
        return JoinedRuns(self.store, self.against)

    def timings(self) -> "pd.DataFrame":
        """One row per run: see `Records.timings`."""
        return self.joined.timings(self.overview().keys(State.DONE))

    def failures(self) -> tuple[Failure, ...]:
        """The failed runs with their tracebacks."""
        return self.overview().failures

    def overview(self) -> Overview:
        """The state of every run; finished runs in `against` count too, see `join_overviews`."""
        own = make_overview(self.store, self.cells or None)  # no cells: the whole store
        if self.against is None:
            return own
        return join_overviews(own, make_overview(self.against))


def run(
    *,
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark],
    methods: Iterable[object],
    seeds: Iterable[int] | None = None,
    protocol: Protocol | None = None,
    surrogates: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    against: str | Path | None = None,
    workers: int = 1,
    time_limit: float | None = TIME_LIMIT,
    dask: "Client | str | None" = None,
    shard: tuple[int, int] | None = None,
    retry_failed: bool = False,
    progress: bool | Callable[[int, int], None] = True,
) -> Results:
    """Run methods on benchmarks.

    A run whose method raises, takes too long or makes invalid suggestions is recorded as failed,
    with a warning, and the others continue; `Results.failures` has the tracebacks.

    Args:
        benchmarks: Names or paths of benchmarks, or loaded benchmarks.
        methods: Names of methods; or your own, see `tuning.as_method_spec`.
        seeds: Seeds; default: 0 to 4, or those of the runs in `against`.
        protocol: `Ordered()`, `LeaveOneOut()` or `Adjustment()`; default: the first, or that of
            the runs in `against`.
        surrogates: Surrogate by name of benchmark, instead of the default one.
        folder: Where results are stored and resumed; default: a temporary folder.
        against: What the runs are compared with: "reference", see `reference`, or a folder of
            results. A method that is run replaces one of the same name there.
        workers: Number of processes. A method that is not of this package runs in a process of its
            own, which imports it afresh from its files; others run in this process if there is
            only one worker. 0: everything runs in this process, so that a debugger can be used;
            runs of other methods are then repeated at each start.
        time_limit: Seconds that one call into a method may take; None: no limit. A process in which
            a call takes longer is killed.
        dask: A Dask client or the address of a scheduler: its workers run the cells. All of them
            must see the folder.
        shard: (i, n) for the part i, from 0, of n parts of the experiment, so that n machines may
            share it; their stores are merged by `merge_stores`.
        retry_failed: Whether to run again what is recorded as failed.
        progress: Whether to show a bar, on a terminal or in a notebook, after two seconds; or a
            function to call with the number of runs that are over and of all runs.

    Raises:
        UnknownNameError: An unknown benchmark, method or surrogate.
        NotFetchedError: A surrogate's files must be fetched first.
        ExperimentError: The experiment cannot be run as asked.
        StoreError: The folder cannot be written.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> result = hbo.run(
        ...     benchmarks=["newsvendor"],
        ...     methods=["random-search", "simple-ordered"],
        ...     seeds=range(2),
        ...     protocol=hbo.Ordered(trials=5, tasks=3),
        ... )
        >>> result.frame().groupby("method").size().to_dict()
        {'random-search': 30, 'simple-ordered': 30}
    """
    end_script()  # no experiment in a process that executes the script to load its methods
    check_workers(workers)
    benchmarks = as_list(benchmarks, "benchmark")
    methods = as_list(methods, "method")
    with closing(Children(workers)) as children:
        make_plan = partial(
            plan,
            benchmarks=benchmarks,
            methods=methods,
            surrogates=surrogates,
            identify=_make_identify(folder, children, workers),
        )
        compared_runs: StoredRuns | None = None
        if against is not None:
            # Which benchmarks and methods are compared is needed first: the protocol and the seeds
            # may be those that the other runs on these benchmarks have.
            one_seed = make_plan(seeds=[0], protocol=protocol or Ordered())
            compared_runs = open_runs_to_compare(against, one_seed, protocol)
            protocol, compared_seeds = choose_protocol_and_seeds(compared_runs, one_seed, protocol)
            if seeds is None:
                seeds = compared_seeds
        if seeds is None:
            seeds = DEFAULT_SEEDS
        all_cells = make_plan(seeds=seeds, protocol=protocol or Ordered())
        cells = all_cells if shard is None else select_shard(all_cells, shard)

        store = Store(Path(folder or tempfile.mkdtemp(prefix="hpobench_ordered-")))
        store.prepare()
        # All shards are recorded, so that the others count as missing until stores are merged.
        experiment = store.records.write_experiment(grid_of_cells(all_cells))
        shard_name = None
        if shard is not None:
            index, count = shard
            shard_name = f"{index}/{count}"
        session = {"experiment": experiment, "shard": shard_name}
        if retry_failed:
            store.records.forget_failures(cell.key for cell in cells)

        with show_progress(progress, unit="runs") as move:
            run_cells(
                cells,
                store,
                workers=workers,
                time_limit=time_limit,
                dask=dask,
                session=session,
                progress=move,
                children=children,
            )

    results = Results(store, tuple(cells), compared_runs)
    failures = results.failures()
    if failures:
        warnings.warn(
            f"{len(failures)} of {len(cells)} runs failed, such as: {failures[0].message}. "
            "Results.failures() has the tracebacks",
            FailedRunsWarning,
            stacklevel=2,
        )
    return results


def _make_identify(
    folder: str | Path | None, children: Children, workers: int
) -> Callable[[MethodSpec], MethodIdentity]:
    """Make a function that tells what a method is (its version, source and files).

    It remembers its results: it has to import methods, which takes time, and is called twice for
    each method when the results are compared with others.

    Args:
        folder: The folder of results, whose records tell what earlier runs had loaded; or None.
        children: The processes that import methods from outside.
        workers: Number of workers. With 0, methods run in this process, so it imports them, too.
    """
    records = [] if folder is None else read_method_records(Store(Path(folder)).folder)
    identity_of_method: dict[str, MethodIdentity] = {}

    def identify(spec: MethodSpec) -> MethodIdentity:
        """Identify a method, or look it up by name if that was done before."""
        if spec.name not in identity_of_method:
            if workers == 0:  # the method will run in this process
                identity = identify_here(spec)
            else:
                identity = identify_method(spec, children, records)
            identity_of_method[spec.name] = identity
        return identity_of_method[spec.name]

    return identify


def reference(*names: str, methods: Iterable[str] | None = None) -> Results:
    """Reference results of this package's methods, which are included in it.

    They hold the best loss so far after each trial, enough for leaderboard, charts, report and
    `Results.incumbents`, and no configurations.

    Args:
        names: Suites and benchmarks; default: all with results.
        methods: Names of methods; default: all.

    Raises:
        UnknownNameError: There is no such suite, benchmark or method.
        ExperimentError: There are no such reference results.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> board = hbo.reference("newsvendor", methods=["random-search", "bo"]).leaderboard()
        >>> list(board["method"].unique())
        ['bo', 'random-search']
    """
    # Without cells, results are all runs that were read.
    return Results(read_reference(names, methods=methods), cells=())


def without_categories(trials: "pd.DataFrame") -> "pd.DataFrame":
    """Make plain texts of pandas' categories, as texts are easier to handle."""
    return trials.astype(dict.fromkeys(trials.select_dtypes("category"), object))


def add_configurations(
    trials: "pd.DataFrame", runs: "pd.DataFrame", store: StoredRuns
) -> "pd.DataFrame":
    """Add method versions and hyperparameters to a table of trials.

    Args:
        trials: One row per trial.
        runs: `Overview.runs`, with the method versions.
        store: The store of the trials.

    Returns:
        The trials with columns method_version and config.NAME.
    """
    import pandas as pd

    trials_with_version = trials.merge(runs[["key", "method_version"]], on="key")
    if trials.empty:
        return trials_with_version

    tables = []
    for _, trials_of_benchmark in trials.groupby("benchmark"):
        table = store.configurations(trials_of_benchmark["key"].unique())
        # The first columns are those of the trial (key, task, trial, value and loss), all others
        # hyperparameters. They are told apart by position, as hyperparameters may have such names.
        columns = list(table.columns[:NUMBER_OF_TRIAL_COLUMNS])
        columns += [f"{CONFIG_PREFIX}{name}" for name in table.columns[NUMBER_OF_TRIAL_COLUMNS:]]
        table = table.set_axis(columns, axis=1)
        tables.append(table.drop(columns=["value", "loss"]))  # the trials have them already
    configurations = pd.concat(_unify_types(tables))
    return trials_with_version.merge(configurations, on=["key", "task", "trial"])


def _unify_types(tables: "Sequence[pd.DataFrame]") -> "list[pd.DataFrame]":
    """Give the hyperparameters of several benchmarks types under which they can be concatenated.

    A hyperparameter that has choices, as texts, on one of the benchmarks becomes text on all.
    Integers stay integers although those of other benchmarks are missing.

    Args:
        tables: A table for each benchmark, whose columns of hyperparameters are named config.NAME.
    """
    names_of_texts = set[str]()
    for table in tables:
        names_of_texts.update(table.select_dtypes(exclude="number"))

    unified = []
    for table in tables:
        columns = {}
        for name in table.select_dtypes("number"):
            if name in names_of_texts:
                columns[name] = table[name].astype(object).map(str, na_action="ignore")
        for name in table.select_dtypes("integer"):
            is_hyperparameter = name.startswith(CONFIG_PREFIX)
            if is_hyperparameter and name not in columns and len(tables) > 1:
                columns[name] = table[name].astype("Int64")
        unified.append(table.assign(**columns))
    return unified


def merge_stores(folder: str | Path, others: Iterable[str | Path]) -> Store:
    """Merge stores of several machines or shards into one folder; the originals are kept.

    Raises:
        StoreError: One is not a store, has another format or is damaged; two hold different results
            of the same run; or the folder cannot be written.
    """
    store = Store(Path(folder))
    store.merge(*map(Store.open, others))
    return store
