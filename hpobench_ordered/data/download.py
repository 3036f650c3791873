"""Downloads, which are tried again after failures that may pass, such as a busy server."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from hpobench_ordered.errors import DownloadError

if TYPE_CHECKING:
    import requests

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch {} --from PATH"
"""What to do without a network, with the name of the benchmark."""

ATTEMPTS = 4
FIRST_PAUSE = 0.5  # seconds before the second attempt; each further pause is twice as long
TIMEOUT = 30.0  # seconds without receiving a byte

_CHUNK = 2**16
_STATUS_OF_PASSING_FAILURES = (429, 500, 502, 503, 504)

Progress = Callable[[int, int], None]  # called with the number of bytes received and of all bytes


def check_online(what: str, *, instead: str) -> None:
    """Raise a `DownloadError` if the user has disabled downloads.

    Its message ends with `instead`, what else to do.
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


def download(url: str, *, instead: str, progress: Progress | None = None) -> bytes:
    """Download a file and return its content.

    Raises:
        DownloadError: It cannot be downloaded; the message ends with `instead`, what else to do.
    """
    import requests

    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _receive(url, progress or (lambda done, total: None))
        except requests.RequestException as error:
            reason, may_pass = _describe_failure(error)
            if not may_pass:
                raise DownloadError(f"cannot download {url}: {reason}. {instead}") from None
        if attempt < ATTEMPTS:
            time.sleep(FIRST_PAUSE * 2.0 ** (attempt - 1))
    raise DownloadError(f"cannot download {url}: {reason}, in {ATTEMPTS} attempts. {instead}")


def _receive(url: str, progress: Progress) -> bytes:
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


def _describe_failure(error: "requests.RequestException") -> tuple[str, bool]:
    """What went wrong, in a few words, and whether it may pass."""
    import requests

    if error.response is not None:
        status = error.response.status_code
        return f"HTTP {status}", status in _STATUS_OF_PASSING_FAILURES
    if isinstance(error, requests.Timeout):
        return f"no answer for {TIMEOUT:g} s", True
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke", True
    if isinstance(error, requests.ConnectionError):
        return "no connection", True
    return str(error), False
