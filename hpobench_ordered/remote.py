"""Published files, downloaded once into a cache folder and checked against their hash."""

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hpobench_ordered.artifact import file_sha256, write_atomically
from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError

CACHE_VARIABLE = "HPOBENCH_ORDERED_CACHE"


def cache_folder() -> Path:
    """Folder of downloaded files: HPOBENCH_ORDERED_CACHE, or the platform's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    import platformdirs

    return platformdirs.user_cache_path("hpobench_ordered")


class ProgressBar(Protocol):
    """What pooch moves while it downloads."""

    total: int

    def update(self, size: int) -> None:
        """Add so many bytes."""

    def reset(self) -> None:
        """Start at 0 again."""

    def close(self) -> None:
        """End."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A published file.

    Attributes:
        name: Path in the cache folder.
        url: Where it is published, at a fixed revision.
        sha256: SHA-256 of its bytes; None where the publisher states none, in which case the hash
            of the first content is recorded beside the file, and no other is accepted after it.
        check: Raises `ArtifactError` or `ValueError` if bytes are not such a file; called before
            they are stored.
    """

    name: str
    url: str
    sha256: str | None
    check: Callable[[bytes], None] | None = field(default=None, compare=False)

    @property
    def path(self) -> Path:
        """Where the file is in the cache."""
        return cache_folder() / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether the file is in the cache."""
        return self.path.is_file()

    def open_path(self) -> Path:
        """Path of the fetched file, its hash checked.

        Raises:
            NotFetchedError: It is not in the cache.
            ArtifactError: It is, but is damaged.
        """
        if not self.is_fetched:
            raise NotFetchedError(f"{self.name} is not in the cache {cache_folder()}")
        expected = self.sha256 or self._recorded_hash()
        if expected is None:
            raise ArtifactError(f"{self.path} has no recorded hash; delete it and fetch it again")
        if file_sha256(self.path) != expected:
            raise ArtifactError(f"{self.path} is damaged; delete it and fetch it again")
        return self.path

    def store(self, source: Path) -> None:
        """Copy a local file, gzipped or not, into the cache if it is the published one.

        Raises:
            DownloadError: It is not the published file.
            ArtifactError: The cache folder cannot be written.
        """
        self._keep(_read(source), str(source))

    def _keep(self, data: bytes, origin: str) -> None:
        digest = hashlib.sha256(data).hexdigest()
        known = self.sha256 or self._recorded_hash()
        if known not in (None, digest):
            way_out = "" if self.sha256 else f"; to accept another one, delete {self._hash_path}"
            raise DownloadError(
                f"{origin} is not the published {self.name}: SHA-256 {digest}, "
                f"{'published' if self.sha256 else 'first fetched'} {known}{way_out}"
            )
        try:
            if self.check is not None:
                self.check(data)
        except (ArtifactError, ValueError) as error:
            raise DownloadError(f"{origin} is not the published {self.name}: {error}") from None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.sha256 is None:
                write_atomically(self._hash_path, digest.encode())
            write_atomically(self.path, data)
        except OSError as error:
            raise ArtifactError(f"cannot write to the cache folder: {error}") from None

    @property
    def _hash_path(self) -> Path:
        return self.path.with_name(self.path.name + ".sha256")

    def _recorded_hash(self) -> str | None:
        """SHA-256 of the first content; None where none was stored yet."""
        try:
            return self._hash_path.read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ArtifactError(f"cannot read {self._hash_path}: {error}") from None

    def download(self, *, progress: "ProgressBar | None" = None) -> None:
        """Download the file into the cache, checked and atomically.

        Args:
            progress: Bar to move along, as pooch takes it.

        Raises:
            DownloadError: No network, an interrupted transfer, or another file than the published.
            ArtifactError: The cache folder cannot be written.
        """
        import pooch
        import requests

        downloader = pooch.HTTPDownloader(progressbar=progress or False, timeout=30)
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "download"
            try:
                downloader(self.url, str(target), None)
            except requests.RequestException as error:
                raise DownloadError(
                    f"cannot download {self.url}: {_reason(error)}. A copy obtained elsewhere is "
                    f"accepted with: hpobench-ordered fetch NAME --from PATH"
                ) from None
            self._keep(target.read_bytes(), self.url)


def _read(source: Path) -> bytes:
    try:
        data = source.read_bytes()
        return gzip.decompress(data) if source.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise DownloadError(f"cannot read {source}: {error}") from None


def _reason(error: Exception) -> str:
    """The first words of what went wrong, without the nested retries."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    return "no connection" if "onnection" in type(error).__name__ else type(error).__name__
