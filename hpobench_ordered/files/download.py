"""Downloads; what may pass, such as a busy server, is tried again."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hpobench_ordered.errors import DownloadError

if TYPE_CHECKING:
    import requests

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch NAME --from PATH"

ATTEMPTS = 4
FIRST_PAUSE = 0.5  # seconds before the second attempt; each further pause is twice as long
TIMEOUT = 30.0  # seconds without receiving a byte

_CHUNK = 2**16
_PASSING = (429, 500, 502, 503, 504)

Progress = Callable[[int, int], None]  # called with the number of bytes received and of all bytes


def check_online(what: str, *, instead: str = FROM_COPY) -> None:
    """Raise a `DownloadError` if the user has disabled downloads."""
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


def download(url: str, *, progress: Progress | None = None) -> bytes:
    """Content of a published file; a `DownloadError` without it."""
    import requests

    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _received(url, progress or (lambda done, total: None))
        except requests.RequestException as error:
            reason, may_pass = _failure(error)
            if not may_pass:
                raise DownloadError(f"cannot download {url}: {reason}. {FROM_COPY}") from None
        if attempt < ATTEMPTS:
            time.sleep(FIRST_PAUSE * 2.0 ** (attempt - 1))
    raise DownloadError(f"cannot download {url}: {reason}, in {ATTEMPTS} attempts. {FROM_COPY}")


def _received(url: str, progress: Progress) -> bytes:
    import requests

    plain = {"Accept-Encoding": "identity"}  # no compression, as bytes are counted
    with requests.get(url, stream=True, timeout=TIMEOUT, headers=plain) as response:
        response.raise_for_status()
        total = int(response.headers.get("Content-Length", 0))
        data = bytearray()
        for chunk in response.iter_content(_CHUNK):
            data += chunk
            progress(len(data), max(total, len(data)))
    if len(data) < total:
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
