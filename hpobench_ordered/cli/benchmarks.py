"""Commands on what is registered: list, methods, info, evaluate."""

import math
from collections.abc import Iterable, Mapping, Sequence

import click

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.benchmark import Benchmark, Task
from hpobench_ordered.bundle import read_card
from hpobench_ordered.cli._show import print_table, say
from hpobench_ordered.errors import ArtifactError, InvalidConfigError, UnknownNameError
from hpobench_ordered.registry import (
    benchmark_families,
    benchmark_spec,
    list_benchmarks,
    list_methods,
    load,
    method_spec,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.specs import BenchmarkSpec
from hpobench_ordered.surrogates.card import Figures


@click.command("list")
def list_() -> None:
    """List the benchmarks, what each is evaluated on, and where its evaluations come from.

    The first surrogate is the default; "offline" says whether it can be used at once, or what must
    be done first. A surrogate in brackets is not there yet.
    """
    rows = [_list_row(benchmark_spec(name)) for name in list_benchmarks()]
    print_table(("benchmark", "tasks", "d", "objective", "surrogates", "offline", "source"), rows)
    for family in benchmark_families():
        say(f"and those of the pattern {family.pattern}")


@click.command()
def methods() -> None:
    """List the methods, where each comes from, and how many earlier tasks it needs."""
    specs = [method_spec(name) for name in list_methods()]
    rows = [(spec.name, str(spec.min_history), spec.summary, spec.source) for spec in specs]
    print_table(("method", "earlier tasks", "summary", "source"), rows)


@click.command(epilog="Example:  hpobench-ordered info xgboost-mnist")
@click.argument("name")
def info(name: str) -> None:
    """Show a benchmark: objective, search space, tasks, surrogates and their quality."""
    spec = benchmark_spec(name)
    definition = spec.define()
    objective, provenance = definition.objective, definition.provenance
    click.echo(f"{spec.id}: {definition.summary}")
    unit = f" ({objective.unit})" if objective.unit else ""
    click.echo(f"objective: {objective.direction.value} {objective.name}{unit}")
    click.echo(f"paper:     {provenance.paper}")
    click.echo(f"source:    {provenance.source}")
    click.echo(f"licence:   {provenance.licence}\n")
    print_table(("hyperparameter", "range", "active"), _space_rows(definition.space))
    click.echo()
    options = [
        (o.name, f"first: {o.lacks}" if o.lacks else "ready", o.summary) for o in spec.surrogates
    ]
    print_table(("surrogate", "", ""), options)
    click.echo()
    card = None if spec.artifact is None else read_card(spec.artifact)
    figures = {f.name: f for f in card.figures} if card is not None else {}
    rows = [
        (str(i), t.name, _context(t.context), best, *_quality(figures.get(t.name)))
        for i, (t, best) in enumerate(zip(definition.tasks, _best_values(spec), strict=True))
    ]
    headers = ("index", "task", "context", "best known", "R2", "Spearman", "top decile")
    print_table(headers[: None if figures else 4], rows)
    if card is not None:
        click.echo()
        click.echo(card.describe())


@click.command(
    epilog="Example:  hpobench-ordered evaluate newsvendor --task 0 price_0=9 price_1=9 price_2=9"
)
@click.argument("name")
@click.argument("settings", nargs=-1, metavar="HYPERPARAMETER=VALUE...")
@click.option("--task", required=True, help="Name of the task, or else its index from 0.")
@click.option("--surrogate", help="What to evaluate on; the default one without.")
def evaluate(name: str, settings: tuple[str, ...], task: str, surrogate: str | None) -> None:
    """Evaluate one configuration; prints the objective's value."""
    benchmark = load(name, surrogate=surrogate)
    config = parse_config(settings, benchmark.space)
    click.echo(repr(_task(benchmark, task).evaluate(config)))


def parse_config(settings: Sequence[str], space: SearchSpace) -> Config:
    """Read a configuration from HYPERPARAMETER=VALUE words.

    Raises:
        InvalidConfigError: A word is malformed or given twice, or a value is not what its
            hyperparameter takes.
    """
    config: Config = {}
    for word in settings:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidConfigError(f"expected HYPERPARAMETER=VALUE, got {word!r}")
        if name in config:
            raise InvalidConfigError(f"hyperparameter {name!r} is given twice")
        if name in space.constants:
            config[name] = _match(text, [space.constants[name]])
        else:
            config[name] = _value(text, space[name])
    return config


def _list_row(spec: BenchmarkSpec) -> tuple[str, ...]:
    options = " ".join(o.name if o.is_ready else f"[{o.name}]" for o in spec.surrogates)
    lacks = spec.option().lacks
    offline = f"no: {lacks}" if lacks else "yes"
    try:
        definition = spec.define()
    except ArtifactError:
        return spec.id, "-", "-", "damaged", options, offline, spec.summary
    tasks, dimension = str(len(definition.tasks)), str(definition.space.dimension)
    objective = f"{definition.objective.direction.value} {definition.objective.name}"
    source = definition.provenance.source.partition(",")[0]  # `info` has the rest
    return spec.id, tasks, dimension, objective, options, offline, source


def _value(text: str, parameter: Parameter) -> Value:
    """The choice that is written so, or the number."""
    if parameter.choices:
        return _match(text, parameter.choices)
    try:
        number = float(text)
    except ValueError:
        return text  # validation says what is wrong with it
    return int(number) if math.isfinite(number) and number.is_integer() else number


def _match(text: str, values: Iterable[Value]) -> Value:
    """The value that is written so, or the text: validation says what is wrong with it."""
    return next((value for value in values if str(value) == text), text)


def _task(benchmark: Benchmark, text: str) -> Task:
    """Find a task by its name, or else by its index.

    Raises:
        UnknownNameError: There is no such task.
    """
    names = [task.name for task in benchmark.tasks]
    if text not in names and text.isdecimal() and int(text) < len(names):
        return benchmark.tasks[int(text)]
    if text not in names:
        hint = f" (or an index, 0 to {len(names) - 1})"
        raise UnknownNameError("task", text, names, hint=hint)
    return benchmark.task(text)


def _space_rows(space: SearchSpace) -> list[tuple[str, str, str]]:
    rows = [(p.name, p.describe(), space.describe_condition(p.name)) for p in space.parameters]
    return rows + [(name, f"always {value!r}", "") for name, value in space.constants.items()]


def _best_values(spec: BenchmarkSpec) -> list[str]:
    """Best known values of the first surrogate that is ready, as text."""
    ready = next((o.name for o in spec.surrogates if o.is_ready), None)
    if ready is None:
        return ["-"] * len(spec.define().tasks)
    tasks = spec.load(ready).tasks
    return ["-" if t.best_value is None else f"{t.best_value:.6g}" for t in tasks]


def _quality(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return ()
    return tuple(f"{x:.3f}" for x in (figures.r2, figures.spearman, figures.top_decile))


def _context(context: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {value:.6g}" for name, value in context.items())
