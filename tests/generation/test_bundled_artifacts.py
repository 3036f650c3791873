"""Bundled artifacts are those that their generators make today, to the byte."""

from importlib import resources

import pytest

from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.generation.base import generator
from hpobench_ordered.surrogates.bundle import CARD, read_card
from hpobench_ordered.surrogates.card import find_versions

FOLDER_OF_NAME = {
    "newsvendor": None,
    "svm-a": None,
    "yahpo-aknn-1220": "yahpo",
    "yahpo-glmnet-4135": "yahpo",
    "yahpo-svm-40966": "yahpo",
}
"""Folder with the raw evaluations of each artifact that is generated again; None if it needs none.

They are simulated, or fitted to published evaluations. Artifacts of trainings are left out: linear
algebra has other last digits on other processors.
"""


FURTHER_NAMES = ("yahpo-aknn-1220", "yahpo-svm-40966")
"""They are generated as `yahpo-glmnet-4135` is, from other evaluations."""


def mark_further_names() -> list[object]:
    """Make parameters of the names and folders, slow ones; those of further names are long."""
    parameters = []
    for name, folder in FOLDER_OF_NAME.items():
        mark = pytest.mark.long if name in FURTHER_NAMES else pytest.mark.slow
        parameters.append(pytest.param(name, folder, marks=mark))
    return parameters


def test_cards_have_all_measures():
    """Cards made before a measure was added lack it; the last one added is `upper_half`.

    That is the rank correlation among the better half of the configurations.
    """
    artifacts = resources.files("hpobench_ordered") / "artifacts"
    names = [folder.name for folder in artifacts.iterdir() if (folder / CARD).is_file()]

    assert names
    for name in names:
        card = read_card(Artifact.packaged(name))
        assert all(quality.upper_half is not None for quality in card.figures)


@pytest.mark.parametrize(("name", "folder"), mark_further_names())
def test_bundled_files_are_generated_again(name, folder, request, tmp_path):
    """Generating a bundled artifact again gives the same files, to the byte.

    `folder` has the raw evaluations that it is generated from, in the shared data; None if it needs
    none. Other versions of packages than the card's may give other last digits.
    """
    bundled = Artifact.packaged(name)
    versions = read_card(bundled).versions
    packages = versions.keys() - {"python"}
    if find_versions(*packages) != versions:
        pytest.skip(f"the card names the versions it was made with: {dict(versions)}")
    local = None
    if folder is not None:
        # Only now, as the fixture skips the test where there are no shared data.
        local = request.getfixturevalue("shared") / "data" / folder

    generated = generator(name).generate(tmp_path / name, local=local)

    checksums_of_files = Artifact(generated).sums()
    assert checksums_of_files == bundled.sums()
