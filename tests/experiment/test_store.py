"""Stores: packing, damage, merging, and what is shown of runs."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import DamagedFilesWarning, ExperimentError, StoreError
from hpobench_ordered.experiment import store as store_module
from hpobench_ordered.experiment._run_file import encode_runs
from hpobench_ordered.experiment.overview import State, make_overview
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import (
    cells_of_grid,
    grid_of_cells,
    key_of,
    plan,
    select_shard,
)
from hpobench_ordered.experiment.records import Failure, Reason
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.methods.random_search import RandomSearch


@pytest.fixture(scope="module")
def cells():
    """Sixteen short runs: two methods, four seeds, two benchmarks of different hyperparameters."""
    return plan(
        benchmarks=["newsvendor", "forrester"],
        methods=["random-search", "simple-previous"],
        seeds=range(4),
        protocol=hbo.Ordered(trials=3, tasks=2),
    )


@pytest.fixture(scope="module")
def original_store(cells, tmp_path_factory) -> Store:
    """A store of the sixteen runs of `cells`, with a file a run."""
    store = Store(tmp_path_factory.mktemp("stores") / "original")
    run_cells(cells, store)
    store.records.write_experiment(grid_of_cells(cells))
    return store


@pytest.fixture
def store(original_store, tmp_path) -> Store:
    """A copy of `original_store`, sixteen runs in a file each, for a test to change."""
    return Store(shutil.copytree(original_store.folder, tmp_path / "store"))


@pytest.fixture
def packed_store(store) -> Store:
    """A copy of `original_store` whose sixteen runs are in one file a benchmark."""
    store.compact()
    return store


KEY_LENGTH = 20
"""Names of files are KEY-HASH.parquet and KEY-HASH.json: of a run, and of its content."""
UNUSED_KEY = "0" * KEY_LENGTH
"""The key of no run in any of the stores."""


def single_files(store: Store) -> list[Path]:
    return sorted((store.folder / "runs").iterdir())


def packed_files(store: Store) -> list[Path]:
    return sorted((store.folder / "packed").iterdir())


def count_files(store: Store) -> tuple[int, int]:
    """Count the files of one run each, and the packed files of many runs."""
    return len(single_files(store)), len(packed_files(store))


def read_contents(store: Store) -> dict[str, bytes]:
    """Read the content of every file of a store, by its path there."""
    paths = [path for path in store.folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(store.folder)): path.read_bytes() for path in paths}


def make_failure(seed: int = 0, **changes: Any) -> Failure:
    """Make a failed run of a method `mine`, of which no store here has finished runs."""
    identity = {
        "benchmark": "newsvendor@1",
        "surrogate": "table",
        "method": "mine",
        "method_version": "1",
        "seed": seed,
        "protocol": "ordered()",
    }
    fields = {"key": key_of(identity), "reason": Reason.RAISED, "message": "out of ideas"}
    return Failure(**(identity | fields | changes))


def make_store(folder: Path) -> Store:
    store = Store(folder)
    store.prepare()
    return store


def add_to_losses(table: pa.Table, change: float) -> pa.Table:
    """Copy a table of trials with changed losses."""
    place = table.column_names.index("loss")
    return table.set_column(place, "loss", pc.add(table["loss"], change))


def replace_run(path: Path, table: pa.Table) -> Path:
    """Replace a file of runs; its new name, KEY-HASH.parquet, fits the new content."""
    hash_and_suffix, data = encode_runs(table)
    key, dash, _ = path.name.rpartition("-")
    path.unlink()
    changed = path.with_name(f"{key}{dash}{hash_and_suffix}")
    changed.write_bytes(data)
    return changed


# Packing


def test_packing_leaves_one_file_a_benchmark(store):
    """The store has sixteen runs, each in a file, on two benchmarks."""
    runs_packed = store.compact()
    single, packed = count_files(store)
    assert runs_packed == 16
    assert (single, packed) == (0, 2)


def test_packing_again_changes_no_file(packed_store):
    before = read_contents(packed_store)
    assert packed_store.compact() == 0
    assert read_contents(packed_store) == before


def test_few_files_are_not_packed(store):
    """The store has sixteen runs, each in a file: fewer than are asked for."""
    runs_packed = store.compact(at_least=17)
    single, packed = count_files(store)
    assert runs_packed == 0
    assert (single, packed) == (16, 0)


def test_packed_runs_have_same_trials(original_store, packed_store):
    assert packed_store.read().equals(original_store.read())


def test_one_packed_run_is_read(cells, original_store, packed_store):
    key = cells[0].key
    trials = original_store.read()
    expected = trials[trials["key"] == key].reset_index(drop=True)
    pd.testing.assert_frame_equal(packed_store.read([key]), expected, check_categorical=False)


def test_packed_runs_have_same_configurations(cells, original_store, packed_store):
    keys = [cells[0].key]
    assert packed_store.configurations(keys).equals(original_store.configurations(keys))


def test_packed_runs_have_same_digest(original_store, packed_store):
    assert packed_store.digest() == original_store.digest()


def test_packed_runs_have_same_identities(cells, packed_store):
    assert packed_store.cells() == {cell.key: cell.describe() for cell in cells}
    assert packed_store.keys() == {cell.key for cell in cells}


def test_store_has_packed_runs(cells, packed_store):
    assert packed_store.has(cells[0].key)
    assert not packed_store.has(UNUSED_KEY)


def test_store_has_single_runs(cells, store):
    assert store.has(cells[0].key)


def test_store_has_failed_runs(store):
    failure = make_failure()
    store.records.write_failure(failure)
    assert store.has(failure.key)


def test_identities_are_read_without_plan(cells, store):
    """From the files of runs, where the plans of experiments, which tell them, are missing."""
    shutil.rmtree(store.folder / "experiments")
    assert store.cells() == {cell.key: cell.describe() for cell in cells}


def test_files_with_room_are_packed_again(original_store, tmp_path, monkeypatch):
    """Packed after each run: a packed file with fewer than three runs takes further ones.

    Three is the limit of this test; there are eight runs on each of two benchmarks.
    """
    monkeypatch.setattr(store_module, "MAX_PACKED_RUNS", 3)
    store = make_store(tmp_path / "store")
    for path in single_files(original_store):
        shutil.copy(path, store.folder / "runs")
        store.compact()
    single, packed = count_files(store)
    assert single == 0
    assert packed <= 2 * 4  # three files would do for the runs on a benchmark
    assert store.digest() == original_store.digest()


SCRIPT_THAT_PACKS = """
import sys
from pathlib import Path

