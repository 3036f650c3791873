"""Downloads from OpenML by its own client."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hpobench_ordered.data.download import check_online
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.errors import DownloadError

ATTEMPTS = 10
"""The client's attempts at a request, with pauses that grow up to a minute."""


@contextmanager
def openml_client(subject: str, *, advice: str = "") -> Iterator[Any]:
    """Give the package `openml` for a download, with retries, and translate its errors.

    Args:
        subject: What is downloaded, for messages.
        advice: What the user can do if it cannot be downloaded, for messages.

    Raises:
        DownloadError: The download fails, OpenML's answer is malformed, or downloads are disabled.
        MissingExtraError: The package is not installed.
    """
    openml = import_extra(
        "openml", package="openml", extra="train", purpose=f"downloading {subject}"
    )
    check_online(subject, instead=advice)
    openml.config.set_retry_policy("robot", ATTEMPTS)
    try:
        yield openml
    # The client raises a KeyError, TypeError or ValueError for an answer that it cannot read.
    except (openml.exceptions.PyOpenMLError, OSError, KeyError, TypeError, ValueError) as error:
        raise DownloadError(f"OpenML does not give {subject} ({error!r}). {advice}") from error
