"""How often methods could not do better than a random suggestion."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def fallback_counts(results: "pd.DataFrame") -> dict[str, int]:
    """Suggestions that each method made at random because its model failed.

    Args:
        results: One row a trial, as `Store.read` gives, of one benchmark, surrogate and protocol.
    """
    # The count goes on over the trials of a task.
    by_task = results.groupby(["method", "seed", "task"], observed=True)["fallbacks"].max()
    return {
        str(method): int(count)
        for method, count in by_task.groupby("method", observed=True).sum().items()
    }
