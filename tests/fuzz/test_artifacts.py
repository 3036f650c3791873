"""Artifacts of unknown origin: whatever is in them, there is one clear error, and no harm."""

import io
import itertools
import json
import operator
import warnings
import zipfile
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

from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import SUMS, Artifact
from hpobench_ordered.errors import ArtifactError, HPOBenchOrderedError
from hpobench_ordered.surrogates.bundle import BENCHMARK, CARD, EVALUATIONS
from hpobench_ordered.surrogates.forest import LEAF
from hpobench_ordered.surrogates.verification import check_card

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


def check_figures(folder: Path) -> None:
    """Raise an `ArtifactError` if the card's figures are not those of the artifact."""
    spec = benchmark_spec(folder)
    check_card(spec, spec.artifact)


def find_problem_of_figures(folder: Path) -> str:
    """Check the card's figures; return the message of the package's error, "" if there is none.

    Exceptions that are not the package's own are not caught.
    """
    try:
        check_figures(folder)
    except HPOBenchOrderedError as error:
        assert str(error)
        return str(error)
    return ""


def test_undamaged_artifact_is_accepted(intact_artifact):
    assert find_problem(intact_artifact) == ""
    check_figures(intact_artifact)


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


@pytest.mark.parametrize(("file_name", "other_name"), list(itertools.permutations(FILES, 2)))
def test_content_of_other_file_is_refused(intact_artifact, artifact_copy, file_name, other_name):
    """One file of an artifact has the content of another file of the same artifact."""
    replace_file(artifact_copy, file_name, (intact_artifact / other_name).read_bytes())

    assert find_problem(artifact_copy)


@pytest.mark.parametrize("file_name", FILES)
def test_own_content_is_accepted(intact_artifact, artifact_copy, file_name):
    """A file that is replaced by the same file does no damage, unlike one with other content."""
    replace_file(artifact_copy, file_name, (intact_artifact / file_name).read_bytes())

    assert find_problem(artifact_copy) == ""


def read_most_similar_file(benchmark: str, file_name: str) -> bytes:
    """Read the file of a packaged benchmark that is most like a file of the toy artifact.

    It is the file of the same name; if there is none, the forest; else the first array file.
    """
    packaged = Artifact.packaged(benchmark)
    packaged_files = list(packaged.sums())  # the names of all files, each with its hash
    if file_name in packaged_files:
        return packaged.read(file_name)
    array_files = [name for name in packaged_files if name.endswith("npz")]
    most_similar = "forest.npz" if "forest.npz" in array_files else array_files[0]
    return packaged.read(most_similar)


FILES_BUT_CARD = [name for name in FILES if name != CARD]
"""Files that are read whenever an artifact is used; the card only where it is checked."""
OTHER_BENCHMARKS = ["newsvendor", "xgboost-mnist", "openml-svm"]
"""Packaged benchmarks whose space and tasks differ from those of the toy artifact."""


@pytest.mark.parametrize("file_name", FILES_BUT_CARD)
@pytest.mark.parametrize("other_benchmark", OTHER_BENCHMARKS)
def test_file_of_another_benchmark_is_refused(artifact_copy, file_name, other_benchmark):
    """The file is a valid one by itself, but its space or its tasks are not those of the others."""
    replace_file(artifact_copy, file_name, read_most_similar_file(other_benchmark, file_name))

    assert find_problem(artifact_copy)


@pytest.mark.parametrize("other_benchmark", OTHER_BENCHMARKS)
def test_card_of_another_benchmark_is_refused(artifact_copy, other_benchmark):
    """The card of the artifact is replaced by a valid one, but of another benchmark."""
    replace_file(artifact_copy, CARD, Artifact.packaged(other_benchmark).read(CARD))

    with pytest.raises(ArtifactError, match="the card must be of"):
        check_figures(artifact_copy)


NAMES_OUTSIDE = [
    "../secret", "/etc/passwd", "x/../../secret", "C:\\secret", "..", ".", "", "a\\b", "\0", "~",
]  # fmt: skip
"""File names that lead out of the folder, or are no names on some systems."""


@pytest.mark.parametrize("outside_name", NAMES_OUTSIDE)
def test_hash_of_file_outside_is_refused(artifact_copy, outside_name):
    """SHA256SUMS, which lists the files of the folder, has a line for a file outside it."""
    # A file is there for some of these names: it is not refused because it is missing.
    (artifact_copy.parent / "secret").write_text("{}")
    any_hash = "0" * 64
    with (artifact_copy / SUMS).open("a") as file:
        file.write(f"{any_hash}  {outside_name}\n")

    assert "SHA256SUMS" in find_problem(artifact_copy)


