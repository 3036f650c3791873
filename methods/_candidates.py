"""Candidate configurations, and the record of those already tried."""

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
"""Logs of the range of the standard deviations of their steps in the unit cube."""
FEW_MOVED = 1.0 / 3.0
"""Share of the hyperparameters changed in half of them; the other half changes all."""
REDRAWN = 0.2
"""Probability that a step draws a categorical anew."""
LOG_ADVANTAGE = math.log(4.0)
"""Log of the factor by which the expected improvement of a candidate near the best configuration
must exceed that of the best random candidate to be chosen: see `draw_near`."""
MANY = 100  # configurations from which on they are coded by compiled functions
RANDOM_BLOCKS = 10  # drawn before a region is suspected to be exhausted
GRID_LIMIT = 2**20  # configurations; larger regions are not searched one by one for an untried one


class Region:
    """The part of a search space that is searched; in this class the whole space.

    Attributes:
        space: The search space.
        size: Number of distinct configurations, an upper bound under conditions; inf if continuous.
        free: Whether each hyperparameter has more than one value, shape (d,).
        is_categorical: Whether each is categorical, shape (d,).
        middle: Unit vector of the middle of the region, (d,): the value of fixed hyperparameters.
        lowest: Smallest unit values of numbers, shape (d,).
        highest: Their largest unit values, shape (d,).
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
        """Draw n unit vectors uniformly, (n, d), with values of inactive hyperparameters, too."""
        return rng.random((n, self.space.dimension))

    def choices_within(self, unit: FloatArray) -> FloatArray:
        """Unit vectors (n, d), NaN where a categorical's choice is not in the region."""
        return unit

    def features(self, unit: FloatArray) -> FloatArray:
        """Features for a model, numbers in [0, 1], shape (n, p), of canonical unit vectors."""
        return self._coder.features(np.ascontiguousarray(unit))

    def levels(self) -> Sequence[FloatArray]:
        """Coded values of each hyperparameter in the region, which must be finite."""
        return [np.arange(p.lower, p.upper + 1) for p in self.space.parameters]


def iter_candidate_blocks(
    region: Region, rng: np.random.Generator, *, size: int = CANDIDATES
) -> Iterator[FloatArray]:
    """Yield blocks of candidates, until the caller finds an untried configuration.

    A region of at most `size` configurations is one block. Otherwise there are `RANDOM_BLOCKS`
    random blocks and then, if the region is finite with at most `GRID_LIMIT` configurations, all of
    them, block by block.

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


def draw_near(
    region: Region,
    centres: FloatArray,
    rng: np.random.Generator,
    *,
    count: int = NEAR,
) -> FloatArray:
    """Candidates near good configurations, as random ones soon get no closer on smooth objectives.

    On rough objectives the model is wrong about the neighbourhood of a configuration, and such
    candidates land on plateaus. Two rules avoid losses there. First, if the model knows a smooth
    slope to the optimum, their expected improvement is many times that of the best random
    candidate; elsewhere it is about the same. They are therefore chosen only if the log expected
    improvement is larger by `LOG_ADVANTAGE`. Second, if a loss after such a step equals an earlier
    one, this counts as a plateau, and no more such candidates are drawn on this task.

    Args:
        region: Region that is searched.
        centres: The good configurations, used in turn, canonical unit vectors, shape (k, d).
        rng: Draws the steps.
        count: Number of candidates.

    Returns:
        Canonical unit vectors, shape (count, d). Hyperparameters that are inactive in the centre,
        and categoricals changed by a step, are drawn uniformly.
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


class TriedConfigurations:
    """The configurations suggested or evaluated so far, compared by their exact coded values."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._keys: set[bytes] = set()

    def add(self, values: FloatArray) -> bytes:
        """Add coded values, shape (d,), and return their `configuration_key`."""
        self._keys.add(added := configuration_key(values))
        return added

    def __contains__(self, values: FloatArray) -> bool:
        return configuration_key(values) in self._keys

    def find_best_untried(
        self, unit: FloatArray, scores: FloatArray
    ) -> tuple[int, FloatArray] | None:
        """Row and coded values (d,) of the best untried candidate; None if all were tried.

        Args:
            unit: Candidates, canonical unit vectors, shape (m, d).
            scores: Their scores, shape (m,); the first of equally good ones is chosen.
        """
        best = int(np.argmax(scores))
        values: FloatArray = self._space.decode(unit[best : best + 1])[0]
        if values not in self:
            return best, values
        order = np.argsort(-scores, kind="stable")
        ordered = self._space.decode(unit[order])
        row = self.find_first_untried(ordered)
        return None if row is None else (int(order[row]), ordered[row])

    def find_first_untried(self, values: FloatArray) -> int | None:
        """Row of the first untried configuration in coded values (m, d); None if there is none."""
        untried = (i for i, row in enumerate(_same(values)) if row.tobytes() not in self._keys)
        return next(untried, None)


def configuration_key(values: FloatArray) -> bytes:
    """Bytes that are equal for equal coded values (d,), including signed zeros and NaN."""
    return _same(values).tobytes()


def _same(values: FloatArray) -> FloatArray:
    """Coded values with a unique representation of zero and NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0)
