"""Builds and runs methods without a benchmark, on search spaces that several tests share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.methods.base import Method
from hpobench_ordered.space.conditions import Compare, Comparison
from hpobench_ordered.space.parameters import Parameter

M = TypeVar("M", bound=Method)
UNIT_SQUARE = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)])
"""A space of two numbers between 0 and 1, so that coded values and unit vectors are equal."""
WITH_CHOICE = SearchSpace([Parameter.number("x", 0, 1), Parameter.choice("c", ("a", "b"))])
"""A space of a number, x, and one of two choices, c, whose coded values are 0 and 1."""
SPACE_OF_TWELVE = SearchSpace(
    [Parameter.number("k", 1, 4, integer=True), Parameter.choice("c", ("a", "b", "c"))]
)
"""A space of twelve configurations."""


def make_kernel_space(max_degree: int) -> SearchSpace:
    """A space where two of three kernels have a hyperparameter of their own: gamma or degree."""
    return SearchSpace(
        [
            Parameter.choice("kernel", ("linear", "radial", "polynomial")),
            Parameter.number("cost", 1e-3, 1e3, log=True),
            Parameter.number("gamma", 1e-3, 1e3, log=True),
            Parameter.number("degree", 2, max_degree, integer=True),
        ],
        # The kernel is hyperparameter 0; radial is its choice 1, polynomial its choice 2.
        conditions={
            "gamma": Compare(0, Comparison.EQUAL, (1.0,)),
            "degree": Compare(0, Comparison.EQUAL, (2.0,)),
        },
    )


def clip_config(space: SearchSpace, config: Config) -> Config:
    """Replace each number of a configuration by the nearest that the space allows."""
    clipped = {}
    for name, value in config.items():
        parameter = space[name]
        if parameter.choices:
            clipped[name] = value
            continue
        nearest = min(max(float(value), parameter.lower), parameter.upper)
        clipped[name] = parameter.value(nearest)  # an integer where the parameter is one
    return clipped


def make_method(
    kind: type[M],
    history: Sequence[Evaluations] = (),
    *,
    space: SearchSpace = UNIT_SQUARE,
    seed: int = 0,
    context: Mapping[str, float] | None = None,
    budget: int = 25,
) -> M:
    """Build a method of a class with a seed, by default without history or context."""
    rng = np.random.default_rng(seed)
    return kind(space=space, rng=rng, history=history, context=context or {}, budget=budget)


def optimise(method: Method, loss: Callable[[Config], float], trials: int = 25) -> list[Config]:
    """Ask for a configuration and tell its loss, again and again; return the configurations."""
    configs = []
    for _ in range(trials):
        config = method.ask()
        method.tell(config, loss(config))
        configs.append(config)
    return configs


def run_trials(method: Method, loss: Callable[[FloatArray], FloatArray], trials: int) -> FloatArray:
    """Optimise a loss that maps coded values (n, d) to losses (n,).

    Returns:
        Coded values of the suggestions, shape (trials, d).
    """

    def loss_of_config(config: Config) -> float:
        """Compute the loss of a single configuration from its coded values."""
        row = method.space.row(config)
        (only_loss,) = loss(row[None])
        return float(only_loss)

    configs = optimise(method, loss_of_config, trials)
    return np.array([method.space.row(config) for config in configs])
