"""Bookkeeping of configurations that were asked for and not told yet."""

from typing import Generic, TypeVar

from hpobench_ordered._typing import Config

T = TypeVar("T")


class Pending(Generic[T]):
    """Remembers an item for every configuration in flight."""

    def __init__(self) -> None:
        self._entries: list[tuple[Config, T]] = []

    def add(self, config: Config, item: T) -> None:
        """Remember the item of a configuration."""
        self._entries.append((config, item))

    def take(self, config: Config) -> T | None:
        """Remove and return the item of a configuration; None if it is unknown.

        As equal configurations may be in flight, the identical object is preferred to an equal one.
        """
        same = (i for i, (known, _) in enumerate(self._entries) if known is config)
        equal = (i for i, (known, _) in enumerate(self._entries) if known == config)
        index = next(same, next(equal, None))
        return None if index is None else self._entries.pop(index)[1]
