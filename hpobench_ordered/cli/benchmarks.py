"""Commands that show benchmarks and methods: list, info."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.benchmarks.registry import (
    benchmark_families,
    benchmark_spec,
    list_benchmarks,
    suite,
)
from hpobench_ordered.cli._completion import (
    complete_benchmark,
    complete_suite,
)
from hpobench_ordered.cli._options import json_option
from hpobench_ordered.cli._output import print_json, print_table, print_text, say
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.space import SpaceChange
from hpobench_ordered.surrogates.bundle import find_card
from hpobench_ordered.surrogates.card import TaskQuality


@click.command("list", epilog="Example:  hpobench-ordered list yahpo --ready")
@click.argument("text", default="", shell_complete=complete_benchmark)
@click.option("--suite", "suite_name", shell_complete=complete_suite, help="Only of this suite.")
@click.option("--ready", is_flag=True, help="Only what can be used at once.")
@click.option(
    "--methods",
    "shows_methods",
    is_flag=True,
    help="List the methods instead, after those that are recommended for each situation.",
)
@json_option
def list_(
    text: str,
    suite_name: str | None,
    ready: bool,
    shows_methods: bool,
    as_json: bool,
) -> None:
    """List the benchmarks, a line each, and what each is evaluated on; or list the methods.

    With TEXT only those whose name, objective or source contains it. The first surrogate is the
    default; "offline" says whether it can be used at once, or what must be done first. A surrogate
    in brackets has to be fetched, installed or generated. Marks: on a "plateau" many random
    configurations are near the best; "copying" the best of the task before is enough; so is, for
    "portfolio", the best on average on all other tasks. `info` has the figures, and the source.
    """
    is_filtered = bool(text or suite_name or ready)
    if shows_methods:
        if is_filtered:
            raise click.UsageError("--methods lists all methods: it takes no TEXT and no filter")
        print_methods(as_json=as_json)
        return

    names = list_benchmarks() if suite_name is None else suite(suite_name)
    entries = []
    for name in names:
        spec = benchmark_spec(name)
        can_be_listed = spec.option().is_ready or not ready
        if can_be_listed:
            entries.append(describe_in_list(spec))
    entries = [entry for entry in entries if contains_text(entry, text)]

    if as_json:
        print_json(entries)
        return
    headers = ("benchmark", "tasks", "d", "objective", "surrogates", "offline", "marks")
    print_table(headers, map(_format_entry, entries))
    if not entries:
        say("no benchmark matches")
    if not is_filtered:
        for family in benchmark_families():
            say(f"and those of the pattern {family.pattern}")


def describe_in_list(spec: BenchmarkSpec) -> dict[str, Any]:
    """The entry of a benchmark in `list`; without definition if its files are damaged."""
    entry: dict[str, Any] = {
        "name": spec.name,
        "version": spec.version,
        "tasks": None,
        "dimension": None,
        "direction": None,
        "objective": None,
        "source": spec.summary,
        "family": spec.family,
        "marks": None,
        "surrogates": [{"name": o.name, "ready": o.is_ready} for o in spec.surrogates],
        "lacks": spec.option().lacks,
    }
    try:
        definition = spec.define()
        marks = find_marks(spec)
    except ArtifactError:
        return entry
    return entry | {
        "tasks": len(definition.tasks),
        "dimension": definition.space.dimension,
        "direction": definition.objective.direction.value,
        "objective": definition.objective.name,
        "source": definition.provenance.source,
        "marks": None if marks is None else list(marks.names),
    }


def contains_text(entry: Mapping[str, Any], text: str) -> bool:
    """Whether the name, objective or source of an entry contains a text, in any case."""
    searched = [str(entry[field]).lower() for field in ("name", "objective", "source")]
    return any(text.lower() in value for value in searched)


def _format_surrogate_names(surrogates: Iterable[Mapping[str, Any]]) -> str:
    """Write the names of surrogates in a line, such as "forest [table] 4 repeats".

    Surrogates that cannot be used at once are in brackets. Surrogates that repeat a table, named
    "repeat-1" and so on, are only counted.
    """
    words = []
    repeats = 0
    for surrogate in surrogates:
        name = surrogate["name"]
        if name.startswith("repeat-"):
            repeats += 1
        else:
            words.append(name if surrogate["ready"] else f"[{name}]")
    if repeats:
        words.append(f"{repeats} repeats")
    return " ".join(words)


def _format_entry(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Make the row of a benchmark in the table of `list`, from what `describe_in_list` gives."""
    is_damaged = entry["tasks"] is None
    return (
        f"{entry['name']}@{entry['version']}",
        "-" if is_damaged else str(entry["tasks"]),
        "-" if is_damaged else str(entry["dimension"]),
        "damaged" if is_damaged else f"{entry['direction']} {entry['objective']}",
        _format_surrogate_names(entry["surrogates"]),
        f"no: {entry['lacks']}" if entry["lacks"] else "yes",
        "-" if entry["marks"] is None else " ".join(entry["marks"]),
    )


