import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import DamagedFilesWarning, StoreError
from hpobench_ordered.experiment import store as store_module
from hpobench_ordered.experiment._run_file import encode
from hpobench_ordered.experiment.overview import State, overview
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import grid, grid_cells, part_of, plan
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.methods.random_search import RandomSearch


@pytest.fixture(scope="module")
def cells():
    """Short runs on two benchmarks with different hyperparameters."""
    return plan(
        benchmarks=["newsvendor", "forrester"],
        methods=["random-search", "simple-previous"],
        seeds=range(4),
        protocol=hbo.Ordered(trials=3, tasks=2),
    )


@pytest.fixture(scope="module")
def original(cells, tmp_path_factory):
    """A store with a file a run."""
    folder = tmp_path_factory.mktemp("stores") / "original"
    store = Store(folder)
    run_cells(cells, store)
    store.records.write_experiment(grid(cells))
    return folder


@pytest.fixture
def store(original, tmp_path):
    """A copy of it."""
    return Store(shutil.copytree(original, tmp_path / "store"))


def files(store: Store) -> tuple[int, int]:
    """Number of files of one run, and of many."""
    return len(single(store)), len(list((store.folder / "packed").iterdir()))


def single(store: Store) -> list[Path]:
    return sorted((store.folder / "runs").iterdir())


def test_compacting_changes_nothing_but_the_files(cells, store):
    frame, digest, described = store.read(), store.digest(), store.cells()
    assert grid_cells(grid(cells)) == {cell.key: cell.describe() for cell in cells}
    one = [cells[0].key]
    configurations = store.configurations(one)
    assert files(store) == (16, 0)
    assert store.compact(at_least=17) == 0
    assert store.compact() == 16
    assert files(store) == (0, 2)  # one a benchmark
    assert store.read().equals(frame)
    same = frame[frame["key"] == one[0]].reset_index(drop=True)
    pd.testing.assert_frame_equal(store.read(one), same, check_categorical=False)
    assert store.configurations(one).equals(configurations)
    assert (store.digest(), store.cells()) == (digest, described)
    assert store.keys() == {cell.key for cell in cells}
    assert store.compact() == 0


def test_compacting_again_joins_what_is_not_full(original, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "PACK", 3)
    store = Store(tmp_path / "store")
    store.prepare()
    for path in single(Store(original)):
        shutil.copy(path, store.folder / "runs")
        store.compact()
    assert files(store)[0] == 0
    assert files(store)[1] <= 8  # 8 runs on each of two benchmarks, hardly more than is needed
    assert store.digest() == Store(original).digest()


COMPACT = """
import sys; from pathlib import Path
from hpobench_ordered.experiment.store import Store
store = Store(Path(sys.argv[1])); store.compact(); print(len(store.read()))
"""


