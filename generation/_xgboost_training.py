"""Training XGBoost on MNIST (OTHPO paper, section 4 and appendix B).

A task's training set is the first s images of one fixed shuffle; the objective is the number of
misclassified images among the last 14 000. `train_configs` evaluates configurations x sizes in
parallel and stores every finished evaluation, so that it can be interrupted at any time; an
evaluation's place in the folder is the training-set size.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import ConfigLike, FloatArray
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.generation._mnist import MnistSplit
from hpobench_ordered.generation._training import Trainer, TrainingJob, run_trainings
from hpobench_ordered.generation.base import Progress, ignore_progress

AS_PUBLISHED = {"tree_method": "exact", "base_score": 0.5}
"""The defaults of XGBoost 1.x, which reproduce the published evaluations.

`base_score` is the initial margin of every class. From equal margins every class has probability
0.1, so a root's hessian is 2 * 0.1 * 0.9 * s for s images. Below min_child_weight no tree has
weight, and the tie goes to class 0; starting from the classes' frequencies instead, the most
frequent class wins until the trees outweigh the start.
"""


@dataclass(frozen=True)
class XGBoostTrainer:
    """Trains XGBoost on a split, with the settings `AS_PUBLISHED`."""

    split: MnistSplit

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an outcome besides the job: data, settings and XGBoost's version."""
        return {
            "data": self.split.digest,
            **AS_PUBLISHED,
            "xgboost": _import_xgboost().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train on the first images of the pool, and count the errors on the validation images.

        Args:
            config: The configuration.
            where: The number of images, as text: it also names the folder of stored trainings.

        Returns:
            "error_count", the number of misclassified validation images, and "seconds".
        """
        size = int(where)
        split = self.split
        begin = time.perf_counter()
        # The authors' seed and threads; the seed has no effect, as nothing is subsampled.
        classifier = _import_xgboost().XGBClassifier(
            **config, **AS_PUBLISHED, random_state=0, n_jobs=1
        )
        classifier.fit(split.pool[:size], split.pool_labels[:size])
        is_wrong = classifier.predict(split.validation) != split.validation_labels
        seconds = time.perf_counter() - begin
        return {"error_count": int(np.count_nonzero(is_wrong)), "seconds": seconds}


def train_configs(
    trainer: Trainer,
    configs: Sequence[ConfigLike],
    sizes: Sequence[int],
    folder: Path,
    *,
    workers: int = 1,
    progress: Progress = ignore_progress,
) -> FloatArray:
    """Train n configurations on training sets of S sizes, unless `folder` holds the outcomes.

    Args:
        trainer: Trains a configuration on a number of images.
        configs: The n configurations.
        sizes: The S sizes.
        folder: Stores the outcomes.
        workers: Number of processes.
        progress: Is told the number of trainings done.

    Returns:
        The error counts, (n, S).
    """
    # Size by size; the place of a training in the folder is its size.
    jobs = [TrainingJob(str(size), dict(config)) for size, config in product(sizes, configs)]
    outcomes = run_trainings(trainer, jobs, folder, workers=workers, progress=progress)
    counts = np.array([outcome["error_count"] for outcome in outcomes], dtype=np.float64)
    counts_by_size = counts.reshape(len(sizes), len(configs))
    return counts_by_size.T


def _import_xgboost() -> Any:
    """Import XGBoost; a `MissingExtraError` says how to install it if it is missing."""
    return import_extra("xgboost", package="xgboost", extra="train", purpose="training")
