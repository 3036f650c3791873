"""Generates benchmarks of the user's own: any estimator on any data over growing training sets.

Configurations are trained on nested training sets (`_custom.split`, `_custom.training`), every
training is stored (`_training`), and one forest with an output per size is fitted to all of them
(`_fitting`); the tasks are the sizes, in order. `xgboost-mnist` uses the same pipeline and forest,
with its authors' shuffle and settings.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.artifact import check_writable, is_artifact
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.errors import DuplicateNameError, ExperimentError, UnknownNameError
from hpobench_ordered.generation._custom.plan import (
    COMMAND,
    CONFIGURATIONS,
    VALIDATION_SHARE,
    Custom,
    CustomPlan,
    make_plan,
)
from hpobench_ordered.generation._custom.split import PredictionKind
from hpobench_ordered.generation._custom.training import Failures
from hpobench_ordered.generation._custom.writing import (
    OwnTrainings,
    TrainingResults,
    define_benchmark,
    run_stored_trainings,
)
from hpobench_ordered.generation._training import TrainingJob
from hpobench_ordered.generation.base import Progress, Request, generators, silent
from hpobench_ordered.surrogates.coding import space_coding

__all__ = [
    "COMMAND",
    "CONFIGURATIONS",
    "VALIDATION_SHARE",
    "Custom",
    "Failures",
    "PredictionKind",
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
    folder = choose_folder(custom.name, output, replace=replace)
    plan = make_plan(custom)
    request = Request(
        folder=folder,
        seed=custom.seed,
        workers=workers,
        sizes=plan.sizes,
        configurations=custom.configurations,
        progress=progress,
    )
    jobs = [TrainingJob(str(size), config) for config, size in product(plan.configs, plan.sizes)]
    outcomes = run_stored_trainings(plan.trainer, jobs, request)
    results = _gather_results(outcomes, len(plan.sizes))
    training_sets = [f"{size} rows" for size in plan.sizes]
    results.check_failures(plan.trainer.model, custom.failures, plan.configs, training_sets)

    trainings = OwnTrainings(
        defined=_define(custom, plan),
        values=plan.values,
        results=results,
        source=f"own trainings of {custom.model} on {plan.data.origin}",
        limits=_describe_limits(plan, results),
    )
    trainings.write_table(request, "scikit-learn")
    return trainings.write_artifact(request, space_coding(plan.space), custom.list_words())


def _define(custom: Custom, plan: CustomPlan) -> Definition:
    """Define the benchmark: a task for each training-set size, which is its context."""
    model = plan.trainer.model.name
    return define_benchmark(
        custom.name,
        f"{model} on {plan.data.name}, {plan.sizes[0]} to {plan.sizes[-1]} rows.",
        plan.space,
        plan.objective,
        {str(size): {"train_size": size} for size in plan.sizes},
        source=f"own trainings of {model} on {plan.data.name}",
        licence=LICENCE,
    )


def choose_folder(name: str, output: Path | None, *, replace: bool) -> Path:
    """Choose the folder of the artifact of a user's benchmark.

    Args:
        name: Name of the benchmark.
        output: Parent of the folder; default: that of the user's own benchmarks.
        replace: Whether an artifact in this folder may be replaced.

    Raises:
        DuplicateNameError: There is a benchmark of this name.
        ExperimentError: The name has characters that are not allowed.
    """
    folder = (local_folder() if output is None else output) / name
    if _NAME.fullmatch(name) is None:
        raise ExperimentError(
            f"a benchmark's name must be letters, digits and (not first) . _ -, but got {name!r}"
        )

    # A user's own artifact may be replaced. It is a registered benchmark, too, so this comes before
    # the names of other benchmarks are refused.
    is_users_own = is_artifact(folder) and name not in generators()
    if is_users_own:
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
    """Whether there is a benchmark of this name."""
    try:
        benchmark_spec(name)
    except UnknownNameError:
        return False
    return True


def _gather_results(outcomes: Sequence[Mapping[str, Any]], number_of_sizes: int) -> TrainingResults:
    """Gather the outcomes of trainings: configuration by configuration, each on all sizes.

    An outcome has "value" and "seconds" or, of a failed training, "failure".
    """
    values = np.array([outcome.get("value", np.nan) for outcome in outcomes])
    seconds = np.array([outcome.get("seconds", np.nan) for outcome in outcomes])
    failures = {}
    for number, outcome in enumerate(outcomes):
        if "failure" in outcome:
            config_and_size = divmod(number, number_of_sizes)  # index of each
            failures[config_and_size] = str(outcome["failure"])
    return TrainingResults(
        values.reshape(-1, number_of_sizes), seconds.reshape(-1, number_of_sizes), failures
    )


def _describe_limits(plan: CustomPlan, results: TrainingResults) -> tuple[str, ...]:
    """Describe limits of the benchmark for its card, one sentence each."""
    split = plan.trainer.split
    return (
        f"One split ({len(split.pool)} rows to train on, {len(split.validation)} to validate) and "
        "one seed: values hold no noise between repetitions.",
        *results.describe_failures("size"),
    )
