"""The paper distbo: benchmarks are drawn by the seed, and methods compare data sets of tasks."""

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from reproduction_support import InventedEvidence, make_figure

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.papers import Paper, checks, paper, reproduce
from hpobench_ordered.papers.distbo.checks import near, on
from hpobench_ordered.papers.distbo.drawings import illustration
from hpobench_ordered.papers.distbo.paper import count_runs_as_seeds, draw_by_seed
from hpobench_ordered.papers.distbo.similarities import (
    compute_similarities,
    only_one_finds,
    similarity_curves,
)
from hpobench_ordered.papers.evidence import Evidence, Measure
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import (
    Claim,
    Exhibit,
    MethodComparison,
    Outcome,
    Setting,
)

TOY = "distbo-toy"
WHERE_MULTI_BLR_IS_BEST = "distbo-classification-b"
"""The one benchmark where the paper's best method is `multi-blr`."""
KINDS_FROM_BEST = ("dist", "manual", "multi", "init", "none", "random")
"""Kinds of methods, as the paper ranks them on the other benchmarks."""
DISTBO = paper("distbo")


def make_evidence(regrets: dict[tuple[str, str], FloatArray | float]) -> Evidence:
    """Evidence of 3 seeds, 2 tasks and 100 trials with these regrets, by benchmark and method."""
    evidence = InventedEvidence(counted=count_runs_as_seeds)
    for (benchmark, method), values in regrets.items():
        evidence.add_runs(benchmark, method, regret=np.broadcast_to(values, (3, 2, 100)))
    return evidence


def test_near_holds_with_regret_below_margin():
    """The check asks for a regret of at most the margin, 0.05; that of a is 0.04."""
    evidence = make_evidence({("x", "a"): 0.04})
    a_is_near = near(("a",), trial=3, margin=0.05)

    (finding,) = a_is_near(evidence, [MethodComparison("x", ("a",))])

    assert finding.outcome is Outcome.HOLDS


def test_near_fails_with_one_regret_above_margin():
    """Both methods must have a regret of at most 0.05, but that of b is 0.06."""
    evidence = make_evidence({("x", "a"): 0.04, ("x", "b"): 0.06})
    both_are_near = near(("a", "b"), trial=3, margin=0.05)

    (finding,) = both_are_near(evidence, [MethodComparison("x", ("a", "b"))])

    assert finding.outcome is Outcome.FAILS
    assert finding.measured == "a 0.04, b 0.06 (asked: 0.05)"


@pytest.mark.parametrize(("checked", "outcome"), [("x", Outcome.HOLDS), ("y", Outcome.FAILS)])
def test_on_checks_one_comparison(checked, outcome):
    """Method a is ahead of b on benchmark x and behind it on y; one of them is checked."""
    comparisons = {name: MethodComparison(name, ("a", "b")) for name in ("x", "y")}
    evidence = make_evidence({("x", "a"): 0.1, ("x", "b"): 0.2, ("y", "a"): 0.4, ("y", "b"): 0.3})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)
    a_is_ahead_on_one = on(comparisons[checked], a_is_ahead)

    (finding,) = a_is_ahead_on_one(evidence, tuple(comparisons.values()))

    assert (finding.subject, finding.outcome) == (checked, outcome)


def test_errors_are_between_runs():
    """Three seeds on two tasks make one sample of 6 runs, as each seed has its own benchmark.

    Method a is better than b in three of the runs, those with a regret below 0.25.
    """
    regrets_of_a = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    by_seed_and_task = regrets_of_a.reshape(3, 2, 1)  # the same after every trial
    evidence = make_evidence({("x", "a"): by_seed_and_task, ("x", "b"): 0.25})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)

    (finding,) = a_is_ahead(evidence, [MethodComparison("x", ("a", "b"))])

    standard_error = regrets_of_a.std(ddof=1) / np.sqrt(6)
    assert f"± {2 * standard_error:.3g}, better in 3 of 6 runs" in finding.measured


def list_comparisons() -> list[MethodComparison]:
    """Which methods the paper compares on which benchmarks, in any figure."""
    comparisons: list[MethodComparison] = []
    for figure in DISTBO.exhibits:
        comparisons.extend(figure.needs)
    return comparisons


