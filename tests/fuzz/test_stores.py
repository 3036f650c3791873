"""Damaged stores: whatever became of their files, there is one clear error, and the rest stays."""

import itertools
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_results import FAILURE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.cli import main
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import hash_content
from hpobench_ordered.experiment._run_file import FORMAT, FORMAT_ENTRY, encode_runs
from hpobench_ordered.experiment.method_records import read_method_records, write_method_record
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.records import Failure, Reason
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.user_methods.identity import VERSION_LENGTH, MethodRecord
from hpobench_ordered.experiment.user_methods.loaded_code import LoadedCode

SHARE = st.floats(0, 1, exclude_max=True)
"""A share of a file's length."""
KINDS = ("runs", "packed", "experiments", "failures", "methods")
"""Folders of files whose names tell their content."""
REPEATABLE_KINDS = tuple(kind for kind in KINDS if kind != "methods")
"""Those that may be set aside: running the experiment again writes them again."""
JOURNALS = ("sessions.jsonl", "timings.jsonl")
"""Files to which every session adds lines."""
GARBAGE = [b"", b"\xff", b"{\x00\x1b[2J\n", b"[]", b"{}"]
"""Contents of files that mean nothing, with control characters of terminals among them."""
KEY_OF_NO_RUN = "0" * 20
"""A key as that of a run, but of no run in the store."""
MAX_SECONDS = 2.0
"""Longest time until a command says what is wrong with a store."""

fuzzed = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", autouse=True)
def unsynced():
    """Nothing here outlives a crash of the machine; waiting for the disk takes most of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def intact_store(tmp_path_factory) -> Path:
    """The folder of a store with six runs, a failed run and the record of a user's method.

    The runs are of one method on two benchmarks with three seeds. Those of two seeds are packed
    into a file for each benchmark, those of the third seed have a file each.
    """
    folder: Path = tmp_path_factory.mktemp("intact") / "store"
    experiment: dict[str, Any] = {
        "benchmarks": ["newsvendor", "forrester"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=3, tasks=2),
        "folder": folder,
    }
    results = hbo.run(seeds=range(2), **experiment)
    Store(folder).compact()
    hbo.run(seeds=[2], **experiment)

    # The failed run is as the first one, but of another method.
    identity = results.cells[0].describe() | {"method": "mine"}
    failure = Failure(
        key=key_of(identity), reason=Reason.RAISED, message="out of ideas", **identity
    )
    Store(folder).records.write_failure(failure)
    write_method_record(folder, make_method_record())
    return folder


def make_method_record() -> MethodRecord:
    """The record of what a user's method loaded: LightGBM at its import, helper.py only in a run.

    `base` is the version as it is known after the import alone.
    """
    any_version = "0" * VERSION_LENGTH  # a hash
    return MethodRecord(
        method="mine.py:Mine",
        version=any_version,
        base=any_version,
        imported=LoadedCode(packages={"lightgbm": "4.6.0"}),
        later={"helper.py": "1" * 64},
    )


@pytest.fixture(scope="module")
def copy_folder(tmp_path_factory) -> Path:
    """The folder that the copies of the intact store are put into, one after the other."""
    return Path(tmp_path_factory.mktemp("copies") / "store")


@pytest.fixture
def store_copy(intact_store, copy_folder) -> Path:
    """The folder of a new copy of the intact store, for a test to damage."""
    return copy_store(intact_store, copy_folder)


def copy_store(source: Path, folder: Path) -> Path:
    """Copy a store to a folder, in the place of the copy before.

    The store "merged" beside it, which `merge_into_another` wrote from that copy, is removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name("merged"), ignore_errors=True)
    return Path(shutil.copytree(source, folder))


def read_all(folder: Path) -> None:
    """Read all that a store has of finished runs; what it returns must belong together."""
    read_method_records(folder)
    store = Store(folder)
    keys = store.keys()
    assert set(store.read()["key"]) == keys
    assert store.cells().keys() == keys
    first_key, *_ = keys
    assert len(store.configurations([first_key])) > 0
    store.digest()


def read_for_display(folder: Path) -> None:
    """Read what `status` and reports show of a store."""
    store = Store(folder)
    assert len(make_overview(store).runs) > 0
    store.timings()
    store.in_progress()


