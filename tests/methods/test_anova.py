"""Main and total effects of hyperparameters on losses, computed from the leaves of trees."""

import warnings
from itertools import combinations, product
from math import pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._anova import (
    Leaves,
    average_effects,
    estimate_effects,
    read_leaves,
)

INF = np.inf
HYPERPARAMETER_OF_COLUMN = np.array([0, 1, 2, 2, 2])
"""Columns 0 and 1 are numbers; 2 to 4 are the one-hot choices of a third hyperparameter."""


def make_rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw_numbers_and_choice(generator: np.random.Generator, n: int) -> FloatArray:
    """Draw n configurations of two numbers from 0 to 1 and a choice of three, coded as (n, 5).

    The columns are the two numbers, and a column for each choice, which is 1 or 0 (one-hot).
    """
    numbers = generator.random((n, 2))
    choices = generator.integers(3, size=n)
    one_hot_choices = np.eye(3)[choices]
    return np.concatenate((numbers, one_hot_choices), axis=1)


def fit_tree(x: FloatArray, y: FloatArray) -> DecisionTreeRegressor:
    """Fit a tree until each of its leaves has a single row, or rows of one value."""
    return DecisionTreeRegressor(random_state=0).fit(x, y)


def compute_effects_by_prediction(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Compute main and total effects of three hyperparameters from a tree's predictions.

    The main effect of a hyperparameter is its own part of the variance; the total effect is the sum
    of the parts of all subsets that it belongs to. Both are fractions of the whole variance.
    """
    predictions, volumes = predict_cells(tree)
    part_of_subset = divide_variance(predictions, volumes)
    variance = sum(part_of_subset.values())

    main_effects = []
    total_effects = []
    for hyperparameter in range(3):
        own_part = part_of_subset[frozenset([hyperparameter])]
        parts_with_it = [
            part for subset, part in part_of_subset.items() if hyperparameter in subset
        ]
        main_effects.append(own_part / variance)
        total_effects.append(sum(parts_with_it) / variance)
    return np.array(main_effects), np.array(total_effects)


def divide_variance(predictions: FloatArray, volumes: FloatArray) -> dict[frozenset[int], float]:
    """Divide the variance of predictions among all subsets of three hyperparameters, the axes.

    A subset's part is the variance of the means over all other axes, less the parts of the smaller
    subsets in it. Means and variances are weighted by the volumes of cells.
    """
    mean = (volumes * predictions).sum()
    all_axes = {0, 1, 2}
    part_of_subset: dict[frozenset[int], float] = {}
    for size in (0, 1, 2, 3):
        for axes in combinations(all_axes, size):
            subset = frozenset(axes)
            other_axes = tuple(all_axes - subset)
            weights = volumes / volumes.sum(axis=other_axes, keepdims=True)
            means = (weights * predictions).sum(axis=other_axes, keepdims=True)
            variance = float((volumes * (means - mean) ** 2).sum())
            smaller_parts = [part for other, part in part_of_subset.items() if other < subset]
            part_of_subset[subset] = variance - sum(smaller_parts)
    return part_of_subset


def predict_cells(tree: DecisionTreeRegressor) -> tuple[FloatArray, FloatArray]:
    """Predict the losses in all cells between a tree's thresholds.

    Returns:
        The predictions, and the volumes of the cells, each of shape (intervals of the first number,
        intervals of the second number, choices).
    """
    middles_of_first, widths_of_first = cut_unit_interval(tree, column=0)
    middles_of_second, widths_of_second = cut_unit_interval(tree, column=1)
    one_hot_choices = np.eye(3)  # in columns 2 to 4
    weights_of_choices = np.full(3, 1 / 3)

    rows = []
    for first, second, choice in product(middles_of_first, middles_of_second, one_hot_choices):
        rows.append([first, second, *choice])
    shape = (len(middles_of_first), len(middles_of_second), 3)
    predictions = tree.predict(np.array(rows)).reshape(shape)
    areas = np.outer(widths_of_first, widths_of_second)
    volumes = areas[:, :, None] * weights_of_choices
    return predictions, volumes


def cut_unit_interval(tree: DecisionTreeRegressor, *, column: int) -> tuple[FloatArray, FloatArray]:
    """Middles and widths of the intervals between a tree's thresholds of a column."""
    thresholds = tree.tree_.threshold[tree.tree_.feature == column]
    edges = np.array([0.0, *np.unique(thresholds), 1.0])
    middles = (edges[:-1] + edges[1:]) / 2
    return middles, np.diff(edges)


@pytest.mark.parametrize("seed", range(6))
def test_effects_agree_with_predictions_on_grid(seed):
    """The effects are those that predictions in all cells between the tree's thresholds show."""
    generator = make_rng(seed)
    x = draw_numbers_and_choice(generator, 30)
    first, second, is_first_choice, _, _ = x.T
    losses = first * is_first_choice + second**2 + generator.normal(size=30) / 5
    tree = fit_tree(x, losses)

    effects = average_effects([read_leaves(tree.tree_)], HYPERPARAMETER_OF_COLUMN)

    main, total = compute_effects_by_prediction(tree)
    rounding = 1e-12
    # All three have an effect, and interactions: otherwise there would be little to compare.
    assert 0.001 < main.min() < total.min()
    np.testing.assert_allclose(effects.main, main, atol=rounding)
    np.testing.assert_allclose(effects.total, total, atol=rounding)


def test_leaves_without_choice_do_not_count():
    """Both columns are choices of one hyperparameter, of which a row has exactly one.

    So the leaves of no choice and of both choices do not count. The other two have equal values,
    which leaves nothing to explain.
    """
    # In one-hot columns a choice is above 0.5 if it is chosen. A row is a leaf.
    no_choice, first, second, both = (-INF, -INF), (0.5, -INF), (-INF, 0.5), (0.5, 0.5)
    leaves = Leaves(
        lower=np.array([no_choice, first, second, both]),
        upper=np.array([(0.5, 0.5), (INF, 0.5), (0.5, INF), (INF, INF)]),
        values=np.array([100.0, 3.0, 3.0, -100.0]),
    )
    hyperparameter_of_column = np.array([0, 0])

    effects = average_effects([leaves], hyperparameter_of_column)

    assert effects.main.tolist() == effects.total.tolist() == [0.0]


def test_effects_of_ishigamis_function():
    """The effects are those that Ishigami and Homma (1990) derive for their function.

    The tree has a leaf for every cell of a grid, in whose middle the function is evaluated.
    """
    middles = [(np.arange(cells) + 0.5) / cells for cells in (8, 8, 24)]
    x = np.array(list(product(*middles)))  # in the unit cube
    a, b, c = (2 * x.T - 1) * pi  # from -pi to pi
    values = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)
    leaves = read_leaves(fit_tree(x, values).tree_)

    effects = average_effects([leaves], groups=np.arange(3))

    published_main, published_total = [0.3139, 0.4424, 0], [0.5576, 0.4424, 0.2437]
    error_of_grid = 0.005
    np.testing.assert_allclose(effects.main, published_main, atol=error_of_grid)
    np.testing.assert_allclose(effects.total, published_total, atol=error_of_grid)


