"""YAHPO Gym's rbv2 scenarios over 20 training fractions (Hellan et al. 2023, section 4).

The paper's eight benchmarks come with a random forest, and so do the other data sets of svm, aknn
and glmnet whose evaluations the authors published, ten for each. Any rbv2 scenario and instance can
be evaluated on YAHPO's own network once its three files are fetched; for xgboost and rpart, forests
can be generated from it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.errors import ArtifactError, NotFetchedError, UnknownNameError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.bundle import bundled_spec
from hpobench_ordered.surrogates.onnx import (
    Encoding,
    Layout,
    OnnxSurrogate,
    check_network,
)

if TYPE_CHECKING:
    from hpobench_ordered.data.surrogate import Surrogate

VERSION = 1
EXTRA = Extra("onnx", "onnxruntime", "onnxruntime")
RELEASE = "v1.0.2"
REPOSITORY = "https://raw.githubusercontent.com/slds-lmu/yahpo_data"

FRACTIONS = tuple(k / 20 for k in range(1, 21))
"""Training fractions of the tasks, 5 % to 100 %."""
MEASURED_FRACTIONS = (0.05, 0.25, 0.5, 0.75, 1.0)
"""Fractions at which the authors published evaluations; forests interpolate between them."""
REPLICATION = 10
"""Cross-validation replication that values are predicted for: after all ten."""

# Inputs of the networks that are not tuned.
INSTANCE_COLUMN = "task_id"  # OpenML data set
FRACTION_COLUMN = "trainsize"  # training fraction
REPLICATION_COLUMN = "repl"
NOT_TUNED = (INSTANCE_COLUMN, FRACTION_COLUMN, REPLICATION_COLUMN)

QUALITIES = ("acc", "bac", "auc", "brier", "f1", "logloss")
OUTPUTS = (*QUALITIES, "timetrain", "timepredict", "memory")
"""Output columns of the v1.0.2 networks."""
OBJECTIVE = "auc"
SECONDS = "timetrain"
"""Output for the seconds of a training, which is also YAHPO Gym's measure of run time."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """An rbv2 scenario: one learner on many data sets.

    Attributes:
        learner: Name of the learner in texts.
        layout: Columns of its v1.0.2 network, as in yahpo-gym 1.0.2.
        sha256: SHA-256 of its files, by name; None if unknown.
    """

    learner: str
    layout: Layout
    sha256: Mapping[str, str | None]


def _make_scenario(
    learner: str, categorical: str, continuous: str, sha256: tuple[str, str, str | None]
) -> Scenario:
    """Describe a scenario, one learner on many data sets, by its network's columns and its files.

    Args:
        learner: Name of the learner.
        categorical: Names of the tuned categorical columns, separated by spaces.
        continuous: Names of the tuned columns of numbers, separated by spaces.
        sha256: Hashes of the search space's file, the encoding's and the network's; None if
            unknown.
    """
    names_of_files = ("config_space.json", "encoding.json", "model.onnx")
    # A network also has columns that are not tuned.
    layout = Layout(
        categorical=(INSTANCE_COLUMN, *categorical.split()),
        continuous=(*continuous.split(), FRACTION_COLUMN, REPLICATION_COLUMN),
        targets=OUTPUTS,
    )
    return Scenario(learner, layout, dict(zip(names_of_files, sha256, strict=True)))


# The hashes of four networks are unknown. A first download is only checked to be such a network;
# its hash is recorded in the cache, and later downloads must match it (`RemoteFile`).
SCENARIOS: Mapping[str, Scenario] = {
    "svm": _make_scenario(
        "support vector machine",
        "kernel num.impute.selected.cpo",
        "cost gamma tolerance degree",
        (
            "78bc0a1e0ca1ff3c733747b0fee6861d25bb2ecd640e8b62c5d82f4cbedbecd5",
            "3e298ce5695c7a55caedfa1f5058b25404a73056a56221419b70816dce100ae7",
            None,
        ),
    ),
    "aknn": _make_scenario(
        "approximate nearest neighbours",
        "distance num.impute.selected.cpo",
        "k M ef ef_construction",
        (
            "2074136071a5e4e64dbe38754a4ce8870159c213d507ba80bc76197a11e3f21e",
            "d946a17d30fcb9e0e4dc888830472f945a26ecb6e24a23c569b152e806147d1c",
            None,
        ),
    ),
    "ranger": _make_scenario(
        "random forest",
        "respect.unordered.factors splitrule num.impute.selected.cpo",
        "num.trees sample.fraction mtry.power min.node.size num.random.splits",
        (
            "ce36c2f5dd3f01f8ae4b5e58eba1c54c3fafe274d31f17798c87bad780c61521",
            "9f0e5947f6a30ea6daa6e194eed3026117db7d216e4a3df2d36653792ac5f489",
            None,
        ),
    ),
    "glmnet": _make_scenario(
        "elastic net",
        "num.impute.selected.cpo",
        "alpha s",
        (
            "6f2a9d7cddac5e7bac17b12870abdc35bc4ebbb245b1a3ce97d2d5fb475ace0b",
            "2c060aa8eb6ccc572eadc405bedd8882edec08d4bd35c8f097e103cc5fe5b325",
            None,
        ),
    ),
    "rpart": _make_scenario(
        "decision tree",
        "num.impute.selected.cpo",
        "cp maxdepth minbucket minsplit",
        (
            "86de5b9c8f9bc2f82eaafa099b9920445ce6edbe56509c9736af71d53ef4a630",
            "e978cd3de5b8fbad4f7dbb7a15bed94738d37c24a0bfb3cbdf33509ba91df49c",
            "af34bb810107fd809bdd74be227685fb2a1c5cb7b1f3c2dde5629e42ef6819f3",
        ),
    ),
    "xgboost": _make_scenario(
        "gradient boosting",
        "booster num.impute.selected.cpo",
        "nrounds eta gamma lambda alpha subsample max_depth min_child_weight "
        "colsample_bytree colsample_bylevel rate_drop skip_drop",
        (
            "acf4485d314d86801f61b615d64ffea7859c414c363da9e7f943621468ebbda4",
            "0bd3cf9a4c9459a3148adf740f20b347fd11a6714f89348f41467a8f1206172a",
            "85125b6d97f553d10cd50f9e632e1a3f1ad44bcb00300dd2880d70dfd043d9f3",
        ),
    ),
}
"""The scenarios whose networks take a training fraction, by their names without "rbv2_"."""

PAPER_BENCHMARKS = (
    ("svm", "1220"),
    ("svm", "458"),
    ("aknn", "4538"),
    ("aknn", "41138"),
    ("ranger", "4154"),
    ("ranger", "40978"),
    ("glmnet", "375"),
    ("glmnet", "40981"),
)
"""Scenario and instance of the paper's eight benchmarks."""

