"""The commands on reference results, and `export`."""

import re
import shutil
import sys

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

FEW = ("--benchmark", "newsvendor", "--tasks", "2", "--workers", "1", "--no-check", "--no-report")


def test_run_shows_place_among_reference(cli, folder):
    shutil.copy(own_method.__file__, folder / "mine.py")
    result = cli("run", *FEW, "--method", "mine.py:Mine", "--against", "reference")
    assert result.returncode == 0, result.stderr
    sentence = re.search(r"mine.Mine is number (\d+) of (\d+) methods", result.stdout)
    place, methods = sentence.groups()
    assert "mine.Mine" in result.stdout.split("and ")[0]  # its row, however low
    assert 1 <= int(place) <= int(methods)
    assert "random-search runs too" not in result.stderr
    # The same place among the reference, as a leaderboard of the stored results.
    board = cli("leaderboard", "results", "--reference", "--trial", "5")
    assert "mine.Mine" in board.stdout and "ordered-gp" in board.stdout


@pytest.mark.slow
def test_compare_runs_small_part(cli, folder, monkeypatch):
    # One benchmark of those that are compared on, as all of them take long.
    monkeypatch.setattr(
        sys.modules["hpobench_ordered.cli.experiments"], "COMPARED_BENCHMARKS", ("newsvendor",)
    )
    shutil.copy(own_method.__file__, folder / "mine.py")
    result = cli("compare", "mine.py:Mine", "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert re.search(r"mine.Mine is number \d+ of \d+ methods", result.stdout)
    runs = hbo.run(  # the same runs, so that none is made
        benchmarks=["newsvendor"],
        methods=["mine.py:Mine"],
        seeds=range(COMPARED_SEEDS),
        protocol=hbo.Ordered(tasks=COMPARED_TASKS),
        folder="comparison",
        progress=False,
    )
    assert len(runs.timings()) == COMPARED_SEEDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--against", "reference"], "--against needs a --method"),
        (["leaderboard"], "give a folder of RESULTS, or --reference"),
        (["leaderboard", "--suite", "othpo"], "--suite needs --reference"),
        (
            ["run", *FEW, "--method", "bo", "--against", "reference", "--trials", "3"],
            "no reference",
        ),
    ],
)
def test_impossible_comparison_is_misuse(cli, words, message):
    assert_fails(cli(*words), MISUSE, message)


def test_folder_without_results_is_named(cli):
    result = cli("run", *FEW, "--method", "bo", "--against", "nowhere")
    assert_fails(result, FAILURE, "is not a result store")


def run_two_methods(folder, *benchmarks):
    protocol = hbo.Ordered(trials=4, tasks=2)
    methods = ["random-search", "cts"]
    settings = {"seeds": range(2), "protocol": protocol, "folder": folder / "results"}
    return hbo.run(benchmarks=benchmarks, methods=methods, **settings)


def export(cli, *words: str) -> None:
    result = cli("export", "results", *words)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("name", "read"), [("trials.parquet", pd.read_parquet), ("trials.csv", read_exactly)]
)
def test_exported_trials_give_the_same_scores(cli, folder, name, read):
    result = run_two_methods(folder, "newsvendor", "forrester")
    export(cli, "--output", name)
    expected, _ = score_benchmarks(result.frame())
    scores, _ = score_benchmarks(read(folder / name))
    for exported, original in zip(scores, expected, strict=True):
        assert (exported.losses == original.losses).all()


def test_exported_configuration_has_its_value(cli, folder):
    run_two_methods(folder, "newsvendor")
    export(cli, "--output", "trials.csv")
    last = read_exactly(folder / "trials.csv").iloc[-1]
    task = hbo.load("newsvendor").tasks[last["task"]]
    config = {
        parameter.name: last[f"config.{parameter.name}"] for parameter in task.space.parameters
    }
    assert task.evaluate(config) == last["value"]


def test_exported_incumbents_improve_to_the_best(cli, folder):
    run_two_methods(folder, "newsvendor")
    export(cli, "--output", "trials.csv")
    export(cli, "--output", "best.csv", "--what", "incumbents")
    run_and_task = ["key", "task"]
    trials = read_exactly(folder / "trials.csv").groupby(run_and_task)["loss"]
    incumbents = read_exactly(folder / "best.csv").groupby(run_and_task)["loss"]
    pd.testing.assert_series_equal(incumbents.last(), trials.min())
    assert incumbents.diff().dropna().lt(0).all()


def test_leaderboard_is_exported_for_latex(cli, folder):
    run_two_methods(folder, "newsvendor")
    export(cli, "--output", "table.tex")
    text = (folder / "table.tex").read_text()
    assert "\\toprule" in text
    assert "random-search" in text


def test_figure_is_exported(cli, folder):
    run_two_methods(folder, "newsvendor")
    export(cli, "--output", "ranks.svg", "--what", "ranks")
    assert (folder / "ranks.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table.tex", "--what", "trials"], "trials cannot be written as .tex"),
        (["trials.csv", "--what", "ranks"], "ranks cannot be written as .csv"),
        (["trials.xls"], "unknown format '.xls'"),
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
    """The part that `compare` runs; also with other seeds, and without any of the methods."""
    protocol = hbo.Ordered(tasks=COMPARED_TASKS)
    part = hbo.Results(read_reference(COMPARED_BENCHMARKS, protocol=protocol), ())
    ranks_in_part = compute_mean_ranks(part, range(COMPARED_SEEDS))
    other_seeds = range(COMPARED_SEEDS, 5)  # the reference has seeds 0 to 4

    ranks_in_whole = compute_mean_ranks(hbo.reference(*suites), other_seeds)

    methods = ranks_in_part.index.intersection(ranks_in_whole.index)
    assert len(methods) > 20
    for left_out in methods:
        others = methods.drop(left_out)
        correlation = spearmanr(ranks_in_part[others], ranks_in_whole[others]).statistic
        assert correlation > least_correlation, left_out


def compute_mean_ranks(results: hbo.Results, seeds: range) -> "pd.Series[float]":
    """Mean rank of each method over all benchmarks, from the runs with some seeds."""
    runs = results.overview().runs
    has_seed = runs["seed"].isin(seeds)
    trials = results.store.read(runs.loc[has_seed, "key"])
    scores, _ = score_benchmarks(trials, None, None, explain_left_out(runs), find_families(runs))
    board = leaderboard(scores)
    overall = board[board["benchmark"] == "all"]
    return overall.set_index("method")["rank"].dropna()
