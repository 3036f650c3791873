"""Forests of regression trees with several outputs, fitted by scikit-learn, evaluated by us.

Notation:
    n, d    configurations, hyperparameters
    p       features of the coding
    K       outputs: tasks with evaluations, of which every leaf holds all
    T       tasks, each an output or linear between two
    t       trees
    q, l    nodes and leaves of all trees together; every tree has one leaf more than inner nodes

Trees are stored depth first: a node's left child comes right after it, so that which nodes are
leaves tells the whole shape. Leaf values are whole numbers from 0 to 65535, their codes: an output
is offset + step * code, averaged over the trees. Codes add up exactly; predictions are off by at
most half a step, 1/131070 of the output's range.

What goes left: scikit-learn rounds features to float32 and compares them with float64 thresholds.
Thresholds are rounded down to float32 here; for any float32 number x, x <= threshold then holds
for the rounded threshold exactly if it does for the original.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.errors import ArtifactError, MissingExtraError
from hpobench_ordered.surrogates.coding import Coding

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    Model = ExtraTreesRegressor | RandomForestRegressor

LEAF = 255
"""Stored feature of a leaf."""

MAX_CODE = 65535


@dataclass(frozen=True, slots=True)
class TaskMix:
    """What a task's prediction is made of: (1 - weight) * low + weight * high.

    Attributes:
        low: Index of an output.
        high: Index of an output.
        weight: Weight of `high`, in [0, 1].
    """

    low: int
    high: int
    weight: float = 0.0


def interpolate(fitted: Sequence[float], wanted: Sequence[float]) -> tuple[TaskMix, ...]:
    """Place tasks linearly between outputs.

    Args:
        fitted: Contexts of the outputs, such as training fractions, increasing, K of them.
        wanted: Contexts of the tasks, T of them.

    Raises:
        ValueError: A task lies outside of the outputs, or these do not increase.
    """
    if any(a >= b for a, b in zip(fitted, fitted[1:], strict=False)):
        raise ValueError(f"contexts of outputs must increase, got {list(fitted)}")
    mixes = []
    for context in wanted:
        if not fitted[0] <= context <= fitted[-1]:
            raise ValueError(f"{context} is not within {fitted[0]} to {fitted[-1]}")
        high = int(np.searchsorted(fitted, context))
        if fitted[high] == context:
            mixes.append(TaskMix(high, high))
        else:
            span = fitted[high] - fitted[high - 1]
            mixes.append(TaskMix(high - 1, high, (context - fitted[high - 1]) / span))
    return tuple(mixes)


@dataclass(frozen=True, eq=False)
class ForestSurrogate:
    """An average of regression trees.

    Attributes:
        coding: Features the trees split on.
        nodes: Number of nodes of each tree, (t,).
        feature: Feature each node splits on, `LEAF` in leaves; trees one after the other, each
            depth first, (q,).
        threshold: Where inner nodes split: at most that goes left, (l - t,).
        codes: Coded value of each output in each leaf, (K, l).
        offset: Value of code 0 of each output, (K,).
        step: Value from one code to the next of each output, (K,).
        tasks: How each task is made of the outputs, T of them.

    Raises:
        ValueError: The arrays do not fit each other.
    """

    coding: Coding
    nodes: NDArray[np.int32]
    feature: NDArray[np.uint8]
    threshold: NDArray[np.float32]
    codes: NDArray[np.uint16]
    offset: FloatArray
    step: FloatArray
    tasks: tuple[TaskMix, ...]
    _batch: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _one: tuple[NDArray[Any], ...] = field(init=False, repr=False)
    _mixes: tuple[tuple[int, int, float], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, kind in _ARRAYS.items():
            array = np.array(getattr(self, name), dtype=kind, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check()
        roots, child, leaf = _links(self.nodes, self.feature)
        inner = self.feature != LEAF
        threshold = np.zeros(self.feature.shape, dtype=np.float32)
        threshold[inner] = self.threshold
        feature = np.where(inner, self.feature, 0).astype(np.uint8)
        units = np.stack((self.offset, self.step / len(roots)), axis=1)
        before = (self.coding.table, feature, threshold, child, roots)
        after = (leaf, self.codes, units)
        object.__setattr__(self, "_batch", (*before, _depths(roots, child), *after))
        object.__setattr__(self, "_one", (*before, *after))
        mixes = tuple((mix.low, mix.high, mix.weight) for mix in self.tasks)
        object.__setattr__(self, "_mixes", mixes)

    def _check(self) -> None:
        outputs, leaves = self.codes.shape
        is_leaf = self.feature == LEAF
        # Reading depth first, the number of subtrees still to come is 0 after each tree only.
        missing = np.cumsum(np.where(is_leaf, -1, 1))
        ends = np.cumsum(self.nodes) - 1
        if not len(self.nodes) or self.nodes.min() < 1 or ends[-1] != len(self.feature) - 1:
            raise ValueError("the numbers of nodes do not add up")
        firsts = np.searchsorted(-missing, np.arange(1, len(ends) + 1))
        if is_leaf.sum() != leaves or not np.array_equal(firsts, ends):
            raise ValueError("the nodes are not whole trees, stored depth first")
        if self.threshold.shape != (leaves - len(self.nodes),):
            raise ValueError("every inner node needs one threshold")
        if self.feature[~is_leaf].max(initial=0) >= len(self.coding):
            raise ValueError("a node splits on a feature that the coding does not have")
        if not self.offset.shape == self.step.shape == (outputs,):
            raise ValueError("every output needs one offset and one step")
        if any(not (0 <= m.low < outputs and 0 <= m.high < outputs) for m in self.tasks):
            raise ValueError("a task refers to an output that does not exist")

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[dict[str, NDArray[Any]]]]:
        return type(self).from_arrays, (self.to_arrays(),)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        Raises:
            IndexError: There is no such task.
            ValueError: The values have the wrong shape.
        """
        mix = self._mix(task)
        values = np.ascontiguousarray(values, dtype=np.float64)
        self.coding.check(values)
        predictions: FloatArray = _kernels().forest_predict(values, *self._batch, *mix)
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        mix = self._mix(task)
        if row.shape[0] < self.coding.width:
            raise ValueError(f"a row needs {self.coding.width} values, got {row.shape}")
        prediction: float = _kernels().forest_predict_one(row, *self._one, *mix)
        return prediction

    def _mix(self, task: int) -> tuple[int, int, float]:
        if not 0 <= task < len(self._mixes):
            raise IndexError(f"task {task} is not one of 0..{len(self._mixes) - 1}")
        return self._mixes[task]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything the forest consists of as arrays for an npz file without pickle."""
        return {
            "coding": self.coding.table,
            **{name: getattr(self, name) for name in _ARRAYS},
            "task_outputs": np.array([(m.low, m.high) for m in self.tasks], dtype=np.int32),
            "task_weights": np.array([m.weight for m in self.tasks], dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the forest from `to_arrays`' result.

        Raises:
            ArtifactError: An array is missing or does not fit the others.
        """
        try:
            outputs, weights = arrays["task_outputs"].tolist(), arrays["task_weights"].tolist()
            pairs = zip(outputs, weights, strict=True)
            tasks = tuple(TaskMix(low, high, weight) for (low, high), weight in pairs)
            stored = {name: arrays[name] for name in _ARRAYS}
            return cls(coding=Coding.from_table(arrays["coding"]), tasks=tasks, **stored)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise ArtifactError(f"the arrays are not a forest's: {error}") from error


