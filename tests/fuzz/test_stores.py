"""Result stores of unknown origin: whatever is in them, there is one clear error, and no harm."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hpobench_ordered.experiment._identity import MAX_RUNS
from hpobench_ordered.experiment._segments import (
    RUN_METADATA,
    encode_folded,
    folded_name,
    load_segment,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.cli import main
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment import _journal
from hpobench_ordered.experiment.failures import Failure, Reason
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.store import Store

MEGABYTES = 10**6
PLACE = st.floats(0, 1, exclude_max=True)
KINDS = ("runs", "folded", "failures", "experiments")
fuzzed = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
CELL = {
    "benchmark": "newsvendor@1",
    "surrogate": "table",
    "method": "random-search",
    "method_version": "1",
    "seed": 0,
    "protocol": "ordered()",
}


@pytest.fixture(scope="module", autouse=True)
def unsynced() -> Iterator[None]:
    """Nothing here outlives a crash of the machine; waiting for the disk takes most of the time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something of everything."""
    folder: Path = tmp_path_factory.mktemp("whole") / "store"
    wanted: dict[str, Any] = {
        "benchmarks": ["newsvendor", "forrester"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=3, tasks=2),
        "folder": folder,
    }
    hbo.run(seeds=range(2), **wanted)
    Store(folder).fold()
    hbo.run(seeds=[2], **wanted)
    failed = CELL | {"method": "mine", "method_version": "0123"}
    Store(folder).records.write_failure(
        Failure(key=key_of(failed), reason=Reason.RAISED, message="out of ideas", **failed)  # type: ignore[arg-type]
    )
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "store"


@pytest.fixture
def damaged(whole: Path, folder: Path) -> Path:
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
    for step in (_read, _configurations, _look, _merge, _fold):
        try:
            step(folder)
        except StoreError as error:
            assert str(folder) in str(error)
            assert len(str(error).splitlines()) == 1
            str(error).encode()
            problems.append(str(error))
    return problems[0] if problems else ""


def _read(folder: Path) -> None:
    store = Store(folder)
    frame = store.read()
    assert set(frame["key"]) == store.keys() == store.cells().keys()
    assert (frame["trial"] >= 1).all()
    store.digest()


def _configurations(folder: Path) -> None:
    store = Store(folder)
    by_benchmark: dict[str, list[str]] = {}
    for key, cell in store.cells().items():
        by_benchmark.setdefault(cell["benchmark"], []).append(key)
    for keys in by_benchmark.values():
        assert set(store.configurations(keys)["key"]) == set(keys)


def _look(folder: Path) -> None:
    store = Store(folder)
    found = overview(store)
    assert found.counts().to_numpy().size >= 0
    json.dumps([list(found.sessions), found.runs.to_dict("records")], allow_nan=False).encode()
    for failure in store.failures().values():
        failure.message.encode()
    timings = store.records.timings()
    assert np.isfinite(timings[["seconds", "suggestions"]].to_numpy(float)).all()
    store.records.in_progress(alive=True)


def _merge(folder: Path) -> None:
    """What was merged can be read, even if merging stopped."""
    into = folder.with_name("merged")
    try:
        hbo.merge_stores(into, [folder])
    finally:
        if into.exists() and Store(into).keys():
            Store(into).read()
            overview(Store(into))


def _fold(folder: Path) -> None:
    before = Store(folder).keys()
    Store(folder).fold()
    assert Store(folder).keys() == before


def files(folder: Path, *kinds: str) -> list[Path]:
    return [path for kind in kinds for path in sorted((folder / kind).iterdir())]


def single(folder: Path) -> Path:
    """A file of one run."""
    return files(folder, "runs")[0]


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table], **options: Any) -> None:
    """Change the table of a file; what it says of itself stays."""
    metadata = pq.read_schema(path).metadata
    table = change(pq.read_table(path).replace_schema_metadata())
    pq.write_table(table.replace_schema_metadata(metadata), path, **options)


def redescribe(path: Path, change: Callable[[Any], Any]) -> None:
    """Change what a file says of itself."""
    table = pq.read_table(path)
    content = change(json.loads(table.schema.metadata[RUN_METADATA]))
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    pq.write_table(table.replace_schema_metadata({RUN_METADATA: text}), path)


def with_column(name: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    """Put other values in the place of a column."""
    return lambda table: table.set_column(
        table.column_names.index(name), name, values(table[name]) if callable(values) else values
    )


def test_the_whole_store_is_accepted(damaged: Path) -> None:
    assert use(damaged) == ""
    assert len(Store(damaged).keys()) == 6


# -- bytes -----------------------------------------------------------------------------------------


@fuzzed
@given(kind=st.sampled_from(KINDS), which=st.integers(0, 9), where=PLACE, bits=st.integers(1, 255))
def test_changed_bytes(
    whole: Path, folder: Path, kind: str, which: int, where: float, bits: int
) -> None:
    damaged = copied(whole, folder)
    digest = Store(whole).digest()
    paths = files(damaged, kind)
    path = paths[which % len(paths)]
    data = bytearray(path.read_bytes())
    data[int(where * len(data))] ^= bits
    path.write_bytes(data)
    if use(damaged) == "":
        # Page headers and statistics may change without a trace, what is read may not.
        assert Store(damaged).digest() == digest


@fuzzed
@given(kind=st.sampled_from(KINDS), which=st.integers(0, 9), where=PLACE)
def test_truncated_files(whole: Path, folder: Path, kind: str, which: int, where: float) -> None:
    damaged = copied(whole, folder)
    paths = files(damaged, kind)
    path = paths[which % len(paths)]
    data = path.read_bytes()
    path.write_bytes(data[: int(where * len(data))])
    assert path.name in use(damaged)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_swapped_files(whole: Path, damaged: Path, kind: str, other: str) -> None:
    """A file of another run, or of another kind, under this one's name."""
    path = files(damaged, kind)[0]
    theirs = [p for p in files(whole, other) if p.name != path.name]
    if theirs:
        path.write_bytes(theirs[-1].read_bytes())
        assert path.name in use(damaged)


