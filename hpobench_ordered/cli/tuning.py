"""The command that suggests configurations of the user's model to evaluate next."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters._rows import Reader, number_of
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.adapters.optimiser import BUDGET, METHOD, Optimiser, optimiser
from hpobench_ordered.cli._completion import complete_method
from hpobench_ordered.cli._history import Earlier, earlier_options, space_of, table_of
from hpobench_ordered.cli._options import FILE, pairs
from hpobench_ordered.cli._show import warnings_said
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, ExperimentError
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.space import SearchSpace

ONE_TASK = "task of --results"  # column of the task where --results has none
EXAMPLES = """\b
Example: a model that is tuned every month. space.json says what is tuned:
  {"hyperparameters": [
    {"type": "uniform_float", "name": "rate", "lower": 1e-4, "upper": 1.0, "log": true},
    {"type": "uniform_int", "name": "depth", "lower": 2, "upper": 9, "log": false},
    {"type": "categorical", "name": "booster", "choices": ["tree", "linear"]}]}
old.csv holds what was evaluated in earlier months, oldest first:
  month,rate,depth,booster,auc
  May,0.01,4,tree,0.81
  May,0.3,9,linear,0.74
  June,0.02,5,tree,0.83

\b
  hpobench-ordered suggest --space space.json --direction maximize --objective auc \\
      --task month --history old.csv --trials 5 --output next.csv
      five configurations to begin with. Evaluate each of them; this.csv gets
      the rows of next.csv with a further column auc, empty where it failed
  hpobench-ordered suggest --space space.json --direction maximize --objective auc \\
      --task month --history old.csv --trials 5 --output next.csv \\
      --results this.csv
      the next five; append them with their auc to this.csv, and so on
"""


@click.command(epilog=EXAMPLES)
@earlier_options
@click.option(
    "--method",
    default=METHOD,
    show_default=True,
    shell_complete=complete_method,
    help="A name, package.module:Class or file.py:Class; `methods` lists the names.",
)
@click.option(
    "--results",
    type=FILE,
    help="CSV of what was evaluated on this task so far, in that order: the columns that are "
    "printed, and the objective's; an empty objective marks what failed.",
)
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of configurations to suggest.",
)
@click.option(
    "--context",
    "contexts",
    multiple=True,
    metavar="NAME=NUMBER",
    help="What is known of this task beforehand; --history has a column of that name. Repeat.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=BUDGET,
    show_default=True,
    help="Number of trials on this task in all, as far as the method wants to know.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json"]),
    default="csv",
    show_default=True,
    help="How the configurations are printed.",
)
@click.option("--output", type=FILE, help="File to write instead of printing.")
def suggest(
    earlier: Earlier,
    results: Path | None,
    trials: int,
    contexts: tuple[str, ...],
    form: str,
    output: Path | None,
    **settings: Any,
) -> None:
    """Suggest which configurations of your own model to evaluate next.

    The search space and the evaluations of earlier tasks and of this one are in files, and nothing
    else is remembered: the same files and options give the same configurations, those of
    `hpobench_ordered.optimiser`. Results are assumed to have come --trials at a time, so do not
    change that between calls. They may include configurations of your own.
    """
    files = {"space": earlier.space, "history": earlier.history, "results": results}
    for option, path in files.items():
        if output is not None and path is not None and output.resolve() == path.resolve():
            raise click.UsageError(f"--output must not be the file of --{option}")
    space, context = space_of(earlier.space), _context(contexts)
    with warnings_said():
        history = earlier.read(space, tuple(context))
        told = [] if results is None else _results(results, space, earlier)
        make = partial(
            optimiser,
            space=space,
            direction=earlier.direction,
            history=history,
            context=context,
            **settings,
        )
        text = _written(suggestions(make, told, trials), space, form)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(output, text.encode())
    except OSError as error:
        raise click.FileError(str(output), str(error.strerror)) from None


def suggestions(
    make: Callable[[], Optimiser],
    results: Sequence[tuple[Config, float | None]],
    trials: int,
    *,
    matching: int | None = None,
) -> list[Config]:
    """Suggestions of an optimiser after results, assumed to have come `trials` at a time.

    From the first result on that it would not have suggested, the one after `matching`, results are
    told without asking.
    """
    tuner = make()
    for start in range(0, len(results), trials):
        batch = results[start : start + trials]
        if matching is None or start < matching:
            asked = [tuner.ask() for _ in batch]
            if any(config not in asked for config, _ in batch):
                # Again, so that nothing stays in flight that was not evaluated.
                return suggestions(make, results, trials, matching=start)
        for config, value in batch:
            tuner.tell(config, value)
    if matching is None:
        return [tuner.ask() for _ in range(trials)]
    known = [config for config, _ in results]
    drawn = [tuner.ask() for _ in range(trials + len(results))]
    return ([config for config in drawn if config not in known] + drawn)[:trials]


def _context(words: Sequence[str]) -> dict[str, float]:
    """Read NAME=NUMBER words."""
    form = ("--context", "NAME=NUMBER")
    texts = pairs(words, *form)
    context = {name: number_of(text) for name, text in texts.items()}
    for name, number in context.items():
        if not math.isfinite(number):
            raise ExperimentError(f"{' must be '.join(form)}, but {name!r} is {texts[name]!r}")
    return context


def _results(path: Path, space: SearchSpace, earlier: Earlier) -> list[tuple[Config, float | None]]:
    """The configurations and values in a table of one task."""
    if earlier.objective is None:
        raise click.UsageError("--results needs --objective COLUMN")
    table, task = table_of(path), earlier.task
    if task is None or task not in table.columns:
        task = ONE_TASK
        table = table.assign(**{task: "this task"})
    reader = Reader(drop_invalid=False, clip=False, source="--results")
    columns, direction = Columns(task, earlier.objective), Direction(earlier.direction)
    found = read_table(table, space, columns, reader, direction=direction)
    reader.refuse()
    reader.warn_of_ignored()
    read = [e for e in found if e is not None]
    if len(read) > 1:
        raise EvaluationsError(
            f"--results must be of one task, but {task!r} has {[e.task for e in read]}"
        )
    return [
        (config, None if math.isnan(value) else value)
        for e in read
        for config, value in zip(space.configs(e.values), e.objective.tolist(), strict=True)
    ]


def _written(configs: Sequence[Config], space: SearchSpace, form: str) -> str:
    """Format configurations as text."""
    if form == "json":
        return json.dumps(configs, indent=2, ensure_ascii=False) + "\n"
    text = io.StringIO()
    writer = csv.DictWriter(text, [*space.names, *space.constants], lineterminator="\n")
    writer.writeheader()
    writer.writerows(configs)
    return text.getvalue()
