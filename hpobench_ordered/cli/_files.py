"""Files of the user's own tuning: the search space, and tables of evaluations."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click

from hpobench_ordered._typing import Value
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import Parameter, SearchSpace
from hpobench_ordered.space.reading import read_space

if TYPE_CHECKING:
    from pandas import DataFrame

INPUT = click.Path(dir_okay=False, path_type=Path)
"""A file that is read."""


def space_of(path: Path) -> SearchSpace:
    """Read a search space from a file.

    Raises:
        InvalidSpaceError: The file cannot be read or does not describe a search space.
        UnknownNameError: There is no such file.
    """
    check_file(path)
    try:
        description = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidSpaceError(
            f"no search space in {path}: {error}; --help shows what it holds"
        ) from error
    return read_space(description)


def table_of(path: Path) -> "DataFrame":
    """Read a CSV file, all of it as text; the index is the number of the line.

    Raises:
        EvaluationsError: It cannot be read, or lines are of different lengths.
        UnknownNameError: There is no such file.
    """
    check_file(path)
    import pandas as pd

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = {reader.line_num: row for reader in [csv.reader(file)] for row in reader}
    except UnicodeDecodeError:
        raise EvaluationsError(
            f"{path} is no CSV file in UTF-8; if it is a storage of Optuna, --storage "
            f"sqlite:///{path} reads it"
        ) from None
    except (OSError, csv.Error) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    rows = {number: row for number, row in lines.items() if row}
    if not rows:
        raise EvaluationsError(f"{path} is empty: its first line holds the names of the columns")
    header = rows.pop(min(rows))
    if len(header) == 1 and (other := [mark for mark in ";\t|" if mark in header[0]]):
        raise EvaluationsError(f"{path} has {other[0]!r} between its columns, not a comma")
    if twice := {name for name in header if header.count(name) > 1}:
        raise EvaluationsError(f"{path} has several columns {', '.join(map(repr, sorted(twice)))}")
    for number, row in rows.items():
        if len(row) != len(header):
            raise EvaluationsError(
                f"line {number} of {path} has {len(row)} values, its header {len(header)}"
            )
    return pd.DataFrame(list(rows.values()), index=list(rows), columns=header, dtype=object)


def native(
    table: "DataFrame",
    space: SearchSpace,
    objective: str,
    rename: Mapping[str, str] = MappingProxyType({}),
) -> "DataFrame":
    """The same table with values instead of text where it has hyperparameters or the objective.

    Args:
        table: The table.
        space: The search space.
        objective: Column of the objective.
        rename: What columns are called in the space where they have another name.
    """
    values = table.copy()
    for column in table.columns:
        name = rename.get(column, column)
        if name in space.names:
            values[column] = [_value(space[name], text) for text in table[column]]
        elif name in space.constants:
            texts = {str(space.constants[name]): space.constants[name]}
            values[column] = [texts.get(text, text or None) for text in table[column]]
        elif name == objective:
            values[column] = [number_of(text) for text in table[column]]
    return values


def _value(parameter: Parameter, text: str) -> Value | None:
    """A value as a hyperparameter has it; what cannot be one stays a text, for the message."""
    if parameter.choices:
        choices = {str(choice): choice for choice in parameter.choices}
        number = number_of(text)
        return choices.get(text, number if not isinstance(number, str) else text)
    return number_of(text)


def number_of(text: str) -> float | int | str | None:
    """A number, None of an empty text; what is no number stays a text."""
    if not text.strip():
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
