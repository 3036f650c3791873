"""Horvath et al. (2021), "Hyperparameter Transfer Learning with Adaptive Complexity".

In the paper ABLR is the method that shares its network between tasks, here `ablr-transfer`.
MT-GP-BO and BOHAMIANN are `gp-transfer-subsample` and `bohamiann-ctx` with three random trials
first, which every run of the paper begins with.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from hpobench_ordered.experiment.protocols import LeaveOneOut
from hpobench_ordered.methods._multi_task import MultiTask
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bohamiann import ContextBohamiann
from hpobench_ordered.methods.gp_transfer import GPTransferSubsample
from hpobench_ordered.papers.abrac.posteriors import find_whether_lowest, posteriors
from hpobench_ordered.papers.claims import Claim, find_whether_ahead, find_whether_cheaper
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import Exhibit, Paper, Setting

FORRESTER, QUADRATIC, FCNET, SVM = "forrester", "quadratic", "fcnet", "openml-svm"
TRIALS, EARLY = 50, 5
AFTERWARDS = (8, 20)
"""Trials chosen after seeing the results: by trial 50 most methods are at the optimum."""
SEEDS = tuple(range(5))
EACH = 100
"""Evaluations per source data set in `openml-svm`; the paper has all of OpenML."""
TARGETS = 10
"""Number of targets among the 30 quadratic functions; the others are source tasks as well."""

ABRAC, ABLR, RANDOM, MT_GP = "abrac", "ablr-transfer", "random-search", "mt-gp-bo"
BOHAMIANN = "bohamiann-mt"
FIXED = ("ablr-sgd-fixed", "ablr-lbfgs-fixed")
COMPONENTS = ("abrac", "abrac-fixed", "ablr-sgd-adapt", "ablr-sgd-fixed", ABLR)
RIVALS = (RANDOM, ABLR, MT_GP, *FIXED)

SYNTHETIC = (MethodComparison(FORRESTER, (ABRAC, *RIVALS, BOHAMIANN)),)
QUADRATICS = (MethodComparison(QUADRATIC, (ABRAC, *RIVALS, "ablr-rks")),)
NETWORK_RIVALS = (RANDOM, "bo", ABLR, *FIXED)
NETWORKS = (MethodComparison(FCNET, (ABRAC, *NETWORK_RIVALS)),)
MACHINES = (MethodComparison(SVM, (ABRAC, *RIVALS)),)

MEANS = "Means over tasks and seeds ± two standard errors over seeds, ranks of every task and seed"
SAYS_WORSE = "Variants with a fixed network and without nested dropout are worse."


class RandomFirst(MultiTask):
    """Starts every run with three random trials, with or without history, as in the paper."""

    def prepare(self) -> None:
        """Keep the random trials that methods with a history skip."""
        super().prepare()
        self.random_trials = type(self).random_trials


class MTGP(RandomFirst, GPTransferSubsample):
    """MT-GP-BO."""


class MTBohamiann(RandomFirst, ContextBohamiann):
    """MT-BOHAMIANN: BOHAMIANN with the context as input."""


def claim_ahead(
    evidence: Evidence,
    comparisons: Comparisons,
    sentence: str,
    rivals: Sequence[str],
    measure: Measure,
    *,
    first: str = ABRAC,
    trial: int = TRIALS,
    by_task: bool = False,
) -> Claim:
    """Make a claim of section 5 that a method is ahead of all rivals after a trial.

    Args:
        evidence: The results.
        comparisons: The comparisons that the claim is about.
        sentence: The claim in words.
        rivals: The methods that should be behind.
        measure: What is compared.
        first: The method that should be ahead; default: ABRAC.
        trial: The trial, counted from 1; default: the last one.
        by_task: Whether each task has a finding of its own.
    """
    findings = find_whether_ahead(
        evidence, comparisons, [first], rivals, trial=trial, measure=measure, by_task=by_task
    )
    return Claim("5", sentence, findings, afterwards=trial in AFTERWARDS)


def claim_best_ranks(
    evidence: Evidence, comparisons: Comparisons, rivals: Sequence[str]
) -> Iterator[Claim]:
    """Yield the claims that ABRAC ranks best, after the last trial and after two earlier ones."""
    for trial in (*AFTERWARDS, TRIALS):
        sentence = f"After {trial} trials ABRAC ranks best"
        yield claim_ahead(evidence, comparisons, sentence, rivals, Measure.RANK, trial=trial)


def check_components(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Yield the claims on the components of ABRAC, in regret and rank (figure 2).

    Each component alone is compared with ABLR without either, and both together with each alone.
    """
    components = {"Nested dropout": "abrac-fixed", "An adaptive head": "ablr-sgd-adapt"}
    for trial in (*AFTERWARDS, TRIALS):
        claim = partial(claim_ahead, evidence, comparisons, trial=trial)
        after = f" after {trial} trials"
        if trial == TRIALS:
            after = ""  # after the last trial, which goes without saying
        for component, method in components.items():
            sentence = f"{component} alone improves on ABLR trained by SGD{after}"
            for measure in (Measure.REGRET, Measure.RANK):
                yield claim(sentence, ["ablr-sgd-fixed"], measure, first=method)
        together = f"Both together rank better than each alone{after}"
        yield claim(together, tuple(components.values()), Measure.RANK)


