"""Checks the user's methods in a separate process before a long experiment starts."""

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
from hpobench_ordered.testing._require import call_in_new_process

FRAMES = 4  # number of innermost calls shown of a traceback


def check_own(methods: Sequence[str], *, time_limit: float | None) -> None:
    """Check the methods that are not registered; an invalid one raises a ConformanceError."""
    for method in methods:
        name = as_method_spec(method).name
        if name not in list_methods():
            say(f"checking {name} on small problems (--no-check skips this)")
            verdict(method, time_limit=time_limit, only_contract=True)


def verdict(
    method: str, *, time_limit: float | None, learns: bool = False, only_contract: bool = False
) -> None:
    """Check a method and print the verdict after its own output.

    A call may take `time_limit` seconds, `CHECK_LIMIT` if None, any time if 0. With `learns` it
    must also beat random search; with `only_contract` only the contract is checked, and success not
    reported. The first violation raises a ConformanceError.
    """
    as_method_spec(method).check_installed()  # fails early
    limit = CHECK_LIMIT if time_limit is None else time_limit or None
    lines, error = call_in_new_process(_checked, method, limit, learns, only_contract)
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
    """The checks that a method passes, and the error that ended them."""
    warnings.simplefilter("ignore")  # they would hide the verdict
    lines: list[str] = []
    try:
        lines.extend(_checks(method, limit, learns, only_contract))
    except ConformanceError as error:
        if isinstance(deepest := _deepest(error), ImportError):
            return [], ExperimentError(f"{method} cannot be run here: {deepest}")
        said = ConformanceError(f"{method} violates the contract: {error}")
        return [where for where in [explained(error)] if where], said
    return lines, None


def _checks(method: str, limit: float | None, learns: bool, only_contract: bool) -> Iterator[str]:
    spec = as_method_spec(method)
    check_method(spec, time_limit=limit)
    yield f"ok       {spec.name}: keeps the contract"
    if only_contract:
        return
    try:
        check_degenerate_input(spec)
        yield f"ok       {spec.name}: survives degenerate input"
    except ConformanceError as error:
        yield f"note     {error}; this matters only if evaluations fail or are uninformative"
    if learns:
        check_beats_random_search(spec)
        yield f"ok       {spec.name}: beats random search with twice the trials"


def explained(error: BaseException) -> str:
    """The traceback of an exception in the method, "" if there is none."""
    deepest = _deepest(error)
    if deepest is error or isinstance(deepest, InvalidConfigError):
        return ""
    return "".join(traceback.format_tb(deepest.__traceback__)[-FRAMES:]).rstrip()


def _deepest(error: BaseException) -> BaseException:
    """The root cause of an exception."""
    return error if error.__cause__ is None else _deepest(error.__cause__)
