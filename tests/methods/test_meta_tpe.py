"""TPE over tasks: similarities and weights by the paper's formulas, what misleads."""

import numpy as np
import pytest
from bowls import bowl, played, source
from by_hand import SQUARE, kernels, make, play
from histories import minimised
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from hpobench_ordered import Evaluations
from hpobench_ordered.methods import meta_tpe
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.methods.tpe import TPE

NUMBERS = np.zeros(2, dtype=np.int64)


def test_similarities_by_hand():
    # Two uniform densities that share a third of what either covers: a distance of 1/2.
    p = np.repeat([1.0, 1.0, 0.0], 10)
    q = np.repeat([0.0, 1.0, 1.0], 10)
    assert meta_tpe.similarity(p, 7.0 * p) == 1.0
    assert meta_tpe.similarity(p, q) == pytest.approx(
        1 / 3
    )  # the share of the union that both cover
    assert meta_tpe.similarity(p, 1.0 - p) == 0.0


def test_weights_by_hand():
    assert_allclose(meta_tpe.task_weights(np.array([1.0, 0.4, 0.0]), 4), [0.25, 0.1, 0.0, 0.65])
    assert_allclose(meta_tpe.task_weights(np.ones(3), 3), np.full(3, 0.25))


def test_the_mixture_counts_tasks_by_weight_and_number_of_configurations():
    rng = np.random.default_rng(0)
    parts = [rng.random((4, 2)), rng.random((1, 2))]
    mixture = meta_tpe.Mixture(
        [meta_tpe.density(part, NUMBERS) for part in parts], np.array([0.25, 0.75])
    )
    points = rng.random((7, 2))

    def by_hand(data: np.ndarray) -> np.ndarray:
        h = meta_tpe.density(data, NUMBERS).bandwidths
        return norm.pdf(points[:, None], data, h).prod(axis=2).mean(axis=1)

    expected = (0.25 * 4 * by_hand(parts[0]) + 0.75 * 1 * by_hand(parts[1])) / (1.0 + 0.75)
    assert_allclose(np.exp(mixture.log(points)), expected)


def test_samples_follow_the_mixture():
    parts = [np.full((3, 2), 0.2), np.full((1, 2), 0.8)]
    mixture = meta_tpe.Mixture(
        [meta_tpe.density(part, NUMBERS) for part in parts], np.array([0.5, 0.5])
    )
    drawn = mixture.sample(np.random.default_rng(0), 4000)
    near = drawn[:, 0] < 0.5
    assert near.mean() == pytest.approx(0.75, abs=0.03)
    assert drawn[near].std() == pytest.approx(meta_tpe.LEAST, rel=0.1)


def test_a_task_like_this_one_has_more_weight():
    method = make(meta_tpe.MetaTPE, [source(0.4), source(0.4, factor=-1.0), source(0.95)])
    for row in np.random.default_rng(0).random((20, 2)):
        method.tell(dict(zip("xy", row, strict=True)), float(bowl(row[None], 0.4)[0]))
    tasks = [*method._sources, method._split(method.evaluated_units(), method.evaluated_losses())]
    like, negated, unlike = method.similarities(tasks)
    assert like > 2 * max(negated, unlike)


def test_the_good_ones_are_the_best_tenth_of_at_most_so_many():
    method = make(meta_tpe.MetaTPE, [source(0.4), source(0.5, trials=1000)])
    assert [(len(good), len(bad)) for good, bad in method._sources] == [(3, 22), (10, 90)]
    assert meta_tpe.GOOD * meta_tpe.EACH == 10


def test_tasks_are_compared_in_what_matters():
    rng = np.random.default_rng(0)
    values = rng.random((60, 2))
    history = [minimised("a", {}, values, (values[:, 1] - 0.7) ** 2, SQUARE)]
    assert make(meta_tpe.MetaTPE, history).importance.tolist() == [1, 0]


FAILED = minimised("f", {}, np.zeros((2, 2)), np.full(2, np.nan), SQUARE)


@pytest.mark.parametrize("history", [[], [source(0.3, trials=1)], [FAILED]])
def test_without_two_evaluations_of_a_task_it_is_tpe(history: list[Evaluations]):
    assert_array_equal(played(make(meta_tpe.MetaTPE, history), 0.3, 9), played(make(TPE), 0.3, 9))


def test_a_conditional_space_with_choices():
    def loss(values: np.ndarray) -> np.ndarray:
        return (values[:, 0] != 1) + np.nan_to_num((np.log10(values[:, 2]) - 1) ** 2, nan=1.0)

    space = kernels(5)
    values = space.decode(space.sample_unit(np.random.default_rng(0), 40))
    history = [minimised("earlier", {}, values, loss(values), space)]
    assert loss(play(make(meta_tpe.MetaTPE, history, space=space), loss, 10)).min() < 0.05


def test_unlike_tasks_do_not_keep_it_from_the_optimum():
    history = [source(0.4, factor=-1.0), source(0.95), source(0.05)]

    def regret(kind: type[Method], past: list[Evaluations]) -> float:
        runs = [played(make(kind, past, seed=seed), 0.4, 25) for seed in range(7)]
        return float(np.median([bowl(run, 0.4).min() for run in runs]))

    assert regret(meta_tpe.MetaTPE, history) < regret(RandomSearch, [])
