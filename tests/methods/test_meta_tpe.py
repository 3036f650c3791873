"""meta-tpe: similarities and weights by the paper's formulas, and what misleads."""

import numpy as np
import pytest
from bowls import bowl, make_bowl_task, suggest_on_bowl
from by_hand import UNIT_SQUARE, make_method
from histories import minimised
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods import meta_tpe
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.tpe import TPE

TWO_NUMBERS = np.zeros(2, dtype=np.int64)
"""How many choices each hyperparameter has: 0, as both are numbers."""


def make_mixture(parts: list[FloatArray], weights: list[float]) -> meta_tpe.Mixture:
    """A weighted mixture of kernel densities, one of each part's configurations."""
    densities = [meta_tpe.fit_density(part, TWO_NUMBERS) for part in parts]
    return meta_tpe.Mixture(densities, np.array(weights))


# -- similarities and weights ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        pytest.param([1.0, 1.0, 0.0], [7.0, 7.0, 0.0], 1.0, id="proportional"),
        # A total variation distance of 1/2: the densities share a third of what either covers.
        pytest.param([1.0, 1.0, 0.0], [0.0, 1.0, 1.0], 1 / 3, id="overlapping"),
        pytest.param([1.0, 1.0, 0.0], [0.0, 0.0, 1.0], 0.0, id="disjoint"),
    ],
)
def test_similarity_of_densities(p, q, expected):
    similarity = meta_tpe.compute_similarity(np.repeat(p, 10), np.repeat(q, 10))
    assert similarity == pytest.approx(expected)


def test_weights_of_tasks():
    """The weight of an earlier task is its similarity over the number of tasks, here four.

    The fourth, the current one, comes last and gets the rest of 1.
    """
    weights = meta_tpe.compute_task_weights(np.array([1.0, 0.4, 0.0]))
    assert_allclose(weights, [0.25, 0.1, 0.0, 0.65])


def test_similar_task_has_more_weight():
    """The current task is a bowl with its optimum at 0.4, and so is the first of three others."""
    same_bowl = make_bowl_task(place=0.4)
    ranked_in_reverse = make_bowl_task(place=0.4, factor=-1.0)
    distant_optimum = make_bowl_task(place=0.95)
    method = make_method(meta_tpe.MetaTPE, [same_bowl, ranked_in_reverse, distant_optimum])
    values = np.random.default_rng(0).random((20, 2))
    losses = bowl(values, place=0.4).tolist()
    for config, loss in zip(UNIT_SQUARE.configs(values), losses, strict=True):
        method.tell(config, loss)

    # Tasks are compared by their good and their bad evaluations.
    good_and_bad = method._split(method.evaluated_units(), method.evaluated_losses())
    of_same, of_reversed, of_distant = method._compute_similarities(good_and_bad)
    assert of_same > 2 * max(of_reversed, of_distant)


def test_important_hyperparameter_comes_first():
    """The losses of the earlier task depend on y alone."""
    values = np.random.default_rng(0).random((60, 2))
    _x, y = values.T
    losses_of_y_alone = (y - 0.7) ** 2
    history = [minimised("earlier", {}, values, losses_of_y_alone, UNIT_SQUARE)]
    method = make_method(meta_tpe.MetaTPE, history)
    column_of_x, column_of_y = 0, 1
    assert method.importance.tolist() == [column_of_y, column_of_x]


# -- mixtures --------------------------------------------------------------------------------------


def evaluate_density_by_hand(data: FloatArray, points: FloatArray) -> FloatArray:
    """Density at points (n, 2): the mean over the data of products of two normal kernels."""
    bandwidths = meta_tpe.fit_density(data, TWO_NUMBERS).bandwidths
    kernels = norm.pdf(points[:, None], data, bandwidths)  # (n, data, dimension)
    return kernels.prod(axis=2).mean(axis=1)


def test_mixture_weights_tasks_by_configurations():
    """In the mixture, the weight of a task is multiplied by the number of its configurations."""
    rng = np.random.default_rng(0)
    four = rng.random((4, 2))
    single = rng.random((1, 2))
    points = rng.random((7, 2))
    mixture = make_mixture([four, single], weights=[0.25, 0.75])

    densities = [evaluate_density_by_hand(four, points), evaluate_density_by_hand(single, points)]
    expected = np.average(densities, axis=0, weights=[0.25 * 4, 0.75 * 1])
    assert_allclose(np.exp(mixture.log(points)), expected)


# -- histories and suggestions ---------------------------------------------------------------------


def test_best_tenth_is_good():
    """A tenth of a task's evaluations, rounded up, are its good ones, and the others bad."""
    method = make_method(meta_tpe.MetaTPE, [make_bowl_task(place=0.4, trials=25)])
    (task,) = method._sources
    assert (len(task.good), len(task.bad)) == (3, 22)


@pytest.mark.parametrize(("budget", "count"), [(5, 1), (25, 1), (40, 2), (100, 5)])
def test_begins_with_best_of_earlier_tasks(budget: int, count: int):
    """The first trials are among the best two configurations of each of three earlier tasks.

    They are a twentieth of the budget, rounded down, but at least one.
    """
    history = [make_bowl_task(place) for place in (0.2, 0.4, 0.6)]
    best_configs = []
    for task in history:
        best_rows = np.argsort(task.losses)[:2]
        best_configs += UNIT_SQUARE.configs(task.values[best_rows])

    method = make_method(meta_tpe.MetaTPE, history, budget=budget)
    initial = method.initial_configurations()

    assert len(initial) == count
    assert all(config in best_configs for config in initial)


FAILED = minimised("f", {}, np.zeros((2, 2)), np.full(2, np.nan), UNIT_SQUARE)


@pytest.mark.parametrize("history", [[], [make_bowl_task(place=0.3, trials=1)], [FAILED]])
def test_equals_tpe_without_two_evaluations(history: list[Evaluations]):
    suggestions = suggest_on_bowl(make_method(meta_tpe.MetaTPE, history), place=0.3, trials=9)
    assert_array_equal(suggestions, suggest_on_bowl(make_method(TPE), place=0.3, trials=9))


def compute_median_regret(kind: type[Method], history: list[Evaluations]) -> float:
    """Median over seven seeds of the best of 25 trials on the bowl at 0.4."""
    regrets = []
    for seed in range(7):
        suggestions = suggest_on_bowl(make_method(kind, history, seed=seed), place=0.4, trials=25)
        regrets.append(bowl(suggestions, place=0.4).min())
    return float(np.median(regrets))


def test_dissimilar_tasks_do_not_mislead():
    """The method is better than random search, although no earlier task is like the current one."""
    ranked_in_reverse = make_bowl_task(place=0.4, factor=-1.0)
    distant_optima = [make_bowl_task(place=0.95), make_bowl_task(place=0.05)]
    regret = compute_median_regret(meta_tpe.MetaTPE, [ranked_in_reverse, *distant_optima])
    regret_of_random_search = compute_median_regret(RandomSearch, [])
    assert regret < regret_of_random_search
