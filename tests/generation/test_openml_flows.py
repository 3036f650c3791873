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
from hpobench_ordered._typing import IntArray
from hpobench_ordered.benchmarks._openml_data import ClassificationData
from hpobench_ordered.benchmarks.openml_flows import RANGER, SVM, XGBOOST, Flow
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE, local_folder
from hpobench_ordered.generation import openml_flows
from hpobench_ordered.generation._flows import training as flow_training
from hpobench_ordered.generation._openml.client import Connection
from hpobench_ordered.generation._openml.records import FlowRecords
from hpobench_ordered.generation._openml.setups import Dropped
from hpobench_ordered.generation._openml.tasks import (
    DataSize,
    look_up_data_sizes,
    ranger_converters,
    svm_converters,
)
from hpobench_ordered.generation._raw import About, read_raw, write_raw
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known
from hpobench_ordered.surrogates.bundle import read_card, read_definition, read_evaluations
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import grouped_folds
from hpobench_ordered.testing import check_benchmark

GENERATORS = {generator.name: generator for generator in openml_flows.GENERATORS}
SVMS, BOOSTINGS, FORESTS = (GENERATORS[flow.name] for flow in (SVM, XGBOOST, RANGER))
TASKS = ("37", "3", "10101")
CONTEXT = {"n_rows": 768.0, "n_features": 8.0, "majority_share": 0.65}