def describe_method(spec: MethodSpec) -> dict[str, Any]:
    """What `list --methods` and `info` say of a method as JSON."""
    fields = ("name", "min_history", "changed_spaces", "uses_data", "summary", "source")
    return {field: getattr(spec, field) for field in fields}


def print_methods(*, as_json: bool) -> None:
    """Print which method to use when, and then all methods by kind, with what each needs.

    The recommendations are computed from the reference results, which come with the package. As
    JSON there are the methods alone, with their sources.
    """
    specs = [method_spec(name) for name in list_methods()]
    if as_json:
        print_json([describe_method(spec) for spec in specs])
        return

    # Imported here, as most commands do not need it and start faster without it.
    from hpobench_ordered.reporting.recommendations import HEADERS, NOTE, read_recommendations

    # Situations may be broken into lines, so that names in the column of evidence need not be.
    # What a method needs is in the list below.
    rows_of_situations = [recommendation.row[:-1] for recommendation in read_recommendations()]
    print_table(HEADERS[:-1], rows_of_situations, column_of_names=HEADERS.index("method"))
    click.echo()
    print_text(NOTE)
    for kind in MethodKind:
        click.echo(f"\n{kind.value}:")
        rows = []
        for spec in specs:
            if spec.kind is kind:
                rows.append((spec.name, ", ".join(spec.needs) or "nothing", spec.summary))
        print_table(("method", "needs", "summary"), rows)


@click.command(epilog="Example:  hpobench-ordered info xgboost-mnist")
@click.argument("name", shell_complete=complete_benchmark)
@json_option
@click.option("--bibtex", "shows_bibtex", is_flag=True, help="What to cite, as BibTeX.")
def info(name: str, as_json: bool, shows_bibtex: bool) -> None:
    """Show a benchmark: objective, search space, tasks, surrogates and their quality.

    Of a method it shows what it is, what it needs and where it comes from.
    """
    if shows_bibtex:
        click.echo(read_bibtex(name), nl=False)
        return
    if name in list_methods():
        print_method(method_spec(name), as_json=as_json)
        return

    spec = benchmark_spec(name)
    definition = spec.define()
    card = find_card(spec.artifact)
    figures = {} if card is None else {figure.name: figure for figure in card.figures}
    best = best_values(spec)
    if as_json:
        print_json(describe_as_json(spec, definition, best, figures))
        return

    _print_definition(spec, definition)
    click.echo()
    print_table(("hyperparameter", "range", "active"), definition.space.described())
    click.echo()
    if spec.previous is not None:
        _print_space_changes(spec.previous, definition)
    print_table(("surrogate", "state", ""), map(_format_surrogate, spec.surrogates))
    click.echo()
    print_table(*task_rows(definition, best, figures))
    if card is not None:
        click.echo()
        click.echo(card.describe())


def print_method(spec: MethodSpec, *, as_json: bool) -> None:
    """Print what a method is, what it needs, and its source."""
    if as_json:
        print_json(describe_method(spec))
        return
    click.echo(f"{spec.name}, a method, version {spec.version}")
    print_text(spec.summary)
    click.echo()
    print_text(f"group:  {spec.kind.value}")
    print_text(f"needs:  {', '.join(spec.needs) or 'nothing'}")
    print_text(f"source: {spec.source}")


def read_bibtex(name: str) -> str:
    """The BibTeX entries of what to cite for a method or a benchmark, and for this package."""
    if name in list_methods():
        return method_spec(name).bibtex
    return benchmark_spec(name).define().provenance.bibtex


def _print_definition(spec: BenchmarkSpec, definition: Definition) -> None:
    """Print the facts about a benchmark, each on its own line."""
    objective = definition.objective
    provenance = definition.provenance
    unit = f" ({objective.unit})" if objective.unit else ""
    click.echo(f"{spec.id}: {definition.summary}")
    click.echo(f"objective: {objective.direction.value} {objective.name}{unit}")
    click.echo(f"paper:     {provenance.paper}")
    click.echo(f"source:    {provenance.source}")
    click.echo(f"licence:   {provenance.licence}")
    click.echo(f"data:      {_describe_data(spec)}")
    click.echo(f"family:    {spec.family or 'itself'}")
    click.echo(f"marks:     {_describe_marks(spec)}")


