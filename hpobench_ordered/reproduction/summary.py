"""The files of a reproduction: summary, gallery of figures, and tables."""

import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from importlib.metadata import version
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.analysis.labels import format_ranges
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.reproduction.paper import Entry, Table, combined
from hpobench_ordered.reproduction.result import CheckedClaim, Reproduction, Setup

if TYPE_CHECKING:
    import pandas as pd

CLAIM_HEADER = ("shown in", "section", "claim", "holds", "measured")
ENTRY_HEADER = ("number", "benchmark", "paper", "here", "inside the paper's interval")
TIME_HEADER = ("method", "runs", "suggestions", "seconds", "ms a suggestion")
VERSIONS = ("hpobench-ordered", "numpy", "scipy", "numba")

Rows = list[tuple[str, ...]]


def summary(result: Reproduction) -> bytes:
    """The one-page summary, as Markdown."""
    setup = result.setup
    lines = [f"# {setup.paper.citation}", "", *_how(result), ""]
    if result.claims:
        lines += [
            "## Claims",
            "",
            f"{_held(result.claims)} {setup.paper.notes} A claim holds on the means; ± is two "
            "standard errors of the difference, seed by seed.",
            "",
            *_claims(result.claims),
        ]
    for exhibit in setup.exhibits:
        if isinstance(exhibit, Table):
            rows = entry_rows(result.entries[exhibit.name])
            lines += [f"## {exhibit.title}", "", exhibit.caption, "", *_table(ENTRY_HEADER, rows)]
            lines += [""]
    times = time_rows(result)
    if times:
        lines += ["## Time", "", *_table(TIME_HEADER, times), ""]
    return "\n".join(lines).encode()


def gallery(result: Reproduction) -> bytes:
    """Each figure and table with what the paper says about it, as Markdown."""
    lines = [f"# {result.setup.paper.citation}", "", *_how(result), ""]
    for exhibit in result.setup.exhibits:
        lines += [f"## {exhibit.title}", "", f"The paper: {exhibit.says}", ""]
        if isinstance(exhibit, Table):
            lines += _table(ENTRY_HEADER, entry_rows(result.entries[exhibit.name]))
        else:
            lines += [f"![{exhibit.title}]({exhibit.name}.png)"]
        lines += [
            "",
            f"Here: {exhibit.caption} Data: [{exhibit.name}.csv]({exhibit.name}.csv).",
            "",
        ]
        claims = [claim for claim in result.claims if claim.exhibit is exhibit]
        lines += _claims(claims)
    return "\n".join(lines).encode()


def claims_csv(result: Reproduction) -> bytes:
    """The findings, one per row."""
    import pandas as pd

    rows = [
        (item.exhibit.title, item.claim.section, item.claim.text, f.subject, f.holds, f.measured)
        for item in result.claims
        for f in item.findings
    ]
    columns = ["shown_in", "section", "claim", "where", "holds", "measured"]
    return csv_of(pd.DataFrame(rows, columns=columns))


def entries_csv(entries: Sequence[Entry]) -> bytes:
    """The entries of a table, one per row."""
    import pandas as pd

    ends = [f"{which}{end}" for which in ("paper", "here") for end in ("", "_lower", "_upper")]
    rows = [
        (e.row, e.column, *astuple(e.published), *astuple(e.measured), e.is_inside) for e in entries
    ]
    return csv_of(pd.DataFrame(rows, columns=["number", "benchmark", *ends, "inside"]))


def csv_of(frame: "pd.DataFrame") -> bytes:
    """A table as CSV."""
    text: str = frame.to_csv(index=False)
    return text.encode()


def claim_rows(result: Reproduction) -> Rows:
    """The claims, one per row, with `CLAIM_HEADER`."""
    return [_claim_row(claim, "\n") for claim in result.claims]


def entry_rows(entries: Iterable[Entry]) -> Rows:
    """The entries of a table, one per row, with `ENTRY_HEADER`."""
    return [
        (
            entry.row,
            entry.column,
            _interval(entry.published),
            _interval(entry.measured),
            ("yes" if entry.is_inside else "no") if entry.is_known else "-",
        )
        for entry in entries
    ]


