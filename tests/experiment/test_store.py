"""Stores: packing, damage, merging, and what is shown of runs."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError
from itertools import chain
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
from hpobench_ordered.runtime.machine import package_versions


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
    """A store of sixteen finished runs, each in a file, and of their plan.

    Tests that change a store take a copy, `store`.
    """
    store = Store(tmp_path_factory.mktemp("stores") / "original")
    run_cells(cells, store)
    plan_of_runs = grid_of_cells(cells)
    store.records.write_experiment(plan_of_runs)
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
    """Read the content of every file of a store, by its path in the store."""
    content_of_file = {}
    for path in store.folder.rglob("*"):
        if path.is_file():
            path_in_store = str(path.relative_to(store.folder))
            content_of_file[path_in_store] = path.read_bytes()
    return content_of_file


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
    """Make a store of no runs, whose folder exists already."""
    store = Store(folder)
    store.prepare()
    return store


def add_to_losses(table: pa.Table, change: float) -> pa.Table:
    """Copy a table of trials, with a number added to each loss."""
    column = table.column_names.index("loss")
    return table.set_column(column, "loss", pc.add(table["loss"], change))


def replace_run(path: Path, table: pa.Table) -> None:
    """Replace a file of runs by one of another table.

    The name of a single run is KEY-HASH.parquet, that of packed runs is HASH.parquet. The new file
    has the hash of its own content.
    """
    hash_and_suffix, data = encode_runs(table)
    key, dash, _ = path.name.rpartition("-")
    path.unlink()
    path.with_name(f"{key}{dash}{hash_and_suffix}").write_bytes(data)


# Packing


def test_packing_leaves_one_file_a_benchmark(store):
    """The store has sixteen runs, each in a file, on two benchmarks."""
    n_runs_packed = store.compact()

    assert n_runs_packed == 16
    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (0, 2)


def test_packing_again_changes_no_file(packed_store):
    before = read_contents(packed_store)

    n_runs_packed = packed_store.compact()

    assert n_runs_packed == 0
    assert read_contents(packed_store) == before


def test_few_files_are_not_packed(store):
    """The store has sixteen runs, each in a file, but seventeen are asked for."""
    n_runs_packed = store.compact(at_least=17)

    assert n_runs_packed == 0
    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (16, 0)


def test_packed_runs_have_same_trials(original_store, packed_store):
    assert packed_store.read().equals(original_store.read())


def test_one_packed_run_is_read(cells, original_store, packed_store):
    """Of a packed file, the trials of a single run can be read."""
    key = cells[0].key
    all_trials = original_store.read()
    expected = all_trials[all_trials["key"] == key].reset_index(drop=True)

    trials = packed_store.read([key])

    # Texts are categories, of which all trials have more than those of a run.
    pd.testing.assert_frame_equal(trials, expected, check_categorical=False)


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
    """Files of runs tell what runs they are of, even if the plan of the experiment is lost."""
    shutil.rmtree(store.folder / "experiments")

    assert store.cells() == {cell.key: cell.describe() for cell in cells}


def test_files_with_room_are_packed_again(original_store, tmp_path, monkeypatch):
    """A store is packed after each run; a packed file takes further runs until it is full.

    A file is full with three runs here. Eight runs on each of two benchmarks need three files each.
    """
    monkeypatch.setattr(store_module, "MAX_PACKED_RUNS", 3)
    store = make_store(tmp_path / "store")
    for path in single_files(original_store):
        shutil.copy(path, store.folder / "runs")
        store.compact()

    n_single_files, n_packed_files = count_files(store)
    assert n_single_files == 0
    # The last file of a benchmark may have been begun before all others were full.
    most_files_of_benchmark = 3 + 1
    assert n_packed_files <= 2 * most_files_of_benchmark
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
    """Three processes pack the same store, and print how many trials it then has."""
    command = [sys.executable, "-c", SCRIPT_THAT_PACKS, str(store.folder)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]

    outputs = [process.communicate(timeout=120)[0] for process in processes]

    n_trials = len(original_store.read())
    assert [int(output) for output in outputs] == [n_trials] * 3
    assert store.digest() == original_store.digest()


def test_runs_are_packed_while_read(cells, original_store, store, monkeypatch):
    """While a store is read, all its runs are packed into two files, as by another process.

    This happens just before the second file of a run is read, which does not exist any more.
    """
    read_runs = store_module.read_runs
    paths_read: list[Path] = []

    def read_and_pack_before_second_file(file, names=None):
        """Read a file of runs as usual, but pack the store before the second one."""
        paths_read.append(file.path)
        if len(paths_read) == 2:
            store.compact()
        return read_runs(file, names)

    monkeypatch.setattr(store_module, "read_runs", read_and_pack_before_second_file)

    trials = store.read(cell.key for cell in cells)

    assert trials.equals(original_store.read())
    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (0, 2)


def interrupt_removal_of_files(monkeypatch, *, after: int) -> None:
    """From now on, let the removal of files raise `KeyboardInterrupt` after so many files."""
    removed_paths: list[Path] = []

    def remove_or_interrupt(path, missing_ok=False):
        """Stand in for `Path.unlink`: remove a file, or raise an interrupt after some files."""
        if len(removed_paths) == after:
            raise KeyboardInterrupt
        removed_paths.append(path)
        os.unlink(path)  # noqa: PTH108 - that of Path is replaced

    monkeypatch.setattr(Path, "unlink", remove_or_interrupt)


@pytest.mark.parametrize("n_removed", [0, 2])
def test_interrupted_packing_loses_nothing(original_store, store, monkeypatch, n_removed):
    """Packing writes two files, and then removes the files of sixteen single runs.

    It is interrupted when some of them are removed.
    """
    interrupt_removal_of_files(monkeypatch, after=n_removed)

    with pytest.raises(KeyboardInterrupt):
        store.compact()

    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (16 - n_removed, 2)
    assert store.digest() == original_store.digest()


def test_interrupted_packing_continues(original_store, store, monkeypatch):
    """Packing is interrupted when two files are removed, and then started again."""
    interrupt_removal_of_files(monkeypatch, after=2)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    monkeypatch.undo()  # files can be removed again

    store.compact()

    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (0, 2)
    assert store.digest() == original_store.digest()


def test_wrongly_written_file_replaces_nothing(store, monkeypatch):
    """Packing reads what it wrote before it removes single runs.

    Here the end of what is written gets lost.
    """
    write = store_module.write_whole

    def write_without_end(path, data):
        return write(path, data[:-9])

    monkeypatch.setattr(store_module, "write_whole", write_without_end)

    with pytest.raises(StoreError, match="damaged"):
        store.compact()
    no_run_was_removed = len(single_files(store)) == 16
    assert no_run_was_removed


# Damage


def damage_content(store: Store) -> Path:
    """Cut off the last byte of the first run; return its file."""
    path = single_files(store)[0]
    path.write_bytes(path.read_bytes()[:-1])
    return path


def rename_to_other_run(store: Store) -> Path:
    """Rename the file of the first run to the key of the second, which it replaces; return it."""
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
    """A file of a run is cut off, or renamed to the key of another run; the error says which."""
    path = damage(store)
    key = path.name[:KEY_LENGTH]

    with pytest.raises(StoreError, match=rf"{path.name} is damaged \({reason}"):
        store.read([key])


@pytest.mark.parametrize("damage", [damage_content, rename_to_other_run])
def test_damaged_run_is_repeated(cells, original_store, store, damage):
    """A file of a run is cut off, or renamed to the key of another.

    When the experiment goes on, the file is moved away, and what is missing then runs again.
    """
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
    """Change a letter in the plan of an experiment, so that the hash in its name is wrong."""
    (path,) = (store.folder / "experiments").iterdir()
    path.write_text(path.read_text().replace("random-search", "random-zearch"))
    return path


def make_folder_among_runs(store: Store) -> Path:
    """Make a folder where a store has files only; it counts as a damaged file."""
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
    """The file is of runs, of a failure or of a plan, or it is a folder among them.

    The error is a single line of printable characters.
    """
    path = damage(packed_store)

    with pytest.raises(StoreError, match=f"{path.name} is damaged") as caught:
        make_overview(Store(packed_store.folder))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("damage", ALL_DAMAGES)
def test_damaged_file_is_set_aside(packed_store, damage):
    """The file is of runs, of a failure or of a plan, or it is a folder among them.

    After that nothing is damaged any more, and the overview raises no error.
    """
    path = damage(packed_store)

    (moved_path,) = packed_store.set_aside_damaged()

    assert moved_path.name == path.name
    assert packed_store.set_aside_damaged() == []
    make_overview(packed_store)


def test_two_files_of_one_name_are_set_aside(store):
    """Another damaged file comes in the place of one that was moved; its name gets a number."""
    path = damage_content(store)
    store.set_aside_damaged()
    path.write_text("damaged again")
    store.set_aside_damaged()

    names = sorted(moved_path.name for moved_path in (store.folder / "damaged").iterdir())
    assert names == [path.name, f"{path.name}-2"]


def test_runs_of_damaged_packed_file_are_repeated(cells, original_store, packed_store):
    """The damaged file is moved away first; its eight runs are then missing."""
    damage_packed(packed_store)
    packed_store.set_aside_damaged()

    run_cells(cells, packed_store)

    assert packed_store.digest() == original_store.digest()


def test_overview_opens_no_single_run(store):
    """Names of files tell which runs are finished, as here, where all sixteen files are emptied."""
    for path in single_files(store):
        path.write_bytes(b"")

    keys_of_finished_runs = make_overview(store).keys(State.DONE)

    assert len(keys_of_finished_runs) == 16


def test_changed_value_changes_digest(original_store, store):
    """The digest is a hash of all results; some losses are changed a little."""
    path = single_files(store)[0]
    replace_run(path, add_to_losses(pq.read_table(path), 1e-9))
    assert store.digest() != original_store.digest()


def test_runs_of_earlier_format_have_same_digest(original_store, store):
    """Earlier files had a column with a hash of the run, which is not part of the results."""
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


EVERY_PLACE_IN_MARKER = pytest.mark.parametrize("place", range(len('{"format": 6}')))
EVERY_WRONG_BYTE = pytest.mark.parametrize("byte", [b"\x00", b"7", b"x"])


def damage_marker(store: Store, place: int, byte: bytes) -> Path:
    """Replace one byte of store.json, which marks a folder as a store; return its path."""
    marker = store.folder / "store.json"
    content = marker.read_bytes()
    marker.write_bytes(content[:place] + byte + content[place + 1 :])
    return marker


@EVERY_PLACE_IN_MARKER
@EVERY_WRONG_BYTE
def test_error_says_to_delete_damaged_marker(store, place, byte):
    """Some bytes, such as one of a space, may change without harm, so that there is no error."""
    damage_marker(store, place, byte)

    try:
        Store(store.folder)
    except StoreError as error:
        assert "delete it: the folder is recognised by its other files" in str(error)


@EVERY_PLACE_IN_MARKER
@EVERY_WRONG_BYTE
def test_deleted_marker_is_restored(original_store, store, place, byte):
    """A damaged marker is deleted by the user, and then written again as it was."""
    content = (store.folder / "store.json").read_bytes()
    marker = damage_marker(store, place, byte)
    marker.unlink()

    restored_store = make_store(store.folder)

    assert marker.read_bytes() == content
    assert restored_store.digest() == original_store.digest()


def test_folder_of_other_things_is_no_store(tmp_path):
    """A folder with other files among the runs, such as a log, may belong to another program."""
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


def test_other_format_of_store_is_refused(tmp_path, monkeypatch):
    """The store was begun by a later version of the package, whose format is 7."""
    with monkeypatch.context() as patched:
        patched.setattr("hpobench_ordered.experiment.store.FORMAT", 7)
        make_store(tmp_path)

    with pytest.raises(StoreError, match=r"store format 7, .* with format 6"):
        Store(tmp_path).read()


def test_other_format_of_run_is_refused(cells, tmp_path, monkeypatch):
    """A file of a run was written by a later version of the package, whose format is 7."""
    store = make_store(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("hpobench_ordered.experiment._run_file.FORMAT", 7)
        run_cells(cells[:1], store)

    with pytest.raises(StoreError, match=r"store format 7, .* with format 6"):
        Store(tmp_path).read()


# Merging


def test_different_values_are_not_merged(original_store, packed_store):
    """In one of two stores, the losses of all eight runs on a benchmark are changed a little."""
    path = packed_files(packed_store)[0]
    replace_run(path, add_to_losses(pq.read_table(path), 1e-9))
    with pytest.raises(StoreError, match="8 runs have two different results"):
        packed_store.merge(original_store)


def make_other_result(original_store: Store, folder: Path) -> Store:
    """Make a store with the first run of another store, whose losses are changed a little."""
    other = make_store(folder)
    first_run = pq.read_table(single_files(original_store)[0])
    other.write(add_to_losses(first_run, 1e-9))
    return other


@pytest.mark.parametrize("is_original_first", [True, False])
def test_two_results_of_run_are_named(original_store, tmp_path, is_original_first):
    """Two stores have the same run with different losses; the error names the run.

    They are refused in whichever order they are merged.
    """
    other = make_other_result(original_store, tmp_path / "other")
    (run,) = other.cells().values()
    name_of_run = "{benchmark}, {method}, seed {seed} ".format(**run)
    folders = [original_store.folder, other.folder]
    if not is_original_first:
        folders.reverse()

    with pytest.raises(StoreError, match=name_of_run):
        hbo.merge_stores(tmp_path / "merged", folders)
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("operation", [Store.read, Store.digest, Store.compact])
def test_two_results_in_store_are_refused(original_store, store, tmp_path, operation):
    """A store has two files of its first run, with different losses.

    It can neither be read nor hashed nor packed, and no file is removed.
    """
    other = make_other_result(original_store, tmp_path / "other")
    shutil.copy(single_files(other)[0], store.folder / "runs")

    with pytest.raises(StoreError, match="1 runs have two different results"):
        operation(store)

    n_single_files, n_packed_files = count_files(store)
    assert (n_single_files, n_packed_files) == (16 + 1, 0)


def write_failure_with_key(store: Store, key: str) -> None:
    """Write a failure whose content has this key into a file that is named after another key."""
    fields = {name: getattr(make_failure(), name) for name in Failure.__dataclass_fields__}
    content = json.dumps({**fields, "key": key})
    (store.folder / "failures" / f"{UNUSED_KEY}.json").write_text(content)


@pytest.mark.parametrize("key", ["../../EVIL", "/tmp/EVIL", "0" * 20, "0" * 20 + "\n"])
def test_merging_writes_nothing_outside(original_store, store, tmp_path, key):
    """Somebody else's store may have a failure whose key is a path, such as "../../EVIL".

    A file that is named after it would be outside of one's own store.
    """
    store_of_others = make_store(tmp_path / "theirs" / "other")
    write_failure_with_key(store_of_others, key)
    before = read_contents(store)

    with pytest.raises(StoreError, match="is damaged"):
        store.merge(original_store, store_of_others)

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
    """A store with a damaged file is not merged into one's own, of two runs and a failure."""
    own_store = make_store(tmp_path / "own")
    run_cells(cells[:2], own_store)
    own_store.records.write_failure(make_failure())
    before = read_contents(own_store)
    damage(store)

    with pytest.raises(StoreError, match="is damaged"):
        own_store.merge(store)
    assert read_contents(own_store) == before


