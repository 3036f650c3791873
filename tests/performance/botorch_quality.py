"""Quality of `bo` beside BoTorch's, scikit-learn's and random search's.

    python tests/performance/botorch_quality.py

runs this package's methods and prints their mean best value after 25 trials beside the recorded
runs of the other libraries. `--record botorch` makes those that are missing (half an hour a
benchmark; when stopped, it goes on where it was). What is recorded stays until its folder is
deleted. Needs the extra `compare`. xgboost-mnist is compared on its published evaluations; fetch
them first by `hpobench-ordered fetch xgboost-mnist`.

The methods share random numbers: on each task and with each seed all start with the same trials.
Arrays are of S seeds, T tasks and M trials a task.
"""

import argparse
import io
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from baselines import ScikitLearn
from threadpoolctl import threadpool_limits

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import incumbents, two_standard_errors
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.remote import cache_folder
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import NotFetchedError
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.tuning.tools.botorch import BoTorch

TASKS_OF_BENCHMARK = {
    "xgboost-mnist": (0, 7, 14, 21, 27),
    "newsvendor": (0, 2, 4, 6, 8),
    "yahpo-svm-1220": (0, 5, 10, 15, 19),
    "yahpo-ranger-4154": (0, 5, 10, 15, 19),
    "yahpo-aknn-4538": (0, 5, 10, 15, 19),
    "yahpo-glmnet-375": (0, 5, 10, 15, 19),
}
NOT_THE_DEFAULT_SURROGATE = {"xgboost-mnist": "nearest"}
OTHER_LIBRARIES: dict[str, type[Method]] = {"botorch": BoTorch, "scikit-learn": ScikitLearn}
REFERENCE = "random-search"
TRIALS = 25

Runs = dict[str, FloatArray]
"""One method on the tasks of one benchmark: `losses` of all trials and `seconds` of their
suggestions, (S, T, M), and `fallbacks`, random suggestions in the place of a model's, (S, T)."""


