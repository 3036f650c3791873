"""Suites: named lists of benchmarks."""

from hpobench_ordered.benchmarks.distbo import GENERATED, REAL
from hpobench_ordered.benchmarks.retrain import RETRAINING
from hpobench_ordered.benchmarks.yahpo import FURTHER_BENCHMARKS, GENERATED_BENCHMARKS, name_of
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.registry import benchmark_spec

OTHPO = (
    "newsvendor",
    "xgboost-mnist",
    "yahpo-svm-1220",
    "yahpo-svm-458",
    "yahpo-aknn-4538",
    "yahpo-aknn-41138",
    "yahpo-ranger-4154",
    "yahpo-ranger-40978",
    "yahpo-glmnet-375",
    "yahpo-glmnet-40981",
)
RETRAIN = tuple(benchmark.name for benchmark in RETRAINING)
IF_READY = frozenset(name_of(*benchmark) for benchmark in GENERATED_BENCHMARKS)
"""Benchmarks that belong to a suite only if they are ready: generated, or fetched."""

SUITES: dict[str, tuple[str, ...]] = {
    "othpo": OTHPO,
    "wide": (
        *OTHPO,
        *(name_of(*benchmark) for benchmark in FURTHER_BENCHMARKS),
        *(name_of(*benchmark) for benchmark in GENERATED_BENCHMARKS),
        *RETRAIN,
    ),
    "retrain": RETRAIN,
    "adjustments": ("fcn-a", "fcn-b", "nas-a", "nas-b", "svm-a", "svm-b", "xgb-a", "xgb-b"),
    "openml": ("openml-svm", "openml-xgboost"),
    "distbo": (*GENERATED, *REAL),
    "synthetic": ("forrester", "quadratic", "forrester-ordered", "quadratic-ordered"),
}
"""`othpo`: the ten benchmarks of Hellan et al. (2023), section 4, in the paper's order.
`wide`: these, `retrain`, and YAHPO's svm, aknn and glmnet on ten data sets each; xgboost and rpart
on five and ten where they are there (`IF_READY`).
`retrain`: models trained again every period of a stream.
`adjustments`: the eight of Stoll et al. (2020), appendix C.
`openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
`distbo`: the seven of Law et al. (2019), whose tasks carry their training data.
`synthetic`: the function families of Horvath et al. (2021), section 5, and ordered versions.
"""


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    `wide` grows with what is there: YAHPO's xgboost and rpart belong to it once they have been
    generated, or fetched. All other benchmarks come with the package.

    Raises:
        UnknownNameError: No such suite.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.suite("synthetic")
        ('forrester', 'quadratic', 'forrester-ordered', 'quadratic-ordered')
        >>> len(hbo.suite("othpo")), len(hbo.suite("wide")) >= 47
        (10, True)
    """
    try:
        members = SUITES[name]
    except KeyError:
        raise UnknownNameError("suite", name, SUITES) from None
    return tuple(n for n in members if n not in IF_READY or benchmark_spec(n).option().is_ready)
