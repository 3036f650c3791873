"""Checking methods of the user's own before anything long starts."""

from collections.abc import Iterable

from hpobench_ordered.cli._show import say
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.registry import list_methods


def check_own(methods: Iterable[MethodSpec]) -> None:
    """Check those methods that are not registered.

    Raises:
        ConformanceError: With what is wrong with the first bad one.
    """
    registered = list_methods()
    for spec in methods:
        if spec.name not in registered:
            check(spec)


def check(spec: MethodSpec) -> None:
    """Check a method and say so.

    Raises:
        ConformanceError: With the first thing that is wrong.
    """
    from hpobench_ordered.testing import check_method

    say(f"checking {spec.name} on small problems (--no-check leaves that out)")
    check_method(spec)