def evaluations(flow: Flow, tasks: Sequence[str] = TASKS, n: int = 60, seed: int = 0) -> Any:
    """Made-up evaluations, two a training; the value follows from a configuration's numbers."""
    space, frames = flow.space(), []
    for task in tasks:
        rng = np.random.default_rng([seed, int(task)])
        values = space.decode(space.sample_unit(rng, n))
        score = np.nan_to_num(space.encode(values), nan=0.3).mean(axis=1) + int(task) / 1e5
        frame = pd.DataFrame(space.configs(values), columns=space.names).add_prefix("config.")
        more = {"capped": rng.random(n) < 0.25, "seconds": 1.0, "spread": 0.01}
        frames.append(frame.assign(task=task, training=np.arange(n) // 2, value=score, **more))
    return pd.concat(frames, ignore_index=True)


def about(flow: Flow, tasks: Sequence[str] = TASKS) -> About:
    contexts = {task: CONTEXT | {"n_rows": float(task)} for task in tasks}
    return About(flow.name, "dice, thrown twice", "none", ("Nothing is real.",), contexts)


def from_evaluations(folder: Path, *, flow: Flow = SVM, frame: Any = None, **options: Any) -> Path:
    """An artifact of made-up evaluations."""
    raw = folder / f"{flow.name}.parquet"
    write_raw(raw, evaluations(flow) if frame is None else frame, about(flow))
    options = {"source": "evaluations", "local": raw} | options
    return GENERATORS[flow.name].generate(folder / "x" / flow.name, **options)


@pytest.fixture(autouse=True, scope="module")
def less_work():
    """Smaller forests, and fewer configurations to find the best known values among."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openml_flows, "RECIPE", ForestRecipe(trees=15, min_samples_leaf=1))
        patch.setattr(pipeline, "best_known", partial(best_known, draws=3000))
        yield


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    return from_evaluations(tmp_path_factory.mktemp("generated"), workers=2)


# -- artifacts -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["forest", "nearest"])
def test_an_artifact_is_a_benchmark(generated, surrogate):
    benchmark = hbo.load(generated, surrogate=surrogate)
    check_benchmark(benchmark)
    assert benchmark.space == SVM.space()
    assert [task.name for task in benchmark.tasks] == list(TASKS)
    assert benchmark.tasks[2].context == CONTEXT | {"n_rows": 10101.0}
    assert benchmark.provenance.source == "dice, thrown twice"
    known = evaluations(SVM).groupby("task")["value"].max()
    for task in benchmark.tasks:
        assert task.best_value is not None
        # A forest's codes are off by half a step; nearest neighbours are exact.
        assert task.best_value >= known[task.name] - (1e-5 if surrogate == "forest" else 0)


def test_surrogates_predict_what_they_were_fitted_to_and_raw_evaluations_are_recorded(generated):
    frame, recorded = evaluations(SVM), read_evaluations(Artifact(generated))
    for task, raw in zip(TASKS, recorded, strict=True):
        rows = frame[frame["task"] == task]
        np.testing.assert_array_equal(raw.objective, rows["value"])
        np.testing.assert_array_equal(raw.training, rows["training"])
        configs = rows.filter(like="config.").rename(columns=lambda c: c.removeprefix("config."))
        np.testing.assert_array_equal(raw.values, SVM.space().values(configs))
    for name, tolerance in (("forest", 1e-4), ("nearest", 0)):
        for task, raw in zip(hbo.load(generated, surrogate=name).tasks, recorded, strict=True):
            predicted = task.evaluate_many(raw.values)
            np.testing.assert_allclose(predicted, raw.objective, rtol=0, atol=tolerance)


def test_the_card_says_what_a_user_should_know(generated):
    card = read_card(Artifact(generated))
    text = card.describe()
    assert [figures.name for figures in card.figures] == list(TASKS)
    assert (card.evaluations, card.configurations, card.folds) == (180, 180, 10)
    assert "2 of the paper's 30 tasks: 37, 10101; not the paper's: 3." in text
    assert "Nothing is real." in text
    assert "surrogate nearest" in text
    assert card.command == (
        "hpobench-ordered generate openml-svm --source evaluations --from openml-svm.parquet "
        "--seed 0"
    )
    assert min(figures.r2 for figures in card.figures) > 0.5
    assert set(card.comparisons["surrogate nearest"]["tasks"]) == set(TASKS)


def arrays_of(folder: Path, surrogate: str, task: int) -> dict[str, bytes]:
    arrays = Artifact(folder).read_arrays(f"{surrogate}.npz")
    prefix = f"{task}/"
    return {k.removeprefix(prefix): a.tobytes() for k, a in arrays.items() if k.startswith(prefix)}


def test_a_task_generated_alone_is_the_same_to_the_byte(generated, tmp_path):
    for part in ("one", "other"):
        (tmp_path / part).mkdir()
    alone = from_evaluations(tmp_path / "one", tasks=["3"], workers=1)
    other = from_evaluations(tmp_path / "other", tasks=["3"], seed=1)
    assert [task.name for task in read_definition(Artifact(alone)).tasks] == ["3"]
    for surrogate in ("forest", "nearest"):
        assert arrays_of(alone, surrogate, 0) == arrays_of(generated, surrogate, 1)
        best = [hbo.load(f, surrogate=surrogate).task("3").best_value for f in (alone, generated)]
        assert best[0] == best[1]
        same = arrays_of(other, surrogate, 0) == arrays_of(alone, surrogate, 0)
        assert same == (surrogate == "nearest")
    assert read_card(Artifact(alone)).figures == read_card(Artifact(generated)).figures[1:2]


@given(st.lists(st.integers(0, 30), min_size=12, max_size=80), st.integers(2, 10))
@pytest.mark.slow
def test_a_training_is_never_on_both_sides(groups, folds):
    numbers: IntArray = np.array(groups)
    parts = list(grouped_folds(numbers, folds, np.random.default_rng(0)))
    assert len(parts) == folds
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(groups)))
    held_out = [set(numbers[part].tolist()) for part in parts]
    assert sum(map(len, held_out)) == len(set(groups))
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1


def test_evaluations_of_one_training_do_not_help_each_other(tmp_path):
    """Noise that the evaluations of a training share cannot be predicted from the others."""
    half = evaluations(SVM, ["3"], n=80).iloc[:40]
    noisy = half.assign(training=np.arange(40), value=np.random.default_rng(0).normal(size=40))
    folder = from_evaluations(tmp_path, frame=pd.concat([noisy, noisy], ignore_index=True))
    assert read_card(Artifact(folder)).figures[0].r2 < 0.3


def test_at_most_so_many_evaluations_are_fitted_to(tmp_path):
    folder = from_evaluations(tmp_path, configurations=40)
    frame = evaluations(SVM)
    for task, raw in zip(TASKS, read_evaluations(Artifact(folder)), strict=True):
        assert len(raw) == 40
        assert set(raw.objective) < set(frame[frame["task"] == task]["value"])
    told = "40 random evaluations alone of tasks 37, 3, 10101"
    assert told in read_card(Artifact(folder)).describe()


@pytest.mark.slow
@pytest.mark.parametrize("flow", [XGBOOST, RANGER])
def test_the_other_flows(flow, tmp_path):
    check_benchmark(hbo.load(from_evaluations(tmp_path, flow=flow, frame=evaluations(flow, ["3"]))))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"local": None}, ExperimentError, "--from"),
        ({"tasks": ["31"]}, UnknownNameError, "evaluations '31' of openml-svm"),
        (
            {"frame": evaluations(SVM, ["3", "31"])},
            ArtifactError,
            r"task 31 need the context n_rows, .* have none",
        ),
        (
            {"frame": evaluations(SVM, ["3"], n=18)},
            ExperimentError,
            "task 3 has evaluations of 9 trainings; at least 10",
        ),
    ],
)
def test_evaluations_that_make_no_artifact_are_refused(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        from_evaluations(tmp_path, **options)
    assert not list(tmp_path.rglob("benchmark.json"))
    with pytest.raises(ArtifactError, match="of 'openml-svm', not 'openml-xgboost'"):
        raw = tmp_path / "openml-svm.parquet"
        BOOSTINGS.generate(tmp_path / "y", source="evaluations", local=raw)


# -- training --------------------------------------------------------------------------------------


def data_set(name: str, rows: int = 40) -> ClassificationData:
    x = np.random.default_rng(rows).normal(size=(rows, 3))
    y = (np.arange(rows) < rows // 4).astype(np.int64)
    return ClassificationData(name, x, y, "digest", f"{name}: made of {rows} rows")


@pytest.fixture
def trained(monkeypatch):
    """What each call of the stub that stands for training got."""
    calls: list[dict[str, Any]] = []

    def train_flow(learner: Any, data: Mapping[str, Any], **options: Any) -> pd.DataFrame:
        flow = SVM if learner is flow_training.SVM else XGBOOST
        calls.append({"flow": flow, "tasks": list(data), **options})
        return evaluations(flow, list(data))

    offline = {"37": data_set("diabetes"), "49": data_set("game", 80), "3492": data_set("monk")}
    monkeypatch.setattr(openml_flows, "train_flow", train_flow)
    monkeypatch.setattr(openml_flows, "offline_datasets", lambda folder: offline)
    monkeypatch.setattr(openml_flows, "download_dataset", lambda task: data_set(f"of {task}", 100))
    return calls


@pytest.mark.slow
def test_training_on_local_data(trained, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "37_diabetes.csv").touch()
    options: dict[str, Any] = {"seed": 3, "workers": 2}
    folder = tmp_path / SVM.name
    SVMS.generate(folder, local=tmp_path / "data", configurations=30, **options)
    (call,) = trained
    assert (call["flow"], call["tasks"], call["n"]) == (SVM, ["37", "49", "3492"], 30)
    assert {k: call[k] for k in options} == options and call["space"] == SVM.space()
    assert call["folder"] == tmp_path / "openml-svm-trainings"
    table = tmp_path / "openml-svm-evaluations.parquet"
    raw = read_raw(table, benchmark=SVM.name, space=SVM.space())
    context = dict(raw.about.contexts["49"])
    assert 0.0 <= context.pop("naive_bayes_auc") <= 1.0
    assert context == {"n_rows": 80, "n_features": 3, "majority_share": 0.75}
    card = read_card(Artifact(folder))
    assert card.command == (
        "hpobench-ordered generate openml-svm --source train --from DATA --seed 3 --configs 30"
    )
    text = card.describe()
    for part in (
        "our own, not OpenML's public records",
        "generate openml-svm --source openml",
        "2 of the paper's 30 tasks: 37, 3492; not the paper's: 49.",
        "% of the evaluations the solver was stopped, most on tasks ",
        "37 diabetes, 49 game, 3492 monk",
        "Task 3492 is monk: made of 40 rows.",
    ):
        assert part in text
    assert "Task 37 is" not in text
    definition = read_definition(Artifact(folder))
    assert definition.provenance.source.startswith("own trainings, ")
    assert definition.objective.direction.value == "maximize"


def test_training_on_some_tasks(trained, tmp_path, monkeypatch):
    BOOSTINGS.generate(tmp_path / "x", local=tmp_path, tasks=["49"])
    assert (trained[0]["flow"], trained[0]["tasks"]) == (XGBOOST, ["49"])
    assert trained[0]["n"] == 256
    with pytest.raises(UnknownNameError, match=r"task with a data set in .* '31'"):
        BOOSTINGS.generate(tmp_path / "x", local=tmp_path, tasks=["49", "31"])
    assert len(trained) == 1
    monkeypatch.setattr(openml_flows, "_fit_and_write", lambda plan, request, *_: request.folder)
    BOOSTINGS.generate(tmp_path / "x")  # by default those of the paper
    assert trained[1]["tasks"] == [str(task) for task in XGBOOST.tasks]


def test_training_on_downloaded_data(trained, tmp_path):
    folder = SVMS.generate(tmp_path / "x", tasks=["3", "37"])
    assert (trained[0]["tasks"], trained[0]["n"]) == (["3", "37"], 640)
    assert "3 of 3, 37 of 37" in read_card(Artifact(folder)).describe()
    with pytest.raises(ExperimentError, match="numbers, but got 'kc1'"):
        SVMS.generate(tmp_path / "x", tasks=["kc1"])


# -- OpenML's records ------------------------------------------------------------------------------

SIZES = {37: DataSize(768, 8, 500), 3: DataSize(3196, 36, 1669), 31: DataSize(1000, 20, 700)}


@pytest.fixture
def downloaded(monkeypatch):
    """What each call of the stub that stands for the download got."""
    calls: list[dict[str, Any]] = []

    def download_records(*, flow_id: int, tasks: Sequence[int], **options: Any) -> FlowRecords:
        calls.append({"flow_id": flow_id, "tasks": tuple(tasks), **options})
        flow = next(flow for flow in (SVM, XGBOOST, RANGER) if flow.flow_id == flow_id)
        frames = [evaluations(flow, [str(task)], n=6 if task == 31 else 60) for task in tasks]
        dropped = dict.fromkeys(Dropped, 0) | {Dropped.OUT_OF_BOUNDS: 7}
        return FlowRecords(pd.concat(frames, ignore_index=True), dropped)

    monkeypatch.setattr(openml_flows, "download_records", download_records)
    monkeypatch.setattr(
        openml_flows, "look_up_data_sizes", lambda tasks, *_, **__: {t: SIZES[t] for t in tasks}
    )
    return calls


def test_openml_s_records(downloaded, tmp_path):
    folder = SVMS.generate(tmp_path / SVM.name, source="openml", tasks=["37", "3", "31"])
    (call,) = downloaded
    assert (call["flow_id"], call["tasks"]) == (5891, (37, 3, 31))
    assert call["folder"] == tmp_path / "openml-svm-records"
    definition, card = read_definition(Artifact(folder)), read_card(Artifact(folder))
    assert {task.name: task.context for task in definition.tasks} == {
        "37": {"n_rows": 768, "n_features": 8, "majority_share": 500 / 768},
        "3": {"n_rows": 3196, "n_features": 36, "majority_share": 1669 / 3196},
    }
    assert definition.provenance.licence == card.licence == "CC-BY-4.0"
    text = card.describe()
    assert "Records left out: 7 out of bounds." in text
    assert "fewer than 10 setups: 31." in text
    assert "our own" not in text
    assert card.command == (
        "hpobench-ordered generate openml-svm --source openml --seed 0 --tasks 37,3,31"
    )
    table = tmp_path / "openml-svm-evaluations.parquet"
    raw = read_raw(table, benchmark=SVM.name, space=SVM.space())
    assert raw.about.dropped["out of bounds"] == 7
    with pytest.raises(ExperimentError, match="no task has 10 setups"):
        SVMS.generate(tmp_path / "x", source="openml", tasks=["31"])


def test_a_forest_is_found_by_its_name_once_generated(downloaded, tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    assert list(FORESTS.sources) == ["openml", "evaluations"]
    assert (FORESTS.home(), SVMS.home()) == (local_folder(), Path("artifacts"))
    FORESTS.generate(FORESTS.home() / RANGER.name, tasks=["37"])
    assert downloaded[0]["flow_id"] == 6794
    assert downloaded[0]["setups"].converters["mtry"](8.0, 37) == pytest.approx(7.5 / 8)
    assert benchmark_spec(RANGER.name).is_local
    assert [task.name for task in hbo.load(RANGER.name).tasks] == ["37"]


@given(st.floats(0, 1), st.integers(1, 500), st.integers(10, 10**6))
def test_what_the_random_bot_recorded_is_undone(x, p, n):
    convert = ranger_converters({1: DataSize(n, p, n)})
    fraction = convert["mtry"](float(np.ceil(p * x)), 1)
    assert fraction is not None and 0 <= fraction <= 1
    assert np.ceil(p * fraction) == max(np.ceil(p * x), 0)
    exponent = convert["min.node.size"](float(round(n**x)), 1)
    assert exponent is not None and 0 <= exponent <= 1
    assert round(n**exponent) == round(n**x)


def test_defaults_that_depend_on_the_data():
    gamma = svm_converters(SIZES)["gamma"]
    assert gamma(None, 37) == 1 / 8
    assert gamma(0.3, 37) == 0.3
    convert = ranger_converters(SIZES)
    assert convert["mtry"](None, 3) == pytest.approx(5.5 / 36)  # the root of 36, as ranger
    assert convert["min.node.size"](None, 3) is None


# -- sizes of data sets ----------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Tasks that OpenML's client, which is a stub, was asked for."""
    openml = pytest.importorskip("openml")
    calls: list[int] = []

    def get_task(task: int) -> Any:
        calls.append(task)
        if task == 404:
            raise openml.exceptions.OpenMLServerException("Unknown task", 151)
        return SimpleNamespace(dataset_id=task)

    def get_dataset(task: int, *, download_data: bool, download_qualities: bool) -> Any:
        assert download_qualities and not download_data
        names = ("NumberOfInstances", "NumberOfFeatures", "MajorityClassSize")
        size = SIZES[task]
        numbers = (size.rows, size.inputs + 1, size.majority)
        told = dict(zip(names, map(float, numbers), strict=True)) if task != 31 else {}
        return SimpleNamespace(qualities=told)

    monkeypatch.setattr(openml.tasks, "get_task", get_task)
    monkeypatch.setattr(openml.datasets, "get_dataset", get_dataset)
    return calls


def test_sizes_are_asked_for_once(asked, tmp_path):
    pauses: list[float] = []
    connection = Connection(sleep=pauses.append)
    assert look_up_data_sizes([37], tmp_path, connection=connection) == {37: SIZES[37]}
    both = look_up_data_sizes([37, 3], tmp_path, connection=connection)
    assert both == {37: SIZES[37], 3: SIZES[3]}
    assert asked == [37, 3]
    look_up_data_sizes([37, 3], tmp_path / "again", connection=connection)
    (pause,) = pauses  # four requests a task, one a second
    assert 2 < pause <= 4
    assert "768" in (tmp_path / "tasks" / "37.json").read_text()


@pytest.mark.parametrize("task", [404, 31])
def test_sizes_that_openml_does_not_tell(asked, tmp_path, task):
    with pytest.raises(DownloadError, match=f"size of task {task}'s data"):
        look_up_data_sizes([task], tmp_path, connection=Connection(sleep=lambda _: None))
    assert not (tmp_path / "tasks").exists()