def merge_into_another(folder: Path) -> None:
    """Merge a store into a new one beside it, "merged"."""
    hbo.merge_stores(folder.with_name("merged"), [folder])


def compact(folder: Path) -> None:
    """Pack the runs of a store into few files, which loses none of them."""
    keys_before = Store(folder).keys()
    Store(folder).compact()
    assert Store(folder).keys() == keys_before


def find_problems(folder: Path) -> list[str]:
    """Use a store in every way, and return the messages of the errors that say what is wrong.

    An exception that is no `StoreError` is not caught, so that it fails the test.
    """
    problems = []
    for operation in (read_all, read_for_display, merge_into_another, compact):
        try:
            operation(folder)
        except StoreError as error:
            message = str(error)
            # Damaged files may hold characters that would control the user's terminal.
            assert message.isprintable()
            problems.append(message)
    return problems


def get_file(folder: Path, kind: str, number: int = 0) -> Path:
    """Get a file of a store: for "store.json" that file, for "runs" one of those in this subfolder.

    `number` is its place among the files of the subfolder by name, which are counted in a circle.
    """
    is_file_name = "." in kind
    if is_file_name:
        return folder / kind
    paths = sorted((folder / kind).iterdir())
    return paths[number % len(paths)]


def test_intact_store_has_no_problems(store_copy):
    assert find_problems(store_copy) == []


def test_intact_store_has_all_runs(intact_store):
    # Two benchmarks, each with three seeds.
    assert len(Store(intact_store).keys()) == 2 * 3


@fuzzed
@given(kind=st.sampled_from(KINDS), number=st.integers(0, 9), share=SHARE, bit=st.integers(0, 7))
def test_flipped_bits_are_noticed(intact_store, copy_folder, kind, number, share, bit):
    """One bit, from 0 to 7, is flipped in the byte at a share of a file's length."""
    store_copy = copy_store(intact_store, copy_folder)
    path = get_file(store_copy, kind, number)
    content = bytearray(path.read_bytes())
    position = int(share * len(content))
    content[position] ^= 1 << bit
    path.write_bytes(content)

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


@fuzzed
@given(kind=st.sampled_from(REPEATABLE_KINDS), number=st.integers(0, 9))
def test_rest_of_damaged_store_is_usable(intact_store, copy_folder, kind, number):
    """A file that lacks its last byte is set aside; then the store has no problem."""
    store_copy = copy_store(intact_store, copy_folder)
    path = get_file(store_copy, kind, number)
    path.write_bytes(path.read_bytes()[:-1])

    set_aside = Store(store_copy).set_aside_damaged()

    assert [moved.name for moved in set_aside] == [path.name]
    assert find_problems(store_copy) == []


@fuzzed
@given(kind=st.sampled_from(KINDS), number=st.integers(0, 9), share=SHARE)
def test_truncated_files_are_noticed(intact_store, copy_folder, kind, number, share):
    """A file of the store ends early, at a share of its length."""
    store_copy = copy_store(intact_store, copy_folder)
    path = get_file(store_copy, kind, number)
    content = path.read_bytes()
    length = int(share * len(content))
    path.write_bytes(content[:length])

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


SINGLE_KINDS = ("failures", "methods", "store.json")
"""Kinds of which the intact store has a single file."""
KINDS_TO_SWAP = [
    (kind, other_kind)
    for kind, other_kind in itertools.product((*KINDS, "store.json"), repeat=2)
    if kind != other_kind or kind not in SINGLE_KINDS
]


@pytest.mark.parametrize(("kind", "other_kind"), KINDS_TO_SWAP)
def test_content_of_other_file_is_noticed(intact_store, store_copy, kind, other_kind):
    """The first file of a kind has the content of the last file of the same or another kind."""
    path = get_file(store_copy, kind)
    other_path = get_file(intact_store, other_kind, number=-1)
    assert other_path.name != path.name
    path.write_bytes(other_path.read_bytes())

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
def test_garbage_is_noticed(store_copy, kind, garbage):
    """A file of the store holds bytes that no store writes."""
    path = get_file(store_copy, kind)
    path.write_bytes(garbage)

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("name", [*JOURNALS, f"running/{KEY_OF_NO_RUN}.json"])
def test_garbage_in_what_is_only_shown_is_ignored(store_copy, name, garbage):
    """Times, sessions and runs in progress are shown, but nothing is computed from them."""
    (store_copy / name).write_bytes(garbage)

    assert find_problems(store_copy) == []


