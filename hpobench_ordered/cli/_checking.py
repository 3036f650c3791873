"""Checks a user's methods before anything long starts."""

import traceback
from collections.abc import Iterable

from hpobench_ordered.cli._show import say
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods

CHECK_LIMIT = 30.0
"""Seconds that one call into a method may take on a small problem."""
FRAMES = 4
"""Calls that are shown where a method raised, the innermost ones."""


def check_limit(requested: float | None) -> float | None:
    """The limit of a check: what was asked for; 0: no limit."""
    return CHECK_LIMIT if requested is None else requested or None


def check_own(methods: Iterable[MethodSpec], *, time_limit: float | None) -> None:
    """Check those methods that are not registered.

    Args:
        methods: The methods.
        time_limit: As on the command line.

    Raises:
        ConformanceError: With what is wrong with the first bad one.
    """
    registered = list_methods()
    for spec in methods:
        if spec.name not in registered:
            say(f"checking {spec.name} on small problems (--no-check leaves that out)")
            checked(spec, limit=check_limit(time_limit))


def checked(spec: MethodSpec, *, limit: float | None) -> None:
    """Check a method, and show where it raised.

    Raises:
        ConformanceError: With the first thing that is wrong.
    """
    from hpobench_ordered.testing import ConformanceError, check_method

    try:
        check_method(spec, time_limit=limit)
    except ConformanceError as error:
        say(explained(error))
        raise


def explained(error: BaseException) -> str:
    """Where a method raised; "" where it did not."""
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    if deepest is error or isinstance(deepest, InvalidConfigError):
        return ""
    return "".join(traceback.format_tb(deepest.__traceback__)[-FRAMES:]).rstrip()
