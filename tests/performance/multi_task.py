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
from baselines import BoTorchMultiTask

import hpobench_ordered as hbo
from hpobench_ordered import SearchSpace
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.ordered_gp import OrderedGP
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space.parameters import Parameter

CASES = {25: (3, 6, 7), 100: (3, 25, 25), 225: (8, 25, 25)}
"""By evaluations in all: earlier tasks, evaluations of each, and of the current task."""
SPACE = SearchSpace([Parameter.number(f"x{j}", 0, 1) for j in range(6)])
BENCHMARKS = ("newsvendor", "yahpo-svm-1220", "retrain-weather-xgboost")
TASKS, TRIALS = 3, 8
RIVALS = ("ordered-gp", "optuna.samplers:TPESampler", "simple-ordered", "random-search")


def losses(x: np.ndarray, task: int, rng: np.random.Generator) -> np.ndarray:
    """A bowl that moves from task to task, with waves and noise, (n,)."""
    bowl = ((x - 0.2 - 0.05 * task) ** 2 * np.arange(1, 7)).sum(axis=1)
    return bowl + 0.2 * np.sin(8 * x[:, 0]) + 0.02 * rng.standard_normal(len(x))


def mean_seconds(method: type[Method], case: int, seed: int, *, asked: int) -> float:
    """Mean CPU seconds of the last suggestions of a task, before which random ones are told.

    Both methods begin with the bests of earlier tasks; these suggestions are not timed.
    """
    (earlier, each, trials), rng = CASES[case], np.random.default_rng(seed)
    history = []
    for t in range(earlier):
        x = rng.random((each, 6))
        y = losses(x, t, rng)
        history.append(Evaluations(str(t), {}, x, y, space=SPACE, direction="minimize"))
    optimiser = method(space=SPACE, rng=rng, history=history, context={}, budget=trials)
    seconds = 0.0
    for trial in range(trials):
        is_timed = trial >= trials - asked
        begin = time.process_time()
        config = optimiser.ask() if trial < 3 or is_timed else SPACE.sample(rng)
        seconds += (time.process_time() - begin) * is_timed
        begin = time.process_time()
        optimiser.tell(config, losses(SPACE.values([config]), earlier, rng)[0])
        seconds += (time.process_time() - begin) * is_timed
    return seconds / asked


def optuna_seconds(case: int, seed: int) -> float:
    """CPU seconds a suggestion of Optuna's TPE that was given all evaluations."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rng, names = np.random.default_rng(seed), SPACE.names
    distributions = {name: optuna.distributions.FloatDistribution(0, 1) for name in names}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    x = rng.random((case, 6))
    for row, y in zip(x, losses(x, 0, rng), strict=True):
        params = dict(zip(names, row.tolist(), strict=True))
        study.add_trial(
            optuna.trial.create_trial(params=params, distributions=distributions, value=float(y))
        )
    begin = time.process_time()
    study.ask(distributions)
    return time.process_time() - begin


def times() -> None:
    """Print median times, in turns."""
    print("evaluations  ordered-gp, ms  Optuna's TPE, ms  BoTorch, ms")
    for case in CASES:
        mean_seconds(OrderedGP, case, 0, asked=1)  # compiles
        ours, tpe, botorch = [], [], []
        n_timed = CASES[case][2] - 3  # the first three of a task are bests of earlier tasks
        # In turns, as the machine may have other work; BoTorch, which takes seconds, less often.
        for seed in range(2):
            ours += [mean_seconds(OrderedGP, case, 5 * seed + k, asked=n_timed) for k in range(5)]
            tpe += [optuna_seconds(case, 5 * seed + k) for k in range(5)]
            botorch.append(mean_seconds(BoTorchMultiTask, case, seed, asked=1))
        ours, tpe, botorch = (1e3 * np.median(each) for each in (ours, tpe, botorch))
        print(f"{case:11}{ours:16.2f}{tpe:18.2f}{botorch:13.0f}", flush=True)


def quality(folder: Path) -> None:
    """Print the leaderboard after 1, 5 and 8 trials."""
    here = f"{Path(__file__).with_name('baselines.py')}:BoTorchMultiTask"
    result = hbo.run(
        benchmarks=BENCHMARKS,
        methods=[*RIVALS, here],
        protocol=hbo.Ordered(trials=TRIALS, tasks=TASKS),
        seeds=range(1),
        folder=folder,
    )
    for trial in (1, 5, TRIALS):
        print(f"\nafter {trial} trials\n{result.leaderboard(trial).to_string()}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with one_thread():
        times() if sys.argv[1] == "times" else quality(Path(sys.argv[2]))
