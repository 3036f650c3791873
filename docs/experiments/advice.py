"""Test of `hbo.advise`: advice from the first half of a stream, against results on the second half.

Of each task in the first half of a benchmark's tasks some recorded evaluations are drawn, as if
they were all that is known of them, and `hbo.advise` recommends a method. All methods then run on
the benchmark itself, and are compared on the second half of its tasks.

    python docs/experiments/advice.py --output advice-experiment BENCHMARK ...

A benchmark is a name or the folder of an artifact, such as those that `generate` makes of the
retrain- benchmarks; it must have recorded evaluations. Runs are in OUTPUT, and are continued.
"""

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.progress import track

import hpobench_ordered as hbo
from hpobench_ordered.analysis.copying import best_and_random_losses
from hpobench_ordered.analysis.scores import lowest_losses, normalised_regrets
from hpobench_ordered.errors import PoorSurrogateWarning
from hpobench_ordered.experiment.scored import score_runs
from hpobench_ordered.tuning.advice import METHODS, SAMPLE_SIZE, TRIALS, compare_methods

COLUMNS = (
    "benchmark",
    "rank correlation",
    "recommended",
    "leaves",
    "best",
    "leaves",
    "recommended is within error",
    "methods within error",
)


@dataclass(frozen=True)
class TriedAdvice:
    """How a recommendation turned out on a benchmark.

    `cells` are its line of the table, `is_right` whether the recommended method is within error of
    the best, `share_within` the share of all methods that are.
    """

    cells: Sequence[str]
    is_right: bool
    share_within: float


def draw_history(bench: hbo.Benchmark, tasks: int, evaluations: int) -> list[hbo.Evaluations]:
    """Draw some of the recorded evaluations of the first tasks, others on each."""
    if bench.recorded is None:
        raise SystemExit(f"{bench.id} has no recorded evaluations")
    history = []
    for place, recorded in enumerate(bench.recorded()[:tasks]):
        rows = np.random.default_rng(place).permutation(len(recorded))[:evaluations]
        part = replace(recorded, values=recorded.values[rows], objective=recorded.objective[rows])
        history.append(part)
    return history


def try_advice(name: str, options: argparse.Namespace) -> TriedAdvice:
    """Take advice on the first half of a benchmark's tasks, and compare on the second half."""
    bench = hbo.load(name)
    half = len(bench.tasks) // 2
    settings = {"seeds": range(options.seeds), "workers": options.workers, "progress": False}
    advice = hbo.advise(
        draw_history(bench, half, options.evaluations),
        space=bench.space,
        direction=bench.objective.direction,
        trials=options.trials,
        folder=options.output / "replays",
        **settings,
    )
    results = hbo.run(
        benchmarks=[name],
        methods=METHODS,
        protocol=hbo.Ordered(trials=options.trials),
        folder=options.output / "runs",
        **settings,
    )
    (scores,), _ = score_runs(results.store, results.overview())
    best, losses = best_and_random_losses(bench, SAMPLE_SIZE)
    best = np.fmin(best, lowest_losses(scores.losses))
    left = normalised_regrets(scores.losses, best, np.median(losses, axis=0))
    # `compare_methods` leaves out the first of the tasks that it is given.
    second_half = left[:, :, half - 1 :]
    table = compare_methods(second_half, scores.methods)[0].set_index("method")
    is_right = bool(table["is_within_error"][advice.best])
    number_within = int(table["is_within_error"].sum())
    cells = [
        bench.name,
        f"{np.mean([task.spearman for task in advice.quality]):.2f}",
        advice.best,
        f"{table['left'][advice.best]:.2f}",
        table.index[0],
        f"{table['left'].iloc[0]:.2f}",
        "yes" if is_right else "no",
        f"{number_within} of {len(table)}",
    ]
    return TriedAdvice(cells, is_right, share_within=number_within / len(table))


def main() -> None:
    """Run what is not finished, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("benchmarks", nargs="+", help="names, or folders of artifacts")
    parser.add_argument("--output", type=Path, default=Path("advice-experiment"))
    parser.add_argument("--evaluations", type=int, default=60, help="of each earlier task")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PoorSurrogateWarning)  # the table shows the correlation
    names = track(options.benchmarks, description="benchmarks")
    outcomes = [try_advice(name, options) for name in names]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for outcome in outcomes:
        print(f"| {' | '.join(outcome.cells)} |")
    number_right = sum(outcome.is_right for outcome in outcomes)
    expected_at_random = sum(outcome.share_within for outcome in outcomes)
    print(
        f"\nThe recommended method is within error of the best on {number_right} of "
        f"{len(outcomes)} benchmarks; a method drawn at random would be on "
        f"{expected_at_random:.1f}."
    )


if __name__ == "__main__":
    main()
