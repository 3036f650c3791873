"""Reference results: which trials are stored, how they are read, and what is compared with them."""

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_method import Mine

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.labels import is_submitted
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter
from hpobench_ordered.errors import (
    ArtifactError,
    ExperimentError,
    MissingExtraError,
    OutdatedReferenceWarning,
    SuggestionTimeoutError,
    UnknownNameError,
)
from hpobench_ordered.experiment import reference
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.joined import JoinedRuns
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.protocols import format_protocol, parse_protocol
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.reference import read_reference, read_submissions
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.generation import _reference
from hpobench_ordered.generation._reference import Part, find_progress, run_missing, write_reference
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.tuning import as_method_spec

BENCHMARKS = ("newsvendor", "yahpo-svm-1220", "forrester")
METHODS_OF_REFERENCE = ("random-search", "cts", "zero-shot")
PROTOCOL = hbo.Ordered(trials=6, tasks=4)
FILE_OF_NEWSVENDOR = "newsvendor@1-table-ordered.parquet"
NUMBER_OF_RUNS_REPEATED = 8
"""Reference runs that a test repeats; 40 were repeated when the results were made."""


def run_small_experiment(folder: Path, **changes: Any) -> hbo.Results:
    """Run three methods with three seeds on three benchmarks, unless some options are changed."""
    settings = {
        "benchmarks": BENCHMARKS,
        "methods": METHODS_OF_REFERENCE,
        "seeds": range(3),
        "protocol": PROTOCOL,
        "folder": folder,
    }
    return hbo.run(**(settings | changes))


@pytest.fixture(scope="module")
def all_results(tmp_path_factory) -> hbo.Results:
    """Results with all trials: of the methods in the reference, and of a user's method, `Mine`."""
    return run_small_experiment(
        tmp_path_factory.mktemp("all"), methods=[*METHODS_OF_REFERENCE, Mine]
    )


@pytest.fixture
def reference_bundle(all_results, tmp_path, monkeypatch) -> Artifact:
    """Reference results of the runs of this file, in place of those that come with the package."""
    # The plan of reference results: three methods with three seeds on the benchmarks here.
    plan_here = Part(suite="", methods=METHODS_OF_REFERENCE, seeds=3, protocol=PROTOCOL)
    monkeypatch.setattr(_reference, "PARTS", (plan_here,))
    monkeypatch.setattr(Part, "benchmarks", lambda self: list(BENCHMARKS))

    artifact = Artifact(tmp_path / "bundle")
    write_reference(all_results.store.folder, artifact.folder)
    monkeypatch.setattr(reference, "REFERENCE_ARTIFACT", artifact)
    return artifact


def read_file(artifact: Artifact, name: str) -> ReferenceFile:
    """Read one of the files of reference results, which are of one benchmark each."""
    return ReferenceFile.from_bytes(artifact.read(name), name=name)


def replace_file(artifact: Artifact, name: str, file: ReferenceFile) -> None:
    """Replace a file of an artifact by another of the same name.

    All files are written anew, so that the artifact's list of hashes fits.
    """
    names = list(artifact.sums())
    content_of_file = {other_name: artifact.read(other_name) for other_name in names}
    content_of_file[name] = file.to_bytes()
    with ArtifactWriter(Path(str(artifact.folder))) as writer:
        for any_name, content in content_of_file.items():
            writer.write_bytes(any_name, content)


def without_times(board: pd.DataFrame) -> pd.DataFrame:
    """Leave out what differs from run to run of the same experiment."""
    return board.drop(columns="seconds")


@pytest.fixture
def results_with_all_trials(all_results) -> hbo.Results:
    """The same runs as in the reference, which has only some trials of each."""
    cells = [cell for cell in all_results.cells if cell.method.name in METHODS_OF_REFERENCE]
    return hbo.Results(all_results.store, tuple(cells))


