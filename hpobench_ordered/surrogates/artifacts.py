"""Artifacts of fitted surrogates with their quality cards, for generators and `save`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered.files.raw_evaluations import RawEvaluations, count_distinct
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
    """Write the artifact of a benchmark with a quality card; return its folder."""
    bundled = [
        BundledSurrogate(name, report.summaries[name], fit.model, fit.best_values)
        for name, fit in surrogates.items()
    ]
    (default, fit), *others = surrogates.items()
    compared = {comparison_name(name): _comparison(other, default) for name, other in others}
    if evaluations is None:
        values, n_evaluations = [f.values for f in fit.fits], sum(f.targets.size for f in fit.fits)
    else:
        values, n_evaluations = [raw.values for raw in evaluations], sum(map(len, evaluations))
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
        comparisons={**report.comparisons, **compared},
    )
    write_bundle(folder, fit.defined, bundled, card, evaluations=evaluations, runs=runs)
    return folder


def comparison_name(surrogate: str) -> str:
    """Name of the comparison with another surrogate on a card."""
    return f"surrogate {surrogate}"


def _comparison(fit: BenchmarkFit, default: str) -> dict[str, Any]:
    worst = min(quality.r2 for quality in fit.figures)
    return {
        "explanation": f"cross-validated as the {default}s; worst task: R2 {worst:.3f}",
        "tasks": {one.name: {"r2": one.r2, "spearman": one.spearman} for one in fit.figures},
    }
