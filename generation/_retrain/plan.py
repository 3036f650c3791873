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
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.generation._training import TrainingJob
from hpobench_ordered.space import SearchSpace

REPEATED_CONFIGURATIONS = 32
"""Number of configurations that are trained with a second seed if values are of one seed."""


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
        """The n configurations as coded values, (n, d), drawn at random by the seed."""
        rng = np.random.default_rng(self.seed)
        return self.space.decode(self.space.sample_unit(rng, self.configurations))

    @property
    def number_repeated(self) -> int:
        """Number m of configurations that are trained with every seed, the first ones of all.

        If values are means over seeds, these are all configurations. Otherwise they are some, which
        serve to measure how much the seed matters.
        """
        if self.averaged > 1:
            return len(self.values)
        return min(REPEATED_CONFIGURATIONS, len(self.values))

    def list_jobs(self) -> list[TrainingJob]:
        """List all trainings: n configurations with the first seed, then m with each other seed.

        The place of a job is its seed, as text.
        """
        configs = self.space.configs(self.values)
        jobs = [TrainingJob(str(self.seed), config) for config in configs]

        # Even if values are not means over seeds, a second seed shows how much the seed matters.
        number_of_seeds = max(self.averaged, 2)
        repeated_configs = configs[: self.number_repeated]
        for seed in range(self.seed + 1, self.seed + number_of_seeds):
            jobs += [TrainingJob(str(seed), config) for config in repeated_configs]
        return jobs


def average_seeds(
    plan: RetrainPlan, outcomes: Sequence[Mapping[str, Any]]
) -> tuple[FloatArray, FloatArray]:
    """Average the outcomes of a plan's trainings over seeds.

    Args:
        plan: The plan.
        outcomes: Outcomes of its jobs in their order: all n configurations with the first seed,
            then m of them with each further seed. Each has the "values" on T tasks.

    Returns:
        Values of the n configurations, (n, T): means over seeds, if the plan averages them; and the
        values of the m configurations that were trained with every seed, (S, m, T).
    """
    values = np.array([outcome["values"] for outcome in outcomes], dtype=np.float64)
    n = len(plan.values)
    m = plan.number_repeated
    n_tasks = values.shape[1]

    # If the plan averages seeds, m is n: every seed has n rows. Otherwise `averaged` is 1.
    values_of_seeds = values[: plan.averaged * n].reshape(plan.averaged, n, n_tasks)
    means = values_of_seeds.mean(axis=0)

    with_first_seed = values[:m]
    with_further_seeds = values[n:].reshape(-1, m, n_tasks)
    return means, np.concatenate([with_first_seed[None], with_further_seeds])


def make_raw_evaluations(
    configs: FloatArray, values: FloatArray, repeated: FloatArray
) -> list[RawEvaluations]:
    """Make the evaluations of each task from the values of trainings.

    The spread is the standard deviation over seeds, and NaN for configurations with one seed.

    Args:
        configs: Configurations coded as values, (n, d).
        values: Their objective values on T tasks, (n, T).
        repeated: Values of the first m of them with each of S seeds, (S, m, T).
    """
    spread = np.full_like(values, np.nan)
    n_repeated = repeated.shape[1]  # m
    spread[:n_repeated] = repeated.std(axis=0, ddof=1)
    training = np.arange(len(configs))  # every configuration is a training of its own
    return [
        RawEvaluations(configs, values_of_task, spread_of_task, training)
        for values_of_task, spread_of_task in zip(values.T, spread.T, strict=True)
    ]


def describe_limits(plan: RetrainPlan) -> tuple[str, ...]:
    """Describe for the benchmark's card how its values were made, which limits their use."""
    rows_of_period = np.diff(plan.trainer.stream.starts)
    fewest = rows_of_period.min()
    most = rows_of_period.max()
    seeds = ", ".join(str(plan.seed + k) for k in range(plan.averaged))
    if plan.averaged == 1:
        how_often = f"once, with seed {seeds},"
    else:
        how_often = f"{plan.averaged} times, with seeds {seeds},"
    return (
        f"A model was trained {how_often} for each configuration and task: what "
        "the seed does is in the values, and the forest smooths it, so that a training may beat "
        "the best known value, which is the forest's.",
        f"A period has {fewest} to {most} rows, all of which measure the model that "
        "was trained on those before it.",
    )
