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
from hpobench_ordered.experiment._run_file import FORMAT, METADATA, encode_runs
from hpobench_ordered.experiment.method_records import read_method_records, write_method_record
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.records import Failure, Reason
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.user_methods.identity import VERSION_LENGTH, MethodRecord
from hpobench_ordered.user_methods.loaded_files import LoadedFile, LoadedFiles

SHARE = st.floats(0, 1, exclude_max=True)
"""A share of a file's length."""
KINDS = ("runs", "packed", "experiments", "failures", "methods")
"""Folders of files whose names tell their content."""
REPEATABLE = tuple(kind for kind in KINDS if kind != "methods")
"""Those that may be set aside: running the experiment again writes them again."""
JOURNALS = ("sessions.jsonl", "timings.jsonl")
"""Files to which every session adds lines."""
GARBAGE = [b"", b"\xff", b"{\x00\x1b[2J\n", b"[]", b"{}"]
KEY = "0" * 20
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
def whole(tmp_path_factory) -> Path:
    """A store with six runs, packed and not, a failure and the record of a method.

    The runs are of one method on two benchmarks: of two seeds packed into one file, and of a third
    seed in a file each.
    """
    folder: Path = tmp_path_factory.mktemp("whole") / "store"
    experiment: dict[str, Any] = {
        "benchmarks": ["newsvendor", "forrester"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=3, tasks=2),
        "folder": folder,
    }
    results = hbo.run(seeds=range(2), **experiment)
    Store(folder).compact()
    hbo.run(seeds=[2], **experiment)

    identity = results.cells[0].describe() | {"method": "mine"}
    failure = Failure(
        key=key_of(identity), reason=Reason.RAISED, message="out of ideas", **identity
    )
    Store(folder).records.write_failure(failure)
    write_method_record(folder, make_method_record())
    return folder


