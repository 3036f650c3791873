"""Best known values: the search on a surrogate finds the optimum of each task."""

from dataclasses import dataclass

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.surrogates.best import best_known

# `depth` is active only if `kind`, column 2, is "b", which is coded as 1.
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
    """A surrogate highest, at 10 + task, where x = 0.3, rate = 0.01, kind = b and depth = 7.

    With sign -1 it is a valley, lowest at -(10 + task).
    """

    sign: float = 1.0

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Heights of coded configurations, (n, 4): lower the farther they are from the optimum.

        The highest is 10 + task; with a sign of -1 all are negated.
        """
        x, rate, kind, depth = values.T
        is_b = kind == 1  # the choices are coded as a = 0, b = 1 and c = 2
        penalty = (x - 0.3) ** 2 + (np.log(rate) - np.log(0.01)) ** 2
        # The depth is active, and so counts, only with b; other kinds cost 1 instead.
        penalty += np.where(is_b, np.abs(depth - 7), 1.0)
        return self.sign * (10 + task - penalty)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def find_best_values(
    direction: hbo.Direction, *, seed: int = 0, known: FloatArray | None = None
) -> list[float]:
    """Search for the best values of three tasks: of a hill to maximise, or a valley to minimise.

    The search starts from 500 random configurations and, if there are some, from known ones.
    """
    # The sign of a direction turns values into losses: it is -1 for maximising.
    surrogate = Hill(sign=-direction.sign)
    best_values = best_known(
        surrogate,
        SPACE,
        hbo.Objective("height", "m", direction),
        n_tasks=3,
        rng=np.random.default_rng(seed),
        draws=500,
        known=known,
    )
    return list(best_values)


def true_best_values(direction: hbo.Direction) -> np.ndarray:
    """Best values of the three tasks: 10, 11 and 12 of a hill, or their negatives of a valley."""
    return -direction.sign * np.array([10.0, 11.0, 12.0])


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_finds_the_best_values(direction):
    best_values = find_best_values(direction)

    # A search among continuous values only comes close.
    np.testing.assert_allclose(best_values, true_best_values(direction), atol=1e-4)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_search_repeats_with_seed(direction):
    assert find_best_values(direction, seed=3) == find_best_values(direction, seed=3)


@pytest.mark.parametrize("direction", hbo.Direction)
def test_known_configuration_is_never_lost(direction):
    """The search also starts from known configurations, here the optimum, and keeps the best."""
    # x, rate, kind (1 stands for "b") and depth.
    optimum = np.array([[0.3, 0.01, 1.0, 7.0]])

    best_values = find_best_values(direction, known=optimum)

    assert best_values == true_best_values(direction).tolist()
