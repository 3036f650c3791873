"""Random results for tests of reports and of analysis."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hpobench_ordered.analysis.scoring import runs_of_trials

ORDERED = "ordered(trials=6, tasks=None)"
OTHER = "leave-one-out(trials=4)"
HOSTILE = 'a_b & 5% </script><img src=x onerror="alert(1)"> \u2028ü|'
"""Name of a method, as nobody should choose it."""

METHODS = ("random-search", "bo", HOSTILE, "cts")
EFFECTS = (0.4, 0.2, 0.1, 0.0)
"""What is added to the losses of each of four methods."""

COLUMNS_OF_RUN = ["benchmark", "surrogate", "protocol", "method", "seed"]


def made_up_trials(
    benchmark: str,
    *,
    protocol: str = ORDERED,
    trials: int = 6,
    entropy: int | Sequence[int] = 0,
    methods: Sequence[str] = METHODS,
    tasks: int = 3,
    seeds: int = 5,
) -> pd.DataFrame:
    """Trials with random losses on one benchmark; of the methods, later ones are better."""
    index = pd.MultiIndex.from_product(
        [methods, range(seeds), range(tasks), range(1, trials + 1)],
        names=["method", "seed", "task", "trial"],
    )
    frame = pd.DataFrame(index=index).reset_index()

    # Each method has something added to its losses, and later methods less.
    has_usual_number = len(methods) == len(EFFECTS)
    effects = EFFECTS if has_usual_number else np.linspace(0.4, 0.0, len(methods)).tolist()
    effect_of_method = dict(zip(methods, effects, strict=True))
    noise = np.random.default_rng(entropy).random(len(frame))
    loss = noise + frame["method"].map(effect_of_method)

    return frame.assign(
        benchmark=benchmark,
        surrogate="forest",
        protocol=protocol,
        task_name=frame["task"].map("<i>{}</i>".format),  # a report must escape it
        loss=loss,
        value=-loss,  # as of an objective that is maximised
        regret=loss + 0.5,  # as if the lowest loss were -0.5
        fallbacks=0,
    )


def overview_runs(trials: pd.DataFrame) -> pd.DataFrame:
    """The runs that the trials belong to, with keys and versions as an overview has them."""
    runs = runs_of_trials(trials)
    keys = [f"key-{number}" for number in range(len(runs))]
    return runs.assign(key=keys, method_version="1")
