"""Packages that only some users need: extras of this package."""

import random
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from hpobench_ordered.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Extra:
    """An optional package that a surrogate or method needs.

    Attributes:
        name: Name of the extra in this package's metadata, such as "tables".
        package: Name of the package on PyPI.
        module: The module it is imported as.
    """

    name: str
    package: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether the module can be found."""
        return find_spec(self.module) is not None

    def check(self, purpose: str) -> None:
        """Check that the package is installed.

        Args:
            purpose: What needs the package, for the message.

        Raises:
            MissingExtraError: The package is not installed.
        """
        if not self.is_installed:
            raise MissingExtraError(self.package, extra=self.name, purpose=purpose)


SKLEARN = Extra("generate", "scikit-learn", "sklearn")
NEURAL = Extra("neural", "jax", "jax")
OPTUNA = Extra("optuna", "optuna", "optuna")


def import_extra(module: str, *, package: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional package without changing Python's global random state.

    Some packages draw random numbers when they are imported. Without a restored state, other code
    would then draw other numbers afterwards.

    Args:
        module: The module, such as "sklearn.ensemble".
        package: Its package on PyPI, for the message.
        extra: Name of the extra in this package's metadata, for the message.
        purpose: What needs it, for the message.

    Raises:
        MissingExtraError: The package is not installed.
    """
    state_before = random.getstate()
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra=extra, purpose=purpose) from error
    finally:
        random.setstate(state_before)
