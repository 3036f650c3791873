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
    """Code configurations of XGBoost as inputs of a forest, with ratios of hyperparameters.

    A tree gets a share of the rows, `subsample`. Whether these are enough for it to split at all
    depends on the ratios of `subsample` with `min_child_weight` and with `alpha`, so the AUC jumps
    at certain ratios. Each ratio is an input five times, since an extra tree tries one random
    threshold per input: with more of them it finds the jump.
    """
    ratios = [("subsample", "min_child_weight"), ("alpha", "subsample")]
    five_times = 5 * ratios
    return space_coding(XGBOOST.space(), products=[("eta", "nrounds")], ratios=five_times)


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
    """Describe for the card of a benchmark how its evaluations were trained, in two sentences."""
    return (
        "The evaluations are our own, not OpenML's public records of the flow; these are had by: "
        f"hpobench-ordered generate {benchmark} --source openml.",
        f"AUC is the mean over {TRAINING_FOLDS} stratified folds, the same for every "
        "configuration: there is no noise between repetitions.",
    )


def describe_stopped(frame: "pd.DataFrame") -> tuple[str, ...]:
    """Describe for the card how many trainings were stopped by the limit on iterations.

    Tasks with many of them are named, the most first. If no training was stopped, there is nothing
    to describe, and the result is empty.

    Args:
        frame: The evaluations; `capped` says whether the solver was stopped.
    """
    share = float(frame["capped"].mean())
    if share == 0:
        return ()

    share_of_task = frame.groupby("task")["capped"].mean().sort_values(ascending=False)
    tasks_with_many = share_of_task[share_of_task >= NAMED_SHARE]
    tasks = [f"{task} {task_share:.0%}" for task, task_share in tasks_with_many.items()]
    where = f", most on tasks {', '.join(tasks)}" if tasks else ""
    return (
        f"In {share:.0%} of the evaluations the solver was stopped{where}. There the AUC is no "
        "smooth function of the hyperparameters, and forests follow it least.",
    )


def describe_data(data: Mapping[str, ClassificationData], folder: Path | None) -> list[str]:
    """Return sentences for the card that say which data sets the tasks have.

    All are named. Data sets that are neither OpenML's nor the user's are described, too: these are
    scikit-learn's breast cancer data and the generated MONK's problems, which stand in where a
    folder of local data sets has no file of their tasks.

    Args:
        data: The data sets, by task.
        folder: Folder of the local data sets; None if all data sets are from OpenML.
    """
    names = ", ".join(f"{task} {data_set.name}" for task, data_set in data.items())
    sentences = [f"Tasks and their data sets: {names}."]
    if folder is None:
        return sentences

    for task in (BREAST_CANCER_TASK, *MONKS_TASKS):
        is_local = any(folder.glob(f"{task}_*.csv"))
        if task in data and not is_local:
            sentences.append(f"Task {task} is {data[task].description}.")
    return sentences


def describe_left_out(dropped: Mapping[str, int], scarce: Sequence[str]) -> list[str]:
    """Describe for the card which of OpenML's records are left out; empty if none are.

    Args:
        dropped: Number of records that were left out for each reason, by the reason in words.
        scarce: Tasks that were left out, as they have too few setups for cross-validation.
    """
    limits = []
    counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count > 0)
    if counts:
        limits.append(f"Records left out: {counts}.")
    if scarce:
        limits.append(f"Tasks left out, with fewer than {FOLDS} setups: {', '.join(scarce)}.")
    return limits


def compare_with_paper(flow: Flow, tasks: Sequence[str]) -> str:
    """Describe for the card which of the paper's tasks a benchmark has, and which others.

    Args:
        flow: The flow.
        tasks: Names of the benchmark's tasks, which are OpenML's numbers for tasks of the paper.
    """
    if flow is RANGER:
        return "The paper does not list this flow's tasks; those of XGBoost are its default."

    tasks_of_paper = [task for task in tasks if task.isdecimal() and int(task) in flow.tasks]
    others = [task for task in tasks if task not in tasks_of_paper]
    suffix = f"; not the paper's: {', '.join(others)}" if others else ""
    return (
        f"Has {len(tasks_of_paper)} of the paper's {len(flow.tasks)} tasks: "
        f"{', '.join(tasks_of_paper)}{suffix}."
    )
