"""Perrone et al. (2018), "Scalable Hyperparameter Transfer Learning": supplement, figures 1 to 10.

Where the text does not name the methods of a figure, they are our choice.
"""

from collections.abc import Sequence
from functools import partial

from hpobench_ordered.experiment.protocols import LeaveOneOut
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.papers.ablr.learned_contexts import LearnedContexts
from hpobench_ordered.papers.checks import ahead, cheaper, not_behind
from hpobench_ordered.papers.evidence import Measure, MethodComparison
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import Claim, Paper, PaperFigure, Setting

SVM, XGBOOST, QUADRATIC = "openml-svm", "openml-xgboost", "quadratic"
NEAREST = "nearest"
TRIALS, EARLY = 50, 10
SEEDS = tuple(range(5))
EACH = 100
"""Evaluations per source data set; the paper has thousands, all in OpenML."""
TARGETS = 10
"""Number of targets among the 30 quadratic functions; the others are source tasks as well."""

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
    return MethodSpec(
        name=name,
        method=LearnedContexts(source, NEAREST),
        summary=f"ablr-ctx with embeddings learned on {source} as contexts.",
        source="Perrone et al. (2018), supplement B.4",
        min_history=1,
    )


def _ahead(
    sentence: str,
    firsts: Sequence[str],
    rivals: Sequence[str],
    measure: Measure,
    *,
    trial: int = TRIALS,
    section: str = "B.3",
) -> Claim:
    """The claim that each of `firsts` is ahead of every rival."""
    return Claim(section, sentence, ahead(firsts, rivals, trial=trial, measure=measure))


def _claims(measure: Measure) -> tuple[Claim, ...]:
    """Claims of the text on figures 1 to 4."""
    return (
        _ahead("Both GP transfers are ahead of plain GP", GP_TRANSFER, ("bo",), measure),
        _ahead(
            "ABLR with transfer is ahead of ABLR and GP without",
            (TRANSFER,),
            ("ablr", "bo"),
            measure,
        ),
        _ahead(
            "ABLR with transfer ends ahead of both GP transfers",
            (TRANSFER,),
            GP_TRANSFER,
            measure,
        ),
        _ahead(
            f"Warm starts help early: after {EARLY} trials ABLR with transfer is ahead of all "
            "methods without",
            (TRANSFER,),
            NO_TRANSFER,
            measure,
            trial=EARLY,
        ),
    )


def _figure(
    number: int,
    needs: tuple[MethodComparison, ...],
    *,
    says: str,
    claims: tuple[Claim, ...],
    measure: Measure = Measure.REGRET,
) -> PaperFigure:
    captions = {
        Measure.REGRET: "Distance of the best value so far from the best known one",
        Measure.RANK: "Rank among the methods, of every task and seed by itself",
    }
    return PaperFigure(
        number,
        caption=f"{captions[measure]}, mean over tasks and seeds ± two standard errors over seeds.",
        says=says,
        needs=needs,
        make=partial(progress, measures=(measure,)),
        claims=claims,
    )


WARM_START = (
    "Both GP transfers outperform plain GP and perform alike; ABLR with transfer tends to converge "
    "to a better optimum."
)
RANKED = "Warm starts converge faster and to a better optimum; ABLR with transfer ranks best."
FASTER = "ABLR with transfer converges considerably faster and to a better optimum."
COMPETITIVE = "Learned embeddings are competitive with the context that people chose."


def _embeddings(number: int, benchmark: str, measure: Measure) -> PaperFigure:
    two_stage = TWO_STAGE[benchmark]
    methods = (*NO_TRANSFER, TRANSFER, CONTEXT, EMBEDDED, two_stage)
    not_worse = partial(not_behind, trial=TRIALS, measure=measure)
    claims = (
        Claim("B.4", "Learned embeddings are no worse than contexts", not_worse(EMBEDDED, CONTEXT)),
        Claim(
            "B.4",
            "Embeddings learned on the other benchmark are no worse than contexts",
            not_worse(two_stage, CONTEXT),
        ),
        _ahead(
            "With embeddings of the other benchmark ABLR is ahead of ABLR without transfer",
            (two_stage,),
            ("ablr",),
            measure,
            section="B.4",
        ),
    )
    needs = (MethodComparison(benchmark, methods),)
    return _figure(number, needs, measure=measure, says=COMPETITIVE, claims=claims)


FIGURES = (
    _figure(
        1,
        ON_SVM,
        says=f"{WARM_START} BOHAMIANN profits from transfer too, at a much larger overhead.",
        claims=(
            *_claims(Measure.REGRET),
            Claim(
                "B.3",
                "BOHAMIANN with transfer takes longer than ABLR with transfer",
                cheaper(TRANSFER, ("bohamiann-ctx",), factor=1),
            ),
        ),
    ),
    _figure(2, ON_XGBOOST, says=WARM_START, claims=_claims(Measure.REGRET)),
    _figure(3, ON_SVM, measure=Measure.RANK, says=RANKED, claims=_claims(Measure.RANK)),
    _figure(4, ON_XGBOOST, measure=Measure.RANK, says=RANKED, claims=_claims(Measure.RANK)),
    _figure(
        5,
        ON_QUADRATIC,
        says=FASTER,
        claims=(
            *_claims(Measure.REGRET),
            _ahead(
                "ABLR with transfer ranks best of all",
                (TRANSFER,),
                (*NO_TRANSFER, *GP_TRANSFER),
                Measure.RANK,
            ),
        ),
    ),
    _figure(
        6,
        NETWORKS,
        says=FASTER,
        claims=tuple(
            _ahead(
                f"After {trial} trials ABLR with transfer is ahead of the other methods with "
                "networks",
                (TRANSFER,),
                ("ablr", "bohamiann", "bohamiann-ctx"),
                Measure.REGRET,
                trial=trial,
            )
            for trial in (EARLY, TRIALS)
        ),
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
