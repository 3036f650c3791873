"""A leaderboard as a file: as it first stands on the page, and all its numbers."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpobench_ordered.reporting.drawings.drawing import slug
from hpobench_ordered.reporting.page.coverage import STATES
from hpobench_ordered.reporting.page.formats import NOTHING, Table
from hpobench_ordered.reporting.page.leaderboard import MEASURES
from hpobench_ordered.reporting.page.view import COLUMNS, View

if TYPE_CHECKING:
    import pandas as pd

CONTESTS = ("wins", "ties", "losses")


def board_table(view: View, board: Mapping[str, Any]) -> Table:
    """A leaderboard.

    Args:
        view: As it first stands on the page.
        board: Its numbers, as `leaderboard` gives them.
    """
    rows = [
        (
            row.method,
            *([row.note] + [NOTHING] * (row.note_columns - 1) if row.is_unranked else []),
            *(_cell(cell.text, cell.interval) for cell in row.cells),
        )
        for row in view.rows
    ]
    return Table(
        stem=f"leaderboard-{slug(view.protocol)}",
        caption=f"Leaderboard: {view.caption}. In brackets 95 % intervals over seeds.",
        header=[column.title for column in COLUMNS],
        rows=rows,
        text_columns=1,
        data=_numbers(board),
        best=_best(view),
    )


def _cell(text: str, small: str) -> str:
    return f"{text} [{small}]" if small else text


def _best(view: View) -> frozenset[tuple[int, int]]:
    """The best cells of the columns in which something is best, equal ones as well."""
    ranked = [(place, row) for place, row in enumerate(view.rows) if not row.is_unranked]
    best = set()
    for column in range(len(MEASURES) + 1):  # after the measures there are wins
        orders = {place: row.cells[column].order for place, row in ranked}
        defined = {place: order for place, order in orders.items() if order is not None}
        lowest = min(defined.values(), default=None)
        best |= {(place, column + 1) for place, order in defined.items() if order == lowest}
    return frozenset(best)


def _numbers(board: Mapping[str, Any]) -> "pd.DataFrame":
    """A row for each group of benchmarks, benchmark, trial and method."""
    import pandas as pd

    entries = board["benchmarks"]
    groups = [(one, [entries[place] for place in one["benchmarks"]]) for one in board["groups"]]
    groups += [(entry, [entry]) for entry in entries]
    return pd.DataFrame(
        [record for group, parts in groups for record in _records(board, group, parts)]
    )


def _records(
    board: Mapping[str, Any], group: Mapping[str, Any], parts: list[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for m in range(board["trials"]):
        for method in board["methods"]:
            planned = [part for part in parts if method in part["runs"]]
            if planned:
                yield {
                    "method": method,
                    "protocol": board["name"],
                    "group": group["name"],
                    "trial": m + 1,
                    **_measured(group, method, m),
                    **_contests(group, parts, method, m),
                    **_runs(planned, method),
                }


def _measured(group: Mapping[str, Any], method: str, m: int) -> dict[str, float | None]:
    columns: dict[str, float | None] = {}
    for measure in MEASURES:
        name = measure.name.replace(" ", "_")
        found = group["measures"].get(measure.name)
        a = group["methods"].index(method) if method in group["methods"] else None
        known = found is not None and a is not None
        columns[name] = found["mean"][a][m] if known else None
        for over in ("seeds", "tasks"):
            for end, side in enumerate(("lower", "upper")):
                columns[f"{name}_{side}_{over}"] = found[over][end][a][m] if known else None
    return columns


def _contests(
    group: Mapping[str, Any], parts: list[Mapping[str, Any]], method: str, m: int
) -> dict[str, int | None]:
    """Wins, ties and losses over all benchmarks, none of methods that are not ranked."""
    if method not in group["methods"]:
        return dict.fromkeys(CONTESTS)
    return {
        name: sum(part[name][part["methods"].index(method)][m] for part in parts)
        for name in CONTESTS
    }


def _runs(planned: list[Mapping[str, Any]], method: str) -> dict[str, float | None]:
    """How many runs failed and were planned, and seconds for one suggestion."""
    failed = sum(part["runs"][method][STATES.index("failed")] for part in planned)
    times = [part["seconds"][method] for part in planned if method in part["seconds"]]
    suggestions = sum(time[1] for time in times)
    return {
        "failed": failed,
        "planned": sum(sum(part["runs"][method]) for part in planned),
        "seconds_per_suggestion": (
            sum(time[0] for time in times) / suggestions if suggestions else None
        ),
    }
