"""Registered methods as parameters of tests; those with networks are marked long."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec

NETWORKS = {f"hpobench_ordered.methods.{name}" for name in ("ablr", "abrac", "bohamiann")}
"""Modules of methods that are compiled and trained, which takes minutes in the suites."""


def by_speed(name: str, *marks: pytest.MarkDecorator) -> object:
    is_long = method_spec(name).method.__module__ in NETWORKS
    return pytest.param(name, marks=[*marks, *([pytest.mark.long] if is_long else [])])


METHODS = [by_speed(name) for name in hbo.list_methods()]
