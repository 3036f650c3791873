"""Surrogates that are YAHPO's networks: values of yahpo-gym, and batches."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from yahpo_files import define_benchmark, read_scenario

from hpobench_ordered.benchmarks.yahpo import FRACTIONS, SCENARIOS
from hpobench_ordered.data.benchmark import Benchmark, Definition, Task
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import onnx
from hpobench_ordered.surrogates.onnx import BLOCK as BLOCK_SIZE
from hpobench_ordered.surrogates.onnx import GROUP as GROUP_SIZE
from hpobench_ordered.surrogates.onnx import OnnxSurrogate

ANY_TASK = 6
"""One of the twenty tasks, where it does not matter which."""
MORE_THAN_THREE_BLOCKS = 3 * BLOCK_SIZE + 5
"""Configurations; the network evaluates at most a block at once."""


def build_surrogate(
    shared: Path, scenario: str, instance: str = "1220", target: str = "auc"
) -> tuple[Definition, OnnxSurrogate]:
    """The definition of a YAHPO benchmark, and the surrogate that is its network, for one measure.

    Besides hyperparameters, the network takes the data set (instance) and a number of repetitions,
    which are fixed, and the share of the data to train on, which varies from task to task.
    """
    definition = define_benchmark(shared, scenario, instance)
    _, encoding, network = read_scenario(shared, scenario)
    surrogate = OnnxSurrogate.for_space(
        network,
        space=definition.space,
        layout=SCENARIOS[scenario].layout,
        encoding=encoding,
        fixed={"task_id": instance, "repl": 10},
        varied={"trainsize": FRACTIONS},
        target=target,
    )
    return definition, surrogate


@pytest.fixture(params=["rpart", "xgboost"])
def scenario(request):
    return str(request.param)


def sample_values(definition: Definition, n: int) -> np.ndarray:
    """Coded values of n random configurations, (n, d)."""
    unit = definition.space.sample_unit(np.random.default_rng(0), n)
    return definition.space.decode(unit)


SLOW_TARGETS = [target for target in SCENARIOS["rpart"].layout.targets if target != "auc"]


@pytest.mark.parametrize(
    "target",
    ["auc", *(pytest.param(target, marks=pytest.mark.slow) for target in SLOW_TARGETS)],
)
def test_agrees_with_yahpo_gym(shared, target):
    """A measure has the values that yahpo-gym gave for 160 configurations, which are recorded.

    They are of several scenarios and instances: benchmarks of twenty tasks.
    """
    records = json.loads((shared / "reference" / "yahpo_gym_values.json").read_text())
    assert len(records) == 160
    build_once = cache(build_benchmark)

    values = []
    recorded_values = []
    for record in records:
        scenario = record["scenario"].removeprefix("rbv2_")
        benchmark = build_once(shared, scenario, record["instance"], target)
        task = find_task_of_share(benchmark, record["trainsize"])
        values.append(task.evaluate(record["config"]))
        recorded_values.append(record["values"][target])

    # yahpo-gym evaluates one row at a time, for which onnxruntime rounds logarithms differently.
    # That shows more in times, which are exponentials of wide ranges, and in scores near 0.
    rtol = 3e-4 if target.startswith("time") else 1e-5
    atol = 0.0 if target == "auc" else 1e-7
    np.testing.assert_allclose(values, recorded_values, rtol=rtol, atol=atol)


def build_benchmark(shared: Path, scenario: str, instance: str, target: str) -> Benchmark:
    """The benchmark whose surrogate is a YAHPO network, without any best values."""
    definition, surrogate = build_surrogate(shared, scenario, instance, target)
    unknown_best_values = [None] * len(FRACTIONS)
    return Benchmark.build(
        definition, surrogate="onnx", model=surrogate, best_values=unknown_best_values
    )


def find_task_of_share(benchmark: Benchmark, share: float) -> Task:
    """The task whose models are trained on this share of the data: 5 %, 10 %, ... or 100 %."""
    task = benchmark.tasks[round(20 * share) - 1]
    assert task.context["train_fraction"] == pytest.approx(share, abs=1e-15)
    return task


@pytest.mark.parametrize("task", [-1, len(FRACTIONS)])
def test_unknown_tasks_are_refused(shared, scenario, task):
    """Tasks are numbered from 0 to 19: 20 is too high, and -1 is not the last one."""
    definition, surrogate = build_surrogate(shared, scenario)
    values = sample_values(definition, 2)

    with pytest.raises(IndexError, match="task must be from"):
        surrogate.predict(values, task)
    with pytest.raises(IndexError, match="task must be from"):
        surrogate.predict_one(values[0], task)


def test_single_rows_agree_with_batch(shared, scenario):
    """A large batch is evaluated in blocks, single rows are not."""
    definition, surrogate = build_surrogate(shared, scenario)
    values = sample_values(definition, MORE_THAN_THREE_BLOCKS)
    predictions = surrogate.predict(values, ANY_TASK)

    single_predictions = [surrogate.predict_one(row, ANY_TASK) for row in values[:100]]

    assert single_predictions == predictions[:100].tolist()


def test_values_do_not_depend_on_batch(shared, scenario):
    """Batches are evaluated in blocks, and padded to whole groups of rows.

    Random subsets of rows have the same values as all rows, also around the sizes of both.
    """
    definition, surrogate = build_surrogate(shared, scenario)
    values = sample_values(definition, MORE_THAN_THREE_BLOCKS)
    predictions = surrogate.predict(values, ANY_TASK)
    rng = np.random.default_rng(1)
    sizes_of_groups = [1, 2, 3, GROUP_SIZE, GROUP_SIZE + 1]
    sizes_of_blocks = [BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1]
    random_sizes = rng.integers(1, len(values), 12)

    for size in [*sizes_of_groups, *sizes_of_blocks, *random_sizes]:
        rows = rng.permutation(len(values))[:size]
        np.testing.assert_array_equal(surrogate.predict(values[rows], ANY_TASK), predictions[rows])


def test_values_do_not_depend_on_threads(shared, monkeypatch):
    """Several threads share the blocks of a batch: more than two blocks here."""
    definition, surrogate = build_surrogate(shared, "rpart")
    values = sample_values(definition, 2 * BLOCK_SIZE + 1)

    distinct_predictions = set()
    for threads in ("1", "2", "3"):
        monkeypatch.setenv(onnx.THREADS_VARIABLE, threads)
        distinct_predictions.add(surrogate.predict(values, ANY_TASK).tobytes())

    assert len(distinct_predictions) == 1


@pytest.mark.parametrize("content", [b"", b"not a network"])
def test_unreadable_network_is_refused(shared, content):
    definition, surrogate = build_surrogate(shared, "rpart")
    surrogate.model = content

    with pytest.raises(ArtifactError, match="cannot be read"):
        surrogate.predict(sample_values(definition, 1), ANY_TASK)


def test_network_of_another_scenario_is_refused(shared):
    """The network of xgboost takes other inputs than the search space of rpart has."""
    definition, surrogate = build_surrogate(shared, "rpart")
    *_, surrogate.model = read_scenario(shared, "xgboost")

    with pytest.raises(ArtifactError, match="inputs"):
        surrogate.predict(sample_values(definition, 1), ANY_TASK)


def build_rpart(
    shared: Path,
    *,
    layout: onnx.Layout = SCENARIOS["rpart"].layout,
    changed_codes: onnx.Encoding | None = None,
    instance: str = "1220",
) -> OnnxSurrogate:
    """The surrogate that is rpart's network, with another layout of its inputs, or other codes.

    Args:
        layout: Which inputs the network takes, in which order.
        changed_codes: Numbers of choices, by hyperparameter, that replace YAHPO's.
        instance: The data set.
    """
    _, encoding, network = read_scenario(shared, "rpart")
    return OnnxSurrogate.for_space(
        network,
        space=define_benchmark(shared, "rpart").space,
        layout=layout,
        encoding={**encoding, **(changed_codes or {})},
        fixed={"task_id": instance, "repl": 10},
        varied={"trainsize": FRACTIONS},
        target="auc",
    )


def test_layout_of_other_hyperparameters_is_refused(shared):
    """The layout lacks the hyperparameter cp, the first number that the network takes."""
    layout = SCENARIOS["rpart"].layout
    without_cp = replace(layout, continuous=layout.continuous[1:])

    with pytest.raises(ArtifactError, match=r"do not belong together.*cp"):
        build_rpart(shared, layout=without_cp)


def test_encoding_without_a_choice_is_refused(shared):
    """No choice of a hyperparameter has a code, only the inactive hyperparameter, #na#."""
    only_inactive = {"num.impute.selected.cpo": {"#na#": 0}}

    with pytest.raises(ArtifactError, match="does not know 'impute"):
        build_rpart(shared, changed_codes=only_inactive)


def test_unknown_instance_is_refused(shared):
    with pytest.raises(ArtifactError, match=r"task_id.*does not know '7'"):
        build_rpart(shared, instance="7")
