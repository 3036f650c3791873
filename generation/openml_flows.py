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
from hpobench_ordered.data.benchmark import Definition, TaskDefinition
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.generation._fitting import write_per_task
from hpobench_ordered.generation._flows.datasets import FOLDS as TRAINING_FOLDS
from hpobench_ordered.generation._flows.datasets import (
    compute_naive_bayes_auc,
    download_dataset,
    read_offline_datasets,
)
from hpobench_ordered.generation._flows.plans import (
    PLANS,
    FlowPlan,
    TrainingPlan,
    compare_with_paper,
    describe_data,
    describe_left_out,
    describe_stopped,
    describe_training,
)
from hpobench_ordered.generation._flows.training import train_flow
from hpobench_ordered.generation._openml.records import download_records
from hpobench_ordered.generation._openml.setups import MLR_DEFAULTS, MlrSetups
from hpobench_ordered.generation._openml.tasks import DataSize, look_up_data_sizes
from hpobench_ordered.generation._raw import About, RawTable, read_raw, write_raw
from hpobench_ordered.generation.base import (
    EvaluationSource,
    Generator,
    Option,
    Request,
    artifacts_folder,
)
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS

if TYPE_CHECKING:
    import pandas as pd

FOREST_RECIPE = ForestRecipe(trees=40, min_samples_leaf=1)
"""Down to single evaluations, which are few and hold no noise between repetitions. A forest per
task makes many trees: with 40 instead of 60, R2 is lower by 0.001."""
EVALUATIONS_PER_TASK = 4000
"""Evaluations a task that surrogates are fitted to unless asked otherwise: records are many more,
almost a million of the SVM's."""


def generate_by_training(plan: FlowPlan, training: TrainingPlan, request: Request) -> Path:
    """Train the flow's learner on data sets, then fit surrogates and write the artifact."""
    data = _load_data_sets(plan.flow, request)
    frame = train_flow(
        training.learner,
        data,
        n=request.configurations or training.configurations,
        seed=request.seed,
        folder=request.path_beside("trainings"),
        workers=request.workers,
        progress=request.progress,
        space=plan.flow.space(),
    )
    about = About(
        benchmark=plan.flow.name,
        source=f"own trainings, {TRAINING_FOLDS}-fold cross-validation",
        licence="Apache-2.0",
        limits=(
            *describe_training(plan.flow.name),
            *training.limits,
            *describe_stopped(frame),
            *describe_data(data, request.local),
        ),
        contexts={task: _describe_context(data_set) for task, data_set in data.items()},
    )
    table = _store_evaluations(plan.flow, request, frame, about)
    # The command on the card has DATA in place of the user's own folder.
    local_words = () if request.local is None else (f"{Option.LOCAL.value} DATA",)
    command = request.command(plan.flow.name, "--source train", *local_words)
    return _fit_and_write(plan, request, table, command)


def generate_from_openml(plan: FlowPlan, request: Request) -> Path:
    """Download OpenML's records of the flow, then fit surrogates and write the artifact."""
    flow = plan.flow
    tasks = flow.tasks if request.tasks is None else _parse_task_ids(request.tasks)
    sizes = look_up_data_sizes(tasks, progress=request.progress)
    space = flow.space()
    setups = MlrSetups(
        space, defaults=MLR_DEFAULTS[flow.flow_id], converters=plan.make_converters(sizes)
    )
    records = download_records(
        flow_id=flow.flow_id,
        tasks=tasks,
        space=space,
        folder=request.path_beside("records"),
        setups=setups,
        progress=request.progress,
    )
    frame, scarce_tasks = _drop_scarce_tasks(records.frame)
    if not len(frame):
        raise ExperimentError(
            f"no task has {FOLDS} setups of flow {flow.flow_id} with evaluations, of {list(tasks)}"
        )
    dropped = {reason.value: count for reason, count in records.dropped.items()}
    about = About(
        benchmark=flow.name,
        source=f"runs of flow {flow.flow_id} on openml.org, by their uploaders' own set-ups",
        licence=OPENML_LICENCE,
        limits=(*plan.limits_of_records, *describe_left_out(dropped, scarce_tasks)),
        contexts={str(task): size.context for task, size in sizes.items()},
    )
    table = _store_evaluations(flow, request, frame, about)
    command = request.command(flow.name, "--source openml")
    return _fit_and_write(
        plan,
        request,
        table,
        command,
        # From this source, the option for configurations limits the evaluations of each task.
        max_evaluations=request.configurations or EVALUATIONS_PER_TASK,
    )


