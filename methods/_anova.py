"""Functional analysis of variance of a random forest: which hyperparameters losses depend on.

Notation:
    n   number of evaluations
    p   number of columns of the features
    g   number of hyperparameters, each a group of columns
    L   number of leaves of a tree

    f            a tree: constant, v[l], in the box of leaf l
    x_i, x_-i    hyperparameter i, and all others; all independent and uniformly distributed
    w[i, l]      probability that x_i is within the sides of box l
    o[i, l, m]   probability that x_i is within those of l and of m
    V            variance of f

    a_i(x_i)     E[f | x_i] = sum over l whose sides hold x_i of v[l] prod over j != i of w[j, l]
    main[i]      Var(a_i) / V: what i explains by itself
    total[i]     E[Var(f | x_-i)] / V: what i explains together with any others,
                 V total[i] = 1/2 sum over l, m of (v[l] - v[m])^2 w[i, l] w[i, m]
                              prod over j != i of o[j, l, m]

The fractions are averaged over the trees. They are exact for the forest, which is only an estimate
of the objective: a hyperparameter without effect gets a small fraction unless no tree splits on it.

Sources: Hutter, Hoos and Leyton-Brown (2014), An efficient approach for assessing hyperparameter
importance, algorithms 1 and 2 (a and main effects); Jansen (1999), Analysis of variance designs for
model output (total effects: the sum over all 2^(g - 1) subsets that contain i). `fanova`, the
package of Hutter et al., calls the main effect of a single hyperparameter its "total importance".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.data.extras import import_extra

TREES = 64
"""Trees of a forest. With the 16 of `fanova`, total effects vary 1.7 times as much between seeds:
by 0.027, not 0.016, for 40 evaluations of 9 hyperparameters."""
SHARE_OF_COLUMNS = 0.7  # share of the columns that a split is chosen from, as in `fanova`


@dataclass(frozen=True, slots=True)
class Leaves:
    """Leaves of a tree: boxes, open below and closed above, that partition the space; L of them."""

    lower: FloatArray  # lower ends of the sides, may be -inf, (leaves, columns)
    upper: FloatArray  # upper ends, may be inf, (leaves, columns)
    values: FloatArray  # predictions, (leaves,)


@dataclass(frozen=True, slots=True)
class Effects:
    """Fractions of the variance that each hyperparameter explains; 0 where nothing varies."""

    main: FloatArray  # alone, (hyperparameters,); they sum to at most 1
    total: FloatArray  # together with any others, (hyperparameters,); from the main effect to 1


def importance(
    features: FloatArray,
    losses: FloatArray,
    *,
    rng: np.random.Generator,
    groups: IntArray | None = None,
    trees: int = TREES,
) -> Effects:
    """Compute the effects of hyperparameters on losses by a forest of bagged, fully grown trees.

    Args:
        features: Features within [0, 1], without NaN, as `SearchSpace.features` gives them,
            (evaluations, columns).
        losses: Finite losses, (evaluations,); only their differences matter, not their unit.
        rng: Random generator of the forest.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,);
            default: every column is one. A group of several columns is a categorical, one-hot
            coded with equally probable choices. Where it is inactive, all its columns are 0; the
            trees are fitted to such rows, too, but the effects are computed over its choices alone.
        trees: Number of trees.
    """
    if groups is None:
        groups = np.arange(features.shape[1])
    ensemble = import_extra(
        "sklearn.ensemble", package="scikit-learn", extra="generate", purpose="importance"
    )
    seed = int(rng.integers(2**31))
    forest = ensemble.RandomForestRegressor(
        n_estimators=trees, max_features=SHARE_OF_COLUMNS, random_state=seed
    )
    forest.fit(features, _scale_to_unit(losses))
    leaves_of_trees = [read_leaves(tree.tree_) for tree in forest.estimators_]
    return forest_effects(leaves_of_trees, groups)


def _scale_to_unit(losses: FloatArray) -> FloatArray:
    """Shift and scale losses so that they go from 0 to 1; all 0 if they are all the same.

    scikit-learn does not split nodes whose variance is below 2e-16, which losses in a small unit
    may well have.
    """
    largest = float(np.abs(losses).max())
    if largest > 0:
        losses = losses / largest  # otherwise the differences of huge losses might be infinite
    spread = float(np.ptp(losses))
    if spread == 0:
        return np.zeros(len(losses))
    return np.asarray((losses - losses.min()) / spread)


def forest_effects(trees: Sequence[Leaves], groups: IntArray) -> Effects:
    """Average the effects of hyperparameters over the trees of a forest; 0 if all are constant.

    An effect is the fraction of a tree's variance that a hyperparameter explains: alone ("main")
    and together with others ("total"). Constant trees have no variance and are left out.

    Args:
        trees: The leaves of each tree.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,).
    """
    effects_of_trees = []
    for tree in trees:
        variance, explained_alone, explained_with_others = _explained_variances(tree, groups)
        if variance > 0:
            explained = np.stack((explained_alone, explained_with_others))
            effects_of_trees.append(explained / variance)

    if not effects_of_trees:
        n_hyperparameters = int(groups.max()) + 1
        zeros = np.zeros(n_hyperparameters)
        return Effects(main=zeros, total=zeros)
    main, total = np.mean(effects_of_trees, axis=0)
    return Effects(main=main, total=total)


def read_leaves(tree: Any) -> Leaves:
    """Read the leaves of one of scikit-learn's fitted single-output trees (`estimator.tree_`)."""
    # The box of every node, (nodes, columns): at first the whole space.
    lower = np.full((tree.node_count, tree.n_features), -np.inf)
    upper = np.full((tree.node_count, tree.n_features), np.inf)
    is_split = tree.children_left >= 0  # leaves have -1 as their children
    for node in np.flatnonzero(is_split):  # parents come before their children
        left = tree.children_left[node]
        right = tree.children_right[node]
        for child in (left, right):
            lower[child] = lower[node]
            upper[child] = upper[node]

        # The left child has the points up to the threshold, the right one those above it.
        column = tree.feature[node]
        upper[left, column] = tree.threshold[node]
        lower[right, column] = tree.threshold[node]

    is_leaf = ~is_split
    predictions = tree.value[is_leaf, 0, 0]
    return Leaves(lower[is_leaf], upper[is_leaf], predictions)