@pytest.mark.parametrize("trial", [None, 1, 3])
def test_leaderboards_equal_those_of_all_trials(results_with_all_trials, reference_bundle, trial):
    """The reference has the same runs, but of each only some trials."""
    expected = without_times(results_with_all_trials.leaderboard(trial, full=True))

    board = without_times(hbo.reference(*BENCHMARKS).leaderboard(trial, full=True))

    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_scores_equal_those_of_all_trials(results_with_all_trials, reference_bundle):
    """The reference has the same runs, but of each only some trials."""
    expected_scores, _ = results_with_all_trials.scored()

    scores, _ = hbo.reference(*BENCHMARKS).scored()

    for actual, expected in zip(scores, expected_scores, strict=True):
        for method, runs in expected.runs.items():
            assert actual.runs[method].states == runs.states
            assert actual.runs[method].seeds == runs.seeds
        assert actual.fallbacks == expected.fallbacks
        assert actual.task_names == expected.task_names
        for name, measure in expected.measures.items():
            np.testing.assert_array_equal(actual.measures[name].values, measure.values)


def test_every_run_is_written(all_results, reference_bundle):
    """Three methods ran with three seeds on each of three benchmarks, which have a file each."""
    written_files = write_reference(all_results.store.folder, reference_bundle.folder)

    assert [file.runs for file in written_files] == [3 * 3, 3 * 3, 3 * 3]


def read_all_bytes(artifact: Artifact) -> dict[str, bytes]:
    """Read all files of an artifact, by name."""
    return {name: artifact.read(name) for name in artifact.sums()}


@pytest.fixture(scope="module")
def folders_of_machines(tmp_path_factory) -> list[Path]:
    """Folders of the results of three machines, which have run all methods with a seed each."""
    folders = []
    for seed in range(3):
        folder = tmp_path_factory.mktemp(f"machine-{seed}")
        run_small_experiment(folder, seeds=[seed])
        folders.append(folder)
    return folders


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_pieces_give_same_files_in_any_order(
    reference_bundle, folders_of_machines, tmp_path, order
):
    """The results of three machines are written in turn."""
    pieces = Artifact(tmp_path / "pieces")
    for machine in order:
        write_reference(folders_of_machines[machine], pieces.folder)

    assert read_all_bytes(pieces) == read_all_bytes(reference_bundle)


def test_missing_runs_are_counted(reference_bundle, folders_of_machines, tmp_path):
    """One of three seeds has run on three benchmarks: six runs of each method are missing."""
    _, folder_of_one_seed, _ = folders_of_machines
    write_reference(folder_of_one_seed, tmp_path / "reference")

    (progress,) = find_progress(tmp_path / "reference")

    assert progress.planned == 3 * 3 * 3
    assert progress.missing == dict.fromkeys(METHODS_OF_REFERENCE, 2 * 3)


def test_only_missing_runs_are_made(reference_bundle, tmp_path):
    """The reference has everything but the runs of cts on newsvendor."""
    file = read_file(reference_bundle, FILE_OF_NEWSVENDOR)
    is_kept = (file.runs["method"] != "cts").to_numpy()
    complete = read_all_bytes(reference_bundle)
    replace_file(reference_bundle, FILE_OF_NEWSVENDOR, file.select_runs(is_kept))

    run_missing(tmp_path / "results", reference_bundle.folder, workers=1)
    write_reference(tmp_path / "results", reference_bundle.folder)

    runs = make_overview(Store(tmp_path / "results")).runs
    assert set(runs["method"]) == {"cts"}
    assert len(runs) == 3  # of three seeds
    assert read_all_bytes(reference_bundle) == complete


def test_failed_runs_are_run_again(reference_bundle, tmp_path):
    """One run took too long in an earlier call; the reference lacks only that run."""
    file = read_file(reference_bundle, FILE_OF_NEWSVENDOR)
    cell = plan_run_of_file(file, 0)
    is_kept = np.array([key != cell.key for key in file.cells])
    replace_file(reference_bundle, FILE_OF_NEWSVENDOR, file.select_runs(is_kept))
    store = Store(tmp_path / "results")
    store.prepare()
    store.records.write_failure(Failure.from_error(cell, SuggestionTimeoutError("too long")))

    run_missing(tmp_path / "results", reference_bundle.folder, workers=1)

    runs = make_overview(store).runs
    assert list(runs["key"]) == [cell.key]
    assert store.records.failures() == {}


def test_runs_out_of_plan_are_dropped(reference_bundle, tmp_path, monkeypatch):
    """The plan has two methods instead of three, so that the files lose the runs of the third."""
    smaller_plan = Part(suite="", methods=METHODS_OF_REFERENCE[:2], seeds=3, protocol=PROTOCOL)
    monkeypatch.setattr(_reference, "PARTS", (smaller_plan,))

    written_files = write_reference(tmp_path / "no results", reference_bundle.folder)

    assert [file.runs for file in written_files] == [2 * 3, 2 * 3, 2 * 3]


