"""What a method did on a task."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on one task: n configurations in the order of asking."""

    optimiser: str  # the cell's method, or the protocol's replacement
    task: int  # index
    task_name: str
    values: FloatArray  # as in `SearchSpace.values`, (n, d)
    objective: FloatArray  # in its own units, NaN where the evaluation failed, (n,)
    losses: FloatArray  # infinite where the evaluation failed, (n,)
    fallbacks: np.ndarray[Any, np.dtype[np.int64]]  # random suggestions so far, (n,)
    cpu_seconds: float  # of the method: constructed, asked and told
    is_recorded: bool  # False for trials that only make a history
