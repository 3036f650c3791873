"""Downloads over HTTPS: limited in size, retried, and resumed.

Received bytes are kept in a `.part` file beside the target. A lock allows one process at a time to
write to it; others wait, and then find the complete file.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from hpobench_ordered.errors import DownloadError

if TYPE_CHECKING:
    import requests

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch NAME --from PATH"

ATTEMPTS = 4
FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long."""
TIMEOUT = 30.0
"""Seconds without receiving a byte."""

_CHUNK = 2**16
_MOST_REDIRECTS = 5
_PARTIAL, _BEYOND = 206, 416
_PASSING = (_BEYOND, 429, 500, 502, 503, 504)
_HERE = [("http", host) for host in ("localhost", "127.0.0.1", "::1")]


class ProgressBar(Protocol):
    """A progress bar, in bytes."""

    total: int

    def update(self, size: int) -> None:
        """Add a number of bytes."""

    def reset(self) -> None:
        """Start at 0 again."""


def check_online(what: str, *, instead: str = FROM_COPY) -> None:
    """Raise a `DownloadError` if the user has disabled downloads."""
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


@contextmanager
def locked_part(part: Path) -> Iterator[IO[bytes]]:
    """Open a `.part` file exclusively, at its beginning; wait while another process has it."""
    while True:
        with part.open("a+b") as file:
            _lock(file)
            # Another process may have moved it to its final place in the meantime.
            if part.exists() and os.path.samestat(os.fstat(file.fileno()), part.stat()):
                file.seek(0)
                yield file
                return


def download(
    url: str, file: IO[bytes], *, limit: int, resume: bool, progress: ProgressBar | None = None
) -> None:
    """Append the missing bytes to a file; without `resume`, download it again."""
    import requests

    for attempt in range(1, ATTEMPTS + 1):
        if not resume:
            file.truncate(0)
        try:
            with _session() as session:
                _attempt(session, url, file, limit, progress)
        except requests.RequestException as error:
            reason = _reason(error)
            if not _may_pass(error):
                raise DownloadError(f"cannot download {url}: {reason}. {FROM_COPY}") from None
        else:
            return
        time.sleep(FIRST_PAUSE * 2.0 ** (attempt - 1))
    if not resume:
        file.truncate(0)
    raise DownloadError(f"cannot download {url}: {reason}, in {ATTEMPTS} attempts. {FROM_COPY}")


def _session() -> "requests.Session":
    """A session that only uses HTTPS, even after redirects, or HTTP to this machine."""
    import requests

    class Session(requests.Session):  # type: ignore[misc]
        def get_adapter(self, url: str | bytes) -> Any:
            parts = urlsplit(str(url))
            if parts.scheme != "https" and (parts.scheme, parts.hostname) not in _HERE:
                raise DownloadError(f"only https is trusted, not {url!s}")
            return super().get_adapter(url)

    session = Session()
    session.max_redirects = _MOST_REDIRECTS
    # Without compression, since stored bytes are counted and resumed.
    session.headers["Accept-Encoding"] = "identity"
    return session


def _attempt(
    session: "requests.Session", url: str, file: IO[bytes], limit: int, progress: ProgressBar | None
) -> None:
    have = file.seek(0, os.SEEK_END)
    headers = {"Range": f"bytes={have}-"} if have else {}
    with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as response:
        if response.status_code == _BEYOND:  # the part is longer, so it is of another file
            file.truncate(0)
        response.raise_for_status()
        if response.status_code != _PARTIAL:
            file.truncate(0)
            have = 0
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise DownloadError(f"{response.url} sends another part than the requested one")
        _receive(response, file, have, limit, progress)


def _receive(
    response: "requests.Response",
    file: IO[bytes],
    have: int,
    limit: int,
    progress: ProgressBar | None,
) -> None:
    """Append the received bytes, at most as many as announced and allowed."""
    announced = response.headers.get("Content-Length", "")
    total = have + int(announced) if announced.isdecimal() else None
    most = limit if total is None else total
    if most > limit:
        raise DownloadError(
            f"{response.url} announces {total} bytes, more than the {limit} allowed"
        )
    if progress is not None:
        progress.reset()
        progress.total = most if total is None else total
        progress.update(have)
    for chunk in response.iter_content(_CHUNK):
        have += len(chunk)
        if have > most:
            file.truncate(0)
            raise DownloadError(f"{response.url} sends more than the {most} bytes allowed")
        file.write(chunk)
        if progress is not None:
            progress.update(len(chunk))
    file.flush()
    if total is not None and have < total:
        from requests.exceptions import ChunkedEncodingError

        raise ChunkedEncodingError(f"{have} of {total} bytes arrived")


def _may_pass(error: "requests.RequestException") -> bool:
    import requests

    if error.response is not None:
        return error.response.status_code in _PASSING
    kinds = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, kinds)


def _reason(error: "requests.RequestException") -> str:
    """What went wrong, in a few words."""
    import requests

    if error.response is not None:
        return f"HTTP {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer for {TIMEOUT:g} s"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke"
    if isinstance(error, requests.ConnectionError):
        return "no connection"
    return str(error)


def _lock(file: IO[Any]) -> None:
    """Lock a file until it is closed or its process ends."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
