"""Marks of benchmarks on which methods hardly differ: plateaus, and those that one rule solves.

The rules are to copy the best configuration of the task before, and to use the one that is best on
average on all other tasks, which is the smallest portfolio. Marks are computed from random
configurations on the default surrogate, by the command `hpobench-ordered generate marks`, and
stored in `marks.json`: among the artifacts, or in the folder of the user's own benchmarks. A mark
is only used for the content (hash) that it was computed from.

Notation:
    n   configurations
    T   tasks
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.copying import (
    MAX_DISTANCE_OF_NEAR,
    best_and_random_losses,
    compute_portfolio_regrets,
    copying_regrets,
    shares_near_best,
)
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.surrogates.card import find_versions

FILE_NAME = "marks.json"
N_CONFIGURATIONS = 4000
"""Number of random configurations n, the same for all tasks."""
SEED = 0
SHARE_OF_TASKS = Fraction(2, 3)
"""Share of the tasks on which a mark must hold."""
LEAST_NEAR_BEST_OF_PLATEAU = 0.1
LARGEST_REGRET = MAX_DISTANCE_OF_NEAR
"""Copying or a portfolio solves a benchmark if its regret is lower, so that it is near the best."""
DIGITS = 4
"""Decimal digits of the stored numbers."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Three numbers about random configurations on a benchmark, which decide its marks.

    Distances between losses are relative to that from the median to the best known loss.

    Attributes:
        near_best: Share of the configurations that are within 5 % of the best; two thirds of the
            tasks have at least this share.
        copying: Regret of copying the best configuration from the task before; two thirds of the
            tasks have at most this regret. None if there is a single task.
        portfolio: Regret of the configuration that is best on average on the other tasks; two
            thirds of the tasks have at most this regret. None if there is a single task.
    """

    near_best: float
    copying: float | None
    portfolio: float | None

    @classmethod
    def compute(cls, benchmark: Benchmark) -> Self:
        """Compute the marks of a benchmark from random configurations on every task."""
        # The best loss of each task, (tasks,), and all losses, (configurations, tasks).
        best, losses = best_and_random_losses(benchmark, N_CONFIGURATIONS)
        shares = shares_near_best(losses, best=best)  # (tasks,)
        regrets_of_copying = copying_regrets(losses, best=best)  # of all tasks but the first
        regrets_of_portfolio = compute_portfolio_regrets(losses, best=best)  # (tasks,)
        return cls(
            near_best=_find_lower_bound_of_most(shares),
            copying=_find_regret_of_most(regrets_of_copying),
            portfolio=_find_regret_of_most(regrets_of_portfolio),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the marks that the benchmark has, of "plateau", "copying" and "portfolio"."""
        names = []
        if self.near_best > LEAST_NEAR_BEST_OF_PLATEAU:
            names.append("plateau")
        if self.copying is not None and self.copying < LARGEST_REGRET:
            names.append("copying")
        if self.portfolio is not None and self.portfolio < LARGEST_REGRET:
            names.append("portfolio")
        return tuple(names)

    def describe(self) -> str:
        """Describe the marks and the numbers behind them, such as "plateau (31.0% of ...)"."""
        names = ", ".join(self.names) or "none"
        reasons = f"{self.near_best:.1%} of random configurations are near the best"
        if self.copying is not None:
            reasons += f", copying from the task before leaves {self.copying:.1%}"
        if self.portfolio is not None:
            reasons += f", the best on average on the other tasks leaves {self.portfolio:.1%}"
        return f"{names} ({reasons})"


class SourceOfMarks(NamedTuple):
    """The benchmark, its surrogate and the hash of its content that marks are computed from."""

    id: str
    surrogate: str
    content_hash: str

    @classmethod
    def from_spec(cls, spec: BenchmarkSpec) -> Self:
        """Name the benchmark, its default surrogate, and the hash of the files that define them."""
        default_surrogate = spec.option()
        # The hash of the benchmark's artifact, or, if it has none (""), of the surrogate's files.
        content_hash = spec.content or default_surrogate.content
        return cls(spec.id, default_surrogate.name, content_hash)


