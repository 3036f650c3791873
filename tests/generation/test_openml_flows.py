"""From evaluations of OpenML's flows to artifacts; trainings and downloads are stubs."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks._openml_data import ClassificationData
from hpobench_ordered.benchmarks.openml_flows import RANGER, SVM, XGBOOST, Flow
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.best import search_best_values
from hpobench_ordered.data.local import LOCAL_VARIABLE, local_folder
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError, UnknownNameError
from hpobench_ordered.generation import openml_flows
from hpobench_ordered.generation._flows import training as flow_training
from hpobench_ordered.generation._openml.records import FlowRecords
from hpobench_ordered.generation._openml.setups import Dropped
from hpobench_ordered.generation._openml.tasks import (
    DataSize,
    look_up_data_sizes,
    make_ranger_converters,
    make_svm_converters,
)
from hpobench_ordered.generation._raw import About, read_raw, write_raw
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.bundle import read_card, read_definition, read_evaluations
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.testing import check_benchmark

GENERATOR_OF_NAME = {generator.name: generator for generator in openml_flows.GENERATORS}
SVM_GENERATOR = GENERATOR_OF_NAME[SVM.name]
XGBOOST_GENERATOR = GENERATOR_OF_NAME[XGBOOST.name]
RANGER_GENERATOR = GENERATOR_OF_NAME[RANGER.name]
TASKS = ("37", "3", "10101")
"""Of made-up evaluations, 60 a task unless told otherwise."""
CONTEXT_OF_TASK = {"n_rows": 768.0, "n_features": 8.0, "majority_share": 0.65}


def make_evaluations(
    flow: Flow, tasks: Sequence[str] = TASKS, n: int = 60, seed: int = 0
) -> pd.DataFrame:
    """Make up evaluations, two for each training, whose values follow from the configurations.

    To compute a value, each hyperparameter is scaled from its range to [0, 1], and the mean of
    them is taken. Values are slightly greater on tasks with greater numbers.
    """
    space = flow.space()
    frames = []
    for task in tasks:
        rng = np.random.default_rng([seed, int(task)])
        values = space.decode(space.sample_unit(rng, n))
        inactive_hyperparameter = 0.3  # counts as any number
        unit_values = np.nan_to_num(space.encode(values), nan=inactive_hyperparameter)
        frame = pd.DataFrame(space.configs(values), columns=space.names).add_prefix("config.")
        frames.append(
            frame.assign(
                task=task,
                training=np.arange(n) // 2,
                value=unit_values.mean(axis=1) + int(task) / 1e5,
                capped=rng.random(n) < 0.25,  # whether the solver was stopped early
                seconds=1.0,
                spread=0.01,
            )
        )
    return pd.concat(frames, ignore_index=True)


def describe_evaluations(flow: Flow, tasks: Sequence[str] = TASKS) -> About:
    """Describe a table of made-up evaluations: source, licence, limits, and contexts of tasks."""
    contexts = {task: CONTEXT_OF_TASK | {"n_rows": float(task)} for task in tasks}
    return About(
        benchmark=flow.name,
        source="dice, thrown twice",
        licence="none",
        limits=("Nothing is real.",),
        contexts=contexts,
    )


def generate_from_frame(
    folder: Path, *, flow: Flow = SVM, frame: Any = None, **options: Any
) -> Path:
    """Generate an artifact below a folder from a table of evaluations, by default made-up ones."""
    if frame is None:
        frame = make_evaluations(flow)
    table = folder / f"{flow.name}.parquet"
    write_raw(table, frame, describe_evaluations(flow))
    options = {"source": "evaluations", "local": table} | options
    return GENERATOR_OF_NAME[flow.name].generate(folder / "artifact" / flow.name, **options)


@pytest.fixture(autouse=True, scope="module")
def less_work():
    """Make forests small and the search for best known values short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openml_flows, "FOREST_RECIPE", ForestRecipe(trees=15, min_samples_leaf=1))
        patch.setattr(pipeline, "search_best_values", partial(search_best_values, draws=3000))
        yield


@pytest.fixture(scope="module")
def artifact_folder(tmp_path_factory):
    """Folder of an SVM artifact of made-up evaluations of the tasks 37, 3 and 10101."""
    return generate_from_frame(tmp_path_factory.mktemp("generated"), workers=2)


# -- artifacts -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["forest", "nearest"])
def test_artifacts_conform(artifact_folder, surrogate):
    check_benchmark(hbo.load(artifact_folder, surrogate=surrogate))


