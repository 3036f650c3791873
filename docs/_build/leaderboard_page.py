"""Figure and tables of the leaderboard's page, and the pages that it links to.

All are made from the reference results when the pages are built.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd
from markdown_text import plain, table
from rank_figure import draw_ranks

import hpobench_ordered as hbo
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import (
    SUBMITTED_MARK,
    format_count,
    format_range_of_seeds,
    is_submitted,
    label_protocol,
)
from hpobench_ordered.analysis.leaderboard import MEASURES, overall_means
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.verdict import final_verdicts
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.reference import read_submissions
from hpobench_ordered.methods.base import MethodKind
from hpobench_ordered.benchmarks.registry import suites
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.reporting.formats import number

BESIDE_BEST_OTHER = "<!-- ordered-gp beside the best other method -->"
LEADERBOARDS = "<!-- leaderboards -->"
MISSING = "<!-- missing -->"
SENTENCE = "<!-- sentence -->"
SIDE_BY_SIDE = "<!-- side by side -->"
SUBMITTED = "<!-- submitted -->"
TOOLS_SIDE_BY_SIDE = "<!-- tools -->"

FIRST_SUITES = ("retrain", "othpo", "wide", "adjustments")
"""Suites in the order of the page; those of leave-one-out follow."""

OPEN_SUITES = ("retrain", "othpo")
"""Suites whose tables are shown at once; a click opens those of the others."""

TRIALS = (1, 5, 10, 25)
"""Trials after which tables have the ranks, in addition to the last."""

FOLDER = "leaderboard"
"""Folder of the site with a report of each suite."""

COMPARED_METHODS = (
    "ordered-gp",
    "hyperbo",
    "simple-ordered",
    "rgpe",
    "fsbo",
    "stacked-gp",
    "transfer-gp-best-first",
    "taf-r",
    "tst-r",
    "transfer-bo",
    "meta-tpe",
    "bo",
    "random-search",
)
"""Transfer methods of all kinds, and two without transfer, that are ranked side by side."""

COMPARED_WITH_TOOLS = ("ordered-gp", "simple-ordered", "bo", "tpe", "random-search")
"""Methods that other tools are compared with."""

TOOLS = (
    "optuna-tpe-best-first",
    "optuna-tpe",
    "optuna-gp",
    "smac",
    "botorch",
    "scikit-optimize",
)
"""Other tools, as their submissions are named, in the order of the table."""


@dataclass(frozen=True)
class Column:
    """A column of mean ranks: on some suites, after a trial."""

    title: str
    suites: tuple[str, ...]
    trial: int


ORDERED_COLUMNS = tuple(
    Column(f"{suite} {trial}", (suite,), trial)
    for suite in ("othpo", "retrain")
    for trial in (1, 5, 10, 25)
)
LEAVE_ONE_OUT_COLUMN = Column("openml 50", ("openml",), 50)


def filled(text: str) -> str:
    """Replace the markers by tables, the sentence on the leader and methods without results."""
    maker_of_marker = {
        LEADERBOARDS: _leaderboards,
        MISSING: _missing,
        SENTENCE: _sentence,
        SUBMITTED: _submitted,
        TOOLS_SIDE_BY_SIDE: _tools,
        SIDE_BY_SIDE: _side_by_side,
    }
    for marker, make_text in maker_of_marker.items():
        if marker in text:
            text = text.replace(marker, make_text())
    return text


def figures() -> dict[str, str]:
    """The figure of the page as SVG, for light and for dark pages, by its path in the site."""
    board_of_suite = {suite: _scores(suite) for suite in OPEN_SUITES}
    light, dark = draw_ranks(board_of_suite)
    return {"images/leaderboard-light.svg": light, "images/leaderboard-dark.svg": dark}


def write_reports(site: Path) -> None:
    """Write the reports of all suites, as the command `report --reference --suite` does."""
    for name, results in _results().items():
        hbo.report(results, site / FOLDER / name)


@cache
def ranks_after_last_trial(suite: str) -> dict[str, float]:
    """Mean rank of each method with results on a suite after the last trial."""
    ranks = _overall(_scores(suite), None)["rank"]
    return {str(method): float(rank) for method, rank in ranks.items()}


@cache
def _results() -> Mapping[str, hbo.Results]:
    """The reference results by suite, in the order of the page.

    Suites without results are left out, and those where nothing can be compared yet.
    """
    results_of_suite = {}
    for name in dict.fromkeys([*FIRST_SUITES, *suites()]):
        with suppress(ExperimentError):  # this suite has no reference results
            results = hbo.reference(name)
            if has_common_method(results.overview().runs):
                results_of_suite[name] = results
    return results_of_suite


def has_common_method(runs: pd.DataFrame) -> bool:
    """Whether a method has runs on all benchmarks of a table of runs."""
    methods_of_benchmark = runs.groupby("benchmark")["method"].agg(set)
    return bool(set.intersection(*methods_of_benchmark))


@cache
def _scores(suite: str) -> Sequence[BenchmarkScores]:
    """Scores of a suite's reference results, which all have one protocol."""
    scores, _ = _results()[suite].scored()
    return scores


