"""Reference results: what is kept of runs, what is read of it, what is compared with it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from own_method import Mine

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.errors import ExperimentError, OutdatedReferenceWarning, UnknownNameError
from hpobench_ordered.experiment import reference
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.reference import reference_store
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.generation import _reference
from hpobench_ordered.generation._reference import Part, write_reference
from hpobench_ordered.protocols import format_protocol, parse_protocol
from hpobench_ordered.registry import benchmark_spec

BENCHMARKS = ("newsvendor", "yahpo-svm-1220", "forrester")
METHODS = ("random-search", "cts", "zero-shot")
PROTOCOL = hbo.Ordered(trials=6, tasks=4)
DRAW = 8
"""Reference runs that are made again; 40 of them were, when the results were made."""


def results(folder: Path, methods=METHODS, **changes: object) -> hbo.Results:
    settings = {"benchmarks": BENCHMARKS, "seeds": range(3), "protocol": PROTOCOL}
    return hbo.run(methods=methods, folder=folder, **(settings | changes))


@pytest.fixture(scope="module")
def full(tmp_path_factory) -> hbo.Results:
    """Everything: the methods of the bundle and one more, in one folder."""
    return results(tmp_path_factory.mktemp("full"), [*METHODS, Mine])


@pytest.fixture
def bundle(full, tmp_path, monkeypatch) -> Path:
    """A folder of reference files, in place of those that come with the package."""
    part = Part("", METHODS, 3, PROTOCOL)
    monkeypatch.setattr(_reference, "PARTS", (part,))
    monkeypatch.setattr(Part, "benchmarks", lambda self: list(BENCHMARKS))
    folder = tmp_path / "bundle"
    written = list(write_reference(full.store.folder, folder))
    assert [lacking for _, _, lacking in written] == [0, 0, 0]
    monkeypatch.setattr(reference, "FOLDER", folder)
    return folder


def file_of(path: Path) -> ReferenceFile:
    return ReferenceFile.from_bytes(path.read_bytes(), name=path.name)


def test_scores_ranks_and_times_are_those_of_all_trials(full, bundle):
    kept = hbo.reference(*BENCHMARKS)
    whole = hbo.Results(full.store, tuple(c for c in full.cells if c.method.name in METHODS))
    for trial in (None, 1, 3):
        pd.testing.assert_frame_equal(
            kept.leaderboard(trial, full=True),
            whole.leaderboard(trial, full=True),
            check_exact=True,
        )
    for mine, its in zip(kept.scored()[0], whole.scored()[0], strict=True):
        for name in ("runs", "fallbacks", "task_names"):
            assert getattr(mine, name) == getattr(its, name)
        for measure, scores in its.measures.items():
            np.testing.assert_array_equal(mine.measures[measure].values, scores.values)


def test_any_losses_come_back_to_the_last_bit(full):
    """Those of no unit, ties, both zeros, and numbers near the ends of what there is."""
    spec = benchmark_spec("yahpo-svm-1220")
    done = overview(full.store).runs
    done = done[done["benchmark"] == spec.id].drop(columns="state")
    keys = list(done["key"])
    trials, timings = full.store.read(keys), full.store.records.timings(keys)
    rng = np.random.default_rng(0)
    odd = np.array([0.0, -0.0, 5e-324, -1e308, 1e308, 1 / 3, 1 / 3, -0.5])
    losses = np.where(rng.random(len(trials)) < 0.5, rng.choice(odd, len(trials)), trials["loss"])
    trials = trials.assign(loss=losses, value=-losses)
    kept = ReferenceFile.of(done, trials, timings, spec)
    back = ReferenceFile.from_bytes(kept.to_bytes(spec), name="it")
    assert back.losses.tobytes() == kept.losses.tobytes()
    assert back.runs.equals(kept.runs)
    assert back.to_bytes(spec) == kept.to_bytes(spec)


def test_a_method_compared_with_the_reference_ranks_as_if_all_had_been_run(full, bundle, tmp_path):
    compared = hbo.run(
        benchmarks=BENCHMARKS,
        methods=[Mine],
        protocol=PROTOCOL,
        against="reference",
        folder=tmp_path / "mine",
    )
    assert {cell.seed for cell in compared.cells} == {0, 1, 2}  # the reference's
    assert set(compared.frame()["method"]) == {as_method_spec(Mine).name}
    # Against a folder, the protocol and the seeds are taken from there.
    settings = {"benchmarks": BENCHMARKS, "methods": [Mine], "folder": tmp_path / "mine"}
    for board in (compared, hbo.run(**settings, against=full.store.folder)):
        pd.testing.assert_frame_equal(
            board.leaderboard(full=True).drop(columns="seconds"),
            full.leaderboard(full=True).drop(columns="seconds"),
            check_exact=True,
        )


def test_what_is_run_takes_the_place_of_the_reference_s_own(bundle, tmp_path):
    settings = {"against": "reference", "folder": tmp_path / "mine", "seeds": [1]}
    compared = results(methods=["cts", Mine], **settings)
    board = compared.leaderboard()
    rows = board[board["benchmark"] == "all"].set_index("method")
    assert set(rows.index) == {*METHODS, as_method_spec(Mine).name}
    assert set(rows["seeds"]) == {1}
    with pytest.raises(ExperimentError, match="without configurations"):
        compared.plot.landscape("newsvendor")


def test_fewer_tasks_are_the_first_ones(full, bundle, tmp_path):
    fewer = hbo.Ordered(trials=6, tasks=2)
    for path in bundle.glob("*.npz"):  # as if all tasks had been run
        file = file_of(path)
        spec = benchmark_spec(file.cell["benchmark"])
        cell = file.cell | {"protocol": format_protocol(hbo.Ordered(trials=6))}
        path.write_bytes(replace(file, cell=cell).to_bytes(spec))
    kept = hbo.Results(reference_store(BENCHMARKS, protocol=fewer), ())
    run = results(tmp_path / "fewer", protocol=fewer)
    boards = (one.leaderboard(full=True).drop(columns="seconds") for one in (kept, run))
    pd.testing.assert_frame_equal(*boards)


def test_what_other_versions_made_is_left_out_by_name(bundle):
    newsvendor = bundle / "newsvendor@1-table-ordered.npz"
    spec = benchmark_spec("newsvendor")
    file = file_of(newsvendor)
    versions = file.runs["method_version"].where(file.runs["method"] != "cts", "0")
    newsvendor.write_bytes(
        replace(file, runs=file.runs.assign(method_version=versions)).to_bytes(spec)
    )
    with pytest.warns(OutdatedReferenceWarning, match=r"left out: cts, version 0$"):
        kept = hbo.reference("newsvendor")
    assert set(kept.overview().runs["method"]) == {"random-search", "zero-shot"}
    old = file.cell | {"benchmark": "newsvendor@0"}
    newsvendor.write_bytes(replace(file, cell=old).to_bytes(spec))
    with pytest.warns(OutdatedReferenceWarning, match=r"left out: newsvendor@0 \(table\)$"):
        assert "newsvendor@0" not in set(hbo.reference(*BENCHMARKS).overview().runs["benchmark"])


def test_what_is_not_there_is_said(bundle, tmp_path):
    with pytest.raises(ExperimentError, match="best losses so far, without configurations"):
        hbo.reference("newsvendor").frame()
    with pytest.raises(UnknownNameError, match="did you mean 'newsvendor'"):
        hbo.reference("newsvender")
    with pytest.raises(UnknownNameError, match="unknown method 'ct'"):
        hbo.reference("newsvendor", methods=["ct"])
    with pytest.raises(ExperimentError, match="no reference results of quadratic"):
        hbo.reference("quadratic")
    with pytest.raises(ExperimentError, match="nothing to compare with on quadratic@1"):
        results(tmp_path, [Mine], benchmarks=["newsvendor", "quadratic"], against="reference")


@pytest.mark.slow
def test_a_report_of_the_reference_has_no_landscapes(bundle, tmp_path):
    report = hbo.report(hbo.reference("newsvendor"), tmp_path / "report")
    stems = {path.stem for path in report.files}
    assert "leaderboard" in stems
    assert not any(stem.startswith("landscapes") for stem in stems)


@pytest.mark.slow
def test_runs_made_again_are_those_of_the_reference():
    """A random draw of what comes with the package."""
    rng = np.random.default_rng(0)
    bundled = [file_of(path) for path in sorted(Path(str(reference.FOLDER)).glob("*.npz"))]
    sizes = np.array([len(file.runs) for file in bundled])
    for number in rng.choice(sizes.sum(), DRAW, replace=False):
        place = int(np.searchsorted(np.cumsum(sizes), number, side="right"))
        file, row = bundled[place], int(number - sizes[:place].sum())
        run, losses = file.runs.iloc[row], file.losses[row]
        (cell,) = plan(
            benchmarks=[file.cell["benchmark"]],
            methods=[run["method"]],
            seeds=[int(run["seed"])],
            protocol=parse_protocol(file.cell["protocol"]),
            surrogates={file.cell["benchmark"]: file.cell["surrogate"]},
        )
        assert cell.describe() == file.cell | dict(run[["method", "method_version", "seed"]])
        table, _ = run_cell(cell)
        made = table["loss"].to_numpy().reshape(losses.shape)
        is_kept = ~np.isnan(losses)
        np.testing.assert_array_equal(made[is_kept], losses[is_kept], err_msg=str(cell))
        best = np.minimum.accumulate(made, axis=1)
        assert (np.where(is_kept, np.inf, made) >= best).all()
        improves = np.diff(best, axis=1) < 0
        assert is_kept[:, 1:][improves].all()
