"""Generates `openml-svm`, `openml-xgboost` and `openml-ranger`.

Evaluations from any source are first written beside the artifact as one parquet file (`_raw`),
NAME-evaluations.parquet; surrogates are fitted to that.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.benchmarks._openml_data import ClassificationData
from hpobench_ordered.benchmarks.openml_flows import (
    CONTEXT,
    LANDMARK,
    OPENML_LICENCE,
    SURROGATES,
    Flow,
)
from hpobench_ordered.core.benchmark import Definition, TaskDefinition
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.generation._fitting import write_per_task
from hpobench_ordered.generation._flows.datasets import FOLDS as TRAINING_FOLDS
from hpobench_ordered.generation._flows.datasets import (
    naive_bayes_auc,
    offline_datasets,
    openml_dataset,
)
from hpobench_ordered.generation._flows.plans import (
    PLANS,
    FlowPlan,
    Training,
    data_limits,
    left_out_limits,
    paper_limit,
    stopped_limit,
    training_limits,
)
from hpobench_ordered.generation._flows.training import train_flow
from hpobench_ordered.generation._openml.records import download_records
from hpobench_ordered.generation._openml.setups import MLR_DEFAULTS, MlrSetups
from hpobench_ordered.generation._openml.tasks import DataSize, data_sizes
from hpobench_ordered.generation._raw import About, RawTable, read_raw, write_raw
from hpobench_ordered.generation.base import (
    EvaluationSource,
    Generator,
    Option,
    Request,
    artifacts_folder,
)
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.card import versions_of
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS

if TYPE_CHECKING:
    import pandas as pd

RECIPE = ForestRecipe(trees=40, min_samples_leaf=1)
"""Down to single evaluations, which are few and hold no noise between repetitions. A forest per
task
makes many trees: with 40 instead of 60, R2 is lower by 0.001."""
MOST = 4000
"""Evaluations a task that surrogates are fitted to unless asked otherwise: records are many more,
almost a million of the SVM's."""


def generate_by_training(plan: FlowPlan, training: Training, request: Request) -> Path:
    """Train the flow's learner on data sets, then fit."""
    data = _data(plan.flow, request)
    frame = train_flow(
        training.learner,
        data,
        n=request.configurations or training.count,
        seed=request.seed,
        folder=_beside(request, "trainings"),
        workers=request.workers,
        progress=request.progress,
        space=plan.flow.space(),
    )
    about = About(
        benchmark=plan.flow.name,
        source=f"own trainings, {TRAINING_FOLDS}-fold cross-validation",
        licence="Apache-2.0",
        limits=(
            *training_limits(plan.flow.name),
            *training.limits,
            *stopped_limit(frame),
            *data_limits(data, request.local),
        ),
        contexts={task: _context(dataset) for task, dataset in data.items()},
        versions=versions_of("numpy", "scikit-learn", "xgboost"),
    )
    table = _stored(plan.flow, request, frame, about)
    local = () if request.local is None else (f"{Option.LOCAL.value} DATA",)
    words = (plan.flow.name, "--source train", *local)
    return _fit(plan, request, table, request.command(*words))


def generate_from_openml(plan: FlowPlan, request: Request) -> Path:
    """Download OpenML's records of the flow, then fit."""
    flow, folder = plan.flow, _beside(request, "records")
    tasks = flow.tasks if request.tasks is None else _numbers(request.tasks)
    sizes = data_sizes(tasks, folder, progress=request.progress)
    space = flow.space()
    records = download_records(
        flow_id=flow.flow_id,
        tasks=tasks,
        space=space,
        folder=folder,
        setups=MlrSetups(space, MLR_DEFAULTS[flow.flow_id], plan.converters(sizes)),
        progress=request.progress,
    )
    frame, scarce = _frequent(records.frame)
    if not len(frame):
        raise ExperimentError(
            f"no task has {FOLDS} setups of flow {flow.flow_id} with evaluations, of {list(tasks)}"
        )
    dropped = {reason.value: count for reason, count in records.dropped.items()}
    about = About(
        benchmark=flow.name,
        source=f"runs of flow {flow.flow_id} on openml.org, by their uploaders' own set-ups",
        licence=OPENML_LICENCE,
        limits=(*plan.records, *left_out_limits(dropped, scarce)),
        contexts={str(task): size.context for task, size in sizes.items()},
        dropped=dropped,
        versions=versions_of("openml"),
    )
    table = _stored(flow, request, frame, about)
    command = request.command(flow.name, "--source openml")
    return _fit(plan, request, table, command, most=request.configurations or MOST)


def generate_from_evaluations(plan: FlowPlan, request: Request) -> Path:
    """Fit to existing raw evaluations."""
    if request.local is None:
        raise ExperimentError(
            f"source 'evaluations' of {plan.flow.name} needs a parquet file: {Option.LOCAL.value}"
        )
    flow = plan.flow
    table = read_raw(request.local, benchmark=flow.name, space=flow.space())
    if request.tasks is not None:
        table = table.select_tasks(request.tasks)
    local = f"{Option.LOCAL.value} {request.local.name}"
    command = request.command(flow.name, "--source evaluations", local)
    return _fit(plan, request, table, command, most=request.configurations or MOST)


