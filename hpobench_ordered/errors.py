"""Errors: one root; messages name what was given, what is allowed and the nearest match."""

import copyreg
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hpobench_ordered._wording import suggest_allowed


class HPOBenchOrderedError(Exception):
    """Root of every error this package raises on purpose.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> try:
        ...     hbo.load("newsvender")
        ... except hbo.HPOBenchOrderedError as error:
        ...     print(type(error).__name__)
        UnknownNameError
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error such that it is rebuilt without calling `__init__`.

        By default an exception is unpickled by calling its class with the final message. This fails
        if `__init__` takes other arguments, and would break a pool of processes.
        """
        # `copyreg.__newobj__` calls `__new__` alone; then the attributes are restored.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UnknownNameError(HPOBenchOrderedError, LookupError):
    """A benchmark, task, method, surrogate or suite of that name does not exist."""

    def __init__(self, kind: str, name: object, allowed: Iterable[str], *, hint: str = "") -> None:
        """Write the message, which suggests an allowed name.

        Args:
            kind: What the name should be of, such as "task" or "surrogate of bowls".
            name: The unknown name.
            allowed: All names that exist.
            hint: End of the message.
        """
        noun, of, owner = kind.partition(" of ")
        problem = f"unknown {noun} {name!r}{of}{owner}"  # unknown surrogate 'x' of bowls
        super().__init__(f"{problem}{suggest_allowed(str(name), allowed)}{hint}")


class InvalidConfigError(HPOBenchOrderedError, ValueError):
    """A configuration does not fit its search space."""


class InvalidSpaceError(HPOBenchOrderedError, ValueError):
    """A search space cannot be described, or uses something unsupported."""


class InvalidNameError(HPOBenchOrderedError, ValueError):
    """A name of a benchmark, task or method cannot be printed or be part of a file's name."""


class ArtifactError(HPOBenchOrderedError):
    """An artifact is missing, incomplete or does not match its recorded hash."""


class NotFetchedError(ArtifactError):
    """A file must be fetched before the benchmark can be used."""


class DownloadError(HPOBenchOrderedError):
    """A file could not be downloaded or is not the published one."""


class MissingExtraError(HPOBenchOrderedError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        """Write the message, which says how to install the package.

        Args:
            package: Name of the package on PyPI.
            extra: Name of the extra in this package's metadata.
            purpose: What needs the package, such as "fitting a forest".
        """
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: pip install {package} "
            f"(or, in a checkout of hpobench-ordered, pip install '.[{extra}]')"
        )


class EvaluationsError(HPOBenchOrderedError, ValueError):
    """Evaluations are malformed, or do not fit a task or search space."""


class DuplicateNameError(HPOBenchOrderedError):
    """Two packages register the same name."""


class StoreError(HPOBenchOrderedError):
    """A result store cannot be read or written, or belongs to another version."""


class ExperimentError(HPOBenchOrderedError, ValueError):
    """An experiment cannot be run as asked."""


class MethodError(HPOBenchOrderedError):
    """A method raised an exception while it was constructed, asked or told, or broke its contract.

    Attributes:
        task: Name of the task it was on.
        when: When on that task, such as "trial 3".
    """

    def __init__(self, message: str, *, task: str = "", when: str = "") -> None:
        """Make the error; the class describes `task` and `when`, which are "" if unknown."""
        super().__init__(message)
        self.task = task
        self.when = when


class InvalidSuggestionError(MethodError):
    """A method suggested an invalid configuration."""


class SuggestionTimeoutError(MethodError):
    """A method exceeded its time limit."""


class ProcessDiedError(MethodError):
    """The process that a method ran in died."""


class BenchmarkFailedError(MethodError):
    """A run failed because the benchmark raised an error."""


class BrokenPluginWarning(UserWarning):
    """Another package registers something unusable, which is left out."""


class HistoryWarning(UserWarning):
    """Part of a history was left out or changed as asked, or is on another search space."""


class ExhaustedSpaceWarning(UserWarning):
    """All configurations of a search space have been suggested, and they are repeated now."""


class ContinuedSearchWarning(UserWarning):
    """A search goes on from evaluations of its task that an earlier one has recorded."""


class PoorSurrogateWarning(UserWarning):
    """A surrogate predicts no better than chance."""


class FailedRunsWarning(UserWarning):
    """Runs of an experiment failed; the others are finished."""


class WaitingWarning(UserWarning):
    """An experiment waits for something, such as the first worker of a cluster."""


class OutdatedReferenceWarning(UserWarning):
    """Reference results of other versions of benchmarks or methods are left out."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Issue a warning that points to the line of the user's code which called this package.

    That line is in the innermost frame of the call stack whose code is not in this package.
    """
    folder_of_package = str(Path(__file__).parent)
    frame = sys._getframe(1)  # the caller of this function
    stack_level = 2  # of this frame, as `warnings.warn` counts: this function itself has 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folder_of_package):
        frame = frame.f_back
        stack_level += 1
    warnings.warn(message, category, stacklevel=stack_level)
