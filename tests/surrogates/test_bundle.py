"""Artifacts of benchmarks: what is written is read back, what is malformed is refused."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data import BenchmarkSpec
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.raw_evaluations import RAW_ARRAYS, RawEvaluations
from hpobench_ordered.errors import ArtifactError, NotFetchedError, UnknownNameError
from hpobench_ordered.surrogates.bundle import BENCHMARK as BENCHMARK_FILE
from hpobench_ordered.surrogates.bundle import EVALUATIONS as EVALUATIONS_FILE
from hpobench_ordered.surrogates.bundle import (
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

CONFIG = {"price_0": 9, "price_1": 9, "price_2": 9}
"""A configuration of newsvendor: it has three prices from 0 to 20, and nine tasks."""
ARTIFACTS = Path(str(resources.files("hpobench_ordered") / "artifacts"))
PACKAGED_NAMES = sorted(path.parent.name for path in ARTIFACTS.glob(f"*/{BENCHMARK_FILE}"))
PACKAGED_NEWSVENDOR = Artifact.packaged("newsvendor")


def replace_file(folder: Path, name: str, data: bytes) -> None:
    """Replace a file of an artifact and its recorded hash, so that it does not count as damaged."""
    artifact = Artifact(folder)
    files = {file: artifact.read(file) for file in artifact.sums()} | {name: data}
    with ArtifactWriter(folder) as writer:
        for file, content in files.items():
            writer.write_bytes(file, content)


def replace_array_file(folder: Path, name: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Replace an array file of an artifact and its recorded hash."""
    # Only a writer of artifacts writes array files, so that another artifact is written first.
    other_folder = folder.with_name("arrays")
    with ArtifactWriter(other_folder) as writer:
        writer.write_arrays(name, arrays)
    replace_file(folder, name, (other_folder / name).read_bytes())


def edit_benchmark_file(folder: Path, change: Callable[[Any], None]) -> None:
    """Change the JSON content of `benchmark.json` in place, and update its recorded hash."""
    content = Artifact(folder).read_json(BENCHMARK_FILE)
    change(content)
    replace_file(folder, BENCHMARK_FILE, json.dumps(content).encode())


@pytest.fixture
def newsvendor_folder(tmp_path):
    """A copy of newsvendor's packaged artifact in a folder `newsvendor`, with all values set to 0.

    The zeros tell the copy from the packaged benchmark of the same name.
    """
    folder = tmp_path / "newsvendor"
    shutil.copytree(str(PACKAGED_NEWSVENDOR.folder), folder)
    values = np.zeros((9, 21, 21, 21))  # tasks, and values of each of three prices
    arrays = TableSurrogate.from_values(values, lower=[0, 0, 0]).to_arrays()
    replace_array_file(folder, "table.npz", arrays)
    return folder


PATHS = [Path("newsvendor"), "./newsvendor"]
"""Ways to write the path of the folder; the plain text "newsvendor" is a name, not a path."""


@pytest.fixture
def newsvendor_folder_here(newsvendor_folder, monkeypatch):
    """The folder `newsvendor`, whose values are all 0, in the current folder.

    Beside it is an empty folder `x`.
    """
    monkeypatch.chdir(newsvendor_folder.parent)
    (newsvendor_folder.parent / "x").mkdir()
    return newsvendor_folder


@pytest.mark.parametrize("path", PATHS)
def test_path_finds_the_folder(newsvendor_folder_here, path):
    """However its path is written, a folder is not mistaken for the packaged benchmark newsvendor.

    All values of the folder's benchmark are 0, unlike those of the packaged one.
    """
    spec = benchmark_spec(path)

    assert spec.name == newsvendor_folder_here.resolve().as_posix()
    assert hbo.load(path).tasks[0].evaluate(CONFIG) == 0


def test_other_version_of_a_folder_is_refused(newsvendor_folder):
    """An id that names version 2 is refused for a folder whose artifact has version 1."""
    with pytest.raises(UnknownNameError, match="newsvendor@1"):
        benchmark_spec(f"{newsvendor_folder}@2")


def test_folder_names_may_end_like_versions(newsvendor_folder):
    """A folder called `mine@3` is found, although `@3` looks like a version.

    The id of a benchmark is its folder, `@` and its version, which is 1 here.
    """
    folder = newsvendor_folder.rename(newsvendor_folder.with_name("mine@3"))

    spec = benchmark_spec(folder)

    assert spec.id.endswith("/mine@3@1")
    assert benchmark_spec(spec.id).id == spec.id


