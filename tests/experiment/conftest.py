"""Plans of a few short runs, and a folder for their results."""

import pytest

from hpobench_ordered import Ordered
from hpobench_ordered.experiment.plan import Cell, plan


@pytest.fixture(scope="session")
def small_plan():
    """A function that plans a few short runs."""

    def plan_few_short_runs(**changes: object) -> list[Cell]:
        """Plan two methods with three seeds on newsvendor, unless some settings are changed.

        The method simple-previous-no-bo begins a task with the best configuration of the last one.
        It needs one earlier task, so that another method runs on the first.
        """
        settings = {
            "benchmarks": ["newsvendor"],
            "methods": ["random-search", "simple-previous-no-bo"],
            "seeds": range(3),
            "protocol": Ordered(trials=4, tasks=3),
        }
        return plan(**(settings | changes))

    return plan_few_short_runs


@pytest.fixture
def folder(tmp_path):
    """Where results are to be stored; it does not exist yet."""
    return tmp_path / "results"
