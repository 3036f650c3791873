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
def test_every_method_survives(name):
    check_degenerate_input(name)


class NeedsTwoTrials(Good):
    """It fails with a budget of one trial."""

    def prepare(self):
        self.rng.choice(self.budget - 1, 1)


class NeedsHistory(Good):
    """It fails without earlier tasks."""

    def ask(self):
        """Suggest the best configuration of the last earlier task, which must exist."""
        last_task = self.history[-1]
        best_row = last_task.losses.argmin()
        return self.space.configs(last_task.values[[best_row]])[0]


class NeedsTwoEvaluations(Good):
    """It fails where an earlier task has a single evaluation: its variance is undefined."""

    def prepare(self):
        for evaluations in self.history:
            np.var(evaluations.losses, ddof=1)


class NeedsDistinctEvaluations(Good):
    """It divides by zero where an evaluation is repeated."""

    def prepare(self):
        """Divide by differences of the first hyperparameter; NumPy warns where one is 0."""
        for evaluations in self.history:
            sorted_values = np.sort(evaluations.values[:, 0])
            1 / np.diff(sorted_values)


class NeedsDifferentOptima(Good):
    """It fails where all earlier tasks have the same best configuration."""

    def prepare(self):
        """Fail as methods do that search within the box around the optima of earlier tasks.

        The box is empty where all of them are the same configuration.
        """
        optima = set()
        for evaluations in self.history:
            best_row = evaluations.losses.argmin()
            optima.add(evaluations.values[best_row].tobytes())
        if len(self.history) > 1 and len(optima) == 1:
            raise ValueError("an empty box")


class NeedsDifferentLosses(Good):
    """It warns where two losses in turn are the same."""

    def prepare(self):
        self.last_loss = None

    def tell(self, config, loss):
        """Warn as NumPy does where losses without a deviation are standardised."""
        constant_loss_of_suite = 1.0
        if loss == self.last_loss == constant_loss_of_suite:
            warnings.warn("cannot standardise", RuntimeWarning, stacklevel=2)
        self.last_loss = loss


class NeedsModerateLosses(Good):
    """It overflows where a loss is enormous."""

    def tell(self, config, loss):
        if math.isfinite(loss):
            np.square(loss)


class NeedsFiniteLosses(Good):
    """It fails where a loss is infinite or NaN."""

    def tell(self, config, loss):
        if not math.isfinite(loss):
            raise ValueError(f"a loss of {loss}")


class NeedsFiniteHistory(Good):
    """It fails where all evaluations of an earlier task failed."""

    def prepare(self):
        for evaluations in self.history:
            if not np.isfinite(evaluations.losses).any():
                raise ValueError("no finite loss")


class NeedsSomethingNew(Good):
    """It fails where all configurations have been tried."""

    def prepare(self):
        self.earlier_configs = []

    def ask(self):
        """Suggest a random configuration that is new; fails where there is none any more."""
        for _ in range(1000):
            config = super().ask()
            if config not in self.earlier_configs:
                self.earlier_configs.append(config)
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
        (NeedsFiniteHistory, "with a loss of nan always: .*no finite loss"),
        (NeedsSomethingNew, ", trial 3: RuntimeError: everything has been tried"),
    ],
)
def test_failing_case_is_named(method, message):
    with pytest.raises(ConformanceError, match=message):
        check_degenerate_input(method)
