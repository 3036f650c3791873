"""Results of the trainings of a plan.

Notation:
    n   configurations
    T   tasks
    S   seeds
    m   configurations that were trained with every seed
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._custom.results import Results
from hpobench_ordered.generation._custom.training import Failures, TrainingError, described
from hpobench_ordered.generation._retrain.plan import RetrainPlan


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
    """Values and seconds of all jobs on all tasks; raises as `gather`."""
    values, seconds = (
        np.array([outcome[key] for outcome in outcomes], dtype=np.float64)
        for key in ("values", "seconds")
    )
    failed = np.argwhere(np.isnan(values)).tolist()
    failures = {(i, j): str(outcomes[i]["failure"]) for i, j in failed}
    for (i, j), reason in failures.items():
        if plan.trainer.failures is Failures.STOP or np.isnan(values[:, j]).all():
            period = f"the rows before {plan.trainer.stream.names[plan.trainer.tasks[j]]}"
            config = plan.jobs()[i].config
            raise TrainingError(described(plan.trainer.model, config, period, reason))
    return Results(values, seconds, failures)


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
    limits = [
        f"A model was trained {times}, with {noun} {seeds}, for each configuration and task: what "
        "the seed does is in the values, and the forest smooths it, so that a training may beat "
        "the best known value, which is the forest's.",
        f"A period has {starts.min()} to {starts.max()} rows, all of which measure the model that "
        "was trained on those before it.",
    ]
    if results.failures:
        limits.append(
            f"{len(results.failures)} of {results.values.size} trainings failed and have the worst "
            "value of their task."
        )
    return tuple(limits)
