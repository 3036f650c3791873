"""What the trainings of a custom benchmark gave: values for the surrogate, a table of all of it.

Notation:
    n   configurations
    S   training-set sizes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, Value
from hpobench_ordered.generation._raw import PREFIX
from hpobench_ordered.objective import Objective
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Results:
    """Outcomes of all trainings.

    Attributes:
        values: Values of the objective, in its own units; NaN where the training failed, (n, S).
        seconds: How long each training took; NaN where it failed, (n, S).
        failures: Why trainings failed, by configuration and size, counted from 0.
    """

    values: FloatArray
    seconds: FloatArray
    failures: Mapping[tuple[int, int], str]

    @classmethod
    def of(cls, outcomes: Sequence[Mapping[str, Any]], sizes: int) -> Self:
        """Gather outcomes of `EstimatorTrainer`, all sizes of a configuration together."""
        values, seconds = (
            np.array([outcome.get(key, np.nan) for outcome in outcomes]).reshape(-1, sizes)
            for key in ("value", "seconds")
        )
        failures = {
            divmod(number, sizes): str(outcome["failure"])
            for number, outcome in enumerate(outcomes)
            if "failure" in outcome
        }
        return cls(values, seconds, failures)

    def filled(self, objective: Objective) -> FloatArray:
        """Values with the worst one of their size where a training failed, shape (n, S)."""
        if not self.failures:
            return self.values
        losses = objective.losses(self.values)
        worst = np.nanmax(losses, axis=0)
        return objective.losses(np.where(np.isnan(losses), worst, losses))

    def frame(
        self,
        objective: Objective,
        space: SearchSpace,
        configs: Sequence[Config],
        tasks: Sequence[str],
    ) -> "pd.DataFrame":
        """One row a training, task by task, as `_raw` describes; with `seconds` and `failure`."""
        import pandas as pd

        rows, columns = self.values.shape
        repeated = {
            f"{PREFIX}{parameter.name}": _column(parameter, configs)
            for parameter in space.parameters
        }
        return pd.DataFrame(
            {
                "task": np.repeat(np.array(tasks, dtype=object), rows),
                "training": np.arange(rows * columns),
                **{
                    name: pd.concat([one] * columns, ignore_index=True)
                    for name, one in repeated.items()
                },
                "value": self.filled(objective).T.ravel(),
                "spread": np.full(rows * columns, np.nan),
                "seconds": self.seconds.T.ravel(),
                "failure": pd.Series(
                    [self.failures.get((i, j)) for j in range(columns) for i in range(rows)],
                    dtype=object,
                ),
            }
        )


def _column(parameter: Parameter, configs: Sequence[Config]) -> "pd.Series[Any]":
    """Native values of a hyperparameter, null where inactive, shape (n,)."""
    import pandas as pd

    found: list[Value | None] = [config.get(parameter.name) for config in configs]
    if parameter.kind is Kind.INTEGER:
        return pd.Series(found, dtype="Int64")
    if len({type(choice) for choice in parameter.choices}) > 1:  # a column holds one type alone
        return pd.Series([None if value is None else str(value) for value in found], dtype=object)
    return pd.Series(found, dtype=object if parameter.choices else np.float64)