@pytest.mark.slow
def test_compacting_while_others_do(original, store):
    command = [sys.executable, "-c", COMPACT, str(store.folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert outputs == [f"{len(Store(original).read())}\n"] * 3
    assert store.digest() == Store(original).digest()


def test_a_file_that_is_packed_while_it_is_read(cells, original, store, monkeypatch):
    read_runs, opened = store_module.read_runs, []

    def disturbed(path, columns):
        opened.append(path)
        if len(opened) == 2:
            store.compact()
        return read_runs(path, columns)

    monkeypatch.setattr(store_module, "read_runs", disturbed)
    assert store.read(cell.key for cell in cells).equals(Store(original).read())
    assert files(store) == (0, 2)


@pytest.mark.parametrize("removed", [0, 2])
def test_nothing_is_lost_where_compacting_stops(original, store, monkeypatch, removed):
    left = [removed]

    def unlink(path, missing_ok=False):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        os.unlink(path)  # noqa: PTH108 - that of Path is replaced

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", unlink)
        store.compact()
    assert files(store) == (16 - removed, 2)
    assert store.digest() == Store(original).digest()
    store.compact()
    assert files(store) == (0, 2)
    assert store.digest() == Store(original).digest()


def test_a_packed_file_that_is_not_what_was_written_removes_nothing(store, monkeypatch):
    write = store_module.write_whole
    monkeypatch.setattr(store_module, "write_whole", lambda path, data: write(path, data[:-9]))
    with pytest.raises(StoreError, match="damaged"):
        store.compact()
    assert files(store)[0] == 16


def test_damaged_runs_are_noticed_and_made_again(cells, original, store):
    changed, renamed, lost = single(store)[:3]
    changed.write_bytes(changed.read_bytes()[:-1])
    lost.unlink()
    renamed = renamed.rename(renamed.with_name(lost.name[:21] + renamed.name[21:]))
    for path, why in ((changed, "its content"), (renamed, "its name is that of another run")):
        with pytest.raises(StoreError, match=f"{path.name} is damaged .{why}"):
            store.read([path.name[:20]])
    with pytest.warns(DamagedFilesWarning, match="2 damaged files"):
        run_cells(cells, store)
    assert store.digest() == Store(original).digest()
    assert files(store) == (16, 0)
    moved = (store.folder / "damaged").iterdir()
    assert {path.name for path in moved} == {changed.name, renamed.name}


def test_values_that_are_not_those_of_their_digest_are_not_merged(store, tmp_path):
    store.compact()
    path = next((store.folder / "packed").iterdir())
    table = pq.read_table(path)
    losses = pa.array([*table["loss"].to_pylist()[:-1], 0.5])
    name, data = encode(table.set_column(table.column_names.index("loss"), "loss", losses))
    path.rename(path.with_name(name)).write_bytes(data)
    with pytest.raises(StoreError, match=f"{name} is damaged .the values of run"):
        hbo.merge_stores(tmp_path / "all", [store.folder])
    assert not (tmp_path / "all").exists()


def test_what_is_damaged_is_set_aside(cells, original, store):
    store.compact()
    packed = next((store.folder / "packed").iterdir())
    packed.write_bytes(packed.read_bytes()[:-1])
    failure = store.folder / "failures" / "0.json"
    failure.write_text("{\x1b[2J")
    experiment = next((store.folder / "experiments").iterdir())
    experiment.write_text(experiment.read_text().replace("random-search", "random-zearch"))
    for use, path in ((store.keys, packed), (store.records.failures, failure)):
        with pytest.raises(StoreError, match=f"{path.name} is damaged") as caught:
            use()
        assert str(caught.value).isprintable()
    assert {path.name for path in store.set_aside_damaged()} == {
        path.name for path in (packed, failure, experiment)
    }
    assert store.set_aside_damaged() == []
    assert len(store.keys()) == 8
    run_cells(cells, store)
    assert store.digest() == Store(original).digest()


def test_looking_opens_no_file_of_one_run(store):
    for path in single(store):
        path.write_bytes(b"")
    assert len(overview(store).keys(State.DONE)) == 16
    with pytest.raises(StoreError, match="is damaged"):
        store.read()


def test_two_results_of_one_run_are_named_and_not_merged(store, tmp_path):
    path = single(store)[0]
    (cell,) = (cell for key, cell in store.cells().items() if path.name.startswith(key))
    table = pq.read_table(path).drop_columns(["digest"])
    place = table.column_names.index("loss")
    changed = table.set_column(place, "loss", pc.add(table["loss"], 1e-9))
    other = Store(tmp_path / "other")
    other.prepare()
    other.write(changed)
    said = f"{cell['benchmark']}, {cell['method']}, seed {cell['seed']} "
    for folders in ([store.folder, other.folder], [other.folder, store.folder]):
        with pytest.raises(StoreError, match=said):
            hbo.merge_stores(tmp_path / "all", folders)
        assert not (tmp_path / "all").exists()
    store.write(changed)
    assert len(store.keys()) == 16
    for use in (store.read, store.digest, store.compact):
        with pytest.raises(StoreError, match=said.strip()):
            use()
    assert files(store) == (17, 0)


def test_merging_does_not_depend_on_the_order(cells, original, tmp_path):
    parts = [part_of(cells, (i, 3)) for i in range(3)]
    assert sorted(map(len, parts)) == [5, 5, 6]
    assert sorted(c.key for part in parts for c in part) == sorted(c.key for c in cells)
    stores = [Store(tmp_path / str(i)) for i in range(3)]
    for i, (part, store) in enumerate(zip(parts, stores, strict=True)):
        run_cells([*part, cells[0]], store)
        store.records.write_session({"started": f"2026-01-0{3 - i}", "experiment": str(i)})
    stores[1].compact()
    folders = [store.folder for store in stores]
    merged = hbo.merge_stores(tmp_path / "all", folders)
    swapped = hbo.merge_stores(tmp_path / "swapped", reversed(folders))
    hbo.merge_stores(swapped.folder, [folders[1]])
    assert merged.digest() == swapped.digest() == Store(original).digest()
    assert merged.records.timings().equals(swapped.records.timings())
    assert len(merged.records.timings()) == 16
    assert merged.records.sessions() == swapped.records.sessions()
    assert [session["experiment"] for session in merged.records.sessions()] == ["2", "1", "0"]


def test_a_folder_of_other_things_is_no_store(tmp_path):
    path = tmp_path / "other" / "runs"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(StoreError, match="it holds other files"):
        hbo.merge_stores(tmp_path / "all", [path.parent])
    with pytest.raises(StoreError, match="not a folder"):
        Store(path)
    assert not (tmp_path / "all").exists()


def test_another_version_of_the_package_goes_on(cells, original, tmp_path, monkeypatch):
    store = Store(tmp_path / "store")
    with monkeypatch.context() as patched:
        versions = {"hpobench-ordered": "9.9"}
        patched.setattr("hpobench_ordered.experiment.runner.package_versions", lambda: versions)
        run_cells(cells[:5], store)
    run_cells(cells, Store(store.folder))
    assert (store.records.timings()["version"] == "9.9").sum() == 5
    assert Store(store.folder).digest() == Store(original).digest()
    assert hbo.merge_stores(store.folder, [original]).digest() == Store(original).digest()


@pytest.mark.parametrize("module", ["store", "_run_file"])
def test_another_format_is_refused(cells, tmp_path, monkeypatch, module):
    with monkeypatch.context() as patched:
        patched.setattr(f"hpobench_ordered.experiment.{module}.FORMAT", 6)
        run_cells(cells[:1], Store(tmp_path))
    with pytest.raises(StoreError, match=r"store format 6, .* with format 5"):
        Store(tmp_path).read()


SMALL = {"benchmarks": ["newsvendor"], "protocol": hbo.Ordered(trials=2, tasks=1)}


def test_what_is_done_and_missing(tmp_path):
    settings = SMALL | {"methods": ["random-search"], "folder": tmp_path}
    hbo.run(seeds=range(4), shard=(0, 2), **settings)
    store = Store(tmp_path)
    seen = overview(store)
    assert len(seen.keys(State.DONE)) == len(seen.keys(State.MISSING)) == 2
    with store.records.running(seen.keys(State.MISSING)[0]):
        (row,) = overview(store).counts().to_dict("records")
        assert [row[state.value] for state in State] == [2, 1, 0, 1]
    hbo.run(seeds=range(4), shard=(1, 2), **settings)
    seen = overview(store)
    assert len(seen.keys(State.DONE)) == 4
    assert [session["shard"] for session in seen.sessions] == ["0/2", "1/2"]
    assert seen.superseded == 0


def test_a_run_of_a_process_that_ended_is_not_running(tmp_path):
    store = Store(tmp_path)
    store.prepare()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with store.records.running("a"):
        assert store.records.in_progress() == {"a"}
        path = tmp_path / "running" / "a.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"pid": ended.pid}))
        assert store.records.in_progress() == frozenset()


def test_the_version_asked_for_last_counts(tmp_path):
    for version in ("older", "newer"):
        factory = partial(RandomSearch)
        factory.identity = version  # type: ignore[attr-defined]
        methods = ["random-search", hbo.MethodSpec("mine", factory, "", "")]
        newest = hbo.run(methods=methods, seeds=[0], folder=tmp_path, **SMALL)
    seen = overview(newest.store)
    assert set(seen.runs["key"]) == {cell.key for cell in newest.cells}
    assert (seen.superseded, len(newest.store.keys())) == (1, 3)
