"""Checking methods of the user's in a process of its own, before anything long starts."""

import traceback
import warnings
from collections.abc import Iterator, Sequence

import click

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.cli._options import CHECK_LIMIT
from hpobench_ordered.cli._show import say
from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError, InvalidConfigError
from hpobench_ordered.registry import list_methods
from hpobench_ordered.testing import (
    ConformanceError,
    check_beats_random_search,
    check_degenerate_input,
    check_method,
)
from hpobench_ordered.testing._require import in_new_process

FRAMES = 4
"""Calls that are shown where a method raised, the innermost ones."""


def check_own(methods: Sequence[str], *, time_limit: float | None) -> None:
    """Check those methods that are not registered.

    Args:
        methods: The methods, as on the command line.
        time_limit: As on the command line.

    Raises:
        ConformanceError: With what is wrong with the first bad one.
    """
    for method in methods:
        name = as_method_spec(method).name
        if name not in list_methods():
            say(f"checking {name} on small problems (--no-check leaves that out)")
            verdict(method, time_limit=time_limit, only_contract=True)


def verdict(
    method: str, *, time_limit: float | None, learns: bool = False, only_contract: bool = False
) -> None:
    """Check a method, and say the verdict after whatever the method itself prints.

    Args:
        method: The method, as on the command line.
        time_limit: Seconds that a call may take; None: `CHECK_LIMIT`; 0: no limit.
        learns: Whether it must beat random search, too.
        only_contract: Whether the contract alone is checked, and no more said if it is kept.

    Raises:
        ConformanceError: With the first thing that is wrong.
        ExperimentError: A package that it needs is not installed.
    """
    as_method_spec(method).check_installed()  # what cannot be found is said at once
    limit = CHECK_LIMIT if time_limit is None else time_limit or None
    lines, error = in_new_process(_checked, method, limit, learns, only_contract)
    passed = [line for line in lines if line.startswith("ok ")]
    for line in lines:
        if line not in passed:
            say(line)
    for line in () if only_contract else passed:
        click.echo(line)
    if error is not None:
        raise error


def _checked(
    method: str, limit: float | None, learns: bool, only_contract: bool
) -> tuple[list[str], HPOBenchOrderedError | None]:
    """What a method passes, and what is wrong."""
    warnings.simplefilter("ignore")  # they would drown the verdict
    lines: list[str] = []
    try:
        lines.extend(_checks(method, limit, learns, only_contract))
    except ConformanceError as error:
        if isinstance(deepest := _deepest(error), ImportError):
            return [], ExperimentError(f"{method} cannot be run here: {deepest}")
        said = ConformanceError(f"{method} does not hold to the contract: {error}")
        return [where for where in [explained(error)] if where], said
    return lines, None


def _checks(method: str, limit: float | None, learns: bool, only_contract: bool) -> Iterator[str]:
    spec = as_method_spec(method)
    check_method(spec, time_limit=limit)
    yield f"ok       {spec.name}: holds to the contract"
    if only_contract:
        return
    try:
        check_degenerate_input(spec)
        yield f"ok       {spec.name}: survives degenerate input"
    except ConformanceError as error:
        yield f"note     {error}; that matters only where evaluations fail or tell nothing"
    if learns:
        check_beats_random_search(spec)
        yield f"ok       {spec.name}: beats random search with twice the trials"


def explained(error: BaseException) -> str:
    """Where a method raised; "" where it did not."""
    deepest = _deepest(error)
    if deepest is error or isinstance(deepest, InvalidConfigError):
        return ""
    return "".join(traceback.format_tb(deepest.__traceback__)[-FRAMES:]).rstrip()


def _deepest(error: BaseException) -> BaseException:
    """What an exception was raised because of, in the end."""
    return error if error.__cause__ is None else _deepest(error.__cause__)