from hpobench_ordered.experiment.store import Store

store = Store(Path(sys.argv[1]))
store.compact()
print(len(store.read()))
"""
"""Packs the runs of a store, and prints how many trials it then has."""


@pytest.mark.slow
def test_several_processes_pack_at_once(original_store, store):
    command = [sys.executable, "-c", SCRIPT_THAT_PACKS, str(store.folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert outputs == [f"{len(original_store.read())}\n"] * 3
    assert store.digest() == original_store.digest()


def test_runs_are_packed_while_read(cells, original_store, store, monkeypatch):
    """Another process packs all runs, into two files, before the second of them is opened."""
    read_runs = store_module.read_runs
    opened: list[Path] = []

    def pack_before_second_file(file, names=None):
        opened.append(file.path)
        if len(opened) == 2:
            store.compact()
        return read_runs(file, names)

    monkeypatch.setattr(store_module, "read_runs", pack_before_second_file)
    trials = store.read(cell.key for cell in cells)

    single, packed = count_files(store)
    assert trials.equals(original_store.read())
    assert (single, packed) == (0, 2)


@pytest.fixture
def interrupt_removal(monkeypatch):
    """A function that makes the removal of files raise `KeyboardInterrupt` after some files."""

    def interrupt_after(removals: int) -> None:
        removed: list[Path] = []

        def unlink(path, missing_ok=False):
            if len(removed) == removals:
                raise KeyboardInterrupt
            removed.append(path)
            os.unlink(path)  # noqa: PTH108 - that of Path is replaced

        monkeypatch.setattr(Path, "unlink", unlink)

    return interrupt_after


@pytest.mark.parametrize("removals", [0, 2])
def test_interrupted_packing_loses_nothing(original_store, store, interrupt_removal, removals):
    """Packing writes two files, and then removes those of the sixteen runs."""
    interrupt_removal(removals)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    single, packed = count_files(store)
    assert (single, packed) == (16 - removals, 2)
    assert store.digest() == original_store.digest()


def test_interrupted_packing_continues(original_store, store, interrupt_removal, monkeypatch):
    """After it was interrupted when two files were removed; the runs are on two benchmarks."""
    interrupt_removal(2)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    monkeypatch.undo()  # files can be removed again

    store.compact()

    single, packed = count_files(store)
    assert (single, packed) == (0, 2)
    assert store.digest() == original_store.digest()


def test_wrongly_written_file_replaces_nothing(store, monkeypatch):
    """Packing checks what it wrote, here without its last nine bytes, before it removes runs."""
    write = store_module.write_whole

    def write_without_end(path, data):
        return write(path, data[:-9])

    monkeypatch.setattr(store_module, "write_whole", write_without_end)
    with pytest.raises(StoreError, match="damaged"):
        store.compact()
    # No run was removed.
    assert len(single_files(store)) == 16


# Damage


def damage_content(store: Store) -> Path:
    """Cut off the last byte of the first run; return its file."""
    path = single_files(store)[0]
    path.write_bytes(path.read_bytes()[:-1])
    return path


def rename_to_other_run(store: Store) -> Path:
    """Put the first run in the place of the second, under the second's key; return its file."""
    first, second, *_ = single_files(store)
    second.unlink()
    key_of_second = second.name[:KEY_LENGTH]
    rest_of_name = first.name[KEY_LENGTH:]
    return first.rename(first.with_name(key_of_second + rest_of_name))


