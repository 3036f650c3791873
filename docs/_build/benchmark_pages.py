"""Pages of the registered benchmarks, made from the registry, the artifacts and their cards."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import jinja2
import numpy as np
from landscape import CROSSES, DRAWS, SAMPLES, MeanLandscape
from markdown_text import code, facts, plain, table

import hpobench_ordered as hbo
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.surrogates.bundle import find_card
from hpobench_ordered.cli.benchmarks import best_values, task_rows
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.registry import benchmark_families, benchmark_spec, suites
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.core.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.surrogates.card import Card

PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
PAGES.filters |= {"code": code, "plain": plain}


@dataclass(frozen=True)
class Page:
    """A page of a benchmark.

    Attributes:
        text: Its Markdown.
        figure: Its landscape as SVG; None where the benchmark cannot be evaluated at once.
    """

    text: str
    figure: str | None = field(repr=False)


@cache
def page(name: str) -> Page:
    """Make the page of a benchmark."""
    spec = benchmark_spec(name)
    definition = spec.define()
    space, card = definition.space, find_card(spec.artifact)
    previous = spec.previous and spec.previous.define().space
    landscape = _find_landscape(spec)
    axes = () if landscape is None else landscape.axes
    effects = {} if landscape is None else dict(zip(space.names, landscape.effects, strict=True))
    options = [(code(o.name), plain(o.summary), _needs(o, name)) for o in spec.surrogates]
    text = PAGES.get_template("benchmark.md.j2").render(
        spec=spec,
        marks=find_marks(spec),
        definition=definition,
        objective=definition.objective,
        provenance=definition.provenance,
        aim=_aim(definition),
        suites=[suite for suite, members in suites().items() if name in members],
        facts=facts,
        needs=[_needs(o, name) for o in spec.surrogates],
        trains=spec.option().trains,
        example=_example(space),
        landscape=landscape,
        axes=axes,
        crosses=CROSSES,
        draws=DRAWS,
        samples=SAMPLES,
        is_conditional=any(axis in space.conditions for axis in axes),
        space=_space(space, effects),
        previous=previous and _space(previous, {}),
        changes=previous and SpaceChange.between(previous, definition.space).describe(),
        tasks=_tasks(spec, definition, card),
        surrogates=table(("name", "what it is", "needs"), options),
        card=card,
    )
    return Page(text, None if landscape is None else landscape.svg(axes))


def _find_landscape(spec: BenchmarkSpec) -> MeanLandscape | None:
    """The landscape of a benchmark on its first surrogate that is ready and trains no model."""
    for option in spec.surrogates:
        # A landscape takes about 100 000 evaluations.
        if option.is_ready and not option.trains:
            return MeanLandscape.of(spec.load(option.name))
    return None


@cache
def overview() -> str:
    """The table of all benchmarks, then the families of names."""
    rows = []
    for name in hbo.list_benchmarks():
        spec = benchmark_spec(name)
        definition = spec.define()
        marks = find_marks(spec)
        rows.append(
            (
                f"[{name}]({name}.md)",
                str(len(definition.tasks)),
                str(definition.space.dimension),
                f"{_aim(definition)} {plain(definition.objective.name)}",
                _names_of_surrogates(spec),
                "not computed" if marks is None else ", ".join(marks.names),
                _needs(spec.surrogates[0], name),
            )
        )
    header = (
        "benchmark",
        ">tasks",
        ">dimension",
        "objective",
        "surrogates",
        "[marks](#marks)",
        "needs",
    )
    families = "\n".join(f"- {code(family.pattern)}" for family in benchmark_families())
    return f"{table(header, rows)}\n\nFurther names follow a pattern:\n\n{families}\n"


def _names_of_surrogates(spec: BenchmarkSpec) -> str:
    """Names of surrogates; repetitions of a table are only counted."""
    names = [option.name for option in spec.surrogates]
    parts = [code(name) for name in names if not name.startswith("repeat-")]
    number_of_repeats = len(names) - len(parts)
    if number_of_repeats:
        parts.append(f"{number_of_repeats} repeats")
    return ", ".join(parts)


def _example(space: SearchSpace) -> str:
    """The default configuration as Python, numbers to four digits."""
    defaults = [p.code(p.default) for p in space.parameters if p.default is not None]
    coded = np.array([defaults])
    only_active = np.where(space.active(coded), coded, np.nan)
    config = space.configs(only_active)[0]
    return repr({name: _shorten(value) for name, value in config.items()})


def _shorten(value: object) -> object:
    """Round a number to four digits; anything else stays."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _space(space: SearchSpace, effects: Mapping[str, float]) -> str:
    """The table of a search space.

    Args:
        space: The search space.
        effects: Share of the variance that each hyperparameter explains; {} for no such column.
    """
    default_of = {p.name: code(repr(_shorten(p.default))) for p in space.parameters}
    header = ["hyperparameter", "values", "active if", "default"]
    if effects:
        header.append(">effect")
    rows = []
    for name, values, active in space.described():
        cells = [code(name), plain(values), code(active), default_of.get(name, "")]
        if name in effects:
            cells.append(f"{100 * effects[name]:.0f} %")
        rows.append(cells)
    return table(header, rows)


def _tasks(spec: BenchmarkSpec, definition: Definition, card: Card | None) -> str:
    """The table of tasks, with best known values and quality."""
    figures = {} if card is None else {figures.name: figures for figures in card.figures}
    header, rows = task_rows(definition, best_values(spec), figures)
    header_of_numbers = [f">{title}" for title in header[3:]]
    cells = []
    for index, name, context, *numbers in rows:
        cells.append((index, code(name), plain(context), *numbers))
    return table([*header[:3], *header_of_numbers], cells)


def _aim(definition: Definition) -> str:
    """What is done with the objective."""
    return "minimise" if definition.objective.direction is Direction.MINIMIZE else "maximise"


def _needs(option: SurrogateOption, name: str) -> str:
    """The command that a fresh installation needs first; "" if none."""
    if option.extra is not None:
        return code(f"pip install '.[{option.extra.name}]'")
    if option.generated is not None:
        return code(f"hpobench-ordered generate {name}")
    if option.files:
        return code(f"hpobench-ordered fetch {name}")
    return ""