@pytest.mark.parametrize(("kind", "other"), [("runs", "folded"), ("folded", "runs")])
def test_files_in_the_wrong_folder(damaged: Path, kind: str, other: str) -> None:
    path = files(damaged, kind)[0]
    path.rename(damaged / other / path.name)
    assert path.name in use(damaged)


# -- tables ----------------------------------------------------------------------------------------

WRONG_TABLES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "no rows": lambda t: t.slice(0, 0),
    "a row less": lambda t: t.slice(1),
    "a column less": lambda t: t.drop_columns(["loss"]),
    "a column more": lambda t: t.append_column("more", t["loss"]),
    "a column twice": lambda t: t.append_column("loss", t["loss"]),
    "another order": lambda t: t.select(list(reversed(t.column_names))),
    "text for a number": with_column("value", lambda c: c.cast(pa.string())),
    "wide": with_column("trial", lambda c: c.cast(pa.int64())),
    "bytes": with_column("task_name", lambda c: c.cast(pa.binary())),
    "nested": with_column("loss", lambda c: pa.array([[x] for x in c.to_pylist()])),
    "an object": with_column("config.price_0", lambda c: pa.array([{"a": 1}] * len(c))),
    "null": with_column("loss", lambda c: pa.nulls(len(c))),
    "a null": with_column("loss", lambda c: pa.array([None, *c.to_pylist()[1:]])),
    "dates": with_column("config.price_0", lambda c: c.cast(pa.timestamp("s"))),
    "trials from 0": with_column("trial", lambda c: pa.array([0, 1, 2] * 2, pa.int32())),
    "a trial twice": with_column("trial", lambda c: pa.array([1, 2, 2] * 2, pa.int32())),
    "a task twice": with_column("task", lambda c: pa.array([0] * 6, pa.int32())),
    "no such task": with_column("task", lambda c: pa.array([-1] * 3 + [0] * 3, pa.int32())),
    "names of a task": with_column("task_name", lambda c: pa.array(["a", "b", "a"] * 2)),
    "a long text": with_column("optimiser", lambda c: pa.array(["x" * 10**6] * 6)),
    "several lines": with_column("optimiser", lambda c: pa.array(["x\n\x1b[2J"] * 6)),
}