PUBLISHED_INSTANCES = {
    "svm": (1220, 458, 40536, 40966, 40975, 40978, 40981, 41156, 41157, 4134),
    "aknn": (4538, 41138, 1220, 40927, 40978, 40981, 40996, 41163, 4134, 4154),
    "glmnet": (375, 40981, 1220, 40978, 41138, 41163, 4134, 4135, 4154, 4538),
}
"""Instances with published evaluations by scenario, those of the paper's benchmarks first."""

_PUBLISHED_BENCHMARKS = tuple(
    (scenario, str(instance))
    for scenario, instances in PUBLISHED_INSTANCES.items()
    for instance in instances
)
FURTHER_BENCHMARKS = tuple(
    benchmark for benchmark in _PUBLISHED_BENCHMARKS if benchmark not in PAPER_BENCHMARKS
)
"""Scenario and instance of the other 24 with published evaluations, not used in the paper."""

SATURATED = tuple(("xgboost", str(instance)) for instance in (375, 1220, 4538, 41138, 41163))
"""Scenario and instance of networks whose predicted AUC reaches 1, see `_IS_SATURATED`."""
_IS_SATURATED = (
    "The network predicts an AUC of 1 for some configurations of all of the data (0.9999 or more "
    "among 1000 random ones), on data sets where other learners stay far below, such as decision "
    "trees at 0.66 on 1220 and 0.81 on 4538: the best is an artefact of the network."
)

