"""Array files (npz) of unknown origin: read without pickle and with limited size."""

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_UNPACKED = 2**28
"""Most bytes of all arrays in a file: 256 MiB."""
MAX_ARRAYS = 20_000
"""Most arrays in a file; more take long to open."""

_DIRECTORY_ENTRY = b"PK\x01\x02"


def read_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file; ValueError if it is malformed or too large."""
    if data.count(_DIRECTORY_ENTRY) > MAX_ARRAYS:
        raise ValueError(f"it holds more than {MAX_ARRAYS} arrays")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        arrays = {}
        if unpacked <= MAX_UNPACKED:
            with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as arrays_of:
                arrays = {name: arrays_of[name] for name in arrays_of.files}
    except Exception as error:  # malformed files make zipfile and numpy raise errors of many types
        raise ValueError(str(error) or "it ends too early") from None
    if unpacked > MAX_UNPACKED:
        raise ValueError(f"its arrays must have at most {MAX_UNPACKED} bytes, but have {unpacked}")
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("it must hold arrays only")
    return arrays


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
