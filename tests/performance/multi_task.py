"""`ordered-gp` beside BoTorch's multi-task process and Optuna's TPE: time, and what they find.

    python tests/performance/multi_task.py times
    python tests/performance/multi_task.py quality FOLDER

Times are of a suggestion with 25, 100 and 225 evaluations in all, in six dimensions: three earlier
tasks of 6 or of 25 evaluations each, or eight of 25. Quality is that of runs of three
benchmarks, on their first tasks; FOLDER keeps them. Needs the extra `compare`; all run on one
thread, and with a seed of its own each.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

import hpobench_ordered as hbo
from hpobench_ordered import SearchSpace
from hpobench_ordered._typing import Config
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.ordered_gp import OrderedGP
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.tuning.tools.botorch import BoTorchMultiTask

SIZES = {25: (3, 6, 7), 100: (3, 25, 25), 225: (8, 25, 25)}
"""By evaluations in all: earlier tasks, evaluations of each, and of the current task."""
SPACE = SearchSpace([Parameter.number(f"x{j}", 0, 1) for j in range(6)])
BENCHMARKS = ("newsvendor", "yahpo-svm-1220", "retrain-weather-xgboost")
TASKS, TRIALS = 3, 8
BESTS_OF_EARLIER_TASKS = 3
"""The first suggestions of a task, which both methods take from the last tasks."""
COMPARED_METHODS = ("ordered-gp", "optuna.samplers:TPESampler", "simple-ordered", "random-search")
"""Methods whose quality is compared with that of BoTorch's."""


def compute_losses(x: np.ndarray, task: int, rng: np.random.Generator) -> np.ndarray:
    """Losses, (n,), of configurations, (n, 6): a bowl that moves by task, with waves and noise."""
    optimum = 0.2 + 0.05 * task
    weights = np.arange(1, 7)  # the hyperparameters matter differently
    bowl = ((x - optimum) ** 2 * weights).sum(axis=1)
    waves = 0.2 * np.sin(8 * x[:, 0])
    noise = 0.02 * rng.standard_normal(len(x))
    return bowl + waves + noise


def make_history(tasks: int, evaluations: int, rng: np.random.Generator) -> list[Evaluations]:
    """Make random evaluations of earlier tasks."""
    history = []
    for task in range(tasks):
        x = rng.random((evaluations, 6))
        losses = compute_losses(x, task, rng)
        history.append(Evaluations(str(task), {}, x, losses, space=SPACE, direction="minimize"))
    return history


def measure_seconds(method: type[Method], in_all: int, seed: int, *, timed: int) -> float:
    """Measure the mean CPU seconds of a suggestion and of being told its loss.

    Args:
        method: The method.
        in_all: Number of evaluations of all tasks, one of `SIZES`.
        seed: Seed of the evaluations and of the method.
        timed: Number of last trials of the current task that are timed. Before them the method is
            asked for the best configurations of earlier tasks, and then told random ones.
    """
    earlier_tasks, evaluations, trials = SIZES[in_all]
    rng = np.random.default_rng(seed)
    history = make_history(earlier_tasks, evaluations, rng)
    optimiser = method(space=SPACE, rng=rng, history=history, context={}, budget=trials)

    def tell(config: Config) -> None:
        (loss,) = compute_losses(SPACE.values([config]), earlier_tasks, rng)
        optimiser.tell(config, loss)

    for trial in range(trials - timed):
        is_best_of_earlier_task = trial < BESTS_OF_EARLIER_TASKS
        tell(optimiser.ask() if is_best_of_earlier_task else SPACE.sample(rng))

    start = time.process_time()
    for _ in range(timed):
        tell(optimiser.ask())
    return (time.process_time() - start) / timed


def measure_seconds_of_optuna(evaluations: int, seed: int) -> float:
    """Measure the CPU seconds of a suggestion of Optuna's TPE that was told all evaluations."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rng = np.random.default_rng(seed)
    unit_interval = optuna.distributions.FloatDistribution(0, 1)
    distributions = dict.fromkeys(SPACE.names, unit_interval)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    x = rng.random((evaluations, 6))
    for row, loss in zip(x, compute_losses(x, 0, rng).tolist(), strict=True):
        params = dict(zip(SPACE.names, row.tolist(), strict=True))
        trial = optuna.trial.create_trial(params=params, distributions=distributions, value=loss)
        study.add_trial(trial)

    start = time.process_time()
    study.ask(distributions)
    return time.process_time() - start


def print_times() -> None:
    """Print median times of suggestions.

    The methods take turns, so that other work of the machine slows down all of them. Ours and
    Optuna's are timed with ten seeds, BoTorch's, which takes seconds, with two.
    """
    print("evaluations  ordered-gp, ms  Optuna's TPE, ms  BoTorch, ms")
    for in_all, (_, _, trials) in SIZES.items():
        measure_seconds(OrderedGP, in_all, 0, timed=1)  # compiles
        all_but_first = trials - BESTS_OF_EARLIER_TASKS
        ours = []
        tpe = []
        botorch = []
        for seed in range(10):
            ours.append(measure_seconds(OrderedGP, in_all, seed, timed=all_but_first))
            tpe.append(measure_seconds_of_optuna(in_all, seed))
            if seed % 5 == 4:  # after every fifth seed
                seed_of_botorch = seed // 5
                botorch.append(measure_seconds(BoTorchMultiTask, in_all, seed_of_botorch, timed=1))

        milliseconds = [1e3 * np.median(seconds) for seconds in (ours, tpe, botorch)]
        print("{:11}{:16.2f}{:18.2f}{:13.0f}".format(in_all, *milliseconds), flush=True)


def print_quality(folder: Path) -> None:
    """Print the leaderboard after 1, 5 and 8 trials."""
    result = hbo.run(
        benchmarks=BENCHMARKS,
        methods=[*COMPARED_METHODS, "hpobench_ordered.tuning.tools.botorch:MULTI_TASK"],
        protocol=hbo.Ordered(trials=TRIALS, tasks=TASKS),
        seeds=range(10),  # half an hour, as BoTorch takes seconds a suggestion
        folder=folder,
    )
    for trial in (1, 5, TRIALS):
        print(f"\nafter {trial} trials\n{result.leaderboard(trial).to_string()}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with one_thread():
        if sys.argv[1] == "times":
            print_times()
        else:
            print_quality(Path(sys.argv[2]))
