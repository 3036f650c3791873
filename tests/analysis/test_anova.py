import sys
import warnings
from itertools import combinations, pairwise, product
from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.anova import Leaves, forest_effects, importance, leaves_of
from hpobench_ordered.errors import MissingExtraError

INF = np.inf
MIXED = np.array([0, 1, 2, 2, 2])  # two numbers, and a categorical of three choices


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixed(draws: np.random.Generator, n: int) -> FloatArray:
    """Configurations with the columns of MIXED."""
    return np.concatenate((draws.random((n, 2)), np.eye(3)[draws.integers(3, size=n)]), axis=1)


def fitted(x: FloatArray, y: FloatArray) -> DecisionTreeRegressor:
    return DecisionTreeRegressor(random_state=0).fit(x, y)


def effects_by_prediction(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Effects of the columns of MIXED from predictions in every cell between thresholds.

    The variance of the marginal of every subset of hyperparameters, then the part of each that no
    smaller subset has: equation by equation, without leaves.
    """
    levels: list[list[tuple[tuple[float, ...], float]]] = []
    for column in range(2):
        cuts = tree.tree_.threshold[tree.tree_.feature == column]
        edges = [0.0, *sorted(set(cuts.tolist())), 1.0]
        levels.append([(((a + b) / 2,), b - a) for a, b in pairwise(edges)])
    levels.append([(tuple(point), 1 / 3) for point in np.eye(3)])
    grid = [[value for part, _ in cell for value in part] for cell in product(*levels)]
    predicted = tree.predict(np.array(grid)).reshape([len(level) for level in levels])
    weights = np.array([np.prod([w for _, w in cell]) for cell in product(*levels)])
    weights = weights.reshape(predicted.shape)

    own: dict[frozenset[int], float] = {}
    for size in range(4):
        for subset in map(frozenset, combinations(range(3), size)):
            others = tuple({0, 1, 2} - subset)
            share = weights / weights.sum(axis=others, keepdims=True)
            marginal = (predicted * share).sum(axis=others, keepdims=True)
            variance = (weights * (marginal - (weights * predicted).sum()) ** 2).sum()
            own[subset] = float(variance) - sum(v for part, v in own.items() if part < subset)
    total = [sum(v for part, v in own.items() if i in part) for i in range(3)]
    main = [own[frozenset((i,))] for i in range(3)]
    return np.array(main) / sum(own.values()), np.array(total) / sum(own.values())


@pytest.mark.parametrize("seed", range(6))
def test_effects_agree_with_predictions_on_grid(seed):
    draws = rng(seed)
    x = mixed(draws, 30)
    tree = fitted(x, x[:, 0] * x[:, 2] + x[:, 1] ** 2 + draws.normal(size=30) / 5)
    effects = forest_effects([leaves_of(tree.tree_)], MIXED)
    main, total = effects_by_prediction(tree)
    assert 0.001 < main.min() < total.min()  # else there were little to compare
    np.testing.assert_allclose(effects.main, main, atol=1e-12)
    np.testing.assert_allclose(effects.total, total, atol=1e-12)


def test_boxes_without_choice_do_not_count():
    """A value for rows of zeros, of inactive ones, and one for two choices at once: never met."""
    leaves = Leaves(
        lower=np.array([[-INF, -INF], [0.5, -INF], [-INF, 0.5], [0.5, 0.5]]),
        upper=np.array([[0.5, 0.5], [INF, 0.5], [0.5, INF], [INF, INF]]),
        values=np.array([100.0, 3.0, 3.0, -100.0]),
    )
    effects = forest_effects([leaves], np.array([0, 0]))
    assert effects.main.tolist() == effects.total.tolist() == [0.0]


def test_constant_trees_do_not_count():
    x = rng(4).random((30, 2))
    one = leaves_of(fitted(x, x[:, 0] + x[:, 1] ** 2).tree_)
    stump = leaves_of(fitted(x, np.ones(30)).tree_)
    alone, both = (forest_effects(trees, np.arange(2)) for trees in ([one], [stump, one]))
    np.testing.assert_array_equal([both.total, both.main], [alone.total, alone.main])


def test_order_of_columns_does_not_matter():
    x = mixed(rng(7), 40)
    leaves = leaves_of(fitted(x, x[:, 0] * x[:, 2] + x[:, 1]).tree_)
    order, new = np.array([3, 1, 4, 0, 2]), np.array([2, 0, 1])
    permuted = Leaves(leaves.lower[:, order], leaves.upper[:, order], leaves.values)
    one, other = forest_effects([leaves], MIXED), forest_effects([permuted], new[MIXED[order]])
    np.testing.assert_allclose(one.main, other.main[new], rtol=1e-12)
    np.testing.assert_allclose(one.total, other.total[new], rtol=1e-12)


def additive(x: FloatArray) -> FloatArray:
    return 3 * x[:, 0] + 2 * x[:, 1] + x[:, 2]


def multiplied(x: FloatArray) -> FloatArray:
    """Var = (1/4 + 1/12)^2 - 1/16 = 7/144; main 3/144, and the rest is what both explain."""
    return x[:, 0] * x[:, 1]


@pytest.mark.parametrize(
    ("function", "main", "total"),
    [
        (additive, [9 / 14, 4 / 14, 1 / 14], [9 / 14, 4 / 14, 1 / 14]),
        (multiplied, [3 / 7, 3 / 7, 0], [4 / 7, 4 / 7, 0]),
    ],
)
def test_effects_of_known_functions(function, main, total):
    x = rng(5).random((700, 4))
    effects = importance(x, function(x), rng=rng(), trees=4)
    np.testing.assert_allclose(effects.main, [*main, 0], atol=0.06)
    np.testing.assert_allclose(effects.total, [*total, 0], atol=0.06)


def test_effects_of_ishigamis_function():
    """Those of Ishigami and Homma (1990), of a tree with a leaf for every cell of a grid."""
    x = np.array(list(product(*[(np.arange(parts) + 0.5) / parts for parts in (8, 8, 24)])))
    a, b, c = (2 * x.T - 1) * pi
    leaves = leaves_of(fitted(x, np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)).tree_)
    effects = forest_effects([leaves], np.arange(3))
    np.testing.assert_allclose(effects.main, [0.3139, 0.4424, 0], atol=0.005)
    np.testing.assert_allclose(effects.total, [0.5576, 0.4424, 0.2437], atol=0.005)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 5e-324])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_equal_losses_have_no_effects(n, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        effects = importance(rng().random((n, 3)), np.full(n, value), rng=rng())
    assert effects.main.tolist() == effects.total.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-40, 2.0**1000])
def test_unit_of_losses_does_not_matter(unit):
    x = rng(8).random((30, 3))
    losses = np.round(8 * multiplied(x))
    expected = importance(x, losses, rng=rng())
    effects = importance(x, losses * unit, rng=rng())
    assert effects.total.tolist() == expected.total.tolist()
    assert expected.total[0] > 0.2
    small = importance(x, 1 + 2.0**-30 * (x[:, 1] > 0.5), rng=rng())
    assert small.main[1] > 0.7


def test_effects_depend_on_seed():
    x = rng(9).random((30, 3))
    one, same, other = (importance(x, additive(x), rng=rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.total, same.total)
    assert (one.total != other.total).any()


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(0, 6))
def test_effects_are_fractions(seed, n, different):
    draws = rng(seed)
    x, losses = mixed(draws, n), draws.integers(0, different + 1, size=n).astype(float)
    effects = importance(x, losses, rng=draws, groups=MIXED, trees=5)
    slack = 1e-9
    assert effects.main.min() >= 0
    assert (effects.main <= effects.total + slack).all()
    assert effects.total.max() <= 1 + slack
    assert effects.main.sum() <= 1 + slack
    assert effects.total.sum() >= 1 - slack or not effects.total.any()


def test_missing_scikit_learn_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"\[generate\]"):
        importance(np.zeros((2, 2)), np.zeros(2), rng=rng())
