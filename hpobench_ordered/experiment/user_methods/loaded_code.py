"""Which code a process has loaded for a method: the user's files, and installed packages."""

import os
import sys
import sysconfig
from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.methods.base import MethodSpec

INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
STANDARD_FOLDERS = (Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib")))
PACKAGE_FOLDER = Path(__file__).absolute().parents[2]
OUR_METHODS = "hpobench_ordered.methods."


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
        """Names of the files, packages and methods that are not the same in both."""
        own_parts = asdict(self)
        names = []
        for part, other_versions in asdict(other).items():
            own_versions = own_parts[part]
            for name in {**own_versions, **other_versions}:
                if own_versions.get(name) != other_versions.get(name):
                    names.append(name)
        return names


def list_loaded_code(folder: Path, modules_before: Set[str]) -> LoadedCode:
    """List what this process has loaded for a method.

    Args:
        folder: The folder that the paths of files are relative to.
        modules_before: Names of the modules that had been loaded before the method.
    """
    packages = _find_packages({name.partition(".")[0] for name in modules_before})
    return LoadedCode(hash_user_files(folder), packages, _find_own_methods())


def hash_user_files(folder: Path) -> dict[str, str]:
    """Hash the user's files that this process has loaded.

    A file that is edited later keeps the hash with which it was first listed.

    Args:
        folder: The folder that the paths of files are relative to.
    """
    hash_of_path = {}
    for file in find_user_files().values():
        hash_of_path[_relative_path(file, folder)] = _hash_once(file)
    return hash_of_path


def find_user_files() -> dict[str, Path]:
    """Files of the loaded modules that are neither installed nor of Python or this package.

    They are by the names of the modules.
    """
    file_of_module = {}
    for module, path in _iter_module_files():
        is_of_python = any(map(path.is_relative_to, STANDARD_FOLDERS))
        is_of_package = path.is_relative_to(PACKAGE_FOLDER)
        if not (is_of_python or is_of_package or _is_installed(path)):
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
    """Names and files of the loaded modules; without those in archives."""
    for name in list(sys.modules):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_file():
            yield name, Path(file).absolute()


def _is_installed(path: Path) -> bool:
    """Whether a file is one of installed packages."""
    return not INSTALLED_FOLDERS.isdisjoint(path.parts)


def _find_packages(without: Set[str]) -> dict[str, str]:
    """Versions of the loaded installed packages, by name.

    Args:
        without: Top-level modules whose packages are left out.
    """
    top_modules = set()
    for module, path in _iter_module_files():
        top_module, _, _ = module.partition(".")
        if top_module not in without and _is_installed(path):
            top_modules.add(top_module)
    if not top_modules:  # as the next line is slow
        return {}

    versions = {}
    packages_of_module = metadata.packages_distributions()
    for top_module in top_modules:
        for package in packages_of_module.get(top_module, []):
            versions[package] = metadata.version(package)
    return versions


def _find_own_methods() -> dict[str, int]:
    """Versions of this package's methods whose modules were loaded for a method, by name."""
    versions = {}
    for name in list(sys.modules):
        if name.startswith(OUR_METHODS):
            # Modules of methods list them in SPECS; helper modules have none.
            specs: tuple[MethodSpec, ...] = getattr(sys.modules[name], "SPECS", ())
            for spec in specs:
                versions[spec.name] = spec.version
    return versions