def invent_regret(benchmark: str, method: str, *, as_in_paper: bool) -> float:
    """Invent the regret of a method on a benchmark: 0.001 for the best kind, then 0.01, ...

    The order of kinds is that of the paper or, so that none of its claims holds, the reversed one.
    The name of a method begins with its kind, as `dist-gp`.
    """
    kind = method.partition("-")[0]
    place = KINDS_FROM_BEST.index(kind)
    if benchmark == WHERE_MULTI_BLR_IS_BEST and method == "multi-blr":
        place = -1  # before all others
    if not as_in_paper:
        last_place = len(KINDS_FROM_BEST) - 1
        place = last_place - place
    regret = 1e-3 * 10.0**place

    # `dist-gp-joint` differs from `dist-gp` in how it embeds data sets. The paper says that it is
    # no worse; it is clearly better here, or clearly worse.
    if method.endswith("-joint"):
        regret *= 0.5 if as_in_paper else 3
    return regret


def invent_evidence(*, as_in_paper: bool) -> Evidence:
    """Evidence of all runs of the paper in which all its claims about results hold, or none."""
    regrets: dict[tuple[str, str], FloatArray | float] = {}
    for comparison in list_comparisons():
        for method in comparison.methods:
            regret = invent_regret(comparison.benchmark, method, as_in_paper=as_in_paper)
            regrets[comparison.benchmark, method] = regret
    return make_evidence(regrets)


def list_claims_about_results() -> list[tuple[Exhibit, Claim]]:
    """Every claim about regrets with its figure; other claims are about similarities of tasks."""
    claims = []
    for figure in DISTBO.exhibits:
        for claim in figure.claims:
            is_about_similarities = "most similar" in claim.sentence
            if not is_about_similarities:
                claims.append((figure, claim))
    return claims


@pytest.mark.parametrize("as_in_paper", [True, False])
def test_claims_hold_only_where_true(as_in_paper):
    """All claims about results hold with the paper's order of methods, none with the reversed."""
    evidence = invent_evidence(as_in_paper=as_in_paper)

    for figure, claim in list_claims_about_results():
        for finding in claim.check(evidence, figure.needs):
            assert finding.outcome is Outcome.from_truth(as_in_paper), claim.sentence


def test_findings_are_on_most_figures():
    """Checks find something, so that the test of all claims cannot pass without any finding.

    Of figures 1 to 15, only 6, 8, 10, 14 and 15 have no claims about results.
    """
    evidence = invent_evidence(as_in_paper=True)

    figures_with_findings = set()
    for figure, claim in list_claims_about_results():
        if list(claim.check(evidence, figure.needs)):
            figures_with_findings.add(figure.number)

    assert figures_with_findings >= {1, 2, 3, 4, 5, 7, 9, 11, 12, 13}


def list_benchmarks_and_methods() -> list[tuple[str, hbo.MethodSpec]]:
    """Every benchmark of the paper with each method that runs on it.

    Methods are of the paper alone, or registered in the package.
    """
    pairs = []
    for comparison in list_comparisons():
        for name in comparison.methods:
            method = DISTBO.methods.get(name) or method_spec(name)
            pairs.append((comparison.benchmark, method))
    return pairs


def test_benchmarks_have_data_that_methods_use():
    """Some methods compare the training data of tasks, which not every benchmark has."""
    for benchmark, method in list_benchmarks_and_methods():
        if method.uses_data:
            assert benchmark_spec(benchmark).data is not None


def test_methods_can_run_under_their_protocol():
    """No method needs what its protocol does not give it, such as more earlier tasks."""
    for benchmark, method in list_benchmarks_and_methods():
        protocol = DISTBO.setting_of(benchmark).protocol

        # An error is raised if the method cannot.
        protocol.check(benchmark_spec(benchmark), method)


def test_random_trials_are_the_papers():
    """Appendix C has four numbers of random trials, and a method such as `none-gp-5` for each."""
    numbers = set()
    for name in DISTBO.methods:
        if name.startswith("none-gp-"):
            numbers.add(int(name.removeprefix("none-gp-")))

    assert numbers == {5, 9, 20, 25}


