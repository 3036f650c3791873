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
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.generation._flows.datasets import FOLD_SEED, FOLDS, Fold, iter_folds
from hpobench_ordered.generation._flows.designs import ROUNDS_KEY, design_svm, design_xgboost
from hpobench_ordered.generation._raw import make_raw_frame, name_config_columns
from hpobench_ordered.generation._training import Trainer, TrainingJob, run_trainings
from hpobench_ordered.generation.base import Progress, ignore_progress
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pandas as pd

KERNELS = {"linear": "linear", "polynomial": "poly", "radial": "rbf", "sigmoid": "sigmoid"}
"""scikit-learn's names of e1071's kernels."""
SOLVER_WORK = 10**8  # iterations times examples
"""An SVM's solver makes at most this many iterations, divided by the number of examples.

A quarter of a second or so. A limit on time would make results depend on the machine.
"""


def _make_evaluation(areas: Sequence[float], seconds: float, *, capped: bool) -> dict[str, Any]:
    """Make the record of an evaluation.

    Args:
        areas: Area under the ROC curve in each fold of the cross-validation.
        seconds: Time of training and prediction, all folds together.
        capped: Whether the solver stopped at its greatest number of iterations.

    Returns:
        The record, in which the value is the mean over the folds, and the spread their deviation.
    """
    return {
        "value": float(np.mean(areas)),
        "spread": float(np.std(areas, ddof=1)),
        "folds": list(areas),
        "seconds": seconds,
        "capped": capped,
    }


@dataclass(frozen=True, slots=True)
class SVMTrainer:
    """Trains libsvm by scikit-learn as e1071::svm does, with inputs standardised in every fold.

    Hyperparameters: kernel, cost, gamma (not linear), degree (polynomial). coef0 is 0, the
    tolerance 0.001. Where the solver stops early, the values are those of that moment.
    """

    data: ClassificationData

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an outcome besides configuration and task.

        These are the learner, its data and folds, the limit on its work, and scikit-learn's
        version.
        """
        return {
            "learner": "svm",
            "data": self.data.digest,
            "folds": [FOLDS, FOLD_SEED],
            "solver_work": SOLVER_WORK,
            "scikit-learn": _import_sklearn().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Cross-validate a configuration, and return its evaluation as the only one of the outcome.

        `where`, the name of the task, is part of the interface of trainers. It is not used, as
        `data` are those of the task.
        """
        begin = time.perf_counter()
        areas = []  # under the ROC curve, fold by fold
        was_stopped = False
        for fold in iter_folds(self.data):
            area, was_fold_stopped = _test_svm(fold.standardise(), config)
            areas.append(area)
            was_stopped = was_stopped or was_fold_stopped
        seconds = time.perf_counter() - begin
        return {"evaluations": [_make_evaluation(areas, seconds, capped=was_stopped)]}


