"""The command `check`, which checks a method before a long experiment."""

import click

from hpobench_ordered.cli._completion import complete_method
from hpobench_ordered.cli._options import time_limit_option


@click.command(epilog="Example:  hpobench-ordered check mine.py:Mine")
@click.argument("method", shell_complete=complete_method)
@click.option("--learns", is_flag=True, help="Require also that it beats random search.")
@time_limit_option
def check(method: str, learns: bool, time_limit: float | None) -> None:
    """Check a METHOD before anything long starts: a name, package.module:Class or file.py:Class.

    On small problems, with and without conditions, it must suggest valid configurations, as many
    as asked for and in time; be deterministic given the seed; and share nothing between runs or
    with the global random state. It is checked in a separate process; the verdict comes last.
    """
    from hpobench_ordered.cli._checking import verdict

    verdict(method, time_limit=time_limit, learns=learns)
