"""Coverage of the confidence intervals of means over few seeds or tasks.

    python tests/performance/interval_coverage.py                  # about a minute
    python tests/performance/interval_coverage.py --simulations 2000

prints how often intervals of 95 % contain the true mean, by number of samples and distribution:
those of `mean_intervals`, and beside them Student's and the plain percentile bootstrap's; and how
wide those of `mean_intervals` are on average, relative to Student's.

Notation:
    n   number of samples: seeds or tasks
    K   number of simulations
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import mean_intervals

SIZES = (5, 10, 20, 50)
CONFIDENCE = 0.95
BATCH = 500  # simulations that share their resamples


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where samples come from: their mean, skewness, and what draws them."""

    name: str
    mean: float
    skewness: float
    draw: Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def lognormal(sigma: float) -> Distribution:
    """Lognormal distribution whose logarithm has a standard deviation."""
    spread = np.exp(sigma**2)
    return Distribution(
        f"lognormal {sigma}",
        float(np.exp(sigma**2 / 2)),
        float((spread + 2) * np.sqrt(spread - 1)),
        lambda rng, shape: rng.lognormal(0, sigma, shape),
    )


def gamma(shape: float) -> Distribution:
    """Gamma distribution of a shape, and scale 1."""
    return Distribution(
        f"gamma {shape:g}",
        shape,
        2 / np.sqrt(shape),
        lambda rng, size: rng.gamma(shape, size=size),
    )


NORMAL = Distribution("normal", 0.0, 0.0, lambda rng, shape: rng.standard_normal(shape))
UNIFORM = Distribution("uniform", 0.5, 0.0, lambda rng, shape: rng.random(shape))
DISTRIBUTIONS = (
    NORMAL,
    UNIFORM,
    lognormal(0.25),
    gamma(4),
    gamma(2),
    lognormal(0.5),
    gamma(1),
    lognormal(1.0),
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of intervals that contain the true mean; mean width relative to Student's."""

    studentised: float
    student: float
    percentile: float
    width: float


def measure(
    distribution: Distribution, count: int, *, simulations: int, rng: np.random.Generator
) -> Coverage:
    """Simulate experiments of some number of samples each."""
    batches = [min(BATCH, simulations - start) for start in range(0, simulations, BATCH)]
    rows = np.concatenate([_batch(distribution, count, size, rng) for size in batches], axis=1)
    return Coverage(*rows.mean(axis=1))


def _batch(
    distribution: Distribution, count: int, size: int, rng: np.random.Generator
) -> FloatArray:
    """Whether intervals contain the mean, and relative widths, shape (4, K)."""
    samples = distribution.draw(rng, (count, size))
    measured = mean_intervals(samples, rng=rng)
    error = samples.std(axis=0, ddof=1) / np.sqrt(count)
    half = student.isf((1 - CONFIDENCE) / 2, count - 1) * error
    weights = rng.multinomial(count, np.full(count, 1 / count), size=999) / count
    low, high = np.sort(weights @ samples, axis=0)[[24, 974]]
    ends = (
        (measured.lower, measured.upper),
        (measured.mean - half, measured.mean + half),
        (low, high),
    )
    inside = [(lower <= distribution.mean) & (distribution.mean <= upper) for lower, upper in ends]
    return np.stack([*inside, (measured.upper - measured.lower) / (2 * half)]).astype(np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of means.")
    parser.add_argument("--simulations", type=int, default=10_000, help="a line of the table")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    error = 100 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / options.simulations)
    print(f"coverage in %, of nominally {100 * CONFIDENCE:g}; standard error {error:.2f}")
    print(f"{'distribution':14} skewness   n  studentised  Student  percentile  width")
    rng = np.random.default_rng(options.seed)
    for distribution in DISTRIBUTIONS:
        for count in SIZES:
            measured = measure(distribution, count, simulations=options.simulations, rng=rng)
            print(
                f"{distribution.name:14} {distribution.skewness:8.2f} {count:3} "
                f"{100 * measured.studentised:12.1f} {100 * measured.student:8.1f} "
                f"{100 * measured.percentile:11.1f} {measured.width:6.2f}"
            )


if __name__ == "__main__":
    main()
