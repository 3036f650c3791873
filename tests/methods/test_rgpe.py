"""rgpe: losses and weights by the paper's formulas, the ensemble, and what misleads."""

from itertools import permutations

import numpy as np
import pytest
from bowls import make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE, make_method
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import rgpe
from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

# -- ranking losses --------------------------------------------------------------------------------

# A process predicts losses at evaluated configurations; samples are draws from its posterior.


@pytest.fixture
def samples_and_losses():
    """Five random samples of predictions at nine evaluations, (5, 9), and their losses, (9,)."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((5, 9))
    losses = rng.standard_normal(9)
    return samples, losses


def test_ranking_loss_counts_misranked_pairs(samples_and_losses):
    """Evaluations j and k are misranked if a sample's predictions order them unlike the losses."""
    samples, losses = samples_and_losses
    ordered_pairs = list(permutations(range(9), 2))
    expected = []
    for sample in samples:
        misranked = [(sample[j] < sample[k]) != (losses[j] < losses[k]) for j, k in ordered_pairs]
        expected.append(sum(misranked))

    assert_array_equal(rgpe.compute_ranking_losses(samples, losses), expected)


def test_left_out_loss_compares_with_observations(samples_and_losses):
    """The current task's process predicts evaluation j from all others, so knows the loss of k.

    Therefore its prediction for j is compared with the observed loss of k, not with a prediction.
    """
    samples, losses = samples_and_losses
    ordered_pairs = list(permutations(range(9), 2))
    expected = []
    for sample in samples:
        misranked = [(sample[j] < losses[k]) != (losses[j] < losses[k]) for j, k in ordered_pairs]
        expected.append(sum(misranked))

    assert_array_equal(rgpe.compute_left_out_ranking_losses(samples, losses), expected)


# -- weights ---------------------------------------------------------------------------------------

LOSSES_OF_FIRST = [1.0, 2.0, 4.0, 9.0]
LOSSES_OF_TARGET = [5.0, 2.0, 3.0, 4.0]
"""Ranking losses in four samples: of the first earlier task's process, and of the target's.

The target is the current task.
"""


@pytest.mark.parametrize(
    ("losses_of_second", "expected"),
    [
        # The first process ranks best in the first sample and, with the target, in the second. The
        # second process is left out: its median 8 is above 4.85, the target's quantile.
        pytest.param([8.0, 9.0, 0.0, 8.0], [1.5 / 4, 0.0, 2.5 / 4], id="diluting process"),
        # The second process is best in the third sample and, with the target, in the last.
        pytest.param([4.0, 4.0, 0.0, 4.0], [1.5 / 4, 1.5 / 4, 1.0 / 4], id="ties are shared"),
    ],
)
def test_weights_are_shares_of_best_ranks(losses_of_second, expected):
    """The weight of a process is the share of four samples in which its ranking loss is lowest.

    Processes with equal losses share a sample. The last of three is the current task's; an earlier
    task's is left out if its losses are much higher than those on the whole.
    """
    losses = np.array([LOSSES_OF_FIRST, losses_of_second, LOSSES_OF_TARGET])
    assert_array_equal(rgpe.compute_ranking_weights(losses), expected)


def test_many_useless_processes_do_not_dilute():
    """The current task's process keeps all weight beside those of 300 earlier tasks.

    Its ranking losses are lower on the whole, but in each of 256 samples some of the 300 others may
    be lower by chance.
    """
    rng = np.random.default_rng(0)
    target = rng.integers(20, 40, size=256)
    useless = rng.integers(30, 80, size=(300, 256))
    losses = np.concatenate([useless, target[None]]).astype(float)  # the target's come last

    *_, weight_of_target = rgpe.compute_ranking_weights(losses)

    assert weight_of_target == 1.0


def test_weights_are_equal_before_rankings():
    """Rankings need `MIN_RANKED` evaluations; before, the three tasks have equal weights.

    These are two earlier tasks and the current one. What is told does not matter.
    """
    method = make_method(rgpe.RGPE, [make_bowl_task(place=0.2), make_bowl_task(place=0.9)])
    for number in range(rgpe.MIN_RANKED):
        method.ask()
        assert_allclose(method.used_weights, [1 / 3, 1 / 3, 1 / 3])
        any_config = {"x": 0.1 * number, "y": 0.5}
        method.tell(any_config, float(number))


def compute_current_weights(method: rgpe.RGPE) -> FloatArray:
    """Weights of the earlier tasks and, last, of the current one."""
    X, y = method.observations()
    return method.compute_weights(X, y, method.fit_target(X, y))


def test_only_similar_task_has_weight():
    """Of three earlier tasks, one has the optimum of the current task, (0.4, 0.6).

    Another has its worst configurations there, and that of the third is far away.
    """
    history = [
        make_bowl_task(place=0.4),
        make_bowl_task(place=0.4, factor=-1.0),
        make_bowl_task(place=0.95),
    ]
    method = make_method(rgpe.RGPE, history)
    suggest_on_bowl(method, place=0.4, trials=10)

    similar, negated, distant, _of_current_task = compute_current_weights(method)

    assert similar > 0.2
    assert negated == 0.0
    assert distant < 0.05


# -- the ensemble ----------------------------------------------------------------------------------


def make_started_method() -> rgpe.RGPE:
    """Make a method with three earlier tasks, and run six trials."""
    method = make_method(
        rgpe.RGPE, [make_bowl_task(place=0.2), make_bowl_task(place=0.3), make_bowl_task(place=0.9)]
    )
    suggest_on_bowl(method, place=0.35, trials=6)
    return method


def test_ensemble_is_weighted_sum():
    """Predictions are those of a weighted sum of independent variables, one for each process."""
    method = make_started_method()
    method.make_scorer()  # computes the weights
    candidates = np.random.default_rng(0).random((20, 2))

    mean, sd = method._predict(candidates)

    expected_mean = np.zeros(20)
    expected_variance = np.zeros(20)
    for process, weight in zip(method.used_processes, method.used_weights, strict=True):
        mean_of_process, sd_of_process = process.predict(candidates)
        expected_mean += weight * mean_of_process
        expected_variance += (weight * sd_of_process) ** 2
    assert sum(method.used_weights) == pytest.approx(1.0)
    assert_allclose(mean, expected_mean)
    assert_allclose(sd**2, expected_variance)


def test_improvement_is_on_lowest_prediction():
    """The incumbent is the lowest mean of the ensemble at evaluated configurations."""
    method = make_started_method()
    score = method.make_scorer()
    X = np.random.default_rng(0).random((20, 2))  # configurations in the unit square

    means_of_evaluated, _ = method._predict(method.features(method.evaluated_units()))
    incumbent = means_of_evaluated.min()
    mean, sd = method._predict(X)
    expected = log_expected_improvement(mean, sd, incumbent)
    assert_array_equal(score(UNIT_SQUARE.encode(X)), expected)
