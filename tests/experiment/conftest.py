"""Plans of a few short runs, and a folder for their results."""

import numpy as np
import pytest

from hpobench_ordered import Method, MethodSpec, Ordered
from hpobench_ordered.experiment.plan import Cell, plan


class FirstThenRandom(Method):
    """Starts with the best configuration of the last task, and goes on at random."""

    def ask(self):
        """Suggest the best of the last task first, and then at random."""
        if not self.history or hasattr(self, "started"):
            return self.space.sample(self.rng)
        self.started = True
        last = self.history[-1]
        best_row = np.argmin(last.losses)
        (best_config,) = self.space.configs(last.values[[best_row]])
        return best_config

    def tell(self, config, loss):
        assert np.isfinite(loss)


TRANSFER = MethodSpec("transfer", FirstThenRandom, "", "", min_history=1)
"""Named `transfer`; it needs one earlier task, so that another method runs on the first."""


@pytest.fixture
def small_plan():
    """A function that plans short runs on newsvendor: by default two methods, three seeds."""

    def make(**changes: object) -> list[Cell]:
        settings = {
            "benchmarks": ["newsvendor"],
            "methods": ["random-search", TRANSFER],
            "seeds": range(3),
            "protocol": Ordered(trials=4, tasks=3),
        }
        return plan(**(settings | changes))

    return make


@pytest.fixture
def folder(tmp_path):
    """Where results are to be stored; it does not exist yet."""
    return tmp_path / "results"
