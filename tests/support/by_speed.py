"""Registered methods as parameters of tests; those with networks are marked by their speed."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec

METHODS = hbo.list_methods()

LINEAR = {
    "hpobench_ordered.methods.ablr",
    "hpobench_ordered.methods.abrac",
    "hpobench_ordered.methods.distbo",
    "hpobench_ordered.methods.fsbo",
}
"""Modules of methods with a linear head on a network, which is compiled and trained."""

SAMPLED = {"hpobench_ordered.methods.bohamiann"}
"""Modules of methods that sample the weights of a network, which is slower still."""


def by_speed(
    names: list[str],
    *,
    linear: pytest.MarkDecorator = pytest.mark.long,
    further: dict[str, pytest.MarkDecorator] | None = None,
) -> list[object]:
    """Build the parameters of a test that runs once for each method.

    Methods that sample the weights of a network, in the modules `SAMPLED`, are marked as long.

    Args:
        names: The methods.
        linear: Mark of those with a linear head on a network, in the modules `LINEAR`.
        further: Further marks, by method.
    """
    mark_of_module = dict.fromkeys(LINEAR, linear) | dict.fromkeys(SAMPLED, pytest.mark.long)
    further_marks = further or {}

    parameters = []
    for name in names:
        marks = []
        module = method_spec(name).method.__module__
        if module in mark_of_module:
            marks.append(mark_of_module[module])
        if name in further_marks:
            marks.append(further_marks[name])
        parameters.append(pytest.param(name, marks=marks))
    return parameters
