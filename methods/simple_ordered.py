"""SimpleOrdered: start from the best configurations of the most recent tasks.

Hellan et al. (2023), section 5.2 and appendix D.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Evaluations
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.space import SearchSpace

TRANSFERRED = 5
"""N: configurations taken from previous tasks (section 5.2)."""


def ordered_configurations(history: Sequence[Evaluations], *, count: int) -> FloatArray:
    """Choose the configurations to start with (appendix D).

    First the best configuration of every previous task, the most recent task first; then, in turns
    again, what is equally good on its task; then the second-best of every task, and so on. What
    was chosen before is skipped.

    Args:
        history: Evaluations of the previous tasks, oldest first.
        count: Number of configurations wanted, N.

    Returns:
        Configurations coded as values, shape (at most N, d); fewer only if the previous tasks
        hold fewer distinct ones.
    """
    chosen: dict[bytes, FloatArray] = {}
    for row in _candidates(history):
        chosen.setdefault(row.tobytes(), row)
        if len(chosen) == count:
            break
    return np.array(list(chosen.values()))


class SimpleOrdered(BayesianOptimisation):
    """Bayesian optimisation that starts with the best configurations of the previous tasks."""

    def __init__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> None:
        start = ordered_configurations(history, count=TRANSFERRED)
        super().__init__(
            space=space,
            rng=rng,
            history=history,
            context=context,
            budget=budget,
            initial=space.configs(start),
        )


SPECS = (
    MethodSpec(
        name="simple-ordered",
        method=SimpleOrdered,
        summary="bo started with the best configurations of the 5 most recent tasks.",
        source="Hellan et al. (2023), section 5.2 and appendix D; N = 5",
        min_history=1,
    ),
)


def _candidates(history: Sequence[Evaluations]) -> Iterator[FloatArray]:
    """Configurations of all tasks in the order of appendix D, repeats included."""
    ranked = [_ranks(evaluations) for evaluations in reversed(history)]
    for rank in range(max(map(len, ranked), default=0)):
        # One of each task; what is equally good waits at the back of the list for its next turn.
        turns = zip_longest(*(task[rank] for task in ranked if rank < len(task)))
        yield from (row for turn in turns for row in turn if row is not None)


def _ranks(evaluations: Evaluations) -> list[list[FloatArray]]:
    """Distinct configurations by rank of their loss, equally good ones in order of evaluation."""
    ranks: dict[float, dict[bytes, FloatArray]] = {}
    for row, loss in zip(evaluations.values, evaluations.losses.tolist(), strict=True):
        ranks.setdefault(loss, {}).setdefault(row.tobytes(), row)
    return [list(ranks[loss].values()) for loss in sorted(ranks)]
