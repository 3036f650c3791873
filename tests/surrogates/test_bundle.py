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


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an artifact and its recorded hash, so that it does not count as damaged."""
    artifact = Artifact(folder)
    files = {file: artifact.read(file) for file in artifact.sums()} | {name: data}
    with ArtifactWriter(folder) as writer:
        for file, content in files.items():
            writer.write_bytes(file, content)


def edit_benchmark_file(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the JSON content of `benchmark.json` in place, and update its recorded hash."""
    content = Artifact(folder).read_json(BENCHMARK)
    change(content)
    replace_file(folder, BENCHMARK, json.dumps(content).encode())


@pytest.fixture
def zeros_folder(tmp_path):
    """A folder `newsvendor` with an artifact like the packaged one, but all of its values are 0."""
    path = tmp_path / "newsvendor"
    shutil.copytree(str(PACKAGED.folder), path)
    # Nine tasks, and three prices from 0 to 20.
    values = np.zeros((9, 21, 21, 21))
    arrays = TableSurrogate.from_values(values, lower=[0, 0, 0]).to_arrays()
    with ArtifactWriter(tmp_path / "arrays") as writer:
        writer.write_arrays("table.npz", arrays)
    replace_file(path, "table.npz", (tmp_path / "arrays" / "table.npz").read_bytes())
    return path


PATHS = [Path("newsvendor"), Path("./newsvendor"), "./newsvendor", "x/../newsvendor"]
"""Ways to write the path of the folder; the plain text "newsvendor" is a name, not a path."""


@pytest.fixture
def zeros_folder_here(zeros_folder, monkeypatch):
    """The folder of zeros, called `newsvendor`, in the current folder; beside it a folder `x`."""
    monkeypatch.chdir(zeros_folder.parent)
    (zeros_folder.parent / "x").mkdir()
    return zeros_folder


@pytest.mark.parametrize("path", PATHS)
def test_path_finds_the_folder(zeros_folder_here, path):
    """However the path is written, as "./newsvendor"; a packaged benchmark has the same name."""
    spec = benchmark_spec(path)

    assert spec.name == zeros_folder_here.resolve().as_posix()
    # The folder's benchmark is 0 everywhere, unlike the packaged one.
    assert hbo.load(path).tasks[0].evaluate(PRICES) == 0


@pytest.mark.usefixtures("zeros_folder_here")
def test_name_finds_the_packaged_benchmark():
    """A folder of the same name, whose values are all 0, lies in the current folder."""
    benchmark = hbo.load("newsvendor")

    assert benchmark.tasks[0].evaluate(PRICES) != 0


@pytest.mark.parametrize("attribute", ["name", "id"])
@pytest.mark.usefixtures("zeros_folder_here")
def test_spec_names_its_folder_from_everywhere(attribute, monkeypatch):
    """The name and the id hold the absolute path, so that they are valid in any current folder."""
    spec = benchmark_spec("./newsvendor")
    name = getattr(spec, attribute)

    monkeypatch.chdir("/")

    assert benchmark_spec(name).id == spec.id
    # The folder's benchmark is 0 everywhere, unlike the packaged one.
    assert hbo.load(name).tasks[0].evaluate(PRICES) == 0


def test_other_version_of_a_folder_is_refused(zeros_folder):
    # The artifact in the folder has version 1.
    with pytest.raises(UnknownNameError, match="newsvendor@1"):
        benchmark_spec(f"{zeros_folder}@2")


@pytest.mark.usefixtures("zeros_folder_here")
def test_slashes_make_paths_on_windows(monkeypatch):
    """Also where the separator of paths is a backslash, a text with a slash is a path."""
    monkeypatch.setattr(os, "sep", "\\")
    has_artifact = benchmark_spec("./newsvendor").artifact is not None
    # Before the assertion, as pytest needs the real separator.
    monkeypatch.undo()

    assert has_artifact


