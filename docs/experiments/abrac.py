"""Error of the posterior means of ABRAC's heads on Forrester functions, after few evaluations.

Each task of `forrester` in turn is the target. A network is trained on 20 evaluations of each of
the others, with and without nested dropout, and heads of every kind are fitted to the first 5 and
10 of the same random evaluations of the target. Losses are standardised task by task, or all
divided by one number, the standard deviation of all source tasks' losses together. The error is the
root mean square of posterior mean minus function on a grid, in standard deviations of the function.

    python docs/experiments/abrac.py --draws 15

Draw s of task t is seeded by [t, s]. It takes five minutes on one core.

Notation:
    n   evaluations of the target
    d   features
    m   points of the grid
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.progress import track
from scipy.optimize import minimize

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.methods._blr.heads import (
    ADAPTIVE_START,
    LOG_ALPHA,
    LOG_BETA,
    START,
    Head,
    Precisions,
)
from hpobench_ordered.methods._blr.likelihood import likelihood
from hpobench_ordered.methods._gp.model import standardise
from hpobench_ordered.methods._networks.features import Network, compute_features, pad_input_count
from hpobench_ordered.methods._networks.sgd import train
from hpobench_ordered.methods.abrac import HIDDEN, OUTPUTS, SPREAD
from hpobench_ordered.runtime.threads import one_thread

GRID = np.linspace(0.0, 1.0, 201)[:, None]
COUNTS = (5, 10)
SCALES = ("standardised", "divided by one number")
NETWORK = Network(pad_input_count(1), HIDDEN, OUTPUTS)

Fit = Callable[[FloatArray, FloatArray], Head]
"""Fits a head to features (n, d) and losses (n,)."""


def one_precision(Phi: FloatArray, y: FloatArray) -> Head:
    """As in `abrac-fixed`."""
    return Head.fit(Phi, y, Precisions.initial(1))


def adaptive(Phi: FloatArray, y: FloatArray, *, spread: float = np.inf) -> Head:
    """A precision a weight as in `abrac`, with a spread as in `abrac-prior`."""
    start = Precisions.initial(Phi.shape[1], spread=spread)
    return Head.fit(Phi, y, start, spread=spread)


def optimised(Phi: FloatArray, y: FloatArray) -> Head:
    """A precision a weight, of the highest evidence that three long descents find."""
    d = Phi.shape[1]

    def rho(x: FloatArray) -> tuple[float, FloatArray]:
        of = likelihood(Phi, y, x[:-1], float(x[-1]))
        return of.rho, np.append(of.by_alpha, of.by_beta)

    upper = min(LOG_ALPHA[1], 2.0 * np.log(len(y)))  # as in `Head.fit`
    bounds = [(LOG_ALPHA[0], upper)] * d + [LOG_BETA]
    ends = [
        minimize(rho, np.append(np.full(d, log_alpha), log_beta), jac=True, bounds=bounds)
        for log_alpha, log_beta in (ADAPTIVE_START, START, (-2.0, 2.0))
    ]
    best = min(ends, key=lambda end: float(end.fun)).x
    return Head(Phi, y, Precisions(best[:-1], float(best[-1])))


FITS: dict[str, Fit] = {
    "a precision a weight": adaptive,
    "the same, evidence optimised": optimised,
    "the same, with a prior": partial(adaptive, spread=SPREAD),
    "one precision": one_precision,
}


def errors(
    target: hbo.Task,
    sources: list[hbo.Evaluations],
    unit: FloatArray,
    *,
    nested: bool,
    scale: str,
    rng: np.random.Generator,
) -> dict[tuple[str, int], float]:
    """Train a network and fit all heads.

    Args:
        target: The task.
        sources: Evaluations of the others.
        unit: Configurations of the target, unit vectors, shape (largest n, 1).
        nested: Whether there is nested dropout.
        scale: One of `SCALES`.
        rng: Source of the training's randomness.

    Returns:
        The error, by kind of head and n; "first n features" where the head has no others.
    """
    shared = scale != SCALES[0]
    sd = float(np.concatenate([task.losses for task in sources]).std())
    losses = [task.losses / sd if shared else standardise(task.losses) for task in sources]
    inputs = [2.0 * task.space.encode(task.values) - 1.0 for task in sources]
    z = train(NETWORK, NETWORK.initial(rng, 1), inputs, losses, nested=nested, rng=rng)
    truth = target.evaluate_many(target.space.decode(GRID))
    on_grid = compute_features(NETWORK, z, 2.0 * GRID - 1.0)
    values = target.evaluate_many(target.space.decode(unit))
    found = {}
    for n in COUNTS:
        y, mean, factor = values[:n] / sd, 0.0, sd
        if not shared:
            y, mean, factor = standardise(values[:n]), values[:n].mean(), values[:n].std()
        Phi = compute_features(NETWORK, z, 2.0 * unit[:n] - 1.0)
        for name, fit in FITS.items():
            for kept, what in ((OUTPUTS, ""), (n, ", first n features")):
                predicted, _ = fit(Phi[:, :kept], y).predict(on_grid[:, :kept])
                gap = mean + factor * predicted - truth
                found[name + what, n] = float(np.sqrt(np.mean(gap**2)) / truth.std())
    return found


def main(draws: int) -> None:
    """Print the mean errors over all tasks and draws, with two standard errors."""
    bench = hbo.load("forrester")
    cases = [(task, draw) for task in bench.tasks for draw in range(draws)]
    for scale in SCALES:
        for nested in (True, False):
            found = []
            for target, draw in track(cases, description=scale):
                rng = np.random.default_rng([target.index, draw])
                others = [task for task in bench.tasks if task is not target]
                sources = [bench.evaluations(task.index, rng=rng) for task in others]
                unit = bench.space.sample_unit(rng, max(COUNTS))
                case = errors(target, sources, unit, nested=nested, scale=scale, rng=rng)
                found.append(case)
            print(f"\n{scale}, {'nested dropout' if nested else 'no dropout'}, {len(found)} cases")
            for name in dict.fromkeys(name for name, _ in found[0]):
                rows = np.array([[each[name, n] for n in COUNTS] for each in found])
                shown = zip(COUNTS, rows.mean(axis=0), two_standard_errors(rows.T), strict=True)
                print(f"  {name:50}", *(f"{n}: {e:.3f} ± {se:.3f}" for n, e, se in shown))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=15, metavar="S", help="draws of every task")
    with one_thread():
        main(parser.parse_args().draws)
