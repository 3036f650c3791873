"""Training XGBoost on MNIST (OTHPO paper, section 4 and appendix B).

A task's training set is the first s images of one fixed shuffle; the objective is the number of
misclassified images among the last 14 000. `train_many` evaluates configurations x sizes in
parallel and stores every finished evaluation, so that it can be interrupted at any time; an
evaluation's place in the folder is the training-set size.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import ConfigLike
from hpobench_ordered.errors import needed
from hpobench_ordered.generation._mnist import Split
from hpobench_ordered.generation._training import Job, Trainer, run_trainings
from hpobench_ordered.generation.base import Progress, silent

if TYPE_CHECKING:
    import pandas as pd


class TreeMethod(Enum):
    """XGBoost's algorithm for finding splits."""

    EXACT = "exact"
    HIST = "hist"


@dataclass(frozen=True, slots=True)
class Settings:
    """Fixed settings of the classifier, apart from the four hyperparameters.

    `base_score` is the initial margin of every class; None lets XGBoost estimate it from the
    classes' frequencies (its default from version 3.1 on).
    """

    tree_method: TreeMethod
    base_score: float | None


AS_PUBLISHED = Settings(TreeMethod.EXACT, 0.5)
"""The defaults of XGBoost 1.x, which reproduce the published evaluations.

From equal margins every class has probability 0.1, so a root's hessian is 2 * 0.1 * 0.9 * s for s
images. Below min_child_weight no tree has weight, and the tie goes to class 0; starting from the
classes' frequencies instead, the most frequent class wins until the trees outweigh the start.
"""

CURRENT_DEFAULTS = Settings(TreeMethod.HIST, None)
"""The defaults of XGBoost 3.1 and later; `hist` has been one since 2.0."""


class Outcome(NamedTuple):
    """Outcome of an evaluation: misclassified validation images, and seconds."""

    error_count: int
    seconds: float


def train_and_count(
    split: Split,
    config: ConfigLike,
    train_size: int,
    *,
    threads: int = 1,
    settings: Settings = AS_PUBLISHED,
) -> Outcome:
    """Train XGBoost on the first images of the pool and count validation errors."""
    if not split.smallest <= train_size <= len(split.pool):
        raise ValueError(
            f"train_size must be in {split.smallest}..{len(split.pool)}, but got {train_size}"
        )
    xgboost = _xgboost()
    begin = time.perf_counter()
    classifier = xgboost.XGBClassifier(
        **config,
        tree_method=settings.tree_method.value,
        base_score=settings.base_score,
        random_state=0,  # as the authors; has no effect, as nothing is subsampled
        n_jobs=threads,
    )
    classifier.fit(split.pool[:train_size], split.pool_labels[:train_size])
    wrong = classifier.predict(split.validation) != split.validation_labels
    return Outcome(int(np.count_nonzero(wrong)), time.perf_counter() - begin)


@dataclass(frozen=True, slots=True)
class XGBoostTrainer:
    """Trains XGBoost on a split with fixed settings and number of threads."""

    split: Split
    threads: int = 1
    settings: Settings = AS_PUBLISHED

    @property
    def identity(self) -> Mapping[str, Any]:
        """Data, settings and XGBoost's version; the number of threads has no effect."""
        return {
            "data": self.split.digest,
            "tree_method": self.settings.tree_method.value,
            "base_score": self.settings.base_score,
            "xgboost": _xgboost().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train on as many images as `where` says and count errors."""
        outcome = train_and_count(
            self.split, config, int(where), threads=self.threads, settings=self.settings
        )
        return outcome._asdict()


def train_many(
    trainer: Trainer,
    configs: Sequence[ConfigLike],
    sizes: Sequence[int],
    folder: Path,
    *,
    workers: int = 1,
    progress: Progress = silent,
) -> "pd.DataFrame":
    """Evaluate every configuration on every size that `folder` does not hold yet.

    One row per evaluation, in the order of `sizes`, then of `configs`: `train_size`,
    `configuration` (index in `configs`), the hyperparameters, `error_count`, `seconds`. All but new
    seconds is independent of workers and interruptions. The trainer returns an `Outcome`;
    `progress` gets the number of evaluations done, including stored ones.
    """
    import pandas as pd

    plain = [dict(config) for config in configs]
    asked = [(size, index) for size in map(int, sizes) for index in range(len(plain))]
    jobs = [Job(str(size), plain[index]) for size, index in asked]
    outcomes = run_trainings(trainer, jobs, folder, workers=workers, progress=progress)
    return pd.DataFrame.from_records(
        [
            {"train_size": size, "configuration": index, **plain[index], **outcome}
            for (size, index), outcome in zip(asked, outcomes, strict=True)
        ]
    )


def _xgboost() -> Any:
    return needed("xgboost", package="xgboost", extra="train", purpose="training")