def test_name_tells_number_of_random_trials():
    """The number at the end of `none-blr-20` is that of the random trials it begins with."""
    spec = DISTBO.methods["none-blr-20"]

    method = spec.method(
        space=benchmark_spec(TOY).define().space,
        rng=np.random.default_rng(0),
        history=(),
        context={},
        budget=50,
    )

    assert method.random_trials == 20


def test_drawn_data_have_benchmark_of_each_seed():
    """The toy example is drawn anew for each seed; its plain name is that of seed 0."""
    seeds_of_benchmarks = DISTBO.runs_on("distbo-toy", (0, 3))

    assert seeds_of_benchmarks == {"distbo-toy": (0,), "distbo-toy-seed-3": (3,)}


def test_recorded_data_have_one_benchmark():
    """The data of distbo-parkinsons were recorded, so they are the same for all seeds."""
    seeds_of_benchmarks = DISTBO.runs_on("distbo-parkinsons", (0, 3))

    assert seeds_of_benchmarks == {"distbo-parkinsons": (0, 3)}


# -- a reproduction whose every seed has a benchmark of its own ------------------------------------

TOY_SEEDS = (1, 2, 5)


@dataclass
class RecordingGenerator:
    """Stands for the generator of source runs, and records the benchmarks that it is asked for."""

    folder: Path
    names: list[str] = field(default_factory=list)

    def home(self) -> Path:
        return self.folder

    def generate(self, folder: Path, *, workers: int) -> None:
        self.names.append(folder.name)


def make_paper_on_toy() -> Paper:
    """A paper with curves of two methods on the toy example, and with its functions."""
    two_methods = [MethodComparison(TOY, ("random-search", "bo"))]
    no_methods = [MethodComparison(TOY)]
    draw_curves = partial(progress, over_runs=True, measures=(Measure.VALUE, Measure.RANK))
    draw_functions = illustration
    return Paper(
        name="small",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=("target",)), seeds=TOY_SEEDS),
        exhibits=(
            make_figure(1, two_methods, draw_curves),
            make_figure(2, no_methods, draw_functions),
        ),
        notes="Regret.",
        runs_on=draw_by_seed,
        counted=count_runs_as_seeds,
    )


@pytest.fixture(scope="module")
def toy_folder(tmp_path_factory):
    """Where the paper on the toy example is reproduced."""
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def toy_generator(toy_folder):
    """The generator that the reproduction of the paper on the toy example asks."""
    return RecordingGenerator(toy_folder)


@pytest.fixture(scope="module")
def toy_result(toy_folder, toy_generator):
    """The reproduction of the paper on the toy example; nothing is generated, only recorded."""
    # The package's name `reproduce` stands for the function, which hides its module.
    module_of_reproduce = sys.modules["hpobench_ordered.papers.reproduce"]
    with pytest.MonkeyPatch.context() as patch:
        no_benchmarks_of_user = toy_folder / "none"
        patch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(no_benchmarks_of_user))
        # Generators are looked up by the name of a benchmark.
        patch.setattr(module_of_reproduce, "generator", lambda name: toy_generator)
        return reproduce(make_paper_on_toy(), folder=toy_folder)


@pytest.fixture(scope="module")
def toy_best_values(toy_result):
    """All trials of the paper on the toy example, with the best value so far as column `best`.

    Values are maximised.
    """
    trials = toy_result.setup.store.read(cell.key for cell in toy_result.cells)
    best_so_far = trials.groupby(["method", "seed"])["value"].cummax()
    return trials.assign(best=best_so_far)


@pytest.fixture(scope="module")
def toy_curves(toy_folder, toy_result):
    """What figure 1 of the paper on the toy example shows, by measure, method and trial."""
    table = pd.read_csv(toy_folder / "figure-1.csv")
    return table.set_index(["measure", "method", "trial"]).sort_index()


@pytest.mark.slow
@pytest.mark.usefixtures("toy_result")
def test_benchmark_of_each_seed_is_generated(toy_generator):
    assert toy_generator.names == [f"{TOY}-seed-{seed}" for seed in TOY_SEEDS]


