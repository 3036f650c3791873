"""Training the two learners of the OpenML flows 5891 (SVM) and 6767 (XGBoost) on data sets.

The objective is the area under the ROC curve (AUC) in 5-fold stratified cross-validation, on the
same folds for both learners.

Trainings are stored by `_training.run_trainings`. An outcome holds one evaluation, or one for each
number of rounds that a boosting is read at:

    {"evaluations": [{"value", "spread", "folds", "seconds", "capped"}, ...]}

    value    mean AUC over folds
    spread   standard deviation of the folds' AUCs (ddof 1)
    folds    AUC of each fold
    seconds  training and prediction, all folds together; of a boosting, up to this round
    capped   whether a solver stopped at its greatest number of iterations

Notation:
    n   number of examples, or of configurations
    p   number of inputs
    K   number of classes
    S   number of columns of scores: 1 for two classes, else K
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmarks._openml_data import ClassificationData
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.generation._flows.datasets import FOLD_SEED, FOLDS, Fold, folds
from hpobench_ordered.generation._flows.designs import ROUNDS, svm_design, xgboost_design
from hpobench_ordered.generation._raw import make_raw_frame, name_config_columns
from hpobench_ordered.generation._training import Trainer, TrainingJob, run_trainings
from hpobench_ordered.generation.base import Progress, silent
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pandas as pd

KERNELS = {"linear": "linear", "polynomial": "poly", "radial": "rbf", "sigmoid": "sigmoid"}
"""scikit-learn's names of e1071's kernels."""
SOLVER_WORK = 10**8
"""An SVM's solver makes at most this many iterations, divided by the number of examples.

