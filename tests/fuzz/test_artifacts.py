"""Artifacts of unknown origin: whatever is in them, there is one clear error, and no harm."""

import json
import operator
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from toy_artifacts import (
    change_json,
    copy_artifact,
    find_problem,
    make_surrogates,
    replace_arrays,
    replace_file,
    update_hashes,
    write_artifact,
)

from hpobench_ordered.data.artifact import SUMS, Artifact
from hpobench_ordered.surrogates.bundle import BENCHMARK, CARD, EVALUATIONS
from hpobench_ordered.surrogates.forest import LEAF

ARRAY_FILES = (EVALUATIONS, "forest.npz", "nearest.npz", "table.npz", "apart.npz")
FILES = (BENCHMARK, CARD, *ARRAY_FILES)
SHARE = st.floats(0, 1, exclude_max=True)
"""A share of a file's length."""
fuzzed = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def intact_artifact(tmp_path_factory):
    """The folder of an artifact with surrogates of every kind; tests change only copies of it."""
    written: Path = write_artifact(tmp_path_factory.mktemp("intact") / "toy")
    return written


@pytest.fixture(scope="module")
def copy_folder(tmp_path_factory):
    """The folder that the copies of the intact artifact are put into, one after the other."""
    return tmp_path_factory.mktemp("copies") / "toy"


@pytest.fixture
def artifact_copy(intact_artifact, copy_folder):
    """The folder of a new copy of the intact artifact, for a test to damage."""
    return copy_artifact(intact_artifact, copy_folder)


def test_undamaged_artifact_is_accepted(intact_artifact):
    assert find_problem(intact_artifact) == ""


@fuzzed
@given(st.sampled_from(FILES), SHARE, st.integers(1, 255))
def test_changed_byte_is_noticed_by_hash(intact_artifact, copy_folder, file_name, share, flipped):
    """Bits of one byte are flipped, and the recorded hash of the file stays as it was."""
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    flip_bits(artifact_copy / file_name, share, flipped)

    assert "SHA-256 is not the recorded one" in find_problem(artifact_copy)


@fuzzed
@given(st.sampled_from(FILES), SHARE, st.integers(1, 255))
def test_changed_byte_raises_only_own_errors(
    intact_artifact, copy_folder, file_name, share, flipped
):
    """A changed byte, with a hash that fits, gives an error of the package's own, or none.

    There is none if the file is as valid with the changed byte.
    """
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    flip_bits(artifact_copy / file_name, share, flipped)
    update_hashes(artifact_copy)

    # Any other error is not caught, and fails the test.
    find_problem(artifact_copy)


def flip_bits(path: Path, share: float, flipped: int) -> None:
    """Flip bits of the byte that is at a share of a file's length, from 0 to 1.

    `flipped` is a mask of the byte: its ones say which bits.
    """
    content = bytearray(path.read_bytes())
    position = int(share * len(content))
    content[position] ^= flipped
    path.write_bytes(content)


@fuzzed
@given(st.sampled_from(FILES), SHARE)
def test_truncated_file_is_refused(intact_artifact, copy_folder, file_name, share):
    """A file that ends early is refused, unless only the last newline of JSON is missing."""
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    content = (artifact_copy / file_name).read_bytes()
    length = int(share * len(content))
    lacks_newline_alone = file_name.endswith("json") and length == len(content) - 1

    replace_file(artifact_copy, file_name, content[:length])

    is_refused = find_problem(artifact_copy) != ""
    assert is_refused or lacks_newline_alone


