"""Configurations among which a method chooses, and which of them are new."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind

if TYPE_CHECKING:
    from hpobench_ordered.methods._coding import Coder

CANDIDATES = 1000  # suggestions get no better with more
NEAR = 200
"""Candidates near the best configuration."""
LOG_STEPS = (math.log(0.03), math.log(0.5))
"""Logs of their steps in the unit cube: standard deviations between these, log-uniform."""
FEW_MOVED = 1.0 / 3.0
"""Share of the hyperparameters that half of them move; the others move all."""
REDRAWN = 0.2
"""Probability that a step draws a categorical anew."""
CLEARLY = math.log(4.0)
"""Log of how many times the expected improvement of the best random candidate one near the best
configuration must have to be chosen: see `near`."""
MANY = 100  # configurations from which on they are coded by compiled functions
RANDOM_BLOCKS = 10  # drawn before a region is suspected to be exhausted
GRID_LIMIT = 2**20  # configurations; larger regions are not searched one by one for an untried one


class Region:
    """The part of a search space that is searched: all of it.

    Attributes:
        space: The search space.
        size: Number of distinct configurations, an upper bound under conditions; inf if continuous.
        free: Which hyperparameters take more than one value, shape (d,).
        is_categorical: Which are categorical, shape (d,).
        middle: Unit vector of the middle of the region, (d,): the value of those that are not free.
        lowest: Least unit value of those that are not categorical, shape (d,).
        highest: Their largest unit value, shape (d,).
    """

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self.size = space.size
        self.free: BoolArray = np.array([p.size > 1 for p in space.parameters])
        self.is_categorical = np.array([p.kind is Kind.CATEGORICAL for p in space.parameters])
        self.middle: FloatArray = np.full(space.dimension, 0.5)
        self.lowest, self.highest = np.zeros(space.dimension), np.ones(space.dimension)

    @cached_property
    def _coder(self) -> "Coder":
        from hpobench_ordered.methods._coding import Coder

        return Coder(self.space)

    def sample_unit(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n configurations uniformly, canonical unit vectors of the space, shape (n, d)."""
        drawn = self.draw(rng, n)
        return self.canonical(drawn) if n >= MANY else self.space.canonical(drawn)

    def canonical(self, unit: FloatArray) -> FloatArray:
        """`SearchSpace.canonical` of many unit vectors (n, d)."""
        return self._coder.canonical(unit)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n unit vectors uniformly, (n, d), before inactive hyperparameters are NaN."""
        return rng.random((n, self.space.dimension))

    def choices_within(self, unit: FloatArray) -> FloatArray:
        """Unit vectors (n, d), NaN where a categorical's choice is not in the region."""
        return unit

    def features(self, unit: FloatArray) -> FloatArray:
        """Features for a model, numbers in [0, 1], shape (n, p), of canonical unit vectors."""
        return self._coder.features(np.ascontiguousarray(unit))

    def levels(self) -> Sequence[FloatArray]:
        """Coded values of each hyperparameter in the region, where all of them are discrete."""
        return [np.arange(p.lower, p.upper + 1) for p in self.space.parameters]


def candidate_blocks(
    region: Region, rng: np.random.Generator, *, size: int = CANDIDATES
) -> Iterator[FloatArray]:
    """Yield blocks of candidates, to be taken until one holds an untried configuration.

    Regions of at most `size` configurations come whole. Others come as `RANDOM_BLOCKS` random
    blocks and then, if they are not continuous and have at most `GRID_LIMIT` configurations,
    completely, one block after the other.

    Yields:
        Canonical unit vectors, shape (m, d) with m <= `size`.
    """
    if region.size > size:
        for _ in range(RANDOM_BLOCKS):
            yield region.sample_unit(rng, size)
    if region.size <= GRID_LIMIT:
        levels = region.levels()
        shape = tuple(map(len, levels))
        total = math.prod(shape)
        for begin in range(0, total, size):
            places = np.unravel_index(np.arange(begin, min(begin + size, total)), shape)
            columns = [values[place] for values, place in zip(levels, places, strict=True)]
            yield region.space.canonical(region.space.encode(np.stack(columns, axis=1)))


def near(
    region: Region,
    centres: FloatArray,
    rng: np.random.Generator,
    *,
    count: int = NEAR,
) -> FloatArray:
    """Candidates near good configurations: on smooth objectives random ones soon come no closer.

    A model of a rough objective is wrong about what is near, and steps land on plateaus. Two signs
    tell the two apart, so that such candidates cost nothing there. Where the model knows a smooth
    slope to the optimum, their expected improvement is many times that of the best random
    candidate; elsewhere it is about the same, and less than `CLEARLY` more does not count. And a
    loss that equals an earlier one after such a step is taken for a plateau: there are no more of
    these candidates on this task.

    Args:
        region: What is searched.
        centres: The configurations, taken in turns, canonical unit vectors, shape (k, d).
        rng: Draws the steps.
        count: How many candidates.

    Returns:
        Canonical unit vectors, shape (count, d). What is inactive in the configuration, and a
        categorical that a step changes, is drawn uniformly.
    """
    from hpobench_ordered.methods._coding import moved

    shape = count, region.space.dimension
    sd = np.exp(rng.uniform(*LOG_STEPS, count))
    share = np.where(rng.random(count) < 0.5, FEW_MOVED, 1.0)
    chances, normal, redrawn = rng.random(shape), rng.standard_normal(shape), rng.random(shape)
    centres, drawn = region.choices_within(centres), region.draw(rng, count)
    bounds = region.lowest, region.highest, region.is_categorical
    steps = sd, share, chances, normal, redrawn < REDRAWN
    return region.canonical(moved(centres, *steps, *bounds, drawn))


class Tried:
    """The configurations suggested or evaluated so far, known by their exact coded values."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._keys: set[bytes] = set()

    def add(self, values: FloatArray) -> bytes:
        """Remember coded values, shape (d,), and give their `key`."""
        self._keys.add(added := key(values))
        return added

    def __contains__(self, values: FloatArray) -> bool:
        return key(values) in self._keys

    def first_new(self, unit: FloatArray, scores: FloatArray) -> tuple[int, FloatArray] | None:
        """Row and coded values (d,) of the best untried candidate; None if all were tried.

        Args:
            unit: Candidates, canonical unit vectors, shape (m, d).
            scores: Their scores, shape (m,); among equals the first counts.
        """
        best = int(np.argmax(scores))
        values: FloatArray = self._space.decode(unit[best : best + 1])[0]
        if values not in self:
            return best, values
        order = np.argsort(-scores, kind="stable")
        ordered = self._space.decode(unit[order])
        row = self.first_untried(ordered)
        return None if row is None else (int(order[row]), ordered[row])

    def first_untried(self, values: FloatArray) -> int | None:
        """Row of the first of coded values (m, d) that is untried; None if there is none."""
        untried = (i for i, row in enumerate(_same(values)) if row.tobytes() not in self._keys)
        return next(untried, None)


def key(values: FloatArray) -> bytes:
    """Bytes that are equal where coded values (d,) are: one zero, one NaN."""
    return _same(values).tobytes()


def _same(values: FloatArray) -> FloatArray:
    """Coded values with one zero and one NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0)
