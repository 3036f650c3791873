"""Coverage of the confidence intervals of means over few seeds or tasks.

    python docs/experiments/interval_coverage.py                  # about a minute
    python docs/experiments/interval_coverage.py --simulations 2000

prints how often intervals of 95 % contain the true mean, by number of samples and distribution:
those of `mean_intervals`, and beside them Student's and the plain percentile bootstrap's; how wide
those of `mean_intervals` are on average, relative to Student's and in standard deviations of the
samples; and how often all samples are alike, and the interval has no width. Those of 3 and 4
samples, which `mean_intervals` does not give, show why.

Notation:
    n   number of samples: seeds or tasks
    K   number of simulations
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis import bootstrap
from hpobench_ordered.analysis.bootstrap import mean_intervals

SAMPLE_COUNTS = (3, 4, 5, 10, 20, 50)
CONFIDENCE = 0.95
BATCH = 500  # simulations that share their resamples
RESAMPLES = 999


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where samples come from: their mean, skewness, and what draws them."""

    name: str
    mean: float
    skewness: float
    draw: Callable[[np.random.Generator, tuple[int, int]], FloatArray]


def lognormal(sigma: float) -> Distribution:
    """Lognormal distribution whose logarithm has the mean 0 and the standard deviation `sigma`."""
    exp_of_variance = np.exp(sigma**2)
    return Distribution(
        name=f"lognormal {sigma}",
        mean=float(np.exp(sigma**2 / 2)),
        skewness=float((exp_of_variance + 2) * np.sqrt(exp_of_variance - 1)),
        draw=lambda rng, shape: rng.lognormal(0, sigma, shape),
    )


def gamma(shape_parameter: float) -> Distribution:
    """Gamma distribution with this shape parameter, and scale 1."""
    return Distribution(
        name=f"gamma {shape_parameter:g}",
        mean=shape_parameter,
        skewness=2 / np.sqrt(shape_parameter),
        draw=lambda rng, shape: rng.gamma(shape_parameter, size=shape),
    )


def mean_rank(tasks: int) -> Distribution:
    """Mean rank, over some tasks, of a method that is mostly the best of three."""
    ranks = np.array([1.0, 2.0, 3.0])
    probabilities = np.array([0.6, 0.3, 0.1])
    mean = float(probabilities @ ranks)
    variance = float(probabilities @ (ranks - mean) ** 2)
    third_moment = float(probabilities @ (ranks - mean) ** 3)
    skewness_of_rank = third_moment / variance**1.5

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        ranks_on_tasks = rng.choice(ranks, (*shape, tasks), p=probabilities)
        return np.asarray(ranks_on_tasks.mean(axis=2))

    return Distribution(
        name=f"rank, {tasks} task" + "s" * (tasks > 1),
        mean=mean,
        skewness=float(skewness_of_rank / np.sqrt(tasks)),  # of a mean of so many
        draw=draw,
    )


def mostly_zero(share: float) -> Distribution:
    """Exponential values of mean 1, but for a share of exact zeros."""
    share_of_others = 1 - share
    # For an exponential value x, the means of x, x² and x³ are 1, 2 and 6.
    mean = share_of_others
    mean_square = 2 * share_of_others
    mean_cube = 6 * share_of_others
    variance = mean_square - mean**2
    third_moment = mean_cube - 3 * mean * variance - mean**3  # about the mean

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
        """Draw exponential values, and put exact zeros in the place of a share of them."""
        exponential_values = rng.exponential(size=shape)
        is_zero = rng.random(shape) < share
        return np.where(is_zero, 0.0, exponential_values)

    return Distribution(
        name=f"{share:.0%} zeros",
        mean=mean,
        skewness=float(third_moment / variance**1.5),
        draw=draw,
    )


def mostly_first(share: float) -> Distribution:
    """Rank, 1 or 2, of one of two methods that is first in a share of the samples."""
    skewness_of_two_values = (2 * share - 1) / np.sqrt(share * (1 - share))
    return Distribution(
        name=f"first in {share:.0%}",
        mean=2 - share,
        skewness=float(skewness_of_two_values),
        draw=lambda rng, shape: np.where(rng.random(shape) < share, 1.0, 2.0),
    )


