import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from hpobench_ordered.analysis.samples import at_incumbents, incumbents, trial_arrays
from hpobench_ordered.analysis.scores import (
    best_known_losses,
    highest_losses,
    normalised_regrets,
    normalised_scores,
    rank_over_methods,
    ranks_by_seed,
    ranks_of_means,
)
from hpobench_ordered.errors import ExperimentError

METHODS = ["random-search", "a", "b"]


def as_frame(losses: np.ndarray) -> pd.DataFrame:
    """One row per trial, of losses (A, S, T, M) of METHODS."""
    n_seeds, n_tasks, n_trials = losses.shape[1:]
    index = pd.MultiIndex.from_product(
        [METHODS, range(n_seeds), range(n_tasks), range(n_trials)],
        names=["method", "seed", "task", "trial"],
    )
    return pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()


def test_normalised_scores_computed_by_hand():
    """One task, two seeds, two trials; random search ends at 10 in the mean, a at 6, b at 8."""
    losses = np.empty((3, 2, 1, 2))  # (A, S, T, M)
    losses[0, :, 0] = [[12, 9], [11, 13]]
    losses[1, :, 0] = [[7, 9], [9, 5]]
    losses[2, :, 0] = [[8, 8], [8, 8]]

    scores = normalised_scores(losses, METHODS)

    # Mean incumbents after each trial: random search 11.5 and 10, a 8 and 6, b 8 and 8. The best
    # of them, 6, scores 0, and random search's last one, 10, scores 100.
    np.testing.assert_allclose(scores.mean[:, 0], [[137.5, 100], [50, 0], [50, 50]])
    # After one trial a has losses 7 and 9: standard deviation sqrt(2), standard error 1.
    np.testing.assert_allclose(scores.two_standard_errors[1, 0, 0], 2 * 1 * 100 / 4)


def losses_with_undefined_task() -> np.ndarray:
    """Losses (A, S, T, M) where random search is the best of all on task 1 of three."""
    losses = np.random.default_rng(0).random((3, 4, 3, 5))
    losses[0] += 1
    losses[0, :, 1] -= 10
    return losses


def test_mean_leaves_out_undefined_tasks():
    """Where random search is the best of all, as on task 1, no score is defined."""
    scores = normalised_scores(losses_with_undefined_task(), METHODS)
    summary = scores.over_tasks(trial=5, first_task=1)  # tasks 1 and 2, of which 1 is undefined
    assert np.isnan(scores.mean[:, 1]).all()
    assert (summary.defined, summary.tasks) == (1, 2)
    np.testing.assert_allclose(summary.mean, scores.mean[:, 2, 4])


def test_single_seed_has_no_standard_error():
    single_seed = losses_with_undefined_task()[:, :1]
    assert np.isnan(normalised_scores(single_seed, METHODS).two_standard_errors).all()


TIED_LOSSES = hnp.arrays(int, (3, 2, 2, 4), elements=st.integers(-10_000, 10_000)).map(
    lambda losses: losses / 100
)


@given(TIED_LOSSES)
def test_scores_end_at_100_and_0(losses):
    final = normalised_scores(losses, METHODS).mean[:, :, -1]
    is_defined = ~np.isnan(final[0])
    np.testing.assert_allclose(final[0, is_defined], 100)
    np.testing.assert_allclose(final[:, is_defined].min(axis=0), 0, atol=1e-9)


@given(TIED_LOSSES)
def test_scores_have_no_scale(losses):
    scores = normalised_scores(losses, METHODS)
    rescaled = normalised_scores(7 * losses - 3, METHODS)
    np.testing.assert_allclose(rescaled.values, scores.values, rtol=1e-6, atol=1e-6)


def test_unbeaten_random_search_has_no_score():
    losses = np.zeros((3, 1, 2, 2))
    losses[:, :, 1, 0] = 1.0
    losses[1, 0, 1, 1] = -1e-310  # better by so little that the first trial's score overflows
    assert np.isnan(normalised_scores(losses, METHODS).values).all()


@given(hnp.arrays(float, (2, 6), elements=st.floats(-100, 100)))
def test_incumbents_are_running_minima(losses):
    best = incumbents(losses)
    for trial in range(6):
        lowest_so_far = losses[:, : trial + 1].min(axis=1)
        np.testing.assert_array_equal(best[:, trial], lowest_so_far)


@given(hnp.arrays(int, (3, 6), elements=st.integers(0, 4)))
def test_quantities_belong_to_best_trial(losses):
    quantity = np.random.default_rng(0).random(losses.shape)
    computed = at_incumbents(quantity, losses.astype(float))
    for run, trial in np.ndindex(losses.shape):
        best_trial = losses[run, : trial + 1].argmin()
        assert computed[run, trial] == quantity[run, best_trial]


@given(hnp.arrays(int, (3, 6), elements=st.integers(0, 4)))
def test_losses_at_incumbents_are_incumbents(losses):
    np.testing.assert_array_equal(at_incumbents(losses, losses), incumbents(losses))


def test_arrays_ignore_order_of_rows():
    losses = np.random.default_rng(0).random((3, 4, 2, 5))
    frame = as_frame(losses).sample(frac=1, random_state=0)
    arrays = trial_arrays(frame.assign(value=-frame["loss"]), METHODS, ["value", "loss"])
    np.testing.assert_array_equal([arrays["value"], arrays["loss"]], [-losses, losses])


