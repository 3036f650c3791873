"""Which files a process has loaded for a method from outside.

Listed are all modules outside of Python's standard library, this package, the packages that this
one needs, and what every process of the experiment loads at its start. A module counts by the hash
of its file; the modules of a package that was installed from an index count by its name and
version, those of another installed package by all its files.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, metadata
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from typing import Annotated

import msgspec

from hpobench_ordered.experiment.user_methods.loading import (
    MethodSource,
    compiled_files,
    load_method,
)
from hpobench_ordered.experiment.user_methods.module_files import (
    is_installed,
    is_of_package,
    is_standard,
)
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.wrapping.naming import SCRIPT_NAMES

THIS_DISTRIBUTION = "hpobench-ordered"
OUR_METHODS = "hpobench_ordered.methods."


PackageDescription = Annotated[str, msgspec.Meta(pattern=r"^\S")]
"""Name and version of a package; also its hash if these do not determine its files."""


@dataclass(frozen=True, order=True)
class LoadedFile:
    """A module, and the file that it was loaded from.

    Attributes:
        module: Its name.
        digest: SHA-256 of the file; of a module in an archive, that of the archive.
        place: The file, relative to the folder of the method's own file. It does not belong to the
            method's identity, but is where the file is looked for.
    """

    module: str
    digest: str
    place: str


@dataclass(frozen=True)
class LoadedFiles:
    """What a process has loaded.

    Attributes:
        files: The user's modules.
        packages: Installed packages, by name and version or by a hash of their files.
        methods: This package's own methods that the user's files import, with their versions.
    """

    files: tuple[LoadedFile, ...] = ()
    packages: tuple[PackageDescription, ...] = ()
    methods: tuple[str, ...] = ()

    def describe(self) -> list[str]:
        """What identifies the loaded code, as texts; not where its files are."""
        files = [f"{file.module} {file.digest}" for file in self.files]
        return [*files, *self.packages, *self.methods]

    def without(self, other: "LoadedFiles") -> "LoadedFiles":
        """Files and packages that `other` does not list.

        Methods are left out: they are compared only as part of what an import loads.
        """
        files = [file for file in self.files if file not in other.files]
        packages = [package for package in self.packages if package not in other.packages]
        return LoadedFiles(tuple(files), tuple(packages))


@dataclass
class _FirstLoading:
    """What this process had loaded when it imported a method for the first time.

    Attributes:
        modules_before: Names of modules that were loaded before.
        imported: What was loaded by the import, by the pickle of the method.
    """

    modules_before: frozenset[str] = frozenset(SCRIPT_NAMES)
    imported: dict[bytes, LoadedFiles] = field(default_factory=dict)


_first_loading = _FirstLoading()


def load_and_list(source: MethodSource) -> LoadedFiles:
    """Load a method in this process, and list what its import loads.

    Later calls return the same list: a module is imported only once in a process. What the process
    had loaded before the first method is not listed.
    """
    imported = _first_loading.imported
    if source.content in imported:
        return imported[source.content]

    if not imported:
        # Numba loads other packages that happen to be installed: those do not count.
        import_module("hpobench_ordered.runtime.compiling")
        _first_loading.modules_before |= sys.modules.keys()
    load_method(source)
    imported[source.content] = list_loaded_files(source.folder)
    return imported[source.content]


def list_loaded_files(folder: Path) -> LoadedFiles:
    """List what this process has loaded for a method.

    Python's standard library and this package's own files are left out.

    Args:
        folder: The folder that places of files are relative to.
    """
    file_of_module = dict[str, LoadedFile]()
    packages = set[str]()
    for module, path in _iter_module_files():
        if is_standard(path) or is_of_package(path):
            continue
        if is_installed(path):
            top_module = module.partition(".")[0]
            packages.update(_describe_packages(top_module))
            continue
        digest = file_digest(path)
        if digest:  # "" if the file does not exist any more
            file_of_module[module] = LoadedFile(module, digest, relative_place(path, folder))

    # Of files that were compiled here that text counts, not the file as it is now. Some may be of
    # modules that were removed from `sys.modules` again.
    for module, (path, digest) in compiled_files().items():
        file_of_module[module] = LoadedFile(module, digest, relative_place(path, folder))

    files = [file_of_module[module] for module in sorted(file_of_module)]
    return LoadedFiles(tuple(files), tuple(sorted(packages)), _list_package_methods())


def list_changed_files() -> list[str]:
    """Names of files that were edited after this process had compiled them."""
    changed = []
    for path, digest in compiled_files().values():
        if file_digest(path) != digest:
            changed.append(path.name)
    return sorted(changed)


def is_unchanged(files: LoadedFiles, folder: Path) -> bool:
    """Whether files that a method loaded elsewhere or earlier are the same here and now.

    A file of the same name that would be imported instead is a change, too.

    Args:
        files: What it loaded.
        folder: The folder here that the places of files are relative to.
    """
    for file in files.files:
        path = folder / file.place
        is_edited = file_digest(path) != file.digest
        if is_edited or _is_hidden(file.module, path):
            return False
    return all(map(_is_installed_package, files.packages))


def describe_current_state(files: LoadedFiles, folder: Path) -> list[str]:
    """What identifies these files as they are now, and those packages that are still installed."""
    descriptions = [f"{file.module} {file_digest(folder / file.place)}" for file in files.files]
    packages = [package for package in files.packages if _is_installed_package(package)]
    return sorted(descriptions) + packages


def relative_place(path: Path, folder: Path) -> str:
    """A file relative to a folder; in an archive, the archive."""
    file = _find_file_or_archive(path)
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # on another drive
        return file.as_posix()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, or of the archive that it is in; "" if there is none."""
    file = _find_file_or_archive(path)
    if not file.is_file():  # a pipe or a device may never end
        return ""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return ""


