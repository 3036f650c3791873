"""Completion of names in the shell.

Click asks for them in a separate process, so looking them up must be quick and must not fail.
"""

from collections.abc import Callable, Iterable

import click

from hpobench_ordered.benchmarks.registry import benchmark_spec, list_benchmarks, suites
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.methods.registry import list_methods

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def make_completer(list_names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Make a function that click calls to complete a word to names.

    Args:
        list_names: Lists all names, given the context of the command.
    """

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        """List the names that begin like the incomplete word; none if they cannot be found.

        Click also passes the parameter that is completed, which is not needed.
        """
        try:
            names = list_names(context)
            return sorted(name for name in names if name.startswith(incomplete))
        except HPOBenchOrderedError:  # the command itself reports it
            return []

    return complete


def _list_surrogates_in_command(context: click.Context) -> list[str]:
    """List the surrogates of the benchmarks in the command, or else of all benchmarks, sorted."""
    names = set()
    for benchmark in context.params.get("benchmarks") or list_benchmarks():
        names |= {option.name for option in benchmark_spec(benchmark).surrogates}
    return sorted(names)


complete_benchmark = make_completer(lambda _: list_benchmarks())
complete_method = make_completer(lambda _: list_methods())
complete_suite = make_completer(lambda _: suites())
complete_surrogate = make_completer(_list_surrogates_in_command)