def test_run_with_key_of_other_is_not_merged(cells, store, tmp_path):
    """The seed in a run's file is changed, on which the key in its name depends."""
    path = single_files(store)[0]
    run = pq.read_table(path)
    column = run.column_names.index("seed")
    other_seed = pc.add(run["seed"], 1000)
    replace_run(path, run.set_column(column, "seed", other_seed))

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
    """A run failed in one store, and is finished in the other."""
    own_store = make_store(tmp_path / "own")
    run = cells[0]
    failure_of_run = make_failure(**run.describe(), key=run.key)
    own_store.records.write_failure(failure_of_run)

    own_store.merge(original_store)

    assert own_store.failures() == {}


@pytest.fixture
def three_parts(cells, tmp_path) -> list[Store]:
    """Three stores, numbered from 0, of which each has a third of the runs, and the first run.

    Store 1 is packed. Each has a record of when it was started: store 2 on 1 January 2026, store 1
    on the next day, and store 0 on the day after that.
    """
    started = ["2026-01-03", "2026-01-02", "2026-01-01"]
    stores = [Store(tmp_path / str(number)) for number in range(3)]
    for number, store in enumerate(stores):
        third_of_runs = select_shard(cells, (number, 3))
        run_cells([*third_of_runs, cells[0]], store)
        session = {"started": started[number], "experiment": str(number)}
        store.records.write_session(session)
    stores[1].compact()
    return stores


