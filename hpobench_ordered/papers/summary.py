"""The files of a reproduction: summary, gallery of figures, and tables."""

import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.analysis.labels import format_ranges
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.papers.paper import Entry, Outcome, PaperTable, combine_comparisons
from hpobench_ordered.papers.result import CheckedClaim, Reproduction, Setup
from hpobench_ordered.runtime.machine import PACKAGE, package_versions

if TYPE_CHECKING:
    import pandas as pd

CLAIM_HEADER = ("shown in", "section", "claim", "outcome", "measured")
ENTRY_HEADER = ("number", "benchmark", "paper", "here", "inside the paper's interval")
TIME_HEADER = ("method", "runs", "suggestions", "CPU seconds", "CPU ms a suggestion")
PACKAGES = (PACKAGE, "numpy", "scipy", "numba")

Rows = list[tuple[str, ...]]


def summary(result: Reproduction) -> bytes:
    """The one-page summary, as Markdown."""
    setup = result.setup
    lines = [f"# {setup.paper.citation}", "", *_describe_setup(result), ""]
    if result.claims:
        explanation = (
            f"{_count_outcomes(result.claims)} {setup.paper.notes} ± is two "
            "standard errors of the difference, seed by seed; within them a claim is undecided."
        )
        lines += ["## Claims", "", explanation, "", *_format_claims(result.claims)]
    for exhibit in setup.exhibits:
        if isinstance(exhibit, PaperTable):
            rows = entry_rows(result.entries[exhibit.name])
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
        if isinstance(exhibit, PaperTable):
            lines += _format_table(ENTRY_HEADER, entry_rows(result.entries[exhibit.name]))
        else:
            lines += [f"![{exhibit.title}]({exhibit.name}.png)"]
        data = f"Data: [{exhibit.name}.csv]({exhibit.name}.csv)."
        lines += ["", f"Here: {exhibit.caption} {data}", ""]
        claims = [claim for claim in result.claims if claim.exhibit is exhibit]
        lines += _format_claims(claims)
    return "\n".join(lines).encode()


def claims_csv(result: Reproduction) -> bytes:
    """The findings, one per row."""
    import pandas as pd

    rows = []
    for checked in result.claims:
        claim = checked.claim
        place = (checked.exhibit.title, claim.section, claim.text)
        for finding in checked.findings:
            rows.append((*place, finding.subject, finding.outcome.value, finding.measured))
    columns = ["shown_in", "section", "claim", "where", "outcome", "measured"]
    return csv_of(pd.DataFrame(rows, columns=columns))


def entries_csv(entries: Sequence[Entry]) -> bytes:
    """The entries of a table, one per row."""
    import pandas as pd

    columns = ["number", "benchmark"]
    columns += ["paper", "paper_lower", "paper_upper"]
    columns += ["here", "here_lower", "here_upper"]
    columns += ["inside"]
    rows = []
    for entry in entries:
        estimates = (*astuple(entry.published), *astuple(entry.measured))
        rows.append((entry.row, entry.column, *estimates, entry.is_inside))
    return csv_of(pd.DataFrame(rows, columns=columns))


def csv_of(frame: "pd.DataFrame") -> bytes:
    """A table as CSV."""
    text: str = frame.to_csv(index=False)
    return text.encode()


def claim_rows(result: Reproduction) -> Rows:
    """The claims, one per row, with `CLAIM_HEADER`."""
    return [_claim_row(claim, line_break="\n") for claim in result.claims]


def entry_rows(entries: Iterable[Entry]) -> Rows:
    """The entries of a table, one per row, with `ENTRY_HEADER`."""
    rows: Rows = []
    for entry in entries:
        is_inside = "yes" if entry.is_inside else "no"
        rows.append(
            (
                entry.row,
                entry.column,
                _format_estimate(entry.published),
                _format_estimate(entry.measured),
                is_inside if entry.is_defined else "-",
            )
        )
    return rows


def time_rows(result: Reproduction) -> Rows:
    """CPU time per method, one per row, with `TIME_HEADER`; empty if none is recorded."""
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
    """The settings and versions, a line each."""
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
    """Seeds and protocol, one line per setting with the benchmarks that it is used on."""
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
    """The benchmarks with versions, by surrogate."""
    identities_of_surrogate: dict[str, list[str]] = {}
    for benchmark, surrogate in sorted(setup.surrogates.items()):
        identity = benchmark_spec(benchmark).id
        identities_of_surrogate.setdefault(surrogate, []).append(identity)
    parts = [
        f"{', '.join(identities)} on {surrogate}"
        for surrogate, identities in sorted(identities_of_surrogate.items())
    ]
    return "; ".join(parts)


def _count_outcomes(claims: Sequence[CheckedClaim]) -> str:
    """Sentences with numbers of claims by outcome, those chosen afterwards separately."""
    planned = [item.outcome for item in claims if not item.claim.afterwards]
    afterwards = [item.outcome for item in claims if item.claim.afterwards]
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


def _claim_row(item: CheckedClaim, *, line_break: str) -> tuple[str, ...]:
    """The cells of a claim; where findings differ, those that do not hold are marked."""
    findings = item.findings
    is_mixed = len({finding.outcome for finding in findings}) > 1
    lines = []
    for finding in findings:
        mark = ""
        if is_mixed and finding.outcome is not Outcome.HOLDS:
            mark = f"{finding.outcome.name} "
        lines.append(f"{mark}{finding.subject}: {finding.measured}")
    claim = item.claim
    measured = line_break.join(lines)
    return (item.exhibit.title, claim.section, claim.text, item.verdict, measured)


def _time_row(method: str, timings: "pd.DataFrame") -> tuple[str, ...]:
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


def _format_estimate(estimate: Estimate) -> str:
    """A number with its interval, if it has one; "-" if there is no number."""
    if math.isnan(estimate.value):
        return "-"
    if math.isnan(estimate.lower):
        return f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} ({estimate.lower:.1f} to {estimate.upper:.1f})"


def _format_claims(claims: Sequence[CheckedClaim]) -> list[str]:
    """The table of claims and an empty line, nothing if there are no claims."""
    if not claims:
        return []
    rows = [_claim_row(claim, line_break="<br>") for claim in claims]
    return [*_format_table(CLAIM_HEADER, rows), ""]


def _format_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """The lines of a table in Markdown."""
    rule = ("---",) * len(header)
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
