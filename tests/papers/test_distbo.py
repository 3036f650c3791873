"""The paper distbo: benchmarks are drawn by the seed, and methods compare data sets of tasks."""

import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from reproduction_support import InventedEvidence, make_figure

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmarks.distbo import REAL, TRAINED
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.papers import Paper, paper, reproduce
from hpobench_ordered.papers.claims import Claim, Outcome, find_whether_ahead
from hpobench_ordered.papers.distbo.claims import (
    find_whether_near_optimum,
    find_whether_only_one_finds,
)
from hpobench_ordered.papers.distbo.drawings import illustration
from hpobench_ordered.papers.distbo.paper import count_runs_as_seeds
from hpobench_ordered.papers.distbo.similarities import read_or_compute, similarity_curves
from hpobench_ordered.papers.evidence import Evidence, Measure
from hpobench_ordered.papers.figures import progress
from hpobench_ordered.papers.paper import (
    MethodComparison,
    Setting,
)
from hpobench_ordered.papers.reproduce import plan_runs
from hpobench_ordered.papers.result import Setup

TOY = "distbo-toy"
WHERE_MULTI_BLR_IS_BEST = "distbo-classification-b"
"""The one benchmark where the paper's best method is `multi-blr`."""
KINDS_FROM_BEST = ("dist", "manual", "multi", "init", "none", "random")
"""Kinds of methods, as the paper ranks them on the other benchmarks."""
DISTBO = paper("distbo")


def make_evidence(regrets: dict[tuple[str, str], FloatArray | float]) -> Evidence:
    """Evidence of 3 seeds, 2 tasks and 100 trials with these regrets, by benchmark and method."""
    evidence = InventedEvidence(select_counted=count_runs_as_seeds)
    for (benchmark, method), values in regrets.items():
        evidence.add_runs(benchmark, method, regret=np.broadcast_to(values, (3, 2, 100)))
    return evidence


@pytest.mark.parametrize(("regret", "outcome"), [(0.04, Outcome.HOLDS), (0.06, Outcome.FAILS)])
def test_near_optimum_within_margin(regret, outcome):
    evidence = make_evidence({("x", "a"): regret})
    comparisons = [MethodComparison("x", ("a",))]

    (finding,) = find_whether_near_optimum(evidence, comparisons, "a", trial=3, margin=0.05)

    assert finding.outcome is outcome
    assert f"a {regret}, asked 0.05" in finding.measured


def test_errors_are_between_runs():
    """Three seeds on two tasks make one sample of 6 runs, as each seed has its own benchmark.

    Method a is better than b in three of the runs, those with a regret below 0.25.
    """
    regrets_of_a = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    by_seed_and_task = regrets_of_a.reshape(3, 2, 1)  # the same after every trial
    evidence = make_evidence({("x", "a"): by_seed_and_task, ("x", "b"): 0.25})
    comparisons = [MethodComparison("x", ("a", "b"))]

    (finding,) = find_whether_ahead(
        evidence, comparisons, ["a"], ["b"], trial=1, measure=Measure.REGRET
    )

    assert finding.n_samples == 6
    assert finding.standard_error == pytest.approx(regrets_of_a.std(ddof=1) / np.sqrt(6))
    assert "better in 3 of 6 runs" in finding.measured


def list_comparisons() -> list[MethodComparison]:
    """Which methods the paper compares on which benchmarks, in any figure."""
    comparisons: list[MethodComparison] = []
    for figure in DISTBO.exhibits:
        comparisons.extend(figure.comparisons)
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


@pytest.mark.parametrize(
    ("as_in_paper", "outcome"), [(True, Outcome.HOLDS), (False, Outcome.FAILS)]
)
def test_claims_hold_only_where_true(as_in_paper, outcome):
    """All claims about results hold with the paper's order of methods, none with the reversed.

    Figure 10 has a claim about similarities; 6, 8, 14 and 15 have none.
    """
    evidence = invent_evidence(as_in_paper=as_in_paper)

    figures_with_findings = set()
    for figure in DISTBO.exhibits:
        if figure.number == 10:
            continue
        for claim in figure.check(evidence, figure.comparisons):
            assert {finding.outcome for finding in claim.findings} == {outcome}, claim.sentence
            figures_with_findings.add(figure.number)
    assert figures_with_findings == {1, 2, 3, 4, 5, 7, 9, 11, 12, 13}


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


