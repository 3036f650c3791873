"""Benchmarks of OpenML's flows: spaces as in the paper, and evaluations that can be repeated."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks._openml_data import (
    FILES,
    ClassificationData,
    make_monks_problem,
    task_data,
)
from hpobench_ordered.benchmarks.openml_flows import (
    CONTEXT,
    LANDMARK,
    RANGER,
    SVM,
    SVM_TASKS,
    XGBOOST,
    XGBOOST_TASKS,
    Flow,
)
from hpobench_ordered.cli.trust import fetch
from hpobench_ordered.errors import DownloadError, NotFetchedError
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.generation._flows.datasets import breast_cancer, offline_datasets
from hpobench_ordered.generation._flows.training import BoostingTrainer, SVMTrainer
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.bundle import read_card, read_evaluations

BUNDLED = (SVM, XGBOOST)


# -- search spaces ---------------------------------------------------------------------------------


def read_supplement(shared: Path) -> str:
    return (shared / "papers" / "ablr-2018-supplement.txt").read_text()


def read_bounds(shared: Path, flow: Flow) -> dict[str, tuple[float, float]]:
    """Bounds of the numbers, as the supplement lists them: "- NAME (..., min: LOW, max: HIGH)"."""
    first_heading, next_heading = ("## B.1", "## B.2") if flow is SVM else ("## B.2", "### B.3")
    text = read_supplement(shared)
    section = text[text.index(first_heading) : text.index(next_heading)]

    bounds = {}
    for line in section.splitlines():
        if not line.startswith("- ") or "min:" not in line:
            continue
        name, _, description = line.removeprefix("- ").partition(" (")
        _, lower, upper = description.split(",")[:3]
        lower_number = float(lower.split(":")[1])
        upper_number = float(upper.split(":")[1].strip(" ),;."))
        bounds[name.replace("\\_", "_")] = (lower_number, upper_number)
    return bounds


@pytest.mark.parametrize("flow", BUNDLED)
def test_bounds_are_the_papers(shared, flow):
    numbers = [parameter for parameter in flow.space().parameters if not parameter.choices]

    bounds = {parameter.name: (parameter.lower, parameter.upper) for parameter in numbers}

    assert bounds == read_bounds(shared, flow)


@pytest.mark.parametrize(("flow", "section"), [(SVM, 0), (XGBOOST, 1)])
def test_tasks_are_the_papers(shared, flow, section):
    sections = re.findall(r"ids`? are: ([\d, ]+)", read_supplement(shared))

    assert len(flow.tasks) == 30
    assert set(flow.tasks) == set(map(int, sections[section].split(",")))


XGBOOST_LINEAR = {"booster", "nrounds", "eta", "lambda", "alpha"}


@pytest.mark.parametrize(
    ("flow", "name", "choice", "active"),
    [
        (SVM, "kernel", "linear", {"kernel", "cost"}),
        (SVM, "kernel", "radial", {"kernel", "cost", "gamma"}),
        (SVM, "kernel", "sigmoid", {"kernel", "cost", "gamma"}),
        (SVM, "kernel", "polynomial", {"kernel", "cost", "gamma", "degree"}),
        (XGBOOST, "booster", "gblinear", XGBOOST_LINEAR),
        (XGBOOST, "booster", "gbtree", set(XGBOOST.space().names)),
    ],
)
def test_choice_decides_what_is_active(flow, name, choice, active):
    space = flow.space()
    configs = space.configs(space.decode(space.sample_unit(np.random.default_rng(0), 200)))

    with_choice = [config for config in configs if config[name] == choice]

    assert with_choice
    assert all(set(config) == active for config in with_choice)


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        (SVM, {"cost", "gamma"}),
        (XGBOOST, {"eta", "lambda", "alpha", "min_child_weight"}),
        (RANGER, set()),
    ],
)
def test_parameters_are_on_log_scales(flow, expected):
    on_log_scale = {parameter.name for parameter in flow.space().parameters if parameter.log}

    assert on_log_scale == expected


# -- the random forest, which is not bundled -------------------------------------------------------


@pytest.fixture
def no_generated(tmp_path, monkeypatch):
    """A folder of the user's own benchmarks, where none has been generated."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))


@pytest.mark.usefixtures("no_generated")
def test_ranger_is_to_be_generated():
    spec = benchmark_spec(RANGER.name)

    assert RANGER.name in hbo.list_benchmarks()
    assert all(option.lacks == "generate" for option in spec.surrogates)
    with pytest.raises(NotFetchedError, match="hpobench-ordered generate openml-ranger"):
        hbo.load(RANGER.name)


@pytest.mark.usefixtures("no_generated")
def test_ranger_is_defined_before_generation():
    definition = benchmark_spec(RANGER.name).define()

    assert [task.name for task in definition.tasks] == [str(task) for task in XGBOOST_TASKS]
    assert definition.space == RANGER.space()


# -- bundled artifacts -----------------------------------------------------------------------------


@pytest.mark.parametrize("flow", BUNDLED)
def test_bundled_flows_have_fourteen_tasks(flow):
    benchmark = hbo.load(flow.name)

    assert benchmark.surrogate == "forest"
    assert benchmark.space == flow.space()
    assert len(benchmark.tasks) == 14


