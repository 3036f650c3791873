"""Published files, downloaded once into a cache folder and checked against their hash.

HPOBENCH_ORDERED_OFFLINE=1 disables downloads.
"""

import gzip
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hpobench_ordered.data.download import FROM_COPY, Progress, check_online, download
from hpobench_ordered.data.identity import hash_bytes, hash_file
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import ArtifactError, DownloadError, NotFetchedError

CACHE_VARIABLE = "HPOBENCH_ORDERED_CACHE"


def cache_folder() -> Path:
    """Return the folder of downloaded files.

    The environment variable HPOBENCH_ORDERED_CACHE names it; otherwise it is the platform's cache
    folder.
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return Path(folder)
    import platformdirs

    return platformdirs.user_cache_path("hpobench_ordered")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A published file, which is downloaded into the cache folder.

    If its publisher states no SHA-256, that of the first download is recorded beside the file, and
    later downloads must have it.

    Attributes:
        name: Path of the file in the cache folder.
        url: Address of the file, at a fixed revision.
        sha256: SHA-256 that the publisher states; None if there is none.
        check: Raises an `ArtifactError` or a `ValueError` for bytes that are not such a file. It is
            called before the bytes are stored; None if nothing is checked.
    """

    name: str
    url: str
    sha256: str | None
    check: Callable[[bytes], None] | None = field(default=None, compare=False)

    @property
    def cache(self) -> Path:
        """The cache folder."""
        return cache_folder()

    @property
    def path(self) -> Path:
        """Where the file is in the cache."""
        return self.cache / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether the file is in the cache."""
        return self.path.is_file()

    def open_path(self, benchmark: str | None = None) -> Path:
        """Return the path of the fetched file, after checking its hash.

        Args:
            benchmark: Name of the benchmark, for the command in the message.

        Raises:
            NotFetchedError: The file is not in the cache.
            ArtifactError: The file has another hash than the published or the recorded one.
        """
        if not self.is_fetched:
            problem = f"{self.name} is not in the cache {self.cache}"
            if benchmark:
                problem += f"; get it with: hpobench-ordered fetch {benchmark}"
            raise NotFetchedError(problem)
        expected_hash = self.sha256 or self._read_recorded_hash()
        if expected_hash is None:
            raise ArtifactError(f"{self.path} has no recorded hash; delete it and fetch it again")
        if hash_file(self.path) != expected_hash:
            raise ArtifactError(f"{self.path} is damaged; delete it and fetch it again")
        return self.path

    @property
    def first_hash(self) -> str:
        """Hash recorded at the first download.

        It is empty if the publisher states a hash, or before the first download.
        """
        if self.sha256:
            return ""
        return self._read_recorded_hash() or ""

    def store(self, source: Path) -> None:
        """Copy a local file, which may be compressed by gzip, into the cache.

        Raises:
            DownloadError: It cannot be read, or is not the published file.
        """
        self._write_to_cache(_read_unpacked(source), str(source))

    def download(self, *, benchmark: str = "NAME", progress: Progress | None = None) -> None:
        """Download the file into the cache.

        Args:
            benchmark: Name of the benchmark, for the command in the message of an error.
            progress: Called with the numbers of bytes received so far and of all bytes.

        Raises:
            DownloadError: It cannot be downloaded, or is not the published file.
        """
        instead = FROM_COPY.format(benchmark)
        check_online(self.name, instead=instead)
        data = download(self.url, instead=instead, progress=progress)
        self._write_to_cache(data, self.url)

    def _write_to_cache(self, data: bytes, origin: str) -> None:
        """Check that bytes are the published file, and write them into the cache.

        Args:
            data: The bytes.
            origin: Where they are from, for the message.

        Raises:
            DownloadError: The bytes are not the published file.
            ArtifactError: The cache folder cannot be written.
        """
        digest = self._check_content(data, origin)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.sha256 is None:
                write_atomically(self._hash_path, digest.encode())
            write_atomically(self.path, data)
        except OSError as error:
            raise ArtifactError(
                f"cannot write to the cache folder: {error}; the environment variable "
                f"{CACHE_VARIABLE} names another one"
            ) from None

    def _check_content(self, data: bytes, origin: str) -> str:
        """Check that bytes are the published file, and return their SHA-256.

        If the publisher states no hash, the bytes must be those of the first download.

        Args:
            data: The bytes.
            origin: Where they are from, for the message.

        Raises:
            DownloadError: The bytes are not the published file.
        """
        digest = hash_bytes(data)
        refusal = f"{origin} is not the published {self.name}"
        if self.sha256 is not None:
            if digest != self.sha256:
                raise DownloadError(f"{refusal}: SHA-256 {digest}, published {self.sha256}")
        else:
            first_digest = self._read_recorded_hash()
            is_other_file = first_digest is not None and first_digest != digest
            if is_other_file:
                raise DownloadError(
                    f"{refusal}: SHA-256 {digest}, first fetched {first_digest}; to accept "
                    f"another one, delete {self._hash_path}"
                )
        try:
            if self.check is not None:
                self.check(data)
        except (ArtifactError, ValueError) as error:
            raise DownloadError(f"{refusal}: {error}") from None
        return digest

    @property
    def _hash_path(self) -> Path:
        """File beside the published one that records the SHA-256 of the first download."""
        return self.path.with_name(self.path.name + ".sha256")

    def _read_recorded_hash(self) -> str | None:
        """Read the SHA-256 of the first download; None if there was no download yet."""
        try:
            return self._hash_path.read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ArtifactError(f"cannot read {self._hash_path}: {error}") from None


def _read_unpacked(source: Path) -> bytes:
    """Read a local copy of a file; a copy whose name ends in ".gz" is unpacked."""
    try:
        if source.suffix == ".gz":
            with gzip.open(source) as file:
                return file.read()
        return source.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DownloadError(f"cannot read {source}: {error}") from None
