"""Tables of the leaderboard and of comparisons, as files and for the page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.speedup import geometric_mean
from hpobench_ordered.analysis.together import (
    Together,
    Unit,
    significance_of,
    speedups_of,
    wins_of,
)
from hpobench_ordered.analysis.verdict import surrogate_agreement
from hpobench_ordered.reporting.formats import MINUS, NOTHING, Table, duration, slug

if TYPE_CHECKING:
    import pandas as pd

DECIMALS = {"score": 1, "regret": 4, "rank": 2}
"""Measures of the tables, with their decimals."""


def leaderboard_tables(board: "pd.DataFrame") -> Iterator[Table]:
    """A table of each protocol's overall rows, and one of each benchmark.

    Args:
        board: As `analysis.leaderboard.leaderboard` gives.
    """
    names = set()
    for labels, rows in board.groupby(
        ["protocol", "benchmark", "surrogate"], sort=False, observed=True
    ):
        protocol, benchmark, surrogate = map(str, labels)
        what = "all benchmarks" if benchmark == ALL else f"{benchmark} ({surrogate})"
        stem = slug("leaderboard" if benchmark == ALL else f"leaderboard {benchmark} {surrogate}")
        stem = stem if stem not in names else slug(f"{stem} {protocol}")
        names.add(stem)
        trial = int(rows["trial"].iloc[0])
        yield Table(
            stem=stem,
            caption=f"{what}, {protocol_label(protocol)}, after trial {trial}; in brackets 95 % "
            "intervals over seeds.",
            header=("method", *DECIMALS, "won/tied/lost", "failed", "per suggestion"),
            rows=[_leaderboard_row(row) for row in rows.to_dict("records")],
            text_columns=1,
            data=rows,
        )


def _leaderboard_row(row: "dict[str, object]") -> list[str]:
    cells = [_measured(row, measure) for measure in DECIMALS]
    contests = [row["wins"], row["ties"], row["losses"]]
    known = all(isinstance(count, int) for count in contests)
    seconds = float(str(row["seconds"]))
    return [
        str(row["method"]),
        *cells,
        "/".join(map(str, contests)) if known else NOTHING,
        f"{row['failed']} of {row['runs']}",
        duration(seconds) if np.isfinite(seconds) else NOTHING,
    ]


def _measured(row: "dict[str, object]", measure: str) -> str:
    ends = [float(str(row[f"{measure}{end}"])) for end in ("", "_low", "_high")]
    if np.isnan(ends[0]):
        return NOTHING
    texts = [f"{end:.{DECIMALS[measure]}f}".replace("-", MINUS) for end in ends]
    return texts[0] if np.isnan(ends[1]) else f"{texts[0]} ({texts[1]} to {texts[2]})"


def agreement_table(scored: Sequence[BenchmarkScores]) -> Table | None:
    """The order of methods on each surrogate of benchmarks that were run on several."""
    frame = surrogate_agreement(scored)
    if not len(frame):
        return None
    rows = []
    for (protocol, benchmark, surrogate), part in frame.groupby(
        ["protocol", "benchmark", "surrogate"], sort=False, observed=True
    ):
        ordered = part.sort_values("place")
        ranks = zip(ordered["method"], ordered["rank"], strict=True)
        order = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks)
        alike = "yes" if part["is_same"].all() else "no"
        what = f"{benchmark}, {protocol_label(str(protocol))}"
        rows.append((what, alike, str(surrogate), order))
    return Table(
        stem="surrogates",
        caption="Methods by mean rank on every surrogate of the same benchmark, best first, and "
        "whether their order is the same on all of them.",
        header=("benchmark", "same order", "surrogate", "methods with their mean ranks"),
        rows=rows,
        text_columns=4,
        wrapped=(3,),
        data=frame,
    )


def speedup_tables(scored: Sequence[BenchmarkScores]) -> Iterator[Table]:
    """Speed-up and failure rate by protocol: geometric means over tasks, then over benchmarks."""
    import pandas as pd

    for items in by_protocol(scored).values():
        together = Together.of(items)
        found = speedups_of(together)
        if not found:
            continue
        first = found[0]
        mean = geometric_mean(np.stack([one.mean for one in found]), axis=0)
        failures = np.mean([one.mean_failure_rate for one in found], axis=0)
        records = [
            {
                "benchmark": item.benchmark,
                "method": method,
                "budget": budget,
                "speedup": one.mean[a, g],
                "failure_rate": one.mean_failure_rate[a, g],
            }
            for item, one in zip(together.items, found, strict=True)
            for a, method in enumerate(one.methods)
            for g, budget in enumerate(one.budgets)
        ]
        yield Table(
            stem=slug(f"speedup {together.protocol}"),
            caption=(
                f"Speed-up over {first.reference}: how many times fewer trials a method needs to "
                "get as far as that on average in so many trials (geometric means over tasks and "
                "then benchmarks), and in brackets the share of its runs that never get there."
            ),
            header=("method", *(f"{budget} trials" for budget in first.budgets)),
            rows=[
                (m, *(f"{mean[a, g]:.2f} ({failures[a, g]:.0%})" for g in range(mean.shape[1])))
                for a, m in enumerate(first.methods)
            ],
            text_columns=1,
            data=pd.DataFrame(records),
        )


def pair_frames(scored: Sequence[BenchmarkScores]) -> dict[str, "pd.DataFrame"]:
    """Every pair of methods: wins and p values, by name of the file."""
    import pandas as pd

    wins, tests = [], []
    for items in by_protocol(scored).values():
        together = Together.of(items)
        labels = {"protocol": together.protocol}
        found = wins_of(together)
        matrices = {"wins": found.wins, "ties": found.ties, "losses": found.losses}
        wins.append(_pairs(together.methods, matrices).assign(**labels))
        for unit in Unit:
            test = significance_of(together, unit=unit)
            if test is not None:
                p_values = {"p": test.p_values, "p_holm": test.adjusted}
                pairs = _pairs(together.methods, p_values)
                tests.append(pairs.assign(over=unit.value, samples=test.samples, **labels))
    frames = {"wins": wins, "significance": tests}
    return {name: pd.concat(parts) for name, parts in frames.items() if parts}


def _pairs(methods: Sequence[str], matrices: Mapping[str, FloatArray | IntArray]) -> "pd.DataFrame":
    """Matrices as a table with a row for each pair of different methods."""
    import pandas as pd

    first, second = np.nonzero(~np.eye(len(methods), dtype=bool))
    names = np.array(methods, dtype=object)
    columns = {name: matrix[first, second] for name, matrix in matrices.items()}
    return pd.DataFrame({"method": names[first], "other": names[second], **columns})
