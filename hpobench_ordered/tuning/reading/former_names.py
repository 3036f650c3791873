"""Names that `read_history` had before it read every source; they go in version 0.3."""

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict, Unpack

from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.space.conversion import SpaceLike
from hpobench_ordered.tuning.reading.read import read_history

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from pandas import DataFrame


class ReadingOptions(TypedDict, total=False):
    """Keyword arguments of `read_history` that these functions have, too."""

    objective: str
    direction: Direction | str
    task: str
    drop_invalid: bool
    clip: bool
    contexts: Mapping[str, Mapping[str, float]] | None
    rename: Mapping[str, str]


def history_from_frame(
    frame: "DataFrame", space: SpaceLike, **options: Unpack[ReadingOptions]
) -> tuple[Evaluations, ...]:
    """Read a DataFrame, as `read_history` does."""
    _warn("history_from_frame")
    return read_history(frame, space, **options)


def history_from_studies(
    studies: "Iterable[Study]",
    *,
    space: "SpaceLike | None" = None,
    **options: Unpack[ReadingOptions],
) -> tuple[Evaluations, ...]:
    """Read studies of Optuna, as `read_history` does."""
    _warn("history_from_studies")
    return read_history(studies, space, **options)


def history_from_storage(
    storage: "str | os.PathLike[str] | BaseStorage",
    pattern: str,
    *,
    space: "SpaceLike | None" = None,
    **options: Unpack[ReadingOptions],
) -> tuple[Evaluations, ...]:
    """Read the studies of an Optuna storage, as `read_history` does."""
    _warn("history_from_storage")
    return read_history(storage, space, studies=pattern, **options)


def _warn(name: str) -> None:
    """Warn the user's code that a function has another name now."""
    warnings.warn(
        f"{name} is now part of read_history, which reads every source",
        DeprecationWarning,
        stacklevel=3,
    )
