"""Finds methods by name.

Modules of `hpobench_ordered.methods` may export `SPECS`, a tuple of specs, and so may modules that
other packages register in the entry-point group `hpobench_ordered.methods`.
"""

from collections.abc import Mapping
from functools import cache

from hpobench_ordered.data.exports import collect_specs
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.methods.base import MethodSpec

METHODS = "hpobench_ordered.methods"


def list_methods() -> list[str]:
    """List the names of all methods, sorted.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> {"bo", "random-search"} <= set(hbo.list_methods())
        True
    """
    return sorted(_methods())


def method_spec(name: str) -> MethodSpec:
    """Find a method's spec by the name of the method.

    Raises:
        UnknownNameError: No method has this name.
    """
    try:
        return _methods()[name]
    except KeyError:
        raise UnknownNameError("method", name, _methods()) from None


@cache
def _methods() -> Mapping[str, MethodSpec]:
    """Collect the specs of all methods by name, once in a process."""
    return collect_specs(METHODS, "SPECS", MethodSpec)