@pytest.mark.parametrize("change", WRONG_TABLES.values(), ids=WRONG_TABLES)
def test_wrong_tables(damaged: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = newsvendor(damaged)
    rewrite(path, change)
    assert path.name in use(damaged)


def newsvendor(folder: Path) -> Path:
    """A file of one run on newsvendor: two tasks of three trials."""
    cells = Store(folder).cells()
    return next(p for p in files(folder, "runs") if "newsvendor" in cells[p.stem]["benchmark"])


def test_text_that_is_none(damaged: Path) -> None:
    """Bytes that are not UTF-8."""
    bad = pa.array([b"\xff\xfe"] * 6)
    text = pa.Array.from_buffers(pa.string(), 6, bad.buffers())
    path = newsvendor(damaged)
    rewrite(path, with_column("optimiser", text))
    assert path.name in use(damaged)


def test_values_may_be_anything(damaged: Path) -> None:
    odd = pa.array([np.nan, np.inf, -np.inf] * 2)
    rewrite(newsvendor(damaged), lambda t: with_column("value", odd)(with_column("loss", odd)(t)))
    for step in (_read, _configurations, _look, _merge):
        step(damaged)


@pytest.mark.usefixtures("bounded")
def test_a_small_file_of_many_rows(damaged: Path) -> None:
    path = newsvendor(damaged)
    schema = pq.read_schema(path)
    rows = 7 * 10**6
    one = pq.read_table(path).slice(0, 1)
    part = one.take(pa.array(np.zeros(10**6, dtype=np.int64)))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(rows // 10**6):
            writer.write_table(part)
    assert path.stat().st_size < MEGABYTES
    assert "announces 7000000 trials" in use(damaged)


@pytest.mark.usefixtures("bounded")
def test_one_long_text_many_times(damaged: Path) -> None:
    path = newsvendor(damaged)
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(10**6, dtype=np.int32)), ["x" * 100_000]
    )
    one = pq.read_table(path).slice(0, 1)
    many = one.take(pa.array(np.zeros(10**6, dtype=np.int64))).replace_schema_metadata()
    coded = with_column("optimiser", text)(many)
    pq.write_table(coded, path, compression="zstd", store_schema=False)
    assert pq.read_schema(path).field("optimiser").type == pa.string()
    assert path.stat().st_size < MEGABYTES
    assert "too long" in use(damaged)


# -- what files say of themselves ------------------------------------------------------------------

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, 1e308, -1, 2**63, 2**64, "\ud800", "../../x", "a\nb"])
    | st.floats()
    | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = content.items() if isinstance(content, dict) else ()
    for key, value in enumerate(content) if isinstance(content, list) else items:
        yield from places(value, (*path, key))


def put(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    holder = {"": content}
    parent: Any = holder
    for key in ("", *path)[:-1]:
        parent = parent[key]
    parent[("", *path)[-1]] = value
    return holder[""]


@settings(parent=fuzzed, max_examples=25)
@given(
    kind=st.sampled_from([*KINDS, "store.json", "sessions.jsonl", "timings.jsonl", "running"]),
    data=st.data(),
)
def test_any_json_in_any_place(whole: Path, folder: Path, kind: str, data: st.DataObject) -> None:
    damaged = copied(whole, folder)
    value = data.draw(ANY_JSON)

    def change(content: Any) -> Any:
        return put(content, data.draw(st.sampled_from(list(places(content)))), value)

    if kind == "running":
        (damaged / kind / f"{'0' * 20}.json").write_text(json.dumps(value))
    elif kind in ("runs", "folded"):
        redescribe(files(damaged, kind)[0], change)
    else:
        path = damaged / kind if "." in kind else files(damaged, kind)[0]
        lines = [json.loads(line) for line in path.read_text().split("\n\n")]
        path.write_text("\n".join(json.dumps(change(line)) for line in lines))
    use(damaged)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"{",
        b"[" * 100_000 + b"]" * 100_000,
        b"[" + b"[]," * 10**7 + b"1]",
        b"[" + b'"ab",' * 10**5 + b"1]",
        b'{"format": 3, "version": "0.1.0", "runs": []}',
        b'{"format": 3, "version": "0.1.0", "runs": {}}',
        b'{"format": 3, "version": "0.1.0", "runs": [{"key": []}]}',
        b'{"format": 3, "version": "0.1.0"}',
    ],
    ids=range(9),
)
@pytest.mark.parametrize("kind", ["folded", "experiments", "failures", "store.json"])
def test_hostile_json(damaged: Path, kind: str, text: bytes) -> None:
    if kind == "store.json":
        is_marker = b"0.1.0" in text
        (damaged / kind).write_bytes(text)
        assert ("store.json" in use(damaged)) is not is_marker
        return
    path = files(damaged, kind)[0]
    if path.suffix == ".json":
        path.write_bytes(text)
    else:
        redescribe(path, lambda content: text)
    assert path.name in use(damaged)


