"""The commands on reference results, and `export`."""

import re
import shutil
import sys
from collections.abc import Sequence

import own_method
import pandas as pd
import pytest
from cli_results import FAILURE, MISUSE, assert_fails
from exact_csv import read_exactly
from scipy.stats import spearmanr

import hpobench_ordered as hbo
from hpobench_ordered.analysis.leaderboard import leaderboard
from hpobench_ordered.analysis.scoring import score_benchmarks
from hpobench_ordered.cli.experiments import (
    COMPARED_BENCHMARKS,
    COMPARED_SEEDS,
    COMPARED_TASKS,
)
from hpobench_ordered.experiment.reference import read_reference
from hpobench_ordered.experiment.scored import explain_left_out, find_families

ON_TWO_TASKS = (
    *("--benchmark", "newsvendor", "--tasks", "2", "--workers", "1"),
    *("--no-check", "--no-report"),
)
"""Options of a short run on newsvendor; results are in the folder `results`."""


@pytest.fixture
def own_method_file(folder):
    """A file in the working folder with the class of a user's method."""
    return shutil.copy(own_method.__file__, folder / "mine.py")


@pytest.fixture
def run_against_reference(cli, own_method_file):
    """The result of a run of the user's method, mine.Mine, against the reference results."""
    result = cli("run", *ON_TWO_TASKS, "--method", "mine.py:Mine", "--against", "reference")
    assert result.returncode == 0, result.stderr
    return result


def test_run_shows_place_among_reference(run_against_reference):
    """The user's method mine.Mine gets a rank among the methods with reference results."""
    sentence = r"mine.Mine is number (\d+) of (\d+) methods"

    place, number_of_methods = re.search(sentence, run_against_reference.stdout).groups()

    assert 1 <= int(place) <= int(number_of_methods)


def test_own_method_has_a_row_however_low(run_against_reference):
    """The leaderboard ends with "and 20 more" or so, but the method mine.Mine is never omitted."""
    rows_shown, *_ = run_against_reference.stdout.split("and ")

    assert "mine.Mine" in rows_shown


def test_run_against_reference_needs_no_random_search(run_against_reference):
    """Scores need random search, which is run besides unless reference results have it."""
    assert "random-search runs too" not in run_against_reference.stderr


@pytest.mark.usefixtures("run_against_reference")
def test_leaderboard_adds_reference_to_results(cli):
    """Only the user's method mine.Mine was run; ordered-gp is in the reference results."""
    board = cli("leaderboard", "results", "--reference", "--trial", "5")

    assert "mine.Mine" in board.stdout
    assert "ordered-gp" in board.stdout


@pytest.fixture
def result_of_compare(cli, own_method_file, monkeypatch):
    """The result of `compare mine.py:Mine` on newsvendor alone, as all its benchmarks take long."""
    experiments = sys.modules["hpobench_ordered.cli.experiments"]
    monkeypatch.setattr(experiments, "COMPARED_BENCHMARKS", ("newsvendor",))
    result = cli("compare", "mine.py:Mine", "--workers", "1")
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_compare_shows_place_among_reference(result_of_compare):
    assert re.search(r"mine.Mine is number \d+ of \d+ methods", result_of_compare.stdout)


@pytest.mark.slow
@pytest.mark.usefixtures("result_of_compare")
def test_compare_keeps_its_runs():
    """`compare` has run mine.Mine on newsvendor, and keeps the runs in the folder `comparison`.

    So `hbo.run`, asked for the same runs, has nothing to do.
    """
    results = hbo.run(
        benchmarks=["newsvendor"],
        methods=["mine.py:Mine"],
        seeds=range(COMPARED_SEEDS),
        protocol=hbo.Ordered(tasks=COMPARED_TASKS),
        folder="comparison",
        progress=False,
    )

    # Every run that is made adds a line of times; `compare` has made one with each seed.
    assert len(results.timings()) == COMPARED_SEEDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--against", "reference"], "--against needs a --method"),
        (["leaderboard"], "give a folder of RESULTS, or --reference"),
        (["leaderboard", "--suite", "othpo"], "--suite needs --reference"),
        (["leaderboard", "--reference", "--suite", "foo"], "unknown suite 'foo'; choose from "),
        (["leaderboard", "--reference", "--suite", "opnml"], "did you mean 'openml'?"),
        (
            ["run", *ON_TWO_TASKS, "--method", "bo", "--against", "reference", "--trials", "3"],
            "no reference",  # with three trials
        ),
    ],
)
def test_impossible_comparison_is_misuse(cli, words, message):
    assert_fails(cli(*words), MISUSE, message)


