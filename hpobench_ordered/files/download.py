"""Downloads: over HTTPS, limited in size, retried, and continued where an earlier one stopped.

What has arrived is kept in a `.part` file beside the target. Only one process at a time writes to
it: others wait, and find the finished file. pooch starts over after every interruption, and follows
redirects to anywhere.
"""

import ipaddress
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol
from urllib.parse import urljoin, urlsplit

from hpobench_ordered.errors import DownloadError

if TYPE_CHECKING:
    import requests

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch NAME --from PATH"

ATTEMPTS = 4
FIRST_PAUSE = 0.5
"""Seconds before the second attempt; each further pause is twice as long."""
TIMEOUT = 30.0
"""Seconds without a byte."""

_CHUNK = 2**16
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_PASSING = (429, 500, 502, 503, 504)
_PARTIAL, _BEYOND = 206, 416


class ProgressBar(Protocol):
    """What is moved along while a file arrives."""

    total: int

    def update(self, size: int) -> None:
        """Add so many bytes."""

    def reset(self) -> None:
        """Start at 0 again."""

    def close(self) -> None:
        """End."""


class TransientError(DownloadError):
    """What may be over at the next attempt."""


def check_online(what: str, *, instead: str = FROM_COPY) -> None:
    """Check that the user allows downloads."""
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


@contextmanager
def locked_part(part: Path) -> Iterator[IO[bytes]]:
    """Open a `.part` file for this process alone, at its beginning; wait while another has it."""
    while True:
        with part.open("a+b") as file:
            _lock(file)
            # Whoever had it before may have moved it to its final place.
            if part.exists() and os.path.samestat(os.fstat(file.fileno()), part.stat()):
                file.seek(0)
                yield file
                return


def download(
    url: str,
    file: IO[bytes],
    *,
    limit: int,
    resume: bool,
    progress: ProgressBar | None = None,
) -> None:
    """Complete a file by what is missing at its end."""
    if not resume:
        file.truncate(0)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _attempt(url, file, limit, progress)
        except TransientError as error:
            if not resume:
                file.truncate(0)
            if attempt == ATTEMPTS:
                raise DownloadError(
                    f"cannot download {url}: {error}, in {ATTEMPTS} attempts. {FROM_COPY}"
                ) from None
            time.sleep(FIRST_PAUSE * 2.0 ** (attempt - 1))
        else:
            return


def _attempt(url: str, file: IO[bytes], limit: int, progress: ProgressBar | None) -> None:
    import requests

    have = file.seek(0, os.SEEK_END)
    try:
        with requests.Session() as session, _response(session, url, have) as response:
            if response.status_code == _BEYOND:  # more than there is: it was another file
                file.truncate(0)
                raise TransientError(f"HTTP {_BEYOND}")
            if response.status_code == _PARTIAL:
                _check_continues(response, have)
            else:
                file.truncate(0)
                have = 0
            _receive(response, file, have, limit, progress)
    except requests.RequestException as error:
        reason = _reason(error)
        if _is_passing(error):
            raise TransientError(reason) from None
        raise DownloadError(f"cannot download {url}: {reason}. {FROM_COPY}") from None


@contextmanager
def _response(session: "requests.Session", url: str, have: int) -> "Iterator[requests.Response]":
    """The answer to a request for all bytes from `have` on, redirects followed."""
    headers = {"Accept-Encoding": "identity"}  # bytes are counted and continued as they are
    if have:
        headers["Range"] = f"bytes={have}-"
    target = url
    for _ in range(_MOST_REDIRECTS + 1):
        _check_address(target, url)
        response = session.get(
            target, headers=headers, stream=True, timeout=TIMEOUT, allow_redirects=False
        )
        if response.status_code in _REDIRECTS and "Location" in response.headers:
            target = urljoin(target, response.headers["Location"])
            response.close()
            continue
        with response:
            if response.status_code != _BEYOND:
                response.raise_for_status()
            yield response
            return
    raise DownloadError(f"cannot download {url}: more than {_MOST_REDIRECTS} redirects")


def _receive(
    response: "requests.Response",
    file: IO[bytes],
    have: int,
    limit: int,
    progress: ProgressBar | None,
) -> None:
    """Append what arrives, never more than is announced or allowed."""
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
        raise TransientError(f"{have} of {total} bytes arrived")


def _check_continues(response: "requests.Response", have: int) -> None:
    if not str(response.headers.get("Content-Range", "")).startswith(f"bytes {have}-"):
        raise DownloadError(f"{response.url} sends another part than the one asked for")


def _check_address(target: str, url: str) -> None:
    """Check that an address is one of HTTPS, or of this machine."""
    try:
        parts = urlsplit(target)
        host = parts.hostname or ""
    except ValueError as error:
        raise DownloadError(f"{target!r} is no address: {error}") from None
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host)):
        return
    where = target if target == url else f"{target}, where {url} leads"
    raise DownloadError(f"only https is trusted, not {where}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_passing(error: Exception) -> bool:
    import requests
    from urllib3.exceptions import MaxRetryError

    response = getattr(error, "response", None)
    if response is not None:
        return response.status_code in _PASSING
    if isinstance(error, requests.ConnectionError):  # but for those that never came about
        return not (error.args and isinstance(error.args[0], MaxRetryError))
    return isinstance(error, requests.Timeout | requests.exceptions.ChunkedEncodingError)


def _reason(error: Exception) -> str:
    """The first words of what went wrong."""
    import requests

    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    if isinstance(error, requests.Timeout):
        return f"no answer for {TIMEOUT:g} s"
    if not _is_passing(error) and isinstance(error, requests.ConnectionError):
        return "no connection"
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "the connection broke"
    return type(error).__name__


def _lock(file: IO[Any]) -> None:
    """Lock an open file until it is closed, or its process ends."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
