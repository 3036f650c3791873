"""Law et al. (2019), "Hyperparameter Learning via Distributional Transfer": all its figures.

Every seed has other data, drawn or split anew, and other source runs. Where the text does not name
the methods of a figure, they are our choice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.distbo import TRAINED
from hpobench_ordered.experiment.protocols import LeaveOneOut
from hpobench_ordered.methods._model_based import ModelBased
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.distbo import NoneBLR, NoneGP
from hpobench_ordered.papers.claims import Claim, find_whether_ahead
from hpobench_ordered.papers.distbo.claims import (
    find_whether_near_optimum,
    find_whether_only_one_finds,
)
from hpobench_ordered.papers.distbo.drawings import illustration
from hpobench_ordered.papers.distbo.similarities import similarity_curves
from hpobench_ordered.papers.evidence import Comparisons, Evidence, Measure, MethodComparison
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import Check, Exhibit, Paper, Setting, claim_nothing

TOY, COUNTEREXAMPLE = "distbo-toy", "distbo-counterexample"
SIMILAR, OTHER = "distbo-classification-a", "distbo-classification-b"
PARKINSONS = "distbo-parkinsons"
PROTEINS = SVM, FOREST = "distbo-protein-svm", "distbo-protein-forest"
TARGET = "target"
"""The target of a generated benchmark; all other tasks are sources."""

PATIENTS = 14
"""Number of targets among the 42 patients; the others are source tasks as well."""

SETTINGS = {
    TOY: Setting(LeaveOneOut(trials=15, tasks=(TARGET,)), tuple(range(10))),
    COUNTEREXAMPLE: Setting(LeaveOneOut(trials=50, tasks=(TARGET,)), tuple(range(6))),
    SIMILAR: Setting(LeaveOneOut(trials=100, tasks=(TARGET,)), tuple(range(2))),
    OTHER: Setting(LeaveOneOut(trials=100, tasks=(TARGET,)), tuple(range(2))),
    PARKINSONS: Setting(LeaveOneOut(trials=17, tasks=PATIENTS), tuple(range(2)), TRAINED),
    SVM: Setting(LeaveOneOut(trials=20), tuple(range(3)), TRAINED),
    FOREST: Setting(LeaveOneOut(trials=20), tuple(range(2)), TRAINED),
}
"""Trials are those of the paper; it has 30 seeds, 20 on the proteins, 10 to 20 on all patients."""

RANDOM_TRIALS = {TOY: 5, COUNTEREXAMPLE: 20, SIMILAR: 25, OTHER: 25, PARKINSONS: 9} | dict.fromkeys(
    PROTEINS, 9
)
"""Random trials that noneGP and noneBLR start with (appendix C)."""

FEW = 3
"""Trials after which methods are compared on the toy example."""
EARLY = 5
"""Trials after which methods are compared on the other benchmarks but classification."""
QUARTER = 25
"""Trials after which methods are compared in classification: a quarter of all."""
NEAR = 0.05
"""Distance from the highest value of the toy example that counts as its optimum."""
NO_WORSE = 0.01
"""Difference of the objective, which is at most 1, that counts as none."""
COMPARED = 20
"""Trials of the counterexample whose similarities are drawn, of the 50: they take a run each."""

RANDOM = "random-search"
MODELS = GP, BLR = "gp", "blr"
"""Gaussian process and Bayesian linear regression; the paper has each method with both."""
KINDS = ("dist", "manual", "multi", "init", "none")
"""Kinds of methods; with a model, a method is called dist-gp here and distGP in the paper."""
GPS = ("dist-gp", "manual-gp", "multi-gp")
"""The methods whose model has a similarity of tasks."""


def count_runs_as_seeds(values: FloatArray) -> FloatArray:
    """Treat each run, which is a task with a seed, as a seed of one task.

    Args:
        values: A quantity, (methods, seeds, tasks, trials).

    Returns:
        The same values in the shape (methods, runs, 1, trials).
    """
    return values.reshape(len(values), -1, 1, values.shape[-1])


def assign_copies_to_seeds(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the benchmarks to run on, by name, each with the only seed that is run on it.

    Each seed needs a copy of the benchmark, with other data and another history. Seed 0 is run on
    the benchmark itself, and any other seed S on the copy called BENCHMARK-seed-S.
    """
    seeds_of_benchmark: dict[str, tuple[int, ...]] = {}
    for seed in seeds:
        copy = benchmark if seed == 0 else f"{benchmark}-seed-{seed}"
        seeds_of_benchmark[copy] = (seed,)
    return seeds_of_benchmark


