"""Reference results on one benchmark, in a file: the trials that ranks, scores and regrets need.

Of a run on a task those that are better than all before are kept; of random search every trial,
of which scores need the median; of every other method the worst on the task, where a regret of 1
may be. The rest is left out, and with it all configurations.

A value is stored as a whole number, times the unit of its task, and what its bits differ by from
that: the same bits come back whatever the unit. Forests give multiples of a unit, for which the
difference is 0; of others the number is 0 and the difference is all.

Notation:
    R   runs
    T   tasks
    M   trials
    n   trials that are kept
"""

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.analysis.samples import incumbents
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.experiment._run_file import KEY
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.files.arrays import npz_bytes, read_npz
from hpobench_ordered.surrogates import Surrogate
from hpobench_ordered.surrogates.forest import ForestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("suggestions", "seconds", "method_seconds", "version")
"""What is known of the time of a run beside what identifies it."""


@dataclass(frozen=True, eq=False)
class ReferenceFile:
    """What is kept of runs on one benchmark, on one surrogate, under one protocol.

    Attributes:
        cell: What all runs have in common: benchmark, surrogate and protocol, as cells describe it.
        sign: Factor between objective values and losses: 1 or -1.
        task_names: Names of the tasks, in order.
        best: Lowest losses known, NaN where none is, (T,).
        runs: One row a run: method, method_version, seed and `TIMES`.
        losses: Losses of the trials that are kept, NaN for others, (R, T, M).
        fallbacks: Suggestions made at random because a model failed, (R, T).
    """

    cell: dict[str, str]
    sign: float
    task_names: tuple[str, ...]
    best: FloatArray
    runs: "pd.DataFrame"
    losses: FloatArray
    fallbacks: IntArray

    @classmethod
    def of(
        cls,
        runs: "pd.DataFrame",
        trials: "pd.DataFrame",
        timings: "pd.DataFrame",
        spec: BenchmarkSpec,
    ) -> Self:
        """Choose what is kept of finished runs on one benchmark.

        `runs` are as in `Overview.runs`, trials and timings as a store reads them.

        Raises:
            ArtifactError: A loss is not finite, or the tasks are not the benchmark's first ones.
        """
        runs = runs.sort_values(["method", "seed"]).merge(
            timings[[KEY, *TIMES]], on=KEY, how="left", validate="one_to_one"
        )
        place = trials[KEY].astype(str).map(dict(zip(runs[KEY], runs.index, strict=True)))
        trials = trials.assign(run=place).sort_values(["run", "task", "trial"])
        label = str(trials["benchmark"].iloc[0])
        tasks = trials[["task", "task_name"]].drop_duplicates("task")
        shape = len(runs), len(tasks), int(trials["trial"].max())
        losses = trials["loss"].to_numpy().reshape(shape)
        if not np.isfinite(losses).all():
            raise ArtifactError(f"{label}: losses that are not finite cannot be kept")
        if list(tasks["task"]) != list(range(shape[1])):
            raise ArtifactError(f"{label}: not the first tasks, in order")
        cell = {name: str(trials[name].iloc[0]) for name in ("benchmark", "surrogate", "protocol")}
        _, known = spec.option(cell["surrogate"]).load()
        sign = spec.define().objective.direction.sign
        best = [np.nan if value is None else value for value in known][: shape[1]]
        return cls(
            cell=cell,
            sign=sign,
            task_names=tuple(map(str, tasks["task_name"])),
            best=sign * np.array(best),
            runs=runs[["method", "method_version", "seed", *TIMES]],
            losses=np.where(_kept(losses, runs["method"].to_numpy()), losses, np.nan),
            fallbacks=trials["fallbacks"].to_numpy(dtype=np.int64).reshape(shape).max(axis=2),
        )

    def to_bytes(self, spec: BenchmarkSpec) -> bytes:
        """The content of the file; the benchmark's surrogate says in what units its values are."""
        kept = ~np.isnan(self.losses)
        values = self.sign * self.losses.transpose(1, 0, 2)[kept.transpose(1, 0, 2)]
        model, _ = spec.option(self.cell["surrogate"]).load()
        units = np.array([_unit(model, task) for task in range(len(self.task_names))])
        offset, unit = np.repeat(units, kept.sum(axis=(0, 2)), axis=0).T
        with np.errstate(over="ignore"):
            numbers = np.rint((values - offset) / np.where(unit > 0, unit, np.inf))
        numbers = np.where(np.abs(numbers) < 2**31, numbers, 0.0)
        said = self.cell | {
            "sign": self.sign,
            "task_names": self.task_names,
            "trials": self.losses.shape[2],
            "runs": self.runs.to_dict("list"),
        }
        arrays = {
            "about": np.array(json.dumps(said)),
            "best": self.best,
            "units": units,
            "kept": np.packbits(kept.transpose(2, 1, 0)),
            "numbers": numbers.astype(np.int32),
            "differences": values.view(np.int64) - (offset + unit * numbers).view(np.int64),
            "fallbacks": self.fallbacks.astype(np.int32),
        }
        return npz_bytes(arrays, method=zipfile.ZIP_LZMA)

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str) -> Self:
        """Read the content of a file.

        Raises:
            ArtifactError: It is damaged, or of another format.
        """
        import pandas as pd

        try:
            arrays = read_npz(data)
            about = json.loads(str(arrays["about"]))
            runs, names = pd.DataFrame(about["runs"]), tuple(about["task_names"])
            shape = (about["trials"], len(names), len(runs))
            kept = np.unpackbits(arrays["kept"], count=int(np.prod(shape))).astype(np.bool_)
            kept = kept.reshape(shape).transpose(1, 2, 0)
            offset, unit = np.repeat(arrays["units"], kept.sum(axis=(1, 2)), axis=0).T
            values = offset + unit * arrays["numbers"]
            losses = np.full(kept.shape, np.nan)
            bits = values.view(np.int64) + arrays["differences"]
            losses[kept] = about["sign"] * bits.view(np.float64)
            return cls(
                cell={name: about[name] for name in ("benchmark", "surrogate", "protocol")},
                sign=about["sign"],
                task_names=names,
                best=arrays["best"],
                runs=runs,
                losses=losses.transpose(1, 0, 2),
                fallbacks=arrays["fallbacks"].astype(np.int64),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{name} holds no reference results: {error!r}") from None

    def chosen(self, is_chosen: BoolArray) -> Self:
        """The file of some of its runs, (R,)."""
        return replace(
            self,
            runs=self.runs[is_chosen].reset_index(drop=True),
            losses=self.losses[is_chosen],
            fallbacks=self.fallbacks[is_chosen],
        )

    def first_tasks(self, number: int, protocol: str) -> Self:
        """The file of the same runs, had the protocol ended after so many tasks."""
        return replace(
            self,
            cell=self.cell | {"protocol": protocol},
            task_names=self.task_names[:number],
            best=self.best[:number],
            losses=self.losses[:, :number],
            fallbacks=self.fallbacks[:, :number],
        )

    @cached_property
    def cells(self) -> dict[str, dict[str, Any]]:
        """What identifies each run, by key."""
        runs = self.runs[["method", "method_version", "seed"]].to_dict("records")
        return {key_of(cell): cell for cell in ({**self.cell, **run} for run in runs)}

    def timings(self) -> "pd.DataFrame":
        """One row a run, see `Records.timings`."""
        times = self.runs[list(TIMES)].to_dict("records")
        return _frame(
            {KEY: key, **cell, **time}
            for (key, cell), time in zip(self.cells.items(), times, strict=True)
        )

    def trials(self) -> "pd.DataFrame":
        """One row a trial, see `Store.read`; those that were not kept are like the best before."""
        import pandas as pd

        runs, tasks, trials = self.losses.shape
        best = incumbents(np.where(np.isnan(self.losses), np.inf, self.losses))
        losses = np.where(np.isnan(self.losses), best, self.losses)

        def categories(names: Any, codes: IntArray, repeats: int) -> pd.Categorical:
            return pd.Categorical.from_codes(np.repeat(codes, repeats), categories=pd.Index(names))

        methods, codes = np.unique(self.runs["method"].to_numpy(dtype=str), return_inverse=True)
        alike = {
            name: categories([value], np.zeros(runs, dtype=np.int64), tasks * trials)
            for name, value in self.cell.items()
        }
        numbers = np.tile(np.arange(tasks), runs)
        return pd.DataFrame(
            {
                KEY: categories(list(self.cells), np.arange(runs), tasks * trials),
                **alike,
                "method": categories(methods, codes, tasks * trials),
                "seed": np.repeat(self.runs["seed"].to_numpy(), tasks * trials),
                "task": np.repeat(numbers, trials),
                "task_name": categories(self.task_names, numbers, trials),
                "trial": np.tile(np.arange(1, trials + 1), runs * tasks),
                "value": (self.sign * losses).ravel(),
                "loss": losses.ravel(),
                "regret": (losses - self.best[:, None]).ravel(),
                "fallbacks": np.repeat(self.fallbacks.ravel(), trials),
            }
        )


def _frame(rows: Iterator[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(list(rows))


def _kept(losses: FloatArray, methods: "np.ndarray[Any, Any]") -> BoolArray:
    """Which trials are kept, (R, T, M)."""
    kept = np.ones(losses.shape, dtype=np.bool_)
    kept[..., 1:] = losses[..., 1:] < incumbents(losses)[..., :-1]
    tasks = np.arange(losses.shape[1])
    for method in np.unique(methods):
        rows = np.flatnonzero(methods == method)
        if method == RANDOM_SEARCH:
            kept[rows] = True
        else:
            by_task = losses[rows].transpose(1, 0, 2)
            worst = by_task.reshape(len(tasks), -1).argmax(axis=1)
            run, trial = np.divmod(worst, losses.shape[2])
            kept[rows[run], tasks, trial] = True
    return kept


def _unit(model: Surrogate, task: int) -> tuple[float, float]:
    """Offset and unit of the values of a task; 0 where none are known."""
    if isinstance(model, PerTaskSurrogate):
        return _unit(model.models[task], 0)
    if isinstance(model, ForestSurrogate) and not model.tasks[task].weight:
        output = model.tasks[task].low
        return float(model.offset[output]), float(model.step[output] / len(model.nodes))
    return 0.0, 0.0
