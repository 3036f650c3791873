"""Artifacts of unknown origin: whatever is in them, there is one clear error, and no harm."""

import io
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
    replace_arrays,
    replace_file,
    surrogates,
    update_hashes,
    write_artifact,
)

from hpobench_ordered.errors import ArtifactError, HPOBenchOrderedError
from hpobench_ordered.files.artifact import SUMS, Artifact
from hpobench_ordered.registry import benchmark_spec
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
def whole(tmp_path_factory):
    """The folder of an undamaged artifact with surrogates of every kind, not to be changed."""
    folder: Path = write_artifact(tmp_path_factory.mktemp("whole") / "toy")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a copy of the artifact is put, to be damaged."""
    return tmp_path_factory.mktemp("damaged") / "toy"


@pytest.fixture
def damaged(whole, folder):
    """The folder of a copy of the artifact, to be damaged."""
    return copy_artifact(whole, folder)


def check_figures(folder: Path) -> None:
    """Raise an `ArtifactError` if the card's figures are not those of the artifact."""
    spec = benchmark_spec(folder)
    check_card(spec, spec.artifact)


def test_undamaged_artifact_is_accepted(whole):
    assert find_problem(whole) == ""
    check_figures(whole)


@fuzzed
@given(st.sampled_from(FILES), SHARE, st.integers(1, 255))
def test_changed_byte_is_noticed_by_hash(whole, folder, name, share, bits):
    """The bits of one byte, at a share of the file's length, are flipped."""
    damaged = copy_artifact(whole, folder)
    flip_bits(damaged / name, share, bits)

    assert "SHA-256 is not the recorded one" in find_problem(damaged)


@fuzzed
@given(st.sampled_from(FILES), SHARE, st.integers(1, 255))
def test_changed_byte_raises_only_own_errors(whole, folder, name, share, bits):
    """A new hash says that the changed file is the right one; another value may be valid, too."""
    damaged = copy_artifact(whole, folder)
    flip_bits(damaged / name, share, bits)
    update_hashes(damaged)

    # Other errors than the package's own end the test.
    find_problem(damaged)


def flip_bits(path: Path, share: float, bits: int) -> None:
    """Flip bits of the byte at a share of a file's length; `bits` has ones where to flip."""
    content = bytearray(path.read_bytes())
    position = int(share * len(content))
    content[position] ^= bits
    path.write_bytes(content)


@fuzzed
@given(st.sampled_from(FILES), SHARE)
def test_truncated_file_is_refused(whole, folder, name, share):
    """JSON that lacks its last newline alone is still complete."""
    damaged = copy_artifact(whole, folder)
    content = (damaged / name).read_bytes()
    length = int(share * len(content))
    lacks_only_newline = length == len(content) - 1 and name.endswith("json")

    replace_file(damaged, name, content[:length])

    assert find_problem(damaged) or lacks_only_newline


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", FILES)
def test_swapped_file_is_refused(whole, damaged, name, other):
    """A file has the content of another, or, where both names are the same, its own."""
    replace_file(damaged, name, (whole / other).read_bytes())

    has_problem = find_problem(damaged) != ""

    assert has_problem == (name != other)


def read_file_like(benchmark: str, name: str) -> bytes:
    """Read a packaged benchmark's file of this name, or else one of its array files."""
    packaged = Artifact.packaged(benchmark)
    if name in packaged.sums():
        return packaged.read(name)
    if "forest.npz" in packaged.sums():
        return packaged.read("forest.npz")
    array_file = next(file for file in packaged.sums() if file.endswith("npz"))
    return packaged.read(array_file)


FILES_USED = [name for name in FILES if name != CARD]
"""Files that are read by whoever uses an artifact; the card is read where it is checked."""


@pytest.mark.parametrize("name", FILES_USED)
@pytest.mark.parametrize("other", ["newsvendor", "xgboost-mnist", "openml-svm"])
def test_file_of_another_benchmark_is_refused(damaged, name, other):
    replace_file(damaged, name, read_file_like(other, name))

    assert find_problem(damaged)


@pytest.mark.parametrize("other", ["newsvendor", "xgboost-mnist", "openml-svm"])
def test_card_of_another_benchmark_is_refused(damaged, other):
    replace_file(damaged, CARD, Artifact.packaged(other).read(CARD))

    with pytest.raises(ArtifactError, match="the card must be of"):
        check_figures(damaged)


NAMES_OUTSIDE = [
    "../secret", "/etc/passwd", "x/../../secret", "C:\\secret", "..", ".", "", "a\\b", "\0", "~",
]  # fmt: skip
"""File names that lead out of the folder, or are no names on some systems."""


@pytest.mark.parametrize("name", NAMES_OUTSIDE)
def test_sums_of_files_elsewhere_are_refused(damaged, name):
    """SHA256SUMS has a line more, for a file outside the folder."""
    (damaged.parent / "secret").write_text("{}")
    any_hash = "0" * 64
    with (damaged / SUMS).open("a") as file:
        file.write(f"{any_hash}  {name}\n")

    assert "SHA256SUMS" in find_problem(damaged)