def _method_name(kind: str, model: str, benchmark: str) -> str:
    """Return the name of a method for a benchmark.

    A method without transfer starts with random trials. Their number depends on the benchmark, so
    the name ends in it: "none-gp-20".

    Args:
        kind: The part of the name before the model, one of `KINDS`.
        model: The model, "gp" or "blr".
        benchmark: The benchmark.
    """
    if kind == "none":
        return f"none-{model}-{RANDOM_TRIALS[benchmark]}"
    return f"{kind}-{model}"


def _method_names(kinds: Sequence[str], model: str, benchmark: str) -> tuple[str, ...]:
    """Return the names of methods of several kinds with the same model."""
    return tuple(_method_name(kind, model, benchmark) for kind in kinds)


def _compare_all(model: str, benchmark: str) -> MethodComparison:
    """Return the comparison of all methods with a model and of random search on a benchmark."""
    return MethodComparison(benchmark, (*_method_names(KINDS, model, benchmark), RANDOM))


def _compare_embeddings(model: str, benchmark: str) -> MethodComparison:
    """Return the comparison of distBO with the marginal and with both joint embeddings."""
    embeddings = (f"dist-{model}", f"dist-{model}-joint", f"dist-{model}-joint-mean")
    return MethodComparison(benchmark, embeddings)


@dataclass(frozen=True)
class StartedAtRandom:
    """Makes a method with another number of random trials at the start than its class has.

    It is an object and not a function, so that specs can be pickled for worker processes.

    Attributes:
        method: Class of the method.
        trials: Number of random trials.
    """

    method: type[ModelBased]
    trials: int

    def __call__(self, **setting: Any) -> Method:
        """Make the method from the arguments of its class: search space, history and so on."""
        method = self.method(**setting)
        # Instead of the attribute of the class; the method reads it when it is first asked.
        method.random_trials = self.trials
        return method


def _make_specs_without_transfer(benchmark: str) -> dict[str, MethodSpec]:
    """Make the specs of noneGP and noneBLR for a benchmark, by name.

    They start with as many random trials as the paper has on this benchmark.
    """
    trials = RANDOM_TRIALS[benchmark]
    class_of_model: dict[str, type[ModelBased]] = {GP: NoneGP, BLR: NoneBLR}
    specs = {}
    for model, method in class_of_model.items():
        name = _method_name("none", model, benchmark)
        specs[name] = MethodSpec(
            name=name,
            method=StartedAtRandom(method, trials),
            summary=f"none-{model} that starts with {trials} random trials.",
            source="Law et al. (2019), appendix C",
        )
    return specs


def _make_all_specs_without_transfer() -> dict[str, MethodSpec]:
    """Make the specs of noneGP and noneBLR for all benchmarks, by name."""
    specs: dict[str, MethodSpec] = {}
    for benchmark in SETTINGS:
        specs |= _make_specs_without_transfer(benchmark)
    return specs


VALUES = "Best value so far, mean over runs ± two standard errors"
RANKS = "rank among the methods of a panel, mean ± one standard deviation over runs"
_draw_values_and_ranks = partial(progress, measures=(Measure.VALUE, Measure.RANK), over_runs=True)
_draw_values = partial(progress, measures=(Measure.VALUE,), over_runs=True)


