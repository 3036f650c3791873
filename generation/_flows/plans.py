"""How the artifacts of the OpenML flows are made, one plan per flow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hpobench_ordered.benchmarks.openml_flows import RANGER, SVM, XGBOOST, Flow
from hpobench_ordered.generation._flows import training
from hpobench_ordered.generation._flows.training import SOLVER_WORK, Learner
from hpobench_ordered.generation._openml.setups import Converter
from hpobench_ordered.generation._openml.tasks import DataSize, ranger_converters, svm_converters
from hpobench_ordered.surrogates.coding import Coding, space_coding


@dataclass(frozen=True)
class Training:
    """How a flow is trained here."""

    learner: Learner
    count: int
    limits: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """How a flow's artifact is made."""

    flow: Flow
    coding: Callable[[], Coding]
    converters: Callable[[Mapping[int, DataSize]], Mapping[str, Converter]]
    records: tuple[str, ...]
    training: Training | None = None


def _xgboost_coding() -> Coding:
    """The ratios tell whether a tree can split at all: of all rows it gets a share, `subsample`.

    They decide much, by sharp edges. Features are repeated since an extra tree tries one random
    threshold a feature.
    """
    ratios = [("subsample", "min_child_weight"), ("alpha", "subsample")]
    return space_coding(XGBOOST.space(), products=[("eta", "nrounds")], ratios=5 * ratios)


PLANS = (
    Plan(
        SVM,
        lambda: space_coding(SVM.space(), products=[("cost", "gamma")]),
        svm_converters,
        records=(
            "Where a record names no gamma, it is one over the number of columns, about e1071's "
            "default.",
        ),
        training=Training(
            training.SVM,
            640,
            (
                "libsvm by scikit-learn instead of R's e1071; inputs are standardised in every "
                f"fold, and the solver stops after {SOLVER_WORK:,} / n iterations for n rows.",
            ),
        ),
    ),
    Plan(
        XGBOOST,
        _xgboost_coding,
        lambda sizes: {},
        records=(),
        training=Training(
            training.XGBOOST,
            256,
            (
                "XGBoost with the settings of R's 0.6-4, but for splits among histograms and "
                "coordinate descent for linear models.",
                "Every training is evaluated after four numbers of rounds, a fifth of the "
                "trainings are of linear models. Few trainings cover ten hyperparameters sparsely: "
                "forests are least exact where the AUC depends on interactions of many, and "
                "nearest neighbours are far.",
            ),
        ),
    ),
    Plan(
        RANGER,
        lambda: space_coding(RANGER.space()),
        ranger_converters,
        records=(
            "mtry and min.node.size are recorded as whole numbers, and are here turned back into "
            "the fraction and the exponent that they were drawn as.",
        ),
    ),
)