def test_content_distinguishes_artifacts_of_one_name(newsvendor_folder):
    """The `content` of a spec is a hash of its artifact, which differs if the values differ.

    The packaged newsvendor and its copy, with other values, have the same name.
    """
    packaged = benchmark_spec("newsvendor")
    user_copy = benchmark_spec(newsvendor_folder)

    assert packaged.content == PACKAGED_NEWSVENDOR.digest
    assert user_copy.content != packaged.content


def test_benchmark_without_raw_evaluations_has_no_history(newsvendor_folder):
    """`recorded`, which would read the raw evaluations as a history, is None without any.

    The packaged newsvendor has no raw evaluations, so neither has the user's copy of its artifact.
    """
    packaged = hbo.load("newsvendor")
    user_copy = hbo.load(newsvendor_folder)

    assert packaged.recorded is None
    assert user_copy.recorded is None


def test_missing_raw_evaluations_are_named():
    """Reading raw evaluations that an artifact lacks is an error, which names their file.

    The packaged newsvendor has none.
    """
    with pytest.raises(ArtifactError, match=re.escape(EVALUATIONS_FILE)):
        read_evaluations(PACKAGED_NEWSVENDOR)


TABLE_ENTRY = ("surrogates", "table")
"""Keys of the entry of `benchmark.json` that describes newsvendor's only surrogate, a table."""
REMOVE = "REMOVE"
"""Stands for removing an entry instead of changing it."""


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((*TABLE_ENTRY, "best_values"), [0.0] * 8),  # one too few for nine tasks
        ((*TABLE_ENTRY, "type"), "CRYSTAL"),
        (("surrogates",), {}),
        (("space", "hyperparameters", 2), REMOVE),
        (("objective", "direction"), "up"),
    ],
)
def test_malformed_content_is_refused(newsvendor_folder, keys, value):
    """An artifact is refused after one entry of its `benchmark.json` was changed or removed.

    `keys` lead to the entry: the first one is a key of the whole file, the next one is a key of
    the entry found so far, and so on.
    """

    def change(content: Any) -> None:
        """Change or remove the entry at the end of the nested keys."""
        *outer_keys, last_key = keys
        entry = content
        for key in outer_keys:
            entry = entry[key]
        if value == REMOVE:
            del entry[last_key]
        else:
            entry[last_key] = value

    edit_benchmark_file(newsvendor_folder, change)

    with pytest.raises(ArtifactError, match=newsvendor_folder.name):
        hbo.load(newsvendor_folder)


def make_spec_to_generate(folder: Path) -> BenchmarkSpec:
    """The spec of newsvendor, as if it were a benchmark that users generate into a folder.

    Until it is generated, it is defined by a plan, whose summary is "planned".
    """

    def plan_benchmark() -> Definition:
        return replace(read_definition(PACKAGED_NEWSVENDOR), summary="planned")

    return generated_spec(
        "newsvendor",
        folder,
        version=1,
        summary="",
        planned=plan_benchmark,
        surrogates={"table": ""},
    )


@pytest.mark.parametrize("make_spec", [folder_spec, make_spec_to_generate])
def test_changed_version_of_folder_is_noticed(newsvendor_folder, make_spec):
    """The version in the folder changes from 1 to 2, after a spec was made of the folder.

    The folder is the user's own, or that of a benchmark which users generate.
    """
    spec = make_spec(newsvendor_folder)
    edit_benchmark_file(newsvendor_folder, lambda content: content.update(version=2))

    with pytest.raises(ArtifactError, match="newsvendor@2 instead of newsvendor@1"):
        spec.load()


@pytest.mark.parametrize(("name", "version"), [("newsvendor", 2), ("paperboy", 1)])
def test_packaged_artifact_must_fit_its_spec(monkeypatch, name, version):
    """A packaged benchmark is not loaded if its spec has another name or version than its artifact.

    The artifact is always that of newsvendor, version 1.
    """
    monkeypatch.setattr(Artifact, "packaged", lambda name: PACKAGED_NEWSVENDOR)
    spec = bundled_spec(name, version=version, summary="", surrogates={"table": ""})

    with pytest.raises(ArtifactError, match=f"newsvendor@1 instead of {name}@{version}"):
        spec.load()


@pytest.mark.parametrize("name", PACKAGED_NAMES)
def test_summaries_are_those_of_artifacts(name):
    """Specs repeat the summaries in artifacts, so that a list of benchmarks reads no artifact."""
    spec = benchmark_spec(name)

    content = spec.artifact.read_json(BENCHMARK_FILE)

    assert spec.summary == content["summary"]
    for option, surrogate in content["surrogates"].items():
        assert spec.option(option).summary == surrogate["summary"]