def _test_svm(fold: Fold, config: Mapping[str, Any]) -> tuple[float, bool]:
    """Train an SVM and test it on a fold; return the AUC, and whether the solver stopped early."""
    sklearn = _import_sklearn()
    machine = sklearn.svm.SVC(
        kernel=KERNELS[config["kernel"]],
        C=config["cost"],
        gamma=config.get("gamma", "scale"),  # any value if inactive
        degree=config.get("degree", 3),
        coef0=0.0,
        tol=1e-3,
        max_iter=int(SOLVER_WORK / len(fold.y)),  # an iteration takes time in proportion to rows
        random_state=0,  # no effect, but avoids the global generator
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        machine.fit(fold.x, fold.y)
    was_stopped = bool(machine.fit_status_)  # 0 unless the solver stopped at `max_iter`
    return fold.compute_auc(_score_by_svm(machine, fold)), was_stopped


def _score_by_svm(machine: Any, fold: Fold) -> FloatArray:
    """Score the m test examples of a fold by a trained SVM.

    Returns:
        The decision values of class 1, (m, 1), if the data set has two classes, else those of each
        of the K classes, (m, K), with 0 for classes that the training part lacks.
    """
    decision = machine.decision_function(fold.x_test)
    if fold.classes == 2:
        return np.asarray(decision[:, None])

    trained_classes = machine.classes_  # numbers from 0, so columns of the scores
    if len(trained_classes) == 2:
        # Of two classes there is one decision value: positive for the second.
        decision = np.stack([-decision, decision], axis=1)
    scores = np.zeros((len(fold.y_test), fold.classes))
    scores[:, trained_classes] = decision
    return scores


@dataclass(frozen=True, slots=True)
class BoostingTrainer:
    """Trains XGBoost with the settings of the R package 0.6-4, and reads it at several rounds.

    Hyperparameters: booster, eta, lambda, alpha, and for trees max_depth, min_child_weight,
    subsample, colsample_bytree, colsample_bylevel; `rounds` in place of nrounds, ascending. The
    value at each number of rounds is exactly that of a separate training of so many rounds.

    Every class starts from base_score 0.5. Differently from 0.6-4, splits are looked for in
    histograms (`tree_method="hist"`: 0.06 to 0.3 ms a round on these data, three to five times
    faster than the exact method), and linear models descend coordinate by coordinate, since the
    default updater of then and now, shotgun, gives another result every time.
    """

    data: ClassificationData

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an outcome besides configuration and task.

        These are the learner, its data and folds, versions, and the parameters that are the same
        for all configurations. The parameters are those for two classes; those for more follow from
        the data.
        """
        fixed_parameters = _make_fixed_parameters("gbtree", classes=2)
        fixed_parameters |= _make_fixed_parameters("gblinear", classes=2)
        return {
            "learner": "xgboost",
            "data": self.data.digest,
            "folds": [FOLDS, FOLD_SEED],
            "parameters": fixed_parameters,
            "scikit-learn": _import_sklearn().__version__,
            "xgboost": _import_xgboost().__version__,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Cross-validate a configuration, and return an evaluation at each number of rounds.

        `where`, the name of the task, is part of the interface of trainers. It is not used, as
        `data` are those of the task.
        """
        # AUC and seconds of each fold at each number of rounds, (folds, numbers of rounds, 2).
        results = np.array([_test_boosting(fold, config) for fold in iter_folds(self.data)])
        areas = results[:, :, 0]  # (folds, numbers of rounds)
        seconds = results[:, :, 1].sum(axis=0)  # (numbers of rounds,)
        evaluations = [
            _make_evaluation(areas_of_count.tolist(), float(seconds_of_count), capped=False)
            for areas_of_count, seconds_of_count in zip(areas.T, seconds, strict=True)
        ]
        return {"evaluations": evaluations}


def _test_boosting(fold: Fold, config: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Train XGBoost and test it on a fold; return the AUC and seconds at each number of rounds.

    One training goes on from each number of rounds to the next. Seconds are counted from its
    beginning.
    """
    begin = time.perf_counter()
    results = []
    for margins in _iter_margins(fold, config):  # trains until the next number of rounds
        area = fold.compute_auc(_turn_into_scores(margins))
        results.append((area, time.perf_counter() - begin))
    return results


def _iter_margins(fold: Fold, config: Mapping[str, Any]) -> Iterator[FloatArray]:
    """Train, and yield the margins of n test inputs at each number of rounds, (n, S).

    Margins are XGBoost's sums over the rounds, before they become probabilities. There is one for
    two classes (S = 1), else one per class.
    """
    xgboost = _import_xgboost()
    parameters = dict(config) | _make_fixed_parameters(config["booster"], fold.classes)
    numbers_of_rounds = parameters.pop(ROUNDS_KEY)
    is_tree = config["booster"] == "gbtree"
    # Histograms of trees need only the quantiles of the inputs, which take less memory.
    matrix_class = xgboost.QuantileDMatrix if is_tree else xgboost.DMatrix
    train = matrix_class(fold.x, fold.y, nthread=1)
    test = xgboost.DMatrix(fold.x_test, nthread=1)

    # XGBoost caches the margins of these matrices and adds those of new rounds.
    booster = xgboost.Booster(parameters, [train, test])
    finished_rounds = 0
    for number_of_rounds in numbers_of_rounds:
        for iteration in range(finished_rounds, number_of_rounds):
            booster.update(train, iteration)
        finished_rounds = number_of_rounds
        margins = booster.predict(test, output_margin=True)
        yield margins.astype(np.float64).reshape(len(fold.y_test), -1)


def _turn_into_scores(margins: FloatArray) -> FloatArray:
    """Turn XGBoost's margins of n examples into scores of the same shape, (n, S).

    The one margin of two classes is a score as it is. Margins of several classes become
    log-probabilities, since only these compare different examples by one class.
    """
    if margins.shape[1] == 1:
        return margins
    from scipy.special import log_softmax

    return np.asarray(log_softmax(margins, axis=1))


def _make_fixed_parameters(booster: str, classes: int) -> dict[str, Any]:
    """Make the parameters of XGBoost that are the same for all configurations of a booster.

    Args:
        booster: "gbtree" or "gblinear".
        classes: Number of classes of the data set.
    """
    parameters: dict[str, Any] = {"base_score": 0.5, "nthread": 1, "seed": 0, "verbosity": 1}
    if classes == 2:
        parameters |= {"objective": "binary:logistic"}
    else:
        parameters |= {"objective": "multi:softprob", "num_class": classes}
    if booster == "gbtree":
        parameters |= {"tree_method": "hist"}
    else:
        parameters |= {"updater": "coord_descent", "feature_selector": "cyclic"}
    return parameters


class FlowLearner(NamedTuple):
    """A flow's learner, and what configurations it is trained with.

    Attributes:
        make_trainer: Makes a trainer on a data set.
        design: Configurations of a search space: n of them, by a seed and a task.
    """

    make_trainer: Callable[[ClassificationData], Trainer]
    design: Callable[[SearchSpace, int, int, str], Sequence[Mapping[str, Any]]]


SVM = FlowLearner(SVMTrainer, design_svm)
XGBOOST = FlowLearner(BoostingTrainer, design_xgboost)


def train_flow(
    learner: FlowLearner,
    data: Mapping[str, ClassificationData],
    *,
    n: int,
    seed: int,
    folder: Path,
    workers: int = 1,
    progress: Progress = ignore_progress,
    space: SearchSpace,
) -> "pd.DataFrame":
    """Train a flow's learner with n configurations on every data set.

    Args:
        learner: The learner.
        data: The data sets, by task.
        n: Number of configurations on each of them.
        seed: Seed of the configurations.
        folder: Where trainings are stored; those that it holds are not repeated.
        workers: Number of processes.
        progress: Is told how many trainings of each task are done.
        space: The search space.

    Returns:
        One row per evaluation, in the order of tasks, configurations and rounds: `task`,
        `training` (the same for all evaluations of a training), `config.<hyperparameter>` (native,
        null where inactive), `value`, `spread`, `capped`, `seconds`. All but the seconds is
        independent of workers and interruptions.
    """
    rows: list[dict[str, Any]] = []
    for task, data_set in data.items():
        jobs = [TrainingJob(task, config) for config in learner.design(space, n, seed, task)]
        outcomes = run_trainings(
            learner.make_trainer(data_set),
            jobs,
            folder,
            workers=workers,
            # The step is named after the task, which a default value binds now.
            progress=lambda _, done, total, task=task: progress(f"task {task}", done, total),
        )
        for training, (job, outcome) in enumerate(zip(jobs, outcomes, strict=True)):
            rows += _iter_rows(task, training, job.config, outcome)
    return make_raw_frame(rows, space, {"capped": "bool", "seconds": "float64"})


def _iter_rows(
    task: str, training: int, config: Mapping[str, Any], outcome: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a row of the table of raw evaluations for each evaluation of a training.

    A boosting has an evaluation for each of its numbers of rounds, another training has one.

    Args:
        task: Name of the task.
        training: Number of the training.
        config: Its configuration, for a boosting with all numbers of rounds.
        outcome: The evaluations, as they are stored.
    """
    configs: list[Config] = [dict(config)]
    if ROUNDS_KEY in config:
        others = {name: value for name, value in config.items() if name != ROUNDS_KEY}
        configs = [{**others, "nrounds": rounds} for rounds in config[ROUNDS_KEY]]

    for evaluated_config, evaluation in zip(configs, outcome["evaluations"], strict=True):
        yield {
            "task": task,
            "training": training,
            **name_config_columns(evaluated_config),
            "value": evaluation["value"],
            "spread": evaluation["spread"],
            "capped": evaluation["capped"],
            "seconds": evaluation["seconds"],
        }


def _import_sklearn() -> Any:
    """Import scikit-learn with its support vector machines and exceptions.

    A `MissingExtraError` says how to install it if it is missing.
    """
    import_extra("sklearn.svm", package="scikit-learn", extra="train", purpose="training")
    import sklearn.exceptions

    return sklearn


def _import_xgboost() -> Any:
    """Import XGBoost; a `MissingExtraError` says how to install it if it is missing."""
    return import_extra("xgboost", package="xgboost", extra="train", purpose="training")
