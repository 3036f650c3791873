"""What a benchmark gives as history, recorded evaluations or random ones; and its tasks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations
from hpobench_ordered.data import Definition, TaskDefinition
from hpobench_ordered.data.benchmark import HISTORY_SIZE
from hpobench_ordered.errors import EvaluationsError, HistoryWarning, InvalidConfigError


@pytest.fixture(scope="module")
def newsvendor():
    return hbo.load("newsvendor")


@pytest.fixture(scope="module")
def recorded_benchmark(newsvendor):
    """The benchmark newsvendor, as if 30 evaluations of each task had been recorded."""
    rng = np.random.default_rng(0)
    tasks = range(len(newsvendor.tasks))
    evaluations = tuple(newsvendor.evaluations(task, rng=rng, n=30) for task in tasks)
    return replace(newsvendor, recorded=lambda: evaluations)


@pytest.mark.parametrize("n", [None, 30, 1000])
def test_all_recorded_evaluations_are_history(recorded_benchmark, n):
    """Asked for all 30 recorded evaluations, or for more, a benchmark gives all of them."""
    task = 2
    history = recorded_benchmark.evaluations(task, rng=np.random.default_rng(0), n=n)
    assert history is recorded_benchmark.recorded()[task]


def test_random_evaluations_are_history_by_default(newsvendor):
    """A benchmark without recorded evaluations gives `HISTORY_SIZE` random ones of the task."""
    history = newsvendor.evaluations(4, rng=np.random.default_rng(1))
    assert len(history) == HISTORY_SIZE
    assert history.task == "4"


def test_losses_of_maximised_objective_are_negated(newsvendor):
    """The objective of newsvendor is maximised: losses, which are minimised, are its negatives."""
    history = newsvendor.evaluations(4, rng=np.random.default_rng(1))
    assert np.array_equal(-history.losses, newsvendor.tasks[4].evaluate_many(history.values))


def test_history_size_is_the_default_number(newsvendor):
    """A benchmark with a `history_size` gives so many random evaluations unless told otherwise."""
    small = replace(newsvendor, history_size=7)
    assert len(small.evaluations(0, rng=np.random.default_rng(0))) == 7


def test_seed_decides_random_evaluations(newsvendor):
    """The same seed draws the same evaluations of a task, another seed draws others."""
    task = 4
    values = newsvendor.evaluations(task, rng=np.random.default_rng(1)).values
    again = newsvendor.evaluations(task, rng=np.random.default_rng(1)).values
    other = newsvendor.evaluations(task, rng=np.random.default_rng(2)).values
    assert np.array_equal(values, again)
    assert not np.array_equal(values, other)


def test_loaded_benchmark_knows_its_source(newsvendor):
    """The source, by which a registered benchmark can be loaded again, is its name and version."""
    assert newsvendor.source == "newsvendor@1"
    assert newsvendor.identity == "newsvendor@1"


def test_changed_benchmark_has_no_source():
    """By its source a benchmark can be loaded again, but not as it was changed in memory."""
    changed = replace(hbo.load("newsvendor"), history_size=7)
    assert changed.source == ""
    assert changed.identity == ""


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_same_seed_chooses_same_recorded(recorded_benchmark, n, seed):
    """The seed decides which n of the 30 recorded evaluations of a task are given."""
    task = 1
    chosen = recorded_benchmark.evaluations(task, rng=np.random.default_rng(seed), n=n)
    again = recorded_benchmark.evaluations(task, rng=np.random.default_rng(seed), n=n)
    assert len(chosen) == n
    assert np.array_equal(chosen.values, again.values)


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_chosen_evaluations_keep_recorded_order(recorded_benchmark, n, seed):
    """If only n of the 30 recorded evaluations are given, they are not shuffled."""
    task = 1
    all_evaluations: Evaluations = recorded_benchmark.recorded()[task]
    chosen = recorded_benchmark.evaluations(task, rng=np.random.default_rng(seed), n=n)

    row_of_evaluation: dict[tuple[bytes, float], int] = {}
    for row, evaluation in enumerate(hashable_evaluations(all_evaluations)):
        # Of equal evaluations the first row counts.
        row_of_evaluation.setdefault(evaluation, row)
    rows_of_chosen = [row_of_evaluation[evaluation] for evaluation in hashable_evaluations(chosen)]
    assert rows_of_chosen == sorted(rows_of_chosen)


def hashable_evaluations(evaluations: Evaluations) -> list[tuple[bytes, float]]:
    """Make a key for a dictionary of each evaluation: its values, as bytes, and its loss."""
    pairs = zip(evaluations.values, evaluations.losses, strict=True)
    return [(values.tobytes(), loss) for values, loss in pairs]


def test_best_values_must_be_as_many_as_tasks(newsvendor):
    """A benchmark of nine tasks is not built with two best values."""
    definition = Definition(
        "mine",
        1,
        "Mine.",
        newsvendor.space,
        newsvendor.objective,
        tuple(TaskDefinition(task.name, task.context) for task in newsvendor.tasks),
        newsvendor.provenance,
    )
    with pytest.raises(EvaluationsError, match="for each of 9 tasks, but has 2"):
        hbo.Benchmark.build(
            definition, surrogate="mine", model=newsvendor.tasks[0]._surrogate, best_values=[1, 2]
        )


def test_regret_of_the_best_is_a_positive_zero(newsvendor):
    """The best value has the regret 0, not the -0 that negating a difference could give."""
    task = newsvendor.tasks[0]  # its objective is maximised
    assert str(task.regret(task.best_value)) == "0.0"


def test_unknown_best_value_is_explained(newsvendor):
    """Without a best value there is no regret; the error says what to do instead."""
    task = replace(newsvendor.tasks[0], best_value=None)
    with pytest.raises(ValueError, match=r"compare objective values, or make .* `best_values`"):
        task.regret(1.0)


def test_equal_tasks_have_equal_hashes(newsvendor):
    """A set holds two equal tasks once."""
    task = newsvendor.tasks[3]
    equal_task = replace(task)
    assert {task, equal_task} == {task}


def test_table_of_arrow_is_evaluated(newsvendor):
    task = newsvendor.tasks[0]
    frame = pd.DataFrame([newsvendor.space.sample(np.random.default_rng(0)) for _ in range(3)])
    values = task.evaluate_many(pa.Table.from_pandas(frame))
    assert values.tolist() == task.evaluate_many(frame).tolist()


def test_row_of_a_frame_is_explained(newsvendor):
    config = newsvendor.space.sample(np.random.default_rng(0))
    ((_, row),) = pd.DataFrame([config]).iterrows()
    with pytest.raises(InvalidConfigError, match=r"a row of a table is one by `dict\(row\)`"):
        newsvendor.tasks[0].evaluate(row)
    assert newsvendor.tasks[0].evaluate(dict(row)) == newsvendor.tasks[0].evaluate(config)


# -- parts of the search space ---------------------------------------------------------------------


def test_part_evaluates_as_the_whole(newsvendor):
    part = newsvendor.restrict({"price_0": 3, "price_1": (2, 9)})
    config = {"price_1": 4, "price_2": 5}

    assert part.tasks[2].evaluate(config) == newsvendor.tasks[2].evaluate({"price_0": 3, **config})
    assert part.space.names == ("price_1", "price_2")


def test_best_values_are_those_of_the_part(newsvendor):
    """In a table the optimum is exact."""
    part = newsvendor.restrict({"price_0": 3})
    fixed = newsvendor.tasks[2]
    prices = range(int(part.space["price_1"].upper) + 1)
    configs = [{"price_0": 3, "price_1": i, "price_2": j} for i in prices for j in prices]
    assert part.tasks[2].best_value == fixed.evaluate_many(configs).max()
    assert part.tasks[2].best_value < fixed.best_value


def test_history_of_part_is_recorded_inside(recorded_benchmark):
    """Only the recorded configurations in the part are left, with their values."""
    part = recorded_benchmark.restrict({"price_0": (0, 10)})

    for of_part, of_whole in zip(part.recorded(), recorded_benchmark.recorded(), strict=True):
        is_inside = of_whole.values[:, 0] <= 10
        assert 0 < len(of_part) < len(of_whole)
        assert np.array_equal(of_part.values, of_whole.values[is_inside])
        assert np.array_equal(of_part.objective, of_whole.objective[is_inside])


def test_part_without_recorded_history_warns(recorded_benchmark):
    """No recorded configuration has these two prices, so random ones are the history."""
    with pytest.warns(HistoryWarning, match="no recorded evaluation of '0', '1'"):
        part = recorded_benchmark.restrict({"price_0": 3, "price_1": 4})

    assert len(part.evaluations(0, rng=np.random.default_rng(0), n=5)) == 5


def test_unknown_best_values_stay_unknown(newsvendor):
    unknown = tuple(replace(task, best_value=None) for task in newsvendor.tasks)
    part = replace(newsvendor, tasks=unknown).restrict({"price_0": 3})
    assert {task.best_value for task in part.tasks} == {None}


def test_best_value_of_trained_part_is_recorded(recorded_benchmark):
    """Where every value needs a training, there is no search."""
    part = replace(recorded_benchmark, trains=True).restrict({"price_0": (0, 10)})
    assert part.tasks[1].best_value == part.recorded()[1].objective.max()


@pytest.fixture(scope="module")
def adjusted_benchmark():
    """The benchmark fcn-b; before the adjustment its first layer had the sizes 2 to 5."""
    bench = hbo.load("fcn-b")
    return replace(bench, previous=bench.previous.restrict({"n_units_1": (2, 5)}))


def test_space_before_adjustment_is_restricted(adjusted_benchmark):
    """What was allowed before is left; the layer had no size below 2."""
    part = adjusted_benchmark.restrict({"batch_size": 1, "n_units_1": (0, 3)})

    assert part.previous.space.constants["batch_size"] == 1
    assert part.previous.space["n_units_1"] == hbo.Parameter.number("n_units_1", 2, 3, integer=True)
    best_of_part = part.previous.tasks[0].best_value
    assert best_of_part >= adjusted_benchmark.previous.tasks[0].best_value  # it is minimised


def test_space_before_adjustment_without_these_values_stays(adjusted_benchmark):
    with pytest.warns(HistoryWarning, match="none of the values that are left of n_units_1"):
        part = adjusted_benchmark.restrict({"n_units_1": (0, 1)})
    assert part.previous.space == adjusted_benchmark.previous.space


def test_parts_have_identities_of_their_own(newsvendor):
    identities = {
        newsvendor.restrict(restriction).identify_by_values()
        for restriction in ({"price_0": 3}, {"price_0": 4}, {"price_0": (3, 4)})
    }
    assert len(identities) == 3
    assert newsvendor.restrict({"price_0": 3}).source == ""
    assert newsvendor.restrict({}) is newsvendor


def test_part_of_unfetched_data_has_an_identity():
    """Its training data need not be fetched, since their hashes are known."""
    part = hbo.load("openml-svm").restrict({"kernel": "radial"})
    assert part.identify_by_values().startswith("openml-svm@1+")
