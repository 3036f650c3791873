"""Candidate configurations, and the record of those already tried.

Configurations are coded as in `_model_based`: `values` (d,) are coded values, `unit` (d,) the same
in the unit cube, d is the number of hyperparameters.
"""

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

CANDIDATES = 1000
"""Number of random candidates. With more, suggestions do not improve."""
CANDIDATES_NEAR = 200
"""Number of candidates near the best configuration."""
LOG_SD_RANGE = (math.log(0.03), math.log(0.5))
"""Range of the log standard deviations of the steps to them, in the unit cube."""
SHARE_OF_FEW_MOVED = 1.0 / 3.0
"""Share of the hyperparameters changed in half of them; the other half changes all."""
REDRAW_PROBABILITY = 0.2
"""Probability that a step draws a categorical anew."""
LOG_ADVANTAGE = math.log(4.0)
"""Log of the factor by which the expected improvement of a candidate near the best configuration
must exceed that of the best random candidate to be chosen: see `draw_near`."""
MIN_COMPILED = 100
"""Smallest number of configurations that are coded by compiled functions."""
DECODED_AT_ONCE = 100
"""Number of the best candidates that are decoded at once to find an untried one among them."""
RANDOM_BLOCKS = 10
"""If this many random blocks hold no untried configuration, all of the region is searched."""
GRID_LIMIT = 2**20
"""A region with more configurations than this is not searched one by one."""


