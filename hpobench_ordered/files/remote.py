"""Published files, downloaded once into a cache folder and checked against their hash.

HPOBENCH_ORDERED_OFFLINE=1 disables downloads.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError
from hpobench_ordered.files.download import ProgressBar, check_online, download, locked_part
from hpobench_ordered.files.writing import file_sha256, write_atomically

CACHE_VARIABLE = "HPOBENCH_ORDERED_CACHE"


def cache_folder() -> Path:
    """HPOBENCH_ORDERED_CACHE, or the platform's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    import platformdirs

    return platformdirs.user_cache_path("hpobench_ordered")


MAX_SIZE = 2**28
"""Default limit of the size of a published file: 256 MiB."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A published file, by its path in the cache folder.

    If its publisher states no SHA-256, that of the first download is recorded beside the file, and
    later downloads must have it. `check` raises an `ArtifactError` or `ValueError` for bytes that
    are not such a file, before they are stored.
    """

    name: str
    url: str  # at a fixed revision
    sha256: str | None
    check: Callable[[bytes], None] | None = field(default=None, compare=False)
    max_size: int = field(default=MAX_SIZE, compare=False)

    @property
    def path(self) -> Path:
        """Where the file is in the cache."""
        return cache_folder() / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether the file is in the cache."""
        return self.path.is_file()

    def open_path(self, benchmark: str | None = None) -> Path:
        """Path of the fetched file, after checking its hash."""
        if not self.is_fetched:
            way_out = f"; get it with: hpobench-ordered fetch {benchmark}" if benchmark else ""
            raise NotFetchedError(f"{self.name} is not in the cache {cache_folder()}{way_out}")
        expected = self.sha256 or self._recorded_hash()
        if expected is None:
            raise ArtifactError(f"{self.path} has no recorded hash; delete it and fetch it again")
        if file_sha256(self.path) != expected:
            raise ArtifactError(f"{self.path} is damaged; delete it and fetch it again")
        return self.path

    @property
    def first_hash(self) -> str:
        """Hash recorded at the first download; empty if the publisher states one."""
        return "" if self.sha256 else self._recorded_hash() or ""

    def store(self, source: Path) -> None:
        """Copy a local file, gzipped or not, into the cache if it is the published one."""
        data = _read(source, self.max_size)
        digest = self._accepted(data, str(source))
        with _writing():
            self._record(digest)
            write_atomically(self.path, data)

    def _accepted(self, data: bytes, origin: str) -> str:
        """Check that bytes are the published file; return their SHA-256."""
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
        return digest

    def _record(self, digest: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.sha256 is None:
            write_atomically(self._hash_path, digest.encode())

    @property
    def _hash_path(self) -> Path:
        return self.path.with_name(self.path.name + ".sha256")

    def _recorded_hash(self) -> str | None:
        """SHA-256 of the first download; None before it."""
        try:
            return self._hash_path.read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ArtifactError(f"cannot read {self._hash_path}: {error}") from None

    @property
    def part_path(self) -> Path:
        """Where an incomplete download is kept."""
        return self.path.with_name(self.path.name + ".part")

    def download(self, *, progress: "ProgressBar | None" = None) -> None:
        """Download the file into the cache, or resume an earlier download."""
        check_online(self.name)
        part = self.part_path
        with _writing():
            part.parent.mkdir(parents=True, exist_ok=True)
            try:
                with locked_part(part) as file:
                    if not self.is_fetched:  # by another process in the meantime
                        self._complete(file, progress)
            finally:
                if part.exists() and (self.is_fetched or not part.stat().st_size):
                    part.unlink(missing_ok=True)

    def _complete(self, file: IO[bytes], progress: "ProgressBar | None") -> None:
        # Without a known hash, a mixture of two contents would not be noticed: do not resume.
        resume = (self.sha256 or self._recorded_hash()) is not None
        download(self.url, file, limit=self.max_size, resume=resume, progress=progress)
        file.seek(0)
        data = file.read()
        try:
            digest = self._accepted(data, self.url)
        except DownloadError:
            file.truncate(0)
            raise
        self._record(digest)
        write_atomically(self.path, data)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"cannot write to the cache folder: {error}") from None


def _read(source: Path, limit: int) -> bytes:
    """Content of a file of at most `limit` bytes, unzipped if its name ends in gz."""
    try:
        with source.open("rb") as file:
            unpacked = gzip.GzipFile(fileobj=file) if source.suffix == ".gz" else file
            data: bytes = unpacked.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DownloadError(f"cannot read {source}: {error}") from None
    if len(data) > limit:
        raise DownloadError(f"{source} has more than the {limit} bytes allowed")
    return data