DAMAGES = {
    "content": (damage_content, "its content"),
    "name": (rename_to_other_run, "its name is that of another run"),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_run_is_named(store, damage, reason):
    """The content of a run's file was cut off, or the file was renamed."""
    path = damage(store)
    key = path.name[:KEY_LENGTH]
    with pytest.raises(StoreError, match=f"{path.name} is damaged .{reason}"):
        store.read([key])


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_run_is_repeated(cells, original_store, store, damage, reason):
    """The content of a run's file was cut off, or the file was renamed."""
    path = damage(store)
    with pytest.warns(DamagedFilesWarning, match="1 damaged files"):
        run_cells(cells, store)
    assert store.digest() == original_store.digest()
    files_set_aside = [file.name for file in (store.folder / "damaged").iterdir()]
    assert files_set_aside == [path.name]


def damage_packed(store: Store) -> Path:
    """Cut off the last byte of a packed file; return its path."""
    path = packed_files(store)[0]
    path.write_bytes(path.read_bytes()[:-1])
    return path


def damage_failure(store: Store) -> Path:
    """Write a failure and change a letter of it, so that its name does not fit its content."""
    store.records.write_failure(make_failure())
    (path,) = (store.folder / "failures").iterdir()
    path.write_bytes(path.read_bytes().replace(b"ideas", b"iDeas"))
    return path


def move_failure_to_other_run(store: Store) -> Path:
    """Write a failure and rename its file to the key of another run."""
    store.records.write_failure(make_failure())
    (path,) = (store.folder / "failures").iterdir()
    return path.rename(path.with_name(UNUSED_KEY + path.name[KEY_LENGTH:]))


def damage_experiment(store: Store) -> Path:
    """Change the name of a method in the plan of an experiment, so that its hash is wrong."""
    (path,) = (store.folder / "experiments").iterdir()
    path.write_text(path.read_text().replace("random-search", "random-zearch"))
    return path


def make_folder_among_runs(store: Store) -> Path:
    path = store.folder / "runs" / "folder"
    path.mkdir()
    return path


ALL_DAMAGES = (
    damage_packed,
    damage_failure,
    move_failure_to_other_run,
    damage_experiment,
    make_folder_among_runs,
)


@pytest.mark.parametrize("damage", ALL_DAMAGES)
def test_damaged_file_is_named(packed_store, damage):
    """Whatever kind of file it is: of runs, failures or plans, or a folder among them."""
    path = damage(packed_store)
    with pytest.raises(StoreError, match=f"{path.name} is damaged") as caught:
        make_overview(Store(packed_store.folder))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("damage", ALL_DAMAGES)
def test_damaged_file_is_set_aside(packed_store, damage):
    """Whatever kind of file it is: of runs, failures or plans, or a folder among them."""
    path = damage(packed_store)

    (moved,) = packed_store.set_aside_damaged()

    assert moved.name == path.name
    assert packed_store.set_aside_damaged() == []
    # Now the overview can be made.
    make_overview(packed_store)


def test_two_files_of_one_name_are_set_aside(store):
    """Another damaged file comes in the place of the one that was moved."""
    path = damage_content(store)
    store.set_aside_damaged()
    path.write_text("damaged again")
    store.set_aside_damaged()
    names = sorted(moved.name for moved in (store.folder / "damaged").iterdir())
    assert names == [path.name, f"{path.name}-2"]


def test_runs_of_damaged_packed_file_are_repeated(cells, original_store, packed_store):
    damage_packed(packed_store)
    packed_store.set_aside_damaged()
    run_cells(cells, packed_store)
    assert packed_store.digest() == original_store.digest()


def test_overview_opens_no_single_run(store):
    """The names of the files say enough: the contents of all sixteen are emptied here."""
    for path in single_files(store):
        path.write_bytes(b"")
    keys_of_finished = make_overview(store).keys(State.DONE)
    assert len(keys_of_finished) == 16


def test_changed_value_changes_digest(original_store, store):
    path = single_files(store)[0]
    replace_run(path, add_to_losses(pq.read_table(path), 1e-9))
    assert store.digest() != original_store.digest()


def test_runs_of_earlier_format_have_same_digest(original_store, store):
    """Earlier files had a column of digests."""
    for path in single_files(store):
        table = pq.read_table(path)
        digests = pa.array(["0" * 32] * table.num_rows)
        replace_run(path, table.append_column("digest", digests))
    assert store.digest() == original_store.digest()


def test_failures_of_earlier_format_are_read(store):
    """Earlier files of failures had no hash in their names."""
    failure = make_failure()
    store.records.write_failure(failure)
    (path,) = (store.folder / "failures").iterdir()
    path.rename(path.with_name(f"{failure.key}.json"))
    assert store.failures() == {failure.key: failure}


def test_two_failures_of_run_count_once(store):
    """A run may fail twice, with different messages; its key is the same."""
    first = make_failure(message="first")
    second = make_failure(message="second")
    assert first.key == second.key

    store.records.write_failure(first)
    store.records.write_failure(second)

    assert list(store.failures()) == [first.key]


def test_forgotten_failure_is_removed(store):
    failure = make_failure()
    store.records.write_failure(failure)
    store.records.forget_failures([failure.key])
    assert store.failures() == {}


# The marker


@pytest.mark.parametrize("place", range(len('{"format": 6}')))
@pytest.mark.parametrize("byte", [b"\x00", b"7", b"x"])
def test_damaged_marker_can_be_deleted(original_store, store, place, byte):
    """One byte of store.json, which marks the folder as a store, is replaced by another."""
    marker = store.folder / "store.json"
    content = marker.read_bytes()
    marker.write_bytes(content[:place] + byte + content[place + 1 :])
    try:
        Store(store.folder)
    except StoreError as error:
        assert "delete it: the folder is recognised by its other files" in str(error)

    marker.unlink()
    restored = Store(store.folder)
    restored.prepare()

    assert restored.digest() == original_store.digest()
    assert marker.read_bytes() == content


def test_folder_of_other_things_is_no_store(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "events.out").write_text("")
    with pytest.raises(StoreError, match="it holds other files"):
        Store(tmp_path)


def test_file_is_no_store(tmp_path):
    path = tmp_path / "runs"
    path.write_text("{}")
    with pytest.raises(StoreError, match="not a folder"):
        Store(path)


@pytest.mark.parametrize("name", ["x\0y", "x" * 5000])
def test_impossible_folder_is_named(name):
    with pytest.raises(StoreError, match="x"):
        make_store(Path(name))


@pytest.mark.parametrize("module", ["store", "_run_file"])
def test_other_format_is_refused(cells, tmp_path, monkeypatch, module):
    """The format is that of the store as a whole, or that of a file of runs in it."""
    with monkeypatch.context() as patched:
        patched.setattr(f"hpobench_ordered.experiment.{module}.FORMAT", 7)
        store = make_store(tmp_path)
        if module == "_run_file":
            run_cells(cells[:1], store)
    with pytest.raises(StoreError, match=r"store format 7, .* with format 6"):
        Store(tmp_path).read()


# Merging


def test_different_values_are_not_merged(original_store, packed_store):
    """The packed file that is changed holds all eight runs on a benchmark."""
    path = packed_files(packed_store)[0]
    replace_run(path, add_to_losses(pq.read_table(path), 1e-9))
    with pytest.raises(StoreError, match="8 runs have two different results"):
        packed_store.merge(original_store)


def make_other_result(original_store: Store, folder: Path) -> Store:
    """Make a store with the first run of another store, but with other losses."""
    other = make_store(folder)
    first_run = pq.read_table(single_files(original_store)[0])
    other.write(add_to_losses(first_run, 1e-9))
    return other


@pytest.mark.parametrize("own_first", [True, False])
def test_two_results_of_run_are_named(original_store, tmp_path, own_first):
    """In whichever order the stores are merged."""
    other = make_other_result(original_store, tmp_path / "other")
    (run,) = other.cells().values()
    name = "{benchmark}, {method}, seed {seed} ".format(**run)
    folders = [original_store.folder, other.folder]
    if not own_first:
        folders.reverse()

    with pytest.raises(StoreError, match=name):
        hbo.merge_stores(tmp_path / "merged", folders)
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("operation", [Store.read, Store.digest, Store.compact])
def test_two_results_in_store_are_named(original_store, store, tmp_path, operation):
    """The first run is there twice, with other losses; reading, digest and packing refuse it."""
    other = make_other_result(original_store, tmp_path / "other")
    shutil.copy(single_files(other)[0], store.folder / "runs")

    with pytest.raises(StoreError, match="1 runs have two different results"):
        operation(store)

    single, packed = count_files(store)
    # No file was removed or packed.
    assert (single, packed) == (16 + 1, 0)


def write_foreign_failure(store: Store, key: str) -> None:
    """Write a failure with this key into a file whose name has another."""
    content = json.dumps({**fields_of(make_failure()), "key": key})
    (store.folder / "failures" / f"{UNUSED_KEY}.json").write_text(content)


def fields_of(failure: Failure) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in Failure.__dataclass_fields__}


