"""Hellan et al. (2023), "Obeying the Order": figures 1, 4 to 19 and table 4.

Figures 2 and 3 are sketches. The tasks, axes and plotted ranges are those of the paper's figures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks import xgboost_mnist
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.experiment.protocols import Ordered
from hpobench_ordered.papers.claims import Claim, find_whether_ahead
from hpobench_ordered.papers.differences import Estimate
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Landscape, MethodComparison
from hpobench_ordered.papers.othpo import authors_bo
from hpobench_ordered.papers.othpo.claims import (
    find_whether_ahead_on_tasks,
    find_whether_ahead_since,
    find_whether_alike_on_tasks,
    find_whether_between,
    find_whether_growing,
    find_whether_lead_shrinks,
    find_whether_leads_change_places,
    find_whether_overtaken,
)
from hpobench_ordered.papers.othpo.downstream import (
    IMPROVEMENT,
    REDUCTION,
    compare_downstream,
    find_whether_positive,
)
from hpobench_ordered.papers.othpo.drawings import (
    Slice,
    bars,
    curves,
    landscapes,
    locations,
    points,
    rank_curves,
)
from hpobench_ordered.papers.paper import TABLE, Check, Exhibit, Paper, Setting, claim_nothing

NO_TRANSFER = ("random-search", "bo")
STANDARD = ("bounding-box", "zero-shot", "cts", "transfer-bo")
SIMPLE = ("simple-ordered-shuffled", "simple-ordered", "simple-previous", "simple-previous-no-bo")
TEN = NO_TRANSFER + STANDARD + SIMPLE
FIVE = ("random-search", *SIMPLE)
ELEVEN = (*TEN, "dre-ordered")
NOT_ORDERED = (*NO_TRANSFER, "bounding-box", "zero-shot", "cts")
BEST_TWO = ("simple-ordered", "simple-previous")

NEWSVENDOR, XGBOOST, SVM = "newsvendor", "xgboost-mnist", "yahpo-svm-1220"
THREE = (NEWSVENDOR, XGBOOST, SVM)
OTHERS = (
    "yahpo-aknn-4538",
    "yahpo-ranger-4154",
    "yahpo-glmnet-375",
    "yahpo-svm-458",
    "yahpo-aknn-41138",
    "yahpo-ranger-40978",
    "yahpo-glmnet-40981",
)
MAIN = tuple(MethodComparison(name, TEN) for name in THREE)
YAHPO = (MethodComparison(SVM, TEN), *(MethodComparison(name, FIVE) for name in OTHERS))
WITH_DRE = tuple(MethodComparison(name, ELEVEN) for name in THREE)
"""The methods with dre-ordered, which does not enter the scores of other figures."""
PAIR = ("simple-ordered", "cts")
"""A method, and what it is compared with, in table 4."""
DOWNSTREAM = tuple(MethodComparison(name, PAIR) for name in THREE)

SHOWN = {NEWSVENDOR: (1, 2, 4, 6, 8), XGBOOST: (1, 7, 14, 21, 27), SVM: (1, 2, 4, 9, 19)}
"""Tasks of figures 5 and 14 to 16, counted from 0."""

TOPS = {
    1: {NEWSVENDOR: 500, XGBOOST: 400, SVM: 400},
    10: {NEWSVENDOR: 400, XGBOOST: 100, SVM: 150},
    25: {NEWSVENDOR: 100, XGBOOST: 30, SVM: 30},
}
"""Upper end of the plotted range by trial."""

QUARTERS = (0, 4, 9, 14, 19)
"""Tasks of YAHPO's landscapes: 5, 25, 50, 75 and 100 %."""

AXES = {
    NEWSVENDOR: ("price_0", "price_1"),
    XGBOOST: ("max_depth", "n_estimators"),
    "yahpo-svm": ("cost", "tolerance"),
    "yahpo-aknn": ("k", "M"),
    "yahpo-ranger": ("num.trees", "min.node.size"),
    "yahpo-glmnet": ("alpha", "s"),
}
"""Hyperparameters of the landscapes, by benchmark; those of YAHPO by their beginning."""

ALMOST_ALL = 0.9
"""Share of tasks that counts as "almost all"."""

HARDLY = 10.0
"""Difference of normalised scores that counts as "very similar"."""


def _yahpo(name: str) -> Slice:
    """Make the slice of a YAHPO benchmark, whose learner determines the two hyperparameters."""
    learner, _, _ = name.rpartition("-")  # "yahpo-svm" of "yahpo-svm-1220"
    x, y = AXES[learner]
    return Slice(name, x, y, tasks=QUARTERS)


