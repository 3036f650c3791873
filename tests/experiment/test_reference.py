"""Reference results: which trials are stored, how they are read, and what is compared with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from own_method import Mine

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.errors import (
    ArtifactError,
    ExperimentError,
    OutdatedReferenceWarning,
    UnknownNameError,
)
from hpobench_ordered.experiment import reference
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.joined import JoinedRuns
from hpobench_ordered.experiment.overview import make_overview
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.reference import read_reference
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.artifact import Artifact, ArtifactWriter
from hpobench_ordered.generation import _reference
from hpobench_ordered.generation._reference import Part, replace_methods, write_reference
from hpobench_ordered.protocols import format_protocol, parse_protocol
from hpobench_ordered.registry import benchmark_spec

BENCHMARKS = ("newsvendor", "yahpo-svm-1220", "forrester")
METHODS = ("random-search", "cts", "zero-shot")
PROTOCOL = hbo.Ordered(trials=6, tasks=4)
NEWSVENDOR = "newsvendor@1-table-ordered.parquet"
NUMBER_OF_RUNS_REPEATED = 8
"""Reference runs that a test repeats; 40 were repeated when the results were made."""


def run_small_experiment(folder: Path, **changes: Any) -> hbo.Results:
    """Run three methods with three seeds on three benchmarks; some options of `run` changed."""
    settings = {
        "benchmarks": BENCHMARKS,
        "methods": METHODS,
        "seeds": range(3),
        "protocol": PROTOCOL,
        "folder": folder,
    }
    return hbo.run(**(settings | changes))


@pytest.fixture(scope="module")
def all_results(tmp_path_factory) -> hbo.Results:
    """Runs of the methods in the reference, and of one more, `Mine`."""
    return run_small_experiment(tmp_path_factory.mktemp("all"), methods=[*METHODS, Mine])


@pytest.fixture
def reference_bundle(all_results, tmp_path, monkeypatch) -> Artifact:
    """Reference files of these runs, in place of those that come with the package."""
    n_seeds = 3
    part = Part("", METHODS, n_seeds, PROTOCOL)
    monkeypatch.setattr(_reference, "PARTS", (part,))
    monkeypatch.setattr(Part, "benchmarks", lambda self: list(BENCHMARKS))
    artifact = Artifact(tmp_path / "bundle")
    write_reference(all_results.store.folder, artifact.folder)
    monkeypatch.setattr(reference, "ARTIFACT", artifact)
    return artifact


def read_file(artifact: Artifact, name: str) -> ReferenceFile:
    """Read one of the files of reference results, which are of one benchmark each."""
    return ReferenceFile.from_bytes(artifact.read(name), name=name)


def replace_file(artifact: Artifact, name: str, file: ReferenceFile) -> None:
    """Write all files anew, one of them changed, so that the list of their hashes fits."""
    contents = {other: artifact.read(other) for other in artifact.sums()}
    with ArtifactWriter(Path(str(artifact.folder))) as writer:
        for other, content in (contents | {name: file.to_bytes()}).items():
            writer.write_bytes(other, content)


def without_times(board: pd.DataFrame) -> pd.DataFrame:
    """Leave out what differs from run to run of the same experiment."""
    return board.drop(columns="seconds")


@pytest.mark.parametrize("trial", [None, 1, 3])
def test_leaderboards_equal_those_of_all_trials(all_results, reference_bundle, trial):
    """The reference has the same runs, but of each only some trials."""
    cells = tuple(cell for cell in all_results.cells if cell.method.name in METHODS)
    expected = hbo.Results(all_results.store, cells).leaderboard(trial, full=True)
    board = hbo.reference(*BENCHMARKS).leaderboard(trial, full=True)
    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_scores_equal_those_of_all_trials(all_results, reference_bundle):
    """The reference has the same runs, but of each only some trials."""
    cells = tuple(cell for cell in all_results.cells if cell.method.name in METHODS)
    expected_scores, _ = hbo.Results(all_results.store, cells).scored()
    scores, _ = hbo.reference(*BENCHMARKS).scored()
    for actual, expected in zip(scores, expected_scores, strict=True):
        assert actual.runs == expected.runs
        assert actual.fallbacks == expected.fallbacks
        assert actual.task_names == expected.task_names
        for name, measure in expected.measures.items():
            np.testing.assert_array_equal(actual.measures[name].values, measure.values)


def test_every_run_is_written(all_results, reference_bundle):
    """Three methods ran with three seeds on each of three benchmarks, which have a file each."""
    written = write_reference(all_results.store.folder, reference_bundle.folder)
    assert [file.runs for file in written] == [3 * 3] * 3
    assert [file.left_out for file in written] == [0] * 3


def test_replacing_methods_gives_same_files(all_results, reference_bundle):
    name, *_ = METHODS
    contents = {file: reference_bundle.read(file) for file in reference_bundle.sums()}
    written = replace_methods(all_results.store.folder, reference_bundle.folder, [name])
    assert [file.runs for file in written] == [3] * 3  # seeds, on three benchmarks
    # The same runs as before, so that the bytes are the same.
    assert {file: reference_bundle.read(file) for file in contents} == contents


def test_unfinished_runs_replace_nothing(reference_bundle, tmp_path):
    with pytest.raises(ExperimentError, match="are not finished, such as"):
        replace_methods(tmp_path / "empty", reference_bundle.folder, METHODS)


def test_methods_without_reference_replace_nothing(all_results, reference_bundle):
    """Only methods that the reference results are planned with can be replaced."""
    assert "tpe" not in METHODS
    with pytest.raises(UnknownNameError, match="unknown method 'tpe' of the reference results"):
        replace_methods(all_results.store.folder, reference_bundle.folder, ["tpe"])


@pytest.fixture
def file_with_odd_losses(all_results) -> ReferenceFile:
    """A file of results whose losses have ties, both zeros, and numbers near the range's ends."""
    spec = benchmark_spec("yahpo-svm-1220")
    runs = make_overview(all_results.store).runs
    runs = runs[runs["benchmark"] == spec.id].drop(columns="state")
    keys = list(runs["key"])
    trials, timings = all_results.store.read(keys), all_results.store.timings(keys)
    odd_losses = [0.0, -0.0, 5e-324, -1e308, 1e308, 1 / 3, 1 / 3, -0.5]
    rng = np.random.default_rng(0)
    drawn = rng.choice(odd_losses, len(trials))
    is_replaced = rng.random(len(trials)) < 0.5
    losses = np.where(is_replaced, drawn, trials["loss"])
    trials = trials.assign(loss=losses, value=-losses)
    return ReferenceFile.of_results(runs, trials, timings, spec)


