"""Reproduces a paper: runs its experiments, draws its figures, checks its claims."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import ExperimentError, MethodError, StoreError, UnknownNameError
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.generation.base import generator
from hpobench_ordered.papers.evidence import Evidence
from hpobench_ordered.papers.paper import (
    Content,
    Exhibit,
    Paper,
    Setting,
    combine_comparisons,
    experiments,
)
from hpobench_ordered.papers.result import (
    CLAIMS,
    GALLERY,
    SUMMARY,
    Reproduction,
    Setup,
)
from hpobench_ordered.papers.summary import claims_csv, csv_of, gallery, summary
from hpobench_ordered.reporting.charts.saving import png_of, svg_of

Progress = Callable[[str, int, int], None]


def reproduce(
    paper: Paper,
    *,
    folder: Path,
    figures: Iterable[int] = (),
    tables: Iterable[int] = (),
    seeds: Iterable[int] | None = None,
    surrogate: str | None = None,
    workers: int = 1,
    workers_simulated: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """Reproduce figures and tables of a paper, by default all; finished runs are reused.

    `seeds` and `surrogate` replace the paper's, the latter on the benchmarks that have it. A failed
    run raises a MethodError.
    """
    exhibits = paper.select(figures=figures, tables=tables)
    setup = Setup(
        paper=paper,
        exhibits=exhibits,
        settings=choose_settings(
            paper,
            surrogate_of_benchmark=choose_surrogates(paper, exhibits, surrogate),
            seeds=None if seeds is None else tuple(dict.fromkeys(seeds)),
            workers_simulated=workers_simulated,
        ),
        folder=folder,
    )
    show_progress = progress or ignore_progress
    generate_missing_benchmarks(setup, workers, show_progress)
    cells = run_experiments(setup, workers, show_progress)
    result = make_exhibits(setup, cells, show_progress)
    write_files(
        folder,
        {SUMMARY: summary(result), GALLERY: gallery(result), CLAIMS: claims_csv(result)},
    )
    return result


def ignore_progress(step: str, done: int, total: int) -> None:
    """Show no progress."""


def choose_surrogates(
    paper: Paper, exhibits: Sequence[Exhibit], surrogate: str | None
) -> dict[str, str]:
    """Choose the surrogate of each benchmark that is needed, and check that its files are there.

    Args:
        paper: The paper.
        exhibits: What is reproduced of it.
        surrogate: Replaces the paper's on the benchmarks that have it.

    Raises:
        UnknownNameError: No benchmark of the paper has that surrogate.
    """
    offered = {
        benchmark: [option.name for option in benchmark_spec(benchmark).surrogates]
        for benchmark in experiments(paper.exhibits)
    }
    all_offered = list(dict.fromkeys(chain.from_iterable(offered.values())))
    if surrogate is not None and surrogate not in all_offered:
        raise UnknownNameError(
            f"surrogate of the benchmarks of {paper.name}", surrogate, all_offered
        )

    chosen = {}
    for benchmark in experiments(exhibits):
        is_offered = surrogate in offered[benchmark]
        name = surrogate if is_offered else paper.setting_of(benchmark).surrogate
        chosen[benchmark] = benchmark_spec(benchmark).ready_option(name).name
    return chosen


def choose_settings(
    paper: Paper,
    *,
    surrogate_of_benchmark: Mapping[str, str],
    seeds: tuple[int, ...] | None,
    workers_simulated: int,
) -> dict[str, Setting]:
    """Choose the setting of each benchmark: the paper's, with what the user chose instead.

    Args:
        paper: The paper.
        surrogate_of_benchmark: Surrogates of the benchmarks that are needed.
        seeds: Seeds instead of the paper's.
        workers_simulated: Trials in flight, 1 for any protocol.

    Raises:
        ExperimentError: Several trials in flight under another protocol than the ordered one.
    """
    settings = {}
    for benchmark, surrogate in surrogate_of_benchmark.items():
        setting = paper.setting_of(benchmark)
        protocol = setting.protocol
        if workers_simulated > 1:
            if not isinstance(protocol, Ordered):
                raise ExperimentError(
                    f"several trials in flight need the protocol ordered, not {protocol.name}"
                )
            protocol = replace(protocol, workers_simulated=workers_simulated)
        settings[benchmark] = Setting(
            protocol=protocol,
            seeds=setting.seeds if seeds is None else seeds,
            surrogate=surrogate,
        )
    return settings


def generate_missing_benchmarks(setup: Setup, workers: int, show_progress: Progress) -> None:
    """Generate the source runs that are missing, of benchmarks whose data are drawn by a seed."""
    missing = []
    for benchmark, methods in experiments(setup.exhibits).items():
        names = setup.runs_on(benchmark) if methods else ()
        # The benchmark itself comes with the package; those of other seeds have names of their own.
        drawn_by_seed = [name for name in names if name != benchmark]
        missing += [name for name in drawn_by_seed if benchmark_spec(name).recorded is None]

    for number_done, name in enumerate(missing):
        show_progress("source runs", number_done, len(missing))
        chosen = generator(name)
        chosen.generate(chosen.home() / name, workers=workers)
        show_progress("source runs", number_done + 1, len(missing))


def run_experiments(setup: Setup, workers: int, show_progress: Progress) -> dict[str, list[Cell]]:
    """Run what is not finished, and return all runs by benchmark.

    Raises:
        MethodError: A run failed.
    """
    cells_of_benchmark = plan_runs(setup)
    cells = list(chain.from_iterable(cells_of_benchmark.values()))
    if cells:
        run_cells(cells, setup.store, workers=workers, progress=partial(show_progress, "runs"))
        require_all_finished(setup.store, cells)
    return cells_of_benchmark


def plan_runs(setup: Setup) -> dict[str, list[Cell]]:
    """Plan the runs by benchmark; a benchmark that is only shown needs none."""
    cells_of_benchmark: dict[str, list[Cell]] = {}
    for comparison in combine_comparisons(setup.exhibits):
        if not comparison.methods:
            continue
        benchmark = comparison.benchmark
        cells = cells_of_benchmark.setdefault(benchmark, [])
        methods = [setup.paper.methods.get(name, name) for name in comparison.methods]
        for name, seeds in setup.runs_on(benchmark).items():
            cells += plan(
                benchmarks=[name],
                methods=methods,
                seeds=seeds,
                protocol=comparison.protocol or setup.settings[benchmark].protocol,
                surrogates={name: setup.surrogates[benchmark]},
            )
    return cells_of_benchmark


def require_all_finished(store: Store, cells: Sequence[Cell]) -> None:
    """Raise a `MethodError` with the message of the first run that failed, if any did."""
    failures = store.records.failures()
    for cell in cells:
        if cell.key in failures:
            raise MethodError(failures[cell.key].message)


def make_exhibits(
    setup: Setup, cells_of_benchmark: Mapping[str, Sequence[Cell]], show_progress: Progress
) -> Reproduction:
    """Draw and write figures and tables one by one, and check their claims."""
    evidence = Evidence(
        setup.store,
        cells_of_benchmark,
        surrogates=setup.surrogates,
        methods=setup.paper.methods,
        counted=setup.paper.counted,
        landscape=setup.paper.landscape,
    )
    claims = {}
    data = {}
    for number_done, exhibit in enumerate(setup.exhibits):
        show_progress("figures and tables", number_done, len(setup.exhibits))
        content = exhibit.make(evidence, exhibit.comparisons)
        write_files(setup.folder, encode_content(exhibit.name, content))
        data[exhibit.name] = content.data
        claims[exhibit.name] = tuple(exhibit.check(evidence, exhibit.comparisons))
    show_progress("figures and tables", len(setup.exhibits), len(setup.exhibits))

    cells = tuple(chain.from_iterable(cells_of_benchmark.values()))
    return Reproduction(setup, cells, evidence.fallbacks(), claims, data)


def encode_content(name: str, content: Content) -> dict[str, bytes]:
    """Return the files of a figure or table, by name: a CSV, and images if it has a chart."""
    files = {f"{name}.csv": csv_of(content.data)}
    if content.chart is not None:
        svg = svg_of(content.chart)
        files |= {f"{name}.png": png_of(svg), f"{name}.svg": svg.encode()}
    return files


def write_files(folder: Path, data_of_name: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is created; raise a `StoreError` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in data_of_name.items():
            write_atomically(folder / name, data)
    except OSError as error:
        raise StoreError(f"cannot write the reproduction to {folder}: {error}") from None
