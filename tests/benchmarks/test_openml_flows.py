"""Benchmarks of OpenML's flows: spaces as in the paper, and evaluations that can be repeated."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks._openml_data import FILES, make_monks_problem, task_data
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
from hpobench_ordered.files.bundle import read_card, read_evaluations
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.generation._flows.datasets import breast_cancer, offline_datasets
from hpobench_ordered.generation._flows.training import BoostingTrainer, SVMTrainer
from hpobench_ordered.registry import benchmark_spec

BUNDLED = (SVM, XGBOOST)


# -- search spaces ---------------------------------------------------------------------------------


def paper_s_bounds(shared: Path, flow: Flow) -> dict[str, tuple[float, float]]:
    """Bounds of the numbers, as the supplement lists them."""
    text = (shared / "papers" / "ablr-2018-supplement.txt").read_text()
    begin, end = ("## B.1", "## B.2") if flow is SVM else ("## B.2", "### B.3")
    lines = text[text.index(begin) : text.index(end)].splitlines()
    bounds = {}
    for line in lines:
        if line.startswith("- ") and "min:" in line:
            name, _, rest = line.removeprefix("- ").partition(" (")
            low, high = (part.split(":")[1] for part in rest.split(",")[1:3])
            bounds[name.replace("\\_", "_")] = float(low), float(high.strip(" ),;."))
    return bounds


@pytest.mark.parametrize("flow", BUNDLED)
def test_bounds_and_tasks_are_the_paper_s(shared, flow):
    space = flow.space()
    numbers = {p.name: (p.lower, p.upper) for p in space.parameters if not p.choices}
    assert numbers == paper_s_bounds(shared, flow)
    text = (shared / "papers" / "ablr-2018-supplement.txt").read_text()
    listed = re.findall(r"ids`? are: ([\d, ]+)", text)[0 if flow is SVM else 1]
    assert set(flow.tasks) == set(map(int, listed.split(",")))
    assert len(flow.tasks) == 30


def active(flow: Flow, **choice: str) -> set[str]:
    space = flow.space()
    drawn = space.configs(space.decode(space.sample_unit(np.random.default_rng(0), 200)))
    names_of = [set(config) for config in drawn if choice.items() <= config.items()]
    assert all(names == names_of[0] for names in names_of)
    return names_of[0]


def test_what_is_active_and_on_a_log_scale():
    assert active(SVM, kernel="linear") == {"kernel", "cost"}
    assert active(SVM, kernel="radial") == active(SVM, kernel="sigmoid")
    assert active(SVM, kernel="radial") == {"kernel", "cost", "gamma"}
    assert active(SVM, kernel="polynomial") == {"kernel", "cost", "gamma", "degree"}
    assert active(XGBOOST, booster="gbtree") == set(XGBOOST.space().names)
    linear = {"booster", "nrounds", "eta", "lambda", "alpha"}
    assert active(XGBOOST, booster="gblinear") == linear
    logs = [{p.name for p in flow.space().parameters if p.log} for flow in (SVM, XGBOOST, RANGER)]
    assert logs == [{"cost", "gamma"}, {"eta", "lambda", "alpha", "min_child_weight"}, set()]


# -- the random forest, which is not bundled -------------------------------------------------------


def test_the_forest_is_listed_and_says_how_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))  # where other tests have made none
    assert RANGER.name in hbo.list_benchmarks()
    spec = benchmark_spec(RANGER.name)
    assert all(option.lacks == "generate" for option in spec.surrogates)
    definition = spec.define()
    assert [task.name for task in definition.tasks] == [str(task) for task in XGBOOST_TASKS]
    assert definition.space == RANGER.space()
    with pytest.raises(NotFetchedError, match="hpobench-ordered generate openml-ranger"):
        hbo.load(RANGER.name)


# -- bundled artifacts -----------------------------------------------------------------------------


@pytest.mark.parametrize("flow", BUNDLED)
def test_bundled_benchmarks(flow):
    spec = benchmark_spec(flow.name)
    benchmark = hbo.load(flow.name)
    assert spec.artifact is not None and benchmark.recorded is not None
    assert benchmark.surrogate == "forest"
    assert benchmark.space == flow.space()
    assert len(benchmark.tasks) == 14
    papers = SVM_TASKS if flow is SVM else XGBOOST_TASKS
    card = read_card(spec.artifact)
    present = [task.name for task in benchmark.tasks if int(task.name) in papers]
    assert f"{len(present)} of the paper's 30 tasks: {', '.join(present)};" in card.describe()
    assert "our own" in card.describe()
    for task, evaluations in zip(benchmark.tasks, benchmark.recorded(), strict=True):
        assert tuple(task.context) == (*CONTEXT, LANDMARK)
        assert all(type(value) is float for value in task.context.values())
        assert task.best_value is not None and 0.5 < task.best_value <= 1
        assert evaluations.task == task.name
        assert len(evaluations) >= 100


# -- training data ---------------------------------------------------------------------------------


@pytest.fixture
def fetched(shared, tmp_path, monkeypatch):
    """A cache with the tasks' data, written as OpenML publishes them."""
    folder = shared / "data" / "openml_datasets"
    frames = {path.name.partition("_")[0]: pd.read_csv(path) for path in folder.glob("*.csv")}
    inputs, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    frames["9946"] = inputs.assign(Class=labels)
    published = tmp_path / "published"
    published.mkdir()
    for task, file in FILES.items():
        frames[task].to_parquet(published / Path(file.name).name, index=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    task_data.cache_clear()
    return published


def test_training_data_are_those_that_were_trained_on(shared, fetched):
    """Once fetched; before, a method that looks at them is refused."""
    with pytest.raises(NotFetchedError, match=f"fetch {SVM.name}"):
        hbo.run(benchmarks=[SVM.name], methods=["manual-gp"], seeds=range(1))
    result = CliRunner().invoke(fetch, [SVM.name, "--from", str(fetched)], catch_exceptions=False)
    assert result.output.count("copied") == len(FILES)
    trained_on = offline_datasets(shared / "data" / "openml_datasets")
    source = benchmark_spec(SVM.name).data
    assert source is not None and not source.missing
    for index, task in enumerate(hbo.load(SVM.name).tasks):
        data, expected = source.load(index), trained_on[task.name]
        assert data is not None and data.labels is not None
        assert np.array_equal(data.features, expected.x)
        assert np.array_equal(data.labels, expected.y)
    assert task_data("1") is None


def test_other_data_are_refused(fetched):
    path = fetched / "37_diabetes.pq"
    pd.read_parquet(path).iloc[1:].to_parquet(path)
    with pytest.raises(DownloadError, match=r"\(768, 8, 500\), but got \(767, 8"):
        FILES["37"].store(path)
    path.write_text("no table")
    with pytest.raises(DownloadError, match="not the published"):
        FILES["37"].store(path)


# -- evaluations -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("flow", BUNDLED)
@pytest.mark.parametrize("task", ["3492", "9946"])
def test_recorded_evaluations_can_be_repeated(flow, task):
    """Training again the cheapest configurations gives the values recorded."""
    if flow is XGBOOST:
        pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
    artifact = benchmark_spec(flow.name).artifact
    assert artifact is not None
    names = [task.name for task in hbo.load(flow.name).tasks]
    raw = read_evaluations(artifact)[names.index(task)]
    data = make_monks_problem(1) if task == "3492" else breast_cancer()
    column = flow.space().names.index("cost" if flow is SVM else "nrounds")
    for row in np.argsort(raw.values[:, column])[:5]:
        (config,) = flow.space().configs(raw.values[[row]])
        if flow is SVM:
            (outcome,) = SVMTrainer(data)(config, task)["evaluations"]
        else:
            rounds = config.pop("nrounds")
            repeated = BoostingTrainer(data)({**config, "rounds": [rounds]}, task)
            (outcome,) = repeated["evaluations"]
        # The last bits of sums may differ between processors and versions of the libraries.
        assert math.isclose(outcome["value"], raw.objective[row], abs_tol=1e-6)
        assert math.isclose(outcome["spread"], raw.spread[row], abs_tol=1e-6)
