"""The command `advise`: files of earlier tasks in, advice out."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_results import assert_fails
from exact_csv import read_exactly

import hpobench_ordered as hbo

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("rate", 1e-4, 1.0, log=True),
        hbo.Parameter.number("depth", 2, 9, integer=True),
        hbo.Parameter.choice("booster", ("tree", "linear")),
    ]
)
WORDS = {
    "history": "old.csv",
    "space": "space.json",
    "objective": "auc",
    "direction": "maximize",
    "task": "month",
    "trials": "4",
    "seeds": "2",
    "workers": "1",
}


def words(*methods: str, **options: str | None) -> list[str]:
    chosen = {name: value for name, value in (WORDS | options).items() if value is not None}
    named = [("method", m) for m in methods or ("random-search", "simple-previous")]
    return ["advise", *(w for n, v in [*chosen.items(), *named] for w in (f"--{n}", v))]


def months(jump: float, noise: float, *, tasks: int = 4, n: int = 40) -> pd.DataFrame:
    """What was evaluated; the best rate moves so far from month to month, and back."""
    frames = []
    for task in range(tasks):
        rng = np.random.default_rng(task)
        values = SPACE.decode(SPACE.sample_unit(rng, n))
        distance = (np.log10(values[:, 0]) + 0.5 + jump * (task % 2)) ** 2 / 4
        distance += ((values[:, 1] - 5) / 7) ** 2 + values[:, 2]
        auc = 0.9 - 0.1 * distance + rng.normal(0, noise, n)
        one = hbo.Evaluations(f"m{task}", {}, values, auc, space=SPACE, direction="maximize")
        frames.append(one.frame(task="month", objective="auc"))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def files(folder):
    (folder / "space.json").write_text(json.dumps(SPACE.to_json()))
    months(0, 0).to_csv(folder / "old.csv", index=False)
    return folder


@pytest.fixture
def advised(cli, files):
    """Takes advice on tasks of which each has the same optimum."""
    result = cli(*words(output="out"))
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_advice_keeps_runs_and_report(cli, advised):
    report = Path("out", "report", "report.html")
    assert f"report: {report}" in advised.stderr
    assert report.exists()
    assert cli("status", "out").returncode == 0


@pytest.mark.slow
def test_advice_shows_quality_of_surrogates(advised):
    quality, _, _ = advised.stdout.split("\n\n")
    lines = quality.splitlines()[2:]
    assert [line.split()[:2] for line in lines] == [[f"m{task}", "40"] for task in range(4)]
    assert "poor" not in advised.stdout + advised.stderr


@pytest.mark.slow
def test_advice_shows_best_method_first(advised):
    _, methods, _ = advised.stdout.split("\n\n")
    first, second = (line.split() for line in methods.splitlines()[2:])
    assert (first[0], first[-1]) == ("simple-previous", "yes")
    assert float(first[2]) <= float(second[2])


@pytest.mark.slow
def test_advice_says_that_copying_wins(advised):
    _, _, text = advised.stdout.split("\n\n")
    assert "After 4 trials simple-previous leaves least" in text
    assert "Copying wins: 4 trials of random-search, without any history," in text


@pytest.mark.slow
def test_advice_is_that_of_python(advised):
    columns = {"objective": "auc", "direction": "maximize", "task": "month"}
    earlier = hbo.history_from_frame(read_exactly("old.csv"), SPACE, **columns)
    options = {"methods": ["random-search", "simple-previous"], "trials": 4, "seeds": range(2)}
    advice = hbo.advise(earlier, space=SPACE, direction="maximize", **options)
    _, _, text = advised.stdout.split("\n\n")
    assert text.splitlines() == list(advice.sentences)


@pytest.mark.parametrize(
    ("options", "change", "code", "message"),
    [
        ({"history": "older.csv"}, None, 2, "unknown file 'older.csv'; did you mean 'old.csv'?"),
        ({"history": None}, None, 2, "give earlier tasks: --history FILE, or --storage URL"),
        ({"method": "simple-orderd"}, None, 2, "did you mean 'simple-ordered'"),
        ({}, lambda t: t[t["month"] < "m2"], 2, "at least 3 tasks, but got 2: 'm0', 'm1'"),
        ({}, lambda t: t.groupby("month").head(9), 2, "at least 10 different configurations"),
    ],
)
def test_wrong_input_is_named(cli, files, options, change, code, message):
    if change is not None:
        change(months(0, 0)).to_csv("old.csv", index=False)
    result = cli(*words(**options))
    assert_fails(result, code, message)


@pytest.mark.slow
def test_example_of_help_works(cli, files):
    """The same columns, and words that the command takes."""
    lines = cli("advise", "--help").stdout.split("Example")[1].splitlines()
    shell = " ".join(line.strip().removesuffix("\\") for line in lines[1:3]).split()
    assert shell[0] == "hpobench-ordered"
    result = cli(*shell[1:], "--method", "random-search", "--seeds", "1", "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert "After 15 trials random-search leaves least" in result.stdout
