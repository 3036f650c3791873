"""The commands on benchmarks, runs and files."""

import json
import re
import shutil
import subprocess
from functools import partial

import pytest

from hpobench_ordered import SearchSpace, list_benchmarks, list_methods, load, suite
from hpobench_ordered.benchmarks.yahpo import remote_files
from hpobench_ordered.cli.benchmarks import format_column, parse_config
from hpobench_ordered.core import extras
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.registry import suites
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known

PRICES = ["price_0=9", "price_1=9", "price_2=9"]
FIRST = ["newsvendor", "--task", "0"]


def fails(result: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One clear message, on standard error alone."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words), result.stderr


def names(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [entry["name"] for entry in json.loads(result.stdout)]


def test_list_is_filtered(cli):
    assert names(cli("list", "--json")) == list_benchmarks()
    assert set(names(cli("list", "--suite", "othpo", "--json"))) == set(suite("othpo"))
    assert names(cli("list", "--ready", "--json")) == list_benchmarks(ready=True)
    assert names(cli("list", "--surrogate", "nearest-log", "--json")) == ["xgboost-mnist"]
    assert names(cli("list", "--surrogate", "nearest-log", "--ready", "--json")) == []
    assert names(cli("list", "MNIST", "--json")) == ["xgboost-mnist"]
    assert "no benchmark matches" in cli("list", "nothing-like-it").stderr
    fails(cli("list", "--surrogate", "forrest"), 2, "did you mean 'forest'")
    fails(cli("list", "--suite", "otpho"), 2, "did you mean 'othpo'")


def test_numbers_of_a_column_have_equally_many_decimals():
    assert format_column([182.6, 308.9, None]) == ["182.6", "308.9", "-"]
    assert format_column([3.0, 12.0]) == ["3", "12"]
    assert format_column([0.987654321, 0.5]) == ["0.987654", "0.500000"]
    assert format_column([0.0, -0.25]) == ["0.00", "-0.25"]
    assert format_column([None, None]) == ["-", "-"]
    assert format_column([1234567.5, 1.0]) == ["1234568", "1"]


def test_methods(cli):
    result = cli("methods")
    assert all(words in result.stdout for words in (*list_methods(), "earlier tasks"))
    assert names(cli("methods", "--json")) == list_methods()
    assert cli("--version").stdout.startswith("hpobench-ordered")


def test_info(cli):
    shown = cli("info", "yahpo-svm-1220").stdout
    parts = ("maximize auc", "kernel = radial", "train_fraction: 0.05", "Spearman", "Apache-2.0")
    assert all(part in shown for part in parts)
    described = json.loads(cli("info", "yahpo-svm-1220", "--json").stdout)
    tasks = load("yahpo-svm-1220").tasks
    assert [task["best_value"] for task in described["tasks"]] == [t.best_value for t in tasks]
    assert [task["context"] for task in described["tasks"]] == [dict(t.context) for t in tasks]
    assert SearchSpace.from_json(described["space"]) == tasks[0].space
    assert 0 < described["tasks"][0]["quality"]["spearman"] <= 1


def test_evaluate_and_what_to_fetch_before(cli, tmp_path):
    config = {"price_0": 9, "price_1": 9, "price_2": 9}
    expected = load("newsvendor").task("3").evaluate(config)
    result = cli("evaluate", "newsvendor", "--task", "3", *PRICES)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{expected!r}\n", "")
    config = ["learning_rate=0.1", "max_depth=6", "min_child_weight=1", "n_estimators=1e2"]
    assert float(cli("evaluate", "xgboost-mnist", "--task", "56", *config).stdout) > 0
    result = cli("evaluate", "xgboost-mnist", "--surrogate", "nearest", "--task", "56")
    fails(result, 1, "hpobench-ordered fetch xgboost-mnist --surrogate nearest")
    fails(cli("info", "yahpo-rpart-1220"), 1, "hpobench-ordered fetch yahpo-rpart-1220")
    (tmp_path / "copy.json").write_text("{}")
    result = cli("fetch", "xgboost-mnist", "--from", "copy.json")
    fails(result, 1, "copy.json is not the published")


def test_constants_are_read_as_they_are_written():
    unit = {"lower": 0.0, "upper": 1.0, "log": False, "default_value": 0.5}
    hyperparameters: list[dict[str, object]] = [
        {"type": "constant", "name": "k", "value": 3},
        {"type": "constant", "name": "flag", "value": True},
        {"type": "uniform_float", "name": "x", **unit},
    ]
    space = SearchSpace.from_json({"hyperparameters": hyperparameters, "conditions": []})
    assert parse_config(["k=3", "flag=True"], space) == {"k": 3, "flag": True}
    for word in ("k=abc", "k=4", "flag=False", "flag=1"):
        with pytest.raises(InvalidConfigError, match="is always"):
            space.row(parse_config([word, "x=0.5"], space))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["newsvendr", "--task", "0", *PRICES], ["did you mean 'newsvendor'"]),
        (["newsvendor", "--task", "9", *PRICES], ["unknown task", "'0', '1'", "tasks 0 to 8"]),
        (["newsvendor", "--task", "-1", *PRICES], ["unknown task '-1'", "tasks 0 to 8"]),
        ([*FIRST, *PRICES[:2]], ["'price_2' is missing", "[0, 20]"]),
        ([*FIRST, *PRICES, "price_3=1"], ["did you mean 'price_"]),
        ([*FIRST, *PRICES[:2], "price_2=nan"], ["an integer", "nan"]),
        ([*FIRST, *PRICES[:2], "price_2=low"], ["an integer", "'low'"]),
        ([*FIRST, *PRICES[:2], "price_2"], ["HYPERPARAMETER=VALUE"]),
        ([*FIRST, *PRICES, PRICES[0]], ["given twice"]),
    ],
)
def test_bad_evaluations(cli, words, message):
    fails(cli("evaluate", *words), 2, *message)


