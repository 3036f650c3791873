"""Methods made and run by hand, on search spaces that several tests share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods.base import Method
from hpobench_ordered.space.conditions import Compare, Comparison
from hpobench_ordered.space.parameters import Parameter

M = TypeVar("M", bound=Method)
SQUARE = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)])
WITH_CHOICE = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b"))])
TWELVE = SearchSpace([Parameter.number("k", 1, 4, integer=True), Parameter.choice("c", (*"abc",))])
"""Twelve configurations."""


def kernels(degree: int) -> SearchSpace:
    """Kernels with hyperparameters of their own, the degree up to a highest one."""
    return SearchSpace(
        [
            Parameter.choice("kernel", ("linear", "radial", "polynomial")),
            Parameter.number("cost", 1e-3, 1e3, log=True),
            Parameter.number("gamma", 1e-3, 1e3, log=True),
            Parameter.number("degree", 2, degree, integer=True),
        ],
        conditions={
            "gamma": Compare(0, Comparison.EQUAL, (1.0,)),
            "degree": Compare(0, Comparison.EQUAL, (2.0,)),
        },
    )


def clipped(space: SearchSpace, config: Config) -> Config:
    """A configuration with the nearest number that is allowed for each."""
    allowed = {}
    for name, value in config.items():
        parameter = space[name]
        if parameter.choices:
            allowed[name] = value
        else:
            nearest = min(max(float(value), parameter.lower), parameter.upper)
            allowed[name] = parameter.value(nearest)
    return allowed


def make(
    kind: type[M],
    history: Sequence[Evaluations] = (),
    *,
    space: SearchSpace = SQUARE,
    seed: int = 0,
    context: Mapping[str, float] | None = None,
    budget: int = 25,
) -> M:
    rng = np.random.default_rng(seed)
    return kind(space=space, rng=rng, history=history, context=context or {}, budget=budget)


def optimise(method: Method, loss: Callable[[Config], float], trials: int = 25) -> list[Config]:
    configs = []
    for _ in range(trials):
        configs.append(method.ask())
        method.tell(configs[-1], loss(configs[-1]))
    return configs


def play(method: Method, loss: Callable[[FloatArray], FloatArray], trials: int) -> FloatArray:
    """Optimise a loss of rows of values, (n, d) to (n,); return the rows asked for, (trials, d)."""

    def loss_of_config(config: Config) -> float:
        row = method.space.row(config)
        return float(loss(row[None])[0])

    configs = optimise(method, loss_of_config, trials)
    return np.array([method.space.row(config) for config in configs])