def test_artifact_has_what_table_tells(artifact_folder):
    """Tasks, contexts and source of an artifact are those of the table of evaluations.

    Tasks are in the order in which they first occur in the table.
    """
    described = describe_evaluations(SVM)

    benchmark = hbo.load(artifact_folder)

    assert benchmark.space == SVM.space()
    assert [task.name for task in benchmark.tasks] == list(TASKS)
    assert {task.name: task.context for task in benchmark.tasks} == described.contexts
    assert benchmark.provenance.source == described.source


def test_raw_evaluations_are_recorded(artifact_folder):
    """The artifact keeps the evaluations that it was generated from."""
    evaluations_of_tasks = read_evaluations(Artifact(artifact_folder))

    frame = make_evaluations(SVM)
    for task, raw in zip(TASKS, evaluations_of_tasks, strict=True):
        rows = frame[frame["task"] == task]
        np.testing.assert_array_equal(raw.objective, rows["value"])
        np.testing.assert_array_equal(raw.training, rows["training"])
        configs = rows.filter(like="config.")
        configs.columns = configs.columns.str.removeprefix("config.")
        np.testing.assert_array_equal(raw.values, SVM.space().values(configs))


@pytest.mark.parametrize(("surrogate", "tolerance"), [("forest", 1e-4), ("nearest", 0)])
def test_surrogates_predict_their_evaluations(artifact_folder, surrogate, tolerance):
    """Surrogates predict the evaluations that they were fitted to.

    Each leaf of the forest holds one evaluation here, so that the forest is exact up to
    rounding: its configurations are coded with few digits. Nearest neighbours are exact.
    """
    recorded = read_evaluations(Artifact(artifact_folder))
    for task, raw in zip(
        hbo.load(artifact_folder, surrogate=surrogate).tasks, recorded, strict=True
    ):
        predicted = task.evaluate_many(raw.values)

        np.testing.assert_allclose(predicted, raw.objective, rtol=0, atol=tolerance)


def test_card_has_counts_and_figures(artifact_folder):
    """The card has the numbers of evaluations, and the quality of both surrogates on each task.

    Quality is measured by r2 in ten-fold cross-validation: 1 is perfect, and 0 is as good as
    predicting the mean. The made-up values follow from the configurations, so that r2 must be
    high.
    """
    card = read_card(Artifact(artifact_folder))

    # 60 evaluations of each of three tasks, all of different configurations.
    assert card.evaluations == 3 * 60
    assert card.configurations == 3 * 60
    assert card.folds == 10
    assert [quality.name for quality in card.figures] == list(TASKS)
    assert min(quality.r2 for quality in card.figures) > 0.5
    # Figures of the other surrogate are on the card for comparison.
    assert set(card.comparisons["surrogate nearest"]["tasks"]) == set(TASKS)


def test_card_has_command_and_limits(artifact_folder):
    """The card has the command that generates the artifact again, and the limits of its data.

    The command contains the seed, although 0 is the default.
    """
    card = read_card(Artifact(artifact_folder))

    assert card.command == (
        "hpobench-ordered generate openml-svm --source evaluations --from openml-svm.parquet "
        "--seed 0"
    )
    description = card.describe()
    assert "2 of the paper's 30 tasks: 37, 10101; not the paper's: 3." in description
    assert "Nothing is real." in description


def read_task_arrays(folder: Path, surrogate: str, task: int) -> dict[str, bytes]:
    """Read the arrays of one task's surrogate as bytes; their names begin with the task's index."""
    prefix = f"{task}/"
    arrays = {}
    for name, array in Artifact(folder).read_arrays(f"{surrogate}.npz").items():
        if name.startswith(prefix):
            arrays[name.removeprefix(prefix)] = array.tobytes()
    return arrays


@pytest.fixture(scope="module")
def artifact_folder_of_task_3(tmp_path_factory):
    """Folder of an SVM artifact that was generated of task 3 alone, out of the same evaluations."""
    return generate_from_frame(tmp_path_factory.mktemp("alone"), tasks=["3"], workers=1)


