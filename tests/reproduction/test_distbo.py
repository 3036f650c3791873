"""The paper whose benchmarks are drawn by the seed, and whose methods compare tasks."""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.reproduction import Paper, checks, paper, reproduce
from hpobench_ordered.reproduction.evidence import Evidence, Measure
from hpobench_ordered.reproduction.figures import progress
from hpobench_ordered.reproduction.paper import (
    Claim,
    Exhibit,
    MethodComparison,
    Outcome,
    PaperFigure,
    Setting,
)
from hpobench_ordered.reproduction.papers.distbo.checks import near, on
from hpobench_ordered.reproduction.papers.distbo.drawings import illustration
from hpobench_ordered.reproduction.papers.distbo.paper import count_runs_as_seeds, draw_by_seed
from hpobench_ordered.reproduction.papers.distbo.similarities import (
    compute_similarities,
    only_one_finds,
    similarity_curves,
)

TOY = "distbo-toy"
MULTI_BLR_IS_BEST = "distbo-classification-b"
"""The one benchmark where the paper's best method is `multi-blr`."""
KINDS = ("dist", "manual", "multi", "init", "none", "random")
"""From best to worst, as the paper has them on the other benchmarks."""


def make_evidence(regrets: dict[tuple[str, str], FloatArray | float]) -> Evidence:
    """Runs of 3 seeds, 2 tasks and 100 trials with these regrets, by benchmark and method."""
    evidence = Evidence(Store(Path("nowhere")), {}, surrogates={}, counted=count_runs_as_seeds)
    default_protocol = None
    for (benchmark, method), values in regrets.items():
        regrets_of_runs = np.broadcast_to(values, (3, 2, 100))
        evidence._arrays[benchmark, method, default_protocol] = {"regret": regrets_of_runs}
    return evidence


def test_near_holds_with_regret_below_margin():
    evidence = make_evidence({("x", "a"): 0.04})
    a_is_near = near(("a",), trial=3, margin=0.05)

    (finding,) = a_is_near(evidence, [MethodComparison("x", ("a",))])

    assert finding.outcome is Outcome.HOLDS


def test_near_fails_with_one_regret_above_margin():
    evidence = make_evidence({("x", "a"): 0.04, ("x", "b"): 0.06})
    both_are_near = near(("a", "b"), trial=3, margin=0.05)

    (finding,) = both_are_near(evidence, [MethodComparison("x", ("a", "b"))])

    assert finding.outcome is Outcome.FAILS
    assert finding.measured == "a 0.04, b 0.06 (asked: 0.05)"


def test_on_checks_one_comparison():
    on_x = MethodComparison("x", ("a", "b"))
    on_y = MethodComparison("y", ("a", "b"))
    evidence = make_evidence({("x", "a"): 0.1, ("x", "b"): 0.2, ("y", "a"): 0.4, ("y", "b"): 0.3})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)

    (finding_on_x,) = on(on_x, a_is_ahead)(evidence, (on_x, on_y))
    (finding_on_y,) = on(on_y, a_is_ahead)(evidence, (on_x, on_y))

    assert (finding_on_x.subject, finding_on_x.outcome) == ("x", Outcome.HOLDS)
    assert (finding_on_y.subject, finding_on_y.outcome) == ("y", Outcome.FAILS)


def test_errors_are_between_runs():
    """Seeds and tasks together make one sample of 6 runs, where a seed is another benchmark."""
    regrets_of_runs = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])  # three below 0.25
    regrets = regrets_of_runs.reshape(3, 2, 1)  # seeds, tasks, the same after every trial
    evidence = make_evidence({("x", "a"): regrets, ("x", "b"): 0.25})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)

    (finding,) = a_is_ahead(evidence, [MethodComparison("x", ("a", "b"))])

    two_errors = 2 * regrets_of_runs.std(ddof=1) / np.sqrt(6)
    assert f"± {two_errors:.3g}, better in 3 of 6 runs" in finding.measured


def invent_regrets(*, as_in_paper: bool) -> dict[tuple[str, str], FloatArray | float]:
    """Invent the regret of every run of the paper, by benchmark and method.

    A method's name begins with its kind, as `dist-gp`. Regrets grow tenfold from each kind to the
    next, in the order of the paper or, so that none of its claims holds, in reversed order.
    """
    kinds_from_best = KINDS if as_in_paper else KINDS[::-1]
    regrets: dict[tuple[str, str], FloatArray | float] = {}
    for figure in paper("distbo").exhibits:
        for comparison in figure.needs:
            for method in comparison.methods:
                kind = method.partition("-")[0]
                place = kinds_from_best.index(kind)
                if comparison.benchmark == MULTI_BLR_IS_BEST and method == "multi-blr":
                    before_all, after_all = -1, len(KINDS)
                    place = before_all if as_in_paper else after_all
                regret = 1e-3 * 10.0**place
                # `dist-gp-joint` differs from `dist-gp` in how it embeds data sets. The paper says
                # that it is no worse; it is clearly better here, or clearly worse.
                if method.endswith("-joint"):
                    regret *= 0.5 if as_in_paper else 3
                regrets[comparison.benchmark, method] = regret
    return regrets