def test_parts_have_each_run_once(cells):
    """Sixteen runs are divided into three shards."""
    shards = [select_shard(cells, (number, 3)) for number in range(3)]

    assert sorted(len(shard) for shard in shards) == [5, 5, 6]
    keys = [cell.key for cell in chain(*shards)]
    assert sorted(keys) == sorted(cell.key for cell in cells)


def test_merged_parts_equal_whole(original_store, three_parts, tmp_path):
    merged = hbo.merge_stores(tmp_path / "merged", [part.folder for part in three_parts])
    assert merged.digest() == original_store.digest()


def test_merging_does_not_depend_on_order(three_parts, tmp_path):
    """Merged runs, timings and sessions are the same in whichever order stores are merged."""
    folders = [part.folder for part in three_parts]
    merged = hbo.merge_stores(tmp_path / "merged", folders)
    reversed_merge = hbo.merge_stores(tmp_path / "reversed", reversed(folders))
    assert merged.digest() == reversed_merge.digest()
    assert merged.timings().equals(reversed_merge.timings())
    assert merged.sessions() == reversed_merge.sessions()


def test_merging_again_changes_nothing(three_parts, tmp_path):
    """One of three parts is merged once more into the store of all."""
    folders = [part.folder for part in three_parts]
    merged = hbo.merge_stores(tmp_path / "merged", folders)
    before = read_contents(merged)

    second_part = folders[1]
    hbo.merge_stores(merged.folder, [second_part])

    assert read_contents(merged) == before


