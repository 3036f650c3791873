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
    """The definition of a YAHPO benchmark, and the surrogate of its network for one measure."""
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
    """Values of n random configurations."""
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
        # Twenty tasks, training fractions of 5 %, 10 %, ...
        task = benchmarks[key].tasks[round(20 * record["trainsize"]) - 1]
        assert task.context["train_fraction"] == pytest.approx(record["trainsize"], abs=1e-15)
        ours.append(task.evaluate(record["config"]))
        theirs.append(record["values"][target])
    assert len(records) == 160
    # yahpo-gym evaluates one row, where onnxruntime's logarithms round differently; in the times,
    # exponentials of wide ranges, and in scores near 0 a float32's last bit shows more.
    rtol = 3e-4 if target.startswith("time") else 1e-5
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0.0 if target == "auc" else 1e-7)


@pytest.mark.parametrize("task", [-1, len(FRACTIONS)])
def test_unknown_tasks_are_refused(shared, scenario, task):
    defined, surrogate = build(shared, scenario)
    values = draw(defined, 2)

    with pytest.raises(IndexError, match="task must be from"):
        surrogate.predict(values, task)
    with pytest.raises(IndexError, match="task must be from"):
        surrogate.predict_one(values[0], task)


def test_empty_batch_has_no_values(shared, scenario):
    defined, surrogate = build(shared, scenario)

    assert surrogate.predict(draw(defined, 1)[:0], TASK).shape == (0,)


def test_single_rows_agree_with_batch(shared, scenario):
    defined, surrogate = build(shared, scenario)
    # More than the network evaluates at once.
    values = draw(defined, 3 * BLOCK + 5)
    predictions = surrogate.predict(values, TASK)

    assert [surrogate.predict_one(row, TASK) for row in values[:100]] == predictions[:100].tolist()


def test_values_do_not_depend_on_batch(shared, scenario):
    defined, surrogate = build(shared, scenario)
    values = draw(defined, 3 * BLOCK + 5)
    predictions = surrogate.predict(values, TASK)
    rng = np.random.default_rng(1)
    sizes_around_limits = [1, 2, 3, GROUP, GROUP + 1, BLOCK - 1, BLOCK, BLOCK + 1]
    random_sizes = rng.integers(1, len(values), 12)

    for size in [*sizes_around_limits, *random_sizes]:
        rows = rng.permutation(len(values))[:size]
        np.testing.assert_array_equal(surrogate.predict(values[rows], TASK), predictions[rows])


def test_values_do_not_depend_on_threads(shared, monkeypatch):
    defined, surrogate = build(shared, "rpart")
    # More than two blocks, which several threads share.
    values = draw(defined, 2 * BLOCK + 1)
    results = set()
    for threads in ("1", "2", "3"):
        monkeypatch.setenv(onnx.THREADS_VARIABLE, threads)
        results.add(surrogate.predict(values, TASK).tobytes())
    assert len(results) == 1


def test_network_is_cut_to_one_output(shared):
    *_, model = files(shared, "rpart")

    # The rpart network has nine outputs.
    assert len(keep_output(model, column=2, width=9)) < len(model)


def test_network_of_another_width_stays_whole(shared):
    *_, model = files(shared, "rpart")

    # The rpart network has nine outputs, not eight.
    assert keep_output(model, column=2, width=8) is model


@pytest.mark.parametrize("content", [b"", b"not a network", b"\x3a\x7f\x00", b"\x3a\x00"])
def test_unreadable_network_is_refused(shared, content):
    defined, surrogate = build(shared, "rpart")
    surrogate.model = content

    with pytest.raises(ArtifactError, match="cannot be read"):
        surrogate.predict(draw(defined, 1), TASK)


def test_network_of_another_scenario_is_refused(shared):
    defined, surrogate = build(shared, "rpart")
    *_, surrogate.model = files(shared, "xgboost")

    with pytest.raises(ArtifactError, match="inputs"):
        surrogate.predict(draw(defined, 1), TASK)


def build_rpart(
    shared: Path,
    *,
    layout: onnx.Layout = SCENARIOS["rpart"].layout,
    changed_encoding: onnx.Encoding | None = None,
    instance: str = "1220",
) -> OnnxSurrogate:
    _, encoding, model = files(shared, "rpart")
    return OnnxSurrogate.for_space(
        model,
        space=define(shared, "rpart").space,
        layout=layout,
        encoding={**encoding, **(changed_encoding or {})},
        fixed={"task_id": instance, "repl": 10},
        varied={"trainsize": FRACTIONS},
        target="auc",
    )


def test_layout_of_other_hyperparameters_is_refused(shared):
    layout = SCENARIOS["rpart"].layout
    # The first number that the network takes is the hyperparameter cp.
    without_first = replace(layout, continuous=layout.continuous[1:])

    with pytest.raises(ArtifactError, match=r"do not belong together.*cp"):
        build_rpart(shared, layout=without_first)


def test_encoding_without_a_choice_is_refused(shared):
    with pytest.raises(ArtifactError, match="does not know 'impute"):
        build_rpart(shared, changed_encoding={"num.impute.selected.cpo": {"#na#": 0}})


def test_unknown_instance_is_refused(shared):
    with pytest.raises(ArtifactError, match=r"task_id.*does not know '7'"):
        build_rpart(shared, instance="7")