@pytest.fixture
def call_command(monkeypatch, capsys) -> Callable[..., tuple[object, str]]:
    """A function that calls a command in this process; returns its exit code and its errors."""
    # The handlers of signals that the command sets would outlast the test.
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run_main(*words: str) -> tuple[object, str]:
        """Run the command line with these words; return its exit code and its errors."""
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        _output, errors = capsys.readouterr()
        return ended.value.code, errors

    return run_main


KINDS_READ_BY_COMMAND = {
    "status": ("packed", "experiments", "failures", "store.json"),
    "merge": (*KINDS, "store.json"),
    "report": ("runs", "packed", "experiments", "failures", "store.json"),
}
"""Kinds of files whose content a command reads."""
COMMANDS_AND_KINDS = [
    (command, kind) for command, kinds in KINDS_READ_BY_COMMAND.items() for kind in kinds
]


@pytest.mark.parametrize(("command", "kind"), COMMANDS_AND_KINDS)
def test_command_names_damaged_file_in_one_line(store_copy, tmp_path, call_command, command, kind):
    """The file holds many lines, and characters that control a terminal; the message does not."""
    path = get_file(store_copy, kind)
    lines_with_control_characters = b"{\x00\n" * 9
    path.write_bytes(lines_with_control_characters)
    # `merge` is told first which store to write.
    folders = [str(store_copy)]
    if command == "merge":
        folders.insert(0, str(tmp_path / "merged"))

    exit_code, errors = call_command(command, *folders)

    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert path.name in line


# Stores that somebody wrote on purpose, with hashes that fit.


def write_hashed(folder: Path, content: bytes, *, key: str = "", length: int = 16) -> None:
    """Write a file named as a store names it, by the hash of its content.

    The name is "key-hash.parquet" for runs and "key-hash.json" for other files, with a hash of
    `length` digits; files without a key have a hash alone.
    """
    suffix = ".parquet" if folder.name in ("runs", "packed") else ".json"
    start = f"{key}-" if key else ""
    name = f"{start}{hash_content(content, length)}{suffix}"
    (folder / name).write_bytes(content)


def write_failure(folder: Path, key_in_name: str | None = None, **changes: Any) -> None:
    """Write the record of a failed run, with some of its fields changed.

    The name of its file has the key that belongs to the unchanged fields, or `key_in_name`.
    """
    identity = {
        "benchmark": "newsvendor@1",
        "surrogate": "table",
        "method": "theirs",
        "method_version": "1",
        "seed": 0,
        "protocol": "ordered()",
    }
    key = key_of(identity)
    record = identity | {"key": key, "reason": "raised", "message": "out of ideas"} | changes
    content = json.dumps(record).encode()
    write_hashed(folder / "failures", content, key=key_in_name or key)


def write_experiment(folder: Path, **changes: Any) -> None:
    """Write the record of an experiment of one run, with some of its fields changed.

    Its keys are fields of runs, one or two; its values list what these fields have in the runs.
    """
    planned = {
        "benchmark surrogate": [["newsvendor@1", "table"]],
        "method method_version": [["bo", "1"]],
        "seed": [[0]],
        "protocol": [["ordered()"]],
    } | changes
    write_hashed(folder / "experiments", json.dumps(planned).encode(), length=20)


def write_method(folder: Path, **changes: Any) -> None:
    """Write the record of a user's method, with some of its fields changed."""
    record = make_method_record()
    content = asdict(record) | changes
    write_hashed(folder / "methods", json.dumps(content).encode(), key=record.version)


def make_pairs(count: int) -> list[list[str]]:
    """Pairs of a name and a version, as of benchmarks or methods: ["0", "1"], ["1", "1"], ..."""
    return [[str(number), "1"] for number in range(count)]