@pytest.mark.parametrize("value", [0.0, 1e300])
@pytest.mark.parametrize("n", [1, 20])
def test_equal_losses_have_no_effects(n, value):
    """All n losses have the same value."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # such as of a division by zero
        effects = estimate_effects(make_rng().random((n, 3)), np.full(n, value), rng=make_rng())
    assert effects.main.tolist() == effects.total.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**1000])
def test_unit_of_losses_does_not_matter(unit):
    """The units are so small or large that squares of losses would vanish or overflow.

    They are powers of two, by which whole numbers are multiplied without rounding.
    """
    x = make_rng(8).random((30, 3))
    products = x[:, 0] * x[:, 1]
    whole_losses = np.round(8 * products)

    expected = estimate_effects(x, whole_losses, rng=make_rng())
    effects = estimate_effects(x, whole_losses * unit, rng=make_rng())

    assert expected.total[0] > 0.2  # so that not all effects are 0
    assert effects.total.tolist() == expected.total.tolist()


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(0, 6))
def test_effects_are_fractions(seed, n, highest_loss):
    """Main effects sum to at most 1, and total effects to at least 1.

    A total effect includes interactions, which count more than once in the sum.
    """
    generator = make_rng(seed)
    x = draw_numbers_and_choice(generator, n)
    losses = generator.integers(0, highest_loss + 1, size=n).astype(float)

    effects = estimate_effects(x, losses, rng=generator, groups=HYPERPARAMETER_OF_COLUMN, trees=5)

    rounding = 1e-9
    assert effects.main.min() >= 0
    assert (effects.main <= effects.total + rounding).all()
    assert effects.total.max() <= 1 + rounding
    assert effects.main.sum() <= 1 + rounding
    has_effects = effects.total.any()  # not where all losses are the same
    if has_effects:
        assert effects.total.sum() >= 1 - rounding