@pytest.mark.parametrize("surrogate", ["forest", "nearest"])
def test_task_alone_has_same_surrogate(artifact_folder, artifact_folder_of_task_3, surrogate):
    """Task 3 has the same surrogate whether it is generated alone or together with other tasks.

    Its arrays are equal to the byte, and its best value and quality are equal, too.
    """
    arrays = read_task_arrays(artifact_folder_of_task_3, surrogate, task=0)

    # Task 3 is the second of three.
    assert arrays == read_task_arrays(artifact_folder, surrogate, task=1)
    (task_alone,) = hbo.load(artifact_folder_of_task_3, surrogate=surrogate).tasks
    task_among_others = hbo.load(artifact_folder, surrogate=surrogate).task("3")
    assert task_alone.best_value == task_among_others.best_value
    (quality,) = read_card(Artifact(artifact_folder_of_task_3)).figures
    _, second_quality, _ = read_card(Artifact(artifact_folder)).figures
    assert quality == second_quality


def test_seed_decides_only_the_forest(artifact_folder_of_task_3, tmp_path):
    """Another seed changes the forest, which is fitted with random numbers.

    Nearest neighbours, which need no random numbers, stay the same.
    """
    folder_of_seed_1 = generate_from_frame(tmp_path, tasks=["3"], seed=1)

    for surrogate, ignores_seed in (("forest", False), ("nearest", True)):
        arrays_of_seed_0 = read_task_arrays(artifact_folder_of_task_3, surrogate, task=0)
        arrays_of_seed_1 = read_task_arrays(folder_of_seed_1, surrogate, task=0)
        assert (arrays_of_seed_1 == arrays_of_seed_0) is ignores_seed


def test_shared_noise_is_not_predicted(tmp_path):
    """Cross-validation keeps the evaluations of one training, which share noise, in one fold.

    Here each training has two evaluations with the same value of pure noise. If they were in
    different folds, the one would predict the other, and r2 would be near 1.
    """
    configurations = make_evaluations(SVM, ["3"], n=80).iloc[:40]
    noise = np.random.default_rng(0).normal(size=40)
    evaluations = configurations.assign(training=np.arange(40), value=noise)
    frame = pd.concat([evaluations, evaluations], ignore_index=True)

    folder = generate_from_frame(tmp_path, frame=frame)

    (quality,) = read_card(Artifact(folder)).figures
    assert quality.r2 < 0.3


def test_number_of_evaluations_is_limited(tmp_path):
    """Asked for 40, the generator chooses 40 of the 60 evaluations of each task at random."""
    folder = generate_from_frame(tmp_path, configurations=40)

    frame = make_evaluations(SVM)
    for task, raw in zip(TASKS, read_evaluations(Artifact(folder)), strict=True):
        assert len(raw) == 40
        assert set(raw.objective) < set(frame[frame["task"] == task]["value"])
    description = read_card(Artifact(folder)).describe()
    assert "40 random evaluations alone of tasks 37, 3, 10101" in description


@pytest.mark.slow
@pytest.mark.parametrize("flow", [XGBOOST, RANGER])
def test_other_flows_conform(flow, tmp_path):
    """Artifacts of the other flows pass the public checks of benchmarks."""
    folder = generate_from_frame(tmp_path, flow=flow, frame=make_evaluations(flow, ["3"]))

    check_benchmark(hbo.load(folder))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        # No file is named
        ({"local": None}, ExperimentError, "--from"),
        # The table has no such task
        ({"tasks": ["31"]}, UnknownNameError, "evaluations '31' of openml-svm"),
        (
            {"frame": make_evaluations(SVM, ["3", "31"])},
            ArtifactError,
            r"task 31 need the context n_rows, .* have none",
        ),
        (
            {"frame": make_evaluations(SVM, ["3"], n=18)},
            ExperimentError,
            "task 3 has evaluations of 9 trainings; at least 10",
        ),
    ],
)
def test_insufficient_evaluations_are_refused(tmp_path, options, error, message):
    """No artifact is written if there are too few evaluations, or a part of them is missing."""
    with pytest.raises(error, match=message):
        generate_from_frame(tmp_path, **options)

    assert not list(tmp_path.rglob("benchmark.json"))


# -- training --------------------------------------------------------------------------------------