@pytest.mark.parametrize("key", ["../../EVIL", "/tmp/EVIL", "0" * 20, "0" * 20 + "\n"])
def test_merging_writes_nothing_outside(original_store, store, tmp_path, key):
    """The key of a failure in another's store, which names a file, may be a path."""
    other = make_store(tmp_path / "theirs" / "other")
    write_foreign_failure(other, key)
    before = read_contents(store)
    with pytest.raises(StoreError, match="is damaged"):
        store.merge(original_store, other)
    assert read_contents(store) == before
    assert not list(tmp_path.rglob("EVIL*"))


DAMAGES_OF_OTHER = (
    damage_content,
    rename_to_other_run,
    damage_failure,
    move_failure_to_other_run,
    damage_experiment,
    make_folder_among_runs,
)


@pytest.mark.parametrize("damage", DAMAGES_OF_OTHER)
def test_refused_merge_changes_nothing(cells, store, tmp_path, damage):
    """A store of two runs and a failure refuses one with a damaged file."""
    own = make_store(tmp_path / "own")
    run_cells(cells[:2], own)
    own.records.write_failure(make_failure())
    before = read_contents(own)
    damage(store)
    with pytest.raises(StoreError, match="is damaged"):
        own.merge(store)
    assert read_contents(own) == before