@pytest.fixture
def file_with_odd_losses(all_results) -> ReferenceFile:
    """A file of results, of which half of the losses are replaced by odd ones.

    They are zeros of both signs, the smallest and nearly the largest numbers, and equal ones.
    """
    spec = benchmark_spec("yahpo-svm-1220")
    all_runs = make_overview(all_results.store).runs
    runs = all_runs[all_runs["benchmark"] == spec.id].drop(columns="state")
    keys = list(runs["key"])
    trials = all_results.store.read(keys)

    odd_losses = [0.0, -0.0, 5e-324, -1e308, 1e308, 1 / 3, 1 / 3, -0.5]
    rng = np.random.default_rng(0)
    drawn_losses = rng.choice(odd_losses, len(trials))
    is_replaced = rng.random(len(trials)) < 0.5
    losses = np.where(is_replaced, drawn_losses, trials["loss"])
    odd_trials = trials.assign(loss=losses, value=-losses)
    return ReferenceFile.of_results(runs, odd_trials, spec)


def test_losses_are_restored_to_last_bit(file_with_odd_losses):
    """Bytes are compared, as 0.0 and -0.0 are equal as numbers."""
    restored = ReferenceFile.from_bytes(file_with_odd_losses.to_bytes(), name="file")
    assert restored.losses.tobytes() == file_with_odd_losses.losses.tobytes()
    assert restored.best_losses.tobytes() == file_with_odd_losses.best_losses.tobytes()


def test_runs_are_restored(file_with_odd_losses):
    restored = ReferenceFile.from_bytes(file_with_odd_losses.to_bytes(), name="file")
    pd.testing.assert_frame_equal(restored.runs, file_with_odd_losses.runs, check_dtype=False)
    assert restored.cells == file_with_odd_losses.cells


def test_files_are_same_bytes_each_time(file_with_odd_losses):
    content = file_with_odd_losses.to_bytes()
    assert ReferenceFile.from_bytes(content, name="file").to_bytes() == content


def encode_trial(*, n_rows: int = 1, **changed_columns: Any) -> bytes:
    """Encode a reference file of a single trial, or of none.

    Some columns may have other values; a column that is None is left out.
    """
    usual_columns: dict[str, list[Any]] = {
        "benchmark": ["toy@1"],
        "surrogate": ["table"],
        "protocol": ["ordered()"],
        "method": ["bo"],
        "method_version": ["1"],
        "seed": [0],
        "task": [0],
        "task_name": ["first"],
        "sign": [1.0],
        "best_loss": [0.0],
        "fallbacks": [0],
        "trials": [1],
        "trial": [1],
        "value": [0.5],
        "base": [math.nan],
        "unit": [math.nan],
        "count": pd.array([None], "Int64"),
    }
    columns = usual_columns | changed_columns
    present_columns = {name: values for name, values in columns.items() if values is not None}
    table = pd.DataFrame(present_columns)
    return table[:n_rows].to_parquet(index=False)


MALFORMED = {
    "no Parquet": (b"PAR1", "not a Parquet file"),
    "no column": (encode_trial(value=None), "no column 'value'"),
    "text as value": (encode_trial(value=["0.5"]), "'value' must hold floating-point numbers"),
    "no value": (encode_trial(value=[math.nan]), "neither a value nor a count"),
    "task out of range": (encode_trial(task=[5]), "tasks must be the first ones"),
    "no rows": (encode_trial(n_rows=0), "no rows"),
}