_ARRAYS: dict[str, type[np.generic]] = {
    "nodes": np.int32,
    "feature": np.uint8,
    "threshold": np.float32,
    "codes": np.uint16,
    "offset": np.float64,
    "step": np.float64,
}


class TreeKind(Enum):
    """How trees choose their splits."""

    EXTRA = "extra-trees"
    """The best of one random threshold a feature (Geurts et al. 2006): smoother between points."""
    RANDOM = "random-forest"
    """The best threshold, on bootstrap samples (Breiman 2001)."""


@dataclass(frozen=True, slots=True)
class ForestRecipe:
    """How a forest is fitted.

    Attributes:
        kind: How trees choose their splits. Extra trees on all configurations predict smooth
            objectives better than random forests, with half the trees.
        trees: Number of trees, t.
        min_samples_leaf: Fewest configurations in a leaf. From 2 on no leaf is the evaluation of a
            single configuration, and trees are less than half as large as with 1.
        max_features: Share of the features among which a split is chosen.
        output_weights: Weight of each output in choosing splits, K of them; equal without. Outputs
            are standardised before. Larger for outputs that behave unlike most others.
    """

    kind: TreeKind = TreeKind.EXTRA
    trees: int = 60
    min_samples_leaf: int = 2
    max_features: float = 1.0
    output_weights: tuple[float, ...] | None = None


