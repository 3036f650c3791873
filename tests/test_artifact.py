import zipfile
from pathlib import Path

import numpy as np
import pytest

from hpobench_ordered.artifact import SUMS, Artifact, ArtifactWriter, write_atomically
from hpobench_ordered.errors import ArtifactError

ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([1, 2], dtype=np.int8)}


def write(folder: Path) -> Artifact:
    with ArtifactWriter(folder) as writer:
        writer.write_json("x.json", {"key": "value"})
        writer.write_arrays("y.npz", ARRAYS)
    return Artifact(folder)


def test_round_trip(tmp_path: Path) -> None:
    artifact = write(tmp_path / "one")
    assert artifact.read_json("x.json") == {"key": "value"}
    arrays = artifact.read_arrays("y.npz")
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_same_content_same_bytes(tmp_path: Path) -> None:
    assert write(tmp_path / "one").sums() == write(tmp_path / "two").sums()


def test_one_changed_byte_is_noticed(tmp_path: Path) -> None:
    artifact = write(tmp_path / "one")
    for name in ("x.json", "y.npz"):
        path = tmp_path / "one" / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        with pytest.raises(ArtifactError, match="damaged"):
            artifact.read(name)


def test_missing_file_missing_sums_and_unlisted_file(tmp_path: Path) -> None:
    artifact = write(tmp_path / "one")
    with pytest.raises(ArtifactError, match="cannot be read"):
        artifact.read("z.json")
    (tmp_path / "one" / "z.json").write_text("{}")
    with pytest.raises(ArtifactError, match="SHA-256 is not the recorded one"):
        artifact.read("z.json")
    (tmp_path / "one" / SUMS).unlink()
    with pytest.raises(ArtifactError, match=SUMS):
        artifact.read("x.json")


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "evil.npz", evil=np.array([{"a": 1}], dtype=object))
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("x.json", {})
    data = (tmp_path / "evil.npz").read_bytes()
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_bytes("evil.npz", data)
    with pytest.raises(ArtifactError, match="not an array file"):
        Artifact(tmp_path / "one").read_arrays("evil.npz")


def test_not_a_zip_file(tmp_path: Path) -> None:
    with ArtifactWriter(tmp_path / "one") as writer:
        writer.write_bytes("y.npz", b"no zip")
    with pytest.raises(ArtifactError, match="not an array file"):
        Artifact(tmp_path / "one").read_arrays("y.npz")


def test_an_interrupted_write_leaves_what_was_there(tmp_path: Path) -> None:
    artifact = write(tmp_path / "one")
    before = artifact.sums()
    with pytest.raises(KeyboardInterrupt), ArtifactWriter(tmp_path / "one") as writer:
        writer.write_json("x.json", {"key": "other"})
        raise KeyboardInterrupt
    assert artifact.sums() == before
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    write(tmp_path / "one")
    with np.load(tmp_path / "one" / "y.npz") as arrays:
        assert set(arrays) == {"a", "b"}
    with zipfile.ZipFile(tmp_path / "one" / "y.npz") as archive:
        assert archive.testzip() is None


def test_atomic_write_leaves_nothing_behind(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", b"1")
    write_atomically(tmp_path / "file", b"2")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"2")]
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
