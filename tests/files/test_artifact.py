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

N_FILES = 2
"""Of an artifact by `write_artifact`."""
ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([1, 2], dtype=np.int8)}


def write_artifact(folder: Path) -> Artifact:
    """Write an artifact of two files, `x.json` and `y.npz`; their hashes are in SHA256SUMS."""
    with ArtifactWriter(folder) as writer:
        writer.write_json("x.json", {"key": "value"})
        writer.write_arrays("y.npz", ARRAYS)
    return Artifact(folder)


@pytest.fixture
def artifact(tmp_path):
    """An artifact in the folder `mine`, next to which there is nothing."""
    return write_artifact(tmp_path / "mine")


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_json_round_trips(artifact):
    assert artifact.read_json("x.json") == {"key": "value"}


def test_arrays_round_trip(artifact):
    arrays = artifact.read_arrays("y.npz")

    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_numpy_reads_arrays(artifact):
    with np.load(artifact.folder / "y.npz") as stored:
        assert set(stored) == ARRAYS.keys()


def test_array_file_is_valid_archive(artifact):
    with zipfile.ZipFile(artifact.folder / "y.npz") as archive:
        # None: no file in the archive is damaged.
        assert archive.testzip() is None


def test_same_content_has_same_hashes(tmp_path):
    first = write_artifact(tmp_path / "first")
    second = write_artifact(tmp_path / "second")

    assert first.sums() == second.sums()


def test_digest_ignores_order_of_hashes(artifact):
    """The digest of an artifact is a SHA-256 hash of the names and hashes of its files."""
    digest = artifact.digest
    hashes = artifact.folder / SUMS

    hashes.write_text("\n".join(reversed(hashes.read_text().splitlines())))

    assert artifact.digest == digest
    # Hexadecimal digits of 256 bits.
    assert len(digest) == 64


def test_digest_changes_with_name_of_a_file(artifact):
    digest = artifact.digest
    hashes = artifact.folder / SUMS

    hashes.write_text(hashes.read_text().replace("x.json", "z.json"))

    assert artifact.digest != digest


def test_digest_changes_with_number_of_files(artifact):
    digest = artifact.digest
    hashes = artifact.folder / SUMS
    hash_of_first_file = hashes.read_text().splitlines()[0]

    hashes.write_text(hash_of_first_file)

    assert artifact.digest != digest


def test_check_counts_files(artifact):
    assert artifact.check() == N_FILES


def test_unknown_file_is_refused(artifact):
    with pytest.raises(ArtifactError, match="cannot be read"):
        artifact.read("z.json")


def test_unlisted_file_is_refused(artifact):
    """A file without a recorded hash, which was added after the artifact was written."""
    (artifact.folder / "z.json").write_text("{}")

    with pytest.raises(ArtifactError, match="SHA-256 is not the recorded one"):
        artifact.read("z.json")


def test_check_names_missing_file(artifact):
    (artifact.folder / "x.json").unlink()

    with pytest.raises(ArtifactError, match=r"x\.json"):
        artifact.check()


def test_missing_hashes_are_refused(artifact):
    (artifact.folder / SUMS).unlink()

    with pytest.raises(ArtifactError, match=SUMS):
        artifact.read("x.json")


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe\xfd"], ids=["unfinished", "not text"])
def test_file_that_is_not_json_is_refused(tmp_path, data):
    with ArtifactWriter(tmp_path / "mine") as writer:
        writer.write_bytes("x.json", data)

    with pytest.raises(ArtifactError, match="not JSON"):
        Artifact(tmp_path / "mine").read_json("x.json")


def test_pickled_arrays_are_refused(tmp_path):
    """An array of Python objects is stored as a pickle, which could run any code when read."""
    pickled = io.BytesIO()
    np.savez(pickled, evil=np.array([{"a": 1}], dtype=object))
    with ArtifactWriter(tmp_path / "mine") as writer:
        writer.write_bytes("evil.npz", pickled.getvalue())

    with pytest.raises(ArtifactError, match="not an array file"):
        Artifact(tmp_path / "mine").read_arrays("evil.npz")


def test_interrupted_write_keeps_the_old_artifact(artifact, tmp_path):
    old_sums = artifact.sums()

    with pytest.raises(KeyboardInterrupt), ArtifactWriter(artifact.folder) as writer:
        writer.write_json("x.json", {"key": "other"})
        raise KeyboardInterrupt

    assert artifact.sums() == old_sums
    # No unfinished folder is left.
    assert list_names(tmp_path) == ["mine"]