def _explained_variances(leaves: Leaves, groups: IntArray) -> tuple[float, FloatArray, FloatArray]:
    """Compute the variance of a tree's predictions, and each hyperparameter's part of it.

    All hyperparameters are independent and uniformly distributed.

    Args:
        leaves: Leaves of the tree: boxes, in each of which the prediction is constant.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,).

    Returns:
        The variance V; what each hyperparameter explains by itself, the variance of its marginal
        predictions, (hyperparameters,); and what it explains together with any others, the mean
        variance that is left when all others are known, (hyperparameters,).
    """
    n_hyperparameters = int(groups.max()) + 1
    cells = [_cut_into_cells(leaves, groups == i) for i in range(n_hyperparameters)]

    # Probabilities that a hyperparameter is within the sides of a box, (hyperparameters, leaves),
    # and within those of two boxes at once, (hyperparameters, leaves, leaves).
    within = np.stack([is_inside @ probability for is_inside, probability in cells])
    overlaps = np.stack(
        [(is_inside * probability) @ is_inside.T for is_inside, probability in cells]
    )
    volumes = within.prod(axis=0)  # probabilities of the boxes, (leaves,)

    # By itself: the variance of the marginal predictions over the cells. With centred values their
    # mean is 0, so that their variance is the mean of their square.
    centred = leaves.values - volumes @ leaves.values
    terms = centred * _products_of_others(within)  # what each leaf adds, (hyperparameters, leaves)
    main = []
    for terms_i, (is_inside, probability) in zip(terms, cells, strict=True):
        marginal = terms_i @ is_inside  # mean prediction in each cell
        main.append(marginal**2 @ probability)

    # With others: a variance is half the mean square of the difference of two random points. Here
    # the two points differ in this hyperparameter alone; for V itself, in all of them.
    half_squares = np.subtract.outer(leaves.values, leaves.values) ** 2 / 2  # (leaves, leaves)
    other_overlaps = _products_of_others(overlaps)
    total = [
        within_i @ (half_squares * overlaps_i) @ within_i
        for within_i, overlaps_i in zip(within, other_overlaps, strict=True)
    ]
    variance = float(volumes @ half_squares @ volumes)
    return variance, np.array(main), np.array(total)


