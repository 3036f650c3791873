"""Commands on benchmarks and methods: list, methods, info, evaluate."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import click

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.cli._completion import (
    complete_benchmark,
    complete_suite,
    complete_surrogate,
    surrogate_names,
)
from hpobench_ordered.cli._options import json_option
from hpobench_ordered.cli._show import print_json, print_table, say
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.core.suites import suite
from hpobench_ordered.errors import ArtifactError, InvalidConfigError, UnknownNameError
from hpobench_ordered.files.bundle import find_card
from hpobench_ordered.registry import (
    benchmark_families,
    benchmark_spec,
    list_benchmarks,
    list_methods,
    load,
    method_spec,
)
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.card import Figures


@click.command("list", epilog="Example:  hpobench-ordered list yahpo --ready")
@click.argument("text", default="", shell_complete=complete_benchmark)
@click.option("--suite", "suite_name", shell_complete=complete_suite, help="Only of this suite.")
@click.option("--ready", is_flag=True, help="Only what can be used at once.")
@click.option(
    "--surrogate",
    shell_complete=complete_surrogate,
    help="Only what has this surrogate; with --ready, what can be evaluated on it at once.",
)
@json_option
def list_(
    text: str, suite_name: str | None, ready: bool, surrogate: str | None, as_json: bool
) -> None:
    """List the benchmarks, what each is evaluated on, and where its evaluations come from.

    With TEXT only those whose name, objective or source contains it. The first surrogate is the
    default; "offline" says whether it can be used at once, or what must be done first. A surrogate
    in brackets has to be fetched, installed or generated. Marks: on a "plateau" many random
    configurations are near the best; "copying" the best of the task before is enough. `info` has
    the figures.
    """
    names = list_benchmarks() if suite_name is None else suite(suite_name)
    if surrogate is not None and surrogate not in (known := surrogate_names(list_benchmarks())):
        raise UnknownNameError("surrogate", surrogate, known)
    specs = [spec for spec in map(benchmark_spec, names) if _has(spec, surrogate, ready=ready)]
    entries = [entry for entry in map(_entry, specs) if text.lower() in _searched(entry)]
    if as_json:
        print_json(entries)
        return
    headers = ("benchmark", "tasks", "d", "objective", "surrogates", "offline", "marks", "source")
    print_table(headers, map(_list_row, entries))
    if not entries:
        say("no benchmark matches")
    if not (text or suite_name or ready or surrogate):
        for family in benchmark_families():
            say(f"and those of the pattern {family.pattern}")


@click.command()
@json_option
def methods(as_json: bool) -> None:
    """List the methods, where each comes from, and how many earlier tasks it needs."""
    specs = [method_spec(name) for name in list_methods()]
    if as_json:
        shown = ("name", "min_history", "changed_spaces", "uses_data", "summary", "source")
        print_json([{name: getattr(spec, name) for name in shown} for spec in specs])
        return
    rows = [(spec.name, str(spec.min_history), spec.summary, spec.source) for spec in specs]
    print_table(("method", "earlier tasks", "summary", "source"), rows)


@click.command(epilog="Example:  hpobench-ordered info xgboost-mnist")
@click.argument("name", shell_complete=complete_benchmark)
@json_option
def info(name: str, as_json: bool) -> None:
    """Show a benchmark: objective, search space, tasks, surrogates and their quality."""
    spec = benchmark_spec(name)
    definition = spec.define()
    card = find_card(spec.artifact)
    figures = {f.name: f for f in card.figures} if card is not None else {}
    best = best_values(spec)
    if as_json:
        print_json(_described(spec, definition, best, figures))
        return
    objective, provenance = definition.objective, definition.provenance
    click.echo(f"{spec.id}: {definition.summary}")
    unit = f" ({objective.unit})" if objective.unit else ""
    click.echo(f"objective: {objective.direction.value} {objective.name}{unit}")
    click.echo(f"paper:     {provenance.paper}")
    click.echo(f"source:    {provenance.source}")
    click.echo(f"licence:   {provenance.licence}")
    click.echo(f"data:      {_data(spec)}")
    click.echo(f"family:    {spec.family or 'itself'}")
    click.echo(f"marks:     {_marks(spec)}\n")
    print_table(("hyperparameter", "range", "active"), definition.space.described())
    click.echo()
    if spec.previous is not None:
        click.echo(f"What changed in the search space since {spec.previous.name}:")
        for sentence in _changes(spec.previous, definition):
            click.echo(f"  {sentence}")
        click.echo()
    options = [
        (o.name, f"first: {o.lacks}" if o.lacks else "ready", o.summary) for o in spec.surrogates
    ]
    print_table(("surrogate", "state", ""), options)
    click.echo()
    print_table(*task_rows(definition, best, figures))
    if card is not None:
        click.echo()
        click.echo(card.describe())


@click.command(
    epilog="Example:  hpobench-ordered evaluate newsvendor --task 0 price_0=9 price_1=9 price_2=9"
)
@click.argument("name", shell_complete=complete_benchmark)
@click.argument("settings", nargs=-1, metavar="HYPERPARAMETER=VALUE...")
@click.option("--task", required=True, help="Name of the task, or else its index from 0.")
@click.option(
    "--surrogate",
    shell_complete=complete_surrogate,
    help="What to evaluate on.  [default: the benchmark's first]",
)
def evaluate(name: str, settings: tuple[str, ...], task: str, surrogate: str | None) -> None:
    """Evaluate one configuration; prints the objective's value."""
    benchmark = load(name, surrogate=surrogate)
    config = parse_config(settings, benchmark.space)
    by_name = any(task == one.name for one in benchmark.tasks) or not task.isdecimal()
    click.echo(repr(benchmark.task(task if by_name else int(task)).evaluate(config)))


