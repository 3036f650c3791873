"""Artifacts of adjusted search spaces, from a small made-up forest."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from by_hand import clipped
from toy_artifacts import card_of, definition

from hpobench_ordered.benchmarks._adjustment import SpaceAdjustment, Steps
from hpobench_ordered.benchmarks.adjustments import SEARCHED
from hpobench_ordered.benchmarks.openml_flows import SVM, XGBOOST, svm_space, xgboost_space
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
TASKS = ("3", "31", "44", "49")
USED = ("31", "49")


def write_flow(folder: Path, adjustment: SpaceAdjustment, *, shift: float = 0.0) -> BenchmarkSpec:
    """A flow's benchmark with a forest fitted to made-up evaluations of four tasks."""
    name, space = FLOWS[adjustment.name[:3]]
    unit = space.sample_unit(np.random.default_rng(0), 400)
    losses = np.nansum((unit - 0.3 - shift) ** 2, axis=1)
    targets = np.stack([1 / (1 + losses + k) for k in range(len(TASKS))], axis=1)
    recipe, coding = ForestRecipe(trees=5), space_coding(space)
    forest = fit_forest(space.decode(unit), targets, coding=coding, recipe=recipe, seed=0)
    defined = definition(
        space,
        {task: {"n_rows": 10.0 * int(task)} for task in TASKS},
        name=name,
        objective=Objective("auc", "", Direction.MAXIMIZE),
    )
    surrogate = bundle.BundledSurrogate("forest", "Made up.", forest, [1.0] * 4)
    card = card_of(TASKS, benchmark=name, limits=("Nothing was trained.",))
    bundle.write_bundle(folder, defined, [surrogate], card)
    return bundle.folder_spec(folder)


@pytest.fixture(params=SEARCHED, ids=lambda adjustment: adjustment.name)
def adjustment(request, tmp_path, monkeypatch):
    """An adjustment on a made-up forest, with a short search for its best values."""
    monkeypatch.setattr(adjustments, "best_known", partial(best_known, draws=3000))
    base = write_flow(tmp_path / "base", request.param)
    artifact = Artifact(tmp_path / request.param.name)
    return replace(request.param, base=base, artifact=artifact, tasks=USED)


@pytest.mark.slow
def test_a_generated_artifact_makes_the_benchmark(adjustment, tmp_path):
    folder = generate(adjustment, Request(tmp_path / adjustment.name, seed=3))
    assert {path.name for path in folder.iterdir()} == {"SHA256SUMS", "benchmark.json", "card.json"}
    spec = adjustment.spec()
    assert spec.previous is not None
    benchmark = spec.load()
    assert benchmark.previous is not None
    for one, step in ((benchmark.previous, Steps.STEP_1), (benchmark, Steps.STEP_2)):
        assert [task.name for task in one.tasks] == list(USED)
        assert [task.context["n_rows"] for task in one.tasks] == [310.0, 490.0]
        assert one.space == adjustment.space(step)
        check_benchmark(one)
    assert spec.artifact is not None
    assert bundle.read_definition(spec.artifact) == spec.define()


def test_values_are_those_of_the_forest(adjustment, tmp_path):
    """Beyond all evaluations trees are constant."""
    generate(adjustment, Request(tmp_path / adjustment.name))
    base, benchmark = adjustment.base.load(), adjustment.spec().load()
    assert benchmark.previous is not None
    rng = np.random.default_rng(1)
    for one in (benchmark.previous, benchmark):
        for config in (one.space.sample(rng) for _ in range(100)):
            within = clipped(base.space, {**adjustment.unlisted, **config})
            for task in one.tasks:
                assert task.evaluate(config) == base.task(task.name).evaluate(within)


def test_the_same_seed_gives_the_same_bytes_and_the_card_of_the_forest(adjustment, tmp_path):
    folders = [
        generate(adjustment, Request(tmp_path / str(turn), seed=seed))
        for turn, seed in enumerate((0, 0, 1))
    ]
    digests = [Artifact(folder).digest for folder in folders]
    assert digests[0] == digests[1] != digests[2]
    card = bundle.read_card(Artifact(folders[2]))
    assert (card.benchmark, card.size) == (adjustment.name, 0)
    assert [f.name for f in card.figures] == list(USED)
    assert card.command == f"hpobench-ordered generate {adjustment.name} --seed 1"
    assert "Nothing was trained." in card.limits


def test_best_values_of_another_forest_and_malformed_ones_are_refused(adjustment, tmp_path):
    folder = generate(adjustment, Request(tmp_path / adjustment.name))
    write_flow(tmp_path / "base", adjustment, shift=0.2)
    with pytest.raises(ArtifactError, match=f"generate {adjustment.name} again"):
        adjustment.spec().load()
    write_flow(tmp_path / "base", adjustment)
    content = json.loads((folder / bundle.BENCHMARK).read_text())
    del content["best_values"]["forest"]["STEP_1"]
    with ArtifactWriter(folder) as writer:
        writer.write_json(bundle.BENCHMARK, content)
    with pytest.raises(ArtifactError, match=r"malformed.*STEP_1"):
        adjustment.spec().load()
