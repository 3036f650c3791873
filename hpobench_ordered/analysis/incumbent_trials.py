"""The trials of a table that improve on all trials before them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def select_incumbents(trials: "pd.DataFrame") -> "pd.DataFrame":
    """Select the trials with a lower loss than all before them, on the same task of the same run.

    The first trial of a task is always among them.

    Args:
        trials: One row per trial, as `Results.frame` gives, in the order of trials; the column
            "key" identifies the run.
    """
    run_and_task = [trials["key"], trials["task"]]
    best_so_far = trials["loss"].groupby(run_and_task).cummin()
    best_before = best_so_far.groupby(run_and_task).shift()
    is_first_trial = best_before.isna()
    return trials[is_first_trial | (trials["loss"] < best_before)]
