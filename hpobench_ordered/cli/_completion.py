"""Completion of names in the shell.

Click asks for them in a separate process, so looking them up must be quick and must not fail.
"""

from collections.abc import Callable, Iterable

import click

from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.registry import benchmark_spec, list_benchmarks, list_methods, suites


def complete_benchmark(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of benchmarks."""
    return _beginning(list_benchmarks, incomplete)


def complete_method(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of methods."""
    return _beginning(list_methods, incomplete)


def complete_suite(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of suites."""
    return _beginning(suites, incomplete)


def complete_surrogate(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """Names of the surrogates of the benchmarks given, or of all benchmarks."""
    name = context.params.get("name")
    named = [name] if name else context.params.get("benchmarks")
    return _beginning(lambda: surrogate_names(named or list_benchmarks()), incomplete)


def surrogate_names(benchmarks: Iterable[str]) -> list[str]:
    """Names of the surrogates of benchmarks, sorted."""
    return sorted({o.name for name in benchmarks for o in benchmark_spec(name).surrogates})


def _beginning(names: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    try:
        return sorted(name for name in names() if name.startswith(incomplete))
    except HPOBenchOrderedError:  # the command itself reports it
        return []
