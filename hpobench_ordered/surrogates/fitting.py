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
from typing import TYPE_CHECKING

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
        """Describe the forest for its card."""
        leaves = "single configurations in leaves"
        if self.min_samples_leaf > 1:
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
    x = coding.encode(values).astype(np.float32)
    # Splits reduce the squared error of all outputs together: outputs of equal scale count equally
    # in them, and those with a larger weight more.
    mean, deviation = targets.mean(axis=0), targets.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0) / _output_weights(recipe, targets.shape[1])
    scaled = (targets - mean) / scale
    model = _build_ensemble(recipe, seed, workers)
    # scikit-learn insists on one dimension for one output.
    model.fit(x, scaled[:, 0] if scaled.shape[1] == 1 else scaled)
    nodes, feature, threshold, leaves = _extract_trees(model)
    codes, offset, step = _quantise(mean + scale * leaves)  # in the objective's own units
    return ForestSurrogate(
        coding=coding,
        nodes=nodes,
        feature=feature,
        threshold=threshold,
        codes=codes,
        offset=offset,
        step=step,
        tasks=tuple(TaskMix(k, k) for k in range(targets.shape[1])),  # a task for each output
    )


def _output_weights(recipe: ForestRecipe, outputs: int) -> FloatArray:
    """Return how much each of a number of outputs counts in choosing splits; default: 1 each.

    Raises:
        ValueError: The recipe has weights for another number of outputs, or not positive ones.
    """
    if recipe.output_weights is None:
        return np.ones(outputs)
    if len(recipe.output_weights) != outputs or min(recipe.output_weights) <= 0:
        raise ValueError(f"the recipe needs {outputs} positive output weights")
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


def _extract_trees(
    model: "ExtraTreesRegressor",
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32], FloatArray]:
    """Extract the nodes of a fitted forest of t trees, one tree after the other, depth first.

    Trees have q nodes in all, of which l are leaves and so l - t inner nodes.

    Returns:
        Number of nodes of each tree (t,); feature that each node splits on, `LEAF` in leaves (q,);
        threshold of each inner node (l - t,); values of the K outputs in each leaf (l, K).
    """
    trees = [estimator.tree_ for estimator in model.estimators_]
    features, thresholds, leaves = [], [], []
    for tree in trees:
        is_inner = tree.children_left >= 0  # leaves have the child -1
        # Depth first: the left child of a node comes right after it.
        if not np.array_equal(tree.children_left[is_inner], np.flatnonzero(is_inner) + 1):
            raise ValueError("this version of scikit-learn does not store trees depth first")
        features.append(np.where(is_inner, tree.feature, LEAF))
        thresholds.append(tree.threshold[is_inner])
        leaves.append(tree.value[~is_inner, :, 0])  # (nodes, K, 1): the last axis is of classes
    return (
        np.array([tree.node_count for tree in trees], dtype=np.int32),
        np.concatenate(features).astype(np.uint8),
        _round_down(np.concatenate(thresholds)),
        np.concatenate(leaves),
    )


def _round_down(exact: FloatArray) -> NDArray[np.float32]:
    """Round to float32 downwards: find the largest float32 number that is at most each number."""
    nearest = exact.astype(np.float32)
    next_below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > exact, next_below, nearest)


def _quantise(leaves: FloatArray) -> tuple[NDArray[np.uint16], FloatArray, FloatArray]:
    """Code the values of K outputs in l leaves, (l, K), as whole numbers from 0 to `MAX_CODE`.

    Returns:
        Codes (K, l), and of each output the offset (K,) and the step (K,): a value is about
        offset + step * code.
    """
    offset = leaves.min(axis=0)
    step = (leaves.max(axis=0) - offset) / MAX_CODE
    divisor = np.where(step > 0, step, 1.0)  # a constant output has step 0, and only the code 0
    codes = np.rint((leaves - offset) / divisor)
    return np.ascontiguousarray(codes.T.astype(np.uint16)), offset, step
