import numpy as np
import pytest

from hpobench_ordered.core.objective import Direction
from hpobench_ordered.testing.toy import (
    DRIFT,
    START,
    conditional_space,
    conditional_space_before,
    four_choices_space,
    integer_space,
    numeric_space,
    numeric_space_before,
    random_history,
    toy_benchmark,
    toy_spec,
)


def test_the_optimum_moves_slowly():
    space = numeric_space()
    for task in toy_benchmark(space, tasks=7).tasks:
        at = space.decode(np.full((1, 2), START + DRIFT * task.index))
        assert task.evaluate_many(at)[0] == pytest.approx(0, abs=1e-30)
        away = space.decode(np.full((1, 2), START + DRIFT * task.index + 0.1))
        assert task.evaluate_many(away)[0] == pytest.approx(2 * 0.1**2)


def test_the_optimum_of_discrete_hyperparameters_is_among_their_values():
    space = conditional_space()
    best = space.decode(np.full((1, 4), START))
    best_config = {"kind": "b", "level": 10, "n": 3, "x": START, "fixed": "always"}
    assert space.configs(best)[0] == best_config
    task = toy_benchmark(space, tasks=1).tasks[0]
    assert task.evaluate_many(best)[0] == pytest.approx(0, abs=1e-30)
    # Choices count by their distance, what is inactive does not count.
    far = {"kind": "c", "level": 1, "n": 3, "x": 0.9}
    assert task.evaluate(far) == pytest.approx(2 * (1 / 3) ** 2)


def test_maximised_is_minimised_with_another_sign():
    minimised, maximised = (
        toy_benchmark(conditional_space(), tasks=2, direction=direction).tasks[1]
        for direction in (Direction.MINIMIZE, Direction.MAXIMIZE)
    )
    (one,), (other,) = (random_history([task], seed=0) for task in (minimised, maximised))
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.losses, other.losses)
    np.testing.assert_array_equal(maximised.evaluate_many(other.values), -other.losses)


@pytest.mark.parametrize(
    ("before", "after"),
    [(numeric_space_before(), numeric_space()), (conditional_space_before(), conditional_space())],
)
def test_tasks_before_an_adjustment(before, after):
    benchmark = toy_benchmark(after, tasks=3, previous=before)
    assert benchmark.previous is not None
    assert (benchmark.space, benchmark.previous.space) == (after, before)
    assert [t.name for t in benchmark.previous.tasks] == [t.name for t in benchmark.tasks]
    shared = set(before.names) & set(after.names)
    assert set(before.names) - shared
    assert set(after.names) - shared
    assert any(before[name] != after[name] for name in shared)
    loaded = toy_spec(after, tasks=3, previous=before).load()
    values = after.decode(after.sample_unit(np.random.default_rng(0), 5))
    for one, other in zip(benchmark.tasks, loaded.tasks, strict=True):
        np.testing.assert_array_equal(one.evaluate_many(values), other.evaluate_many(values))
    assert loaded.previous is not None
    assert loaded.previous.space == before


@pytest.mark.parametrize(
    ("space", "size"),
    [(integer_space(5), 5), (integer_space(2), 2), (four_choices_space(), 4)],
)
def test_sizes_of_small_spaces(space, size):
    assert space.size == size
