"""Perrone et al. (2018), "Scalable Hyperparameter Transfer Learning": supplement, figures 1 to 10.

Where the text does not name the methods of a figure, they are our choice.
"""

from collections.abc import Iterator
from functools import partial

from hpobench_ordered.experiment.protocols import LeaveOneOut
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.papers.ablr.learned_contexts import LearnedContexts
from hpobench_ordered.papers.claims import Claim, find_whether_ahead, find_whether_cheaper
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import Check, Exhibit, Paper, Setting

SVM, XGBOOST, QUADRATIC = "openml-svm", "openml-xgboost", "quadratic"
NEAREST = "nearest"
TRIALS, EARLY = 50, 10
SEEDS = tuple(range(5))
EACH = 100
"""Evaluations per source data set; the paper has thousands, all in OpenML."""
TARGETS = 10
"""Number of targets among the 30 quadratic functions; the others are source tasks as well."""

MARGINS = {Measure.REGRET: 0.001, Measure.RANK: 0.5}
"""How much worse is "no worse": a thousandth of the AUC, or half a rank."""

NO_TRANSFER = ("random-search", "bo", "ablr")
GP_TRANSFER = ("gp-transfer-closest", "gp-transfer-subsample")
TRANSFER = "ablr-transfer"
CONTEXT, EMBEDDED = "ablr-ctx", "ablr-embeddings"
TWO_STAGE = {SVM: "ablr-xgboost-embeddings", XGBOOST: "ablr-svm-embeddings"}
"""ABLR with embeddings that were learned on the other benchmark."""
BASELINES = (*NO_TRANSFER, *GP_TRANSFER, TRANSFER)

ON_SVM = (MethodComparison(SVM, (*BASELINES, "bohamiann-ctx")),)
ON_XGBOOST = (MethodComparison(XGBOOST, BASELINES),)
ON_QUADRATIC = (MethodComparison(QUADRATIC, BASELINES),)
NETWORKS = (MethodComparison(QUADRATIC, ("ablr", TRANSFER, CONTEXT, "bohamiann", "bohamiann-ctx")),)


def _learned(name: str, source: str) -> MethodSpec:
    """Make the spec of ABLR with contexts that are learned on the benchmark `source`.

    `name` is the name of this method in comparisons.
    """
    return MethodSpec(
        name=name,
        method=LearnedContexts(source, NEAREST),
        summary=f"ablr-ctx with embeddings learned on {source} as contexts.",
        source="Perrone et al. (2018), supplement B.4",
        min_history=1,
    )


def check_main(
    evidence: Evidence, comparisons: Comparisons, *, measure: Measure
) -> Iterator[Claim]:
    """Yield the claims that the paper makes of figures 1 to 5, in regret or in rank."""
    compare = partial(find_whether_ahead, evidence, comparisons, measure=measure)
    yield Claim(
        "B.3",
        "Both GP transfers are ahead of plain GP",
        compare(GP_TRANSFER, ["bo"], trial=TRIALS),
    )
    yield Claim(
        "B.3",
        "ABLR with transfer is ahead of ABLR and GP without",
        compare([TRANSFER], ["ablr", "bo"], trial=TRIALS),
    )
    yield Claim(
        "B.3",
        "ABLR with transfer ends ahead of both GP transfers",
        compare([TRANSFER], GP_TRANSFER, trial=TRIALS),
    )
    yield Claim(
        "B.3",
        f"Warm starts help early: after {EARLY} trials ABLR with transfer is ahead of all methods "
        "without",
        compare([TRANSFER], NO_TRANSFER, trial=EARLY),
    )


check_regrets = partial(check_main, measure=Measure.REGRET)
check_ranks = partial(check_main, measure=Measure.RANK)