def _describe_data(spec: BenchmarkSpec) -> str:
    """Say whether the tasks carry the training data of their models."""
    if spec.data is None:
        return "none; methods that use the training data of tasks cannot run on it"
    if spec.data.missing:  # files that are not downloaded yet
        return "every task's training data, once fetched"
    return "every task's training data"


def _describe_marks(spec: BenchmarkSpec) -> str:
    """Say which marks a benchmark has, with the figures behind them."""
    marks = find_marks(spec)
    if marks is None:
        return f"not computed; compute them by: hpobench-ordered generate marks {spec.name}"
    return marks.describe()


def _print_space_changes(previous: BenchmarkSpec, definition: Definition) -> None:
    """Print what changed since the benchmark before an adjustment of the search space."""
    click.echo(f"What changed in the search space since {previous.name}:")
    for sentence in describe_space_changes(previous, definition):
        click.echo(f"  {sentence}")
    click.echo()


def _format_surrogate(option: SurrogateOption) -> tuple[str, str, str]:
    """Make the row of a surrogate in the table of `info`: name, state and summary."""
    # `lacks` says what must be done before it can be used; "" if it can be used at once.
    state = f"first: {option.lacks}" if option.lacks else "ready"
    return option.name, state, option.summary


def describe_as_json(
    spec: BenchmarkSpec,
    definition: Definition,
    best: Sequence[float | None],
    figures: Mapping[str, TaskQuality],
) -> dict[str, Any]:
    """The data that `info` shows.

    Args:
        spec: The benchmark.
        definition: Its definition.
        best: Best known value of each task.
        figures: Quality of the surrogate by name of the task.
    """
    objective = definition.objective
    tasks = []
    for task, best_value in zip(definition.tasks, best, strict=True):
        quality = figures.get(task.name)
        tasks.append(
            {
                "name": task.name,
                "context": dict(task.context),
                "best_value": best_value,
                "quality": None if quality is None else asdict(quality),
            }
        )
    marks = find_marks(spec)
    return {
        "name": spec.name,
        "version": spec.version,
        "summary": definition.summary,
        "objective": {
            "name": objective.name,
            "direction": objective.direction.value,
            "unit": objective.unit,
        },
        "provenance": asdict(definition.provenance),
        "has_data": spec.data is not None,
        "family": spec.family,
        "marks": None if marks is None else {**asdict(marks), "names": marks.names},
        "space": definition.space.to_json(),
        "previous": _describe_previous(spec.previous, definition),
        "surrogates": [
            {"name": o.name, "summary": o.summary, "ready": o.is_ready, "lacks": o.lacks}
            for o in spec.surrogates
        ],
        "tasks": tasks,
    }


def _describe_previous(
    previous: BenchmarkSpec | None, definition: Definition
) -> dict[str, Any] | None:
    """Describe the benchmark before the adjustment of its search space, and what changed.

    The result is None if there is no such benchmark.
    """
    if previous is None:
        return None
    return {
        "name": previous.name,
        "space": previous.define().space.to_json(),
        "changes": describe_space_changes(previous, definition),
    }


def describe_space_changes(previous: BenchmarkSpec, definition: Definition) -> Sequence[str]:
    """Sentences on what an adjustment changed in the search space."""
    return SpaceChange.between(previous.define().space, definition.space).describe()


def task_rows(
    definition: Definition, best: Sequence[float | None], figures: Mapping[str, TaskQuality]
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Headers and a row per task: context, best known value, and quality if there are figures.

    Args:
        definition: The benchmark's definition.
        best: Best known value of each task.
        figures: Quality of the surrogate by name of the task, or nothing.
    """
    headers = ["index", "task", "context", "best known"]
    if figures:
        headers += ["R2", "Spearman", "top decile"]
    rows: list[tuple[str, ...]] = []
    for index, (task, best_value) in enumerate(zip(definition.tasks, best, strict=True)):
        context = ", ".join(f"{name}: {value:.6g}" for name, value in task.context.items())
        best_text = "-" if best_value is None else f"{best_value:.6g}"
        cells = [str(index), task.name, context, best_text]
        if task.name in figures:
            quality = figures[task.name]
            cells += [f"{x:.3f}" for x in (quality.r2, quality.spearman, quality.top_decile)]
        rows.append(tuple(cells))
    return headers, rows


def best_values(spec: BenchmarkSpec) -> list[float | None]:
    """Best known value of each task on the first surrogate that is ready; None if none is."""
    for option in spec.surrogates:
        if option.is_ready:
            return [task.best_value for task in spec.load(option.name).tasks]
    return [None] * len(spec.define().tasks)
