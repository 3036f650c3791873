"""Quality of `bo` beside BoTorch's, scikit-learn's and random search's.

    python tests/performance/botorch_quality.py

runs this package's methods and prints their mean best value after 25 trials beside the recorded
runs of the other libraries, which need not be installed for it. `--record botorch` makes those
that are missing (half an hour a benchmark; when stopped, it goes on where it was). What is recorded
stays until its folder is deleted. xgboost-mnist is compared on its published evaluations; fetch
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
from baselines import BoTorch, ScikitLearn
from threadpoolctl import threadpool_limits

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import incumbents, two_standard_errors
from hpobench_ordered.core.benchmark import Benchmark, Task
from hpobench_ordered.errors import NotFetchedError
from hpobench_ordered.files.remote import cache_folder
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.methods.base import Method
from hpobench_ordered.registry import method_spec

TASKS = {
    "xgboost-mnist": (0, 7, 14, 21, 27),
    "newsvendor": (0, 2, 4, 6, 8),
    "yahpo-svm-1220": (0, 5, 10, 15, 19),
    "yahpo-ranger-4154": (0, 5, 10, 15, 19),
    "yahpo-aknn-4538": (0, 5, 10, 15, 19),
    "yahpo-glmnet-375": (0, 5, 10, 15, 19),
}
SURROGATES = {"xgboost-mnist": "nearest"}
RECORDED: dict[str, type[Method]] = {"botorch": BoTorch, "scikit-learn": ScikitLearn}
REFERENCE = "random-search"
TRIALS = 25

Runs = dict[str, FloatArray]
"""One method on the tasks of one benchmark: `losses` of all trials and `seconds` of their
suggestions, (S, T, M), and `fallbacks`, random suggestions in the place of a model's, (S, T)."""


def joined(parts: Sequence[Runs]) -> Runs:
    """Join runs of different seeds."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def run(method: type[Method], benchmark: Benchmark, tasks: Sequence[int], seed: int) -> Runs:
    """Run a method with one seed on some tasks of a benchmark, without history."""
    losses = np.empty((1, len(tasks), TRIALS))
    seconds = np.empty(losses.shape)
    fallbacks = np.empty((1, len(tasks)))
    for t, index in enumerate(tasks):
        task = benchmark.tasks[index]
        optimiser = method(
            space=benchmark.space,
            rng=np.random.default_rng([seed, zlib.crc32(benchmark.id.encode()), index]),
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


def recorded(
    name: str, benchmark: Benchmark, tasks: Sequence[int], *, seeds: int, folder: Path, make: bool
) -> Runs | None:
    """Read another library's runs up to the first missing seed, or make them; None: no seed."""
    parts = []
    for seed in range(seeds):
        path = folder / f"{benchmark.id}-{benchmark.surrogate}" / name / f"{seed}.npz"
        if not path.exists():
            if not make:
                break
            begin = time.perf_counter()
            buffer = io.BytesIO()
            np.savez(buffer, **run(RECORDED[name], benchmark, tasks, seed))
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, buffer.getvalue())
            spent = time.perf_counter() - begin
            print(f"{benchmark.id}: {name}, seed {seed}: {spent:.0f} s", flush=True)
        with np.load(path, allow_pickle=False) as arrays:
            parts.append({kind: arrays[kind] for kind in arrays.files})  # losses, seconds, ...
    return joined(parts) if parts else None


def table(runs: dict[str, Runs], tasks: Sequence[Task], ours: str) -> pd.DataFrame:
    """Compare methods on the tasks of one benchmark, after all trials.

    Regret is the distance from the best value known, and 1 where random search ends on the
    average over seeds; its mean over tasks is given. "against" is the paired difference of this
    regret from that of `ours` with the same seeds; positive where `ours` is better. Errors are two
    standard errors over seeds.
    """
    objective = tasks[0].objective
    best_values = np.array([task.best_value for task in tasks], dtype=np.float64)
    lowest = objective.losses(best_values)
    # The best loss of each run, (S, T), by method.
    final = {name: incumbents(run["losses"])[..., -1] for name, run in runs.items()}
    scale = final[REFERENCE].mean(axis=0) - lowest
    regret = {name: ((best - lowest) / scale).mean(axis=1) for name, best in final.items()}
    rows = {}
    for name, best in final.items():
        seeds = len(best)
        against = regret[name] - regret[ours][:seeds]
        samples = np.stack([objective.losses(best).mean(axis=1), regret[name], against])
        mean, error = samples.mean(axis=1), two_standard_errors(samples)
        rows[name] = {"seeds": seeds}
        for place, what in enumerate(("value", "regret", "against")):
            heading = f"against {ours}" if what == "against" else what
            rows[name] |= {heading: mean[place], f"± {what}": error[place]}
        rows[name] |= {
            "ms": 1e3 * np.median(runs[name]["seconds"][..., TRIALS // 2 :]),
            "fallbacks": runs[name]["fallbacks"].sum(),
        }
    return pd.DataFrame.from_dict(rows, orient="index").sort_values("regret")


def compare(name: str, arguments: argparse.Namespace) -> pd.DataFrame:
    """Run and read all methods on one benchmark."""
    benchmark = hbo.load(name, surrogate=SURROGATES.get(name))
    tasks = TASKS[name]
    runs = {}
    for method in RECORDED:
        options = {"seeds": arguments.seeds, "folder": arguments.folder}
        made = recorded(method, benchmark, tasks, make=method in arguments.record, **options)
        if made is not None:
            runs[method] = made
    for method in dict.fromkeys([*arguments.methods, REFERENCE]):
        class_of_method = method_spec(method).method
        parts = [run(class_of_method, benchmark, tasks, seed) for seed in range(arguments.seeds)]
        runs[method] = joined(parts)
    return table(runs, [benchmark.tasks[index] for index in tasks], arguments.methods[0])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--benchmarks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=["bo"], help="of this package")
    parser.add_argument("--record", nargs="+", choices=RECORDED, default=[])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=cache_folder() / "recorded-libraries")
    return parser.parse_args()


def main() -> None:
    """Print one table a benchmark and write them all to `FOLDER/quality.csv`."""
    arguments = parse()
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