def drop_first_task(values: FloatArray) -> FloatArray:
    """Leave out the first task, which has no history.

    Args:
        values: A quantity, (methods, seeds, tasks, trials).
    """
    return values[:, :, 1:]


def choose_landscape(benchmark: Benchmark) -> Landscape:
    """Choose the configurations of a benchmark that landscapes show.

    For XGBoost they are the 1000 that the authors evaluated (appendix B), if the surrogate returns
    the value of the nearest of these. Otherwise they are those that `Landscape.of` chooses.
    """
    returns_evaluations = benchmark.surrogate in ("nearest", "nearest-log")
    if benchmark.name != XGBOOST or not returns_evaluations:
        return Landscape.of(benchmark)
    values, _ = xgboost_mnist.read_published(xgboost_mnist.PUBLISHED.open_path())
    return Landscape(benchmark, values)


def _landscapes(
    number: int,
    slices: Sequence[Slice],
    *,
    caption: str,
    paper_says: str,
    common_scale: bool = True,
    check: Check = claim_nothing,
) -> Exhibit:
    """Make a figure of landscapes, a row per slice; it needs benchmarks but no runs."""
    benchmarks = dict.fromkeys(item.benchmark for item in slices)
    return Exhibit(
        number,
        caption=caption,
        paper_says=paper_says,
        comparisons=tuple(MethodComparison(name) for name in benchmarks),
        make_content=partial(landscapes, slices=slices, common_scale=common_scale),
        check=check,
    )


def _bars(
    number: int,
    *,
    trial: int,
    paper_says: str,
    check: Check,
    comparisons: tuple[MethodComparison, ...] = MAIN,
) -> Exhibit:
    """Make a figure of scores after a trial as bars, on the tasks that the paper shows."""
    n_methods = len(comparisons[0].methods)
    return Exhibit(
        number,
        caption=f"Normalised scores ± two standard errors after trial {trial}, among {n_methods} "
        "methods, on the tasks that the paper shows; black arrow: the mean is above the plotted "
        "range, grey arrow: the error is.",
        paper_says=paper_says,
        comparisons=comparisons,
        make_content=partial(bars, trial=trial, tops=TOPS[trial], tasks=SHOWN),
        check=check,
    )


def _points(
    number: int,
    comparisons: tuple[MethodComparison, ...],
    methods: tuple[str, ...],
    *,
    trials: tuple[int, ...] = (1,),
    paper_says: str,
    check: Check,
) -> Exhibit:
    """Make a figure of scores after some trials as points, on all tasks with history.

    Only some methods are shown, but scores are among all methods of the comparisons.
    """
    when = " and ".join(map(str, trials))
    exception = "" if "dre-ordered" in methods else ", dre-ordered apart"
    return Exhibit(
        number,
        caption=f"Normalised scores ± two standard errors after trial {when} on every task with "
        f"history; scores are among all methods that were run on the benchmark{exception}.",
        paper_says=paper_says,
        comparisons=comparisons,
        make_content=partial(
            points, trials=trials, methods=methods, columns=4 if comparisons is YAHPO else 3
        ),
        check=check,
    )


LANDSCAPE = (
    "1000 random configurations (of XGBoost on `nearest` those that the authors evaluated), bright "
    "is good, the best on top; crosses: the 10 best of them"
)
XGBOOST_PAIRS = (
    ("learning_rate", "max_depth"),
    ("learning_rate", "n_estimators"),
    ("learning_rate", "min_child_weight"),
    ("max_depth", "n_estimators"),
    ("max_depth", "min_child_weight"),
    ("n_estimators", "min_child_weight"),
)


def order_matters(evidence: Evidence, comparisons: Comparisons) -> Claim:
    """Make the claim that the order of tasks matters: shuffling it makes a method worse."""
    return Claim(
        "G.1",
        "After one trial simple-ordered is ahead of simple-ordered-shuffled",
        find_whether_ahead(
            evidence, comparisons, ["simple-ordered"], ["simple-ordered-shuffled"], trial=1
        ),
    )


def optimisation_matters(evidence: Evidence, comparisons: Comparisons) -> Claim:
    """Make the claim that Bayesian optimisation matters: a method is worse without it."""
    return Claim(
        "G.1",
        "From trial 10 on simple-previous is ahead of simple-previous-no-bo",
        find_whether_ahead_since(
            evidence, comparisons, "simple-previous", "simple-previous-no-bo", since=10
        ),
    )


