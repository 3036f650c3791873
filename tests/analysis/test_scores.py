import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hpobench_ordered.analysis.samples import incumbents, of_incumbents, trial_arrays
from hpobench_ordered.analysis.scores import normalised_scores
from hpobench_ordered.errors import ExperimentError

METHODS = ["random-search", "a", "b"]


def as_frame(losses: np.ndarray) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [METHODS, *(range(n) for n in losses.shape[1:])], names=["method", "seed", "task", "trial"]
    )
    return pd.DataFrame({"loss": losses.ravel()}, index=index).reset_index()


def test_worked_by_hand():
    # One task, two trials, two seeds. Final means: random search 10, a 6, b 8; so best 6, span 4.
    losses = np.array([[[[12, 9]], [[11, 13]]], [[[7, 9]], [[9, 5]]], [[[8, 8]], [[8, 8]]]], float)
    scores = normalised_scores(losses, METHODS)
    np.testing.assert_allclose(scores.mean[:, 0], [[137.5, 100], [50, 0], [50, 50]])
    # a's losses are 7 and 9 after the first trial: standard deviation sqrt(2), error 1.
    np.testing.assert_allclose(scores.two_standard_errors[1, 0, 0], 2 * 1 * 100 / 4)


def test_mean_over_tasks_leaves_out_the_first_and_the_undefined():
    rng = np.random.default_rng(0)
    losses = rng.random((3, 4, 3, 5))
    losses[0] += 1
    losses[0, :, 1] -= 10  # random search is the best of all on task 1
    scores = normalised_scores(losses, METHODS)
    assert np.isnan(scores.mean[:, 1]).all()
    summary = scores.over_tasks(trial=5, first_task=1)
    np.testing.assert_allclose(summary.mean, scores.mean[:, 2, 4])
    assert (summary.defined, summary.tasks) == (1, 2)


def test_one_seed_has_no_error():
    scores = normalised_scores(np.random.default_rng(0).random((3, 1, 2, 5)), METHODS)
    assert np.isnan(scores.two_standard_errors).all()
    assert not np.isnan(scores.mean).any()


@given(hnp.arrays(int, (3, 2, 2, 4), elements=st.integers(-10_000, 10_000)).map(lambda x: x / 100))
def test_reference_ends_at_100_and_the_best_at_0(losses):
    final = normalised_scores(losses, METHODS).mean[:, :, -1]
    defined = ~np.isnan(final[0])
    np.testing.assert_allclose(final[0, defined], 100)
    np.testing.assert_allclose(final[:, defined].min(axis=0), 0, atol=1e-9)


def test_a_task_on_which_random_search_is_as_good_as_the_best_has_no_score():
    losses = np.zeros((3, 1, 2, 2))
    losses[:, :, 1, 0] = 1.0
    losses[1, 0, 1, 1] = -1e-310  # better by so little that the first trial's score overflows
    assert np.isnan(normalised_scores(losses, METHODS).values).all()


@given(hnp.arrays(float, (2, 6), elements=st.floats(-100, 100)))
def test_incumbents(losses):
    best = incumbents(losses)
    for m in range(6):
        np.testing.assert_array_equal(best[:, m], losses[:, : m + 1].min(axis=1))


@given(hnp.arrays(int, (3, 6), elements=st.integers(0, 4)))
def test_quantities_of_incumbents(losses):
    quantity = np.random.default_rng(0).random(losses.shape)
    computed = of_incumbents(quantity, losses.astype(float))
    for row in range(3):
        for m in range(6):
            assert computed[row, m] == quantity[row, losses[row, : m + 1].argmin()]
    np.testing.assert_array_equal(of_incumbents(losses, losses), incumbents(losses))


def test_scores_do_not_depend_on_the_scale_of_losses():
    losses = np.random.default_rng(1).random((3, 4, 3, 5))
    np.testing.assert_allclose(
        normalised_scores(losses, METHODS).values, normalised_scores(7 * losses - 3, METHODS).values
    )


def test_array_from_shuffled_rows():
    losses = np.random.default_rng(0).random((3, 4, 2, 5))
    frame = as_frame(losses).sample(frac=1, random_state=0)
    np.testing.assert_array_equal(trial_arrays(frame, METHODS, ["loss"])["loss"], losses)
    arrays = trial_arrays(frame.assign(value=-frame["loss"]), METHODS, ["value", "loss"])
    np.testing.assert_array_equal(arrays["value"], -losses)
    np.testing.assert_array_equal(arrays["loss"], losses)


def test_incomplete_results_are_refused():
    frame = as_frame(np.zeros((3, 2, 2, 2)))
    with pytest.raises(ExperimentError, match="1 trials are missing, such as b, seed 1"):
        trial_arrays(frame.iloc[:-1], METHODS, ["loss"])
    with pytest.raises(ExperimentError, match="cannot be joined"):
        trial_arrays(pd.concat([frame, frame]), METHODS, ["loss"])


def test_reference_must_be_there():
    with pytest.raises(ExperimentError, match="random-search"):
        normalised_scores(np.zeros((1, 1, 1, 1)), ["bo"])
