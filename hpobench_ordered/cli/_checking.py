"""Checks the user's methods in a separate process before a long experiment starts."""

import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from hpobench_ordered.cli._options import CHECK_LIMIT
from hpobench_ordered.cli._output import say
from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError, InvalidConfigError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.registry import list_methods
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.testing import (
    ConformanceError,
    check_beats_random_search,
    check_degenerate_input,
    check_method,
)
from hpobench_ordered.testing._require import call_in_new_process

PACKAGE_FOLDER = Path(__file__).parents[1]
MAX_FRAMES = 4  # innermost calls shown of a traceback


class CheckOutcome(NamedTuple):
    """What the checks of a method found: lines to print, and the error that ended them."""

    passed: Sequence[str] = ()
    remarks: Sequence[str] = ()
    error: HPOBenchOrderedError | None = None


def check_own_methods(methods: Sequence[str], *, time_limit: float | None) -> None:
    """Check the methods that do not come with the package, on their contract alone.

    Raises:
        ConformanceError: A method violates the contract.
    """
    for method in methods:
        name = as_method_spec(method).name
        if name not in list_methods():
            say(f"checking {name} on small problems (--no-check skips this)")
            check_and_report(method, time_limit=time_limit, only_contract=True)


def check_and_report(
    method: str,
    *,
    time_limit: float | None,
    must_beat_random_search: bool = False,
    only_contract: bool = False,
) -> None:
    """Check a method and print the verdict after its own output.

    Args:
        method: Name or place of the method.
        time_limit: Seconds that a call may take, as the user said them; None: `CHECK_LIMIT`, as
            the user said nothing; 0: there is no limit.
        must_beat_random_search: Whether it must also beat random search.
        only_contract: Whether only the contract is checked, and success not reported.

    Raises:
        ConformanceError: The first violation.
    """
    as_method_spec(method).check_installed()  # fails before a process is started
    if time_limit is None:
        time_limit = CHECK_LIMIT
    limit_or_none = time_limit or None  # checks know "no limit" as None
    outcome = call_in_new_process(
        run_checks,
        method,
        limit_or_none,
        must_beat_random_search=must_beat_random_search,
        only_contract=only_contract,
    )
    for remark in outcome.remarks:
        say(remark)
    if not only_contract:
        for line in outcome.passed:
            click.echo(line)
    if outcome.error is not None:
        raise outcome.error


def run_checks(
    method: str,
    time_limit: float | None,
    *,
    must_beat_random_search: bool,
    only_contract: bool,
) -> CheckOutcome:
    """Run the checks of a method in this process, up to the first violation.

    A violation is returned, with its traceback as text: exceptions lose their cause on the way to
    another process.
    """
    warnings.simplefilter("ignore")  # they would hide the verdict
    try:
        return _run_checks(
            as_method_spec(method), time_limit, must_beat_random_search, only_contract
        )
    except ConformanceError as error:
        cause = find_root_cause(error)
        if isinstance(cause, ImportError):
            # A module that is not installed is no violation of the contract.
            return CheckOutcome(error=ExperimentError(f"{method} cannot be run here: {cause}"))
        violation = ConformanceError(f"{method} violates the contract: {error}")
        return CheckOutcome(remarks=describe_cause(error), error=violation)


def _run_checks(
    spec: MethodSpec, time_limit: float | None, must_beat_random_search: bool, only_contract: bool
) -> CheckOutcome:
    """Run the checks in turn, and return a line for each that the method passes.

    If it fails on degenerate input, there is only a remark, as many experiments have no such input.

    Raises:
        ConformanceError: The method fails in any other check.
    """
    passed: list[str] = []
    remarks: list[str] = []
    check_method(spec, time_limit=time_limit)
    passed.append(f"ok       {spec.name}: keeps the contract")
    if only_contract:
        return CheckOutcome(passed)

    try:
        check_degenerate_input(spec)
        passed.append(f"ok       {spec.name}: survives degenerate input")
    except ConformanceError as error:
        remarks.append(
            f"note     {error}; this matters only if evaluations fail or are uninformative"
        )

    if must_beat_random_search:
        check_beats_random_search(spec)
        passed.append(f"ok       {spec.name}: beats random search with twice the trials")
    return CheckOutcome(passed, remarks)


def describe_cause(error: BaseException) -> list[str]:
    """Describe where in the method an exception came from.

    Returns:
        The method's own line that led to it, and the innermost calls of the traceback; empty if no
        exception of the method caused it.
    """
    cause = find_root_cause(error)
    # An invalid configuration is noticed by this package, whose traceback would not help.
    if cause is error or isinstance(cause, InvalidConfigError):
        return []

    calls = list(traceback.extract_tb(cause.__traceback__))  # the innermost last
    innermost_calls = traceback.format_list(calls[-MAX_FRAMES:])
    lines = ["".join(innermost_calls).rstrip()]

    call_in_method = _find_call_in_method(calls)
    if call_in_method is not None:
        location = f"{call_in_method.filename}:{call_in_method.lineno}"
        lines.insert(0, f"{location}: {call_in_method.line}")
    return lines


def _find_call_in_method(
    calls: Sequence[traceback.FrameSummary],
) -> traceback.FrameSummary | None:
    """Find the innermost of a traceback's calls that is in the file of the method.

    This package calls the method. The first file outside of the package is therefore that of the
    method; it calls what is in other files, such as libraries.

    Args:
        calls: Calls of the traceback, the innermost last.

    Returns:
        The call; None if all calls are in this package.
    """
    outside = [call for call in calls if not Path(call.filename).is_relative_to(PACKAGE_FOLDER)]
    if not outside:
        return None
    file_of_method = outside[0].filename
    calls_in_method = [call for call in outside if call.filename == file_of_method]
    return calls_in_method[-1]


def find_root_cause(error: BaseException) -> BaseException:
    """Return the first error in a chain of errors, each of which was raised because of another.

    An error that has no cause is returned itself.
    """
    while error.__cause__ is not None:
        error = error.__cause__
    return error
