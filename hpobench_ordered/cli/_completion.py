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


def list_surrogates(benchmarks: Iterable[str]) -> list[str]:
    """Names of the surrogates of benchmarks, sorted."""
    names = set()
    for benchmark in benchmarks:
        names |= {option.name for option in benchmark_spec(benchmark).surrogates}
    return sorted(names)


def _list_surrogates_in_command(context: click.Context) -> list[str]:
    """Names of the surrogates of the benchmarks in the command, or of all benchmarks."""
    name = context.params.get("name")  # argument of commands on one benchmark
    if name:
        return list_surrogates([name])
    benchmarks = context.params.get("benchmarks")  # those of --benchmark, typed before
    return list_surrogates(benchmarks or list_benchmarks())


complete_benchmark = make_completer(lambda _: list_benchmarks())
complete_method = make_completer(lambda _: list_methods())
complete_suite = make_completer(lambda _: suites())
complete_surrogate = make_completer(_list_surrogates_in_command)