def change_run(folder: Path, change: Callable[[pa.Table], pa.Table], kind: str = "runs") -> None:
    """Change the table of a file of runs; the hash in the name of the file is updated.

    Files of single runs are named "key-hash.parquet", packed ones "hash.parquet".
    """
    path = get_file(folder, kind)
    hash_and_suffix, content = encode_runs(change(pq.read_table(path)))
    key, dash, _old_hash = path.name.rpartition("-")  # no key and no dash for packed runs
    path.unlink()
    path.with_name(f"{key}{dash}{hash_and_suffix}").write_bytes(content)


def replace_column(name: str, make_values: Callable[[pa.ChunkedArray], Any]) -> Any:
    """Return a function that replaces a column of a table by what `make_values` makes of it.

    It is for `change_run`.
    """

    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        return table.set_column(index, name, make_values(table[name]))

    return change


def fill(value: Any) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Return a function for `replace_column` that makes a column of this value alone."""
    return lambda column: pa.array([value] * len(column))


def replace_metadata(folder: Path, metadata: dict[bytes, Any] | None = None) -> None:
    """Replace the metadata of a file of a run, which say the format of its table.

    By default they are removed. The hash in the name of the file, "key-hash.parquet", is updated.
    """
    path = get_file(folder, "runs")
    key, _, _ = path.name.partition("-")
    table = pq.read_table(path).replace_schema_metadata(metadata)
    path.unlink()

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    write_hashed(path.parent, bytes(buffer.getvalue()), key=key)


def replace_file(folder: Path, kind: str, make: Callable[[Path], object]) -> None:
    """Remove a file, and put in its place what `make` makes at its path, such as a link."""
    path = get_file(folder, kind)
    path.unlink()
    make(path)


DEEPLY_NESTED = b'{"format":' + b"[" * 100_000
"""JSON that would exhaust the stack of a reader that calls itself for each list."""
PATH_OUTSIDE = "../../EVIL"

DAMAGES: dict[str, Callable[[Path], object]] = {
    "marker: deep": lambda f: (f / "store.json").write_bytes(DEEPLY_NESTED),
    "marker: text": lambda f: (f / "store.json").write_text('{"format": "6"}'),
    "marker: list": lambda f: (f / "store.json").write_text("[6]"),
    "marker: other format": lambda f: (f / "store.json").write_text('{"format": 99}'),
    "marker: large": lambda f: os.truncate(f / "store.json", 2**40),
    "marker: device": lambda f: replace_file(f, "store.json", lambda p: p.symlink_to("/dev/zero")),
    "marker: pipe": lambda f: replace_file(f, "store.json", os.mkfifo),
    "failure: path as key": lambda f: write_failure(f, key=PATH_OUTSIDE),
    "failure: absolute path as key": lambda f: write_failure(f, key="/tmp/EVIL"),
    "failure: key of another run": lambda f: write_failure(f, KEY_OF_NO_RUN, key=KEY_OF_NO_RUN),
    "failure: name of another run": lambda f: write_failure(f, KEY_OF_NO_RUN),
    "failure: unknown reason": lambda f: write_failure(f, reason="bored"),
    "failure: number as message": lambda f: write_failure(f, message=1),
    "failure: control characters": lambda f: write_failure(f, message="\x1b[2J"),
    "failure: text as seed": lambda f: write_failure(f, seed="0"),
    "failure: other name": lambda f: (f / "failures" / "readme.txt").write_text("me"),
    "failure: terminal in name": lambda f: (f / "failures" / "\x1b[2J.json").write_text("{}"),
    "failure: folder": lambda f: (f / "failures" / f"{KEY_OF_NO_RUN}.json").mkdir(),
    "failure: device": lambda f: replace_file(f, "failures", lambda p: p.symlink_to("/dev/zero")),
    "failure: deep": lambda f: (f / "failures" / f"{KEY_OF_NO_RUN}.json").write_bytes(
        DEEPLY_NESTED
    ),
    "experiment: many runs": lambda f: write_experiment(
        f,
        **{
            "benchmark surrogate": make_pairs(3000),
            "method method_version": make_pairs(3000),
        },
    ),
    "experiment: short pair": lambda f: write_experiment(f, **{"benchmark surrogate": [["a"]]}),
    "experiment: text as seed": lambda f: write_experiment(f, seed=[["0"]]),
    "experiment: large seed": lambda f: write_experiment(f, seed=[[2**70]]),
    "experiment: no seeds": lambda f: write_experiment(f, seed=None),
    "experiment: other field": lambda f: write_experiment(f, task=[[0]]),
    "experiment: list": lambda f: write_hashed(f / "experiments", b"[]", length=20),
    "method: version of another method": lambda f: write_hashed(
        f / "methods", json.dumps(asdict(make_method_record())).encode(), key="1" * VERSION_LENGTH
    ),
    "method: path as version": lambda f: write_method(f, version=PATH_OUTSIDE),
    "method: other name": lambda f: (f / "methods" / "readme.txt").write_text("me"),
    "method: folder": lambda f: (f / "methods" / f"{KEY_OF_NO_RUN}.json").mkdir(),
    "method: device": lambda f: replace_file(f, "methods", lambda p: p.symlink_to("/dev/zero")),
    "method: text as files": lambda f: write_method(f, later="helper.py"),
    "method: number as digest": lambda f: write_method(f, later={"helper.py": 1}),
    "method: deep": lambda f: write_hashed(f / "methods", DEEPLY_NESTED, key="0" * VERSION_LENGTH),
    "run: folder": lambda f: (f / "runs" / "folder").mkdir(),
    "run: other name": lambda f: (f / "runs" / "copy of run.parquet").write_text(""),
    "run: pipe": lambda f: replace_file(f, "runs", os.mkfifo),
    "run: not Parquet": lambda f: write_hashed(f / "runs", b"PAR1PAR1", key=KEY_OF_NO_RUN),
    "run: no format": replace_metadata,
    "run: text as format": lambda f: replace_metadata(f, {FORMAT_ENTRY: '"6"'}),
    "run: other format": lambda f: replace_metadata(f, {FORMAT_ENTRY: str(FORMAT + 1)}),
    "run: no losses": lambda f: change_run(f, lambda table: table.drop_columns(["loss"])),
    "run: text as loss": lambda f: change_run(f, replace_column("loss", fill("0.5"))),
    "run: missing values": lambda f: change_run(
        f, replace_column("loss", lambda column: pa.nulls(len(column), pa.float64()))
    ),
    "run: control characters": lambda f: change_run(f, replace_column("method", fill("\x1b[2J"))),
    "run: other seed": lambda f: change_run(f, replace_column("seed", fill(77))),
    "run: other trials": lambda f: change_run(f, replace_column("trial", fill(1))),
    "run: no rows": lambda f: change_run(f, lambda table: table.slice(0, 0)),
    "run: lists as configurations": lambda f: change_run(
        f, lambda table: table.append_column("config.x", pa.array([[0.5]] * table.num_rows))
    ),
    "packed: path as key": lambda f: change_run(
        f, replace_column("key", fill(PATH_OUTSIDE)), "packed"
    ),
    "packed: rows apart": lambda f: change_run(
        f, lambda table: table.take(np.argsort(np.arange(table.num_rows) % 2)), "packed"
    ),
    "sessions: folder": lambda f: replace_file(f, "sessions.jsonl", Path.mkdir),
    "timings: pipe": lambda f: replace_file(f, "timings.jsonl", os.mkfifo),
}
"""Functions that damage a store, whose folder they get, each in its way, by a label."""


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_malformed_store_is_refused_at_once(store_copy, tmp_path, call_command, damage):
    """`merge` prints one line, within two seconds, before it makes any folder."""
    damage(store_copy)
    new_parent = tmp_path / "new"
    start = time.perf_counter()

    exit_code, errors = call_command("merge", str(new_parent / "merged"), str(store_copy))

    seconds = time.perf_counter() - start
    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert seconds < MAX_SECONDS
    assert not new_parent.exists()


@pytest.mark.parametrize("command", ["status --digest", "leaderboard", "compact"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_malformed_store_never_gives_traceback(store_copy, call_command, damage, command):
    """A command fails with one line, or succeeds if it does not read what is malformed."""
    damage(store_copy)

    exit_code, errors = call_command(*command.split(), str(store_copy))

    has_failed = bool(exit_code)
    assert has_failed == ("error: " in errors)
    if has_failed:
        (line,) = errors.splitlines()
        assert line.startswith("error: ")
