"""Artifacts of benchmarks: what is written is read back, what is malformed is refused."""

import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError, NotFetchedError, UnknownNameError
from hpobench_ordered.files.artifact import Artifact, ArtifactWriter
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.bundle import (
    BENCHMARK,
    EVALUATIONS,
    BundledSurrogate,
    bundled_spec,
    folder_spec,
    generated_spec,
    read_card,
    read_definition,
    read_evaluations,
    write_bundle,
)
from hpobench_ordered.surrogates.table import TableSurrogate

PRICES = {"price_0": 9, "price_1": 9, "price_2": 9}
ARTIFACTS = Path(str(resources.files("hpobench_ordered") / "artifacts"))
BUNDLED = sorted(path.parent.name for path in ARTIFACTS.glob(f"*/{BENCHMARK}"))
PACKAGED = Artifact.packaged("newsvendor")
EVALUATIONS_FILE = re.escape(EVALUATIONS)


def rewrite(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an artifact, hashes included."""
    artifact = Artifact(folder)
    files = {file: artifact.read(file) for file in artifact.sums()} | {name: data}
    with ArtifactWriter(folder) as writer:
        for file, content in files.items():
            writer.write_bytes(file, content)


def edit(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the content of a benchmark's file, hashes included."""
    content = Artifact(folder).read_json(BENCHMARK)
    change(content)
    rewrite(folder, BENCHMARK, json.dumps(content).encode())


@pytest.fixture
def folder(tmp_path):
    """A folder `newsvendor` with another benchmark in it: all values are 0."""
    path = tmp_path / "newsvendor"
    shutil.copytree(str(PACKAGED.folder), path)
    values = np.zeros((9, 21, 21, 21))
    arrays = TableSurrogate.from_values(values, lower=[0, 0, 0]).to_arrays()
    with ArtifactWriter(tmp_path / "arrays") as writer:
        writer.write_arrays("table.npz", arrays)
    rewrite(path, "table.npz", (tmp_path / "arrays" / "table.npz").read_bytes())
    return path


PATHS = [Path("newsvendor"), Path("./newsvendor"), "./newsvendor", "x/../newsvendor"]


@pytest.fixture
def beside(folder, monkeypatch):
    """The folder, whose parent is the current folder."""
    monkeypatch.chdir(folder.parent)
    (folder.parent / "x").mkdir()
    return folder


@pytest.mark.parametrize("path", PATHS)
def test_path_finds_the_folder(beside, path):
    spec = benchmark_spec(path)
    assert spec.name == beside.resolve().as_posix()
    # The folder's benchmark is 0 everywhere, unlike the packaged one.
    assert hbo.load(path).tasks[0].evaluate(PRICES) == 0


@pytest.mark.usefixtures("beside")
def test_name_finds_the_packaged_benchmark():
    """A folder of the same name, whose values are all 0, lies in the current folder."""
    assert hbo.load("newsvendor").tasks[0].evaluate(PRICES) != 0


@pytest.mark.parametrize("attribute", ["name", "id"])
def test_spec_names_its_folder_from_everywhere(beside, attribute, monkeypatch):
    spec = benchmark_spec("./newsvendor")
    monkeypatch.chdir("/")
    name = getattr(spec, attribute)
    assert benchmark_spec(name).id == spec.id
    # The folder's benchmark is 0 everywhere, unlike the packaged one.
    assert hbo.load(name).tasks[0].evaluate(PRICES) == 0


def test_other_version_of_a_folder_is_refused(folder):
    with pytest.raises(UnknownNameError, match="newsvendor@1"):
        benchmark_spec(f"{folder}@2")


@pytest.mark.usefixtures("beside")
def test_slashes_make_paths_on_windows(monkeypatch):
    monkeypatch.setattr(os, "sep", "\\")
    has_artifact = benchmark_spec("./newsvendor").artifact is not None
    # Before the assertion, as pytest needs the real separator.
    monkeypatch.undo()
    assert has_artifact


def test_folder_names_may_end_like_versions(folder):
    spec = benchmark_spec(folder.rename(folder.with_name("mine@3")))
    # The name of the folder, then the version.
    assert spec.id.endswith("/mine@3@1")
    assert benchmark_spec(spec.id).id == spec.id


def test_content_distinguishes_artifacts_of_one_name(folder):
    packaged = benchmark_spec("newsvendor")
    assert packaged.content == PACKAGED.digest
    assert benchmark_spec(folder).content != packaged.content


def test_benchmark_without_artifact_has_no_content():
    spec = benchmark_spec("yahpo-rpart-1220")
    assert spec.artifact is None
    assert spec.content == ""


def test_missing_raw_evaluations_are_named(folder):
    """Neither the packaged newsvendor nor its copy in a folder has any."""
    assert hbo.load("newsvendor").recorded is None
    assert hbo.load(folder).recorded is None
    with pytest.raises(ArtifactError, match=EVALUATIONS_FILE):
        read_evaluations(PACKAGED)


TABLE = ("surrogates", "table")
NAMES = ("values", "objective", "spread", "training")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((*TABLE, "best_values"), [0.0] * 8),
        ((*TABLE, "best_values"), "LOST"),
        ((*TABLE, "best_values"), "ninevalue"),
        ((*TABLE, "type"), "CRYSTAL"),
        ((*TABLE, "file"), None),
        (("surrogates",), "table"),
        (("surrogates",), {}),
        (("version",), "one"),
        (("space",), []),
        (("space", "hyperparameters", 2), "LOST"),
        (("tasks", 0), "first"),
        (("objective", "direction"), "up"),
    ],
)
def test_malformed_content_is_refused(folder, place, value):
    """An entry of the benchmark's file, at a path of keys, is wrong or, with LOST, goes."""

    def change(content):
        for key in place[:-1]:
            content = content[key]
        if value == "LOST":
            del content[place[-1]]
        else:
            content[place[-1]] = value

    edit(folder, change)
    with pytest.raises(ArtifactError, match="newsvendor"):
        hbo.load(folder)