def _beside(request: Request, what: str) -> Path:
    return request.folder.with_name(f"{request.folder.name}-{what}")


def _stored(flow: Flow, request: Request, frame: "pd.DataFrame", about: About) -> RawTable:
    """Write evaluations beside the artifact, and read them back."""
    path = _beside(request, "evaluations.parquet")
    write_raw(path, frame, about)
    return read_raw(path, benchmark=flow.name, space=flow.space())


def _data(flow: Flow, request: Request) -> dict[str, ClassificationData]:
    """Data sets by task: local ones, or else those of the paper's tasks from OpenML."""
    if request.local is None:
        tasks = request.tasks or tuple(map(str, flow.tasks))
        _numbers(tasks)
        return {task: openml_dataset(task) for task in tasks}
    offline = offline_datasets(request.local)
    for task in request.tasks or ():
        if task not in offline:
            raise UnknownNameError(f"task with a data set in {request.local}", task, offline)
    return {t: data for t, data in offline.items() if request.tasks is None or t in request.tasks}


def _numbers(tasks: Sequence[str]) -> tuple[int, ...]:
    """OpenML's ids as numbers."""
    for task in tasks:
        if not task.isdecimal():
            raise ExperimentError(f"names of OpenML's tasks must be numbers, but got {task!r}")
    return tuple(map(int, tasks))


def _context(data: ClassificationData) -> dict[str, float]:
    rows, inputs = data.x.shape
    size = DataSize(rows, inputs, int(np.bincount(data.y).max()))
    return size.context | {LANDMARK: naive_bayes_auc(data)}


def _frequent(frame: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """The evaluations of tasks with enough setups, and the names of the other tasks."""
    setups = frame.groupby("task")["training"].nunique()
    scarce = sorted(setups.index[setups < FOLDS])
    return frame[~frame["task"].isin(scarce)], scarce


def _fit(
    plan: FlowPlan, request: Request, table: RawTable, command: str, *, most: int | None = None
) -> Path:
    """Fit surrogates to raw evaluations and write the artifact; return its folder."""
    flow = plan.flow
    evaluations = {
        name: raw if most is None else _some(raw, most, [request.seed, *name.encode()])
        for name, raw in table.tasks.items()
    }
    reduced = [name for name in evaluations if len(evaluations[name]) < len(table.tasks[name])]
    limits = [paper_limit(flow, list(evaluations)), *table.about.limits]
    if reduced:
        limits.append(f"Fitted to {most} random evaluations alone of tasks {', '.join(reduced)}.")
    return write_per_task(
        request,
        _definition(flow, table),
        list(evaluations.values()),
        CardTexts(source=table.about.source, limits=limits, command=command, summaries=SURROGATES),
        coding=plan.coding(),
        recipe=RECIPE,
    )


def _some(evaluations: RawEvaluations, most: int, seed: Sequence[int]) -> RawEvaluations:
    n = len(evaluations)
    rows = np.sort(np.random.default_rng(seed).choice(n, min(most, n), replace=False))
    return RawEvaluations(
        evaluations.values[rows],
        evaluations.objective[rows],
        evaluations.spread[rows],
        evaluations.training[rows],
    )


def _definition(flow: Flow, table: RawTable) -> Definition:
    tasks = []
    for name in table.tasks:
        context = table.about.contexts.get(name, {})
        if not set(CONTEXT) <= set(context) <= {*CONTEXT, LANDMARK}:
            raise ArtifactError(
                f"the evaluations of task {name} need the context {', '.join(CONTEXT)}; they have "
                f"{', '.join(context) or 'none'}"
            )
        tasks.append(TaskDefinition(name, context))
    return flow.definition(tasks, source=table.about.source, licence=table.about.licence)


def _sources(plan: FlowPlan) -> dict[str, EvaluationSource]:
    fitting = frozenset({Option.SEED, Option.WORKERS, Option.CONFIGURATIONS, Option.TASKS})
    openml = EvaluationSource(
        "Downloads OpenML's public records; --configs is the most that are fitted to a task.",
        fitting,
        partial(generate_from_openml, plan),
        min_configurations=FOLDS,
    )
    evaluations = EvaluationSource(
        "Fits to raw evaluations; --from takes their parquet file, --configs as for openml.",
        fitting | {Option.LOCAL},
        partial(generate_from_evaluations, plan),
        min_configurations=FOLDS,
    )
    if plan.training is None:
        return {"openml": openml, "evaluations": evaluations}
    train = EvaluationSource(
        "Trains; --from takes a folder of data sets, TASK_NAME.csv; --configs counts trainings.",
        fitting | {Option.LOCAL},
        partial(generate_by_training, plan, plan.training),
        min_configurations=FOLDS,
    )
    return {"train": train, "openml": openml, "evaluations": evaluations}


GENERATORS = tuple(
    Generator(
        plan.flow.name, _sources(plan), home=artifacts_folder if plan.training else local_folder
    )
    for plan in PLANS
)