def make_method_record() -> MethodRecord:
    """The record of a user's method that loaded a file, helper.py, while it ran."""
    helper = LoadedFile(module="helper", digest="1" * 64, place="helper.py")
    return MethodRecord(
        method="mine.py:Mine",
        version="0" * VERSION_LENGTH,
        base="0" * VERSION_LENGTH,
        imported=LoadedFiles(packages=("numpy 2.0",)),
        later=LoadedFiles(files=(helper,)),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where a copy of the whole store is put, to be damaged."""
    return Path(tmp_path_factory.mktemp("damaged") / "store")


@pytest.fixture
def damaged(whole, folder) -> Path:
    """The folder of a copy of the whole store, to be damaged."""
    return copy_store(whole, folder)


def copy_store(source: Path, folder: Path) -> Path:
    """Copy a store in the place of the last copy, and remove what was merged from that."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name("merged"), ignore_errors=True)
    return Path(shutil.copytree(source, folder))


def read_all(folder: Path) -> None:
    """Read all that a store has of finished runs."""
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
    """Merge a store into a new one beside it."""
    hbo.merge_stores(folder.with_name("merged"), [folder])


def compact(folder: Path) -> None:
    """Pack the runs of a store into one file, which loses none of them."""
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
    """Get a file of this name, or one of the files in the subfolder of this name.

    Files of a subfolder are in the order of their names, and begin again after the last one.
    """
    is_file_name = "." in kind
    if is_file_name:
        return folder / kind
    paths = sorted((folder / kind).iterdir())
    return paths[number % len(paths)]


def test_whole_store_has_no_problems(damaged):
    assert find_problems(damaged) == []


def test_whole_store_has_all_runs(whole):
    # Two benchmarks, each with three seeds.
    assert len(Store(whole).keys()) == 2 * 3


@fuzzed
@given(kind=st.sampled_from(KINDS), number=st.integers(0, 9), share=SHARE, bit=st.integers(0, 7))
def test_flipped_bits_are_noticed(whole, folder, kind, number, share, bit):
    """One bit of a byte, at a share of the file's length, is flipped."""
    damaged = copy_store(whole, folder)
    path = get_file(damaged, kind, number)
    content = bytearray(path.read_bytes())
    position = int(share * len(content))
    content[position] ^= 1 << bit
    path.write_bytes(content)

    first_problem, *_ = find_problems(damaged)

    assert f"{path.name} is damaged" in first_problem


@fuzzed
@given(kind=st.sampled_from(REPEATABLE), number=st.integers(0, 9))
def test_rest_of_damaged_store_is_usable(whole, folder, kind, number):
    """A file that lacks its last byte is set aside."""
    damaged = copy_store(whole, folder)
    path = get_file(damaged, kind, number)
    path.write_bytes(path.read_bytes()[:-1])

    set_aside = Store(damaged).set_aside_damaged()

    assert [moved.name for moved in set_aside] == [path.name]
    assert find_problems(damaged) == []


@fuzzed
@given(kind=st.sampled_from(KINDS), number=st.integers(0, 9), share=SHARE)
def test_truncated_files_are_noticed(whole, folder, kind, number, share):
    damaged = copy_store(whole, folder)
    path = get_file(damaged, kind, number)
    content = path.read_bytes()
    length = int(share * len(content))
    path.write_bytes(content[:length])

    first_problem, *_ = find_problems(damaged)

    assert f"{path.name} is damaged" in first_problem


KINDS_TO_SWAP = [
    pair
    for pair in itertools.product((*KINDS, "store.json"), repeat=2)
    if pair != ("store.json", "store.json")
]


@pytest.mark.parametrize(("kind", "other"), KINDS_TO_SWAP)
def test_content_of_other_file_is_noticed(whole, damaged, kind, other):
    """The first file of a kind has the content of the last file of the same or another kind."""
    path = get_file(damaged, kind)
    other_path = get_file(whole, other, number=-1)
    if other_path.name == path.name:
        pytest.skip("there is one file of this kind")
    path.write_bytes(other_path.read_bytes())

    first_problem, *_ = find_problems(damaged)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
def test_garbage_is_noticed(damaged, kind, content):
    path = get_file(damaged, kind)
    path.write_bytes(content)

    first_problem, *_ = find_problems(damaged)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("content", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("name", [*JOURNALS, f"running/{KEY}.json"])
def test_garbage_in_what_is_only_shown_is_ignored(damaged, name, content):
    """Times, sessions and runs in progress are shown, but nothing is computed from them."""
    (damaged / name).write_bytes(content)

    assert find_problems(damaged) == []


@pytest.fixture
def call(monkeypatch, capsys) -> Callable[..., tuple[object, str, str]]:
    """A function that calls a command in this process; returns exit code, output and errors."""
    monkeypatch.setattr("signal.signal", lambda *_: None)  # which would outlast the test

    def call_command(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        output, errors = capsys.readouterr()
        return ended.value.code, output, errors

    return call_command


NOT_OPENED = [("status", "runs"), ("status", "methods"), ("report", "methods")]
"""Pairs of a command and a kind of files that it does not open."""


@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
@pytest.mark.parametrize("command", ["status", "merge", "report"])
def test_command_names_damaged_file_in_one_line(damaged, tmp_path, call, command, kind):
    if (command, kind) in NOT_OPENED:
        pytest.skip("such files are not opened for it")
    path = get_file(damaged, kind)
    control_characters_in_lines = b"{\x00\n" * 9
    path.write_bytes(control_characters_in_lines)
    into = [str(tmp_path / "merged")] if command == "merge" else []

    exit_code, _, errors = call(command, *into, str(damaged))

    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert path.name in line


# Stores that somebody wrote on purpose, with hashes that fit.


def write_hashed(folder: Path, content: bytes, *, key: str = "", length: int = 16) -> None:
    """Write a file whose name holds the hash of its content, after a key if it has one.

    The hash has `length` digits.
    """
    suffix = ".parquet" if folder.name in ("runs", "packed") else ".json"
    start = f"{key}-" if key else ""
    name = f"{start}{hash_content(content, length)}{suffix}"
    (folder / name).write_bytes(content)


def write_failure(folder: Path, name_key: str | None = None, **changes: Any) -> None:
    """Write the record of a failed run, changed as asked.

    Its file is named by the key of its identity unless another is passed.
    """
    identity = {
        "benchmark": "newsvendor@1",
        "surrogate": "table",
        "method": "theirs",
        "method_version": "1",
        "seed": 0,
        "protocol": "ordered()",
    }
    fields = {"key": key_of(identity), "reason": "raised", "message": "out of ideas"}
    record = identity | fields | changes
    key = name_key or fields["key"]
    write_hashed(folder / "failures", json.dumps(record).encode(), key=str(key))


def write_experiment(folder: Path, **changes: Any) -> None:
    """Write the record of an experiment of one run, changed as asked.

    It has lists of values, by the names of the fields that they are for.
    """
    planned = {
        "benchmark surrogate": [["newsvendor@1", "table"]],
        "method method_version": [["bo", "1"]],
        "seed": [[0]],
        "protocol": [["ordered()"]],
    } | changes
    write_hashed(folder / "experiments", json.dumps(planned).encode(), length=20)


def write_method(folder: Path, **changes: Any) -> None:
    """Write the record of a method, changed as asked."""
    record = make_method_record()
    content = asdict(record) | changes
    write_hashed(folder / "methods", json.dumps(content).encode(), key=record.version)


def make_pairs(count: int) -> list[list[str]]:
    """Pairs of a name and a version, as of benchmarks or methods: ["0", "1"], ["1", "1"], ..."""
    return [[str(number), "1"] for number in range(count)]


def change_run(folder: Path, change: Callable[[pa.Table], pa.Table], kind: str = "runs") -> None:
    """Replace a file of runs by one with a changed table."""
    path = get_file(folder, kind)
    hash_and_suffix, content = encode_runs(change(pq.read_table(path)))
    key, dash, _ = path.name.rpartition("-")  # both empty for packed runs
    path.unlink()
    path.with_name(f"{key}{dash}{hash_and_suffix}").write_bytes(content)


def replace_column(name: str, make_values: Callable[[pa.ChunkedArray], Any]) -> Any:
    """Make a change of tables: a column is replaced by what is made of it."""

    def change(table: pa.Table) -> pa.Table:
        index = table.column_names.index(name)
        return table.set_column(index, name, make_values(table[name]))

    return change


def fill(value: Any) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Make a change of columns: every row has this value."""
    return lambda column: pa.array([value] * len(column))


def replace_metadata(folder: Path, metadata: dict[bytes, Any] | None = None) -> None:
    """Replace the metadata of a file of runs, which say its format; by default, remove them."""
    path = get_file(folder, "runs")
    key, _, _ = path.name.partition("-")
    table = pq.read_table(path).replace_schema_metadata(metadata)
    path.unlink()

    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    write_hashed(path.parent, bytes(buffer.getvalue()), key=key)


def replace_file(folder: Path, kind: str, make: Callable[[Path], object]) -> None:
    """Replace a file by what `make` puts at its path, such as a link or a pipe."""
    path = get_file(folder, kind)
    path.unlink()
    make(path)


DEEP = b'{"format":' + b"[" * 100_000
EVIL = "../../EVIL"

MALFORMED: dict[str, Callable[[Path], object]] = {
    "marker: deep": lambda f: (f / "store.json").write_bytes(DEEP),
    "marker: text": lambda f: (f / "store.json").write_text('{"format": "6"}'),
    "marker: list": lambda f: (f / "store.json").write_text("[6]"),
    "marker: other format": lambda f: (f / "store.json").write_text('{"format": 99}'),
    "marker: large": lambda f: os.truncate(f / "store.json", 2**40),
    "marker: device": lambda f: replace_file(f, "store.json", lambda p: p.symlink_to("/dev/zero")),
    "marker: pipe": lambda f: replace_file(f, "store.json", os.mkfifo),
    "failure: path as key": lambda f: write_failure(f, key=EVIL),
    "failure: absolute path as key": lambda f: write_failure(f, key="/tmp/EVIL"),
    "failure: key of another run": lambda f: write_failure(f, KEY, key=KEY),
    "failure: name of another run": lambda f: write_failure(f, KEY),
    "failure: unknown reason": lambda f: write_failure(f, reason="bored"),
    "failure: number as message": lambda f: write_failure(f, message=1),
    "failure: control characters": lambda f: write_failure(f, message="\x1b[2J"),
    "failure: text as seed": lambda f: write_failure(f, seed="0"),
    "failure: other name": lambda f: (f / "failures" / "readme.txt").write_text("me"),
    "failure: terminal in name": lambda f: (f / "failures" / "\x1b[2J.json").write_text("{}"),
    "failure: folder": lambda f: (f / "failures" / f"{KEY}.json").mkdir(),
    "failure: device": lambda f: replace_file(f, "failures", lambda p: p.symlink_to("/dev/zero")),
    "failure: deep": lambda f: (f / "failures" / f"{KEY}.json").write_bytes(DEEP),
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
    "method: path as version": lambda f: write_method(f, version=EVIL),
    "method: other name": lambda f: (f / "methods" / "readme.txt").write_text("me"),
    "method: folder": lambda f: (f / "methods" / f"{KEY}.json").mkdir(),
    "method: device": lambda f: replace_file(f, "methods", lambda p: p.symlink_to("/dev/zero")),
    "method: text as files": lambda f: write_method(f, later={"files": "helper.py"}),
    "method: number as digest": lambda f: write_method(
        f, later={"files": [{"module": "helper", "digest": 1, "place": "helper.py"}]}
    ),
    "method: other content of a file": lambda f: write_method(
        f, later={"files": [{"module": "helper", "digest": "2" * 64, "place": "helper.py"}]}
    ),
    "method: package without a name": lambda f: write_method(f, imported={"packages": [""]}),
    "method: deep": lambda f: write_hashed(f / "methods", DEEP, key="0" * VERSION_LENGTH),
    "run: folder": lambda f: (f / "runs" / "folder").mkdir(),
    "run: other name": lambda f: (f / "runs" / "copy of run.parquet").write_text(""),
    "run: pipe": lambda f: replace_file(f, "runs", os.mkfifo),
    "run: not Parquet": lambda f: write_hashed(f / "runs", b"PAR1PAR1", key=KEY),
    "run: no format": replace_metadata,
    "run: text as format": lambda f: replace_metadata(f, {METADATA: '"6"'}),
    "run: other format": lambda f: replace_metadata(f, {METADATA: str(FORMAT + 1)}),
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
    "packed: path as key": lambda f: change_run(f, replace_column("key", fill(EVIL)), "packed"),
    "packed: rows apart": lambda f: change_run(
        f, lambda table: table.take(np.argsort(np.arange(table.num_rows) % 2)), "packed"
    ),
    "sessions: folder": lambda f: replace_file(f, "sessions.jsonl", Path.mkdir),
    "timings: pipe": lambda f: replace_file(f, "timings.jsonl", os.mkfifo),
}


@pytest.mark.parametrize("damage", MALFORMED.values(), ids=MALFORMED)
def test_malformed_store_is_refused_at_once(damaged, tmp_path, call, damage):
    """By one line, within two seconds, and before anything is written."""
    damage(damaged)
    merged = tmp_path / "mine" / "merged"
    start = time.perf_counter()

    exit_code, _, errors = call("merge", str(merged), str(damaged))

    seconds = time.perf_counter() - start
    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert seconds < MAX_SECONDS
    assert not merged.parent.exists()


@pytest.mark.parametrize("words", ["status --digest", "leaderboard", "compact"])
@pytest.mark.parametrize("damage", MALFORMED.values(), ids=MALFORMED)
def test_malformed_store_never_gives_traceback(damaged, call, damage, words):
    """A command that does not read the malformed part succeeds."""
    damage(damaged)

    exit_code, _, errors = call(*words.split(), str(damaged))

    has_failed = bool(exit_code)
    if has_failed:
        (line,) = errors.splitlines()
        assert line.startswith("error: ")
