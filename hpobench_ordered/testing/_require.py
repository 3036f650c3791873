"""The base of the conformance suites, their error and shared checks."""

import pickle
import random
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, ClassVar, ParamSpec, TypeVar

import numpy as np

from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError
from hpobench_ordered.runtime.child import CHILDREN, ChildDiedError

P = ParamSpec("P")
T = TypeVar("T")


class ConformanceError(HPOBenchOrderedError, AssertionError):
    """A benchmark or method breaks its contract."""


class Conformance:
    """Properties as tests, run by pytest in a subclass or one after the other by `check`."""

    executor: Executor | None = None
    _subject: ClassVar[object] = None
    _known: ClassVar[dict[object, Any]] = {}

    @classmethod
    def check(cls, **attributes: object) -> None:
        """Run all tests; the first that fails raises `ConformanceError`."""
        suite = type(cls.__name__, (cls,), attributes)()
        for name in [name for name in vars(cls) if name.startswith("test_")]:
            getattr(suite, name)()

    def _once(self, subject: object, key: object, compute: Callable[[], T]) -> T:
        """A value that several tests need, computed once per method or benchmark."""
        cls = type(self)
        if cls._subject is not subject:
            cls._subject, cls._known = subject, {}
        if key not in cls._known:
            cls._known[key] = compute()
        known: T = cls._known[key]
        return known


def require(condition: object, message: str) -> None:
    """Raise `ConformanceError` unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


def global_random_state() -> bytes:
    """States of the global random generators of Python and numpy."""
    return pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002


def elsewhere(
    executor: Executor | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in another process, by default a child process."""
    if executor is not None:
        return executor.submit(function, *args, **kwargs).result()
    try:
        return CHILDREN.call_apart("", function, *args, **kwargs)
    except ExperimentError as error:
        raise ConformanceError(f"it cannot be checked in another process: {error}") from error
    except ChildDiedError as died:
        raise ConformanceError(f"it ends or crashes its process\n{died}".rstrip()) from None


def in_new_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a new process."""
    CHILDREN.close()
    return elsewhere(None, function, *args, **kwargs)