def fit_forest(
    values: FloatArray,
    targets: FloatArray,
    *,
    coding: Coding,
    recipe: ForestRecipe,
    seed: int,
    tasks: Sequence[TaskMix] | None = None,
    workers: int = 1,
) -> ForestSurrogate:
    """Fit a forest; the same seed gives the same bytes, whatever the number of workers.

    Args:
        values: Configurations, native values with inactive ones NaN, shape (n, d).
        targets: Their evaluations in the objective's own units, shape (n, K).
        coding: Features the trees split on.
        recipe: How to fit.
        seed: Seed of the trees.
        tasks: How tasks are made of the outputs; without, every output is a task.
        workers: Number of threads.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        ValueError: Shapes do not fit, or a target is not finite.
    """
    if targets.ndim != 2 or len(targets) != len(values) or not np.isfinite(targets).all():
        raise ValueError(
            f"targets need shape ({len(values)}, K) and finite values, got {targets.shape}"
        )
    x = coding.encode(values).astype(np.float32)
    mean, deviation = targets.mean(axis=0), targets.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0) / _weights(recipe, targets.shape[1])
    scaled = (targets - mean) / scale
    model = _model(recipe, seed, workers)
    # scikit-learn insists on one dimension for one output.
    model.fit(x, scaled[:, 0] if scaled.shape[1] == 1 else scaled)
    nodes, feature, threshold, leaves = _extract(model)
    codes, offset, step = _quantise(mean + scale * leaves)
    outputs = range(targets.shape[1])
    return ForestSurrogate(
        coding=coding,
        nodes=nodes,
        feature=feature,
        threshold=threshold,
        codes=codes,
        offset=offset,
        step=step,
        tasks=tuple(TaskMix(k, k) for k in outputs) if tasks is None else tuple(tasks),
    )


