"""Reproduces a paper: runs its experiments, draws its figures, checks its claims."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hpobench_ordered.errors import ExperimentError, MethodError, StoreError, UnknownNameError
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.generation.base import generator
from hpobench_ordered.plotting.saving import png_of, svg_of
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.reproduction.evidence import Evidence
from hpobench_ordered.reproduction.paper import (
    Entry,
    Exhibit,
    Paper,
    Setting,
    Table,
    combined,
    experiments,
)
from hpobench_ordered.reproduction.result import (
    CLAIMS,
    GALLERY,
    SUMMARY,
    CheckedClaim,
    Reproduction,
    Setup,
)
from hpobench_ordered.reproduction.summary import claims_csv, csv_of, entries_csv, gallery, summary

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
    chosen = None if seeds is None else tuple(dict.fromkeys(seeds))
    surrogates = _surrogates(paper, exhibits, surrogate)
    settings = {
        name: _setting(paper.setting_of(name), option, chosen, workers_simulated)
        for name, option in surrogates.items()
    }
    setup = Setup(paper=paper, exhibits=exhibits, settings=settings, folder=folder)
    report = progress or (lambda step, done, total: None)
    _generate_missing(setup, workers, report)
    planned = _plan(setup)
    cells = [cell for several in planned.values() for cell in several]
    if cells:
        run_cells(cells, setup.store, workers=workers, progress=partial(report, "runs"))
        _require_all(setup.store, cells)
    result = _make(setup, planned, report)
    _write(folder, {SUMMARY: summary(result), GALLERY: gallery(result), CLAIMS: claims_csv(result)})
    return result


def _generate_missing(setup: Setup, workers: int, report: Progress) -> None:
    """Generate missing source runs of benchmarks whose data depend on the seed."""
    run = [name for name, methods in experiments(setup.exhibits).items() if methods]
    drawn = [one for name in run for one in setup.runs_on(name) if one != name]
    missing = [name for name in drawn if benchmark_spec(name).recorded is None]
    for done, name in enumerate(missing, start=1):
        report("source runs", done - 1, len(missing))
        made = generator(name)
        made.generate(made.home() / name, workers=workers)
        report("source runs", done, len(missing))


def _require_all(store: Store, cells: Sequence[Cell]) -> None:
    """Raise a MethodError if any run failed."""
    failures = store.records.failures()
    for cell in cells:
        if cell.key in failures:
            raise MethodError(failures[cell.key].message)


def _surrogates(paper: Paper, exhibits: Sequence[Exhibit], surrogate: str | None) -> dict[str, str]:
    """The surrogate of each benchmark that is needed, checked to be ready."""
    offered = {
        benchmark: [option.name for option in benchmark_spec(benchmark).surrogates]
        for benchmark in experiments(paper.exhibits)
    }
    if surrogate is not None and not any(surrogate in names for names in offered.values()):
        every = dict.fromkeys(name for names in offered.values() for name in names)
        raise UnknownNameError(f"surrogate of the benchmarks of {paper.name}", surrogate, every)
    chosen = {
        name: surrogate if surrogate in offered[name] else paper.setting_of(name).surrogate
        for name in experiments(exhibits)
    }
    return {name: benchmark_spec(name).ready_option(chosen[name]).name for name in chosen}


def _setting(
    setting: Setting, surrogate: str, seeds: tuple[int, ...] | None, workers_simulated: int
) -> Setting:
    """The paper's setting with the user's overrides."""
    if seeds is not None:
        setting = replace(setting, seeds=seeds)
    if workers_simulated > 1:
        if not isinstance(setting.protocol, Ordered):
            raise ExperimentError(
                f"several trials in flight need the protocol ordered, not {setting.protocol.name}"
            )
        protocol = replace(setting.protocol, workers_simulated=workers_simulated)
        setting = replace(setting, protocol=protocol)
    return replace(setting, surrogate=surrogate)


def _plan(setup: Setup) -> dict[str, list[Cell]]:
    """The runs by benchmark, none for figures that only show a benchmark."""
    cells: dict[str, list[Cell]] = {}
    for item in combined(setup.exhibits):
        for name, seeds in setup.runs_on(item.benchmark).items() if item.methods else ():
            cells.setdefault(item.benchmark, []).extend(
                plan(
                    benchmarks=[name],
                    methods=[setup.paper.methods.get(method, method) for method in item.methods],
                    seeds=seeds,
                    protocol=item.protocol or setup.settings[item.benchmark].protocol,
                    surrogates={name: setup.surrogates[item.benchmark]},
                )
            )
    return cells


def _make(setup: Setup, cells: Mapping[str, Sequence[Cell]], report: Progress) -> Reproduction:
    """Draw and write figures and tables one by one, and check their claims."""
    evidence = Evidence(
        setup.store,
        cells,
        surrogates=setup.surrogates,
        counted=setup.paper.counted,
        landscape=setup.paper.landscape,
    )
    claims: list[CheckedClaim] = []
    entries: dict[str, tuple[Entry, ...]] = {}
    for done, exhibit in enumerate(setup.exhibits):
        report("figures and tables", done, len(setup.exhibits))
        made = exhibit.make(evidence, exhibit.needs)
        if isinstance(exhibit, Table):
            entries[exhibit.name] = tuple(made)
            files = {"csv": entries_csv(made)}
        else:
            svg = svg_of(made.figure)
            files = {"png": png_of(svg), "svg": svg.encode(), "csv": csv_of(made.data)}
        _write(setup.folder, {f"{exhibit.name}.{end}": data for end, data in files.items()})
        claims += [
            CheckedClaim(exhibit, claim, tuple(claim.check(evidence, exhibit.needs)))
            for claim in exhibit.claims
        ]
    report("figures and tables", len(setup.exhibits), len(setup.exhibits))
    runs = tuple(cell for several in cells.values() for cell in several)
    return Reproduction(setup, runs, evidence.fallbacks(), tuple(claims), entries)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_atomically(folder / name, content)
    except OSError as error:
        raise StoreError(f"cannot write the reproduction to {folder}: {error}") from None
