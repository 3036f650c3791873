"""Packages that only some users need: extras of this package."""

from dataclasses import dataclass
from importlib.util import find_spec

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
            purpose: What needs it, for the message.

        Raises:
            MissingExtraError: It is not.
        """
        if not self.is_installed:
            raise MissingExtraError(self.package, extra=self.name, purpose=purpose)


SKLEARN = Extra("generate", "scikit-learn", "sklearn")
NEURAL = Extra("neural", "jax", "jax")
OPTUNA = Extra("optuna", "optuna", "optuna")