def _overall(scores: Sequence[BenchmarkScores], trial: int | None) -> pd.DataFrame:
    """Means of each measure over all benchmarks after a trial, by method; None: the last.

    The leaderboard has the same means, with intervals, which are slow.
    """
    group = BenchmarkGroup.for_means(scores)
    last = group.last_trial if trial is None else trial
    this_trial = slice(last - 1, last)
    means = {}
    for measure in MEASURES:
        means[measure] = overall_means(group, measure, trials=this_trial)[:, 0]
    board = pd.DataFrame(means, index=pd.Index(group.methods, name="method"))
    return board.sort_index().sort_values("rank", kind="stable")


def _missing() -> str:
    """Methods without reference results, by the reason."""
    have_results: set[str] = set()
    for results in _results().values():
        have_results |= set(results.overview().runs["method"])
    specs = [method_spec(name) for name in hbo.list_methods() if name not in have_results]
    for_training_data = [spec.name for spec in specs if spec.kind is MethodKind.TRAINING_DATA]
    others = [spec.name for spec in specs if spec.kind is not MethodKind.TRAINING_DATA]
    text = (
        f"{len(for_training_data)} methods are meant for tasks with training data, which only "
        f"`distbo` has ({', '.join(for_training_data)})"
    )
    if others:
        text += f"; {len(others)} were not run ({', '.join(others)})"
    return f"{text}."


def _sentence() -> str:
    """Who leads on the first suite, and from which others it differs."""
    (verdict,) = final_verdicts(_scores(OPEN_SUITES[0]))
    return plain(verdict.sentence)


def _leaderboards() -> str:
    """All sections, one after the other."""
    return "\n\n".join(_sections())


def _sections() -> Iterator[str]:
    """A section with a table for each suite."""
    for name in _results():
        scores = _scores(name)
        report = f'<a href="{FOLDER}/{name}/report.html">Report</a>'
        introduction = f"{_describe(name, scores)} {report}."
        body = f'<div class="sortable" markdown>\n\n{_table(scores)}\n\n</div>'
        if name not in OPEN_SUITES:
            count = format_count(len(BenchmarkGroup.for_means(scores).methods), "method")
            summary = f"<summary>Table of {count}</summary>"
            body = f"<details markdown>\n{summary}\n\n{body}\n\n</details>"
        yield f"### {name}\n\n{introduction}\n\n{body}"


def _describe(name: str, scores: Sequence[BenchmarkScores]) -> str:
    """The line above a table: protocol, benchmarks and seeds, and what means leave out."""
    group = BenchmarkGroup.for_means(scores)
    seeds = format_range_of_seeds([_count_seeds(scores, method) for method in group.methods])
    protocol = label_protocol(scores[0].protocol)
    text = plain(f"{protocol.capitalize()}; {group.scope}; {seeds}.")

    have_results = {BenchmarkIdentity.parse(item.benchmark).name for item in scores}
    missing = [benchmark for benchmark in suites()[name] if benchmark not in have_results]
    if missing:
        text += f" {format_count(len(missing), 'benchmark')} have no reference results yet."
    left_out = [_mark_left_out(item) for item in scores if item.left_out]
    if left_out:
        text += f" Left out: {', '.join(left_out)}."
    return text


def _mark_left_out(item: BenchmarkScores) -> str:
    """The name of a benchmark that means leave out, with the mark of the reason.

    The note below the tables explains the marks: p for a plateau, i for implausible values.
    """
    name = BenchmarkIdentity.parse(item.benchmark).name
    mark = "p" if item.left_out.startswith("A plateau") else "i"
    return f"[`{name}`](benchmarks/{name}.md)<sup>[{mark}](#left-out)</sup>"


