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

    Both arguments have the outputs of n configurations, (n, T). If the truth is constant, R2 is 1
    where it is predicted exactly, else minus infinity.
    """
    residual_squares = np.sum((truth - predicted) ** 2, axis=0)
    total_squares = np.sum((truth - truth.mean(axis=0)) ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # the total of a constant truth is 0
        unexplained_share = residual_squares / total_squares
    is_exact = residual_squares == 0.0
    unexplained_share[is_exact] = 0.0  # instead of 0 / 0 for a constant truth
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

    # These are sums instead of means, as the factor 1 / n cancels in the correlation.
    covariance = np.sum(true_ranks * predicted_ranks, axis=0)
    true_variance = np.sum(true_ranks * true_ranks, axis=0)
    predicted_variance = np.sum(predicted_ranks * predicted_ranks, axis=0)
    with np.errstate(invalid="ignore"):  # constant outputs give 0 / 0, which is NaN
        correlation: FloatArray = covariance / np.sqrt(true_variance * predicted_variance)
    return correlation


def top_decile_overlap(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Compute for each output which share of the best tenth is in the predicted best tenth, too.

    The best tenth of the configurations has at least one configuration. Of equally good ones the
    first are used.

    Args:
        truth: Values of n configurations for T outputs, (n, T).
        predicted: Their predictions, (n, T).
        direction: Whether small or large values are good.

    Returns:
        The share for each output, from 0 to 1, (T,).
    """
    size_of_tenth = max(1, len(truth) // 10)
    # Low losses are good, whatever the direction.
    is_truly_best = _find_lowest(direction.losses(truth), size_of_tenth)
    is_predicted_best = _find_lowest(direction.losses(predicted), size_of_tenth)
    is_in_both = is_truly_best & is_predicted_best
    overlap: FloatArray = is_in_both.sum(axis=0) / size_of_tenth
    return overlap


def _find_lowest(losses: FloatArray, k: int) -> BoolArray:
    """Find out which losses are among the k lowest of their column; of equal ones the first.

    Losses and result have shape (n, T).
    """
    lowest_rows = np.argsort(losses, axis=0, kind="stable")[:k]
    is_lowest = np.zeros(losses.shape, dtype=np.bool_)
    np.put_along_axis(is_lowest, lowest_rows, True, axis=0)
    return is_lowest


def upper_half_correlation(
    truth: FloatArray, predicted: FloatArray, *, direction: Direction
) -> FloatArray:
    """Compute Spearman's correlation on the truly better half of the configurations.

    Args:
        truth: Values of n configurations for T outputs, (n, T). Each output has a better half of
            its own.
        predicted: Their predictions, (n, T).
        direction: Whether small or large values are good.

    Returns:
        The correlation for each output, (T,).
    """
    size_of_half = max(2, len(truth) // 2)  # a correlation needs two configurations
    losses = direction.losses(truth)
    better_rows = np.argsort(losses, axis=0, kind="stable")[:size_of_half]
    truth_of_half = np.take_along_axis(truth, better_rows, axis=0)
    predicted_of_half = np.take_along_axis(predicted, better_rows, axis=0)
    return rank_correlation(truth_of_half, predicted_of_half)


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
    # Each measure has a value for each output, (T,).
    r2 = r_squared(truth, predicted).tolist()
    spearman = rank_correlation(truth, predicted).tolist()
    top_decile = top_decile_overlap(truth, predicted, direction=direction).tolist()
    upper_half = upper_half_correlation(truth, predicted, direction=direction).tolist()
    return tuple(
        TaskQuality(*quality)
        for quality in zip(names, r2, spearman, top_decile, upper_half, strict=True)
    )


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
        """Return the card as JSON, which `from_json` reads.

        Non-finite numbers, which JSON lacks, become strings such as "nan".
        """
        attributes = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **attributes,
            # These attributes are of types that JSON lacks, or hold non-finite numbers.
            "surrogate": self.surrogate.name,
            "figures": [_replace_non_finite(asdict(quality)) for quality in self.figures],
            "limits": list(self.limits),
            "versions": dict(self.versions),
            "comparisons": _replace_non_finite(self.comparisons),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a card from the JSON that `to_json` makes.

        Cards of older versions lack some entries, which get a default.

        Raises:
            ArtifactError: The content is malformed.
        """
        try:
            # The file has the name of the kind, such as "FOREST", but msgspec expects its value.
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
            lines.append(f"comparison, {name}: {content.get('explanation', 'see card.json')}")
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        lines.append(f"made by: {self.command} ({versions})")
        return "\n".join(lines)

    def _describe_measures(self) -> Iterator[str]:
        """Describe the surrogate's quality by each measure, such as "R2 0.812 (mean 0.905)".

        The first number is that of the worst task, and the second is the mean over tasks. High
        values of all measures are good. A measure that an old card lacks is None, and left out.
        """
        for attribute, label in _MEASURES.items():  # such as "r2" and "R2"
            values = [getattr(quality, attribute) for quality in self.figures]  # one for each task
            is_missing = None in values
            if not is_missing:
                worst = np.min(values)
                yield f"{label} {worst:.3f} (mean {np.mean(values):.3f})"


_MEASURES = {
    "r2": "R2",
    "spearman": "Spearman",
    "top_decile": "top-decile overlap",
    "upper_half": "Spearman in the better half",
}


def _replace_non_finite(content: Any) -> Any:
    """Replace non-finite numbers, which JSON lacks, by strings such as "nan".

    Mappings, lists and tuples are copied with all that they contain; tuples become lists.
    """
    if isinstance(content, Mapping):
        return {key: _replace_non_finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_replace_non_finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return repr(float(content))
    return content


def find_versions(*packages: str) -> dict[str, str]:
    """Find the versions of Python and of installed packages, by name.

    The version of a package that is missing is "not installed".
    """
    versions = {"python": python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return versions
