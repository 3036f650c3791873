"""The command that suggests configurations of the user's model to evaluate next."""

import csv
import io
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.cli._completion import complete_method
from hpobench_ordered.cli._history import (
    EarlierTasks,
    TaskAtHand,
    earlier_options,
)
from hpobench_ordered.cli._options import FILE, parse_pairs
from hpobench_ordered.cli._output import output_file, warnings_at_end
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import (
    EvaluationsError,
    ExhaustedSpaceWarning,
    ExperimentError,
    warn_user,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.tuning.optimiser import (
    DEFAULT_BUDGET,
    DEFAULT_METHOD,
    Optimiser,
    optimiser,
)
from hpobench_ordered.tuning.reading.rows import Reader, parse_number
from hpobench_ordered.tuning.reading.sources import open_table
from hpobench_ordered.tuning.reading.tables import Columns, split_table

Result = tuple[Config, float | None]
"""A configuration and its value; None if the evaluation failed."""

EXAMPLES = """\b
Example: a model that is tuned every month. space.json says what is tuned:
  {"rate": [1e-4, 1.0, "log"], "depth": [2, 9, "linear"],
   "booster": ["tree", "linear"]}
a range has two numbers and its scale (of integers, if written so), other
lists are choices, and single values constants; two numbers as choices are
{"choices": [2, 9]}; ConfigSpace's JSON has conditions, too.
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
    default=DEFAULT_METHOD,
    show_default=True,
    shell_complete=complete_method,
    help="A name, package.module:Class or file.py:Class; `methods` says which is best when.",
)
@click.option(
    "--history-space",
    type=FILE,
    help="If the search space has changed: JSON file of the one that --history was evaluated on, "
    "with the names that --rename gives.  [default: that of --space]",
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
    "context_words",
    multiple=True,
    metavar="NAME=NUMBER",
    help="What is known of this task beforehand; --history has a column of that name. Repeat.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=DEFAULT_BUDGET,
    show_default=True,
    help="Number of trials on this task in all, as far as the method wants to know.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "json"]),
    default="csv",
    show_default=True,
    help="How the configurations are printed.",
)
@click.option("--output", type=FILE, help="File to write instead of printing.")
def suggest(
    earlier: EarlierTasks,
    history_space: Path | None,
    results: Path | None,
    trials: int,
    context_words: tuple[str, ...],
    output_format: str,
    output: Path | None,
    **settings: Any,
) -> None:
    """Suggest which configurations of your own model to evaluate next.

    The search space and the evaluations of earlier tasks and of this one are in files, and nothing
    else is remembered: the same files and options give the same configurations. They are those of
    an optimiser that was told the results, which may include configurations of your own.
    """
    if output is not None:
        _check_output(output, earlier, history_space, results)
    if history_space is not None and not earlier.history:
        raise click.UsageError("--history-space needs --history")
    context = _parse_context(context_words)

    with warnings_at_end():
        task = earlier.read(tuple(context), history_space=history_space)
        results_so_far = [] if results is None else _read_results(results, task, earlier)
        tuner = optimiser(
            space=task.space,
            direction=task.direction,
            history=task.history,
            context=context,
            **settings,
        )
        suggestions = suggest_after(tuner, results_so_far, trials)

    is_json = output_format == "json"
    text = _format_json(suggestions) if is_json else _format_csv(suggestions, task.space)
    if output is None:
        click.echo(text, nl=False)
    else:
        with output_file(output):
            write_atomically(output, text.encode())


def suggest_after(tuner: Optimiser, results: Sequence[Result], count: int) -> list[Config]:
    """Suggest the next configurations after results.

    A configuration that has a result is suggested again only if there are too few others. An
    optimiser may begin with such ones, as it does not know that it suggested them in another
    process.

    Args:
        tuner: An optimiser that has not been asked or told anything.
        results: Results in the order in which they came.
        count: Number of configurations to suggest.
    """
    for config, value in results:
        tuner.tell(config, value)

    evaluated = [config for config, _ in results]
    new_suggestions: list[Config] = []
    repeated_suggestions: list[Config] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedSpaceWarning)  # of the repeated ones
        # Up to as many suggestions as there are results may have been evaluated already.
        for _ in range(count + len(results)):
            config = tuner.ask()
            if config in evaluated or config in new_suggestions:
                repeated_suggestions.append(config)
            else:
                new_suggestions.append(config)
            if len(new_suggestions) == count:
                return new_suggestions
    warn_user("configurations are suggested again: there are no others", ExhaustedSpaceWarning)
    in_order_of_preference = new_suggestions + repeated_suggestions
    return in_order_of_preference[:count]


def _check_output(
    output: Path, earlier: EarlierTasks, history_space: Path | None, results: Path | None
) -> None:
    """Raise a UsageError if the output would replace a file that an option names as input."""
    file_of_option = {"space": earlier.space, "history-space": history_space, "results": results}
    inputs: list[tuple[str, Path]] = []  # of each input: the option, and the file
    for option, file in file_of_option.items():
        if file is not None:  # the option is used
            inputs.append((option, file))
    for source in earlier.history:
        inputs.append(("history", Path(source)))
    for option, path in inputs:
        if output.resolve() == path.resolve():
            raise click.UsageError(f"--output must not be the file of --{option}")


def _parse_context(words: Sequence[str]) -> dict[str, float]:
    """Read what is known of a task from NAME=NUMBER words; the numbers must be finite."""
    text_of_name = parse_pairs(words, "--context", "NAME=NUMBER")
    # `parse_number` gives NaN for a text that is no number.
    context = {name: parse_number(text) for name, text in text_of_name.items()}
    for name, number in context.items():
        if not math.isfinite(number):
            raise ExperimentError(
                f"--context must be NAME=NUMBER, but {name!r} is {text_of_name[name]!r}"
            )
    return context


def _read_results(path: Path, task: TaskAtHand, earlier: EarlierTasks) -> list[Result]:
    """Read the trials of the task at hand from a table, one per row.

    Args:
        path: File of the table.
        task: The task, whose search space and direction the trials have.
        earlier: Options that name the columns of tables; the results have the same columns.

    Returns:
        The configuration and the value of each trial, in the order of the rows; the value is None
        if the evaluation failed.
    """
    table = replace(open_table(path), name="--results")
    reader = Reader(drop_invalid=False, clip=False, source="--results", is_history=False)
    # All rows are of this task, and need not name it.
    task_column = earlier.task if earlier.task in table.frame.columns else None
    columns = Columns(task_column, earlier.objective)
    tables_of_tasks = split_table(table, task.space, columns, reader)
    if len(tables_of_tasks) > 1:
        names = [table_of_task.rows.task for table_of_task in tables_of_tasks]
        raise EvaluationsError(f"--results must be of one task, but has {join_words(names)}")
    evaluations = None
    if tables_of_tasks:  # else no row is valid, or there are none
        rows = tables_of_tasks[0].rows
        evaluations = reader.read(rows, task.space, direction=task.direction)
    reader.refuse()  # raises if any row has a problem
    reader.warn_of_ignored()
    if evaluations is None:
        return []
    values = [None if math.isnan(value) else value for value in evaluations.objective.tolist()]
    return list(zip(task.space.configs(evaluations.values), values, strict=True))


def _format_json(configs: Sequence[Config]) -> str:
    """Format configurations as a list in JSON."""
    return json.dumps(configs, indent=2, ensure_ascii=False) + "\n"


def _format_csv(configs: Sequence[Config], space: SearchSpace) -> str:
    """Format configurations as CSV; an inactive hyperparameter has an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [*space.names, *space.constants], lineterminator="\n")
    writer.writeheader()
    writer.writerows(configs)
    return text.getvalue()