@pytest.mark.parametrize(("flow", "tasks_of_paper"), [(SVM, SVM_TASKS), (XGBOOST, XGBOOST_TASKS)])
def test_card_lists_tasks_of_paper(flow, tasks_of_paper):
    artifact = benchmark_spec(flow.name).artifact
    assert artifact is not None

    description = read_card(artifact).describe()

    names = [task.name for task in hbo.load(flow.name).tasks if int(task.name) in tasks_of_paper]
    assert f"{len(names)} of the paper's 30 tasks: {', '.join(names)};" in description
    assert "our own" in description


@pytest.mark.parametrize("flow", BUNDLED)
def test_bundled_tasks_have_contexts(flow):
    for task in hbo.load(flow.name).tasks:
        assert tuple(task.context) == (*CONTEXT, LANDMARK)
        assert all(type(value) is float for value in task.context.values())


@pytest.mark.parametrize("flow", BUNDLED)
def test_best_aucs_are_plausible(flow):
    for task in hbo.load(flow.name).tasks:
        assert 0.5 < task.best_value <= 1


@pytest.mark.parametrize("flow", BUNDLED)
def test_every_task_has_recorded_evaluations(flow):
    benchmark = hbo.load(flow.name)
    assert benchmark.recorded is not None
    for task, evaluations in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        assert evaluations.task == task.name
        assert len(evaluations) >= 100


# -- training data ---------------------------------------------------------------------------------


@pytest.fixture
def published(shared, tmp_path, monkeypatch):
    """A folder of the tasks' data, written as OpenML publishes them; the cache is empty."""
    sources = shared / "data" / "openml_datasets"
    frames = {path.name.partition("_")[0]: pd.read_csv(path) for path in sources.glob("*.csv")}
    inputs, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    frames["9946"] = inputs.assign(Class=labels)

    folder = tmp_path / "published"
    folder.mkdir()
    for task, file in FILES.items():
        frames[task].to_parquet(folder / Path(file.name).name, index=False)

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    task_data.cache_clear()
    return folder


@pytest.mark.usefixtures("published")
def test_method_needs_fetched_data():
    with pytest.raises(NotFetchedError, match=f"fetch {SVM.name}"):
        hbo.run(benchmarks=[SVM.name], methods=["manual-gp"], seeds=range(1))


def test_fetched_data_are_those_trained_on(shared, published):
    result = CliRunner().invoke(fetch, [SVM.name, "--from", str(published)], catch_exceptions=False)
    assert result.output.count("copied") == len(FILES)

    source = benchmark_spec(SVM.name).data

    assert source is not None
    assert not source.missing
    trained_on = offline_datasets(shared / "data" / "openml_datasets")
    for index, task in enumerate(hbo.load(SVM.name).tasks):
        data = source.load(index)
        assert np.array_equal(data.features, trained_on[task.name].x)
        assert np.array_equal(data.labels, trained_on[task.name].y)


def test_unknown_task_has_no_data():
    assert task_data("1") is None


def test_data_of_other_size_are_refused(published):
    path = published / "37_diabetes.pq"
    pd.read_parquet(path).iloc[1:].to_parquet(path)

    with pytest.raises(DownloadError, match=r"\(768, 8, 500\), but got \(767, 8"):
        FILES["37"].store(path)


def test_text_instead_of_data_is_refused(published):
    path = published / "37_diabetes.pq"
    path.write_text("no table")

    with pytest.raises(DownloadError, match="not the published"):
        FILES["37"].store(path)


# -- evaluations -----------------------------------------------------------------------------------


def train_svm(data: ClassificationData, config: Config, task: str) -> dict[str, float]:
    (outcome,) = SVMTrainer(data)(config, task)["evaluations"]
    return outcome


def train_boosting(data: ClassificationData, config: Config, task: str) -> dict[str, float]:
    pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
    rounds = config.pop("nrounds")
    (outcome,) = BoostingTrainer(data)({**config, "rounds": [rounds]}, task)["evaluations"]
    return outcome


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flow", "train", "cost"), [(SVM, train_svm, "cost"), (XGBOOST, train_boosting, "nrounds")]
)
@pytest.mark.parametrize(
    ("task", "make_data"), [("3492", partial(make_monks_problem, 1)), ("9946", breast_cancer)]
)
def test_recorded_evaluations_can_be_repeated(flow, train, cost, task, make_data):
    artifact = benchmark_spec(flow.name).artifact
    assert artifact is not None
    names = [task.name for task in hbo.load(flow.name).tasks]
    recorded = read_evaluations(artifact)[names.index(task)]
    space = flow.space()
    costs = recorded.values[:, space.names.index(cost)]
    for row in np.argsort(costs)[:5]:
        (config,) = space.configs(recorded.values[[row]])

        outcome = train(make_data(), config, task)

        # The last bits of sums may differ between processors and versions of the libraries.
        assert math.isclose(outcome["value"], recorded.objective[row], abs_tol=1e-6)
        assert math.isclose(outcome["spread"], recorded.spread[row], abs_tol=1e-6)
