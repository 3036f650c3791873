"""Suggestions from results alone: an optimiser is replayed, so that nothing else is remembered."""

from collections.abc import Callable, Sequence

from hpobench_ordered._typing import Config
from hpobench_ordered.adapters.optimiser import Optimiser

Result = tuple[Config, float | None]
"""A configuration and its value; None if the evaluation failed."""


def suggest_after(
    make_optimiser: Callable[[], Optimiser], results: Sequence[Result], count: int
) -> list[Config]:
    """Suggest configurations after results, which are assumed to have come `count` at a time.

    As long as the optimiser would have suggested the results, they are what it was asked for and
    told. Later results are told without having been asked for, and are not suggested again unless
    the search space is used up.

    Args:
        make_optimiser: Makes the optimiser; the same one each time.
        results: Results in the order in which they came.
        count: Number of configurations to suggest.
    """
    optimiser = make_optimiser()
    number_replayed = replay(optimiser, results, batch_size=count)
    if number_replayed == len(results):
        return [optimiser.ask() for _ in range(count)]

    # Begin again, as this optimiser waits for results of suggestions that were not evaluated.
    optimiser = make_optimiser()
    replay(optimiser, results[:number_replayed], batch_size=count)
    for config, value in results[number_replayed:]:
        optimiser.tell(config, value)

    evaluated = [config for config, _ in results]
    suggestions = [optimiser.ask() for _ in range(count + len(results))]
    new_suggestions = [config for config in suggestions if config not in evaluated]
    return (new_suggestions + suggestions)[:count]


def replay(optimiser: Optimiser, results: Sequence[Result], *, batch_size: int) -> int:
    """Ask for batches and tell their results, until a result is none of its batch's suggestions.

    Returns:
        The number of results before that batch.
    """
    for start in range(0, len(results), batch_size):
        batch = results[start : start + batch_size]
        suggested = [optimiser.ask() for _ in batch]
        if any(config not in suggested for config, _ in batch):
            return start
        for config, value in batch:
            optimiser.tell(config, value)
    return len(results)
