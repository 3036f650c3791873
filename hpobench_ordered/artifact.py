"""Artifacts: folders of data files, each checked against its recorded hash when read."""

import hashlib
import io
import json
import os
import secrets
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.errors import ArtifactError

SUMS = "SHA256SUMS"


class Artifact:
    """A folder of files, each checked against the folder's SHA256SUMS when it is read.

    Args:
        folder: The folder, or a resource of an installed package.
    """

    def __init__(self, folder: Traversable) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"Artifact({str(self.folder)!r})"

    @classmethod
    def packaged(cls, name: str) -> "Artifact":
        """The artifact of that name that comes with the package."""
        return cls(resources.files("hpobench_ordered") / "artifacts" / name)

    def sums(self) -> dict[str, str]:
        """SHA-256 of every file, by name.

        Raises:
            ArtifactError: The list is missing or malformed.
        """
        try:
            text = (self.folder / SUMS).read_text()
            pairs = [line.split("  ", maxsplit=1) for line in text.splitlines()]
            return {name: digest for digest, name in pairs}
        except (OSError, UnicodeDecodeError, ValueError) as error:
            what = "no readable" if self.folder.is_dir() else "there is no such folder, so no"
            raise ArtifactError(f"{what} {SUMS} in {self.folder}: {error}") from None

    @property
    def digest(self) -> str:
        """SHA-256 of the names and hashes of all files: another one where any content differs.

        Raises:
            ArtifactError: The list of hashes is missing or malformed.
        """
        pairs = sorted(self.sums().items())
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()

    def read(self, name: str) -> bytes:
        """Read a file and check its hash.

        Raises:
            ArtifactError: The file is missing, unlisted, or not the one that was recorded.
        """
        expected = self.sums().get(name)
        try:
            data = (self.folder / name).read_bytes()
        except OSError as error:
            raise ArtifactError(f"artifact file {name!r} cannot be read: {error}") from None
        if hashlib.sha256(data).hexdigest() != expected:
            raise ArtifactError(
                f"{self.folder / name} is damaged: its SHA-256 is not the recorded one; "
                "reinstall the package or generate the artifact again"
            )
        return data

    def check(self) -> int:
        """Check the hash of every file; return their number.

        Raises:
            ArtifactError: A file is missing or not the one that was recorded.
        """
        names = self.sums()
        for name in names:
            self.read(name)
        return len(names)

    def read_json(self, name: str) -> Any:
        """Read a JSON file.

        Raises:
            ArtifactError: The file is missing, damaged or not JSON.
        """
        try:
            return json.loads(self.read(name))
        except ValueError as error:
            raise ArtifactError(f"{self.folder / name} is not JSON: {error}") from None

    def read_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Read the arrays of an npz file; pickled objects are refused.

        Raises:
            ArtifactError: The file is missing, damaged or not an array file.
        """
        try:
            with np.load(io.BytesIO(self.read(name)), allow_pickle=False) as arrays:
                return dict(arrays)
        except (EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise ArtifactError(f"{self.folder / name} is not an array file: {error}") from None


def is_artifact(folder: Path) -> bool:
    """Whether a folder claims to be an artifact: it has a list of hashes."""
    return (folder / SUMS).is_file()


class ArtifactWriter:
    """Writes an artifact as a whole: the folder appears, complete, when the block ends.

    Args:
        folder: Where the artifact goes; an artifact already there is replaced, nothing else is.

    Raises:
        ArtifactError: What `check_writable` finds, on entering; later, a full disk or the like.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()  # through a link, what it points to is replaced

    def __enter__(self) -> "ArtifactWriter":
        self._scratch = _scratch_folder(self.folder)
        return self

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file."""
        with _writing(self.folder):
            (self._scratch / name).write_bytes(data)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file, in the order given."""
        text = json.dumps(content, indent=1, ensure_ascii=False)
        self.write_bytes(name, f"{text}\n".encode())

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> int:
        """Write a compressed npz file with the same bytes for the same arrays; return its size."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for key in sorted(arrays):
                member = io.BytesIO()
                np.lib.format.write_array(member, np.asarray(arrays[key]), allow_pickle=False)
                # A fixed date: zip files otherwise record the time of writing.
                info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, member.getvalue())
        self.write_bytes(name, buffer.getvalue())
        return len(buffer.getvalue())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with _writing(self.folder):
                    self._publish()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _publish(self) -> None:
        """Put the new artifact in the old one's place; at any moment one of them is there whole."""
        files = sorted(path.name for path in self._scratch.iterdir())
        sums = [f"{file_sha256(self._scratch / name)}  {name}\n" for name in files]
        self.write_bytes(SUMS, "".join(sums).encode())
        self._scratch.chmod(0o755)
        _check_replaceable(self.folder)
        old = self._scratch.with_name(f"{self._scratch.name}-old")
        replaces = self.folder.exists()
        if replaces:
            self.folder.rename(old)
        try:
            self._scratch.rename(self.folder)
        except OSError:
            if replaces:
                old.rename(self.folder)
            raise
        if replaces:
            shutil.rmtree(old, ignore_errors=True)


def check_writable(folder: Path) -> None:
    """Check that an artifact can be written to a folder, before hours of work depend on it.

    Raises:
        ArtifactError: The folder cannot be created, or holds something that is no artifact.
    """
    _scratch_folder(folder.resolve()).rmdir()


def _check_replaceable(folder: Path) -> None:
    """Check that nothing but an artifact would be lost if a folder were replaced.

    Raises:
        ArtifactError: It is a file, or holds files that no artifact lists.
    """
    if folder.exists() and not folder.is_dir():
        raise ArtifactError(f"{folder} is a file, not the folder of an artifact")
    present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if SUMS in present:
        present -= {SUMS, *Artifact(folder).sums()}
    if present:
        raise ArtifactError(
            f"{folder} holds {min(present)!r}, which belongs to no artifact and would be lost; "
            "choose another folder"
        )


def _scratch_folder(folder: Path) -> Path:
    """Make a folder beside the one that it is to replace."""
    with _writing(folder):
        _check_replaceable(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"cannot write the artifact {folder}: {error}") from None


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there as a whole or not at all, even after a crash."""
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
