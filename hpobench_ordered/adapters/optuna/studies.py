"""Studies of Optuna as history."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from optuna.study import Study

from hpobench_ordered.history import Evaluations
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from optuna.storages import BaseStorage


def history_from_studies(
    studies: Iterable[Study],
    *,
    space: "SearchSpace | ConfigurationSpace | None" = None,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[Evaluations, ...]:
    """Read studies as history."""
    raise NotImplementedError


def history_from_storage(
    storage: "str | BaseStorage",
    pattern: str,
    *,
    space: "SearchSpace | ConfigurationSpace | None" = None,
    drop_invalid: bool = False,
    clip: bool = False,
    contexts: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[Evaluations, ...]:
    """Read the studies of a storage whose names match a pattern as history."""
    raise NotImplementedError
