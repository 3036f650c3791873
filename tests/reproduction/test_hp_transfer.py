"""The paper whose search spaces were adjusted: three old budgets of every benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered import list_methods, run
from hpobench_ordered.protocols import Adjustment, Protocol
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.reproduction import Paper, paper, reproduce
from hpobench_ordered.reproduction.paper import (
    Check,
    Finding,
    MethodComparison,
    combine_comparisons,
    experiments,
)
from hpobench_ordered.reproduction.papers.hp_transfer import paper as hp_transfer
from hpobench_ordered.reproduction.papers.hp_transfer import speedups
from hpobench_ordered.user_methods.identity import method_version

HP_TRANSFER = paper("hp-transfer")
NAME, TRIALS = "svm-b", 40
SMALL = {
    old: Adjustment(first_trials=old, trials=TRIALS, tasks=2, first_method="tpe")
    for old in hp_transfer.OLD_BUDGETS
}


def small(*figures: int) -> Paper:
    """Some figures, of two tasks of one benchmark and few trials."""

    def cut(item: MethodComparison) -> MethodComparison:
        assert isinstance(item.protocol, Adjustment)
        return replace(item, protocol=SMALL[item.protocol.first_trials])

    exhibits = [
        replace(item, needs=tuple(cut(one) for one in item.needs if one.benchmark == NAME))
        for item in HP_TRANSFER.select(figures=figures)
    ]
    return replace(HP_TRANSFER, exhibits=tuple(exhibits))


def test_every_figure_exists():
    assert [figure.title for figure in HP_TRANSFER.exhibits] == [f"Figure {n}" for n in range(2, 9)]


def test_captions_are_sentences():
    for figure in HP_TRANSFER.exhibits:
        assert figure.caption.endswith(".")
        assert figure.says.endswith(".")


def test_experiments_are_on_eight_benchmarks():
    benchmarks = {item.benchmark for item in combine_comparisons(HP_TRANSFER.exhibits)}
    assert benchmarks == set(experiments(HP_TRANSFER.exhibits))
    assert len(benchmarks) == 8


def test_methods_without_transfer_run_once():
    """Three of them, and five methods with transfer after 10, 20 and 40 trials."""
    comparisons = combine_comparisons(HP_TRANSFER.exhibits)
    assert sum(len(item.methods) for item in comparisons) == 8 * (3 + 5 * 3)


def test_methods_can_run_under_their_protocol():
    for item in combine_comparisons(HP_TRANSFER.exhibits):
        assert item.protocol is not None
        for method in item.methods:
            spec = HP_TRANSFER.methods.get(method) or method_spec(method)
            item.protocol.check(benchmark_spec(item.benchmark), spec)


def run_and_list_losses(method: object, protocol: Protocol, *, seed: int) -> np.ndarray:
    """Losses of all trials, task by task."""
    result = run(
        benchmarks=[NAME], methods=[method], seeds=[seed], protocol=protocol, progress=False
    )
    return result.frame()["loss"].to_numpy()


@pytest.mark.parametrize("method", ["tpe", "random-search", HP_TRANSFER.methods["tpe-twin"]])
def test_old_budget_changes_only_transfer(method):
    """Methods without transfer make the same trials after 10 and after 40 trials before."""
    losses_after_10 = run_and_list_losses(method, SMALL[10], seed=3)
    losses_after_40 = run_and_list_losses(method, SMALL[40], seed=3)

    np.testing.assert_array_equal(losses_after_10, losses_after_40)


def test_twin_of_tpe_draws_other_numbers():
    """The paper compares TPE with itself under other seeds: the twin."""
    twin = HP_TRANSFER.methods["tpe-twin"]

    losses_of_twin = run_and_list_losses(twin, SMALL[10], seed=0)
    losses_of_tpe = run_and_list_losses("tpe", SMALL[10], seed=0)

    assert (losses_of_twin != losses_of_tpe).mean() > 0.9


def test_twin_of_tpe_is_reproducible():
    twin = HP_TRANSFER.methods["tpe-twin"]

    first = run_and_list_losses(twin, SMALL[10], seed=0)
    second = run_and_list_losses(twin, SMALL[10], seed=0)

    np.testing.assert_array_equal(first, second)


def test_twin_of_tpe_has_one_version():
    twin = HP_TRANSFER.methods["tpe-twin"]

    assert method_version(twin) == method_version(replace(twin))


def test_twin_of_tpe_is_no_public_method():
    assert "tpe-twin" not in list_methods()


@pytest.mark.slow
def test_figures_show_their_old_budget(tmp_path):
    chosen = small(2, 3, 6, 8)
    result = reproduce(chosen, folder=tmp_path, seeds=range(2))
    assert len(result.cells) == 2 * (2 + 5 * 2 + 2)  # only 40 trials before are of figure 6 alone
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    for old in SMALL:
        assert f"{NAME}: seeds 0 to 1; protocol adjustment: first trials {old}, trials 40" in text
    assert "nan" not in text

    losses = {
        (item.protocol.first_trials, method): result.setup.store.read(
            cell.key
            for cell in result.cells
            if (cell.method.name, cell.protocol) == (method, item.protocol)
        )
        for item in combine_comparisons(chosen.exhibits)
        if isinstance(item.protocol, Adjustment)
        for method in item.methods
    }
    needed = {runs: _needed(frame, losses[10, "tpe"]) for runs, frame in losses.items()}
    for number in (2, 3, 6, 8):
        table = pd.read_csv(tmp_path / f"figure-{number}.csv")
        for row in table.itertuples():
            old = 10 if row.method == "tpe" else row.old_budget
            step = (row.task - 1, row.reference_budget)
            means = [
                np.mean([trial or TRIALS for trial in needed[runs][step]])
                for runs in ((10, "tpe"), (old, row.method))
            ]
            assert row.speedup == pytest.approx(means[0] / means[1])
            assert row.failure_rate == np.mean([not n for n in needed[old, row.method][step]])
    assert table["method"].unique().tolist() == ["tpe", "random-search"]

    runs = {path: path.stat().st_mtime_ns for path in (tmp_path / "results" / "runs").iterdir()}
    again = reproduce(chosen, folder=tmp_path, seeds=range(2))
    assert {path: path.stat().st_mtime_ns for path in runs} == runs
    assert again.claims == result.claims


def _needed(frame: pd.DataFrame, reference: pd.DataFrame) -> dict[tuple[int, int], list[int]]:
    """Trials that each run needs, 0 where it fails, by task and budget of the reference."""
    found = {}
    for task, budget in ((task, budget) for task in (0, 1) for budget in (10, 20, 40)):
        first = reference[(reference["task"] == task) & (reference["trial"] <= budget)]
        target = np.mean([run["loss"].min() for _, run in first.groupby("seed")])
        found[task, budget] = [
            int(run.loc[run["loss"] <= target, "trial"].min()) if run["loss"].min() <= target else 0
            for _, run in frame[frame["task"] == task].groupby("seed")
        ]
    return found


CheckOnRuns = Callable[..., list[Finding]]


@pytest.fixture
def check_on_runs(constructed) -> CheckOnRuns:
    """Apply a check to runs of methods on two benchmarks, x and y, with tpe as the reference.

    A method comes with two factors, for x and y: it needs so many times the trials of tpe, which
    improves with every trial; a factor of 0 says that it never reaches what tpe does.
    """

    def call(check: Check, **factors: Sequence[float]) -> list[Finding]:
        evidence = constructed({})
        needs = []
        trials = np.arange(1.0, 201.0)
        for place, name in enumerate(("x", "y")):
            needs.append(MethodComparison(name, ("tpe",), SMALL[10]))
            needs += [MethodComparison(name, tuple(factors), SMALL[old]) for old in (20, 40)]
            for item in needs[-3:]:
                for method in item.methods:
                    factor = factors[method][place] if method in factors else 1.0
                    curve = -trials / factor if factor else np.zeros(200)
                    values = np.broadcast_to(curve, (3, 2, 200))
                    evidence._arrays[name, method, item.protocol] = {"loss": values}
        return list(check(evidence, needs))

    return call


@pytest.mark.parametrize(
    ("condition", "factors", "holds"),
    [
        (hp_transfer.is_faster, [0.5, 0.5], True),
        (hp_transfer.is_faster, [2, 2], False),
        (hp_transfer.is_slower, [2, 2], True),
        (hp_transfer.is_level, [0.5, 2], True),
        (hp_transfer.is_level, [2, 2.5], False),
    ],
)
def test_average_speedup(check_on_runs, condition, factors, holds):
    check = speedups.average_speedup("a", condition, reference="tpe")
    findings = check_on_runs(check, a=factors)
    assert [finding.holds for finding in findings] == [holds] * 6


def test_average_speedup_is_by_budgets(check_on_runs):
    check = speedups.average_speedup("a", hp_transfer.is_faster, reference="tpe")
    findings = check_on_runs(check, a=[0.5, 0.5])
    assert findings[0] == Finding("20 trials before, tpe with 10", "2.00 (2.00 to 2.00)", True)
    assert findings[-1].subject == "40 trials before, tpe with 40"


def test_average_speedup_has_two_errors(check_on_runs):
    check = speedups.average_speedup("a", hp_transfer.is_level, reference="tpe")
    findings = check_on_runs(check, a=[0.5, 2])
    assert "1.00 (0.25 to 4.00)" in findings[0].measured  # 2 ** (±2)


def test_fastest_has_largest_mean_speedup(check_on_runs):
    check = speedups.fastest("a", ("b", "c"), reference="tpe")

    findings = check_on_runs(check, a=[0.5, 0.1], b=[0.5, 0.2], c=[1, 1])

    assert all(finding.holds for finding in findings)
    # Geometric means over both benchmarks: of 2 and 10, of 2 and 5, of 1 and 1
    assert findings[1].measured == "a 4.47, b 3.16, c 1.00"


def test_fastest_fails_behind_another(check_on_runs):
    check = speedups.fastest("a", ("b", "c"), reference="tpe")

    findings = check_on_runs(check, a=[0.5, 0.2], b=[0.5, 0.1], c=[1, 1])

    assert not any(finding.holds for finding in findings)


def test_failures_on_one_of_two_are_often(check_on_runs):
    fails_in_half = speedups.often_fails("a", share=0.5, reference="tpe")

    findings = check_on_runs(
        fails_in_half, a=[0, 1]
    )  # on the first benchmark nothing is ever reached

    assert all(finding.holds for finding in findings)
    assert findings[0].measured == "50% of the runs, tpe 0%"


def test_no_failure_is_not_often(check_on_runs):
    fails_in_half = speedups.often_fails("a", share=0.5, reference="tpe")

    findings = check_on_runs(fails_in_half, a=[1, 1])

    assert not any(finding.holds for finding in findings)
