"""Stoll et al. (2020), "Hyperparameter Transfer Across Developer Adjustments": figures 2 to 8.

These are the figures of the appendix; figure 1 is a sketch. TPE, TPE with other random numbers and
random search do not use the old step: they are run once, and compared for all old budgets.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product

from hpobench_ordered.analysis.speedup import PAPER_BUDGETS
from hpobench_ordered.benchmarks.registry import suite
from hpobench_ordered.experiment.protocols import Adjustment
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.tpe import TPE
from hpobench_ordered.papers.claims import Claim
from hpobench_ordered.papers.evidence import Comparisons, Evidence, MethodComparison
from hpobench_ordered.papers.hp_transfer.speedups import (
    FAILURE_RATE,
    SPEEDUP,
    draw_means_by_reference_budget,
    draw_speedups_by_benchmark,
    find_whether_about_as_fast,
    find_whether_faster,
    find_whether_often_failing,
)
from hpobench_ordered.papers.paper import Check, Exhibit, Paper, Setting, claim_nothing

BENCHMARKS = tuple(suite("adjustments"))
OLD_BUDGETS = (10, 20, 40)
TRIALS = 10 * max(PAPER_BUDGETS)
"""Length of a run, as in the paper."""
SEEDS = tuple(range(12))
"""The paper has 25 repetitions; with these, everything takes under half an hour on two cores."""
OFTEN = 0.2
"""Share of the runs that counts as "often"."""
LEVEL = 1.2
"""Speed-up that counts as none."""

REFERENCE, TWIN, RANDOM = "tpe", "tpe-twin", "random-search"
TRANSFER, BEST_FIRST, BOTH = "transfer-tpe", "best-first", "transfer-tpe-best-first"
ONLY_NEW, DROP = "only-optimize-new", "drop-unimportant"


class TPETwin(TPE):
    """TPE with other random numbers."""

    def prepare(self) -> None:
        """Use a random number generator independent of the given one."""
        self.rng = self.rng.spawn(1)[0]
        super().prepare()


def _after(old_budget: int) -> Adjustment:
    """Return the protocol in which TPE makes `old_budget` trials before the adjustment."""
    return Adjustment(first_trials=old_budget, trials=TRIALS, first_method=REFERENCE)


def _without_transfer(*methods: str) -> tuple[MethodComparison, ...]:
    """Return the comparisons of methods that do not use the trials before the adjustment.

    Their runs are the same for all old budgets, so that they are run under one of these alone.
    """
    return tuple(MethodComparison(name, methods, _after(OLD_BUDGETS[0])) for name in BENCHMARKS)


def _compare_with_reference(
    *methods: str, old_budgets: tuple[int, ...] = OLD_BUDGETS
) -> tuple[MethodComparison, ...]:
    """Return the comparisons of methods for each old budget, and those of the reference."""
    comparisons = [*_without_transfer(REFERENCE)]
    for old_budget, benchmark in product(old_budgets, BENCHMARKS):
        comparisons.append(MethodComparison(benchmark, methods, _after(old_budget)))
    return tuple(comparisons)


compare_speed = partial(find_whether_faster, reference=REFERENCE)


def check_speedups(evidence: Evidence, comparisons: Comparisons, *, before: str) -> Iterator[Claim]:
    """Check that transfer TPE and best-first are faster than TPE, and both together fastest.

    These are the claims of figures 2 to 4; `before` is the old budget in words.
    """
    for name, method in (("Transfer TPE", TRANSFER), ("Best-first", BEST_FIRST)):
        findings = compare_speed(evidence, comparisons, method, [REFERENCE])
        yield Claim("D", f"{name} is faster than TPE {before}", findings)
    yield Claim(
        "D",
        f"Both together are faster than each alone {before}",
        compare_speed(evidence, comparisons, BOTH, [TRANSFER, BEST_FIRST]),
    )


def check_failures(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that methods which ignore part of the space often fail to reach TPE (figure 6)."""
    for name, method in (("Dropping the unimportant", DROP), ("Only optimising the new", ONLY_NEW)):
        yield Claim(
            "E",
            f"{name} often fails to reach what TPE does, in {OFTEN:.0%} of the runs or more",
            find_whether_often_failing(
                evidence, comparisons, method, share=OFTEN, reference=REFERENCE
            ),
        )


