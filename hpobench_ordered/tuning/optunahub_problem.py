"""A task as a problem of OptunaHub. Needs Optuna; OptunaHub may be installed or not."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection

from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.space.optuna_space import suggest_config

if TYPE_CHECKING:
    from optuna import Trial

try:
    from optunahub.benchmarks import BaseProblem
except ImportError:
    # A study needs only the methods below, which the class has without OptunaHub, too.
    BaseProblem = object


class OptunaHubProblem(BaseProblem):  # type: ignore[misc]  # mypy does not follow OptunaHub
    """A task as a problem of OptunaHub, in the objective's own units.

    It is an `optunahub.benchmarks.BaseProblem` if OptunaHub is installed.

    For a study: `optuna.create_study(directions=problem.directions).optimize(problem, n_trials=9)`.

    Args:
        task: The task.
    """

    def __init__(self, task: Task) -> None:
        """Store the task."""
        self.task = task

    @property
    def search_space(self) -> dict[str, BaseDistribution]:
        """Distribution of every tunable hyperparameter, conditional ones included."""
        return self.task.space.to_optuna()

    @property
    def directions(self) -> list[StudyDirection]:
        """Direction of the one objective, in a list."""
        is_minimised = self.task.objective.direction is Direction.MINIMIZE
        return [StudyDirection.MINIMIZE if is_minimised else StudyDirection.MAXIMIZE]

    def evaluate(self, params: Mapping[str, Any]) -> float:
        """Evaluate a configuration; values of inactive hyperparameters are ignored.

        Raises:
            InvalidConfigError: It does not fit the search space.
        """
        return self.task.evaluate(params)

    def evaluate_constraints(self, params: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of the constraints by their names: {}, as tasks have none."""
        del params
        return {}

    def __call__(self, trial: "Trial") -> float:
        """Evaluate what a trial suggests for the hyperparameters that are active."""
        return self.evaluate(suggest_config(trial, self.task.space))
