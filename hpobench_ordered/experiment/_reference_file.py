"""Reference results on one benchmark, in a file: the trials that ranks, scores and regrets need.

Kept are the improvements of each run on each task; all trials of random search, for the median that
scores need; and each other method's worst trial on a task, which may define a regret of 1. No
configurations are kept.

A value is stored as an integer multiple of its task's unit plus the difference of the bits, so that
it is restored exactly. Values of forests are such multiples, with a difference of 0; for other
surrogates the integer is 0.

Notation:
    R   runs
    T   tasks
    M   trials
"""

import json
import zipfile
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
"""Columns of `TIMING` that do not identify a run."""


@dataclass(frozen=True, eq=False)
class ReferenceFile:
    """Runs on one benchmark, on one surrogate, under one protocol."""

    cell: dict[str, str]  # benchmark, surrogate and protocol
    sign: float  # factor between objective values and losses
    task_names: tuple[str, ...]
    best: FloatArray  # lowest losses known, or NaN, (T,)
    runs: "pd.DataFrame"  # one row per run: method, method_version, seed and `TIMES`
    losses: FloatArray  # NaN for trials that are not kept, (R, T, M)
    fallbacks: IntArray  # random suggestions because a model failed, (R, T)

    @classmethod
    def of(
        cls,
        runs: "pd.DataFrame",
        trials: "pd.DataFrame",
        timings: "pd.DataFrame",
        spec: BenchmarkSpec,
    ) -> Self:
        """Select what is kept of finished runs (as `Overview.runs`), trials and timings."""
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
            raise ArtifactError(f"{label}: losses must be finite")
        if list(tasks["task"]) != list(range(shape[1])):
            raise ArtifactError(f"{label}: tasks must be the first ones, in order")
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
        """Content of the file; the units are those of the benchmark's surrogate."""
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
        """Inverse of `to_bytes`; an `ArtifactError` if the content is damaged."""
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
        """Select runs by a mask, (R,)."""
        return replace(
            self,
            runs=self.runs[is_chosen].reset_index(drop=True),
            losses=self.losses[is_chosen],
            fallbacks=self.fallbacks[is_chosen],
        )

    def first_tasks(self, number: int, protocol: str) -> Self:
        """The same runs as if the protocol had ended after a number of tasks."""
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
        """One row per run, see `Records.timings`."""
        import pandas as pd

        times = self.runs[list(TIMES)].to_dict("records")
        cells = zip(self.cells.items(), times, strict=True)
        return pd.DataFrame([{KEY: key, **cell, **time} for (key, cell), time in cells])

    def trials(self) -> "pd.DataFrame":
        """One row per trial, see `Store.read`; trials that were not kept repeat the best before."""
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
    """Offset and unit of the values of a task; 0 if unknown."""
    if isinstance(model, PerTaskSurrogate):
        return _unit(model.models[task], 0)
    if isinstance(model, ForestSurrogate) and not model.tasks[task].weight:
        output = model.tasks[task].low
        return float(model.offset[output]), float(model.step[output] / len(model.nodes))
    return 0.0, 0.0
