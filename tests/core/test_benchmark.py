"""What a benchmark gives as history: recorded evaluations, or random ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations
from hpobench_ordered.core.benchmark import HISTORY_SIZE


@pytest.fixture(scope="module")
def newsvendor():
    return hbo.load("newsvendor")


@pytest.fixture(scope="module")
def recorded(newsvendor):
    """The benchmark newsvendor with 30 recorded evaluations of each task."""
    rng = np.random.default_rng(0)
    tasks = range(len(newsvendor.tasks))
    evaluations = tuple(newsvendor.evaluations(task, rng=rng, n=30) for task in tasks)
    return replace(newsvendor, recorded=lambda: evaluations)


@pytest.mark.parametrize("n", [None, 30, 1000])
def test_all_recorded_evaluations_are_history(recorded, n):
    """Where all 30 recorded evaluations are asked for, or more."""
    history = recorded.evaluations(2, rng=np.random.default_rng(0), n=n)
    assert history is recorded.recorded()[2]


def test_random_evaluations_are_history_by_default(newsvendor):
    history = newsvendor.evaluations(4, rng=np.random.default_rng(1))
    assert (len(history), history.task) == (HISTORY_SIZE, "4")


def test_losses_of_maximised_objective_are_negative(newsvendor):
    history = newsvendor.evaluations(4, rng=np.random.default_rng(1))
    assert np.array_equal(-history.losses, newsvendor.tasks[4].evaluate_many(history.values))


def test_history_size_is_the_default_number(newsvendor):
    small = replace(newsvendor, history_size=7)
    assert len(small.evaluations(0, rng=np.random.default_rng(0))) == 7


def test_random_evaluations_depend_on_seed_alone(newsvendor):
    """Of task 4, with one seed twice and with another one."""
    values = newsvendor.evaluations(4, rng=np.random.default_rng(1)).values
    again = newsvendor.evaluations(4, rng=np.random.default_rng(1)).values
    other = newsvendor.evaluations(4, rng=np.random.default_rng(2)).values
    assert np.array_equal(values, again)
    assert not np.array_equal(values, other)


def test_loaded_benchmark_knows_its_source(newsvendor):
    assert (newsvendor.source, newsvendor.identity) == ("newsvendor@1", "newsvendor@1")


def test_changed_benchmark_has_no_source():
    """Its source, by which it could be loaded again, is that of another benchmark."""
    changed = replace(hbo.load("newsvendor"), history_size=7)
    assert (changed.source, changed.identity) == ("", "")


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_seed_chooses_part_of_recorded(recorded, n, seed):
    """Which n of the 30 recorded evaluations."""
    part = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    again = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    assert len(part) == n
    assert np.array_equal(part.values, again.values)


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_part_of_recorded_keeps_their_order(recorded, n, seed):
    """Which n of 30 recorded evaluations are drawn depends on the seed."""
    task = 1
    all_evaluations: Evaluations = recorded.recorded()[task]
    part = recorded.evaluations(task, rng=np.random.default_rng(seed), n=n)

    row_of_evaluation = {}
    for row, evaluation in enumerate(hashable_evaluations(all_evaluations)):
        row_of_evaluation.setdefault(evaluation, row)
    rows_of_part = [row_of_evaluation[evaluation] for evaluation in hashable_evaluations(part)]
    assert rows_of_part == sorted(rows_of_part)


def hashable_evaluations(evaluations: Evaluations) -> list[tuple[bytes, float]]:
    """The values, as bytes, and the loss of each evaluation."""
    pairs = zip(evaluations.values, evaluations.losses, strict=True)
    return [(values.tobytes(), loss) for values, loss in pairs]