@pytest.mark.parametrize("name", ["distbo-toy", "distbo-parkinsons"])
def test_each_seed_has_benchmark_of_its_own(name):
    """Data are drawn or split anew for each seed; the plain name is that of seed 0."""
    seeds_of_benchmarks = DISTBO.assign_seeds(name, (0, 3))

    assert seeds_of_benchmarks == {name: (0,), f"{name}-seed-3": (3,)}


def test_models_on_real_data_are_trained():
    """Each seed splits the data anew, and only for seed 0 there is a forest to evaluate."""
    for benchmark in REAL:
        assert DISTBO.setting_of(benchmark).surrogate == TRAINED


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


@pytest.fixture
def toy_setup(tmp_path):
    """The figures of the paper on the toy example, with some seeds."""
    (figure,) = DISTBO.select(figures=[7])
    settings = {TOY: replace(DISTBO.setting_of(TOY), seeds=TOY_SEEDS, surrogate="live")}
    return Setup(DISTBO, (figure,), settings, tmp_path)


def test_benchmark_of_each_seed_is_generated(toy_setup, tmp_path, monkeypatch):
    """Source runs that are missing in the folder of the user's benchmarks are asked for."""
    # The package's name `reproduce` stands for the function, which hides its module.
    module_of_reproduce = sys.modules["hpobench_ordered.papers.reproduce"]
    generator = RecordingGenerator(tmp_path)
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path / "none"))
    monkeypatch.setattr(module_of_reproduce, "generator", lambda name: generator)

    module_of_reproduce.generate_missing_benchmarks(toy_setup, 1, lambda *step: None)

    assert generator.names == [f"{TOY}-seed-{seed}" for seed in TOY_SEEDS]


def test_seeds_run_on_own_benchmarks(toy_setup):
    """A cell is a run: of a method on a benchmark, with a seed."""
    benchmarks_and_seeds = set()
    for cell in plan_runs(toy_setup)[TOY]:
        name = BenchmarkIdentity.parse(cell.benchmark).name  # without the version
        benchmarks_and_seeds.add((name, cell.seed))

    assert benchmarks_and_seeds == {(f"{TOY}-seed-{seed}", seed) for seed in TOY_SEEDS}


def test_curves_over_runs_have_errors_between_runs():
    """Bands are two standard errors of values over runs, and one standard deviation of ranks."""
    rng = np.random.default_rng(0)
    losses = {(TOY, method): rng.random((3, 2, 4)) for method in ("a", "b")}  # 6 runs, 4 trials
    evidence = InventedEvidence(losses, select_counted=count_runs_as_seeds)
    comparisons = [MethodComparison(TOY, ("a", "b"))]

    curves = progress(
        evidence, comparisons, measures=(Measure.VALUE, Measure.RANK), over_runs=True
    ).data.set_index(["measure", "method", "trial"])

    best_of_a, best_of_b = (
        np.minimum.accumulate(values, axis=-1)[..., -1].ravel() for values in losses.values()
    )
    value = curves.loc[("best value", "a", 4)]
    two_standard_errors = 2 * best_of_a.std(ddof=1) / np.sqrt(6)
    assert value["mean"] == pytest.approx(-best_of_a.mean())  # values are maximised
    assert value["high"] - value["mean"] == pytest.approx(two_standard_errors)
    rank = curves.loc[("rank", "a", 4)]
    deviation_of_ranks = (best_of_a > best_of_b).std(ddof=1)
    assert rank["high"] - rank["mean"] == pytest.approx(deviation_of_ranks)


