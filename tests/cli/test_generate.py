"""The command `generate`."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from hpobench_ordered.generation.base import generators

SIZES = ("--sizes", "20,60", "--configs", "10", "--workers", "1")
WINE = ("--data", "sklearn:wine", "--model", "sklearn.tree:DecisionTreeClassifier")


def custom(name: str, *words: str) -> Sequence[str]:
    return ["generate", "custom", "--name", name, *words]


@pytest.mark.slow
def test_a_benchmark_of_ones_own_can_be_used_at_once(cli, tmp_path):
    result = cli(*custom("wine-tree", *WINE, *SIZES))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{tmp_path / 'own' / 'wine-tree'}\n"
    assert "hpobench-ordered run --benchmark wine-tree" in result.stderr
    assert "wine-tree@1" in cli("list").stdout
    info = cli("info", "wine-tree").stdout
    assert "minimize error" in info
    assert "generate custom --model sklearn.tree:DecisionTreeClassifier" in info
    run = cli("run", "--benchmark", "wine-tree", "--seeds", "2", "--trials", "4", "--workers", "1")
    assert run.returncode == 0, run.stderr
    assert "wine-tree@1" in run.stdout and "simple-ordered" in run.stdout
    again = cli(*custom("wine-tree", *WINE, *SIZES))
    assert (again.returncode, again.stdout) == (2, "")
    assert "--replace" in again.stderr


@pytest.mark.slow
def test_a_model_of_ones_own_lies_in_the_folder(process, tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
            import numpy as np

            class Constant:
                def __init__(self, level, *, mode, sign):
                    assert mode == "fast" and sign == -1
                    self.level = level
                def fit(self, x, y):
                    self.sum = self.level * len(y)
                def predict(self, x):
                    return np.full(len(x), self.sum)
        """)
    )
    (tmp_path / "space.json").write_text(
        '{"hyperparameters": [{"type": "uniform_float", "name": "level", "lower": 0, "upper": 9,'
        ' "log": false}]}'
    )
    (tmp_path / "table.csv").write_text("x,y\n" + "".join(f"{k},{k / 4}\n" for k in range(100)))
    words = ["--data", "table.csv", "--model", "mine:Constant", "--space", "space.json"]
    settings = ["--set", "mode=fast", "--set", "sign=-1"]
    workers = ["--sizes", "20,60", "--configs", "10", "--workers", "2"]
    result = process(*custom("line", *words, *settings, *workers, "--output", "made"))
    assert result.returncode == 0, result.stderr
    assert f"--benchmark {Path('made', 'line')}" in result.stderr
    assert float(process("evaluate", "made/line", "--task", "20", "level=3").stdout) > 0
    assert "Traceback" not in result.stderr
    failed = process(*custom("other", *words, *SIZES, "--set", "mode=slow", "--set", "sign=-1"))
    assert failed.returncode == 2
    assert "AssertionError" in failed.stderr and "Traceback" not in failed.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--name", "x", *WINE, "--sizes", "a,b"], 2, "56,155,433"),
        (["--name", "x", *WINE, "--sizes", "60", "--set", "depth"], 2, "KEYWORD=VALUE"),
        (["--name", "x", *WINE, "--sizes", "60", "--set", "depth=3"], 2, "'max_depth'"),
        (["--name", "newsvendor", *WINE, "--sizes", "60"], 2, "already"),
    ],
)
def test_what_cannot_be_is_said_in_one_message(cli, words, code, message, tmp_path):
    result = cli("generate", "custom", *words)
    assert (result.returncode, result.stdout) == (code, "")
    assert message in result.stderr and "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir()) or not list((tmp_path / "own").iterdir())


def test_help_tells_the_two_ways_apart(cli):
    both = " ".join(cli("generate", "--help").stdout.split())
    usage = "Usage: hpobench-ordered generate NAME [OPTIONS] hpobench-ordered generate custom"
    assert usage in both and "newsvendor --source simulation Simulates all" in both
    assert "custom --help Make a benchmark of your own" in both
    sources = [f"xgboost-mnist --source {source}" for source in ("published", "train")]
    assert both.index(sources[0]) < both.index(sources[1])  # the default one first
    for name in generators():  # data sets of one scenario are on one line
        stem, _, number = name.rpartition("-")
        assert f"{name} --source" in both or (f"{stem}-ID --source" in both and number in both)
    named = cli("generate", "newsvendor", "--help").stdout
    assert named.startswith("Usage: hpobench-ordered generate NAME [OPTIONS]")
    assert "--source" in named and "--model MODULE" not in named.partition("Examples")[0]


def test_marks_of_ones_own_file(cli, tmp_path):
    result = cli("generate", "marks", "quadratic", "forrester")
    path = tmp_path / "own" / "marks.json"
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == str(path)
    entries = json.loads(path.read_text())["benchmarks"]
    assert set(entries) == {"forrester@1", "quadratic@1"}
    assert "marks:     copying (" in cli("info", "quadratic").stdout
    (listed,) = json.loads(cli("list", "yahpo-svm-458", "--json").stdout)
    assert (listed["marks"], listed["family"]) == (["plateau", "copying"], "rbv2_svm")
    assert json.loads(cli("info", "yahpo-svm-458", "--json").stdout)["marks"]["near_best"] > 0.1
    assert "not computed" in cli("info", "openml-ranger").stdout
    path.write_text("{}")
    assert "holds no marks" in cli("info", "openml-ranger").stderr
