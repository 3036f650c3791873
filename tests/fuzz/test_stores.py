"""Damaged stores: whatever became of their files, there is one clear error."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_results import FAILURE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.cli import main
from hpobench_ordered.data.tables import encode_table
from hpobench_ordered.errors import StoreError
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
"""Folders of files that a store reads."""
JOURNALS = ("sessions.jsonl", "timings.jsonl")
"""Files to which every session adds lines."""
GARBAGE = [b"", b"\xff", b"{\x00\x1b[2J\n", b"[]", b"{}"]
"""Contents of files that mean nothing, with control characters of terminals among them."""
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
    folder: Path = tmp_path_factory.mktemp("intact")
    experiment: dict[str, Any] = {
        "benchmarks": ["newsvendor", "forrester"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=3, tasks=2),
    }
    results = hbo.run(seeds=range(2), folder=folder / "single", **experiment)
    store = hbo.merge_stores(folder / "store", [folder / "single"])
    hbo.run(seeds=[2], folder=store.folder, **experiment)

    # The failed run is as the first one, but of another method.
    identity = results.cells[0].describe() | {"method": "mine"}
    failure = Failure(
        key=key_of(identity), reason=Reason.RAISED, message="out of ideas", **identity
    )
    store.records.write_failure(failure)
    write_method_record(store.folder, make_method_record())
    return store.folder


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
    """Copy a store to a folder, in the place of the copy before and what was merged from it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name("merged"), ignore_errors=True)
    return Path(shutil.copytree(source, folder))


def read_all(folder: Path) -> None:
    """Read all that a store has."""
    store = Store(folder)
    make_overview(store)
    store.timings()
    store.digest()
    read_method_records(folder)


def find_problems(folder: Path) -> list[str]:
    """Read and merge a store, and return the messages of the errors that say what is wrong.

    An exception that is no `StoreError` is not caught, so that it fails the test.
    """
    problems = []
    for use in (read_all, lambda folder: hbo.merge_stores(folder.with_name("merged"), [folder])):
        try:
            use(folder)
        except StoreError as error:
            message = str(error)
            # Damaged files may hold characters that would control the user's terminal.
            assert message.isprintable()
            problems.append(message)
    return problems


def get_file(folder: Path, kind: str) -> Path:
    """Get a file of a store: for "store.json" that file, for "runs" the first in this subfolder."""
    is_file_name = "." in kind
    return folder / kind if is_file_name else min((folder / kind).iterdir())


def test_intact_store_has_no_problems(store_copy):
    assert find_problems(store_copy) == []


@fuzzed
@given(kind=st.sampled_from(KINDS), share=SHARE, bit=st.integers(0, 7))
def test_flipped_bit_is_harmless_or_named(intact_store, copy_folder, kind, share, bit):
    """One bit, from 0 to 7, is flipped in the byte at a share of a file's length."""
    store_copy = copy_store(intact_store, copy_folder)
    path = get_file(store_copy, kind)
    content = bytearray(path.read_bytes())
    position = int(share * len(content))
    content[position] ^= 1 << bit
    path.write_bytes(content)

    for problem in find_problems(store_copy):
        assert path.name in problem


@fuzzed
@given(kind=st.sampled_from(KINDS), share=SHARE)
def test_truncated_files_are_named(intact_store, copy_folder, kind, share):
    """A file of the store ends early, at a share of its length."""
    store_copy = copy_store(intact_store, copy_folder)
    path = get_file(store_copy, kind)
    content = path.read_bytes()
    length = int(share * len(content))
    path.write_bytes(content[:length])

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
def test_garbage_is_named(store_copy, kind, garbage):
    """A file of the store holds bytes that no store writes."""
    path = get_file(store_copy, kind)
    path.write_bytes(garbage)

    first_problem, *_ = find_problems(store_copy)

    assert f"{path.name} is damaged" in first_problem


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("name", JOURNALS)
def test_garbage_in_journals_is_ignored(store_copy, name, garbage):
    """Times and sessions are shown, but nothing is computed from them."""
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


@pytest.mark.parametrize("command", ["status", "report"])
def test_command_names_damaged_file_in_one_line(store_copy, call_command, command):
    """The file holds many lines, and characters that control a terminal; the message does not."""
    path = get_file(store_copy, "packed")
    path.write_bytes(b"{\x00\n" * 9)

    exit_code, errors = call_command(command, str(store_copy))

    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert path.name in line


def change_table(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change the table of a run."""
    path = get_file(folder, "runs")
    path.write_bytes(encode_table(change(pq.read_table(path))))


def fill(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    """Return a function that gives a column of a table this value in all rows."""

    def fill_column(table: pa.Table) -> pa.Table:
        column = pa.array([value] * table.num_rows)
        return table.set_column(table.column_names.index(name), name, column)

    return fill_column


def replace_by_folder(folder: Path, kind: str) -> None:
    """Make a folder in the place of a file."""
    path = get_file(folder, kind)
    path.unlink()
    path.mkdir()


HOSTILE: dict[str, Callable[[Path], object]] = {
    "no marker": lambda folder: (folder / "store.json").unlink(),
    "deep marker": lambda folder: (folder / "store.json").write_bytes(
        b'{"format":' + b"[" * 100_000
    ),
    "other format": lambda folder: (folder / "store.json").write_text('{"format": 99}'),
    "empty run": lambda folder: get_file(folder, "runs").write_bytes(b""),
    "no table": lambda folder: get_file(folder, "runs").write_bytes(b"PAR1PAR1"),
    "no rows": lambda folder: change_table(folder, lambda table: table.slice(0, 0)),
    "no losses": lambda folder: change_table(folder, lambda table: table.drop_columns(["loss"])),
    "text as loss": lambda folder: change_table(folder, fill("loss", "0.5")),
    "key of no run": lambda folder: change_table(folder, fill("key", "../../EVIL")),
    "other losses": lambda folder: change_table(folder, fill("loss", -1.0)),
    "folder as run": lambda folder: replace_by_folder(folder, "runs"),
    "text among runs": lambda folder: (folder / "runs" / "my notes.parquet").write_text("notes"),
    "other failure": lambda folder: get_file(folder, "failures").write_text('{"reason": "bored"}'),
    "short plan": lambda folder: get_file(folder, "experiments").write_text('{"seed": [[0]]}'),
    "list as method": lambda folder: get_file(folder, "methods").write_text("[]"),
}
"""Functions that damage a store, whose folder they get, each in its way, by a label."""


@pytest.mark.parametrize("damage", HOSTILE.values(), ids=HOSTILE)
def test_hostile_store_is_not_merged(intact_store, store_copy, call_command, damage):
    """`merge` prints one line, within two seconds, and makes no folder.

    The intact store is merged, too, which has the same runs.
    """
    damage(store_copy)
    merged = store_copy.with_name("merged")
    start = time.perf_counter()

    exit_code, errors = call_command("merge", str(merged), str(intact_store), str(store_copy))

    seconds = time.perf_counter() - start
    assert exit_code == FAILURE
    (line,) = errors.splitlines()
    assert line.startswith("error: ")
    assert seconds < MAX_SECONDS
    assert not merged.exists()
