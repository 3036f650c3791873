"""What the suites share: their error, and ways to look at what is checked."""

import pickle
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import ParamSpec, TypeVar, cast

import numpy as np

from hpobench_ordered.errors import HPOBenchOrderedError

P = ParamSpec("P")
T = TypeVar("T")


class ConformanceError(HPOBenchOrderedError, AssertionError):
    """A benchmark or method does not hold to its contract."""


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
    """Call a function in another process; in one started for it without an executor.

    Raises:
        ConformanceError: What is given cannot be sent there.
    """
    if executor is not None:
        return executor.submit(function, *args, **kwargs).result()
    from joblib import Parallel, delayed

    # With two workers joblib starts processes, and sends them classes of scripts and notebooks too.
    try:
        (result,) = Parallel(n_jobs=2)([delayed(function)(*args, **kwargs)])
    except BrokenProcessPool as error:
        raise ConformanceError(
            "it cannot be sent to another process: define it in a module that can be imported "
            f"there ({error})"
        ) from error
    return cast("T", result)


def in_new_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a process that has done nothing before."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
    return elsewhere(None, function, *args, **kwargs)