@pytest.mark.slow
def test_seeds_run_on_own_benchmarks(toy_result):
    """A cell is a run: of a method on a benchmark, with a seed."""
    benchmarks_and_seeds = set()
    for cell in toy_result.cells:
        name = BenchmarkIdentity.parse(cell.benchmark).name  # without the version
        benchmarks_and_seeds.add((name, cell.seed))

    assert benchmarks_and_seeds == {(f"{TOY}-seed-{seed}", seed) for seed in TOY_SEEDS}


@pytest.mark.slow
def test_curves_have_two_errors_between_runs(toy_best_values, toy_curves):
    """Curves of the best value are means over runs, with a band of two standard errors."""
    by_method_and_trial = toy_best_values.groupby(["method", "trial"], observed=True)["best"]
    for (method, trial), best in by_method_and_trial:
        point = toy_curves.loc["best value", method, trial]
        assert point["mean"] == pytest.approx(best.mean())
        assert point["high"] - point["mean"] == pytest.approx(2 * best.sem())


@pytest.mark.slow
def test_ranks_have_deviation_between_runs(toy_best_values, toy_curves):
    """Curves of ranks have one standard deviation over runs, not two standard errors."""
    best = toy_best_values.pivot(index=["seed", "trial"], columns="method", values="best")
    ranks = best.rank(axis=1, ascending=False)  # the highest value has rank 1
    deviation = ranks["bo"].groupby("trial").std()

    curve = toy_curves.loc["rank", "bo"]

    np.testing.assert_allclose(curve["high"] - curve["mean"], deviation.to_numpy())


@pytest.mark.slow
@pytest.mark.usefixtures("toy_result")
def test_illustration_shows_all_functions(toy_folder):
    """Figure 2 of the paper on the toy example shows the functions of its 16 tasks.

    The maximum of each function is 1, but may lie between two points that are drawn.
    """
    functions = pd.read_csv(toy_folder / "figure-2.csv")

    maxima = functions.groupby("task")["value"].max()
    assert len(maxima) == 16
    assert maxima.between(0.99, 1).all()


# -- similarities of source tasks ------------------------------------------------------------------

SOURCE_OF_FINDER = 1
"""Index of the source task that `Finder` takes for the most similar one."""


class Finder(RandomSearch):
    """Random search that claims a source task is the most similar one, from the second trial on."""

    most_similar: ClassVar[int] = SOURCE_OF_FINDER
    suggestions: ClassVar[list[Config]] = []
    """All suggestions of all runs since the test cleared them."""

    def ask(self) -> Config:
        """Suggest as the base class does, and record the suggestion for tests."""
        config = super().ask()
        self.suggestions.append(config)
        return config

    def similarities(self) -> FloatArray:
        """How similar each source task is: unknown at the first trial, later 0.9 or 0.1."""
        number_of_sources = len(self.history)
        # Similarities are asked for after each suggestion.
        is_first_trial = len(self.suggestions) < 2
        if is_first_trial:
            return np.full(number_of_sources, np.nan)
        similarities = np.full(number_of_sources, 0.1)
        similarities[self.most_similar] = 0.9
        return similarities


class MisledFinder(Finder):
    """Claims this of another source task."""

    most_similar = SOURCE_OF_FINDER + 1


FINDERS = {"finder": Finder, "misled": MisledFinder}


def make_paper_on_similarities(*claims: Claim) -> Paper:
    """A paper on how similar to the current task each source task is, as two methods judge it.

    The methods are `FINDERS`. There are two runs of each, of four trials, the first three of which
    are shown. Figure 1 also shows best values, and has the claims.
    """
    names = tuple(FINDERS)
    two_methods = [MethodComparison("forrester", names)]
    draw = partial(similarity_curves, methods=names, trials=3)
    draw_with_values = partial(draw, values=True)
    draw_similarities_alone = partial(draw, values=False)
    methods = {}
    for name, method in FINDERS.items():
        methods[name] = hbo.MethodSpec(name, method, summary="Compares.", source="tests")
    return Paper(
        name="comparing",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=1), seeds=(0, 1)),
        exhibits=(
            make_figure(1, two_methods, draw_with_values, *claims),
            make_figure(2, two_methods, draw_similarities_alone),
        ),
        notes="Regret.",
        methods=methods,
        counted=count_runs_as_seeds,
    )