def joined(parts: Sequence[Runs]) -> Runs:
    """Join runs of different seeds."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def run(method: type[Method], benchmark: Benchmark, tasks: Sequence[int], seed: int) -> Runs:
    """Run a method with one seed on T tasks, given by their indexes, without history.

    Arrays have the shape (1, T, M), for M trials on each task, or (1, T): those of several seeds
    can be joined along the first axis.
    """
    losses = np.empty((1, len(tasks), TRIALS))
    seconds = np.empty(losses.shape)
    fallbacks = np.empty((1, len(tasks)))
    number_of_benchmark = zlib.crc32(benchmark.id.encode())
    for t, index in enumerate(tasks):
        task = benchmark.tasks[index]
        optimiser = method(
            space=benchmark.space,
            # The same for all methods, so that they begin with the same random trials.
            rng=np.random.default_rng([seed, number_of_benchmark, index]),
            history=(),
            context=task.context,
            budget=TRIALS,
        )
        for trial in range(TRIALS):
            begin = time.perf_counter()
            config = optimiser.ask()
            seconds[0, t, trial] = time.perf_counter() - begin
            losses[0, t, trial] = benchmark.objective.loss(task.evaluate(config))
            optimiser.tell(config, losses[0, t, trial])
        fallbacks[0, t] = optimiser.fallbacks
    return {"losses": losses, "seconds": seconds, "fallbacks": fallbacks}


def record_run(
    library: str, benchmark: Benchmark, tasks: Sequence[int], seed: int, path: Path
) -> None:
    """Run another library with one seed, and write its arrays to a file."""
    begin = time.perf_counter()
    buffer = io.BytesIO()
    np.savez(buffer, **run(OTHER_LIBRARIES[library], benchmark, tasks, seed))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    spent = time.perf_counter() - begin
    print(f"{benchmark.id}: {library}, seed {seed}: {spent:.0f} s", flush=True)


def read_runs(
    library: str,
    benchmark: Benchmark,
    tasks: Sequence[int],
    *,
    seeds: int,
    folder: Path,
    record_missing: bool,
) -> Runs | None:
    """Read another library's recorded runs, up to the first seed that is missing.

    Returns:
        The runs; None if there are none.
    """
    folder_of_runs = folder / f"{benchmark.id}-{benchmark.surrogate}" / library
    runs_of_seeds = []
    for seed in range(seeds):
        path = folder_of_runs / f"{seed}.npz"
        if not path.exists() and record_missing:
            record_run(library, benchmark, tasks, seed, path)
        if not path.exists():
            break
        with np.load(path, allow_pickle=False) as arrays:
            runs_of_seeds.append(dict(arrays))
    return joined(runs_of_seeds) if runs_of_seeds else None


def mean_regrets(runs: dict[str, Runs], tasks: Sequence[Task]) -> dict[str, FloatArray]:
    """Regret after all trials, mean over tasks, with each seed (S,), by method.

    A regret of 0 is the best value known of a task; 1 is where random search ends on the average
    over seeds.
    """
    best_values = np.array([task.best_value for task in tasks], dtype=np.float64)
    lowest_losses = tasks[0].objective.losses(best_values)
    scale = final_losses(runs[REFERENCE]).mean(axis=0) - lowest_losses
    regrets = {}
    for method, runs_of_method in runs.items():
        regret = (final_losses(runs_of_method) - lowest_losses) / scale
        regrets[method] = regret.mean(axis=1)
    return regrets


def final_losses(runs: Runs) -> FloatArray:
    """The lowest loss of each run, (S, T)."""
    return incumbents(runs["losses"])[..., -1]


def compare_runs(runs: dict[str, Runs], tasks: Sequence[Task], ours: str) -> pd.DataFrame:
    """Compare methods on the tasks of one benchmark, after all trials; one method a row.

    The column "against" is how much the regret exceeds that of the method `ours` with the same
    seeds. Columns that begin with ± are two standard errors over seeds.
    """
    objective = tasks[0].objective
    regrets = mean_regrets(runs, tasks)
    rows = {}
    for method, runs_of_method in runs.items():
        best_values = objective.values(final_losses(runs_of_method))
        n_seeds = len(best_values)
        difference = regrets[method] - regrets[ours][:n_seeds]
        samples = np.stack([best_values.mean(axis=1), regrets[method], difference])
        value, regret, against = samples.mean(axis=1)
        value_error, regret_error, against_error = two_standard_errors(samples)
        seconds_of_later_trials = runs_of_method["seconds"][..., TRIALS // 2 :]
        rows[method] = {
            "seeds": n_seeds,
            "value": value,
            "± value": value_error,
            "regret": regret,
            "± regret": regret_error,
            f"against {ours}": against,
            "± against": against_error,
            "ms": 1e3 * np.median(seconds_of_later_trials),
            "fallbacks": runs_of_method["fallbacks"].sum(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("regret")


def compare(name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """Compare all methods on one benchmark: recorded runs of other libraries, and new ones of ours.

    Args:
        name: The benchmark.
        arguments: The options of the command line.
    """
    benchmark = hbo.load(name, surrogate=NOT_THE_DEFAULT_SURROGATE.get(name))
    indexes_of_tasks = TASKS_OF_BENCHMARK[name]
    runs = {}
    for library in OTHER_LIBRARIES:
        runs_of_library = read_runs(
            library,
            benchmark,
            indexes_of_tasks,
            seeds=arguments.seeds,
            folder=arguments.folder,
            record_missing=library in arguments.record,
        )
        if runs_of_library is not None:
            runs[library] = runs_of_library

    methods = dict.fromkeys([*arguments.methods, REFERENCE])  # each once
    for method in methods:
        method_class = method_spec(method).method
        runs_of_seeds = []
        for seed in range(arguments.seeds):
            runs_of_seeds.append(run(method_class, benchmark, indexes_of_tasks, seed))
        runs[method] = joined(runs_of_seeds)

    tasks = [benchmark.tasks[index] for index in indexes_of_tasks]
    return compare_runs(runs, tasks, ours=arguments.methods[0])


def parse_arguments() -> argparse.Namespace:
    """Read the options of the command line: what to compare, and which libraries to run anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--benchmarks", nargs="+", choices=TASKS_OF_BENCHMARK, default=list(TASKS_OF_BENCHMARK)
    )
    parser.add_argument("--methods", nargs="+", default=["bo"], help="of this package")
    parser.add_argument("--record", nargs="+", choices=OTHER_LIBRARIES, default=[])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=cache_folder() / "recorded-libraries")
    return parser.parse_args()


def main() -> None:
    """Print one table a benchmark and write them all to `FOLDER/quality.csv`."""
    arguments = parse_arguments()
    tables = {}
    with threadpool_limits(1):
        if "botorch" in arguments.record:
            import torch

            torch.set_num_threads(1)  # two are slower on such small matrices
        for name in arguments.benchmarks:
            try:
                tables[name] = compare(name, arguments)
            except NotFetchedError as error:
                print(f"\n{name} left out: {error}")
                continue
            print(f"\n{name}\n{tables[name].to_string(float_format='{:.4g}'.format)}", flush=True)
    if tables:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        text = pd.concat(tables, names=["benchmark", "method"]).to_csv()
        write_atomically(arguments.folder / "quality.csv", text.encode())


if __name__ == "__main__":
    main()
