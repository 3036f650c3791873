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
    *("shown_in", "section", "claim", "where", "outcome", "measured"),
    *("difference", "standard_error", "samples"),
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
    """Return the summary as Markdown: settings, claims, tables and times."""
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
    """Each figure and table with what the paper says about it, as Markdown."""
    lines = [f"# {result.setup.paper.citation}", "", *_describe_setup(result), ""]
    for exhibit in result.setup.exhibits:
        lines += [f"## {exhibit.title}", "", f"The paper: {exhibit.says}", ""]
        if exhibit.kind == TABLE:
            lines += _format_table(ENTRY_HEADER, entry_rows(result.data[exhibit.name]))
        else:
            lines += [f"![{exhibit.title}]({exhibit.name}.png)"]
        data = f"Data: [{exhibit.name}.csv]({exhibit.name}.csv)."
        lines += ["", f"Here: {exhibit.caption} {data}", ""]
        lines += _format_claims(result, [exhibit])
    return "\n".join(lines).encode()


def claims_csv(result: Reproduction) -> bytes:
    """Return the findings of all claims as CSV, one per row."""
    import pandas as pd

    rows = []
    for exhibit, claim in iter_claims(result, result.setup.exhibits):
        for finding in claim.findings:
            numbers = (finding.difference, finding.standard_error, finding.n_samples)
            rows.append(
                (
                    *(exhibit.title, claim.section, claim.text, finding.subject),
                    *(finding.outcome.value, finding.measured, *numbers),
                )
            )
    return csv_of(pd.DataFrame(rows, columns=FINDING_COLUMNS))


def csv_of(frame: "pd.DataFrame") -> bytes:
    """Return a table as CSV."""
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
    """Return a table's numbers beside the published ones, with the columns of `ENTRY_HEADER`."""
    rows: Rows = []
    for entry in table.itertuples():
        published = _format_estimate(entry.paper, entry.paper_lower, entry.paper_upper)
        measured = _format_estimate(entry.here, entry.here_lower, entry.here_upper)
        inside = "yes" if entry.inside else "no"
        if math.isnan(entry.here):  # one seed has no standard error
            inside = "-"
        rows.append((entry.number, entry.benchmark, published, measured, inside))
    return rows


def time_rows(result: Reproduction) -> Rows:
    """Return the CPU times, one method per row and then all together, as `TIME_HEADER` names them.

    There are no rows if no time is recorded.
    """
    if not result.cells:
        return []
    keys = [cell.key for cell in result.cells]
    timings = result.setup.store.records.timings(keys)
    timings = timings[timings["method_cpu_seconds"].notna()]
    rows = [_time_row(method, of_method) for method, of_method in timings.groupby("method")]
    if rows:
        rows.append(_time_row("all", timings))
    return rows


def _describe_setup(result: Reproduction) -> list[str]:
    """Return the lines of a list that say what was made, how it was run and with which versions."""
    setup = result.setup
    is_whole_paper = len(setup.exhibits) == len(setup.paper.exhibits)
    titles = ", ".join(exhibit.title for exhibit in setup.exhibits)
    numbers = package_versions()
    versions = [f"{name} {numbers[name]}" for name in PACKAGES]
    versions.append(f"Python {platform.python_version()}")
    lines = [
        f"- Made: {'all figures and tables with results' if is_whole_paper else titles}.",
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
    """Return a line per setting: its benchmarks, seeds and protocol."""
    benchmarks_of_setting: dict[str, list[str]] = {}
    for comparison in combine_comparisons(setup.exhibits):
        setting = setup.settings[comparison.benchmark]
        protocol = comparison.protocol or setting.protocol
        options = [
            f"{name.replace('_', ' ')} {value}"
            for name, value in protocol.settings().items()
            if value is not None
        ]
        text = (
            f"seeds {format_ranges(setting.seeds)}; protocol {protocol.name}: {', '.join(options)}."
        )
        benchmarks_of_setting.setdefault(text, []).append(comparison.benchmark)
    return [f"- {', '.join(names)}: {text}" for text, names in benchmarks_of_setting.items()]


def _describe_benchmarks(setup: Setup) -> str:
    """Return the benchmarks with versions in words, grouped by the surrogates they are run on."""
    identities_of_surrogate: dict[str, list[str]] = {}
    for benchmark, surrogate in sorted(setup.surrogates.items()):
        identity = benchmark_spec(benchmark).id
        identities_of_surrogate.setdefault(surrogate, []).append(identity)
    parts = [
        f"{', '.join(identities)} on {surrogate}"
        for surrogate, identities in sorted(identities_of_surrogate.items())
    ]
    return "; ".join(parts)


def _count_outcomes(claims: Sequence[Claim]) -> str:
    """Say how many claims have which outcome.

    Claims about trials that were chosen when the results were known are counted separately.
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
        count = f"{afterwards.count(Outcome.HOLDS)} of {len(afterwards)}"
        n_undecided = afterwards.count(Outcome.UNDECIDED)
        sentences.append(
            f"Of those chosen afterwards {count} hold everywhere, and {n_undecided} are undecided."
        )
    return " ".join(sentences)


def _claim_row(exhibit: Exhibit, claim: Claim, *, line_break: str) -> tuple[str, ...]:
    """Return a claim's row of a table; if only some findings hold, those that do not are marked."""
    findings = claim.findings
    is_mixed = len({finding.outcome for finding in findings}) > 1
    lines = []
    for finding in findings:
        mark = ""
        if is_mixed and finding.outcome is not Outcome.HOLDS:
            mark = f"{finding.outcome.name} "
        lines.append(f"{mark}{finding.subject}: {finding.measured}")
    measured = line_break.join(lines)
    return (exhibit.title, claim.section, claim.text, claim.verdict, measured)


def _time_row(method: str, timings: "pd.DataFrame") -> tuple[str, ...]:
    """Return the CPU time of a method's runs as a row of a table, as `TIME_HEADER` names it."""
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
    """Format a number with its interval; an unknown interval is left out, an unknown number "-"."""
    if math.isnan(value):
        return "-"
    if math.isnan(lower):
        return f"{value:.1f}"
    return f"{value:.1f} ({lower:.1f} to {upper:.1f})"


def _format_claims(result: Reproduction, exhibits: Iterable[Exhibit]) -> list[str]:
    """Return the lines of the table of claims and an empty line; no lines without any claim."""
    claims = iter_claims(result, exhibits)
    rows = [_claim_row(exhibit, claim, line_break="<br>") for exhibit, claim in claims]
    if not rows:
        return []
    return [*_format_table(CLAIM_HEADER, rows), ""]


def _format_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    rule = ("---",) * len(header)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
