import json
from importlib import import_module

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from hpobench_ordered.benchmarks.xgboost_mnist import space as xgboost_space
from hpobench_ordered.errors import ExperimentError, InvalidSpaceError
from hpobench_ordered.generation._custom.data import read_data
from hpobench_ordered.generation._custom.estimators import (
    EXAMPLE,
    NEIGHBOURS_KEYWORD,
    SPACES,
    built_in_space,
    read_space,
)
from hpobench_ordered.generation._custom.model import Model, infer_kind_of_estimator
from hpobench_ordered.generation._custom.split import PredictionKind, split_data
from hpobench_ordered.generation._custom.training import EstimatorTrainer, Metric

MODULES = ("ensemble", "linear_model", "neighbors", "neural_network", "svm", "tree")


def model_of(key: str) -> Model:
    package, name = key.split(".")
    modules = [f"sklearn.{module}" for module in MODULES] if package == "sklearn" else [package]
    module = next(m for m in modules if hasattr(import_module(m), name))
    return Model.from_path(f"{module}:{name}", fixed={}, seed=0)


@pytest.fixture(scope="module")
def splits():
    names = {
        PredictionKind.CLASSIFICATION: "sklearn:wine",
        PredictionKind.REGRESSION: "sklearn:diabetes",
    }
    return {
        kind: split_data(read_data(name), kind, validation=0.25, seed=0)
        for kind, name in names.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("key", SPACES)
def test_every_class_can_be_trained_in_its_space(key, splits):
    if key.startswith("xgboost"):
        pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
    model, space = model_of(key), built_in_space(key, smallest_size=15)
    assert model.key == key
    model.check_keywords(space.names)
    corners = np.repeat([[0.0], [0.5]], space.dimension, axis=1)
    drawn = space.sample_unit(np.random.default_rng(1), 2)
    configs = space.configs(space.decode(np.concatenate([corners, drawn])))
    kind = infer_kind_of_estimator(model.make_estimator(configs[0]))
    assert kind is not None
    trainer = EstimatorTrainer(splits[kind], model, Metric(kind))
    for config in configs:
        outcome = trainer(config, "15")
        assert np.isfinite(outcome["value"])
        json.dumps(outcome, allow_nan=False)


def test_what_depends_on_the_rows_and_on_what_is_fixed():
    for smallest, most in ((1, 1), (15, 15), (100, 100), (5000, 100)):
        space = built_in_space("sklearn.KNeighborsRegressor", smallest_size=smallest)
        assert space[NEIGHBOURS_KEYWORD].upper == most
    assert built_in_space("xgboost.XGBClassifier", smallest_size=56) == xgboost_space()
    assert built_in_space("sklearn.SVC", smallest_size=10, leave_out=["C"]).names == ("gamma",)
    with pytest.raises(InvalidSpaceError, match="at least one"):
        built_in_space("sklearn.SVC", smallest_size=10, leave_out=["C", "gamma"])


def test_for_other_classes_the_example_can_be_followed(tmp_path):
    with pytest.raises(ExperimentError, match=r"sklearn\.GaussianNB, .* --space FILE") as caught:
        built_in_space("sklearn.GaussianNB", smallest_size=10)
    example, file = str(caught.value).partition("such as\n")[2], tmp_path / "space.json"
    assert example == EXAMPLE
    file.write_text(example)
    space = read_space(file)
    assert space.names == ("alpha", "max_iter", "penalty")
    assert space["alpha"].log and space["max_iter"].upper == 500


@pytest.mark.parametrize("key", SPACES)
def test_every_space_is_one_of_configspace(key):
    space = built_in_space(key, smallest_size=1000)
    ConfigurationSpace.from_serialized_dict(space.to_json())
    assert set(space.names) == {parameter.name for parameter in SPACES[key]}


def test_reads_what_configspace_writes(tmp_path):
    space = built_in_space("sklearn.RandomForestClassifier", smallest_size=10)
    file = tmp_path / "space.json"
    space.to_configspace().to_json(file)
    assert {p.name: p for p in read_space(file).parameters} == {p.name: p for p in space.parameters}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        ("{", "no search space in .*space.json: Expecting"),
        ("[]", "no search space"),
        ('{"hyperparameters": [{"name": "x"}]}', "has no 'type'"),
        ('{"hyperparameters": [{"name": "x", "type": "normal_float"}]}', "unsupported"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    file = tmp_path / "space.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidSpaceError, match=message) as caught:
        read_space(file)
    assert EXAMPLE in str(caught.value)
