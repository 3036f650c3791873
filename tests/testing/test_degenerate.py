"""The suite of degenerate input, over all methods that are registered, and some that break it."""

import math
import warnings

import numpy as np
import pytest
from bad_methods import Good
from by_speed import METHODS, by_speed

from hpobench_ordered.testing import ConformanceError, check_degenerate_input


@pytest.mark.slow
@pytest.mark.parametrize("name", by_speed(METHODS))
def test_every_method(name):
    check_degenerate_input(name)


class NeedsTwoTrials(Good):
    def prepare(self):
        self.rng.choice(self.budget - 1, 1)


class NeedsHistory(Good):
    def ask(self):
        last = self.history[-1]
        return self.space.configs(last.values[[last.losses.argmin()]])[0]


class NeedsTwoEvaluations(Good):
    def prepare(self):
        for evaluations in self.history:
            np.var(evaluations.losses, ddof=1)


class NeedsDistinctEvaluations(Good):
    def prepare(self):
        for evaluations in self.history:
            1 / np.diff(np.sort(evaluations.values[:, 0]))


class NeedsDifferentOptima(Good):
    def prepare(self):
        optima = [e.values[e.losses.argmin()].tobytes() for e in self.history]
        if len(set(optima)) == 1 < len(optima):
            raise ValueError("an empty box")


class NeedsDifferentLosses(Good):
    def tell(self, config, loss):
        self.losses = [*getattr(self, "losses", []), np.clip(np.nan_to_num(loss), -1e9, 1e9)]
        if len(self.losses) > 1 and self.losses[-2:] == [1.0, 1.0]:
            warnings.warn("cannot standardise", RuntimeWarning, stacklevel=2)


class NeedsModerateLosses(Good):
    def tell(self, config, loss):
        if math.isfinite(loss):
            np.square(loss)


class NeedsFiniteLosses(Good):
    def tell(self, config, loss):
        if not math.isfinite(loss):
            raise ValueError(f"a loss of {loss}")


class NeedsFiniteHistory(Good):
    def prepare(self):
        for evaluations in self.history:
            np.nanmin(evaluations.losses)


class NeedsSomethingNew(Good):
    def ask(self):
        self.asked = getattr(self, "asked", [])
        for _ in range(1000):
            config = super().ask()
            if config not in self.asked:
                self.asked.append(config)
                return config
        raise RuntimeError("everything has been tried")


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (NeedsTwoTrials, "with a budget of 1: .*, when it was made: ValueError"),
        (NeedsHistory, "with no history: .*, trial 1: IndexError"),
        (NeedsTwoEvaluations, "with a history of one evaluation: .*, when it was made: Runtime"),
        (NeedsDistinctEvaluations, "with every evaluation several times: .*divide by zero"),
        (NeedsDifferentOptima, "with the same optimum in all previous tasks: .*an empty box"),
        (NeedsDifferentLosses, "with a constant objective: .*cannot standardise"),
        (NeedsModerateLosses, "with enormous losses: .*overflow"),
        (NeedsFiniteLosses, "with losses some of which are not finite: .*a loss of "),
        (NeedsFiniteHistory, "with a loss of nan always: .*All-NaN"),
        (NeedsSomethingNew, ", trial 3: RuntimeError: everything has been tried"),
    ],
)
def test_methods_that_need_more_are_found(method, message):
    with pytest.raises(ConformanceError, match=message):
        check_degenerate_input(method)