def time_rows(result: Reproduction) -> Rows:
    """Time per method, one per row, with `TIME_HEADER`; empty if no time is recorded."""
    if not result.cells:
        return []
    timings = result.setup.store.records.timings([cell.key for cell in result.cells])
    groups = dict(list(timings.groupby("method")))
    rows = [_time_row(method, groups[method]) for method in groups]
    return rows + [_time_row("all", timings)] if rows else []


def _how(result: Reproduction) -> list[str]:
    """The settings and versions, a few lines."""
    setup = result.setup
    made = ", ".join(exhibit.title for exhibit in setup.exhibits)
    everything = len(setup.exhibits) == len(setup.paper.exhibits)
    lines = [
        f"- Made: {'all figures and tables with results' if everything else made}.",
        f"- Runs: {len(result.cells)}.",
        *_settings(setup),
        f"- Benchmarks: {_benchmarks(setup)}.",
        f"- Versions: {', '.join(f'{name} {version(name)}' for name in VERSIONS)}, "
        f"Python {platform.python_version()}.",
    ]
    fallbacks = {method: count for method, count in result.fallbacks.items() if count}
    if fallbacks:
        counts = ", ".join(f"{method} {fallbacks[method]}" for method in fallbacks)
        lines.append(f"- Suggestions made at random because a model failed: {counts}.")
    return lines


def _settings(setup: Setup) -> list[str]:
    """Seeds and protocol, one line per setting."""
    benchmarks: dict[str, list[str]] = {}
    for item in combined(setup.exhibits):
        name, setting = item.benchmark, setup.settings[item.benchmark]
        protocol = item.protocol or setting.protocol
        given = [f"{what} {x}" for what, x in protocol.settings().items() if x is not None]
        how = f"protocol {protocol.name}: {', '.join(given).replace('_', ' ')}"
        text = f"seeds {format_ranges(setting.seeds)}; {how}."
        benchmarks.setdefault(text, []).append(name)
    return [f"- {', '.join(names)}: {text}" for text, names in benchmarks.items()]


def _benchmarks(setup: Setup) -> str:
    """The benchmarks with versions, by surrogate."""
    names: dict[str, list[str]] = {}
    for benchmark in sorted(setup.surrogates):
        names.setdefault(setup.surrogates[benchmark], []).append(benchmark_spec(benchmark).id)
    return "; ".join(f"{', '.join(names[which])} on {which}" for which in sorted(names))


def _held(claims: Sequence[CheckedClaim]) -> str:
    """The number of claims that hold, those chosen afterwards separately."""
    verdicts: dict[bool, list[str]] = {}
    for item in claims:
        verdicts.setdefault(item.claim.afterwards, []).append(item.verdict)
    counts = {key: f"{own.count('yes')} of {len(own)}" for key, own in verdicts.items()}
    text = f"{counts[False]} hold everywhere." if False in counts else ""
    return text + (f" Of those chosen afterwards {counts[True]} do." if True in counts else "")


def _claim_row(item: CheckedClaim, line_break: str) -> tuple[str, ...]:
    findings = item.findings
    several = len({finding.holds for finding in findings}) > 1
    measured = line_break.join(
        f"{'' if finding.holds or not several else 'NOT '}{finding.subject}: {finding.measured}"
        for finding in findings
    )
    claim = item.claim
    return (item.exhibit.title, claim.section, claim.text, item.verdict, measured)


def _time_row(method: str, timings: "pd.DataFrame") -> tuple[str, ...]:
    suggestions = int(timings["suggestions"].sum())
    inside = float(timings["method_seconds"].sum())
    return (
        method,
        str(len(timings)),
        str(suggestions),
        f"{timings['seconds'].sum():.1f}",
        f"{1000 * inside / suggestions:.3f}",
    )


def _interval(estimate: Estimate) -> str:
    if math.isnan(estimate.lower):
        return "-" if math.isnan(estimate.value) else f"{estimate.value:.1f}"
    return f"{estimate.value:.1f} ({estimate.lower:.1f} to {estimate.upper:.1f})"


def _claims(claims: Sequence[CheckedClaim]) -> list[str]:
    rows = [_claim_row(claim, "<br>") for claim in claims]
    return [*_table(CLAIM_HEADER, rows), ""] if rows else []


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = (header, ("---",) * len(header), *rows)
    return [f"| {' | '.join(cells)} |" for cells in lines]
