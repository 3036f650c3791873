import io
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.artifact import SUMS, Artifact, ArtifactWriter, check_writable
from hpobench_ordered.files.writing import write_atomically

ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([1, 2], dtype=np.int8)}


def write(folder: Path) -> Artifact:
    with ArtifactWriter(folder) as writer:
        writer.write_json("x.json", {"key": "value"})
        writer.write_arrays("y.npz", ARRAYS)
    return Artifact(folder)


def test_round_trip(tmp_path):
    artifact = write(tmp_path / "one")
    assert artifact.read_json("x.json") == {"key": "value"}
    arrays = artifact.read_arrays("y.npz")
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    with np.load(tmp_path / "one" / "y.npz") as theirs:
        assert set(theirs) == {"a", "b"}
    with zipfile.ZipFile(tmp_path / "one" / "y.npz") as archive:
        assert archive.testzip() is None
    assert artifact.sums() == write(tmp_path / "two").sums()


def test_digest_is_that_of_names_and_content(tmp_path):
    artifact = write(tmp_path / "one")
    assert artifact.digest == write(tmp_path / "two").digest
    assert len(artifact.digest) == 64
    sums = tmp_path / "one" / SUMS
    before, lines = artifact.digest, sums.read_text().splitlines()
    sums.write_text("\n".join(reversed(lines)))
    assert artifact.digest == before
    for text in ("\n".join(lines).replace("x.json", "z.json"), lines[0]):
        sums.write_text(text)
        assert artifact.digest != before


def test_missing_file_missing_sums_and_unlisted_file(tmp_path):
    artifact = write(tmp_path / "one")
    assert artifact.check() == 2
    with pytest.raises(ArtifactError, match="cannot be read"):
        artifact.read("z.json")
    (tmp_path / "one" / "z.json").write_text("{}")
    with pytest.raises(ArtifactError, match="SHA-256 is not the recorded one"):
        artifact.read("z.json")
    (tmp_path / "one" / "x.json").unlink()
    with pytest.raises(ArtifactError, match=r"x\.json"):
        artifact.check()
    (tmp_path / "one" / SUMS).unlink()
    with pytest.raises(ArtifactError, match=SUMS):
        artifact.read("x.json")


def test_what_is_not_json_and_pickled_arrays_are_refused(tmp_path):
    pickled = io.BytesIO()
    np.savez(pickled, evil=np.array([{"a": 1}], dtype=object))
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_bytes("x.json", b"{")
        writer.write_bytes("y.json", b"\xff\xfe\xfd")
        writer.write_bytes("evil.npz", pickled.getvalue())
    for name in ("x.json", "y.json"):
        with pytest.raises(ArtifactError, match="not JSON"):
            Artifact(tmp_path / "one").read_json(name)
    with pytest.raises(ArtifactError, match="not an array file"):
        Artifact(tmp_path / "one").read_arrays("evil.npz")


def test_an_interrupted_write_or_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    artifact = write(tmp_path / "one")
    before = artifact.sums()
    with pytest.raises(KeyboardInterrupt), ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("x.json", {"key": "other"})
        raise KeyboardInterrupt

    def full(path: Path, data: bytes) -> int:
        raise OSError("no space left on device")

    with pytest.raises(ArtifactError, match="no space"), ArtifactWriter(tmp_path / "one") as writer:
        monkeypatch.setattr(Path, "write_bytes", full)
        writer.write_json("x.json", {})
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_only_artifacts_are_replaced(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    write(mine)  # an empty folder is no loss
    with pytest.raises(ArtifactError, match=r"thesis\.tex"), ArtifactWriter(mine) as writer:
        writer.write_json("x.json", {})
        (mine / "thesis.tex").write_text("all my work")
    for sums in (True, False):
        if not sums:
            (mine / SUMS).unlink()
        with pytest.raises(ArtifactError, match="choose another folder"):
            check_writable(mine)
        with pytest.raises(ArtifactError, match="choose another folder"):
            write(mine)
    assert (mine / "thesis.tex").read_text() == "all my work"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below" / "it"):
        with pytest.raises(ArtifactError, match="file"):
            check_writable(folder)
        with pytest.raises(ArtifactError, match="file"), ArtifactWriter(folder):
            pytest.fail("nothing can be written here")
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize("killed_at", range(3))
def test_a_kill_while_replacing_loses_no_artifact(tmp_path, monkeypatch, killed_at):
    """Killed at any step, the old artifact or the new one is there whole, under some name."""
    write(tmp_path / "one")
    steps: list[str] = []

    def kill(*_: object, **__: object) -> None:
        steps.append("")
        if len(steps) > killed_at:
            raise KeyboardInterrupt

    rename, remove = Path.rename, shutil.rmtree
    monkeypatch.setattr(Path, "rename", lambda path, to: (kill(), rename(path, to))[1])
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: (kill(), remove(path))[1])
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "one")
    assert 2 in [Artifact(path).check() for path in tmp_path.iterdir() if (path / SUMS).exists()]


def test_a_failed_replacement_puts_the_old_one_back(tmp_path, monkeypatch):
    artifact = write(tmp_path / "one")
    before, rename = artifact.sums(), Path.rename

    def refuse_new(path: Path, target: Path) -> Path:
        if target == tmp_path / "one" and not path.name.endswith("-old"):
            raise PermissionError("refused")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_new)
    with pytest.raises(ArtifactError, match="refused"), ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("z.json", {})
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_atomic_write_leaves_nothing_behind(tmp_path):
    write_atomically(tmp_path / "file", b"1")
    write_atomically(tmp_path / "file", b"2")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"2")]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_through_a_link_its_target_is_replaced(tmp_path):
    write(tmp_path / "one")
    (tmp_path / "link").symlink_to("one")
    with ArtifactWriter(tmp_path / "link") as writer:
        writer.write_json("z.json", {})
    assert (tmp_path / "link").is_symlink()
    assert list(Artifact(tmp_path / "one").sums()) == ["z.json"]
