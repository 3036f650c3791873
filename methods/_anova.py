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
from typing import Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.data.extras import import_extra

TREES = 64
"""Trees of a forest. With the 16 of `fanova`, total effects vary 1.7 times as much between seeds:
by 0.027, not 0.016, for 40 evaluations of 9 hyperparameters."""
SHARE_OF_COLUMNS = 0.7  # share of the columns that a split is chosen from, as in `fanova`


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of a tree: boxes that partition the space, with a constant prediction in each.

    Attributes:
        lower: Lower end of each box along each column, outside of the box; may be -inf;
            (leaves, columns).
        upper: Upper ends, inside the box; may be inf; (leaves, columns).
        values: Prediction in each box, (leaves,).
    """

    lower: FloatArray
    upper: FloatArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class Effects:
    """Fractions of the variance that each hyperparameter explains; 0 where nothing varies.

    Attributes:
        main: What each explains alone, (hyperparameters,); they sum to at most 1.
        total: What each explains together with any others, (hyperparameters,); at least its main
            effect, and at most 1.
    """

    main: FloatArray
    total: FloatArray


def estimate_effects(
    features: FloatArray,
    losses: FloatArray,
    *,
    rng: np.random.Generator,
    groups: IntArray | None = None,
    trees: int = TREES,
) -> Effects:
    """Estimate the fraction of the losses' variance that each hyperparameter explains.

    A random forest is fitted to the losses, and the fractions are computed exactly for it.

    Args:
        features: Features within [0, 1], without NaN, as `SearchSpace.features` gives them,
            (evaluations, columns).
        losses: Finite losses, (evaluations,); only their differences matter, not their unit.
        rng: Random generator of the forest.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,);
            default: each column belongs to a hyperparameter of its own. A group of several columns
            is a categorical, one-hot coded with equally probable choices. Where it is inactive, all
            its columns are 0; the trees are fitted to such rows, too, but the effects are computed
            over its choices alone.
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
    return average_effects(leaves_of_trees, groups)


def _scale_to_unit(losses: FloatArray) -> FloatArray:
    """Shift and scale losses so that they go from 0 to 1; all 0 if they are all the same.

    scikit-learn does not split nodes whose variance is below 2e-16, which losses in a small unit
    may well have.
    """
    largest = float(np.abs(losses).max())
    if largest > 0:
        losses = losses / largest  # otherwise the differences of huge losses might be infinite
    width = float(np.ptp(losses))  # largest minus smallest
    if width == 0:
        return np.zeros(len(losses))
    return np.asarray((losses - losses.min()) / width)


def average_effects(trees: Sequence[Leaves], groups: IntArray) -> Effects:
    """Average the effects of each hyperparameter over the trees of a forest.

    An effect is the fraction of a tree's variance that a hyperparameter explains: alone ("main")
    and together with others ("total"). Constant trees have no variance and are left out; if all
    trees are constant, all effects are 0.

    Args:
        trees: The leaves of each tree.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,).
    """
    effects_of_trees = []
    for leaves in trees:
        explained = _explain_variance(leaves, groups)
        if explained.variance > 0:
            alone_and_with_others = np.stack((explained.alone, explained.with_others))
            effects_of_trees.append(alone_and_with_others / explained.variance)

    if not effects_of_trees:
        n_hyperparameters = int(groups.max()) + 1
        zeros = np.zeros(n_hyperparameters)
        return Effects(main=zeros, total=zeros)
    main, total = np.mean(effects_of_trees, axis=0)
    return Effects(main=main, total=total)


def read_leaves(tree: Any) -> Leaves:
    """Read the leaves of one of scikit-learn's fitted single-output trees (`estimator.tree_`).

    scikit-learn stores the column and the threshold of each split. The boxes of leaves follow from
    them: a node hands its box down to both children, cut in two at the threshold.
    """
    # Ends of the box of every node, (nodes, columns): at first the whole space.
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