_GENERATED_INSTANCES = (1220, 458, 4538, 41138, 4154, 40978, 375, 40981, 4134, 41163)
_CANDIDATE_BENCHMARKS = tuple(
    (scenario, str(instance))
    for scenario, instance in product(("xgboost", "rpart"), _GENERATED_INSTANCES)
)
GENERATED_BENCHMARKS = tuple(
    benchmark for benchmark in _CANDIDATE_BENCHMARKS if benchmark not in SATURATED
)
"""Scenario and instance of the benchmarks whose forests users generate from YAHPO's network: the
paper's eight data sets and two others that occur in several scenarios of `PUBLISHED_INSTANCES`,
except networks without a meaningful best value (`SATURATED`)."""

IMPLAUSIBLE = {
    ("ranger", "4154"): (
        "The best known value falls from 0.93 with 5 % of the data to 0.86 with all of them, while "
        "random forests trained on other data sets improve with data: on this data set the "
        "stand-in is implausible."
    )
}
"""Why a stand-in for YAHPO's own network is not trustworthy, by scenario and instance."""


def name_benchmark(scenario: str, instance: str) -> str:
    """Name the benchmark of a scenario and an instance."""
    return f"yahpo-{scenario}-{instance}"


def name_family(scenario: str) -> str:
    """Name the family of the benchmarks of a scenario: one learner on many data sets."""
    return f"rbv2_{scenario}"


def name_task(fraction: float) -> str:
    """Name the task of a training fraction, such as "5%"."""
    return f"{100 * fraction:.0f}%"


def describe_files(scenario: str) -> dict[str, RemoteFile]:
    """Describe where the three files of a scenario are published, and how each is checked.

    The keys are their names: config_space.json, encoding.json and model.onnx.
    """
    folder = f"rbv2_{scenario}"
    # The columns of the network are checked as well, as some networks have no stated hash.
    check_columns = partial(check_network, layout=SCENARIOS[scenario].layout)
    files = {}
    for name, sha256 in SCENARIOS[scenario].sha256.items():
        files[name] = RemoteFile(
            name=f"yahpo_data-{RELEASE.removeprefix('v')}/{folder}/{name}",
            url=f"{REPOSITORY}/{RELEASE}/{folder}/{name}",
            sha256=sha256,
            check=check_columns if name == "model.onnx" else None,
        )
    return files


def define_benchmark(
    scenario: str, instance: str, config_space: Mapping[str, Any], encoding: Encoding
) -> Definition:
    """Define the benchmark of a scenario and an instance: search space, objective and tasks.

    There is a task for each training fraction, which is also its context.

    Args:
        scenario: One of `SCENARIOS`.
        instance: OpenML id of the data set.
        config_space: Content of the scenario's config_space.json.
        encoding: Content of the scenario's encoding.json.

    Raises:
        UnknownNameError: The scenario has no such instance.
    """
    # The data set, the training fraction and the replication are hyperparameters in this file.
    hyperparameters = {item["name"]: item for item in config_space["hyperparameters"]}
    listed_instances = hyperparameters[INSTANCE_COLUMN]["choices"]
    encoded_instances = encoding[INSTANCE_COLUMN]
    # The network can only predict for instances that have a code.
    instances = [choice for choice in listed_instances if choice in encoded_instances]
    if instance not in instances:
        raise UnknownNameError(f"instance of rbv2_{scenario}", instance, instances)

    tuned = [item for name, item in hyperparameters.items() if name not in NOT_TUNED]
    return Definition(
        name=name_benchmark(scenario, instance),
        version=VERSION,
        summary=_summarise(scenario, instance),
        space=SearchSpace.from_json({**config_space, "hyperparameters": tuned}),
        objective=Objective(OBJECTIVE, "area under the ROC curve", Direction.MAXIMIZE),
        tasks=tuple(
            TaskDefinition(name_task(fraction), {"train_fraction": fraction})
            for fraction in FRACTIONS
        ),
        provenance=Provenance(
            paper="Hellan et al. (2023), section 4; YAHPO Gym: Pfisterer et al. (2022)",
            source=f"scenario rbv2_{scenario} of YAHPO Gym, github.com/slds-lmu/yahpo_data",
            licence="Apache-2.0",
        ),
    )