def test_illustration_shows_all_functions():
    """The maximum of each of 16 functions is 1, but may lie between two points that are drawn."""
    functions = illustration(InventedEvidence(), [MethodComparison(TOY)]).data

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


def make_paper_on_similarities() -> Paper:
    """A paper on how similar to the current task each source task is, as two methods judge it.

    The methods are `FINDERS`. There are two runs of each, of four trials, the first three of which
    are shown, besides best values.
    """
    names = tuple(FINDERS)
    two_methods = [MethodComparison("forrester", names)]
    draw = partial(similarity_curves, methods=names, trials=3, values=True)
    methods = {}
    for name, method in FINDERS.items():
        methods[name] = hbo.MethodSpec(name, method, summary="Compares.", source="tests")

    def check(evidence, comparisons):
        """Make three claims; the last is about a source task that neither method finds."""
        find = partial(find_whether_only_one_finds, evidence, comparisons, trials=3)
        yield Claim("1", "true", find("finder", ["misled"], source=SOURCE_OF_FINDER))
        yield Claim("1", "exchanged", find("misled", ["finder"], source=SOURCE_OF_FINDER))
        yield Claim("1", "of another task", find("finder", ["misled"], source=5))

    return Paper(
        name="comparing",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=1), seeds=(0, 1)),
        exhibits=(make_figure(1, two_methods, draw, check),),
        notes="Regret.",
        methods=methods,
        select_counted=count_runs_as_seeds,
    )


@pytest.fixture(scope="module")
def similarities_result(tmp_path_factory):
    """The reproduction of the paper on similarities."""
    folder = tmp_path_factory.mktemp("similarities")
    return reproduce(make_paper_on_similarities(), folder=folder)


@pytest.mark.slow
def test_one_finds_and_other_does_not(similarities_result):
    """A claim says of one method that it finds a source task, and of the other that it does not.

    The first claim is true, the second exchanges the methods; in the third, neither finds it.
    """
    first, second, third = similarities_result.claims["figure-1"]

    assert [first.verdict, second.verdict, third.verdict] == ["holds", "fails", "1 of 2 hold"]
    sentences = [finding.sentence for finding in first.findings]
    assert "first in 2 of 2 runs" in sentences[0]
    assert "first in 0 of 2 runs" in sentences[1]


@pytest.mark.slow
def test_similarities_are_those_of_stored_run(similarities_result, tmp_path):
    """A method is run again, suggests what it did before, and the file is read the next time.

    At its first trial `Finder` knows no similarity; later that of one source task is 0.9.
    """
    first_run_of_finder = similarities_result.cells[0]
    store = similarities_result.setup.store
    stored_configs = store.configurations([first_run_of_finder.key]).sort_values("trial")

    Finder.suggestions.clear()
    similarities = read_or_compute(first_run_of_finder, 3, tmp_path)

    suggested = [config["x"] for config in Finder.suggestions]
    assert suggested == stored_configs["x"].tolist()[:3]
    assert similarities.shape == (3, 9)  # trials, source tasks
    assert np.isnan(similarities[0]).all()
    assert similarities[1:, SOURCE_OF_FINDER].tolist() == [0.9, 0.9]

    Finder.suggestions.clear()
    np.testing.assert_array_equal(read_or_compute(first_run_of_finder, 3, tmp_path), similarities)
    assert not Finder.suggestions


@pytest.mark.slow
def test_curves_name_source_tasks(similarities_result):
    """A figure shows similarities by the name of the source task, for each method and trial."""
    table = similarities_result.data["figure-1"]
    is_last_of_finder = (table["trial"] == 3) & (table["method"] == "finder")
    is_similarity = table["measure"] == "similarity"
    similarities = table[is_last_of_finder & is_similarity].set_index("source")["mean"]

    _target, *sources = benchmark_spec("forrester").define().tasks
    name = sources[SOURCE_OF_FINDER].name
    assert similarities.loc[name] == pytest.approx(0.9)
    assert similarities.drop(name).tolist() == pytest.approx([0.1] * (len(sources) - 1))
