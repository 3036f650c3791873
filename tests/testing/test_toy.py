import numpy as np
import pytest

from hpobench_ordered import SearchSpace
from hpobench_ordered.benchmark import Direction
from hpobench_ordered.testing.toy import (
    DRIFT,
    START,
    conditional_space,
    five_values_space,
    four_choices_space,
    numeric_space,
    random_history,
    toy_benchmark,
    two_values_space,
)


def test_the_optimum_moves_slowly() -> None:
    space = numeric_space()
    for task in toy_benchmark(space, tasks=7).tasks:
        at = space.decode(np.full((1, 2), START + DRIFT * task.index))
        assert task.evaluate_many(at)[0] == pytest.approx(0, abs=1e-30)
        away = space.decode(np.full((1, 2), START + DRIFT * task.index + 0.1))
        assert task.evaluate_many(away)[0] == pytest.approx(2 * 0.1**2)


def test_the_optimum_of_discrete_hyperparameters_is_among_their_values() -> None:
    space = conditional_space()
    best = space.decode(np.full((1, 4), START))
    best_config = {"kind": "b", "level": 10, "n": 3, "x": START, "fixed": "always"}
    assert space.configs(best)[0] == best_config
    task = toy_benchmark(space, tasks=1).tasks[0]
    assert task.evaluate_many(best)[0] == pytest.approx(0, abs=1e-30)
    # Choices count by their distance, what is inactive does not count.
    far = {"kind": "c", "level": 1, "n": 3, "x": 0.9}
    assert task.evaluate(far) == pytest.approx(2 * (1 / 3) ** 2)


def test_maximised_is_minimised_with_another_sign() -> None:
    minimised, maximised = (
        toy_benchmark(conditional_space(), tasks=2, direction=direction).tasks[1]
        for direction in (Direction.MINIMIZE, Direction.MAXIMIZE)
    )
    (one,), (other,) = (random_history([task], seed=0) for task in (minimised, maximised))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.losses, other.losses)
    np.testing.assert_array_equal(maximised.evaluate_many(other.values), -other.losses)


@pytest.mark.parametrize(
    ("space", "size"),
    [(five_values_space(), 5), (two_values_space(), 2), (four_choices_space(), 4)],
)
def test_sizes_of_small_spaces(space: SearchSpace, size: int) -> None:
    assert space.size == size
