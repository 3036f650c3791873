"""The base of the conformance suites, their error and shared checks."""

import pickle
import random
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np

from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError
from hpobench_ordered.runtime.child import CHILDREN, ChildDiedError, StepTimeoutError

T = TypeVar("T")


class ConformanceError(HPOBenchOrderedError, AssertionError):
    """A benchmark or method breaks its contract."""


class Conformance:
    """Base of suites with one test per property, which pytest runs in a subclass, or `check`."""

    executor: Executor | None = None
    _cached_subject: ClassVar[object] = None
    _cache: ClassVar[dict[object, Any]] = {}

    @classmethod
    def check(cls, **attributes: object) -> None:
        """Run all tests one after the other, without pytest.

        Args:
            attributes: Attributes of the suite, such as the method that is tested.

        Raises:
            ConformanceError: With the first test that fails.
        """
        # A subclass with these attributes, as a user of pytest writes one.
        suite = type(cls.__name__, (cls,), attributes)()
        test_names = [name for name in vars(cls) if name.startswith("test_")]
        for name in test_names:
            getattr(suite, name)()

    def _compute_once(self, subject: object, key: object, compute: Callable[[], T]) -> T:
        """Return a value that several tests need, computed once per method or benchmark.

        pytest makes a new instance for each test, so the values are cached in the class, and only
        those of the latest subject.

        Args:
            subject: The method or benchmark that is tested.
            key: Identifies the value among those of the subject.
            compute: Computes the value.
        """
        cls = type(self)
        if cls._cached_subject is not subject:
            cls._cached_subject = subject
            cls._cache = {}

        if key not in cls._cache:
            cls._cache[key] = compute()
        value: T = cls._cache[key]
        return value


def require(condition: object, message: str) -> None:
    """Raise `ConformanceError` unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


def read_global_random_state() -> bytes:
    """Return the states of the global random generators of Python and numpy."""
    return pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002


def call_in_other_process(
    executor: Executor | None, function: Callable[..., T], *args: object, **kwargs: object
) -> T:
    """Call a function in the executor's process, or in a child process if there is no executor.

    Raises:
        ConformanceError: The child process cannot be used, ends, or takes too long.
    """
    if executor is not None:
        return executor.submit(function, *args, **kwargs).result()
    try:
        return CHILDREN.call("", partial(function, **kwargs), *args)
    except ExperimentError as error:
        raise ConformanceError(f"it cannot be checked in another process: {error}") from error
    except StepTimeoutError as overdue:
        place = overdue.step.replace("\n", ", ")
        message = (
            f"it takes longer than {overdue.limit:g} s (task {place}); --time-limit, or "
            "`time_limit=`, allows more"
        )
        raise ConformanceError(f"{message}\n{overdue.report}".rstrip()) from None
    except ChildDiedError as died:
        raise ConformanceError(f"it ends or crashes its process\n{died}".rstrip()) from None


def call_in_new_process(function: Callable[..., T], *args: object, **kwargs: object) -> T:
    """Call a function in a process that has run nothing before."""
    CHILDREN.close()  # ends idle child processes, which would be used again
    return call_in_other_process(None, function, *args, **kwargs)