def test_missing_trials_are_named():
    frame = as_frame(np.zeros((3, 2, 2, 2)))
    without_last = frame.iloc[:-1]  # the last trial of method b with seed 1
    with pytest.raises(ExperimentError, match="1 trials are missing, such as b, seed 1"):
        trial_arrays(without_last, METHODS, ["loss"])


def test_repeated_trials_are_refused():
    frame = as_frame(np.zeros((3, 2, 2, 2)))
    with pytest.raises(ExperimentError, match="cannot be joined"):
        trial_arrays(pd.concat([frame, frame]), METHODS, ["loss"])


def test_scores_need_random_search():
    with pytest.raises(ExperimentError, match="random-search"):
        normalised_scores(np.zeros((1, 1, 1, 1)), ["bo"])


LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(-5, 6, (2, 3, 2, 4)).astype(float)
)


@given(LOSSES)
def test_regret_is_distance_from_best(losses):
    best = np.array([-6.0, -5.0])  # of each task; no loss is below -5
    regrets = losses - best[:, None]

    computed = at_incumbents(regrets, losses)

    np.testing.assert_array_equal(computed, incumbents(losses) - best[:, None])
    assert (computed >= 0).all()
    assert (np.diff(computed, axis=-1) <= 0).all()


@given(LOSSES)
def test_best_losses_follow_from_regrets(losses):
    best = np.array([-6.0, -5.0])  # of each task; no loss is below -5
    regrets = losses - best[:, None]
    np.testing.assert_array_equal(best_known_losses(losses, regrets), best)

    regrets[:, :, 1] = np.nan  # no best value of the second task is known
    np.testing.assert_array_equal(best_known_losses(losses, regrets), [-6, np.nan])


@given(LOSSES, st.floats(0.1, 10), st.floats(-10, 10))
def test_normalised_regret_has_no_scale(losses, scale, shift):
    best = losses.min(axis=(0, 1, 3))
    regrets = normalised_regrets(losses, best, highest_losses(losses))

    scaled = scale * losses + shift
    regrets_of_scaled = normalised_regrets(scaled, scale * best + shift, highest_losses(scaled))

    np.testing.assert_allclose(regrets_of_scaled, regrets, atol=1e-9)
    defined = regrets[~np.isnan(regrets)]
    assert ((defined >= 0) & (defined <= 1)).all()


def test_normalised_regret_by_hand():
    """(incumbent - best) / (worst - best), of incumbents 5, 3, 3 and 1 on each of four tasks.

    The best of the third task is unknown; that of the last one equals its worst.
    """
    losses = np.tile([5.0, 3, 4, 1], (1, 1, 4, 1))
    best = np.array([1.0, 2, np.nan, 3])
    worst = np.array([5.0, 4, 5, 3])
    np.testing.assert_array_equal(
        normalised_regrets(losses, best, worst)[0, 0],
        [[1, 0.5, 0.5, 0], [1.5, 0.5, 0.5, -0.5], [np.nan] * 4, [np.nan] * 4],
    )


def test_highest_loss_ignores_failures():
    # Failed trials are infinite, trials that were not run NaN; (A, S, T, M) = (2, 1, 2, 3).
    first_method = [[[np.inf, 2, np.nan], [np.inf, np.inf, np.inf]]]
    second_method = [[[5, 4, 3], [np.nan, np.nan, np.nan]]]
    losses = np.array([first_method, second_method])
    np.testing.assert_array_equal(highest_losses(losses), [5, np.nan])


@given(hnp.arrays(float, (5, 3, 4), elements=st.integers(0, 3).map(float)))
def test_ranks_agree_with_scipy(losses):
    np.testing.assert_array_equal(rank_over_methods(losses), rankdata(losses, axis=0))


def test_ranks_are_of_mean_losses():
    losses = np.random.default_rng(0).random((4, 6, 5, 7))  # (A, S, T, M)

    ranks = ranks_of_means(losses, "abcd")

    mean_incumbents = np.minimum.accumulate(losses, axis=-1).mean(axis=1)
    ranks_by_task = rankdata(mean_incumbents, axis=0)
    errors = 2 * ranks_by_task.std(axis=1, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(ranks.mean[:, 0], ranks_by_task.mean(axis=1))
    np.testing.assert_allclose(ranks.two_standard_errors[:, 0], errors)
    np.testing.assert_allclose(ranks.mean.sum(axis=0), 1 + 2 + 3 + 4)


def test_ranks_by_seed_are_of_incumbents():
    losses = np.random.default_rng(0).random((4, 6, 5, 7))  # (A, S, T, M)
    ranks = ranks_by_seed(losses, "abcd")
    best_losses = np.minimum.accumulate(losses, axis=-1)
    np.testing.assert_array_equal(ranks.values, rankdata(best_losses, axis=0))


def test_mean_ranks_have_errors_over_seeds():
    ranks = ranks_by_seed(np.random.default_rng(0).random((4, 6, 5, 7)), "abcd")

    summary = ranks.over_tasks(trial=7)

    final_ranks = ranks.values[..., -1]
    errors = 2 * final_ranks.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(6)
    np.testing.assert_allclose(summary.mean, final_ranks.mean(axis=(1, 2)))
    np.testing.assert_allclose(summary.two_standard_errors, errors)
