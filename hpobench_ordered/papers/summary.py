"""The files of a reproduction: summary, gallery of figures, and tables."""

import math
import platform
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.labels import format_ranges
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.papers.claims import Claim, Outcome
from hpobench_ordered.papers.paper import TABLE, Exhibit, combine_comparisons
from hpobench_ordered.papers.result import Reproduction, Setup
from hpobench_ordered.runtime.machine import PACKAGE, package_versions

if TYPE_CHECKING:
    import pandas as pd

CLAIM_HEADER = ("shown in", "section", "claim", "outcome", "measured")
ENTRY_HEADER = ("number", "benchmark", "paper", "here", "inside the paper's interval")
FINDING_COLUMNS = [
    "shown_in",
    "section",
    "claim",
    "where",
    "outcome",
    "measured",
    "difference",
    "standard_error",
    "samples",
]
TIME_HEADER = ("method", "runs", "suggestions", "CPU seconds", "CPU ms a suggestion")
RULE = (
    "After the colon is the difference in favour of the claim, where ± and intervals are of 95 % "
    "(Student's t): a claim holds if the interval is above 0 (a ratio above 1), fails if it is "
    "below, and is undecided otherwise."
)
PACKAGES = (PACKAGE, "numpy", "scipy", "numba")

Rows = list[tuple[str, ...]]


def summary(result: Reproduction) -> bytes:
    """Write the summary as Markdown: settings, claims, tables and times."""
    setup = result.setup
    lines = [f"# {setup.paper.citation}", "", *_describe_setup(result), ""]
    claims = list(chain.from_iterable(result.claims.values()))
    if claims:
        explanation = f"{_count_outcomes(claims)} {setup.paper.notes} {RULE}"
        lines += ["## Claims", "", explanation, "", *_format_claims(result, setup.exhibits)]
    for exhibit in setup.exhibits:
        if exhibit.kind == TABLE:
            rows = entry_rows(result.data[exhibit.name])
            lines += [f"## {exhibit.title}", "", exhibit.caption, ""]
            lines += [*_format_table(ENTRY_HEADER, rows), ""]
    times = time_rows(result)
    if times:
        lines += ["## Time", "", *_format_table(TIME_HEADER, times), ""]
    return "\n".join(lines).encode()


def gallery(result: Reproduction) -> bytes:
    """Write a page in Markdown with all figures and tables.

    Each has what the paper says about it, our caption, and the claims about it.
    """
    lines = [f"# {result.setup.paper.citation}", "", *_describe_setup(result), ""]
    for exhibit in result.setup.exhibits:
        lines += [f"## {exhibit.title}", "", f"The paper: {exhibit.paper_says}", ""]
        if exhibit.kind == TABLE:
            lines += _format_table(ENTRY_HEADER, entry_rows(result.data[exhibit.name]))
        else:
            lines += [f"![{exhibit.title}]({exhibit.name}.png)"]
        data = f"Data: [{exhibit.name}.csv]({exhibit.name}.csv)."
        lines += ["", f"Here: {exhibit.caption} {data}", ""]
        lines += _format_claims(result, [exhibit])
    return "\n".join(lines).encode()


def claims_csv(result: Reproduction) -> bytes:
    """Write the findings of all claims as CSV, one per row."""
    import pandas as pd

    rows = []
    for exhibit, claim in iter_claims(result, result.setup.exhibits):
        for finding in claim.findings:
            row = {
                "shown_in": exhibit.title,
                "section": claim.section,
                "claim": claim.text,
                "where": finding.subject,
                "outcome": finding.outcome.value,
                "measured": finding.measured,
                "difference": finding.difference,
                "standard_error": finding.standard_error,
                "samples": finding.n_samples,
            }
            rows.append(row)
    # Named here, so that a file without findings has them as well.
    return csv_of(pd.DataFrame(rows, columns=FINDING_COLUMNS))


