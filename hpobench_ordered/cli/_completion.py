"""Completion of names in the shell.

Click asks for them in a separate process, so looking them up must be quick and must not fail.
"""

from collections.abc import Callable, Iterable

import click

from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.registry import benchmark_spec, list_benchmarks, list_methods, suites

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _completer(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        try:
            return sorted(name for name in names(context) if name.startswith(incomplete))
        except HPOBenchOrderedError:  # the command itself reports it
            return []

    return complete


def _surrogates(context: click.Context) -> list[str]:
    """Names of the surrogates of the benchmarks given, or of all benchmarks."""
    name = context.params.get("name")
    named = [name] if name else context.params.get("benchmarks")
    return surrogate_names(named or list_benchmarks())


def surrogate_names(benchmarks: Iterable[str]) -> list[str]:
    """Names of the surrogates of benchmarks, sorted."""
    return sorted({o.name for name in benchmarks for o in benchmark_spec(name).surrogates})


complete_benchmark = _completer(lambda _: list_benchmarks())
complete_method = _completer(lambda _: list_methods())
complete_suite = _completer(lambda _: suites())
complete_surrogate = _completer(_surrogates)
