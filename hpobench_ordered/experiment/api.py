"""Running experiments from Python."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.runner import run_cells
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.protocols import Ordered, Protocol

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.reporting import Report


@dataclass(frozen=True)
class Results:
    """Finished runs of an experiment.

    Attributes:
        store: Where they are.
        cells: The runs.
    """

    store: Store
    cells: tuple[Cell, ...]

    def __repr__(self) -> str:
        return f"Results({len(self.cells)} runs in {str(self.store.folder)!r})"

    def frame(self) -> "pd.DataFrame":
        """One row a trial: benchmark, method, seed, task, trial, value, loss, ..."""
        return self.store.read(cell.key for cell in self.cells)

    def timings(self) -> "pd.DataFrame":
        """One row a run: key, benchmark, method, seed, ..., suggestions and seconds.

        `method_seconds` is the time spent inside the methods, `seconds` that of the whole run.
        """
        timings = self.store.timings()
        return timings[timings["key"].isin([cell.key for cell in self.cells])]


def run(
    *,
    benchmarks: Iterable[str],
    methods: Iterable[str | type[Method] | MethodSpec],
    seeds: Iterable[int] = range(5),
    protocol: Protocol | None = None,
    surrogates: Mapping[str, str] | None = None,
    folder: str | Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Results:
    """Run methods on benchmarks.

    Args:
        benchmarks: Names of benchmarks.
        methods: Names of methods, or classes of your own.
        seeds: Seeds.
        protocol: What a method gets to see: `Ordered()`, which it is without, `LeaveOneOut()` or
            `Adjustment()`.
        surrogates: Surrogate by name of benchmark, where it is not the default one.
        folder: Where results are kept; running again with the same folder continues. A temporary
            folder without.
        workers: Number of processes.
        progress: Called with the number of finished runs and of all runs.

    Returns:
        The finished runs.

    Raises:
        UnknownNameError: An unknown benchmark, method or surrogate.
        NotFetchedError: A surrogate's files must be fetched first.
        ExperimentError: The experiment cannot be run as asked.
        StoreError: The folder cannot be written, or belongs to another version.
        MethodError: A method raised, or suggested something that is no configuration.
    """
    if workers < 1:
        raise ExperimentError(f"at least 1 worker is needed, got {workers}")
    cells = plan(
        benchmarks=benchmarks,
        methods=methods,
        seeds=seeds,
        protocol=protocol or Ordered(),
        surrogates=surrogates,
    )
    store = Store(Path(folder or tempfile.mkdtemp(prefix="hpobench_ordered-")))
    run_cells(cells, store, workers=workers, progress=progress)
    return Results(store, tuple(cells))


def report(results: Results | str | Path, folder: str | Path) -> "Report":
    """Write a report of finished runs: a summary, all scores as CSV, and a figure.

    Args:
        results: What `run` returned, or the folder of a store.
        folder: Where the report goes.

    Returns:
        Scores by benchmark, and the files written.

    Raises:
        StoreError: There are no results, or the folder cannot be written.
        ExperimentError: Nothing of the results can be scored.
    """
    from hpobench_ordered.reporting import write_report

    frame = results.frame() if isinstance(results, Results) else Store(Path(results)).read()
    return write_report(frame, Path(folder))
