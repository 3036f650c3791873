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
    """Reproduce figures and tables of a paper, and check their claims; finished runs are reused.

    Args:
        paper: The paper.
        folder: Where runs, figures, tables and the summary go.
        figures: Numbers of the figures; default: all figures and tables.
        tables: Numbers of the tables; default: all figures and tables.
        seeds: Seeds instead of the paper's.
        surrogate: Surrogate instead of the paper's, on the benchmarks that have it.
        workers: Number of processes.
        workers_simulated: Number of trials in flight at once, for the ordered protocol.
        progress: Is called with the step, the number of its parts that are done, and that of all.

    Raises:
        MethodError: A run failed.
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
    """Choose the surrogate of each benchmark of some figures and tables.

    Args:
        paper: The paper.
        exhibits: The figures and tables.
        surrogate: Name of a surrogate, which is chosen for the benchmarks that have it. Other
            benchmarks have the paper's surrogate, and so have all if this is None.

    Returns:
        The name of the surrogate, by that of the benchmark.

    Raises:
        UnknownNameError: No benchmark of the paper has that surrogate.
        NotFetchedError: A chosen surrogate must be downloaded first.
    """
    names_of_benchmark = {}
    for benchmark in experiments(paper.exhibits):
        surrogates = benchmark_spec(benchmark).surrogates
        names_of_benchmark[benchmark] = [option.name for option in surrogates]
    all_names = list(dict.fromkeys(chain.from_iterable(names_of_benchmark.values())))
    # A surrogate is wrong only if none of the paper's benchmarks has it.
    if surrogate is not None and surrogate not in all_names:
        raise UnknownNameError(f"surrogate of the benchmarks of {paper.name}", surrogate, all_names)

    chosen = {}
    for benchmark in experiments(exhibits):
        has_surrogate = surrogate in names_of_benchmark[benchmark]
        name = surrogate if has_surrogate else paper.setting_of(benchmark).surrogate
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
        seeds: Seeds instead of the paper's; None for the paper's.
        workers_simulated: Number of trials in flight at once. If it is above 1, the protocol must
            be the ordered one.

    Raises:
        ExperimentError: The number is above 1, but a benchmark has another protocol.
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
    """Generate those copies of benchmarks that experiments need and that do not exist yet.

    If every seed of a benchmark has other data, seed 0 runs on the benchmark itself, whose history
    comes with the package. Any other seed, such as 3, runs on a copy called NAME-seed-3. To
    generate a copy is to make its history: its source tasks are optimised, which takes a while.
    """
    missing = []
    for benchmark, methods in experiments(setup.exhibits).items():
        if not methods:  # its landscape is drawn, but nothing runs on it
            continue
        for name in setup.assign_seeds(benchmark):
            if name == benchmark:  # it comes with the package
                continue
            has_history = benchmark_spec(name).recorded is not None
            if not has_history:
                missing.append(name)

    for number_done, name in enumerate(missing):
        show_progress("source runs", number_done, len(missing))
        generator_of_copy = generator(name)
        folder = generator_of_copy.home() / name
        generator_of_copy.generate(folder, workers=workers)
        show_progress("source runs", number_done + 1, len(missing))


def run_experiments(setup: Setup, workers: int, show_progress: Progress) -> dict[str, list[Cell]]:
    """Make all runs that are not finished yet, and return all runs by benchmark.

    Runs that failed before are made again: on a busy machine, for example, a run may have exceeded
    its time limit by chance.

    Raises:
        MethodError: A run failed.
    """
    cells_of_benchmark = plan_runs(setup)
    cells = list(chain.from_iterable(cells_of_benchmark.values()))
    if cells:
        setup.store.records.forget_failures(cell.key for cell in cells)
        run_cells(cells, setup.store, workers=workers, progress=partial(show_progress, "runs"))
        require_all_finished(setup.store, cells)
    return cells_of_benchmark


def plan_runs(setup: Setup) -> dict[str, list[Cell]]:
    """Plan all runs that figures and tables need, by the benchmark of their comparisons.

    A benchmark that is only shown, as in landscapes, needs none and is left out.
    """
    cells_of_benchmark: dict[str, list[Cell]] = {}
    for comparison in combine_comparisons(setup.exhibits):
        if not comparison.methods:
            continue
        benchmark = comparison.benchmark
        cells = cells_of_benchmark.setdefault(benchmark, [])
        # A paper may have methods of its own, which are not registered: these are run by their
        # specs, and all others by their names.
        methods = [setup.paper.methods.get(name, name) for name in comparison.methods]
        # One benchmark with all seeds; or a copy of it for each seed, if each seed has other data.
        for name, seeds in setup.assign_seeds(benchmark).items():
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
    """Make and write figures and tables one by one, check their claims, and return everything."""
    evidence = Evidence(
        setup.store,
        cells_of_benchmark,
        surrogates=setup.surrogates,
        methods=setup.paper.methods,
        select_counted=setup.paper.select_counted,
        landscape=setup.paper.landscape,
    )
    claims = {}
    data = {}
    for number_done, exhibit in enumerate(setup.exhibits):
        show_progress("figures and tables", number_done, len(setup.exhibits))
        content = exhibit.make_content(evidence, exhibit.comparisons)
        write_files(setup.folder, encode_content(exhibit.name, content))
        data[exhibit.name] = content.data
        claims[exhibit.name] = tuple(exhibit.check(evidence, exhibit.comparisons))
    show_progress("figures and tables", len(setup.exhibits), len(setup.exhibits))

    cells = tuple(chain.from_iterable(cells_of_benchmark.values()))
    return Reproduction(setup, cells, evidence.fallbacks(), claims, data)


def encode_content(name: str, content: Content) -> dict[str, bytes]:
    """Make the contents of the files of a figure or table, by their names.

    They are its numbers as CSV and, if it has a chart, its images as PNG and SVG.

    Args:
        name: Name of the figure or table, such as "figure-5".
        content: Its numbers and its chart.
    """
    files = {f"{name}.csv": csv_of(content.data)}
    if content.chart is not None:
        svg = svg_of(content.chart)
        files |= {f"{name}.png": png_of(svg), f"{name}.svg": svg.encode()}
    return files


def write_files(folder: Path, data_of_name: Mapping[str, bytes]) -> None:
    """Write files into a folder, which is created if it does not exist.

    Args:
        folder: The folder.
        data_of_name: The content of each file, by its name.

    Raises:
        StoreError: A file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in data_of_name.items():
            write_atomically(folder / name, data)
    except OSError as error:
        raise StoreError(f"cannot write the reproduction to {folder}: {error}") from None
