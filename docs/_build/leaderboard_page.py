"""Tables of the leaderboard's page, made from the reference results."""

from collections.abc import Iterator

from markdown_text import plain, table

import hpobench_ordered as hbo
from hpobench_ordered.analysis.labels import counted, protocol_label, ranges
from hpobench_ordered.analysis.leaderboard import ALL, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.registry import suites
from hpobench_ordered.reporting.formats import number

MARKER = "<!-- leaderboards -->"
TRIALS = (1, 5, 10, 25)


def filled(text: str) -> str:
    """Put the tables of all suites in their place."""
    return text.replace(MARKER, "\n\n".join(_sections())) if MARKER in text else text


def _sections() -> Iterator[str]:
    for name in sorted(suites(), key=lambda one: len(suites()[one])):
        try:
            scores, _ = hbo.reference(name).scored()
        except ExperimentError:  # there are none of this suite
            continue
        for protocol, items in by_protocol(scores).items():
            yield f"### {name}\n\n{_said(name, protocol, items)}\n\n{_table(items)}"


def _said(name: str, protocol: str, items: list[BenchmarkScores]) -> str:
    """What a table is of."""
    together = Together.of(items)
    there, every = {item.benchmark.partition("@")[0] for item in items}, suites()[name]
    said = f"{protocol_label(protocol).capitalize()}; mean over {together.scope}, "
    said += f"seeds {ranges({seed for item in items for seed in item.seed_numbers})}."
    if lacking := len([one for one in every if one not in there]):
        said += f" {counted(lacking, 'benchmark')} of the suite have no reference results yet."
    for item in items:
        if item.left_out:
            said += f" Left out is {item.label}. {item.left_out}"
    return plain(said)


def _table(items: list[BenchmarkScores]) -> str:
    """Methods by mean rank after the last trial, with the ranks after earlier ones."""
    boards = {}
    for trial in sorted({*TRIALS, min(item.last_trial for item in items)}):
        if trial <= min(item.last_trial for item in items):
            board = leaderboard(items, trial=trial)
            boards[trial] = board[board["benchmark"] == ALL].set_index("method")
    last = max(boards)
    rows = [
        (
            f"[{method}](methods/{method}.md)",
            *(number(board.loc[method, "rank"], 2) for board in boards.values()),
            number(row["score"], 1),
            number(row["regret"], 4),
            number(1000 * row["seconds"], 2),
        )
        for method, row in boards[last].iterrows()
    ]
    ranks = [f">rank at {trial}" for trial in boards]
    return table(("method", *ranks, f">score at {last}", ">regret", ">ms per suggestion"), rows)
