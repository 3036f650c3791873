import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score
from yahpo_files import define, defined_network

from hpobench_ordered.benchmarks import yahpo as benchmarks
from hpobench_ordered.benchmarks.yahpo import GENERATED_BENCHMARKS, PAPER_BENCHMARKS, name_benchmark
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE, local_folder
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.generation import yahpo
from hpobench_ordered.generation.base import Request
from hpobench_ordered.generation.yahpo import GENERATORS, find_evaluations, read_evaluations
from hpobench_ordered.registry import load, suite
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known
from hpobench_ordered.testing import check_benchmark

PUBLISHED = [(s, i) for s, i in PAPER_BENCHMARKS if s != "ranger"]
FURTHER = [pytest.param(*b, marks=pytest.mark.slow) for b in benchmarks.FURTHER_BENCHMARKS]
CARDS = [
    pytest.param(g, id=g.name, marks=pytest.mark.slow if place >= len(PAPER_BENCHMARKS) else ())
    for place, g in enumerate(GENERATORS)
]


@pytest.fixture
def data(shared, tmp_path, monkeypatch):
    """The shared copy of YAHPO's data, with an empty cache."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return shared / "data" / "yahpo"


def generate(name: str, folder: Path, local: Path | None, *, n: int = 60, seed: int = 0) -> Path:
    generator = next(g for g in GENERATORS if g.name == name)
    return generator.generate(folder / name, local=local, seed=seed, configurations=n)


@pytest.fixture
def quick(monkeypatch):
    """A small search for the best known values."""
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))


def test_what_is_bundled_and_what_is_to_be_generated_has_a_generator():
    bundled = [spec.name for spec in benchmarks.SPECS]
    generated = [name_benchmark(*benchmark) for benchmark in GENERATED_BENCHMARKS]
    assert [g.name for g in GENERATORS] == bundled + generated
    homes = {g.name: g.home() for g in GENERATORS}
    assert {homes[name] for name in bundled} == {Path("artifacts")}
    assert {homes[name] for name in generated} == {local_folder()}


@pytest.mark.parametrize(("scenario", "instance"), PUBLISHED + FURTHER)
def test_reads_the_published_evaluations(shared, data, scenario, instance):
    space = define(shared, scenario, instance).space
    path = find_evaluations(data, scenario, instance)
    evaluations = read_evaluations(path, space)
    assert evaluations.values.shape == (3000, space.dimension)
    assert evaluations.fractions == (0.05, 0.25, 0.5, 0.75, 1.0)
    frame = pd.read_parquet(path)
    row = 5 * 1234 + 3
    config = {k: v for k, v in frame.iloc[row][list(space.names)].items() if not pd.isna(v)}
    np.testing.assert_array_equal(evaluations.values[1234], space.row(config))
    assert frame["train_frac"][row] == 0.75
    assert evaluations.auc[1234, 3] == frame["auc"][row]


def test_finds_a_local_copy_by_file_and_by_folder(data, tmp_path):
    file = data / "evaluations" / "rbv2_svm" / "1220.parquet"
    for local in (data, data / "evaluations", file):
        assert find_evaluations(local, "svm", "1220") == file
    with pytest.raises(ArtifactError, match="no rbv2_svm"):
        find_evaluations(tmp_path, "svm", "1220")
    with pytest.raises(ArtifactError, match=r"sighellan/syne-tune.*--from.*rbv2_svm"):
        generate("yahpo-svm-1220", tmp_path / "out", None)
    for n, message in ((3001, "holds 3000 configurations, not 3001"), (9, "at least 10 .* got 9")):
        with pytest.raises(ExperimentError, match=message):
            generate("yahpo-svm-1220", tmp_path / "out", data, n=n)
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda frame: frame.sort_values("train_frac"), "follow one another"),
        (lambda frame: frame.iloc[1:], "follow one another"),
        (lambda frame: frame[::-1], "follow one another"),
        (lambda frame: frame.drop(columns="auc"), "does not hold evaluations"),
        (None, "does not hold evaluations"),
    ],
)
def test_refuses_other_evaluations(shared, data, tmp_path, damage, message):
    path = tmp_path / "375.parquet"
    if damage is None:
        path.write_text("no parquet")
    else:
        frame = pd.read_parquet(find_evaluations(data, "glmnet", "375")).head(50)
        damage(frame).to_parquet(path)
    with pytest.raises(ArtifactError, match=message):
        read_evaluations(path, define(shared, "glmnet", "375").space)


def test_refuses_a_changed_search_space(data, tmp_path):
    for part in ("evaluations/rbv2_svm/458.parquet", "yahpo_data-1.0.2/rbv2_svm/encoding.json"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(data / part, tmp_path / part)
    space = tmp_path / "yahpo_data-1.0.2" / "rbv2_svm" / "config_space.json"
    space.write_text("{}")
    with pytest.raises(DownloadError, match="not the published"):
        generate("yahpo-svm-458", tmp_path / "out", tmp_path)


def test_samples_the_network_at_all_fractions(shared, tmp_path):
    defined, model = defined_network(shared, "rpart", "4154")
    request = Request(tmp_path, configurations=30)
    samples = [
        yahpo.sample_network(model, defined.space, request, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    ]
    assert samples[0].fractions == benchmarks.FRACTIONS
    assert samples[0].auc.shape == (30, 20)
    assert ((samples[0].auc > 0) & (samples[0].auc <= 1)).all()
    np.testing.assert_array_equal(samples[0].auc, samples[1].auc)
    assert not np.array_equal(samples[0].auc, samples[2].auc)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["yahpo-ranger-4154", "yahpo-svm-1220", "yahpo-xgboost-458"])
def test_the_same_seed_gives_the_same_bytes(name, data, tmp_path, quick):
    folders = [
        generate(name, tmp_path / part, data, seed=seed)
        for part, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    digests = [Artifact(folder).digest for folder in folders]
    assert digests[0] == digests[1] != digests[2]
    bench = load(str(folders[0]))
    assert [task.name for task in bench.tasks] == [f"{k}%" for k in range(5, 101, 5)]
    config = bench.space.sample(np.random.default_rng(0))
    for task in bench.tasks:
        assert task.best_value is not None
        assert task.best_value >= task.evaluate(config)


@pytest.mark.parametrize("generator", CARDS)
def test_the_card_tells_the_whole_command(generator, data, tmp_path, monkeypatch):
    commands = []

    def write_forest(request, defined, forest, report, **_):
        commands.append(report.command)
        return request.folder

    monkeypatch.setattr(yahpo, "write_forest", write_forest)
    monkeypatch.setattr(yahpo, "SAMPLED_CONFIGURATIONS", 10)
    generator.generate(tmp_path / "x", local=data)
    generator.generate(tmp_path / "x", local=data, seed=3, configurations=20)
    told = f"hpobench-ordered generate {generator.name} --from DATA --seed 0"
    if generator.home() != local_folder():  # it is shipped
        assert told == Artifact.packaged(generator.name).read_json("card.json")["command"]
    assert commands == [told, f"{told[:-1]}3 --configs 20"]


@pytest.mark.slow
def test_a_generated_forest_approximates_the_network_of_its_name(
    data, tmp_path, quick, monkeypatch
):
    name = "yahpo-rpart-4134"
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    generator = next(g for g in GENERATORS if g.name == name)
    assert name not in suite("wide")
    generator.generate(generator.home() / name, local=data, configurations=2000)
    assert name in suite("wide")
    for file in benchmarks.remote_files("rpart").values():
        file.store(data / file.name)
    forest, onnx = load(name), load(name, surrogate="onnx")
    assert (forest.surrogate, onnx.surrogate) == ("forest", "onnx")
    assert forest.space == onnx.space
    assert [task.name for task in forest.tasks] == [task.name for task in onnx.tasks]
    draws = forest.space.sample_unit(np.random.default_rng(1), 300)
    configs = forest.space.configs(forest.space.decode(draws))
    for task, own in zip(forest.tasks[::6], onnx.tasks[::6], strict=True):
        assert r2_score(own.evaluate_many(configs), task.evaluate_many(configs)) > 0.8
    # Runs on the network go on as before; those on the user's own forest are told apart.
    assert onnx.identity == f"{name}@1" != forest.identity


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "instance"), GENERATED_BENCHMARKS)
def test_generates_what_the_wide_suite_has_beyond_the_package(
    data, tmp_path, monkeypatch, scenario, instance
):
    name = name_benchmark(scenario, instance)
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=20_000))
    generate(name, tmp_path, data)
    assert name in suite("wide")
    check_benchmark(name)
