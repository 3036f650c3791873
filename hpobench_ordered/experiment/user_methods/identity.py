"""Versions of methods: what tells whether a finished run is still up to date.

A registered method of this package has a version number. A method from outside is identified by the
files that a process which imported it afresh has loaded, and by the values of its arguments. Files
that it loads only later, while it runs, are listed after each run; they are compared when it is run
again. A method of which something has no file is new at each start.
"""

import pickle
import secrets
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from hpobench_ordered.data.identity import NEW_AT_EACH_START, hash_bytes, hash_json
from hpobench_ordered.experiment.user_methods.loaded_code import (
    LoadedCode,
    hash_now,
    list_loaded_code,
)
from hpobench_ordered.experiment.user_methods.source import (
    MethodSource,
    end_script,
    find_source,
    find_source_by_value,
    load_method,
    uses_only_this_package,
)
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.runtime.child import Children

VERSION_LENGTH = 12  # hexadecimal digits of a hash


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
    """What was loaded in a run of a method from outside, as it is stored beside the results.

    Attributes:
        method: Name of the method.
        version: Its version in the results.
        base: Hash of its arguments, and of what was loaded when it was imported.
        imported: What was loaded when it was imported.
        later: The files that were loaded only while it ran, by their paths, with their hashes.
    """

    method: str
    version: str
    base: str
    imported: LoadedCode
    later: dict[str, str] = field(default_factory=dict)


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
    end_script()  # ends the program here if it is only executed to load a method from it
    if uses_only_this_package(spec.method):
        return MethodIdentity(_package_method_version(spec))
    try:
        source = find_source(spec.method)
        imported = children.call(spec.name, load_and_list, source)
    except Exception:  # it has no file, or importing it raises whatever the user's files raise
        # Nothing tells whether it is the same at the next start.
        return MethodIdentity(_make_unique_version(), find_source_by_value(spec.method))

    base = _hash_version([hash_bytes(source.content), *_list_settings(spec), asdict(imported)])
    earlier = [record for record in records if record.method == spec.name and record.base == base]
    version = choose_version(base, earlier, source.folder)
    return MethodIdentity(version, source, MethodRecord(spec.name, version, base, imported))


@cache
def load_and_list(source: MethodSource) -> LoadedCode:
    """Load a method in this process, and list what its import loads; the same list each time."""
    modules_before = frozenset(sys.modules)
    load_method(source)
    return list_loaded_code(source.folder, modules_before)


def method_version(spec: MethodSpec) -> str:
    """The version of a method; one from outside is imported in a process that then ends."""
    with closing(Children()) as children:
        return identify_method(spec, children).version


def identify_here(spec: MethodSpec) -> MethodIdentity:
    """Identify a method that runs in this process.

    Nothing tells what was loaded here for a method from outside, so its version is new each time.
    """
    if uses_only_this_package(spec.method):
        return MethodIdentity(_package_method_version(spec))
    return MethodIdentity(_make_unique_version())


def choose_version(base: str, earlier: Sequence[MethodRecord], folder: Path) -> str:
    """Choose the version of earlier runs if they are up to date, else a new one.

    What a method loads only while it runs is known only from the records of earlier runs. They are
    up to date if those files have not changed since. If no version's are, the new version is a hash
    of the base and of those files as they are now.

    Args:
        base: Hash of what is known before the method runs.
        earlier: Records of the same method with the same base.
        folder: The folder of the method's own file.
    """
    hash_of_path: dict[str, str] = {}  # of the files as they are now
    is_current = defaultdict[str, bool](lambda: True)  # by version
    for record in earlier:
        for path, recorded_hash in record.later.items():
            hash_of_path[path] = hash_now(path, folder)
            if hash_of_path[path] != recorded_hash:
                is_current[record.version] = False
    for record in earlier:
        if is_current[record.version]:
            return record.version
    return _hash_version([base, hash_of_path]) if earlier else base


def _package_method_version(spec: MethodSpec) -> str:
    """Version of a method whose code is of this package.

    A registered method has a number. Another one, such as a registered method with other settings,
    gets a hash, to which the versions of all registered methods contribute: its code may be that of
    any of them.
    """
    if spec.name in list_methods() and method_spec(spec.name) == spec:
        return str(spec.version)
    content = hash_bytes(pickle.dumps(spec.method))
    versions = [f"{name} {method_spec(name).version}" for name in list_methods()]
    return _hash_version([content, *_list_settings(spec), *versions])


def _list_settings(spec: MethodSpec) -> list[str]:
    """What determines the runs of a method beside its code and arguments, as texts."""
    settings = [spec.version, spec.min_history, spec.changed_spaces, spec.uses_data]
    texts = list(map(str, settings))
    # On tasks with less history than it needs, the protocol runs "bo" in its place.
    if spec.min_history:
        texts.append(f"bo {method_spec('bo').version}")
    return texts


def _hash_version(parts: Sequence[object]) -> str:
    """Make a version of what can be written as JSON."""
    return hash_json(parts, sort_keys=True)[:VERSION_LENGTH]


def _make_unique_version() -> str:
    """A random version: runs of the method are new at each start."""
    return NEW_AT_EACH_START + secrets.token_hex(6)