def test_merged_sessions_are_in_order_of_time(three_parts, tmp_path):
    """Part 2 was started first, on 1 January, and part 0 last, on 3 January."""
    merged = hbo.merge_stores(tmp_path / "merged", [part.folder for part in three_parts])
    numbers_of_parts = [session["experiment"] for session in merged.sessions()]
    assert numbers_of_parts == ["2", "1", "0"]


@pytest.fixture
def store_of_two_versions(cells, tmp_path, monkeypatch) -> Store:
    """A store of sixteen runs, of which version 9.9 of the package made five, and this one others.

    The runner is made to believe that it has the version 9.9.
    """
    store = Store(tmp_path / "versions")
    with monkeypatch.context() as patched:
        versions = {"hpobench-ordered": "9.9"}
        patched.setattr("hpobench_ordered.experiment.runner.package_versions", lambda: versions)
        run_cells(cells[:5], store)
    run_cells(cells, Store(store.folder))
    return store


def test_runs_of_other_version_are_not_repeated(store_of_two_versions):
    """Runs that another version of the package made count as finished.

    Five of sixteen are of version 9.9.
    """
    versions = store_of_two_versions.timings()["version"]
    assert len(versions) == 16
    assert (versions == "9.9").sum() == 5


def test_runs_of_package_that_is_not_installed(cells, tmp_path, monkeypatch):
    """A package that is only on the path of Python has no version; its runs are stored."""

    def find_no_version(name: str) -> str:
        raise PackageNotFoundError(name)

    store = Store(tmp_path / "store")
    with monkeypatch.context() as patched:
        patched.setattr("hpobench_ordered.runtime.machine.version", find_no_version)
        package_versions.cache_clear()
        run_cells(cells[:2], store)
    package_versions.cache_clear()
    assert list(store.timings()["version"]) == ["unknown", "unknown"]


