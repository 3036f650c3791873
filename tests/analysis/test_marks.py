"""Marks: what they say of functions with known figures, and that they never go stale unseen."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from toy_artifacts import definition

import hpobench_ordered as hbo
from hpobench_ordered import Benchmark
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.marks import FILE, Marks, SourceOfMarks, find_marks, write_marks
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.registry import benchmark_spec

Function = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Functions:
    """A surrogate: a function of the only hyperparameter for every task."""

    functions: Sequence[Function]

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        return self.functions[task](values[:, 0])

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def rising(x: FloatArray) -> FloatArray:
    return x


def falling(x: FloatArray) -> FloatArray:
    return 1 - x


def flat(x: FloatArray) -> FloatArray:
    """A loss that is best, 0, for all x up to 0.3: a plateau."""
    return np.maximum(x - 0.3, 0)


def make_benchmark(*functions: Function, best: float | None = 0.0) -> Benchmark:
    """A benchmark with a task for each function of a hyperparameter from 0 to 1."""
    space = hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)])
    contexts = {f"t{number}": {"task": float(number)} for number in range(len(functions))}
    return Benchmark.build(
        definition(space, contexts),
        surrogate="exact",
        model=Functions(functions),
        best_values=[best] * len(functions),
    )


def test_equal_tasks_can_be_copied():
    """Losses are uniform from 0 to 1; near the best is up to 5 % of the way to the median."""
    marks = Marks.compute(make_benchmark(rising, rising, rising))
    median = 0.5
    assert marks.near_best == pytest.approx(0.05 * median, abs=0.01)
    assert marks.copying == pytest.approx(0, abs=0.001)
    assert marks.names == ("copying",)


def test_opposed_tasks_have_no_marks():
    """What is best on a task is worst on the next: twice as far from the best as the median."""
    marks = Marks.compute(make_benchmark(rising, falling, rising))
    assert marks.copying == pytest.approx(2, abs=0.1)
    assert marks.names == ()


def test_flat_tasks_are_plateaus():
    """The loss is best up to x = 0.3. The median, at x = 0.5, is 0.2 worse; 5 % of that is near."""
    marks = Marks.compute(make_benchmark(flat, flat, best=None))
    assert marks.near_best == pytest.approx(0.3 + 0.05 * 0.2, abs=0.02)
    assert marks.names == ("plateau", "copying")


def test_single_task_cannot_be_copied():
    assert Marks.compute(make_benchmark(rising)).copying is None


@pytest.mark.parametrize(
    ("functions", "mark", "is_marked"),
    [
        ((flat, flat, rising), "plateau", True),
        ((flat, rising, rising), "plateau", False),
        ((rising, rising, rising, falling), "copying", True),
        ((rising, rising, falling, rising), "copying", False),
    ],
)
def test_marks_need_two_thirds_of_tasks(functions, mark, is_marked):
    """A plateau counts tasks with many configurations near the best: those of `flat`.

    Copying counts tasks on which the best configuration of the task before is good: those of the
    same function as the task before. The first task has none before it.
    """
    names = Marks.compute(make_benchmark(*functions)).names
    assert (mark in names) == is_marked


def packaged_marks() -> dict[str, Marks | None]:
    """Find the marks of packaged benchmarks, by name; None where there are none."""
    names = [*hbo.suite("othpo"), *hbo.suite("wide"), *hbo.suite("retrain"), "distbo-parkinsons"]
    return {name: find_marks(benchmark_spec(name)) for name in names}


def test_packaged_benchmarks_have_marks():
    """If not: `hpobench-ordered generate marks --output artifacts/marks.json`."""
    without_marks = [name for name, marks in packaged_marks().items() if marks is None]
    assert without_marks == []


def test_plateaus_of_packaged_benchmarks():
    """The names of YAHPO's benchmarks end in the number of their data set."""
    plateaus = set()
    for name, marks in packaged_marks().items():
        if marks and "plateau" in marks.names:
            plateaus.add(name)
    assert plateaus == {
        "yahpo-glmnet-375",
        "yahpo-glmnet-40978",
        "yahpo-glmnet-41163",
        "yahpo-glmnet-40981",
        "yahpo-glmnet-41138",
        "yahpo-svm-458",
        "yahpo-svm-40966",
        "distbo-parkinsons",
    }


def test_stored_marks_equal_recomputed_ones():
    """`check` raises an error where they differ."""
    spec = benchmark_spec("newsvendor")
    recomputed = Marks.compute(spec.load())
    find_marks(spec).check(recomputed)


def test_check_refuses_other_figures():
    marks = Marks(near_best=0.2, copying=0.1)
    with pytest.raises(ArtifactError, match="recomputed"):
        replace(marks, near_best=0.5).check(marks)


NEWSVENDOR = benchmark_spec("newsvendor")


@pytest.mark.parametrize(
    "change",
    [
        {"version": NEWSVENDOR.version + 1},
        {"artifact": Artifact.packaged("xgboost-mnist")},
        {"surrogates": (replace(NEWSVENDOR.option(), name="another"), *NEWSVENDOR.surrogates)},
    ],
    ids=["version", "content", "default surrogate"],
)
def test_changed_benchmark_has_no_marks(change):
    assert find_marks(NEWSVENDOR) is not None
    assert find_marks(replace(NEWSVENDOR, **change)) is None


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """An empty folder where benchmarks of one's own, and their marks, are looked for."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    return tmp_path


def own_spec(name: str) -> BenchmarkSpec:
    return replace(benchmark_spec("forrester"), name=name)


def write_own_marks(folder: Path, name: str, marks: Marks) -> None:
    source = SourceOfMarks.from_spec(own_spec(name))
    write_marks(folder / FILE, [(source, marks)], command="by hand")


def test_own_benchmark_has_written_marks(own_folder):
    assert find_marks(own_spec("mine")) is None
    write_own_marks(own_folder, "mine", Marks(near_best=0.2, copying=None))
    assert find_marks(own_spec("mine")) == Marks(near_best=0.2, copying=None)


def test_writing_keeps_marks_of_other_benchmarks(own_folder):
    write_own_marks(own_folder, "mine", Marks(near_best=0.2, copying=None))
    write_own_marks(own_folder, "other", Marks(near_best=0.3, copying=0.1))
    assert find_marks(own_spec("mine")) == Marks(near_best=0.2, copying=None)
    assert find_marks(own_spec("other")) == Marks(near_best=0.3, copying=0.1)


def test_damaged_marks_are_refused(own_folder):
    (own_folder / FILE).write_text(json.dumps({"benchmarks": {"mine@1": 3}}))
    with pytest.raises(ArtifactError, match="holds no marks"):
        find_marks(own_spec("mine"))
