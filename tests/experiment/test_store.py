"""Stores: what they hold, damage, merging, and what is shown of runs."""

import shutil
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.data.tables import encode_table
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment import store as store_module
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
from hpobench_ordered.experiment.store import FORMAT, Store
from hpobench_ordered.methods.random_search import RandomSearch

UNUSED_KEY = "0" * 20
"""The key of no run in any of the stores."""


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
    store.records.write_experiment(grid_of_cells(cells))
    return store


@pytest.fixture
def store(original_store, tmp_path) -> Store:
    """A copy of `original_store`, for a test to change."""
    return Store(shutil.copytree(original_store.folder, tmp_path / "store"))


@pytest.fixture
def packed_store(original_store, tmp_path) -> Store:
    """A store with the same runs as `original_store`, in one file a benchmark."""
    return hbo.merge_stores(tmp_path / "packed", [original_store.folder])


def make_store(folder: Path) -> Store:
    """Make a store of no runs, whose folder exists already."""
    store = Store(folder)
    store.prepare()
    return store


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


def list_files(store: Store, folder: str) -> list[Path]:
    """List the files in a subfolder of a store, sorted by name."""
    return sorted((store.folder / folder).iterdir())


def read_contents(folder: Path) -> dict[Path, bytes]:
    """Read the content of every file below a folder, by its path."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change_losses(path: Path) -> None:
    """Add a little to each loss in a file of runs."""
    table = pq.read_table(path)
    column = table.column_names.index("loss")
    changed = table.set_column(column, "loss", pc.add(table["loss"], 1e-9))
    path.write_bytes(encode_table(changed))


# What a store holds


def test_store_has_finished_runs(cells, store, packed_store):
    for any_store in (store, packed_store):
        assert any_store.has(cells[0].key)
        assert not any_store.has(UNUSED_KEY)


def test_store_has_failed_runs(store):
    failure = make_failure()
    store.records.write_failure(failure)
    assert store.has(failure.key)


def test_trials_have_costs_where_known(tmp_path):
    """The file of a run without costs has no such column; in frames it is null there."""
    results = hbo.run(
        benchmarks=["nas201", "forrester"],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=3, tasks=2),
        folder=tmp_path,
    )

    trials = results.frame(configurations=True)

    is_known = trials["cost"].notna()
    assert trials.loc[is_known, "benchmark"].unique().tolist() == ["nas201@1"]
    assert is_known.sum() == 6
    for path in list_files(results.store, "runs"):
        table = pq.read_table(path)
        assert ("cost" in table.column_names) == (table["benchmark"][0].as_py() == "nas201@1")


def test_second_failure_replaces_first(store):
    """Of a run that failed twice, with different messages, the store has the second failure."""
    store.records.write_failure(make_failure(message="first"))
    second = make_failure(message="second")
    store.records.write_failure(second)
    assert store.failures() == {second.key: second}


def test_forgotten_failure_is_removed(store):
    failure = make_failure()
    store.records.write_failure(failure)
    store.records.forget_failures([failure.key])
    assert store.failures() == {}


def test_identities_are_read_without_plan(cells, store):
    """Files of runs tell what runs they are of, even if the plan of the experiment is lost."""
    shutil.rmtree(store.folder / "experiments")
    assert store.cells() == {cell.key: cell.describe() for cell in cells}


def test_overview_opens_no_single_run(store):
    """The overview takes finished runs from names of files: empty files count as finished, too."""
    for path in list_files(store, "runs"):
        path.write_bytes(b"")
    assert len(make_overview(store).keys(State.DONE)) == 16


def test_changed_value_changes_digest(original_store, store):
    change_losses(list_files(store, "runs")[0])
    assert store.digest() != original_store.digest()


def test_grid_tells_all_cells(cells):
    """All runs of a plan can be read from its grid, and every combination in the grid is a run.

    A grid lists benchmarks, methods, seeds and protocols once each.
    """
    identity_of_key = {cell.key: cell.describe() for cell in cells}
    assert cells_of_grid(grid_of_cells(cells)) == identity_of_key


# Packed runs


def test_merging_packs_runs(packed_store):
    """A merged store has one file a benchmark, here two, instead of one for each of 16 runs."""
    assert list_files(packed_store, "runs") == []
    assert len(list_files(packed_store, "packed")) == 2


def test_packed_files_have_limited_size(original_store, tmp_path, monkeypatch):
    """A packed file has at most `MAX_PACKED_RUNS` runs.

    With three runs a file, the eight runs on each of two benchmarks need three files.
    """
    monkeypatch.setattr(store_module, "MAX_PACKED_RUNS", 3)
    packed = hbo.merge_stores(tmp_path / "packed", [original_store.folder])
    assert len(list_files(packed, "packed")) == 2 * 3
    assert packed.digest() == original_store.digest()


def test_packed_runs_are_same(cells, original_store, packed_store):
    """Packed runs have the trials, configurations and identities of runs in single files."""
    keys_on_one_benchmark = [cell.key for cell in cells if cell.benchmark == "newsvendor@1"]

    assert packed_store.read().equals(original_store.read())
    configurations = packed_store.configurations(keys_on_one_benchmark)
    assert configurations.equals(original_store.configurations(keys_on_one_benchmark))
    assert packed_store.cells() == original_store.cells()
    assert packed_store.digest() == original_store.digest()


def test_one_packed_run_is_read(cells, original_store, packed_store):
    """Of a packed file, the trials of a single run can be read."""
    key = cells[0].key
    pd.testing.assert_frame_equal(packed_store.read([key]), original_store.read([key]))


def test_run_in_two_files_counts_once(original_store, packed_store):
    """A run that is in a packed file and in a file of its own is read once."""
    shutil.copy(list_files(original_store, "runs")[0], packed_store.folder / "runs")
    assert packed_store.read().equals(original_store.read())


# Damage


def damage_run(store: Store) -> Path:
    """Cut off the last byte of a run; return its file."""
    return cut_off(list_files(store, "runs")[0])


def damage_packed(store: Store) -> Path:
    """Pack the runs of a store and cut off the last byte of a file; return it."""
    packed = hbo.merge_stores(store.folder.with_name("for packing"), [store.folder])
    shutil.copytree(packed.folder / "packed", store.folder / "packed", dirs_exist_ok=True)
    return cut_off(list_files(store, "packed")[0])


def rename_run(store: Store) -> Path:
    """Rename the file of a run to the key of another one."""
    path = list_files(store, "runs")[0]
    return path.rename(path.with_stem(UNUSED_KEY))


def change_columns(store: Store) -> Path:
    """Write a table that is not one of runs to the file of a run."""
    path = list_files(store, "runs")[0]
    path.write_bytes(encode_table(pa.table({"loss": [1.0]})))
    return path


def damage_failure(store: Store) -> Path:
    """Write the record of a failed run that lacks its end."""
    store.records.write_failure(make_failure())
    return cut_off(list_files(store, "failures")[0])


def damage_experiment(store: Store) -> Path:
    """Cut off the end of the plan."""
    return cut_off(list_files(store, "experiments")[0])


def cut_off(path: Path) -> Path:
    """Cut off the last byte of a file; return its path."""
    path.write_bytes(path.read_bytes()[:-1])
    return path


DAMAGES = (
    damage_run,
    damage_packed,
    rename_run,
    change_columns,
    damage_failure,
    damage_experiment,
)


def read_all(folder: Path) -> None:
    """Read all that a store holds."""
    store = Store(folder)
    make_overview(store)
    store.read()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_named(store, damage):
    """Reading a damaged file raises an error of one line, which says to delete that file."""
    path = damage(store)

    with pytest.raises(StoreError, match=rf"{path.name} is damaged .*; delete it") as caught:
        read_all(store.folder)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("damage", DAMAGES)
def test_experiment_repeats_deleted_runs(cells, original_store, store, damage):
    """Once a damaged file is deleted, the experiment makes its runs again, with equal results."""
    damage(store).unlink()
    run_cells(cells, store)
    assert store.digest() == original_store.digest()


def test_other_files_are_ignored(original_store, store):
    """A hidden file of a killed process, a text and a folder among the runs change nothing."""
    (store.folder / "runs" / ".0123.parquet-4567").write_text("half a run")
    (store.folder / "runs" / "readme.txt").write_text("mine")
    (store.folder / "runs" / "old").mkdir()
    assert store.digest() == original_store.digest()


def test_folder_of_other_things_is_no_store(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(StoreError, match="it holds other files"):
        Store(tmp_path)


def test_file_is_no_store(tmp_path):
    path = tmp_path / "runs"
    path.write_text("{}")
    with pytest.raises(StoreError, match="not a folder"):
        Store(path)


def test_impossible_folder_is_named():
    with pytest.raises(StoreError, match="xxx"):
        make_store(Path("x" * 5000))


@pytest.mark.parametrize("content", ["", "[]", '{"format": "7"}'])
def test_damaged_marker_is_named(store, content):
    """The file store.json marks a folder as a store; the error says what it should hold."""
    (store.folder / "store.json").write_text(content)
    with pytest.raises(StoreError, match=r"store\.json is damaged .*it should hold '\{\"format"):
        Store(store.folder)


def test_other_format_is_refused(store):
    """The store was begun by a later version of the package."""
    (store.folder / "store.json").write_text(f'{{"format": {FORMAT + 1}}}')
    with pytest.raises(StoreError, match=f"store format {FORMAT + 1}, .* has format {FORMAT}"):
        Store(store.folder)


# Merging


def test_refused_merge_changes_nothing(cells, store, tmp_path):
    """If a store has a damaged file, merging it into one's own leaves one's own as it was.

    One's own store has two runs and a failure.
    """
    own_store = make_store(tmp_path / "own")
    run_cells(cells[:2], own_store)
    own_store.records.write_failure(make_failure())
    before = read_contents(own_store.folder)
    damage_run(store)

    with pytest.raises(StoreError, match="is damaged"):
        own_store.merge(store)
    assert read_contents(own_store.folder) == before


@pytest.mark.parametrize("is_original_first", [True, False])
def test_two_results_of_run_are_named(original_store, store, tmp_path, is_original_first):
    """Two stores have the same run with different losses; the error names the run and its files.

    They are refused in whichever order they are merged.
    """
    path = list_files(store, "runs")[0]
    change_losses(path)
    run = store.cells()[path.stem]
    folders = [original_store.folder, store.folder]
    if not is_original_first:
        folders.reverse()

    with pytest.raises(StoreError, match="1 runs have two different results") as caught:
        hbo.merge_stores(tmp_path / "merged", folders)

    message = str(caught.value)
    assert "{benchmark}, {method}, seed {seed} ".format(**run) in message
    assert str(path) in message
    assert not (tmp_path / "merged").exists()


def test_failures_are_merged(store, tmp_path):
    """A merged store has the failures of both, here one each, of different seeds."""
    own = make_store(tmp_path / "own")
    first, second = make_failure(seed=1), make_failure(seed=2)
    own.records.write_failure(first)
    store.records.write_failure(second)

    own.merge(store)

    assert set(own.failures()) == {first.key, second.key}


def test_failure_of_finished_run_is_forgotten(cells, original_store, tmp_path):
    """A run that failed in one store and is finished in the other is no failure once merged."""
    own_store = make_store(tmp_path / "own")
    run = cells[0]
    own_store.records.write_failure(make_failure(**run.describe(), key=run.key))

    own_store.merge(original_store)

    assert own_store.failures() == {}


@pytest.fixture
def three_parts(cells, tmp_path) -> list[Path]:
    """Folders of three stores, of which each has a third of the runs, and the first run.

    Each has a record of when it was started: part 2 on 1 January 2026, part 1 on the next day, and
    part 0 on the day after that.
    """
    days = ["2026-01-03", "2026-01-02", "2026-01-01"]
    stores = [Store(tmp_path / f"part {number}") for number in range(3)]
    for number, store in enumerate(stores):
        third_of_runs = select_shard(cells, (number, 3))
        run_cells([*third_of_runs, cells[0]], store)
        store.records.write_session({"started": days[number], "experiment": str(number)})
    return [store.folder for store in stores]


def test_parts_have_each_run_once(cells):
    """Three shards of sixteen runs have all runs, each once, and about the same number."""
    shards = [select_shard(cells, (number, 3)) for number in range(3)]

    assert sorted(len(shard) for shard in shards) == [5, 5, 6]
    keys = [cell.key for cell in chain(*shards)]
    assert sorted(keys) == sorted(cell.key for cell in cells)


def test_merged_parts_equal_whole(original_store, three_parts, tmp_path):
    """Three merged parts have the results of the whole, and sessions in the order of their start.

    Part 2 was started first.
    """
    merged = hbo.merge_stores(tmp_path / "merged", three_parts)

    assert merged.digest() == original_store.digest()
    assert [session["experiment"] for session in merged.sessions()] == ["2", "1", "0"]


def test_merging_does_not_depend_on_order(three_parts, tmp_path):
    """Merged runs, timings and sessions are the same in whichever order stores are merged."""
    merged = hbo.merge_stores(tmp_path / "merged", three_parts)
    reversed_merge = hbo.merge_stores(tmp_path / "reversed", reversed(three_parts))
    assert merged.digest() == reversed_merge.digest()
    assert merged.timings().equals(reversed_merge.timings())
    assert merged.sessions() == reversed_merge.sessions()


def test_merging_again_changes_nothing(three_parts, tmp_path):
    """One of three parts is merged once more into the store of all, and the store into itself."""
    merged = hbo.merge_stores(tmp_path / "merged", three_parts)
    before = read_contents(merged.folder)

    hbo.merge_stores(merged.folder, [three_parts[1], merged.folder])

    assert read_contents(merged.folder) == before


def test_merged_experiment_is_continued(cells, original_store, three_parts, tmp_path):
    """Two of three parts are merged, and the experiment then goes on in the merged folder."""
    merged = hbo.merge_stores(tmp_path / "merged", three_parts[:2])
    run_cells(cells, merged)
    assert merged.digest() == original_store.digest()


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


def test_runs_of_other_version_count(original_store, store_of_two_versions):
    """Runs that another version of the package made are not repeated.

    Five of sixteen are of version 9.9.
    """
    versions = store_of_two_versions.timings()["version"]
    assert len(versions) == 16
    assert (versions == "9.9").sum() == 5
    assert store_of_two_versions.digest() == original_store.digest()


# The state of runs

SHORT_RUNS = {"benchmarks": ["newsvendor"], "protocol": hbo.Ordered(trials=2, tasks=1)}
"""Options of short runs, without methods and seeds."""


def run_shard(folder: Path, shard: tuple[int, int]) -> Store:
    """Run a part of an experiment with four runs; the shard (0, 2) is the first half."""
    hbo.run(methods=["random-search"], seeds=range(4), shard=shard, folder=folder, **SHORT_RUNS)
    return Store(folder)


def test_counts_tell_state_of_runs(tmp_path):
    """Of four runs two are finished, one has failed and one is missing."""
    store = run_shard(tmp_path, (0, 2))
    key_of_failure, _ = make_overview(store).keys(State.MISSING)
    (planned_runs,) = store.experiments().values()
    failure = make_failure(**planned_runs[key_of_failure], key=key_of_failure)
    store.records.write_failure(failure)

    counts = make_overview(store).counts()

    (row,) = counts.to_dict("records")  # of the only benchmark and method
    assert [row[state.value] for state in (State.DONE, State.FAILED, State.MISSING)] == [2, 1, 1]


def test_all_shards_finish_experiment(tmp_path):
    """Four runs are made in two shards; none of the first shard counts as superseded."""
    run_shard(tmp_path, (0, 2))
    overview = make_overview(run_shard(tmp_path, (1, 2)))

    assert len(overview.keys(State.DONE)) == 4
    assert [session["shard"] for session in overview.sessions] == ["0/2", "1/2"]
    assert overview.superseded == 0


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
