from pathlib import Path

import hpobench_ordered as hbo
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.experiment.overview import overview
from hpobench_ordered.experiment.scored import scored


def results(folder: Path, benchmark: str, surrogate: str | None = None) -> Results:
    return hbo.run(
        benchmarks=[benchmark],
        methods=["random-search", "zero-shot"],
        seeds=range(2),
        protocol=hbo.Ordered(trials=3, tasks=6),
        surrogates={} if surrogate is None else {benchmark: surrogate},
        folder=folder,
    )


def test_the_leaderboard_of_results(tmp_path: Path) -> None:
    table = results(tmp_path, "newsvendor").leaderboard(trial=2)
    assert list(table["benchmark"]) == ["all", "all", "newsvendor@1", "newsvendor@1"]
    assert set(table["trial"]) == {2}
    assert (table["seconds"] > 0).all()


def test_interpolated_tasks_and_stand_ins_can_be_left_out(tmp_path: Path) -> None:
    result = results(tmp_path, "yahpo-svm-1220")
    (whole,), _ = scored(result.store, result.overview())
    (measured,), _ = scored(result.store, result.overview(), measured_only=True)
    assert set(measured.task_names) < set(whole.task_names)
    assert len(result.leaderboard(measured_only=True)) == 4
    results(tmp_path, "yahpo-ranger-4154")  # a stand-in
    everything = overview(result.store)
    names = [item.benchmark for item in scored(result.store, everything)[0]]
    assert names == ["yahpo-ranger-4154@1", "yahpo-svm-1220@1"]
    left = scored(result.store, everything, measured_only=True)[0]
    assert [item.benchmark for item in left] == ["yahpo-svm-1220@1"]
