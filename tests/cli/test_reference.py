"""The commands on reference results, and `export`."""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

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
from hpobench_ordered.reporting.paper_table import paper_table

ON_TWO_TASKS = (
    *("--benchmark", "newsvendor", "--tasks", "2", "--workers", "1"),
    *("--no-check", "--no-report"),
)
"""Options of a short run on newsvendor; results are in the folder `results`."""


@pytest.fixture
def own_method_file(folder):
    """A file in the working folder with the class of a user's method."""
    return shutil.copy(own_method.__file__, folder / "mine.py")


@pytest.mark.usefixtures("own_method_file")
def test_run_ranks_own_method_among_reference(cli):
    """The user's method mine.Mine gets a place and a row among the methods with reference results.

    It is shown however low it is. Random search, which scores need, is not run besides, as the
    reference results have it.
    """
    result = cli("run", *ON_TWO_TASKS, "--method", "mine.py:Mine", "--against", "reference")

    assert result.returncode == 0, result.stderr
    assert "random-search runs too" not in result.stderr
    rows_shown, *_ = result.stdout.split("and ")
    assert "mine.Mine" in rows_shown
    place, number_of_methods = re.search(
        r"mine.Mine is number (\d+) of (\d+) methods", result.stdout
    ).groups()
    assert 1 <= int(place) <= int(number_of_methods)

    # The leaderboard adds the reference results to those of the run.
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


@pytest.fixture
def export(cli, folder, finished_results):
    """A function that exports the shared results to a file in the working folder."""

    def export_results(file_name: str, *words: str) -> Path:
        """Export to a file of this name; returns its path."""
        store = str(finished_results.store.folder)
        result = cli("export", store, "--output", file_name, *words)
        assert result.returncode == 0, result.stderr
        path: Path = folder / file_name
        return path

    return export_results


@pytest.mark.parametrize(
    ("file_name", "read_table"),
    [("trials.parquet", pd.read_parquet), ("trials.csv", read_exactly)],
)
def test_exported_trials_keep_all_digits(export, finished_results, file_name, read_table):
    trials = read_table(export(file_name))

    columns = ["benchmark", "method", "seed", "task", "trial", "loss"]
    pd.testing.assert_frame_equal(
        trials[columns], finished_results.frame()[columns], check_exact=True, check_dtype=False
    )


def test_exported_configuration_has_its_value(export):
    """Evaluated again, the configuration of an exported trial has the exported value."""
    trials = read_exactly(export("trials.csv"))

    last_trial = trials[trials["benchmark"] == "newsvendor@1"].iloc[-1]
    task = hbo.load("newsvendor").tasks[last_trial["task"]]
    config = {name: last_trial[f"config.{name}"] for name in task.space.names}
    assert task.evaluate(config) == last_trial["value"]


def test_exported_incumbents_are_running_minima(export, finished_results):
    """On each task of a run, an incumbent is better than all trials before it."""
    incumbents = read_exactly(export("best.csv", "--what", "incumbents"))

    run_and_task = ["key", "task"]
    lowest_so_far = finished_results.frame().groupby(run_and_task)["loss"].cummin()
    assert set(incumbents["loss"]) == set(lowest_so_far)
    improvements = incumbents.groupby(run_and_task)["loss"].diff().dropna()
    assert (improvements < 0).all()


def test_incumbents_of_reference_are_exported(cli, folder):
    """The file has the best losses so far, from which those after the last trial follow."""
    words = ("--reference", "--suite", "tabular", "--what", "incumbents")
    result = cli("export", *words, "--output", "best.parquet")

    assert result.returncode == 0, result.stderr
    exported = pd.read_parquet(folder / "best.parquet")
    trials = read_reference(["tabular"]).read()
    run_and_task = ["key", "task"]
    pd.testing.assert_series_equal(
        exported.groupby(run_and_task)["loss"].last(),
        trials.groupby(run_and_task, observed=True)["loss"].min(),
        check_index=False,
        check_exact=True,
    )


@pytest.mark.parametrize(("file_name", "format"), [("table.tex", "latex"), ("a.md", "markdown")])
def test_one_table_is_exported_for_paper(export, finished_results, file_name, format):
    assert export(file_name).read_text() == paper_table(finished_results, format)


def test_figure_is_exported(export):
    """A name that ends in .svg makes a figure, here that of mean ranks."""
    assert export("ranks.svg", "--what", "ranks").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table.tex", "--what", "trials"], "trials cannot be written as .tex"),
        (["trials.csv", "--what", "ranks"], "ranks cannot be written as .csv"),
        (["trials.xls"], "unknown format '.xls'"),
    ],
)
def test_impossible_export_is_misuse(cli, finished_results, words, message):
    store = str(finished_results.store.folder)
    assert_fails(cli("export", store, "--output", *words), MISUSE, message)


@pytest.mark.long  # it can only change with reference results, or the choice of benchmarks
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
