"""Main and total effects of hyperparameters on losses, computed from the leaves of trees."""

import sys
import warnings
from itertools import combinations, product
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
HYPERPARAMETER_OF_COLUMN = np.array([0, 1, 2, 2, 2])
"""Columns 0 and 1 are numbers; 2 to 4 are the one-hot choices of a third hyperparameter."""


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw_mixed(generator: np.random.Generator, n: int) -> FloatArray:
    """Draw n configurations: two numbers from 0 to 1, and one of three choices, one-hot: (n, 5)."""
    numbers = generator.random((n, 2))
    one_hot_choices = np.eye(3)[generator.integers(3, size=n)]
    return np.concatenate((numbers, one_hot_choices), axis=1)


def fit_tree(x: FloatArray, y: FloatArray) -> DecisionTreeRegressor:
    return DecisionTreeRegressor(random_state=0).fit(x, y)


def effects_by_prediction(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Compute main and total effects of three hyperparameters without leaves.

    The predictions in all cells between thresholds have an axis for each hyperparameter. A subset's
    own part of the variance is that of its marginal, less the parts of all smaller subsets in it.
    """
    predictions, weights = predict_cells(tree)
    mean = (weights * predictions).sum()
    hyperparameters = {0, 1, 2}

    part_of_subset: dict[frozenset[int], float] = {}
    for size in range(4):
        for members in combinations(hyperparameters, size):
            subset = frozenset(members)
            other_axes = tuple(hyperparameters - subset)
            shares = weights / weights.sum(axis=other_axes, keepdims=True)
            marginal = (predictions * shares).sum(axis=other_axes, keepdims=True)
            variance = float((weights * (marginal - mean) ** 2).sum())
            smaller_parts = [part for other, part in part_of_subset.items() if other < subset]
            part_of_subset[subset] = variance - sum(smaller_parts)

    main_parts = []
    total_parts = []
    for hyperparameter in hyperparameters:
        parts_with_it = [part for s, part in part_of_subset.items() if hyperparameter in s]
        main_parts.append(part_of_subset[frozenset([hyperparameter])])
        total_parts.append(sum(parts_with_it))
    variance_of_all = sum(part_of_subset.values())
    return np.array(main_parts) / variance_of_all, np.array(total_parts) / variance_of_all


def predict_cells(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Predict the losses in all cells between a tree's thresholds.

    Returns:
        The predictions, and the volumes of the cells, each of shape (intervals of column 0,
        intervals of column 1, choices of the one-hot columns 2 to 4).
    """
    middles_0, widths_0 = cut_unit_interval(tree, column=0)
    middles_1, widths_1 = cut_unit_interval(tree, column=1)
    one_hot_choices = np.eye(3)
    widths_of_choices = np.full(3, 1 / 3)

    cells = product(middles_0, middles_1, one_hot_choices)
    rows = [[number_0, number_1, *choice] for number_0, number_1, choice in cells]
    shape = (len(middles_0), len(middles_1), 3)
    predictions = tree.predict(np.array(rows)).reshape(shape)
    volumes = np.einsum("i,j,k->ijk", widths_0, widths_1, widths_of_choices)
    return predictions, volumes


def cut_unit_interval(tree: DecisionTreeRegressor, *, column: int) -> tuple[FloatArray, FloatArray]:
    """Middles and widths of the intervals between a tree's thresholds of a column."""
    thresholds = tree.tree_.threshold[tree.tree_.feature == column]
    edges = np.array([0.0, *np.unique(thresholds), 1.0])
    middles = (edges[:-1] + edges[1:]) / 2
    return middles, np.diff(edges)


@pytest.mark.parametrize("seed", range(6))
def test_effects_agree_with_predictions_on_grid(seed):
    """Of three hyperparameters: two numbers (columns 0, 1) and one-hot choices (columns 2 to 4)."""
    generator = rng(seed)
    x = draw_mixed(generator, 30)
    y = x[:, 0] * x[:, 2] + x[:, 1] ** 2 + generator.normal(size=30) / 5
    tree = fit_tree(x, y)

    effects = forest_effects([read_leaves(tree.tree_)], HYPERPARAMETER_OF_COLUMN)

    main, total = effects_by_prediction(tree)
    rounding = 1e-12
    assert 0.001 < main.min() < total.min()  # otherwise there would be little to compare
    np.testing.assert_allclose(effects.main, main, atol=rounding)
    np.testing.assert_allclose(effects.total, total, atol=rounding)


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
    hyperparameter_of_column = np.array([0, 0])

    effects = forest_effects([leaves], hyperparameter_of_column)

    assert effects.main.tolist() == effects.total.tolist() == [0.0]


def test_constant_trees_do_not_count():
    """A tree that predicts the same everywhere has no variance to explain."""
    x = rng(4).random((30, 2))
    tree = read_leaves(fit_tree(x, x[:, 0] + x[:, 1] ** 2).tree_)
    constant = read_leaves(fit_tree(x, np.ones(30)).tree_)

    hyperparameter_of_column = np.arange(2)
    alone = forest_effects([tree], hyperparameter_of_column)
    both = forest_effects([constant, tree], hyperparameter_of_column)

    np.testing.assert_array_equal(both.total, alone.total)
    np.testing.assert_array_equal(both.main, alone.main)


def test_order_of_columns_does_not_matter():
    """Columns 0 and 1 are numbers; 2 to 4 are the one-hot choices of a third hyperparameter."""
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
    """Main and total effects that were computed by hand, of the first three hyperparameters."""
    x = rng(5).random((700, 4))  # the functions do not use the fourth column: its effect is 0

    effects = importance(x, function(x), rng=rng(), trees=4)

    error_of_700_points = 0.06
    np.testing.assert_allclose(effects.main, [*main, 0], atol=error_of_700_points)
    np.testing.assert_allclose(effects.total, [*total, 0], atol=error_of_700_points)


def test_effects_of_ishigamis_function():
    """Ishigami and Homma (1990) derive them, for a, b and c uniform from -pi to pi.

    The tree has a leaf for every cell of a grid, whose middles are the data. Each of the three
    columns is a hyperparameter.
    """
    middles = [(np.arange(cells) + 0.5) / cells for cells in (8, 8, 24)]
    x = np.array(list(product(*middles)))  # in the unit cube
    a, b, c = (2 * x.T - 1) * pi
    y = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)

    effects = forest_effects([read_leaves(fit_tree(x, y).tree_)], np.arange(3))

    error_of_grid = 0.005
    np.testing.assert_allclose(effects.main, [0.3139, 0.4424, 0], atol=error_of_grid)
    np.testing.assert_allclose(effects.total, [0.5576, 0.4424, 0.2437], atol=error_of_grid)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, 5e-324])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_equal_losses_have_no_effects(n, value):
    """All n losses have the same value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of a division by zero
        effects = importance(rng().random((n, 3)), np.full(n, value), rng=rng())
    assert effects.main.tolist() == effects.total.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-40, 2.0**1000])
def test_unit_of_losses_does_not_matter(unit):
    """Not even where squares of losses overflow or vanish."""
    x = rng(8).random((30, 3))
    products = x[:, 0] * x[:, 1]
    losses = np.round(8 * products)  # integers, which powers of two scale without rounding

    expected = importance(x, losses, rng=rng())
    effects = importance(x, losses * unit, rng=rng())

    assert effects.total.tolist() == expected.total.tolist()
    # Otherwise all effects might be 0.
    assert expected.total[0] > 0.2


def test_small_differences_of_losses_count():
    x = rng(8).random((30, 3))
    losses = 1 + 2.0**-30 * (x[:, 1] > 0.5)  # hyperparameter 1 alone has an effect
    effects = importance(x, losses, rng=rng())
    assert effects.main[1] > 0.7


def test_effects_depend_on_seed():
    """The trees of the forest are grown on random samples."""
    x = rng(9).random((30, 3))

    effects = importance(x, additive(x), rng=rng(1))
    with_same_seed = importance(x, additive(x), rng=rng(1))
    with_other_seed = importance(x, additive(x), rng=rng(2))

    np.testing.assert_array_equal(with_same_seed.total, effects.total)
    assert (with_other_seed.total != effects.total).any()


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(0, 6))
def test_effects_are_fractions(seed, n, highest_loss):
    generator = rng(seed)
    x = draw_mixed(generator, n)
    losses = generator.integers(0, highest_loss + 1, size=n).astype(float)

    # Main effects are of one hyperparameter alone. Total effects include its interactions, which
    # therefore count more than once in the sum.
    effects = importance(x, losses, rng=generator, groups=HYPERPARAMETER_OF_COLUMN, trees=5)

    rounding = 1e-9
    has_effects = effects.total.any()  # not where losses are the same
    assert effects.main.min() >= 0
    assert (effects.main <= effects.total + rounding).all()
    assert effects.total.max() <= 1 + rounding
    assert effects.main.sum() <= 1 + rounding
    assert effects.total.sum() >= 1 - rounding or not has_effects


def test_missing_scikit_learn_names_extra(monkeypatch):
    # None makes Python refuse the import, as if the package were not installed.
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtraError, match=r"\[generate\]"):
        importance(np.zeros((2, 2)), np.zeros(2), rng=rng())
