import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import xgboost_mnist
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.reproduction import paper
from hpobench_ordered.reproduction.evidence import Evidence, Landscape
from hpobench_ordered.reproduction.paper import Setting, experiments
from hpobench_ordered.reproduction.papers.othpo import paper as othpo

OTHPO = paper("othpo")


def test_experiments_are_the_papers():
    """65 experiments (appendix H), and three more for section G.7."""
    names = [*(f"figure-{number}" for number in (1, *range(4, 20))), "table-4"]
    assert [exhibit.name for exhibit in OTHPO.exhibits] == names
    assert OTHPO.setting == Setting(hbo.Ordered(trials=25), seeds=tuple(range(50)))
    for exhibit in OTHPO.exhibits:
        assert exhibit.caption.endswith(".") and exhibit.says.endswith(".")
    methods = experiments(OTHPO.exhibits)
    assert set(methods) == set(hbo.suite("othpo"))
    assert sum(len(names) for names in methods.values()) == 65 + 3
    without_dre = experiments(
        e for e in OTHPO.exhibits if e.title not in ("Figure 18", "Figure 19")
    )
    assert sum(len(names) for names in without_dre.values()) == 65
    assert {name for names in methods.values() for name in names} <= set(hbo.list_methods())


@pytest.mark.parametrize(
    ("figures", "tables", "runs"),
    [([1, 4, 8, 9, 10], [], 0), ([5], [], 30), ([7], [], 45), ([17], [], 4), ([], [4], 6)],
)
def test_selection_needs_its_own_runs(figures, tables, runs):
    chosen = OTHPO.select(figures=figures, tables=tables)
    assert sum(len(names) for names in experiments(chosen).values()) == runs


def test_dre_ordered_changes_no_other_figure(constructed):
    rng = np.random.default_rng(0)
    name = othpo.NEWSVENDOR
    losses = {(name, method): rng.random((2, 9, 25)) for method in othpo.TEN}
    losses[name, "random-search"] += 1
    losses[name, "dre-ordered"] = rng.random((2, 9, 25)) - 5  # far better than all others
    evidence = constructed(losses)
    (main, with_dre) = (chosen[0] for chosen in (othpo.MAIN, othpo.WITH_DRE))
    assert evidence.scores(main).mean[..., -1].min() == pytest.approx(0)
    assert evidence.scores(with_dre).mean[:-1, :, -1].min() > 0


@pytest.mark.slow
def test_tasks_and_axes_exist():
    for name, tasks in othpo.SHOWN.items():
        benchmark = hbo.load(name)
        assert max(tasks) == len(benchmark.tasks) - 1 and min(tasks) == 1
        assert set(othpo.TOPS) == {1, 10, 25}
    for name in hbo.suite("othpo"):
        if name.startswith("yahpo"):
            assert set(othpo.AXES[name.rpartition("-")[0]]) <= set(hbo.load(name).space.names)
            quarters = [hbo.load(name).tasks[t].name for t in othpo.QUARTERS]
            assert quarters == ["5%", "25%", "50%", "75%", "100%"]


def test_small_spaces_are_shown_whole():
    table = Landscape.of(hbo.load("newsvendor"))
    assert table.is_complete and table.objective.shape == (9, 21**3)
    best = [task.best_value for task in table.benchmark.tasks]
    np.testing.assert_array_equal(table.objective.max(axis=1), best)
    sampled = Landscape.of(hbo.load("yahpo-svm-1220"))
    assert not sampled.is_complete and sampled.objective.shape == (20, 1000)
    np.testing.assert_array_equal(sampled.values, Landscape.of(hbo.load("yahpo-svm-1220")).values)


@pytest.mark.slow
def test_nearest_shows_what_the_authors_evaluated(shared, tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    xgboost_mnist.PUBLISHED.store(shared / "data" / f"{xgboost_mnist.PUBLISHED.name}.gz")
    surrogates = {"xgboost-mnist": "nearest"}
    evidence = Evidence(
        Store(tmp_path / "none"), {}, surrogates=surrogates, landscape=OTHPO.landscape
    )
    landscape = evidence.landscape("xgboost-mnist")
    assert landscape.objective.shape == (28, 1000)
    best = [task.best_value for task in landscape.benchmark.tasks]
    np.testing.assert_array_equal(landscape.objective.min(axis=1), best)
