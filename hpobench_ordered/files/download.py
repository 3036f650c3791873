"""Downloads over HTTPS, limited in size; what may pass, such as a busy server, is tried again."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hpobench_ordered.errors import DownloadError

if TYPE_CHECKING:
    import requests

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch NAME --from PATH"

ATTEMPTS = 4
FIRST_PAUSE = 0.5  # seconds before the second attempt; each further pause is twice as long
TIMEOUT = 30.0  # seconds without receiving a byte

_CHUNK = 2**16
_MOST_REDIRECTS = 5
_PASSING = (429, 500, 502, 503, 504)
_HERE = [("http", host) for host in ("localhost", "127.0.0.1", "::1")]

Progress = Callable[[int, int], None]  # called with the number of bytes received and of all bytes


def check_online(what: str, *, instead: str = FROM_COPY) -> None:
    """Raise a `DownloadError` if the user has disabled downloads."""
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


def download(url: str, *, limit: int, progress: Progress | None = None) -> bytes:
    """Content of a published file of at most `limit` bytes; a `DownloadError` without it."""
    import requests

    with _session() as session:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _received(session, url, limit, progress or (lambda done, total: None))
            except requests.RequestException as error:
                reason, may_pass = _failure(error)
                if not may_pass:
                    raise DownloadError(f"cannot download {url}: {reason}. {FROM_COPY}") from None
            if attempt < ATTEMPTS:
                time.sleep(FIRST_PAUSE * 2.0 ** (attempt - 1))
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
    session.headers["Accept-Encoding"] = "identity"  # no compression, as bytes are counted
    return session


def _received(session: "requests.Session", url: str, limit: int, progress: Progress) -> bytes:
    import requests

    with session.get(url, stream=True, timeout=TIMEOUT) as response:
        response.raise_for_status()
        announced = response.headers.get("Content-Length", "")
        total = int(announced) if announced.isdecimal() else None
        if total is not None and total > limit:
            raise DownloadError(f"{url} announces {total} bytes, more than the {limit} allowed")
        data = bytearray()
        for chunk in response.iter_content(_CHUNK):
            data += chunk
            if len(data) > limit:
                raise DownloadError(f"{url} sends more than the {limit} bytes allowed")
            progress(len(data), limit if total is None else total)
    if total is not None and len(data) < total:
        raise requests.exceptions.ChunkedEncodingError
    return bytes(data)


def _failure(error: "requests.RequestException") -> tuple[str, bool]:
    """What went wrong, in a few words, and whether it may pass."""
    import requests

    if error.response is not None:
        status = error.response.status_code
        return f"HTTP {status}", status in _PASSING
    kinds = {
        requests.Timeout: f"no answer for {TIMEOUT:g} s",
        requests.exceptions.ChunkedEncodingError: "the connection broke",
        requests.ConnectionError: "no connection",
    }
    said = next((said for kind, said in kinds.items() if isinstance(error, kind)), "")
    return said or str(error), bool(said)