def test_networks_need_an_extra(cli, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda module: None)
    result = cli("evaluate", "yahpo-svm-1220", "--surrogate", "onnx", "--task", "5%")
    fails(result, 1, "'onnxruntime'", "pip install onnxruntime (or", "'.[onnx]'")
    fails(cli("fetch", "yahpo-svm-1220"), 1, "pip install onnxruntime")
    ready = names(cli("list", "--ready", "--json"))
    assert "yahpo-svm-1220" in ready and "fcnet" not in ready  # its forest is ready


@pytest.mark.slow
def test_fetched_files_are_verified_and_damage_is_found(cli, shared, tmp_path):
    copy = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
    assert cli("fetch", "xgboost-mnist", "--from", str(copy)).returncode == 0
    assert "forest [nearest]" not in cli("list").stdout
    folder = shared / "data" / "yahpo" / "yahpo_data-1.0.2"
    assert cli("fetch", "yahpo-rpart-1220", "--from", str(folder)).returncode == 0
    assert "minbucket" in cli("info", "yahpo-rpart-1220").stdout
    fails(cli("info", "yahpo-rpart-1221"), 2, "unknown instance", "did you mean '1220'")
    assert cli("verify", "xgboost-mnist", "yahpo-rpart-1220").returncode == 0
    (tmp_path / "cache" / remote_files("rpart")["model.onnx"].name).write_bytes(b"damage")
    result = cli("verify")
    assert result.returncode == 1
    (damaged,) = [line for line in result.stdout.splitlines() if line.startswith("damaged")]
    assert damaged.startswith("damaged  yahpo-SCENARIO-INSTANCE")
    assert "rbv2_rpart/model.onnx is damaged" in damaged


def test_verify(cli):
    result = cli("verify", "newsvendor", "svm-a", "forrester", "openml-ranger")
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok"] * 3 + ["-"]


def test_info_says_what_changed_in_the_search_space(cli):
    changes = [
        "activation_fn_1: was fixed to tanh, now relu or tanh",
        "activation_fn_2: was fixed to tanh, now relu or tanh",
        "lr_schedule: fixed to const before, now to cosine",
    ]
    lines = cli("info", "fcn-b").stdout.splitlines()
    start = lines.index("What changed in the search space since fcn-b-old:")
    assert lines[start + 1 : start + 5] == [*(f"  {line}" for line in changes), ""]
    previous = json.loads(cli("info", "fcn-b", "--json").stdout)["previous"]
    assert (previous["name"], previous["changes"]) == ("fcn-b-old", changes)
    assert SearchSpace.from_json(previous["space"]) == load("fcn-b").previous.space
    assert "What changed" not in cli("info", "newsvendor").stdout
    assert json.loads(cli("info", "newsvendor", "--json").stdout)["previous"] is None


def test_generate_and_load_by_path(cli, tmp_path):
    # Options may come before the name.
    assert cli("generate", "--output", "mine", "newsvendor").stdout == "mine/newsvendor\n"
    result = cli("evaluate", "mine/newsvendor", "--task", "0", *PRICES)
    assert result.stdout == cli("evaluate", "newsvendor", "--task", "0", *PRICES).stdout
    path = tmp_path / "mine" / "newsvendor" / "table.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    fails(cli("evaluate", "mine/newsvendor", "--task", "0", *PRICES), 1, "table.npz", "damaged")


