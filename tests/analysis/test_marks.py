"""Marks: what they say of functions with known figures, and that they never go stale unseen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from toy_artifacts import make_definition

import hpobench_ordered as hbo
from hpobench_ordered import Benchmark
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.marks import FILE_NAME, Marks, SourceOfMarks, find_marks, write_marks
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError

LossFunction = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class FunctionsOfTasks:
    """A surrogate whose tasks are functions of the only hyperparameter."""

    functions: Sequence[LossFunction]

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict losses of configurations, (n, 1), by the function of a task."""
        function = self.functions[task]
        (x,) = values.T
        return function(x)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def rising(x: FloatArray) -> FloatArray:
    return x


def falling(x: FloatArray) -> FloatArray:
    return 1 - x


def flat(x: FloatArray) -> FloatArray:
    """A loss that is best, 0, for all x up to 0.3: a plateau."""
    return np.maximum(x - 0.3, 0)


def make_benchmark(*functions: LossFunction, best: float | None = 0.0) -> Benchmark:
    """Make a benchmark with a task, t0, t1 and so on, for each function of x, from 0 to 1.

    `best` is the best known loss of each task.
    """
    space = hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)])
    context_of_task = {f"t{number}": {"task": float(number)} for number in range(len(functions))}
    return Benchmark.build(
        make_definition(space, context_of_task),
        surrogate="exact",
        model=FunctionsOfTasks(functions),
        best_values=[best] * len(functions),
    )


def test_equal_tasks_can_be_copied():
    """All tasks have the loss x, so that the best configuration of one is the best of the next.

    Copying it leaves a regret of 0, and so does the best on average on the other tasks. Near the
    best are losses of up to 5 % of the way to the median: here 2.5 % of configurations, too few to
    be a plateau.
    """
    marks = Marks.compute(make_benchmark(rising, rising, rising))
    median = 0.5
    assert marks.near_best == pytest.approx(0.05 * median, abs=0.01)
    assert marks.copying == pytest.approx(0, abs=0.001)
    assert marks.portfolio == pytest.approx(0, abs=0.001)
    assert marks.names == ("copying", "portfolio")


def test_opposed_tasks_have_no_marks():
    """The best configuration of the task before is the worst one, so it earns no mark.

    Its regret is 2: it is twice as far from the best as the median. So is the best on average on
    the other tasks, as two of these three are opposed.
    """
    marks = Marks.compute(make_benchmark(rising, falling, rising, falling))
    assert marks.copying == pytest.approx(2, abs=0.1)
    assert marks.portfolio == pytest.approx(2, abs=0.1)
    assert marks.names == ()


def test_flat_tasks_are_plateaus():
    """The loss is the best, 0, up to x = 0.3, and then rises to the median, 0.2, at x = 0.5.

    So near the best are x up to 0.3, and a little more: up to 5 % of the way to the median.
    """
    marks = Marks.compute(make_benchmark(flat, flat, best=None))
    assert marks.near_best == pytest.approx(0.3 + 0.05 * 0.2, abs=0.02)
    assert marks.names == ("plateau", "copying", "portfolio")


def test_single_task_is_solved_by_no_other():
    marks = Marks.compute(make_benchmark(rising))
    assert marks.copying is None
    assert marks.portfolio is None
    assert marks.names == ()


@pytest.mark.parametrize(
    ("functions", "is_plateau"), [((flat, flat, rising), True), ((flat, rising, rising), False)]
)
def test_plateau_needs_two_thirds_of_tasks(functions, is_plateau):
    """A plateau has many configurations near the best, on two thirds of its tasks at least.

    Here two of three tasks are so flat, or only one.
    """
    marks = Marks.compute(make_benchmark(*functions))
    assert ("plateau" in marks.names) == is_plateau


def find_packaged_marks() -> dict[str, Marks | None]:
    """Find the marks of packaged benchmarks, by name; None where there are none."""
    names = [*hbo.suite("othpo"), *hbo.suite("wide"), *hbo.suite("retrain"), "distbo-parkinsons"]
    return {name: find_marks(benchmark_spec(name)) for name in names}


def test_packaged_benchmarks_have_marks():
    """Marks are written by `hpobench-ordered generate marks --output artifacts/marks.json`."""
    without_marks = [name for name, marks in find_packaged_marks().items() if marks is None]
    assert without_marks == []


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


def make_own_spec(name: str) -> BenchmarkSpec:
    """Make the specification of a user's benchmark, which is forrester under another name."""
    return replace(benchmark_spec("forrester"), name=name)


def write_own_marks(folder: Path, name: str, marks: Marks) -> None:
    """Write marks of a user's benchmark to the file of marks in a folder."""
    source = SourceOfMarks.from_spec(make_own_spec(name))
    write_marks(folder / FILE_NAME, [(source, marks)], command="by hand")


def test_own_benchmark_has_written_marks(own_folder):
    """A user's benchmark has no marks until they are written to the user's folder."""
    assert find_marks(make_own_spec("mine")) is None
    marks = Marks(near_best=0.2, copying=None, portfolio=None)
    write_own_marks(own_folder, "mine", marks)
    assert find_marks(make_own_spec("mine")) == marks


def test_writing_keeps_marks_of_other_benchmarks(own_folder):
    marks_of_mine = Marks(near_best=0.2, copying=None, portfolio=None)
    marks_of_other = Marks(near_best=0.3, copying=0.1, portfolio=0.2)
    write_own_marks(own_folder, "mine", marks_of_mine)
    write_own_marks(own_folder, "other", marks_of_other)
    assert find_marks(make_own_spec("mine")) == marks_of_mine
    assert find_marks(make_own_spec("other")) == marks_of_other


def test_damaged_marks_are_refused(own_folder):
    (own_folder / FILE_NAME).write_text("{}")
    with pytest.raises(ArtifactError, match="holds no marks"):
        find_marks(make_own_spec("mine"))