def find_marks(spec: BenchmarkSpec) -> Marks | None:
    """Find the stored marks of a benchmark, among the artifacts or in the user's own folder.

    Returns:
        The marks that were computed from exactly the benchmark's content; None if there are none.

    Raises:
        ArtifactError: A file of marks is damaged.
    """
    source = SourceOfMarks.from_spec(spec)  # names of the benchmark and its surrogate, and the hash
    packaged = resources.files("hpobench_ordered") / "artifacts" / FILE_NAME
    for file in (packaged, local_folder() / FILE_NAME):
        entry = _read_entries(file).get(source.id)
        if entry is None:
            continue
        is_of_surrogate = entry["surrogate"] == source.surrogate
        is_up_to_date = entry["content"] == source.content_hash
        if is_of_surrogate and is_up_to_date:
            return Marks(
                near_best=entry["near_best"],
                copying=entry["copying"],
                portfolio=entry["portfolio"],
            )
    return None


def write_marks(path: Path, marks: Sequence[tuple[SourceOfMarks, Marks]], *, command: str) -> None:
    """Write marks of benchmarks, and the command that computed them, to a file.

    The file keeps its marks of other benchmarks. Its marks of the same benchmarks are replaced,
    even if they are of another version of the benchmark.

    Args:
        path: The file, which need not exist.
        marks: The marks of each benchmark with what they were computed from.
        command: The command that computed them.
    """
    replaced_names = {BenchmarkIdentity.parse(source.id).name for source, _ in marks}
    entries: dict[str, Any] = {}
    for identity, entry in _read_entries(path).items():
        name = BenchmarkIdentity.parse(identity).name  # without the version
        if name not in replaced_names:
            entries[identity] = entry
    for source, marks_of_benchmark in marks:
        entries[source.id] = {
            "surrogate": source.surrogate,
            "content": source.content_hash,
            "near_best": marks_of_benchmark.near_best,
            "copying": marks_of_benchmark.copying,
            "portfolio": marks_of_benchmark.portfolio,
        }

    content = {
        "command": command,
        "versions": find_versions("hpobench-ordered", "numpy"),
        "configurations": N_CONFIGURATIONS,
        "seed": SEED,
        "benchmarks": dict(sorted(entries.items())),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def _read_entries(file: Traversable) -> Mapping[str, Any]:
    """Read the entries of a file of marks, by benchmark ID; none if there is no such file.

    Raises:
        ArtifactError: The file is not JSON, or not that of marks.
    """
    if not file.is_file():
        return {}
    try:
        entries: Mapping[str, Any] = json.loads(file.read_bytes())["benchmarks"]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{file} holds no marks: {error!r}") from None
    return entries


def _find_regret_of_most(regrets: FloatArray) -> float | None:
    """Find the lowest number that the regrets on two thirds of the tasks do not exceed.

    Tasks whose regret is NaN do not count; None if there are no others, as with a single task.
    """
    judged = regrets[~np.isnan(regrets)]
    if len(judged) == 0:
        return None
    return _find_upper_bound_of_most(judged)


def _find_lower_bound_of_most(values_of_tasks: FloatArray) -> float:
    """Find the highest number that the values of two thirds of the tasks, (tasks,), reach."""
    # A value reaches a bound if, with the opposite sign of both, it does not exceed the bound.
    return -_find_upper_bound_of_most(-values_of_tasks)


def _find_upper_bound_of_most(values_of_tasks: FloatArray) -> float:
    """Find the lowest number that the values of two thirds of the tasks, (tasks,), do not exceed.

    It is rounded to as many digits as are stored.
    """
    covered_count = math.ceil(SHARE_OF_TASKS * len(values_of_tasks))  # of tasks
    ascending = np.sort(values_of_tasks)
    upper_bound = float(ascending[covered_count - 1])
    return round(upper_bound, DIGITS)
