"""What is tuned, and its history: options and files of a table, or studies in an Optuna storage."""

import csv
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpobench_ordered.adapters._rows import Reader, Remedies
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.cli._options import FILE, Command, add_options, parse_pairs
from hpobench_ordered.cli._output import say
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conversion import is_range, to_search_space
from hpobench_ordered.space.reading import read_space

if TYPE_CHECKING:
    from pandas import DataFrame

OTHER_SEPARATORS = ";\t|"
"""Separators of columns that are used instead of a comma, and refused."""

REMEDIES = Remedies(
    drop_invalid="--drop-invalid",
    clip="--clip",
    rename="--rename OLD=NEW",
    old_space="--space FILE",
)
"""What messages advise in the shell."""

_OPTIONS = (
    click.option(
        "--space",
        type=FILE,
        help="JSON file of the search space, short as in the example below, or ConfigSpace's.  "
        "[default with --storage: that of the last study]",
    ),
    click.option(
        "--direction",
        type=click.Choice([direction.value for direction in Direction]),
        help="Whether to minimise or maximise the objective.  [default with --storage: that of the "
        "studies]",
    ),
    click.option(
        "--history", type=FILE, help="CSV of earlier tasks, oldest first, one row per trial."
    ),
    click.option("--task", metavar="COLUMN", help="Column of --history that names the task."),
    click.option("--objective", metavar="COLUMN", help="Column of the objective in CSV files."),
    click.option(
        "--storage",
        metavar="URL",
        help="Instead of --history: the storage of Optuna's studies, such as sqlite:///tuning.db.",
    ),
    click.option(
        "--studies",
        metavar="PATTERN",
        help="Studies in --storage that are earlier tasks, such as 'churn-*'.  [default: all]",
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
    history: Path | None
    task: str | None
    objective: str | None
    storage: str | None
    studies: str | None
    rename: Sequence[str]
    drop_invalid: bool
    clip: bool

    def read(
        self,
        context: Sequence[str] = (),
        *,
        history_space: Path | None = None,
        remedies: Remedies = REMEDIES,
    ) -> TaskAtHand:
        """Read what is tuned, and the earlier tasks, of which there may be none.

        Args:
            context: Names of the columns with the contexts of tasks.
            history_space: File of the search space of --history; None: that of --space.
            remedies: What messages advise.
        """
        self._check_combination(has_context=bool(context))
        space = None if self.space is None else read_space_file(self.space)
        new_names = parse_pairs(self.rename, "--rename", "OLD=NEW")
        if self.storage is not None:
            return self._read_storage(self.storage, space, new_names, remedies)
        if space is None or self.direction is None:
            raise click.UsageError(
                "give --space and --direction; only studies in --storage have them"
            )

        direction = Direction(self.direction)
        if self.history is None:
            return TaskAtHand(space, direction, history=())
        space_of_history = space if history_space is None else read_space_file(history_space)
        history = self._read_file(
            self.history, space_of_history, direction, context, new_names, remedies
        )
        return TaskAtHand(space, direction, history)

    def words(self) -> list[str]:
        """The options as they were given on the command line."""
        words = []
        for field in fields(self):
            option = "--" + field.name.replace("_", "-")
            value = getattr(self, field.name)
            if value is True:  # a flag
                words.append(option)
            elif isinstance(value, list | tuple):  # an option that may be repeated
                for item in value:
                    words += [option, item]
            elif value:  # neither None nor a flag that was not given
                words += [option, str(value)]
        return words

    def _check_combination(self, *, has_context: bool) -> None:
        """Raise a UsageError for options that cannot be combined."""
        if self.storage is not None and (self.history is not None or has_context):
            raise click.UsageError("--storage cannot be combined with --history or --context")
        if self.storage is None and self.studies is not None:
            raise click.UsageError("--studies needs --storage")
        has_source = self.storage is not None or self.history is not None
        if not has_source and (self.rename or self.drop_invalid or self.clip):
            raise click.UsageError(
                "--rename, --drop-invalid and --clip need --history or --storage"
            )

    def _read_storage(
        self,
        storage: str,
        space: SearchSpace | None,
        new_names: Mapping[str, str],
        remedies: Remedies,
    ) -> TaskAtHand:
        """Read the studies of --storage; without --studies all of them.

        The space is that of the last study if it is None, and so is the direction without
        --direction.
        """
        from hpobench_ordered.adapters.optuna.studies import load_studies, read_studies

        studies = load_studies(storage, self.studies or "*")
        reader = Reader(self.drop_invalid, self.clip, "the studies", remedies=remedies)
        history = read_studies(studies, reader, space=space, rename=new_names)
        last = history[-1]
        if space is None:
            space = last.space
            listing = ", ".join(f"{name} {values}" for name, values, _ in space.described())
            say(f"the search space is that of study {last.task!r}: {listing}")
        if self.direction is None:
            say(f"the direction is that of the studies: {last.direction.value}")
        direction = last.direction if self.direction is None else Direction(self.direction)
        return TaskAtHand(space, direction, history)

    def _read_file(
        self,
        path: Path,
        space: SearchSpace,
        direction: Direction,
        context: Sequence[str],
        new_names: Mapping[str, str],
        remedies: Remedies,
    ) -> tuple[Evaluations, ...]:
        """Read the table of --history; `context` are its columns of contexts."""
        if self.task is None or self.objective is None:
            raise click.UsageError("--history needs --task COLUMN and --objective COLUMN")
        # The reader collects the problems of all rows; `finish` raises an error that names them.
        reader = Reader(
            self.drop_invalid, self.clip, str(path), refuses_repeated=True, remedies=remedies
        )
        history = read_table(
            read_csv(path),
            space,
            Columns(self.task, self.objective, context),
            reader,
            direction=direction,
            rename=new_names,
        )
        return reader.finish(history)


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

    In the short form, {"rate": [1e-4, 1, "log"], "depth": [2, 10], "booster": ["a", "b"]}, a list
    of two numbers, or of these and "log", is a range; of integers, if both are written as such. Any
    other list has the choices, and a single value is a constant.
    """
    check_file(path)
    try:
        description = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSpaceError(
            f"no search space in {path}: {error}; --help shows what it holds"
        ) from error
    is_short = isinstance(description, dict) and "hyperparameters" not in description
    if not is_short:
        return read_space(description)

    descriptions = {}
    for name, item in description.items():
        # JSON has no tuples, by which `to_search_space` tells a range from choices.
        is_range_of_list = isinstance(item, list) and is_range(tuple(item))
        descriptions[name] = tuple(item) if is_range_of_list else item
    return to_search_space(descriptions)


def read_csv(path: Path) -> "DataFrame":
    """Read a CSV file with all cells as text; the index "line" has the line numbers."""
    check_file(path)
    import pandas as pd

    rows = _read_rows(path)
    if not rows:
        raise EvaluationsError(
            f"{path} is empty: its first line must hold the names of the columns"
        )
    first_line = min(rows)  # that is not empty
    header = rows.pop(first_line)
    _check_rows(path, header, rows)
    line_numbers = pd.Index(list(rows), name="line")
    return pd.DataFrame(list(rows.values()), index=line_numbers, columns=header, dtype=object)


def _read_rows(path: Path) -> dict[int, list[str]]:
    """The cells of every row that is not empty, by the number of its line.

    A row whose cells contain line breaks has the number of its last line.
    """
    rows = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            for row in reader:
                if row:
                    rows[reader.line_num] = row
    except UnicodeDecodeError:
        raise EvaluationsError(
            f"{path} is not a CSV file in UTF-8; for a storage of Optuna use --storage "
            f"sqlite:///{path}"
        ) from None
    except (OSError, csv.Error) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    return rows


def _check_rows(path: Path, header: Sequence[str], rows: Mapping[int, Sequence[str]]) -> None:
    """Raise an EvaluationsError if columns are not separated by commas, or a row is too short.

    A row that is too long is an error, too. `rows` are the rows after the header, by line number.
    """
    if len(header) == 1:
        for separator in OTHER_SEPARATORS:
            if separator in header[0]:
                raise EvaluationsError(
                    f"the columns of {path} must be separated by commas, not {separator!r}"
                )
    for line_number, row in rows.items():
        if len(row) != len(header):
            raise EvaluationsError(
                f"line {line_number} of {path} has {len(row)} values, but its header has "
                f"{len(header)}"
            )
