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
from functools import cache
from typing import TYPE_CHECKING, cast

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.registry import load
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.methods._gp.model import standardise
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.papers import charts as paper_charts
from hpobench_ordered.papers.claims import Finding, find_weakest
from hpobench_ordered.papers.evidence import Comparisons, Evidence
from hpobench_ordered.papers.paper import Content
from hpobench_ordered.runtime.threads import one_thread

if TYPE_CHECKING:
    from hpobench_ordered.methods._blr.heads import Head
    from hpobench_ordered.methods._blr.method import LinearHead

GRID = 201  # number of points g
QUANTITIES = {"error": ("mean error", ".2f"), "used": ("basis functions", ".1f")}
"""Properties of `Belief` that are compared, with words for them and their formats."""


@dataclass(frozen=True, eq=False, slots=True)
class Belief:
    """What a model believes about the function of a task with one variable.

    Attributes:
        x: The grid, (g,).
        truth: The function on the grid, (g,).
        mean: The model's posterior mean on the grid, (g,).
        sd: The model's posterior standard deviation on the grid, (g,).
        points: Where the function was evaluated, (n,).
        values: The values there, (n,), that the model was fitted to.
        bases: The model's basis functions on the grid, Phi, (g, d).
        weights: Their relative weights s, (d,).
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
        """Root mean square of `mean - truth`, divided by the standard deviation of `truth`."""
        root_mean_square = np.sqrt(np.mean((self.mean - self.truth) ** 2))
        return float(root_mean_square / self.truth.std())

    @property
    def used(self) -> float:
        """How many basis functions the posterior mean is made of: (sum s)^2 / sum s^2.

        This is k if k basis functions have equal weights s, and the others have none.
        """
        return float(self.weights.sum() ** 2 / (self.weights**2).sum())


@cache
@one_thread()
def fit_belief(benchmark: str, task: int, method: str, *, n_random: int, n_own: int) -> Belief:
    """Run a method on a task, fit its model to the evaluations, and predict the function.

    Args:
        benchmark: Name of the benchmark, which has one hyperparameter.
        task: Number of the task.
        method: Name of the method.
        n_random: Number of random evaluations; these and the history are the same for all methods.
        n_own: Number of further evaluations, which the method chooses itself.
    """
    source = load(benchmark)
    space = source.space
    target = source.tasks[task]
    optimiser = run_method(source, task, method, n_random=n_random, n_own=n_own)

    units = optimiser.evaluated_units()  # the evaluated configurations as unit vectors, (n, 1)
    losses = optimiser.evaluated_losses()
    head = optimiser.fit_head(optimiser.make_inputs(units), standardise(losses))

    x = np.linspace(0.0, 1.0, GRID)
    Phi = optimiser.features(optimiser.make_inputs(x[:, None]))
    standardised_mean, standardised_sd = head.predict(Phi)
    # The model is of standardised losses: its posterior is scaled and shifted back to their units,
    # which are those of the minimised function.
    return Belief(
        x=x,
        truth=target.evaluate_many(space.decode(x[:, None])),
        mean=losses.mean() + losses.std() * standardised_mean,
        sd=losses.std() * standardised_sd,
        points=space.decode(units)[:, 0],
        values=target.objective.values(losses),
        bases=Phi,
        weights=relative_weights(head, Phi),
    )


def run_method(
    source: Benchmark, task: int, method: str, *, n_random: int, n_own: int
) -> "LinearHead":
    """Run a method on a task, and return the method, which then knows all its evaluations.

    The method is told random evaluations first, and goes on by itself.

    Args:
        source: The benchmark, whose other tasks are the history.
        task: Number of the task.
        method: Name of the method.
        n_random: Number of random configurations that it is told first, the same for all methods.
        n_own: Number of configurations that it then suggests itself.
    """
    target = source.tasks[task]
    space = source.space
    rng = np.random.default_rng([task, 0])  # for the history and the random configurations
    other_tasks = [other for other in source.tasks if other.index != task]
    history = [source.evaluations(other.index, rng=rng) for other in other_tasks]
    random_configs = space.configs(space.decode(space.sample_unit(rng, n_random)))
    optimiser = cast(
        "LinearHead",
        method_spec(method).method(
            space=space,
            rng=np.random.default_rng([task, 1]),  # independent of `rng`
            history=history,
            context=target.context,
            budget=n_random + n_own,
        ),
    )
    for config in random_configs:
        optimiser.tell(config, target.objective.loss(target.evaluate(config)))
    for _ in range(n_own):
        config = optimiser.ask()
        optimiser.tell(config, target.objective.loss(target.evaluate(config)))
    return optimiser


def relative_weights(head: "Head", Phi: FloatArray) -> FloatArray:
    """Compute the relative weights s, (d,), of basis functions with the values Phi, (g, d).

    The weight of a basis function says how much of the variation of the posterior mean is due to
    it, relative to the basis function with the largest contribution.
    """
    # The head multiplies the features by 1 / sqrt(alpha) before it weights them.
    feature_scales = np.exp(-0.5 * head.precisions.log_alpha)
    w = head.weights * feature_scales
    contributions = np.abs(w) * Phi.std(axis=0)
    return np.asarray(contributions / contributions.max())


def posteriors(
    _: Evidence,
    comparisons: Comparisons,
    *,
    methods: Sequence[str],
    task: int,
    n_random: int,
    n_own: int,
) -> Content:
    """Draw the posterior and the basis functions of each method on one task, a row per method.

    Args:
        _: The results of the store, which do not contain the models: these are fitted anew.
        comparisons: The comparison, of which only the benchmark counts.
        methods: The methods.
        task: Number of the task, from 0.
        n_random: Number of random evaluations.
        n_own: Number of evaluations that the method chose.
    """
    import pandas as pd

    benchmark = comparisons[0].benchmark
    rows = []
    tables = []
    for method in methods:
        belief = fit_belief(benchmark, task, method, n_random=n_random, n_own=n_own)
        posterior = pd.DataFrame(
            {
                "x": belief.x,
                "truth": belief.truth,
                "mean": belief.mean,
                "low": belief.mean - 2 * belief.sd,
                "high": belief.mean + 2 * belief.sd,
            }
        )
        dots = pd.DataFrame({"x": belief.points, "y": belief.values})
        bases_by_x = pd.DataFrame(belief.bases).assign(x=belief.x)  # a column per basis function
        bases = bases_by_x.melt("x", var_name="basis")  # a row per basis function and x
        bases = bases.assign(weight=belief.weights[bases["basis"].astype(int)])
        rows.append(paper_charts.posterior(posterior, dots, bases, title=method))
        tables.append(posterior.assign(method=method))
    chart = paper_charts.arrange(rows, columns=1, title=f"{benchmark}, task {task + 1}")
    return Content(pd.concat(tables, ignore_index=True), chart)


def find_whether_lowest(
    evidence: Evidence,
    comparisons: Comparisons,
    quantity: str,
    first: str,
    rivals: Sequence[str],
    *,
    n_random: int,
    n_own: int,
) -> list[Finding]:
    """Find whether a property of `Belief` is lower for a method than for each of its rivals.

    Means over all tasks are compared. Errors are over tasks, each of which has one run.

    Args:
        evidence: The results.
        comparisons: The comparison, of which only the benchmark counts.
        quantity: Name of the property, one of `QUANTITIES`.
        first: The method for which it should be lower.
        rivals: The methods that it is compared with.
        n_random: Number of random evaluations.
        n_own: Number of evaluations that the method chose.
    """
    benchmark = comparisons[0].benchmark
    number_of_tasks = len(evidence.benchmark(benchmark).tasks)
    values_of_method = {}  # the property on each task, (tasks,)
    for method in (first, *rivals):
        beliefs = [
            fit_belief(benchmark, task, method, n_random=n_random, n_own=n_own)
            for task in range(number_of_tasks)
        ]
        values_of_method[method] = np.array([getattr(belief, quantity) for belief in beliefs])

    words_for_property, number_format = QUANTITIES[quantity]
    findings = []
    for rival in rivals:
        means = [
            f"{name} {values_of_method[name].mean():{number_format}}" for name in (first, rival)
        ]
        sentence = f"{words_for_property} {', '.join(means)}"
        # How much lower the property of the method is on each task.
        differences = values_of_method[rival] - values_of_method[first]
        findings.append(
            Finding.from_samples(benchmark, sentence, differences, number_format=number_format)
        )
    return [find_weakest(findings)]
