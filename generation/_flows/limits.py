"""Known limits on the cards of the OpenML flows, one sentence each."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.benchmarks._openml_data import MONKS_TASKS, ClassificationData
from hpobench_ordered.benchmarks.openml_flows import RANGER, Flow
from hpobench_ordered.generation._flows.datasets import BREAST_CANCER_TASK
from hpobench_ordered.generation._flows.datasets import FOLDS as TRAINING_FOLDS
from hpobench_ordered.surrogates.pipeline import FOLDS

if TYPE_CHECKING:
    import pandas as pd


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
