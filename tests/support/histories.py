"""Builds histories of objectives that are minimised."""

from collections.abc import Mapping

from hpobench_ordered import Direction, Evaluations, SearchSpace
from hpobench_ordered._typing import FloatArray


def minimised(
    task: str,
    context: Mapping[str, float],
    values: FloatArray,
    losses: FloatArray,
    space: SearchSpace,
) -> Evaluations:
    """Evaluations of a task whose objective is minimised, so its values are the losses."""
    return Evaluations(task, context, values, losses, space=space, direction=Direction.MINIMIZE)
