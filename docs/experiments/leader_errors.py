"""How often the leader is wrongly, and rightly, called better than other methods.

    python docs/experiments/leader_errors.py                     # some minutes
    python docs/experiments/leader_errors.py --repetitions 1000

draws losses of methods whose true order is known, ranks them as the leaderboard does, tests the
leader, and prints by number of seeds how often it is called better than a method that is truly as
good or better (at most 5 % is right), and how often the truly best method is called better than all
others, and than some. With fewer seeds of a third of the methods, the best method is among these.

Notation:
    A  number of methods
    S  number of seeds
    T  number of tasks of a benchmark
"""

import argparse
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.leader_comparison import benchmark_influences, compare_with_leader
from hpobench_ordered.analysis.samples import mean_over_seeds
from hpobench_ordered.analysis.scores import ranks_by_seed

TASK_DEVIATION = 0.5  # standard deviation of how a method suits a task, in that of single runs
SEED_DEVIATION = 0.3  # that of what a seed does to a method on all tasks of a benchmark

QUALITIES = {
    "3 equal": np.zeros(3),
    "12 equal": np.zeros(12),
    "30 equal": np.zeros(30),
    "2 equal before 28": np.append([0.0, 0.0], np.full(28, 1.0)),
    "15 equal before 15": np.repeat([0.0, 1.0], 15),
    "30 at equal distances": np.linspace(0, 1.5, 30),
    "1 before 29 by 0.5": np.append(0.0, np.full(29, 0.5)),
    "1 before 29 by 1": np.append(0.0, np.full(29, 1.0)),
}
"""Mean losses of methods, in standard deviations of single runs."""

SHAPES = ((1, 1), (1, 5), (6, 5), (13, 3))
"""Numbers of benchmarks, and of tasks of each."""

SEEDS = ((5, 5), (10, 10), (10, 3), (10, 1))
"""Numbers of seeds of most methods, and of every third, the first among them."""


@dataclass(frozen=True, slots=True)
class LeaderCounts:
    """Shares of repetitions."""

    false_claims: float  # the leader is called better than a method at least as good
    best_of_all: float  # the best method is called better than all others
    best_of_some: float  # the best method is called better than some other


def draw_ranks(
    quality: FloatArray, rng: np.random.Generator, *, seeds: int, tasks: int, seeds_of_third: int
) -> FloatArray:
    """Draw ranks of A methods on one benchmark with S seeds on T tasks, (A, S, T).

    Losses have the means `quality`, (A,), and differ at random by run, by seed and by task. Every
    third method has the first `seeds_of_third` seeds alone.
    """
    n_methods = len(quality)
    losses = quality[:, None, None] + rng.normal(size=(n_methods, seeds, tasks))
    losses = losses + SEED_DEVIATION * rng.normal(size=(n_methods, seeds, 1))
    if tasks > 1:  # a single task is the whole benchmark, on which `quality` is the truth
        losses = losses + TASK_DEVIATION * rng.normal(size=(n_methods, 1, tasks))
    is_finished = np.ones((n_methods, seeds), dtype=np.bool_)
    is_finished[::3, seeds_of_third:] = False
    names = [str(number) for number in range(n_methods)]
    ranks = ranks_by_seed(losses[..., None], names, is_finished=is_finished)  # of a single trial
    return ranks.values[..., 0]


def make_ranked_experiment(
    quality: FloatArray,
    rng: np.random.Generator,
    *,
    benchmarks: int,
    seeds: int,
    tasks: int,
    seeds_of_third: int,
) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """Make up ranks of methods on several benchmarks.

    Returns:
        Mean rank of each method, (A,); and how much every seed, and every task, of each benchmark
        moves the mean ranks, which is what `compare_with_leader` tests them by; and the variances
        of the mean ranks, (A,), due to seeds of methods that have too few.
    """
    strata = []
    borrowed_variances = np.zeros(len(quality))
    mean_ranks = np.zeros(len(quality))
    for _ in range(benchmarks):
        ranks = draw_ranks(quality, rng, seeds=seeds, tasks=tasks, seeds_of_third=seeds_of_third)
        mean_ranks += mean_over_seeds(ranks).mean(axis=1) / benchmarks
        of_benchmark, variances = benchmark_influences(ranks, weight=1 / benchmarks)
        strata += of_benchmark
        borrowed_variances += variances
    return mean_ranks, strata, borrowed_variances


def count_leaders(
    quality: FloatArray,
    *,
    benchmarks: int,
    seeds: int,
    tasks: int,
    repetitions: int,
    seeds_of_third: int | None = None,
) -> LeaderCounts:
    """Test the leader on made-up benchmarks again and again, and count what the test claims.

    Args:
        quality: Mean losses of the methods, (A,).
        benchmarks: Number of benchmarks.
        seeds: Number of seeds S.
        tasks: Number of tasks T of each benchmark.
        repetitions: Number of tests, each on other made-up ranks.
        seeds_of_third: Number of seeds of every third method, the first among them; default: as
            many as the others have.
    """
    if seeds_of_third is None:
        seeds_of_third = seeds
    rng = np.random.default_rng(0)
    false_claims = 0
    best_of_all = 0
    best_of_some = 0
    for _ in range(repetitions):
        mean_ranks, strata, borrowed_variances = make_ranked_experiment(
            quality,
            rng,
            benchmarks=benchmarks,
            seeds=seeds,
            tasks=tasks,
            seeds_of_third=seeds_of_third,
        )
        comparison = compare_with_leader(mean_ranks, strata, borrowed_variances)
        if comparison is None:
            continue  # nothing is claimed

        is_called_worse = comparison.is_worse
        is_truly_worse = quality > quality[comparison.leader]
        n_others = len(quality) - 1
        leader_is_best = is_truly_worse.sum() == n_others
        false_claims += bool((is_called_worse & ~is_truly_worse).any())
        best_of_all += bool(leader_is_best and is_called_worse.sum() == n_others)
        best_of_some += bool(leader_is_best and is_called_worse.any())

    return LeaderCounts(
        false_claims=false_claims / repetitions,
        best_of_all=best_of_all / repetitions,
        best_of_some=best_of_some / repetitions,
    )


def main() -> None:
    """Print the shares, in per cent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions

    print("| methods | benchmarks x tasks | seeds | wrongly better | best: than all | than some |")
    print("|---|---|--:|--:|--:|--:|")
    for name, quality in QUALITIES.items():
        for benchmarks, tasks in SHAPES:
            for seeds, seeds_of_third in SEEDS:
                counts = count_leaders(
                    quality,
                    benchmarks=benchmarks,
                    seeds=seeds,
                    tasks=tasks,
                    repetitions=repetitions,
                    seeds_of_third=seeds_of_third,
                )
                seeds_text = str(seeds)
                if seeds_of_third < seeds:
                    seeds_text += f", of a third {seeds_of_third}"
                print(
                    f"| {name} | {benchmarks} x {tasks} | {seeds_text} | "
                    f"{counts.false_claims:.1%} | "
                    f"{counts.best_of_all:.0%} | {counts.best_of_some:.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