@pytest.mark.parametrize("is_generated", [False, True])
def test_changed_version_of_folder_is_noticed(folder, is_generated):
    """The file changes after the spec was made."""
    spec = generated(folder) if is_generated else folder_spec(folder)
    edit(folder, lambda content: content.update(version=2))
    with pytest.raises(ArtifactError, match="newsvendor@2 instead of newsvendor@1"):
        spec.load()


@pytest.mark.parametrize(("name", "version"), [("newsvendor", 2), ("paperboy", 1)])
# Every name leads to newsvendor's artifact, of version 1.
def test_packaged_artifact_must_fit_its_spec(monkeypatch, name, version):
    monkeypatch.setattr(Artifact, "packaged", lambda _: PACKAGED)
    spec = bundled_spec(name, version=version, summary="", surrogates={"table": ""})
    with pytest.raises(ArtifactError, match=f"newsvendor@1 instead of {name}@{version}"):
        spec.load()


@pytest.mark.parametrize("name", BUNDLED)
def test_summaries_are_those_of_artifacts(name):
    spec = benchmark_spec(name)
    content = spec.artifact.read_json(BENCHMARK)
    assert spec.summary == content["summary"]
    for option, surrogate in content["surrogates"].items():
        assert spec.option(option).summary == surrogate["summary"]


def raw_evaluations(n: int = 5) -> list[RawEvaluations]:
    """Evaluations of each of newsvendor's tasks, the spread of the first of them unknown."""
    rng = np.random.default_rng(0)
    # Each task has one evaluation more than the task before.
    return [
        RawEvaluations(
            values=rng.integers(0, 21, (n + task, 3)).astype(np.float64),
            objective=rng.normal(size=n + task),
            spread=np.r_[np.nan, rng.random(n + task - 1)],
            training=np.arange(n + task) // 2,
        )
        for task in range(9)
    ]


@pytest.fixture
def recorded(tmp_path):
    """A newsvendor with raw evaluations."""
    path = tmp_path / "recorded"
    model, best_values = benchmark_spec("newsvendor").option().load()
    table = BundledSurrogate("table", "", model, [value or 0.0 for value in best_values])
    write_bundle(
        path, read_definition(PACKAGED), [table], read_card(PACKAGED), evaluations=raw_evaluations()
    )
    return path


@pytest.mark.parametrize("name", NAMES)
def test_raw_evaluations_are_read_as_written(recorded, name):
    read = read_evaluations(Artifact(recorded))
    for raw, expected in zip(read, raw_evaluations(), strict=True):
        np.testing.assert_array_equal(getattr(raw, name), getattr(expected, name))


@pytest.mark.parametrize("name", NAMES)
def test_raw_evaluations_are_read_only(recorded, name):
    for raw in read_evaluations(Artifact(recorded)):
        with pytest.raises(ValueError, match="read-only"):
            getattr(raw, name)[:] = 0