def list_claims_about_results() -> list[tuple[Exhibit, Claim]]:
    """Every claim about regrets with its figure; the others are about similarities of tasks."""
    claims = []
    for figure in paper("distbo").exhibits:
        for claim in figure.claims:
            if "most similar" not in claim.sentence:
                claims.append((figure, claim))
    return claims


@pytest.mark.parametrize("as_in_paper", [True, False])
def test_claims_hold_only_where_true(as_in_paper):
    evidence = make_evidence(invent_regrets(as_in_paper=as_in_paper))

    for figure, claim in list_claims_about_results():
        for finding in claim.check(evidence, figure.needs):
            assert finding.outcome is Outcome.from_truth(as_in_paper), claim.sentence


def test_findings_are_on_most_figures():
    """So that the test of all claims is not empty."""
    evidence = make_evidence(invent_regrets(as_in_paper=True))

    figures = set()
    for figure, claim in list_claims_about_results():
        if list(claim.check(evidence, figure.needs)):
            figures.add(figure.number)

    assert figures >= {1, 2, 3, 4, 5, 7, 9, 11, 12, 13}


def list_benchmarks_and_methods() -> list[tuple[str, hbo.MethodSpec]]:
    """Every benchmark of the paper with each method that runs on it."""
    chosen = paper("distbo")
    pairs = []
    for figure in chosen.exhibits:
        for comparison in figure.needs:
            for name in comparison.methods:
                pairs.append((comparison.benchmark, chosen.methods.get(name) or method_spec(name)))
    return pairs


def test_benchmarks_have_data_that_methods_use():
    for benchmark, method in list_benchmarks_and_methods():
        if method.uses_data:
            assert benchmark_spec(benchmark).data is not None


def test_methods_can_run_under_their_protocol():
    for benchmark, method in list_benchmarks_and_methods():
        protocol = paper("distbo").setting_of(benchmark).protocol

        # Raises an error if the method cannot.
        protocol.check(benchmark_spec(benchmark), method)


def test_random_trials_are_the_papers():
    """One method without transfer for each number of random trials in appendix C."""
    numbers = set()
    for name in paper("distbo").methods:
        if name.startswith("none-gp-"):
            numbers.add(int(name.removeprefix("none-gp-")))

    assert numbers == {5, 9, 20, 25}


def test_name_tells_number_of_random_trials():
    spec = paper("distbo").methods["none-blr-20"]

    method = spec.method(
        space=benchmark_spec(TOY).define().space,
        rng=np.random.default_rng(0),
        history=(),
        context={},
        budget=50,
    )

    assert method.random_trials == 20


def test_drawn_data_have_benchmark_of_each_seed():
    runs_on = paper("distbo").runs_on

    # Seeds by benchmark; the plain name is that of seed 0.
    assert runs_on("distbo-toy", (0, 3)) == {"distbo-toy": (0,), "distbo-toy-seed-3": (3,)}


def test_recorded_data_have_one_benchmark():
    runs_on = paper("distbo").runs_on

    # Seeds by benchmark: the data are the same for both.
    assert runs_on("distbo-parkinsons", (0, 3)) == {"distbo-parkinsons": (0, 3)}


# -- a reproduction whose every seed has a benchmark of its own ------------------------------------

SEEDS = (1, 2, 5)


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
    toy = MethodComparison(TOY, ("random-search", "bo"))
    curves = partial(progress, over_runs=True, measures=(Measure.VALUE, Measure.RANK))
    return Paper(
        name="small",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=("target",)), SEEDS),
        exhibits=(
            PaperFigure(1, "caption.", "says.", (toy,), curves),
            PaperFigure(2, "caption.", "says.", (MethodComparison(TOY),), illustration),
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
    """The reproduction of the paper on the toy example, with a stub of the generator of data."""
    with pytest.MonkeyPatch.context() as patch:
        no_benchmarks_of_user = toy_folder / "none"
        patch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(no_benchmarks_of_user))
        # Whatever generator `reproduce` looks up by name, it gets the stub.
        patch.setitem(reproduce.__globals__, "generator", lambda name: toy_generator)
        return reproduce(make_paper_on_toy(), folder=toy_folder)


@pytest.fixture(scope="module")
def toy_best_values(toy_result):
    """Every run of the paper on the toy example: the best value so far after each trial."""
    trials = toy_result.setup.store.read(cell.key for cell in toy_result.cells)
    return trials.assign(best=trials.groupby(["method", "seed"])["value"].cummax())


@pytest.fixture(scope="module")
def toy_curves(toy_folder, toy_result):
    """What figure 1 of the paper on the toy example shows, by measure, method and trial."""
    table = pd.read_csv(toy_folder / "figure-1.csv")
    return table.set_index(["measure", "method", "trial"]).sort_index()


@pytest.mark.slow
@pytest.mark.usefixtures("toy_result")
def test_benchmark_of_each_seed_is_generated(toy_generator):
    assert toy_generator.names == [f"{TOY}-seed-{seed}" for seed in SEEDS]


