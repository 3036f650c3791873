"""An artifact whose files were edited is refused before runs of it are resumed."""

import shutil
from pathlib import Path

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A benchmark of one's own, found by the name `mine` and by its path."""
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path))
    packaged = Path(str(Artifact.packaged("newsvendor").folder))
    return shutil.copytree(packaged, tmp_path / "mine")


@pytest.mark.parametrize("is_path", [True, False], ids=["path", "name"])
def test_edited_artifact_resumes_no_run(is_path, folder, tmp_path):
    """The benchmark is given by its path, or by its name in the folder of one's own."""
    benchmark = folder if is_path else "mine"
    settings = {"methods": ["random-search"], "seeds": [0], "folder": tmp_path / "store"}
    protocol = hbo.Ordered(trials=1, tasks=1)
    hbo.run(benchmarks=[benchmark], protocol=protocol, **settings)

    table = folder / "table.npz"
    data = bytearray(table.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 1  # changes one bit
    table.write_bytes(data)

    with pytest.raises(ArtifactError, match=r"table\.npz is damaged"):
        hbo.run(benchmarks=[benchmark], protocol=protocol, **settings)
