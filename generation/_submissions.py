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
    """Read the descriptions of submitted methods, NAME.toml in a folder of submissions.

    Returns:
        The descriptions, by the method's name in results.

    Raises:
        ArtifactError: One of them is malformed.
    """
    return dict(read_submission(path) for path in sorted(folder.glob("*.toml")))


def read_submitted_files(folder: Path) -> Iterator[ReferenceFile]:
    """Read and check the trials in a folder of submissions.

    Yields:
        What the reference results store of each method on each benchmark.

    Raises:
        ArtifactError: Some trials cannot be taken in; the message says which, and why.
    """
    for description in sorted(folder.glob("*.toml")):
        name, submission = read_submission(description)
        trials = description.with_suffix(".parquet")
        # Without this file, the method's results are in the reference results already.
        if trials.exists():
            yield from _read_trials(trials, name, submission)


def _read_trials(path: Path, name: str, submission: Submission) -> Iterator[ReferenceFile]:
    """Read and check the trials of a submitted method.

    Args:
        path: The file of trials.
        name: Name of the method in results.
        submission: Description of the method.

    Yields:
        What the reference results store of the method on each benchmark.
    """
    import pandas as pd

    try:
        trials = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is no Parquet file: {error}") from None
    missing_columns = [column for column in COLUMNS if column not in trials]
    if missing_columns:
        raise ArtifactError(f"{path} has no column {join_words(missing_columns)}")
    # Methods of the package have run beside it: they are in the reference results already.
    trials = trials[~trials["method"].isin(list_methods())]
    methods = sorted(trials["method"].unique())
    if len(methods) != 1:
        names = join_words(methods) or "none"
        raise ArtifactError(f"{path} must have the trials of one method of others, but has {names}")

    for labels, trials_of_benchmark in trials.groupby(["benchmark", "surrogate", "protocol"]):
        identity, surrogate, protocol = map(str, labels)
        try:
            yield _check_and_select_trials(
                trials_of_benchmark,
                where={"benchmark": identity, "surrogate": surrogate, "protocol": protocol},
                name=name,
                version=submission.versions,
            )
        except HPOBenchOrderedError as error:
            raise ArtifactError(f"{path}, {identity}: {error}") from None


def _check_and_select_trials(
    trials: "pd.DataFrame", *, where: Mapping[str, str], name: str, version: str
) -> ReferenceFile:
    """Check the trials of a method on one benchmark, and select what the reference stores.

    Args:
        trials: One row per trial.
        where: `benchmark`, as NAME@VERSION, `surrogate` and `protocol` of the trials.
        name: Name of the method in results.
        version: Its version in results.

    Raises:
        ArtifactError: The trials cannot be taken in; the message says why.
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

    # A run is one seed; its key identifies it in the reference results.
    runs = []
    key_of_seed = {}
    for seed in sorted(trials["seed"].unique().tolist()):
        if not 0 <= seed <= LARGEST_SEED:
            raise ArtifactError(f"seeds must be from 0 to {LARGEST_SEED}, but one is {seed}")
        run = {**where, "method": name, "method_version": version, "seed": seed}
        key_of_seed[seed] = key_of(run)
        runs.append({"key": key_of_seed[seed], **run})
    labelled_trials = trials.assign(key=trials["seed"].map(key_of_seed), method=name)
    return ReferenceFile.of_results(pd.DataFrame(runs), labelled_trials, spec)


def _check_values(trials: "pd.DataFrame", spec: "BenchmarkSpec", surrogate: str) -> None:
    """Check that each seed has all trials of all tasks, and that values are the benchmark's.

    Args:
        trials: The trials of a method on the benchmark.
        spec: The benchmark.
        surrogate: The surrogate that the trials were evaluated on.

    Raises:
        ArtifactError: A seed has too few trials or too many, or a value is wrong.
    """
    tasks = spec.load(surrogate).tasks[: PROTOCOL.tasks]  # all of them, if this number is None
    expected_number = len(tasks) * PROTOCOL.trials
    for seed, trials_of_seed in trials.groupby("seed"):
        is_repeated = trials_of_seed.duplicated(["task", "trial"])
        if len(trials_of_seed) != expected_number or is_repeated.any():
            raise ArtifactError(
                f"seed {seed} must have {PROTOCOL.trials} trials of each of "
                f"{len(tasks)} tasks, {expected_number} in all, but has {len(trials_of_seed)}"
            )
    for index, task in enumerate(tasks):
        trials_of_task = trials[trials["task"] == index]
        _check_values_of_task(trials_of_task, task)


def _check_values_of_task(trials: "pd.DataFrame", task: "Task") -> None:
    """Evaluate a task's configurations again, and check that the trials have the same values.

    Raises:
        ArtifactError: A hyperparameter has no column, or a value is wrong.
        InvalidConfigError: A configuration is not in the search space.
    """
    name_of_column = {CONFIG_PREFIX + name: name for name in task.space.names}
    missing_columns = [column for column in name_of_column if column not in trials]
    if missing_columns:
        raise ArtifactError(f"there is no column {join_words(missing_columns)}")
    configs = trials[list(name_of_column)].rename(columns=name_of_column)
    values = task.evaluate_many(configs)

    # Compared as losses, since the value of a failed evaluation, NaN, does not equal itself.
    losses = task.objective.losses(values)
    submitted_losses = task.objective.losses(trials["value"].to_numpy(dtype=np.float64))
    is_wrong = losses != submitted_losses
    if is_wrong.any():
        first = trials[is_wrong].iloc[0]
        raise ArtifactError(
            f"{is_wrong.sum()} values on task {task.name} are not those of the benchmark, such as "
            f"{first['value']} in trial {first['trial']} of seed {first['seed']}, where it is "
            f"{values[is_wrong][0]}"
        )
