"""The command `check`: methods that are to be run, before anything long starts."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.cli._checking import check_limit, explained
from hpobench_ordered.cli._options import time_limit_option
from hpobench_ordered.cli._show import say
from hpobench_ordered.files import write_atomically
from hpobench_ordered.testing import (
    ConformanceError,
    check_beats_random_search,
    check_degenerate_input,
    check_method,
)


@click.command(epilog="Example:  hpobench-ordered check mine.py:Mine")
@click.argument("method")
@click.option("--learns", is_flag=True, help="Require that it beats random search, too.")
@time_limit_option
@click.option("--verdict", type=click.Path(path_type=Path), hidden=True)
def check(method: str, learns: bool, time_limit: float | None, verdict: Path | None) -> None:
    """Check a METHOD before anything long starts: a name, package.module:Class or file.py:Class.

    On small problems, with and without conditions, it must suggest valid configurations, as many
    as asked for and in time; the same for the same seed; and share nothing between runs or with the
    global random state. It is checked in a process of its own; the verdict comes last.
    """
    if verdict is None:
        _print_verdict(method, *_verdict_of_another_process(method, learns, time_limit))
        return
    lines: list[str] = []
    error = ""
    try:
        lines.extend(_checks(method, learns, time_limit))
    except ConformanceError as failed:
        error = str(failed)
        lines.append(explained(failed))
    write_atomically(verdict, json.dumps([lines, error]).encode())


def _checks(method: str, learns: bool, time_limit: float | None) -> Iterator[str]:
    """Check a method; yields what it passes.

    Raises:
        ConformanceError: With the first thing that is wrong.
    """
    spec = as_method_spec(method)
    check_method(spec, time_limit=check_limit(time_limit))
    yield f"ok       {spec.name}: holds to the contract"
    try:
        check_degenerate_input(spec)
        yield f"ok       {spec.name}: survives degenerate input"
    except ConformanceError as error:
        yield f"note     {error}; that matters only where evaluations fail or tell nothing"
    if learns:
        check_beats_random_search(spec)
        yield f"ok       {spec.name}: beats random search with twice the trials"


def _verdict_of_another_process(
    method: str, learns: bool, time_limit: float | None
) -> tuple[list[str], str]:
    """What the method passes, and what is wrong; "" if nothing is."""
    as_method_spec(method)  # what cannot be found is said at once
    with TemporaryDirectory() as folder:
        file = Path(folder) / "verdict.json"
        command = [sys.executable, "-m", "hpobench_ordered", "check", method]
        command += ["--verdict", str(file), *(["--learns"] if learns else [])]
        command += [] if time_limit is None else ["--time-limit", str(time_limit)]
        done = subprocess.run(command, check=False)
        if file.is_file():
            lines, error = json.loads(file.read_text())
            return lines, error
    return [], (
        f"the process that checked it ended with exit code {done.returncode} and no verdict: the "
        "method ends or crashes its process"
    )


def _print_verdict(method: str, lines: list[str], error: str) -> None:
    for line in lines:
        if line and not line.startswith("ok "):
            say(line)
    for line in lines:
        if line.startswith("ok "):
            click.echo(line)
    if error:
        raise ConformanceError(f"{method} does not hold to the contract: {error}")