def check_svm(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check regrets and times on support vector machines (figure 1)."""
    yield from check_regrets(evidence, comparisons)
    yield Claim(
        "B.3",
        "BOHAMIANN with transfer takes longer than ABLR with transfer",
        find_whether_cheaper(evidence, comparisons, TRANSFER, ["bohamiann-ctx"]),
    )


def check_quadratic(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check regrets and final ranks on quadratic functions (figure 5)."""
    yield from check_regrets(evidence, comparisons)
    rivals = (*NO_TRANSFER, *GP_TRANSFER)
    yield Claim(
        "B.3",
        "ABLR with transfer ranks best of all",
        find_whether_ahead(
            evidence, comparisons, [TRANSFER], rivals, trial=TRIALS, measure=Measure.RANK
        ),
    )


def check_networks(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that ABLR with transfer is ahead of other methods with networks (figure 6)."""
    rivals = ("ablr", "bohamiann", "bohamiann-ctx")
    for trial in (EARLY, TRIALS):
        yield Claim(
            "B.3",
            f"After {trial} trials ABLR with transfer is ahead of the other methods with networks",
            find_whether_ahead(
                evidence, comparisons, [TRANSFER], rivals, trial=trial, measure=Measure.REGRET
            ),
        )


def check_embeddings(
    evidence: Evidence, comparisons: Comparisons, *, measure: Measure, two_stage: str
) -> Iterator[Claim]:
    """Yield the claims on learned embeddings (figures 7 to 10).

    Args:
        evidence: The results.
        comparisons: The comparison of the figure.
        measure: What is compared.
        two_stage: Name of the method whose embeddings are learned on the other benchmark.
    """
    compare = partial(find_whether_ahead, evidence, comparisons, trial=TRIALS, measure=measure)
    margin = MARGINS[measure]
    yield Claim(
        "B.4",
        "Learned embeddings are no worse than contexts",
        compare([EMBEDDED], [CONTEXT], margin=margin),
    )
    yield Claim(
        "B.4",
        "Embeddings learned on the other benchmark are no worse than contexts",
        compare([two_stage], [CONTEXT], margin=margin),
    )
    yield Claim(
        "B.4",
        "With embeddings of the other benchmark ABLR is ahead of ABLR without transfer",
        compare([two_stage], ["ablr"]),
    )


def _figure(
    number: int,
    comparisons: tuple[MethodComparison, ...],
    *,
    paper_says: str,
    check: Check,
    measure: Measure = Measure.REGRET,
) -> Exhibit:
    """Make a figure of the mean of a measure after every trial."""
    captions = {
        Measure.REGRET: "Distance of the best value so far from the best known one",
        Measure.RANK: "Rank among the methods, of every task and seed by itself",
    }
    return Exhibit(
        number,
        caption=f"{captions[measure]}, mean over tasks and seeds ± two standard errors over seeds.",
        paper_says=paper_says,
        comparisons=comparisons,
        make_content=partial(progress, measures=(measure,)),
        check=check,
    )


WARM_START = (
    "Both GP transfers outperform plain GP and perform alike; ABLR with transfer tends to converge "
    "to a better optimum."
)
RANKED = "Warm starts converge faster and to a better optimum; ABLR with transfer ranks best."
FASTER = "ABLR with transfer converges considerably faster and to a better optimum."
COMPETITIVE = "Learned embeddings are competitive with the context that people chose."


def _embeddings(number: int, benchmark: str, measure: Measure) -> Exhibit:
    """Make a figure that compares learned embeddings with contexts on a benchmark."""
    two_stage = TWO_STAGE[benchmark]
    methods = (*NO_TRANSFER, TRANSFER, CONTEXT, EMBEDDED, two_stage)
    check = partial(check_embeddings, measure=measure, two_stage=two_stage)
    comparisons = (MethodComparison(benchmark, methods),)
    return _figure(number, comparisons, measure=measure, paper_says=COMPETITIVE, check=check)


FIGURES = (
    _figure(
        1,
        ON_SVM,
        paper_says=f"{WARM_START} BOHAMIANN profits from transfer too, at a much larger overhead.",
        check=check_svm,
    ),
    _figure(2, ON_XGBOOST, paper_says=WARM_START, check=check_regrets),
    _figure(
        3,
        ON_SVM,
        measure=Measure.RANK,
        paper_says=RANKED,
        check=check_ranks,
    ),
    _figure(
        4,
        ON_XGBOOST,
        measure=Measure.RANK,
        paper_says=RANKED,
        check=check_ranks,
    ),
    _figure(
        5,
        ON_QUADRATIC,
        paper_says=FASTER,
        check=check_quadratic,
    ),
    _figure(
        6,
        NETWORKS,
        paper_says=FASTER,
        check=check_networks,
    ),
    _embeddings(7, SVM, Measure.REGRET),
    _embeddings(8, XGBOOST, Measure.REGRET),
    _embeddings(9, SVM, Measure.RANK),
    _embeddings(10, XGBOOST, Measure.RANK),
)

PAPERS = (
    Paper(
        name="ablr",
        citation="Perrone et al. (2018), Scalable Hyperparameter Transfer Learning, supplement",
        setting=Setting(LeaveOneOut(trials=TRIALS, history=EACH), SEEDS, surrogate=NEAREST),
        exceptions={QUADRATIC: Setting(LeaveOneOut(trials=TRIALS, tasks=TARGETS), SEEDS)},
        exhibits=FIGURES,
        notes="Regret is the distance of the best value so far from the best one known, in the "
        "objective's own units; ranks are among the methods of a figure, of every task and seed by "
        "itself. Both are means over tasks and seeds; lower is better.",
        methods={
            TWO_STAGE[SVM]: _learned(TWO_STAGE[SVM], XGBOOST),
            TWO_STAGE[XGBOOST]: _learned(TWO_STAGE[XGBOOST], SVM),
        },
    ),
)
