"""Saves benchmarks made from tables as artifacts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.data.artifact import Artifact, is_artifact
from hpobench_ordered.data.benchmark import Benchmark, Definition
from hpobench_ordered.data.best import NOT_OPTIMAL
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import (
    EVALUATIONS,
    read_card,
    read_definition,
    read_evaluations,
)
from hpobench_ordered.tuning.own_benchmarks.fitting import as_raw_evaluations
from hpobench_ordered.tuning.own_benchmarks.making import FittedEvaluations

if TYPE_CHECKING:
    from hpobench_ordered.surrogates.pipeline import BenchmarkFit


def save(benchmark: Benchmark, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write a benchmark that `from_evaluations` made as an artifact.

    It holds the surrogate, the evaluations, and a quality card of a cross-validation by
    configurations. `hpobench_ordered.load` and `run` take the artifact's path; in the folder
    `hpobench_ordered.data.local.local_folder()` it is found by name.

    Args:
        benchmark: The benchmark.
        folder: Folder of the artifact; its last part should be the benchmark's name. An earlier
            version of the benchmark there is replaced; a folder that holds the same benchmark is
            left as it is.
        overwrite: Replace whatever benchmark is there.

    Returns:
        The folder.

    Raises:
        EvaluationsError: The benchmark was not made by `from_evaluations`, or the folder holds
            another benchmark, or the same version with other content.
        ArtifactError: The folder cannot be written, or the artifact would be too large to load.

    Examples:
        >>> import tempfile
        >>> import pandas as pd
        >>> import hpobench_ordered as hbo
        >>> from ConfigSpace import ConfigurationSpace
        >>> frame = pd.DataFrame({"task": "a", "depth": range(1, 21), "error": range(20)})
        >>> bench = hbo.from_evaluations(
        ...     frame,
        ...     ConfigurationSpace({"depth": (1, 20)}),
        ...     name="mine",
        ...     objective="error",
        ...     direction="minimize",
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = hbo.save(bench, f"{folder}/mine")
        ...     hbo.load(path).task("a").evaluate({"depth": 3})
        2.0
    """
    fitted = benchmark.recorded
    if not isinstance(fitted, FittedEvaluations):
        raise EvaluationsError(f"{benchmark.id} was not made by from_evaluations")
    folder = Path(folder)
    fit = fitted.fit
    raw = [as_raw_evaluations(e.values, e.objective) for e in fitted.evaluations]
    if is_artifact(folder) and not overwrite:
        if _is_same(folder, raw, fit):
            return folder
        _check_replaceable(folder, fit.definition)
    return _write(folder, benchmark.surrogate, fit, raw)


def _is_same(folder: Path, raw: Sequence[RawEvaluations], fit: "BenchmarkFit") -> bool:
    """Whether a folder already holds the artifact of this benchmark.

    It does if the definition, the evaluations, and the surrogate's kind and seed are the same.

    Args:
        folder: The folder.
        raw: The benchmark's evaluations of each task.
        fit: The benchmark's surrogate, with its definition.
    """
    artifact = Artifact(folder)
    if EVALUATIONS not in artifact.sums() or read_definition(artifact) != fit.definition:
        return False
    card = read_card(artifact)
    if (card.surrogate, card.seed) != (fit.model.kind, fit.seed):
        return False
    for ours, stored in zip(raw, read_evaluations(artifact), strict=True):
        has_same_configs = np.array_equal(ours.values, stored.values, equal_nan=True)
        has_same_objective = np.array_equal(ours.objective, stored.objective)
        if not (has_same_configs and has_same_objective):
            return False
    return True


def _check_replaceable(folder: Path, definition: Definition) -> None:
    """Raise an `EvaluationsError` unless the folder holds an earlier version of the benchmark.

    The message advises to choose another folder; or, if the folder holds the same or a later
    version of the benchmark, to give this one a later version.
    """
    stored = read_definition(Artifact(folder))
    is_same_name = stored.name == definition.name
    if is_same_name and stored.version < definition.version:
        return
    advice = "choose another folder"
    if is_same_name:
        next_version = stored.version + 1
        advice = f"give this one the next version, from_evaluations(..., version={next_version})"
    raise EvaluationsError(
        f"{folder} holds {stored.name}@{stored.version} with other content; {advice}, or replace "
        "it with save(..., overwrite=True)"
    )


def _write(
    folder: Path, surrogate: str, fit: "BenchmarkFit", raw: Sequence[RawEvaluations]
) -> Path:
    """Write the artifact of a benchmark with one surrogate, and return its folder.

    Args:
        folder: Folder of the artifact.
        surrogate: Name of the surrogate.
        fit: The fitted surrogate.
        raw: The evaluations of each task, which are stored, too.
    """
    from hpobench_ordered.surrogates.artifacts import CardTexts, write_surrogates
    from hpobench_ordered.surrogates.fitting import ForestRecipe

    if fit.model.kind is SurrogateType.FOREST:
        description = ForestRecipe().describe()
        limits = [description, NOT_OPTIMAL]
    else:  # the nearest neighbour
        description = "The value of the nearest configuration that was evaluated on the task."
        limits = [description]
    texts = CardTexts(
        source=fit.definition.provenance.source,
        command="hpobench_ordered.save",
        limits=limits,  # the description tells a reader of the card what the surrogate cannot do
        summaries={surrogate: description},
    )
    return write_surrogates(folder, {surrogate: fit}, texts, evaluations=raw)