class Cells(NamedTuple):
    """The range of a hyperparameter, cut into cells that no side of a leaf divides.

    Attributes:
        is_inside: 1 where a cell lies inside a leaf along this hyperparameter, and 0 where it lies
            outside, (leaves, cells).
        probabilities: Probability of each cell, (cells,).
    """

    is_inside: FloatArray
    probabilities: FloatArray


class ExplainedVariance(NamedTuple):
    """The variance of a tree's predictions, and what each hyperparameter explains of it.

    Attributes:
        variance: The variance of the predictions over the whole space.
        alone: Variance of the mean prediction for each value of a hyperparameter,
            (hyperparameters,).
        with_others: Mean variance that is left when all other hyperparameters are known,
            (hyperparameters,).
    """

    variance: float
    alone: FloatArray
    with_others: FloatArray


def _explain_variance(leaves: Leaves, groups: IntArray) -> ExplainedVariance:
    """Compute the variance of a tree's predictions, and what each hyperparameter explains of it.

    All hyperparameters are independent and uniformly distributed.

    Args:
        leaves: Leaves of the tree: boxes, in each of which the prediction is constant.
        groups: Index of the hyperparameter that each column belongs to, from 0, (columns,).
    """
    n_hyperparameters = int(groups.max()) + 1
    cells = [_cut_into_cells(leaves, groups == i) for i in range(n_hyperparameters)]

    # Probability that a hyperparameter has a value inside a leaf, (hyperparameters, leaves).
    inside = np.stack([is_inside @ probabilities for is_inside, probabilities in cells])
    volumes = inside.prod(axis=0)  # probability of each leaf, (leaves,)

    # Half the squared difference of the predictions of each pair of leaves, (leaves, leaves). Its
    # mean over two random points is the variance: the two points differ in all hyperparameters.
    half_squares = np.subtract.outer(leaves.values, leaves.values) ** 2 / 2
    variance = float(volumes @ half_squares @ volumes)

    centred_values = leaves.values - volumes @ leaves.values  # predictions of mean 0
    return ExplainedVariance(
        variance=variance,
        alone=_explain_alone(centred_values, cells, inside),
        with_others=_explain_with_others(half_squares, cells, inside),
    )


def _explain_alone(
    centred_values: FloatArray, cells: Sequence[Cells], inside: FloatArray
) -> FloatArray:
    """Compute what each hyperparameter explains alone, (hyperparameters,).

    This is the variance of the mean prediction for each of its values, over all values of the other
    hyperparameters. Predictions have mean 0, so the variance is the mean square.

    Args:
        centred_values: Prediction of each leaf, shifted to mean 0 over the space, (leaves,).
        cells: The range of each hyperparameter, cut into cells.
        inside: Probability that a hyperparameter has a value inside a leaf,
            (hyperparameters, leaves).
    """
    # A leaf contributes to the mean prediction in each cell that lies inside: its value times the
    # probability that all other hyperparameters are inside, too.
    contributions = centred_values * _multiply_all_others(inside)  # (hyperparameters, leaves)
    explained = []
    for contributions_i, (is_inside, probabilities) in zip(contributions, cells, strict=True):
        mean_of_cells = contributions_i @ is_inside  # mean prediction in each cell
        explained.append(mean_of_cells**2 @ probabilities)
    return np.array(explained)