A quarter of a second or so. A limit on time would make results depend on the machine.
"""


def _evaluation(areas: Sequence[float], seconds: float, *, capped: bool) -> dict[str, Any]:
    return {
        "value": float(np.mean(areas)),
        "spread": float(np.std(areas, ddof=1)),
        "folds": list(areas),
        "seconds": seconds,
        "capped": capped,
    }


@dataclass(frozen=True, slots=True)
class SVMTrainer:
    """Trains libsvm as e1071::svm does, by scikit-learn; inputs standardised in every fold.

    Hyperparameters: kernel, cost, gamma (not linear), degree (polynomial). coef0 is 0, the
    tolerance 0.001. Where the solver stops early, the values are those of that moment.
    """

    data: ClassificationData

    @property
    def identity(self) -> Mapping[str, Any]:
        """Learner, data, scikit-learn's version and what is fixed."""
        return {
            "learner": "svm",
            "data": self.data.digest,
            "folds": [FOLDS, FOLD_SEED],
            "solver_work": SOLVER_WORK,
            "scikit-learn": _sklearn().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Cross-validate a configuration."""
        begin = time.perf_counter()
        results = [_svm_fold(fold.standardised(), config) for fold in folds(self.data)]
        areas, stops = zip(*results, strict=True)
        seconds = time.perf_counter() - begin
        return {"evaluations": [_evaluation(areas, seconds, capped=any(stops))]}


def _svm_fold(fold: Fold, config: Mapping[str, Any]) -> tuple[float, bool]:
    """AUC, and whether the solver stopped early."""
    sklearn = _sklearn()
    machine = sklearn.svm.SVC(
        kernel=KERNELS[config["kernel"]],
        C=config["cost"],
        gamma=config.get("gamma", "scale"),  # any value if inactive
        degree=config.get("degree", 3),
        coef0=0.0,
        tol=1e-3,
        max_iter=int(SOLVER_WORK / len(fold.y)),
        random_state=0,  # no effect, but avoids the global generator
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        machine.fit(fold.x, fold.y)
    decision = machine.decision_function(fold.x_test)
    if fold.classes == 2:
        return fold.auc(decision[:, None]), bool(machine.fit_status_)
    scores = np.zeros((len(fold.y_test), fold.classes))
    known = machine.classes_
    # Two classes have one decision value; the score of an absent class stays 0.
    scores[:, known] = decision if len(known) > 2 else np.stack([-decision, decision], axis=1)
    return fold.auc(scores), bool(machine.fit_status_)


@dataclass(frozen=True, slots=True)
class BoostingTrainer:
    """Trains XGBoost with the settings of the R package 0.6-4, and reads it at several rounds.

    Hyperparameters: booster, eta, lambda, alpha, and for trees max_depth, min_child_weight,
    subsample, colsample_bytree, colsample_bylevel; `rounds` in place of nrounds, ascending.
    Each is exactly what a training of that many rounds alone gives.

    Every class starts from base_score 0.5. Differently from 0.6-4, splits are looked for in
    histograms (`tree_method="hist"`: 0.06 to 0.3 ms a round on these data, three to five times
    faster than the exact method), and linear models descend coordinate by coordinate, since the
    default updater of then and now, shotgun, gives another result every time.
    """

    data: ClassificationData

    @property
    def identity(self) -> Mapping[str, Any]:
        """Learner, data, versions and what is fixed."""
        return {
            "learner": "xgboost",
            "data": self.data.digest,
            "folds": [FOLDS, FOLD_SEED],
            "parameters": _fixed_parameters("gbtree", 2) | _fixed_parameters("gblinear", 2),
            "scikit-learn": _sklearn().__version__,
            "xgboost": _xgboost().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Cross-validate a configuration at its numbers of rounds."""
        results = np.array([_boost_fold(fold, config) for fold in folds(self.data)])
        areas, seconds = results[:, :, 0].T, results[:, :, 1].sum(axis=0)
        return {
            "evaluations": [
                _evaluation(at.tolist(), float(spent), capped=False)
                for at, spent in zip(areas, seconds, strict=True)
            ]
        }


def _boost_fold(fold: Fold, config: Mapping[str, Any]) -> list[tuple[float, float]]:
    """AUC and seconds at each number of rounds."""
    begin = time.perf_counter()
    areas = (fold.auc(_log_odds(margin)) for margin in _margins(fold, config))
    return [(area, time.perf_counter() - begin) for area in areas]


def _margins(fold: Fold, config: Mapping[str, Any]) -> Iterator[FloatArray]:
    """Margins of the test inputs at each number of rounds, shape (n, S)."""
    xgboost = _xgboost()
    parameters = dict(config) | _fixed_parameters(config["booster"], fold.classes)
    rounds = parameters.pop(ROUNDS)
    matrix = xgboost.QuantileDMatrix if config["booster"] == "gbtree" else xgboost.DMatrix
    train = matrix(fold.x, fold.y, nthread=1)
    test = xgboost.DMatrix(fold.x_test, nthread=1)
    # XGBoost caches the margins of known matrices and adds those of new rounds.
    booster = xgboost.Booster(parameters, [train, test])
    done = 0
    for count in rounds:
        for iteration in range(done, count):
            booster.update(train, iteration)
        done = count
        margin = booster.predict(test, output_margin=True)
        yield margin.astype(np.float64).reshape(len(fold.y_test), -1)


def _log_odds(margin: FloatArray) -> FloatArray:
    """Scores from margins, shape (n, S) to (n, S): log-probabilities if there is one per class."""
    if margin.shape[1] == 1:
        return margin
    from scipy.special import log_softmax

    return np.asarray(log_softmax(margin, axis=1))


def _fixed_parameters(booster: str, classes: int) -> dict[str, Any]:
    objective = (
        {"objective": "binary:logistic"}
        if classes == 2
        else {"objective": "multi:softprob", "num_class": classes}
    )
    method = (
        {"tree_method": "hist"}
        if booster == "gbtree"
        else {"updater": "coord_descent", "feature_selector": "cyclic"}
    )
    return objective | method | {"base_score": 0.5, "nthread": 1, "seed": 0, "verbosity": 1}


class FlowLearner(NamedTuple):
    """A flow's learner, and what configurations it is trained with."""

    trainer: Callable[[ClassificationData], Trainer]
    design: Callable[[SearchSpace, int, int, str], Sequence[Mapping[str, Any]]]


SVM, XGBOOST = FlowLearner(SVMTrainer, svm_design), FlowLearner(BoostingTrainer, xgboost_design)


def train_flow(
    learner: FlowLearner,
    data: Mapping[str, ClassificationData],
    *,
    n: int,
    seed: int,
    folder: Path,
    workers: int = 1,
    progress: Progress = silent,
    space: SearchSpace,
) -> "pd.DataFrame":
    """Train a flow's learner with n configurations on every data set, except for stored trainings.

    One row per evaluation, in the order of tasks, design and rounds: `task`, `training` (the same
    for all evaluations of a training), `config.<hyperparameter>` (native, null where inactive),
    `value`, `spread`, `capped`, `seconds`. All but the seconds is independent of workers and
    interruptions; `progress` gets the number of trainings done of each task.
    """
    rows: list[dict[str, Any]] = []
    for task, dataset in data.items():
        jobs = [TrainingJob(task, config) for config in learner.design(space, n, seed, task)]
        outcomes = run_trainings(
            learner.trainer(dataset),
            jobs,
            folder,
            workers=workers,
            progress=lambda _, done, total, task=task: progress(f"task {task}", done, total),
        )
        for training, (job, outcome) in enumerate(zip(jobs, outcomes, strict=True)):
            rows += _rows(task, training, job.config, outcome)
    return make_raw_frame(rows, space, {"capped": "bool", "seconds": "float64"})


def _rows(
    task: str, training: int, config: Mapping[str, Any], outcome: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The evaluations of one training."""
    single = {name: value for name, value in config.items() if name != ROUNDS}
    configs: list[Config] = [single | {"nrounds": count} for count in config.get(ROUNDS, ())]
    for native, evaluation in zip(configs or [single], outcome["evaluations"], strict=True):
        measured = {name: evaluation[name] for name in ("value", "spread", "capped", "seconds")}
        yield {"task": task, "training": training} | name_config_columns(native) | measured


def _sklearn() -> Any:
    import_extra("sklearn.svm", package="scikit-learn", extra="train", purpose="training")
    import sklearn.exceptions

    return sklearn


def _xgboost() -> Any:
    return import_extra("xgboost", package="xgboost", extra="train", purpose="training")
