"""Fitting forests with scikit-learn.

Notation:
    n, d    configurations, hyperparameters
    K       outputs
    t       trees
    q, l    nodes and leaves of all trees together

scikit-learn compares float32 features with float64 thresholds (x <= threshold goes left). Rounding
the thresholds down to float32 does not change the outcome for any float32 x, so every configuration
reaches the same leaf as in scikit-learn. Predictions differ by at most half a step of the codes,
1/131070 of the output's range.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.forest import LEAF, ForestSurrogate, TaskMix

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor


MAX_CODE = 65535


@dataclass(frozen=True, slots=True)
class ForestRecipe:
    """How a forest of extremely randomised trees (Geurts et al. 2006) is fitted.

    They predict smooth objectives better than bagged trees (Breiman 2001), with half as many trees.
    """

    trees: int = 60
    min_samples_leaf: int = 2
    output_weights: tuple[float, ...] | None = None

    def describe(self) -> str:
        """Describe the forest in a sentence for its card."""
        if self.min_samples_leaf == 1:
            leaves = "single configurations in leaves"
        else:
            leaves = f"at least {self.min_samples_leaf} configurations a leaf"
        trees = f"{self.trees} extremely randomised trees"
        return f"The average of {trees}, {leaves}: constant between splits."


def fit_forest(
    values: FloatArray,
    targets: FloatArray,
    *,
    coding: Coding,
    recipe: ForestRecipe,
    seed: int,
    workers: int = 1,
) -> ForestSurrogate:
    """Fit a forest; the same seed gives the same bytes, whatever the number of workers.

    Args:
        values: Configurations, coded values, NaN where inactive, (n, d).
        targets: Objective values of K outputs, (n, K).
        coding: How configurations are coded as inputs of the trees.
        recipe: Settings of the forest.
        seed: Seed of the forest.
        workers: Number of threads.
    """
    if targets.ndim != 2 or len(targets) != len(values) or not np.isfinite(targets).all():
        raise ValueError(f"targets must be finite, ({len(values)}, K), but got {targets.shape}")
    n_outputs = targets.shape[1]
    features = coding.encode(values).astype(np.float32)

    # Splits reduce the squared error of all outputs together. So that outputs count equally, or by
    # their weights, they are standardised and multiplied by the weights.
    mean = targets.mean(axis=0)
    deviation = targets.std(axis=0)
    divisor = np.where(deviation > 0, deviation, 1.0)  # a constant output is only centred
    scale = divisor / _get_output_weights(recipe, n_outputs)
    scaled_targets = (targets - mean) / scale

    model = _build_ensemble(recipe, seed, workers)
    if n_outputs == 1:
        model.fit(features, scaled_targets[:, 0])  # scikit-learn warns of a single column
    else:
        model.fit(features, scaled_targets)

    trees = _extract_trees(model)
    leaves_in_own_units = mean + scale * trees.leaves
    codes, offset, step = _quantise(leaves_in_own_units)
    return ForestSurrogate(
        coding=coding,
        nodes=trees.nodes,
        feature=trees.feature,
        threshold=trees.threshold,
        codes=codes,
        offset=offset,
        step=step,
        tasks=tuple(TaskMix(output, output) for output in range(n_outputs)),  # each is a task
    )


def _get_output_weights(recipe: ForestRecipe, n_outputs: int) -> FloatArray:
    """Return the weight of each output in the choice of splits; 1 each if the recipe has none.

    Raises:
        ValueError: The recipe has weights for another number of outputs, or not positive ones.
    """
    if recipe.output_weights is None:
        return np.ones(n_outputs)
    if len(recipe.output_weights) != n_outputs or min(recipe.output_weights) <= 0:
        raise ValueError(f"the recipe needs {n_outputs} positive output weights")
    return np.array(recipe.output_weights)


def _build_ensemble(recipe: ForestRecipe, seed: int, workers: int) -> "ExtraTreesRegressor":
    """Build scikit-learn's forest, not fitted yet, with the settings of a recipe."""
    ensemble = import_extra(
        "sklearn.ensemble", package="scikit-learn", extra="generate", purpose="fitting a forest"
    )
    return ensemble.ExtraTreesRegressor(
        n_estimators=recipe.trees,
        min_samples_leaf=recipe.min_samples_leaf,
        random_state=seed,
        n_jobs=workers,
    )


class _Trees(NamedTuple):
    """The nodes of t trees with l leaves, one tree after the other, each depth first.

    A tree has one inner node less than leaves, so there are l - t inner nodes, and q = 2 l - t
    nodes in all.

    Attributes:
        nodes: Number of nodes of each tree, (t,).
        feature: Feature that each node splits on, `LEAF` in leaves, (q,).
        threshold: Threshold of each inner node, (l - t,).
        leaves: Values of the K outputs in each leaf, (l, K).
    """

    nodes: NDArray[np.int32]
    feature: NDArray[np.uint8]
    threshold: NDArray[np.float32]
    leaves: FloatArray


def _extract_trees(model: "ExtraTreesRegressor") -> _Trees:
    """Extract the nodes, thresholds and leaves of scikit-learn's fitted forest.

    Raises:
        ValueError: The trees are not stored depth first, as `_Trees` must be.
    """
    trees = [estimator.tree_ for estimator in model.estimators_]
    features = []
    thresholds = []
    leaves = []
    for tree in trees:
        is_inner = tree.children_left >= 0  # leaves have the child -1
        nodes_after_inner_ones = np.flatnonzero(is_inner) + 1
        is_depth_first = np.array_equal(tree.children_left[is_inner], nodes_after_inner_ones)
        if not is_depth_first:
            raise ValueError("this version of scikit-learn does not store trees depth first")
        features.append(np.where(is_inner, tree.feature, LEAF))
        thresholds.append(tree.threshold[is_inner])
        # `value` has shape (nodes, K, 1): its last axis is the one of classes in classification.
        leaves.append(tree.value[~is_inner, :, 0])
    return _Trees(
        nodes=np.array([tree.node_count for tree in trees], dtype=np.int32),
        feature=np.concatenate(features).astype(np.uint8),
        threshold=_round_down(np.concatenate(thresholds)),
        leaves=np.concatenate(leaves),
    )


def _round_down(exact: FloatArray) -> NDArray[np.float32]:
    """Round each number down to the largest float32 number that is not above it.

    Comparing a float32 feature with a rounded threshold then gives the same result as comparing it
    with the exact one.
    """
    nearest = exact.astype(np.float32)
    next_below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > exact, next_below, nearest)


def _quantise(leaves: FloatArray) -> tuple[NDArray[np.uint16], FloatArray, FloatArray]:
    """Code values in leaves as whole numbers from 0 to `MAX_CODE`, which take less room.

    A value is about offset + step * code. The offset is the lowest value of an output, and the step
    is its range, divided by `MAX_CODE`.

    Args:
        leaves: Values of K outputs in l leaves, (l, K).

    Returns:
        Codes (K, l), offsets (K,), and steps (K,).
    """
    offset = leaves.min(axis=0)
    step = (leaves.max(axis=0) - offset) / MAX_CODE
    divisor = np.where(step > 0, step, 1.0)  # a constant output has step 0, and only the code 0
    codes = np.rint((leaves - offset) / divisor).astype(np.uint16)
    return np.ascontiguousarray(codes.T), offset, step
