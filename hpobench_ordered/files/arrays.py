"""Array files (npz) of unknown origin: nothing is unpacked before its size and type are known.

A file that was made to do harm can announce terabytes, unpack a few kilobytes to gigabytes, or hold
pickled objects. Accepted is what `ArtifactWriter.write_arrays` writes and no more: a zip file of
arrays of little-endian numbers or text in npy format 1.0, stored or deflated, within the limits
below.
"""

import io
import math
import re
import zipfile
import zlib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

MAX_UNPACKED = 2**28
"""Most bytes that the arrays of a file may have together: 256 MiB."""
MAX_VALUES = 2**25
"""Most values that they may have together: surrogates turn small codes into 8-byte numbers."""
MAX_ARRAYS = 20_000
"""Most arrays in a file."""

_DIRECTORY_ENTRY = b"PK\x01\x02"
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '(\|i1|\|u1|<[iu][248]|<f[48]|<U\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,9}, )*\d{1,9},?|)\), \} *\n"
)
_LEAST = 1  # byte; numpy refuses text of length 0


def read_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file, by name."""
    # Every entry costs half a kilobyte once the directory is read: count before.
    if data.count(_DIRECTORY_ENTRY) > MAX_ARRAYS:
        raise ValueError(f"it holds more than {MAX_ARRAYS} arrays")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            _check_directory(members)
            arrays: dict[str, NDArray[Any]] = {}
            for member in members:
                name = member.filename.removesuffix(".npy")
                with archive.open(member) as file:
                    # With a size: without, more is unpacked than the directory announces.
                    arrays[name] = _array(name, file.read(member.file_size))
    except (EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise ValueError(str(error) or "it ends too early") from None
    except (OSError, OverflowError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(str(error)) from None
    if sum(array.size for array in arrays.values()) > MAX_VALUES:
        raise ValueError(f"its arrays have more than {MAX_VALUES} values")
    return arrays


def _check_directory(members: list[zipfile.ZipInfo]) -> None:
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise ValueError("it holds two arrays of one name")
    if not all(name.endswith(".npy") for name in names):
        raise ValueError("it holds something else than arrays")
    # Others are unpacked without a limit on the size.
    if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
        raise ValueError("an array is compressed in an unknown way")
    unpacked = sum(member.file_size for member in members)
    if unpacked > MAX_UNPACKED:
        raise ValueError(
            f"its arrays have {unpacked} bytes when unpacked, more than the {MAX_UNPACKED} allowed"
        )


def _array(name: str, raw: bytes) -> NDArray[Any]:
    """Read one array in npy format; it announces as many bytes as there are."""
    begin = len(_MAGIC) + 2
    start = begin + int.from_bytes(raw[len(_MAGIC) : begin], "little")
    header = _HEADER.fullmatch(raw[begin:start]) if raw.startswith(_MAGIC) else None
    if header is None:
        raise ValueError(
            f"array {name!r} has no header of a little-endian array of numbers or text: "
            f"{raw[begin : min(start, begin + 80)]!r}"
        )
    dtype = np.dtype(header[1].decode())
    order: Literal["C", "F"] = "F" if header[2] == b"True" else "C"
    shape = tuple(int(length) for length in header[3].decode().split(",") if length.strip())
    announced = math.prod(shape) * max(dtype.itemsize, _LEAST)
    if announced != len(raw) - start:
        raise ValueError(
            f"array {name!r} of shape {shape} and type {dtype} has {announced} bytes, "
            f"the file {len(raw) - start}"
        )
    array = np.frombuffer(raw, dtype=dtype, offset=start, count=math.prod(shape))
    return array.reshape(shape, order=order).copy(order="K")
