"""The public functions `run` and `report`, as in a notebook: more than once in a process."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import hpobench_ordered as hbo
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.store import Store


class Own(hbo.Method):
    """Random search by another name."""

    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(self.rng)

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


def test_run_and_report_twice(tmp_path: Path) -> None:
    for name in ("first", "second"):
        result = hbo.run(
            benchmarks=["newsvendor"],
            methods=["random-search", "bo"],
            seeds=[0, 1],
            protocol=hbo.Ordered(trials=6, tasks=2),
            folder=tmp_path / "results",
        )
        report = hbo.report(result, tmp_path / name)
        assert all(path.exists() for path in report.files)
    assert hbo.report(tmp_path / "results", tmp_path / "third").files
    assert len(result.frame()) == 2 * 2 * 2 * 6
    assert repr(result).startswith("Results(4 runs in ")


def test_simulated_workers_from_the_command_line(tmp_path: Path) -> None:
    words = "--benchmark newsvendor --method random-search --seeds 1 --trials 3 --tasks 2"
    more = ["--workers", "1", "--simulated-workers", "2", "--output", str(tmp_path / "results")]
    result = CliRunner().invoke(app, ["run", *words.split(), *more])
    assert result.exit_code == 0, result.output
    (protocol,) = set(Store(tmp_path / "results").read()["protocol"])
    assert protocol == "ordered(trials=3, tasks=2, workers_simulated=2)"
    help_text = " ".join(CliRunner().invoke(app, ["run", "--help"]).output.split())
    assert "asked for before the first result is told" in help_text


def test_methods_of_a_script_are_called_by_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "__module__", "__main__")
    protocol = hbo.Ordered(trials=2, tasks=1)
    result = hbo.run(benchmarks=["newsvendor"], methods=[Own], seeds=[0], protocol=protocol)
    assert set(result.frame()["method"]) == {"Own"}


def test_a_loaded_benchmark_is_no_name() -> None:
    with pytest.raises(ExperimentError, match="by its name or path, got Benchmark"):
        hbo.run(benchmarks=[hbo.load("newsvendor")], methods=["bo"])  # type: ignore[list-item]
