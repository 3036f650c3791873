"""Array files (npz), read without pickle and with limited size."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_UNPACKED = 2**32
"""Most bytes of all arrays in a file together: 4 GiB."""


def read_npz(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of an npz file, by name.

    Raises:
        ValueError: The file is malformed, or its arrays have more than `MAX_UNPACKED` bytes.
    """
    try:
        # The sizes are read first: a small file may contain arrays that fill the memory.
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unpacked_size = sum(member.file_size for member in archive.infolist())
        if unpacked_size <= MAX_UNPACKED:
            with np.lib.npyio.NpzFile(io.BytesIO(data), allow_pickle=False) as file:
                return dict(file)
    except Exception as error:  # malformed files make zipfile and numpy raise errors of many types
        raise ValueError(str(error) or "it ends too early") from None
    raise ValueError(f"its arrays must have at most {MAX_UNPACKED} bytes, but have {unpacked_size}")


def encode_npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Encode arrays as the content of a compressed npz file; the same arrays give the same bytes.

    `arrays` has the arrays by name.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compresslevel=9) as archive:
        for name in sorted(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(arrays[name]), allow_pickle=False)
            # A fixed date replaces the time of writing, so that the bytes are always the same.
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content.getvalue())
    return file.getvalue()


def copy_read_only(array: Any, kind: type[np.generic] = np.float64) -> NDArray[Any]:
    """Copy an array, in C order and with numbers of a type; the copy is read-only."""
    copy = np.array(array, dtype=kind, order="C")
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, slots=True)
class StoredArray:
    """What an array of a stored surrogate must be like.

    Attributes:
        dimensions: Number of dimensions; None allows any number.
        types: Types that its numbers may have.
        may_be_nan: Whether numbers may be NaN or infinite.
    """

    dimensions: int | None
    types: tuple[type[np.generic], ...]
    may_be_nan: bool = False


def check_arrays(arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, StoredArray]) -> None:
    """Raise a `ValueError` unless all arrays have the expected types, dimensions and numbers.

    Arrays that are missing are not noticed.

    Args:
        arrays: The arrays by NAME, or by TASK/NAME for an array of one task.
        expected: What an array must be like, by NAME.
    """
    for name, array in arrays.items():
        _, _, name_without_task = name.rpartition("/")
        if name_without_task not in expected:
            raise ValueError(f"array {name!r} is unknown; known are {sorted(expected)}")
        _check_array(name, array, expected[name_without_task])


def _check_array(name: str, array: NDArray[Any], allowed: StoredArray) -> None:
    """Raise a `ValueError` unless an array has an allowed type and dimension, and finite numbers.

    `name` is the array's name, for the message.
    """
    is_native = array.dtype.isnative  # in this processor's order of bytes, as kernels expect
    has_right_type = array.dtype.type in allowed.types and is_native
    if not has_right_type:
        names_of_types = sorted(np.dtype(allowed_type).name for allowed_type in allowed.types)
        expected_type = " or ".join(names_of_types)
        raise ValueError(f"array {name!r} must be of type {expected_type}, but got {array.dtype}")

    has_right_dimensions = allowed.dimensions in (None, array.ndim)
    if not has_right_dimensions:
        raise ValueError(
            f"array {name!r} must have {allowed.dimensions} dimensions, but got {array.ndim}"
        )

    is_float = array.dtype.kind == "f"
    if is_float and not allowed.may_be_nan:
        is_finite = np.isfinite(array).all()
        if not is_finite:
            raise ValueError(f"array {name!r} must be finite")
