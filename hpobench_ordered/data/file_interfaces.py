"""The interfaces of files that benchmarks consist of; `hpobench_ordered.data` reads them."""

from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray


class PublishedFile(Protocol):
    """A file that its publisher offers for download, kept in a cache folder once fetched."""

    @property
    def name(self) -> str:
        """Its path in the cache folder."""
        ...

    @property
    def cache(self) -> Path:
        """The cache folder."""
        ...

    @property
    def path(self) -> Path:
        """Where the file is in the cache."""
        ...

    @property
    def is_fetched(self) -> bool:
        """Whether the file is in the cache."""
        ...

    @property
    def first_hash(self) -> str:
        """Hash recorded at the first download; empty if the publisher states one."""
        ...

    def open_path(self, benchmark: str | None = None) -> Path:
        """Path of the fetched file, after checking its hash."""
        ...

    def store(self, source: Path) -> None:
        """Copy a local file into the cache if it is the published one."""
        ...

    def download(
        self,
        *,
        benchmark: str = "NAME",
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Download the file into the cache; errors say how to fetch a copy of `benchmark`."""
        ...


class ArtifactFiles(Protocol):
    """A folder of files, each checked against its recorded hash when it is read."""

    folder: Traversable

    @property
    def exists(self) -> bool:
        """Whether there is an artifact in the folder."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of the names and recorded hashes of all files."""
        ...

    def sums(self) -> dict[str, str]:
        """Recorded SHA-256 of every file, by name."""
        ...

    def check(self) -> int:
        """Check the hash of every file; return their number."""
        ...

    def read(self, name: str) -> bytes:
        """Read a file and check its hash."""
        ...

    def read_json(self, name: str) -> Any:
        """Read a JSON file."""
        ...

    def read_arrays(self, name: str) -> Mapping[str, NDArray[Any]]:
        """Read the arrays of an npz file."""
        ...
