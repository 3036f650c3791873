"""Suites: named lists of benchmarks."""

from hpobench_ordered.errors import UnknownNameError

SUITES: dict[str, tuple[str, ...]] = {
    "othpo": (
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
    ),
    "adjustments": ("fcn-a", "fcn-b", "nas-a", "nas-b", "svm-a", "svm-b", "xgb-a", "xgb-b"),
    "openml": ("openml-svm", "openml-xgboost"),
    "synthetic": ("forrester", "quadratic", "forrester-ordered", "quadratic-ordered"),
}
"""`othpo`: the ten benchmarks of Hellan et al. (2023), section 4, in the paper's order.
`adjustments`: the eight of Stoll et al. (2020), appendix C.
`openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
`synthetic`: the function families of Horvath et al. (2021), section 5, and ordered versions.
"""


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    Raises:
        UnknownNameError: No such suite.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.suite("synthetic")
        ('forrester', 'quadratic', 'forrester-ordered', 'quadratic-ordered')
    """
    try:
        return SUITES[name]
    except KeyError:
        raise UnknownNameError("suite", name, SUITES) from None
