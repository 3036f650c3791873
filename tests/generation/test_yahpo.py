"""Generators of YAHPO's benchmarks: evaluations, networks, artifacts and users' own forests."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score
from yahpo_files import define_benchmark, load_definition_and_network

from hpobench_ordered.benchmarks import yahpo as benchmarks
from hpobench_ordered.benchmarks.registry import load, suite
from hpobench_ordered.benchmarks.yahpo import GENERATED_BENCHMARKS, PAPER_BENCHMARKS, name_benchmark
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.best import search_best_values
from hpobench_ordered.data.local import LOCAL_VARIABLE, local_folder
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError
from hpobench_ordered.generation import yahpo
from hpobench_ordered.generation.base import Request
from hpobench_ordered.generation.yahpo import GENERATORS, find_evaluations, read_evaluations
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.testing import check_benchmark

# Scenario and instance of the paper's benchmarks with published evaluations; those of ranger are
# sampled from a network.
PUBLISHED_IN_PAPER = [benchmark for benchmark in PAPER_BENCHMARKS if benchmark[0] != "ranger"]
FURTHER_PUBLISHED = [
    pytest.param(*benchmark, marks=pytest.mark.slow) for benchmark in benchmarks.FURTHER_BENCHMARKS
]
BUNDLED_NAMES = [spec.name for spec in benchmarks.SPECS]
GENERATED_NAMES = [name_benchmark(*benchmark) for benchmark in GENERATED_BENCHMARKS]
GENERATOR_OF_NAME = {generator.name: generator for generator in GENERATORS}


@pytest.fixture
def yahpo_folder(shared, tmp_path, monkeypatch):
    """The folder of the shared copy of YAHPO's data; nothing is in the cache of downloads."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return shared / "data" / "yahpo"


@pytest.fixture
def quick_search(monkeypatch):
    """Make the search for the best known values short."""
    monkeypatch.setattr(pipeline, "search_best_values", partial(search_best_values, draws=200))


def generate(
    name: str, folder: Path, local: Path | None, *, configurations: int = 60, seed: int = 0
) -> Path:
    """Generate the artifact of a benchmark below a folder, from a local copy of YAHPO's data."""
    generator = GENERATOR_OF_NAME[name]
    return generator.generate(folder / name, local=local, seed=seed, configurations=configurations)


def test_every_benchmark_has_a_generator():
    assert [generator.name for generator in GENERATORS] == BUNDLED_NAMES + GENERATED_NAMES


def test_artifacts_go_to_the_package_or_the_user():
    """The package has the artifacts of some benchmarks; users generate the others."""
    homes = {name: generator.home() for name, generator in GENERATOR_OF_NAME.items()}

    assert {homes[name] for name in BUNDLED_NAMES} == {Path("artifacts")}
    assert {homes[name] for name in GENERATED_NAMES} == {local_folder()}


# -- published evaluations -------------------------------------------------------------------------


@pytest.mark.parametrize(("scenario", "instance"), PUBLISHED_IN_PAPER + FURTHER_PUBLISHED)
def test_published_evaluations_are_read(shared, yahpo_folder, scenario, instance):
    """3000 configurations are published, each in five rows, one for each training fraction.

    One evaluation is compared with its row in the file.
    """
    space = define_benchmark(shared, scenario, instance).space
    path = find_evaluations(yahpo_folder, scenario, instance)

    evaluations = read_evaluations(path, space)

    assert evaluations.values.shape == (3000, space.dimension)
    assert evaluations.fractions == (0.05, 0.25, 0.5, 0.75, 1.0)
    any_number, fraction = 1234, 3
    row = pd.read_parquet(path).iloc[5 * any_number + fraction]
    assert row["train_frac"] == 0.75
    config = {name: row[name] for name in space.names if not pd.isna(row[name])}
    np.testing.assert_array_equal(evaluations.values[any_number], space.row(config))
    assert evaluations.auc[any_number, fraction] == row["auc"]