def check_forrester(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Yield the claims that ABRAC is ahead on Forrester functions (figure 3)."""
    yield from claim_best_ranks(evidence, comparisons, (*RIVALS, BOHAMIANN))
    sentence = f"After {EARLY} trials ABRAC is ahead of MT-GP-BO and ABLR"
    yield claim_ahead(evidence, comparisons, sentence, (MT_GP, ABLR), Measure.REGRET, trial=EARLY)
    sentence = "The variants with a fixed network are worse"
    yield claim_ahead(evidence, comparisons, sentence, FIXED, Measure.REGRET)


def check_quadratic(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Yield the claims that ABRAC is best on quadratic functions, and fastest (figure 5)."""
    rivals = (*RIVALS, "ablr-rks")
    yield from claim_best_ranks(evidence, comparisons, rivals)
    yield claim_ahead(evidence, comparisons, "ABRAC's regret is lowest", rivals, Measure.REGRET)
    sentence = "ABRAC is more than 100 times faster than ABLR and GPs"
    yield Claim(
        "5", sentence, find_whether_cheaper(evidence, comparisons, ABRAC, (ABLR, MT_GP), factor=100)
    )


def check_networks(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Return the claims that ABRAC ranks best over all data sets of networks (figure 6)."""
    return claim_best_ranks(evidence, comparisons, NETWORK_RIVALS)


def check_each_network(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Yield the claim that ABRAC ranks best on each data set of networks (figure 7)."""
    sentence = "ABRAC ranks best on every data set"
    yield claim_ahead(evidence, comparisons, sentence, NETWORK_RIVALS, Measure.RANK, by_task=True)


def check_machines(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Yield the claims on support vector machines, in rank and AUC (figure 8).

    The regret is the distance of the AUC from the best one known, so that its order is the same.
    """
    yield from claim_best_ranks(evidence, comparisons, RIVALS)
    sentence = "ABRAC's AUC is ahead of the others' but ABLR's"
    yield claim_ahead(evidence, comparisons, sentence, (RANDOM, MT_GP, *FIXED), Measure.REGRET)


def check_posteriors(
    evidence: Evidence,
    comparisons: Comparisons,
    *,
    rivals: Sequence[str],
    n_random: int,
    n_own: int,
) -> Iterator[Claim]:
    """Yield the claims on posteriors, on average over all tasks (figures 1, 4 and 9).

    Args:
        evidence: The results.
        comparisons: The comparison, of which only the benchmark counts.
        rivals: The methods that ABRAC is compared with.
        n_random: Number of random evaluations, the same for all methods.
        n_own: Number of further evaluations, which each method chooses itself.
    """
    compare = partial(find_whether_lowest, evidence, comparisons, n_random=n_random, n_own=n_own)
    yield Claim(
        "5",
        "ABRAC's posterior mean is nearest to the function",
        compare("error", ABRAC, rivals),
    )
    yield Claim(
        "1",
        "ABRAC's posterior mean is made of fewer basis functions than ABLR's",
        compare("used", ABRAC, [ABLR]),
    )


def _posteriors(
    number: int, methods: tuple[str, ...], *, n_random: int, n_own: int, paper_says: str
) -> Exhibit:
    """Make a figure of posteriors, with claims that the first method is better than the others.

    Args:
        number: Number of the figure.
        methods: The methods, a row each.
        n_random: Number of random evaluations, the same for all methods.
        n_own: Number of further evaluations, which each method chooses itself.
        paper_says: What the paper says of the figure.
    """
    evaluations = f"{n_random} random evaluations, the same for all methods"
    if n_own:
        evaluations += f", and {n_own} of the method's own"
    return Exhibit(
        number,
        caption=f"The first task after {evaluations}. "
        "Left: the function (blue), evaluations (points), posterior mean (orange) and two "
        "standard deviations of the function. Right: basis functions, darker with more weight. "
        "Claims are on all tasks.",
        paper_says=paper_says,
        comparisons=(MethodComparison(FORRESTER),),
        make_content=partial(posteriors, methods=methods, task=0, n_random=n_random, n_own=n_own),
        check=partial(check_posteriors, rivals=methods[1:], n_random=n_random, n_own=n_own),
    )


FIGURES = (
    _posteriors(
        1,
        (ABRAC, ABLR),
        n_random=3,
        n_own=2,
        paper_says="ABLR overfits, as it has many basis functions; ABRAC, which uses few, does "
        "not.",
    ),
    Exhibit(
        2,
        caption=f"{MEANS}, on Forrester functions. The last method shares its network too, but "
        "fits it with the heads by marginal likelihood.",
        paper_says="Nested dropout and adaptive heads each improve on ABLR with a network trained "
        "by SGD; both together are best.",
        comparisons=(MethodComparison(FORRESTER, COMPONENTS),),
        make_content=progress,
        check=check_components,
    ),
    Exhibit(
        3,
        caption=f"{MEANS}, on Forrester functions.",
        paper_says="ABRAC adapts quickly: after five evaluations its regret is acceptable, while "
        f"MT-GP-BO and ABLR need more. {SAYS_WORSE}",
        comparisons=SYNTHETIC,
        make_content=progress,
        check=check_forrester,
    ),
    _posteriors(
        4,
        (ABRAC, ABLR, *FIXED),
        n_random=3,
        n_own=2,
        paper_says="ABLR overfits, the variants with a fixed network take everything for noise; "
        "ABRAC's model is meaningful.",
    ),
    Exhibit(
        5,
        caption=f"{MEANS}, on the first {TARGETS} quadratic functions. Right: time inside the "
        "method by suggestion, its training included.",
        paper_says="ABRAC outperforms all others; only ABLR SGD fixed reaches it after 45 trials. "
        "It is more than 100 times faster than ABLR and GPs.",
        comparisons=QUADRATICS,
        make_content=partial(progress, times=True),
        check=check_quadratic,
    ),
    Exhibit(
        6,
        caption="Mean ranks over the four data sets ± two standard errors over seeds.",
        paper_says="ABRAC outperforms all others, which hardly improve on random search.",
        comparisons=NETWORKS,
        make_content=partial(progress, measures=(Measure.RANK,)),
        check=check_networks,
    ),
    Exhibit(
        7,
        caption="Mean regret and mean rank on each data set ± two standard errors over seeds.",
        paper_says="ABRAC ranks best on every data set; its regret is lowest but on naval "
        "propulsion, where no method improves much on random search.",
        comparisons=NETWORKS,
        make_content=partial(progress, by_task=True),
        check=check_each_network,
    ),
    Exhibit(
        8,
        caption=f"{MEANS}; regret is the distance of the AUC from the best one known.",
        paper_says="ABRAC outperforms all others in rank; only ABLR reaches a comparable AUC.",
        comparisons=MACHINES,
        make_content=progress,
        check=check_machines,
    ),
    _posteriors(
        9,
        (ABRAC, ABLR, *FIXED),
        n_random=5,
        n_own=0,
        paper_says="The same after five evaluations that are the same for all methods.",
    ),
)

METHODS = {
    name: MethodSpec(
        name=name,
        method=method,
        summary=f"{known} that begins with three random trials.",
        source="Horvath et al. (2021), section 5",
        min_history=1,
    )
    for name, method, known in (
        (MT_GP, MTGP, "gp-transfer-subsample"),
        (BOHAMIANN, MTBohamiann, "bohamiann-ctx"),
    )
}

PAPERS = (
    Paper(
        name="abrac",
        citation="Horvath et al. (2021), Hyperparameter Transfer Learning with Adaptive Complexity",
        setting=Setting(LeaveOneOut(trials=TRIALS), SEEDS),
        exceptions={
            QUADRATIC: Setting(LeaveOneOut(trials=TRIALS, tasks=TARGETS), SEEDS),
            FCNET: Setting(LeaveOneOut(trials=TRIALS), tuple(range(10))),
            SVM: Setting(LeaveOneOut(trials=TRIALS, history=EACH), SEEDS),
        },
        exhibits=FIGURES,
        notes="Regret is the distance of the best value so far from the best one known, in the "
        "objective's own units; ranks are among the methods of a figure, of every task and seed by "
        "itself. Both are means over tasks and seeds; lower is better.",
        methods=METHODS,
    ),
)