@pytest.mark.parametrize("name", NAMES_OUTSIDE)
def test_surrogates_elsewhere_are_refused(damaged, name):
    """The file of the forest is said to be outside the folder."""

    def lead_elsewhere(content: Any) -> Any:
        content["surrogates"]["forest"]["file"] = name
        return content

    (damaged.parent / "secret").write_text("{}")
    change_json(damaged, BENCHMARK, lead_elsewhere)

    assert find_problem(damaged)


def test_repeated_sums_are_refused(damaged):
    lines = (damaged / SUMS).read_text()
    (damaged / SUMS).write_text(lines + lines)

    assert "another file name" in find_problem(damaged)


WORDS = ["TABLE", "PER_TASK", "MAXIMIZE", "maximize", "size", "kernel", "AND", "nan"]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 1e308, -1e308, 5e-324, 0, -1, 2**63])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=10)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def iter_paths(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of keys that lead to each value of a JSON document; () leads to the document itself.

    A key is a name in an object, or an index in a list.
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
    holder = {"document": content}  # the parent of the whole document
    *parent_keys, last_key = ("document", *path)
    parent: Any = holder
    for key in parent_keys:
        parent = parent[key]
    change(parent, last_key)
    return holder.get("document")


def replace_value(value: Any, parent: Any, key: Any) -> None:
    """Replace what an object or a list holds at a key."""
    parent[key] = value


@pytest.mark.slow
@fuzzed
@given(st.data())
def test_changed_json_raises_only_own_errors(whole, folder, data):
    """One or two values of the JSON document are deleted, or replaced by any others."""
    damaged = copy_artifact(whole, folder)
    content = json.loads((damaged / BENCHMARK).read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(iter_paths(content))))
        is_replaced = data.draw(st.booleans())
        if is_replaced:
            value = data.draw(ANY_JSON)
            content = change_value(content, path, partial(replace_value, value))
        else:
            content = change_value(content, path, operator.delitem)
    replace_file(damaged, BENCHMARK, json.dumps(content).encode())

    # Other errors than the package's own end the test.
    if find_problem(damaged) == "":
        try:
            check_figures(damaged)
        except HPOBenchOrderedError as error:
            assert str(error)


TYPES = ("O", "U5", "c16", "f2", ">f8", "f4", "f8", "i8", ">i4", "i4", "u2", "u1", "i1", "b1", "S3")
EXTREMES = (np.nan, np.inf, -np.inf, -1, 0, 1, 254, 255, 65535, 2**31 - 1, 1e300, -1e300, 0.5)


def convert_array(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array as another type; zeros if its values cannot be converted."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts of complex numbers that are lost
        try:
            return array.astype(dtype)
        except (ValueError, OverflowError):  # a text that is no number, or too large a number
            return np.zeros(array.shape, dtype=dtype)


def list_other_shapes(array: NDArray[Any]) -> list[NDArray[Any]]:
    """The array with other dimensions, and with fewer and more values."""
    flat = array.ravel()
    with_axis_more = array[None]
    empty = flat[:0]
    without_last_row = array[:-1] if array.ndim else with_axis_more
    return [
        flat,
        array.T,
        with_axis_more,
        empty,
        without_last_row,
        np.concatenate([flat, flat]),
        np.repeat(with_axis_more, 2, axis=0),
        np.zeros((), dtype=array.dtype),
        np.zeros((0, 10**6), dtype=array.dtype),  # empty, too, but as if of many columns
    ]


def replace_one_value(array: NDArray[Any], position: int, value: float) -> NDArray[Any]:
    """A copy with another value at a position of the flattened array, as far as its type allows."""
    changed = array.copy()
    with np.errstate(all="ignore"):  # integers cannot hold every value
        changed.reshape(-1)[position] = np.array(value).astype(array.dtype)
    return changed


@settings(parent=fuzzed, max_examples=80)
@given(st.sampled_from(ARRAY_FILES), st.data())
@pytest.mark.slow
def test_changed_arrays_raise_only_own_errors(whole, folder, name, data):
    """Arrays of a file get other types, shapes, values or names, up to three times."""
    damaged = copy_artifact(whole, folder)
    with np.load(damaged / name) as stored:
        arrays = dict(stored)
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[key]
        is_numeric = array.dtype.kind in "iuf"  # integers, unsigned ones, floats
        change = data.draw(st.sampled_from(["type", "shape", "value", "name"]))
        if change == "type":
            arrays[key] = convert_array(array, data.draw(st.sampled_from(TYPES)))
        elif change == "shape":
            shapes = list_other_shapes(array)
            arrays[key] = shapes[data.draw(st.integers(0, len(shapes) - 1))]
        elif change == "value" and is_numeric and array.size > 0:
            position = data.draw(st.integers(0, array.size - 1))
            value = data.draw(st.sampled_from(EXTREMES))
            arrays[key] = replace_one_value(array, position, value)
        elif len(arrays) > 1:
            other_name = data.draw(st.text(max_size=3))
            arrays[other_name] = arrays.pop(key)
    replace_arrays(damaged, name, arrays)

    # Other errors than the package's own end the test.
    find_problem(damaged)


@fuzzed
@given(
    features=st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 200, LEAF]), min_size=1, max_size=9),
    tree_sizes=st.lists(st.integers(-1, 9), min_size=1, max_size=3),
)
def test_only_whole_trees_are_accepted(whole, folder, features, tree_sizes):
    """Kernels do not check indices, so that broken trees must be refused before.

    Args:
        features: Column that each node splits on, depth first; `LEAF` for a leaf.
        tree_sizes: Number of nodes of each tree.
    """
    damaged = copy_artifact(whole, folder)
    _type, forest = surrogates()["forest"]
    number_of_leaves = features.count(LEAF)
    arrays = forest.to_arrays() | {
        "feature": np.array(features, dtype=np.uint8),
        "nodes": np.array(tree_sizes, dtype=np.int32),
        "threshold": np.zeros(len(features) - number_of_leaves, dtype=np.float32),
        "codes": np.ones((2, number_of_leaves), dtype=np.uint16),  # of two outputs
    }
    replace_arrays(damaged, "forest.npz", arrays)
    change_json(damaged, BENCHMARK, keep_only_forest)

    is_accepted = find_problem(damaged) == ""

    assert is_accepted == are_trees(features, tree_sizes)


