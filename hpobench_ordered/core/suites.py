"""Suites: named lists of benchmarks, to which the benchmarks' modules add their own."""

from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.registry import benchmark_spec, suites

TO_BE_MADE = ("generate", "fetch")


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    `othpo`: the ten benchmarks of Hellan et al. (2023), section 4.
    `wide`: these, `retrain`, and YAHPO's svm, aknn and glmnet on ten data sets each; xgboost and
    rpart on five and ten once they have been generated, or fetched.
    `retrain`: models trained again every period of a stream.
    `adjustments`: the eight of Stoll et al. (2020), appendix C.
    `openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
    `distbo`: the seven of Law et al. (2019), whose tasks carry their training data.
    `synthetic`: the function families of Horvath et al. (2021), section 5, and ordered versions.

    Raises:
        UnknownNameError: No such suite.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.suite("synthetic")
        ('forrester', 'quadratic', 'forrester-ordered', 'quadratic-ordered')
        >>> len(hbo.suite("othpo")), len(hbo.suite("wide")) >= 47
        (10, True)
    """
    known = suites()
    if name not in known:
        raise UnknownNameError("suite", name, known)
    return tuple(n for n in known[name] if benchmark_spec(n).option().lacks not in TO_BE_MADE)
