"""OpenML flows: one learner tuned on many data sets (Perrone et al. 2018, supplement B).

A task is an OpenML task, that is a data set, and is named by its id. The objective is the
cross-validated area under the ROC curve. Bounds are those stated in the paper.

`openml-svm` and `openml-xgboost` come with the package, fitted to evaluations made for it.
`openml-ranger` does not: its evaluations are OpenML's public records, which users download.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from hpobench_ordered.benchmarks._openml_data import FILES, read_task_data
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.data.task_data import DataSource, TaskData
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import Compare, Comparison
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.bundle import bundled_spec, generated_spec

VERSION = 1
OPENML_LICENCE = "CC-BY-4.0"
CONTEXT = ("n_rows", "n_features", "majority_share")
"""What is known of a task beforehand (Horvath et al. 2021, section 5): rows and features of the
data set, and the share of its largest class in them."""
LANDMARK = "naive_bayes_auc"
"""Additional context of flows that were evaluated for this package: a landmarker (Feurer et al.
2015). Perrone et al. (2018) use four OpenML meta-features, which the supplement does not name."""

SVM_TASKS = (
    (10101, 145878, 146064, 14951, 34536, 34537, 3485, 3492, 3493, 3494)
    + (37, 3889, 3891, 3899, 3902, 3903, 3913, 3918, 3950, 6566)
    + (9889, 9914, 9946, 9952, 9967, 9971, 9976, 9978, 9980, 9983)
)
"""OpenML task ids of the paper for the SVM, supplement B.1, in its order."""
XGBOOST_TASKS = (
    (10093, 10101, 125923, 145847, 145857, 145862, 145872, 145878, 145953, 145972)
    + (145976, 145979, 146064, 14951, 31, 3485, 3492, 3493, 37, 3896)
    + (3903, 3913, 3917, 3918, 3, 49, 9914, 9946, 9952, 9967)
)
"""OpenML task ids of the paper for XGBoost, supplement B.2, in its order."""


def make_svm_space() -> SearchSpace:
    """Make the search space of flow 5891, a support vector machine (supplement B.1).

    The paper does not state the conditions. From e1071's documentation: gamma is a parameter of all
    kernels but the linear one, degree of the polynomial kernel.
    """
    kernels = ("linear", "polynomial", "radial", "sigmoid")
    kernel_column = 0
    linear = float(kernels.index("linear"))  # conditions compare the code of a choice, its index
    polynomial = float(kernels.index("polynomial"))
    is_not_linear = Compare(kernel_column, Comparison.NOT_EQUAL, (linear,))
    is_polynomial = Compare(kernel_column, Comparison.EQUAL, (polynomial,))
    return SearchSpace(
        [
            Parameter.choice("kernel", kernels),
            Parameter.number("cost", 0.000986, 998.492437, log=True),
            Parameter.number("gamma", 0.000988, 913.373845, log=True),
            Parameter.number("degree", 2, 5, integer=True),
        ],
        conditions={"gamma": is_not_linear, "degree": is_polynomial},
    )


def make_xgboost_space() -> SearchSpace:
    """Make the search space of flow 6767, gradient boosting by XGBoost (supplement B.2).

    The paper does not state the conditions. From XGBoost's documentation: hyperparameters of trees
    are active for the tree booster, and so is subsample, as the linear booster uses all rows.
    """
    boosters = ("gbtree", "gblinear")
    booster_column = 0
    tree = float(boosters.index("gbtree"))  # conditions compare the code of a choice, its index
    of_all_boosters = [
        Parameter.choice("booster", boosters),
        Parameter.number("nrounds", 3, 5000, integer=True),
        Parameter.number("eta", 0.000979, 0.995686, log=True),
        Parameter.number("lambda", 0.000978, 999.020893, log=True),
        Parameter.number("alpha", 0.000985, 1009.209690, log=True),
    ]
    of_trees = [
        Parameter.number("max_depth", 1, 15, integer=True),
        Parameter.number("min_child_weight", 1.012169, 127.041806, log=True),
        Parameter.number("subsample", 0.100215, 0.999830),
        Parameter.number("colsample_bytree", 0.062528, 0.999640),
        Parameter.number("colsample_bylevel", 0.046776, 0.998424),
    ]
    is_tree = Compare(booster_column, Comparison.EQUAL, (tree,))
    return SearchSpace(
        of_all_boosters + of_trees,
        conditions={parameter.name: is_tree for parameter in of_trees},
    )


def make_ranger_space() -> SearchSpace:
    """Make the search space of flow 6794, a random forest; the paper does not state one.

    It is that of the random bot that made most runs of the flow: Kuehn, Probst, Thomas and Bischl
    (2018), "Automatic Exploration of Machine Learning Experiments on OpenML", table 1, and its
    code, github.com/ja-thomas/OMLbots. The bot turns two of the values into ranger's own units,
    which OpenML records: with n rows and p features, a value x of `mtry` becomes ceil(x * p), and a
    value x of `min.node.size` becomes round(n ** x).
    """
    return SearchSpace(
        [
            Parameter.number("num.trees", 1, 2000, integer=True),
            Parameter.choice("replace", (True, False)),
            Parameter.number("sample.fraction", 0.1, 1),
            Parameter.number("mtry", 0, 1),
            Parameter.choice("respect.unordered.factors", (True, False)),
            Parameter.number("min.node.size", 0, 1),
        ]
    )


@dataclass(frozen=True, slots=True)
class Flow:
    """A learner on OpenML, and the data sets that it is tuned on.

    Attributes:
        name: Name of the benchmark.
        flow_id: OpenML's number of the flow.
        learner: Name of the learner in texts.
        space: Its search space.
        tasks: OpenML tasks of the paper, by their ids.
    """

    name: str
    flow_id: int
    learner: str
    space: Callable[[], SearchSpace]
    tasks: tuple[int, ...]

    @property
    def summary(self) -> str:
        """The learner and the flow, in one line."""
        return f"{self.learner} on data sets of OpenML, flow {self.flow_id}."

    def define(self, tasks: Iterable[TaskDefinition], *, source: str, licence: str) -> Definition:
        """Define the benchmark of the flow: search space, objective and tasks.

        Args:
            tasks: The tasks, named by their OpenML ids.
            source: Where the evaluations come from.
            licence: Licence of the evaluations.
        """
        return Definition(
            name=self.name,
            version=VERSION,
            summary=self.summary,
            space=self.space(),
            objective=Objective(
                "auc", "area under the ROC curve, cross-validated", Direction.MAXIMIZE
            ),
            tasks=tuple(tasks),
            provenance=Provenance(
                paper="Perrone et al. (2018), supplement B", source=source, licence=licence
            ),
        )

    def define_before_download(self) -> Definition:
        """Define the benchmark as it will be once the records of the paper's tasks are downloaded.

        Contexts of tasks are still unknown, and so are empty.
        """
        return self.define(
            [TaskDefinition(str(task), {}) for task in self.tasks],
            source=f"runs of flow {self.flow_id} on openml.org, to be downloaded",
            licence=OPENML_LICENCE,
        )


SVM = Flow("openml-svm", 5891, "Support vector machine", make_svm_space, SVM_TASKS)
XGBOOST = Flow(
    "openml-xgboost", 6767, "Gradient boosting (XGBoost)", make_xgboost_space, XGBOOST_TASKS
)
RANGER = Flow("openml-ranger", 6794, "Random forest (ranger)", make_ranger_space, XGBOOST_TASKS)
"""The paper does not list the data sets of this flow; they have most in common with those of
XGBoost, see supplement B.4."""

SURROGATES = {
    "forest": "Random forests, one fitted to the evaluations of each task.",
    "nearest": "Nearest neighbours, as in the paper, among the evaluations of each task.",
}


def _make_bundled_spec(flow: Flow) -> BenchmarkSpec:
    """Make the spec of a flow that comes with the package; tasks have their data sets as data."""
    spec = bundled_spec(
        flow.name,
        version=VERSION,
        summary=flow.summary,
        surrogates=SURROGATES,
        is_recorded=True,
        family=flow.name,
    )
    read_data = partial(_read_training_data, spec.define)
    return replace(spec, data=DataSource(read_data, tuple(FILES.values())))


def _read_training_data(define: Callable[[], Definition], task: int) -> TaskData | None:
    """Read the data set of a task, which its name, an OpenML id, tells; None if it is unknown.

    Args:
        define: Defines the benchmark.
        task: Index of the task.
    """
    openml_task = define().tasks[task].name
    return read_task_data(openml_task)


SPECS = (
    _make_bundled_spec(SVM),
    _make_bundled_spec(XGBOOST),
    generated_spec(
        RANGER.name,
        local_folder() / RANGER.name,
        version=VERSION,
        summary=RANGER.summary,
        planned=RANGER.define_before_download,
        surrogates=SURROGATES,
    ),
)
SUITES = (("openml", SVM.name), ("openml", XGBOOST.name))
