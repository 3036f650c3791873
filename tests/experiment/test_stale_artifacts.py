"""An artifact whose files were edited is refused before runs of it are resumed."""

import shutil
from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.errors import ArtifactError


@pytest.fixture
def folder_of_mine(tmp_path, monkeypatch):
    """The folder of a user's own benchmark, which is found by the name `mine` and by its path."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    packaged = Path(str(Artifact.packaged("newsvendor").folder))
    return shutil.copytree(packaged, tmp_path / "mine")


@pytest.mark.parametrize("is_path", [True, False], ids=["path", "name"])
def test_edited_artifact_resumes_no_run(is_path, folder_of_mine, tmp_path):
    """An experiment on a user's benchmark is started again after a file of it was changed.

    The benchmark is given by its path, or else by its name.
    """
    settings = {
        "benchmarks": [folder_of_mine if is_path else "mine"],
        "methods": ["random-search"],
        "seeds": [0],
        "protocol": hbo.Ordered(trials=1, tasks=1),
        "folder": tmp_path / "store",
    }
    hbo.run(**settings)
    flip_bit_in_the_middle(folder_of_mine / "table.npz")

    with pytest.raises(ArtifactError, match=r"table\.npz is damaged"):
        hbo.run(**settings)


def flip_bit_in_the_middle(path: Path) -> None:
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 1
    path.write_bytes(data)