NORMAL = Distribution(
    name="normal", mean=0.0, skewness=0.0, draw=lambda rng, shape: rng.standard_normal(shape)
)
UNIFORM = Distribution(
    name="uniform", mean=0.5, skewness=0.0, draw=lambda rng, shape: rng.random(shape)
)
DISTRIBUTIONS = (NORMAL, UNIFORM, lognormal(0.25), gamma(4), gamma(2), lognormal(0.5), gamma(1))
DISTRIBUTIONS += (lognormal(1.0), *map(mean_rank, (1, 3, 20)), mostly_zero(0.8), mostly_first(0.7))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of intervals that contain the true mean, and widths of intervals.

    Attributes:
        studentised: Share of the intervals of `mean_intervals`.
        student: Share of Student's intervals.
        percentile: Share of the percentile bootstrap's intervals.
        width: Width of intervals of `mean_intervals`, relative to Student's.
        deviations: Half of their width, in standard deviations of a sample.
        alike: Share of simulations all of whose samples are alike.
    """

    studentised: float
    student: float
    percentile: float
    width: float
    deviations: float
    alike: float


def measure(
    distribution: Distribution, count: int, *, simulations: int, rng: np.random.Generator
) -> Coverage:
    """Simulate experiments of `count` samples each, in batches, and average over them."""
    batches = []
    for start in range(0, simulations, BATCH):
        size = min(BATCH, simulations - start)
        batches.append(simulate_batch(distribution, count, size, rng))
    figures_of_simulations = np.concatenate(batches, axis=1)
    # The relative width is NaN where all samples are alike.
    return Coverage(*np.nanmean(figures_of_simulations, axis=1))


def simulate_batch(
    distribution: Distribution, count: int, size: int, rng: np.random.Generator
) -> FloatArray:
    """Simulate `size` experiments of `count` samples each.

    Returns:
        The figures of each of K = `size` experiments, shape (6, K): the attributes of `Coverage`,
        in their order, are the means of the six rows.
    """
    samples = distribution.draw(rng, (count, size))
    intervals = mean_intervals(samples, rng=rng)

    standard_error = samples.std(axis=0, ddof=1) / np.sqrt(count)
    half_width_of_student = student.isf((1 - CONFIDENCE) / 2, count - 1) * standard_error

    # How often each sample is in each resample, as a share.
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    sorted_means = np.sort(weights @ samples, axis=0)
    lower_percentile = sorted_means[24]  # the 25th of 999, at 2.5 %
    upper_percentile = sorted_means[974]  # the 975th, at 97.5 %

    def covers_mean(lower: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
        return (lower <= distribution.mean) & (distribution.mean <= upper)

    is_alike = standard_error == 0
    half_width = (intervals.upper - intervals.lower) / 2
    deviation = distribution.draw(rng, (1000, 1)).std()  # estimated, as there is no formula for it
    figures = [
        covers_mean(intervals.lower, intervals.upper),
        covers_mean(intervals.mean - half_width_of_student, intervals.mean + half_width_of_student),
        covers_mean(lower_percentile, upper_percentile),
        half_width / np.where(is_alike, np.nan, half_width_of_student),
        half_width / deviation,
        is_alike,
    ]
    return np.stack(figures).astype(np.float64)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of means.")
    parser.add_argument("--simulations", type=int, default=10_000, help="a line of the table")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    error = 100 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / options.simulations)
    print(f"coverage in %, of nominally {100 * CONFIDENCE:g}; standard error {error:.2f}")
    print(f"{'distribution':14} skewness   n  studentised  Student  percentile  width   sd  alike")

    # The package gives no intervals of so few samples; the table shows why.
    bootstrap.MIN_SAMPLES_OF_INTERVAL = min(SAMPLE_COUNTS)
    rng = np.random.default_rng(options.seed)
    for distribution in DISTRIBUTIONS:
        for count in SAMPLE_COUNTS:
            measured = measure(distribution, count, simulations=options.simulations, rng=rng)
            print(
                f"{distribution.name:14} {distribution.skewness:8.2f} {count:3} "
                f"{100 * measured.studentised:12.1f} {100 * measured.student:8.1f} "
                f"{100 * measured.percentile:11.1f} {measured.width:6.2f} "
                f"{measured.deviations:4.2f} {100 * measured.alike:6.1f}"
            )


if __name__ == "__main__":
    main()
