"""Artifacts of fitted surrogates with their quality cards, for generators and `save`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.data.raw_evaluations import RawEvaluations, count_distinct
from hpobench_ordered.surrogates.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.surrogates.card import Card, versions_of
from hpobench_ordered.surrogates.pipeline import BenchmarkFit


@dataclass(frozen=True, kw_only=True)
class CardTexts:
    """The texts of a quality card, and further comparisons."""

    source: str
    limits: Sequence[str]
    summaries: Mapping[str, str]
    command: str = ""
    comparisons: Mapping[str, Any] = field(default_factory=dict)


def write_surrogates(
    folder: Path,
    surrogates: Mapping[str, BenchmarkFit],
    report: CardTexts,
    *,
    evaluations: Sequence[RawEvaluations] | None = None,
    runs: Sequence[RawEvaluations] | None = None,
) -> Path:
    """Write the artifact of a benchmark with a quality card; return its folder.

    The card is that of the default surrogate, and compares the others with it.

    Args:
        folder: Folder of the artifact.
        surrogates: The fitted surrogates by name, the default one first.
        report: Texts of the card.
        evaluations: Evaluations of each task to store; None to store none.
        runs: Evaluations of each task that a method made, to store as history; None for none.
    """
    bundled = [
        BundledSurrogate(name, report.summaries[name], fit.model, fit.best_values)
        for name, fit in surrogates.items()
    ]
    (default_name, fit), *others = surrogates.items()
    comparisons = {
        comparison_name(name): _describe_other(other, default_name) for name, other in others
    }
    if evaluations is None:
        values = [task_fit.values for task_fit in fit.fits]
        n_evaluations = sum(task_fit.targets.size for task_fit in fit.fits)
    else:
        values = [raw.values for raw in evaluations]
        n_evaluations = sum(len(raw) for raw in evaluations)
    card = Card(
        benchmark=fit.defined.name,
        surrogate=fit.model.kind,
        source=report.source,
        licence=fit.defined.provenance.licence,
        evaluations=n_evaluations,
        configurations=count_distinct(np.concatenate(values)),
        folds=fit.folds,
        figures=fit.figures,
        limits=tuple(report.limits),
        command=report.command,
        versions=versions_of("hpobench-ordered", "numpy", "scikit-learn"),
        seed=fit.seed,
        comparisons={**report.comparisons, **comparisons},
    )
    write_bundle(folder, fit.defined, bundled, card, evaluations=evaluations, runs=runs)
    return folder


def comparison_name(surrogate: str) -> str:
    """Name the comparison with another surrogate on a card."""
    return f"surrogate {surrogate}"


def _describe_other(fit: BenchmarkFit, default_name: str) -> dict[str, Any]:
    """Describe the quality of another surrogate than the default one, for the default's card.

    Args:
        fit: The other surrogate, with its cross-validated figures of each task.
        default_name: Name of the default surrogate, such as "forest".
    """
    worst_r2 = min(quality.r2 for quality in fit.figures)
    figures_of_task = {
        quality.name: {"r2": quality.r2, "spearman": quality.spearman} for quality in fit.figures
    }
    return {
        "explanation": f"cross-validated as the {default_name}s; worst task: R2 {worst_r2:.3f}",
        "tasks": figures_of_task,
    }
