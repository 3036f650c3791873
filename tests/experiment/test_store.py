import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hpobench_ordered.experiment._segments import is_same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, StoreError
from hpobench_ordered.experiment import _folding
from hpobench_ordered.experiment.overview import State, overview
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import Cell, Shard, grid, grid_cells, plan
from hpobench_ordered.experiment.store import Store


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    """Short runs on two benchmarks with different hyperparameters."""
    return plan(
        benchmarks=["newsvendor", "forrester"],
        methods=["random-search", "simple-previous"],
        seeds=range(4),
        protocol=hbo.Ordered(trials=3, tasks=2),
    )


@pytest.fixture(scope="module")
def loose(cells: Sequence[Cell], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a file a run."""
    folder = tmp_path_factory.mktemp("stores") / "loose"
    run_cells(cells, Store(folder))
    return folder


def files(store: Store) -> tuple[int, int]:
    """Number of files of single runs, and of folded ones."""
    return len(list(store.runs.iterdir())), len(list(store.folded.iterdir()))


def test_folding_changes_nothing_but_the_files(cells, loose, tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    frame, digest, described = store.read(), store.digest(), store.cells()
    one = [cells[0].key]
    configurations = store.configurations(one)
    assert files(store) == (16, 0)
    assert store.fold(at_least=17) == 0
    assert store.fold() == 16
    assert files(store) == (0, 2)  # one a benchmark
    assert store.read().equals(frame)
    assert store.read(one).equals(frame[frame["key"] == one[0]].reset_index(drop=True))
    assert store.configurations(one).equals(configurations)
    assert (store.digest(), store.cells()) == (digest, described)
    assert store.keys() == {cell.key for cell in cells}
    assert store.fold() == 0


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(order=st.permutations(range(16)), steps=st.lists(st.integers(1, 9), max_size=6))
def test_folding_in_any_steps_loses_nothing(cells, loose, tmp_path_factory, order, steps) -> None:  # type: ignore[no-untyped-def]
    store = Store(tmp_path_factory.mktemp("folded"))
    store.prepare()
    left = [sorted(Store(loose).runs.iterdir())[i] for i in order]
    for step in [*steps, 16]:
        for path in left[:step]:
            shutil.copy(path, store.runs)
        left = left[step:]
        store.fold()
    assert files(store)[0] == 0
    assert store.digest() == Store(loose).digest()


def test_folding_while_others_fold(loose: Path, tmp_path: Path) -> None:
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    code = (
        "import sys; from pathlib import Path\n"
        "from hpobench_ordered.experiment.store import Store\n"
        "store = Store(Path(sys.argv[1])); store.fold(); print(len(store.read()))"
    )
    command = [sys.executable, "-c", code, str(store.folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert outputs == [f"{len(Store(loose).read())}\n"] * 3
    assert store.digest() == Store(loose).digest()


def test_nothing_is_lost_where_folding_stops(loose, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """After any number of files were removed, and before the folded one is there."""
    expected = Store(loose).digest()
    for removed in range(4):
        store = Store(shutil.copytree(loose, tmp_path / str(removed)))
        left = [removed]

        def unlink(path, missing_ok=False, left=left):  # type: ignore[no-untyped-def]
            if path.parent.name == "runs":
                left[0] -= 1
                if left[0] < 0:
                    raise KeyboardInterrupt
            os.unlink(path)  # noqa: PTH108 - that of Path is replaced

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Path, "unlink", unlink)
            store.fold()
        assert store.digest() == expected
        store.fold()
        assert store.digest() == expected
        assert files(store)[0] == 0


def test_a_folded_file_that_is_not_what_was_written_removes_nothing(
    loose, tmp_path, monkeypatch
) -> None:  # type: ignore[no-untyped-def]
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    encode = _folding.encode_folded
    monkeypatch.setattr(
        _folding, "encode_folded", lambda tables, cells: encode(tables, cells)[:-100]
    )
    with pytest.raises(StoreError, match="damaged"):
        store.fold()
    assert files(store)[0] == 16


def test_small_files_are_folded_again(cells, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Each run is written again only when its file doubles."""
    store = Store(tmp_path)
    mine = [cell for cell in cells if cell.benchmark.startswith("newsvendor")]
    for cell in mine:
        run_cells([cell], store)
        store.fold()
    assert files(store)[1] <= 4
    assert store.keys() == {cell.key for cell in mine}


def test_what_is_damaged_is_set_aside_and_made_again(cells, loose, tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    cut, swapped, linked, *_, other = sorted(store.runs.iterdir())
    cut.write_bytes(cut.read_bytes()[:-1])
    swapped.write_bytes(other.read_bytes())
    linked.unlink()
    linked.symlink_to(other)
    failure = store.folder / "failures" / "0.json"
    failure.write_text("{")
    with pytest.raises(StoreError, match=r"0\.json is damaged"):
        store.failures()
    with pytest.raises(StoreError, match=f"{cut.name} is damaged"):
        store.read()
    moved = store.set_aside_damaged()
    assert moved == [
        store.folder / "damaged" / path.name for path in (cut, swapped, linked, failure)
    ]
    assert store.set_aside_damaged() == []
    assert len(store.keys()) == 13
    run_cells(cells, store)
    assert store.digest() == Store(loose).digest()


def test_a_damaged_file_of_many_runs_is_not_set_aside(loose: Path, tmp_path: Path) -> None:
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    store.fold()
    path = next(store.folded.iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    assert store.set_aside_damaged() == []
    with pytest.raises(StoreError, match=f"{path.name} is damaged"):
        store.keys()


def test_a_run_of_another_version_is_not_set_aside(cells, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    store = Store(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("hpobench_ordered.experiment._segments.package_version", lambda: "9.9")
        run_cells(cells[:1], store)
    with pytest.raises(StoreError, match=r"by version 9\.9"):
        store.set_aside_damaged()
    assert len(store.keys()) == 1


def test_damaged_runs_are_not_merged(loose: Path, tmp_path: Path) -> None:
    store = Store(shutil.copytree(loose, tmp_path / "store"))
    path = sorted(store.runs.iterdir())[7]
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match=f"{path.name} is damaged"):
        hbo.merge_stores(tmp_path / "all", [store.folder])
    assert len(Store(tmp_path / "all").keys()) == 7
    Store(tmp_path / "all").read()


@pytest.mark.parametrize("number", [float("nan"), 1.0])
def test_same_runs(number: float) -> None:
    one = pa.table({"loss": [0.0, number, None], "optimiser": ["a", "b", "a"]})
    assert is_same(one, pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    for loss in ([0.0, 2.0, None], [0.0, number, 0.0], [0.0, number]):
        other = pa.table({"loss": loss, "optimiser": ["a", "b", "a"][: len(loss)]})
        assert not is_same(one, other)


def test_shards_are_all_of_the_plan_once(cells, loose, tmp_path) -> None:  # type: ignore[no-untyped-def]
    parts = [Shard(i, 3).of(cells) for i in range(3)]
    assert sorted(map(len, parts)) == [5, 5, 6]
    assert sorted(c.key for part in parts for c in part) == sorted(c.key for c in cells)
    stores = [Store(tmp_path / str(i)) for i in range(3)]
    for part, store in zip(parts, stores, strict=True):
        run_cells(part, store)
    stores[1].fold()
    merged = hbo.merge_stores(tmp_path / "all", [store.folder for store in stores])
    assert merged.digest() == Store(loose).digest()
    again = hbo.merge_stores(tmp_path / "all", [stores[0].folder])
    assert again.digest() == merged.digest()
    assert len(merged.records.timings()) == 16


@pytest.mark.parametrize(("index", "count"), [(2, 2), (-1, 2), (0, 0)])
def test_no_such_shard(index: int, count: int) -> None:
    with pytest.raises(ExperimentError, match=f"shard {index}/{count}"):
        Shard(index, count)


def test_merging_what_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(StoreError, match="is not a result store"):
        hbo.merge_stores(tmp_path / "all", [tmp_path / "other"])
    assert not (tmp_path / "all").exists()


def test_a_grid_is_its_cells(cells: Sequence[Cell]) -> None:
    assert grid_cells(grid(cells)) == {cell.key: cell.describe() for cell in cells}


def test_what_is_done_and_missing(tmp_path: Path) -> None:
    settings = {
        "benchmarks": ["newsvendor"],
        "methods": ["random-search"],
        "protocol": hbo.Ordered(trials=2, tasks=1),
        "folder": tmp_path,
    }
    hbo.run(seeds=range(4), shard=(0, 2), **settings)
    found = overview(Store(tmp_path))
    assert len(found.keys(State.DONE)) == len(found.keys(State.MISSING)) == 2
    with found_running(Store(tmp_path), found.keys(State.MISSING)[0]):
        now = overview(Store(tmp_path))
        (row,) = now.counts().to_dict("records")
        assert [row[state.value] for state in State] == [2, 1, 0, 1]
    hbo.run(seeds=range(4), shard=(1, 2), **settings)
    found = overview(Store(tmp_path))
    assert len(found.keys(State.DONE)) == 4
    assert [session["shard"] for session in found.sessions] == ["0/2", "1/2"]
    assert found.superseded == 0


def found_running(store: Store, key: str):  # type: ignore[no-untyped-def]
    return store.records.running(key)


def test_a_run_of_a_process_that_ended_is_not_running(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.prepare()
    code = (
        "import os, sys; from pathlib import Path\n"
        "from hpobench_ordered.experiment.store import Store\n"
        "with Store(Path(sys.argv[1])).records.running('a'): os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    assert store.records.in_progress(alive=True) == frozenset()
    assert store.records.in_progress(alive=False) == {"a"}


def test_runs_of_older_source_count_no_more(tmp_path: Path) -> None:
    settings = {
        "benchmarks": ["newsvendor"],
        "seeds": [0],
        "protocol": hbo.Ordered(trials=2, tasks=1),
        "folder": tmp_path,
    }
    for code in ("older", "newer"):
        method = hbo.MethodSpec("mine", _Source(code), "", "")
        hbo.run(methods=["random-search", method], **settings)
    found = overview(Store(tmp_path))
    assert len(found.runs) == 2
    assert found.superseded == 1
    assert len(Store(tmp_path).keys()) == 3


class _Source:
    """Random search that says what its source is."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def __call__(self, **given):  # type: ignore[no-untyped-def]
        from hpobench_ordered.methods.random_search import RandomSearch

        return RandomSearch(**given)