def test_bad_generation(cli):
    fails(cli("generate", "newsvendr"), 2, "did you mean 'newsvendor'")
    fails(cli("generate", "xgboost-mnist", "--source", "training"), 2, "did you mean 'train'")
    fails(cli("generate", "xgboost-mnist", "--sizes", "a,b"), 2, "56,155,433")
    fails(cli("generate", "newsvendor", "--seed", "0"), 2, "does not take --seed", "no options")
    words = ["generate", "yahpo-svm-1220", "--from", "."]
    fails(cli(*words, "--sizes", "56"), 2, "--sizes", "it takes --from")
    fails(cli(*words, "--configs", "5"), 2, "at least 10 configurations")


@pytest.mark.slow
def test_generate_what_a_suite_lacks(cli, shared, tmp_path, monkeypatch):
    lacking = ["yahpo-xgboost-458", "yahpo-rpart-1220"]
    monkeypatch.setitem(suites(), "wide", ("newsvendor", *lacking, "yahpo-svm-40966"))
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))
    data = ("--from", str(shared / "data" / "yahpo"))
    words = ["run", "--suite", "wide", "--method", "random-search", "--workers", "1"]
    result = cli(*words, "--seeds", "1", "--trials", "2", "--tasks", "1", "--no-report")
    assert "2 more benchmarks of suite wide, such as yahpo-xgboost-458" in result.stderr
    assert "generate --suite wide" in result.stderr
    result = cli("generate", "--suite", "wide", *data, "--configs", "30")
    assert result.stdout.split() == [str(tmp_path / "own" / name) for name in lacking]
    listed = names(cli("list", "--suite", "wide", "--ready", "--json"))
    assert set(listed) == set(suites()["wide"])
    result = cli("generate", "--suite", "wide", *data)
    assert (result.returncode, result.stdout) == (0, "")
    assert "nothing to generate" in result.stderr
    fails(cli("generate", "--suite", "wid"), 2, "did you mean 'wide'")
    fails(cli("generate", "--suite", "wide", "newsvendor"), 2, "NAME of a benchmark or --suite")
    fails(cli("generate", "--seed", "0"), 2, "NAME of a benchmark or --suite")


@pytest.mark.slow
def test_run_and_report(cli, tmp_path):
    words = ["--benchmark", "newsvendor", "--seeds", "2", "--trials", "4", "--tasks", "3"]
    result = cli("run", *words, "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert "simple-ordered" in result.stdout and "won/tied/lost" in result.stdout
    report = tmp_path / "results" / "report"
    written = {p.relative_to(report): p.read_bytes() for p in report.rglob("*") if p.is_file()}
    names = {path.parts[0] for path in written}
    data = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv"}
    assert names == {"report.html", "summary.md", "figures", *data}
    assert f"and {len(written) - 1} more files" in result.stdout
    again = cli("report", "results")
    assert again.stdout == result.stdout
    for name, content in written.items():
        if name.suffix != ".pdf":  # vl-convert writes the parts of a PDF in any order
            assert (report / name).read_bytes() == content, name
    unreported = cli("run", *words, "--workers", "1", "--no-report")
    assert unreported.returncode == 0 and "won/tied/lost" in unreported.stdout
    board = cli("leaderboard", "results", "--trial", "2", "--json")
    assert {row["trial"] for row in json.loads(board.stdout)} == {2}


def test_leaderboard_of_several_benchmarks(cli):
    words = ("leaderboard", "--reference", "--suite", "adjustments")
    together, each = cli(*words).stdout, cli(*words, "--by", "benchmark").stdout
    assert "All 8 benchmarks" in together and "svm-a@1" not in together
    assert "All 8 benchmarks" in each and "svm-a@1 (" in each


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--benchmark", "newsvendr"], ["did you mean 'newsvendor'"]),
        (
            ["--history", "9"],
            ["ordered does not take --history", "--trials, --tasks, --simulated-w"],
        ),
        (
            ["--simulated-workers", "4", "--protocol", "adjustment"],
            ["adjustment does not take --simulated-w", "--first-trials, --trials, --first-me"],
        ),
        (["--protocol", "adjustment"], ["newsvendor@1 was never adjusted"]),
        (["--seeds", "none"], ["--seeds", "10-19"]),
        (["--seeds", "5-3"], ["--seeds"]),
        (["--surrogate", "xgboost-mnist=nearest", "--benchmark", "newsvendor"], ["not in the"]),
    ],
)
def test_bad_runs(cli, words, message, tmp_path):
    fails(cli("run", *words), 2, *message)
    assert list(tmp_path.iterdir()) == []


