"""Checks what a store says of the starts of the runner, which a report shows."""

from collections.abc import Callable, Mapping
from typing import Any

from hpobench_ordered.experiment._identity import is_duration, is_text, is_whole

MAX_ENTRY = 500
"""Most characters of an entry."""
MAX_PACKAGES = 100
"""Most packages whose versions are kept."""


def checked_session(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of a record is as `describe_session` gives it; the rest is left out."""
    return {
        name: record[name]
        for name, is_right in _ENTRIES.items()
        if name in record and is_right(record[name])
    }


# -- internals -------------------------------------------------------------------------------------


def _is_entry(value: object) -> bool:
    return is_text(value, longest=MAX_ENTRY)


def _is_packages(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MAX_PACKAGES
        and all(_is_entry(name) and _is_entry(version) for name, version in value.items())
    )


def _or_none(is_right: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_right(value)


_ENTRIES: dict[str, Callable[[object], bool]] = {
    "started": _is_entry,
    "experiment": _is_entry,
    "shard": _or_none(_is_entry),
    "workers": is_whole,
    "backend": _is_entry,
    "time_limit": _or_none(is_duration),
    "python": _is_entry,
    "platform": _is_entry,
    "processor": _is_entry,
    "cores": _or_none(is_whole),
    "memory": _or_none(is_whole),
    "packages": _is_packages,
}
