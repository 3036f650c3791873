"""The paper whose search spaces were adjusted: three old budgets of every benchmark."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

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
    Outcome,
    combine_comparisons,
    experiments,
)
from hpobench_ordered.reproduction.papers.hp_transfer import paper as hp_transfer
from hpobench_ordered.reproduction.papers.hp_transfer import speedups
from hpobench_ordered.user_methods.identity import method_version

HP_TRANSFER = paper("hp-transfer")
NAME, TRIALS = "svm-b", 40
TASKS = 2
SMALL = {
    old: Adjustment(first_trials=old, trials=TRIALS, tasks=TASKS, first_method="tpe")
    for old in hp_transfer.OLD_BUDGETS
}
"""Protocols with fewer trials and tasks than the paper's, by old budget: trials before."""


def make_small_paper(*figures: int) -> Paper:
    """The paper with only these figures, on two tasks of svm-b and with 40 trials a task."""
    exhibits = []
    for figure in HP_TRANSFER.select(figures=figures):
        needs = []
        for comparison in figure.needs:
            if comparison.benchmark == NAME:
                assert isinstance(comparison.protocol, Adjustment)
                old_budget = comparison.protocol.first_trials
                needs.append(replace(comparison, protocol=SMALL[old_budget]))
        exhibits.append(replace(figure, needs=tuple(needs)))
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
    """Five methods with transfer run for each of three old budgets, the other three only once."""
    comparisons = combine_comparisons(HP_TRANSFER.exhibits)
    benchmarks = 8
    assert sum(len(item.methods) for item in comparisons) == benchmarks * (3 + 5 * 3)


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
    """Methods without transfer have the same losses, whether 10 or 40 trials came before."""
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


# -- a reproduction of some figures ----------------------------------------------------------------

