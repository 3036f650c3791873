"""The plan of trainings of a retraining benchmark, and their results.

Notation:
    n, d    configurations, hyperparameters
    T       tasks
    S       seeds
    m       configurations that are trained with every seed
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._custom.writing import TrainingResults
from hpobench_ordered.generation._retrain.training import SEED, RetrainTrainer
from hpobench_ordered.generation._training import TrainingJob
from hpobench_ordered.space import SearchSpace

REPEATED_CONFIGURATIONS = 32
"""Number of configurations with a second seed if the others have one."""


@dataclass(frozen=True)
class RetrainPlan:
    """Trainings of n configurations on every task.

    Attributes:
        trainer: Trains a configuration on every task.
        space: The search space.
        configurations: Number of configurations, n.
        seed: Seed of the configurations, and the first one of the models.
        averaged: Number of seeds that values are averaged over.
    """

    trainer: RetrainTrainer
    space: SearchSpace
    configurations: int
    seed: int
    averaged: int = 1

    @cached_property
    def values(self) -> FloatArray:
        """The configurations, (n, d), drawn by the seed."""
        rng = np.random.default_rng(self.seed)
        return self.space.decode(self.space.sample_unit(rng, self.configurations))

    @property
    def number_repeated(self) -> int:
        """Number m of configurations that are trained with every seed: the first ones.

        All, if values are means over seeds; else some, to measure the effect of the seed; none if
        the model has no seed.
        """
        if self.averaged > 1:
            return len(self.values)
        has_seed = SEED in self.trainer.model.fixed
        return min(REPEATED_CONFIGURATIONS, len(self.values)) if has_seed else 0

    def jobs(self) -> list[TrainingJob]:
        """All trainings: every configuration, then the first ones with each further seed.

        `averaged` is the number of seeds that values are means of, `number_repeated` the number of
        configurations with all seeds.
        """
        configs = self.space.configs(self.values)
        jobs = [TrainingJob(str(self.seed), config) for config in configs]

        # Even if values are not means over seeds, a second seed shows how much the seed matters.
        number_of_seeds = max(self.averaged, 2)
        repeated_configs = configs[: self.number_repeated]
        for seed in range(self.seed + 1, self.seed + number_of_seeds):
            jobs += [TrainingJob(str(seed), config) for config in repeated_configs]
        return jobs


def gather_results(
    plan: RetrainPlan, outcomes: Sequence[Mapping[str, Any]]
) -> tuple[TrainingResults, FloatArray | None]:
    """Combine the outcomes of a plan's jobs, each a training with one of S seeds on all T tasks.

    Returns:
        Results of the n configurations, means over seeds if there are several; and the values of
        the m configurations that were trained with every seed, (S, m, T), None if there are none.

    Raises:
        TrainingError: A training failed, and the plan does not let failures count as the worst
            value; or all trainings of its task failed.
    """
    results = _gather_jobs(plan, outcomes)
    return _average_seeds(plan, results), _select_repeated(plan, results.values)


def make_raw_evaluations(
    configs: FloatArray, values: FloatArray, repeated: FloatArray | None
) -> list[RawEvaluations]:
    """Make the evaluations of each task; spread is over seeds, if there are several.

    Args:
        configs: Configurations coded as values, (n, d).
        values: Their objective values on T tasks, (n, T).
        repeated: Values of the first m of them with each of S seeds, (S, m, T); None if nothing was
            repeated.
    """
    spread = np.full_like(values, np.nan)
    if repeated is not None:
        n_repeated = repeated.shape[1]  # the first configurations
        spread[:n_repeated] = repeated.std(axis=0, ddof=1)
    training = np.arange(len(configs))  # numbers of trainings: no two values share one
    return [
        RawEvaluations(configs, values_of_task, spread_of_task, training)
        for values_of_task, spread_of_task in zip(values.T, spread.T, strict=True)
    ]


def _gather_jobs(plan: RetrainPlan, outcomes: Sequence[Mapping[str, Any]]) -> TrainingResults:
    """Gather the results of all jobs on all tasks, (jobs, T), and check the failures."""
    # A failed training has the value None, which becomes NaN.
    values = np.array([outcome["values"] for outcome in outcomes], dtype=np.float64)
    seconds = np.array([outcome["seconds"] for outcome in outcomes], dtype=np.float64)
    failures = {
        (job, task): str(outcomes[job]["failure"])
        for job, task in np.argwhere(np.isnan(values)).tolist()
    }
    results = TrainingResults(values, seconds, failures)

    periods = [f"the rows before {name}" for name in plan.trainer.contexts]
    configs = [job.config for job in plan.jobs()]
    results.check_failures(plan.trainer.model, plan.trainer.failures, configs, periods)
    return results


def _average_seeds(plan: RetrainPlan, results: TrainingResults) -> TrainingResults:
    """Average the results of all jobs over the seeds that count, (jobs, T) to (n, T).

    Jobs come seed by seed: first all n configurations with the first seed. If there is no average,
    only these count.
    """
    n = len(plan.values)
    jobs_that_count = plan.averaged * n
    values = results.values[:jobs_that_count].reshape(plan.averaged, n, -1).mean(axis=0)
    seconds = results.seconds[:jobs_that_count].reshape(plan.averaged, n, -1).mean(axis=0)
    failures = {
        (job % n, task): failure
        for (job, task), failure in results.failures.items()
        if job < jobs_that_count
    }
    return TrainingResults(values, seconds, failures)


def _select_repeated(plan: RetrainPlan, values: FloatArray) -> FloatArray | None:
    """Select the values of configurations with every seed, (S, m, T), from those of all jobs.

    Returns:
        None if nothing was repeated, or if one of these trainings failed.
    """
    m = plan.number_repeated
    if m == 0:
        return None

    # Jobs come seed by seed: all n configurations with the first, m of them with each further one.
    n, n_tasks = len(plan.values), values.shape[1]
    with_first_seed = values[:m]
    with_further_seeds = values[n:].reshape(-1, m, n_tasks)
    repeated = np.concatenate([with_first_seed[None], with_further_seeds])
    return None if np.isnan(repeated).any() else repeated


def describe_limits(plan: RetrainPlan, results: TrainingResults) -> tuple[str, ...]:
    """Describe limits for the card: how the values were made."""
    rows = np.diff(plan.trainer.stream.starts)  # of each period
    times = "once" if plan.averaged == 1 else f"{plan.averaged} times"
    seeds = ", ".join(str(plan.seed + k) for k in range(plan.averaged))
    noun = "seed" if plan.averaged == 1 else "seeds"
    return (
        f"A model was trained {times}, with {noun} {seeds}, for each configuration and task: what "
        "the seed does is in the values, and the forest smooths it, so that a training may beat "
        "the best known value, which is the forest's.",
        f"A period has {rows.min()} to {rows.max()} rows, all of which measure the model that "
        "was trained on those before it.",
        *results.describe_failures("task"),
    )
