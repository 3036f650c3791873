"""Results of the trainings of a custom benchmark: values for the surrogate, and a table.

Notation:
    n   configurations
    S   training-set sizes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.objective import Objective
from hpobench_ordered.generation._raw import configured, raw_frame
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Results:
    """Outcomes of all trainings."""

    values: FloatArray
    seconds: FloatArray
    failures: Mapping[tuple[int, int], str]

    @classmethod
    def of(cls, outcomes: Sequence[Mapping[str, Any]], sizes: int) -> Self:
        """Gather outcomes of `EstimatorTrainer` by configuration."""
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
        """Values, (n, S), with the worst one of the size where a training failed."""
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
        """One row per training, by task, as in `_raw`, with `seconds` and `failure`."""
        filled = self.filled(objective)
        cells = [(j, task, i) for j, task in enumerate(tasks) for i in range(len(configs))]
        rows = [
            {"task": task, "training": number, "value": filled[i, j], "spread": np.nan}
            | configured(configs[i])
            | {"seconds": self.seconds[i, j], "failure": self.failures.get((i, j))}
            for number, (j, task, i) in enumerate(cells)
        ]
        return raw_frame(rows, space, {"seconds": "float64", "failure": "object"})
