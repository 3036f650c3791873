"""Errors: one root; messages name what was given, what is allowed and the nearest match."""

import copyreg
import difflib
import random
from collections.abc import Iterable
from importlib import import_module
from numbers import Integral
from typing import Any

MAX_LISTED = 12


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
        # By default an exception is unpickled by calling its class with the final message, which
        # fails if __init__ takes other arguments, and would break a process pool.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class UnknownNameError(HPOBenchOrderedError, LookupError):
    """A benchmark, task, method, surrogate or suite of that name does not exist."""

    def __init__(self, kind: str, given: object, allowed: Iterable[str], *, hint: str = "") -> None:
        names = list(allowed)
        what, of, whose = kind.partition(" of ")  # unknown surrogate 'x' of bowls
        unknown = f"unknown {what} {given!r}{of}{whose}"
        super().__init__(f"{unknown}{suggestion(str(given), names)}{hint}")


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
        super().__init__(
            f"{purpose} needs the package {package!r}; install it with: pip install {package} "
            f"(or, in a checkout of hpobench-ordered, pip install '.[{extra}]')"
        )


def needed(module: str, *, package: str, extra: str, purpose: str) -> Any:
    """Import an optional module without changing Python's global random state.

    Raises a `MissingExtraError`, which names the purpose, if the package is not installed.
    """
    state = random.getstate()
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, extra=extra, purpose=purpose) from error
    finally:
        random.setstate(state)  # scikit-learn draws when it is imported


def check_count(what: str, number: object) -> None:
    """Raise an `ExperimentError` unless a number is a positive integer."""
    if not isinstance(number, Integral) or number < 1:
        raise ExperimentError(f"at least 1 {what} is needed (whole number), but got {number!r}")


def check_seed(seed: object) -> None:
    """Raise an `ExperimentError` unless a seed is a non-negative integer."""
    if not isinstance(seed, Integral) or seed < 0:
        raise ExperimentError(f"a seed must be a whole number from 0, but got {seed!r}")


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
    """A run failed because the benchmark raised an error, or its values depend on earlier calls."""


class DamagedFilesWarning(UserWarning):
    """Damaged files of a result store were moved out of the way."""


class BrokenPluginWarning(UserWarning):
    """Another package registers something unusable, which is left out."""


class HistoryWarning(UserWarning):
    """Part of a history was left out or changed as asked, or is on another search space."""


class PoorSurrogateWarning(UserWarning):
    """A surrogate predicts no better than chance."""


class FailedRunsWarning(UserWarning):
    """Runs of an experiment failed; the others are finished."""


class OutdatedReferenceWarning(UserWarning):
    """Reference results of other versions of benchmarks or methods are left out."""


def enumerated(words: Iterable[str]) -> str:
    """Join words by commas; of more than `MAX_LISTED`, the first and the number of others."""
    given = list(words)
    more = f" and {len(given) - MAX_LISTED} more" if len(given) > MAX_LISTED else ""
    return ", ".join(given[:MAX_LISTED]) + more


def near(given: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name ("; did you mean 'x'?"), "" if none is near."""
    folded = {name.casefold(): name for name in sorted(allowed, reverse=True)}
    found = difflib.get_close_matches(given.casefold(), folded, n=1)
    return f"; did you mean {folded[found[0]]!r}?" if found else ""


def suggestion(given: str, allowed: Iterable[str]) -> str:
    """Suggest the nearest allowed name, else list the allowed names."""
    names = sorted(allowed)
    listed = f"; choose from {enumerated(map(repr, names))}" if names else "; there are none"
    return near(given, names) or listed
