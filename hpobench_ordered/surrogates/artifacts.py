"""Artifacts of fitted surrogates with their quality cards, for generators and `save`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.data.raw_evaluations import RawEvaluations, count_distinct
from hpobench_ordered.surrogates.base import StoredSurrogate
from hpobench_ordered.surrogates.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.surrogates.card import Card, find_versions
from hpobench_ordered.surrogates.pipeline import BenchmarkFit


@dataclass(frozen=True, kw_only=True)
class CardTexts:
    """The texts of a quality card, and further comparisons.

    Attributes:
        source: Origin of the evaluations, in words.
        limits: Known limits of the surrogate, a sentence each.
        summaries: One line on each surrogate, by name.
        command: The command that makes the artifact.
        comparisons: Comparisons with other models, as JSON, by name.
    """

    source: str
    limits: Sequence[str]
    summaries: Mapping[str, str]
    command: str = ""
    comparisons: Mapping[str, Any] = field(default_factory=dict)


def write_surrogates(
    folder: Path,
    surrogates: Mapping[str, BenchmarkFit],
    texts: CardTexts,
    *,
    evaluations: Sequence[RawEvaluations] | None = None,
    runs: Sequence[RawEvaluations] | None = None,
    costs: StoredSurrogate | None = None,
) -> Path:
    """Write the artifact of a benchmark with a quality card; return its folder.

    The card describes the default surrogate, and compares the other surrogates with it.

    Args:
        folder: Folder of the artifact.
        surrogates: The fitted surrogates by name, the default one first.
        texts: Texts of the card.
        evaluations: Evaluations of each task to store; None to store none.
        runs: Evaluations of each task that a method made, to store as history; None for none.
        costs: Predicts the seconds that an evaluation takes; None to store none.
    """
    bundled = [
        BundledSurrogate(name, texts.summaries[name], fit.model, fit.best_values)
        for name, fit in surrogates.items()
    ]

    (default_name, default_fit), *other_surrogates = surrogates.items()
    card = _make_card(default_fit, texts, evaluations)
    comparisons = dict(card.comparisons)
    for name, fit in other_surrogates:
        comparisons[f"surrogate {name}"] = _describe_quality(fit, default_name)
    card = replace(card, comparisons=comparisons)

    write_bundle(
        folder,
        default_fit.definition,
        bundled,
        card,
        evaluations=evaluations,
        runs=runs,
        costs=costs,
    )
    return folder


def _make_card(
    fit: BenchmarkFit, texts: CardTexts, evaluations: Sequence[RawEvaluations] | None
) -> Card:
    """Make the quality card of a benchmark, about its default surrogate.

    Args:
        fit: The default surrogate.
        texts: Texts of the card.
        evaluations: Evaluations of each task that are stored with the surrogate, which the card
            counts. None if none are stored: the card then counts the evaluations that the
            surrogate was fitted to.
    """
    if evaluations is None:
        configurations = [task_fit.values for task_fit in fit.fits]
        n_evaluations = sum(task_fit.targets.size for task_fit in fit.fits)
    else:
        configurations = [raw.values for raw in evaluations]
        n_evaluations = sum(len(raw) for raw in evaluations)
    return Card(
        benchmark=fit.definition.name,
        surrogate=fit.model.kind,
        source=texts.source,
        licence=fit.definition.provenance.licence,
        evaluations=n_evaluations,
        configurations=count_distinct(np.concatenate(configurations)),
        folds=fit.folds,
        figures=fit.quality_of_tasks,
        limits=tuple(texts.limits),
        command=texts.command,
        versions=find_versions("hpobench-ordered", "numpy", "scikit-learn"),
        seed=fit.seed,
        comparisons=texts.comparisons,
    )


def _describe_quality(fit: BenchmarkFit, default_name: str) -> dict[str, Any]:
    """Describe as JSON how good a surrogate is that is not the default one of its benchmark.

    The card of the benchmark is about the default surrogate; this description is added to it, so
    that readers can compare both.

    Args:
        fit: The surrogate that is not the default one.
        default_name: Name of the default surrogate, such as "forest". The description says that
            this surrogate was cross-validated in the same way as the default one.
    """
    worst_r2 = min(quality.r2 for quality in fit.quality_of_tasks)
    measures_of_task = {}
    for quality in fit.quality_of_tasks:
        measures_of_task[quality.name] = {"r2": quality.r2, "spearman": quality.spearman}
    return {
        "explanation": f"cross-validated as the {default_name}s; worst task: R2 {worst_r2:.3f}",
        "tasks": measures_of_task,
    }
