"""What is tuned, and its history: options that say where the earlier tasks are."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from hpobench_ordered._wording import join_words
from hpobench_ordered.cli._options import FILE, Command, add_options, parse_pairs
from hpobench_ordered.cli._output import say
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.data.writing import check_file
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import to_search_space
from hpobench_ordered.space.reading import read_space
from hpobench_ordered.tuning.reading.read import Settings, read_source
from hpobench_ordered.tuning.reading.rows import Reader
from hpobench_ordered.tuning.reading.tables import Columns

_OPTIONS = (
    click.option(
        "--space",
        type=FILE,
        help="JSON file of the search space, short as in the example below, or ConfigSpace's.  "
        "[default: that of the last study in --history]",
    ),
    click.option(
        "--direction",
        type=click.Choice([direction.value for direction in Direction]),
        help="Whether to minimise or maximise the objective.  [default: as the studies in "
        "--history]",
    ),
    click.option(
        "--history",
        "--storage",
        "history",
        multiple=True,
        metavar="SOURCE",
        help="Earlier tasks, oldest first: a table with one row per trial (CSV, also .gz, or "
        "Parquet), or an Optuna storage (SQLite, journal, or a URL). Repeat.",
    ),
    click.option(
        "--task",
        metavar="COLUMN",
        help="Column of tables that names the task.  [default: 'task', else a file is a task]",
    ),
    click.option(
        "--order",
        metavar="COLUMN",
        help="Column of numbers or dates that tasks are sorted by.  [default: as in the table]",
    ),
    click.option(
        "--objective",
        metavar="COLUMN",
        help="Column of the objective in tables.  [default: 'objective']",
    ),
    click.option(
        "--studies",
        metavar="PATTERN",
        default="*",
        show_default="all",
        help="Studies in storages that are earlier tasks, such as 'churn-*'.",
    ),
    click.option(
        "--rename",
        multiple=True,
        metavar="OLD=NEW",
        help="Name of a hyperparameter in the earlier tasks, and its name now. Repeat.",
    ),
    click.option("--drop-invalid", is_flag=True, help="Leave out earlier trials that are invalid."),
    click.option(
        "--clip",
        is_flag=True,
        help="Move earlier numbers that are out of range to the nearest bound.",
    ),
)


@dataclass(frozen=True)
class TaskAtHand:
    """What is tuned, and the evaluations of the tasks before it, oldest first."""

    space: SearchSpace
    direction: Direction
    history: tuple[Evaluations, ...]


@dataclass(frozen=True)
class EarlierTasks:
    """Values of the options that say what is tuned, and where the earlier tasks are."""

    space: Path | None
    direction: str | None
    history: Sequence[str]
    task: str | None
    order: str | None
    objective: str | None
    studies: str
    rename: Sequence[str]
    drop_invalid: bool
    clip: bool

    def read(
        self,
        context: Sequence[str] = (),
        *,
        history_space: Path | None = None,
    ) -> TaskAtHand:
        """Read what is tuned, and the earlier tasks, of which there may be none.

        Args:
            context: Names of the columns with the contexts of tasks.
            history_space: File of the search space of --history; None: that of --space.
        """
        space = None if self.space is None else read_space_file(self.space)
        direction = None if self.direction is None else Direction(self.direction)
        if not self.history:
            return self._make_task_without_history(space, direction)

        space_of_history = space if history_space is None else read_space_file(history_space)
        settings = Settings(
            Columns(self.task, self.objective, context, self.order),
            direction,
            self.studies,
            rename=parse_pairs(self.rename, "--rename", "OLD=NEW"),
        )
        # The reader collects the problems of all rows, and raises an error that names them.
        reader = Reader(self.drop_invalid, self.clip, "the history")
        history = read_source(self.history, space_of_history, settings, reader)
        say(f"earlier tasks, the last one the latest: {join_words(e.task for e in history)}")
        last = history[-1]
        if space is None:
            space = last.space
            listing = ", ".join(f"{name} {values}" for name, values, _ in space.described())
            say(f"the search space is that of {last.task!r}: {listing}")
        if direction is None:
            say(f"the direction is that of the studies: {last.direction.value}")
        # If --direction is used, all evaluations were read with this direction.
        return TaskAtHand(space, last.direction, history)

    def _make_task_without_history(
        self, space: SearchSpace | None, direction: Direction | None
    ) -> TaskAtHand:
        """Make the task for a command that was called without --history.

        Args:
            space: The space in --space; None if the option is not used.
            direction: The value of --direction; None if the option is not used.

        Raises:
            UsageError: One of the two is missing, or an option is used that needs --history.
        """
        if self.rename or self.drop_invalid or self.clip:
            raise click.UsageError("--rename, --drop-invalid and --clip need --history")
        if space is None or direction is None:
            raise click.UsageError(
                "give --space and --direction; only studies in --history have them"
            )
        return TaskAtHand(space, direction, history=())


def earlier_options(command: Command) -> Command:
    """Add options that say where earlier tasks are to a command.

    The command gets their values as one argument, `earlier`, whose fields they are.
    """

    @functools.wraps(command)
    def command_with_earlier(**options: Any) -> None:
        """Call the command with an `EarlierTasks` in place of the options that describe it."""
        values = {field.name: options.pop(field.name) for field in fields(EarlierTasks)}
        command(earlier=EarlierTasks(**values), **options)

    return add_options(command_with_earlier, _OPTIONS)


def read_space_file(path: Path) -> SearchSpace:
    """Read a search space from a JSON file: in the short form, or ConfigSpace's.

    The short form means the same as in Python, see `to_search_space`: {"rate": [1e-4, 1, "log"],
    "depth": [2, 10, "linear"], "booster": ["a", "b"], "units": {"choices": [32, 64]}}.
    """
    check_file(path)
    try:
        description = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSpaceError(
            f"no search space in {path}: {error}; --help shows what it holds"
        ) from error
    is_short = isinstance(description, dict) and "hyperparameters" not in description
    return to_search_space(description) if is_short else read_space(description)
