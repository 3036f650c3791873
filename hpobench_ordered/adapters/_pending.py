"""What belongs to configurations that were asked for and not told yet."""

from typing import Generic, TypeVar

from hpobench_ordered._typing import Config

T = TypeVar("T")


class Pending(Generic[T]):
    """Finds again what was made together with a configuration, however many are in flight."""

    def __init__(self) -> None:
        self._entries: list[tuple[Config, T]] = []

    def add(self, config: Config, item: T) -> None:
        """Remember what belongs to a configuration."""
        self._entries.append((config, item))

    def take(self, config: Config) -> T | None:
        """Give back, and forget, what belongs to a configuration; None where it is unknown.

        The same configuration may have been asked for twice, so that the very object counts first,
        and then the first one that is equal.
        """
        same = (i for i, (known, _) in enumerate(self._entries) if known is config)
        equal = (i for i, (known, _) in enumerate(self._entries) if known == config)
        index = next(same, next(equal, None))
        return None if index is None else self._entries.pop(index)[1]
