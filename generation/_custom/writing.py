"""Results of own trainings, and the artifact and the table of trainings made of them.

Notation:
    n   configurations
    S   training-set sizes, or periods: the tasks
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.training import Failures, TrainingError, describe_failure
from hpobench_ordered.generation._fitting import FOREST, ForestData, write_forest
from hpobench_ordered.generation._raw import About, make_raw_frame, name_config_columns, write_raw
from hpobench_ordered.generation._training import Trainer, TrainingJob, run_trainings
from hpobench_ordered.generation.base import Request
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.card import versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe

EVALUATIONS_SUFFIX = "-evaluations"
"""Suffix of the folder of trainings and of the table of them, after the benchmark's name."""


def run_stored_trainings(
    trainer: Trainer, jobs: Sequence[TrainingJob], request: Request
) -> list[Mapping[str, Any]]:
    """Do trainings, which are stored beside the artifact, and return their outcomes."""
    return run_trainings(
        trainer,
        jobs,
        _path_beside(request.folder, ending=""),  # a folder
        workers=request.workers,
        progress=request.progress,
    )


def define_benchmark(
    name: str,
    summary: str,
    space: SearchSpace,
    objective: Objective,
    tasks: Mapping[str, Mapping[str, float]],
    *,
    source: str,
    licence: str,
    version: int = 1,
) -> Definition:
    """Define a benchmark of own trainings.

    Args:
        name: Name of the benchmark.
        summary: One line.
        space: Its search space.
        objective: What is optimised.
        tasks: Context of each task (numbers that describe it), by its name.
        source: Where the evaluations come from.
        licence: Licence of the evaluations.
        version: Version of the benchmark.
    """
    return Definition(
        name=name,
        version=version,
        summary=summary,
        space=space,
        objective=objective,
        tasks=tuple(TaskDefinition(task, context) for task, context in tasks.items()),
        provenance=Provenance(paper="none", source=source, licence=licence),
    )


@dataclass(frozen=True, eq=False)
class TrainingResults:
    """Results of n configurations on every task.

    Attributes:
        values: Objective values, (n, S); NaN where a training failed.
        seconds: Seconds of each training, (n, S).
        failures: Messages of failed trainings, by the indices of configuration and task.
    """

    values: FloatArray
    seconds: FloatArray
    failures: Mapping[tuple[int, int], str]

    def check_failures(
        self,
        model: Model,
        treatment: Failures,
        configs: Sequence[Mapping[str, Any]],
        training_sets: Sequence[str],
    ) -> None:
        """Check that failures may count as the worst value, and that there is a worst value.

        Args:
            model: The model, for the message.
            treatment: How failures are treated.
            configs: The configurations, (n,).
            training_sets: What is trained on for each task, for the message, (S,).

        Raises:
            TrainingError: A training failed, and failures stop the generation, or all trainings of
                its task failed, so that no value is the worst. It describes the first such failure.
        """
        # The message of each failure is stored by the indices of its configuration and task.
        for (config, task), failure in self.failures.items():
            has_no_value = np.isnan(self.values[:, task]).all()
            if treatment is Failures.STOP or has_no_value:
                message = describe_failure(model, configs[config], training_sets[task], failure)
                raise TrainingError(message)

    def describe_failures(self, noun: str) -> tuple[str, ...]:
        """Describe for the card how many trainings failed; nothing if none.

        Args:
            noun: What has a worst value of its own, such as "task".
        """
        if not self.failures:
            return ()
        return (
            f"{len(self.failures)} of {self.values.size} trainings failed and have the worst value "
            f"of their {noun}.",
        )

    def fill_failures(self, objective: Objective) -> FloatArray:
        """Return the values, with the worst one of the task where a training failed.

        They have a row for each configuration and a column for each task.
        """
        if not self.failures:
            return self.values

        losses = objective.losses(self.values)  # infinite where a training failed
        has_failed = np.isinf(losses)
        worst_of_tasks = losses.max(axis=0, initial=-np.inf, where=~has_failed)
        filled_losses = np.where(has_failed, worst_of_tasks, losses)
        return objective.values(filled_losses)


@dataclass(frozen=True, eq=False)
class OwnTrainings:
    """Results of n trained configurations, and their source and limits for card and table.

    Attributes:
        defined: The benchmark.
        values: The configurations, coded as values, (n, d).
        results: Objective values, seconds and failures of the trainings.
        source: Where the data come from.
        limits: Limits of the trainings, one sentence each.
    """

    defined: Definition
    values: FloatArray
    results: TrainingResults
    source: str
    limits: tuple[str, ...]

    def write_table(self, request: Request, *packages: str) -> None:
        """Write the table of all trainings beside the artifact, with the versions of packages."""
        about = About(
            benchmark=self.defined.name,
            source=self.source,
            licence=self.defined.provenance.licence,
            limits=self.limits,
            contexts={task.name: dict(task.context) for task in self.defined.tasks},
            versions=versions_of("hpobench-ordered", *packages),
        )
        space = self.defined.space
        # Types of the columns that not every table of evaluations has.
        further_types = {"seconds": "float64", "failure": "object"}
        frame = make_raw_frame(self._make_rows(), space, further_types)
        write_raw(_path_beside(request.folder, ending=".parquet"), frame, about)

    def _make_rows(self) -> list[dict[str, Any]]:
        """Make the rows of the table, one task after the other.

        A failed training has the worst value of its task, and the message of the failure.
        """
        values = self.results.fill_failures(self.defined.objective)
        configs = self.defined.space.configs(self.values)
        rows: list[dict[str, Any]] = []
        for task_index, task in enumerate(self.defined.tasks):
            for config_index, config in enumerate(configs):
                place = (config_index, task_index)
                row = {
                    "task": task.name,
                    "training": len(rows),  # its number: each row is of a training of its own
                    "value": values[place],
                    "spread": np.nan,  # each value is of a single training
                    **name_config_columns(config),
                    "seconds": self.results.seconds[place],
                    "failure": self.results.failures.get(place),
                }
                rows.append(row)
        return rows

    def write_artifact(
        self,
        request: Request,
        coding: Coding,
        words: Sequence[str],
        *,
        more_limits: Sequence[str] = (),
        comparisons: Mapping[str, Any] = MappingProxyType({}),
        evaluations: Sequence[RawEvaluations] | None = None,
    ) -> Path:
        """Fit a forest to the trainings and write the artifact.

        Args:
            request: Says where to, and by which seed.
            coding: How configurations are coded as inputs of the forest.
            words: Words of the command that generates the benchmark, for the card.
            more_limits: Limits for the card, beyond those of the trainings.
            comparisons: Comparisons for the card, by name.
            evaluations: Evaluations of each task to store in the artifact; None for none.
        """
        report = CardTexts(
            source=self.source,
            command=request.command(*words),
            limits=(*self.limits, *more_limits),
            summaries={FOREST: "Random forest fitted to own trainings."},
            comparisons=comparisons,
        )
        targets = self.results.fill_failures(self.defined.objective)
        forest = ForestData(self.values, targets, coding, ForestRecipe())
        return write_forest(request, self.defined, forest, report, evaluations=evaluations)


def _path_beside(folder: Path, *, ending: str) -> Path:
    """Path of what is stored beside the artifact's folder.

    It is the folder with the trainings if `ending` is "", and the file with the table of their
    evaluations if it is ".parquet".
    """
    return folder.with_name(f"{folder.name}{EVALUATIONS_SUFFIX}{ending}")