def check_drift(evidence: Evidence, _: Comparisons) -> Iterator[Claim]:
    """Check that the best configurations move to more and deeper trees (figure 1)."""
    for hyperparameter, words in (("n_estimators", "more trees"), ("max_depth", "deeper trees")):
        yield Claim(
            "1",
            f"The best configurations have {words} the more data there is",
            find_whether_growing(evidence, XGBOOST, hyperparameter, count=10, at_least=0.5),
        )


def check_first_trial(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check which methods are ahead after one trial (figure 5)."""
    yield Claim(
        "5.4",
        "After one trial simple-ordered and simple-previous are ahead of every standard transfer "
        "method (transfer-bo included)",
        find_whether_ahead(evidence, comparisons, BEST_TWO, STANDARD, trial=1),
    )
    yield Claim(
        "5.4",
        "After one trial every transfer method is ahead of bo and random-search",
        find_whether_ahead(evidence, comparisons, (*STANDARD, *SIMPLE), NO_TRANSFER, trial=1),
    )
    yield order_matters(evidence, comparisons)


def check_three_methods(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check which of simple-ordered, transfer-bo and cts is best, and when (figure 6)."""
    yield Claim(
        "5.3",
        "After one trial simple-ordered is ahead of transfer-bo and cts",
        find_whether_ahead(
            evidence, comparisons, ["simple-ordered"], ["cts", "transfer-bo"], trial=1
        ),
    )
    best_method = {NEWSVENDOR: "transfer-bo", XGBOOST: "cts", SVM: "simple-ordered"}
    findings = []
    for comparison in comparisons:
        method = best_method[comparison.benchmark]
        rivals = [other for other in best_method.values() if other != method]
        findings += find_whether_ahead(evidence, [comparison], [method], rivals, trial=10)
    yield Claim(
        "5.5",
        "After ten trials transfer-bo is best on newsvendor, cts on xgboost-mnist and "
        "simple-ordered on yahpo-svm-1220",
        findings,
    )


def check_best_two(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that simple-ordered and simple-previous are similar, and how they differ (figure 7)."""
    yield Claim(
        "5.4",
        "After one trial simple-ordered and simple-previous are very similar",
        find_whether_alike_on_tasks(
            evidence, comparisons, *BEST_TWO, trial=1, margin=HARDLY, share=ALMOST_ALL
        ),
    )
    yield Claim(
        "5.4",
        "simple-ordered is slightly better on early tasks, simple-previous on later ones",
        find_whether_leads_change_places(evidence, comparisons, *BEST_TWO, trial=1),
    )


def check_order(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that simple-ordered is better than its version with shuffled tasks (figure 11)."""
    pair = ("simple-ordered", "simple-ordered-shuffled")
    yield order_matters(evidence, comparisons)
    yield Claim(
        "G.1",
        "simple-ordered is ahead of simple-ordered-shuffled on almost all tasks",
        find_whether_ahead_on_tasks(evidence, comparisons, *pair, trial=1, share=ALMOST_ALL),
    )


def check_optimisation(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that simple-previous is better than its version without optimisation (figure 12)."""
    pair = ("simple-previous", "simple-previous-no-bo")
    yield Claim(
        "G.1",
        "simple-previous is ahead of simple-previous-no-bo on almost all tasks",
        find_whether_ahead_on_tasks(evidence, comparisons, *pair, trial=1, share=ALMOST_ALL),
    )
    yield optimisation_matters(evidence, comparisons)


def check_ranks(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check which methods rank best at the beginning and at the end (figure 13)."""
    yield Claim(
        "G.2",
        "simple-ordered or simple-previous rank best at the beginning, and are overtaken by "
        "transfer-bo or cts later",
        find_whether_overtaken(evidence, comparisons, BEST_TWO, ("cts", "transfer-bo")),
    )


def check_after_ten(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that Bayesian optimisation matters after ten trials and later (figure 14)."""
    yield optimisation_matters(evidence, comparisons)


def check_leads(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that the lead of methods that use the order shrinks over trials (figure 15)."""
    yield Claim(
        "5.5",
        "The lead of simple-ordered and simple-previous over standard transfer is largest at the "
        "beginning",
        find_whether_lead_shrinks(evidence, comparisons, BEST_TWO, STANDARD, trials=(1, 10, 25)),
    )


def check_dre(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check dre-ordered against methods that do not use the order (figure 18)."""
    yield Claim(
        "G.7",
        "After one trial dre-ordered is ahead of the methods that do not use the order",
        find_whether_ahead(evidence, comparisons, ["dre-ordered"], NOT_ORDERED, trial=1),
    )


def check_dre_between(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check dre-ordered against methods that use the order (figure 19)."""
    ends = ("simple-previous", "simple-previous-no-bo")
    yield Claim(
        "G.7",
        "dre-ordered is between simple-previous and simple-previous-no-bo",
        find_whether_between(evidence, comparisons, "dre-ordered", *ends, trials=(1, 10)),
    )


def check_downstream(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that simple-ordered has better and less variable objectives than cts (table 4)."""
    yield Claim(
        "5.6",
        "After one trial simple-ordered varies less between seeds than cts",
        find_whether_positive(evidence, comparisons, REDUCTION, pair=PAIR, trial=1),
    )
    yield Claim(
        "5.6",
        "After one trial simple-ordered's mean is better than that of cts",
        find_whether_positive(evidence, comparisons, IMPROVEMENT, pair=PAIR, trial=1),
    )


FIGURES = (
    _landscapes(
        1,
        [Slice(XGBOOST, *AXES[XGBOOST], tasks=(0, 7, 14, 21, 27))],
        caption=f"XGBoost at training-set sizes 56 to 56000. {LANDSCAPE}.",
        paper_says="The best hyperparameters move smoothly to more and deeper trees as data is "
        "added.",
        check=check_drift,
    ),
    _landscapes(
        4,
        [_yahpo(SVM), Slice(NEWSVENDOR, *AXES[NEWSVENDOR], tasks=(0, 1, 4, 6, 8), crosses=1)],
        caption=f"SVM 1220: {LANDSCAPE}. NewsVendor: the exact table, at each pair of prices the "
        "best third price (the paper's script keeps it at 8); cross: the best of all.",
        paper_says="The best hyperparameters move with the training size; NewsVendor's optimum "
        "wanders without a direction.",
    ),
    _bars(
        5,
        trial=1,
        paper_says="With the first evaluation alone, all transfer methods beat those without "
        "transfer, and simple-ordered and simple-previous beat standard transfer.",
        check=check_first_trial,
    ),
    _points(
        6,
        MAIN,
        ("cts", "transfer-bo", "simple-ordered"),
        trials=(1, 10),
        paper_says="After one trial simple-ordered clearly beats transfer-bo and cts. After ten, "
        "transfer-bo is best on NewsVendor, cts on XGBoost, simple-ordered on SVM 1220.",
        check=check_three_methods,
    ),
    _points(
        7,
        YAHPO,
        BEST_TWO,
        paper_says="simple-ordered and simple-previous perform very similarly: the most recent "
        "task matters most.",
        check=check_best_two,
    ),
    _landscapes(
        8,
        [Slice(XGBOOST, x, y, (0, 27)) for x, y in XGBOOST_PAIRS],
        common_scale=False,
        caption=f"XGBoost, all pairs of hyperparameters, the first task and the last. {LANDSCAPE}. "
        "Every panel has its own colours.",
        paper_says="The best configurations of the first and the last task lie apart.",
    ),
    *(
        _landscapes(
            number,
            [_yahpo(name) for name in names],
            caption=f"{kinds} at 5, 25, 50, 75 and 100 % of the data. {LANDSCAPE}.",
            paper_says="Further landscapes that move with the order of tasks.",
        )
        for number, kinds, names in (
            (9, "SVM and AKNN", ("yahpo-svm-458", "yahpo-aknn-4538", "yahpo-aknn-41138")),
            (10, "ranger and glmnet", (OTHERS[1], OTHERS[5], OTHERS[2], OTHERS[6])),
        )
    ),
    _points(
        11,
        YAHPO,
        ("simple-ordered", "simple-ordered-shuffled"),
        paper_says="On almost all tasks simple-ordered beats its version with the order shuffled.",
        check=check_order,
    ),
    _points(
        12,
        YAHPO,
        ("simple-previous", "simple-previous-no-bo"),
        paper_says="On almost all tasks simple-previous beats its version without BO, which only "
        "ever tries what BO found on the first task.",
        check=check_optimisation,
    ),
    Exhibit(
        13,
        caption="Mean ranks among the ten methods ± two standard errors over the tasks with "
        "history, which are averaged; 1 is best, ties share their mean rank.",
        paper_says="simple-ordered and simple-previous do very well at the beginning and are then "
        "overtaken by transfer-bo or cts.",
        comparisons=MAIN,
        make_content=partial(rank_curves, methods=("cts", "transfer-bo", *BEST_TWO)),
        check=check_ranks,
    ),
    _bars(
        14,
        trial=10,
        paper_says="After more evaluations which method is best depends on the benchmark.",
        check=check_after_ten,
    ),
    _bars(
        15,
        trial=25,
        paper_says="The advantage of the order gets smaller with more evaluations; no method is "
        "best everywhere.",
        check=check_leads,
    ),
    Exhibit(
        16,
        caption="Mean normalised score over trials (log scale) among ten methods, on the tasks of "
        "figure 5; scores above 400 are not shown.",
        paper_says="simple-ordered starts well and does not improve much with more trials.",
        comparisons=MAIN,
        make_content=partial(curves, tasks=SHOWN, top=400),
    ),
    Exhibit(
        17,
        caption="Where methods evaluated, all seeds together, at 25 % and 100 % of the data; "
        "crosses: the 10 best of 1000 random configurations.",
        paper_says="The first evaluations of simple-ordered and simple-previous are much more "
        "concentrated than the others'; after the first five they explore widely.",
        comparisons=(MethodComparison(SVM, ("cts", "transfer-bo", *BEST_TWO)),),
        make_content=partial(
            locations,
            item=Slice(SVM, *AXES["yahpo-svm"], tasks=(4, 19)),
            methods=("cts", "transfer-bo", *BEST_TWO),
            views=((4, 1), (4, 10), (19, 1), (19, 10)),
        ),
    ),
    _bars(
        18,
        trial=1,
        comparisons=WITH_DRE,
        paper_says="dre-ordered beats the methods that do not use the order.",
        check=check_dre,
    ),
    _points(
        19,
        WITH_DRE,
        ("simple-previous", "simple-previous-no-bo", "dre-ordered"),
        trials=(1, 10),
        paper_says="dre-ordered lies between simple-previous and simple-previous-no-bo: Gaussian "
        "processes are the better model here.",
        check=check_dre_between,
    ),
)

PUBLISHED = {
    (REDUCTION, NEWSVENDOR): Estimate(61.3, 53.7, 68.9),
    (REDUCTION, XGBOOST): Estimate(92.5, 88.9, 96.0),
    (REDUCTION, SVM): Estimate(89.4, 83.0, 95.9),
    (IMPROVEMENT, NEWSVENDOR): Estimate(21.7, 8.0, 35.4),
    (IMPROVEMENT, XGBOOST): Estimate(22.5, 18.2, 26.7),
    (IMPROVEMENT, SVM): Estimate(5.8, 4.9, 6.7),
}
"""Entries of table 4, in per cent, by quantity and benchmark."""

TABLES = (
    Exhibit(
        4,
        kind=TABLE,
        caption="simple-ordered over cts after one trial, in the objective's own units: mean over "
        "the tasks with history, ± two standard errors between tasks.",
        paper_says="simple-ordered improves the mean on all three benchmarks, and its standard "
        "error is smaller.",
        comparisons=DOWNSTREAM,
        make_content=partial(compare_downstream, pair=PAIR, trial=1, published=PUBLISHED),
        check=check_downstream,
    ),
)

OTHPO = Paper(
    name="othpo",
    citation="Hellan et al. (2023), Obeying the Order: Introducing Ordered Transfer "
    "Hyperparameter Optimisation",
    setting=Setting(Ordered(trials=25), seeds=tuple(range(50))),
    exhibits=(*FIGURES, *TABLES),
    notes="Scores are normalised (0: the best method after the last trial, 100: random "
    "search), means over the tasks with history (task 2 and on) and over seeds; lower is "
    "better. Tasks on which no method ends better than random search have no score and are "
    "left out.",
    select_counted=drop_first_task,
    landscape=choose_landscape,
)

WITH_AUTHORS_BO = replace(
    OTHPO,
    setting=replace(
        OTHPO.setting, protocol=Ordered(trials=25, workers_simulated=authors_bo.WORKERS)
    ),
    methods=authors_bo.METHODS,
    notes=f"{OTHPO.notes} Bayesian optimisation is as the authors ran it.",
)

PAPERS = (replace(OTHPO, with_authors_bo=WITH_AUTHORS_BO),)