@pytest.mark.slow
def test_seeds_run_on_own_benchmarks(toy_result):
    benchmarks_and_seeds = set()
    for cell in toy_result.cells:
        benchmarks_and_seeds.add((BenchmarkIdentity.parse(cell.benchmark).name, cell.seed))

    assert benchmarks_and_seeds == {(f"{TOY}-seed-{seed}", seed) for seed in SEEDS}


@pytest.mark.slow
def test_curves_have_two_errors_between_runs(toy_best_values, toy_curves):
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
    functions = pd.read_csv(toy_folder / "figure-2.csv")

    assert functions["task"].nunique() == 16
    maxima = functions.groupby("task")["value"].max()
    # The maximum of each is 1, but may lie between two points that are drawn.
    assert maxima.between(0.99, 1).all()


# -- similarities of source tasks ------------------------------------------------------------------

SOURCE = 1
"""Number of the source task that `Finder` takes for the most similar one."""


class Finder(RandomSearch):
    """Random search that claims a source task is the most similar one, from the second trial on."""

    most_similar: ClassVar[int] = SOURCE
    suggestions: ClassVar[list[Config]] = []
    """All suggestions of all runs since the test cleared them."""

    def ask(self) -> Config:
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
    """Claims it of another source task."""

    most_similar = SOURCE + 1


METHODS = {"finder": Finder, "misled": MisledFinder}


def make_paper_on_similarities(*claims: Claim) -> Paper:
    """A paper with the similarities over 3 of 4 trials; figure 1 also has values, and claims."""
    needs = (MethodComparison("forrester", tuple(METHODS)),)
    draw = partial(similarity_curves, methods=tuple(METHODS), trials=3)
    specs = {
        name: hbo.MethodSpec(name, method, "Compares.", "tests") for name, method in METHODS.items()
    }
    return Paper(
        name="comparing",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=1), (0, 1)),
        exhibits=(
            PaperFigure(1, "caption.", "says.", needs, partial(draw, values=True), claims),
            PaperFigure(2, "caption.", "says.", needs, partial(draw, values=False)),
        ),
        notes="Regret.",
        methods=specs,
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
    """The reproduction of the paper on similarities, with three claims."""
    small = make_paper_on_similarities(
        claim_that_only_one_finds("finder", "misled", source=SOURCE),
        claim_that_only_one_finds("misled", "finder", source=SOURCE),
        claim_that_only_one_finds("finder", "misled", source=5),  # which neither of them finds
    )
    return reproduce(small, folder=similarities_folder)


@pytest.mark.slow
def test_one_finds_and_other_does_not(similarities_result):
    """A verdict is of two findings: the one finds the source task, the other does not."""
    verdicts = [claim.verdict for claim in similarities_result.claims]

    # The third claim is about a source task that neither method finds.
    assert verdicts == ["holds", "fails", "1 of 2 hold"]


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_summary_counts_runs_that_find(similarities_folder):
    summary = (similarities_folder / "summary.md").read_text()

    # Both methods in three claims: "finder" finds it in both runs for the first two claims.
    assert summary.count("first in 2 of 2 runs") == 2
    assert summary.count("in 0 of 2 runs") == 4


@pytest.mark.slow
def test_similarities_are_those_of_trials(similarities_result):
    first_run = similarities_result.cells[0]  # of "finder"

    Finder.suggestions.clear()
    similarities = compute_similarities(first_run, trials=3)

    assert similarities.shape == (3, 9)  # trials, source tasks
    assert np.isnan(similarities[0]).all()  # `Finder` knows none at its first trial
    assert (similarities[1:, SOURCE] == 0.9).all()


@pytest.mark.slow
def test_similarities_are_of_stored_run(similarities_result):
    """They are computed by running the method again, which suggests what it did before."""
    first_run = similarities_result.cells[0]  # of the method `Finder`
    stored = similarities_result.setup.store.configurations([first_run.key]).sort_values("trial")

    Finder.suggestions.clear()
    compute_similarities(first_run, trials=3)

    assert [config["x"] for config in Finder.suggestions] == stored["x"].tolist()[:3]


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_similarities_are_not_computed_again(similarities_folder):
    Finder.suggestions.clear()

    reproduce(make_paper_on_similarities(), folder=similarities_folder)

    assert not Finder.suggestions


@pytest.mark.slow
@pytest.mark.usefixtures("similarities_result")
def test_curves_name_source_tasks(similarities_folder):
    table = pd.read_csv(similarities_folder / "figure-2.csv")
    is_last_of_finder = (table["trial"] == 3) & (table["method"] == "finder")
    mean_of_source = table[is_last_of_finder].set_index("source")["mean"]

    tasks = benchmark_spec("forrester").define().tasks
    name = int(tasks[SOURCE + 1].name)  # the first task is the target, so sources come after it
    assert mean_of_source.loc[name] == 0.9
    assert mean_of_source.drop(name).eq(0.1).all()
