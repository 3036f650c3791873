"""Benchmarks, surrogates and methods for transfer hyperparameter optimisation."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hpobench_ordered.benchmarks.registry import list_benchmarks, load, suite
from hpobench_ordered.data.benchmark import Benchmark, Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.experiment.api import Results, merge_stores, reference, run
from hpobench_ordered.experiment.protocols import Adjustment, LeaveOneOut, Ordered
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.methods.registry import list_methods
from hpobench_ordered.space import Parameter, SearchSpace
from hpobench_ordered.tuning import read_history
from hpobench_ordered.tuning.optimiser import optimiser
from hpobench_ordered.tuning.own_benchmarks import from_evaluations, save

if TYPE_CHECKING:
    from hpobench_ordered.reporting import plots
    from hpobench_ordered.reporting.write import report
    from hpobench_ordered.tuning import OrderedSearchCV, record_history

try:
    __version__ = version("hpobench-ordered")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "unknown"

__all__ = [
    "Adjustment",
    "Benchmark",
    "Direction",
    "Evaluations",
    "HPOBenchOrderedError",
    "LeaveOneOut",
    "Method",
    "MethodSpec",
    "Objective",
    "Ordered",
    "OrderedSearchCV",
    "Parameter",
    "Results",
    "SearchSpace",
    "Task",
    "__version__",
    "from_evaluations",
    "list_benchmarks",
    "list_methods",
    "load",
    "merge_stores",
    "optimiser",
    "plots",
    "read_history",
    "record_history",
    "reference",
    "report",
    "run",
    "save",
    "suite",
]


_WITH_EXTRA = ("OrderedSearchCV", "record_history")


def __getattr__(name: str) -> object:
    """Return a public name that is imported only now, when it is first used.

    Its module takes long to import, or needs Optuna or scikit-learn.
    """
    if name == "plots":
        return import_module("hpobench_ordered.reporting.plots")
    if name == "report":
        return import_module("hpobench_ordered.reporting.write").report
    if name in _WITH_EXTRA:
        return getattr(import_module("hpobench_ordered.tuning"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return __all__
