from dataclasses import dataclass

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.surrogates.best import best_known

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("x", 0, 1),
        hbo.Parameter.number("rate", 1e-4, 1, log=True),
        hbo.Parameter.choice("kind", ("a", "b", "c")),
        hbo.Parameter.number("depth", 1, 9, integer=True),
    ],
    conditions={"depth": hbo.Compare(2, hbo.Comparison.EQUAL, (1.0,))},
)


@dataclass(frozen=True)
class Hill:
    """Highest, at 10 + task, where x = 0.3, rate = 0.01, kind = b and depth = 7."""

    sign: float = 1.0

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        x, rate, kind, depth = values.T
        penalty = (x - 0.3) ** 2 + (np.log(rate) - np.log(0.01)) ** 2 + (kind != 1)
        penalty += np.where(kind == 1, np.abs(depth - 7), 0.0)
        return self.sign * (10 + task - penalty)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def search(direction: hbo.Direction, *, seed: int = 0, **known: FloatArray) -> list[float]:
    """Best values that the search finds on three tasks of a hill, whose sign fits the direction."""
    best = best_known(
        Hill(-direction.sign),
        SPACE,
        hbo.Objective("height", "m", direction),
        n_tasks=3,
        rng=np.random.default_rng(seed),
        draws=500,
        **known,
    )
    return list(best)


def top(direction: hbo.Direction) -> np.ndarray:
    """Best values of the three tasks."""
    return -direction.sign * np.array([10.0, 11.0, 12.0])


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_finds_the_top(direction):
    # The hill's tops are at 10, 11 and 12.
    np.testing.assert_allclose(search(direction), top(direction), atol=1e-4)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_repeats_with_seed(direction):
    assert search(direction, seed=3) == search(direction, seed=3)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_known_configuration_is_never_lost(direction):
    # x, rate, kind (b) and depth of the top, so that the result is exact.
    at_top = np.array([[0.3, 0.01, 1.0, 7.0]])
    assert search(direction, known=at_top) == top(direction).tolist()
