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
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._custom.writing import Results
from hpobench_ordered.generation._retrain.training import SEED, RetrainTrainer
from hpobench_ordered.generation._training import Job
from hpobench_ordered.space import SearchSpace

REPEATED = 32
"""Number of configurations with a second seed if the others have one."""


@dataclass(frozen=True)
class RetrainPlan:
    """Trainings of n configurations on every task."""

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
    def repeated(self) -> int:
        """Number m of configurations that are trained with every seed, from the first on."""
        if self.averaged > 1:
            return len(self.values)
        return min(REPEATED, len(self.values)) if SEED in self.trainer.model.fixed else 0

    def jobs(self) -> list[Job]:
        """All trainings: every configuration, then the first m with each further seed."""
        configs = self.space.configs(self.values)
        again = range(self.seed + 1, self.seed + max(self.averaged, 2))
        return [
            *(Job(str(self.seed), config) for config in configs),
            *(Job(str(seed), config) for seed in again for config in configs[: self.repeated]),
        ]


def gather(
    plan: RetrainPlan, outcomes: Sequence[Mapping[str, Any]]
) -> tuple[Results, FloatArray | None]:
    """Combine the outcomes of a plan's jobs."""
    results = _results(plan, outcomes)
    return _averaged(plan, results), _repeated(plan, results.values)


def recorded(
    configs: FloatArray, values: FloatArray, repeated: FloatArray | None
) -> list[RawEvaluations]:
    """The evaluations of each task; spread is over seeds, if there are several."""
    spread = np.full_like(values, np.nan)
    if repeated is not None:
        spread[: repeated.shape[1]] = repeated.std(axis=0, ddof=1)
    training = np.arange(len(configs))
    return [
        RawEvaluations(configs, column, deviation, training)
        for column, deviation in zip(values.T, spread.T, strict=True)
    ]


def _results(plan: RetrainPlan, outcomes: Sequence[Mapping[str, Any]]) -> Results:
    """Values and seconds of all jobs on all tasks."""
    values, seconds = (
        np.array([outcome[key] for outcome in outcomes], dtype=np.float64)
        for key in ("values", "seconds")
    )
    failed = np.argwhere(np.isnan(values)).tolist()
    results = Results(values, seconds, {(i, j): str(outcomes[i]["failure"]) for i, j in failed})
    periods = [f"the rows before {name}" for name in plan.trainer.contexts]
    configs = [job.config for job in plan.jobs()]
    results.check(plan.trainer.model, plan.trainer.failures, configs, periods)
    return results


def _averaged(plan: RetrainPlan, results: Results) -> Results:
    """Means over seeds."""
    n, count = len(plan.values), plan.averaged
    values, seconds = (
        column[: count * n].reshape(count, n, -1).mean(axis=0)
        for column in (results.values, results.seconds)
    )
    failures = {(i % n, j): why for (i, j), why in results.failures.items() if i < count * n}
    return Results(values, seconds, failures)


def _repeated(plan: RetrainPlan, values: FloatArray) -> FloatArray | None:
    """Values of the repeated configurations; None if there are none or one failed."""
    if not plan.repeated:
        return None
    again = values[len(plan.values) :].reshape(-1, plan.repeated, values.shape[1])
    repeated = np.concatenate([values[None, : plan.repeated], again])
    return None if np.isnan(repeated).any() else repeated


def limits_of(plan: RetrainPlan, results: Results) -> tuple[str, ...]:
    """Known limits for the card: how the values were made."""
    starts = np.diff(plan.trainer.stream.starts)
    times = "once" if plan.averaged == 1 else f"{plan.averaged} times"
    seeds = ", ".join(str(plan.seed + k) for k in range(plan.averaged))
    noun = "seed" if plan.averaged == 1 else "seeds"
    return (
        f"A model was trained {times}, with {noun} {seeds}, for each configuration and task: what "
        "the seed does is in the values, and the forest smooths it, so that a training may beat "
        "the best known value, which is the forest's.",
        f"A period has {starts.min()} to {starts.max()} rows, all of which measure the model that "
        "was trained on those before it.",
        *results.failed("task"),
    )
