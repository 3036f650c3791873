"""Artifacts: what is written is read again, damage is noticed, and nothing is lost."""

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered.data.artifact import SUMS as HASHES_FILE
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter, check_writable
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import ArtifactError

ARRAYS_OF_FILE = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([1, 2], dtype=np.int8)}
"""The content of `y.npz`, one of the two files of an artifact by `write_artifact`."""


def write_artifact(folder: Path) -> Artifact:
    """Write an artifact of two files; a third one, SHA256SUMS, records their hashes."""
    with ArtifactWriter(folder) as writer:
        writer.write_json("x.json", {"key": "value"})
        writer.write_arrays("y.npz", ARRAYS_OF_FILE)
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
    """Arrays are read with the values and the types that were written."""
    arrays = artifact.read_arrays("y.npz")

    assert arrays.keys() == ARRAYS_OF_FILE.keys()
    for name, array in ARRAYS_OF_FILE.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_same_content_has_same_hashes(tmp_path):
    """Files hold no time of writing, so that the same content always has the same hash."""
    first = write_artifact(tmp_path / "first")
    second = write_artifact(tmp_path / "second")

    assert first.sums() == second.sums()


def test_digest_ignores_order_of_hashes(artifact):
    """The digest of an artifact is a hash of the names and hashes of its files, in any order."""
    digest_before = artifact.digest
    hashes_file = artifact.folder / HASHES_FILE
    lines = hashes_file.read_text().splitlines()

    hashes_file.write_text("\n".join(reversed(lines)))

    assert artifact.digest == digest_before


def test_digest_changes_with_name_of_a_file(artifact):
    """If a file has another name, with the same content, the digest of the artifact is another.

    It is computed from the recorded hashes and the names of files beside them.
    """
    digest_before = artifact.digest
    hashes_file = artifact.folder / HASHES_FILE

    hashes_file.write_text(hashes_file.read_text().replace("x.json", "z.json"))

    assert artifact.digest != digest_before


def test_unknown_file_is_refused(artifact):
    with pytest.raises(ArtifactError, match="cannot be read"):
        artifact.read("z.json")


def test_unlisted_file_is_refused(artifact):
    """A file that was added after the artifact was written has no recorded hash: it is not read."""
    (artifact.folder / "z.json").write_text("{}")

    with pytest.raises(ArtifactError, match="SHA-256 is not the recorded one"):
        artifact.read("z.json")


def test_interrupted_write_keeps_the_old_artifact(artifact, tmp_path):
    """If the user interrupts the writing of a new artifact, the old one stays as it was."""
    hashes_before = artifact.sums()

    with pytest.raises(KeyboardInterrupt), ArtifactWriter(artifact.folder) as writer:
        writer.write_json("x.json", {"key": "other"})
        raise KeyboardInterrupt

    assert artifact.sums() == hashes_before
    # No unfinished folder is left.
    assert list_names(tmp_path) == ["mine"]


def test_full_disk_keeps_the_old_artifact(artifact, tmp_path, monkeypatch):
    """An artifact is replaced when the new one is complete: if writing fails, it stays."""
    hashes_before = artifact.sums()

    def fail_to_write(path: Path, data: bytes) -> int:
        raise OSError("no space left on device")

    with pytest.raises(ArtifactError, match="no space"), ArtifactWriter(artifact.folder) as writer:
        monkeypatch.setattr(Path, "write_bytes", fail_to_write)
        writer.write_json("x.json", {})

    assert artifact.sums() == hashes_before
    # No unfinished folder is left.
    assert list_names(tmp_path) == ["mine"]


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
    """A folder is replaced if it is an artifact and nothing else, which recorded hashes tell.

    This one has a file of the user besides; neither `check_writable` nor a writer accepts it.
    """
    users_file = artifact.folder / "thesis.tex"
    users_file.write_text("all my work")
    if not has_hashes:
        (artifact.folder / HASHES_FILE).unlink()

    with pytest.raises(ArtifactError, match="choose another folder"):
        attempt(artifact.folder)

    assert users_file.read_text() == "all my work"


@pytest.mark.parametrize("path", ["file", "file/below/it"])
def test_writer_refuses_impossible_folder_at_once(tmp_path, path):
    """A writer fails before anything is written if it cannot make its folder.

    There is a file at the path of the folder, or at the path of a folder above it.
    """
    (tmp_path / "file").write_text("")

    with pytest.raises(ArtifactError, match="file"), ArtifactWriter(tmp_path / path):
        pytest.fail("the writer must fail before it is used")


def test_check_of_folder_leaves_nothing_behind(tmp_path):
    """The check makes the folders above the one to check, and removes what it tries to write."""
    check_writable(tmp_path / "a" / "b")

    assert list_names(tmp_path / "a") == []


@pytest.mark.parametrize("killed_at", range(3))
def test_kill_while_replacing_loses_no_artifact(artifact, tmp_path, monkeypatch, killed_at):
    """If replacing an artifact is killed at any step, a whole artifact is left, under some name.

    There are three steps: rename the old folder, rename the new one, remove the old one.
    """
    rename = Path.rename
    rmtree = shutil.rmtree
    step_numbers = itertools.count()

    def begin_step() -> None:
        if next(step_numbers) >= killed_at:  # nor is there any later step
            raise KeyboardInterrupt

    def rename_or_be_killed(path: Path, target: Path) -> Path:
        begin_step()
        return rename(path, target)

    def remove_or_be_killed(path: Path, **_: object) -> None:
        begin_step()
        rmtree(path)

    monkeypatch.setattr(Path, "rename", rename_or_be_killed)
    monkeypatch.setattr(shutil, "rmtree", remove_or_be_killed)

    with pytest.raises(KeyboardInterrupt):
        write_artifact(artifact.folder)

    artifacts_left = [Artifact(hashes.parent) for hashes in tmp_path.glob(f"*/{HASHES_FILE}")]
    assert {"key": "value"} in [artifact.read_json("x.json") for artifact in artifacts_left]


def test_atomic_write_replaces_content(tmp_path):
    """A file has the new content after a second write, and no temporary file is left."""
    path = tmp_path / "file"
    write_atomically(path, b"old")

    write_atomically(path, b"new")

    assert path.read_bytes() == b"new"
    # No temporary file is left.
    assert list_names(tmp_path) == ["file"]


def test_failed_atomic_write_leaves_nothing_behind(tmp_path):
    """If a write fails, its temporary file is removed: here, a folder is in the way of the file."""
    (tmp_path / "folder").mkdir()

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