def csv_of(frame: "pd.DataFrame") -> bytes:
    """Write a table as CSV, without its index."""
    text: str = frame.to_csv(index=False)
    return text.encode()


def claim_rows(result: Reproduction) -> Rows:
    """Return the claims, one per row, with the columns of `CLAIM_HEADER`."""
    claims = iter_claims(result, result.setup.exhibits)
    return [_claim_row(exhibit, claim, line_break="\n") for exhibit, claim in claims]


def iter_claims(
    result: Reproduction, exhibits: Iterable[Exhibit]
) -> Iterator[tuple[Exhibit, Claim]]:
    """Yield each claim of some figures and tables, with the figure or table that it is about."""
    for exhibit in exhibits:
        for claim in result.claims[exhibit.name]:
            yield exhibit, claim


def entry_rows(table: "pd.DataFrame") -> Rows:
    """Write a table's numbers beside those that the paper published, as `ENTRY_HEADER` names them.

    Args:
        table: A row per number, with what it is, its benchmark, the published and our value with
            the ends of their intervals, and whether ours is inside the published interval.
    """
    rows: Rows = []
    for entry in table.itertuples():
        published = _format_estimate(entry.paper, entry.paper_lower, entry.paper_upper)
        measured = _format_estimate(entry.here, entry.here_lower, entry.here_upper)
        is_inside = "yes" if entry.inside else "no"
        if math.isnan(entry.here):  # such as a standard error with only one seed
            is_inside = "-"
        rows.append((entry.number, entry.benchmark, published, measured, is_inside))
    return rows


def time_rows(result: Reproduction) -> Rows:
    """Write the CPU times of each method and of all methods together, as `TIME_HEADER` names them.

    There are no rows if no time is recorded.
    """
    if not result.cells:
        return []
    keys = [cell.key for cell in result.cells]
    timings = result.setup.store.records.timings(keys)
    timings = timings[timings["method_cpu_seconds"].notna()]
    rows = []
    for method, timings_of_method in timings.groupby("method"):
        rows.append(_time_row(str(method), timings_of_method))
    if rows:
        rows.append(_time_row("all", timings))
    return rows


def _describe_setup(result: Reproduction) -> list[str]:
    """Write the lines of a list that says what was made, how it was run and with which versions."""
    setup = result.setup
    made = ", ".join(exhibit.title for exhibit in setup.exhibits)
    if len(setup.exhibits) == len(setup.paper.exhibits):
        made = "all figures and tables with results"
    version_of_package = package_versions()
    versions = [f"{name} {version_of_package[name]}" for name in PACKAGES]
    versions.append(f"Python {platform.python_version()}")
    lines = [
        f"- Made: {made}.",
        f"- Runs: {len(result.cells)}.",
        *_describe_settings(setup),
        f"- Benchmarks: {_describe_benchmarks(setup)}.",
        f"- Versions: {', '.join(versions)}.",
    ]
    fallbacks = [f"{method} {count}" for method, count in result.fallbacks.items() if count]
    if fallbacks:
        lines.append(
            f"- Suggestions made at random because a model failed: {', '.join(fallbacks)}."
        )
    return lines


def _describe_settings(setup: Setup) -> list[str]:
    """Write a line per setting, with the benchmarks that share it, the seeds and the protocol."""
    benchmarks_of_setting: dict[str, list[str]] = {}  # by the setting in words
    for comparison in combine_comparisons(setup.exhibits):
        setting = setup.settings[comparison.benchmark]
        protocol = comparison.protocol or setting.protocol
        options = []
        for name, value in protocol.settings().items():
            if value is not None:
                words = name.replace("_", " ")
                options.append(f"{words} {value}")
        seeds = format_ranges(setting.seeds)
        text = f"seeds {seeds}; protocol {protocol.name}: {', '.join(options)}."
        benchmarks_of_setting.setdefault(text, []).append(comparison.benchmark)
    return [f"- {', '.join(names)}: {text}" for text, names in benchmarks_of_setting.items()]