def _make_comparison_figure(
    number: int,
    *comparisons: MethodComparison,
    paper_says: str,
    check: Check = claim_nothing,
    ranks: bool = True,
) -> Exhibit:
    """Make a figure that compares methods, with a panel for each comparison.

    Args:
        number: Number of the figure.
        comparisons: The methods that are compared on each benchmark.
        paper_says: What the paper says about the figure, in our words.
        check: Yields the claims about the figure.
        ranks: Whether ranks after every trial are shown, and not only the best values.
    """
    caption = f"{VALUES}; {RANKS}." if ranks else f"{VALUES}."
    return Exhibit(
        number,
        caption=caption,
        paper_says=paper_says,
        comparisons=comparisons,
        make_content=_draw_values_and_ranks if ranks else _draw_values,
        check=check,
    )


def _make_similarity_figure(
    number: int,
    comparison: MethodComparison,
    *,
    trials: int,
    paper_says: str,
    check: Check = claim_nothing,
    values: bool = False,
) -> Exhibit:
    """Make a figure of the similarities of tasks that methods estimate.

    Args:
        number: Number of the figure.
        comparison: The benchmark, and the methods whose best values are shown.
        trials: Number of first trials that are shown.
        paper_says: What the paper says about the figure, in our words.
        check: Yields the claims about the figure.
        values: Whether best values are shown as well. The figure then has the similarities of
            distGP alone, and otherwise those of all methods of `GPS`.
    """
    caption = "Similarity of each source task to the target, mean over runs"
    if values:
        caption = f"Left: {VALUES.lower()}. Right: {caption.lower()}"
    methods = GPS[:1] if values else GPS
    return Exhibit(
        number,
        caption=f"{caption}.",
        paper_says=paper_says,
        comparisons=(comparison,),
        make_content=partial(similarity_curves, methods=methods, trials=trials, values=values),
        check=check,
    )


def claim_ahead(
    evidence: Evidence,
    section: str,
    sentence: str,
    model: str,
    benchmark: str,
    *,
    firsts: Sequence[str] = ("dist",),
    rivals: Sequence[str] | None = None,
    trial: int,
) -> Claim:
    """Make the claim that methods of some kinds are ahead of others with the same model.

    Args:
        evidence: The results.
        section: Section of the paper.
        sentence: The claim in words, without the trial.
        model: The model of all methods, one of `MODELS`.
        benchmark: The benchmark.
        firsts: Kinds, of `KINDS`, of the methods that should be ahead; default: distBO.
        rivals: Kinds of the methods that should be behind; default: all others, and random search.
        trial: The trial, counted from 1.
    """
    comparison = _compare_all(model, benchmark)
    better = _method_names(firsts, model, benchmark)
    if rivals is None:
        worse = tuple(method for method in comparison.methods if method not in better)
    else:
        worse = _method_names(rivals, model, benchmark)
    findings = find_whether_ahead(
        evidence, [comparison], better, worse, trial=trial, measure=Measure.REGRET
    )
    return Claim(section, f"After {trial} trials {sentence}", findings)


def claim_near_optimum(evidence: Evidence, kind: str, model: str) -> Claim:
    """Claim that a method is near the optimum of the toy example after few trials.

    The method is that of a kind, one of `KINDS`, with a model, one of `MODELS`.
    """
    findings = find_whether_near_optimum(
        evidence, [_compare_all(model, TOY)], f"{kind}-{model}", trial=FEW, margin=NEAR
    )
    sentence = f"After {FEW} trials {kind}{model.upper()} is within {NEAR} of the optimum"
    return Claim("5.1", sentence, findings)


def check_toy(evidence: Evidence, _: Comparisons, *, model: str) -> Iterator[Claim]:
    """Check that distBO is near the optimum of the toy example early, and ahead (figures 1, 7)."""
    yield claim_near_optimum(evidence, "dist", model)
    upper = model.upper()
    sentence = f"dist{upper} is ahead of multi{upper} and none{upper}"
    yield claim_ahead(evidence, "5.1", sentence, model, TOY, rivals=("multi", "none"), trial=FEW)