FIGURES = (2, 3, 6, 8)
SEEDS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where some figures of the paper are reproduced, on few tasks and trials."""
    return tmp_path_factory.mktemp("hp-transfer")


@pytest.fixture(scope="module")
def result(folder):
    """The reproduction of some figures of the paper, on few tasks and trials."""
    return reproduce(make_small_paper(*FIGURES), folder=folder, seeds=range(SEEDS))


@pytest.fixture(scope="module")
def trials_needed(result):
    """Trials that each run needs to reach tpe, by old budget and method; see `count_trials`."""
    trials = {}
    for comparison in combine_comparisons(make_small_paper(*FIGURES).exhibits):
        for method in comparison.methods:
            keys = []
            for cell in result.cells:
                if (cell.method.name, cell.protocol) == (method, comparison.protocol):
                    keys.append(cell.key)
            old_budget = comparison.protocol.first_trials
            trials[old_budget, method] = result.setup.store.read(keys)
    reference = trials[10, "tpe"]  # methods without transfer run only after the first old budget
    return {run: count_trials(table, reference) for run, table in trials.items()}


def count_trials(runs: pd.DataFrame, reference: pd.DataFrame) -> dict[tuple[int, int], list[int]]:
    """Trials after which each seed has the reference's loss, 0 if never.

    By task and budget: the loss to reach is the reference's mean over seeds after so many trials.
    """
    counts = {}
    for task, budget in product((0, 1), (10, 20, 40)):
        of_task = reference[(reference["task"] == task) & (reference["trial"] <= budget)]
        loss_to_reach = of_task.groupby("seed")["loss"].min().mean()

        counts[task, budget] = []
        for _, of_seed in runs[runs["task"] == task].groupby("seed"):
            successes = of_seed.loc[of_seed["loss"] <= loss_to_reach, "trial"]
            counts[task, budget].append(int(successes.min()) if len(successes) else 0)
    return counts


@pytest.mark.slow
def test_cells_are_methods_with_old_budgets(result):
    """Of 10 trials before: two methods without transfer. Of two old budgets: five with transfer.

    Figure 6 alone has 40 trials before, for two methods.
    """
    assert len(result.cells) == SEEDS * (2 + 5 * 2 + 2)


@pytest.mark.slow
@pytest.mark.parametrize("old_budget", SMALL)
@pytest.mark.usefixtures("result")
def test_summary_has_protocol_of_old_budget(folder, old_budget):
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    setting = f"{NAME}: seeds 0 to 1; protocol adjustment: first trials {old_budget}, trials 40"
    assert setting in summary


@pytest.mark.slow
@pytest.mark.usefixtures("result")
def test_summary_has_no_nan(folder):
    assert "nan" not in (folder / "summary.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("number", FIGURES)
def test_figures_show_speedups_over_tpe(folder, trials_needed, number):
    """The ratio of mean numbers of trials; a run that fails, 0, counts with all its trials."""
    for row in pd.read_csv(folder / f"figure-{number}.csv").itertuples():
        # Without transfer, tpe was run only once, after an old budget of 10.
        old_budget = 10 if row.method == "tpe" else row.old_budget
        task_and_budget = (row.task - 1, row.reference_budget)  # tasks count from 1 in figures
        counts_of_tpe = trials_needed[10, "tpe"][task_and_budget]
        counts = trials_needed[old_budget, row.method][task_and_budget]

        mean_of_tpe = np.mean([count or TRIALS for count in counts_of_tpe])
        mean = np.mean([count or TRIALS for count in counts])
        assert row.speedup == pytest.approx(mean_of_tpe / mean)


@pytest.mark.slow
@pytest.mark.parametrize("number", FIGURES)
def test_figures_show_failure_rates(folder, trials_needed, number):
    """The share of runs that never reach tpe, whose number of trials is given as 0."""
    for row in pd.read_csv(folder / f"figure-{number}.csv").itertuples():
        # Without transfer, tpe was run only once, after an old budget of 10.
        old_budget = 10 if row.method == "tpe" else row.old_budget
        task_and_budget = (row.task - 1, row.reference_budget)  # tasks count from 1 in figures
        counts = trials_needed[old_budget, row.method][task_and_budget]

        assert row.failure_rate == np.mean([count == 0 for count in counts])


@pytest.mark.slow
@pytest.mark.usefixtures("result")
def test_figure_8_is_of_methods_without_transfer(folder):
    table = pd.read_csv(folder / "figure-8.csv")
    assert table["method"].unique().tolist() == ["tpe", "random-search"]


@pytest.mark.slow
def test_finished_runs_are_not_repeated(folder, result):
    run_files = list((folder / "results" / "runs").iterdir())
    times = [path.stat().st_mtime_ns for path in run_files]

    again = reproduce(make_small_paper(*FIGURES), folder=folder, seeds=range(SEEDS))

    assert [path.stat().st_mtime_ns for path in run_files] == times
    assert len(list((folder / "results" / "runs").iterdir())) == len(run_files)
    assert again.claims == result.claims


# -- checks ----------------------------------------------------------------------------------------

CheckOnRuns = Callable[..., list[Finding]]


@pytest.fixture
def check_on_runs(make_evidence_of) -> CheckOnRuns:
    """Apply a check to runs of methods on two benchmarks, x and y, with tpe as the reference.

    A method comes with two factors, for x and y: it needs so many times the trials of tpe, which
    improves with every trial; a factor of 0 says that it never reaches what tpe does.
    """
    shape = (3, 2, 200)  # seeds, tasks, trials
    trials = np.arange(1.0, 201.0)

    def losses_by_factor(factor: float) -> np.ndarray:
        """Losses of tpe, whose factor is 1, are minus the number of the trial."""
        if factor == 0:
            return np.zeros(shape)  # above all of tpe's
        return np.broadcast_to(-trials / factor, shape)

    def call(check: Check, **factors: Sequence[float]) -> list[Finding]:
        evidence = make_evidence_of({})
        comparisons = []
        for place, benchmark in enumerate(("x", "y")):
            comparisons.append(MethodComparison(benchmark, ("tpe",), SMALL[10]))
            evidence._arrays[benchmark, "tpe", SMALL[10]] = {"loss": losses_by_factor(1.0)}
            for protocol in (SMALL[20], SMALL[40]):
                comparisons.append(MethodComparison(benchmark, tuple(factors), protocol))
                for method, factors_of_method in factors.items():
                    losses = losses_by_factor(factors_of_method[place])
                    evidence._arrays[benchmark, method, protocol] = {"loss": losses}
        return list(check(evidence, comparisons))

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
def test_average_speedup_fulfils_condition(check_on_runs, condition, factors, holds):
    """With a factor of 0.5 a method needs half of tpe's trials: it is twice as fast."""
    check = speedups.average_speedup("a", condition, reference="tpe")

    findings = check_on_runs(check, a=factors)

    assert len(findings) == 2 * 3  # old budgets, budgets of the reference
    assert {finding.outcome for finding in findings} == {Outcome.from_truth(holds)}