def test_folder_names_may_end_like_versions(zeros_folder):
    """An id is the folder, `@` and the version, here 1; the folder itself is called `mine@3`."""
    folder = zeros_folder.rename(zeros_folder.with_name("mine@3"))

    spec = benchmark_spec(folder)

    assert spec.id.endswith("/mine@3@1")
    assert benchmark_spec(spec.id).id == spec.id


def test_content_distinguishes_artifacts_of_one_name(zeros_folder):
    """The content of a spec is the digest of its artifact."""
    packaged = benchmark_spec("newsvendor")

    assert packaged.content == PACKAGED.digest
    assert benchmark_spec(zeros_folder).content != packaged.content


def test_benchmark_without_artifact_has_no_content():
    # Of data set 1220, YAHPO's network for rpart is downloaded, so nothing is packaged.
    spec = benchmark_spec("yahpo-rpart-1220")

    assert spec.artifact is None
    assert spec.content == ""


def test_benchmark_without_raw_evaluations_has_no_history(zeros_folder):
    """Neither the packaged newsvendor nor its copy in a folder has raw evaluations."""
    assert hbo.load("newsvendor").recorded is None
    assert hbo.load(zeros_folder).recorded is None


def test_missing_raw_evaluations_are_named():
    # The packaged newsvendor has none; the error names the file that would hold them.
    with pytest.raises(ArtifactError, match=EVALUATIONS_FILE):
        read_evaluations(PACKAGED)


TABLE = ("surrogates", "table")
REMOVE = "REMOVE"
"""Stands for removing an entry instead of changing it."""
ARRAY_NAMES = ("values", "objective", "spread", "training")


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((*TABLE, "best_values"), [0.0] * 8),  # one too few for nine tasks
        ((*TABLE, "best_values"), REMOVE),
        ((*TABLE, "best_values"), "ninevalue"),  # nine characters instead of nine numbers
        ((*TABLE, "type"), "CRYSTAL"),
        ((*TABLE, "file"), None),
        (("surrogates",), "table"),
        (("surrogates",), {}),
        (("version",), "one"),
        (("space",), []),
        (("space", "hyperparameters", 2), REMOVE),
        (("tasks", 0), "first"),
        (("objective", "direction"), "up"),
    ],
)
def test_malformed_content_is_refused(zeros_folder, keys, value):
    """One entry of `benchmark.json`, at a path of keys, is changed or removed."""

    def change(content):
        *outer_keys, last_key = keys
        entry = content
        for key in outer_keys:
            entry = entry[key]
        if value == REMOVE:
            del entry[last_key]
        else:
            entry[last_key] = value

    edit_benchmark_file(zeros_folder, change)

    # The error names the folder, which is called so.
    with pytest.raises(ArtifactError, match="newsvendor"):
        hbo.load(zeros_folder)


def make_spec_to_generate(folder: Path) -> BenchmarkSpec:
    """The spec of a newsvendor that users generate into a folder.

    Before it is generated, it is defined by a plan, whose summary is "planned".
    """
    plan = replace(read_definition(PACKAGED), summary="planned")
    return generated_spec(
        "newsvendor",
        folder,
        version=1,
        summary="",
        planned=lambda: plan,
        surrogates={"table": ""},
    )


@pytest.mark.parametrize("make_spec", [folder_spec, make_spec_to_generate])
def test_changed_version_of_folder_is_noticed(zeros_folder, make_spec):
    """The version changes from 1 to 2 after the spec of the folder was made, in either way."""
    spec = make_spec(zeros_folder)
    edit_benchmark_file(zeros_folder, lambda content: content.update(version=2))

    with pytest.raises(ArtifactError, match="newsvendor@2 instead of newsvendor@1"):
        spec.load()


