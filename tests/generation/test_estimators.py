"""Built-in search spaces of estimators, and files with search spaces of the user's own."""

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

# Modules of scikit-learn with the classes that have a built-in space.
MODULES_OF_SKLEARN = ("ensemble", "linear_model", "neighbors", "neural_network", "svm", "tree")


def import_model(key: str) -> Model:
    """Import the class of a built-in space's key, such as "sklearn.SVC" or "xgboost.XGBRegressor".

    A key names the package and the class, not the module; scikit-learn's have to be looked for.
    """
    package, class_name = key.split(".")
    modules = [package]
    if package == "sklearn":
        modules = [f"sklearn.{module}" for module in MODULES_OF_SKLEARN]
    (module,) = [module for module in modules if hasattr(import_module(module), class_name)]
    return Model.from_path(f"{module}:{class_name}", fixed={}, seed=0)


@pytest.fixture(scope="module")
def splits():
    """A split of a small data set for classification, and of one for regression."""
    wine = read_data("sklearn:wine")
    diabetes = read_data("sklearn:diabetes")
    classification = PredictionKind.CLASSIFICATION
    regression = PredictionKind.REGRESSION
    return {
        classification: split_data(wine, classification, validation=0.25, seed=0),
        regression: split_data(diabetes, regression, validation=0.25, seed=0),
    }


@pytest.mark.slow
@pytest.mark.parametrize("key", SPACES)
def test_every_class_is_trained_in_its_space(key, splits):
    """Trainings succeed at the lower bounds, in the middle and at random places of the space.

    Training sets have 15 rows, which bounds some hyperparameters. Outcomes can be stored.
    """
    if key.startswith("xgboost"):
        pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
    model = import_model(key)
    space = built_in_space(key, smallest_size=15)
    lower_bounds = np.zeros((1, space.dimension))
    middles = np.full((1, space.dimension), 0.5)
    random_values = space.sample_unit(np.random.default_rng(1), 2)
    unit_values = np.concatenate([lower_bounds, middles, random_values])
    configs = space.configs(space.decode(unit_values))
    kind = infer_kind_of_estimator(model.make_estimator(configs[0]))
    assert kind is not None
    trainer = EstimatorTrainer(splits[kind], model, Metric(kind))
    for config in configs:
        outcome = trainer(config, "15")

        assert np.isfinite(outcome["value"])
        json.dumps(outcome, allow_nan=False)


@pytest.mark.parametrize("key", [key for key in SPACES if key.startswith("sklearn.")])
def test_hyperparameters_are_keywords(key):
    """The class takes every hyperparameter of its built-in space."""
    model = import_model(key)
    names = built_in_space(key, smallest_size=15).names

    # Raises an error for a name that the class does not take.
    model.check_keywords(names)


@pytest.mark.parametrize("key", [key for key in SPACES if key.startswith("sklearn.")])
def test_key_names_package_and_class(key):
    """The same key, such as "sklearn.SVC", whichever module a class is imported from."""
    assert import_model(key).key == key


@pytest.mark.parametrize(
    ("smallest_size", "most_neighbours"), [(1, 1), (15, 15), (100, 100), (5000, 100)]
)
def test_rows_limit_the_neighbours(smallest_size, most_neighbours):
    """The upper bound is the number of rows, as there are no more neighbours, but at most 100."""
    space = built_in_space("sklearn.KNeighborsRegressor", smallest_size=smallest_size)

    assert space[NEIGHBOURS_KEYWORD].upper == most_neighbours


def test_xgboost_has_the_papers_space():
    assert built_in_space("xgboost.XGBClassifier", smallest_size=56) == xgboost_space()


def test_fixed_hyperparameters_are_left_out():
    """A hyperparameter whose value the user fixes is not in the search space."""
    # The built-in space of SVC has the hyperparameters C and gamma.
    space = built_in_space("sklearn.SVC", smallest_size=10, leave_out=["C"])

    assert space.names == ("gamma",)


def test_not_everything_can_be_fixed():
    """If all hyperparameters were fixed, there would be nothing to search."""
    both_hyperparameters = ["C", "gamma"]

    with pytest.raises(InvalidSpaceError, match="at least one"):
        built_in_space("sklearn.SVC", smallest_size=10, leave_out=both_hyperparameters)


def test_other_classes_get_an_example():
    """A class without a built-in space needs a file; the error ends with an example of one."""
    with pytest.raises(ExperimentError, match=r"sklearn\.GaussianNB, .* --space FILE") as caught:
        built_in_space("sklearn.GaussianNB", smallest_size=10)

    _, _, example = str(caught.value).partition("such as\n")
    assert example == EXAMPLE


def test_example_is_a_search_space(tmp_path):
    """A user can copy the example of error messages as it is."""
    file = tmp_path / "space.json"
    file.write_text(EXAMPLE)

    space = read_space(file)

    assert space.names == ("alpha", "max_iter", "penalty")
    assert space["alpha"].log
    assert space["max_iter"].upper == 500


@pytest.mark.parametrize("key", SPACES)
def test_configspace_reads_every_space(key):
    """A built-in space, written as JSON, is a space of the package ConfigSpace, too."""
    space = built_in_space(key, smallest_size=1000)

    # Raises an error if it cannot.
    ConfigurationSpace.from_serialized_dict(space.to_json())

    assert set(space.names) == {parameter.name for parameter in SPACES[key]}


def test_spaces_of_configspace_are_read(tmp_path):
    """A file written by the package ConfigSpace has all hyperparameters, in another order."""
    space = built_in_space("sklearn.RandomForestClassifier", smallest_size=10)
    file = tmp_path / "space.json"
    space.to_configspace().to_json(file)

    parameters = {parameter.name: parameter for parameter in read_space(file).parameters}

    assert parameters == {parameter.name: parameter for parameter in space.parameters}


def test_missing_file_is_refused(tmp_path):
    """The file of a search space that the user names does not exist."""
    with pytest.raises(InvalidSpaceError, match="No such file"):
        read_space(tmp_path / "space.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no search space in .*space.json: Expecting"),
        ("[]", "no search space"),
        ('{"hyperparameters": [{"name": "x"}]}', "has no 'type'"),
        ('{"hyperparameters": [{"name": "x", "type": "normal_float"}]}', "unsupported"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    """A file that is no search space is refused with an example of one."""
    file = tmp_path / "space.json"
    file.write_text(content)

    with pytest.raises(InvalidSpaceError, match=message) as caught:
        read_space(file)

    assert EXAMPLE in str(caught.value)
