"""Expected improvement of candidates under the process over tasks, bounded where it cannot win."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hpobench_ordered.methods._gp import tasks
from hpobench_ordered.methods._gp.acquisition import log_expected_improvement
from hpobench_ordered.methods._gp.model import Kernel, TaskPriors

SLACK = math.log(4.0)
"""How far below the best score a candidate may be to have an exact score."""
CANDIDATE_FEATURES = np.random.default_rng(1).random((1000, 3))
"""Features of 1000 candidates, of which the best is to be found."""
LOSS_TO_IMPROVE_ON = -1.0
"""A loss that few candidates are likely to improve on."""


def make_process(observations_of_task: int) -> tasks.TaskProcess:
    """A process on four tasks of smooth losses, with hyperparameters at the means of the priors.

    Losses of a task differ a little from those of the task before, and are higher by 1.
    """
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(4), observations_of_task)
    X = rng.random((len(task), 3))
    losses = np.sin(5 * X[:, 0] + 0.3 * task) + X[:, 1] ** 2 + task
    position = np.arange(4.0)  # each task is at distance 1 from the next one
    distances = np.abs(position[:, None] - position)
    observed = tasks.Observations(
        X=X,
        y=losses,
        counts=np.full(4, observations_of_task),
        distances=distances,
        kernel=Kernel(np.arange(3)),  # each feature has a length scale of its own
        level=4.0,  # prior variance of the mean loss of a task
    )
    priors = tasks.stack_task_priors(TaskPriors(), length_scales=3, tasks=4)
    return tasks.TaskProcess(observed, priors.mean)


def score_all_exactly(process: tasks.TaskProcess) -> np.ndarray:
    """Log expected improvement of all candidates, from their exact posterior variances."""
    mean, sd = process.predict(CANDIDATE_FEATURES)
    return log_expected_improvement(mean, sd, LOSS_TO_IMPROVE_ON)


@pytest.mark.parametrize("observations_of_task", [10, 50])
def test_scores_near_the_best_are_exact(observations_of_task):
    """Candidates whose exact score is within `SLACK` of the best one get their exact score."""
    process = make_process(observations_of_task)
    exact = score_all_exactly(process)
    scores = process.score_candidates(CANDIDATE_FEATURES, LOSS_TO_IMPROVE_ON, slack=SLACK)

    may_win = exact >= exact.max() - SLACK
    assert_allclose(scores[may_win], exact[may_win], rtol=1e-8)
    assert scores.argmax() == exact.argmax()


def test_other_scores_are_bounds():
    """Candidates that cannot win get an upper bound of their score, which is still too low to win.

    Bounds save time only if there are many observations, as they are computed from a part of these.
    """
    process = make_process(observations_of_task=50)
    exact = score_all_exactly(process)
    scores = process.score_candidates(CANDIDATE_FEATURES, LOSS_TO_IMPROVE_ON, slack=SLACK)

    is_bound = ~np.isclose(scores, exact, rtol=1e-8)
    assert is_bound.sum() > 100  # most candidates are not worth an exact score
    assert (scores[is_bound] > exact[is_bound]).all()
    assert (scores[is_bound] < exact.max() - SLACK).all()