def test_card_counts_raw_evaluations(recorded):
    # The size includes them.
    assert read_card(Artifact(recorded)).size > read_card(PACKAGED).size


def test_raw_evaluations_are_history(recorded):
    benchmark = hbo.load(recorded)
    history = benchmark.recorded()
    for task, raw, evaluations in zip(benchmark.tasks, raw_evaluations(), history, strict=True):
        assert evaluations.task == task.name
        assert evaluations.context == task.context
        np.testing.assert_array_equal(evaluations.values, raw.values)
        np.testing.assert_array_equal(evaluations.losses, -raw.objective)  # profits are maximised


def test_history_is_read_once(recorded):
    benchmark = hbo.load(recorded)
    assert benchmark.recorded() is benchmark.recorded()


def test_unpickled_benchmark_has_same_history(recorded):
    benchmark = hbo.load(recorded)
    copy = pickle.loads(pickle.dumps(benchmark))
    for evaluations, expected in zip(copy.recorded(), benchmark.recorded(), strict=True):
        np.testing.assert_array_equal(evaluations.values, expected.values)


def test_recorded_evaluations_of_a_task(recorded):
    benchmark = hbo.load(recorded)
    assert benchmark.evaluations(2, rng=np.random.default_rng(0)) is benchmark.recorded()[2]


def test_sample_of_recorded_evaluations(recorded):
    benchmark = hbo.load(recorded)
    assert len(benchmark.evaluations(2, rng=np.random.default_rng(0), n=3)) == 3


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("values", np.zeros((0, 3))),
        ("values", np.zeros(5)),
        ("objective", np.full(5, np.nan)),
        ("values", np.zeros((4, 3))),
        ("objective", np.zeros(4)),
        ("spread", np.zeros(4)),
        ("training", np.zeros(4)),
    ],
)
def test_arrays_of_raw_evaluations_must_fit(name, array):
    """One array of five evaluations has another length, another shape, or no finite numbers."""
    with pytest.raises(ValueError, match=r"shapes|finite"):
        replace(raw_evaluations()[0], **{name: array})


def test_every_task_needs_raw_evaluations(tmp_path):
    definition, card = read_definition(PACKAGED), read_card(PACKAGED)
    with pytest.raises(ValueError, match="of 9 tasks, but got 2"):
        write_bundle(tmp_path / "x", definition, [], card, evaluations=raw_evaluations()[:2])
    # Nothing was written.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change", [{"8/values": None}, {"0/objective": np.zeros(2)}, {"1/values": np.full((6, 3), 21)}]
)
def test_damaged_raw_evaluations_are_refused(recorded, change):
    """An array is missing, too short, or off the grid of prices from 0 to 20."""
    arrays = {**Artifact(recorded).read_arrays(EVALUATIONS), **change}
    with ArtifactWriter(recorded.with_name("arrays")) as writer:
        present = {name: array for name, array in arrays.items() if array is not None}
        writer.write_arrays(EVALUATIONS, present)
    rewrite(recorded, EVALUATIONS, (recorded.with_name("arrays") / EVALUATIONS).read_bytes())
    recordings = hbo.load(recorded).recorded
    with pytest.raises(ArtifactError, match=EVALUATIONS_FILE):
        recordings()


def generated(folder: Path) -> BenchmarkSpec:
    """The spec of a newsvendor that a user generates into a folder."""
    planned = replace(read_definition(PACKAGED), summary="planned")
    settings = {"version": 1, "summary": "", "surrogates": {"table": ""}}
    return generated_spec("newsvendor", folder, planned=lambda: planned, **settings)


def test_benchmark_to_be_generated_has_a_plan(tmp_path):
    spec = generated(tmp_path / "missing")
    assert spec.artifact is None
    assert spec.content == ""
    # What it will be is known before it is generated.
    assert spec.define().summary == "planned"


def test_benchmark_to_be_generated_names_command(tmp_path):
    spec = generated(tmp_path / "missing")
    assert not spec.option().is_ready
    with pytest.raises(NotFetchedError, match="hpobench-ordered generate newsvendor"):
        spec.load()


def test_spec_of_generated_benchmark_reads_artifact(recorded):
    spec = generated(recorded)
    assert spec.is_local
    assert spec.content == Artifact(recorded).digest
    assert spec.define().summary == read_definition(PACKAGED).summary


def test_generated_benchmark_is_loaded(recorded):
    benchmark = generated(recorded).load()
    assert benchmark.id == "newsvendor@1"
    # Of each of nine tasks.
    assert len(benchmark.recorded()) == 9