def test_losses_are_restored_to_last_bit(file_with_odd_losses):
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


def test_runs_without_timings_are_restored(file_with_odd_losses):
    """Times and versions are missing, as of runs whose timings were lost."""
    runs = file_with_odd_losses.runs.assign(
        suggestions=np.nan, seconds=np.nan, method_cpu_seconds=np.nan, version=None
    )
    untimed = replace(file_with_odd_losses, runs=runs)
    restored = ReferenceFile.from_bytes(untimed.to_bytes(), name="file")
    assert restored.timings()[["suggestions", "seconds", "version"]].isna().all(axis=None)


def write_parquet(*, count: int = 1, **changes: Any) -> bytes:
    """Write a file of one trial, with other values in some columns; None leaves a column out.

    With `count` 0 it has no rows.
    """
    columns: dict[str, list[Any]] = {
        "benchmark": ["toy@1"],
        "surrogate": ["table"],
        "protocol": ["ordered()"],
        "method": ["bo"],
        "method_version": ["1"],
        "seed": [0],
        "suggestions": [1],
        "seconds": [0.5],
        "method_cpu_seconds": [0.25],
        "version": ["1.0"],
        "task": [0],
        "task_name": ["first"],
        "sign": [1.0],
        "best_loss": [0.0],
        "fallbacks": [0],
        "trials": [1],
        "trial": [1],
        "value": [0.5],
    }
    columns = {name: values for name, values in (columns | changes).items() if values is not None}
    return pd.DataFrame(columns)[:count].to_parquet(index=False)


def test_wall_times_of_earlier_files_are_not_read():
    """Earlier files have a column of the method's wall time instead of its CPU time."""
    earlier = write_parquet(method_cpu_seconds=None, method_seconds=[0.25])
    file = ReferenceFile.from_bytes(earlier, name="file")
    assert file.timings()["method_cpu_seconds"].isna().all()


MALFORMED = {
    "no Parquet": (b"PAR1", "not a Parquet file"),
    "no column": (write_parquet(value=None), "no column 'value'"),
    "text as value": (write_parquet(value=["0.5"]), "'value' must hold floating-point numbers"),
    "missing value": (write_parquet(method=pd.array([None], "string")), "'method' has missing"),
    "control character": (write_parquet(task_name=["\x1b[2J"]), "control characters"),
    "task out of range": (write_parquet(task=[5]), "tasks must be the first ones"),
    "trial out of range": (write_parquet(trial=[2]), "trials must be from 1"),
    "too many trials": (write_parquet(trials=[2**40]), "more than 100,000,000 losses"),
    "no rows": (write_parquet(count=0), "no rows"),
}


