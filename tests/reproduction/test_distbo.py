"""The paper whose benchmarks are drawn by the seed, and whose methods compare tasks."""

from collections.abc import Iterator
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
OTHER_IS_BEST = "distbo-classification-b"
KINDS = ("dist", "manual", "multi", "init", "none", "random")
"""From best to worst, as the paper has them."""


def make_evidence(regrets: dict[tuple[str, str], FloatArray | float]) -> Evidence:
    """Runs of 3 seeds, 2 tasks and 100 trials with these regrets, by benchmark and method."""
    evidence = Evidence(Store(Path("nowhere")), {}, surrogates={}, counted=count_runs_as_seeds)
    for runs, values in regrets.items():
        evidence._arrays[(*runs, None)] = {"regret": np.broadcast_to(values, (3, 2, 100))}
    return evidence


def test_near_holds_with_regret_below_margin():
    evidence = make_evidence({("x", "a"): 0.04})
    a_is_near = near(("a",), trial=3, margin=0.05)

    (finding,) = a_is_near(evidence, [MethodComparison("x", ("a",))])

    assert finding.holds


def test_near_fails_with_one_regret_above_margin():
    evidence = make_evidence({("x", "a"): 0.04, ("x", "b"): 0.06})
    both_are_near = near(("a", "b"), trial=3, margin=0.05)

    (finding,) = both_are_near(evidence, [MethodComparison("x", ("a", "b"))])

    assert not finding.holds
    assert finding.measured == "a 0.04, b 0.06 (asked: 0.05)"


def test_on_checks_one_comparison():
    on_x = MethodComparison("x", ("a", "b"))
    on_y = MethodComparison("y", ("a", "b"))
    evidence = make_evidence({("x", "a"): 0.1, ("x", "b"): 0.2, ("y", "a"): 0.4, ("y", "b"): 0.3})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)

    (finding_on_x,) = on(on_x, a_is_ahead)(evidence, (on_x, on_y))
    (finding_on_y,) = on(on_y, a_is_ahead)(evidence, (on_x, on_y))

    assert (finding_on_x.subject, finding_on_x.holds) == ("x", True)
    assert (finding_on_y.subject, finding_on_y.holds) == ("y", False)


def test_errors_are_between_runs():
    """Seeds and tasks together make one sample of 6 runs, where a seed is another benchmark."""
    regrets_of_runs = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])  # three below 0.25
    regrets = regrets_of_runs.reshape(3, 2, 1)  # seeds, tasks, the same after every trial
    evidence = make_evidence({("x", "a"): regrets, ("x", "b"): 0.25})
    a_is_ahead = checks.ahead(("a",), ("b",), trial=1, measure=Measure.REGRET)

    (finding,) = a_is_ahead(evidence, [MethodComparison("x", ("a", "b"))])

    two_errors = 2 * regrets_of_runs.std(ddof=1) / np.sqrt(6)
    assert f"± {two_errors:.3g}, better in 3 of 6 runs" in finding.measured


def regrets_of_paper(order: tuple[str, ...]) -> dict[tuple[str, str], FloatArray | float]:
    """Of all methods of the paper, ten times larger from one kind to the next; joint is worse."""
    found: dict[tuple[str, str], FloatArray | float] = {}
    for figure in paper("distbo").exhibits:
        for item in figure.needs:
            for method in item.methods:
                place = order.index(method.partition("-")[0])
                if item.benchmark == OTHER_IS_BEST and method == "multi-blr":
                    place = -1 if order == KINDS else 9
                worse = 3.0 if "joint" in method and order != KINDS else 1.0
                found[item.benchmark, method] = worse * 1e-3 * 10.0**place
    return found


def claims() -> Iterator[tuple[Exhibit, Claim]]:
    """The claims that are about results."""
    for figure in paper("distbo").exhibits:
        for claim in figure.claims:
            if "most similar" not in claim.sentence:
                yield figure, claim


@pytest.mark.parametrize(("order", "holds"), [(KINDS, True), (KINDS[::-1], False)])
def test_claims_hold_only_where_true(order, holds):
    """With regrets in the paper's order of methods every claim holds, with reversed ones none."""
    evidence = make_evidence(regrets_of_paper(order))

    checked_figures = set()
    for figure, claim in claims():
        for finding in claim.check(evidence, figure.needs):
            assert finding.holds is holds, claim.sentence
            checked_figures.add(figure.number)

    assert checked_figures >= {1, 2, 3, 4, 5, 7, 9, 11, 12, 13}


def test_methods_see_their_data():
    chosen = paper("distbo")
    for figure in chosen.exhibits:
        for item in figure.needs:
            protocol = chosen.setting_of(item.benchmark).protocol
            for name in item.methods:
                spec = chosen.methods.get(name) or method_spec(name)
                assert benchmark_spec(item.benchmark).data is not None or not spec.uses_data
                protocol.check(benchmark_spec(item.benchmark), spec)


def test_random_trials_are_the_papers():
    counts = set()
    for name in paper("distbo").methods:
        if name.startswith("none-gp-"):
            counts.add(int(name.removeprefix("none-gp-")))

    assert counts == {5, 9, 20, 25}


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

    assert runs_on("distbo-toy", (0, 3)) == {"distbo-toy": (0,), "distbo-toy-seed-3": (3,)}


def test_recorded_data_have_one_benchmark():
    runs_on = paper("distbo").runs_on

    assert runs_on("distbo-parkinsons", (0, 3)) == {"distbo-parkinsons": (0, 3)}