def test_folder_without_results_is_named(cli):
    """The folder that a run is to be compared with does not exist."""
    result = cli("run", *ON_TWO_TASKS, "--method", "bo", "--against", "nowhere")

    assert_fails(result, FAILURE, "is not a result store")


def run_two_methods(folder, *benchmarks):
    """Run random-search and cts on benchmarks, into the folder `results`, and return the results.

    The method cts learns from earlier tasks, the other one does not.
    """
    return hbo.run(
        benchmarks=benchmarks,
        methods=["random-search", "cts"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=4, tasks=2),
        folder=folder / "results",
    )


def export_results(cli, *words: str) -> None:
    """Export from the folder `results`, which must succeed."""
    result = cli("export", "results", *words)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("file_name", "read_table"),
    [("trials.parquet", pd.read_parquet), ("trials.csv", read_exactly)],
)
def test_exported_trials_give_the_same_scores(cli, folder, file_name, read_table):
    """Scores of exported trials are exactly those of the results: both formats keep all digits."""
    results = run_two_methods(folder, "newsvendor", "forrester")

    export_results(cli, "--output", file_name)

    # Benchmarks that cannot be scored would be in the second place; there are none.
    scores, _ = score_benchmarks(results.frame())
    scores_of_exported, _ = score_benchmarks(read_table(folder / file_name))
    for benchmark, exported in zip(scores, scores_of_exported, strict=True):
        assert (exported.losses == benchmark.losses).all()


def test_exported_configuration_has_its_value(cli, folder):
    """Evaluated again, the configuration of an exported trial has the exported value."""
    run_two_methods(folder, "newsvendor")

    export_results(cli, "--output", "trials.csv")

    last_trial = read_exactly(folder / "trials.csv").iloc[-1]
    task = hbo.load("newsvendor").tasks[last_trial["task"]]
    config = {name: last_trial[f"config.{name}"] for name in task.space.names}
    assert task.evaluate(config) == last_trial["value"]


@pytest.fixture
def exported_losses(cli, folder):
    """Exported losses of all trials and of the incumbents alone, both grouped by run and task.

    An incumbent is a trial that is better than all before it on its task.
    """
    run_two_methods(folder, "newsvendor")
    export_results(cli, "--output", "trials.csv")
    export_results(cli, "--output", "best.csv", "--what", "incumbents")

    run_and_task = ["key", "task"]
    trials = read_exactly(folder / "trials.csv").groupby(run_and_task)["loss"]
    incumbents = read_exactly(folder / "best.csv").groupby(run_and_task)["loss"]
    return trials, incumbents


def test_last_exported_incumbent_is_the_best(exported_losses):
    """On each task of a run, the last incumbent has the lowest loss of all trials."""
    trials, incumbents = exported_losses

    pd.testing.assert_series_equal(incumbents.last(), trials.min())


def test_exported_incumbents_improve(exported_losses):
    """On each task of a run, an incumbent has a lower loss than the incumbent before."""
    _, incumbents = exported_losses

    differences_from_last = incumbents.diff().dropna()

    assert (differences_from_last < 0).all()


def test_one_table_is_exported_for_latex(cli, folder):
    """A name that ends in .tex makes a table in LaTeX, with a column for each benchmark."""
    run_two_methods(folder, "newsvendor", "forrester")

    export_results(cli, "--output", "table.tex")

    text = (folder / "table.tex").read_text()
    assert text.count("\\toprule") == 1
    assert "method & forrester & newsvendor & mean rank" in text


def test_table_is_printed_with_its_options(cli, folder):
    """Every option of the command has the meaning of an argument of `Results.table`."""
    results = run_two_methods(folder, "newsvendor", "forrester")
    options = (
        "--format markdown --columns families --measure regret --trial 3 --no-intervals "
        "--benchmark newsvendor --method cts"
    )

    printed = cli("export", "results", *options.split()).stdout

    assert printed == results.table(
        "markdown",
        columns="families",
        measure="regret",
        trial=3,
        intervals=False,
        benchmarks=["newsvendor"],
        methods=["cts"],
    )


