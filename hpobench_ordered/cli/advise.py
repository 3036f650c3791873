"""The command that says which method to tune with, from the user's own earlier tasks."""

import math
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path

import click

from hpobench_ordered.analysis.labels import format_count
from hpobench_ordered.cli._completion import complete_method
from hpobench_ordered.cli._history import EarlierTasks, earlier_options
from hpobench_ordered.cli._options import FOLDER, parse_seeds, workers_option
from hpobench_ordered.cli._output import print_table, progress_bar, say, warnings_at_end
from hpobench_ordered.cli.experiments import announce_compiling
from hpobench_ordered.errors import PoorSurrogateWarning
from hpobench_ordered.experiment.api import report
from hpobench_ordered.tuning.advice import METHODS, TRIALS, Advice, advise

EPILOG = """\b
Example: old.csv and space.json are those of `hpobench-ordered suggest --help`
  hpobench-ordered advise --history old.csv --space space.json --task month \\
      --objective auc --direction maximize --trials 15
      which method to give to `suggest` for 15 trials next month
"""


@click.command("advise", epilog=EPILOG)
@earlier_options
@click.option(
    "--trials",
    type=click.IntRange(1),
    default=TRIALS,
    show_default=True,
    help="Number of trials per task.",
)
@click.option(
    "--seeds",
    default="5",
    show_default=True,
    callback=parse_seeds,
    help="How many (5), a range (10-19), a list (3,7).",
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    default=METHODS,
    show_default=True,
    shell_complete=complete_method,
    help="Method to compare: a name, package.module:Class or file.py:Class; repeat.",
)
@workers_option
@click.option("--output", type=FOLDER, help="Folder to keep the runs in, and a report of them.")
def advise_(
    earlier: EarlierTasks,
    trials: int,
    seeds: list[int],
    methods: tuple[str, ...],
    workers: int,
    output: Path | None,
) -> None:
    """Say which method would have tuned your own earlier tasks best.

    The tasks are replayed, the oldest first, on a model of what was evaluated on them: each method
    has what it found on the tasks before as its history. Nothing is trained. At least three tasks
    are needed, with ten different configurations each. With fewer, see what `hpobench-ordered
    methods` recommends in general.
    """
    with warnings_at_end():
        task = earlier.read()
        if not task.history:
            raise click.UsageError("give earlier tasks: --history SOURCE")
        warnings.simplefilter("ignore", PoorSurrogateWarning)  # part of the advice
        announce_compiling()
        say("fitting a model to the evaluations of each task")
        with progress_bar() as show_progress:
            advice = advise(
                task.history,
                space=task.space,
                direction=task.direction,
                methods=methods,
                trials=trials,
                seeds=seeds,
                folder=output,
                workers=workers,
                progress=lambda done, total: show_progress("runs", done, total),
            )

    _print_quality(advice, {e.task: len(e) for e in task.history})
    _print_methods(advice)
    click.echo("\n" + "\n".join(advice.sentences))
    click.echo(f"\nNext: {_format_next_command(earlier, advice.best, trials)}")
    if output is not None:
        say(f"report: {report(advice.results).page}")


def _format_next_command(earlier: EarlierTasks, method: str, trials: int) -> str:
    """The command that suggests configurations for the next task by a method."""
    words = ["hpobench-ordered", "suggest", "--method", method, *earlier.words()]
    words += ["--trials", str(trials), "--output", "next.csv"]
    return shlex.join(words)


def _print_quality(advice: Advice, number_of_evaluations: Mapping[str, int]) -> None:
    """Print how well the surrogate of each task predicts, with its number of evaluations."""
    rows = [
        (task.name, str(number_of_evaluations[task.name]), f"{task.r2:.2f}", f"{task.spearman:.2f}")
        for task in advice.quality
    ]
    print_table(
        ("task", "evaluations", "R2", "rank correlation"),
        rows,
        title="How well the model of a task predicts evaluations that it was not fitted to:",
    )


def _print_methods(advice: Advice) -> None:
    """Print what each method leaves of the distance to the best, the best method first.

    A method is within error if it leaves so little more than the best one that it may be chance.
    """
    all_trials = format_count(advice.trials, "trial")
    headers = ("method", "1 trial", all_trials, "from", "to", "within error")
    rows = []
    for method in advice.methods.itertuples():
        row = (
            method.method,
            _format_share(method.first),  # after the first trial
            _format_share(method.left),  # after all trials
            _format_share(method.lower),  # bounds of the confidence interval of that
            _format_share(method.upper),
            "yes" if method.is_within_error else "no",
        )
        rows.append(row)
    click.echo()
    print_table(
        headers,
        rows,
        title="Share of the distance from the median to the best that methods leave:",
    )


def _format_share(share: float) -> str:
    """Format a share; "-" for NaN, which bounds of an interval over few tasks are."""
    return "-" if math.isnan(share) else f"{share:.2f}"