def keep_only_forest(content: Any) -> Any:
    """The definition of the artifact with one surrogate, the forest."""
    return {**content, "surrogates": {"forest": content["surrogates"]["forest"]}}


def are_trees(features: list[int], tree_sizes: list[int]) -> bool:
    """Whether the features of nodes, depth first, are whole trees of these numbers of nodes."""
    remaining = list(features)

    def read_tree() -> int:
        """Take a tree off the remaining nodes; returns its number of nodes."""
        if remaining.pop(0) == LEAF:
            return 1
        left_size = read_tree()
        right_size = read_tree()
        return 1 + left_size + right_size

    try:
        sizes = [read_tree() for _ in tree_sizes]
    except IndexError:  # the last tree lacks nodes
        return False
    # Three hyperparameters, of which the kernel has two columns, one for each choice.
    are_columns = all(number == LEAF or number < 4 for number in features)
    return sizes == tree_sizes and not remaining and are_columns


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
        pack_array("codes", np.array([print])),
        pack_file("codes.txt", b"1"),
        pack_file("codes.npy", b"1"),
        b"",
    ],
    ids=["objects", "no array", "no header", "no archive"],
)
def test_malformed_array_files_are_refused(damaged, content):
    """Array files with pickled objects, without an array, with a broken one, or that are empty."""
    replace_file(damaged, "table.npz", content)

    assert "table" in find_problem(damaged)


def test_sizes_are_checked_before_unpacking(whole, monkeypatch):
    # Files may have at most so many bytes when unpacked.
    monkeypatch.setattr("hpobench_ordered.files.arrays.MAX_UNPACKED", 99)

    assert "at most 99 bytes, but have" in find_problem(whole)


@pytest.mark.parametrize(
    ("surrogate", "error"),
    [
        *(("nearest", error) for error in (1e-6, -1e-3, 1e3, -1e3)),
        *(("table", error) for error in (1e-6, -1e-3, 1e3, -1e3)),
        ("forest", 1e-3),  # what forests can give is not listed
        ("apart", 1e3),
    ],
)
def test_wrong_best_value_is_noticed(damaged, surrogate, error):
    """The second task, "late", has a best value that is wrong by `error`."""

    def change_best_value(content: Any) -> Any:
        content["surrogates"][surrogate]["best_values"][1] += error
        return content

    change_json(damaged, BENCHMARK, change_best_value)

    with pytest.raises(ArtifactError, match=f"of task 'late' on surrogate '{surrogate}'"):
        check_figures(damaged)


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_wrong_claims_of_cards_are_noticed(damaged, change, message):
    """The change is of entries of the card."""
    change_json(damaged, CARD, lambda content: content | change)

    with pytest.raises(ArtifactError, match=message):
        check_figures(damaged)


def test_wrong_quality_of_task_is_noticed(damaged):
    """Of the second task; the quality of the first stays as it is."""

    def claim_high_quality(content: Any) -> Any:
        first_task, second_task = content["figures"]
        return content | {"figures": [first_task, second_task | {"r2": 0.999}]}

    change_json(damaged, CARD, claim_high_quality)

    with pytest.raises(ArtifactError, match=r"cross-validated R2 of 0\.999"):
        check_figures(damaged)
