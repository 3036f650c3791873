"""Artifacts: folders of data files, each checked against its recorded hash when read."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hpobench_ordered.data.arrays import encode_npz, read_npz
from hpobench_ordered.data.identity import hash_bytes, hash_file, hash_json
from hpobench_ordered.errors import ArtifactError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"(?P<hash>[0-9a-f]{64})  (?P<name>\w[\w.+@-]*)", re.ASCII)
"""A line of SHA256SUMS."""


class Artifact:
    """A folder of files, each checked against the folder's SHA256SUMS when it is read."""

    def __init__(self, folder: Traversable) -> None:
        """Remember the folder, which need not exist yet."""
        self.folder = folder

    def __repr__(self) -> str:
        """Show the artifact by its folder."""
        return f"Artifact({str(self.folder)!r})"

    @classmethod
    def packaged(cls, name: str) -> "Artifact":
        """Return the artifact of a name that comes with the package; it may not exist."""
        return cls(resources.files("hpobench_ordered") / "artifacts" / name)

    @property
    def exists(self) -> bool:
        """Whether the folder has a list of hashes."""
        return (self.folder / SUMS).is_file()

    def sums(self) -> dict[str, str]:
        """Read SHA256SUMS, the recorded SHA-256 of every file of the artifact, by the file's name.

        Raises:
            ArtifactError: The list of hashes is missing or malformed.
        """
        label = f"{SUMS} in {self.folder}"
        try:
            if not self.folder.is_dir():
                raise ArtifactError(f"there is no such folder, so no {label}")
            lines = (self.folder / SUMS).read_bytes().decode().splitlines()
        except (OSError, ValueError) as error:
            raise ArtifactError(f"no readable {label}: {error}") from None

        hash_of_name: dict[str, str] = {}
        for line in lines:
            match = _LINE.fullmatch(line)
            if match is None or match["name"] in hash_of_name:
                raise ArtifactError(
                    f"no readable {label}: each line must be a SHA-256 and another file name, "
                    f"without folder, but got {line[:200]!r}"
                )
            hash_of_name[match["name"]] = match["hash"]
        return hash_of_name

    @property
    def digest(self) -> str:
        """Hash of the whole artifact: SHA-256 of the names and recorded hashes of its files."""
        return hash_json(sorted(self.sums().items()))

    def read(self, name: str) -> bytes:
        """Read a file, after checking that its hash is the recorded one.

        Raises:
            ArtifactError: The file cannot be read, or has another hash.
        """
        recorded_hash = self.sums().get(name)  # None, which no hash equals, for an unknown file
        try:
            data = (self.folder / name).read_bytes()
        except (OSError, ValueError) as error:
            raise ArtifactError(f"artifact file {name!r} cannot be read: {error}") from None
        if hash_bytes(data) != recorded_hash:
            raise ArtifactError(
                f"{self.folder / name} is damaged: its SHA-256 is not the recorded one; "
                "reinstall the package or generate the artifact again"
            )
        return data

    def read_json(self, name: str) -> Any:
        """Read a JSON file, after checking its hash.

        Raises:
            ArtifactError: The file cannot be read, has another hash, or is not JSON.
        """
        try:
            return json.loads(self.read(name))
        # Python's parser calls itself for every level of nesting: a file of very many opening
        # brackets exceeds the limit of recursion before it is found to be malformed.
        except (RecursionError, ValueError) as error:
            raise ArtifactError(f"{self.folder / name} is not JSON: {error}") from None

    def read_arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """Read the arrays of an npz file by name, after checking its hash.

        Raises:
            ArtifactError: The file cannot be read, has another hash, or is not such a file.
        """
        try:
            return read_npz(self.read(name))
        except ValueError as error:
            raise ArtifactError(f"{self.folder / name} is not an array file: {error}") from None


def is_artifact(folder: Path) -> bool:
    """Whether a folder is an artifact: whether it has a list of hashes."""
    return Artifact(folder).exists


class ArtifactWriter:
    """Writes an artifact atomically, as a context manager.

    Files are written into a temporary folder. When the `with` block ends, this folder takes the
    place of the artifact; if the block raises an error, it is deleted.
    """

    def __init__(self, folder: Path) -> None:
        """Remember the folder of the artifact, an old version of which is replaced."""
        self.folder = folder.resolve()  # if it is a link, its target is replaced

    def __enter__(self) -> "ArtifactWriter":
        """Make the temporary folder."""
        self._scratch = _make_scratch_folder(self.folder)
        return self

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file of the artifact."""
        with _report_errors_of_writing(self.folder):
            (self._scratch / name).write_bytes(data)

    def write_json(self, name: str, content: Any) -> None:
        """Write a JSON file of the artifact, with the keys of mappings in their order."""
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        self.write_bytes(name, f"{text}\n".encode())

    def write_arrays(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> int:
        """Write an npz file of arrays, by name, and return its size in bytes."""
        data = encode_npz(arrays)
        self.write_bytes(name, data)
        return len(data)

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Publish the artifact unless the block raised an error; leave no temporary folder."""
        try:
            if error_type is None:
                with _report_errors_of_writing(self.folder):
                    self._publish()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _publish(self) -> None:
        """Write the hashes of all files, and move the new folder to the place of the old one.

        The old artifact is deleted only after that, so one of both is complete at any moment.
        """
        lines = []
        for path in sorted(self._scratch.iterdir()):
            lines.append(f"{hash_file(path)}  {path.name}\n")
        self.write_bytes(SUMS, "".join(lines).encode())

        self._scratch.chmod(0o755)  # a temporary folder can be read by its owner alone
        _check_replaceable(self.folder)
        has_old_artifact = self.folder.exists()
        folder_of_old_artifact = self._scratch.with_name(f"{self._scratch.name}-old")
        if has_old_artifact:
            self.folder.rename(folder_of_old_artifact)
        self._scratch.rename(self.folder)
        if has_old_artifact:
            shutil.rmtree(folder_of_old_artifact)


def check_writable(folder: Path) -> None:
    """Check that an artifact can be written to a folder, before it takes hours to make.

    Raises:
        ArtifactError: The folder holds something else, or nothing can be written beside it.
    """
    scratch = _make_scratch_folder(folder.resolve())
    scratch.rmdir()


def _check_replaceable(folder: Path) -> None:
    """Check that a folder holds nothing except an artifact, since it will be replaced.

    Raises:
        ArtifactError: It is a file, or holds files that are not part of an artifact.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ArtifactError(f"{folder} must be the folder of an artifact, but is a file")
    names = {path.name for path in folder.iterdir()}
    names_of_artifact = {SUMS, *Artifact(folder).sums()} if SUMS in names else set()
    other_names = names - names_of_artifact
    if other_names:
        raise ArtifactError(
            f"{folder} holds {min(other_names)!r}, which is not part of an artifact and would be "
            "lost; choose another folder"
        )


def _make_scratch_folder(folder: Path) -> Path:
    """Make a temporary folder beside a folder, which it will replace later.

    Raises:
        ArtifactError: The folder holds something else than an artifact, or nothing can be written
            beside it.
    """
    with _report_errors_of_writing(folder):
        _check_replaceable(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))


@contextmanager
def _report_errors_of_writing(folder: Path) -> Iterator[None]:
    """Turn an `OSError` within a `with` block into an `ArtifactError` about writing the folder."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"cannot write the artifact {folder}: {error}") from None