def claim_that_only_one_finds(finder: str, other: str, *, source: int) -> Claim:
    """The claim that one method finds a source task the most similar, and the other does not."""
    return Claim("1", "finds", only_one_finds(finder, (other,), source=source, trials=3))


@pytest.fixture(scope="module")
def similarities_folder(tmp_path_factory):
    """Where the paper on similarities is reproduced."""
    return tmp_path_factory.mktemp("similarities")


@pytest.fixture(scope="module")
def similarities_result(similarities_folder):
    """The reproduction of the paper on similarities, with three claims.

    The first is true, the second has the methods exchanged. The third is about a source task that
    neither of them takes for the most similar one.
    """
    source_that_none_finds = 5
    small_paper = make_paper_on_similarities(
        claim_that_only_one_finds("finder", "misled", source=SOURCE_OF_FINDER),
        claim_that_only_one_finds("misled", "finder", source=SOURCE_OF_FINDER),
        claim_that_only_one_finds("finder", "misled", source=source_that_none_finds),
    )
    return reproduce(small_paper, folder=similarities_folder)


@pytest.mark.slow
def test_one_finds_and_other_does_not(similarities_result):
    """A claim says of one method that it finds a source task, and of the other that it does not.

    The first claim is true, the second exchanges the methods; in the third, neither finds it.
    """
    verdicts = [claim.verdict for claim in similarities_result.claims]

    assert verdicts == ["holds", "fails", "1 of 2 hold"]


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_summary_counts_runs_that_find(similarities_folder):
    """The summary says in how many of its two runs a method finds the source task of a claim.

    Each of three claims names two methods. In the first two claims, one of them finds the task and
    the other does not; in the third claim neither does: four times in none of the runs.
    """
    summary = (similarities_folder / "summary.md").read_text()

    assert summary.count("first in 2 of 2 runs") == 2
    assert summary.count("in 0 of 2 runs") == 4


@pytest.mark.slow
def test_similarities_are_those_of_trials(similarities_result):
    """At its first trial `Finder` knows no similarity; later that of one source task is 0.9."""
    first_run_of_finder = similarities_result.cells[0]

    Finder.suggestions.clear()
    similarities = compute_similarities(first_run_of_finder, trials=3)

    assert similarities.shape == (3, 9)  # trials, source tasks
    at_first_trial, *later = similarities
    assert np.isnan(at_first_trial).all()
    assert [of_sources[SOURCE_OF_FINDER] for of_sources in later] == [0.9, 0.9]


@pytest.mark.slow
def test_similarities_are_of_stored_run(similarities_result):
    """Similarities are computed by running a method again, which suggests what it did before."""
    first_run_of_finder = similarities_result.cells[0]
    store = similarities_result.setup.store
    stored_configs = store.configurations([first_run_of_finder.key]).sort_values("trial")

    Finder.suggestions.clear()
    compute_similarities(first_run_of_finder, trials=3)

    suggested = [config["x"] for config in Finder.suggestions]
    assert suggested == stored_configs["x"].tolist()[:3]


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_similarities_are_not_computed_again(similarities_folder):
    """The folder has them already, so that no method has to suggest anything."""
    Finder.suggestions.clear()

    reproduce(make_paper_on_similarities(), folder=similarities_folder)

    assert not Finder.suggestions


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_curves_name_source_tasks(similarities_folder):
    """Figure 2 shows similarities by the name of the source task, for each method and trial."""
    table = pd.read_csv(similarities_folder / "figure-2.csv")
    is_last_of_finder = (table["trial"] == 3) & (table["method"] == "finder")
    similarities = table[is_last_of_finder].set_index("source")["mean"]

    _target, *sources = benchmark_spec("forrester").define().tasks
    name = int(sources[SOURCE_OF_FINDER].name)
    assert similarities.loc[name] == 0.9
    assert similarities.drop(name).eq(0.1).all()
