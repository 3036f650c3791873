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

SLOW = pytest.mark.slow
FILES = (BENCHMARK, CARD, EVALUATIONS, "forest.npz", "nearest.npz", "table.npz", "apart.npz")
ARRAY_FILES = FILES[2:]
PLACE = st.floats(0, 1, exclude_max=True)
fuzzed = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder: Path = write_artifact(tmp_path_factory.mktemp("whole") / "toy")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "toy"


@pytest.fixture
def damaged(whole, folder):
    return copy_artifact(whole, folder)


def check_figures(folder: Path) -> None:
    """Raise an `ArtifactError` if the card's figures are not those of the artifact."""
    spec = benchmark_spec(folder)
    check_card(spec, spec.artifact)


def test_undamaged_artifact_is_accepted(whole):
    assert find_problem(whole) == ""
    check_figures(whole)


@fuzzed
@given(st.sampled_from(FILES), PLACE, st.integers(1, 255), st.booleans())
def test_changed_byte_raises_only_own_errors(whole, folder, name, place, bits, is_signed):
    damaged = copy_artifact(whole, folder)
    data = bytearray((damaged / name).read_bytes())
    data[int(place * len(data))] ^= bits
    (damaged / name).write_bytes(data)
    if is_signed:
        update_hashes(damaged)
        find_problem(damaged)  # another value may be right, too
    else:
        assert "SHA-256 is not the recorded one" in find_problem(damaged)


@fuzzed
@given(st.sampled_from(FILES), PLACE)
def test_truncated_file_is_refused(whole, folder, name, place):
    damaged = copy_artifact(whole, folder)
    data = (damaged / name).read_bytes()
    length = int(place * len(data))
    replace_file(damaged, name, data[:length])
    # JSON is complete without its last newline.
    lacks_only_newline = length == len(data) - 1 and name.endswith("json")
    assert find_problem(damaged) or lacks_only_newline


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", FILES)
def test_swapped_file_is_refused(whole, damaged, name, other):
    replace_file(damaged, name, (whole / other).read_bytes())
    assert bool(find_problem(damaged)) == (name != other)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("other", ["newsvendor", "xgboost-mnist", "openml-svm"])
def test_file_of_another_benchmark_is_refused(damaged, name, other):
    packaged = Artifact.packaged(other)
    name_there = "forest.npz" if name in ("apart.npz", "nearest.npz") else name
    if name_there not in packaged.sums():
        name_there = next(file for file in packaged.sums() if file.endswith("npz"))
    replace_file(damaged, name, packaged.read(name_there))
    if name == CARD:  # is read only where it is checked
        with pytest.raises(ArtifactError, match="the card must be of"):
            check_figures(damaged)
    else:
        assert find_problem(damaged)


NAMES_OUTSIDE = [
    "../secret", "/etc/passwd", "x/../../secret", "C:\\secret", "..", ".", "", "a\\b", "\0", "~",
]  # fmt: skip
"""File names that lead out of the folder, or are no names on some systems."""