def generate_from_evaluations(plan: FlowPlan, request: Request) -> Path:
    """Fit surrogates to existing raw evaluations of a flow, a learner, and write the artifact."""
    if request.local is None:
        raise ExperimentError(
            f"source 'evaluations' of {plan.flow.name} needs a parquet file: {Option.LOCAL.value}"
        )
    flow = plan.flow
    table = read_raw(request.local, benchmark=flow.name, space=flow.space())
    if request.tasks is not None:
        table = table.select_tasks(request.tasks)
    local_words = f"{Option.LOCAL.value} {request.local.name}"  # without its folder
    command = request.command(flow.name, "--source evaluations", local_words)
    return _fit_and_write(
        plan,
        request,
        table,
        command,
        # From this source, the option for configurations limits the evaluations of each task.
        max_evaluations=request.configurations or EVALUATIONS_PER_TASK,
    )


def _store_evaluations(
    flow: Flow, request: Request, frame: "pd.DataFrame", about: About
) -> RawTable:
    """Write evaluations beside the artifact, and read them back, which also checks them.

    Args:
        flow: The flow.
        request: Folder of the artifact.
        frame: The evaluations, one in each row.
        about: Their metadata.
    """
    path = request.path_beside("evaluations.parquet")
    write_raw(path, frame, about)
    return read_raw(path, benchmark=flow.name, space=flow.space())


def _load_data_sets(flow: Flow, request: Request) -> dict[str, ClassificationData]:
    """Load the data sets by task: from a local folder if the request has one, else from OpenML.

    If the request names no tasks, they are all of the folder, or those of the paper.
    """
    if request.local is None:
        tasks = request.tasks or tuple(map(str, flow.tasks))
        _parse_task_ids(tasks)  # checks the names, to fail before any download
        return {task: download_dataset(task) for task in tasks}

    local_data_sets = read_offline_datasets(request.local)
    if request.tasks is None:
        return local_data_sets
    for task in request.tasks:
        if task not in local_data_sets:
            raise UnknownNameError(
                f"task with a data set in {request.local}", task, local_data_sets
            )
    return {task: data for task, data in local_data_sets.items() if task in request.tasks}


def _parse_task_ids(tasks: Sequence[str]) -> tuple[int, ...]:
    """Parse names of OpenML's tasks as numbers.

    Raises:
        ExperimentError: One of them is no number.
    """
    for task in tasks:
        if not task.isdecimal():
            raise ExperimentError(f"names of OpenML's tasks must be numbers, but got {task!r}")
    return tuple(map(int, tasks))


def _describe_context(data: ClassificationData) -> dict[str, float]:
    """Compute a task's context: the size of its data set, and the AUC of naive Bayes on it."""
    rows, inputs = data.x.shape
    rows_of_classes = np.bincount(data.y)
    size = DataSize(rows, inputs, majority=int(rows_of_classes.max()))
    return size.context | {LANDMARK: compute_naive_bayes_auc(data)}


def _drop_scarce_tasks(frame: "pd.DataFrame") -> tuple["pd.DataFrame", list[str]]:
    """Drop the evaluations of tasks with too few setups for cross-validation.

    Returns:
        The other evaluations, and the names of the dropped tasks.
    """
    # The column "training" has the number of the setup, OpenML's word for a configuration.
    number_of_setups = frame.groupby("task")["training"].nunique()
    is_scarce = number_of_setups < FOLDS  # every fold of the cross-validation needs one
    scarce_tasks = sorted(number_of_setups.index[is_scarce])
    is_dropped = frame["task"].isin(scarce_tasks)
    return frame[~is_dropped], scarce_tasks


