"""The error of the conformance suites, and the checks that they share."""

import pickle
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import numpy as np

from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError
from hpobench_ordered.runtime.child import CHILDREN, ChildDiedError

P = ParamSpec("P")
T = TypeVar("T")


class ConformanceError(HPOBenchOrderedError, AssertionError):
    """A benchmark or method breaks its contract."""


def require(condition: object, message: str) -> None:
    """Raise `ConformanceError` unless the condition holds."""
    if not condition:
        raise ConformanceError(message)


@contextmanager
def untouched_global_random_state(what: str) -> Iterator[None]:
    """Require that what happens inside does not use the global random state."""
    numpy_before, python_before = pickle.dumps(np.random.get_state()), random.getstate()  # noqa: NPY002
    yield
    numpy_after = pickle.dumps(np.random.get_state())  # noqa: NPY002
    untouched = numpy_after == numpy_before and random.getstate() == python_before
    require(untouched, f"{what} uses the global random state")


def elsewhere(
    executor: Executor | None, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function in another process; default: one started for it."""
    if executor is not None:
        return executor.submit(function, *args, **kwargs).result()
    try:
        return CHILDREN.call(function, *args, **kwargs)
    except ExperimentError as error:
        raise ConformanceError(f"it cannot be checked in another process: {error}") from error
    except ChildDiedError as died:
        raise ConformanceError(f"it ends or crashes its process\n{died}".rstrip()) from None


def in_new_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a new process."""
    CHILDREN.close()
    return elsewhere(None, function, *args, **kwargs)