KEYWORDS = ["TABLE", "PER_TASK", "MAXIMIZE", "maximize", "size", "kernel", "AND", "nan"]
"""Texts that mean something in the definition of an artifact, in some places."""
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1e308, -1e308, 5e-324, 0, -1, 2**63])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(KEYWORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def iter_paths(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value inside a JSON document, `content`; () is the path to the whole.

    A path is a sequence of keys: names in objects, and indices in lists. The path to `content`
    itself, `path`, begins all of them.
    """
    yield path
    items: list[tuple[Any, Any]] = []
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = list(enumerate(content))
    for key, value in items:
        yield from iter_paths(value, (*path, key))


def change_value(content: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """Change the value at a path of keys; returns the document, or None if it was deleted.

    `change(parent, key)` replaces or deletes what the parent, an object or a list, has at the key.
    """
    # The document gets a parent of its own, so that it can be replaced or deleted as a whole.
    holder = {"document": content}
    *keys_to_parent, last_key = ("document", *path)
    parent: Any = holder
    for key in keys_to_parent:
        parent = parent[key]
    change(parent, last_key)
    return holder.get("document")


def replace_value(value: Any, parent: Any, key: Any) -> None:
    """Replace what an object or a list holds at a key."""
    parent[key] = value


def delete_or_replace_value(content: Any, data: st.DataObject) -> Any:
    """Delete or replace one value of a JSON document, as Hypothesis draws; returns the document."""
    path = data.draw(st.sampled_from(list(iter_paths(content))))
    is_replaced = data.draw(st.booleans())
    if is_replaced:
        value = data.draw(ANY_JSON)
        return change_value(content, path, partial(replace_value, value))
    return change_value(content, path, operator.delitem)


@pytest.mark.slow
@fuzzed
@given(st.data())
def test_changed_json_raises_only_own_errors(intact_artifact, copy_folder, data):
    """One or two values of the definition are deleted, or replaced by any JSON."""
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    content = json.loads((artifact_copy / BENCHMARK).read_text())
    number_of_changes = data.draw(st.integers(1, 2))
    for _ in range(number_of_changes):
        content = delete_or_replace_value(content, data)
    replace_file(artifact_copy, BENCHMARK, json.dumps(content).encode())

    # Errors that are not the package's own are not caught, and fail the test.
    find_problem(artifact_copy)


DTYPES = (
    "O",
    "U5",
    "c16",
    "f2",
    ">f8",
    "f4",
    "f8",
    "i8",
    ">i4",
    "i4",
    "u2",
    "u1",
    "i1",
    "b1",
    "S3",
)
EXTREMES = (np.nan, np.inf, -np.inf, -1, 0, 1, 254, 255, 65535, 2**31 - 1, 1e300, -1e300, 0.5)
"""Numbers at which a reader may fail: undefined, infinite, and the ends of types."""


def convert_array(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array as another type; zeros of that type if its values cannot be converted."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the imaginary parts of complex numbers may be lost
        try:
            return array.astype(dtype)
        except (ValueError, OverflowError):  # a text that is no number, or too large a number
            return np.zeros(array.shape, dtype=dtype)


def list_other_shapes(array: NDArray[Any]) -> list[NDArray[Any]]:
    """The array with other dimensions, and with fewer and more values."""
    flat = array.ravel()
    with_axis_more = array[None]
    has_rows = array.ndim > 0  # a single number has none
    without_last_row = array[:-1] if has_rows else with_axis_more
    return [
        flat,
        array.T,
        with_axis_more,
        flat[:0],
        without_last_row,
        np.concatenate([flat, flat]),
        np.repeat(with_axis_more, 2, axis=0),
        np.zeros((), dtype=array.dtype),
        np.zeros((0, 10**6), dtype=array.dtype),  # no values, but a million columns
    ]


def replace_one_value(array: NDArray[Any], position: int, value: float) -> NDArray[Any]:
    """A copy with another value at a position of the flattened array, as far as its type allows."""
    changed = array.copy()
    with np.errstate(all="ignore"):  # integers cannot hold every value
        changed.reshape(-1)[position] = np.array(value).astype(array.dtype)
    return changed


def change_any_array(arrays: dict[str, NDArray[Any]], data: st.DataObject) -> None:
    """Change the type, the shape, a value or the name of one array, as Hypothesis draws."""
    key = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[key]
    is_numeric = array.dtype.kind in "iuf"  # integers, unsigned integers, floats
    has_numbers = is_numeric and array.size > 0
    change = data.draw(st.sampled_from(["type", "shape", "value", "name"]))

    if change == "type":
        arrays[key] = convert_array(array, data.draw(st.sampled_from(DTYPES)))
    elif change == "shape":
        shapes = list_other_shapes(array)
        arrays[key] = shapes[data.draw(st.integers(0, len(shapes) - 1))]
    elif change == "value" and has_numbers:
        position = data.draw(st.integers(0, array.size - 1))
        value = data.draw(st.sampled_from(EXTREMES))
        arrays[key] = replace_one_value(array, position, value)
    elif len(arrays) > 1:  # another name, also of an array without a number to change
        other_name = data.draw(st.text(max_size=3))
        arrays[other_name] = arrays.pop(key)


@settings(parent=fuzzed, max_examples=80)
@given(st.sampled_from(ARRAY_FILES), st.data())
@pytest.mark.slow
def test_changed_arrays_raise_only_own_errors(intact_artifact, copy_folder, file_name, data):
    """One to three changes of the arrays of a file: of types, shapes, values or names."""
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    with np.load(artifact_copy / file_name) as stored:
        arrays = dict(stored)
    number_of_changes = data.draw(st.integers(1, 3))
    for _ in range(number_of_changes):
        change_any_array(arrays, data)
    replace_arrays(artifact_copy, file_name, arrays)

    # Any error that is not the package's own is not caught, and fails the test.
    find_problem(artifact_copy)


@fuzzed
@given(
    features=st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 200, LEAF]), min_size=1, max_size=9),
    tree_sizes=st.lists(st.integers(-1, 9), min_size=1, max_size=3),
)
def test_only_whole_trees_are_accepted(intact_artifact, copy_folder, features, tree_sizes):
    """Broken trees are refused when they are read, as compiled kernels do not check indices.

    Args:
        features: Column that each node splits on, depth first; `LEAF` for a leaf.
        tree_sizes: Number of nodes of each tree.
    """
    artifact_copy = copy_artifact(intact_artifact, copy_folder)
    number_of_leaves = features.count(LEAF)
    number_of_splits = len(features) - number_of_leaves
    _type, intact_forest = make_surrogates()["forest"]
    arrays = intact_forest.to_arrays() | {
        "feature": np.array(features, dtype=np.uint8),
        "nodes": np.array(tree_sizes, dtype=np.int32),
        "threshold": np.zeros(number_of_splits, dtype=np.float32),
        "codes": np.ones((2, number_of_leaves), dtype=np.uint16),  # predictions of two outputs
    }
    replace_arrays(artifact_copy, "forest.npz", arrays)
    change_json(artifact_copy, BENCHMARK, keep_only_forest)

    is_accepted = find_problem(artifact_copy) == ""

    assert is_accepted == are_trees(features, tree_sizes)


def keep_only_forest(content: Any) -> Any:
    """The definition of the artifact with one surrogate, the forest."""
    forest = content["surrogates"]["forest"]
    return {**content, "surrogates": {"forest": forest}}


NUMBER_OF_COLUMNS = 4
"""What trees can split on: the size, the depth, and whether the kernel is linear or radial."""


def are_trees(features: list[int], tree_sizes: list[int]) -> bool:
    """Whether nodes, depth first, are whole trees of these sizes that split on existing columns.

    `features` has the column that each node splits on, or `LEAF`.
    """
    columns_exist = all(column == LEAF or column < NUMBER_OF_COLUMNS for column in features)
    first_node = 0
    for size in tree_sizes:
        if measure_first_tree(features[first_node:]) != size:
            return False
        first_node += size
    no_node_is_left = first_node == len(features)
    return columns_exist and no_node_is_left


def measure_first_tree(features: list[int]) -> int | None:
    """Number of nodes of the tree that a list of nodes, depth first, begins with.

    None if the list ends before the tree does.
    """
    missing_nodes = 1  # the root
    for number_of_nodes, column in enumerate(features, start=1):
        # Any node fills one place; a node that splits opens places for two children.
        missing_nodes += -1 if column == LEAF else 1
        if missing_nodes == 0:
            return number_of_nodes
    return None


# -- ten cases -------------------------------------------------------------------------------------


def take_file_of_another_benchmark(folder: Path) -> None:
    """Take the table of newsvendor, which has nine tasks and another search space."""
    replace_file(folder, "table.npz", Artifact.packaged("newsvendor").read("table.npz"))


def swap_files(folder: Path) -> None:
    """Take the recorded evaluations for the surrogate that looks up the nearest ones."""
    replace_file(folder, "nearest.npz", (folder / EVALUATIONS).read_bytes())


def write_no_archive(folder: Path) -> None:
    """Empty the file of the table."""
    replace_file(folder, "table.npz", b"")


def pickle_objects(folder: Path) -> None:
    """Store a function as an array, which needs pickle."""
    replace_arrays(folder, "table.npz", {"codes": np.array([print])})


def list_file_outside(folder: Path) -> None:
    """List a file outside the folder, which exists, among the hashes."""
    (folder.parent / "secret").write_text("{}")
    any_hash = "0" * 64
    with (folder / SUMS).open("a") as file:
        file.write(f"{any_hash}  ../secret\n")


def repeat_hashes(folder: Path) -> None:
    """List every file twice."""
    lines = (folder / SUMS).read_text()
    (folder / SUMS).write_text(lines + lines)


def move_surrogate_outside(folder: Path) -> None:
    """Say in the definition that the file of the forest is outside the folder, where one is."""

    def move_forest(content: Any) -> Any:
        content["surrogates"]["forest"]["file"] = "../secret"
        return content

    (folder.parent / "secret").write_text("{}")
    change_json(folder, BENCHMARK, move_forest)


def remove_tasks(folder: Path) -> None:
    """Remove the tasks from the definition."""
    change_json(folder, BENCHMARK, lambda content: content | {"tasks": []})


def nest_name(folder: Path) -> None:
    """Make the benchmark's name a list."""
    change_json(folder, BENCHMARK, lambda content: content | {"name": [["toy"]]})


def remove_licence(folder: Path) -> None:
    """Remove the licence from the card."""
    change_json(folder, CARD, lambda content: {**content, "licence": None})


@pytest.mark.parametrize(
    "damage",
    [
        take_file_of_another_benchmark,
        swap_files,
        write_no_archive,
        pickle_objects,
        list_file_outside,
        repeat_hashes,
        move_surrogate_outside,
        remove_tasks,
        nest_name,
        remove_licence,
    ],
)
def test_malformed_artifact_is_refused(artifact_copy, damage):
    """The message of the error is one line."""
    damage(artifact_copy)

    assert len(find_problem(artifact_copy).splitlines()) == 1


def test_sizes_are_checked_before_unpacking(intact_artifact, monkeypatch):
    """Array files may be compressed: a small one could fill the memory when it is unpacked."""
    monkeypatch.setattr("hpobench_ordered.data.arrays.MAX_UNPACKED", 99)

    assert "at most 99 bytes, but have" in find_problem(intact_artifact)
