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
from hpobench_ordered.analysis.anova import Leaves, forest_effects, importance, read_leaves
from hpobench_ordered.errors import MissingExtraError

INF = np.inf
HYPERPARAMETER_OF_COLUMN = np.array([0, 1, 2, 2, 2])  # two numbers, and three one-hot choices


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw_mixed(draws: np.random.Generator, n: int) -> FloatArray:
    """Draw n configurations with the columns of HYPERPARAMETER_OF_COLUMN."""
    numbers = draws.random((n, 2))
    one_hot_choices = np.eye(3)[draws.integers(3, size=n)]
    return np.concatenate((numbers, one_hot_choices), axis=1)


def fit_tree(x: FloatArray, y: FloatArray) -> DecisionTreeRegressor:
    return DecisionTreeRegressor(random_state=0).fit(x, y)


def effects_by_prediction(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Main and total effects from predictions in every cell between thresholds.

    The variance of the marginal of every subset of hyperparameters, then the part of each that no
    smaller subset has: equation by equation, without leaves.
    """
    predictions, weights = predict_cells(tree)
    mean = (weights * predictions).sum()

    own_variance: dict[frozenset[int], float] = {}
    for size in range(4):
        for subset in map(frozenset, combinations(range(3), size)):
            others = tuple({0, 1, 2} - subset)
            shares = weights / weights.sum(axis=others, keepdims=True)
            marginal = (predictions * shares).sum(axis=others, keepdims=True)
            variance = float((weights * (marginal - mean) ** 2).sum())
            of_smaller = sum(own for part, own in own_variance.items() if part < subset)
            own_variance[subset] = variance - of_smaller

    main = [own_variance[frozenset((i,))] for i in range(3)]
    total = [sum(own for part, own in own_variance.items() if i in part) for i in range(3)]
    variance_of_all = sum(own_variance.values())
    return np.array(main) / variance_of_all, np.array(total) / variance_of_all


def predict_cells(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Predictions and volumes of cells, each (intervals of 0, intervals of 1, choices of 2)."""
    points: list[list[tuple[float, ...]]] = []  # by hyperparameter: columns of a point in each part
    widths: list[list[float]] = []
    for column in range(2):
        thresholds = tree.tree_.threshold[tree.tree_.feature == column]
        edges = [0.0, *sorted(set(thresholds.tolist())), 1.0]
        points.append([((low + high) / 2,) for low, high in pairwise(edges)])
        widths.append([high - low for low, high in pairwise(edges)])
    points.append([tuple(choice) for choice in np.eye(3)])
    widths.append([1 / 3] * 3)

    rows = [sum(cell, start=()) for cell in product(*points)]
    predictions = tree.predict(np.array(rows)).reshape([len(parts) for parts in points])
    volumes = np.einsum("i,j,k->ijk", *widths)
    return predictions, volumes


@pytest.mark.parametrize("seed", range(6))
def test_effects_agree_with_predictions_on_grid(seed):
    draws = rng(seed)
    x = draw_mixed(draws, 30)
    y = x[:, 0] * x[:, 2] + x[:, 1] ** 2 + draws.normal(size=30) / 5
    tree = fit_tree(x, y)

    effects = forest_effects([read_leaves(tree.tree_)], HYPERPARAMETER_OF_COLUMN)

    main, total = effects_by_prediction(tree)
    assert 0.001 < main.min() < total.min()  # otherwise there would be little to compare
    np.testing.assert_allclose(effects.main, main, atol=1e-12)
    np.testing.assert_allclose(effects.total, total, atol=1e-12)


def test_boxes_without_choice_do_not_count():
    """Both columns are choices of one hyperparameter, of which a row has exactly one.

    The leaves for no choice (100) and for both at once (-100) therefore have no weight; the other
    two have equal values, so that nothing is left to explain.
    """
    leaves = Leaves(
        lower=np.array([[-INF, -INF], [0.5, -INF], [-INF, 0.5], [0.5, 0.5]]),
        upper=np.array([[0.5, 0.5], [INF, 0.5], [0.5, INF], [INF, INF]]),
        values=np.array([100.0, 3.0, 3.0, -100.0]),
    )
    effects = forest_effects([leaves], np.array([0, 0]))
    assert effects.main.tolist() == effects.total.tolist() == [0.0]


def test_constant_trees_do_not_count():
    x = rng(4).random((30, 2))
    tree = read_leaves(fit_tree(x, x[:, 0] + x[:, 1] ** 2).tree_)
    constant = read_leaves(fit_tree(x, np.ones(30)).tree_)

    alone = forest_effects([tree], np.arange(2))
    both = forest_effects([constant, tree], np.arange(2))

    np.testing.assert_array_equal(both.total, alone.total)
    np.testing.assert_array_equal(both.main, alone.main)


def test_order_of_columns_does_not_matter():
    x = draw_mixed(rng(7), 40)
    leaves = read_leaves(fit_tree(x, x[:, 0] * x[:, 2] + x[:, 1]).tree_)
    order = np.array([3, 1, 4, 0, 2])  # the column that comes to each place
    new_number = np.array([2, 0, 1])  # of hyperparameters 0, 1 and 2
    permuted = Leaves(leaves.lower[:, order], leaves.upper[:, order], leaves.values)

    expected = forest_effects([leaves], HYPERPARAMETER_OF_COLUMN)
    effects = forest_effects([permuted], new_number[HYPERPARAMETER_OF_COLUMN[order]])

    np.testing.assert_allclose(effects.main[new_number], expected.main, rtol=1e-12)
    np.testing.assert_allclose(effects.total[new_number], expected.total, rtol=1e-12)


def additive(x: FloatArray) -> FloatArray:
    """Its variance is (9 + 4 + 1) / 12: every hyperparameter explains its own part."""
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
    x = rng(5).random((700, 4))  # the functions do not use the fourth column: its effect is 0
    effects = importance(x, function(x), rng=rng(), trees=4)
    np.testing.assert_allclose(effects.main, [*main, 0], atol=0.06)
    np.testing.assert_allclose(effects.total, [*total, 0], atol=0.06)


def test_effects_of_ishigamis_function():
    """Ishigami and Homma (1990) derive them; the tree has a leaf for every cell of a grid."""
    middles = [(np.arange(cells) + 0.5) / cells for cells in (8, 8, 24)]
    x = np.array(list(product(*middles)))
    a, b, c = (2 * x.T - 1) * pi
    y = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)

    effects = forest_effects([read_leaves(fit_tree(x, y).tree_)], np.arange(3))

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
    losses = np.round(8 * multiplied(x))  # integers, which powers of two scale without rounding
    expected = importance(x, losses, rng=rng())
    effects = importance(x, losses * unit, rng=rng())
    assert effects.total.tolist() == expected.total.tolist()
    assert expected.total[0] > 0.2  # otherwise all of them might be 0