def test_run_with_key_of_other_is_not_merged(cells, store, tmp_path):
    """The key of a run depends on its seed: with another one in the file, the key is wrong."""
    path = single_files(store)[0]
    run = pq.read_table(path)
    place = run.column_names.index("seed")
    other_seed = pc.add(run["seed"], 1000)
    replace_run(path, run.set_column(place, "seed", other_seed))
    with pytest.raises(StoreError, match="is not that of its run"):
        Store(tmp_path / "own").merge(store)


def test_failures_are_merged(store, tmp_path):
    """Each of two stores has one failure, of other seeds."""
    own = make_store(tmp_path / "own")
    first, second = make_failure(seed=1), make_failure(seed=2)
    own.records.write_failure(first)
    store.records.write_failure(second)

    own.merge(store)

    assert set(own.failures()) == {first.key, second.key}


def test_failure_of_finished_run_is_forgotten(cells, original_store, tmp_path):
    """The run failed in one store, and is finished in the other."""
    own = make_store(tmp_path / "own")
    identity = cells[0].describe()
    own.records.write_failure(make_failure(**identity, key=cells[0].key))

    own.merge(original_store)

    assert own.failures() == {}


@pytest.fixture
def parts(cells, tmp_path) -> list[Store]:
    """Three stores with a part of the runs each, and all with the first run.

    Each has a session, of which the last store's is the earliest; the second store is packed.
    """
    stores = [Store(tmp_path / str(number)) for number in range(3)]
    for number, store in enumerate(stores):
        run_cells([*select_shard(cells, (number, 3)), cells[0]], store)
        session = {"started": f"2026-01-0{3 - number}", "experiment": str(number)}
        store.records.write_session(session)
    stores[1].compact()
    return stores