def _describe_benchmarks(setup: Setup) -> str:
    """List benchmarks with their versions by surrogate, as in "a@1, b@2 on table; c@1 on rf"."""
    benchmarks_of_surrogate: dict[str, list[str]] = {}
    for benchmark, surrogate in sorted(setup.surrogates.items()):
        name_with_version = benchmark_spec(benchmark).id
        benchmarks_of_surrogate.setdefault(surrogate, []).append(name_with_version)
    groups = []
    for surrogate, names in sorted(benchmarks_of_surrogate.items()):
        groups.append(f"{', '.join(names)} on {surrogate}")
    return "; ".join(groups)


def _count_outcomes(claims: Sequence[Claim]) -> str:
    """Say in a sentence how many claims hold, fail and are undecided.

    Claims about trials that were chosen when the results were known have a sentence of their own.
    """
    planned = [claim.outcome for claim in claims if not claim.afterwards]
    afterwards = [claim.outcome for claim in claims if claim.afterwards]
    sentences = []
    if planned:
        sentences.append(
            f"{planned.count(Outcome.HOLDS)} of {len(planned)} hold everywhere, "
            f"{planned.count(Outcome.FAILS)} fail somewhere, and "
            f"{planned.count(Outcome.UNDECIDED)} are undecided."
        )
    if afterwards:
        n_holding = afterwards.count(Outcome.HOLDS)
        n_undecided = afterwards.count(Outcome.UNDECIDED)
        sentences.append(
            f"Of those chosen afterwards {n_holding} of {len(afterwards)} hold everywhere, "
            f"and {n_undecided} are undecided."
        )
    return " ".join(sentences)


def _claim_row(exhibit: Exhibit, claim: Claim, *, line_break: str) -> tuple[str, ...]:
    """Write a claim as a row of a table, as `CLAIM_HEADER` names its columns.

    The last cell has a line per finding, separated by `line_break`. If findings have different
    outcomes, each line but those of findings that hold begins with the outcome.
    """
    outcomes = {finding.outcome for finding in claim.findings}
    is_mixed = len(outcomes) > 1
    lines = []
    for finding in claim.findings:
        line = f"{finding.subject}: {finding.measured}"
        if is_mixed and finding.outcome is not Outcome.HOLDS:
            line = f"{finding.outcome.name} {line}"
        lines.append(line)
    measured = line_break.join(lines)
    return (exhibit.title, claim.section, claim.text, claim.verdict, measured)


def _time_row(method: str, timings: "pd.DataFrame") -> tuple[str, ...]:
    """Write the CPU time of some runs as a row of a table, as `TIME_HEADER` names its columns."""
    number_of_runs = len(timings)
    suggestions = int(timings["suggestions"].sum())
    cpu_seconds = float(timings["method_cpu_seconds"].sum())
    return (
        method,
        str(number_of_runs),
        str(suggestions),
        f"{cpu_seconds:.1f}",
        f"{1000 * cpu_seconds / suggestions:.3f}",
    )


def _format_estimate(value: float, lower: float, upper: float) -> str:
    """Format a number with its interval, as in "3.1 (2.0 to 4.2)".

    A number that is NaN becomes "-", and an interval that is NaN is left out.
    """
    if math.isnan(value):
        return "-"
    if math.isnan(lower):
        return f"{value:.1f}"
    return f"{value:.1f} ({lower:.1f} to {upper:.1f})"


def _format_claims(result: Reproduction, exhibits: Iterable[Exhibit]) -> list[str]:
    """Write the lines of a table of claims and an empty line, or no lines if there is no claim."""
    claims = iter_claims(result, exhibits)
    rows = [_claim_row(exhibit, claim, line_break="<br>") for exhibit, claim in claims]
    if not rows:
        return []
    return [*_format_table(CLAIM_HEADER, rows), ""]


def _format_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Write the lines of a table in Markdown."""
    rule = ("---",) * len(header)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
