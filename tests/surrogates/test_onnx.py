import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from yahpo_files import define, files

from hpobench_ordered.benchmarks.yahpo import FRACTIONS, SCENARIOS
from hpobench_ordered.core.benchmark import Benchmark, Definition
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import onnx
from hpobench_ordered.surrogates._onnx_graph import keep_output
from hpobench_ordered.surrogates.onnx import BLOCK, GROUP, OnnxSurrogate

TASK = 6


def build(
    shared: Path, scenario: str, instance: str = "1220", target: str = "auc"
) -> tuple[Definition, OnnxSurrogate]:
    defined, (_, encoding, model) = define(shared, scenario, instance), files(shared, scenario)
    surrogate = OnnxSurrogate.for_space(
        model,
        space=defined.space,
        layout=SCENARIOS[scenario].layout,
        encoding=encoding,
        fixed={"task_id": instance, "repl": 10},
        varied={"trainsize": FRACTIONS},
        target=target,
    )
    return defined, surrogate


@pytest.fixture(params=["rpart", "xgboost"])
def scenario(request):
    return str(request.param)


def draw(defined: Definition, n: int, seed: int = 0) -> np.ndarray:
    unit = defined.space.sample_unit(np.random.default_rng(seed), n)
    return defined.space.decode(unit)


@pytest.mark.parametrize(
    "target",
    [
        "auc",
        *(
            pytest.param(t, marks=pytest.mark.slow)
            for t in SCENARIOS["rpart"].layout.targets
            if t != "auc"
        ),
    ],
)
def test_agrees_with_yahpo_gym(shared, target):
    records = json.loads((shared / "reference" / "yahpo_gym_values.json").read_text())
    benchmarks: dict[tuple[str, str], Benchmark] = {}
    ours, theirs = [], []
    for record in records:
        key = record["scenario"].removeprefix("rbv2_"), record["instance"]
        if key not in benchmarks:
            defined, surrogate = build(shared, *key, target)
            benchmarks[key] = Benchmark.build(
                defined, surrogate="onnx", model=surrogate, best_values=[None] * 20
            )
        task = benchmarks[key].tasks[round(20 * record["trainsize"]) - 1]
        assert task.context["train_fraction"] == pytest.approx(record["trainsize"], abs=1e-15)
        ours.append(task.evaluate(record["config"]))
        theirs.append(record["values"][target])
    assert len(records) == 160
    # yahpo-gym evaluates one row, where onnxruntime's logarithms round differently; in the times,
    # exponentials of wide ranges, and in scores near 0 a float32's last bit shows more.
    rtol = 3e-4 if target.startswith("time") else 1e-5
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0.0 if target == "auc" else 1e-7)


def test_batches_have_the_values_of_their_rows(shared, scenario):
    defined, surrogate = build(shared, scenario)
    values = draw(defined, 3 * BLOCK + 5)
    whole = surrogate.predict(values, TASK)
    assert surrogate.predict(values[:0], TASK).shape == (0,)
    for other in (-1, len(FRACTIONS)):
        for predict, given in ((surrogate.predict, values), (surrogate.predict_one, values[0])):
            with pytest.raises(IndexError, match="task must be from"):
                predict(given, other)
    assert [surrogate.predict_one(row, TASK) for row in values[:100]] == whole[:100].tolist()
    rng = np.random.default_rng(1)
    sizes = [1, 2, 3, GROUP, GROUP + 1, BLOCK - 1, BLOCK, BLOCK + 1]
    for n in [*sizes, *rng.integers(1, len(values), 12)]:
        chosen = rng.permutation(len(values))[:n]
        np.testing.assert_array_equal(surrogate.predict(values[chosen], TASK), whole[chosen])


def test_values_do_not_depend_on_threads(shared, monkeypatch):
    defined, surrogate = build(shared, "rpart")
    values = draw(defined, 2 * BLOCK + 1)
    results = set()
    for threads in ("1", "2", "3"):
        monkeypatch.setenv(onnx.THREADS_VARIABLE, threads)
        results.add(surrogate.predict(values, TASK).tobytes())
    assert len(results) == 1


def test_cutting_keeps_a_network_of_another_width(shared):
    *_, model = files(shared, "rpart")
    assert keep_output(model, column=2, width=8) is model  # and is used whole
    assert len(keep_output(model, column=2, width=9)) < len(model)


@pytest.mark.parametrize("content", [b"", b"not a network", b"\x3a\x7f\x00", b"\x3a\x00", None])
def test_another_network_is_refused(shared, content):
    defined, surrogate = build(shared, "rpart")
    surrogate.model = files(shared, "xgboost")[-1] if content is None else content
    message = "inputs" if content is None else "cannot be read"
    with pytest.raises(ArtifactError, match=message):
        surrogate.predict(draw(defined, 1), TASK)


def test_files_that_do_not_belong_together_are_refused(shared):
    _, encoding, model = files(shared, "rpart")
    space = define(shared, "rpart").space
    layout = SCENARIOS["rpart"].layout
    varied = {"trainsize": FRACTIONS}

    def make(layout: onnx.Layout, encoding: onnx.Encoding, instance: str) -> OnnxSurrogate:
        fixed = {"task_id": instance, "repl": 10}
        return OnnxSurrogate.for_space(
            model, space=space, layout=layout, encoding=encoding, fixed=fixed, varied=varied,
            target="auc",
        )  # fmt: skip

    with pytest.raises(ArtifactError, match=r"do not belong together.*cp"):
        make(replace(layout, continuous=layout.continuous[1:]), encoding, "1220")
    with pytest.raises(ArtifactError, match="does not know 'impute"):
        make(layout, encoding | {"num.impute.selected.cpo": {"#na#": 0}}, "1220")
    with pytest.raises(ArtifactError, match=r"task_id.*does not know '7'"):
        make(layout, encoding, "7")
