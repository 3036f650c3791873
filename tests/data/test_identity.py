"""Identities of benchmarks: a name, a version and, where it matters, a hash of the content."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.data.benchmark import Benchmark, Definition, Provenance, TaskDefinition
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.objective import Objective

IDENTITY_OF_TEXT = {
    "newsvendor@1": BenchmarkIdentity("newsvendor", 1),
    "mine@12+0123456789ab": BenchmarkIdentity("mine", 12, "0123456789ab"),
    "a+b@2+c0": BenchmarkIdentity("a+b", 2, "c0"),
    "me@home@3": BenchmarkIdentity("me@home", 3),
}
NAMES_ALONE = ["newsvendor", "a+b", "me@home", "folder@01", "mine@2+rest", ""]


@pytest.mark.parametrize(("text", "identity"), IDENTITY_OF_TEXT.items())
def test_text_is_parsed(text, identity):
    """A text "name@version", or "name@version+content", has these parts; names may have @ and +."""
    assert BenchmarkIdentity.parse(text) == identity


@pytest.mark.parametrize("text", NAMES_ALONE)
def test_other_text_is_a_name(text):
    """A text that does not end with a version, and maybe a hash of the content, is a name."""
    assert BenchmarkIdentity.parse(text) == BenchmarkIdentity(text, version=None)


@given(st.text() | st.sampled_from([*IDENTITY_OF_TEXT, *NAMES_ALONE]))
def test_text_round_trips(text):
    """Any text, also one that is a name alone, is the same after it was parsed and written."""
    assert str(BenchmarkIdentity.parse(text)) == text


def test_id_leaves_out_the_content():
    """The id of a benchmark is its name and version, without the hash of its content."""
    assert BenchmarkIdentity("mine", 2, content="c0").id == "mine@2"


# Benchmarks in memory: two are the same if their definitions and values are.

TABLE = {"task": list("aabb"), "depth": [1, 5, 1, 5], "error": [3.0, 2.0, 1.0, 0.5]}
"""Columns of a table: two evaluations of each of the tasks a and b."""


def make_from_table(
    columns: dict[str, Any] = TABLE, *, largest_depth: int = 9, **options: Any
) -> Benchmark:
    """Make a benchmark of evaluations, with one hyperparameter, `depth`."""
    defaults = {"name": "mine", "objective": "error", "direction": "minimize"}
    depth = hbo.Parameter.number("depth", 1, largest_depth, integer=True)
    space = hbo.SearchSpace([depth])
    return hbo.from_evaluations(pd.DataFrame(columns), space, **(defaults | options))


class OwnSurrogate:
    """A surrogate of a user's class: the value is `x` times a factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return self.factor * values[:, 0]

    def predict_one(self, row: np.ndarray, task: int) -> float:
        return float(self.factor * row[0])


def make_with_own_surrogate(factor: float = 1.0) -> Benchmark:
    """A benchmark of one task, with a surrogate that this package does not know."""
    definition = Definition(
        name="mine",
        version=1,
        summary="",
        space=hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)]),
        objective=Objective("error", "", hbo.Direction.MINIMIZE),
        tasks=(TaskDefinition("a", {}),),
        provenance=Provenance("", "", ""),
    )
    return Benchmark.build(
        definition, surrogate="own", model=OwnSurrogate(factor), best_values=[0.0]
    )


MAKE_CHANGED_BENCHMARK = {
    "objective value": lambda: make_from_table(TABLE | {"error": [3.0, 2.0, 1.0, 0.6]}),
    "configuration": lambda: make_from_table(TABLE | {"depth": [1, 5, 1, 6]}),
    "task name": lambda: make_from_table(TABLE | {"task": list("aacc")}),
    "range": lambda: make_from_table(largest_depth=10),
    "direction": lambda: make_from_table(direction="maximize"),
    "context": lambda: make_from_table(TABLE | {"size": [1, 1, 2, 2]}, context=["size"]),
    "version": lambda: make_from_table(version=2),
    "tasks": lambda: replace(make_from_table(), tasks=make_from_table().tasks[:1]),
}
"""Functions that make the benchmark of the table with one change."""


@pytest.mark.parametrize(
    "make_changed", MAKE_CHANGED_BENCHMARK.values(), ids=MAKE_CHANGED_BENCHMARK
)
def test_every_change_of_table_changes_identity(make_changed):
    """A benchmark has another identity after any change of its table, its space or an option."""
    unchanged = make_from_table().identify_by_values()

    assert make_changed().identify_by_values() != unchanged


def test_same_table_has_the_same_identity():
    """Two benchmarks of equal evaluations count as the same one."""
    assert make_from_table().identify_by_values() == make_from_table().identify_by_values()


def test_own_surrogate_is_identified_by_values():
    """A surrogate of any class is the same one as long as its values are."""
    identity = make_with_own_surrogate().identify_by_values()

    assert make_with_own_surrogate().identify_by_values() == identity
    assert make_with_own_surrogate(factor=2.0).identify_by_values() != identity
