"""Best known values: a search finds the best value of each task of a surrogate."""

from dataclasses import dataclass

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.best import search_best_values
from hpobench_ordered.space import Compare, Comparison

KIND = 2
"""Column of `kind`, whose choices are coded as a = 0, b = 1 and c = 2."""
SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("x", 0, 1),
        hbo.Parameter.number("rate", 1e-4, 1, log=True),
        hbo.Parameter.choice("kind", ("a", "b", "c")),
        hbo.Parameter.number("depth", 1, 9, integer=True),
    ],
    # It is active only with the kind b.
    conditions={"depth": Compare(KIND, Comparison.EQUAL, (1.0,))},
)


@dataclass(frozen=True)
class Hill:
    """A surrogate highest, at 10 + task, where x = 0.3, rate = 0.01, kind = b and depth = 7.

    With sign -1 it is a valley, lowest at -(10 + task).
    """

    sign: float = 1.0

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Heights at coded configurations, (n, 4): 10 + task at the optimum, lower elsewhere.

        A sign of -1 turns the hill into a valley.
        """
        x, rate, kind, depth = values.T
        is_b = kind == 1  # choices are coded as numbers
        below_optimum = (x - 0.3) ** 2 + (np.log(rate) - np.log(0.01)) ** 2
        # With the kind b, depth is active, and is best at 7; other kinds are lower by 1.
        below_optimum += np.where(is_b, np.abs(depth - 7), 1.0)
        return self.sign * (10 + task - below_optimum)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def find_best_values(
    direction: hbo.Direction, *, seed: int = 0, known_configs: FloatArray | None = None
) -> list[float]:
    """Search for the best values of three tasks: of a hill to maximise, or a valley to minimise.

    The search starts from 500 random configurations and, if there are some, from known ones.
    """
    is_hill = direction is hbo.Direction.MAXIMIZE
    best_values = search_best_values(
        Hill(sign=1.0 if is_hill else -1.0),
        SPACE,
        hbo.Objective("height", "m", direction),
        n_tasks=3,
        rng=np.random.default_rng(seed),
        draws=500,
        start=known_configs,
    )
    return list(best_values)


def true_best_values(direction: hbo.Direction) -> np.ndarray:
    """Best values of the three tasks: 10, 11 and 12 of a hill, or their negatives of a valley."""
    heights = np.array([10.0, 11.0, 12.0])
    return heights if direction is hbo.Direction.MAXIMIZE else -heights


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_finds_the_best_values(direction):
    """The search comes close to the best values, as some hyperparameters are continuous."""
    best_values = find_best_values(direction)

    np.testing.assert_allclose(best_values, true_best_values(direction), atol=1e-4)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_repeats_with_seed(direction):
    """Two searches with the same seed find the same values, to the last bit."""
    assert find_best_values(direction, seed=3) == find_best_values(direction, seed=3)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_known_configuration_is_never_lost(direction):
    """The search also starts from known configurations, here the optimum, and keeps the best.

    So the best values are exact, while a search among numbers alone only comes close.
    """
    x, rate, kind_b, depth = 0.3, 0.01, 1.0, 7.0
    optimum = np.array([[x, rate, kind_b, depth]])

    best_values = find_best_values(direction, known_configs=optimum)

    assert best_values == true_best_values(direction).tolist()
