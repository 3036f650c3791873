"""Takes in results that others submitted: a folder with two files for each method.

NAME.toml describes the method, see `experiment.submission`. NAME.parquet has every trial of its
runs, as `hpobench-ordered export results --output NAME.parquet` writes them; methods of the package
in it are left out. It may be absent when its results are in the reference results already.

Checked are the versions of benchmarks; that protocol and seeds are those of the reference results;
that runs are complete; that configurations are in the search space; and that each value is what the
benchmark gives for its configuration. What no check can tell: whether the method saw only what the
protocol shows it, and whether runs were selected.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._wording import join_words
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.tables import CONFIG_PREFIX
from hpobench_ordered.errors import ArtifactError, HPOBenchOrderedError
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.plan import key_of
from hpobench_ordered.experiment.protocols import Ordered, format_protocol
from hpobench_ordered.experiment.submission import Submission, read_submission
from hpobench_ordered.methods.registry import list_methods

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.data.benchmark import Task
    from hpobench_ordered.data.specs import BenchmarkSpec

PROTOCOL = Ordered()
"""The protocol of submitted results."""

LARGEST_SEED = 9
"""Submitted seeds are from 0 to this one, as in the reference results."""

COLUMNS = (
    "benchmark",
    "surrogate",
    "protocol",
    "method",
    "seed",
    "task",
    "task_name",
    "trial",
    "value",
    "loss",
    "fallbacks",
)
"""Columns of an export that are read, besides those of hyperparameters."""


def read_descriptions(folder: Path) -> dict[str, Submission]:
    """Read the descriptions in a folder of submissions, by name of the method in results.

    Raises:
        ArtifactError: One of them is malformed.
    """
    return dict(read_submission(path) for path in sorted(folder.glob("*.toml")))


def read_submitted_files(folder: Path) -> Iterator[ReferenceFile]:
    """Read and check the trials in a folder of submissions, a file for each benchmark.

    Raises:
        ArtifactError: Some trials cannot be taken in; the message says which, and why.
    """
    for path in sorted(folder.glob("*.toml")):
        name, submission = read_submission(path)
        path_of_trials = path.with_suffix(".parquet")
        if path_of_trials.exists():
            yield from _read_trials(path_of_trials, name, submission)


def _read_trials(path: Path, name: str, submission: Submission) -> Iterator[ReferenceFile]:
    """Read and check the trials of one method, a file for each benchmark."""
    import pandas as pd

    try:
        trials = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is no Parquet file: {error}") from None
    missing = [column for column in COLUMNS if column not in trials]
    if missing:
        raise ArtifactError(f"{path} has no column {join_words(missing)}")
    # Methods of the package have run beside it: they are in the reference results already.
    trials = trials[~trials["method"].isin(list_methods())]
    methods = sorted(trials["method"].unique())
    if len(methods) != 1:
        names = join_words(methods) or "none"
        raise ArtifactError(f"{path} must have the trials of one method of others, but has {names}")

    for labels, trials_of_benchmark in trials.groupby(["benchmark", "surrogate", "protocol"]):
        identity, surrogate, protocol = map(str, labels)
        try:
            yield _read_benchmark(
                trials_of_benchmark,
                where={"benchmark": identity, "surrogate": surrogate, "protocol": protocol},
                name=name,
                version=submission.versions,
            )
        except HPOBenchOrderedError as error:
            raise ArtifactError(f"{path}, {identity}: {error}") from None


def _read_benchmark(
    trials: "pd.DataFrame", *, where: Mapping[str, str], name: str, version: str
) -> ReferenceFile:
    """Check the trials of a method on one benchmark, and select what the reference stores.

    Args:
        trials: One row per trial.
        where: Benchmark, surrogate and protocol.
        name: Name of the method in results.
        version: Its version in results.
    """
    import pandas as pd

    spec = benchmark_spec(BenchmarkIdentity.parse(where["benchmark"]).name)
    installed = spec.identity(where["surrogate"])
    if where["benchmark"] != installed:
        raise ArtifactError(f"its version is not the installed one, {installed}")
    if where["protocol"] != format_protocol(PROTOCOL):
        raise ArtifactError(
            f"the protocol must be {format_protocol(PROTOCOL)}, but is {where['protocol']}"
        )
    _check_values(trials, spec, where["surrogate"])

    runs = []
    key_of_seed = {}
    for seed in sorted(trials["seed"].unique().tolist()):
        if not 0 <= seed <= LARGEST_SEED:
            raise ArtifactError(f"seeds must be from 0 to {LARGEST_SEED}, but one is {seed}")
        cell = {**where, "method": name, "method_version": version, "seed": seed}
        key_of_seed[seed] = key_of(cell)
        runs.append({"key": key_of(cell), **cell})
    labelled = trials.assign(key=trials["seed"].map(key_of_seed), method=name)
    return ReferenceFile.of_results(pd.DataFrame(runs), labelled, spec)


def _check_values(trials: "pd.DataFrame", spec: "BenchmarkSpec", surrogate: str) -> None:
    """Check that all tasks have all trials, and that values are those of the configurations."""
    tasks = spec.load(surrogate).tasks[: PROTOCOL.tasks]  # None: all
    expected = len(tasks) * PROTOCOL.trials
    for seed, run in trials.groupby("seed"):
        is_repeated = run.duplicated(["task", "trial"])
        if len(run) != expected or is_repeated.any():
            raise ArtifactError(
                f"seed {seed} must have {PROTOCOL.trials} trials of each of "
                f"{len(tasks)} tasks, {expected} in all, but has {len(run)}"
            )
    for number, task in enumerate(tasks):
        trials_of_task = trials[trials["task"] == number]
        _check_values_of_task(trials_of_task, task)


def _check_values_of_task(trials: "pd.DataFrame", task: "Task") -> None:
    """Check that the values of a task's trials are those of the benchmark."""
    names = {CONFIG_PREFIX + name: name for name in task.space.names}
    missing = [column for column in names if column not in trials]
    if missing:
        raise ArtifactError(f"there is no column {join_words(missing)}")
    configs = trials[list(names)].rename(columns=names)
    values = task.evaluate_many(configs)  # raises if a configuration is not in the space

    losses = task.objective.losses(values)
    # Compared as losses, since the value of a failed evaluation, NaN, does not equal itself.
    is_wrong = losses != task.objective.losses(trials["value"].to_numpy(dtype=np.float64))
    if is_wrong.any():
        first = trials[is_wrong].iloc[0]
        raise ArtifactError(
            f"{is_wrong.sum()} values on task {task.name} are not those of the benchmark, such as "
            f"{first['value']} in trial {first['trial']} of seed {first['seed']}, where it is "
            f"{values[is_wrong][0]}"
        )