@pytest.mark.parametrize(("name", "version"), [("newsvendor", 2), ("paperboy", 1)])
def test_packaged_artifact_must_fit_its_spec(monkeypatch, name, version):
    """Whatever the name, the artifact that is found is newsvendor's, of version 1."""
    monkeypatch.setattr(Artifact, "packaged", lambda _: PACKAGED)
    spec = bundled_spec(name, version=version, summary="", surrogates={"table": ""})

    with pytest.raises(ArtifactError, match=f"newsvendor@1 instead of {name}@{version}"):
        spec.load()


@pytest.mark.parametrize("name", BUNDLED)
def test_summaries_are_those_of_artifacts(name):
    """Specs repeat the summaries of benchmarks and surrogates, to list them without any reading."""
    spec = benchmark_spec(name)

    content = spec.artifact.read_json(BENCHMARK)

    assert spec.summary == content["summary"]
    for option, surrogate in content["surrogates"].items():
        assert spec.option(option).summary == surrogate["summary"]


def make_raw_evaluations() -> list[RawEvaluations]:
    """Random evaluations of newsvendor's nine tasks: five of the first, six of the second, ..."""
    rng = np.random.default_rng(0)
    all_evaluations = []
    for n in range(5, 14):
        evaluations = RawEvaluations(
            values=rng.integers(0, 21, (n, 3)).astype(np.float64),  # three prices from 0 to 20
            objective=rng.normal(size=n),
            spread=np.r_[np.nan, rng.random(n - 1)],  # NaN where it is not known
            training=np.arange(n) // 2,  # two evaluations of each training
        )
        all_evaluations.append(evaluations)
    return all_evaluations


@pytest.fixture
def recorded_folder(tmp_path):
    """A folder with the packaged newsvendor and, besides, raw evaluations."""
    path = tmp_path / "recorded"
    model, best_values = benchmark_spec("newsvendor").option().load()
    table = BundledSurrogate("table", "", model, best_values)
    definition = read_definition(PACKAGED)
    card = read_card(PACKAGED)
    write_bundle(path, definition, [table], card, evaluations=make_raw_evaluations())
    return path


@pytest.mark.parametrize("name", ARRAY_NAMES)
def test_raw_evaluations_are_read_as_written(recorded_folder, name):
    """Each of the arrays: configurations, values, spreads, and numbers of trainings."""
    evaluations_of_tasks = read_evaluations(Artifact(recorded_folder))

    for evaluations, expected in zip(evaluations_of_tasks, make_raw_evaluations(), strict=True):
        np.testing.assert_array_equal(getattr(evaluations, name), getattr(expected, name))


@pytest.mark.parametrize("name", ARRAY_NAMES)
def test_raw_evaluations_are_read_only(recorded_folder, name):
    """Each of the arrays: configurations, values, spreads, and numbers of trainings."""
    for evaluations in read_evaluations(Artifact(recorded_folder)):
        array = getattr(evaluations, name)
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_size_on_card_includes_raw_evaluations(recorded_folder):
    # The packaged newsvendor has the same surrogate, but no raw evaluations.
    assert read_card(Artifact(recorded_folder)).size > read_card(PACKAGED).size


def test_raw_evaluations_are_history(recorded_folder):
    benchmark = hbo.load(recorded_folder)

    history = benchmark.recorded()

    raw_evaluations = make_raw_evaluations()
    for task, raw, evaluations in zip(benchmark.tasks, raw_evaluations, history, strict=True):
        assert evaluations.task == task.name
        assert evaluations.context == task.context
        np.testing.assert_array_equal(evaluations.values, raw.values)
        # Losses are negated profits, which are maximised.
        np.testing.assert_array_equal(evaluations.losses, -raw.objective)


def test_history_is_read_once(recorded_folder):
    benchmark = hbo.load(recorded_folder)

    assert benchmark.recorded() is benchmark.recorded()


def test_unpickled_benchmark_has_same_history(recorded_folder):
    benchmark = hbo.load(recorded_folder)

    copy = pickle.loads(pickle.dumps(benchmark))

    for evaluations, expected in zip(copy.recorded(), benchmark.recorded(), strict=True):
        np.testing.assert_array_equal(evaluations.values, expected.values)


