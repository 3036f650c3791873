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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
from rich.progress import track
from scipy.optimize import minimize

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.methods._blr.heads import (
    LOG_ALPHA_BOUNDS,
    LOG_BETA_BOUNDS,
    START_WITH_FEATURES_OFF,
    START_WITH_FEATURES_ON,
    Head,
    Precisions,
)
from hpobench_ordered.methods._blr.likelihood import compute_likelihood
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
        evidence = compute_likelihood(Phi, y, x[:-1], float(x[-1]))
        return evidence.rho, np.append(evidence.grad_alpha, evidence.grad_beta)

    lower, upper = LOG_ALPHA_BOUNDS
    upper = min(upper, 2.0 * np.log(len(y)))  # as in `Head.fit`
    bounds = [(lower, upper)] * d + [LOG_BETA_BOUNDS]
    descents = []
    for log_alpha, log_beta in (START_WITH_FEATURES_OFF, START_WITH_FEATURES_ON, (-2.0, 2.0)):
        start = np.append(np.full(d, log_alpha), log_beta)
        descents.append(minimize(rho, start, jac=True, bounds=bounds))
    best = min(descents, key=lambda descent: float(descent.fun)).x
    return Head(Phi, y, Precisions(best[:-1], float(best[-1])))


FITS: dict[str, Fit] = {
    "a precision a weight": adaptive,
    "the same, evidence optimised": optimised,
    "the same, with a prior": partial(adaptive, spread=SPREAD),
    "one precision": one_precision,
}


def compute_errors(
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
    is_standardised = scale == SCALES[0]
    sd = float(np.concatenate([task.losses for task in sources]).std())
    if is_standardised:
        losses = [standardise(task.losses) for task in sources]
    else:
        losses = [task.losses / sd for task in sources]
    inputs = [2.0 * task.space.encode(task.values) - 1.0 for task in sources]
    z = train(NETWORK, NETWORK.initial(rng, 1), inputs, losses, nested=nested, rng=rng)
    truth = target.evaluate_many(target.space.decode(GRID))
    on_grid = compute_features(NETWORK, z, 2.0 * GRID - 1.0)
    values = target.evaluate_many(target.space.decode(unit))
    error_of_head = {}
    for n in COUNTS:
        mean = float(values[:n].mean()) if is_standardised else 0.0
        factor = float(values[:n].std()) if is_standardised else sd
        y = standardise(values[:n]) if is_standardised else values[:n] / sd
        Phi = compute_features(NETWORK, z, 2.0 * unit[:n] - 1.0)
        for name, fit in FITS.items():
            for number_of_features, suffix in ((OUTPUTS, ""), (n, ", first n features")):
                head = fit(Phi[:, :number_of_features], y)
                predicted, _ = head.predict(on_grid[:, :number_of_features])
                gap = mean + factor * predicted - truth
                root_mean_square = np.sqrt(np.mean(gap**2))
                error_of_head[name + suffix, n] = float(root_mean_square / truth.std())
    return error_of_head


def main(draws: int) -> None:
    """Print the mean errors over all tasks and draws, with two standard errors."""
    bench = hbo.load("forrester")
    cases = list(product(bench.tasks, range(draws)))
    for scale, nested in product(SCALES, (True, False)):
        errors_of_cases = []
        for target, draw in track(cases, description=scale):
            rng = np.random.default_rng([target.index, draw])
            others = [task for task in bench.tasks if task is not target]
            sources = [bench.evaluations(task.index, rng=rng) for task in others]
            unit = bench.space.sample_unit(rng, max(COUNTS))
            errors = compute_errors(target, sources, unit, nested=nested, scale=scale, rng=rng)
            errors_of_cases.append(errors)
        print(f"\n{scale}, {'nested dropout' if nested else 'no dropout'}, {len(cases)} cases")
        print_errors(errors_of_cases)


def print_errors(errors_of_cases: Sequence[Mapping[tuple[str, int], float]]) -> None:
    """Print the mean error of each kind of head with two standard errors, by n."""
    names = dict.fromkeys(name for name, _ in errors_of_cases[0])
    for name in names:
        cells = []
        for n in COUNTS:
            errors = np.array([case[name, n] for case in errors_of_cases])
            (two_errors,) = two_standard_errors(errors[None])
            cells.append(f"{n}: {errors.mean():.3f} ± {two_errors:.3f}")
        print(f"  {name:50}", *cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=15, metavar="S", help="draws of every task")
    with one_thread():
        main(parser.parse_args().draws)
