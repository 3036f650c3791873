"""Whose a module's file is: Python's, an installed package's, this package's or the user's."""

import os
import sysconfig
from pathlib import Path

_INSTALLED = frozenset({"site-packages", "dist-packages"})
_STANDARD = frozenset({Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib"))})
_PACKAGE = Path(__file__).absolute().parents[2]


def is_installed(file: Path) -> bool:
    """Whether a file or folder is one of installed packages."""
    return not _INSTALLED.isdisjoint(file.parts)


def is_standard(file: Path) -> bool:
    """Whether a file or folder belongs to Python's standard library."""
    return not is_installed(file) and any(map(file.is_relative_to, _STANDARD))


def is_of_package(file: Path) -> bool:
    """Whether a file or folder belongs to this package."""
    return file.is_relative_to(_PACKAGE)