def _table(scores: Sequence[BenchmarkScores]) -> str:
    """Methods by mean rank after the last trial, with the ranks after earlier ones."""
    last_trial = min(item.last_trial for item in scores)
    last_board = _overall(scores, last_trial)
    early_trials = [trial for trial in TRIALS if trial < last_trial]
    early_boards = [_overall(scores, trial) for trial in early_trials]

    rows = []
    for method, row in last_board.iterrows():
        early_ranks = [number(board.loc[method, "rank"], 1) for board in early_boards]
        rank, score, regret = (
            number(row["rank"], 2), number(row["score"], 1), number(row["regret"], 4),
        )  # fmt: skip
        seeds = str(_count_seeds(scores, str(method)))
        rows.append((_link(str(method)), rank, score, *early_ranks, regret, seeds))
    early_headers = [f">rank at {trial}" for trial in early_trials]
    header = ("method", f">rank at {last_trial}", ">score", *early_headers, ">regret", ">seeds")
    return table(header, rows)


def _count_seeds(scores: Sequence[BenchmarkScores], method: str) -> int:
    """Number of seeds of a method, on the benchmark with the fewest."""
    return min(len(item.runs[method].seeds) for item in scores if method in item.runs)


def _link(method: str) -> str:
    """The name of a method with a link to its page, or to the table of submitted methods."""
    target = "#submitted" if is_submitted(method) else f"methods/{method}.md"
    return f"[{plain(method)}]({target})"


def _submitted() -> str:
    """The submitted methods: what each is, and who ran it."""
    rows = []
    for name, submission in read_submissions().items():
        address = f"[code]({submission.code})"
        about = f"{submission.summary} {submission.note}"
        rows.append(
            (
                plain(name),
                plain(about),
                f"{plain(submission.paper)}; {address}",
                plain(submission.versions),
                plain(submission.ran_by),
            )
        )
    return table(("method", "what it is", "source", "versions", "who ran it"), rows)


def _side_by_side() -> str:
    """Mean ranks of `COMPARED_METHODS` among themselves."""
    return _compare(COMPARED_METHODS, (*ORDERED_COLUMNS, LEAVE_ONE_OUT_COLUMN))


def _tools() -> str:
    """Mean ranks among themselves of other tools and the methods that they are compared with."""
    names_in_results = [name + SUBMITTED_MARK for name in TOOLS]
    with_results = [name for name in names_in_results if name in read_submissions()]
    return _compare((*COMPARED_WITH_TOOLS, *with_results), ORDERED_COLUMNS)


def fill_comparison(text: str) -> str:
    """Replace the marker in the page of ordered-gp by its ranks beside the best other method's."""
    if BESIDE_BEST_OTHER not in text:
        return text
    return text.replace(BESIDE_BEST_OTHER, _compare_with_best_other("ordered-gp"))


def _compare_with_best_other(method: str) -> str:
    """Make a table of a method's mean ranks and those of the best other method, with its name.

    There is a row for each suite with results of the method and of others, and a column for each
    trial. Ranks are those of the tables: among all methods with results on all benchmarks of the
    suite.
    """
    rows = []
    for suite in _results():
        scores = _scores(suite)
        group = BenchmarkGroup.for_means(scores)
        if method not in group.methods or len(group.methods) == 1:
            continue
        cells = []
        for trial in TRIALS:
            mean_ranks = _overall(scores, trial)["rank"]  # the best first
            ranks_of_others = mean_ranks.drop(method)
            best_other = plain(str(ranks_of_others.index[0]))
            own_rank, other_rank = _tell_apart(mean_ranks[method], ranks_of_others.iloc[0])
            if own_rank == other_rank:
                cells.append(f"{own_rank}, as {best_other}")
            else:
                cells.append(f"{own_rank} / {other_rank} {best_other}")
        rows.append((f"`{suite}`", str(len(group.methods)), *cells))
    headers = ("suite", ">methods", *(f">after {trial}" for trial in TRIALS))
    return table(headers, rows)


def _tell_apart(rank: float, other_rank: float) -> tuple[str, str]:
    """Format two mean ranks with one decimal, or with two if they look the same with one."""
    decimals = 2 if number(rank, 1) == number(other_rank, 1) else 1
    return number(rank, decimals), number(other_rank, decimals)


def _compare(methods: Sequence[str], columns: Sequence[Column]) -> str:
    """Make a table of mean ranks of some methods among themselves.

    A method without results on all benchmarks of a column has a dash.
    """
    rows = []
    for method in methods:
        ranks = []
        for column in columns:
            scores = _compared_scores(column.suites, tuple(methods))
            mean_ranks = _overall(scores, column.trial)["rank"]
            ranks.append(number(mean_ranks.get(method, math.nan), 1))
        rows.append((_link(method), *ranks))
    return table(("method", *(f">{column.title}" for column in columns)), rows)


@cache
def _compared_scores(
    suites_of_column: tuple[str, ...], methods: tuple[str, ...]
) -> Sequence[BenchmarkScores]:
    """Scores of some methods alone on some suites."""
    scores, _ = hbo.reference(*suites_of_column, methods=methods).scored()
    return scores
