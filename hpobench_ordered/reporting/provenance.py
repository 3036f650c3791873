"""Where the numbers come from: what was run, when, on which machines, and how long it took."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.labels import protocol_label, ranges
from hpobench_ordered.analysis.scoring import GROUP
from hpobench_ordered.plotting.theme import drawing_order
from hpobench_ordered.reporting.formats import Table, duration

if TYPE_CHECKING:
    import pandas as pd

SESSION_FIELDS = (
    "started",
    "experiment",
    "shard",
    "workers",
    "backend",
    "time_limit",
    "python",
    "platform",
    "processor",
    "cores",
    "memory",
)
"""What is shown of every start of the runner, in this order."""

LONG_FIELDS = frozenset({"started", "platform", "processor"})
"""Those of many words, which are wrapped in print."""

STATES = ("done", "failed", "running", "missing")
"""What may become of a run."""

GIB = 2**30


def experiment_table(runs: "pd.DataFrame") -> Table:
    """What was planned: a row for all benchmarks with the same protocol, methods and seeds.

    As numbers it has a row a run.
    """
    columns = [*GROUP, "method", "seed", "state"]
    alike: dict[tuple[str, ...], list[str]] = {}
    for (benchmark, surrogate, protocol), group in runs.groupby(list(GROUP), observed=True):
        methods = ", ".join(drawing_order(map(str, group["method"].unique())))
        seeds = ranges(group["seed"].unique())
        alike.setdefault((str(protocol), methods, seeds), []).append(f"{benchmark} ({surrogate})")
    return Table(
        stem="experiment",
        caption="Benchmarks with their versions (and surrogates), methods and seeds.",
        header=("protocol", "benchmarks", "methods", "seeds"),
        rows=[
            (protocol_label(protocol), ", ".join(benchmarks), methods, seeds)
            for (protocol, methods, seeds), benchmarks in alike.items()
        ],
        text_columns=4,
        wrapped=(1, 2),
        data=runs[columns].sort_values(columns, ignore_index=True),
    )


def session_table(sessions: Sequence[Mapping[str, Any]]) -> Table:
    """The starts of the runner: a row each, columns without any entry left out."""
    import pandas as pd

    shown = [name for name in SESSION_FIELDS if any(s.get(name) is not None for s in sessions)]
    ordered = sorted(sessions, key=lambda session: str(session.get("started", "")))
    rows = [[_entry(name, session.get(name)) for name in shown] for session in ordered]
    return Table(
        stem="sessions",
        caption="Every start of the runner, and where it ran.",
        header=[name.replace("_", " ") for name in shown],
        rows=rows,
        text_columns=len(shown),
        wrapped=[place for place, name in enumerate(shown) if name in LONG_FIELDS],
        data=pd.DataFrame([{name: session.get(name) for name in shown} for session in ordered]),
    )


def packages(sessions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Versions of the packages that took part, by name; all of them where they differ."""
    found: dict[str, set[str]] = {}
    for session in sessions:
        for name, version in dict(session.get("packages") or {}).items():
            found.setdefault(str(name), set()).add(str(version))
    return {name: ", ".join(sorted(found[name])) for name in sorted(found)}


def timing_table(timings: "pd.DataFrame") -> Table:
    """How long the methods took: a row each, over all their runs."""
    import pandas as pd

    columns = ["suggestions", "method_seconds", "seconds"]
    grouped = timings.groupby("method", observed=True)
    sums = grouped[columns].sum().assign(runs=grouped.size())
    sums = sums.loc[drawing_order(map(str, sums.index))]
    rows = [
        (
            str(method),
            str(row["runs"]),
            f"{row['suggestions']:,}".replace(",", "\u202f"),
            duration(row["method_seconds"] / row["suggestions"]) if row["suggestions"] else "-",
            duration(row["method_seconds"]),
            duration(row["seconds"]),
        )
        for method, row in zip(sums.index, sums.to_dict("records"), strict=True)
    ]
    data = sums.reset_index()[["method", "runs", *columns]]
    return Table(
        stem="timings",
        caption=(
            "How long the methods took, all runs together: inside the method, for one suggestion "
            "and in all, and with evaluations and everything else."
        ),
        header=("method", "runs", "suggestions", "per suggestion", "in the method", "in all"),
        rows=rows,
        text_columns=1,
        data=pd.DataFrame(data),
    )


def unfinished_table(runs: "pd.DataFrame") -> Table | None:
    """What became of the runs of every method and benchmark that are not all finished."""
    labels = [*GROUP, "method"]
    counts = (
        runs.assign(state=runs["state"].astype(str))
        .groupby(labels, observed=True)["state"]
        .value_counts()
    )
    table = (
        counts.unstack("state", fill_value=0)
        .reindex(columns=STATES, fill_value=0)
        .reset_index()
        .rename_axis(columns=None)
    )
    planned = table[list(STATES)].sum(axis=1)
    table = table[(table["done"] < planned) & (planned > 0)]
    if not len(table):
        return None
    rows = [
        (
            row["method"],
            f"{row['benchmark']} ({row['surrogate']})",
            protocol_label(row["protocol"]),
            *(str(row[state]) for state in STATES),
        )
        for row in table.to_dict("records")
    ]
    return Table(
        stem="unfinished",
        caption="Runs of methods and benchmarks of which not all are finished.",
        header=("method", "benchmark", "protocol", *STATES),
        rows=rows,
        text_columns=3,
        data=table,
    )


def _entry(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name == "memory" and isinstance(value, int | float) and value >= GIB:
        return f"{value / GIB:.0f} GiB"
    if name == "time_limit" and isinstance(value, int | float):
        return duration(value)
    if name == "started":
        return str(value).replace("T", " ").replace("+00:00", " UTC")
    return str(value)
