"""Results that others submit: what is taken in to the reference results, and what is refused."""

from pathlib import Path

import pandas as pd
import pytest
from own_method import Mine

import hpobench_ordered as hbo
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.experiment import reference
from hpobench_ordered.experiment.reference import read_submissions
from hpobench_ordered.generation import _reference, _submissions
from hpobench_ordered.generation._reference import Part, write_reference

BENCHMARKS = ("newsvendor", "yahpo-svm-1220")
PROTOCOL = hbo.Ordered(trials=4, tasks=2)
SEEDS = range(2)
DESCRIPTION = """
summary = "Samples at random."
paper = "Somebody (2026), arXiv:2601.00001"
code = "https://example.org/mine"
versions = "mine 1.2"
ran_by = "Somebody"
command = "hpobench-ordered run --method mine.py:Mine --suite othpo"
"""


@pytest.fixture(scope="module")
def all_results(tmp_path_factory) -> hbo.Results:
    """Results of random search, which is in the reference, and of a user's method, `Mine`."""
    folder = tmp_path_factory.mktemp("all")
    return hbo.run(
        benchmarks=BENCHMARKS,
        methods=["random-search", Mine],
        seeds=SEEDS,
        protocol=PROTOCOL,
        folder=folder,
    )


@pytest.fixture
def small_reference(all_results, monkeypatch, tmp_path) -> Artifact:
    """Reference results of random search on two tasks of two benchmarks."""
    plan = Part(suite="", methods=("random-search",), seeds=len(SEEDS), protocol=PROTOCOL)
    monkeypatch.setattr(_reference, "PARTS", (plan,))
    monkeypatch.setattr(Part, "benchmarks", lambda self: list(BENCHMARKS))
    monkeypatch.setattr(_submissions, "PROTOCOL", PROTOCOL)

    artifact = Artifact(tmp_path / "reference")
    write_reference(all_results.store.folder, artifact.folder)
    monkeypatch.setattr(reference, "REFERENCE_ARTIFACT", artifact)
    return artifact


@pytest.fixture
def submitted_trials(all_results) -> pd.DataFrame:
    """All trials of a user's method, as `export` writes them."""
    trials = all_results.frame(configurations=True)
    return trials[trials["method"] == "own_method.Mine"]


@pytest.fixture
def submissions(tmp_path, submitted_trials) -> Path:
    """A folder with one submission."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    (folder / "mine.toml").write_text(DESCRIPTION)
    submitted_trials.to_parquet(folder / "mine.parquet", index=False)
    return folder


@pytest.fixture
def take_in(small_reference, submissions, tmp_path):
    """A function that brings the reference up to date with the submissions."""

    def write() -> None:
        write_reference(tmp_path / "nothing", small_reference.folder, submissions=submissions)

    return write


def test_submitted_method_ranks_with_a_mark(take_in, all_results):
    """The leaderboard is that of an experiment in which both methods ran."""
    take_in()

    board = hbo.reference(*BENCHMARKS).leaderboard(full=True)

    expected = all_results.leaderboard(full=True)
    expected = expected.replace({"method": {"own_method.Mine": "mine*"}})
    pd.testing.assert_frame_equal(
        board.drop(columns="seconds"), expected.drop(columns="seconds"), check_exact=True
    )


def test_description_comes_with_results(take_in):
    take_in()
    description = read_submissions()["mine*"]
    assert description.versions == "mine 1.2"
    assert description.ran_by == "Somebody"


def test_submitted_method_can_be_selected(take_in):
    take_in()
    results = hbo.reference("newsvendor", methods=["mine*"])
    assert set(results.overview().runs["method"]) == {"mine*"}


def test_methods_of_the_package_are_left_out(take_in, submissions, small_reference, all_results):
    """Submitted runs of the package's own methods are left out.

    Here the user ran random search, which is in the reference already.
    """
    take_in()
    before = {name: small_reference.read(name) for name in small_reference.sums()}
    both = all_results.frame(configurations=True)
    assert set(both["method"]) == {"own_method.Mine", "random-search"}
    both.to_parquet(submissions / "mine.parquet", index=False)

    take_in()

    assert {name: small_reference.read(name) for name in small_reference.sums()} == before


def test_results_stay_without_their_trials(take_in, small_reference, submissions):
    """Results that were taken in stay in the reference after their file of trials is deleted."""
    take_in()
    before = {name: small_reference.read(name) for name in small_reference.sums()}
    (submissions / "mine.parquet").unlink()

    take_in()

    assert {name: small_reference.read(name) for name in small_reference.sums()} == before


def test_other_version_replaces_results(take_in, submissions):
    """Runs of one method in two versions would count twice."""
    take_in()
    (submissions / "mine.toml").write_text(DESCRIPTION.replace("mine 1.2", "mine 1.3"))

    take_in()

    runs = hbo.reference(*BENCHMARKS, methods=["mine*"]).overview().runs
    assert set(runs["method_version"]) == {"mine 1.3"}


def test_results_go_with_their_description(take_in, submissions):
    take_in()
    (submissions / "mine.toml").unlink()

    take_in()

    assert read_submissions() == {}
    methods = hbo.reference(*BENCHMARKS).overview().runs["method"]
    assert set(methods) == {"random-search"}


def change_first(column: str, value: object):
    """A change of a table: another value in the first row of a column."""

    def change(trials: pd.DataFrame) -> pd.DataFrame:
        changed = trials.copy()
        changed[column] = changed[column].astype(object)
        changed.loc[changed.index[0], column] = value
        return changed.convert_dtypes(dtype_backend="numpy_nullable")

    return change


REFUSED_TRIALS = {
    "value of no configuration": (
        lambda trials: trials.assign(value=trials["value"] - 1, loss=trials["loss"] + 1),
        "are not those of the benchmark, such as",
    ),
    "other protocol": (
        lambda trials: trials.assign(protocol="ordered(trials=99)"),
        "the protocol must be",
    ),
    "seed of another range": (lambda trials: trials.assign(seed=trials["seed"] + 9), "0 to 9"),
    "missing trial": (lambda trials: trials.iloc[1:], "seed [01] must have 4 trials of each of"),
    "other version": (
        lambda trials: trials.assign(benchmark=trials["benchmark"].str.replace("@1", "@0")),
        r"unknown benchmark|its version is not the installed one",
    ),
    "several methods": (
        change_first("method", "other"),
        "of others, but has other",
    ),
    "no configurations": (
        lambda trials: trials[[name for name in trials if not name.startswith("config.")]],
        "there is no column config",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED_TRIALS.values(), ids=REFUSED_TRIALS)
def test_wrong_trials_are_refused(take_in, submissions, submitted_trials, change, message):
    """A file of wrong trials is refused, and no submission is added to the reference."""
    change(submitted_trials).to_parquet(submissions / "mine.parquet", index=False)
    with pytest.raises(ArtifactError, match=message):
        take_in()
    assert read_submissions() == {}


def test_configurations_outside_of_space_are_refused(take_in, submissions, submitted_trials):
    column = next(name for name in submitted_trials if name.startswith("config."))
    outside = submitted_trials.assign(**{column: 1e9})
    outside.to_parquet(submissions / "mine.parquet", index=False)
    with pytest.raises(ArtifactError, match=r"mine\.parquet, "):
        take_in()


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (DESCRIPTION.replace("ran_by", "run_by"), "unknown field `run_by`|missing required"),
        ("summary =", "does not describe a submission"),
    ],
)
def test_wrong_descriptions_are_refused(take_in, submissions, description, message):
    (submissions / "mine.toml").write_text(description)
    with pytest.raises(ArtifactError, match=message):
        take_in()
