"""XGBoost on MNIST over 28 training-set sizes (Hellan et al. 2023, section 4 and appendix B)."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.specs import SurrogateOption
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.bundle import bundled_spec

if TYPE_CHECKING:
    from hpobench_ordered.data.surrogate import Surrogate
    from hpobench_ordered.surrogates.nearest import NearestSurrogate

NAME = "xgboost-mnist"
VERSION = 1
SUMMARY = "XGBoost on MNIST, 56 to 56000 training images."
VALIDATION_IMAGES = 14_000

SIZES = (
    (56, 72, 93, 120, 155, 201, 259, 335, 433)
    + (560, 723, 934, 1206, 1558, 2012, 2599, 3357, 4335)
    + (5600, 7232, 9341, 12064, 15582, 20125, 25992, 33571, 43358, 56000)
)
"""Training-set sizes, table 3 of the paper."""

PUBLISHED = RemoteFile(
    name="othpo/aggregated_experiments.json",
    url=(
        "https://raw.githubusercontent.com/sighellan/syne-tune/"
        "f4034662d84cf27dfee34de9695c89af5d7238c5/benchmarking/nursery/othpo/"
        "xgboost_experiment_results/random-mnist/aggregated_experiments.json"
    ),
    sha256="a8682c17305adda3cdfa2556207b1bbefa9261affc0f7a6b3715910ac4dab392",
)
"""The authors' evaluations: 1000 random configurations at the 28 sizes."""

_COLUMNS = ("learning_rates", "min_child_weight", "max_depth", "n_estimators")
"""Names of the hyperparameters in the published file, in the order of the search space."""

ERRORS = "test_error_mat"
"""Name of the misclassified validation images in the published file."""
SECONDS = "execution_times"
"""Name of the seconds that a training and its test took."""


def make_space() -> SearchSpace:
    """Make the search space, table 2 of the paper."""
    return SearchSpace(
        [
            Parameter.number("learning_rate", 1e-6, 1, log=True),
            Parameter.number("min_child_weight", 1e-6, 32, log=True),
            Parameter.number("max_depth", 2, 32, log=True, integer=True),
            Parameter.number("n_estimators", 2, 256, log=True, integer=True),
        ]
    )


def define_benchmark() -> Definition:
    """Define the benchmark: search space, objective, and a task for each training-set size."""
    unit = f"misclassified validation images of {VALIDATION_IMAGES}"
    return Definition(
        name=NAME,
        version=VERSION,
        summary=SUMMARY,
        space=make_space(),
        objective=Objective("error_count", unit, Direction.MINIMIZE),
        tasks=tuple(TaskDefinition(str(size), {"train_size": size}) for size in SIZES),
        provenance=Provenance(
            paper="Hellan et al. (2023), section 4 and appendix B",
            source="the authors' 28 000 evaluations, github.com/sighellan/syne-tune; MNIST "
            "(LeCun et al. 1998)",
            licence="Apache-2.0",
        ),
    )


def read_published(path: Path, quantity: str = ERRORS) -> tuple[FloatArray, FloatArray]:
    """Read the authors' published evaluations.

    Args:
        path: Their file.
        quantity: Name of a quantity in the file, `ERRORS` or `SECONDS`.

    Returns:
        Configurations coded as values, (1000, 4), and the quantity at each size, (1000, 28).

    Raises:
        ArtifactError: The file does not contain the published evaluations.
    """
    try:
        content = json.loads(path.read_text())
        values_of_name = content["parameters_mat"]
        values = np.array([values_of_name[name] for name in _COLUMNS], dtype=np.float64).T
        # Its axes are training-set sizes, configurations, and one whose first entry alone is used.
        array = np.array(content[quantity], dtype=np.float64)
        measured = array[:, :, 0].T
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ArtifactError(f"{path} does not hold the published evaluations: {error}") from None
    return values, measured


def _load_nearest(*, log_scaled: bool) -> "tuple[Surrogate, Sequence[float]]":
    """Load the nearest neighbours among the published evaluations, and each task's best value."""
    surrogate = _find_nearest(ERRORS, log_scaled=log_scaled)
    fewest_errors = surrogate.targets.min(axis=0)
    return surrogate, fewest_errors.tolist()


def _find_nearest(quantity: str, *, log_scaled: bool) -> "NearestSurrogate":
    """Make the surrogate that has a published quantity of the nearest configuration.

    Args:
        quantity: `ERRORS` or `SECONDS`.
        log_scaled: Measure distances on logarithmic scales; otherwise on standardised values
            without logarithms, as the paper's authors do.
    """
    from hpobench_ordered.surrogates.nearest import NearestSurrogate, authors_coding, log_coding

    values, measured = read_published(PUBLISHED.open_path(), quantity)
    make_coding = log_coding if log_scaled else authors_coding
    coding = make_coding(make_space(), values)
    return NearestSurrogate.from_evaluations(values, measured, coding=coding)


SPECS = (
    bundled_spec(
        NAME,
        version=VERSION,
        summary=SUMMARY,
        surrogates={"forest": "Random forest fitted to the authors' evaluations."},
        more=(
            SurrogateOption(
                "nearest",
                "Nearest neighbour among the published evaluations on standardised values without "
                "log scales, as in the paper.",
                partial(_load_nearest, log_scaled=False),
                (PUBLISHED,),
                costs=partial(_find_nearest, SECONDS, log_scaled=False),
            ),
            SurrogateOption(
                "nearest-log",
                "Nearest neighbour among the published evaluations, on log scales.",
                partial(_load_nearest, log_scaled=True),
                (PUBLISHED,),
                costs=partial(_find_nearest, SECONDS, log_scaled=True),
            ),
        ),
    ),
)
SUITES = (("othpo", NAME), ("wide", NAME))