def _cut_into_cells(leaves: Leaves, columns: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Cut a hyperparameter's range into cells, each entirely inside or outside of any leaf.

    Args:
        leaves: Leaves of a tree: boxes with a lower and an upper end along each column.
        columns: Whether each column is one of the hyperparameter's, (columns,). A number has one
            column, a categorical one for each choice.

    Returns:
        Whether each cell is inside each leaf along these columns, 0 or 1, (leaves, cells); and the
        probability of each cell, (cells,).
    """
    lower = leaves.lower[:, columns]
    upper = leaves.upper[:, columns]
    is_one_hot = lower.shape[1] > 1
    if is_one_hot:
        return _cut_into_choices(lower, upper)
    return _cut_into_intervals(lower[:, 0], upper[:, 0])


def _cut_into_choices(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Take each choice of a categorical hyperparameter as a cell.

    Args:
        lower: Lower end of each leaf along the column of each choice, (leaves, choices); not part
            of the leaf.
        upper: Upper ends, (leaves, choices), which are part of it.

    Returns:
        Whether each choice is inside each leaf, 0 or 1, (leaves, choices); and the probability of
        each choice, (choices,).
    """
    n_choices = lower.shape[1]
    one_hot = np.eye(n_choices)  # a row for each choice: 1 in its own column, 0 in all others
    # Of each leaf, choice and column, (leaves, choices, choices).
    is_above_lower = lower[:, None, :] < one_hot
    is_below_upper = one_hot <= upper[:, None, :]
    is_inside = (is_above_lower & is_below_upper).all(axis=2)  # along all columns
    probabilities = np.full(n_choices, 1 / n_choices)
    return np.asarray(is_inside, dtype=np.float64), probabilities


def _cut_into_intervals(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cut the range [0, 1] of a number at the ends of all leaves.

    Args:
        lower: Lower end of each leaf along the number's column, (leaves,); may be -inf.
        upper: Upper ends, (leaves,); may be inf.

    Returns:
        Whether each interval is inside each leaf, 0 or 1, (leaves, intervals); and the probability
        of each interval, (intervals,).
    """
    ends = np.concatenate((lower, upper, [0.0, 1.0]))
    edges = np.unique(np.clip(ends, 0.0, 1.0))  # sorted
    starts, stops = edges[:-1], edges[1:]
    is_inside = (lower[:, None] <= starts) & (stops <= upper[:, None])
    lengths = np.diff(edges)  # the intervals' probabilities, as the range has length 1
    return np.asarray(is_inside, dtype=np.float64), lengths


def _products_of_others(factors: FloatArray) -> FloatArray:
    """Compute, for each factor along the first axis, the product of all others; the same shape.

    It is the product of the factors before and after the factor. A division of the product of all
    factors would fail if the factor is 0.
    """
    ones = np.ones_like(factors[:1])  # there is nothing before the first and after the last
    all_but_last = factors[:-1]
    before = np.cumprod(np.concatenate((ones, all_but_last)), axis=0)

    all_but_first_from_last = factors[1:][::-1]  # products after a factor grow from the last one
    after_from_last = np.cumprod(np.concatenate((ones, all_but_first_from_last)), axis=0)
    after = after_from_last[::-1]
    return np.asarray(before * after)
