"""Reference results on one benchmark, in a Parquet file: a row per trial that is stored.

What a file stores is enough for ranks, scores and regrets; it has no configurations. What is the
same for all trials of a run or task is repeated in each row.

The predictions of a forest lie on a grid: base + unit * count, with whole numbers `count`. Where
they do, the file has these three, of which base and unit are the same for a task, instead of the
value: that takes half of the bytes and loses none of the value's bits.

Notation:
    R   runs
    T   tasks
    M   trials
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.analysis.samples import incumbents
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.data.tables import ColumnType, decode_table, encode_small_table
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.run_tables import KEY
from hpobench_ordered.surrogates.base import StoredSurrogate

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FILE_COLUMNS = ("benchmark", "surrogate", "protocol")
"""Columns that are the same for all runs of a file."""
RUN_COLUMNS = ("method", "method_version", "seed")
"""Columns that identify a run in a file."""
COLUMNS = {
    "benchmark": ColumnType.TEXT,
    "surrogate": ColumnType.TEXT,
    "protocol": ColumnType.TEXT,
    "method": ColumnType.TEXT,
    "method_version": ColumnType.TEXT,
    "seed": ColumnType.INTEGER,
    "task": ColumnType.INTEGER,
    "task_name": ColumnType.TEXT,
    "sign": ColumnType.NUMBER,  # factor between objective values and losses
    "best_loss": ColumnType.NUMBER,  # lowest known one of the task; may be null
    "fallbacks": ColumnType.INTEGER,  # random suggestions of the run on the task
    "trials": ColumnType.INTEGER,  # number of trials of every run on every task, M
    "trial": ColumnType.INTEGER,  # from 1
    # Objective value: either this one, or base + unit * count; what is not used is null.
    "value": ColumnType.NUMBER,
    "base": ColumnType.NUMBER,
    "unit": ColumnType.NUMBER,
    "count": ColumnType.INTEGER,
}

MOST_UNITS = 2**31 - 1
"""Largest count of units: counts are stored as 32-bit integers."""


@dataclass(frozen=True, eq=False)
class ReferenceFile:
    """Runs on one benchmark, on one surrogate, under one protocol."""

    where: dict[str, str]  # benchmark, surrogate and protocol
    sign: float  # factor between objective values and losses
    task_names: tuple[str, ...]
    best_losses: FloatArray  # lowest losses known, or NaN, (tasks,)
    grids: FloatArray  # base and unit of the grid of values, or NaN, (tasks, 2)
    runs: "pd.DataFrame"  # one row per run: `RUN_COLUMNS`
    # Infinite for failed evaluations, NaN for trials that are not stored, (runs, tasks, trials).
    losses: FloatArray
    fallbacks: IntArray  # random suggestions because a model failed, (runs, tasks)

    @classmethod
    def of_results(
        cls,
        runs: "pd.DataFrame",
        trials: "pd.DataFrame",
        spec: BenchmarkSpec,
    ) -> Self:
        """Select what is stored of finished runs.

        Args:
            runs: The runs, as `Overview.runs`.
            trials: All trials of the runs, one row per trial, as `Store.read` returns them.
            spec: The benchmark.

        Raises:
            ArtifactError: The tasks are not the first ones of the benchmark.
        """
        # From here on, a run is the number of its row, in the order of methods and seeds.
        runs = runs.sort_values(["method", "seed"], ignore_index=True)
        row_of_key = dict(zip(runs[KEY], runs.index, strict=True))
        trials = trials.assign(run=trials[KEY].astype(str).map(row_of_key))
        # In this order, a column can be reshaped to (runs, tasks, trials).
        trials = trials.sort_values(["run", "task", "trial"])
        where = {name: str(trials[name].iloc[0]) for name in FILE_COLUMNS}

        tasks = trials[["task", "task_name"]].drop_duplicates("task")
        if list(tasks["task"]) != list(range(len(tasks))):
            raise ArtifactError(f"{where['benchmark']}: tasks must be the first ones, in order")
        shape = (len(runs), len(tasks), int(trials["trial"].max()))
        losses = trials["loss"].to_numpy().reshape(shape)
        fallbacks = trials["fallbacks"].to_numpy(dtype=np.int64).reshape(shape)
        is_stored = select_trials_to_store(losses, runs["method"].to_numpy())

        sign = spec.define().objective.direction.sign
        model, best_values = spec.option(where["surrogate"]).load()
        # As an array of floats, None (no best value is known) becomes NaN.
        best_losses = sign * np.array(best_values[: len(tasks)], dtype=np.float64)
        return cls(
            where=where,
            sign=sign,
            task_names=tuple(map(str, tasks["task_name"])),
            best_losses=best_losses,
            grids=_find_grids(model, len(tasks)),
            runs=runs[list(RUN_COLUMNS)],
            losses=np.where(is_stored, losses, np.nan),
            fallbacks=fallbacks.max(axis=2),  # they count up over the trials: the last is the total
        )

    def to_bytes(self) -> bytes:
        """Encode the file; the same results give the same bytes.

        The file has a row for each stored trial, by task, run and trial. Rows get what belongs to
        their run or task by its index: `run`, `task` and `trial` have one entry per row.
        """
        import pyarrow as pa

        # In this order, what belongs to a task is the same in many rows, which saves bytes.
        task, run, trial = np.nonzero(~np.isnan(self.losses).swapaxes(0, 1))
        value = self.sign * self.losses[run, task, trial]
        base, unit = self.grids[task].T
        count, is_on_grid = _count_units(value, base, unit)
        # Texts that all rows share are in lists of one text, which has the index 0.
        index_of_only_text = np.zeros_like(run)
        shared_texts = {}
        for name, text in self.where.items():
            shared_texts[name] = _take_texts([text], index_of_only_text)
        columns = shared_texts | {
            "method": _take_texts(self.runs["method"], run),
            "method_version": _take_texts(self.runs["method_version"], run),
            "seed": pa.array(self.runs["seed"].to_numpy()[run]),
            "task": pa.array(task, pa.int32()),
            "task_name": _take_texts(self.task_names, task),
            "sign": pa.array(np.full(len(run), self.sign)),
            "best_loss": _take_numbers(self.best_losses, task),
            "fallbacks": pa.array(self.fallbacks[run, task], pa.int32()),
            "trials": pa.array(np.full(len(run), self.losses.shape[2]), pa.int32()),
            "trial": pa.array(trial + 1, pa.int32()),
            "value": pa.array(value, mask=is_on_grid),
            "base": pa.array(base, mask=~is_on_grid),
            "unit": pa.array(unit, mask=~is_on_grid),
            "count": pa.array(count, pa.int32(), mask=~is_on_grid),
        }
        # The values of trials are the columns of which few are alike.
        return encode_small_table(pa.table(columns), distinct=("value", "count"))

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str) -> Self:
        """Read the content of a file: the inverse of `to_bytes`.

        Args:
            data: The content.
            name: The file's name, for messages.

        Raises:
            ArtifactError: The file holds something else.
        """
        try:
            return cls._from_rows(decode_table(data, COLUMNS, list(COLUMNS)).to_pandas())
        except ValueError as error:
            raise ArtifactError(f"{name} holds no reference results: {error}") from None

    @classmethod
    def _from_rows(cls, rows: "pd.DataFrame") -> Self:
        """Read the rows of a file, one per stored trial; a `ValueError` if they do not fit.

        Columns are the same for all rows (`FILE_COLUMNS`), identify a run (`RUN_COLUMNS`), or
        describe a task or trial.
        """
        if not len(rows):
            raise ValueError("it has no rows")
        constant = rows[[*FILE_COLUMNS, "sign", "trials"]].drop_duplicates()
        if len(constant) > 1:
            raise ValueError("it must be of one benchmark, surrogate and protocol")
        runs = rows[list(RUN_COLUMNS)].drop_duplicates(ignore_index=True)
        tasks = rows.drop_duplicates("task").sort_values("task")
        if list(tasks["task"]) != list(range(len(tasks))):
            raise ValueError("its tasks must be the first ones")
        shape = (len(runs), len(tasks), int(rows["trials"].iloc[0]))

        # Of each row: the index of its run in `runs`, of its task, and of its trial.
        run = rows.groupby(list(RUN_COLUMNS), sort=False).ngroup().to_numpy()
        task = rows["task"].to_numpy()
        trial = rows["trial"].to_numpy() - 1
        sign = float(rows["sign"].iloc[0])
        losses = np.full(shape, np.nan)
        losses[run, task, trial] = sign * _read_values(rows)
        fallbacks = np.zeros(shape[:2], dtype=np.int64)
        fallbacks[run, task] = rows["fallbacks"].to_numpy()
        if np.isnan(losses[..., 0]).any():
            raise ValueError("it must have the first trial of every run on every task")
        return cls(
            where={name: str(rows[name].iloc[0]) for name in FILE_COLUMNS},
            sign=sign,
            task_names=tuple(tasks["task_name"]),
            best_losses=tasks["best_loss"].to_numpy(dtype=np.float64),
            grids=rows.groupby("task")[["base", "unit"]].first().to_numpy(dtype=np.float64),
            runs=runs,
            losses=losses,
            fallbacks=fallbacks,
        )

    def select_runs(self, is_selected: BoolArray) -> Self:
        """Select the runs for which a mask, (runs,), is True."""
        return replace(
            self,
            runs=self.runs[is_selected].reset_index(drop=True),
            losses=self.losses[is_selected],
            fallbacks=self.fallbacks[is_selected],
        )

    def merge(self, other: "ReferenceFile") -> Self:
        """Add the runs of another file, on the same tasks, in place of the same runs of this one.

        Merged in any order, files give the same as if all runs had been made at once: which trials
        are stored is chosen again.

        Raises:
            ArtifactError: They are of another benchmark, surrogate or protocol.
        """
        import pandas as pd

        if other.where != self.where or other.task_names != self.task_names:
            raise ArtifactError(f"runs of {other.where} cannot be added to those of {self.where}")
        is_replaced = [key in other.cells for key in self.cells]
        kept = self.select_runs(~np.array(is_replaced, dtype=np.bool_))

        runs = pd.concat([kept.runs, other.runs], ignore_index=True)
        runs = runs.sort_values(["method", "seed"])
        order = runs.index.to_numpy()  # where each run was before it was sorted
        losses = np.concatenate([kept.losses, other.losses])[order]
        is_stored = select_trials_to_store(losses, runs["method"].to_numpy())
        return replace(
            self,
            # A file whose values all lie beside the grid does not say what it is.
            grids=np.where(np.isnan(self.grids), other.grids, self.grids),
            runs=runs.reset_index(drop=True),
            losses=np.where(is_stored, losses, np.nan),
            fallbacks=np.concatenate([kept.fallbacks, other.fallbacks])[order],
        )

    def select_first_tasks(self, n_tasks: int, protocol: str) -> Self:
        """Select the first tasks, as if the protocol had ended after them.

        Args:
            n_tasks: How many tasks.
            protocol: Name of the protocol that has only these tasks.
        """
        return replace(
            self,
            where=self.where | {"protocol": protocol},
            task_names=self.task_names[:n_tasks],
            best_losses=self.best_losses[:n_tasks],
            grids=self.grids[:n_tasks],
            losses=self.losses[:, :n_tasks],
            fallbacks=self.fallbacks[:, :n_tasks],
        )

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        """What identifies each run (benchmark, method, seed and so on), in the order of the runs.

        It is found by the run's key, which is a hash of it.
        """
        cell_of_key = {}
        # Method, its version, and seed differ between the runs of a file.
        for run in self.runs[list(RUN_COLUMNS)].to_dict("records"):
            cell = {**self.where, **run}  # `where`: benchmark, surrogate and protocol
            cell_of_key[key_of(cell)] = cell
        return cell_of_key

    def trials(self) -> "pd.DataFrame":
        """All trials of all runs, one row per trial, with the columns of `Store.read`.

        Trials that are not stored get the lowest loss so far. Scores stay the same: all trials that
        lower it, and all others that scores need, are stored (see `select_trials_to_store`).
        """
        import pandas as pd

        best = incumbents(np.where(np.isnan(self.losses), np.inf, self.losses))
        losses = np.where(np.isnan(self.losses), best, self.losses)
        number_of_runs, number_of_tasks, number_of_trials = losses.shape
        # Indices of shapes (runs, 1, 1), (1, tasks, 1) and (1, 1, trials), which broadcast.
        run, task, trial = np.ogrid[:number_of_runs, :number_of_tasks, :number_of_trials]
        zero = np.zeros_like(run)  # index of a text that all trials share
        methods, method_of_run = np.unique(
            self.runs["method"].to_numpy(dtype=str), return_inverse=True
        )

        def spread(values: IntArray | FloatArray) -> NDArray[Any]:
            """Repeat values, such as one of each run, (runs, 1, 1), for each trial, flattened."""
            return np.broadcast_to(values, losses.shape).ravel()

        def spread_texts(texts: Any, index: IntArray) -> pd.Categorical:
            """The text of each trial, flattened, by its index in the texts."""
            return pd.Categorical.from_codes(spread(index), categories=pd.Index(texts))

        return pd.DataFrame(
            {
                KEY: spread_texts(list(self.cells), run),
                "benchmark": spread_texts([self.where["benchmark"]], zero),
                "surrogate": spread_texts([self.where["surrogate"]], zero),
                "protocol": spread_texts([self.where["protocol"]], zero),
                "method": spread_texts(methods, method_of_run[run]),
                "seed": spread(self.runs["seed"].to_numpy()[run]),
                "task": spread(task),
                "task_name": spread_texts(self.task_names, task),
                "trial": spread(trial + 1),
                "value": spread(np.where(np.isfinite(losses), self.sign * losses, np.nan)),
                "loss": spread(losses),
                "regret": spread(losses - self.best_losses[:, None]),
                "fallbacks": spread(self.fallbacks[:, :, None]),
            }
        )


def select_trials_to_store(losses: FloatArray, methods: NDArray[Any]) -> BoolArray:
    """Select the trials that a reference file stores; return a mask, (runs, tasks, trials).

    Scores need four kinds: those that improve on the incumbent, all of random search (they define a
    score of 100), each method's worst one on each task that has not failed (it bounds the regret),
    and those that failed (they are counted).

    Args:
        losses: Loss of every trial, (runs, tasks, trials). Infinite where it failed, NaN where an
            earlier selection has not stored it.
        methods: Name of the method of each run, (runs,).
    """
    is_known = ~np.isnan(losses)
    lowest_so_far = incumbents(np.where(is_known, losses, np.inf))
    is_stored = is_known.copy()  # a first trial always counts as improving
    is_stored[..., 1:] = losses[..., 1:] < lowest_so_far[..., :-1]

    has_failed = np.isinf(losses)
    is_stored |= has_failed
    is_random_search = methods == RANDOM_SEARCH
    is_stored[is_random_search] = is_known[is_random_search]  # all trials of its runs

    losses_of_successes = np.where(is_known & ~has_failed, losses, -np.inf)
    _, n_tasks, _ = losses.shape
    for method in np.unique(methods):
        runs = np.flatnonzero(methods == method)
        for task in range(n_tasks):
            losses_on_task = losses_of_successes[runs, task]  # (runs of the method, trials)
            worst = losses_on_task.argmax()  # index in the flattened array
            worst_run, worst_trial = np.unravel_index(worst, losses_on_task.shape)
            is_stored[runs[worst_run], task, worst_trial] = True
    return is_stored


def _find_grids(model: object, n_tasks: int) -> FloatArray:
    """Find the grid on which each task's values lie: its base and its unit, (tasks, 2).

    Both are NaN for a task without a grid, see the module's docstring.

    Args:
        model: The surrogate of the tasks; only stored ones have grids.
        n_tasks: Number of tasks.
    """
    grids = np.full((n_tasks, 2), np.nan)
    if isinstance(model, StoredSurrogate):
        for task in range(n_tasks):
            grid = model.value_grid(task)
            if grid is not None:
                grids[task] = grid
    return grids


def _count_units(
    values: FloatArray, base: FloatArray, unit: FloatArray
) -> tuple[IntArray, BoolArray]:
    """Count the units from the base of a grid to each value.

    Returns:
        The counts, and whether base + unit * count is the value, to the last bit.
    """
    with np.errstate(all="ignore"):  # there is no grid, or the value is far from it
        count = np.rint((values - base) / unit)
    is_countable = np.abs(count) <= MOST_UNITS  # False for NaN
    count = np.where(is_countable, count, 0).astype(np.int64)
    with np.errstate(all="ignore"):
        value_on_grid = base + unit * count
    # As integers, numbers are equal only if all of their bits are.
    has_same_bits = value_on_grid.view(np.int64) == values.view(np.int64)
    return count, is_countable & has_same_bits


def _read_values(rows: "pd.DataFrame") -> FloatArray:
    """Read the objective value of each row, (rows,).

    A row has either the value itself, or the base, the unit and the count of a grid, which give the
    value base + unit * count.

    Raises:
        ValueError: A row has neither.
    """
    own_value = rows["value"].to_numpy(dtype=np.float64)  # NaN where the row has a count
    base = rows["base"].to_numpy(dtype=np.float64)
    unit = rows["unit"].to_numpy(dtype=np.float64)
    count = rows["count"].to_numpy(dtype=np.float64)
    value_on_grid = base + unit * count
    values: FloatArray = np.where(np.isnan(own_value), value_on_grid, own_value)
    if np.isnan(values).any():
        raise ValueError("a trial has neither a value nor a count of units")
    return values


def _take_texts(texts: Any, index: IntArray) -> "pa.Array":
    """Make an Arrow column with the text `texts[index[i]]` in row i; null where it is missing.

    It is a dictionary column, which holds each text once.
    """
    import pyarrow as pa

    different_texts = pa.array(texts, pa.string(), from_pandas=True)  # NaN and None become null
    text_of_row = different_texts.take(pa.array(index))
    return text_of_row.dictionary_encode()


def _take_numbers(numbers: Any, index: IntArray) -> "pa.Array":
    """Make an Arrow column with `numbers[index[i]]` in row i; null where it is NaN or missing."""
    import pyarrow as pa

    number_of_row = np.asarray(numbers)[index]
    return pa.array(number_of_row, from_pandas=True)  # NaN and None become null
