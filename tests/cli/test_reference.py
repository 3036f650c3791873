"""The commands on reference results, and `export`."""

import re
import shutil
import sys

import own_method
import pandas as pd
import pytest
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
from hpobench_ordered.registry import benchmark_spec

FEW = ("--benchmark", "newsvendor", "--tasks", "2", "--workers", "1", "--no-check", "--no-report")


def test_a_method_s_place_among_those_of_the_reference(cli, folder):
    shutil.copy(own_method.__file__, folder / "mine.py")
    result = cli("run", *FEW, "--method", "mine.py:Mine", "--against", "reference")
    assert result.returncode == 0, result.stderr
    said = re.search(r"mine.Mine is number (\d+) of (\d+) methods", result.stdout)
    place, methods = said.groups()
    assert "mine.Mine" in result.stdout.split("and ")[0]  # its row, however low
    assert 1 <= int(place) <= int(methods)
    assert "random-search runs too" not in result.stderr
    board = cli("leaderboard", "results", "--reference", "--trial", "5")
    assert "mine.Mine" in board.stdout and "ordered-gp" in board.stdout


@pytest.mark.slow
def test_the_comparison_runs_on_its_small_part(cli, folder, monkeypatch):
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


def test_what_cannot_be_compared_is_said(cli):
    for words, message in {
        ("run", "--against", "reference"): "--against needs a --method",
        ("leaderboard",): "give a folder of RESULTS, or --reference",
        ("leaderboard", "--suite", "othpo"): "--suite needs --reference",
        ("run", *FEW, "--method", "bo", "--against", "nowhere"): "is not a result store",
        ("run", *FEW, "--method", "bo", "--against", "reference", "--trials", "3"): "no reference",
    }.items():
        result = cli(*words)
        assert result.returncode != 0 and message in result.stderr, result.stderr


def ran(folder, *benchmarks):
    """Results of two methods."""
    protocol = hbo.Ordered(trials=4, tasks=2)
    methods = ["random-search", "cts"]
    settings = {"seeds": range(2), "protocol": protocol, "folder": folder / "results"}
    return hbo.run(benchmarks=benchmarks, methods=methods, **settings)


def test_exported_trials_give_the_same_scores(cli, folder):
    result = ran(folder, "newsvendor", "forrester")
    assert cli("export", "results", "--output", "trials.parquet").returncode == 0
    assert cli("export", "results", "--output", "trials.csv").returncode == 0
    assert cli("export", "results", "--output", "best.csv", "--what", "incumbents").returncode == 0
    expected, _ = score_benchmarks(result.frame())
    exact = read_exactly(folder / "trials.csv")
    for trials in (pd.read_parquet("trials.parquet"), exact):
        scores, _ = score_benchmarks(trials)
        for mine, its in zip(scores, expected, strict=True):
            assert (mine.losses == its.losses).all()
    row = exact[exact["benchmark"] == "newsvendor@1"].iloc[-1]
    names = [parameter.name for parameter in benchmark_spec("newsvendor").define().space.parameters]
    task = hbo.load("newsvendor").tasks[row["task"]]
    assert task.evaluate({name: row[f"config.{name}"] for name in names}) == row["value"]
    best = read_exactly(folder / "best.csv")
    last = best.groupby(["key", "task"])["loss"].last()
    pd.testing.assert_series_equal(last, exact.groupby(["key", "task"])["loss"].min())
    assert best.groupby(["key", "task"])["loss"].diff().dropna().lt(0).all()


def test_tables_and_figures_for_a_paper(cli, folder):
    ran(folder, "newsvendor")
    assert cli("export", "results", "--output", "table.tex").returncode == 0
    text = (folder / "table.tex").read_text()
    assert "\\toprule" in text and "random-search" in text
    assert cli("export", "results", "--output", "ranks.svg", "--what", "ranks").returncode == 0
    assert (folder / "ranks.svg").read_text().startswith("<svg")
    for words, message in {
        ("table.tex", "--what", "trials"): "trials cannot be written as .tex",
        ("trials.csv", "--what", "ranks"): "ranks cannot be written as .csv",
        ("trials.xls",): "unknown format '.xls'",
    }.items():
        result = cli("export", "results", "--output", *words)
        assert result.returncode == 2 and message in result.stderr


@pytest.mark.slow
def test_the_small_part_ranks_methods_as_the_whole_does():
    """Also after leaving any method out, and where the whole has other seeds."""
    protocol = hbo.Ordered(tasks=COMPARED_TASKS)
    part = ranks(
        hbo.Results(read_reference(COMPARED_BENCHMARKS, protocol=protocol), ()),
        range(COMPARED_SEEDS),
    )
    for suites, least in ((("othpo", "retrain"), 0.95), (("othpo",), 0.9), (("retrain",), 0.9)):
        whole = ranks(hbo.reference(*suites), range(COMPARED_SEEDS, 5))
        methods = part.index.intersection(whole.index)
        assert len(methods) > 20
        for method in methods:
            left = methods.drop(method)
            assert spearmanr(part[left], whole[left]).statistic > least, (suites, method)


def ranks(results: hbo.Results, seeds: range) -> "pd.Series[float]":
    """Mean ranks with some seeds."""
    found = results.overview().runs
    trials = results.store.read(found.loc[found["seed"].isin(seeds), "key"])
    scores, _ = score_benchmarks(trials, None, None, explain_left_out(found), find_families(found))
    board = leaderboard(scores)
    return board[board["benchmark"] == "all"].set_index("method")["rank"].dropna()
