"""Damaged stores: whatever became of their files, there is one clear error, and the rest stays."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.cli import main
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.records import Failure, Reason
from hpobench_ordered.experiment.store import Store

PLACE = st.floats(0, 1, exclude_max=True)
HASHED = ("runs", "packed", "experiments")
"""Folders of files whose names tell their content."""
KINDS = (*HASHED, "failures")
JOURNALS = ("sessions.jsonl", "timings.jsonl")
GARBAGE = [b"", b"\xff", b"{\x00\x1b[2J\n", b"[]", b"{}"]
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
def whole(tmp_path_factory):
    """A store with something of everything."""
    folder: Path = tmp_path_factory.mktemp("whole") / "store"
    requested: dict[str, Any] = {
        "benchmarks": ["newsvendor", "forrester"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=3, tasks=2),
        "folder": folder,
    }
    result = hbo.run(seeds=range(2), **requested)
    Store(folder).compact()
    hbo.run(seeds=[2], **requested)
    failed = result.cells[0].describe() | {"method": "mine"}
    Store(folder).records.write_failure(
        Failure(key=key_of(failed), reason=Reason.RAISED, message="out of ideas", **failed)
    )
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "store"


@pytest.fixture
def damaged(whole, folder):
    return copied(whole, folder)


def copied(source: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.with_name("merged"), ignore_errors=True)
    return Path(shutil.copytree(source, folder))


def use(folder: Path) -> str:
    """Use all of a store; what is wrong with it, or "" if nothing is.

    Any other exception than the package's own goes through.
    """
    problems = []
    for step in (_read, _look, _merge, _compact):
        try:
            step(folder)
        except StoreError as error:
            assert str(error).isprintable()
            problems.append(str(error))
    return problems[0] if problems else ""


def _read(folder: Path) -> None:
    store = Store(folder)
    assert set(store.read()["key"]) == store.keys() == store.cells().keys()
    assert len(store.configurations(list(store.keys())[:1]))


def _look(folder: Path) -> None:
    store = Store(folder)
    assert len(overview(store).runs)
    store.records.timings()
    store.records.in_progress()


def _merge(folder: Path) -> None:
    hbo.merge_stores(folder.with_name("merged"), [folder])


def _compact(folder: Path) -> None:
    before = Store(folder).keys()
    Store(folder).compact()
    assert Store(folder).keys() == before


def a_file(folder: Path, kind: str, which: int = 0) -> Path:
    if "." in kind:
        return folder / kind
    paths = sorted((folder / kind).iterdir())
    return paths[which % len(paths)]


def test_the_whole_store_is_accepted(damaged):
    assert use(damaged) == ""
    assert len(Store(damaged).keys()) == 6


@fuzzed
@given(kind=st.sampled_from(HASHED), which=st.integers(0, 9), where=PLACE, bit=st.integers(0, 7))
def test_flipped_bits(whole, folder, kind, which, where, bit):
    damaged = copied(whole, folder)
    path = a_file(damaged, kind, which)
    data = bytearray(path.read_bytes())
    data[int(where * len(data))] ^= 1 << bit
    path.write_bytes(data)
    assert f"{path.name} is damaged" in use(damaged)
    assert [moved.name for moved in Store(damaged).set_aside_damaged()] == [path.name]
    assert use(damaged) == ""


@fuzzed
@given(kind=st.sampled_from(KINDS), which=st.integers(0, 9), where=PLACE)
def test_truncated_files(whole, folder, kind, which, where):
    damaged = copied(whole, folder)
    path = a_file(damaged, kind, which)
    data = path.read_bytes()
    path.write_bytes(data[: int(where * len(data))])
    assert f"{path.name} is damaged" in use(damaged)


@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
@pytest.mark.parametrize("other", [*KINDS, "store.json"])
def test_swapped_files(whole, damaged, kind, other):
    """The content of another file under this one's name."""
    path, theirs = a_file(damaged, kind), a_file(whole, other, -1)
    if theirs.name != path.name:
        path.write_bytes(theirs.read_bytes())
        assert f"{path.name} is damaged" in use(damaged)


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("kind", [*KINDS, "store.json", *JOURNALS, "running"])
def test_garbage(damaged, kind, text):
    path = damaged / "running" / "0.json" if kind == "running" else a_file(damaged, kind)
    path.write_bytes(text)
    what = use(damaged)
    if kind in (*JOURNALS, "running"):
        assert what == ""  # they are shown, so they may lack lines, but not be in the way
    else:
        assert f"{path.name} is damaged" in what


@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
@pytest.mark.parametrize("command", ["status", "merge", "report"])
def test_commands_say_one_line(damaged, tmp_path, monkeypatch, capsys, command, kind):
    path = a_file(damaged, kind)
    path.write_bytes(b"{\x00\n" * 9)
    into = [str(tmp_path / "all")] if command == "merge" else []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["hpobench-ordered", command, *into, str(damaged)])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    if (command, kind) == ("status", "runs"):
        assert "6 done" in out  # files of one run are not opened for it
        return
    assert ended.value.code == 1
    assert err.startswith("error: ") and len(err.splitlines()) == 1
    assert path.name in err