@pytest.mark.parametrize("name", ["../../x", "x", "0" * 20, "A" * 20, ".." + "0" * 18, ""])
def test_keys_that_are_none(damaged: Path, name: str) -> None:
    """Keys are names of files, so they must be those of the runs."""
    (path,) = files(damaged, "failures")
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"key": name}))
    assert path.name in use(damaged)
    path.unlink()
    folded = files(damaged, "folded")[0]
    redescribe(folded, lambda c: put(c, ("runs", 0, "key"), name))
    assert folded.name in use(damaged)
    assert not (damaged.parent / "x.json").exists()


def test_runs_that_are_others(damaged: Path) -> None:
    """A folded file whose runs, name and key column agree, but not with what the runs are."""
    folded = files(damaged, "folded")[0]
    segment, table = load_segment(folded)
    half = table.num_rows // 2
    keys = list(segment.keys)
    data = encode_folded(
        {keys[0]: table.slice(half), keys[1]: table.slice(0, half)},
        {keys[0]: segment.cells[keys[1]], keys[1]: segment.cells[keys[0]]},
    )
    folded.write_bytes(data)
    assert "another key" in use(damaged)
    made_up = {"0" * 19 + str(i): table.slice(i * half, half) for i in range(2)}
    folded.unlink()
    other = folded.with_name(folded_name(made_up))
    cells = dict(zip(made_up, segment.cells.values(), strict=True))
    other.write_bytes(encode_folded(made_up, cells))
    assert "another key" in use(damaged)


# -- experiments, sessions and timings -------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
def test_an_experiment_of_very_many_runs(damaged: Path) -> None:
    grid: dict[str, Any] = {
        "benchmarks": [{"benchmark": str(i), "surrogate": ""} for i in range(1000)],
        "methods": [{"method": str(i), "method_version": ""} for i in range(1000)],
        "seeds": list(range(1000)),
        "protocols": [{"protocol": "ordered()"}],
    }
    with pytest.raises(StoreError, match=f"at most {MAX_RUNS} runs"):
        Store(damaged).records.write_experiment(grid)
    name = _written(damaged, grid)
    assert f"more than {MAX_RUNS} runs" in use(damaged)
    (damaged / "experiments" / name).unlink()
    for i in range(3):  # each of them would do
        _written(damaged, grid | {"benchmarks": [{"benchmark": str(i), "surrogate": ""}]})
    assert f"more than {MAX_RUNS} runs" in use(damaged)


def _written(folder: Path, grid: Mapping[str, Any]) -> str:
    """Write an experiment under its right name, as whoever means harm would."""
    import hashlib

    text = json.dumps(grid, sort_keys=True, indent=1)
    name = f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"
    (folder / "experiments" / name).write_text(text)
    return name


SESSION_NAMES = st.sampled_from(["started", "experiment", "packages", "memory", "cores", "x"])


@fuzzed
@given(st.lists(st.dictionaries(SESSION_NAMES, ANY_JSON), max_size=3))
def test_any_sessions(whole: Path, folder: Path, sessions: list[Any]) -> None:
    """They are shown, so they may be left out, but may not be in the way."""
    damaged = copied(whole, folder)
    (damaged / "sessions.jsonl").write_text("\n".join(map(json.dumps, sessions)))
    assert use(damaged) == ""