def make_data_set(name: str, rows: int = 40) -> ClassificationData:
    """Make up data of three features; a quarter of the rows have class 1."""
    x = np.random.default_rng(rows).normal(size=(rows, 3))
    y = (np.arange(rows) < rows // 4).astype(np.int64)
    return ClassificationData(name, x, y, "digest", f"{name}: made of {rows} rows")


@pytest.fixture
def training_calls(monkeypatch):
    """Replace training by a stub that makes up evaluations; return the arguments of its calls.

    Data sets are stubs, too: any folder holds those of tasks 37, 49 and 3492, and others can be
    downloaded.
    """
    calls: list[dict[str, Any]] = []

    def train_flow(learner: Any, data: Mapping[str, Any], **options: Any) -> pd.DataFrame:
        """Stand for training; the learner tells the flow, and `data` has a data set a task."""
        flow = SVM if learner is flow_training.SVM else XGBOOST
        calls.append({"flow": flow, "tasks": list(data), **options})
        return make_evaluations(flow, list(data))

    def download_dataset(task: str) -> ClassificationData:
        return make_data_set(f"of {task}", 100)

    data_of_folder = {
        "37": make_data_set("diabetes"),
        "49": make_data_set("game", 80),
        "3492": make_data_set("monk"),
    }
    monkeypatch.setattr(openml_flows, "train_flow", train_flow)
    monkeypatch.setattr(openml_flows, "read_offline_datasets", lambda folder: data_of_folder)
    monkeypatch.setattr(openml_flows, "download_dataset", download_dataset)
    return calls


@pytest.fixture
def no_fit(monkeypatch):
    """Leave out fitting surrogates, after training."""
    monkeypatch.setattr(openml_flows, "_fit_and_write", lambda plan, request, *_: request.folder)


@pytest.mark.usefixtures("no_fit")
def test_training_gets_the_request(training_calls, tmp_path):
    """All options that a user passes to the generator reach the training."""
    SVM_GENERATOR.generate(
        tmp_path / SVM.name, local=tmp_path, configurations=30, seed=3, workers=2
    )

    (call,) = training_calls
    assert call["flow"] == SVM
    assert call["tasks"] == ["37", "49", "3492"]  # those of the folder
    assert call["n"] == 30
    assert call["seed"] == 3
    assert call["workers"] == 2
    assert call["space"] == SVM.space()
    assert call["folder"] == tmp_path / "openml-svm-trainings"


@pytest.mark.usefixtures("training_calls", "no_fit")
def test_context_is_computed_from_data(tmp_path):
    """The context of each task, here of task 49, is computed from its data set."""
    SVM_GENERATOR.generate(tmp_path / SVM.name, local=tmp_path)

    path = tmp_path / "openml-svm-evaluations.parquet"
    table = read_raw(path, benchmark=SVM.name, space=SVM.space())
    context = dict(table.about.contexts["49"])
    assert 0.0 <= context.pop("naive_bayes_auc") <= 1.0
    # The made-up data of task 49: 80 rows of three features, a quarter in the rarer class.
    assert context == {"n_rows": 80, "n_features": 3, "majority_share": 0.75}


@pytest.fixture
def trained_artifact(training_calls, tmp_path):
    """The artifact of trainings on three data sets, of which one is a local file."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "37_diabetes.csv").touch()
    return Artifact(
        SVM_GENERATOR.generate(tmp_path / SVM.name, local=data, configurations=30, seed=3)
    )


@pytest.mark.slow
def test_card_tells_of_trainings(trained_artifact):
    """The card has the command, limits of trainings, and the data set of each task.

    It explains data sets that came with the package, but not the user's file, of task 37. A quarter
    of the made-up evaluations say that the solver was stopped early.
    """
    card = read_card(trained_artifact)

    assert card.command == (
        "hpobench-ordered generate openml-svm --source train --from DATA --seed 3 --configs 30"
    )
    description = card.describe()
    for text in (
        "our own, not OpenML's public records",
        "2 of the paper's 30 tasks: 37, 3492; not the paper's: 49.",
        "% of the evaluations the solver was stopped, most on tasks ",
        "37 diabetes, 49 game, 3492 monk",
        "Task 3492 is monk: made of 40 rows.",
    ):
        assert text in description
    assert "Task 37 is" not in description


@pytest.mark.usefixtures("no_fit")
def test_tasks_may_be_selected(training_calls, tmp_path):
    """Without a folder of data sets, those of the tasks are downloaded, by default the paper's."""
    XGBOOST_GENERATOR.generate(tmp_path / "x", local=tmp_path, tasks=["49"])
    XGBOOST_GENERATOR.generate(tmp_path / "x", tasks=["3", "37"])
    XGBOOST_GENERATOR.generate(tmp_path / "x")

    tasks_of_calls = [call["tasks"] for call in training_calls]
    assert tasks_of_calls == [["49"], ["3", "37"], [str(task) for task in XGBOOST.tasks]]


def test_task_without_data_starts_nothing(training_calls, tmp_path):
    """The folder has data of task 49, but not of 31."""
    with pytest.raises(UnknownNameError, match=r"task with a data set in .* '31'"):
        XGBOOST_GENERATOR.generate(tmp_path / "x", local=tmp_path, tasks=["49", "31"])

    assert not training_calls


def test_tasks_must_be_numbers(training_calls, tmp_path):
    """OpenML's tasks have numbers; kc1 is the name of a data set."""
    with pytest.raises(ExperimentError, match="numbers, but got 'kc1'"):
        SVM_GENERATOR.generate(tmp_path / "x", tasks=["kc1"])

    assert not training_calls


# -- OpenML's records ------------------------------------------------------------------------------

SIZES_OF_DATA = {
    37: DataSize(rows=768, inputs=8, majority=500),
    3: DataSize(rows=3196, inputs=36, majority=1669),
    31: DataSize(rows=1000, inputs=20, majority=700),
}
"""Sizes of the data of three tasks, as OpenML tells them."""


@pytest.fixture
def download_calls(monkeypatch):
    """Replace the download of OpenML's records by a stub; return the arguments of its calls.

    It makes up 60 records a task, but only six of task 31, and says that seven were dropped.
    """
    calls: list[dict[str, Any]] = []
    flow_of_number = {flow.flow_id: flow for flow in (SVM, XGBOOST, RANGER)}

    def download_records(*, flow_id: int, tasks: Sequence[int], **options: Any) -> FlowRecords:
        """Stand for the download of the evaluations of a flow on some tasks."""
        calls.append({"flow_id": flow_id, "tasks": tuple(tasks), **options})
        frames = []
        for task in tasks:
            n = 6 if task == 31 else 60
            frames.append(make_evaluations(flow_of_number[flow_id], [str(task)], n=n))
        dropped = dict.fromkeys(Dropped, 0) | {Dropped.OUT_OF_BOUNDS: 7}
        return FlowRecords(pd.concat(frames, ignore_index=True), dropped)

    def look_up_data_sizes(tasks: Sequence[int], *_: Any, **__: Any) -> dict[int, DataSize]:
        return {task: SIZES_OF_DATA[task] for task in tasks}

    monkeypatch.setattr(openml_flows, "download_records", download_records)
    monkeypatch.setattr(openml_flows, "look_up_data_sizes", look_up_data_sizes)
    return calls


@pytest.fixture
def records_artifact(download_calls, tmp_path):
    """The artifact of OpenML's records of three tasks, of which 31 has too few to be used."""
    folder = tmp_path / SVM.name
    return Artifact(SVM_GENERATOR.generate(folder, source="openml", tasks=["37", "3", "31"]))


def test_records_become_a_benchmark(download_calls, records_artifact, tmp_path):
    """Records are kept beside the artifact; contexts are sizes of data; the licence is OpenML's.

    Task 31 has fewer than ten setups, as OpenML calls configurations.
    """
    definition = read_definition(records_artifact)

    (call,) = download_calls
    assert call["flow_id"] == 5891  # OpenML's number of mlr's SVM
    assert call["tasks"] == (37, 3, 31)
    assert call["folder"] == tmp_path / "openml-svm-records"
    assert {task.name: task.context for task in definition.tasks} == {
        "37": {"n_rows": 768, "n_features": 8, "majority_share": 500 / 768},
        "3": {"n_rows": 3196, "n_features": 36, "majority_share": 1669 / 3196},
    }
    assert definition.provenance.licence == "CC-BY-4.0"


def test_card_tells_of_records(records_artifact):
    """The stub that stands for the download drops seven records, and has few of task 31.

    Tasks that were asked for are in the command, even 31, which was left out.
    """
    card = read_card(records_artifact)

    assert card.command == (
        "hpobench-ordered generate openml-svm --source openml --seed 0 --tasks 37,3,31"
    )
    description = card.describe()
    assert "Records left out: 7 out of bounds." in description
    assert "fewer than 10 setups: 31." in description
    assert "our own" not in description  # said of trainings


@pytest.mark.usefixtures("download_calls")
def test_only_scarce_tasks_are_refused(tmp_path):
    with pytest.raises(ExperimentError, match="no task has 10 setups"):
        SVM_GENERATOR.generate(tmp_path / "x", source="openml", tasks=["31"])


def test_ranger_is_generated_by_users():
    """The package does not contain ranger's benchmark; users generate it from OpenML's records.

    They may also give evaluations of their own.
    """
    assert list(RANGER_GENERATOR.sources) == ["openml", "evaluations"]
    assert RANGER_GENERATOR.home() == local_folder()
    assert SVM_GENERATOR.home() == Path("artifacts")


@pytest.fixture
def generated_ranger(download_calls, tmp_path, monkeypatch):
    """Generate ranger's benchmark of task 37 into the folder of the user's own benchmarks."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    RANGER_GENERATOR.generate(RANGER_GENERATOR.home() / RANGER.name, tasks=["37"])


@pytest.mark.usefixtures("generated_ranger")
def test_ranger_is_found_and_converted(download_calls):
    """The number of columns that OpenML records, mtry, becomes a share of the columns."""
    (call,) = download_calls

    convert_mtry = call["setups"].converters["mtry"]

    assert benchmark_spec(RANGER.name).is_local
    assert [task.name for task in hbo.load(RANGER.name).tasks] == ["37"]
    assert call["flow_id"] == 6794  # OpenML's number of mlr's ranger
    # All 8 columns of task 37: the middle of the shares that round up to 8, from 7/8 to 1.
    assert convert_mtry(8.0, 37) == pytest.approx(7.5 / 8)


@given(share=st.floats(0, 1), columns=st.integers(1, 500))
def test_recorded_mtry_becomes_a_fraction(share, columns):
    """A share of the columns was drawn, and their number, rounded up, was recorded as mtry.

    The number is converted to a share that gives this number again.
    """
    task = 1
    size = DataSize(rows=100, inputs=columns, majority=50)
    convert_mtry = make_ranger_converters({task: size})["mtry"]
    recorded = np.ceil(columns * share)

    fraction = convert_mtry(float(recorded), task)

    assert 0 <= fraction <= 1
    assert np.ceil(columns * fraction) == recorded


@given(x=st.floats(0, 1), rows=st.integers(10, 10**6))
def test_recorded_node_size_becomes_an_exponent(x, rows):
    """An exponent x was drawn, and the size of nodes, rows^x rounded, was recorded.

    The size is converted to an exponent that gives this size again.
    """
    task = 1
    size = DataSize(rows=rows, inputs=5, majority=rows)
    convert_node_size = make_ranger_converters({task: size})["min.node.size"]
    recorded = round(rows**x)

    exponent = convert_node_size(float(recorded), task)

    assert 0 <= exponent <= 1
    assert round(rows**exponent) == recorded


def test_defaults_depend_on_data():
    """If they are not recorded, gamma is one over the number of columns, and mtry its root.

    Task 37 has 8 columns, task 3 has 36. The size of nodes has no default.
    """
    convert_gamma = make_svm_converters(SIZES_OF_DATA)["gamma"]
    ranger = make_ranger_converters(SIZES_OF_DATA)

    assert convert_gamma(None, 37) == 1 / 8
    assert convert_gamma(0.3, 37) == 0.3
    # The middle of the shares that round up to 6, from 5/36 to 6/36.
    assert ranger["mtry"](None, 3) == pytest.approx(5.5 / 36)
    assert ranger["min.node.size"](None, 3) is None


# -- sizes of data sets ----------------------------------------------------------------------------


@pytest.fixture
def qualities_of_task(monkeypatch):
    """Replace OpenML's client by a stub with these qualities of the data sets of tasks."""
    openml = pytest.importorskip("openml")
    qualities: dict[int, dict[str, float]] = {}

    def get_dataset(number: int, *, download_data: bool, download_qualities: bool) -> Any:
        """Give the qualities of a data set, as OpenML calls its sizes, without the data."""
        assert download_qualities
        assert not download_data
        return SimpleNamespace(qualities=qualities[number])

    # Here data sets have the numbers of their tasks.
    monkeypatch.setattr(openml.tasks, "get_task", lambda task: SimpleNamespace(dataset_id=task))
    monkeypatch.setattr(openml.datasets, "get_dataset", get_dataset)
    return qualities


def test_sizes_are_qualities_of_data(qualities_of_task):
    """OpenML counts the class as a feature."""
    qualities_of_task[37] = {
        "NumberOfInstances": 768.0,
        "NumberOfFeatures": 9.0,
        "MajorityClassSize": 500.0,
    }

    assert look_up_data_sizes([37]) == {37: SIZES_OF_DATA[37]}


def test_unknown_sizes_are_an_error(qualities_of_task):
    qualities_of_task[31] = {}

    with pytest.raises(DownloadError, match="size of the data of task 31"):
        look_up_data_sizes([31])