@pytest.mark.parametrize("part", ["", "evaluations"])
def test_evaluations_are_found_in_local_copy(yahpo_folder, part):
    """A user names the folder of all data, or that of evaluations."""
    path = find_evaluations(yahpo_folder / part, "svm", "1220")

    assert path == yahpo_folder / "evaluations" / "rbv2_svm" / "1220.parquet"


def test_missing_evaluations_are_named(tmp_path):
    """Without a folder, the error tells where the evaluations are published."""
    with pytest.raises(ArtifactError, match="no rbv2_svm"):
        find_evaluations(tmp_path, "svm", "1220")
    with pytest.raises(ArtifactError, match=r"sighellan/syne-tune.*--from.*rbv2_svm"):
        find_evaluations(None, "svm", "1220")


def test_too_many_configurations_are_refused(yahpo_folder, tmp_path):
    """There are 3000 published configurations."""
    with pytest.raises(ExperimentError, match="holds 3000 configurations, not 3001"):
        generate("yahpo-svm-1220", tmp_path / "out", yahpo_folder, configurations=3001)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda frame: frame.sort_values("train_frac"), "follow one another"),
        (lambda frame: frame.drop(columns="auc"), "does not hold evaluations"),
    ],
)
def test_damaged_evaluations_are_refused(shared, yahpo_folder, tmp_path, damage, message):
    """The five rows of a configuration, by training fraction, must follow one another."""
    frame = pd.read_parquet(find_evaluations(yahpo_folder, "glmnet", "375")).head(50)
    damage(frame).to_parquet(tmp_path / "375.parquet")

    with pytest.raises(ArtifactError, match=message):
        read_evaluations(tmp_path / "375.parquet", define_benchmark(shared, "glmnet", "375").space)


