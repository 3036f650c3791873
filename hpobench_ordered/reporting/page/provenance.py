"""Where the numbers come from: what was run, when, on which machines, and how long it took."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.formats import Table
from hpobench_ordered.reporting.scoring import GROUP, ranges
from hpobench_ordered.reporting.style import drawing_order

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


def seconds_by_method(
    timings: "pd.DataFrame",
) -> dict[tuple[str, str], dict[str, tuple[float, int]]]:
    """Seconds inside the methods and number of suggestions.

    Returns:
        By benchmark with its surrogate, and protocol, and by method.
    """
    sums = timings.groupby([*GROUP, "method"], observed=True)[["method_seconds", "suggestions"]]
    found: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}
    for keys, seconds, suggestions in sums.sum().itertuples():
        benchmark, surrogate, protocol, method = map(str, keys)
        row = found.setdefault((f"{benchmark} ({surrogate})", protocol), {})
        row[method] = (float(seconds), int(suggestions))
    return found


def duration(seconds: float) -> str:
    """A duration in the unit that suits it, such as "0.41 ms" or "2.5 h"."""
    for unit, factor in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)):
        limit = 100 if unit in ("s", "min") else 1000
        if seconds < limit * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 3600:.3g} h"


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