@pytest.mark.parametrize("name", NAMES_OUTSIDE)
def test_sums_of_files_elsewhere_are_refused(damaged, name):
    (damaged.parent / "secret").write_text("{}")
    with (damaged / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    assert "SHA256SUMS" in find_problem(damaged)


@pytest.mark.parametrize("name", NAMES_OUTSIDE)
def test_surrogates_elsewhere_are_refused(damaged, name):
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


def iter_places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value of a JSON document, itself included."""
    yield path
    items: list[tuple[Any, Any]] = []
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = list(enumerate(content))
    for key, value in items:
        yield from iter_places(value, (*path, key))


def change_place(content: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    """Apply a change to the parent and the key of a value; None if all was deleted."""
    holder = {"": content}  # the parent of the whole document
    *parent_keys, last_key = ("", *path)
    parent: Any = holder
    for key in parent_keys:
        parent = parent[key]
    change(parent, last_key)
    return holder.get("")


def replace_value(value: Any, parent: Any, key: Any) -> None:
    parent[key] = value


@pytest.mark.slow
@fuzzed
@given(st.data())
def test_changed_json_raises_only_own_errors(whole, folder, data):
    damaged = copy_artifact(whole, folder)
    content = json.loads((damaged / BENCHMARK).read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(iter_places(content))))
        is_replaced = data.draw(st.booleans())
        if is_replaced:
            value = data.draw(ANY_JSON)
            content = change_place(content, path, partial(replace_value, value))
        else:
            content = change_place(content, path, operator.delitem)
    replace_file(damaged, BENCHMARK, json.dumps(content).encode())
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
    return [
        flat,
        array.T,
        array[None],
        flat[:0],
        np.concatenate([flat, flat]),
        array[:-1] if array.ndim else array[None],
        np.zeros((), dtype=array.dtype),
        np.repeat(array[None], 2, axis=0),
        np.zeros((0, 10**6), dtype=array.dtype),
    ]


def replace_one_value(array: NDArray[Any], position: int, value: float) -> NDArray[Any]:
    changed = array.copy()
    with np.errstate(all="ignore"):  # integers cannot hold every value
        changed.reshape(-1)[position] = np.array(value).astype(array.dtype)
    return changed


@settings(parent=fuzzed, max_examples=80)
@given(st.sampled_from(ARRAY_FILES), st.data())
@pytest.mark.slow
def test_changed_arrays_raise_only_own_errors(whole, folder, name, data):
    damaged = copy_artifact(whole, folder)
    with np.load(damaged / name) as stored:
        arrays = dict(stored)
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(arrays)))
        array = arrays[key]
        change = data.draw(st.sampled_from(["type", "shape", "value", "name"]))
        if change == "type":
            arrays[key] = convert_array(array, data.draw(st.sampled_from(TYPES)))
        elif change == "shape":
            shapes = list_other_shapes(array)
            arrays[key] = shapes[data.draw(st.integers(0, len(shapes) - 1))]
        elif change == "value" and array.dtype.kind in "iuf" and array.size:
            position = data.draw(st.integers(0, array.size - 1))
            value = data.draw(st.sampled_from(EXTREMES))
            arrays[key] = replace_one_value(array, position, value)
        elif len(arrays) > 1:  # another name for the array
            arrays[data.draw(st.text(max_size=3))] = arrays.pop(key)
    replace_arrays(damaged, name, arrays)
    find_problem(damaged)  # other errors than the package's own end the test


@fuzzed
@given(
    st.lists(st.sampled_from([0, 1, 2, 3, 4, 7, 200, LEAF]), min_size=1, max_size=9),
    st.lists(st.integers(-1, 9), min_size=1, max_size=3),
)
def test_only_whole_trees_are_accepted(whole, folder, feature, nodes):
    """Kernels do not check indices, so that broken trees must be refused before."""
    damaged = copy_artifact(whole, folder)
    arrays = surrogates()["forest"][1].to_arrays()
    leaves = feature.count(LEAF)
    arrays |= {
        "feature": np.array(feature, dtype=np.uint8),
        "nodes": np.array(nodes, dtype=np.int32),
        "threshold": np.zeros(len(feature) - leaves, dtype=np.float32),
        "codes": np.ones((2, leaves), dtype=np.uint16),
    }
    replace_arrays(damaged, "forest.npz", arrays)
    change_json(damaged, BENCHMARK, keep_only_forest)
    assert bool(find_problem(damaged)) != are_trees(feature, nodes)


def keep_only_forest(content: Any) -> Any:
    return {**content, "surrogates": {"forest": content["surrogates"]["forest"]}}


def are_trees(feature: list[int], nodes: list[int]) -> bool:
    """Whether the features of nodes, depth first, are whole trees of these numbers of nodes."""
    remaining = list(feature)

    def read_tree() -> int:
        """Take a tree off the remaining nodes; returns its number of nodes."""
        if remaining.pop(0) == LEAF:
            return 1
        left_size = read_tree()
        right_size = read_tree()
        return 1 + left_size + right_size

    try:
        sizes = [read_tree() for _ in nodes]
    except IndexError:  # the last tree lacks nodes
        return False
    has_only_features = all(number == LEAF or number < 4 for number in feature)
    return sizes == nodes and not remaining and has_only_features


def npz(name: str, array: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array})
    return buffer.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "data",
    [npz("codes", np.array([print])), zipped("codes.txt", b"1"), zipped("codes.npy", b"1"), b""],
    ids=["objects", "no array", "no header", "no archive"],
)
def test_malformed_array_files_are_refused(damaged, data):
    replace_file(damaged, "table.npz", data)
    assert "table" in find_problem(damaged)


def test_sizes_are_checked_before_unpacking(whole, monkeypatch):
    monkeypatch.setattr("hpobench_ordered.files.arrays.MAX_UNPACKED", 99)
    assert "at most 99 bytes, but have" in find_problem(whole)


@pytest.mark.parametrize(
    ("surrogate", "by"),
    [
        *((surrogate, by) for surrogate in ("nearest", "table") for by in (1e-6, -1e-3, 1e3, -1e3)),
        ("forest", 1e-3),  # what forests can give is not listed
        ("apart", 1e3),
    ],
)
def test_wrong_best_value_is_noticed(damaged, surrogate, by):
    def change(content: Any) -> Any:
        content["surrogates"][surrogate]["best_values"][1] += by
        return content

    change_json(damaged, BENCHMARK, change)
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
        ({"late": {"r2": 0.999}}, r"cross-validated R2 of 0\.999"),
    ],
)
def test_wrong_claims_of_cards_are_noticed(damaged, change, message):
    def spoil(content: Any) -> Any:
        content["figures"][1] |= change.get("late", {})
        return {**content, **{key: value for key, value in change.items() if key != "late"}}

    change_json(damaged, CARD, spoil)
    with pytest.raises(ArtifactError, match=message):
        check_figures(damaged)