def test_benchmarks_beside_a_suite_and_their_state_as_json(cli):
    words = ["--suite", "synthetic", "--benchmark", "newsvendor", "--seeds", "1", "--trials", "2"]
    words += ["--tasks", "1", "--method", "random-search", "--workers", "1", "--no-report"]
    assert cli("run", *words).returncode == 0
    assert "ordered, 2 trials, tasks=1 " in cli("status", "results").stdout
    state = json.loads(cli("status", "results", "--json").stdout)
    run_on = {BenchmarkIdentity.parse(row["benchmark"]).name for row in state["counts"]}
    assert run_on == {*suite("synthetic"), "newsvendor"}
    assert [row["done"] for row in state["counts"]] == [1] * 5 and state["failures"] == []


def test_a_method_that_fails_has_a_line_and_earlier_methods_are_shown(cli, tmp_path):
    lines = ["class Bad:"]
    lines += [f"    def {name}(self, *given): 1 / 0" for name in ("__init__", "ask", "tell")]
    (tmp_path / "bad.py").write_text("\n".join(lines))
    words = ["--suite", "synthetic", "--trials", "2", "--tasks", "2", "--workers", "1"]
    words += ["--no-check", "--no-report"]
    assert cli("run", *words, "--seeds", "2", "--method", "bad.py:Bad").returncode == 1
    state = cli("status", "results").stdout
    assert [line.split()[:5] for line in state.splitlines() if "bad.Bad" in line] == [
        ["bad.Bad", "each", "of", "4", "benchmarks"],
        ["failed:", "bad.Bad", "on", "forrester-ordered@1,", "seed"],
    ]
    shown = cli("run", *words, "--seeds", "2", "--method", "simple-previous-no-bo").stdout
    assert all(f"{method} " in shown for method in ("bad.Bad", "simple-previous-no-bo"))


@pytest.mark.parametrize("width", [60, 100])
def test_sentences_are_as_wide_as_the_terminal(cli, width):
    shown = cli("leaderboard", "--reference", "--suite", "adjustments", COLUMNS=str(width)).stdout
    assert max(map(len, shown.splitlines())) <= width
    assert "best-first" in shown


def test_a_narrow_terminal_has_a_line_for_each_method(cli):
    shown = cli("leaderboard", "--reference", "--suite", "retrain", COLUMNS="80").stdout
    board = shown.partition("\nmethod")[2].partition("\n\n")[0].splitlines()[1:]
    assert all(re.match(r"[a-z-]+ +\d+\.\d\d ", line) for line in board) and len(board) > 30


def test_places_that_cannot_be(cli, tmp_path):
    words = ["run", "--benchmark", "newsvendor", "--seeds", "1", "--trials", "2", "--tasks", "1"]
    (tmp_path / "file").write_text("")
    fails(cli(*words, "--output", "file"), 1, "not a folder")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.json").write_text(json.dumps({"format": 1, "version": "9.9"}))
    fails(cli(*words, "--output", "other"), 1, "store format 1")
    (tmp_path / "empty").mkdir()
    fails(cli("report", "empty"), 1, "there are no runs in empty")
    fails(cli(*words, "--output", "file/results"), 1, "cannot write")
    result = cli("generate", "newsvendor", "--output", "file/x")
    fails(result, 1, "cannot write")
    assert "simulating" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("hpobench-ordered") is None, reason="the script is not installed")
def test_script_and_module_are_the_same_command(process):
    script = subprocess.run(["hpobench-ordered", "list"], capture_output=True, check=True)
    assert script.stdout.decode() == process("list").stdout
    fails(process("info", "newsvendr"), 2, "did you mean 'newsvendor'")
    fails(process("report", "."), 1, "no")


@pytest.mark.slow
def test_shells_complete_names(process):
    def completed(*words: str) -> set[str]:
        line = " ".join(["hpobench-ordered", *words])
        result = process(
            _HPOBENCH_ORDERED_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words))
        )
        assert result.returncode == 0, result.stderr
        return {entry.partition(",")[2] for entry in result.stdout.split()}

    assert completed("list", "--suite", "open") == {"openml"}
    assert completed("run", "--method", "simple-p") == {"simple-previous", "simple-previous-no-bo"}
    assert completed("run", "--benchmark", "newsvendor", "--surrogate", "") == {"table"}