def test_average_speedup_is_by_budgets(check_on_runs):
    check = speedups.average_speedup("a", hp_transfer.is_faster, reference="tpe")

    findings = check_on_runs(check, a=[0.5, 0.5])

    assert findings[0] == Finding(
        "20 trials before, tpe with 10", "2.00 (2.00 to 2.00)", Outcome.HOLDS
    )
    assert findings[-1].subject == "40 trials before, tpe with 40"


def test_average_speedup_has_two_errors(check_on_runs):
    check = speedups.average_speedup("a", hp_transfer.is_level, reference="tpe")

    findings = check_on_runs(check, a=[0.5, 2])

    # Logarithms to base 2 are 1 and -1: their mean is 0, its standard error 1.
    # So the interval is from 2^-2 to 2^2 around 2^0.
    assert "1.00 (0.25 to 4.00)" in findings[0].measured


def test_fastest_has_largest_mean_speedup(check_on_runs):
    check = speedups.fastest("a", ("b", "c"), reference="tpe")

    findings = check_on_runs(check, a=[0.4, 0.1], b=[0.8, 0.2], c=[1, 1])

    assert {finding.outcome for finding in findings} == {Outcome.HOLDS}
    # Geometric means over both benchmarks: of 2.5 and 10, of 1.25 and 5, of 1 and 1
    assert findings[1].measured == "a 5.00, b 2.50, c 1.00"


def test_fastest_fails_behind_another(check_on_runs):
    check = speedups.fastest("a", ("b", "c"), reference="tpe")

    findings = check_on_runs(check, a=[0.8, 0.2], b=[0.4, 0.1], c=[1, 1])

    assert {finding.outcome for finding in findings} == {Outcome.FAILS}


def test_failing_everywhere_is_often(check_on_runs):
    fails_in_half = speedups.often_fails("a", share=0.5, reference="tpe")

    findings = check_on_runs(fails_in_half, a=[0, 0])  # a never reaches tpe

    assert {finding.outcome for finding in findings} == {Outcome.HOLDS}
    assert findings[0].measured == "100% of the runs, tpe 0%"


def test_failing_on_one_of_two_is_undecided(check_on_runs):
    fails_in_quarter = speedups.often_fails("a", share=0.25, reference="tpe")

    # a never reaches tpe on x: its rate is 50 %, with an error between benchmarks of 50 %.
    findings = check_on_runs(fails_in_quarter, a=[0, 1])

    assert {finding.outcome for finding in findings} == {Outcome.UNDECIDED}
    assert findings[0].measured == "50% of the runs, tpe 0%"


def test_no_failure_is_not_often(check_on_runs):
    fails_in_half = speedups.often_fails("a", share=0.5, reference="tpe")

    findings = check_on_runs(fails_in_half, a=[1, 1])

    assert {finding.outcome for finding in findings} == {Outcome.FAILS}
