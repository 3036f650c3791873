"""The command that says which method to tune with, from the user's own earlier tasks."""

import math
import warnings
from pathlib import Path

import click

from hpobench_ordered.adapters.advice import METHODS, TRIALS, Advice, advise
from hpobench_ordered.analysis.labels import counted
from hpobench_ordered.cli._completion import complete_method
from hpobench_ordered.cli._history import Earlier, earlier_options, space_of
from hpobench_ordered.cli._options import FOLDER, seeds_of, workers_option
from hpobench_ordered.cli._show import print_table, progress_bar, say, warnings_said
from hpobench_ordered.cli.experiments import announce_compiling
from hpobench_ordered.errors import PoorSurrogateWarning
from hpobench_ordered.experiment.api import report

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
    callback=seeds_of,
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
    earlier: Earlier,
    trials: int,
    seeds: list[int],
    methods: tuple[str, ...],
    workers: int,
    output: Path | None,
) -> None:
    """Say which method would have tuned your own earlier tasks best.

    The tasks are replayed, the oldest first, on a model of what was evaluated on them: each method
    has what it found on the tasks before as its history. Nothing is trained. At least three tasks
    are needed, with ten different configurations each.
    """
    described = space_of(earlier.space)
    with warnings_said():
        history = earlier.read(described)
        if not history:
            raise click.UsageError("give earlier tasks: --history FILE, or --storage URL")
        warnings.simplefilter("ignore", PoorSurrogateWarning)  # part of the advice
        announce_compiling()
        say("fitting a model to the evaluations of each task")
        with progress_bar() as move:
            advice = advise(
                history,
                space=described,
                direction=earlier.direction,
                methods=methods,
                trials=trials,
                seeds=seeds,
                folder=output,
                workers=workers,
                progress=lambda done, total: move("runs", done, total),
            )
    _show(advice, {e.task: len(e) for e in history})
    if output is not None:
        say(f"report: {report(advice.results).page}")


def _show(advice: Advice, evaluations: dict[str, int]) -> None:
    print_table(
        ("task", "evaluations", "R2", "rank correlation"),
        [
            (one.name, str(evaluations[one.name]), f"{one.r2:.2f}", f"{one.spearman:.2f}")
            for one in advice.quality
        ],
        title="How well the model of a task predicts evaluations that it was not fitted to:",
    )
    trials = counted(advice.trials, "trial")
    rows = zip(*(advice.methods[name] for name in COLUMNS), strict=True)
    click.echo()
    print_table(
        ("method", "1 trial", trials, "from", "to", "within error"),
        [
            (m, *("-" if math.isnan(x) else f"{x:.2f}" for x in numbers), "yes" if w else "no")
            for m, *numbers, w in rows
        ],
        title="Share of the distance from the median to the best that methods leave:",
    )
    click.echo("\n" + "\n".join(advice.sentences))


COLUMNS = ("method", "first", "left", "lower", "upper", "is_within_error")