def test_runs_of_two_versions_are_same(original_store, store_of_two_versions):
    merged = hbo.merge_stores(store_of_two_versions.folder, [original_store.folder])
    assert merged.digest() == original_store.digest()


# Plans


def test_grid_tells_all_cells(cells):
    """A plan is stored as a grid, which lists benchmarks, methods, seeds and protocols once each.

    All runs follow from it: every combination is one.
    """
    identity_of_key = {cell.key: cell.describe() for cell in cells}
    assert cells_of_grid(grid_of_cells(cells)) == identity_of_key


def test_too_large_plan_is_refused(store):
    """A plan is stored as a grid of benchmarks, methods, seeds and protocols.

    A small one can mean very many runs: here each of 3000 methods on each of 3000 benchmarks.
    """
    pairs_of_texts = [[str(number), "1"] for number in range(3000)]
    grid = {
        "benchmark surrogate": pairs_of_texts,
        "method method_version": pairs_of_texts,
        "seed": [[0]],
        "protocol": [["ordered()"]],
    }

    with pytest.raises(ExperimentError, match="at most 500,000 runs"):
        store.records.write_experiment(grid)


# The state of runs

SHORT_RUNS = {"benchmarks": ["newsvendor"], "protocol": hbo.Ordered(trials=2, tasks=1)}
"""Options of short runs, without methods and seeds."""


