"""Artifacts: what is written is read again, damage is noticed, and nothing is lost."""

import io
import itertools
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


def write_artifact(folder: Path) -> Artifact:
    """An artifact of a JSON file and a file of arrays."""
    with ArtifactWriter(folder) as writer:
        writer.write_json("x.json", {"key": "value"})
        writer.write_arrays("y.npz", ARRAYS)
    return Artifact(folder)


def test_json_round_trips(tmp_path):
    assert write_artifact(tmp_path / "one").read_json("x.json") == {"key": "value"}


def test_arrays_round_trip(tmp_path):
    arrays = write_artifact(tmp_path / "one").read_arrays("y.npz")
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_numpy_and_zipfile_read_arrays(tmp_path):
    write_artifact(tmp_path / "one")
    with np.load(tmp_path / "one" / "y.npz") as stored:
        assert set(stored) == {"a", "b"}
    with zipfile.ZipFile(tmp_path / "one" / "y.npz") as archive:
        assert archive.testzip() is None


def test_same_content_has_same_hashes(tmp_path):
    assert write_artifact(tmp_path / "one").sums() == write_artifact(tmp_path / "two").sums()


def test_digest_ignores_order_of_hashes(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.digest
    lines = (tmp_path / "one" / SUMS).read_text().splitlines()
    (tmp_path / "one" / SUMS).write_text("\n".join(reversed(lines)))
    assert artifact.digest == before
    assert len(before) == 64


def test_digest_changes_with_name_of_a_file(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.digest
    text = (tmp_path / "one" / SUMS).read_text()
    (tmp_path / "one" / SUMS).write_text(text.replace("x.json", "z.json"))
    assert artifact.digest != before


def test_digest_changes_with_number_of_files(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.digest
    first_line = (tmp_path / "one" / SUMS).read_text().splitlines()[0]
    (tmp_path / "one" / SUMS).write_text(first_line)
    assert artifact.digest != before


def test_check_counts_files(tmp_path):
    number_of_files = 2  # x.json and y.npz
    assert write_artifact(tmp_path / "one").check() == number_of_files


def test_unknown_file_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="cannot be read"):
        write_artifact(tmp_path / "one").read("z.json")


def test_unlisted_file_is_refused(tmp_path):
    """A file without a recorded hash, which was added after the artifact was written."""
    artifact = write_artifact(tmp_path / "one")
    (tmp_path / "one" / "z.json").write_text("{}")
    with pytest.raises(ArtifactError, match="SHA-256 is not the recorded one"):
        artifact.read("z.json")


def test_check_names_missing_file(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    (tmp_path / "one" / "x.json").unlink()
    with pytest.raises(ArtifactError, match=r"x\.json"):
        artifact.check()


def test_missing_hashes_are_refused(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    (tmp_path / "one" / SUMS).unlink()
    with pytest.raises(ArtifactError, match=SUMS):
        artifact.read("x.json")


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe\xfd"])
def test_file_that_is_not_json_is_refused(tmp_path, data):
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_bytes("x.json", data)
    with pytest.raises(ArtifactError, match="not JSON"):
        Artifact(tmp_path / "one").read_json("x.json")


def test_pickled_arrays_are_refused(tmp_path):
    pickled = io.BytesIO()
    np.savez(pickled, evil=np.array([{"a": 1}], dtype=object))
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_bytes("evil.npz", pickled.getvalue())
    with pytest.raises(ArtifactError, match="not an array file"):
        Artifact(tmp_path / "one").read_arrays("evil.npz")


def test_interrupted_write_keeps_the_old_artifact(tmp_path):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.sums()
    with pytest.raises(KeyboardInterrupt), ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("x.json", {"key": "other"})
        raise KeyboardInterrupt
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_full_disk_keeps_the_old_artifact(tmp_path, monkeypatch):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.sums()

    def fail_to_write(path: Path, data: bytes) -> int:
        raise OSError("no space left on device")

    with pytest.raises(ArtifactError, match="no space"), ArtifactWriter(tmp_path / "one") as writer:
        monkeypatch.setattr(Path, "write_bytes", fail_to_write)
        writer.write_json("x.json", {})
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_empty_folder_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    assert write_artifact(tmp_path / "mine").check() == 2  # files


def test_file_that_appears_while_writing_is_kept(tmp_path):
    mine = tmp_path / "mine"
    write_artifact(mine)
    with pytest.raises(ArtifactError, match=r"thesis\.tex"), ArtifactWriter(mine) as writer:
        writer.write_json("x.json", {})
        (mine / "thesis.tex").write_text("all my work")
    assert (mine / "thesis.tex").read_text() == "all my work"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("has_hashes", [True, False])
@pytest.mark.parametrize("attempt", [check_writable, write_artifact])
def test_folder_with_other_files_is_not_replaced(tmp_path, has_hashes, attempt):
    mine = tmp_path / "mine"
    write_artifact(mine)
    (mine / "thesis.tex").write_text("all my work")
    if not has_hashes:
        (mine / SUMS).unlink()
    with pytest.raises(ArtifactError, match="choose another folder"):
        attempt(mine)
    assert (mine / "thesis.tex").read_text() == "all my work"


@pytest.mark.parametrize("place", ["file", "file/below/it"])
def test_impossible_folder_is_refused_before_writing(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="file"):
        check_writable(tmp_path / place)
    with pytest.raises(ArtifactError, match="file"), ArtifactWriter(tmp_path / place):
        pytest.fail("nothing can be written here")


def test_check_of_folder_leaves_nothing_behind(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize("killed_at", range(3))
def test_kill_while_replacing_loses_no_artifact(tmp_path, monkeypatch, killed_at):
    """Whichever step it is killed at, a whole artifact is left, under some name.

    Replacing renames the old folder, renames the new one, and removes the old one.
    """
    write_artifact(tmp_path / "one")
    rename = Path.rename
    rmtree = shutil.rmtree
    steps = itertools.count()

    def kill_at_step() -> None:
        if next(steps) >= killed_at:
            raise KeyboardInterrupt

    def rename_or_be_killed(path: Path, target: Path) -> Path:
        kill_at_step()
        return rename(path, target)

    def remove_or_be_killed(path: Path, **_: object) -> None:
        kill_at_step()
        rmtree(path)

    monkeypatch.setattr(Path, "rename", rename_or_be_killed)
    monkeypatch.setattr(shutil, "rmtree", remove_or_be_killed)
    with pytest.raises(KeyboardInterrupt):
        write_artifact(tmp_path / "one")
    artifacts = [Artifact(path) for path in tmp_path.iterdir() if (path / SUMS).exists()]
    assert 2 in [artifact.check() for artifact in artifacts]  # has both files


def test_failed_replacement_keeps_the_old_artifact(tmp_path, monkeypatch):
    artifact = write_artifact(tmp_path / "one")
    before = artifact.sums()
    rename = Path.rename

    def refuse_new(path: Path, target: Path) -> Path:
        """Fail to put the new folder in place; the old one, set aside as *-old, is moved back."""
        if target == tmp_path / "one" and not path.name.endswith("-old"):
            raise PermissionError("refused")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_new)
    with pytest.raises(ArtifactError, match="refused"), ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("z.json", {})
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_atomic_write_replaces_content(tmp_path):
    write_atomically(tmp_path / "file", b"1")
    write_atomically(tmp_path / "file", b"2")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"2")]


def test_failed_atomic_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"3")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_target_of_a_link_is_replaced(tmp_path):
    write_artifact(tmp_path / "one")
    (tmp_path / "link").symlink_to("one")
    with ArtifactWriter(tmp_path / "link") as writer:
        writer.write_json("z.json", {})
    assert (tmp_path / "link").is_symlink()
    assert list(Artifact(tmp_path / "one").sums()) == ["z.json"]