def test_small_differences_of_losses_count():
    x = rng(8).random((30, 3))
    losses = 1 + 2.0**-30 * (x[:, 1] > 0.5)
    assert importance(x, losses, rng=rng()).main[1] > 0.7


def test_effects_depend_on_seed():
    x = rng(9).random((30, 3))
    effects = importance(x, additive(x), rng=rng(1))
    with_same_seed = importance(x, additive(x), rng=rng(1))
    with_other_seed = importance(x, additive(x), rng=rng(2))
    np.testing.assert_array_equal(with_same_seed.total, effects.total)
    assert (with_other_seed.total != effects.total).any()


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(0, 6))
def test_effects_are_fractions(seed, n, highest_loss):
    draws = rng(seed)
    x = draw_mixed(draws, n)
    losses = draws.integers(0, highest_loss + 1, size=n).astype(float)

    # Main effects are of one hyperparameter alone, total ones also of its interactions.
    effects = importance(x, losses, rng=draws, groups=HYPERPARAMETER_OF_COLUMN, trees=5)

    slack = 1e-9
    has_effects = effects.total.any()  # not where losses are the same
    assert effects.main.min() >= 0
    assert (effects.main <= effects.total + slack).all()
    assert effects.total.max() <= 1 + slack
    assert effects.main.sum() <= 1 + slack
    assert effects.total.sum() >= 1 - slack or not has_effects


def test_missing_scikit_learn_names_extra(monkeypatch):
    # None makes Python refuse the import, as if the package were not installed.
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"\[generate\]"):
        importance(np.zeros((2, 2)), np.zeros(2), rng=rng())