@pytest.mark.parametrize(("content", "reason"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_files_are_refused(content, reason):
    with pytest.raises(ArtifactError, match=reason):
        ReferenceFile.from_bytes(content, name="file")


def test_damaged_files_are_refused(reference_bundle):
    path = Path(str(reference_bundle.folder)) / NEWSVENDOR
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtifactError, match=f"{NEWSVENDOR} is damaged"):
        hbo.reference("newsvendor")


def test_own_method_ranks_among_reference(all_results, reference_bundle, tmp_path):
    """As in an experiment in which `Mine` and the methods of the reference ran together."""
    settings = {"methods": [Mine], "seeds": None, "folder": tmp_path / "mine"}
    compared = run_small_experiment(**settings, against="reference")
    board = without_times(compared.leaderboard(full=True))
    expected = without_times(all_results.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_own_method_ranks_among_folder(all_results, tmp_path):
    """Seeds and protocol are those of the folder, in which `Mine` ran, too."""
    settings = {"methods": [Mine], "seeds": None, "protocol": None, "folder": tmp_path / "mine"}
    compared = run_small_experiment(**settings, against=all_results.store.folder)
    board = without_times(compared.leaderboard(full=True))
    expected = without_times(all_results.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected, check_exact=True)


def test_compared_method_gets_seeds_of_reference(reference_bundle, tmp_path):
    compared = run_small_experiment(
        tmp_path / "mine", methods=[Mine], seeds=None, against="reference"
    )
    assert {cell.seed for cell in compared.cells} == {0, 1, 2}


def test_frame_of_comparison_has_own_runs(reference_bundle, tmp_path):
    compared = run_small_experiment(
        tmp_path / "mine", methods=[Mine], seeds=[0], against="reference"
    )
    assert set(compared.frame()["method"]) == {as_method_spec(Mine).name}


def test_own_runs_replace_those_of_reference(reference_bundle, tmp_path):
    """The reference has cts, too; means are over the seed that all methods have, 1."""
    compared = run_small_experiment(
        tmp_path / "mine", methods=["cts", Mine], seeds=[1], against="reference"
    )
    board = compared.leaderboard()
    overall = board[board["benchmark"] == "all"]
    assert set(overall["method"]) == {*METHODS, as_method_spec(Mine).name}
    assert set(overall["seeds"]) == {1}


def test_comparison_with_reference_has_no_landscape(reference_bundle, tmp_path):
    """The reference has losses without configurations."""
    compared = run_small_experiment(
        tmp_path / "mine", methods=["cts"], seeds=[1], against="reference"
    )
    with pytest.raises(ExperimentError, match="without configurations"):
        compared.plot.landscape("newsvendor")


def test_fewer_tasks_are_first_ones(reference_bundle, tmp_path):
    """The reference is relabelled as if all tasks had been run; the first two are asked for."""
    fewer = hbo.Ordered(trials=6, tasks=2)
    for name in reference_bundle.sums():
        file = read_file(reference_bundle, name)
        where = file.where | {"protocol": format_protocol(hbo.Ordered(trials=6))}
        replace_file(reference_bundle, name, replace(file, where=where))

    results = hbo.Results(read_reference(BENCHMARKS, protocol=fewer), ())

    expected_results = run_small_experiment(tmp_path / "fewer", protocol=fewer)
    board = without_times(results.leaderboard(full=True))
    expected = without_times(expected_results.leaderboard(full=True))
    pd.testing.assert_frame_equal(board, expected)


def test_other_versions_of_methods_are_left_out(reference_bundle):
    """The file of newsvendor is changed as if cts had had the version 0."""
    file = read_file(reference_bundle, NEWSVENDOR)
    is_cts = file.runs["method"] == "cts"
    versions = file.runs["method_version"].mask(is_cts, "0")
    runs = file.runs.assign(method_version=versions)
    replace_file(reference_bundle, NEWSVENDOR, replace(file, runs=runs))

    with pytest.warns(OutdatedReferenceWarning, match=r"left out: cts, version 0$"):
        results = hbo.reference("newsvendor")
    assert set(results.overview().runs["method"]) == {"random-search", "zero-shot"}


def test_other_versions_of_benchmarks_are_left_out(reference_bundle):
    """The file of newsvendor is relabelled as if it were of version 0."""
    file = read_file(reference_bundle, NEWSVENDOR)
    older = replace(file, where=file.where | {"benchmark": "newsvendor@0"})
    replace_file(reference_bundle, NEWSVENDOR, older)
    with pytest.warns(OutdatedReferenceWarning, match=r"left out: newsvendor@0 \(table\)$"):
        results = hbo.reference(*BENCHMARKS)
    assert "newsvendor@0" not in set(results.overview().runs["benchmark"])


def test_reference_has_no_frames(reference_bundle):
    with pytest.raises(ExperimentError, match="best losses so far, without configurations"):
        hbo.reference("newsvendor").frame()


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
    benchmarks = ["newsvendor", "quadratic"]  # the reference has the first one alone
    with pytest.raises(ExperimentError, match="nothing to compare with on quadratic@1"):
        run_small_experiment(
            tmp_path / "mine", methods=[Mine], benchmarks=benchmarks, against="reference"
        )


@pytest.mark.parametrize("name", ["compact", "digest", "write", "merge", "prepare"])
def test_reference_has_no_methods_of_stores(reference_bundle, name):
    """It is no store, and lacks what changes or digests one."""
    runs = hbo.reference("newsvendor").store
    assert not isinstance(runs, Store)
    assert not hasattr(runs, name)


def test_reference_ignores_folder_named_reference(
    all_results, reference_bundle, tmp_path, monkeypatch
):
    """A folder of this name in the current one, here a broken store, is not read."""
    failures = tmp_path / "reference" / "failures"
    failures.mkdir(parents=True)
    (failures / "0.json").write_text("not a failure")
    monkeypatch.chdir(tmp_path)
    assert hbo.reference("newsvendor").failures() == ()


def test_joined_runs_have_runs_of_both(all_results, reference_bundle):
    """All runs of the reference are among one's own here, and must not be read twice."""
    own = all_results.store
    joined = JoinedRuns(own, read_reference(BENCHMARKS))
    assert joined.keys() == own.keys() | read_reference(BENCHMARKS).keys()
    assert len(joined.read()) == len(own.read())
    assert len(joined.timings()) == len(own.timings())


@pytest.mark.slow
def test_report_of_reference_has_no_landscapes(reference_bundle, tmp_path):
    report = hbo.report(hbo.reference("newsvendor"), tmp_path / "report")
    stems = {path.stem for path in report.files}
    assert "leaderboard" in stems
    assert not any(stem.startswith("landscapes") for stem in stems)


def draw_bundled_runs(number: int) -> list[tuple[ReferenceFile, int]]:
    """Runs drawn from all that come with the package: for each its file, and its row in `runs`."""
    packaged = reference.ARTIFACT
    all_runs = []
    for name in sorted(packaged.sums()):
        file = read_file(packaged, name)
        all_runs += [(file, row) for row in range(len(file.runs))]

    drawn = np.random.default_rng(0).choice(len(all_runs), number, replace=False)
    return [all_runs[position] for position in drawn]


@pytest.mark.slow
def test_repeated_runs_equal_bundled_reference():
    """A file holds losses (tasks, trials) of each run; NaN stands for trials that are not stored.

    Every trial that improves on those before it must be stored.
    """
    for file, row in draw_bundled_runs(NUMBER_OF_RUNS_REPEATED):
        run_in_file, losses = file.runs.iloc[row], file.losses[row]
        (cell,) = plan(
            benchmarks=[file.where["benchmark"]],
            methods=[run_in_file["method"]],
            seeds=[int(run_in_file["seed"])],
            protocol=parse_protocol(file.where["protocol"]),
            surrogates={file.where["benchmark"]: file.where["surrogate"]},
        )
        outcomes, _ = run_cell(cell)
        recorded = [outcome.losses for outcome in outcomes if outcome.is_recorded]
        repeated = np.concatenate(recorded).reshape(losses.shape)  # tasks, trials
        is_stored = ~np.isnan(losses)
        incumbents = np.minimum.accumulate(repeated, axis=1)
        improves_on_last = np.diff(incumbents, axis=1) < 0  # of the second trial and later ones

        assert cell.key == list(file.cells)[row]
        np.testing.assert_array_equal(repeated[is_stored], losses[is_stored], err_msg=str(cell))
        assert is_stored[:, 1:][improves_on_last].all()