class Region:
    """The part of a search space that is searched; in this class the whole space.

    Attributes:
        space: The search space.
        size: Number of distinct configurations, an upper bound under conditions; inf if continuous.
        is_searched: Whether each hyperparameter has more than one value, shape (d,).
        is_categorical: Whether each is categorical, shape (d,).
        middle: Middle of the region, a point of the unit cube, (d,): the value of fixed
            hyperparameters.
        lowest: Smallest unit values of numbers, shape (d,).
        highest: Their largest unit values, shape (d,).
    """

    def __init__(self, space: SearchSpace) -> None:
        """Describe the whole space as a region; arrays have an entry for each hyperparameter."""
        self.space = space
        self.size = space.size  # number of configurations; inf if a hyperparameter is continuous
        # A hyperparameter with a single value need not be searched.
        self.is_searched: BoolArray = np.array([p.size > 1 for p in space.parameters])
        self.is_categorical = np.array([p.kind is Kind.CATEGORICAL for p in space.parameters])
        # Points of the unit cube: the middle, and the smallest and largest values.
        self.middle: FloatArray = np.full(space.dimension, 0.5)
        self.lowest = np.zeros(space.dimension)
        self.highest = np.ones(space.dimension)

    @cached_property
    def _coder(self) -> "Coder":
        """Compiled code for many configurations, imported on demand as it loads slowly."""
        from hpobench_ordered.methods._coding import Coder

        return Coder(self.space)

    def sample_unit(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n configurations uniformly, points of the unit cube, shape (n, d).

        Discrete values are in the middle of their bins, and inactive hyperparameters are NaN. The
        random numbers are those that `draw` takes.
        """
        points = self.draw(rng, n)
        # Both functions give the same; for few configurations, compiled code does not pay.
        if n >= MIN_COMPILED:
            return self.canonical(points)
        return self.space.canonical(points)

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Compute the points (n, d) that represent the configurations at points of the unit cube.

        Discrete values move to the middle of their bins, and inactive hyperparameters become NaN.
        This is `SearchSpace.canonical`, in compiled code for many configurations.
        """
        return self._coder.canonical(unit)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n points of the region uniformly, shape (n, d).

        They are raw points of the unit cube: discrete values are anywhere in their bins, and
        inactive hyperparameters have values, too. `sample_unit` makes configurations of them.
        """
        return rng.random((n, self.space.dimension))

    def mask_choices_outside(self, unit: FloatArray) -> FloatArray:
        """Replace choices that are not in the region by NaN, in points of the unit cube (n, d).

        This region, the whole space, has all choices, so nothing is replaced; subclasses override
        this.
        """
        return unit

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features for a model, (n, p) in [0, 1], of configurations in the unit cube."""
        return self._coder.features(np.ascontiguousarray(unit))

    def levels(self) -> Sequence[FloatArray]:
        """List the coded values of each hyperparameter in the region, which must be finite.

        Coded values are whole numbers then: integers, or indices of ordinals and choices.
        """
        return [np.arange(p.lower, p.upper + 1) for p in self.space.parameters]


def iter_candidate_blocks(
    region: Region, rng: np.random.Generator, *, size: int = CANDIDATES
) -> Iterator[FloatArray]:
    """Yield blocks of candidates, until the caller finds an untried configuration.

    A region of at most `size` configurations is one block. Otherwise there are `RANDOM_BLOCKS`
    random blocks and then, if the region is finite with at most `GRID_LIMIT` configurations, all of
    them, block by block.

    Yields:
        Configurations in the unit cube, shape (m, d) with m <= `size`.
    """
    if region.size > size:
        for _ in range(RANDOM_BLOCKS):
            yield region.sample_unit(rng, size)
    if region.size <= GRID_LIMIT:
        yield from _iter_grid_blocks(region, size)


def _iter_grid_blocks(region: Region, size: int) -> Iterator[FloatArray]:
    """Yield all configurations of a finite region, in blocks of at most `size`.

    Yields:
        Configurations in the unit cube, shape (m, d) with m <= `size`.
    """
    levels = region.levels()  # the coded values of each hyperparameter
    level_counts = tuple(len(values) for values in levels)
    configuration_count = math.prod(level_counts)
    for begin in range(0, configuration_count, size):
        end = min(begin + size, configuration_count)
        # Configurations are numbered as the entries of an array with an axis for each
        # hyperparameter: their indices along the axes say which values they have.
        indices = np.unravel_index(np.arange(begin, end), level_counts)
        columns = [values[index] for values, index in zip(levels, indices, strict=True)]
        coded_values = np.stack(columns, axis=1)
        yield region.space.canonical(region.space.encode(coded_values))


def draw_near(
    region: Region,
    centres: FloatArray,
    rng: np.random.Generator,
    *,
    count: int = CANDIDATES_NEAR,
) -> FloatArray:
    """Draw candidates near good configurations, for smooth objectives.

    On a smooth objective, random candidates soon come no closer to the optimum.
    On a rough objective, the model is wrong about the neighbourhood of a configuration, and such
    candidates land on plateaus. Two rules avoid losses there. First, if the model knows a smooth
    slope to the optimum, their expected improvement is many times that of the best random
    candidate; elsewhere it is about the same. They are therefore chosen only if the log expected
    improvement is larger by `LOG_ADVANTAGE`. Second, if a loss after such a step equals an earlier
    one, this counts as a plateau, and no more such candidates are drawn on this task.

    Args:
        region: Region that is searched.
        centres: The good configurations, used in turn, in the unit cube, shape (k, d).
        rng: Draws the steps.
        count: Number of candidates.

    Returns:
        Configurations in the unit cube, shape (count, d). Hyperparameters that are inactive in the
        centre, and categoricals changed by a step, are drawn uniformly.
    """
    from hpobench_ordered.methods._coding import move_centres

    shape = count, region.space.dimension
    # Steps are normal; each candidate has a standard deviation of its own, drawn log-uniformly.
    lowest_log_sd, highest_log_sd = LOG_SD_RANGE
    sd = np.exp(rng.uniform(lowest_log_sd, highest_log_sd, count))
    # Half of the candidates change few hyperparameters, the other half all of them.
    share_moved = np.where(rng.random(count) < 0.5, SHARE_OF_FEW_MOVED, 1.0)
    is_moved = rng.random(shape) < share_moved[:, None]
    steps = np.where(is_moved, sd[:, None] * rng.standard_normal(shape), 0.0)  # of numbers
    is_redrawn = rng.random(shape) < REDRAW_PROBABILITY  # for categoricals, instead of a step

    # What replaces redrawn choices, and values that are inactive in the centre.
    drawn = region.draw(rng, count)
    # A choice of a centre that the region does not have becomes NaN, so that it is replaced, too.
    masked_centres = region.mask_choices_outside(centres)
    moved = move_centres(
        masked_centres,
        steps,
        is_redrawn,
        drawn,
        region.lowest,
        region.highest,
        region.is_categorical,
    )
    return region.canonical(moved)


class TriedConfigurations:
    """The configurations suggested or evaluated so far, compared by their exact coded values."""

    def __init__(self, space: SearchSpace) -> None:
        """Start without a tried configuration."""
        self._space = space
        # A `configuration_key` for each tried configuration.
        self._keys: set[bytes] = set()

    def add(self, values: FloatArray) -> bytes:
        """Record coded values (d,) as tried, and return their `configuration_key`."""
        key = configuration_key(values)
        self._keys.add(key)
        return key

    def __contains__(self, values: FloatArray) -> bool:
        """Whether coded values (d,) were tried."""
        return configuration_key(values) in self._keys

    def find_tried(self, values: FloatArray) -> BoolArray:
        """Find which rows of coded values (m, d) were tried, (m,)."""
        is_tried = np.empty(len(values), dtype=bool)
        for row, unified in enumerate(_unify_representations(values)):
            key = unified.tobytes()  # as `configuration_key` makes it, for one row
            is_tried[row] = key in self._keys
        return is_tried

    def find_best_untried(
        self, unit: FloatArray, scores: FloatArray
    ) -> tuple[int, FloatArray] | None:
        """Find the untried candidate of the highest score; the first of equally good ones.

        Args:
            unit: Candidates in the unit cube, shape (m, d).
            scores: Their scores, shape (m,).

        Returns:
            Its row and its coded values (d,); None if all candidates were tried.
        """
        # Tried configurations are known by their coded values, so candidates have to be decoded.
        # Most often the best candidate is untried, and no others need to be sorted and decoded.
        best_row = int(np.argmax(scores))
        best_values: FloatArray = self._space.decode(unit[best_row : best_row + 1])[0]
        if best_values not in self:
            return best_row, best_values

        rows_by_score = np.argsort(-scores, kind="stable")  # best first
        # Decoded in portions: the first one mostly has an untried candidate.
        for begin in range(0, len(rows_by_score), DECODED_AT_ONCE):
            rows = rows_by_score[begin : begin + DECODED_AT_ONCE]
            values = self._space.decode(unit[rows])
            first_untried = self.find_first_untried(values)
            if first_untried is not None:
                return int(rows[first_untried]), values[first_untried]
        return None

    def find_first_untried(self, values: FloatArray) -> int | None:
        """Find the first row of coded values (m, d) that was not tried; None if all were tried."""
        is_untried = ~self.find_tried(values)
        if not is_untried.any():
            return None
        return int(is_untried.argmax())


def configuration_key(values: FloatArray) -> bytes:
    """Make a key of coded values (d,): bytes that are equal exactly where the values are equal.

    0.0 and -0.0 are equal values, and so are all NaN.
    """
    return _unify_representations(values).tobytes()


def _unify_representations(values: FloatArray) -> FloatArray:
    """Replace -0.0 by 0.0 and every NaN by the same NaN, so that equal values have equal bytes.

    NaN stands for an inactive hyperparameter. A float may be NaN in many bit patterns.
    """
    without_negative_zeros = values + 0.0  # -0.0 + 0.0 is 0.0
    return np.where(np.isnan(values), np.nan, without_negative_zeros)
