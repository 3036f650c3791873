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
from hpobench_ordered.core.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.core.objective import Objective
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.training import Failures, TrainingError, described
from hpobench_ordered.generation._fitting import FOREST, Forest, write_forest
from hpobench_ordered.generation._raw import About, configured, raw_frame, write_raw
from hpobench_ordered.generation._training import Job, Trainer, run_trainings
from hpobench_ordered.generation.base import Request
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.card import versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe

EVALUATIONS = "-evaluations"
"""Suffix of the folder of trainings and of the table of them, after the benchmark's name."""


def trained(trainer: Trainer, jobs: Sequence[Job], request: Request) -> list[Mapping[str, Any]]:
    """Do trainings, which are stored beside the artifact."""
    folder, progress = _beside(request.folder, ""), request.progress
    return run_trainings(trainer, jobs, folder, workers=request.workers, progress=progress)


def definition_of(
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
    """Define a benchmark; `tasks` are their contexts by name."""
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
class Results:
    """Values and seconds of n configurations on every task, both (n, S), and failures by place."""

    values: FloatArray
    seconds: FloatArray
    failures: Mapping[tuple[int, int], str]

    def check(
        self,
        model: Model,
        treatment: Failures,
        configs: Sequence[Mapping[str, Any]],
        rows: Sequence[str],
    ) -> None:
        """Check that failures may count as worst and that there is a worst value; rows are (S,)."""
        for (i, j), failure in self.failures.items():
            if treatment is Failures.STOP or np.isnan(self.values[:, j]).all():
                raise TrainingError(described(model, configs[i], rows[j], failure))

    def failed(self, noun: str) -> tuple[str, ...]:
        """A limit for the card: how many trainings failed; empty if none."""
        if not self.failures:
            return ()
        return (
            f"{len(self.failures)} of {self.values.size} trainings failed and have the worst value "
            f"of their {noun}.",
        )

    def filled(self, objective: Objective) -> FloatArray:
        """Values, (n, S), with the worst one of the task where a training failed."""
        if not self.failures:
            return self.values
        losses = objective.losses(self.values)
        return objective.losses(np.where(np.isnan(losses), np.nanmax(losses, axis=0), losses))


@dataclass(frozen=True, eq=False)
class OwnTrainings:
    """Results of n trained configurations, and their source and limits for card and table."""

    defined: Definition
    values: FloatArray
    results: Results
    source: str
    limits: tuple[str, ...]

    def store(self, request: Request, *packages: str) -> None:
        """Write the table of all trainings, with the versions of packages."""
        about = About(
            benchmark=self.defined.name,
            source=self.source,
            licence=self.defined.provenance.licence,
            limits=self.limits,
            contexts={task.name: dict(task.context) for task in self.defined.tasks},
            versions=versions_of("hpobench-ordered", *packages),
        )
        space, tasks = self.defined.space, [task.name for task in self.defined.tasks]
        filled, results = self.results.filled(self.defined.objective), self.results
        configs = [configured(config) for config in space.configs(self.values)]
        cells = [(j, task, i) for j, task in enumerate(tasks) for i in range(len(configs))]
        rows = [
            {"task": task, "training": number, "value": filled[i, j], "spread": np.nan}
            | configs[i]
            | {"seconds": results.seconds[i, j], "failure": results.failures.get((i, j))}
            for number, (j, task, i) in enumerate(cells)
        ]
        frame = raw_frame(rows, space, {"seconds": "float64", "failure": "object"})
        write_raw(_beside(request.folder, ".parquet"), frame, about)

    def write(
        self,
        request: Request,
        coding: Coding,
        words: Sequence[str],
        *,
        more_limits: Sequence[str] = (),
        comparisons: Mapping[str, Any] = MappingProxyType({}),
        evaluations: Sequence[RawEvaluations] | None = None,
    ) -> Path:
        """Fit a forest and write the artifact; `words` are those of the command."""
        report = CardTexts(
            source=self.source,
            command=request.command(*words),
            limits=(*self.limits, *more_limits),
            summaries={FOREST: "Random forest fitted to own trainings."},
            comparisons=comparisons,
        )
        targets = self.results.filled(self.defined.objective)
        forest = Forest(self.values, targets, coding, ForestRecipe())
        return write_forest(request, self.defined, forest, report, evaluations=evaluations)


def _beside(folder: Path, ending: str) -> Path:
    return folder.with_name(f"{folder.name}{EVALUATIONS}{ending}")
