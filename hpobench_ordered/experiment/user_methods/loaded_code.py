"""Which code a process has loaded for a method: the user's files, and installed packages."""

import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.methods.base import MethodSpec

INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
STANDARD_FOLDERS = (Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib")))
PACKAGE_FOLDER = Path(__file__).absolute().parents[2]
OUR_METHODS = "hpobench_ordered.methods."

LOADED_BEFORE = frozenset(name.partition(".")[0] for name in sys.modules)
"""Modules and packages that every process of a method has loaded before the method."""


@dataclass(frozen=True)
class LoadedCode:
    """Code that the import of a method has loaded.

    Attributes:
        files: SHA-256 of the user's files, by their paths from the folder of the method.
        packages: Versions of installed packages, by name.
        methods: Versions of this package's own methods, by name.
    """

    files: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)

    def list_differences(self, other: "LoadedCode") -> list[str]:
        """Names of the files, packages and methods that are not the same in both, sorted."""
        own_items = {*self.files.items(), *self.packages.items(), *self.methods.items()}
        other_items = {*other.files.items(), *other.packages.items(), *other.methods.items()}
        return sorted({name for name, _ in own_items ^ other_items})


def list_loaded_code(folder: Path) -> LoadedCode:
    """List what this process has loaded for a method.

    Args:
        folder: The folder that the paths of files are relative to.
    """
    return LoadedCode(hash_user_files(folder), _find_packages(), _find_own_methods())


def hash_user_files(folder: Path) -> dict[str, str]:
    """Hash the user's files that this process has loaded.

    A file that is edited later keeps the hash with which it was first listed.

    Args:
        folder: The folder that the paths of files are relative to.
    """
    hash_of_path = {}
    for path in find_user_files().values():
        for file in (path, *path.parents):  # the file, or the archive that it is in
            if file.is_file():
                hash_of_path[_relative_path(file, folder)] = _hash_once(file)
                break
    return dict(sorted(hash_of_path.items()))


def find_user_files() -> dict[str, Path]:
    """Files of the loaded modules that are neither installed nor of Python or this package.

    They are by the names of the modules.
    """
    file_of_module = {}
    for module, path in _iter_module_files():
        is_of_python = any(map(path.is_relative_to, STANDARD_FOLDERS))
        is_of_user = not (is_of_python or path.is_relative_to(PACKAGE_FOLDER))
        if is_of_user and not _is_installed(path):
            file_of_module[module] = path
    return file_of_module


def hash_now(path: str, folder: Path) -> str:
    """Hash a file as it is now, by its path from a folder; "" if there is none."""
    try:
        return hash_file(folder / path)
    except OSError:
        return ""


_hash_once = cache(hash_file)


def _relative_path(file: Path, folder: Path) -> str:
    """The path of a file from a folder."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # on another drive
        return file.as_posix()


def _iter_module_files() -> Iterator[tuple[str, Path]]:
    """Names and files of the loaded modules."""
    for module_name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            yield module_name, Path(file).absolute()


def _is_installed(path: Path) -> bool:
    """Whether a file is one of installed packages."""
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)


def _find_packages() -> dict[str, str]:
    """Versions of the installed packages that were loaded for a method, by name."""
    top_modules = set()
    for module, path in _iter_module_files():
        if _is_installed(path):
            top_modules.add(module.partition(".")[0])
    top_modules -= LOADED_BEFORE

    versions = {}
    if top_modules:  # as the next line is slow
        distributions = metadata.packages_distributions()
        for module in sorted(top_modules):
            for package in distributions.get(module, ()):
                versions[package] = metadata.version(package)
    return dict(sorted(versions.items()))


def _find_own_methods() -> dict[str, int]:
    """Versions of this package's methods whose modules were loaded for a method, by name."""
    versions = {}
    for name, module in [*sys.modules.items()]:
        if name.startswith(OUR_METHODS):
            # Modules of methods list them in SPECS; helper modules have none.
            specs: tuple[MethodSpec, ...] = getattr(module, "SPECS", ())
            versions.update({spec.name: spec.version for spec in specs})
    return dict(sorted(versions.items()))
