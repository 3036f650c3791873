"""A small paper to reproduce, with every kind of figure and table."""

from functools import partial

import pytest
from reproduction_support import make_figure

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.papers.checks import ahead
from hpobench_ordered.papers.othpo.checks import ahead_on_tasks
from hpobench_ordered.papers.othpo.downstream import IMPROVEMENT, REDUCTION, downstream
from hpobench_ordered.papers.othpo.drawings import (
    Slice,
    bars,
    curves,
    landscapes,
    locations,
    points,
    rank_curves,
)
from hpobench_ordered.papers.othpo.paper import drop_first_task
from hpobench_ordered.papers.paper import (
    Claim,
    MethodComparison,
    Paper,
    PaperTable,
    Setting,
)

BENCHMARK = "newsvendor"
WITH_TRANSFER, WITHOUT_TRANSFER = "simple-previous-no-bo", "random-search"
NO_METHODS = (MethodComparison(BENCHMARK),)
BOTH_METHODS = (MethodComparison(BENCHMARK, (WITHOUT_TRANSFER, WITH_TRANSFER)),)


@pytest.fixture(scope="session")
def small_paper():
    """A paper with every kind of figure and table, on short runs of two cheap methods.

    The methods are run with three seeds, for three trials on each of the nine tasks of newsvendor.
    """
    prices = Slice(BENCHMARK, "price_0", "price_1", tasks=(0, 8), crosses=3)
    make_landscapes = partial(landscapes, slices=[prices])
    make_bars = partial(bars, trial=1, tops={BENCHMARK: 200}, tasks={BENCHMARK: (1, 8)})
    make_points = partial(points, trials=(1, 3), methods=(WITH_TRANSFER,), columns=2)
    make_curves = partial(curves, tasks={BENCHMARK: (1, 8)}, top=300)
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
            (REDUCTION, BENCHMARK): Estimate(0, -1e6, 1e6),
            (IMPROVEMENT, BENCHMARK): Estimate(-1e6, -2e6, -1e6),
        },
    )
    is_ahead = Claim(
        "1", "transfer is ahead", ahead((WITH_TRANSFER,), (WITHOUT_TRANSFER,), trial=1)
    )
    is_behind = Claim("1", "and behind", ahead((WITHOUT_TRANSFER,), (WITH_TRANSFER,), trial=1))
    is_ahead_on_half = Claim(
        "2", "on most tasks", ahead_on_tasks(WITH_TRANSFER, WITHOUT_TRANSFER, trial=1, share=0.5)
    )
    only_with_transfer = [MethodComparison(BENCHMARK, (WITH_TRANSFER,))]
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
