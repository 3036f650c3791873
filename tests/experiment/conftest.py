"""Plans of a few short runs, and a folder for their results."""

import numpy as np
import pytest

from hpobench_ordered import Method, MethodSpec, Ordered
from hpobench_ordered.experiment.plan import Cell, plan


class BestOfLastTaskFirst(Method):
    """Starts with the best configuration of the last task, and goes on at random."""

    def prepare(self):
        self.is_first_trial = True

    def ask(self):
        """Suggest the last task's best configuration in the first trial, and then at random."""
        if not self.is_first_trial:
            return self.space.sample(self.rng)

        self.is_first_trial = False
        last_task = self.history[-1]
        best_row = np.argmin(last_task.losses)
        (best_config,) = self.space.configs(last_task.values[[best_row]])
        return best_config

    def tell(self, config, loss):
        assert np.isfinite(loss)


METHOD_WITH_HISTORY = MethodSpec("transfer", BestOfLastTaskFirst, "", "", min_history=1)
"""Named `transfer`; it needs one earlier task, so that another method runs on the first."""


@pytest.fixture
def small_plan():
    """A function that plans a few short runs."""

    def plan_few_short_runs(**changes: object) -> list[Cell]:
        """Plan two methods with three seeds on newsvendor, unless some settings are changed."""
        settings = {
            "benchmarks": ["newsvendor"],
            "methods": ["random-search", METHOD_WITH_HISTORY],
            "seeds": range(3),
            "protocol": Ordered(trials=4, tasks=3),
        }
        return plan(**(settings | changes))

    return plan_few_short_runs


@pytest.fixture
def folder(tmp_path):
    """Where results are to be stored; it does not exist yet."""
    return tmp_path / "results"
