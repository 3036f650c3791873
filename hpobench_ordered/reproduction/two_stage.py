"""Task embeddings learned on one benchmark, as contexts of the same tasks on another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods.ablr import ABLRContext, ABLREmbeddings
from hpobench_ordered.methods.base import Method
from hpobench_ordered.registry import load
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from collections.abc import Hashable

EACH = 100
"""Number of evaluations per task to learn embeddings from."""


@dataclass(frozen=True)
class LearnedContexts:
    """Makes ABLR with contexts that are task embeddings learned on another benchmark.

    Perrone et al. (2018), supplement B.4. Tasks of both benchmarks on the same data set are matched
    by their contexts, which are not used otherwise.
    """

    source: str
    surrogate: str
    first: type[ABLREmbeddings] = ABLREmbeddings
    second: type[ABLRContext] = ABLRContext

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method; tasks without an embedding are left out of the history."""
        learned = embeddings(self.source, self.surrogate, self.first)
        return self.second(
            space=space,
            rng=rng,
            history=[
                replace(task, context=learned[_key(task.context)])
                for task in history
                if _key(task.context) in learned
            ],
            context=learned[_key(context)],
            budget=budget,
        )


@cache
def embeddings(
    benchmark: str, surrogate: str, method: type[ABLREmbeddings]
) -> "dict[Hashable, dict[str, float]]":
    """The embedding of each task by its context, learned from `EACH` evaluations per task."""
    source = load(benchmark, surrogate=surrogate)
    rng = np.random.default_rng(0)
    history = [source.evaluations(task.index, rng=rng, n=EACH) for task in source.tasks]
    fitted = method(space=source.space, rng=rng, history=history, context={}, budget=1)
    rows = fitted.embeddings[: len(history)].tolist()
    return {
        _key(task.context): {f"e_{i}": value for i, value in enumerate(row)}
        for task, row in zip(source.tasks, rows, strict=True)
    }


def _key(context: Mapping[str, float]) -> "Hashable":
    return tuple(sorted(context.items()))