def _explain_with_others(
    half_squares: FloatArray, cells: Sequence[Cells], inside: FloatArray
) -> FloatArray:
    """Compute what each hyperparameter explains together with any others, (hyperparameters,).

    This is the mean variance that is left when all other hyperparameters are known. A variance is
    half the mean squared difference of two random points (Jansen 1999); here the points differ in
    this hyperparameter alone.

    Args:
        half_squares: Half the squared difference of the predictions of each pair of leaves,
            (leaves, leaves).
        cells: The range of each hyperparameter, cut into cells.
        inside: Probability that a hyperparameter has a value inside a leaf,
            (hyperparameters, leaves).
    """
    # Probability that one value of a hyperparameter is inside both leaves of a pair,
    # (hyperparameters, leaves, leaves).
    inside_both = np.stack(
        [(is_inside * probabilities) @ is_inside.T for is_inside, probabilities in cells]
    )
    others_inside_both = _multiply_all_others(inside_both)
    explained = []
    for inside_i, others_i in zip(inside, others_inside_both, strict=True):
        # The points share all other values, and have a value each of this hyperparameter.
        explained.append(inside_i @ (half_squares * others_i) @ inside_i)
    return np.array(explained)


def _cut_into_cells(leaves: Leaves, columns: BoolArray) -> Cells:
    """Cut a hyperparameter's range into cells, each entirely inside or outside of any leaf.

    Args:
        leaves: Leaves of a tree: boxes with a lower and an upper end along each column.
        columns: Whether each column is one of the hyperparameter's, (columns,). A number has one
            column, a categorical has one for each choice.
    """
    lower = leaves.lower[:, columns]
    upper = leaves.upper[:, columns]
    is_one_hot = lower.shape[1] > 1
    if is_one_hot:
        return _cut_into_choices(lower, upper)
    return _cut_into_intervals(lower[:, 0], upper[:, 0])


def _cut_into_choices(lower: FloatArray, upper: FloatArray) -> Cells:
    """Make a cell of each choice of a categorical hyperparameter; all are equally probable.

    Args:
        lower: Lower end of each leaf along the one-hot column of each choice, (leaves, choices);
            the end itself is outside of the leaf.
        upper: Upper ends, (leaves, choices), which are inside.
    """
    n_choices = lower.shape[1]
    one_hot = np.eye(n_choices)  # a row for each choice: 1 in its own column, 0 in all others

    # A choice is inside a leaf if it is inside along all columns. The axes of these arrays are
    # leaves, choices and columns.
    is_above_lower = lower[:, None, :] < one_hot
    is_below_upper = one_hot <= upper[:, None, :]
    is_inside = (is_above_lower & is_below_upper).all(axis=2)  # (leaves, choices)

    probabilities = np.full(n_choices, 1 / n_choices)
    return Cells(np.asarray(is_inside, dtype=np.float64), probabilities)


def _cut_into_intervals(lower: FloatArray, upper: FloatArray) -> Cells:
    """Cut the range [0, 1] of a number at the ends of all leaves; the intervals are the cells.

    Args:
        lower: Lower end of each leaf along the number's column, (leaves,); may be -inf.
        upper: Upper ends, (leaves,); may be inf.
    """
    ends = np.concatenate((lower, upper, [0.0, 1.0]))
    edges = np.unique(np.clip(ends, 0.0, 1.0))  # sorted, without repetitions
    starts, stops = edges[:-1], edges[1:]
    is_inside = (lower[:, None] <= starts) & (stops <= upper[:, None])  # (leaves, intervals)
    # The number is uniform on [0, 1], so the probability of an interval is its length.
    lengths = np.diff(edges)
    return Cells(np.asarray(is_inside, dtype=np.float64), lengths)


def _multiply_all_others(factors: FloatArray) -> FloatArray:
    """Compute, for each factor along the first axis, the product of all other factors.

    The result has the shape of the factors. It is the product of the factors before and the factors
    after each factor; dividing the product of all by the factor would fail where the factor is 0.
    """
    ones = np.ones_like(factors[:1])  # the product of no factor: before the first, after the last
    all_but_last = factors[:-1]
    before = np.cumprod(np.concatenate((ones, all_but_last)), axis=0)

    # Products after a factor grow from the last factor backwards.
    all_but_first_reversed = factors[1:][::-1]
    after_reversed = np.cumprod(np.concatenate((ones, all_but_first_reversed)), axis=0)
    after = after_reversed[::-1]
    return np.asarray(before * after)
