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
"""Longest time until it is said what is wrong with an artifact."""
ARRAY_FILES = (EVALUATIONS, "forest.npz", "nearest.npz", "table.npz", "apart.npz")
FILES = (BENCHMARK, CARD, *ARRAY_FILES)

Damage = Callable[[Path], None]
"""A function that damages an artifact, whose folder it gets."""


def truncate(folder: Path, name: str, share: float) -> None:
    """Keep this share of a file, from its beginning; its recorded hash is updated."""
    content = (folder / name).read_bytes()
    length = int(share * len(content))
    replace_file(folder, name, content[:length])


def flip_bit(folder: Path, name: str, share: float) -> None:
    """Flip a bit of the byte at a share of a file's length; its recorded hash stays as it was."""
    content = bytearray((folder / name).read_bytes())
    position = int(share * len(content))
    content[position] ^= 1
    (folder / name).write_bytes(content)


def find_parent(content: Any, path: tuple[Any, ...]) -> Any:
    """Find the object or the list that holds the value at a path of keys."""
    parent = content
    for key in path[:-1]:
        parent = parent[key]
    return parent


def remove_key(folder: Path, name: str, path: tuple[Any, ...]) -> None:
    """Remove the value at a path of keys from a JSON file; its recorded hash is updated."""
    content = json.loads((folder / name).read_text())
    *_, last_key = path
    del find_parent(content, path)[last_key]
    replace_file(folder, name, json.dumps(content).encode())


def replace_value(folder: Path, name: str, path: tuple[Any, ...], value: Any) -> None:
    """Replace the value at a path of keys in a JSON file; its recorded hash is updated."""
    content = json.loads((folder / name).read_text())
    *_, last_key = path
    find_parent(content, path)[last_key] = value
    replace_file(folder, name, json.dumps(content).encode())


def change_arrays(folder: Path, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    """Change every array of a file; its recorded hash is updated."""
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


PATHS_OF_NEEDED_VALUES = {
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
"""By JSON file: paths of keys to the values without which an artifact is not complete."""
UNFIT_VALUES = (None, [[]])
"""Nothing, and a list in a list, in the place of a text, a number, an object or a list."""


def list_damages_of_bytes() -> dict[str, Damage]:
    """Every file of an artifact, cut off in three places, and with a flipped bit in three."""
    damages: dict[str, Damage] = {}
    for name in FILES:
        for share in (0.0, 0.3, 0.9):
            damages[f"{name} truncated at {share}"] = partial(truncate, name=name, share=share)
        for share in (0.1, 0.5, 0.9):
            label = f"{name} with a bit flipped at {share}"
            damages[label] = partial(flip_bit, name=name, share=share)
    return damages


def list_damages_of_json() -> dict[str, Damage]:
    """Every value that a JSON file must have, missing, and replaced by each of `UNFIT_VALUES`."""
    damages: dict[str, Damage] = {}
    for name, paths in PATHS_OF_NEEDED_VALUES.items():
        for path in paths:
            keys = "/".join(map(str, path))
            label = f"{name} {keys}"
            damages[f"{label} missing"] = partial(remove_key, name=name, path=path)
            for value in UNFIT_VALUES:
                replace = partial(replace_value, name=name, path=path, value=value)
                damages[f"{label} = {value}"] = replace
    return damages


def list_damages_of_arrays() -> dict[str, Damage]:
    """Every file of arrays, with another shape or another type of all its arrays."""
    damages: dict[str, Damage] = {}
    for name in ARRAY_FILES:
        changes = [nest, halve, to_complex]
        if name == EVALUATIONS:
            # Half of the evaluations would be a valid file.
            changes = [nest, empty, to_complex]
        for change in changes:
            label = f"{name} arrays: {change.__name__}"
            damages[label] = partial(change_arrays, name=name, change=change)
    return damages


DAMAGES = {**list_damages_of_bytes(), **list_damages_of_json(), **list_damages_of_arrays()}
"""Functions that damage an artifact, each in its way, by a label that says how."""


@pytest.fixture(scope="module")
def intact_artifact(tmp_path_factory):
    """The folder of an artifact without damage; tests damage copies of it."""
    folder = write_artifact(tmp_path_factory.mktemp("intact") / "toy")
    assert find_problem(folder) == ""  # also compiles the kernels, before any time is measured
    return folder


def test_no_damage_is_missing_from_table():
    """There are as many cases as files, values and arrays can be damaged in."""
    # Each file is cut off in three places, and has a flipped bit in three.
    damages_of_bytes = len(FILES) * (3 + 3)
    # Each needed value is missing, or replaced by one of two.
    needed_values = len(PATHS_OF_NEEDED_VALUES[BENCHMARK]) + len(PATHS_OF_NEEDED_VALUES[CARD])
    damages_of_json = needed_values * (1 + 2)
    # All arrays of a file are changed in one of three ways.
    damages_of_arrays = len(ARRAY_FILES) * 3

    assert len(DAMAGES) == damages_of_bytes + damages_of_json + damages_of_arrays


@pytest.mark.parametrize("label", DAMAGES)
def test_malformed_artifact_is_refused(label, intact_artifact, tmp_path):
    """The message of the error is one line, and comes soon. `label` says what is damaged."""
    artifact_copy = copy_artifact(intact_artifact, tmp_path / "toy")
    damage = DAMAGES[label]
    damage(artifact_copy)
    start = time.monotonic()

    # Any error that is not the package's own is not caught, and fails the test.
    message = find_problem(artifact_copy)

    seconds = time.monotonic() - start
    assert len(message.splitlines()) == 1
    assert seconds < MAX_SECONDS
