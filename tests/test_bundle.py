"""Artifacts of benchmarks: what is written is read back, what is malformed is refused."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.artifact import Artifact, ArtifactWriter
from hpobench_ordered.bundle import BENCHMARK, bundled_spec, folder_spec
from hpobench_ordered.errors import ArtifactError, UnknownNameError
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.table import TableSurrogate

PRICES = {"price_0": 9, "price_1": 9, "price_2": 9}
PACKAGED = Artifact.packaged("newsvendor")


def rewrite(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an artifact, hashes included."""
    artifact = Artifact(folder)
    files = {file: artifact.read(file) for file in artifact.sums()} | {name: data}
    with ArtifactWriter(folder) as writer:
        for file, content in files.items():
            writer.write_bytes(file, content)


def edit(folder: Path, change: Callable[[Any], None]) -> None:
    content = Artifact(folder).read_json(BENCHMARK)
    change(content)
    rewrite(folder, BENCHMARK, json.dumps(content).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder `newsvendor` with another benchmark in it: all values are 0."""
    path = tmp_path / "newsvendor"
    shutil.copytree(str(PACKAGED.folder), path)
    values = np.zeros((9, 21, 21, 21))
    arrays = TableSurrogate.from_values(values, lower=[0, 0, 0]).to_arrays()
    with ArtifactWriter(tmp_path / "arrays") as writer:
        writer.write_arrays("table.npz", arrays)
    rewrite(path, "table.npz", (tmp_path / "arrays" / "table.npz").read_bytes())
    return path


@pytest.mark.parametrize(
    "given", [Path("newsvendor"), Path("./newsvendor"), "./newsvendor", "x/../newsvendor"]
)
def test_a_path_is_never_taken_for_a_packaged_benchmark(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: "str | os.PathLike[str]"
) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "x").mkdir()
    spec = benchmark_spec(given)
    assert spec.name == folder.resolve().as_posix()
    monkeypatch.chdir("/")
    for name in (spec.name, spec.id, Path(spec.name)):
        assert hbo.load(name).tasks[0].evaluate(PRICES) == 0
        assert benchmark_spec(name).id == spec.id
    assert hbo.load("newsvendor").tasks[0].evaluate(PRICES) != 0
    with pytest.raises(UnknownNameError, match="newsvendor@1"):
        benchmark_spec(f"{spec.name}@2")


def test_a_slash_makes_a_path_on_every_system(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(os, "sep", "\\")
    assert benchmark_spec("./newsvendor").artifact is not None


def test_a_folder_whose_name_ends_like_a_version(folder: Path) -> None:
    other = folder.rename(folder.with_name("mine@3"))
    spec = benchmark_spec(other)
    assert spec.id.endswith("/mine@3@1")
    assert benchmark_spec(spec.id).id == spec.id


def test_content_tells_artifacts_of_one_name_apart(folder: Path) -> None:
    ours, theirs = benchmark_spec("newsvendor"), benchmark_spec(folder)
    assert ours.content == PACKAGED.digest != theirs.content
    family = benchmark_spec("yahpo-rpart-1220")
    assert (family.artifact, family.content) == (None, "")


def lose_a_best_value(content: Any) -> None:
    content["surrogates"]["table"]["best_values"].pop()


def lose_best_values(content: Any) -> None:
    del content["surrogates"]["table"]["best_values"]


def text_for_best_values(content: Any) -> None:
    content["surrogates"]["table"]["best_values"] = "ninevalue"


def unknown_kind(content: Any) -> None:
    content["surrogates"]["table"]["type"] = "CRYSTAL"


def lose_a_file(content: Any) -> None:
    content["surrogates"]["table"]["file"] = None


def text_for_surrogates(content: Any) -> None:
    content["surrogates"] = "table"


def no_surrogates(content: Any) -> None:
    content["surrogates"] = {}


def text_for_version(content: Any) -> None:
    content["version"] = "one"


def lose_space(content: Any) -> None:
    content["space"] = []


def text_for_a_task(content: Any) -> None:
    content["tasks"][0] = "first"


def widen_space(content: Any) -> None:
    more = {**content["space"]["hyperparameters"][0], "name": "price_3"}
    content["space"]["hyperparameters"].append(more)


def unknown_direction(content: Any) -> None:
    content["objective"]["direction"] = "up"


@pytest.mark.parametrize(
    "change",
    [
        lose_a_best_value,
        lose_best_values,
        text_for_best_values,
        unknown_kind,
        lose_a_file,
        text_for_surrogates,
        no_surrogates,
        text_for_version,
        lose_space,
        text_for_a_task,
        unknown_direction,
        widen_space,
    ],
)
def test_malformed_content_is_refused(folder: Path, change: Callable[[Any], None]) -> None:
    edit(folder, change)
    with pytest.raises(ArtifactError, match="newsvendor"):
        hbo.load(folder)


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[]", b"null", b'"text"', b"{}"])
def test_what_is_no_description_is_refused(folder: Path, text: bytes) -> None:
    rewrite(folder, BENCHMARK, text)
    with pytest.raises(ArtifactError, match="newsvendor"):
        hbo.load(folder)


def test_a_packaged_artifact_of_another_version() -> None:
    spec = bundled_spec("newsvendor", version=2, summary="", surrogates={"table": ""})
    with pytest.raises(ArtifactError, match="newsvendor@1 instead of newsvendor@2"):
        spec.load()


def test_a_packaged_artifact_of_another_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Artifact, "packaged", lambda _: Artifact(folder))
    spec = bundled_spec("paperboy", version=1, summary="", surrogates={"table": ""})
    with pytest.raises(ArtifactError, match="newsvendor@1 instead of paperboy@1"):
        spec.load()


def test_an_artifact_replaced_by_another_version_is_noticed(folder: Path) -> None:
    spec = folder_spec(folder)
    edit(folder, lambda content: content.update(version=2))
    with pytest.raises(ArtifactError, match="newsvendor@2 instead of newsvendor@1"):
        spec.load()


@pytest.mark.parametrize("name", hbo.list_benchmarks())
def test_specs_say_what_their_artifacts_say(name: str) -> None:
    spec = benchmark_spec(name)
    assert spec.artifact is not None
    content = spec.artifact.read_json(BENCHMARK)
    assert spec.summary == content["summary"]
    for option, listed in content["surrogates"].items():
        assert spec.option(option).summary == listed["summary"]
