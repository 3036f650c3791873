"""Quality cards: how well a surrogate predicts evaluations that it was not fitted to.

Notation:
    n   number of configurations
    T   number of outputs: tasks whose evaluations the surrogate was fitted to
    k   size of the best tenth, max(1, n // 10)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates import SurrogateType


def r_squared(truth: FloatArray, predicted: FloatArray) -> FloatArray:
    """Coefficient of determination of each output, (n, T) and (n, T) to (T,).

    For a constant true output it is 1 if predicted exactly, else minus infinity.
    """
    residual = np.sum((truth - predicted) ** 2, axis=0)
    total = np.sum((truth - truth.mean(axis=0)) ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = residual / total
    result: FloatArray = 1.0 - np.where(residual == 0.0, 0.0, share)
    return result


def rank_correlation(truth: FloatArray, predicted: FloatArray) -> FloatArray:
    """Spearman's correlation of each output, (n, T) and (n, T) to (T,); NaN if one is constant."""
    from scipy.stats import rankdata

    x, y = rankdata(truth, axis=0), rankdata(predicted, axis=0)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    with np.errstate(invalid="ignore"):
        result: FloatArray = np.sum(x * y, axis=0) / np.sqrt(
            np.sum(x * x, axis=0) * np.sum(y * y, axis=0)
        )
    return result


def top_decile_overlap(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Share of the true best k that are among the predicted best k; ties in the given order."""
    n = len(truth)
    k = max(1, n // 10)
    is_best = np.zeros((2, *truth.shape), dtype=np.bool_)
    for which, values in enumerate((truth, predicted)):
        order = np.argsort(direction.sign * values, axis=0, kind="stable")
        np.put_along_axis(is_best[which], order[:k], True, axis=0)
    result: FloatArray = is_best.all(axis=0).sum(axis=0) / k
    return result


def upper_half_correlation(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Spearman's correlation among the truly better half, (n, T) and (n, T) to (T,)."""
    order = np.argsort(direction.sign * truth, axis=0, kind="stable")[: max(2, len(truth) // 2)]
    better = (np.take_along_axis(values, order, axis=0) for values in (truth, predicted))
    return rank_correlation(*better)


@dataclass(frozen=True, slots=True)
class TaskQuality:
    """Cross-validated quality of one output (task)."""

    name: str
    r2: float
    spearman: float
    top_decile: float  # overlap of the true and the predicted best tenth
    upper_half: float | None = None  # Spearman in the better half; None in older cards


def measure_quality(
    truth: FloatArray, predicted: FloatArray, *, names: Sequence[str], direction: Direction
) -> tuple[TaskQuality, ...]:
    """Compute the figures of every output."""
    if truth.shape != predicted.shape:
        raise ValueError(f"predictions must have shape {truth.shape}, but got {predicted.shape}")
    columns = (
        r_squared(truth, predicted),
        rank_correlation(truth, predicted),
        top_decile_overlap(truth, predicted, direction=direction),
        upper_half_correlation(truth, predicted, direction=direction),
    )
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(TaskQuality(*row) for row in rows)


@dataclass(frozen=True)
class Card:
    """Everything a user should know before trusting a benchmark's surrogate."""

    benchmark: str
    surrogate: SurrogateType
    source: str  # in words, with address and revision
    licence: str  # of the evaluations
    evaluations: int  # that it was fitted to
    configurations: int  # distinct ones among them
    folds: int  # of the cross-validation; 0 for exact tables
    figures: tuple[TaskQuality, ...]
    limits: tuple[str, ...]  # one sentence each
    command: str
    versions: Mapping[str, str]  # by package
    seed: int | None = None  # of folds, trees and searches; None if nothing is random
    size: int = 0  # bytes of the stored arrays, set when they are written
    comparisons: Mapping[str, Any] = field(default_factory=dict)  # with other surrogates, as JSON

    def to_json(self) -> dict[str, Any]:
        """The card as JSON; non-finite numbers become strings such as "nan"."""
        return {
            **{f.name: getattr(self, f.name) for f in fields(self)},
            "surrogate": self.surrogate.name,
            "figures": [_plain(asdict(output)) for output in self.figures],
            "limits": list(self.limits),
            "versions": dict(self.versions),
            "comparisons": _plain(self.comparisons),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`."""
        try:
            typed = {
                "surrogate": SurrogateType[content["surrogate"]],
                "figures": tuple(_figures(output) for output in content["figures"]),
                "limits": tuple(content["limits"]),
            }
            return cls(**{**content, **typed})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"not a quality card: {error!r}") from None

    def describe(self) -> str:
        """Describe the card in plain text, one fact per line."""
        lines = [
            f"surrogate: {self.surrogate.name.lower()}, {self.size / 1e6:.2f} MB, from "
            f"{self.evaluations} evaluations of {self.configurations} configurations",
            f"source: {self.source} ({self.licence})",
        ]
        if self.figures:
            worst = ", ".join(
                f"{name} {np.min(values):.3f} (mean {np.mean(values):.3f})"
                for field, name in _MEASURES.items()
                if None not in (values := [getattr(output, field) for output in self.figures])
            )
            lines.append(f"{self.folds}-fold cross-validation, worst task: {worst}")
        lines += [f"limit: {limit}" for limit in self.limits]
        for name, content in self.comparisons.items():
            lines.append(f"comparison with {name}: {content.get('explanation', 'see card.json')}")
        made_with = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines.append(f"made by: {self.command} ({made_with})")
        return "\n".join(lines)


_MEASURES = {
    "r2": "R2",
    "spearman": "Spearman",
    "top_decile": "top-decile overlap",
    "upper_half": "Spearman in the better half",
}


def _figures(content: Mapping[str, Any]) -> TaskQuality:
    numbers = {k: float(v) for k, v in content.items() if k != "name" and v is not None}
    return TaskQuality(content["name"], **numbers)


def _plain(content: Any) -> Any:
    """Replace non-finite numbers, which JSON lacks, by strings such as "nan"."""
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return repr(float(content))
    return content


def versions_of(*packages: str) -> dict[str, str]:
    """Versions of Python and of packages; "not installed" for missing ones."""
    versions = {"python": python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
