"""Task embeddings learned on one benchmark, as contexts of the same tasks on another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods.ablr import ABLRContext, ABLREmbeddings
from hpobench_ordered.methods.base import Method
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from collections.abc import Hashable

N_EVALUATIONS = 100
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
        embedding_of_context = learn_embeddings(self.source, self.surrogate, self.first)
        history_with_embeddings = []
        for task in history:
            embedding = embedding_of_context.get(make_key(task.context))
            if embedding is not None:
                history_with_embeddings.append(replace(task, context=embedding))
        return self.second(
            space=space,
            rng=rng,
            history=history_with_embeddings,
            context=embedding_of_context[make_key(context)],
            budget=budget,
        )


@cache
def learn_embeddings(
    benchmark: str, surrogate: str, method: type[ABLREmbeddings]
) -> "dict[Hashable, dict[str, float]]":
    """Learn an embedding of each task of a benchmark from some random evaluations of it.

    Returns:
        The embedding of each task as a context, with the names e_0, e_1 and so on; the key is made
        from the context that the task has on the benchmark.
    """
    source = load(benchmark, surrogate=surrogate)
    rng = np.random.default_rng(0)
    history = [source.evaluations(task.index, rng=rng, n=N_EVALUATIONS) for task in source.tasks]
    fitted = method(space=source.space, rng=rng, history=history, context={}, budget=1)

    # The last embedding is that of the task to optimise, which has no evaluations here.
    embeddings = fitted.embeddings[: len(history)].tolist()
    embedding_of_context = {}
    for task, embedding in zip(source.tasks, embeddings, strict=True):
        named = {f"e_{i}": value for i, value in enumerate(embedding)}
        embedding_of_context[make_key(task.context)] = named
    return embedding_of_context


def make_key(context: Mapping[str, float]) -> "Hashable":
    """Make a key of a dictionary from a context; the order of its names does not matter."""
    return tuple(sorted(context.items()))
