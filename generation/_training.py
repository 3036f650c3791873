"""Runs trainings in parallel, stores each one, and can be resumed.

A `TrainingJob` is one training: a configuration, and where it is trained (a task, a training-set
size). A `Trainer` does it. `run_trainings` does all jobs and stores every finished one:

    FOLDER/<where>/<key>.json   one finished training

Killing the process loses only the trainings in flight; running again continues. The key hashes
everything that determines a training, so folders are merged by copying them together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hpobench_ordered.data.identity import hash_json
from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import StoreError
from hpobench_ordered.generation.base import Progress, ignore_progress


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A training to do.

    Attributes:
        where: Place of the training, such as a task; it names a folder of stored trainings.
        config: The configuration.
    """

    where: str
    config: Mapping[str, Any]


class Trainer(Protocol):
    """Trains a configuration; can be pickled."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All settings besides the job that determine an outcome, as JSON."""
        ...

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train; return the outcome as JSON."""
        ...


def run_trainings(
    trainer: Trainer,
    jobs: Sequence[TrainingJob],
    folder: Path,
    *,
    workers: int = 1,
    progress: Progress = ignore_progress,
) -> list[Mapping[str, Any]]:
    """Do every job whose outcome is not stored yet, equal jobs once, and return all outcomes.

    Args:
        trainer: Does the jobs.
        jobs: The jobs.
        folder: Stores the outcomes.
        workers: Number of processes.
        progress: Is told the number of distinct jobs done, including stored ones.

    Returns:
        The outcome of every job, in the order of the jobs.

    Raises:
        StoreError: The file of an outcome is damaged.
    """
    from joblib import Parallel, delayed

    identity = trainer.identity
    paths = [_choose_path(folder, identity, job) for job in jobs]
    job_of_path = dict(zip(paths, jobs, strict=True))  # equal jobs have the same path

    # Fail on damaged files now, not after hours of training.
    outcome_of_path = {path: _read_outcome(path) for path in job_of_path if path.exists()}
    missing = {path: job for path, job in job_of_path.items() if path not in outcome_of_path}
    for path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
    progress("training", len(outcome_of_path), len(job_of_path))

    # With batches, finished trainings would be stored late.
    parallel = Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
    calls = (delayed(_train_and_store)(trainer, job, path) for path, job in missing.items())
    for path, outcome in parallel(calls):
        outcome_of_path[path] = outcome
        progress("training", len(outcome_of_path), len(job_of_path))
    return [outcome_of_path[path] for path in paths]


def _choose_path(folder: Path, identity: Mapping[str, Any], job: TrainingJob) -> Path:
    """Choose the file of a training, named by the hash of all that determines its outcome.

    Args:
        folder: Folder of stored trainings.
        identity: All settings of the trainer besides the job.
        job: The training.
    """
    content = {"where": job.where, "config": dict(job.config), "trainer": identity}
    key = hash_json(content, sort_keys=True)[:32]  # 128 bits, so that no two agree
    return folder / job.where / f"{key}.json"


def _train_and_store(
    trainer: Trainer, job: TrainingJob, path: Path
) -> tuple[Path, Mapping[str, Any]]:
    """Do a training and store it.

    Returns:
        The path, and the outcome as it will be read from the file.
    """
    outcome = trainer(job.config, job.where)
    record = {
        "where": job.where,
        "config": dict(job.config),
        "trainer": dict(trainer.identity),
        "outcome": dict(outcome),
    }
    data = json.dumps(record, indent=1, allow_nan=False).encode()
    write_atomically(path, data)
    return path, json.loads(data)["outcome"]


def _read_outcome(path: Path) -> Mapping[str, Any]:
    """Read the outcome of a finished training; raise a `StoreError` if its file is damaged."""
    try:
        return dict(json.loads(path.read_bytes())["outcome"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} is not a finished training ({error!r}); delete it to repeat the training"
        ) from error
