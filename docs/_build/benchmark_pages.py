"""Pages of the registered benchmarks: what registry, artifacts and cards say of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import landscape
import numpy as np
from markdown_text import code, facts, plain, table

import hpobench_ordered as hbo
from hpobench_ordered.benchmark import Benchmark, Definition, Task
from hpobench_ordered.bundle import read_card
from hpobench_ordered.objective import Direction
from hpobench_ordered.registry import benchmark_families, benchmark_spec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.suites import SUITES
from hpobench_ordered.surrogates.card import Card, Figures

KINDS = {
    Kind.FLOAT: "number",
    Kind.INTEGER: "integer",
    Kind.CATEGORICAL: "categorical",
    Kind.ORDINAL: "ordinal",
}

FIRST = {
    "": "",
    "extra": "Its tables come with another package: install the extra `tables` first.",
    "generate": "It has to be generated first: `hpobench-ordered generate {name}`.",
    "fetch": "Its files have to be fetched first: `hpobench-ordered fetch {name}`.",
}
"""What to do first, by the first word of what a surrogate needs."""


@dataclass(frozen=True)
class Page:
    """A page of a benchmark.

    Attributes:
        text: Its Markdown.
        figure: Its landscape as SVG; None where the benchmark cannot be evaluated at once.
    """

    text: str
    figure: bytes | None = field(repr=False)


@cache
def page(name: str) -> Page:
    """Make the page of a benchmark."""
    spec = benchmark_spec(name)
    ready = next((o.name for o in spec.surrogates if o.is_ready), None)
    benchmark = None if ready is None else spec.load(ready)
    sample = None if benchmark is None else landscape.Sample.of(benchmark)
    shares = None if sample is None else landscape.effects(sample)
    figure, caption = None, _no_landscape(spec)
    if benchmark is not None and sample is not None and shares is not None:
        axes = landscape.axes_of(benchmark, shares)
        figure = landscape.draw(sample, axes)
        caption = _caption(benchmark, axes)
    definition = spec.define()
    card = None if spec.artifact is None else read_card(spec.artifact)
    sections = [
        f"# {name}",
        plain(spec.summary),
        _facts(spec, definition),
        "## Use",
        _use(spec, definition),
        "## Landscape",
        caption,
        "## Search space",
        _space(definition.space, shares),
        *_before(spec),
        f"## Tasks\n\n{_order(definition)}",
        _tasks(definition, benchmark, card),
        "## Surrogates",
        _surrogates(spec),
        *_quality(card),
    ]
    return Page("\n\n".join(sections) + "\n", figure)


@cache
def overview() -> str:
    """The table of all benchmarks, then the families of names."""
    rows = []
    for name in hbo.list_benchmarks():
        spec = benchmark_spec(name)
        definition = spec.define()
        rows.append(
            (
                f"[{name}]({name}.md)",
                str(len(definition.tasks)),
                str(definition.space.dimension),
                f"{_aim(definition)} {plain(definition.objective.name)}",
                _names(spec.surrogates),
                plain(_needs(spec.surrogates[0])),
            )
        )
    header = ("benchmark", ">tasks", ">dimension", "objective", "surrogates", "needs")
    families = "\n".join(f"- {code(family.pattern)}" for family in benchmark_families())
    return f"{table(header, rows)}\n\nFurther names follow a pattern:\n\n{families}\n"


def _names(options: Sequence[SurrogateOption]) -> str:
    """Names of surrogates, repetitions of a table counted."""
    repeats = [option for option in options if option.name.startswith("repeat-")]
    shown = [code(option.name) for option in options if option not in repeats]
    return ", ".join(shown + [f"{len(repeats)} repeats"] * bool(repeats))


def _facts(spec: BenchmarkSpec, definition: Definition) -> str:
    objective, provenance = definition.objective, definition.provenance
    suites = [name for name, members in SUITES.items() if spec.name in members]
    return facts(
        [
            ("Objective", f"{_aim(definition)} {code(objective.name)}, {plain(objective.unit)}"),
            ("Defined in", plain(provenance.paper)),
            ("Evaluations", plain(provenance.source)),
            ("Licence", plain(provenance.licence)),
            ("Version", code(spec.id)),
            ("Suite", ", ".join(code(name) for name in suites)),
        ]
    )


def _use(spec: BenchmarkSpec, definition: Definition) -> str:
    config = definition.space.configs(_default(definition.space)[None])[0]
    arguments = ", ".join(f'"{key}": {_short(value)}' for key, value in config.items())
    first = FIRST[_needs(spec.surrogates[0]).partition(" ")[0]].format(name=spec.name)
    lines = [
        "```python",
        "import hpobench_ordered as hbo",
        "",
        f'bench = hbo.load("{spec.name}")',
        "task = bench.tasks[0]",
        f"task.evaluate({{{arguments}}})",
        "```",
    ]
    return (f"{first}\n\n" if first else "") + "\n".join(lines)


def _default(space: SearchSpace) -> np.ndarray:
    """Coded defaults, what is inactive then being NaN, shape (d,)."""
    coded = np.array([[p.code(p.default) for p in space.parameters if p.default is not None]])
    return np.where(space.active(coded), coded, np.nan)[0]


def _caption(benchmark: Benchmark, axes: Sequence[str]) -> str:
    tasks = ", ".join(task.name for task in landscape.shown_tasks(benchmark))
    alt = f"Objective by {' and '.join(axes)} on tasks {tasks}"
    image = f"![{plain(alt)}](figures/{benchmark.name}.svg)"
    if len(axes) == 1:
        said = "The function on the first, the middle and the last task; the cross is its optimum."
    else:
        hidden = ""
        if any(name in benchmark.space.conditions for name in axes):
            hidden = " Grey: a hyperparameter is inactive there; crosses there are not drawn."
        said = (
            f"The {plain(benchmark.objective.name.replace('_', ' '))} on the first, the middle and "
            f"the last task (surrogate {code(benchmark.surrogate)}): every cell is the mean over "
            f"{landscape.DRAWS} random draws of the other hyperparameters. Bright is good; each "
            "panel has its own scale, on which the worst 5 % of the cells look the same. "
            f"Crosses: the best {landscape.CROSSES} of {landscape.SAMPLES} random "
            f"configurations.{hidden}"
        )
    return f'<div class="landscape" markdown>\n{image}\n</div>\n\n{said}'


def _no_landscape(spec: BenchmarkSpec) -> str:
    needs = " ".join(dict.fromkeys(FIRST[_needs(o).partition(" ")[0]] for o in spec.surrogates))
    return (
        "There is no figure: when this page was built, none of the benchmark's surrogates could be "
        f"used. {needs.format(name=spec.name)}"
    )


def _space(space: SearchSpace, shares: "np.ndarray | None") -> str:
    rows = []
    for j, parameter in enumerate(space.parameters):
        row = [code(parameter.name), KINDS[parameter.kind], *_range(parameter)]
        if space.conditions:
            row.append(code(space.describe_condition(parameter.name)))
        if shares is not None:
            row.append(f"{100 * shares[j]:.0f} %")
        rows.append(row)
    header = ["hyperparameter", "kind", "values", "scale", "default"]
    header += ["active if"] * bool(space.conditions) + [">effect"] * (shares is not None)
    text = table(header, rows)
    if space.constants:
        fixed = ", ".join(f"{code(name)} = {code(repr(v))}" for name, v in space.constants.items())
        text += f"\n\nFixed: {fixed}."
    if shares is not None:
        text += (
            "\n\nEffect: the share of the variance of the ranks of 4000 random configurations that "
            "the hyperparameter explains alone (epsilon squared), the mean over the tasks in the "
            "figure. Interactions are what is missing to 100 %."
        )
    return text


def _range(parameter: Parameter) -> tuple[str, str, str]:
    default = code(_short(parameter.default))
    if parameter.choices:
        return ", ".join(code(repr(choice)) for choice in parameter.choices), "", default
    low, high = parameter.value(parameter.lower), parameter.value(parameter.upper)
    return code(f"{low:.6g} to {high:.6g}"), "log" if parameter.log else "linear", default


def _short(value: object) -> str:
    """A value as Python, a float to four digits."""
    return repr(float(f"{value:.4g}")) if isinstance(value, float) else repr(value)


def _before(spec: BenchmarkSpec) -> list[str]:
    if spec.previous is None:
        return []
    return [
        "### Before the adjustment",
        "The search space of the first optimisation (see [protocols](../protocols.md#adjustment)).",
        _space(spec.previous.define().space, None),
    ]


def _order(definition: Definition) -> str:
    names = list(dict.fromkeys(name for task in definition.tasks for name in task.context))
    known = ", ".join(code(name) for name in names)
    tail = f" A method may know {known} of each (`context`)." if names else ""
    return f"{len(definition.tasks)} tasks, in this order.{tail}"


def _tasks(definition: Definition, benchmark: Benchmark | None, card: Card | None) -> str:
    figures = {f.name: f for f in card.figures} if card is not None else {}
    names = list(dict.fromkeys(name for task in definition.tasks for name in task.context))
    header = [">", "task", *(f">{plain(name)}" for name in names), ">best known"]
    header += [">R²", ">Spearman", ">top tenth"] * bool(figures)
    rows = []
    for i, task in enumerate(definition.tasks):
        context = [f"{task.context[n]:.6g}" if n in task.context else "" for n in names]
        best = "" if benchmark is None else _best(benchmark.tasks[i])
        row = [str(i), code(task.name), *context, best]
        rows.append(row + (_figures(figures.get(task.name)) if figures else []))
    text = table(header, rows)
    if benchmark is not None:
        text += f"\n\nBest known: on the surrogate {code(benchmark.surrogate)}."
    if figures and card is not None:
        text += (
            f" R², Spearman's correlation and the share of the best tenth in the predicted best tenth: "
            f"{card.folds}-fold cross-validation of the forest."
        )
    return text


def _best(task: Task) -> str:
    return "" if task.best_value is None else f"{task.best_value:.6g}"


def _figures(figures: Figures | None) -> list[str]:
    if figures is None:
        return [""] * 3
    return [f"{x:.3f}" for x in (figures.r2, figures.spearman, figures.top_decile)]


def _surrogates(spec: BenchmarkSpec) -> str:
    rows = [(code(o.name), plain(o.summary), plain(_needs(o))) for o in spec.surrogates]
    return table(("name", "what it is", "needs"), rows) + "\n\nThe first one is the default."


def _quality(card: Card | None) -> list[str]:
    if card is None:
        return []
    made = ", ".join(f"{name} {number}" for name, number in card.versions.items())
    limits = "\n".join(f"- {plain(limit)}" for limit in card.limits)
    count = f"{card.evaluations} evaluations of {card.configurations} configurations"
    sections = [
        "## Card",
        facts(
            [
                ("Rests on", count),
                ("Source", f"{plain(card.source)} ({plain(card.licence)})"),
                ("Size", f"{card.size / 1e6:.2f} MB" if card.size else ""),
                ("Made by", f"{code(card.command)}, with {plain(made)}"),
            ]
        ),
        f"Known limits:\n\n{limits}" if limits else "",
    ]
    for name, content in card.comparisons.items():
        if isinstance(content, dict) and "explanation" in content:
            said = plain(str(content["explanation"]))
            sections.append(f"### Comparison with {plain(name)}\n\n{said}")
    return [section for section in sections if section]


def _aim(definition: Definition) -> str:
    return "minimise" if definition.objective.direction is Direction.MINIMIZE else "maximise"


def _needs(option: SurrogateOption) -> str:
    """What a fresh installation lacks for it, whatever is here; "" if nothing."""
    if option.extra is not None:
        return f"extra {option.extra.name}"
    if option.generated is not None:
        return "generate"
    return "fetch" if option.files else ""
