"""Whether methods are ordered alike on every surrogate of a benchmark.

A surrogate is a model of the real objective. Where the order of methods depends on which model they
are evaluated on, a claim about the benchmark is one about the model.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.together import Together

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("protocol", "benchmark", "surrogate", "method", "trial", "rank", "place", "is_same")


def surrogate_agreement(
    scores: Sequence[BenchmarkScores], *, trial: int | None = None
) -> "pd.DataFrame":
    """Mean ranks of the methods on each surrogate of benchmarks that were run on several.

    Ranks are among the methods of one surrogate, the figures of the leaderboard; methods that are
    not compared on every surrogate are left out.

    Args:
        scores: Scores by benchmark.
        trial: The trial, counted from 1; default: the last that was made on every surrogate.

    Returns:
        A row per protocol, benchmark, surrogate and method: the mean `rank`, its `place` among the
        methods (1 is best, of equal ones the first), and `is_same`, whether the order of the
        methods is the same on all surrogates of the benchmark.
    """
    import pandas as pd

    groups: dict[tuple[str, str], list[BenchmarkScores]] = {}
    for item in scores:
        groups.setdefault((item.protocol, item.benchmark), []).append(item)
    rows = []
    for (protocol, benchmark), items in groups.items():
        together = Together.of(items)
        if len(items) < 2 or len(together.methods) < 2:
            continue
        at = trial or together.last_trial
        ranks = np.stack([item.over_tasks("rank", at).mean[together.rows(item)] for item in items])
        places = ranks.argsort(axis=1, kind="stable").argsort(axis=1) + 1
        is_same = bool((places == places[0]).all())
        rows += [
            (protocol, benchmark, item.surrogate, method, at, rank, place, is_same)
            for item, its_ranks, its_places in zip(items, ranks, places, strict=True)
            for method, rank, place in zip(together.methods, its_ranks, its_places, strict=True)
        ]
    return pd.DataFrame(rows, columns=list(COLUMNS))