@pytest.mark.usefixtures("bounded")
def test_hostile_journals(damaged: Path) -> None:
    good = (damaged / "timings.jsonl").read_bytes().split(b"\n\n")[0]
    known = json.loads(good)["key"]
    path = damaged / "timings.jsonl"
    long = b'{"key": "' + b"x" * 50 * MEGABYTES + b'"}'
    wrong = good.replace(b'"seconds": ', b'"seconds": "x", "": ')
    path.write_bytes(b"\n".join([long, b"[" * 60_000, b"\xff", b"null", b"1" * 5000, wrong, good]))
    assert use(damaged) == ""
    assert list(Store(damaged).records.timings()["key"]) == [known]
    path.write_bytes(b"")
    os.truncate(path, _journal.MAX_JOURNAL + 1)  # without taking any room
    assert "timings.jsonl is damaged: it is larger than" in use(damaged)


# -- folders, links and pipes ----------------------------------------------------------------------

EVERY = (*KINDS, "store.json", "sessions.jsonl", "timings.jsonl")


def replaced(folder: Path, kind: str) -> Path:
    """A file of that kind, removed."""
    path = folder / kind if "." in kind else files(folder, kind)[0]
    path.unlink()
    return path


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes")
@pytest.mark.parametrize("kind", [*EVERY, "running"])
def test_a_pipe_is_not_waited_for(damaged: Path, kind: str) -> None:
    if kind == "running":
        os.mkfifo(damaged / kind / f"{'0' * 20}.json")
        assert use(damaged) == ""
        return
    path = replaced(damaged, kind)
    os.mkfifo(path)
    assert f"{path.name} is damaged: it is not a regular file" in use(damaged)
    if kind == "sessions.jsonl":
        with pytest.raises(StoreError, match="cannot write"):
            Store(damaged).records.write_session({})


@pytest.mark.parametrize("kind", EVERY)
def test_a_folder_is_no_file(damaged: Path, kind: str) -> None:
    path = replaced(damaged, kind)
    path.mkdir()
    assert f"{path.name} is damaged: it is not a regular file" in use(damaged)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("kind", EVERY)
def test_links_out_of_the_folder(whole: Path, damaged: Path, kind: str) -> None:
    path = replaced(damaged, kind)
    path.symlink_to(whole / path.relative_to(damaged))
    assert f"{path.name} is damaged: it is not a regular file" in use(damaged)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
@pytest.mark.parametrize("kind", [*KINDS, "running"])
def test_folders_that_are_links_or_files(whole: Path, damaged: Path, kind: str) -> None:
    shutil.rmtree(damaged / kind)
    (damaged / kind).symlink_to(whole / kind)
    assert f"{kind} is a link" in use(damaged)
    assert len(files(whole, "runs")) == 2
    (damaged / kind).unlink()
    (damaged / kind).write_text("")
    assert f"{kind} cannot be read" in use(damaged)


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_nothing_is_written_through_links(damaged: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    store, key = Store(damaged), "0" * 20
    (damaged / "running" / f"{key}.json").symlink_to(secret)
    with store.records.running(key):
        assert secret.read_text() == "mine"
    (damaged / "sessions.jsonl").unlink()
    (damaged / "sessions.jsonl").symlink_to(secret)
    with pytest.raises(StoreError, match="cannot write"):
        store.records.write_session({})
    assert secret.read_text() == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything can be read")
@pytest.mark.parametrize("kind", EVERY)
def test_unreadable_files(damaged: Path, kind: str) -> None:
    path = damaged / kind if "." in kind else files(damaged, kind)[0]
    path.chmod(0)
    assert path.name in use(damaged)


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "store.json"])
@pytest.mark.parametrize("command", ["status", "merge", "report"])
def test_commands_say_one_line(  # type: ignore[no-untyped-def]
    damaged: Path, tmp_path: Path, monkeypatch, capsys, command: str, kind: str
) -> None:
    path = damaged / kind if "." in kind else files(damaged, kind)[0]
    path.write_bytes(b"{\x00\n" * 9)
    into = [str(tmp_path / "all")] if command == "merge" else []
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("sys.argv", ["hpobench-ordered", command, *into, str(damaged)])
    with pytest.raises(SystemExit) as ended:
        main()
    _, err = capsys.readouterr()
    assert ended.value.code == 1
    assert err.startswith("error: ") and len(err.splitlines()) == 1
    assert path.name in err
