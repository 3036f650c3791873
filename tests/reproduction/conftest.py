from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.reproduction.checks import ahead, ahead_on_tasks
from hpobench_ordered.reproduction.evidence import Evidence
from hpobench_ordered.reproduction.figures import (
    Slice,
    bars,
    curves,
    landscapes,
    locations,
    points,
    rank_curves,
)
from hpobench_ordered.reproduction.paper import Claim, Comparison, Figure, Paper, Setting, Table
from hpobench_ordered.reproduction.papers.othpo import with_history
from hpobench_ordered.reproduction.tables import IMPROVEMENT, REDUCTION, downstream

NAME = "newsvendor"
FIRST, LAST = "simple-previous-no-bo", "random-search"
TWO = (Comparison(NAME, (LAST, FIRST)),)


def figure(number: int, needs: Sequence[Comparison], draw, *claims: Claim) -> Figure:
    return Figure(number, f"caption {number}.", f"says {number}", tuple(needs), draw, claims)


@pytest.fixture(scope="session")
def small_paper():
    """Every kind of figure and table, on short runs of two cheap methods."""
    item = Slice(NAME, "price_0", "price_1", (0, 8), crosses=3)
    table = partial(
        downstream,
        method=FIRST,
        baseline=LAST,
        trial=1,
        published={
            (REDUCTION, NAME): Estimate(0, -1e6, 1e6),
            (IMPROVEMENT, NAME): Estimate(-1e6, -2e6, -1e6),
        },
    )
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(Ordered(trials=3), seeds=(0, 1, 2)),
        notes="Scores are normalised.",
        counted=with_history,
        exhibits=(
            figure(1, [Comparison(NAME)], partial(landscapes, slices=[item])),
            figure(
                2,
                TWO,
                partial(bars, trial=1, tops={NAME: 200}, tasks={NAME: (1, 8)}),
                Claim("1", "transfer is ahead", ahead((FIRST,), (LAST,), trial=1)),
                Claim("1", "and behind", ahead((LAST,), (FIRST,), trial=1)),
            ),
            figure(
                3,
                TWO,
                partial(points, trials=(1, 3), methods=(FIRST,), columns=2),
                Claim("2", "on most tasks", ahead_on_tasks(FIRST, LAST, trial=1, share=0.5)),
            ),
            figure(5, TWO, partial(curves, tasks={NAME: (1, 8)}, top=300)),
            figure(6, TWO, partial(rank_curves, methods=(FIRST,))),
            figure(
                7,
                [Comparison(NAME, (FIRST,))],
                partial(locations, item=item, methods=(FIRST,), views=((1, 1), (8, 2))),
            ),
            Table(1, "caption.", "says", TWO, table),
        ),
    )


class Constructed(Evidence):
    """Evidence from losses that a test makes up, shape (S, T, M), by benchmark and method."""

    def __init__(self, losses: Mapping[tuple[str, str], np.ndarray]) -> None:
        super().__init__(Store(Path("nowhere")), {}, surrogates={}, counted=with_history)
        self._arrays.update({(*runs, None): {"loss": each} for runs, each in losses.items()})


@pytest.fixture(scope="session")
def constructed():
    return Constructed
