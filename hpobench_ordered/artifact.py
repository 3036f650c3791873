"""Artifacts: folders of data files, each checked against its recorded hash when read."""

import hashlib
import io
import json
import os
import secrets
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
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
            raise ArtifactError(f"no readable {SUMS} in {self.folder}: {error}") from None

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

    def read_json(self, name: str) -> Any:
        """Read a JSON file."""
        return json.loads(self.read(name))

    def read_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Read the arrays of an npz file; pickled objects are refused."""
        try:
            with np.load(io.BytesIO(self.read(name)), allow_pickle=False) as arrays:
                return dict(arrays)
        except (ValueError, zipfile.BadZipFile) as error:
            raise ArtifactError(f"{self.folder / name} is not an array file: {error}") from None


class ArtifactWriter:
    """Writes an artifact as a whole: the folder appears, complete, when the block ends.

    Args:
        folder: Where the artifact goes; an artifact already there is replaced.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> "ArtifactWriter":
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.folder.name}-"
        self._scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=self.folder.parent))
        return self

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file."""
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
        if kind is None:
            files = sorted(path.name for path in self._scratch.iterdir())
            sums = [f"{file_sha256(self._scratch / name)}  {name}\n" for name in files]
            self.write_bytes(SUMS, "".join(sums).encode())
            self._scratch.chmod(0o755)
            if self.folder.exists():
                shutil.rmtree(self.folder)
            self._scratch.replace(self.folder)
        else:
            shutil.rmtree(self._scratch)


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
