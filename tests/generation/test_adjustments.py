"""Artifacts of adjusted search spaces, from a small made-up forest."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from by_hand import clip_config
from toy_artifacts import card_of, definition

from hpobench_ordered.benchmarks._adjustment import SpaceAdjustment, Steps
from hpobench_ordered.benchmarks.adjustments import SEARCHED
from hpobench_ordered.benchmarks.openml_flows import SVM, XGBOOST, svm_space, xgboost_space
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.core.objective import Direction, Objective
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.artifact import Artifact, ArtifactWriter
from hpobench_ordered.generation import adjustments
from hpobench_ordered.generation.adjustments import generate
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates import bundle
from hpobench_ordered.surrogates.best import best_known
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.testing import check_benchmark

FLOWS = {"svm": (SVM.name, svm_space()), "xgb": (XGBOOST.name, xgboost_space())}
"""Benchmark and whole space of each flow, by the start of the names of its adjustments (svm-a)."""
TASKS = ("3", "31", "44", "49")
"""Tasks of the made-up flow; their context n_rows is ten times their number."""
USED_TASKS = ("31", "49")
"""Those that the adjustment uses."""


def write_flow(folder: Path, adjustment: SpaceAdjustment, *, optimum: float = 0.3) -> BenchmarkSpec:
    """Write a benchmark of a flow, with a forest fitted to made-up evaluations of four tasks.

    Configurations are best where all hyperparameters are at `optimum` of their range.
    """
    flow, _ = adjustment.name.split("-")
    name, space = FLOWS[flow]
    unit = space.sample_unit(np.random.default_rng(0), 400)
    losses = np.nansum((unit - optimum) ** 2, axis=1)
    aucs = np.stack([1 / (1 + losses + task) for task in range(len(TASKS))], axis=1)
    forest = fit_forest(
        space.decode(unit),
        aucs,
        coding=space_coding(space),
        recipe=ForestRecipe(trees=5),
        seed=0,
    )
    definition_of_flow = definition(
        space,
        {task: {"n_rows": 10.0 * int(task)} for task in TASKS},
        name=name,
        objective=Objective("auc", "", Direction.MAXIMIZE),
    )
    best_values = [1.0] * len(TASKS)
    surrogate = bundle.BundledSurrogate("forest", "Made up.", forest, best_values)
    card = card_of(TASKS, benchmark=name, limits=("Nothing was trained.",))
    bundle.write_bundle(folder, definition_of_flow, [surrogate], card)
    return bundle.folder_spec(folder)


@pytest.fixture(params=SEARCHED, ids=lambda adjustment: adjustment.name)
def adjustment(request, tmp_path, monkeypatch):
    """Each adjustment in turn, on a made-up forest; the search for best values is short."""
    monkeypatch.setattr(adjustments, "best_known", partial(best_known, draws=3000))
    base = write_flow(tmp_path / "base", request.param)
    artifact = Artifact(tmp_path / request.param.name)
    return replace(request.param, base=base, artifact=artifact, tasks=USED_TASKS)


def load_both(adjustment: SpaceAdjustment) -> list[Benchmark]:
    """The benchmarks before and after the adjustment."""
    benchmark = adjustment.spec().load()
    assert benchmark.previous is not None
    return [benchmark.previous, benchmark]


def test_artifact_has_no_surrogate(adjustment, tmp_path):
    """Values come from the forest of the flow, so only what differs is written."""
    folder = generate(adjustment, Request(tmp_path / adjustment.name))

    names = {path.name for path in folder.iterdir()}
    assert names == {"SHA256SUMS", "benchmark.json", "card.json"}


def test_artifact_has_the_definition(adjustment, tmp_path):
    """The definition that was written is the one that the package makes."""
    generate(adjustment, Request(tmp_path / adjustment.name))

    spec = adjustment.spec()
    assert spec.artifact is not None
    assert bundle.read_definition(spec.artifact) == spec.define()


def test_tasks_are_those_of_the_adjustment(adjustment, tmp_path):
    """The adjustment uses the tasks 31 and 49 of four."""
    generate(adjustment, Request(tmp_path / adjustment.name))

    for benchmark in load_both(adjustment):
        assert [task.name for task in benchmark.tasks] == list(USED_TASKS)
        # Made-up contexts are ten times the number of the task.
        assert [task.context["n_rows"] for task in benchmark.tasks] == [310.0, 490.0]


def test_spaces_are_those_of_the_adjustment(adjustment, tmp_path):
    generate(adjustment, Request(tmp_path / adjustment.name))

    before, after = load_both(adjustment)
    assert before.space == adjustment.space(Steps.STEP_1)
    assert after.space == adjustment.space(Steps.STEP_2)


@pytest.mark.slow
def test_generated_benchmarks_conform(adjustment, tmp_path):
    """They pass the public checks of benchmarks."""
    generate(adjustment, Request(tmp_path / adjustment.name, seed=3))

    for benchmark in load_both(adjustment):
        check_benchmark(benchmark)


def test_values_are_those_of_the_forest(adjustment, tmp_path):
    """Where the adjusted space is wider than the forest's, its nearest configuration counts."""
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


def test_seed_decides_the_bytes(adjustment, tmp_path):
    # The seed is 0 by default.
    first = Artifact(generate(adjustment, Request(tmp_path / "first"))).digest
    second = Artifact(generate(adjustment, Request(tmp_path / "second"))).digest
    other = Artifact(generate(adjustment, Request(tmp_path / "other", seed=1))).digest

    assert first == second
    assert first != other


def test_card_is_that_of_the_forest(adjustment, tmp_path):
    """With the figures of the tasks that are used, and the limits of the forest."""
    folder = generate(adjustment, Request(tmp_path / "x"))

    card = bundle.read_card(Artifact(folder))
    assert card.benchmark == adjustment.name
    # The artifact stores no surrogate.
    assert card.size == 0
    assert [quality.name for quality in card.figures] == list(USED_TASKS)
    assert "Nothing was trained." in card.limits


def test_card_has_the_command(adjustment, tmp_path):
    folder = generate(adjustment, Request(tmp_path / "x", seed=1))

    command = bundle.read_card(Artifact(folder)).command
    assert command == f"hpobench-ordered generate {adjustment.name} --seed 1"


def test_best_values_of_other_forest_are_refused(adjustment, tmp_path):
    generate(adjustment, Request(tmp_path / adjustment.name))

    # Replaces the forest, on which best values were searched for, by one with another optimum.
    write_flow(tmp_path / "base", adjustment, optimum=0.5)

    with pytest.raises(ArtifactError, match=f"generate {adjustment.name} again"):
        adjustment.spec().load()


def test_malformed_best_values_are_refused(adjustment, tmp_path):
    """Those before the adjustment are missing."""
    folder = generate(adjustment, Request(tmp_path / adjustment.name))
    content = json.loads((folder / bundle.BENCHMARK).read_text())
    del content["best_values"]["forest"]["STEP_1"]
    # Written with new checksums, so that only the content is wrong.
    with ArtifactWriter(folder) as writer:
        writer.write_json(bundle.BENCHMARK, content)

    with pytest.raises(ArtifactError, match=r"malformed.*STEP_1"):
        adjustment.spec().load()