def make_raw_evaluations() -> list[RawEvaluations]:
    """Make random evaluations of newsvendor's nine tasks: five of task 0, six of task 1, ..."""
    rng = np.random.default_rng(0)
    all_evaluations = []
    for n in range(5, 5 + 9):
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
    """A folder with an artifact of newsvendor that also has the raw evaluations made above."""
    folder = tmp_path / "recorded"
    default_surrogate = benchmark_spec("newsvendor").option()
    model, best_values = default_surrogate.load()
    table = BundledSurrogate("table", "", model, best_values)
    definition = read_definition(PACKAGED_NEWSVENDOR)
    card = read_card(PACKAGED_NEWSVENDOR)
    write_bundle(folder, definition, [table], card, evaluations=make_raw_evaluations())
    return folder


def test_raw_evaluations_are_read_as_written(recorded_folder):
    """All arrays are read as they were written: configurations, values, spreads and trainings."""
    evaluations_of_tasks = read_evaluations(Artifact(recorded_folder))

    for evaluations, expected in zip(evaluations_of_tasks, make_raw_evaluations(), strict=True):
        for name in RAW_ARRAYS:
            np.testing.assert_array_equal(getattr(evaluations, name), getattr(expected, name))


def test_raw_evaluations_are_history(recorded_folder):
    """The history has the raw evaluations; as profits are maximised, losses are negated profits."""
    benchmark = hbo.load(recorded_folder)

    history = benchmark.recorded()

    raw_evaluations = make_raw_evaluations()
    for task, raw, evaluations in zip(benchmark.tasks, raw_evaluations, history, strict=True):
        assert evaluations.task == task.name
        assert evaluations.context == task.context
        np.testing.assert_array_equal(evaluations.values, raw.values)
        np.testing.assert_array_equal(evaluations.losses, -raw.objective)


def test_evaluations_of_a_task_are_recorded_ones(recorded_folder):
    """If evaluations are recorded, a benchmark returns them instead of evaluating random ones."""
    benchmark = hbo.load(recorded_folder)

    # No number is asked for, so all evaluations of task 2 are meant.
    evaluations = benchmark.evaluations(2, rng=np.random.default_rng(0))

    assert evaluations is benchmark.recorded()[2]


def test_every_task_needs_raw_evaluations(tmp_path):
    """Newsvendor has nine tasks, but evaluations are of two; nothing is written."""
    definition = read_definition(PACKAGED_NEWSVENDOR)
    card = read_card(PACKAGED_NEWSVENDOR)
    evaluations_of_two_tasks = make_raw_evaluations()[:2]

    with pytest.raises(ValueError, match="of 9 tasks, but got 2"):
        write_bundle(tmp_path / "x", definition, [], card, evaluations=evaluations_of_two_tasks)

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
    """One array of one task, such as "0/objective", is replaced or, if `array` is None, removed."""
    arrays = dict(Artifact(recorded_folder).read_arrays(EVALUATIONS_FILE))
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    replace_array_file(recorded_folder, EVALUATIONS_FILE, arrays)

    # They are read only when the history is asked for.
    read_history = hbo.load(recorded_folder).recorded

    with pytest.raises(ArtifactError, match=re.escape(EVALUATIONS_FILE)):
        read_history()


def test_benchmark_to_be_generated_has_a_plan(tmp_path):
    """Before a benchmark is generated, its spec has the summary of its plan, "planned"."""
    spec = make_spec_to_generate(tmp_path / "missing")

    assert spec.artifact is None
    assert spec.content == ""
    assert spec.define().summary == "planned"


def test_benchmark_to_be_generated_names_command(tmp_path):
    """Loading a benchmark that is not generated yet is an error, which says how to generate it."""
    spec = make_spec_to_generate(tmp_path / "missing")

    assert not spec.option().is_ready
    with pytest.raises(NotFetchedError, match="hpobench-ordered generate newsvendor"):
        spec.load()


def test_spec_of_generated_benchmark_reads_artifact(recorded_folder):
    """After a benchmark was generated, its spec is that of the artifact.

    The plan, whose summary is "planned", is not used any more.
    """
    spec = make_spec_to_generate(recorded_folder)

    assert spec.is_local
    assert spec.content == Artifact(recorded_folder).digest
    assert spec.define().summary == read_definition(PACKAGED_NEWSVENDOR).summary