def test_parts_have_each_run_once(cells):
    """Sixteen runs are divided into three parts."""
    parts = [select_shard(cells, (number, 3)) for number in range(3)]
    assert sorted(len(part) for part in parts) == [5, 5, 6]
    keys = [cell.key for part in parts for cell in part]
    assert sorted(keys) == sorted(cell.key for cell in cells)


def test_merged_parts_equal_whole(original_store, parts, tmp_path):
    merged = hbo.merge_stores(tmp_path / "merged", [part.folder for part in parts])
    assert merged.digest() == original_store.digest()


def test_merging_does_not_depend_on_order(parts, tmp_path):
    """Neither the runs, nor their timings, nor the sessions do."""
    folders = [part.folder for part in parts]
    merged = hbo.merge_stores(tmp_path / "merged", folders)
    reversed_merge = hbo.merge_stores(tmp_path / "reversed", reversed(folders))
    assert merged.digest() == reversed_merge.digest()
    assert merged.timings().equals(reversed_merge.timings())
    assert merged.sessions() == reversed_merge.sessions()


def test_merging_again_changes_nothing(parts, tmp_path):
    folders = [part.folder for part in parts]
    merged = hbo.merge_stores(tmp_path / "merged", folders)
    before = read_contents(merged)
    hbo.merge_stores(merged.folder, folders[1:2])
    assert read_contents(merged) == before


def test_merged_sessions_are_in_order_of_time(parts, tmp_path):
    """Part 0 began last, on 3 January, and part 2 first, on 1 January."""
    merged = hbo.merge_stores(tmp_path / "merged", [part.folder for part in parts])
    numbers_of_parts = [session["experiment"] for session in merged.sessions()]
    assert numbers_of_parts == ["2", "1", "0"]


@pytest.fixture
def store_of_two_versions(cells, tmp_path, monkeypatch) -> Store:
    """A store that version 9.9 of the package began with five runs, and this one finished."""
    store = Store(tmp_path / "versions")
    with monkeypatch.context() as patched:
        versions = {"hpobench-ordered": "9.9"}
        patched.setattr("hpobench_ordered.experiment.runner.package_versions", lambda: versions)
        run_cells(cells[:5], store)
    run_cells(cells, Store(store.folder))
    return store


def test_runs_of_other_version_are_not_repeated(store_of_two_versions):
    """Five of sixteen runs were made by version 9.9 of the package."""
    versions = store_of_two_versions.timings()["version"]
    assert len(versions) == 16
    assert (versions == "9.9").sum() == 5


def test_runs_of_two_versions_are_same(original_store, store_of_two_versions):
    merged = hbo.merge_stores(store_of_two_versions.folder, [original_store.folder])
    assert merged.digest() == original_store.digest()


# Plans


