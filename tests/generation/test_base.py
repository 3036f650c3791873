"""Generators of artifacts: their sources, options, and commands; every artifact has one."""

from importlib import resources
from pathlib import Path

import pytest

from hpobench_ordered.benchmarks.distbo import GENERATED
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.generation.base import (
    EvaluationSource,
    Generator,
    Option,
    Request,
    generators,
)
from hpobench_ordered.surrogates.bundle import BENCHMARK, find_card

ARTIFACTS = Path(str(resources.files("hpobench_ordered") / "artifacts"))
SHIPPED_NAMES = sorted(path.parent.name for path in ARTIFACTS.glob(f"*/{BENCHMARK}"))
SHIPPED_NAMES_WITH_SURROGATE = [name for name in SHIPPED_NAMES if name not in GENERATED]


@pytest.fixture
def requests():
    """The requests that the sources of `generator` got, one after the other."""
    return []


@pytest.fixture
def generator(requests):
    """A generator with three sources, which add to `requests` what they get, and write nothing.

    The source `exact`, the default, takes no options; `sampled` takes a seed and sizes; `any` takes
    all options, and at least ten configurations.
    """

    def add_request(request: Request) -> Path:
        requests.append(request)
        return request.folder

    no_options: frozenset[Option] = frozenset()
    seed_and_sizes = frozenset({Option.SEED, Option.SIZES})
    all_options = frozenset(Option)
    return Generator(
        "mine",
        {
            "exact": EvaluationSource("Takes nothing.", no_options, add_request),
            "sampled": EvaluationSource("Takes two.", seed_and_sizes, add_request),
            "any": EvaluationSource("Takes all.", all_options, add_request, min_configurations=10),
        },
    )


def test_first_source_is_the_default(generator, requests, tmp_path):
    """The generator's first source gets a request of the folder alone, with default options."""
    folder = tmp_path / "mine"

    assert generator.generate(folder) == folder
    assert requests == [Request(folder)]


def test_sizes_and_tasks_are_distinct(generator, requests, tmp_path):
    """A size or a task that is asked for twice is used once; sizes are sorted, tasks are not."""
    generator.generate(tmp_path, source="any", sizes=[433, 56, 56], tasks=["49", "37", "49"])

    assert requests == [Request(tmp_path, sizes=(56, 433), tasks=("49", "37"))]


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
    ],
)
def test_impossible_requests_start_nothing(generator, requests, tmp_path, options, error, message):
    """A source refuses options that it does not take, and numbers below its minimum.

    See the fixture `generator` for its sources.
    """
    with pytest.raises(error, match=message):
        generator.generate(tmp_path / "mine", **options)

    assert not requests
    assert not list(tmp_path.iterdir())


def test_folder_below_file_starts_nothing(generator, requests, tmp_path):
    """If the artifact's folder cannot be made, as it would be inside a file, no source is asked."""
    (tmp_path / "file").touch()

    with pytest.raises(ArtifactError, match="file"):
        generator.generate(tmp_path / "file" / "mine")

    assert not requests


@pytest.mark.parametrize(
    ("options", "words", "command"),
    [
        ({"workers": 2}, ("mine",), "mine --seed 0"),
        ({"tasks": ("37", "49")}, ("mine",), "mine --seed 0 --tasks 37,49"),
        (
            {"seed": 3, "sizes": (56, 155), "configurations": 20},
            ("mine", "--source any"),
            "mine --source any --seed 3 --sizes 56,155 --configs 20",
        ),
    ],
)
def test_command_has_what_decides_the_result(tmp_path, options, words, command):
    """The command has the seed (0 by default), and other options if they are set.

    It never has the number of workers, which changes no result.
    """
    request = Request(tmp_path, **options)

    assert request.command(*words) == f"hpobench-ordered generate {command}"


def test_every_shipped_artifact_has_a_generator():
    """Every shipped card has the command that generates its artifact."""
    assert {"newsvendor", "xgboost-mnist"} < set(SHIPPED_NAMES)
    assert set(SHIPPED_NAMES) <= generators().keys()
    for name in SHIPPED_NAMES_WITH_SURROGATE:
        card = find_card(Artifact.packaged(name))
        assert card is not None
        assert card.command.startswith(f"hpobench-ordered generate {name}")


@pytest.mark.parametrize("name", GENERATED)
def test_artifact_without_surrogate_has_no_card(name):
    """A card describes a surrogate; benchmarks that train models have none."""
    assert find_card(Artifact.packaged(name)) is None