def test_changed_search_space_is_refused(yahpo_folder, tmp_path):
    """YAHPO's search space must be the published one, as evaluations are coded by it.

    The user's copy of the data has the published evaluations and encoding, but an empty space.
    """
    for part in ("evaluations/rbv2_svm/458.parquet", "yahpo_data-1.0.2/rbv2_svm/encoding.json"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(yahpo_folder / part, tmp_path / part)
    (tmp_path / "yahpo_data-1.0.2" / "rbv2_svm" / "config_space.json").write_text("{}")

    with pytest.raises(DownloadError, match="not the published"):
        generate("yahpo-svm-458", tmp_path / "out", local=tmp_path)


# -- networks --------------------------------------------------------------------------------------


@pytest.fixture
def sample_network_with_seed(shared, tmp_path):
    """A function that draws thirty configurations with a seed, and evaluates them by a network."""
    definition, network = load_definition_and_network(shared, "rpart", "4154")
    request = Request(tmp_path, configurations=30)

    def sample(seed: int) -> yahpo.EvaluatedConfigurations:
        rng = np.random.default_rng(seed)
        return yahpo.sample_network(network, definition.space, request, rng)

    return sample


def test_network_is_sampled_at_all_fractions(sample_network_with_seed):
    """Thirty configurations, drawn by the seed, are evaluated at twenty training fractions."""
    evaluated = sample_network_with_seed(seed=0)

    assert evaluated.fractions == benchmarks.FRACTIONS
    assert evaluated.auc.shape == (30, 20)
    assert ((evaluated.auc > 0) & (evaluated.auc <= 1)).all()
    np.testing.assert_array_equal(sample_network_with_seed(seed=0).auc, evaluated.auc)
    assert not np.array_equal(sample_network_with_seed(seed=1).auc, evaluated.auc)


# -- artifacts -------------------------------------------------------------------------------------

# Evaluations of the later network of ranger, published ones, and those of a fetched network.
ONE_OF_EACH_SOURCE = ("yahpo-ranger-4154", "yahpo-svm-1220", "yahpo-xgboost-458")


@pytest.fixture
def commands_on_cards(monkeypatch):
    """The commands that would be on the cards of forests, as no forest is fitted or written."""
    commands: list[str] = []

    def write_forest(request: Request, definition: Any, forest: Any, texts: Any, **_: Any) -> Path:
        commands.append(texts.command)
        return request.folder

    monkeypatch.setattr(yahpo, "write_forest", write_forest)
    # By default, networks evaluate fewer configurations, to save time; the command stays the same.
    monkeypatch.setattr(yahpo, "SAMPLED_CONFIGURATIONS", 10)
    return commands


@pytest.mark.parametrize("name", ONE_OF_EACH_SOURCE)
def test_card_has_the_whole_command(name, yahpo_folder, tmp_path, commands_on_cards):
    """The command has all options that decide the result, but not the user's folder."""
    GENERATOR_OF_NAME[name].generate(tmp_path / "x", local=yahpo_folder, seed=3, configurations=20)

    command = f"hpobench-ordered generate {name} --from DATA --seed 3 --configs 20"
    assert commands_on_cards == [command]


@pytest.mark.slow
@pytest.mark.parametrize("name", BUNDLED_NAMES)
def test_shipped_card_has_the_default_command(name, yahpo_folder, tmp_path, commands_on_cards):
    """A bundled artifact was made with default options, as the command on its card tells."""
    GENERATOR_OF_NAME[name].generate(tmp_path / "x", local=yahpo_folder)

    assert commands_on_cards == [Artifact.packaged(name).read_json("card.json")["command"]]


OWN_FOREST = "yahpo-rpart-4134"
"""A benchmark whose forest users generate from YAHPO's network."""


@pytest.fixture
def own_forest(yahpo_folder, tmp_path, quick_search, monkeypatch):
    """The benchmark `OWN_FOREST`, loaded with the forest that the user generated for it.

    Its network can be loaded, too: its files are in the cache, as if they had been downloaded.
    """
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    generator = GENERATOR_OF_NAME[OWN_FOREST]
    generator.generate(generator.home() / OWN_FOREST, local=yahpo_folder, configurations=2000)
    for file in benchmarks.describe_files("rpart").values():
        file.store(yahpo_folder / file.name)
    return load(OWN_FOREST)


def test_benchmark_without_forest_is_not_in_suite(tmp_path, monkeypatch):
    """The folder of the user's own benchmarks is empty, so the forest has not been generated."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))

    assert OWN_FOREST not in suite("wide")


@pytest.mark.slow
def test_generated_forest_approximates_its_network(own_forest):
    """On random configurations, a forest predicts the network that it was fitted to.

    Runs on the network keep their identity; those on the forest are told apart from them.
    """
    network = load(OWN_FOREST, surrogate="onnx")

    assert own_forest.surrogate == "forest"
    assert own_forest.space == network.space
    assert network.identity == f"{OWN_FOREST}@1"
    assert own_forest.identity != network.identity
    unit_values = own_forest.space.sample_unit(np.random.default_rng(1), 300)
    configs = own_forest.space.configs(own_forest.space.decode(unit_values))
    for task in own_forest.tasks[::6]:
        values_of_network = network.task(task.name).evaluate_many(configs)
        assert r2_score(values_of_network, task.evaluate_many(configs)) > 0.8


def mark_other_data_sets() -> list[object]:
    """Make parameters of the benchmarks with generated forests, slow ones.

    After the first of each learner they are long: they differ in the data set alone.
    """
    learners = set()
    parameters = []
    for (learner, _), name in zip(GENERATED_BENCHMARKS, GENERATED_NAMES, strict=True):
        mark = pytest.mark.long if learner in learners else pytest.mark.slow
        learners.add(learner)
        parameters.append(pytest.param(name, marks=mark))
    return parameters


@pytest.mark.parametrize("name", mark_other_data_sets())
def test_generated_forests_conform(yahpo_folder, tmp_path, monkeypatch, name):
    """A forest that a user generates passes the public checks of benchmarks, and is in a suite.

    The search for best values is short, but long enough for the checks.
    """
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    monkeypatch.setattr(pipeline, "search_best_values", partial(search_best_values, draws=20_000))

    generate(name, tmp_path, yahpo_folder)

    assert name in suite("wide")
    check_benchmark(name)