def check_toy_with_manual(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check that distBLR and the methods that are told the mean are near the optimum (figure 7)."""
    yield from check_toy(evidence, comparisons, model=BLR)
    for model in MODELS:
        yield claim_near_optimum(evidence, "manual", model)


def check_counterexample(evidence: Evidence, _: Comparisons, *, model: str) -> Iterator[Claim]:
    """Check that distBO is best on the counterexample (figures 2 and 9)."""
    sentence = f"dist{model.upper()} is ahead of all others"
    yield claim_ahead(evidence, "5.2", sentence, model, COUNTEREXAMPLE, trial=EARLY)


def check_proteins(evidence: Evidence, _: Comparisons) -> Iterator[Claim]:
    """Check that distGP is ahead of the others on proteins (figure 3)."""
    sentence = "distGP is ahead of multiGP, initGP and noneGP"
    rivals = ("multi", "init", "none")
    for name in PROTEINS:
        yield claim_ahead(evidence, "5.3", sentence, GP, name, rivals=rivals, trial=EARLY)


def check_joint(
    evidence: Evidence, _: Comparisons, *, benchmark: str, models: Sequence[str], last: int
) -> Iterator[Claim]:
    """Check that distBO is no worse with the joint embedding than without (figures 4 and 5).

    Args:
        evidence: The results.
        _: The comparisons of the figure, which are not needed: `benchmark` and `models` name them.
        benchmark: The benchmark.
        models: The models, of `MODELS`.
        last: The last trial, after which methods are compared as well as early on.
    """
    for trial, model in product((EARLY, last), models):
        findings = find_whether_ahead(
            evidence,
            [_compare_embeddings(model, benchmark)],
            [f"dist-{model}-joint"],
            [f"dist-{model}"],
            trial=trial,
            measure=Measure.REGRET,
            margin=NO_WORSE,
        )
        sentence = f"After {trial} trials dist{model.upper()} is no worse with the joint embedding"
        yield Claim("C.1", sentence, findings)


def check_similarities(evidence: Evidence, comparisons: Comparisons) -> Iterator[Claim]:
    """Check which methods find the source task that is like the target (figure 10)."""
    yield Claim(
        "5.2",
        f"In its first {EARLY} trials distGP takes the second source task, the one of the target's "
        "process, for the most similar; manualGP and multiGP do not",
        find_whether_only_one_finds(
            evidence, comparisons, "dist-gp", GPS[1:], source=1, trials=EARLY
        ),
    )


def check_similar(evidence: Evidence, _: Comparisons) -> Iterator[Claim]:
    """Check that distBLR is best in classification if a source is like the target (figure 11).

    It should be ahead of all other methods with Bayesian linear regression, after a quarter of the
    trials. The paper claims it in appendix C.4.
    """
    sentence = "distBLR is ahead of all others"
    yield claim_ahead(evidence, "C.4", sentence, BLR, SIMILAR, trial=QUARTER)


def check_other(evidence: Evidence, _: Comparisons) -> Iterator[Claim]:
    """Check which methods lead in classification if no source is like the target (figure 12).

    All methods have Bayesian linear regression (BLR) as their model. They are compared after a
    quarter of the trials. The paper makes these claims in appendix C.4.
    """
    claim_early = partial(
        claim_ahead, evidence, section="C.4", model=BLR, benchmark=OTHER, trial=QUARTER
    )
    yield claim_early(sentence="multiBLR is ahead of all others", firsts=["multi"])
    yield claim_early(
        sentence="distBLR is ahead of noneBLR and initBLR",
        firsts=["dist"],
        rivals=["none", "init"],
    )


def check_patients(evidence: Evidence, _: Comparisons) -> Iterator[Claim]:
    """Check that methods with transfer are ahead on Parkinson's patients (figure 13)."""
    sentence = "distBLR and manualBLR are ahead of noneBLR"
    yield claim_ahead(
        evidence,
        "C.5",
        sentence,
        BLR,
        PARKINSONS,
        firsts=("dist", "manual"),
        rivals=["none"],
        trial=EARLY,
    )


FEW_SHOT = "distBO few-shots the optimum, as it learns which source tasks are like the target."

FIGURES = (
    _make_similarity_figure(
        1,
        _compare_all(GP, TOY),
        trials=15,
        values=True,
        paper_says=FEW_SHOT,
        check=partial(check_toy, model=GP),
    ),
    _make_similarity_figure(
        2,
        _compare_all(GP, COUNTEREXAMPLE),
        trials=COMPARED,
        values=True,
        paper_says="distBO alone finds the source task that is like the target, and one-shots the "
        "optimum.",
        check=partial(check_counterexample, model=GP),
    ),
    _make_comparison_figure(
        3,
        *(_compare_all(GP, name) for name in PROTEINS),
        ranks=False,
        paper_says="distGP outperforms the others and few-shots the optimum with both models.",
        check=check_proteins,
    ),
    _make_comparison_figure(
        4,
        _compare_embeddings(BLR, COUNTEREXAMPLE),
        _compare_embeddings(GP, COUNTEREXAMPLE),
        paper_says="Embedding the joint distribution is similar to embedding the marginal and the "
        "conditional one.",
        check=partial(check_joint, benchmark=COUNTEREXAMPLE, models=(GP, BLR), last=50),
    ),
    _make_comparison_figure(
        5,
        _compare_embeddings(BLR, PARKINSONS),
        paper_says="So it is on Parkinson's data.",
        check=partial(check_joint, benchmark=PARKINSONS, models=[BLR], last=17),
    ),
    Exhibit(
        6,
        caption="The objective of every task, with the data of seed 0.",
        paper_says="An illustration of the toy example.",
        comparisons=(MethodComparison(TOY),),
        make_content=illustration,
    ),
    _make_comparison_figure(
        7,
        _compare_all(GP, TOY),
        _compare_all(BLR, TOY),
        paper_says=f"{FEW_SHOT} So does manualBO, which is told the mean; initBO starts well and "
        "converges slowly; multiBO has to learn the similarities first.",
        check=check_toy_with_manual,
    ),
    _make_similarity_figure(
        8,
        MethodComparison(TOY, GPS),
        trials=15,
        paper_says="multiGP's similarities are wrong in the first trials, those of distGP and "
        "manualGP are not.",
    ),
    _make_comparison_figure(
        9,
        _compare_all(GP, COUNTEREXAMPLE),
        _compare_all(BLR, COUNTEREXAMPLE),
        paper_says="BLR methods perform similarly to their GP counterparts.",
        check=partial(check_counterexample, model=BLR),
    ),
    _make_similarity_figure(
        10,
        MethodComparison(COUNTEREXAMPLE, GPS),
        trials=COMPARED,
        paper_says="Only distGP learns a high similarity of the second source task.",
        check=check_similarities,
    ),
    _make_comparison_figure(
        11,
        _compare_all(BLR, SIMILAR),
        paper_says="Where a source task has the bandwidths of the target distBLR is the fastest.",
        check=check_similar,
    ),
    _make_comparison_figure(
        12,
        _compare_all(BLR, OTHER),
        paper_says="Where none has them multiBLR is best; distBLR and manualBLR are faster than "
        "methods without transfer and than initBLR.",
        check=check_other,
    ),
    _make_comparison_figure(
        13,
        _compare_all(BLR, PARKINSONS),
        paper_says="Methods with transfer few-shot the optimum of many patients.",
        check=check_patients,
    ),
    *(
        _make_comparison_figure(
            number,
            _compare_all(GP, name),
            _compare_all(BLR, name),
            paper_says="distBO is ahead in rank, too, and with BLR.",
        )
        for number, name in enumerate(PROTEINS, start=14)
    ),
)

PAPERS = (
    Paper(
        name="distbo",
        citation="Law et al. (2019), Hyperparameter Learning via Distributional Transfer",
        setting=SETTINGS[TOY],
        exceptions=SETTINGS,
        exhibits=FIGURES,
        notes="Regret is the distance of the best value so far from the best one known, in the "
        "objective's own units, mean over runs, each a target and a seed; lower is better.",
        methods=_make_all_specs_without_transfer(),
        select_counted=count_runs_as_seeds,
        assign_seeds=assign_copies_to_seeds,
    ),
)
