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
from toy_artifacts import copy_artifact, find_problem, replace_arrays, replace_file, write_artifact

from hpobench_ordered.surrogates.bundle import BENCHMARK, CARD, EVALUATIONS

MAX_SECONDS = 2.0
ARRAY_FILES = (EVALUATIONS, "forest.npz", "nearest.npz", "table.npz", "apart.npz")
FILES = (BENCHMARK, CARD, *ARRAY_FILES)

Damage = Callable[[Path], None]


def truncate(folder: Path, name: str, share: float) -> None:
    """Cut a file off at a share of its length, with a new hash."""
    content = (folder / name).read_bytes()
    length = int(share * len(content))
    replace_file(folder, name, content[:length])


def flip_bit(folder: Path, name: str, share: float) -> None:
    """Flip a bit at a share of a file's length, without a new hash, as a disk does."""
    content = bytearray((folder / name).read_bytes())
    position = int(share * len(content))
    content[position] ^= 1
    (folder / name).write_bytes(content)


def find_parent(content: Any, path: tuple[Any, ...]) -> Any:
    """The object or list that holds the value to which a path of keys leads."""
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    return parent


def remove_key(folder: Path, name: str, path: tuple[Any, ...]) -> None:
    """Remove what a path of keys leads to from a JSON file, with a new hash."""
    content = json.loads((folder / name).read_text())
    *_, last_key = path
    del find_parent(content, path)[last_key]
    replace_file(folder, name, json.dumps(content).encode())


def replace_value(folder: Path, name: str, path: tuple[Any, ...], value: Any) -> None:
    """Replace what a path of keys leads to in a JSON file, with a new hash."""
    content = json.loads((folder / name).read_text())
    *_, last_key = path
    find_parent(content, path)[last_key] = value
    replace_file(folder, name, json.dumps(content).encode())


def change_arrays(folder: Path, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Change every array of a file, with a new hash."""
    with np.load(folder / name) as stored:
        arrays = {key: change(array) for key, array in stored.items()}
    replace_arrays(folder, name, arrays)


def nest(array: NDArray[Any]) -> NDArray[Any]:
    """The array with two axes more."""
    return array[None, None]


def halve(array: NDArray[Any]) -> NDArray[Any]:
    """The first half of the rows; a number alone becomes an array of one."""
    return array[: len(array) // 2] if array.ndim else array[None]


def to_complex(array: NDArray[Any]) -> NDArray[Any]:
    """An array of the same shape with complex zeros."""
    return np.zeros(array.shape, dtype=np.complex128)


def empty(array: NDArray[Any]) -> NDArray[Any]:
    """An array of the same type without values."""
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


def list_damages_of_bytes() -> dict[str, Damage]:
    """Every file, cut off and with a flipped bit at several shares of its length."""
    damages: dict[str, Damage] = {}
    for name in FILES:
        for share in (0.0, 0.3, 0.9):
            damages[f"{name} truncated at {share}"] = partial(truncate, name=name, share=share)
        for share in (0.1, 0.5, 0.9):
            label = f"{name} with a bit flipped at {share}"
            damages[label] = partial(flip_bit, name=name, share=share)
    return damages


def list_damages_of_json() -> dict[str, Damage]:
    """Every value that an artifact needs, missing and replaced by values of other types.

    `NEEDED` has the paths of keys that lead to these values, by file.
    """
    damages: dict[str, Damage] = {}
    for name, paths in NEEDED.items():
        for path in paths:
            keys = "/".join(map(str, path))
            label = f"{name} {keys}"
            damages[f"{label} missing"] = partial(remove_key, name=name, path=path)
            for value in (None, [[]]):
                replace = partial(replace_value, name=name, path=path, value=value)
                damages[f"{label} = {value}"] = replace
    return damages


def list_damages_of_arrays() -> dict[str, Damage]:
    """Every file of arrays, with other shapes and types of all of them."""
    damages: dict[str, Damage] = {}
    for name in ARRAY_FILES:
        changes = [nest, halve, to_complex]
        if name == EVALUATIONS:  # half of the evaluations are a valid file, too
            changes = [nest, to_complex, empty]
        for change in changes:
            label = f"{name} arrays: {change.__name__}"
            damages[label] = partial(change_arrays, name=name, change=change)
    return damages


DAMAGES = {**list_damages_of_bytes(), **list_damages_of_json(), **list_damages_of_arrays()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an undamaged artifact."""
    folder = write_artifact(tmp_path_factory.mktemp("whole") / "toy")
    assert find_problem(folder) == ""  # also compiles the kernels, before any time is measured
    return folder


def test_no_damage_is_missing_from_table():
    # Each file is cut off at three places, and has a flipped bit at three.
    damages_of_bytes = len(FILES) * (3 + 3)
    # Each needed value is missing, None, or [[]].
    needed_values = len(NEEDED[BENCHMARK]) + len(NEEDED[CARD])
    damages_of_json = needed_values * 3
    # All arrays of a file are changed in one of three ways.
    damages_of_arrays = len(ARRAY_FILES) * 3

    assert len(DAMAGES) == damages_of_bytes + damages_of_json + damages_of_arrays


@pytest.mark.parametrize("label", DAMAGES)
def test_malformed_artifact_is_refused(label, whole, tmp_path):
    """By one line, within two seconds."""
    damaged = copy_artifact(whole, tmp_path / "toy")
    damage = DAMAGES[label]
    damage(damaged)
    start = time.monotonic()

    # Other errors than the package's own end the test.
    message = find_problem(damaged)

    seconds = time.monotonic() - start
    assert len(message.splitlines()) == 1
    assert seconds < MAX_SECONDS