def test_evaluations_of_a_task_are_recorded_ones(recorded_folder):
    benchmark = hbo.load(recorded_folder)

    # All of task 2, as no number is asked for.
    evaluations = benchmark.evaluations(2, rng=np.random.default_rng(0))

    assert evaluations is benchmark.recorded()[2]


def test_fewer_evaluations_can_be_sampled(recorded_folder):
    benchmark = hbo.load(recorded_folder)

    # Three of the seven of task 2.
    evaluations = benchmark.evaluations(2, rng=np.random.default_rng(0), n=3)

    assert len(evaluations) == 3


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("values", np.zeros((0, 3))),  # nothing
        ("values", np.zeros(5)),  # no columns
        ("values", np.zeros((4, 3))),  # one row too few
        ("objective", np.zeros(4)),
        ("objective", np.full(5, np.nan)),
        ("spread", np.zeros(4)),
        ("training", np.zeros(4)),
    ],
)
def test_arrays_of_raw_evaluations_must_fit(name, array):
    """Of five evaluations of three prices, one array is replaced by one that does not fit."""
    five_evaluations = make_raw_evaluations()[0]

    with pytest.raises(ValueError, match=r"shapes|finite"):
        replace(five_evaluations, **{name: array})


def test_every_task_needs_raw_evaluations(tmp_path):
    definition = read_definition(PACKAGED)
    card = read_card(PACKAGED)
    of_two_tasks = make_raw_evaluations()[:2]

    with pytest.raises(ValueError, match="of 9 tasks, but got 2"):
        write_bundle(tmp_path / "x", definition, [], card, evaluations=of_two_tasks)
    # Nothing was written.
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("8/values", None),  # the array of the last task is missing
        ("0/objective", np.zeros(2)),  # two values of five
        ("1/values", np.full((6, 3), 21)),  # prices are from 0 to 20
    ],
)
def test_damaged_raw_evaluations_are_refused(recorded_folder, name, array):
    """One array is removed or, if `array` is not None, replaced.

    Its name begins with the number of its task, as "0/objective".
    """
    arrays = Artifact(recorded_folder).read_arrays(EVALUATIONS)
    damaged = {key: value for key, value in arrays.items() if key != name}
    if array is not None:
        damaged[name] = array
    # Another artifact is written to take its array file.
    other_folder = recorded_folder.with_name("arrays")
    with ArtifactWriter(other_folder) as writer:
        writer.write_arrays(EVALUATIONS, damaged)
    replace_file(recorded_folder, EVALUATIONS, (other_folder / EVALUATIONS).read_bytes())

    read_history = hbo.load(recorded_folder).recorded

    with pytest.raises(ArtifactError, match=EVALUATIONS_FILE):
        read_history()


def test_benchmark_to_be_generated_has_a_plan(tmp_path):
    spec = make_spec_to_generate(tmp_path / "missing")

    # There is nothing in the folder, so the plan, of this summary, defines the benchmark.
    assert spec.artifact is None
    assert spec.content == ""
    assert spec.define().summary == "planned"


def test_benchmark_to_be_generated_names_command(tmp_path):
    spec = make_spec_to_generate(tmp_path / "missing")

    assert not spec.option().is_ready
    with pytest.raises(NotFetchedError, match="hpobench-ordered generate newsvendor"):
        spec.load()


def test_spec_of_generated_benchmark_reads_artifact(recorded_folder):
    spec = make_spec_to_generate(recorded_folder)

    assert spec.is_local
    assert spec.content == Artifact(recorded_folder).digest
    # Not the summary of the plan, which is "planned".
    assert spec.define().summary == read_definition(PACKAGED).summary


def test_generated_benchmark_is_loaded(recorded_folder):
    benchmark = make_spec_to_generate(recorded_folder).load()

    assert benchmark.id == "newsvendor@1"
    # Newsvendor has nine tasks.
    assert len(benchmark.recorded()) == 9
