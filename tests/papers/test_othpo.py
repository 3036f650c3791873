"""The paper othpo: methods on tasks in their order; figures 1 and 4 to 19, and table 4."""

from collections.abc import Sequence

import numpy as np
import pytest
from reproduction_support import InventedEvidence

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import xgboost_mnist
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.papers import paper
from hpobench_ordered.papers.evidence import Evidence, Landscape
from hpobench_ordered.papers.othpo import paper as othpo
from hpobench_ordered.papers.paper import Exhibit, MethodComparison, Setting, experiments

OTHPO = paper("othpo")


def count_experiments(exhibits: Sequence[Exhibit]) -> int:
    """Count pairs of a benchmark and a method that figures and tables need, each pair once."""
    return sum(len(methods) for methods in experiments(exhibits).values())


def test_figures_and_tables_are_the_papers():
    """All figures of the paper are reproduced but 2 and 3, which are sketches."""
    figures = [f"figure-{number}" for number in (1, *range(4, 20))]

    assert [exhibit.name for exhibit in OTHPO.exhibits] == [*figures, "table-4"]


def test_setting_is_the_papers():
    assert OTHPO.setting == Setting(hbo.Ordered(trials=25), seeds=tuple(range(50)))


def test_benchmarks_are_those_of_suite():
    assert set(experiments(OTHPO.exhibits)) == set(hbo.suite("othpo"))


def test_experiments_are_as_many_as_in_paper():
    """Appendix H of the paper counts 65 experiments, without those that section G.7 adds.

    Its figures 18 and 19 add one method on three benchmarks.
    """
    figures_of_g7 = ("Figure 18", "Figure 19")
    before_g7 = [exhibit for exhibit in OTHPO.exhibits if exhibit.title not in figures_of_g7]

    assert count_experiments(before_g7) == 65
    assert count_experiments(OTHPO.exhibits) == 65 + 3


def test_methods_are_registered():
    """Unlike other papers, this one needs no methods besides those of the package."""
    methods: set[str] = set()
    for methods_of_benchmark in experiments(OTHPO.exhibits).values():
        methods.update(methods_of_benchmark)

    assert methods <= set(hbo.list_methods())


@pytest.mark.parametrize(
    ("figures", "experiments_needed"),
    [
        pytest.param([1, 4, 8, 9, 10], 0, id="landscapes need none"),
        pytest.param([5], 3 * 10, id="three benchmarks, ten methods"),
        pytest.param([7], 10 + 7 * 5, id="ten methods on one benchmark, five on seven others"),
        pytest.param([17], 4, id="one benchmark, four methods"),
    ],
)
def test_figures_need_own_experiments(figures, experiments_needed):
    assert count_experiments(OTHPO.select(figures=figures)) == experiments_needed


def test_dre_ordered_changes_no_other_figure():
    """The scores of figures with ten methods do not depend on the method dre-ordered.

    A score of 0 is the lowest loss of all methods that are compared, so that a better method
    changes the scores of all. Most figures compare ten methods without dre-ordered, which is far
    better here.
    """
    rng = np.random.default_rng(0)
    shape = (2, 9, 25)  # seeds, tasks, trials
    losses = {("newsvendor", method): rng.random(shape) for method in othpo.TEN}
    losses["newsvendor", "random-search"] += 1  # worse than all others: it defines a score of 100
    losses["newsvendor", "dre-ordered"] = rng.random(shape) - 5  # far better than all others
    evidence = InventedEvidence(losses)
    ten_methods = find_comparison(othpo.MAIN, "newsvendor")
    ten_methods_and_dre = find_comparison(othpo.WITH_DRE, "newsvendor")

    # By method and task, after the last trial.
    scores_of_ten = evidence.scores(ten_methods).mean[..., -1]
    scores_with_dre = evidence.scores(ten_methods_and_dre).mean[..., -1]

    # Among ten methods one of them is best, although dre-ordered is better. With it, none is.
    assert scores_of_ten.min() == pytest.approx(0)
    *scores_of_others, scores_of_dre = scores_with_dre
    assert ten_methods_and_dre.methods[-1] == "dre-ordered"
    assert scores_of_dre.min() == pytest.approx(0)
    assert np.min(scores_of_others) > 0


def find_comparison(comparisons: Sequence[MethodComparison], benchmark: str) -> MethodComparison:
    """The comparison on a benchmark, of which there must be one."""
    (of_benchmark,) = [item for item in comparisons if item.benchmark == benchmark]
    return of_benchmark


@pytest.mark.slow
@pytest.mark.parametrize("name", othpo.SHOWN)
def test_tasks_shown_reach_last(name):
    """Figures show some tasks of a benchmark: not the first, which has no history, but the last."""
    tasks_shown = othpo.SHOWN[name]  # numbered from 0

    assert min(tasks_shown) == 1
    assert max(tasks_shown) == len(hbo.load(name).tasks) - 1


YAHPO_BENCHMARKS = [name for name in hbo.suite("othpo") if name.startswith("yahpo")]


@pytest.mark.slow
@pytest.mark.parametrize("name", YAHPO_BENCHMARKS)
def test_axes_of_landscapes_are_hyperparameters(name):
    """The axes are listed by scenario, such as yahpo-svm for the benchmark yahpo-svm-1220.

    Landscapes are of the tasks with each quarter of the data, after which tasks are named, and of
    the first task.
    """
    scenario, _, _instance = name.rpartition("-")
    benchmark = hbo.load(name)

    assert set(othpo.AXES[scenario]) <= set(benchmark.space.names)
    shares_of_data = [benchmark.tasks[index].name for index in othpo.QUARTERS]
    assert shares_of_data == ["5%", "25%", "50%", "75%", "100%"]


def test_landscape_of_small_space_is_complete():
    """A landscape has the values of all configurations of newsvendor: three prices from 0 to 20."""
    landscape = Landscape.of(hbo.load("newsvendor"))

    assert landscape.is_complete
    assert landscape.objective.shape == (9, 21**3)  # tasks, configurations
    best_values = [task.best_value for task in landscape.benchmark.tasks]
    np.testing.assert_array_equal(landscape.objective.max(axis=1), best_values)


def test_landscape_of_large_space_is_sample():
    """The search space of yahpo-svm-1220 is continuous; 1000 configurations are drawn from it.

    They are drawn at random, but always with the same seed.
    """
    landscape = Landscape.of(hbo.load("yahpo-svm-1220"))
    again = Landscape.of(hbo.load("yahpo-svm-1220"))

    assert not landscape.is_complete
    assert landscape.objective.shape == (20, 1000)  # tasks, configurations
    np.testing.assert_array_equal(landscape.values, again.values)


@pytest.mark.slow
def test_nearest_shows_what_the_authors_evaluated(shared, tmp_path, monkeypatch):
    """With the surrogate "nearest", a landscape has the 1000 configurations that it looks up.

    The best known value of each task is one of theirs.
    """
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    published_file = xgboost_mnist.PUBLISHED
    published_file.store(shared / "data" / f"{published_file.name}.gz")
    evidence = Evidence(
        Store(tmp_path / "none"),
        cells={},
        surrogates={"xgboost-mnist": "nearest"},
        landscape=OTHPO.landscape,
    )

    landscape = evidence.landscape("xgboost-mnist")

    assert landscape.objective.shape == (28, 1000)  # tasks, configurations
    best_values = [task.best_value for task in landscape.benchmark.tasks]
    np.testing.assert_array_equal(landscape.objective.min(axis=1), best_values)
