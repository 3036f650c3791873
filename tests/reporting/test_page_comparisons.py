"""What the page says of all benchmarks together, and of one landscape."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from hpobench_ordered.reporting import ReportInput
from hpobench_ordered.reporting.page.comparisons import (
    Together,
    differences_of,
    significance_table,
    speedup_table,
    speedups_of,
    wins_of,
    wins_table,
)
from hpobench_ordered.reporting.page.landscape import landscape
from hpobench_ordered.reporting.page.sections import _alone
from hpobench_ordered.reporting.scoring import (
    BenchmarkScores,
    Excluded,
    by_protocol,
    score_benchmarks,
)


@pytest.fixture(scope="module")
def items(page_input: ReportInput) -> list[BenchmarkScores]:
    """The benchmarks of the protocol that has most."""
    scored, _ = score_benchmarks(page_input.trials, page_input.overview.runs)
    return next(iter(by_protocol(scored).values()))


def final(items: list[BenchmarkScores], method: str) -> list[np.ndarray]:
    """Best losses after all trials on the tasks that count, (S, T) by benchmark."""
    return [item.losses[item.methods.index(method)].min(axis=-1)[:, 1:] for item in items]


def test_methods_are_those_that_are_compared_on_all_benchmarks(
    items: list[BenchmarkScores],
) -> None:
    together = Together.of(items)
    assert len(items) == 3
    assert set(together.methods) == set(items[0].methods) - {"cts"}
    assert together.about == "3 benchmarks"


def test_wins_are_summed_over_benchmarks(items: list[BenchmarkScores]) -> None:
    together = Together.of(items)
    wins = wins_of(together)
    a, b = (together.methods.index(method) for method in ("bo", "random-search"))
    pairs = zip(final(items, "bo"), final(items, "random-search"), strict=True)
    expected = sum(int((one < other).sum()) for one, other in pairs)
    assert wins.wins[a, b] == expected
    assert wins.contests[a, b] == sum(2 * item.seeds for item in items)
    table = wins_table(wins, together, "wins")
    lost = wins.contests[a, b] - expected
    assert table.rows[a][1 + b] == f"{expected}/0/{lost}"


def test_p_values_are_those_of_scipy(items: list[BenchmarkScores]) -> None:
    together = Together.of(items)
    table = significance_table(together, "significance")
    assert table is not None
    regret = {
        method: np.concatenate(
            [
                item.measures["normalised regret"]
                .values[item.methods.index(method)][:, 1:, -1]
                .mean(axis=0)
                for item in items
            ]
        )
        for method in together.methods
    }
    data = table.data.set_index(["method", "other"])
    for one, other in data.index:
        expected = stats.wilcoxon(regret[one] - regret[other], zero_method="zsplit").pvalue
        assert data.loc[(one, other), "p"] == pytest.approx(expected)
        assert data.loc[(one, other), "p_holm"] >= expected
    differences = differences_of(together)
    assert differences is not None
    assert differences.samples == 6


def adjusted(protocol: str) -> Together:
    index = pd.MultiIndex.from_product(
        [["bo", "random-search", "fast"], range(3), range(2), range(1, 21)],
        names=["method", "seed", "task", "trial"],
    )
    frame = pd.DataFrame(index=index).reset_index()
    frame["loss"] = -1.0 * frame["trial"] * frame["method"].map({"bo": 1, "fast": 2}).fillna(0.5)
    frame = frame.assign(
        benchmark="x@1",
        surrogate="table",
        protocol=protocol,
        task_name="t",
        value=frame["loss"],
        regret=frame["loss"] + 100,
        fallbacks=0,
    )
    scored, _ = score_benchmarks(frame)
    return Together.of(scored)


def test_speedups_are_over_the_method_before_the_adjustment() -> None:
    together = adjusted("adjustment(first_trials=9, trials=20, first_method=bo, tasks=None)")
    found = speedups_of(together)
    table = speedup_table(found, together, "speedup")
    assert table.header == ("method", "10 trials")
    # Twice as fast; half as fast, which reaches the target in its last trial.
    assert dict(table.rows) == {
        "bo": "1.00 (0%)",
        "fast": "2.00 (0%)",
        "random-search": "0.50 (0%)",
    }


def test_a_part_says_why_nothing_is_compared(items: list[BenchmarkScores]) -> None:
    alone = replace(items[0], methods=("bo",), excluded=())
    failed = replace(alone, excluded=(Excluded("cts", 1, 4),))
    other = replace(items[1], methods=("cts",))
    notes = [_alone(Together.of(given)) for given in ([alone], [failed], [alone, other])]
    assert notes[0] == "There is nothing to compare: only bo was run."
    assert "no other method has finished half of its planned seeds" in notes[1]
    assert "no two methods have finished half of their planned seeds on every one" in notes[2]


@pytest.mark.parametrize(
    "protocol", ["ordered(trials=20)", "adjustment(trials=20, first_method=other)"]
)
def test_no_speedups_without_such_a_method(protocol: str) -> None:
    assert speedups_of(adjusted(protocol)) == []


def test_a_landscape_is_drawn_in_what_explains_most(
    items: list[BenchmarkScores], page_input: ReportInput
) -> None:
    item = next(item for item in items if item.benchmark.startswith("newsvendor"))
    runs = page_input.overview.runs
    own = runs[(runs["benchmark"] == "newsvendor@1") & (runs["protocol"] == item.protocol)]

    def configurations(keys: Iterable[str], *, names: Iterable[str]) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            [(key, task, trial) for key in keys for task in range(3) for trial in range(1, 7)],
            columns=["key", "task", "trial"],
        )
        drawn = rng.random((len(frame), 4))
        frame["loss"] = frame["value"] = drawn[:, 1] + 0.5 * (drawn[:, 3] > 0.5)
        columns = {"noise": 0, "depth": 1, "constant": 2, "kind": 3}
        for name in names:
            frame[name] = drawn[:, columns[name]]
        if "constant" in frame:
            frame["constant"] = 1.0
        if "kind" in frame:
            frame["kind"] = np.where(frame["kind"] > 0.5, "a", "b")
        return frame

    every = ("noise", "depth", "constant", "kind")
    drawing = landscape(item, own, lambda keys: configurations(keys, names=every))
    assert drawing is not None
    assert {"depth", "kind"} <= set(drawing.data.columns)
    assert "noise" not in drawing.data.columns
    conditional = landscape(
        item,
        own,
        lambda keys: configurations(keys, names=every).assign(
            depth=lambda f: f["depth"].where(f["kind"] == "a"),
            noise=lambda f: f["noise"].where(f["kind"] == "b"),
            kind="a",
        ),
    )
    assert conditional is None  # one of the two is inactive everywhere
    few = ("depth", "constant")
    assert landscape(item, own, lambda keys: configurations(keys, names=few)) is None
