"""A region where earlier evaluations failed is not taken for untried."""

import numpy as np
import pytest
from by_speed import by_speed

from hpobench_ordered import Direction, Evaluations, Parameter, SearchSpace
from hpobench_ordered.methods._model_based import replace_failed_evaluations
from hpobench_ordered.methods.cts import compute_normal_scores
from hpobench_ordered.methods.registry import list_methods, method_spec

SPACE = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)])
WITH_HISTORY = [
    name
    for name in list_methods()
    if method_spec(name).uses_history and not method_spec(name).uses_data
]


def evaluate(x: float, y: float) -> float:
    """Evaluations fail where x is above 0.5; elsewhere the best x is there, at 0.5."""
    return (y - 0.5) ** 2 - x if x <= 0.5 else np.nan


def make_history(tasks: int = 3) -> tuple[Evaluations, ...]:
    """Forty random evaluations of each task, of which half failed."""
    rng = np.random.default_rng(0)
    history = []
    for task in range(tasks):
        values = rng.random((40, 2))
        objective = np.array([evaluate(x, y) for x, y in values])
        context = {"index": float(task)}
        history.append(
            Evaluations(
                str(task), context, values, objective, space=SPACE, direction=Direction.MINIMIZE
            )
        )
    return tuple(history)


@pytest.mark.parametrize("name", by_speed(WITH_HISTORY))
def test_region_of_failures_is_avoided(name):
    """Of a method that ignored them, all twelve suggestions would be there."""
    method = method_spec(name).method(
        space=SPACE,
        rng=np.random.default_rng(0),
        history=make_history(),
        context={"index": 3.0},
        budget=12,
    )
    failed = 0
    for _ in range(12):
        config = method.ask()
        value = evaluate(**config)
        method.tell(config, value if np.isfinite(value) else np.inf)
        failed += config["x"] > 0.5
    assert failed <= 7


def test_failed_evaluations_get_the_worst_value():
    values = np.array([[0.1, 0.1], [0.2, 0.1], [0.9, 0.1]])
    objective = np.array([3.0, 5.0, np.nan])
    maximised = Evaluations("t", {}, values, objective, space=SPACE, direction=Direction.MAXIMIZE)
    all_failed = Evaluations(
        "f", {}, values, np.full(3, np.nan), space=SPACE, direction=Direction.MAXIMIZE
    )
    (replaced,) = replace_failed_evaluations([maximised, all_failed])
    assert replaced.objective.tolist() == [3, 5, 3]


def test_failures_have_the_highest_normal_scores():
    losses = np.array([np.inf, 0.3, np.inf, 0.1])
    scores = compute_normal_scores(losses, np.random.default_rng(0))
    assert scores.argsort()[:2].tolist() == [3, 1]