def test_printed_and_written_tables_are_equal(cli, folder):
    run_two_methods(folder, "newsvendor")
    printed = cli("export", "results", "--format", "markdown", "--benchmark", "newsvendor").stdout

    export_results(cli, "--output", "table.md")

    assert (folder / "table.md").read_text() == printed


def test_figure_is_exported(cli, folder):
    """A name that ends in .svg makes a figure, here that of mean ranks."""
    run_two_methods(folder, "newsvendor")

    export_results(cli, "--output", "ranks.svg", "--what", "ranks")

    assert (folder / "ranks.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table.tex", "--what", "trials"], "trials cannot be written as .tex"),
        (["trials.csv", "--what", "ranks"], "ranks cannot be written as .csv"),
        (["trials.xls"], "unknown format '.xls'"),
        (["trials.csv", "--trial", "1"], "--trial is only for tables"),
        (["trials.csv", "--no-intervals"], "--intervals is only for tables"),
        (["table.tex", "--format", "markdown"], "markdown cannot be written as .tex"),
        (["table.tex", "--method", "random-serch"], "did you mean 'random-search'?"),
        (["table.tex", "--benchmark", "newsvender"], "did you mean 'newsvendor'?"),
        (["table.tex", "--trial", "9"], "trial must be from 1 to"),
    ],
)
def test_impossible_export_is_misuse(cli, folder, words, message):
    run_two_methods(folder, "newsvendor")
    assert_fails(cli("export", "results", "--output", *words), MISUSE, message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suites", "least_correlation"),
    [(("othpo", "retrain"), 0.95), (("othpo",), 0.9), (("retrain",), 0.9)],
)
def test_small_part_ranks_like_whole(suites, least_correlation):
    """The few benchmarks and tasks of `compare` rank methods like whole suites.

    The rank correlation is high, and not because of a single method: each is left out once. Methods
    with fewer than five seeds are left out, as their ranks on the whole would be chance.
    """
    methods_with_seeds = find_methods_with_seeds(suites, least=5)
    protocol = hbo.Ordered(tasks=COMPARED_TASKS)
    runs_of_part = read_reference(
        COMPARED_BENCHMARKS, methods=methods_with_seeds, protocol=protocol
    )
    part = hbo.Results(runs_of_part, cells=())
    whole = hbo.reference(*suites, methods=methods_with_seeds)
    # Part and whole share no seeds here; the reference results have up to ten.
    seeds_of_part = range(COMPARED_SEEDS)
    seeds_of_whole = range(COMPARED_SEEDS, 10)

    ranks_in_part = compute_mean_ranks(part, seeds_of_part)
    ranks_in_whole = compute_mean_ranks(whole, seeds_of_whole)

    methods = ranks_in_part.index.intersection(ranks_in_whole.index)
    assert len(methods) > 20, "methods are missing"
    for left_out in methods:
        others = methods.drop(left_out)
        correlation = spearmanr(ranks_in_part[others], ranks_in_whole[others]).statistic
        assert correlation > least_correlation, left_out


def find_methods_with_seeds(suites: Sequence[str], *, least: int) -> list[str]:
    """Find the methods with at least some number of seeds on every benchmark of suites."""
    runs = hbo.reference(*suites).overview().runs
    benchmarks = runs["benchmark"].nunique()
    seeds = runs.groupby(["method", "benchmark"], observed=True)["seed"].nunique()
    benchmarks_with_seeds = (seeds >= least).groupby("method").sum()
    return list(benchmarks_with_seeds.index[benchmarks_with_seeds == benchmarks])


def compute_mean_ranks(results: hbo.Results, seeds: range) -> "pd.Series[float]":
    """Mean rank of each method over all benchmarks, from the runs with some seeds.

    As in any leaderboard, benchmarks of a family count as one, and implausible ones are left out.
    """
    runs = results.overview().runs
    has_seed = runs["seed"].isin(seeds)
    trials = results.store.read(runs.loc[has_seed, "key"])
    scores, _ = score_benchmarks(
        trials, left_out=explain_left_out(runs), families=find_families(runs)
    )
    board = leaderboard(scores)
    overall = board[board["benchmark"] == "all"]
    return overall.set_index("method")["rank"].dropna()
