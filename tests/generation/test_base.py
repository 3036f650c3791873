from importlib import resources
from pathlib import Path

import pytest

from hpobench_ordered.benchmarks.distbo import GENERATED
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import Artifact, is_artifact
from hpobench_ordered.files.bundle import find_card
from hpobench_ordered.generation.base import Generator, Option, Request, Source
from hpobench_ordered.registry import generators


class Recorder:
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Path:
        self.requests.append(request)
        return request.folder


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def generator(recorder):
    sources = {
        "exact": Source("Takes nothing.", frozenset(), recorder),
        "sampled": Source("Takes two.", frozenset({Option.SEED, Option.SIZES}), recorder),
        "any": Source("Takes all.", frozenset(Option), recorder, fewest=10),
    }
    return Generator("mine", sources)


def test_a_source_gets_what_is_asked_for(generator, recorder, tmp_path):
    folder = tmp_path / "mine"
    assert generator.generate(folder) == folder
    generator.generate(folder, source="sampled", seed=3, sizes=[433, 56, 155, 56])
    generator.generate(folder, source="any", tasks=["49", "37", "49"])
    assert recorder.requests == [
        Request(folder),
        Request(folder, seed=3, sizes=(56, 155, 433)),
        Request(folder, tasks=("49", "37")),
    ]


def test_an_option_without_use_is_refused(generator, recorder, tmp_path):
    with pytest.raises(ExperimentError, match=r"'exact' of mine .* --seed; it takes no options"):
        generator.generate(tmp_path / "x", seed=0)
    message = "does not take --workers, --configs; it takes --seed, --sizes"
    with pytest.raises(ExperimentError, match=message):
        generator.generate(tmp_path / "x", source="sampled", workers=2, configurations=1, seed=1)
    assert not recorder.requests


def test_nothing_is_started_that_cannot_be_finished(generator, recorder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError):
        generator.generate(tmp_path / "file" / "x")
    with pytest.raises(ExperimentError, match="at least 10 configurations, got 9"):
        generator.generate(tmp_path / "x", source="any", configurations=9)
    with pytest.raises(UnknownNameError, match="did you mean 'exact'"):
        generator.generate(tmp_path / "x", source="exat")
    assert not recorder.requests
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_command_holds_what_decides_the_result(tmp_path):
    plain = Request(tmp_path, workers=2).command("mine")
    assert plain == "hpobench-ordered generate mine --seed 0"
    request = Request(tmp_path, seed=3, sizes=(56, 155), configurations=20)
    assert request.command("mine", "--source any") == (
        "hpobench-ordered generate mine --source any --seed 3 --sizes 56,155 --configs 20"
    )
    some = Request(tmp_path, tasks=("37", "49")).command("mine")
    assert some == "hpobench-ordered generate mine --seed 0 --tasks 37,49"


def test_every_shipped_artifact_has_a_generator_and_names_it():
    folder = Path(str(resources.files("hpobench_ordered") / "artifacts"))
    shipped = {path.name for path in folder.iterdir() if is_artifact(path)}
    assert {"newsvendor", "xgboost-mnist"} < shipped <= generators().keys()
    for name in shipped:
        card = find_card(Artifact.packaged(name))
        assert (card is None) == (name in GENERATED)  # which have no stored surrogate
        assert card is None or card.command.startswith(f"hpobench-ordered generate {name}")
