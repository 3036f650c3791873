"""Checks what identifies runs, as a store of unknown origin says it.

A run's key is the hash of what identifies it, and the name of its files: one that was changed, or
put in another's place, is found out by its name.
"""

import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from hpobench_ordered.experiment._files import is_printable
from hpobench_ordered.experiment.plan import key_of

IDENTITY = ("benchmark", "surrogate", "method", "method_version", "seed", "protocol")
"""What identifies a run."""
MAX_TEXT = 10_000
"""Most characters of a name; a protocol may list tasks."""
MAX_NUMBER = 2**63
"""Whole numbers are below: tables hold no larger ones."""
MAX_SECONDS = 1e12
MAX_RUNS = 1_000_000
"""Most runs that a store's experiments may ask for."""


def is_text(value: object, *, longest: int = MAX_TEXT) -> bool:
    """Whether a value is a text in one line."""
    return isinstance(value, str) and len(value) <= longest and is_printable(value)


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, from 0."""
    return type(value) is int and 0 <= value < MAX_NUMBER


def is_duration(value: object) -> bool:
    """Whether a value is a number of seconds that anything may take."""
    return isinstance(value, int | float) and type(value) is not bool and 0 <= value <= MAX_SECONDS


def cell_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """What identifies a run, out of a record that may say more.

    Raises:
        ValueError: Something is missing, or of another type.
    """
    cell = {name: content.get(name) for name in IDENTITY}
    for name, value in cell.items():
        if not (is_whole(value) if name == "seed" else is_text(value)):
            raise ValueError(f"it does not say what {name} it belongs to")
    return cell


def check_key(key: object, cell: Mapping[str, Any]) -> None:
    """Check that a run has the key it should have.

    Raises:
        ValueError: It has not.
    """
    if key_of(cell) != key:
        raise ValueError(f"it is a run of another key: {key_of(cell)}")


def grid_size(grid: Any) -> int:
    """Number of runs of a grid, as `plan.grid` gives it.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(grid, dict) or grid.keys() != {*_GRID, "seeds"}:
        raise ValueError("it is not the record of an experiment")
    if not _is_list(grid["seeds"], is_whole):
        raise ValueError("its seeds are not whole numbers")
    for name, parts in _GRID.items():
        if not _is_list(grid[name], partial(_is_entry, parts)):
            raise ValueError(f"its {name} are not described by texts")
    return math.prod(map(len, grid.values()))


# -- internals -------------------------------------------------------------------------------------


def _is_list(value: object, is_right: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(is_right, value))


def _is_entry(parts: Collection[str], value: object) -> bool:
    return (
        isinstance(value, dict) and value.keys() == set(parts) and all(map(is_text, value.values()))
    )


_GRID: dict[str, tuple[str, ...]] = {
    "benchmarks": ("benchmark", "surrogate"),
    "methods": ("method", "method_version"),
    "protocols": ("protocol",),
}
"""What identifies a run, but for its seed, by the list of a grid that says so."""
