"""SimpleOrdered and its relatives: start from the best configurations of previous tasks.

Hellan et al. (2023), section 5.2 and appendix D.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmark import Evaluations
from hpobench_ordered.methods._model_based import DesignOnly, finite_history
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

TRANSFERRED = 5
"""N: configurations taken from previous tasks (section 5.2)."""


def ordered_configurations(history: Sequence[Evaluations], *, count: int) -> FloatArray:
    """Choose the configurations to start with (appendix D).

    First the best configuration of every previous task, the most recent task first; then, in turns
    again, what is equally good on its task; then the second-best of every task, and so on. What
    was chosen before is skipped, and so are evaluations that are not finite.

    Args:
        history: Evaluations of the previous tasks, oldest first.
        count: Number of configurations wanted, N.

    Returns:
        Configurations coded as values, shape (at most N, d); fewer only if the previous tasks
        hold fewer distinct ones.
    """
    chosen: dict[bytes, FloatArray] = {}
    for row in _candidates(finite_history(history)):
        chosen.setdefault(row.tobytes(), row)
        if len(chosen) == count:
            break
    return np.array(list(chosen.values()))


class SimpleOrdered(BayesianOptimisation):
    """Bayesian optimisation that starts with the best configurations of the previous tasks."""

    def initial_configurations(self) -> Sequence[Config]:
        """The `TRANSFERRED` configurations to start with."""
        return self.space.configs(ordered_configurations(self.sources(), count=TRANSFERRED))

    def sources(self) -> Sequence[Evaluations]:
        """The previous tasks that configurations are taken from; the last one comes first."""
        return self.history


class SimpleOrderedShuffled(SimpleOrdered):
    """SimpleOrdered with the previous tasks in random order."""

    def sources(self) -> Sequence[Evaluations]:
        """All previous tasks, shuffled."""
        return [self.history[i] for i in self.rng.permutation(len(self.history))]


class SimplePrevious(SimpleOrdered):
    """Bayesian optimisation that starts with the best configurations of the last task."""

    def sources(self) -> Sequence[Evaluations]:
        """The last task alone."""
        return self.history[-1:]


class SimplePreviousNoBO(DesignOnly):
    """All configurations of the last task, the best first; then random ones."""

    def initial_configurations(self) -> Sequence[Config]:
        """The configurations of the last task, as many as there are trials."""
        return self.space.configs(ordered_configurations(self.history[-1:], count=self.budget))


SPECS = (
    MethodSpec(
        name="simple-ordered",
        method=SimpleOrdered,
        summary="bo started with the best configurations of the 5 most recent tasks.",
        source="Hellan et al. (2023), section 5.2 and appendix D; N = 5",
        min_history=1,
    ),
    MethodSpec(
        name="simple-ordered-shuffled",
        method=SimpleOrderedShuffled,
        summary="bo started with the best configurations of 5 previous tasks in random order.",
        source="Hellan et al. (2023), section 5.2 (ablation); N = 5",
        min_history=1,
    ),
    MethodSpec(
        name="simple-previous",
        method=SimplePrevious,
        summary="bo started with the 5 best configurations of the last task.",
        source="Hellan et al. (2023), section 5.2, after Feurer et al. (2015); N = 5",
        min_history=1,
    ),
    MethodSpec(
        name="simple-previous-no-bo",
        method=SimplePreviousNoBO,
        summary="The configurations of the last task, the best first, without a model.",
        source="Hellan et al. (2023), section 5.2 (ablation)",
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