def make_network_surrogate(
    model: bytes,
    *,
    definition: Definition,
    scenario: str,
    instance: str,
    encoding: Encoding,
    target: str = OBJECTIVE,
) -> OnnxSurrogate:
    """Make a surrogate of an instance's tasks from the network of its scenario, release v1.0.2.

    The network has inputs that are not tuned: the data set and the replication, which are the same
    for all tasks, and the training fraction, which differs from task to task.

    Args:
        model: Content of the scenario's model.onnx.
        definition: The benchmark.
        scenario: One of `SCENARIOS`.
        instance: OpenML id of the data set.
        encoding: Content of the scenario's encoding.json.
        target: The output that is predicted.
    """
    return OnnxSurrogate.for_space(
        model,
        space=definition.space,
        layout=SCENARIOS[scenario].layout,
        encoding=encoding,
        fixed={INSTANCE_COLUMN: instance, REPLICATION_COLUMN: REPLICATION},
        varied={FRACTION_COLUMN: FRACTIONS},
        target=target,
    )


@dataclass(frozen=True, slots=True)
class YahpoFamily:
    """Every instance of every scenario, on YAHPO's own network."""

    pattern: str

    def spec(self, name: str) -> BenchmarkSpec | None:
        """Make the spec of a benchmark named like "yahpo-svm-1220"; None for other names.

        The number is the instance, an OpenML data set. Whether the scenario has it is only checked
        when the benchmark is defined, as the list of instances is in the files to be fetched.
        """
        match = re.fullmatch(rf"yahpo-({'|'.join(SCENARIOS)})-(\d+)", name)
        if match is None:
            return None
        scenario, instance = match.groups()
        return BenchmarkSpec(
            name=name,
            version=VERSION,
            summary=_summarise(scenario, instance),
            define=partial(_define, scenario, instance),
            surrogates=(_make_onnx_option(scenario, instance),),
            family=name_family(scenario),
        )

    def files(self) -> tuple[RemoteFile, ...]:
        """List the published files of all scenarios."""
        files: list[RemoteFile] = []
        for scenario in SCENARIOS:
            files += describe_files(scenario).values()
        return tuple(files)


def _summarise(scenario: str, instance: str) -> str:
    """Describe the benchmark of a scenario and an instance in one line."""
    learner = SCENARIOS[scenario].learner
    return f"YAHPO's rbv2_{scenario} ({learner}) on OpenML data set {instance}, 5 % to 100 %."


def _make_onnx_option(scenario: str, instance: str) -> SurrogateOption:
    """Offer YAHPO's own network as a surrogate of an instance, once its files are fetched."""
    files = describe_files(scenario)
    summary = f"YAHPO's own network, release {RELEASE}"
    if files["model.onnx"].sha256 is None:
        summary += " (checked against the hash of its first download)"
    # Means over benchmarks leave out networks whose best AUC is an artefact, for this reason.
    reason_to_leave_out = _IS_SATURATED if (scenario, instance) in SATURATED else ""
    return SurrogateOption(
        name="onnx",
        summary=f"{summary}.",
        load=partial(_load_onnx, scenario, instance),
        files=tuple(files.values()),
        extra=EXTRA,
        left_out=reason_to_leave_out,
        costs=partial(_make_network, scenario, instance, SECONDS),
    )


