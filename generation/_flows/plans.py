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
from hpobench_ordered.generation._openml.tasks import DataSize, ranger_converters, svm_converters
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.pipeline import FOLDS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Training:
    """How a flow is trained here."""

    learner: FlowLearner
    count: int
    limits: tuple[str, ...]


@dataclass(frozen=True)
class FlowPlan:
    """How a flow's artifact is made."""

    flow: Flow
    coding: Callable[[], Coding]
    converters: Callable[[Mapping[int, DataSize]], Mapping[str, Converter]]
    records: tuple[str, ...]
    training: Training | None = None


def _xgboost_coding() -> Coding:
    """The ratios tell whether a tree can split at all: of all rows it gets a share, `subsample`.

    They decide much, by sharp edges. Features are repeated since an extra tree tries one random
    threshold a feature.
    """
    ratios = [("subsample", "min_child_weight"), ("alpha", "subsample")]
    return space_coding(XGBOOST.space(), products=[("eta", "nrounds")], ratios=5 * ratios)


PLANS = (
    FlowPlan(
        SVM,
        lambda: space_coding(SVM.space(), products=[("cost", "gamma")]),
        svm_converters,
        records=(
            "Where a record names no gamma, it is one over the number of columns, about e1071's "
            "default.",
        ),
        training=Training(
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
        _xgboost_coding,
        lambda sizes: {},
        records=(),
        training=Training(
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
        ranger_converters,
        records=(
            "mtry and min.node.size are recorded as whole numbers, and are here turned back into "
            "the fraction and the exponent that they were drawn as.",
        ),
    ),
)

OFTEN = 0.2
"""Smallest share of stopped trainings for which a task is named."""


def training_limits(benchmark: str) -> tuple[str, ...]:
    """How the evaluations were trained."""
    return (
        "The evaluations are our own, not OpenML's public records of the flow; these are had by: "
        f"hpobench-ordered generate {benchmark} --source openml.",
        f"AUC is the mean over {TRAINING_FOLDS} stratified folds, the same for every "
        "configuration: there is no noise between repetitions.",
    )


def stopped_limit(frame: "pd.DataFrame") -> tuple[str, ...]:
    """How many trainings were stopped, and on which tasks; empty if none."""
    share = float(frame["capped"].mean())
    if not share:
        return ()
    by_task = frame.groupby("task")["capped"].mean().sort_values(ascending=False)
    often = [f"{task} {part:.0%}" for task, part in by_task.items() if part >= OFTEN]
    where = f", most on tasks {', '.join(often)}" if often else ""
    return (
        f"In {share:.0%} of the evaluations the solver was stopped{where}. There the AUC is no "
        "smooth function of the hyperparameters, and forests follow it least.",
    )


def data_limits(data: Mapping[str, ClassificationData], folder: Path | None) -> list[str]:
    """Names of the data sets by task, and descriptions of those that were made here.

    There are such only with local data sets: `folder` is None if all are from OpenML.
    """
    names = ", ".join(f"{task} {dataset.name}" for task, dataset in data.items())
    made = [
        f"Task {task} is {data[task].description}."
        for task in (BREAST_CANCER_TASK, *MONKS_TASKS)
        if task in data and folder is not None and not any(folder.glob(f"{task}_*.csv"))
    ]
    return [f"Tasks and their data sets: {names}.", *made]


def left_out_limits(dropped: Mapping[str, int], scarce: Sequence[str]) -> list[str]:
    """Number of OpenML's records left out, by reason, and tasks with too few setups."""
    counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
    limits = [f"Records left out: {counts}."] if counts else []
    if scarce:
        limits.append(f"Tasks left out, with fewer than {FOLDS} setups: {', '.join(scarce)}.")
    return limits


def paper_limit(flow: Flow, tasks: Sequence[str]) -> str:
    """How the tasks compare with the paper's."""
    if flow is RANGER:
        return "The paper does not list this flow's tasks; those of XGBoost are its default."
    papers = [task for task in tasks if task.isdecimal() and int(task) in flow.tasks]
    others = [task for task in tasks if task not in papers]
    beyond = f"; not the paper's: {', '.join(others)}" if others else ""
    return f"Has {len(papers)} of the paper's {len(flow.tasks)} tasks: {', '.join(papers)}{beyond}."
