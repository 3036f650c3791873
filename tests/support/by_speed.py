"""Registered methods as parameters of tests; those with networks are marked by their speed."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec

LINEAR = {
    "hpobench_ordered.methods.ablr",
    "hpobench_ordered.methods.abrac",
    "hpobench_ordered.methods.distbo",
    "hpobench_ordered.methods.fsbo",
}
SAMPLED = {"hpobench_ordered.methods.bohamiann"}
"""Modules of methods with networks: compiled and trained, and even sampled."""


def by_speed(
    names: list[str],
    *,
    linear: pytest.MarkDecorator = pytest.mark.long,
    further: dict[str, pytest.MarkDecorator] | None = None,
) -> list[object]:
    """Parameters of a test of every method.

    Args:
        names: The methods.
        linear: Mark of those with a linear head on a network.
        further: Further marks, by method.
    """
    marks = dict.fromkeys(LINEAR, linear) | dict.fromkeys(SAMPLED, pytest.mark.long)
    parameters = []
    for name in names:
        own = [marks.get(method_spec(name).method.__module__), (further or {}).get(name)]
        parameters.append(pytest.param(name, marks=[mark for mark in own if mark is not None]))
    return parameters


METHODS = hbo.list_methods()