def _read_json(file: RemoteFile) -> Any:
    """Read a fetched file of JSON; raise an `ArtifactError` if it is damaged."""
    try:
        return json.loads(file.open_path().read_bytes())
    except ValueError as error:
        raise ArtifactError(f"{file.path} is not JSON: {error}") from None


def _define(scenario: str, instance: str) -> Definition:
    """Define the benchmark of a scenario and an instance from the scenario's fetched files.

    Raises:
        NotFetchedError: They must be fetched first; the message says by which command.
    """
    files = describe_files(scenario)
    try:
        config_space = _read_json(files["config_space.json"])
        encoding = _read_json(files["encoding.json"])
    except NotFetchedError as error:
        name = name_benchmark(scenario, instance)
        raise NotFetchedError(f"{error}; get it with: hpobench-ordered fetch {name}") from None
    return define_benchmark(scenario, instance, config_space, encoding)


def _load_onnx(scenario: str, instance: str) -> "tuple[Surrogate, Sequence[float | None]]":
    """Load the network as the surrogate of an instance's tasks; their best values are unknown."""
    return _make_network(scenario, instance, OBJECTIVE), [None] * len(FRACTIONS)


def _make_network(scenario: str, instance: str, target: str) -> OnnxSurrogate:
    """Make the network of a scenario, from its fetched files, predict an output for an instance."""
    files = describe_files(scenario)
    return make_network_surrogate(
        files["model.onnx"].open_path().read_bytes(),
        definition=_define(scenario, instance),
        scenario=scenario,
        instance=instance,
        encoding=_read_json(files["encoding.json"]),
        target=target,
    )


def _make_bundled_spec(scenario: str, instance: str) -> BenchmarkSpec:
    """Make the spec of a benchmark whose forest comes with the package.

    The benchmark has two surrogates. The forest is the default one. The other one is the network
    that YAHPO's authors published, which users fetch.
    """
    network = _make_onnx_option(scenario, instance)
    # The paper's authors published the evaluations that forests are fitted to, except for ranger.
    # For ranger, a later release (v2) of the network was evaluated at random configurations. So
    # ranger's forest is a stand-in: the values of the paper are those of an earlier release.
    is_stand_in = scenario == "ranger"
    if is_stand_in:
        training_data = "evaluations sampled from YAHPO's v2 network"
        interpolated_tasks = frozenset[str]()  # none: the network was evaluated on every task
    else:
        training_data = "the published evaluations at five fractions"
        # On tasks at other fractions, the forest interpolates between the five.
        interpolated_tasks = frozenset(
            name_task(fraction) for fraction in FRACTIONS if fraction not in MEASURED_FRACTIONS
        )

    spec = bundled_spec(
        name_benchmark(scenario, instance),
        version=VERSION,
        summary=_summarise(scenario, instance),
        surrogates={"forest": f"Random forest fitted to {training_data}."},
        family=name_family(scenario),
    )
    reason_to_leave_out = IMPLAUSIBLE.get((scenario, instance), "")
    forest = replace(
        spec.option("forest"),
        interpolated=interpolated_tasks,
        stand_in=is_stand_in,
        left_out=reason_to_leave_out,
    )
    return replace(spec, surrogates=(forest, network))


SPECS = tuple(
    _make_bundled_spec(*benchmark) for benchmark in (*PAPER_BENCHMARKS, *FURTHER_BENCHMARKS)
)
FAMILIES = (YahpoFamily("yahpo-SCENARIO-INSTANCE, SCENARIO one of " + ", ".join(SCENARIOS)),)
SUITES = (
    *(("othpo", name_benchmark(*benchmark)) for benchmark in PAPER_BENCHMARKS),
    *(
        ("wide", name_benchmark(*benchmark))
        for benchmark in (*PAPER_BENCHMARKS, *FURTHER_BENCHMARKS, *GENERATED_BENCHMARKS)
    ),
)
