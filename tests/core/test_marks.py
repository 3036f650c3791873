"""Marks: what they say of functions with known figures, and that they never go stale unseen."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from toy_artifacts import definition

import hpobench_ordered as hbo
from hpobench_ordered import Benchmark
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.marks import FILE, Marks, write_marks
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
    return np.maximum(x - 0.3, 0)


def benchmark(*functions: Function, best: float | None = 0.0) -> Benchmark:
    space = hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)])
    defined = definition(space, {f"t{i}": {"task": float(i)} for i in range(len(functions))})
    model, values = Functions(functions), [best] * len(functions)
    return Benchmark.build(defined, surrogate="exact", model=model, best_values=values)


def test_figures_of_functions_and_marks_of_two_thirds_of_the_tasks():
    alike = Marks.of(benchmark(rising, rising, rising))
    assert alike.near_best == pytest.approx(0.05 * 0.5, abs=0.01)  # the median is half-way
    assert alike.copying == pytest.approx(0, abs=0.001)
    assert alike.names == ("copying",)
    opposed = Marks.of(benchmark(rising, falling, rising))
    assert opposed.copying == pytest.approx(2, abs=0.1)  # the worst, twice as far as the median
    assert opposed.names == ()
    plateau = Marks.of(benchmark(flat, flat, best=None))
    assert plateau.near_best == pytest.approx(0.3 + 0.05 * 0.2, abs=0.02)
    assert plateau.names == ("plateau", "copying")
    assert Marks.of(benchmark(rising)).copying is None
    assert "plateau" in Marks.of(benchmark(flat, flat, rising)).names
    assert "plateau" not in Marks.of(benchmark(flat, rising, rising)).names
    assert "copying" in Marks.of(benchmark(rising, rising, rising, falling)).names
    assert "copying" not in Marks.of(benchmark(rising, rising, falling, rising)).names


def test_benchmarks_of_the_package_have_marks():
    """If not: `hpobench-ordered generate marks --output artifacts/marks.json`."""
    names = [*hbo.suite("othpo"), *hbo.suite("wide"), *hbo.suite("retrain"), "distbo-parkinsons"]
    marks = {name: benchmark_spec(name).marks for name in names if "rpart" not in name}
    assert [name for name, one in marks.items() if one is None] == []
    plateaus = {name for name, one in marks.items() if one and "plateau" in one.names}
    assert plateaus == {
        *(f"yahpo-glmnet-{k}" for k in (375, 40978, 41163, 40981, 41138)),
        *(f"yahpo-svm-{k}" for k in (458, 40966)),
        "distbo-parkinsons",
    }


def test_marks_are_computed_again_and_are_of_one_content_alone():
    spec = benchmark_spec("newsvendor")
    spec.marks.check(Marks.of(spec.load()))
    with pytest.raises(ArtifactError, match="recomputed"):
        replace(spec.marks, near_best=0.5).check(spec.marks)
    assert replace(spec, version=spec.version + 1).marks is None
    assert replace(spec, artifact=Artifact.packaged("xgboost-mnist")).marks is None
    others = (replace(spec.surrogates[0], name="another"), *spec.surrogates)
    assert replace(spec, surrogates=others).marks is None


def test_marks_of_ones_own_benchmark(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    spec = replace(benchmark_spec("forrester"), name="mine")
    assert spec.marks is None
    write_marks(tmp_path / FILE, [(spec.marked, Marks(0.2, None))], command="by hand")
    assert spec.marks == Marks(0.2, None)
    other = replace(spec, name="other")
    write_marks(tmp_path / FILE, [(other.marked, Marks(0.3, 0.1))], command="by hand")
    assert (spec.marks, other.marks) == (Marks(0.2, None), Marks(0.3, 0.1))
    (tmp_path / FILE).write_text(json.dumps({"benchmarks": {"mine@1": 3}}))
    with pytest.raises(ArtifactError, match="holds no marks"):
        _ = spec.marks