@dataclass
class Generating:
    """Stands for what makes source runs, and says for what."""

    folder: Path
    names: list[str] = field(default_factory=list)

    def home(self) -> Path:
        return self.folder

    def generate(self, folder: Path, *, workers: int) -> None:
        self.names.append(folder.name)


@pytest.mark.slow
def test_seeds_run_on_own_benchmarks(tmp_path, monkeypatch):
    monkeypatch.setenv("HPOBENCH_ORDERED_BENCHMARKS", str(tmp_path / "none"))
    generating = Generating(tmp_path)
    monkeypatch.setitem(reproduce.__globals__, "generator", lambda name: generating)
    toy = MethodComparison(TOY, ("random-search", "bo"))
    of_both = {"measures": (Measure.VALUE, Measure.RANK)}
    small = Paper(
        name="small",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=("target",)), (1, 2, 5)),
        exhibits=(
            PaperFigure(
                1, "caption.", "says.", (toy,), partial(progress, over_runs=True, **of_both)
            ),
            PaperFigure(2, "caption.", "says.", (MethodComparison(TOY),), illustration),
        ),
        notes="Regret.",
        runs_on=draw_by_seed,
        counted=count_runs_as_seeds,
    )
    result = reproduce(small, folder=tmp_path)
    assert generating.names == [f"{TOY}-seed-{seed}" for seed in (1, 2, 5)]
    assert {(BenchmarkIdentity.parse(cell.benchmark).name, cell.seed) for cell in result.cells} == {
        (f"{TOY}-seed-{seed}", seed) for seed in (1, 2, 5)
    }
    runs = result.setup.store.read(cell.key for cell in result.cells)
    best = runs.assign(best=runs.groupby(["method", "seed"])["value"].cummax())
    table = pd.read_csv(tmp_path / "figure-1.csv").set_index(["measure", "method", "trial"])
    table = table.sort_index()
    for (method, trial), group in best.groupby(["method", "trial"], observed=True)["best"]:
        row = table.loc["best value", method, trial]
        assert row["mean"] == pytest.approx(group.mean())
        assert row["high"] - row["mean"] == pytest.approx(2 * group.sem())
    wide = best.pivot(index=["seed", "trial"], columns="method", values="best")
    ranks = wide.rank(axis=1, ascending=False)["bo"].groupby("trial").std()
    drawn = table.loc["rank", "bo"]
    np.testing.assert_allclose(drawn["high"] - drawn["mean"], ranks.to_numpy())
    functions = pd.read_csv(tmp_path / "figure-2.csv")
    assert functions.groupby("task")["value"].max().between(0.99, 1).all()
    assert functions["task"].nunique() == 16


class Comparer(RandomSearch):
    """Takes one source task for the most similar from the second trial on."""

    favourite: ClassVar[int] = 1
    asked: ClassVar[list[Config]] = []

    def ask(self) -> Config:
        config = super().ask()
        self.asked.append(config)
        return config

    def similarities(self) -> FloatArray:
        if len(self.asked) < 2:
            return np.full(len(self.history), np.nan)
        return np.where(np.arange(len(self.history)) == self.favourite, 0.9, 0.1)


class Misled(Comparer):
    """Takes another one for it."""

    favourite = 2


def comparing(*claims: Claim) -> Paper:
    methods = {"finder": Comparer, "misled": Misled}
    needs = (MethodComparison("forrester", tuple(methods)),)
    draw = partial(similarity_curves, methods=tuple(methods), trials=3)
    return Paper(
        name="comparing",
        citation="Someone (2019), Something",
        setting=Setting(hbo.LeaveOneOut(trials=4, tasks=1), (0, 1)),
        exhibits=(
            PaperFigure(1, "caption.", "says.", needs, partial(draw, values=True), claims),
            PaperFigure(2, "caption.", "says.", needs, partial(draw, values=False)),
        ),
        notes="Regret.",
        methods={
            n: hbo.MethodSpec(n, method, "Compares.", "tests") for n, method in methods.items()
        },
        counted=count_runs_as_seeds,
    )


@pytest.mark.slow
def test_similarities_are_those_of_the_runs(tmp_path):
    finds = partial(Claim, "1", "finds")
    result = reproduce(
        comparing(
            finds(only_one_finds("finder", ("misled",), source=1, trials=3)),
            finds(only_one_finds("misled", ("finder",), source=1, trials=3)),
            finds(only_one_finds("finder", ("misled",), source=5, trials=3)),
        ),
        folder=tmp_path,
    )
    assert [one.verdict for one in result.claims] == ["yes", "no", "1 of 2"]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.count("first in 2 of 2 runs") == 2 and summary.count("in 0 of 2 runs") == 4
    Comparer.asked.clear()
    cell = result.cells[0]
    found = compute_similarities(cell, 3)
    assert np.isnan(found[0]).all() and (found[1:, 1] == 0.9).all() and found.shape == (3, 9)
    stored = result.setup.store.configurations([cell.key]).sort_values("trial")
    assert stored["x"].tolist()[:3] == [config["x"] for config in Comparer.asked]
    Comparer.asked.clear()
    reproduce(comparing(), folder=tmp_path)
    assert not Comparer.asked  # what runs gave is kept
    table = pd.read_csv(tmp_path / "figure-2.csv")
    last = table[(table["trial"] == 3) & (table["method"] == "finder")].set_index("source")["mean"]
    names = [task.name for task in benchmark_spec("forrester").define().tasks]
    assert last.loc[int(names[2])] == 0.9  # the first task is the target
    assert last.drop(int(names[2])).eq(0.1).all()