def run_shard(folder: Path, shard: tuple[int, int]) -> Store:
    """Run a part of an experiment with four runs; the shard (0, 2) is the first half."""
    hbo.run(methods=["random-search"], seeds=range(4), shard=shard, folder=folder, **SHORT_RUNS)
    return Store(folder)


def test_runs_of_other_shards_are_missing(tmp_path):
    """Of four runs, the first of two shards is run."""
    overview = make_overview(run_shard(tmp_path, (0, 2)))
    assert len(overview.keys(State.DONE)) == 2
    assert len(overview.keys(State.MISSING)) == 2


def test_counts_tell_runs_in_progress(tmp_path):
    """Of four runs two are finished, one is in progress and one is missing."""
    store = run_shard(tmp_path, (0, 2))
    one_of_two_missing, _ = make_overview(store).keys(State.MISSING)

    with store.records.running(one_of_two_missing):
        counts = make_overview(store).counts()

    (row,) = counts.to_dict("records")  # of the only benchmark and method
    count_of_state = {state: row[state.value] for state in State}
    assert count_of_state == {
        State.DONE: 2,
        State.RUNNING: 1,
        State.FAILED: 0,
        State.MISSING: 1,
    }


def test_all_shards_finish_experiment(tmp_path):
    """Four runs are made in two shards, the first half and the second."""
    run_shard(tmp_path, (0, 2))
    overview = make_overview(run_shard(tmp_path, (1, 2)))

    assert len(overview.keys(State.DONE)) == 4
    assert [session["shard"] for session in overview.sessions] == ["0/2", "1/2"]


def test_runs_of_shards_supersede_none(tmp_path):
    """Superseded are runs of earlier versions of methods, but not those of earlier shards."""
    run_shard(tmp_path, (0, 2))
    overview = make_overview(run_shard(tmp_path, (1, 2)))

    assert overview.superseded == 0


def test_run_of_this_process_is_in_progress(tmp_path):
    """A run is in progress until the block ends that marks it."""
    store = make_store(tmp_path)
    with store.records.running(UNUSED_KEY):
        assert store.in_progress() == {UNUSED_KEY}
    assert store.in_progress() == frozenset()


@pytest.fixture(scope="module")
def id_of_ended_process() -> int:
    """The number of a process that has just ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_run_of_ended_process_is_not_in_progress(tmp_path, id_of_ended_process):
    """A run in progress is marked by a file with the number of its process, which ended here."""
    store = make_store(tmp_path)
    with store.records.running(UNUSED_KEY):
        path_of_mark = tmp_path / "running" / f"{UNUSED_KEY}.json"
        mark = json.loads(path_of_mark.read_text())
        mark["pid"] = id_of_ended_process
        path_of_mark.write_text(json.dumps(mark))

        assert store.in_progress() == frozenset()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"host": 1}', '{"host": "a", "pid": 1e99}'])
def test_unreadable_mark_is_not_in_progress(tmp_path, content):
    """A run in progress is marked by a file, which is broken here, or lacks host and process."""
    store = make_store(tmp_path)
    (tmp_path / "running" / f"{UNUSED_KEY}.json").write_text(content)
    assert store.in_progress() == frozenset()


def run_version_of_mine(folder: Path, version: str) -> hbo.Results:
    """Run random search and a version of the method `mine`, with one seed each."""
    # The attribute `identity` of what makes a method tells the version.
    factory = partial(RandomSearch)
    factory.identity = version  # type: ignore[attr-defined]
    methods = ["random-search", hbo.MethodSpec("mine", factory, "", "")]
    return hbo.run(methods=methods, seeds=[0], folder=folder, **SHORT_RUNS)


def test_last_planned_version_of_method_counts(tmp_path):
    """Runs of an earlier version of a method stay in the store, but the overview leaves them out.

    The three runs are one of random search, and one of each of two versions of the method `mine`.
    """
    run_version_of_mine(tmp_path, "older")
    newer = run_version_of_mine(tmp_path, "newer")

    overview = make_overview(newer.store)

    assert set(overview.runs["key"]) == {cell.key for cell in newer.cells}
    assert overview.superseded == 1
    assert len(newer.store.keys()) == 3
