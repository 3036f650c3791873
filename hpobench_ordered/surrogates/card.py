"""Quality cards: how well a surrogate predicts evaluations that it was not fitted to.

Notation:
    n   number of configurations
    T   number of outputs: tasks whose evaluations the surrogate was fitted to
    k   size of the best tenth, max(1, n // 10)
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Self

import msgspec
import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space.reading import MALFORMED
from hpobench_ordered.surrogates import SurrogateType


def r_squared(truth: FloatArray, predicted: FloatArray) -> FloatArray:
    """Compute the coefficient of determination R2 of each of T outputs, (T,).

    Both arguments have the outputs of n configurations, (n, T). R2 of a constant true output is 1
    if it is predicted exactly, else minus infinity.
    """
    residual = np.sum((truth - predicted) ** 2, axis=0)
    total = np.sum((truth - truth.mean(axis=0)) ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        unexplained_share = residual / total
    unexplained_share[residual == 0.0] = 0.0  # also where the total is 0
    return np.asarray(1.0 - unexplained_share)


def rank_correlation(truth: FloatArray, predicted: FloatArray) -> FloatArray:
    """Compute Spearman's correlation of each of T outputs, (T,).

    Both arguments have the outputs of n configurations, (n, T). The correlation is NaN for
    an output whose true or predicted values are all equal.
    """
    from scipy.stats import rankdata

    true_ranks = rankdata(truth, axis=0)
    true_ranks -= true_ranks.mean(axis=0)
    predicted_ranks = rankdata(predicted, axis=0)
    predicted_ranks -= predicted_ranks.mean(axis=0)

    # All three without the factor 1 / n, which cancels.
    covariance = np.sum(true_ranks * predicted_ranks, axis=0)
    true_variance = np.sum(true_ranks * true_ranks, axis=0)
    predicted_variance = np.sum(predicted_ranks * predicted_ranks, axis=0)
    with np.errstate(invalid="ignore"):  # 0 / 0 of constant outputs
        correlation: FloatArray = covariance / np.sqrt(true_variance * predicted_variance)
    return correlation


def top_decile_overlap(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Compute which share of the best tenth is also in the predicted best tenth, of each output.

    The tenth has at least one configuration. Of equally good configurations the first are used.
    The arguments have the T outputs of n configurations, (n, T); the result has shape (T,).
    """
    tenth = max(1, len(truth) // 10)
    # The sign, -1 if large values are good, makes low values the good ones.
    is_truly_best = _are_lowest(direction.losses(truth), tenth)
    is_predicted_best = _are_lowest(direction.losses(predicted), tenth)
    overlap: FloatArray = (is_truly_best & is_predicted_best).sum(axis=0) / tenth
    return overlap


def _are_lowest(losses: FloatArray, k: int) -> BoolArray:
    """Whether each loss is among the k lowest of its column, (n, T)."""
    lowest_rows = np.argsort(losses, axis=0, kind="stable")[:k]
    is_lowest = np.zeros(losses.shape, dtype=np.bool_)
    np.put_along_axis(is_lowest, lowest_rows, True, axis=0)
    return is_lowest


def upper_half_correlation(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Compute Spearman's correlation among the truly better half, for each of T outputs, (T,).

    Both arguments have the outputs of n configurations, (n, T). The half has at least two
    configurations, as a correlation needs.
    """
    half = max(2, len(truth) // 2)
    losses = direction.losses(truth)
    better_rows = np.argsort(losses, axis=0, kind="stable")[:half]
    return rank_correlation(
        np.take_along_axis(truth, better_rows, axis=0),
        np.take_along_axis(predicted, better_rows, axis=0),
    )


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
    """Measure how well each output is predicted.

    Args:
        truth: Values of n configurations for T outputs, (n, T).
        predicted: Predictions of them, (n, T).
        names: Names of the outputs.
        direction: Whether small or large values are good.
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"predictions must have shape {truth.shape}, but got {predicted.shape}")
    measures = (  # each of all outputs, in the order of the fields of `TaskQuality`
        r_squared(truth, predicted).tolist(),
        rank_correlation(truth, predicted).tolist(),
        top_decile_overlap(truth, predicted, direction=direction).tolist(),
        upper_half_correlation(truth, predicted, direction=direction).tolist(),
    )
    return tuple(TaskQuality(*row) for row in zip(names, *measures, strict=True))


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
    # With other surrogates, as JSON.
    comparisons: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The card as JSON, which `from_json` reads; non-finite numbers become strings ("nan")."""
        attributes = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **attributes,
            # The others are of types that JSON lacks.
            "surrogate": self.surrogate.name,
            "figures": [_make_finite(asdict(output)) for output in self.figures],
            "limits": list(self.limits),
            "versions": dict(self.versions),
            "comparisons": _make_finite(self.comparisons),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Inverse of `to_json`; an `ArtifactError` if the content is malformed.

        Cards of older versions lack some entries, which get a default.
        """
        try:
            surrogate = SurrogateType[content["surrogate"]]
            # Not strict, as numbers that JSON lacks are strings such as "nan".
            return msgspec.convert({**content, "surrogate": surrogate.value}, cls, strict=False)
        except MALFORMED as error:
            raise ArtifactError(f"not a quality card: {error!r}") from None

    def describe(self) -> str:
        """Describe the card in plain text, one fact per line."""
        lines = [
            f"surrogate: {self.surrogate.name.lower()}, {self.size / 1e6:.2f} MB, from "
            f"{self.evaluations} evaluations of {self.configurations} configurations",
            f"source: {self.source} ({self.licence})",
        ]
        if self.figures:
            worst = ", ".join(self._describe_measures())
            lines.append(f"{self.folds}-fold cross-validation, worst task: {worst}")
        lines += [f"limit: {limit}" for limit in self.limits]
        for name, content in self.comparisons.items():
            lines.append(f"comparison with {name}: {content.get('explanation', 'see card.json')}")
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        lines.append(f"made by: {self.command} ({versions})")
        return "\n".join(lines)

    def _describe_measures(self) -> Iterator[str]:
        """Describe the surrogate's quality by each measure, such as "R2 0.812 (mean 0.905)".

        The first number is that of the worst task, and the second is the mean over tasks. High
        values of all measures are good. A measure that an old card lacks is None, and left out.
        """
        for attribute, label in _MEASURES.items():  # such as "r2" and "R2"
            values = [getattr(quality, attribute) for quality in self.figures]  # one a task
            if None not in values:
                worst = np.min(values)
                yield f"{label} {worst:.3f} (mean {np.mean(values):.3f})"


_MEASURES = {
    "r2": "R2",
    "spearman": "Spearman",
    "top_decile": "top-decile overlap",
    "upper_half": "Spearman in the better half",
}


def _make_finite(content: Any) -> Any:
    """Replace non-finite numbers, which JSON lacks, by strings such as "nan"."""
    if isinstance(content, Mapping):
        return {key: _make_finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_make_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return repr(float(content))
    return content


def versions_of(*packages: str) -> dict[str, str]:
    """Find the versions of Python and of packages; "not installed" for missing ones."""
    versions = {"python": python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
