"""The public functions `run` and `report`, as in a notebook: more than once in a process."""

from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError


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


def test_methods_of_a_script_are_called_by_their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "__module__", "__main__")
    protocol = hbo.Ordered(trials=2, tasks=1)
    result = hbo.run(benchmarks=["newsvendor"], methods=[Own], seeds=[0], protocol=protocol)
    assert set(result.frame()["method"]) == {"Own"}


def test_a_loaded_benchmark_is_no_name() -> None:
    with pytest.raises(ExperimentError, match="by its name or path, got Benchmark"):
        hbo.run(benchmarks=[hbo.load("newsvendor")], methods=["bo"])  # type: ignore[list-item]
