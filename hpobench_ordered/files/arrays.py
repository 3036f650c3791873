"""Array files (npz), read without pickle."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file; ValueError if it is malformed."""
    try:
        with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as file:
            return dict(file)
    except Exception as error:  # malformed files make zipfile and numpy raise errors of many types
        raise ValueError(str(error) or "it ends too early") from None


def npz_bytes(arrays: Mapping[str, NDArray[Any]], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A compressed npz file, byte by byte the same for the same arrays."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=9) as archive:
        for key in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[key]), allow_pickle=False)
            # A fixed date instead of the time of writing.
            info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, member.getvalue())
    return buffer.getvalue()