@pytest.mark.parametrize("outside_name", NAMES_OUTSIDE)
def test_surrogate_outside_is_refused(artifact_copy, outside_name):
    """The definition says that the file of the forest is outside the folder."""

    def move_forest_outside(content: Any) -> Any:
        content["surrogates"]["forest"]["file"] = outside_name
        return content

    # A file is there for some of these names: it is not refused because it is missing.
    (artifact_copy.parent / "secret").write_text("{}")
    change_json(artifact_copy, BENCHMARK, move_forest_outside)

    assert find_problem(artifact_copy)


def test_repeated_hashes_are_refused(artifact_copy):
    """Each line of SHA256SUMS must name a file that no line before it has named."""
    lines = (artifact_copy / SUMS).read_text()
    (artifact_copy / SUMS).write_text(lines + lines)

    assert "each line must be a SHA-256 and another file name" in find_problem(artifact_copy)


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
    is_usable = find_problem(artifact_copy) == ""
    if is_usable:
        find_problem_of_figures(artifact_copy)


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


def pack_array(name: str, array: Any) -> bytes:
    """Content of an .npz file with one array; objects are pickled."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array})
    return buffer.getvalue()


def pack_file(name: str, content: bytes) -> bytes:
    """Content of a ZIP archive, as an .npz file is one, with one file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        pack_array("codes", np.array([print])),  # a function, which needs pickle
        pack_file("codes.txt", b"1"),
        pack_file("codes.npy", b"1"),
        b"",
    ],
    ids=["objects", "no array", "no header", "no archive"],
)
def test_malformed_array_files_are_refused(artifact_copy, content):
    """The file has pickled objects, no array, an array without its header, or no bytes at all."""
    replace_file(artifact_copy, "table.npz", content)

    assert "table" in find_problem(artifact_copy)


def test_sizes_are_checked_before_unpacking(intact_artifact, monkeypatch):
    """Array files may be compressed: a small one could fill the memory when it is unpacked."""
    monkeypatch.setattr("hpobench_ordered.data.arrays.MAX_UNPACKED", 99)

    assert "at most 99 bytes, but have" in find_problem(intact_artifact)


@pytest.mark.parametrize(
    ("surrogate", "error"),
    [
        *(("nearest", error) for error in (1e-6, -1e-3, 1e3, -1e3)),
        *(("table", error) for error in (1e-6, -1e-3, 1e3, -1e3)),
        ("forest", 1e-3),  # what forests can give is not listed
        ("apart", 1e3),
    ],
)
def test_wrong_best_value_is_noticed(artifact_copy, surrogate, error):
    """The best value of the second task, "late", is wrong by `error`."""

    def change_best_value(content: Any) -> Any:
        """Make the best value of the second task wrong by `error`."""
        best_value_of_tasks = content["surrogates"][surrogate]["best_values"]
        best_value_of_tasks[1] += error
        return content

    change_json(artifact_copy, BENCHMARK, change_best_value)

    with pytest.raises(ArtifactError, match=f"of task 'late' on surrogate '{surrogate}'"):
        check_figures(artifact_copy)


@pytest.mark.parametrize(
    ("wrong_entries", "message"),
    [
        ({"benchmark": "toys"}, "the card must be of"),
        ({"licence": "MIT"}, "the card must be of"),
        ({"size": 5}, "5 bytes of arrays"),
        ({"evaluations": 49}, "49 evaluations of 24"),
        ({"configurations": 23}, "48 evaluations of 23"),
        ({"surrogate": "TABLE"}, "the surrogate must be TABLE, as on its card, but is FOREST"),
        ({"folds": 0}, "the tasks are"),
        ({"figures": []}, r"figures of \[\]"),
        ({"comparisons": {"surrogate nearest": {}}}, "no seed"),
    ],
)
def test_wrong_claims_of_cards_are_noticed(artifact_copy, wrong_entries, message):
    """Some entries of the card contradict the artifact, and the message says which."""
    change_json(artifact_copy, CARD, lambda content: content | wrong_entries)

    with pytest.raises(ArtifactError, match=message):
        check_figures(artifact_copy)


def test_wrong_quality_of_task_is_noticed(artifact_copy):
    """The card claims a better surrogate for the second task than cross-validation gives."""

    def claim_high_quality(content: Any) -> Any:
        """Claim an R2 of 0.999 for the second task."""
        first_task, second_task = content["figures"]
        too_good = second_task | {"r2": 0.999}
        return content | {"figures": [first_task, too_good]}

    change_json(artifact_copy, CARD, claim_high_quality)

    with pytest.raises(ArtifactError, match=r"cross-validated R2 of 0\.999"):
        check_figures(artifact_copy)
