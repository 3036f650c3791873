"""Suggestions from results alone.

A new optimiser is led through all results again, so no state has to be stored between suggestions.
"""

import warnings
from collections.abc import Callable, Sequence

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import ExhaustedSpaceWarning, warn_user
from hpobench_ordered.tuning.optimiser import Optimiser

Result = tuple[Config, float | None]
"""A configuration and its value; None if the evaluation failed."""


def suggest_after(
    make_optimiser: Callable[[], Optimiser], results: Sequence[Result], count: int
) -> list[Config]:
    """Suggest the next configurations after results, with an optimiser that starts from nothing.

    The results usually come from earlier calls with the same `count`. So the optimiser repeats
    them: it suggests `count` configurations and is told their results, batch by batch, and then is
    in the state that it had after the last call. From the first batch on that has a configuration
    which it does not suggest, such as one of the user's own, it is only told the results.

    A configuration that has a result is suggested again only if the optimiser has too few others.

    Args:
        make_optimiser: Makes a new optimiser. All that it makes behave alike, as they have the same
            seed.
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

    # Up to as many suggestions as there are results may have been evaluated already.
    evaluated = [config for config, _ in results]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedSpaceWarning)  # more are asked for than needed
        suggestions = [optimiser.ask() for _ in range(count + len(results))]
    new_suggestions = [config for config in suggestions if config not in evaluated]
    if len(new_suggestions) < count:
        warn_user("all other configurations have results already", ExhaustedSpaceWarning)
    in_order_of_preference = new_suggestions + suggestions  # others if there are too few new ones
    return in_order_of_preference[:count]


def replay(optimiser: Optimiser, results: Sequence[Result], *, batch_size: int) -> int:
    """Ask an optimiser for batches and tell it their results, while it suggests all of a batch.

    Returns:
        The number of results told: those before the first batch with another configuration.
    """
    for start in range(0, len(results), batch_size):
        batch = results[start : start + batch_size]
        suggestions = [optimiser.ask() for _ in batch]
        has_other_configs = any(config not in suggestions for config, _ in batch)
        if has_other_configs:
            return start
        for config, value in batch:
            optimiser.tell(config, value)
    return len(results)
