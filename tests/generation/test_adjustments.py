"""Artifacts of adjusted search spaces, from a small made-up forest."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from by_hand import clip_config
from toy_artifacts import make_card, make_definition

from hpobench_ordered.benchmarks._adjustment import SpaceAdjustment, Steps
from hpobench_ordered.benchmarks.adjustments import SEARCHED
from hpobench_ordered.benchmarks.openml_flows import (
    SVM,
    XGBOOST,
    make_svm_space,
    make_xgboost_space,
)
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.best import search_best_values
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation import adjustments
from hpobench_ordered.generation.adjustments import generate
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates import bundle
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.testing import check_benchmark

BENCHMARK_AND_SPACE_OF_FLOW = {
    "svm": (SVM.name, make_svm_space()),
    "xgb": (XGBOOST.name, make_xgboost_space()),
}
"""Benchmark and whole space of each flow, by the start of the names of its adjustments (svm-a)."""
TASKS_OF_FOREST = ("3", "31", "44", "49")
"""Tasks of the made-up flow; their context n_rows is ten times their number."""
USED_TASKS = ("31", "49")
"""Those that the adjustment uses."""


def write_flow(folder: Path, adjustment: SpaceAdjustment, *, optimum: float = 0.3) -> BenchmarkSpec:
    """Write the benchmark that is adjusted, with a forest fitted to made-up evaluations.

    Configurations are best where all hyperparameters are at `optimum` of their range.
    """
    flow, _letter = adjustment.name.split("-")  # such as "svm" and "a"
    benchmark_name, space = BENCHMARK_AND_SPACE_OF_FLOW[flow]
    unit = space.sample_unit(np.random.default_rng(0), 400)
    distances = np.nansum((unit - optimum) ** 2, axis=1)
    aucs_of_tasks = [1 / (1 + distances + task) for task in range(len(TASKS_OF_FOREST))]
    forest = fit_forest(
        space.decode(unit),
        np.stack(aucs_of_tasks, axis=1),
        coding=space_coding(space),
        recipe=ForestRecipe(trees=5),
        seed=0,
    )
    definition_of_flow = make_definition(
        space,
        {task: {"n_rows": 10.0 * int(task)} for task in TASKS_OF_FOREST},
        name=benchmark_name,
        objective=Objective("auc", "", Direction.MAXIMIZE),
    )
    best_values = [1.0] * len(TASKS_OF_FOREST)
    surrogate = bundle.BundledSurrogate("forest", "Made up.", forest, best_values)
    card = make_card(TASKS_OF_FOREST, benchmark=benchmark_name, limits=("Nothing was trained.",))
    bundle.write_bundle(folder, definition_of_flow, [surrogate], card)
    return bundle.folder_spec(folder)


@pytest.fixture(autouse=True)
def quick_search(monkeypatch):
    """Make the search for best values, on which artifacts depend, short."""
    monkeypatch.setattr(adjustments, "search_best_values", partial(search_best_values, draws=1000))


def make_adjustment(packaged_adjustment: SpaceAdjustment, tmp_path: Path) -> SpaceAdjustment:
    """Make one of the package's adjustments, but of a small made-up forest, on two tasks."""
    base = write_flow(tmp_path / "base", packaged_adjustment)
    artifact = Artifact(tmp_path / packaged_adjustment.name)
    return replace(packaged_adjustment, base=base, artifact=artifact, tasks=USED_TASKS)


@pytest.fixture
def adjustment(tmp_path):
    """The first adjustment of the package, made small."""
    return make_adjustment(SEARCHED[0], tmp_path)


@pytest.fixture(params=SEARCHED, ids=lambda adjustment: adjustment.name)
def each_adjustment(request, tmp_path):
    """Each adjustment of the package in turn, made small."""
    return make_adjustment(request.param, tmp_path)


def load_both(adjustment: SpaceAdjustment) -> list[Benchmark]:
    """The benchmarks before and after the adjustment."""
    benchmark = adjustment.spec().load()
    assert benchmark.previous is not None
    return [benchmark.previous, benchmark]


def test_artifact_has_the_definition(each_adjustment, tmp_path):
    """Values come from the forest of the flow, so only what differs is written.

    The forest has four tasks, of which the adjustment uses 31 and 49. Step 1 is the search space
    before the adjustment, step 2 the one after it.
    """
    folder = generate(each_adjustment, Request(tmp_path / each_adjustment.name))

    names = {path.name for path in folder.iterdir()}
    assert names == {"SHA256SUMS", "benchmark.json", "card.json"}
    spec = each_adjustment.spec()
    assert spec.artifact is not None
    assert bundle.read_definition(spec.artifact) == spec.define()
    before, after = load_both(each_adjustment)
    assert before.space == each_adjustment.make_space(Steps.STEP_1)
    assert after.space == each_adjustment.make_space(Steps.STEP_2)
    # Made-up contexts are ten times the number of the task.
    contexts = {task.name: task.context["n_rows"] for task in after.tasks}
    assert contexts == {"31": 310.0, "49": 490.0}


@pytest.mark.slow
def test_generated_benchmarks_conform(each_adjustment, tmp_path):
    """Both benchmarks, before and after the adjustment, pass the public checks."""
    generate(each_adjustment, Request(tmp_path / each_adjustment.name))

    for benchmark in load_both(each_adjustment):
        check_benchmark(benchmark)


def test_values_are_those_of_the_forest(adjustment, tmp_path):
    """A configuration has the values that the forest of the flow predicts.

    Of one outside of the forest's search space, the nearest one inside it counts.
    """
    generate(adjustment, Request(tmp_path / adjustment.name))
    base = adjustment.base.load()
    rng = np.random.default_rng(1)
    for benchmark in load_both(adjustment):
        for _ in range(100):
            config = benchmark.space.sample(rng)
            # Hyperparameters that the adjustment leaves out have fixed values, `unlisted`.
            config_of_base = clip_config(base.space, {**adjustment.unlisted, **config})
            for task in benchmark.tasks:
                expected = base.task(task.name).evaluate(config_of_base)
                assert task.evaluate(config) == expected


def test_card_is_that_of_the_forest(adjustment, tmp_path):
    """The card keeps the forest's limits, and of its figures those of the tasks that are used."""
    folder = generate(adjustment, Request(tmp_path / adjustment.name, seed=1))

    card = bundle.read_card(Artifact(folder))
    assert card.benchmark == adjustment.name
    assert card.size == 0  # of surrogates, of which the artifact has none
    assert [quality.name for quality in card.figures] == list(USED_TASKS)
    assert "Nothing was trained." in card.limits
    assert card.command == f"hpobench-ordered generate {adjustment.name} --seed 1"


def test_best_values_of_other_forest_are_refused(adjustment, tmp_path):
    """Best values are those that were found on the forest, so they belong to no other."""
    generate(adjustment, Request(tmp_path / adjustment.name))

    # Replaces the forest by one with another optimum.
    write_flow(tmp_path / "base", adjustment, optimum=0.5)

    with pytest.raises(ArtifactError, match=f"generate {adjustment.name} again"):
        adjustment.spec().load()
