"""What a method did on a task."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one method did on one task.

    Attributes:
        optimiser: Name of the method that ran: the cell's, or what the protocol put in its place.
        task: Index of the task.
        task_name: Its name.
        values: Configurations in the order of asking, coded as values, shape (n, d).
        objective: Objective values in their own units, shape (n,).
        losses: Their losses, shape (n,).
        fallbacks: Suggestions made at random so far because a model failed, shape (n,).
        seconds: Time spent inside the method: when it was made, asked and told.
        is_recorded: Whether the trials are results; not those that only make a history.
    """

    optimiser: str
    task: int
    task_name: str
    values: FloatArray
    objective: FloatArray
    losses: FloatArray
    fallbacks: np.ndarray[Any, np.dtype[np.int64]]
    seconds: float
    is_recorded: bool