def test_grid_tells_all_cells(cells):
    """A plan is stored as a grid: the values of benchmark, method, seed and protocol."""
    identity_of_key = {cell.key: cell.describe() for cell in cells}
    assert cells_of_grid(grid_of_cells(cells)) == identity_of_key


def test_too_large_plan_is_refused(store):
    """A grid of 3000 * 3000 runs, which is small as a file."""
    axis = [[str(number), "1"] for number in range(3000)]
    planned = {
        "benchmark surrogate": axis,
        "method method_version": axis,
        "seed": [[0]],
        "protocol": [["ordered()"]],
    }
    with pytest.raises(ExperimentError, match="at most 500,000 runs"):
        store.records.write_experiment(planned)


# The state of runs

SMALL = {"benchmarks": ["newsvendor"], "protocol": hbo.Ordered(trials=2, tasks=1)}
"""Options of short runs, without methods and seeds."""


def run_shard(folder: Path, shard: tuple[int, int]) -> Store:
    """Run one shard, of some, of an experiment with four runs."""
    hbo.run(methods=["random-search"], seeds=range(4), shard=shard, folder=folder, **SMALL)
    return Store(folder)


def test_runs_of_other_shards_are_missing(tmp_path):
    """Of four runs one of two shards is run."""
    overview = make_overview(run_shard(tmp_path, (0, 2)))
    assert len(overview.keys(State.DONE)) == 2
    assert len(overview.keys(State.MISSING)) == 2


def test_counts_tell_runs_in_progress(tmp_path):
    """Of four runs two are finished, one is in progress and one is missing."""
    store = run_shard(tmp_path, (0, 2))
    missing = make_overview(store).keys(State.MISSING)
    with store.records.running(missing[0]):
        (row,) = make_overview(store).counts().to_dict("records")
    counts = {state: row[state.value] for state in State}
    assert counts == {
        State.DONE: 2,
        State.RUNNING: 1,
        State.FAILED: 0,
        State.MISSING: 1,
    }


def test_all_shards_finish_experiment(tmp_path):
    """Two shards of two runs each."""
    run_shard(tmp_path, (0, 2))
    overview = make_overview(run_shard(tmp_path, (1, 2)))
    assert len(overview.keys(State.DONE)) == 4
    assert [session["shard"] for session in overview.sessions] == ["0/2", "1/2"]
    # No run is of an earlier version of a method.
    assert overview.superseded == 0


def test_run_of_this_process_is_in_progress(tmp_path):
    store = make_store(tmp_path)
    with store.records.running(UNUSED_KEY):
        assert store.in_progress() == {UNUSED_KEY}
    assert store.in_progress() == frozenset()


@pytest.fixture(scope="module")
def id_of_ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_run_of_ended_process_is_not_in_progress(tmp_path, id_of_ended_process):
    """The mark of a run in progress has the number of its process."""
    store = make_store(tmp_path)
    with store.records.running(UNUSED_KEY):
        path = tmp_path / "running" / f"{UNUSED_KEY}.json"
        mark = json.loads(path.read_text()) | {"pid": id_of_ended_process}
        path.write_text(json.dumps(mark))
        assert store.in_progress() == frozenset()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 1}', '{"host": "a", "pid": 1e99}'])
def test_unreadable_mark_is_not_in_progress(tmp_path, content):
    """The mark of a run in progress is broken, or lacks host and process."""
    store = make_store(tmp_path)
    (tmp_path / "running" / f"{UNUSED_KEY}.json").write_text(content)
    assert store.in_progress() == frozenset()


def test_last_planned_version_of_method_counts(tmp_path):
    """The method `mine` is run in two versions, together with random search."""
    for version in ("older", "newer"):
        # The attribute `identity` of a factory tells the version of its method.
        factory = partial(RandomSearch)
        factory.identity = version  # type: ignore[attr-defined]
        methods = ["random-search", hbo.MethodSpec("mine", factory, "", "")]
        newest = hbo.run(methods=methods, seeds=[0], folder=tmp_path, **SMALL)

    overview = make_overview(newest.store)
    assert set(overview.runs["key"]) == {cell.key for cell in newest.cells}
    assert overview.superseded == 1
    # Random search, and both versions of `mine`.
    assert len(newest.store.keys()) == 3
