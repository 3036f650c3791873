"""Experiments in which evaluations fail, from runs to all that is made of their results."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import hpobench_ordered as hbo
from hpobench_ordered.cli import app
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.paper_table import paper_table
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing.toy import ShiftedQuadratics, numeric_space, toy_benchmark

TEN_METHODS = (
    "random-search",
    "bo",
    "bounding-box",
    "cts",
    "ordered-gp",
    "rgpe",
    "simple-ordered",
    "simple-previous",
    "tpe",
    "zero-shot",
)


@dataclass(frozen=True)
class FailingQuadratics:
    """Shifted quadratics of which a share fails: where the first hyperparameter is large."""

    space: SearchSpace
    direction: hbo.Direction
    share: float
    failure: float  # what a failed evaluation returns

    def predict(self, values, task):
        quadratics = ShiftedQuadratics(self.space, self.direction.sign)
        position = self.space.encode(values)[:, 0]
        return np.where(position > 1 - self.share, self.failure, quadratics.predict(values, task))

    def predict_one(self, row, task):
        return float(self.predict(row[None], task)[0])


def run_failing(
    methods, folder, *, share, failure=math.nan, direction=hbo.Direction.MINIMIZE
) -> hbo.Results:
    """Run methods with five seeds on three toy tasks, on which a share of the space fails."""
    space = numeric_space()
    model = FailingQuadratics(space, direction, share, failure)
    return hbo.run(
        benchmarks=[toy_benchmark(space, tasks=3, direction=direction, model=model)],
        methods=methods,
        seeds=range(5),
        protocol=hbo.Ordered(trials=8),
        folder=folder,
        progress=False,
    )


@pytest.fixture(scope="module")
def results_of(tmp_path_factory):
    """A function that runs methods where a share of the space fails, once for all tests."""

    @cache
    def run_once(methods: tuple[str, ...], share: float) -> hbo.Results:
        return run_failing(methods, tmp_path_factory.mktemp("failing"), share=share)

    return run_once


def rank_by_hand(results: hbo.Results) -> dict[str, float]:
    """The mean rank of each method by its lowest losses, on the tasks that count."""
    trials = results.frame()
    counting = trials[trials["task"] > 0]
    best_losses = counting.groupby(["seed", "task", "method"])["loss"].min().unstack("method")
    return best_losses.rank(axis=1).mean().to_dict()


@pytest.mark.parametrize("direction", list(hbo.Direction))
@pytest.mark.parametrize("failure", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("share", [1 / 3, 1 / 2, 1.0])
def test_ranks_are_right_where_evaluations_fail(share, failure, direction, tmp_path):
    """Ranks on the leaderboard are those of the lowest losses, where failures count as infinite.

    So runs without any successful evaluation share the last rank.
    """
    methods = ["random-search", "bo"]
    results = run_failing(methods, tmp_path, share=share, failure=failure, direction=direction)

    board = results.leaderboard(full=True).set_index("method")

    assert not results.failures()  # a run whose evaluations fail does not fail itself
    assert not results.frame()["loss"].isna().any()
    means = board[board["benchmark"] == "all"]
    assert means["rank"].to_dict() == pytest.approx(rank_by_hand(results))


@pytest.mark.parametrize("methods", [("random-search",), TEN_METHODS])
@pytest.mark.parametrize("share", [1 / 3, 1 / 2, 1.0])
def test_reports_count_failures(share, methods, results_of, tmp_path):
    """A report of few or many methods has a column of failed evaluations."""
    report = hbo.report(results_of(methods, share), tmp_path)

    assert "Failed evaluations" in report.page.read_text()


@pytest.mark.parametrize("methods", [("random-search",), TEN_METHODS])
def test_tables_have_numbers_for_failures(methods, results_of):
    """If a third of the evaluations fail, a table for a paper has numbers for all methods."""
    latex = paper_table(results_of(methods, 1 / 3))

    assert all(method in latex for method in methods)
    assert "nan" not in latex.lower()


def test_no_table_where_all_failed(tmp_path):
    """If all evaluations of all methods fail, there is no score to put in a table."""
    results = run_failing(["random-search", "bo"], tmp_path, share=1.0)
    with pytest.raises(ExperimentError, match="score is not defined"):
        paper_table(results)


def test_command_leaderboard_shows_failures(tmp_path):
    """The printed leaderboard has a column of failed evaluations, and a note on their number."""
    run_failing(["random-search", "bo"], tmp_path, share=1 / 2)

    result = CliRunner().invoke(app, ["leaderboard", str(tmp_path), "--by", "benchmark"])

    assert result.exit_code == 0
    assert "failed evaluations" in result.output
    assert " evaluations failed." in result.output


def test_command_export_writes_failures(tmp_path):
    """In an exported table of trials, a failed evaluation has no value and an infinite loss."""
    run_failing(["random-search", "bo"], tmp_path / "results", share=1 / 2)
    path = tmp_path / "trials.csv"

    result = CliRunner().invoke(app, ["export", str(tmp_path / "results"), "--output", str(path)])

    assert result.exit_code == 0
    trials = pd.read_csv(path)
    has_failed = trials["value"].isna()
    assert has_failed.any()
    assert (np.isinf(trials["loss"]) == has_failed).all()


def test_failures_are_compared_with_reference(monkeypatch, tmp_path):
    """Beside the reference methods, one whose evaluations all failed has the last rank.

    Its score is 100, the worst there is, and all its evaluations are counted as failed.
    """

    class AlwaysFails(hbo.Method):
        """Suggests at random, while all evaluations fail."""

        def ask(self):
            return self.space.sample(self.rng)

        def tell(self, config, loss):
            assert loss == math.inf

    monkeypatch.setattr(Task, "evaluate_row", lambda task, row: math.nan)
    results = hbo.run(
        benchmarks=["newsvendor"],
        methods=[hbo.MethodSpec("always-fails", AlwaysFails, summary="", source="")],
        folder=tmp_path,
        against="reference",
        workers=0,
        progress=False,
    )

    board = results.leaderboard(full=True)
    last = board[board["benchmark"] == "all"].iloc[-1]
    hbo.report(results, tmp_path / "report")

    assert last["method"] == "always-fails"
    assert last["rank"] == len(board[board["benchmark"] == "all"])
    assert last["score"] == 100
    assert last["failed_evaluations"] == last["evaluations"] > 0
