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
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.progress import track

import hpobench_ordered as hbo
from hpobench_ordered.adapters.advice import METHODS, SAMPLE, TRIALS, compared
from hpobench_ordered.analysis.copying import best_and_random_losses
from hpobench_ordered.analysis.scores import lowest_losses, normalised_regrets
from hpobench_ordered.errors import PoorSurrogateWarning
from hpobench_ordered.experiment.scored import scored

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


def drawn(bench: hbo.Benchmark, tasks: int, evaluations: int) -> list[hbo.Evaluations]:
    """Some of the recorded evaluations of the first tasks, others on each."""
    if bench.recorded is None:
        raise SystemExit(f"{bench.id} has no recorded evaluations")
    history = []
    for place, recorded in enumerate(bench.recorded()[:tasks]):
        order = np.random.default_rng(place).permutation(len(recorded))[:evaluations]
        part = replace(recorded, values=recorded.values[order], objective=recorded.objective[order])
        history.append(part)
    return history


def row(name: str, asked: argparse.Namespace) -> tuple[list[str], bool, float]:
    """A line of the table; whether the recommended method is within error of the best.

    And the share of all methods that are.
    """
    bench = hbo.load(name)
    half = len(bench.tasks) // 2
    options = {"seeds": range(asked.seeds), "workers": asked.workers, "progress": False}
    advice = hbo.advise(
        drawn(bench, half, asked.evaluations),
        space=bench.space,
        direction=bench.objective.direction,
        trials=asked.trials,
        folder=asked.output / "replays",
        **options,
    )
    results = hbo.run(
        benchmarks=[name],
        methods=METHODS,
        protocol=hbo.Ordered(trials=asked.trials),
        folder=asked.output / "runs",
        **options,
    )
    (scores,), _ = scored(results.store, results.overview())
    best, losses = best_and_random_losses(bench, SAMPLE)
    best = np.fmin(best, lowest_losses(scores.losses))
    left = normalised_regrets(scores.losses, best, np.median(losses, axis=0))
    table = compared(left, scores.methods, first_task=half)[0].set_index("method")
    is_right = bool(table["is_within_error"][advice.best])
    within = int(table["is_within_error"].sum())
    cells = [
        bench.name,
        f"{np.mean([task.spearman for task in advice.quality]):.2f}",
        advice.best,
        f"{table['left'][advice.best]:.2f}",
        table.index[0],
        f"{table['left'].iloc[0]:.2f}",
        "yes" if is_right else "no",
        f"{within} of {len(table)}",
    ]
    return cells, is_right, within / len(table)


def main() -> None:
    """Run what is not finished, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("benchmarks", nargs="+", help="names, or folders of artifacts")
    parser.add_argument("--output", type=Path, default=Path("advice-experiment"))
    parser.add_argument("--evaluations", type=int, default=60, help="of each earlier task")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", PoorSurrogateWarning)  # the table shows the correlation
    rows = [row(name, asked) for name in track(asked.benchmarks, description="benchmarks")]
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for cells, _, _ in rows:
        print(f"| {' | '.join(cells)} |")
    right, chance = sum(is_right for _, is_right, _ in rows), sum(share for *_, share in rows)
    print(
        f"\nThe recommended method is within error of the best on {right} of {len(rows)} "
        f"benchmarks; a method drawn at random would be on {chance:.1f}."
    )


if __name__ == "__main__":
    main()
