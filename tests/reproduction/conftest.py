"""A small paper, and evidence that tests make up."""

from collections.abc import Callable, Mapping, Sequence
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
    Drawing,
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
WITH_TRANSFER, WITHOUT_TRANSFER = "simple-previous-no-bo", "random-search"
NO_METHODS = (MethodComparison(NAME),)
BOTH_METHODS = (MethodComparison(NAME, (WITHOUT_TRANSFER, WITH_TRANSFER)),)


def make_figure(
    number: int, needs: Sequence[MethodComparison], make: Callable[..., Drawing], *claims: Claim
) -> PaperFigure:
    """A figure with invented texts that needs these comparisons and is drawn by `make`."""
    return PaperFigure(
        number, f"caption {number}.", f"What figure {number} shows.", tuple(needs), make, claims
    )


@pytest.fixture(scope="session")
def small_paper():
    """Every kind of figure and table, on short runs of two cheap methods."""
    prices = Slice(NAME, "price_0", "price_1", tasks=(0, 8), crosses=3)
    make_landscapes = partial(landscapes, slices=[prices])
    make_bars = partial(bars, trial=1, tops={NAME: 200}, tasks={NAME: (1, 8)})
    make_points = partial(points, trials=(1, 3), methods=(WITH_TRANSFER,), columns=2)
    make_curves = partial(curves, tasks={NAME: (1, 8)}, top=300)
    make_rank_curves = partial(rank_curves, methods=(WITH_TRANSFER,))
    make_locations = partial(
        locations,
        item=prices,
        methods=(WITH_TRANSFER,),
        views=((1, 1), (8, 2)),  # pairs of a task and a trial
    )
    make_table = partial(
        downstream,
        method=WITH_TRANSFER,
        baseline=WITHOUT_TRANSFER,
        trial=1,
        published={
            # An interval that contains whatever is measured, and one that never does, in %
            (REDUCTION, NAME): Estimate(0, -1e6, 1e6),
            (IMPROVEMENT, NAME): Estimate(-1e6, -2e6, -1e6),
        },
    )
    is_ahead = Claim(
        "1", "transfer is ahead", ahead((WITH_TRANSFER,), (WITHOUT_TRANSFER,), trial=1)
    )
    is_behind = Claim("1", "and behind", ahead((WITHOUT_TRANSFER,), (WITH_TRANSFER,), trial=1))
    is_ahead_on_half = Claim(
        "2", "on most tasks", ahead_on_tasks(WITH_TRANSFER, WITHOUT_TRANSFER, trial=1, share=0.5)
    )
    only_with_transfer = [MethodComparison(NAME, (WITH_TRANSFER,))]
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(Ordered(trials=3), seeds=(0, 1, 2)),
        notes="Scores are normalised.",
        counted=drop_first_task,
        # There is no figure 4: papers have figures that are not reproduced.
        exhibits=(
            make_figure(1, NO_METHODS, make_landscapes),
            make_figure(2, BOTH_METHODS, make_bars, is_ahead, is_behind),
            make_figure(3, BOTH_METHODS, make_points, is_ahead_on_half),
            make_figure(5, BOTH_METHODS, make_curves),
            make_figure(6, BOTH_METHODS, make_rank_curves),
            make_figure(7, only_with_transfer, make_locations),
            PaperTable(1, "caption.", "says", BOTH_METHODS, make_table),
        ),
    )


class InventedEvidence(Evidence):
    """Evidence from losses that a test makes up, shape (S, T, M), by benchmark and method."""

    def __init__(self, losses: Mapping[tuple[str, str], np.ndarray]) -> None:
        # Nothing is read from the store; the first task, which has no history, does not count.
        super().__init__(Store(Path("nowhere")), {}, surrogates={}, counted=drop_first_task)
        for (benchmark, method), losses_of_method in losses.items():
            no_protocol = None
            self._arrays[benchmark, method, no_protocol] = {"loss": losses_of_method}


@pytest.fixture(scope="session")
def make_evidence_of():
    """Make evidence from losses, shape (S, T, M), by benchmark and method."""
    return InventedEvidence
