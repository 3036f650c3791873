from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.protocols import Ordered
from hpobench_ordered.reproduction.checks import ahead
from hpobench_ordered.reproduction.evidence import Evidence
from hpobench_ordered.reproduction.paper import (
    Claim,
    MethodComparison,
    Paper,
    PaperFigure,
    PaperTable,
    Setting,
)
from hpobench_ordered.reproduction.papers.othpo.checks import ahead_on_tasks
from hpobench_ordered.reproduction.papers.othpo.downstream import IMPROVEMENT, REDUCTION, downstream
from hpobench_ordered.reproduction.papers.othpo.drawings import (
    Slice,
    bars,
    curves,
    landscapes,
    locations,
    points,
    rank_curves,
)
from hpobench_ordered.reproduction.papers.othpo.paper import drop_first_task

NAME = "newsvendor"
FIRST, LAST = "simple-previous-no-bo", "random-search"
TWO = (MethodComparison(NAME, (LAST, FIRST)),)


def figure(number: int, needs: Sequence[MethodComparison], draw, *claims: Claim) -> PaperFigure:
    return PaperFigure(
        number, f"caption {number}.", f"What figure {number} shows.", tuple(needs), draw, claims
    )


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
        counted=drop_first_task,
        exhibits=(
            figure(1, [MethodComparison(NAME)], partial(landscapes, slices=[item])),
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
                [MethodComparison(NAME, (FIRST,))],
                partial(locations, item=item, methods=(FIRST,), views=((1, 1), (8, 2))),
            ),
            PaperTable(1, "caption.", "says", TWO, table),
        ),
    )


class Constructed(Evidence):
    """Evidence from losses that a test makes up, shape (S, T, M), by benchmark and method."""

    def __init__(self, losses: Mapping[tuple[str, str], np.ndarray]) -> None:
        super().__init__(Store(Path("nowhere")), {}, surrogates={}, counted=drop_first_task)
        self._arrays.update({(*runs, None): {"loss": each} for runs, each in losses.items()})


@pytest.fixture(scope="session")
def constructed():
    return Constructed
