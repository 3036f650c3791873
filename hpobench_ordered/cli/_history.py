"""What is tuned, and its history: options and files of a table, or studies in an Optuna storage."""

import csv
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpobench_ordered.adapters._rows import Reader
from hpobench_ordered.adapters._tables import Columns, read_table
from hpobench_ordered.cli._options import FILE, Command, pairs, with_options
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.reading import read_space

if TYPE_CHECKING:
    from pandas import DataFrame

_OPTIONS = (
    click.option(
        "--space", required=True, type=FILE, help="File of the search space in ConfigSpace's JSON."
    ),
    click.option(
        "--direction",
        required=True,
        type=click.Choice([direction.value for direction in Direction]),
        help="Whether to minimise or maximise the objective.",
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
class Earlier:
    """Values of the options of what is tuned, and of the history."""

    space: Path
    direction: str
    history: Path | None
    task: str | None
    objective: str | None
    storage: str | None
    studies: str | None
    rename: Sequence[str]
    drop_invalid: bool
    clip: bool

    def read(self, space: SearchSpace, context: Sequence[str] = ()) -> tuple[Evaluations, ...]:
        """Read the history, empty without options, with contexts of these names."""
        if self.storage is not None and (self.history is not None or context):
            raise click.UsageError("--storage cannot be combined with --history or --context")
        if self.storage is None and self.studies is not None:
            raise click.UsageError("--studies needs --storage")
        is_empty = self.storage is None and self.history is None
        if is_empty and (self.rename or self.drop_invalid or self.clip):
            raise click.UsageError(
                "--rename, --drop-invalid and --clip need --history or --storage"
            )
        rename = pairs(self.rename, "--rename", "OLD=NEW")
        if self.storage is not None:
            from hpobench_ordered.adapters import history_from_storage

            return history_from_storage(
                self.storage,
                self.studies or "*",
                space=space,
                drop_invalid=self.drop_invalid,
                clip=self.clip,
                rename=rename,
            )
        if self.history is None:
            return ()
        if self.task is None or self.objective is None:
            raise click.UsageError("--history needs --task COLUMN and --objective COLUMN")
        reader = Reader(self.drop_invalid, self.clip, str(self.history), refuses_repeated=True)
        read = read_table(
            table_of(self.history),
            space,
            Columns(self.task, self.objective, context),
            reader,
            direction=Direction(self.direction),
            rename=rename,
        )
        return reader.finish(read)


def earlier_options(command: Command) -> Command:
    """Add the options of the history to a command, as its argument `earlier`."""

    @functools.wraps(command)
    def called(**given: Any) -> None:
        earlier = Earlier(**{name: given.pop(name) for name in Earlier.__dataclass_fields__})
        command(earlier=earlier, **given)

    return with_options(called, _OPTIONS)


def space_of(path: Path) -> SearchSpace:
    """Read a search space from a file."""
    check_file(path)
    try:
        description = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSpaceError(
            f"no search space in {path}: {error}; --help shows what it holds"
        ) from error
    return read_space(description)


def table_of(path: Path) -> "DataFrame":
    """Read a CSV file with all cells as text; the index "line" has the line numbers."""
    check_file(path)
    import pandas as pd

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = {reader.line_num: row for reader in [csv.reader(file)] for row in reader}
    except UnicodeDecodeError:
        raise EvaluationsError(
            f"{path} is not a CSV file in UTF-8; for a storage of Optuna use --storage "
            f"sqlite:///{path}"
        ) from None
    except (OSError, csv.Error) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    rows = {number: row for number, row in lines.items() if row}
    if not rows:
        raise EvaluationsError(
            f"{path} is empty: its first line must hold the names of the columns"
        )
    header = rows.pop(min(rows))
    if len(header) == 1 and (other := [mark for mark in ";\t|" if mark in header[0]]):
        raise EvaluationsError(
            f"the columns of {path} must be separated by commas, not {other[0]!r}"
        )
    for number, row in rows.items():
        if len(row) != len(header):
            raise EvaluationsError(
                f"line {number} of {path} has {len(row)} values, but its header has {len(header)}"
            )
    lines_named = pd.Index(list(rows), name="line")
    return pd.DataFrame(list(rows.values()), index=lines_named, columns=header, dtype=object)