@pytest.mark.parametrize(("content", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_files_are_refused(content, reason):
    with pytest.raises(ArtifactError, match=reason):
        ReferenceFile.from_bytes(content, name="file")


def test_damaged_files_are_refused(reference_bundle):
    """The last byte of a file is cut off."""
    path = Path(str(reference_bundle.folder)) / FILE_OF_NEWSVENDOR
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=f"{FILE_OF_NEWSVENDOR} is damaged"):
        hbo.reference("newsvendor")


def test_own_method_ranks_among_reference(all_results, reference_bundle, tmp_path):
    """The leaderboard is that of an experiment in which all methods ran together.

    A user runs `Mine` alone; without seeds of its own, it gets those of the reference.
    """
    settings = {"methods": [Mine], "seeds": None, "folder": tmp_path / "mine"}

    compared = run_small_experiment(**settings, against="reference")

    board = without_times(compared.leaderboard(full=True))
    expected = without_times(all_results.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_own_method_ranks_among_folder(all_results, tmp_path):
    """A user compares `Mine` with the results in a folder, whose seeds and protocol it gets.

    The leaderboard is that of the folder, in which `Mine` ran, too.
    """
    settings = {"methods": [Mine], "seeds": None, "protocol": None, "folder": tmp_path / "mine"}

    compared = run_small_experiment(**settings, against=all_results.store.folder)

    board = without_times(compared.leaderboard(full=True))
    expected = without_times(all_results.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_compared_method_gets_seeds_of_reference(reference_bundle, tmp_path):
    """The reference has the seeds 0, 1 and 2, which hold if no others are chosen."""
    compared = run_small_experiment(
        tmp_path / "mine", methods=[Mine], seeds=None, against="reference"
    )

    assert {cell.seed for cell in compared.cells} == {0, 1, 2}


def test_frame_of_comparison_has_own_runs_only(reference_bundle, tmp_path):
    """The frame has a row for each trial, of which the reference does not store all."""
    compared = run_small_experiment(
        tmp_path / "mine", methods=[Mine], seeds=[0], against="reference"
    )

    assert set(compared.frame()["method"]) == {as_method_spec(Mine).name}


def test_own_runs_replace_those_of_reference(reference_bundle, tmp_path):
    """A user runs cts, which the reference has, too; it counts once among the methods.

    The user's runs have seed 1 alone, so that this is the only one that all methods have.
    """
    compared = run_small_experiment(
        tmp_path / "mine", methods=["cts", Mine], seeds=[1], against="reference"
    )

    board = compared.leaderboard()
    means_over_benchmarks = board[board["benchmark"] == "all"]
    names = {*METHODS_OF_REFERENCE, as_method_spec(Mine).name}
    assert set(means_over_benchmarks["method"]) == names
    number_of_common_seeds = set(means_over_benchmarks["seeds"])
    assert number_of_common_seeds == {1}


def test_comparison_with_reference_has_no_landscape(reference_bundle, tmp_path):
    """A landscape shows losses over configurations, which the reference does not have."""
    compared = run_small_experiment(
        tmp_path / "mine", methods=["cts"], seeds=[1], against="reference"
    )
    with pytest.raises(ExperimentError, match="without configurations"):
        hbo.plots.landscape(compared, "newsvendor")


def test_fewer_tasks_are_first_ones(reference_bundle, tmp_path):
    """From a reference of all tasks, the results on the first two can be read.

    The files here, of four tasks, are relabelled as if these were all.
    """
    all_tasks = format_protocol(hbo.Ordered(trials=6))
    two_tasks = hbo.Ordered(trials=6, tasks=2)
    for name in reference_bundle.sums():
        file = read_file(reference_bundle, name)
        relabelled_file = replace(file, where=file.where | {"protocol": all_tasks})
        replace_file(reference_bundle, name, relabelled_file)

    results = hbo.Results(read_reference(BENCHMARKS, protocol=two_tasks), ())

    results_of_run = run_small_experiment(tmp_path / "two tasks", protocol=two_tasks)
    board = without_times(results.leaderboard(full=True))
    expected = without_times(results_of_run.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected)


def test_other_versions_of_methods_are_left_out(reference_bundle):
    """A file is changed as if its runs of the method cts were of the earlier version 0."""
    file = read_file(reference_bundle, FILE_OF_NEWSVENDOR)
    is_cts = file.runs["method"] == "cts"
    versions = file.runs["method_version"].mask(is_cts, "0")
    runs_of_two_versions = file.runs.assign(method_version=versions)
    replace_file(reference_bundle, FILE_OF_NEWSVENDOR, replace(file, runs=runs_of_two_versions))

    with pytest.warns(OutdatedReferenceWarning, match=r"left out: cts, version 0$"):
        results = hbo.reference("newsvendor")
    assert set(results.overview().runs["method"]) == {"random-search", "zero-shot"}


def test_other_versions_of_benchmarks_are_left_out(reference_bundle):
    """A file is relabelled as if its runs were on the earlier version 0 of newsvendor."""
    file = read_file(reference_bundle, FILE_OF_NEWSVENDOR)
    outdated_file = replace(file, where=file.where | {"benchmark": "newsvendor@0"})
    replace_file(reference_bundle, FILE_OF_NEWSVENDOR, outdated_file)

    with pytest.warns(OutdatedReferenceWarning, match=r"left out: newsvendor@0 \(table\)$"):
        results = hbo.reference(*BENCHMARKS)
    assert "newsvendor@0" not in set(results.overview().runs["benchmark"])


def test_reference_has_no_frames(reference_bundle):
    with pytest.raises(ExperimentError, match="best losses so far, without configurations"):
        hbo.reference("newsvendor").frame()


def test_incumbents_equal_those_of_all_trials(results_with_all_trials, reference_bundle):
    """The reference has the same runs, but of each only some trials."""
    columns = ["benchmark", "method", "seed", "task", "task_name", "trial", "value", "loss"]
    of_runs = results_with_all_trials.incumbents()[columns]

    of_reference = hbo.reference(*BENCHMARKS).incumbents()[columns]

    trial_of_task = columns[:6]
    pd.testing.assert_frame_equal(
        of_reference.sort_values(trial_of_task, ignore_index=True),
        of_runs.sort_values(trial_of_task, ignore_index=True),
        check_exact=True,
        check_dtype=False,  # pandas has two types of texts
    )


def test_incumbents_cover_both_results(all_results, reference_bundle):
    """The user's method is compared with the methods of the reference results."""
    joined = hbo.Results(all_results.store, all_results.cells[-1:], read_reference(BENCHMARKS))

    methods = set(joined.incumbents()["method"])

    assert methods == {*METHODS_OF_REFERENCE, all_results.cells[-1].method.name}


def test_unknown_benchmark_is_named(reference_bundle):
    with pytest.raises(UnknownNameError, match="did you mean 'newsvendor'"):
        hbo.reference("newsvender")


def test_unknown_method_is_named(reference_bundle):
    with pytest.raises(UnknownNameError, match="unknown method 'ct'"):
        hbo.reference("newsvendor", methods=["ct"])


def test_benchmark_without_reference_is_named(reference_bundle):
    with pytest.raises(ExperimentError, match="no reference results of quadratic"):
        hbo.reference("quadratic")


def test_comparison_names_benchmarks_without_reference(reference_bundle, tmp_path):
    """The reference has results on newsvendor, but none on quadratic."""
    benchmarks = ["newsvendor", "quadratic"]
    with pytest.raises(ExperimentError, match="nothing to compare with on quadratic@1"):
        run_small_experiment(
            tmp_path / "mine", methods=[Mine], benchmarks=benchmarks, against="reference"
        )


def test_reference_ignores_folder_named_reference(
    all_results, reference_bundle, tmp_path, monkeypatch
):
    """If the current folder has a subfolder "reference", it is not read.

    Here its file of a failure is damaged, so that reading it would raise an error.
    """
    failures = tmp_path / "reference" / "failures"
    failures.mkdir(parents=True)
    (failures / "0.json").write_text("not a failure")
    monkeypatch.chdir(tmp_path)

    assert hbo.reference("newsvendor").failures() == ()


def test_joined_runs_have_runs_of_both(all_results, reference_bundle):
    """Runs that are both in a user's store and in the reference are read once, from the store.

    Here the store has all runs of the reference.
    """
    own_store = all_results.store
    reference_runs = read_reference(BENCHMARKS)

    joined = JoinedRuns(own_store, reference_runs)

    assert joined.keys() == own_store.keys() | reference_runs.keys()
    assert len(joined.read()) == len(own_store.read())
    assert len(joined.timings()) == len(own_store.timings())


@pytest.mark.slow
def test_report_of_reference_has_no_landscapes(reference_bundle, tmp_path):
    """A landscape shows losses over configurations, which the reference does not have."""
    report = hbo.report(hbo.reference("newsvendor"), tmp_path / "report")

    names_of_files = {path.stem for path in report.files}
    assert "leaderboard" in names_of_files
    assert not any(name.startswith("landscapes") for name in names_of_files)


def draw_bundled_runs(number: int) -> list[tuple[ReferenceFile, int]]:
    """Draw runs of the reference that comes with the package: a file, and a row of it, for each.

    Runs of methods with networks are drawn only where they have few tasks, as they take minutes.
    Submitted methods are not in the package.
    """
    packaged = reference.REFERENCE_ARTIFACT
    all_runs = []
    for name in sorted(packaged.sums()):
        if not name.endswith(".parquet"):
            continue
        file = read_file(packaged, name)
        for row, method in enumerate(file.runs["method"]):
            takes_minutes = method in _reference.NETWORKS and len(file.task_names) > 10
            if not (takes_minutes or is_submitted(method)):
                all_runs.append((file, row))

    positions = np.random.default_rng(0).choice(len(all_runs), number, replace=False)
    return [all_runs[position] for position in positions]


def plan_run_of_file(file: ReferenceFile, row: int) -> Cell:
    """Plan a run again that is a row of a reference file."""
    run = file.runs.iloc[row]
    benchmark = file.where["benchmark"]
    (cell,) = plan(
        benchmarks=[benchmark],
        methods=[run["method"]],
        seeds=[int(run["seed"])],
        protocol=parse_protocol(file.where["protocol"]),
        surrogates={benchmark: file.where["surrogate"]},
    )
    return cell


@pytest.mark.long  # goldens hold the same of shorter runs
def test_repeated_runs_equal_bundled_reference():
    """A few runs of the reference are repeated, and have the same losses.

    A file holds the losses of each run, (tasks, trials), with NaN for trials that are not stored.
    """
    for file, row in draw_bundled_runs(NUMBER_OF_RUNS_REPEATED):
        cell = plan_run_of_file(file, row)
        assert cell.key == list(file.cells)[row]
        check_stored_losses(compute_losses(cell), file.losses[row], cell)


def compute_losses(cell: Cell) -> FloatArray:
    """Run a cell as experiments do, and return the losses of all its trials, (tasks, trials)."""
    with one_thread():
        outcomes, _ = run_cell(cell)
    return np.array([outcome.losses for outcome in outcomes if outcome.is_recorded])


def check_stored_losses(losses: FloatArray, losses_in_file: FloatArray, cell: Cell) -> None:
    """Check that a file has the losses of a run, at least of all trials that improve.

    Args:
        losses: Losses of all trials, (tasks, trials).
        losses_in_file: Those in the file, NaN for trials that are not stored.
        cell: The run, for messages.
    """
    is_stored = ~np.isnan(losses_in_file)
    np.testing.assert_array_equal(losses[is_stored], losses_in_file[is_stored], err_msg=str(cell))
    incumbents = np.minimum.accumulate(losses, axis=1)
    improves = np.diff(incumbents, axis=1) < 0
    is_later_trial_stored = is_stored[:, 1:]
    assert is_later_trial_stored[improves].all()


def list_runs_of_tools() -> list[tuple[str, str]]:
    """List the submitted methods that can be run with this package: other tools' optimisers.

    Each has its name in results, and where to import it from, as the command of its description
    says.
    """
    found = []
    for name, submission in read_submissions().items():
        match = re.search(r"--method (hpobench_ordered\.adapters\.tools\S+)", submission.command)
        if match:
            found.append((name, match[1]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "place"), list_runs_of_tools())
def test_repeated_runs_of_tools_equal_bundled_reference(name, place):
    """Of each tool that is installed in the version of the reference, the runs on newsvendor."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the tool's own imports
            spec = as_method_spec(place)
    except MissingExtraError as error:
        pytest.skip(f"{name} cannot be run: {error}")
    versions = read_submissions()[name].versions
    if spec.source.replace("+cpu", "") != versions:
        pytest.skip(f"the reference has {versions}, but installed is {spec.source}")

    file = read_file(reference.REFERENCE_ARTIFACT, FILE_OF_NEWSVENDOR)
    run = file.runs[file.runs["method"] == name].iloc[0]
    (cell,) = plan(
        benchmarks=["newsvendor"],
        methods=[spec],
        seeds=[int(run["seed"])],
        protocol=parse_protocol(file.where["protocol"]),
    )
    check_stored_losses(compute_losses(cell), file.losses[run.name], cell)