def _find_file_or_archive(path: Path) -> Path:
    """The file; or the archive that the path leads into; or the path if there is neither."""
    for candidate in (path, *path.parents):
        if candidate.is_file():
            return candidate
    return path


def _iter_module_files() -> Iterator[tuple[str, Path]]:
    """Names and files of the modules that a method has loaded into this process."""
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name not in _first_loading.modules_before:
            yield name, Path(file).absolute()


def _is_hidden(module: str, path: Path) -> bool:
    """Whether an import of a module would find another file than this one.

    False for modules in packages, which are looked for in their package, and for scripts, which are
    started by their file.
    """
    if "." in module or module in SCRIPT_NAMES:  # names of the user's program, such as "__main__"
        return False
    spec = PathFinder.find_spec(module)
    if spec is None or spec.origin is None:
        return False
    file = _find_file_or_archive(Path(spec.origin))
    return not (file.exists() and path.exists() and file.samefile(path))


@cache
def _describe_packages(top_module: str) -> tuple[str, ...]:
    """Descriptions of the installed packages that a top-level module belongs to.

    Packages that this one needs are left out: every process has them.
    """
    distributions = _distributions_of_modules().get(top_module, ())
    names = set(map(normalise, distributions)) - _list_needed_packages()
    descriptions = [_describe_package(name) for name in sorted(names)]
    return tuple(descriptions)


def _describe_package(name: str) -> str:
    """Name and version of a package, with a hash of its files if these do not determine them."""
    distribution = metadata.distribution(name)
    has_record = bool(distribution.read_text("RECORD"))
    # PEP 610: the file tells that it was installed from a folder, a repository or an address.
    has_other_source = bool(distribution.read_text("direct_url.json"))
    is_from_index = has_record and not has_other_source
    if is_from_index:  # an index never changes the files of a version
        return f"{name} {distribution.version}"
    return f"{name} {distribution.version} {_hash_code_files(distribution)}"


def _hash_code_files(distribution: metadata.Distribution) -> str:
    """Hash of the names and contents of the code of an installed package."""
    digest = hashlib.sha256()
    suffixes = (".py", *EXTENSION_SUFFIXES)  # Python files, and compiled ones such as .so
    for file in sorted(distribution.files or (), key=str):
        if file.name.endswith(suffixes):
            digest.update(f"{file} {file_digest(Path(str(file.locate())))}".encode())
    return digest.hexdigest()


def _is_installed_package(description: str) -> bool:
    """Whether a package is installed as it was when `_describe_package` described it."""
    name = description.partition(" ")[0]
    try:
        return _describe_package(name) == description
    except metadata.PackageNotFoundError:
        return False


_distributions_of_modules = cache(metadata.packages_distributions)  # slow


@cache
def _list_needed_packages() -> frozenset[str]:
    """This package and all that it needs, directly or not; no extras."""
    needed = set[str]()
    waiting = [THIS_DISTRIBUTION]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        waiting += _list_requirements(name)
    return frozenset(needed)


def _list_requirements(name: str) -> Iterable[str]:
    """Names of the packages that a package needs; no extras, none of one that is missing."""
    try:
        requirements = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    names = []
    for requirement in requirements:
        match = re.match(r"[\w.-]+", requirement)
        is_of_extra = "extra ==" in requirement  # such as 'rich>=13; extra == "cli"'
        if match is not None and not is_of_extra:
            names.append(normalise(match.group()))
    return names


def normalise(name: str) -> str:
    """The name of a distribution as indices compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _list_package_methods() -> tuple[str, ...]:
    """This package's methods whose modules are loaded, with their versions.

    They count by their versions, since this package's own files are not listed.
    """
    methods = []
    for name, module in [*sys.modules.items()]:
        if name.startswith(OUR_METHODS):  # modules of `hpobench_ordered.methods`
            # Modules of methods list them in SPECS; helper modules have none.
            specs: tuple[MethodSpec, ...] = getattr(module, "SPECS", ())
            methods += [f"{spec.name} {spec.version}" for spec in specs]
    return tuple(sorted(methods))