def _fit_and_write(
    plan: FlowPlan,
    request: Request,
    table: RawTable,
    command: str,
    *,
    max_evaluations: int | None = None,
) -> Path:
    """Fit surrogates to raw evaluations and write the artifact; return its folder.

    Args:
        plan: How the flow's artifact is made.
        request: The request.
        table: The evaluations.
        command: The command that made them, for the card.
        max_evaluations: Most evaluations of a task that are used; default: all.
    """
    flow = plan.flow
    evaluations = dict(table.tasks)
    limits = [compare_with_paper(flow, list(evaluations)), *table.about.limits]
    if max_evaluations is not None:
        reduced = [name for name, raw in table.tasks.items() if len(raw) > max_evaluations]
        for name in reduced:
            # By the task's name, so that it does not matter which other tasks there are.
            rng = np.random.default_rng([request.seed, *name.encode()])
            evaluations[name] = _choose_evaluations(table.tasks[name], max_evaluations, rng)
        if reduced:
            limits.append(
                f"Fitted to {max_evaluations} random evaluations alone of tasks "
                f"{', '.join(reduced)}."
            )
    report = CardTexts(
        source=table.about.source,
        limits=limits,
        command=command,
        summaries=SURROGATES,  # one line on each surrogate, by name
    )
    return write_per_task(
        request,
        _define(flow, table),
        list(evaluations.values()),
        report,
        coding=plan.make_coding(),
        recipe=FOREST_RECIPE,
    )


def _choose_evaluations(
    evaluations: RawEvaluations, number: int, rng: np.random.Generator
) -> RawEvaluations:
    """Choose a number of evaluations at random, and return them in the order that they have."""
    rows = np.sort(rng.choice(len(evaluations), number, replace=False))
    return RawEvaluations(
        evaluations.values[rows],
        evaluations.objective[rows],
        evaluations.spread[rows],
        evaluations.training[rows],
    )


def _define(flow: Flow, table: RawTable) -> Definition:
    """Define the benchmark of all tasks of a table of evaluations.

    The context of a task describes its data set. It must have the numbers `CONTEXT` (rows, columns,
    share of the largest class), may have `LANDMARK` (the AUC of naive Bayes, which only trainings
    here compute), and nothing else.

    Raises:
        ArtifactError: The context of a task has other numbers.
    """
    required = set(CONTEXT)
    allowed = {*CONTEXT, LANDMARK}
    tasks = []
    for name in table.tasks:
        context = table.about.contexts.get(name, {})
        is_valid = required <= set(context) <= allowed
        if not is_valid:
            raise ArtifactError(
                f"the evaluations of task {name} need the context {', '.join(CONTEXT)}; they have "
                f"{', '.join(context) or 'none'}"
            )
        tasks.append(TaskDefinition(name, context))
    return flow.define(tasks, source=table.about.source, licence=table.about.licence)


def _make_sources(plan: FlowPlan) -> dict[str, EvaluationSource]:
    """Make the sources of a flow's evaluations, by name; the first is the default.

    These are trainings, if the flow has a plan of them, then OpenML's records, and then raw
    evaluations in a file.
    """
    options = frozenset({Option.SEED, Option.WORKERS, Option.CONFIGURATIONS, Option.TASKS})
    openml = EvaluationSource(
        "Downloads OpenML's public records; --configs is the most that are fitted to a task.",
        options,
        partial(generate_from_openml, plan),
        min_configurations=FOLDS,
    )
    evaluations = EvaluationSource(
        "Fits to raw evaluations; --from takes their parquet file, --configs as for openml.",
        options | {Option.LOCAL},
        partial(generate_from_evaluations, plan),
        min_configurations=FOLDS,
    )
    if plan.training is None:
        return {"openml": openml, "evaluations": evaluations}
    train = EvaluationSource(
        "Trains; --from takes a folder of data sets, TASK_NAME.csv; --configs counts trainings.",
        options | {Option.LOCAL},
        partial(generate_by_training, plan, plan.training),
        min_configurations=FOLDS,
    )
    return {"train": train, "openml": openml, "evaluations": evaluations}


GENERATORS = tuple(
    Generator(
        plan.flow.name,
        _make_sources(plan),
        home=artifacts_folder if plan.training else local_folder,
    )
    for plan in PLANS
)
