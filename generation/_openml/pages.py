"""Pages of a download, stored one by one in a folder.

    FOLDER/manifest.json            what is downloaded, and how it is cut into pages
    FOLDER/<kind>/<page>.json       one page: the request and the answer

Pages are written atomically, so that an interruption loses only the page in flight.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import StoreError

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Pages:
    """A folder of pages."""

    folder: Path

    def open(self, identity: Mapping[str, Any]) -> None:
        """Make the folder, or check that it holds pages of the same download.

        Args:
            identity: What determines the answers, besides the request of each page.

        Raises:
            StoreError: The folder holds another download.
        """
        path = self.folder / MANIFEST
        if not path.exists():
            self._write(path, dict(identity))
        stored = _read_json(path)
        if stored != dict(identity):
            raise StoreError(
                f"{self.folder} holds another download, {stored}, not {dict(identity)}; choose "
                "another folder"
            )

    def path(self, kind: str, page: str) -> Path:
        """Path of a page."""
        return self.folder / kind / f"{page}.json"

    def get(self, kind: str, page: str, request: Mapping[str, Any], ask: Callable[[], Any]) -> Any:
        """Return the answer of a page; if it is not stored, ask for it and store it.

        Args:
            kind: Folder of the page.
            page: Name of the page.
            request: What is asked for; a stored page must be the answer to the same request.
            ask: Asks OpenML.
        """
        path = self.path(kind, page)
        if path.exists():
            return self._read_answer(path, request)
        answer = ask()
        self.write(kind, page, request, answer)
        return answer

    def read_all(self, kind: str) -> list[Any]:
        """Read the answers of all pages of a kind, in the order of their names."""
        paths = sorted((self.folder / kind).glob("*.json"))
        return [self._read_answer(path, request=None) for path in paths]

    def write(self, kind: str, page: str, request: Mapping[str, Any], answer: Any) -> None:
        """Store a page."""
        self._write(self.path(kind, page), {"request": dict(request), "answer": answer})

    def _read_answer(self, path: Path, request: Mapping[str, Any] | None) -> Any:
        """Read the answer of a page, after checking that it answers this request; None: any."""
        page = _read_json(path)
        is_page = isinstance(page, dict) and page.keys() >= {"request", "answer"}
        is_expected = is_page and (request is None or page["request"] == request)
        if not is_expected:
            raise StoreError(f"{path} is damaged; delete it to download it again")
        return page["answer"]

    def _write(self, path: Path, content: Any) -> None:
        """Write a file of JSON atomically; a `StoreError` if that is impossible."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(content, allow_nan=False).encode())
        except OSError as error:
            raise StoreError(f"cannot store the download in {self.folder}: {error}") from error


def _read_json(path: Path) -> Any:
    """Read a stored file of JSON; a `StoreError` if it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} is damaged ({error}); delete it to download it again") from error
