"""Generates benchmarks of the user's own: any estimator on any data over growing training sets.

Configurations are trained on nested training sets (`_custom.split`, `_custom.training`), every
training is stored (`_training`), and one forest with an output per size is fitted to all of them
(`_forest`); the tasks are the sizes, in order. `xgboost-mnist` uses the same pipeline and forest,
with its authors' shuffle and settings.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.errors import DuplicateNameError, ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import check_writable, is_artifact
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.generation._custom.plan import (
    COMMAND,
    CONFIGURATIONS,
    VALIDATION,
    Custom,
    Plan,
    plan_of,
)
from hpobench_ordered.generation._custom.split import Kind
from hpobench_ordered.generation._custom.training import Failures
from hpobench_ordered.generation._custom.writing import (
    OwnTrainings,
    Results,
    definition_of,
    trained,
)
from hpobench_ordered.generation._training import Job
from hpobench_ordered.generation.base import Progress, Request, generators, silent
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.surrogates.coding import space_coding

__all__ = [
    "COMMAND",
    "CONFIGURATIONS",
    "VALIDATION",
    "Custom",
    "Failures",
    "Kind",
    "generate_custom",
]

LICENCE = "that of the data"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def generate_custom(
    custom: Custom,
    *,
    output: Path | None = None,
    replace: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Path:
    """Train, fit the forest and write the artifact, which `load` finds by name.

    Finished trainings are stored beside the artifact, in a folder of its name and "-evaluations".
    Calling this again continues, and more configurations or other sizes train only what is new.
    """
    folder = destination(custom.name, output, replace=replace)
    plan = plan_of(custom)
    request = Request(
        folder=folder,
        seed=custom.seed,
        workers=workers,
        sizes=plan.sizes,
        configurations=custom.configurations,
        progress=progress,
    )
    jobs = [Job(str(size), config) for config in plan.configs for size in plan.sizes]
    results = _results(trained(plan.trainer, jobs, request), len(plan.sizes))
    rows = [f"{size} rows" for size in plan.sizes]
    results.check(plan.trainer.model, custom.failures, plan.configs, rows)
    model, sizes = plan.trainer.model.name, plan.sizes
    defined = definition_of(
        custom.name,
        f"{model} on {plan.data.name}, {sizes[0]} to {sizes[-1]} rows.",
        plan.space,
        plan.objective,
        {str(size): {"train_size": size} for size in sizes},
        source=f"own trainings of {model} on {plan.data.name}",
        licence=LICENCE,
    )
    source = f"own trainings of {custom.model} on {plan.data.origin}"
    trainings = OwnTrainings(defined, plan.values, results, source, _limits(plan, results))
    trainings.store(request, "scikit-learn")
    return trainings.write(request, space_coding(plan.space), custom.words())


def destination(name: str, output: Path | None, *, replace: bool) -> Path:
    """Folder of the artifact of a user's benchmark: its name is free, and it can be written."""
    folder = (local_folder() if output is None else output) / name
    if _NAME.fullmatch(name) is None:
        raise ExperimentError(
            f"a benchmark's name must be letters, digits and (not first) . _ -, but got {name!r}"
        )
    if is_artifact(folder) and name not in generators():
        if not replace:
            raise DuplicateNameError(
                f"there is a benchmark {name!r} in {folder}; replace it (--replace), or choose "
                "another name"
            )
    elif _is_registered(name):
        raise DuplicateNameError(f"there is a benchmark {name!r} already; choose another name")
    check_writable(folder)
    return folder


def _is_registered(name: str) -> bool:
    try:
        benchmark_spec(name)
    except UnknownNameError:
        return False
    return True


def _results(outcomes: Sequence[Mapping[str, Any]], sizes: int) -> Results:
    """Gather outcomes of `EstimatorTrainer` by configuration."""
    values, seconds = (
        np.array([outcome.get(key, np.nan) for outcome in outcomes]).reshape(-1, sizes)
        for key in ("value", "seconds")
    )
    failures = {
        divmod(number, sizes): str(outcome["failure"])
        for number, outcome in enumerate(outcomes)
        if "failure" in outcome
    }
    return Results(values, seconds, failures)


def _limits(plan: Plan, results: Results) -> tuple[str, ...]:
    parts = plan.trainer.split
    return (
        f"One split ({len(parts.pool)} rows to train on, {len(parts.validation)} to validate) and "
        "one seed: values hold no noise between repetitions.",
        *results.failed("size"),
    )
