"""A small paper to reproduce, with every kind of figure and table."""

from functools import partial

import pytest
from reproduction_support import make_figure

from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.papers import Paper, reproduce
from hpobench_ordered.papers.claims import Claim, find_whether_ahead, find_whether_cheaper
from hpobench_ordered.papers.differences import Estimate
from hpobench_ordered.papers.evidence import Measure
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.othpo.claims import find_whether_ahead_on_tasks
from hpobench_ordered.papers.othpo.downstream import IMPROVEMENT, REDUCTION, compare_downstream
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
from hpobench_ordered.papers.paper import TABLE, Exhibit, MethodComparison, Setting

BENCHMARK = "newsvendor"
WITH_TRANSFER, WITHOUT_TRANSFER = "simple-previous-no-bo", "random-search"
NO_METHODS = (MethodComparison(BENCHMARK),)
BOTH_METHODS = (MethodComparison(BENCHMARK, (WITHOUT_TRANSFER, WITH_TRANSFER)),)


def check_ranks(evidence, comparisons):
    """Claim two opposite things of the method with transfer."""
    compare = partial(find_whether_ahead, evidence, comparisons, trial=1, measure=Measure.RANK)
    yield Claim("1", "transfer is ahead", compare([WITH_TRANSFER], [WITHOUT_TRANSFER]))
    yield Claim("1", "and behind", compare([WITHOUT_TRANSFER], [WITH_TRANSFER]))


def check_share(evidence, comparisons):
    """Claim that the method with transfer is ahead on half of the tasks."""
    findings = find_whether_ahead_on_tasks(
        evidence, comparisons, WITH_TRANSFER, WITHOUT_TRANSFER, trial=1, share=0.5
    )
    yield Claim("2", "on most tasks", findings)


def check_tasks(evidence, comparisons):
    """Claim that the method with transfer is ahead on each task."""
    compare = partial(
        find_whether_ahead, evidence, comparisons, trial=1, measure=Measure.RANK, by_task=True
    )
    yield Claim("3", "on each task", compare([WITH_TRANSFER], [WITHOUT_TRANSFER]))


def check_times(evidence, comparisons):
    """Claim that random search is cheaper, as if this had been chosen afterwards."""
    findings = find_whether_cheaper(evidence, comparisons, WITHOUT_TRANSFER, [WITH_TRANSFER])
    yield Claim("3", "cheaper", findings, afterwards=True)


@pytest.fixture(scope="session")
def small_paper():
    """A paper with every kind of figure and table, on short runs of two cheap methods.

    The methods are run with twelve seeds, for three trials on each of the nine tasks of newsvendor.
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
        compare_downstream,
        pair=(WITH_TRANSFER, WITHOUT_TRANSFER),
        trial=1,
        published={
            # An interval that contains whatever is measured, and one that never does, in %
            (REDUCTION, BENCHMARK): Estimate(0, -1e6, 1e6),
            (IMPROVEMENT, BENCHMARK): Estimate(-1e6, -2e6, -1e6),
        },
    )
    only_with_transfer = [MethodComparison(BENCHMARK, (WITH_TRANSFER,))]
    return Paper(
        name="small",
        citation="Someone (2020), Something",
        setting=Setting(Ordered(trials=3), seeds=tuple(range(12))),
        notes="Scores are normalised.",
        select_counted=drop_first_task,
        # There is no figure 4: papers have figures that are not reproduced.
        exhibits=(
            make_figure(1, NO_METHODS, make_landscapes),
            make_figure(2, BOTH_METHODS, make_bars, check_ranks),
            make_figure(3, BOTH_METHODS, make_points, check_share),
            make_figure(5, BOTH_METHODS, make_curves),
            make_figure(6, BOTH_METHODS, make_rank_curves),
            make_figure(7, only_with_transfer, make_locations),
            make_figure(8, BOTH_METHODS, partial(progress, by_task=True), check_tasks),
            make_figure(9, BOTH_METHODS, partial(progress, times=True), check_times),
            Exhibit(1, "caption.", "says", BOTH_METHODS, make_table, kind=TABLE),
        ),
    )


@pytest.fixture(scope="session")
def small_result(small_paper, tmp_path_factory):
    """The reproduction of all figures and tables of the small paper, which no test changes."""
    return reproduce(small_paper, folder=tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def small_folder(small_result):
    """The folder with all figures and tables of the small paper."""
    return small_result.setup.folder