def cross_validate(
    values: FloatArray,
    targets: FloatArray,
    *,
    coding: Coding,
    recipe: ForestRecipe,
    seed: int,
    folds: int = 10,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> FloatArray:
    """Predict every evaluation by a forest that was fitted without its configuration.

    The forests are stored and evaluated exactly as the one that is shipped.

    Args:
        values: Configurations, shape (n, d).
        targets: Their evaluations, shape (n, K).
        coding: Features the trees split on.
        recipe: How to fit.
        seed: Seed of the folds and of the trees.
        folds: Number of folds.
        workers: Number of threads.
        progress: Called with the number of finished folds and of all of them.

    Returns:
        Out-of-fold predictions, shape (n, K).
    """
    predictions = np.empty(targets.shape)
    for done, held_out in enumerate(_folds(len(values), folds, seed), start=1):
        kept = np.setdiff1d(np.arange(len(values)), held_out)
        forest = fit_forest(
            values[kept], targets[kept], coding=coding, recipe=recipe, seed=seed, workers=workers
        )
        for output in range(targets.shape[1]):
            predictions[held_out, output] = forest.predict(values[held_out], output)
        if progress is not None:
            progress(done, folds)
    return predictions


def _folds(n: int, folds: int, seed: int) -> Iterator[IntArray]:
    if not 2 <= folds <= n:
        raise ValueError(f"folds must be from 2 to {n}, got {folds}")
    yield from np.array_split(np.random.default_rng(seed).permutation(n), folds)


def _weights(recipe: ForestRecipe, outputs: int) -> FloatArray:
    if recipe.output_weights is None:
        return np.ones(outputs)
    if len(recipe.output_weights) != outputs or min(recipe.output_weights) <= 0:
        raise ValueError(f"the recipe needs {outputs} positive output weights")
    return np.array(recipe.output_weights)


def _model(recipe: ForestRecipe, seed: int, workers: int) -> "Model":
    try:
        from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
    except ImportError:
        raise MissingExtraError(
            "scikit-learn", extra="generate", purpose="fitting a forest"
        ) from None
    kind = ExtraTreesRegressor if recipe.kind is TreeKind.EXTRA else RandomForestRegressor
    return kind(
        n_estimators=recipe.trees,
        min_samples_leaf=recipe.min_samples_leaf,
        max_features=recipe.max_features,
        random_state=seed,
        n_jobs=workers,
    )


def _extract(
    model: "Model",
) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32], FloatArray]:
    """Nodes of each tree (t,), feature (q,), threshold (l - t,) and leaf values (l, K)."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    features, thresholds, leaves = [], [], []
    for tree in trees:
        inner = tree.children_left >= 0
        if not np.array_equal(tree.children_left[inner], np.flatnonzero(inner) + 1):
            raise ValueError("this version of scikit-learn does not store trees depth first")
        features.append(np.where(inner, tree.feature, LEAF))
        thresholds.append(tree.threshold[inner])
        leaves.append(tree.value[~inner, :, 0])
    exact = np.concatenate(thresholds)
    rounded = exact.astype(np.float32)
    down = np.where(rounded > exact, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    nodes = np.array([tree.node_count for tree in trees], dtype=np.int32)
    return nodes, np.concatenate(features).astype(np.uint8), down, np.concatenate(leaves)


def _quantise(leaves: FloatArray) -> tuple[NDArray[np.uint16], FloatArray, FloatArray]:
    """Codes (K, l), offset (K,) and step (K,) of leaf values (l, K)."""
    offset = leaves.min(axis=0)
    step = (leaves.max(axis=0) - offset) / MAX_CODE
    codes = np.rint((leaves - offset) / np.where(step > 0, step, 1.0))
    return np.ascontiguousarray(codes.T.astype(np.uint16)), offset, step


def _links(
    nodes: NDArray[np.int32], feature: NDArray[np.uint8]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Roots (t,), children (2 q,) and leaf numbers (q,), as `_kernels.forest_predict` has them."""
    is_leaf = feature == LEAF
    # Subtrees still to come before a node is read: the left child's subtree has been read when
    # this number is for the first time what it was before the parent; there is the right child.
    missing = np.concatenate(([0], np.cumsum(np.where(is_leaf, -1, 1))[:-1]))
    order = np.argsort(missing, kind="stable")
    following = np.zeros(len(feature), dtype=np.int64)
    following[order[:-1]] = order[1:]
    own = np.arange(len(feature))
    child = np.stack((np.where(is_leaf, own, own + 1), np.where(is_leaf, own, following)), axis=1)
    roots = np.concatenate(([0], np.cumsum(nodes)[:-1]))
    leaf = np.cumsum(is_leaf) - is_leaf
    return roots.astype(np.uint32), child.ravel().astype(np.uint32), leaf.astype(np.uint32)


def _depths(roots: NDArray[np.uint32], child: NDArray[np.uint32]) -> IntArray:
    """Number of splits on the longest way down each tree, (t,)."""
    depths = np.zeros(len(roots), dtype=np.int64)
    pairs = child.reshape(-1, 2)
    level = roots
    while True:
        level = level[pairs[level, 0] != level]
        if not len(level):
            return depths
        depths[np.searchsorted(roots, level, side="right") - 1] += 1
        level = pairs[level].ravel()


@cache
def _kernels() -> ModuleType:
    # Imported at the first prediction: numba takes longer than loading a benchmark may.
    from hpobench_ordered.surrogates import _kernels as kernels

    return kernels
