"""Configurations among which an acquisition function chooses, and which of them are new."""

import math
from collections.abc import Iterator

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.space import SearchSpace

CANDIDATES = 2000
RANDOM_BLOCKS = 10  # drawn before a space is suspected to be exhausted
GRID_LIMIT = 2**20  # configurations; larger spaces are not searched one by one for an untried one


def candidate_blocks(space: SearchSpace, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield blocks of candidates, to be taken until one holds an untried configuration.

    Spaces of at most `CANDIDATES` configurations come whole. Others come as `RANDOM_BLOCKS` random
    blocks and then, if they are not continuous and have at most `GRID_LIMIT` configurations,
    completely, one block after the other.

    Yields:
        Canonical unit vectors, shape (m, d) with m <= `CANDIDATES`.
    """
    if space.size > CANDIDATES:
        for _ in range(RANDOM_BLOCKS):
            yield space.sample_unit(rng, CANDIDATES)
    if space.size <= GRID_LIMIT:
        shape = tuple(int(parameter.size) for parameter in space.parameters)
        total = math.prod(shape)
        for begin in range(0, total, CANDIDATES):
            flat = np.arange(begin, min(begin + CANDIDATES, total))
            levels = np.stack(np.unravel_index(flat, shape), axis=1)
            yield space.canonical(space.encode(levels + [p.lower for p in space.parameters]))


class Tried:
    """The configurations suggested or evaluated so far, known by their exact coded values."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._keys: set[bytes] = set()

    def add(self, values: FloatArray) -> None:
        """Remember coded values, shape (d,)."""
        self._keys.add(_key(values))

    def __contains__(self, values: FloatArray) -> bool:
        return _key(values) in self._keys

    def first_new(self, unit: FloatArray, scores: FloatArray) -> FloatArray | None:
        """Coded values (d,) of the untried candidate with the highest score; None if none is new.

        Args:
            unit: Candidates, canonical unit vectors, shape (m, d).
            scores: Their scores, shape (m,); among equals the first counts.
        """
        best = int(np.argmax(scores))
        values: FloatArray = self._space.decode(unit[best : best + 1])[0]
        if values not in self:
            return values
        order = np.argsort(-scores, kind="stable")
        for values in self._space.decode(unit[order]):
            if values not in self:
                return values
        return None


def _key(values: FloatArray) -> bytes:
    """Bytes that are equal where the values are: one zero, one NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0).tobytes()
