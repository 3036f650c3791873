"""How the artifacts of the OpenML flows are made, one plan per flow, and limits on their cards."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.benchmarks._openml_data import MONKS_TASKS, ClassificationData
from hpobench_ordered.benchmarks.openml_flows import RANGER, SVM, XGBOOST, Flow
from hpobench_ordered.generation._flows import training
from hpobench_ordered.generation._flows.datasets import BREAST_CANCER_TASK
from hpobench_ordered.generation._flows.datasets import FOLDS as TRAINING_FOLDS
from hpobench_ordered.generation._flows.training import SOLVER_WORK, FlowLearner
from hpobench_ordered.generation._openml.setups import Converter
from hpobench_ordered.generation._openml.tasks import (
    DataSize,
    make_ranger_converters,
    make_svm_converters,
)
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.pipeline import FOLDS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TrainingPlan:
    """How a flow is trained here.

    Attributes:
        learner: The learner, and its configurations.
        configurations: Number of configurations.
        limits: Limits of the benchmark for its card.
    """

    learner: FlowLearner
    configurations: int
    limits: tuple[str, ...]


@dataclass(frozen=True)
class FlowPlan:
    """How a flow's artifact is made.

    Attributes:
        flow: The flow.
        make_coding: How configurations are coded as inputs of the forest.
        make_converters: Converters of recorded numbers, by hyperparameter, given the data's sizes.
        limits_of_records: Limits for the card if the evaluations are OpenML's.
        training: How the flow is trained here; None if it is not.
    """

    flow: Flow
    make_coding: Callable[[], Coding]
    make_converters: Callable[[Mapping[int, DataSize]], Mapping[str, Converter]]
    limits_of_records: tuple[str, ...]
    training: TrainingPlan | None = None


def _make_xgboost_coding() -> Coding:
    """Code configurations of XGBoost, with ratios of hyperparameters as further inputs.

    A tree gets a share of the rows, `subsample`. Whether these are enough for it to split at all
    depends on the ratios of `subsample` with `min_child_weight` and with `alpha`, so the AUC jumps
    at certain ratios. Each ratio is an input five times, since an extra tree tries one random
    threshold per input: with more of them it finds the jump.
    """
    ratios = [("subsample", "min_child_weight"), ("alpha", "subsample")]
    return space_coding(XGBOOST.space(), products=[("eta", "nrounds")], ratios=5 * ratios)


PLANS = (
    FlowPlan(
        SVM,
        lambda: space_coding(SVM.space(), products=[("cost", "gamma")]),
        make_svm_converters,
        limits_of_records=(
            "Where a record names no gamma, it is one over the number of columns, about e1071's "
            "default.",
        ),
        training=TrainingPlan(
            training.SVM,
            640,
            (
                "libsvm by scikit-learn instead of R's e1071; inputs are standardised in every "
                f"fold, and the solver stops after {SOLVER_WORK:,} / n iterations for n rows.",
            ),
        ),
    ),
    FlowPlan(
        XGBOOST,
        _make_xgboost_coding,
        lambda sizes: {},
        limits_of_records=(),
        training=TrainingPlan(
            training.XGBOOST,
            256,
            (
                "XGBoost with the settings of R's 0.6-4, but for splits among histograms and "
                "coordinate descent for linear models.",
                "Every training is evaluated after four numbers of rounds, a fifth of the "
                "trainings are of linear models. Few trainings cover ten hyperparameters sparsely: "
                "forests are least exact where the AUC depends on interactions of many, and "
                "nearest neighbours are far.",
            ),
        ),
    ),
    FlowPlan(
        RANGER,
        lambda: space_coding(RANGER.space()),
        make_ranger_converters,
        limits_of_records=(
            "mtry and min.node.size are recorded as whole numbers, and are here turned back into "
            "the fraction and the exponent that they were drawn as.",
        ),
    ),
)

NAMED_SHARE = 0.2
"""Smallest share of stopped trainings for which a task is named."""


def describe_training(benchmark: str) -> tuple[str, ...]:
    """Describe how the evaluations were trained."""
    return (
        "The evaluations are our own, not OpenML's public records of the flow; these are had by: "
        f"hpobench-ordered generate {benchmark} --source openml.",
        f"AUC is the mean over {TRAINING_FOLDS} stratified folds, the same for every "
        "configuration: there is no noise between repetitions.",
    )


def describe_stopped(frame: "pd.DataFrame") -> tuple[str, ...]:
    """Describe how many trainings were stopped, and on which tasks; empty if none."""
    share = float(frame["capped"].mean())  # "capped": whether the solver was stopped
    if share == 0:
        return ()

    share_of_task = frame.groupby("task")["capped"].mean().sort_values(ascending=False)
    tasks = [
        f"{task} {task_share:.0%}"
        for task, task_share in share_of_task.items()
        if task_share >= NAMED_SHARE
    ]
    where = f", most on tasks {', '.join(tasks)}" if tasks else ""
    return (
        f"In {share:.0%} of the evaluations the solver was stopped{where}. There the AUC is no "
        "smooth function of the hyperparameters, and forests follow it least.",
    )


def describe_data(data: Mapping[str, ClassificationData], folder: Path | None) -> list[str]:
    """Name the data sets by task, and describe those that are neither OpenML's nor local.

    Of these there are scikit-learn's breast cancer data and generated MONK's problems. They stand
    in where a folder of local data sets lacks them.

    Args:
        data: The data sets by task.
        folder: Folder of the local data sets; None if all data sets are from OpenML.
    """
    names = ", ".join(f"{task} {dataset.name}" for task, dataset in data.items())
    limits = [f"Tasks and their data sets: {names}."]
    if folder is None:
        return limits

    for task in (BREAST_CANCER_TASK, *MONKS_TASKS):
        is_local = any(folder.glob(f"{task}_*.csv"))
        if task in data and not is_local:
            limits.append(f"Task {task} is {data[task].description}.")
    return limits


def describe_left_out(dropped: Mapping[str, int], scarce: Sequence[str]) -> list[str]:
    """Describe OpenML's records left out, by reason, and tasks with too few setups."""
    limits = []
    counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    if counts:
        limits.append(f"Records left out: {counts}.")
    if scarce:
        limits.append(f"Tasks left out, with fewer than {FOLDS} setups: {', '.join(scarce)}.")
    return limits


def compare_with_paper(flow: Flow, tasks: Sequence[str]) -> str:
    """Describe for the card how many of the paper's tasks these are, by OpenML's numbers."""
    if flow is RANGER:
        return "The paper does not list this flow's tasks; those of XGBoost are its default."

    tasks_of_paper = [task for task in tasks if task.isdecimal() and int(task) in flow.tasks]
    others = [task for task in tasks if task not in tasks_of_paper]
    suffix = f"; not the paper's: {', '.join(others)}" if others else ""
    return (
        f"Has {len(tasks_of_paper)} of the paper's {len(flow.tasks)} tasks: "
        f"{', '.join(tasks_of_paper)}{suffix}."
    )
