"""A table of malformed artifacts: each is refused at once, by one message of the package's own."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from toy_artifacts import copy, put, put_arrays, use, write_artifact

from hpobench_ordered.surrogates.bundle import BENCHMARK, CARD, EVALUATIONS

MAX_SECONDS = 2.0
ARRAY_FILES = (EVALUATIONS, "forest.npz", "nearest.npz", "table.npz", "apart.npz")
FILES = (BENCHMARK, CARD, *ARRAY_FILES)

Damage = Callable[[Path], None]


def truncate(folder: Path, name: str, share: float) -> None:
    data = (folder / name).read_bytes()
    put(folder, name, data[: int(share * len(data))])


def flip_bit(folder: Path, name: str, share: float) -> None:
    """Flip a bit without a new hash, as a disk does."""
    data = bytearray((folder / name).read_bytes())
    data[int(share * len(data))] ^= 1
    (folder / name).write_bytes(data)


def edit(
    folder: Path, name: str, path: tuple[Any, ...], change: Callable[[Any, Any], None]
) -> None:
    """Change the content under a path of keys, with a new hash."""
    content = json.loads((folder / name).read_text())
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    change(parent, path[-1])
    put(folder, name, json.dumps(content).encode())


def remove_key(folder: Path, name: str, path: tuple[Any, ...]) -> None:
    edit(folder, name, path, lambda parent, key: parent.__delitem__(key))


def replace_value(folder: Path, name: str, path: tuple[Any, ...], value: Any) -> None:
    edit(folder, name, path, lambda parent, key: parent.__setitem__(key, value))


def change_arrays(folder: Path, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    with np.load(folder / name) as stored:
        arrays = {key: change(array) for key, array in stored.items()}
    put_arrays(folder, name, arrays)


def nest(array: NDArray[Any]) -> NDArray[Any]:
    return array[None, None]


def halve(array: NDArray[Any]) -> NDArray[Any]:
    return array[: len(array) // 2] if array.ndim else array[None]


def to_complex(array: NDArray[Any]) -> NDArray[Any]:
    return np.zeros(array.shape, dtype=np.complex128)


def empty(array: NDArray[Any]) -> NDArray[Any]:
    return array.ravel()[:0]


NEEDED = {
    BENCHMARK: [
        ("name",),
        ("version",),
        ("summary",),
        ("objective",),
        ("objective", "name"),
        ("objective", "unit"),
        ("objective", "direction"),
        ("provenance",),
        ("provenance", "licence"),
        ("tasks",),
        ("tasks", 0, "name"),
        ("tasks", 0, "context"),
        ("space",),
        ("space", "hyperparameters"),
        ("space", "hyperparameters", 0, "name"),
        ("surrogates",),
        ("surrogates", "forest", "type"),
        ("surrogates", "forest", "file"),
        ("surrogates", "forest", "summary"),
        ("surrogates", "forest", "best_values"),
    ],
    CARD: [
        ("benchmark",),
        ("surrogate",),
        ("source",),
        ("licence",),
        ("evaluations",),
        ("configurations",),
        ("folds",),
        ("figures",),
        ("limits",),
        ("command",),
        ("versions",),
        ("figures", 0, "name"),
        ("figures", 0, "r2"),
    ],
}
"""Paths of keys without which an artifact is not complete."""

DAMAGES: dict[str, Damage] = {}
for _name in FILES:
    for _share in (0.0, 0.3, 0.9):
        DAMAGES[f"{_name} truncated at {_share}"] = partial(truncate, name=_name, share=_share)
    for _share in (0.1, 0.5, 0.9):
        DAMAGES[f"{_name} with a bit flipped at {_share}"] = partial(
            flip_bit, name=_name, share=_share
        )
for _name, _paths in NEEDED.items():
    for _path in _paths:
        _label = f"{_name} {'/'.join(map(str, _path))}"
        DAMAGES[f"{_label} missing"] = partial(remove_key, name=_name, path=_path)
        for _value in (None, [[]]):
            DAMAGES[f"{_label} = {_value}"] = partial(
                replace_value, name=_name, path=_path, value=_value
            )
for _name in ARRAY_FILES:
    # Half of the evaluations are evaluations, too.
    for _change in (nest, to_complex, empty) if _name == EVALUATIONS else (nest, halve, to_complex):
        DAMAGES[f"{_name} arrays: {_change.__name__}"] = partial(
            change_arrays, name=_name, change=_change
        )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = write_artifact(tmp_path_factory.mktemp("whole") / "toy")
    assert use(folder) == ""  # and the kernels are compiled
    return folder


def test_table_is_long_enough():
    assert len(DAMAGES) >= 120


@pytest.mark.parametrize("label", DAMAGES)
def test_malformed_artifact_is_refused(label, whole, tmp_path):
    damaged = copy(whole, tmp_path / "toy")
    DAMAGES[label](damaged)
    start = time.monotonic()

    message = use(damaged)  # raises all errors but the package's own

    assert message != ""
    assert "\n" not in message
    assert time.monotonic() - start < MAX_SECONDS
