"""The Python interface to experiments."""

import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning, StoreError
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
    limit_processes,
    run_cells,
)
from hpobench_ordered.experiment.plan import Cell, as_list, grid_of_cells, plan, select_shard
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.reference import BEST_ONLY, read_reference
from hpobench_ordered.experiment.scored import (
    explain_left_out,
    find_families,
    find_limits,
    score_runs,
    select_measured,
)
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.stored_runs import StoredRuns
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Ordered, Protocol
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.runtime.progress import show_progress
from hpobench_ordered.user_methods.identity import (
    MethodIdentity,
    identify_here,
    identify_method,
)
from hpobench_ordered.user_methods.loading import end_script

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

    from hpobench_ordered.plotting.accessor import Plots
    from hpobench_ordered.reporting import Report

SHORT = (
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


@dataclass(frozen=True)
class Results:
    """The runs (`cells`) of an experiment, and the `store` that holds them.

    If they are compared with another store, `against`, then leaderboard, charts, report, `timings`
    and `overview` cover both.
    """

    store: StoredRuns
    cells: tuple[Cell, ...]
    against: StoredRuns | None = None

    def __repr__(self) -> str:
        runs = len(self.cells) or len(self.store.keys())
        return f"Results({runs} runs in {str(self.store.folder)!r})"

    def __str__(self) -> str:
        """Mean results of the methods over all benchmarks after the last trial."""
        try:
            board = self.leaderboard()
        except ExperimentError:
            return repr(self)
        benchmark, trial = board[["benchmark", "trial"]].iloc[0]
        overall = board.loc[board["benchmark"] == benchmark, ["method", "rank", "score", "regret"]]
        shown = overall.to_string(index=False, float_format="{:.3g}".format)
        return f"{self!r}\n{benchmark}, after trial {trial}:\n{shown}"

    def frame(self, *, configurations: bool = False) -> "pd.DataFrame":
        """One row per trial: key, benchmark, method, seed, task, trial, value, loss, ...

        Args:
            configurations: Whether to add the version of the method, and every hyperparameter in a
                column config.NAME: missing where it is inactive, or of another benchmark.

        Raises:
            ExperimentError: Reference results, which do not have all trials.
        """
        if not self.store.has_all_trials:
            raise ExperimentError(BEST_ONLY)
        found = make_overview(self.store, self.cells or None)
        trials = self.store.read(found.keys(State.DONE))
        trials = trials.astype(dict.fromkeys(trials.select_dtypes("category"), object))
        return with_configurations(trials, found.runs, self.store) if configurations else trials

    def leaderboard(
        self, trial: int | None = None, *, full: bool = False, measured_only: bool = False
    ) -> "pd.DataFrame":
        """How the methods compare: see `hpobench_ordered.analysis.leaderboard`.

        Args:
            trial: The trial, counted from 1; default: the last.
            full: All columns; default: `SHORT`, and `protocol` and `surrogate` of several.
            measured_only: Whether to leave out interpolated tasks and stand-in surrogates.
        """
        scores, _ = self.scored(measured_only=measured_only)
        board = leaderboard(scores, trial=trial)
        several = [
            c
            for c in ("protocol", "surrogate")
            if board.groupby("benchmark")[c].nunique().gt(1).any()
        ]
        return board if full else board[[*several, *SHORT]]

    def scored(self, *, measured_only: bool = False) -> tuple[list[BenchmarkScores], list[str]]:
        """Scores by benchmark, surrogate and protocol, and reasons why others have none."""
        return score_runs(self.joined, self.overview(), measured_only=measured_only)

    @property
    def joined(self) -> StoredRuns:
        """The store, joined with the one that it is compared with."""
        return self.store if self.against is None else JoinedRuns(self.store, self.against)

    @property
    def plot(self) -> "Plots":
        """Charts: `plot.curves()`, `.ranks()`, `.heatmap()`, `.landscape(...)` and others."""
        from hpobench_ordered.plotting.accessor import Plots

        return Plots(
            scored=self.scored,
            runs=lambda: self.overview().runs,
            configurations=self.joined.configurations,
        )

    def timings(self) -> "pd.DataFrame":
        """One row per run: see `Records.timings`."""
        return self.joined.timings(self.overview().keys(State.DONE))

    def failures(self) -> tuple[Failure, ...]:
        """The failed runs with their tracebacks."""
        return self.overview().failures

    def overview(self) -> Overview:
        """The state of every run."""
        own = make_overview(self.store, self.cells or None)
        return own if self.against is None else join_overviews(own, make_overview(self.against))


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
        methods: Names of methods; or your own, see `adapters.as_method_spec`.
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
    end_script()
    check_workers(workers)
    benchmarks = as_list(benchmarks, "benchmark")
    methods = as_list(methods, "method")
    with closing(Children(limit_processes(workers))) as children:
        make_plan = partial(
            plan,
            benchmarks=benchmarks,
            methods=methods,
            surrogates=surrogates,
            identify=_identifier(folder, children, workers),
        )
        other: StoredRuns | None = None
        if against is not None:
            first = make_plan(seeds=[0], protocol=protocol or Ordered())
            other = open_runs_to_compare(against, first, protocol)
            protocol, compared_seeds = choose_protocol_and_seeds(other, first, protocol)
            seeds = compared_seeds if seeds is None else seeds
        seeds = range(5) if seeds is None else seeds
        planned = make_plan(seeds=seeds, protocol=protocol or Ordered())
        cells = planned if shard is None else select_shard(planned, shard)
        store = Store(Path(folder or tempfile.mkdtemp(prefix="hpobench_ordered-")))
        store.prepare()
        # All shards are recorded, so that the others count as missing until stores are merged.
        experiment = store.records.write_experiment(grid_of_cells(planned))
        session = {"experiment": experiment, "shard": shard and "{}/{}".format(*shard)}
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
    results = Results(store, tuple(cells), other)
    if failures := results.failures():
        warnings.warn(
            f"{len(failures)} of {len(cells)} runs failed, such as: {failures[0].message}. "
            "Results.failures() has the tracebacks",
            FailedRunsWarning,
            stacklevel=2,
        )
    return results


def _identifier(
    folder: str | Path | None, children: Children, workers: int
) -> Callable[[MethodSpec], MethodIdentity]:
    """The function that identifies methods, each of them once, with the records in a folder."""
    records = [] if folder is None else read_method_records(Path(folder))
    identities: dict[str, MethodIdentity] = {}

    def identify(spec: MethodSpec) -> MethodIdentity:
        if spec.name not in identities:
            is_here = workers == 0
            identities[spec.name] = (
                identify_here(spec) if is_here else identify_method(spec, children, records)
            )
        return identities[spec.name]

    return identify


def reference(*names: str, methods: Iterable[str] | None = None) -> Results:
    """Reference results of this package's methods, which are included in it.

    They hold the best loss so far after each trial, enough for leaderboard, charts and report, and
    no configurations.

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
    return Results(read_reference(names, methods=methods), ())


def with_configurations(
    trials: "pd.DataFrame", runs: "pd.DataFrame", store: StoredRuns
) -> "pd.DataFrame":
    """Add method versions and hyperparameters to a table of trials."""
    import pandas as pd

    places = ["key", "task", "trial"]
    parts = []
    for _, part in trials.groupby("benchmark"):
        read = store.configurations(part["key"].unique())
        named = read.set_axis(
            [*read.columns[:5], *(f"config.{n}" for n in read.columns[5:])], axis=1
        )
        parts.append(named.drop(columns=["value", "loss"]))
    versioned = trials.merge(runs[["key", "method_version"]], on="key")
    return versioned.merge(pd.concat(parts), on=places) if parts else versioned


def merge_stores(folder: str | Path, others: Iterable[str | Path]) -> Store:
    """Merge stores of several machines or shards into one folder; the originals are kept.

    Raises:
        StoreError: One is not a store, has another format or is damaged; two hold different results
            of the same run; or the folder cannot be written.
    """
    store = Store(Path(folder))
    store.merge(*map(Store.open, others))
    store.compact(at_least=MANY)
    return store


def report(
    results: Results | str | Path, folder: str | Path | None = None, *, measured_only: bool = False
) -> "Report":
    """Write a report of runs: one page, tables and figures, each with its data.

    Args:
        results: What `run` returned, or the folder of a store.
        folder: Where the report goes; default: the folder `report` in that of the results.
        measured_only: Whether to leave out interpolated tasks and stand-in surrogates.

    Returns:
        Scores by benchmark, and the files written.

    Raises:
        StoreError: There are no runs, they cannot be read, or the folder cannot be written.
    """
    from hpobench_ordered.reporting import ReportInput, write_report

    if not isinstance(results, Results):
        results = Results(Store(Path(results)), ())
    store, seen = results.joined, results.overview()
    if not len(seen.runs):
        raise StoreError(f"there are no runs in {store.folder}")
    done = seen.keys(State.DONE)
    trials = store.read(done)
    if measured_only:
        trials, seen = select_measured(trials), replace(seen, runs=select_measured(seen.runs))
        if not len(seen.runs):
            raise StoreError(f"every run in {store.folder} is on a stand-in surrogate")
    page = ReportInput(
        trials=trials,
        overview=seen,
        timings=store.timings(done),
        configurations=store.configurations if store.has_all_trials else None,
        limits=find_limits(seen.runs),
        left_out=explain_left_out(seen.runs),
        families=find_families(seen.runs),
        measured_only=measured_only,
    )
    return write_report(page, Path(folder or store.folder / "report"))
