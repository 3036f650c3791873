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
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.surrogates.bundle import find_card
from hpobench_ordered.cli.benchmarks import best_values, task_rows
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.benchmarks.registry import benchmark_families, benchmark_spec, suites
from hpobench_ordered.reporting.formats import NOTHING
from hpobench_ordered.space import SearchSpace, SpaceChange
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.surrogates.card import Card

PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
SUITES_IN_ORDER = (
    "othpo",
    "retrain",
    "wide",
    "openml",
    "datasets",
    "adjustments",
    "tabular",
    "distbo",
    "synthetic",
    "synthetic-ordered",
)
"""Suites in the order of the overview; it lists each benchmark once."""
NO_SUITE = "others"
"""Title of the benchmarks that no suite has."""
TITLES = {
    "othpo": "othpo: the benchmarks of the ordered-transfer paper",
    "retrain": "retrain: models trained again in every period of a stream",
    "wide": "wide: these, and more data sets of YAHPO",
    "openml": "openml: flows on data sets without an order",
    "datasets": "datasets: learners on data sets without an order, in two halves",
    "adjustments": "adjustments: search spaces that have changed",
    "distbo": "distbo: tasks that carry their training data",
    "synthetic": "synthetic: formulas",
    "synthetic-ordered": "synthetic-ordered: formulas that drift from task to task",
    "tabular": "tabular: networks, all configurations of which were trained",
}
"""Titles of the suites in the overview."""
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
    """A table of the benchmarks of each suite, then the families of names."""
    tables = []
    for suite, names in _group_by_suite().items():
        rows = [_overview_row(benchmark_spec(name)) for name in names]
        header = (
            "benchmark", "family", ">tasks", ">d", "objective", "surrogates", "[marks](#marks)",
            "needs",
        )  # fmt: skip
        tables.append(f"### {TITLES.get(suite, suite)}\n\n{table(header, rows)}")
    families = "\n".join(f"- {code(family.pattern)}" for family in benchmark_families())
    return "\n\n".join([*tables, f"Further names follow a pattern:\n\n{families}\n"])


def _group_by_suite() -> dict[str, list[str]]:
    """Benchmarks by the first suite that has them, `NO_SUITE` for none, then by family and name."""
    names_of_suite: dict[str, list[str]] = {suite: [] for suite in (*SUITES_IN_ORDER, NO_SUITE)}
    for name in sorted(hbo.list_benchmarks(), key=lambda name: (_family(name), name)):
        suites_with_it = [suite for suite in SUITES_IN_ORDER if name in suites()[suite]]
        first = suites_with_it[0] if suites_with_it else NO_SUITE
        names_of_suite[first].append(name)
    return {suite: names for suite, names in names_of_suite.items() if names}


def _family(name: str) -> str:
    """The family of a benchmark; its own name if it is not part of one."""
    return benchmark_spec(name).family or name


def _overview_row(spec: BenchmarkSpec) -> tuple[str, ...]:
    """The row of a benchmark in the table of its suite."""
    definition = spec.define()
    marks = find_marks(spec)
    return (
        f"[{spec.name}]({spec.name}.md)",
        plain(spec.family.removeprefix("retrain-")) or NOTHING,  # the suite's title has the prefix
        str(len(definition.tasks)),
        str(definition.space.dimension),
        f"{_aim(definition)[:3]} {plain(definition.objective.name)}",
        _names_of_surrogates(spec),
        "not computed" if marks is None else ", ".join(marks.names),
        _first_step(spec.surrogates[0]),
    )


def _first_step(option: SurrogateOption) -> str:
    """What a fresh installation needs first, in a word or two; "" if nothing."""
    if option.extra is not None:
        return f"extra {option.extra.name}"
    if option.generated is not None:
        return "generate"
    return "fetch" if option.files else ""


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
