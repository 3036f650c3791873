from importlib import resources
from pathlib import Path

import pytest

from hpobench_ordered.benchmarks.distbo import GENERATED
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import Artifact, is_artifact
from hpobench_ordered.generation.base import Generator, Option, Request, Source, generators
from hpobench_ordered.surrogates.bundle import find_card


@pytest.fixture
def recorded():
    """A generator, and what its sources were asked for."""
    requests: list[Request] = []

    def record(request: Request) -> Path:
        requests.append(request)
        return request.folder

    sources = {
        "exact": Source("Takes nothing.", frozenset(), record),
        "sampled": Source("Takes two.", frozenset({Option.SEED, Option.SIZES}), record),
        "any": Source("Takes all.", frozenset(Option), record, fewest=10),
    }
    return Generator("mine", sources), requests


def test_a_source_gets_what_is_asked_for(recorded, tmp_path):
    generator, requests = recorded
    folder = tmp_path / "mine"
    assert generator.generate(folder) == folder
    generator.generate(folder, source="sampled", seed=3, sizes=[433, 56, 155, 56])
    generator.generate(folder, source="any", tasks=["49", "37", "49"])
    sampled = Request(folder, seed=3, sizes=(56, 155, 433))
    assert requests == [Request(folder), sampled, Request(folder, tasks=("49", "37"))]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": 0}, ExperimentError, r"'exact' of mine .* --seed; it takes no options"),
        (
            {"source": "sampled", "workers": 2, "configurations": 1, "seed": 1},
            ExperimentError,
            "does not take --workers, --configs; it takes --seed, --sizes",
        ),
        ({"source": "any", "configurations": 9}, ExperimentError, "at least 10 configurations"),
        ({"source": "exat"}, UnknownNameError, "did you mean 'exact'"),
        ({"folder": "file/x"}, ArtifactError, "file"),
    ],
)
def test_nothing_is_started_that_cannot_be_finished(recorded, tmp_path, options, error, message):
    generator, requests = recorded
    (tmp_path / "file").touch()
    options = {"folder": "x"} | options
    with pytest.raises(error, match=message):
        generator.generate(tmp_path / options.pop("folder"), **options)
    assert not requests
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_command_holds_what_decides_the_result(tmp_path):
    plain, some = Request(tmp_path, workers=2), Request(tmp_path, tasks=("37", "49"))
    assert plain.command("mine") == "hpobench-ordered generate mine --seed 0"
    assert some.command("mine") == "hpobench-ordered generate mine --seed 0 --tasks 37,49"
    request = Request(tmp_path, seed=3, sizes=(56, 155), configurations=20)
    assert request.command("mine", "--source any") == (
        "hpobench-ordered generate mine --source any --seed 3 --sizes 56,155 --configs 20"
    )


def test_every_shipped_artifact_has_a_generator_and_names_it():
    folder = Path(str(resources.files("hpobench_ordered") / "artifacts"))
    shipped = {path.name for path in folder.iterdir() if is_artifact(path)}
    assert {"newsvendor", "xgboost-mnist"} < shipped <= generators().keys()
    for name in shipped:
        card = find_card(Artifact.packaged(name))
        assert (card is None) == (name in GENERATED)  # which have no stored surrogate
        assert card is None or card.command.startswith(f"hpobench-ordered generate {name}")
