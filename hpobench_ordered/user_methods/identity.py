"""Versions of methods: what tells whether a finished run is still up to date.

A registered method of this package has a version number. A method from outside is identified by the
files that a process which imported it afresh has loaded, and by the values of its arguments. Files
that it loads only later, while it runs, are listed after each run; they are compared when it is run
again. A method of which something has no file is new at each start.
"""

import hashlib
import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hpobench_ordered.core.identity import NEW_AT_EACH_START
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods, method_spec
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.user_methods.loaded_files import (
    LoadedFiles,
    current_state,
    is_unchanged,
    load_and_list,
)
from hpobench_ordered.user_methods.loading import MethodSource
from hpobench_ordered.user_methods.source import (
    digest_of_method,
    source_by_value,
    source_in_files,
    uses_only_this_package,
)

NOTHING = LoadedFiles()

VERSION_LENGTH = 12


@dataclass(frozen=True)
class MethodIdentity:
    """What a method is, and how another process loads it.

    Attributes:
        version: Its version in results.
        source: How another process loads it; None for methods of this package, which need none.
        record: What was loaded when it was imported; None if nothing identifies it.
    """

    version: str
    source: MethodSource | None = None
    record: "MethodRecord | None" = None

    @property
    def is_new_at_each_start(self) -> bool:
        """Whether nothing identifies the method in another process."""
        return self.version.startswith(NEW_AT_EACH_START)


@dataclass(frozen=True)
class MethodRecord:
    """What was loaded in runs of a method from outside, as it is stored beside their results.

    Attributes:
        method: Name of the method.
        version: Its version in the results.
        base: Hash of its arguments, and of what was loaded when it was imported.
        imported: What was loaded when it was imported.
        later: What was loaded only while it ran.
    """

    method: str
    version: str
    base: str
    imported: LoadedFiles
    later: LoadedFiles = NOTHING


def identify_method(
    spec: MethodSpec, children: Children, records: Iterable[MethodRecord] = ()
) -> MethodIdentity:
    """Import a method in a process of its own, and identify it by what that loads.

    Args:
        spec: The method.
        children: The processes; that of the method stays there for its runs.
        records: What earlier runs of methods had loaded.

    Raises:
        ExperimentError: It cannot be sent to another process.
    """
    if uses_only_this_package(spec.method):
        return MethodIdentity(_version_of_ours(spec))
    source = source_in_files(spec.method)
    if source is not None:
        try:
            imported = children.call(spec.name, load_and_list, source)
        except Exception:  # its files do not define it, as when it was put there by assignment
            source = None
    if source is None:
        return MethodIdentity(_new_version(), source_by_value(spec.method))
    base = _hash([source.digest, *_settings_of(spec), *imported.describe()])
    earlier = [record for record in records if record.method == spec.name and record.base == base]
    version = choose_version(base, earlier, source.folder)
    return MethodIdentity(version, source, MethodRecord(spec.name, version, base, imported))


def method_version(spec: MethodSpec) -> str:
    """The version of a method, found out in a process that ends afterwards if one is needed."""
    with closing(Children()) as children:
        return identify_method(spec, children).version


def identify_here(spec: MethodSpec) -> MethodIdentity:
    """Identify a method that runs in this process, where nothing tells what was loaded for it."""
    if uses_only_this_package(spec.method):
        return MethodIdentity(_version_of_ours(spec))
    return MethodIdentity(_new_version())


def choose_version(base: str, earlier: Sequence[MethodRecord], folder: Path) -> str:
    """The version of earlier runs that are up to date, else a version of its own.

    What a method loads only while it runs is not known before, but from the records of earlier
    runs. If none of these is up to date, its state now makes the difference.
    """
    records = defaultdict[str, list[MethodRecord]](list)
    for record in earlier:
        records[record.version].append(record)
    for version, same_version in records.items():
        if all(is_unchanged(record.later, folder) for record in same_version):
            return version
    if not records:
        return base
    states = [state for record in earlier for state in current_state(record.later, folder)]
    version = _hash([base, *sorted(set(states))])
    # A recorded version that is not up to date is one whose files are not where they were.
    return _new_version() if version in records else version


def _version_of_ours(spec: MethodSpec) -> str:
    """The number of a registered method; of another one made of our classes, a hash."""
    if spec.name in list_methods() and method_spec(spec.name) == spec:
        return str(spec.version)
    versions = [f"{name} {method_spec(name).version}" for name in list_methods()]
    return _hash([digest_of_method(spec.method), *_settings_of(spec), *versions])


def _settings_of(spec: MethodSpec) -> list[str]:
    """What else determines the runs of a method, and `bo`, which replaces it on early tasks."""
    settings = [spec.version, spec.min_history, spec.changed_spaces, spec.uses_data]
    replacement = [f"bo {method_spec('bo').version}"] if spec.min_history else []
    return [*map(str, settings), *replacement]


def _hash(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:VERSION_LENGTH]


def _new_version() -> str:
    return NEW_AT_EACH_START + secrets.token_hex(6)
