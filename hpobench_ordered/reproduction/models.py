"""Posteriors of methods with a linear head on a task, as Horvath et al. draw them.

======  =======  ==========================================================================
symbol  shape    meaning
======  =======  ==========================================================================
g       scalar   points of the grid on [0, 1]
d       scalar   basis functions
x       (g,)     the grid
Phi     (g, d)   basis functions there
w       (d,)     posterior mean of their weights
s       (d,)     relative weights |w_i| sd(Phi_i) / max_j |w_j| sd(Phi_j): how much of the mean's
                 variation is basis function i
======  =======  ==========================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, cast

import numpy as np

from hpobench_ordered import plotting
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.model import standardise
from hpobench_ordered.registry import load, method_spec
from hpobench_ordered.reproduction.evidence import Comparison, Evidence
from hpobench_ordered.reproduction.paper import Check, Drawing, Finding
from hpobench_ordered.runtime.threads import one_thread

if TYPE_CHECKING:
    from hpobench_ordered.methods._blr.method import LinearHead

GRID = 201
DIGITS = {"error": ".2f", "used": ".1f"}


@dataclass(frozen=True, eq=False, slots=True)
class Belief:
    """A model of a task of one variable, with the symbols above.

    On the grid `x`, (g,): the function `truth`, the posterior `mean` and standard deviation `sd`,
    all (g,), the basis functions `bases`, Phi, and their relative `weights`, s. `points` and
    `values`, (n,), are the evaluations.
    """

    x: FloatArray
    truth: FloatArray
    mean: FloatArray
    sd: FloatArray
    points: FloatArray
    values: FloatArray
    bases: FloatArray
    weights: FloatArray

    @property
    def error(self) -> float:
        """Root mean square of mean - truth, in standard deviations of the truth."""
        return float(np.sqrt(np.mean((self.mean - self.truth) ** 2)) / self.truth.std())

    @property
    def used(self) -> float:
        """Effective number of basis functions in the mean: (sum s)^2 / sum s^2."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())


@cache
@one_thread()
def belief(benchmark: str, task: int, method: str, *, fixed: int, own: int) -> Belief:
    """Fit a method's model to `fixed` random evaluations of a task and `own` that it chose.

    The random ones and the history are the same for all methods.
    """
    source = load(benchmark)
    rng = np.random.default_rng([task, 0])
    others = [source.evaluations(t.index, rng=rng) for t in source.tasks if t.index != task]
    target = source.tasks[task]
    start = source.space.configs(source.space.decode(source.space.sample_unit(rng, fixed)))
    optimiser = cast(
        "LinearHead",
        method_spec(method).method(
            space=source.space,
            rng=np.random.default_rng([task, 1]),
            history=others,
            context=target.context,
            budget=fixed + own,
        ),
    )
    for turn in range(fixed + own):
        config = start[turn] if turn < fixed else optimiser.ask()
        optimiser.tell(config, target.objective.loss(target.evaluate(config)))
    losses, inputs = (
        optimiser.evaluated_losses(),
        optimiser.make_inputs(optimiser.evaluated_units()),
    )
    head = optimiser.fit_head(inputs, standardise(losses))
    x = np.linspace(0.0, 1.0, GRID)
    Phi = optimiser.features(optimiser.make_inputs(x[:, None]))
    mean, sd = head.predict(Phi)
    weights = np.abs(head.weights * np.exp(-0.5 * head.precisions.log_alpha)) * Phi.std(axis=0)
    scale = losses.std()
    return Belief(
        x=x,
        truth=target.evaluate_many(source.space.decode(x[:, None])),
        mean=losses.mean() + scale * mean,
        sd=scale * sd,
        points=source.space.decode(optimiser.evaluated_units())[:, 0],
        values=target.objective.losses(losses),
        bases=Phi,
        weights=weights / weights.max(),
    )


def posteriors(
    _: Evidence,
    comparisons: Sequence[Comparison],
    *,
    methods: Sequence[str],
    task: int,
    fixed: int,
    own: int,
) -> Drawing:
    """The posterior and the basis functions of each method, on one task, one row per method."""
    import pandas as pd

    rows, frames = [], []
    for method in methods:
        found = belief(comparisons[0].benchmark, task, method, fixed=fixed, own=own)
        line = pd.DataFrame({"x": found.x, "truth": found.truth, "mean": found.mean})
        line = line.assign(low=found.mean - 2 * found.sd, high=found.mean + 2 * found.sd)
        dots = pd.DataFrame({"x": found.points, "y": found.values})
        bases = pd.DataFrame(found.bases).assign(x=found.x).melt("x", var_name="basis")
        bases = bases.assign(weight=found.weights[bases["basis"].astype(int)])
        rows.append(plotting.posterior(line, dots, bases, title=method))
        frames.append(line.assign(method=method))
    chart = plotting.beside(rows, columns=1, title=f"{comparisons[0].benchmark}, task {task + 1}")
    return Drawing(chart, pd.concat(frames, ignore_index=True))


def lowest(
    quantity: str, said: str, first: str, rivals: Sequence[str], *, fixed: int, own: int
) -> Check:
    """One method has the lowest of a property of `Belief`, on average over all tasks."""

    def check(evidence: Evidence, comparisons: Sequence[Comparison]) -> list[Finding]:
        name = comparisons[0].benchmark
        tasks = range(len(evidence.benchmark(name).tasks))
        means = {}
        for method in (first, *rivals):
            found = [belief(name, task, method, fixed=fixed, own=own) for task in tasks]
            means[method] = float(np.mean([getattr(one, quantity) for one in found]))
        measured = ", ".join(
            f"{method} {mean:{DIGITS[quantity]}}" for method, mean in means.items()
        )
        holds = all(means[first] < means[rival] for rival in rivals)
        return [Finding(name, f"{said} {measured}", holds)]

    return check


nearest_to_truth = partial(lowest, "error", "mean error")
fewest_used = partial(lowest, "used", "basis functions")