def check_twin(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that TPE is as fast as TPE with other random numbers (figure 7)."""
    yield Claim(
        "F",
        f"TPE is as fast as with other random numbers, to a factor of {LEVEL}",
        find_whether_about_as_fast(evidence, comparisons, TWIN, factor=LEVEL, reference=REFERENCE),
    )


def check_random_search(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that random search is slower than TPE (figure 8)."""
    findings = compare_speed(evidence, comparisons, REFERENCE, [RANDOM])
    yield Claim("G", "Random search is slower than TPE", findings)


def _speedups(number: int, old_budget: int) -> Exhibit:
    """Make the figure of speed-ups after an old budget."""
    methods = (TRANSFER, BEST_FIRST, BOTH)
    before = f"after {old_budget} trials before the adjustment"
    return Exhibit(
        number,
        caption=f"Speed-up over TPE {before}: a point per task, a line their geometric mean; under "
        "`all`, points are the means of benchmarks. A panel each for what TPE reaches, on average, "
        "with 10, 20 and 40 trials.",
        paper_says="Transfer TPE and best-first need fewer trials than TPE on average, and fewest "
        "together.",
        comparisons=_compare_with_reference(*methods, old_budgets=(old_budget,)),
        make_content=partial(draw_speedups_by_benchmark, reference=REFERENCE, methods=methods),
        check=partial(check_speedups, before=before),
    )


def _failures(
    number: int, *methods: str, paper_says: str, caption: str = "", check: Check = claim_nothing
) -> Exhibit:
    """Make a figure of failure rates.

    Args:
        number: Number of the figure.
        *methods: The methods that it shows.
        paper_says: What the paper says of the figure.
        caption: Sentences after the caption that all figures of failure rates have.
        check: Checks the claims about the figure.
    """
    others = [method for method in methods if method != REFERENCE]  # which is always there
    return Exhibit(
        number,
        caption="Share of the runs that do not reach, in "
        f"{TRIALS} trials, what TPE reaches on average with 10, 20 and 40: a point per benchmark, "
        f"the mean over its tasks, and a line their mean.{caption}",
        paper_says=paper_says,
        comparisons=_compare_with_reference(*others),
        make_content=partial(
            draw_means_by_reference_budget,
            reference=REFERENCE,
            methods=methods,
            measure=FAILURE_RATE,
        ),
        check=check,
    )


def _control(number: int, method: str, *, paper_says: str, check: Check) -> Exhibit:
    """Make the figure of a method that, like TPE, does not use the old trials."""
    return Exhibit(
        number,
        caption="Speed-up over TPE: a point per benchmark, the geometric mean over its tasks, and "
        "a line their geometric mean. The old budget makes no difference to either, so there "
        "is one panel.",
        paper_says=paper_says,
        comparisons=_without_transfer(REFERENCE, method),
        make_content=partial(
            draw_means_by_reference_budget, reference=REFERENCE, methods=(method,), measure=SPEEDUP
        ),
        check=check,
    )


FIGURES = (
    *(_speedups(number, old) for number, old in enumerate(OLD_BUDGETS, start=2)),
    _failures(
        5,
        TRANSFER,
        BEST_FIRST,
        REFERENCE,
        paper_says="Failure rates of transfer TPE and best-first next to TPE's own.",
        caption=" TPE's own do not depend on the old budget.",
    ),
    _failures(
        6,
        DROP,
        ONLY_NEW,
        paper_says="Many runs that drop what is unimportant, or optimise only what is new, never "
        "reach the reference.",
        check=check_failures,
    ),
    _control(
        7,
        TWIN,
        paper_says="TPE hardly differs from TPE with other seeds, except for one outlier task.",
        check=check_twin,
    ),
    _control(
        8,
        RANDOM,
        paper_says="A comparison of random search with TPE, for context.",
        check=check_random_search,
    ),
)

PAPERS = (
    Paper(
        name="hp-transfer",
        citation="Stoll et al. (2020), Hyperparameter Transfer Across Developer Adjustments",
        setting=Setting(_after(OLD_BUDGETS[0]), SEEDS),
        exhibits=FIGURES,
        methods={
            TWIN: MethodSpec(
                name=TWIN,
                method=TPETwin,
                summary="tpe with other random numbers.",
                source="Stoll et al. (2020), appendix F",
                changed_spaces=True,
            )
        },
        notes="A speed-up is how many times fewer trials a method needs than TPE, on average over "
        "seeds, to reach what TPE reaches on average with 10, 20 or 40 and the other half of the "
        f"seeds; a run that fails counts as {TRIALS} trials. Means over tasks and then "
        "over the eight benchmarks are geometric; errors of claims are over the four families of "
        "benchmarks that share their tables or models. "
        "The paper, which has 25 repetitions, "
        "contradicts itself: table 1 and the released code have the names nas-a and nas-b the "
        "other way round than tables 5 and 6, and the code leaves another operation out of the old "
        "space of table 6 and has gamma and degree of table 7 in each other's place. The tables "
        "are followed. The models of svm and xgb are of trainings of our own; fcn-b has 100 epochs "
        "in both steps.",
    ),
)
