"""Downloads, which are tried again after failures that may pass, such as a busy server."""

import os
from collections.abc import Callable

from hpobench_ordered.errors import DownloadError

OFFLINE_VARIABLE = "HPOBENCH_ORDERED_OFFLINE"
FROM_COPY = "A copy obtained elsewhere is accepted with: hpobench-ordered fetch {} --from PATH"
"""What to do without a network, with the name of the benchmark."""

ATTEMPTS = 4
FIRST_PAUSE = 0.5  # seconds before the second attempt; each further pause is twice as long
TIMEOUT = 30.0  # seconds without receiving a byte

_CHUNK = 2**16
_PASSING_FAILURES = (429, 500, 502, 503, 504)  # HTTP statuses after which it is tried again

Progress = Callable[[int, int], None]  # called with the number of bytes received and of all bytes


def check_online(what: str, *, instead: str) -> None:
    """Raise a `DownloadError` if the user has disabled downloads.

    Args:
        what: What would be downloaded.
        instead: A sentence for the end of the message, which says what else to do.
    """
    if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
        raise DownloadError(f"{what} is not downloaded: {OFFLINE_VARIABLE} is set. {instead}")


def download(url: str, *, instead: str, progress: Progress | None = None) -> bytes:
    """Download a file and return its content.

    Args:
        url: Address of the file.
        instead: A sentence for the end of the error message, which says what else to do.
        progress: Called with the numbers of bytes received so far and of all bytes.

    Raises:
        DownloadError: The file cannot be downloaded.
    """
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    retries = Retry(ATTEMPTS - 1, backoff_factor=FIRST_PAUSE, status_forcelist=_PASSING_FAILURES)
    without_compression = {"Accept-Encoding": "identity"}  # so that received bytes can be counted
    data = bytearray()
    try:
        with requests.Session() as session:
            for protocol in ("http://", "https://"):
                session.mount(protocol, HTTPAdapter(max_retries=retries))
            request = session.get(url, stream=True, timeout=TIMEOUT, headers=without_compression)
            with request as response:
                response.raise_for_status()
                stated_size = int(response.headers.get("Content-Length", 0))  # 0 if not stated
                for chunk in response.iter_content(_CHUNK):
                    data += chunk
                    if progress is not None:
                        total_size = max(stated_size, len(data))
                        progress(len(data), total_size)
    except requests.RequestException as error:
        raise DownloadError(f"cannot download {url}: {error}. {instead}") from None
    return bytes(data)
