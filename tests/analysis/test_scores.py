"""Scores, regrets and ranks, from losses of shape (methods, seeds, tasks, trials)."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from hpobench_ordered.analysis.bootstrap import mean_intervals
from hpobench_ordered.analysis.samples import (
    Resampling,
    at_incumbents,
    independent_samples,
    trial_arrays,
)
from hpobench_ordered.analysis.scores import (
    Scores,
    best_known_losses,
    highest_losses,
    normalised_regrets,
    normalised_scores,
    ranks_by_seed,
    ranks_of_means,
)
from hpobench_ordered.errors import ExperimentError

METHODS = ["random-search", "a", "b"]


def make_table(losses: np.ndarray) -> pd.DataFrame:
    """Make a table with a row for each trial, of losses (methods, seeds, tasks, trials)."""
    n_seeds, n_tasks, n_trials = losses.shape[1:]
    index = pd.MultiIndex.from_product(
        [METHODS, range(n_seeds), range(n_tasks), range(n_trials)],
        names=["method", "seed", "task", "trial"],
    )
    return pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()


def test_normalised_scores_computed_by_hand():
    """The score is 100 (incumbent - 6) / (10 - 6), on one task with two seeds and two trials.

    Here 10 is the last mean incumbent of random search, and 6 the best of all methods. The mean
    incumbents are 11.5 and 10 of random search, 8 and 6 of a, and 8 twice of b.
    """
    random_search, a, b = [[12, 9], [11, 13]], [[7, 9], [9, 5]], [[8, 8], [8, 8]]  # (seeds, trials)
    losses = np.array([random_search, a, b], dtype=float)[:, :, None]  # on a single task

    scores = normalised_scores(losses, METHODS)

    task = 0
    scores_of_random_search, scores_of_a, scores_of_b = scores.mean[:, task]  # each (trials,)
    np.testing.assert_allclose(scores_of_random_search, [137.5, 100])
    np.testing.assert_allclose(scores_of_a, [50, 0])
    np.testing.assert_allclose(scores_of_b, [50, 50])
    # After the first trial a has the losses 7 and 9: standard deviation sqrt(2), standard error 1.
    _, errors_of_a, _ = scores.two_standard_errors[:, task]
    assert errors_of_a[0] == pytest.approx(2 * 100 * 1 / (10 - 6))


def draw_losses_with_undefined_task() -> np.ndarray:
    """Draw losses (methods, seeds, tasks, trials); random search is the best on task 1 of three.

    Scores are not defined on that task.
    """
    random_search, a, b = np.random.default_rng(0).random((3, 4, 3, 5))
    difference_on_task = np.array([1, -10, 1])  # losses of random search are higher, lower, higher
    return np.stack([random_search + difference_on_task[:, None], a, b])


def test_mean_leaves_out_undefined_tasks():
    """Where random search is the best of all, as on task 1 of three, no score is defined."""
    scores = normalised_scores(draw_losses_with_undefined_task(), METHODS)

    summary = scores.over_tasks(trial=5, first_task=1)  # on tasks 1 and 2

    final_scores = scores.mean[:, :, -1]  # (methods, tasks), after the fifth trial
    scores_on_task_1, scores_on_task_2 = final_scores[:, 1], final_scores[:, 2]
    assert np.isnan(scores_on_task_1).all()
    assert summary.tasks == 2
    assert summary.defined == 1
    np.testing.assert_allclose(summary.mean, scores_on_task_2)


TIED_LOSSES = hnp.arrays(int, (3, 2, 2, 4), elements=st.integers(-10_000, 10_000)).map(
    lambda losses: losses / 100
)
"""Losses of random search and two other methods, two seeds on two tasks, of four trials each."""


def test_unbeaten_random_search_has_no_score():
    """Random search counts as unbeaten if a method is better by so little that scores overflow.

    On the first task all losses are equal. On the second one method a ends better by 1e-310.
    """
    random_search = [[0.0, 0.0], [1.0, 0.0]]  # (tasks, trials)
    a = [[0.0, 0.0], [1.0, -1e-310]]
    b = [[0.0, 0.0], [1.0, 0.0]]
    losses = np.array([random_search, a, b])[:, None]  # with a single seed

    scores = normalised_scores(losses, METHODS)

    assert np.isnan(scores.values).all()


@given(hnp.arrays(int, (3, 6), elements=st.integers(0, 4)))
def test_quantities_belong_to_best_trial(losses):
    """Any quantity of trials, such as a regret, is that of the trial of lowest loss so far."""
    quantity = np.random.default_rng(0).random(losses.shape)  # (runs, trials)
    computed = at_incumbents(quantity, losses.astype(float))
    for run, trial in np.ndindex(losses.shape):
        losses_so_far = losses[run, : trial + 1]
        best_trial = losses_so_far.argmin()
        assert computed[run, trial] == quantity[run, best_trial]


def test_missing_trials_are_named():
    """All methods must have the same trials; the error counts the missing ones, and names one."""
    frame = make_table(np.zeros((3, 2, 2, 2)))
    without_last = frame.iloc[:-1]  # the last trial of method b with seed 1
    with pytest.raises(ExperimentError, match="1 trials are missing, such as b, seed 1"):
        trial_arrays(without_last, METHODS, ["loss"])


def test_missing_runs_are_masked():
    """A missing run has no losses, but a mask says so: no loss is NaN."""
    losses = np.zeros((3, 2, 2, 2))
    frame = make_table(losses)
    is_missing = (frame["method"] == "b") & (frame["seed"] == 1)

    arrays, is_finished = trial_arrays(
        frame[~is_missing], METHODS, ["loss"], allow_missing_runs=True
    )

    assert is_finished.tolist() == [[True, True], [True, True], [True, False]]
    assert (arrays["loss"][2, 1] == np.inf).all()
    assert (arrays["loss"][is_finished] == 0).all()


def test_scores_need_random_search():
    with pytest.raises(ExperimentError, match="random-search"):
        normalised_scores(np.zeros((1, 1, 1, 1)), ["bo"])


RANDOM_LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(-5, 6, (2, 3, 2, 4)).astype(float)
)
"""Losses from -5 to 5 of two methods with three seeds on two tasks, of four trials each."""


@given(RANDOM_LOSSES)
def test_best_losses_follow_from_regrets(losses):
    """A regret is a loss less the best known loss of its task, which so follows from the two."""
    best_of_task = np.array([-6.0, -5.0])
    regrets = losses - best_of_task[:, None]  # (methods, seeds, tasks, trials)
    np.testing.assert_array_equal(best_known_losses(losses, regrets), best_of_task)


@given(RANDOM_LOSSES)
def test_normalised_regret_is_from_zero_to_one(losses):
    """A regret is undefined, NaN, where all losses on a task are equal."""
    best = losses.min(axis=(0, 1, 3))  # of each task
    regrets = normalised_regrets(losses, best, highest_losses(losses))
    defined = regrets[~np.isnan(regrets)]
    assert ((defined >= 0) & (defined <= 1)).all()


@pytest.mark.parametrize(
    ("best", "worst", "expected"),
    [
        (1.0, 5.0, [1, 0.5, 0.5, 0]),
        (2.0, 4.0, [1.5, 0.5, 0.5, -0.5]),
        (np.nan, 5.0, [np.nan] * 4),  # an unknown best loss
        (3.0, 3.0, [np.nan] * 4),
    ],
)
def test_normalised_regret_by_hand(best, worst, expected):
    """The regret is (incumbent - best) / (worst - best), after each of four trials.

    Their incumbents are 5, 3, 3 and 1.
    """
    losses = np.array([[[[5.0, 3, 4, 1]]]])  # of one method, seed and task
    regrets = normalised_regrets(losses, np.array([best]), np.array([worst]))
    np.testing.assert_array_equal(regrets, [[[expected]]])


def test_highest_loss_ignores_failures():
    """Losses of failed trials are infinite; all of the second task failed."""
    first_method = [[np.inf, 2, np.inf], [np.inf, np.inf, np.inf]]  # (tasks, trials)
    second_method = [[5, 4, 3], [np.inf, np.inf, np.inf]]
    losses = np.array([[first_method], [second_method]])  # (methods, seeds, tasks, trials)

    highest_of_task = highest_losses(losses)

    np.testing.assert_array_equal(highest_of_task, [5, np.nan])


def test_ranks_are_of_mean_losses():
    """Methods are ranked on each task by their mean incumbents over seeds.

    The mean rank is over tasks, and so is its error.
    """
    n_tasks = 5
    losses = np.random.default_rng(0).random((4, 6, n_tasks, 7))  # (methods, seeds, tasks, trials)

    ranks = ranks_of_means(losses, "abcd")

    mean_incumbents = np.minimum.accumulate(losses, axis=-1).mean(axis=1)
    ranks_on_tasks = rankdata(mean_incumbents, axis=0)  # (methods, tasks, trials)
    standard_errors = ranks_on_tasks.std(axis=1, ddof=1) / np.sqrt(n_tasks)
    np.testing.assert_allclose(ranks.mean[:, 0], ranks_on_tasks.mean(axis=1))
    np.testing.assert_allclose(ranks.two_standard_errors[:, 0], 2 * standard_errors)


@pytest.mark.parametrize("few_seeds", [1, 3, 7])
@pytest.mark.parametrize("methods_with_few", [1, 6])
def test_errors_of_ranks_are_right_with_unequal_seeds(few_seeds, methods_with_few):
    """The standard error of a mean rank over seeds is how much it varies between experiments.

    It is that of the first of 12 equal methods, which has all ten seeds; the last ones have few.
    Each of many tasks is an experiment of its own.
    """
    losses = np.random.default_rng(0).normal(size=(12, 10, 4000, 1))
    is_finished = np.ones((12, 10), dtype=bool)
    is_finished[12 - methods_with_few :, few_seeds:] = False

    ranks = ranks_by_seed(losses, [str(a) for a in range(12)], is_finished=is_finished)

    true_variance = ranks.mean[0].var()
    standard_errors = ranks.two_standard_errors[0] / 2
    assert 0.85 < (standard_errors**2).mean() / true_variance < 1.3


@given(
    hnp.arrays(float, (4, 5, 2, 3), elements=st.integers(0, 3).map(float)),
    hnp.arrays(bool, (4, 5)),
)
def test_mean_ranks_compare_pairs_on_common_seeds(losses, is_missing):
    """A mean rank is 1 plus the share of common seeds in which each other method is better.

    Ties, and methods without common seeds, count half. The mean ranks sum to 1 + 2 + 3 + 4.
    """
    is_missing[np.arange(4), np.arange(4)] = False  # each method has a seed
    best_losses = np.minimum.accumulate(losses, axis=-1)

    computed = ranks_by_seed(losses, "abcd", is_finished=~is_missing).mean

    expected = np.ones((4, 2, 3))
    for a, b in itertools.permutations(range(4), 2):
        is_common = ~is_missing[a] & ~is_missing[b]
        of_a, of_b = best_losses[a, is_common], best_losses[b, is_common]
        outcomes = (of_b < of_a) + (of_b == of_a) / 2
        expected[a] += outcomes.mean(axis=0) if is_common.any() else 0.5
    np.testing.assert_allclose(computed, expected)
    np.testing.assert_allclose(computed.sum(axis=0), 10)


def has_interval(ranks: Scores, method: int, trial: int = 1) -> bool:
    """Whether the mean rank of a method has an interval over seeds after a trial."""
    samples = independent_samples(ranks.values[..., trial - 1], Resampling.SEEDS)
    interval = mean_intervals(samples, rng=np.random.default_rng(0))
    return not np.isnan(interval.lower[method])


def draw_losses_with_few_seeds() -> tuple[np.ndarray, np.ndarray]:
    """Losses of three methods, of which the third has four seeds of six; and the finished runs.

    The first is always better than the second; the third is better than the first in half of its
    runs.
    """
    losses = np.empty((3, 6, 2, 1))  # (methods, seeds, tasks, trials)
    losses[0] = 1.0
    losses[1] = 2.0
    losses[2] = np.array([0.0, 3.0] * 3)[:, None, None]
    is_finished = np.ones((3, 6), dtype=bool)
    is_finished[2, 4:] = False
    return losses, is_finished


def test_ranks_have_no_interval_without_variation():
    """Comparisons with the method that has all seeds tell nothing of those with the other one."""
    losses, is_finished = draw_losses_with_few_seeds()

    ranks = ranks_by_seed(losses, "abc", is_finished=is_finished)

    mean_ranks = ranks.over_tasks(trial=1).mean
    np.testing.assert_allclose(mean_ranks, [1.5, 2.5, 2.0])
    assert not has_interval(ranks, method=0)


@pytest.mark.parametrize(("first_task", "expected"), [(0, True), (1, False)])
def test_only_tasks_that_count_give_intervals(first_task, expected):
    """The first two methods differ from seed to seed on the first task alone."""
    losses, is_finished = draw_losses_with_few_seeds()
    losses[1, ::2, 0] = 0.5

    ranks = ranks_by_seed(losses, "abc", is_finished=is_finished, first_task=first_task)

    assert has_interval(ranks, method=0) == expected