def test_full_disk_keeps_the_old_artifact(artifact, tmp_path, monkeypatch):
    old_sums = artifact.sums()

    def fail_to_write(path: Path, data: bytes) -> int:
        raise OSError("no space left on device")

    with pytest.raises(ArtifactError, match="no space"), ArtifactWriter(artifact.folder) as writer:
        monkeypatch.setattr(Path, "write_bytes", fail_to_write)
        writer.write_json("x.json", {})

    assert artifact.sums() == old_sums
    # No unfinished folder is left.
    assert list_names(tmp_path) == ["mine"]


def test_empty_folder_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()

    artifact = write_artifact(tmp_path / "mine")

    assert artifact.check() == N_FILES


def test_file_that_appears_while_writing_is_kept(artifact, tmp_path):
    """The writer replaces the folder at the end, but not if that would delete a user's file."""
    mine = artifact.folder
    users_file = mine / "thesis.tex"

    with pytest.raises(ArtifactError, match=r"thesis\.tex"), ArtifactWriter(mine) as writer:
        writer.write_json("x.json", {})
        users_file.write_text("all my work")

    assert users_file.read_text() == "all my work"
    # No unfinished folder is left.
    assert list_names(tmp_path) == ["mine"]


@pytest.mark.parametrize("has_hashes", [True, False])
@pytest.mark.parametrize("attempt", [check_writable, write_artifact])
def test_folder_with_other_files_is_not_replaced(artifact, has_hashes, attempt):
    """With or without recorded hashes, which are the mark of an artifact."""
    users_file = artifact.folder / "thesis.tex"
    users_file.write_text("all my work")
    if not has_hashes:
        (artifact.folder / SUMS).unlink()

    with pytest.raises(ArtifactError, match="choose another folder"):
        attempt(artifact.folder)

    assert users_file.read_text() == "all my work"


@pytest.mark.parametrize("place", ["file", "file/below/it"])
def test_check_refuses_impossible_folder(tmp_path, place):
    (tmp_path / "file").write_text("")

    with pytest.raises(ArtifactError, match="file"):
        check_writable(tmp_path / place)


@pytest.mark.parametrize("place", ["file", "file/below/it"])
def test_writer_refuses_impossible_folder_at_once(tmp_path, place):
    (tmp_path / "file").write_text("")

    with pytest.raises(ArtifactError, match="file"), ArtifactWriter(tmp_path / place):
        pytest.fail("nothing can be written here")


def test_check_of_folder_leaves_nothing_behind(tmp_path):
    """It makes the parent folders, to see whether something could be written into them."""
    check_writable(tmp_path / "a" / "b")

    assert list_names(tmp_path / "a") == []


@pytest.mark.parametrize("killed_at", range(3))
def test_kill_while_replacing_loses_no_artifact(artifact, tmp_path, monkeypatch, killed_at):
    """Whichever step it is killed at, a whole artifact is left, under some name.

    Replacing has three steps: it renames the old folder, renames the new one, and removes the old
    one.
    """
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
        write_artifact(artifact.folder)

    artifacts = [Artifact(path) for path in tmp_path.iterdir() if (path / SUMS).exists()]
    numbers_of_files = [artifact.check() for artifact in artifacts]
    assert N_FILES in numbers_of_files


def test_failed_replacement_keeps_the_old_artifact(artifact, tmp_path, monkeypatch):
    old_sums = artifact.sums()
    rename = Path.rename

    def refuse_new_folder(path: Path, target: Path) -> Path:
        """Fail to put the new folder in place; the old one, set aside as *-old, is moved back."""
        is_old_folder = path.name.endswith("-old")
        if target == artifact.folder and not is_old_folder:
            raise PermissionError("refused")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse_new_folder)

    with pytest.raises(ArtifactError, match="refused"), ArtifactWriter(artifact.folder) as writer:
        writer.write_json("z.json", {})

    assert artifact.sums() == old_sums
    # Neither the old folder under another name nor the new one is left.
    assert list_names(tmp_path) == ["mine"]


def test_atomic_write_replaces_content(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    write_atomically(path, b"new")

    assert path.read_bytes() == b"new"
    # No temporary file is left.
    assert list_names(tmp_path) == ["file"]


def test_failed_atomic_write_leaves_nothing_behind(tmp_path):
    (tmp_path / "folder").mkdir()

    # A folder cannot be replaced by a file.
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"content")

    assert list_names(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_target_of_a_link_is_replaced(artifact, tmp_path):
    """The folder that a link leads to gets the new content; the link itself stays."""
    link = tmp_path / "link"
    link.symlink_to("mine")

    with ArtifactWriter(link) as writer:
        writer.write_json("z.json", {})

    assert link.is_symlink()
    assert list(artifact.sums()) == ["z.json"]