def parse_config(settings: Sequence[str], space: SearchSpace) -> Config:
    """Read a configuration from HYPERPARAMETER=VALUE words."""
    config: Config = {}
    for word in settings:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidConfigError(f"settings must be HYPERPARAMETER=VALUE, but got {word!r}")
        if name in config:
            raise InvalidConfigError(f"hyperparameter {name!r} is given twice")
        if name in space.constants:
            config[name] = _match(text, [space.constants[name]])
        else:
            config[name] = _value(text, space[name])
    return config


def aligned(values: Sequence[float | None]) -> list[str]:
    """Format a column with the decimals that the largest of six digits needs, "-" for None."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    largest = max(map(abs, known), default=0.0)
    shown = 5 - math.floor(math.log10(largest)) if largest else 0
    texts = ["-" if value is None else f"{value:.{max(shown, 0)}f}" for value in values]
    while any("." in text for text in texts) and all(text[-1] in "0-." for text in texts):
        texts = [text[:-1] if "." in text else text for text in texts]
    return texts


def _has(spec: BenchmarkSpec, surrogate: str | None, *, ready: bool) -> bool:
    """Whether a benchmark has a surrogate, which must be ready if `ready`."""
    options = [option for option in spec.surrogates if surrogate in (None, option.name)]
    return bool(options) and (not ready or options[0].is_ready)


def _entry(spec: BenchmarkSpec) -> dict[str, Any]:
    """The entry of a benchmark in `list`; without definition if its files are damaged."""
    entry: dict[str, Any] = {
        "name": spec.name,
        "version": spec.version,
        **dict.fromkeys(("tasks", "dimension", "direction", "objective")),
        "source": spec.summary,
        "family": spec.family,
        "marks": None,
        "surrogates": [{"name": o.name, "ready": o.is_ready} for o in spec.surrogates],
        "lacks": spec.option().lacks,
    }
    with suppress(ArtifactError):
        definition = spec.define()
        entry |= {
            "tasks": len(definition.tasks),
            "dimension": definition.space.dimension,
            "direction": definition.objective.direction.value,
            "objective": definition.objective.name,
            "source": definition.provenance.source,
            "marks": spec.marks and list(spec.marks.names),
        }
    return entry


def _searched(entry: Mapping[str, Any]) -> str:
    return "\n".join(str(entry[field]) for field in ("name", "objective", "source")).lower()


def _list_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    options = [o["name"] if o["ready"] else f"[{o['name']}]" for o in entry["surrogates"]]
    offline = f"no: {entry['lacks']}" if entry["lacks"] else "yes"
    marks = "-" if entry["marks"] is None else " ".join(entry["marks"])
    first, last = f"{entry['name']}@{entry['version']}", (" ".join(options), offline, marks)
    if entry["tasks"] is None:
        return first, "-", "-", "damaged", *last, entry["source"]
    objective = f"{entry['direction']} {entry['objective']}"
    source = entry["source"].partition(",")[0]  # `info` has the rest
    return first, str(entry["tasks"]), str(entry["dimension"]), objective, *last, source


def _data(spec: BenchmarkSpec) -> str:
    """Whether the tasks carry training data."""
    if spec.data is None:
        return "none; methods that use the training data of tasks cannot run on it"
    return "every task's training data" + (", once fetched" if spec.data.missing else "")


def _marks(spec: BenchmarkSpec) -> str:
    """Whether it is a plateau or solved by copying."""
    command = f"hpobench-ordered generate marks {spec.name}"
    return spec.marks.describe() if spec.marks else f"not computed; compute them by: {command}"


def _described(
    spec: BenchmarkSpec,
    definition: Definition,
    best: Sequence[float | None],
    figures: Mapping[str, Figures],
) -> dict[str, Any]:
    """The data that `info` shows."""
    objective = definition.objective
    tasks = []
    for task, value in zip(definition.tasks, best, strict=True):
        quality = asdict(figures[task.name]) if task.name in figures else None
        known = {"context": dict(task.context), "best_value": value, "quality": quality}
        tasks.append({"name": task.name, **known})
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
        "marks": spec.marks and {**asdict(spec.marks), "names": spec.marks.names},
        "space": definition.space.to_json(),
        "previous": spec.previous
        and {
            "name": spec.previous.name,
            "space": spec.previous.define().space.to_json(),
            "changes": _changes(spec.previous, definition),
        },
        "surrogates": [
            {"name": o.name, "summary": o.summary, "ready": o.is_ready, "lacks": o.lacks}
            for o in spec.surrogates
        ],
        "tasks": tasks,
    }


def _changes(previous: BenchmarkSpec, definition: Definition) -> Sequence[str]:
    """What changed in the search space by an adjustment."""
    return SpaceChange.between(previous.define().space, definition.space).describe()


def _value(text: str, parameter: Parameter) -> Value:
    """The choice or number that a text stands for."""
    if parameter.choices:
        return _match(text, parameter.choices)
    try:
        number = float(text)
    except ValueError:
        return text  # validation rejects it
    return int(number) if number.is_integer() else number


def _match(text: str, values: Iterable[Value]) -> Value:
    """The value written as this text, or the text itself, which validation rejects."""
    return next((value for value in values if str(value) == text), text)


def task_rows(
    definition: Definition, best: Sequence[float | None], figures: Mapping[str, Figures]
) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Headers and a row per task: context, best known value, and quality if known."""
    rows = [
        (str(i), task.name, _context(task.context), value, *_quality(figures.get(task.name)))
        for i, (task, value) in enumerate(zip(definition.tasks, aligned(best), strict=True))
    ]
    headers = ("index", "task", "context", "best known", "R2", "Spearman", "top decile")
    return headers[: None if figures else 4], rows


def best_values(spec: BenchmarkSpec) -> list[float | None]:
    """Best known values on the first surrogate that is ready; None if none is."""
    ready = next((o.name for o in spec.surrogates if o.is_ready), None)
    if ready is None:
        return [None] * len(spec.define().tasks)
    return [task.best_value for task in spec.load(ready).tasks]


def _quality(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return ()
    return tuple(f"{x:.3f}" for x in (figures.r2, figures.spearman, figures.top_decile))


def _context(context: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {value:.6g}" for name, value in context.items())
