"""Forests of YAHPO benchmarks (Hellan et al. 2023, section 4).

svm, aknn, glmnet: fitted to the authors' published evaluations at five training fractions, of ten
data sets each. ranger: fitted to evaluations of YAHPO's later v2 network at all twenty, sampled
here; the authors published none, and the v1.0.2 network was not at hand. xgboost, rpart: fitted to
evaluations of YAHPO's own network at all twenty; every user generates these.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.yahpo import (
    FRACTION_COLUMN,
    FRACTIONS,
    FURTHER_BENCHMARKS,
    GENERATED_BENCHMARKS,
    IMPLAUSIBLE,
    INSTANCE_COLUMN,
    OBJECTIVE,
    PAPER_BENCHMARKS,
    PUBLISHED_INSTANCES,
    RELEASE,
    REPLICATION,
    REPLICATION_COLUMN,
    REPOSITORY,
    define_benchmark,
    describe_files,
    make_network_surrogate,
    name_benchmark,
)
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError
from hpobench_ordered.generation._fitting import FOREST, ForestData, write_forest
from hpobench_ordered.generation.base import (
    EvaluationSource,
    Generator,
    Option,
    Request,
    artifacts_folder,
)
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.forest import find_task_mixes
from hpobench_ordered.surrogates.onnx import Layout, OnnxSurrogate
from hpobench_ordered.surrogates.pipeline import FOLDS

SYNE_TUNE = "github.com/sighellan/syne-tune"
SYNE_TUNE_COMMIT = "f4034662d84cf27dfee34de9695c89af5d7238c5"
PUBLISHED_AT = f"{SYNE_TUNE}, commit {SYNE_TUNE_COMMIT}, folder yahpo_data"
SMALL_FOREST = ForestRecipe(trees=16)
"""Of the data sets that the paper does not use: a quarter of the trees, so that 24 more forests
take little more room than its six. Cross-validated R2 is lower by at most 0.006 on any task."""

SAMPLED_CONFIGURATIONS = 40_000
"""Configurations sampled from a network unless asked otherwise: its AUC is rough, and few trees
on many configurations follow it better than many trees on few, at the same size."""

V2_COMMIT = "0e288068134f4af8d231c63d2a941e5ab8060ef0"
V2_LAYOUT = Layout(
    categorical=(
        (INSTANCE_COLUMN, "respect.unordered.factors", "splitrule", "replace")
        + ("num.impute.selected.cpo", REPLICATION_COLUMN)
    ),
    continuous=(
        ("num.trees", "sample.fraction", "mtry.power", "min.node.size", "num.random.splits")
        + (FRACTION_COLUMN,)
    ),
    targets=("acc", "bac", "auc", "brier", "logloss", "timetrain", "timepredict"),
)
"""Columns of the v2 network of rbv2_ranger."""


def _describe_v2_file(name: str, sha256: str) -> RemoteFile:
    """Describe a published file of the v2 network of rbv2_ranger."""
    url = f"{REPOSITORY}/{V2_COMMIT}/rbv2_ranger/{name}"
    return RemoteFile(f"yahpo_data-2.0/rbv2_ranger/{name}", url, sha256)


V2_ENCODING = _describe_v2_file(
    "encoding_v2.json", "79f94025ec3ab2aa5d91f9d149cbd82b26e461a61b07826a6b29da46032d4246"
)
V2_MODEL = _describe_v2_file(
    "model_v2.onnx", "04e5ec7a65e2f1005bead3756ba3e8c214144639a8d2302f39f1692d172dd60a"
)


NOT_TRAINED = (
    "The evaluations are predictions of a YAHPO Gym network, not results of real training: the "
    "forest approximates an approximation."
)
TEXTS_OF_PUBLISHED = CardTexts(
    source=f"evaluations of the YAHPO Gym v1.0 network by Hellan et al. (2023), {PUBLISHED_AT}",
    summaries={FOREST: "Random forest fitted to the published evaluations at five fractions."},
    limits=(
        NOT_TRAINED,
        "Fitted at the training fractions 5 %, 25 %, 50 %, 75 % and 100 %; the fifteen tasks "
        "between are linear in between, and so are the values cross-validation compares them with.",
        "Each evaluation is the network's mean over its replications 1 to 10, not replication 10.",
    ),
)
YAHPO_DATA = "sampled by this package; github.com/slds-lmu/yahpo_data"
TEXTS_OF_OWN_NETWORK = CardTexts(
    source=f"evaluations of the scenario's YAHPO Gym network, {YAHPO_DATA}, release {RELEASE}",
    summaries={FOREST: "Random forest fitted to evaluations sampled from YAHPO's own network."},
    limits=(NOT_TRAINED,),
)
TEXTS_OF_V2_NETWORK = CardTexts(
    source=(
        f"evaluations of the YAHPO Gym v2 network of rbv2_ranger, {YAHPO_DATA}, commit {V2_COMMIT}"
    ),
    summaries={FOREST: "Random forest fitted to evaluations sampled from YAHPO's v2 network."},
    limits=(
        "This is the v2 network, a stand-in for that of YAHPO Gym v1.0, which the paper used and "
        "surrogate 'onnx' evaluates: their values differ.",
        NOT_TRAINED,
        "The v2 network also tunes sampling with replacement: it is fixed to TRUE here.",
    ),
)


@dataclass(frozen=True, slots=True)
class EvaluatedConfigurations:
    """Configurations evaluated at several training fractions.

    Attributes:
        values: Configurations coded as values, (n, d).
        fractions: Training fractions, (K,).
        auc: Area under the ROC curve, (n, K).
    """

    values: FloatArray
    fractions: tuple[float, ...]
    auc: FloatArray


def generate_from_evaluations(scenario: str, instance: str, request: Request) -> Path:
    """Fit the forest of a benchmark to published evaluations and write its artifact.

    YAHPO names a benchmark by a scenario, the learner, and an instance, the data set. If the
    request states a number of configurations, only the first of the published ones are used.
    """
    path = find_evaluations(request.local, scenario, instance)
    defined = _define(scenario, instance, request.local)
    published = read_evaluations(path, defined.space)
    n_published = len(published.values)
    n_used = request.configurations or n_published
    if n_used > n_published:
        raise ExperimentError(f"{path} holds {n_published} configurations, not {n_used}")

    evaluated = replace(published, values=published.values[:n_used], auc=published.auc[:n_used])
    # The many benchmarks that the paper does not use get smaller forests, to save room.
    is_of_paper = (scenario, instance) in PAPER_BENCHMARKS
    recipe = ForestRecipe() if is_of_paper else SMALL_FOREST
    return _fit_and_write(request, defined, evaluated, TEXTS_OF_PUBLISHED, recipe)


def generate_from_v2_network(scenario: str, instance: str, request: Request) -> Path:
    """Fit the forest of a benchmark to evaluations of the v2 network and write its artifact.

    Inputs of this network that the benchmark does not tune are fixed: sampling with replacement is
    on, and the replication is number 10.
    """
    defined = _define(scenario, instance, request.local)
    model = OnnxSurrogate.for_space(
        _find_file(V2_MODEL, request.local).read_bytes(),
        space=defined.space,
        layout=V2_LAYOUT,
        encoding=_read_json(V2_ENCODING, request.local),
        fixed={INSTANCE_COLUMN: instance, REPLICATION_COLUMN: REPLICATION, "replace": "TRUE"},
        varied={FRACTION_COLUMN: FRACTIONS},
        target=OBJECTIVE,
    )
    report = TEXTS_OF_V2_NETWORK
    # `IMPLAUSIBLE` says why the network is not to be trusted on some data sets.
    if (scenario, instance) in IMPLAUSIBLE:
        report = replace(report, limits=(IMPLAUSIBLE[scenario, instance], *report.limits))
    return _generate_from_network(model, defined, request, report)


def generate_from_own_network(scenario: str, instance: str, request: Request) -> Path:
    """Fit the forest of a benchmark to evaluations of YAHPO's own network and write its artifact.

    YAHPO names a benchmark by a scenario, the learner, and an instance, the data set.
    """
    defined = _define(scenario, instance, request.local)
    files = describe_files(scenario)
    model = make_network_surrogate(
        _find_file(files["model.onnx"], request.local).read_bytes(),
        definition=defined,
        scenario=scenario,
        instance=instance,
        encoding=_read_json(files["encoding.json"], request.local),
    )
    return _generate_from_network(model, defined, request, TEXTS_OF_OWN_NETWORK)


def _generate_from_network(
    model: OnnxSurrogate, defined: Definition, request: Request, report: CardTexts
) -> Path:
    """Evaluate random configurations on a network, fit a forest to them and write the artifact.

    Args:
        model: The network.
        defined: The benchmark.
        request: Folder, seed, number of workers and of configurations, and progress.
        report: Texts of the card.
    """
    # The same generator samples, and then draws the random numbers of the search for best values.
    rng = np.random.default_rng(request.seed)
    evaluated = sample_network(model, defined.space, request, rng)
    # Few trees on many configurations follow the network better than many trees on few.
    recipe = ForestRecipe(trees=12, min_samples_leaf=4)
    return _fit_and_write(request, defined, evaluated, report, recipe, rng=rng)


def find_evaluations(local: Path | None, scenario: str, instance: str) -> Path:
    """Find the file of the published evaluations of a benchmark in the user's local copy.

    Args:
        local: Folder of the copy; None if the user states none, which is an error.
        scenario: YAHPO's name of the learner.
        instance: YAHPO's name of the data set.

    Raises:
        ArtifactError: There is no such file; the message says how to get it.
    """
    file = Path(f"rbv2_{scenario}") / f"{instance}.parquet"
    if local is None:
        raise ArtifactError(
            f"the evaluations of {name_benchmark(scenario, instance)} are not downloaded: they are "
            f"published at {PUBLISHED_AT}, in files too large to fetch one by one. Give a local "
            f"copy with --from, a folder that holds {file}: a row for each configuration and "
            f"fraction, all fractions of a configuration one after another and ascending, with a "
            f"column a hyperparameter, train_frac and {OBJECTIVE}"
        )
    for path in (local / file, local / "evaluations" / file):
        if path.is_file():
            return path
    raise ArtifactError(f"there is no {file} in {local} or its folder evaluations")


def read_evaluations(path: Path, space: SearchSpace) -> EvaluatedConfigurations:
    """Read published evaluations: a row for each configuration and training fraction.

    All rows of a configuration follow one another, in ascending order of the fraction.

    Args:
        path: The file.
        space: Search space of the configurations.

    Raises:
        ArtifactError: The file lacks columns, or its rows are in another order.
    """
    import pandas as pd

    try:
        frame = pd.read_parquet(path, columns=[*space.names, "train_frac", OBJECTIVE])
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(f"{path} does not hold evaluations: {error}") from None

    fraction_of_row = frame["train_frac"].to_numpy()
    fractions = np.unique(fraction_of_row)
    values_of_rows = space.values(frame[list(space.names)])
    if not _are_rows_in_order(values_of_rows, fraction_of_row, fractions):
        raise ArtifactError(
            f"{path}: the rows of a configuration must follow one another, one for each of the "
            f"fractions {fractions.tolist()}, ascending"
        )
    n_fractions = len(fractions)
    auc = frame[OBJECTIVE].to_numpy(dtype=np.float64).reshape(-1, n_fractions)
    values_of_configs = values_of_rows[::n_fractions]  # the first row of each configuration
    return EvaluatedConfigurations(values_of_configs, tuple(fractions.tolist()), auc)


def _are_rows_in_order(
    values: FloatArray, fraction_of_row: FloatArray, fractions: FloatArray
) -> bool:
    """Check that all rows of a configuration are adjacent, one for each fraction, ascending.

    Args:
        values: Configuration of each row, (n K, d), NaN where a hyperparameter is inactive.
        fraction_of_row: Training fraction of each row, (n K,).
        fractions: The K different fractions, ascending, which must be some of YAHPO's.

    Returns:
        Whether they are.
    """
    n, remainder = divmod(len(values), len(fractions))
    if remainder != 0 or not set(fractions) <= set(FRACTIONS):
        return False
    values_by_config = values.reshape(n, len(fractions), values.shape[1])
    first_values = values_by_config[:, :1]  # of the first row of each configuration
    expected_values = np.broadcast_to(first_values, values_by_config.shape)
    has_same_values = np.array_equal(values_by_config, expected_values, equal_nan=True)
    has_ascending_fractions = np.array_equal(fraction_of_row, np.tile(fractions, n))
    return has_same_values and has_ascending_fractions


def sample_network(
    model: OnnxSurrogate, space: SearchSpace, request: Request, rng: np.random.Generator
) -> EvaluatedConfigurations:
    """Evaluate random configurations on a network, at all training fractions.

    Args:
        model: The network, which has a task for each fraction.
        space: Search space of the configurations.
        request: Number of configurations, 40 000 if it states none, and who is told the progress.
        rng: Draws the configurations.
    """
    n = SAMPLED_CONFIGURATIONS if request.configurations is None else request.configurations
    values = space.decode(space.sample_unit(rng, n))
    auc_of_fractions = []
    for task in range(len(FRACTIONS)):
        auc_of_fractions.append(model.predict(values, task))
        request.progress("evaluations", task + 1, len(FRACTIONS))
    return EvaluatedConfigurations(values, FRACTIONS, np.stack(auc_of_fractions, axis=1))


def _define(scenario: str, instance: str, local: Path | None) -> Definition:
    """Define a benchmark by the search space and the encoding that YAHPO publishes.

    Args:
        scenario: YAHPO's name of the learner.
        instance: YAHPO's name of the data set.
        local: Folder of a local copy of YAHPO's files; None, or where it lacks one: download.
    """
    files = describe_files(scenario)
    config_space = _read_json(files["config_space.json"], local)
    encoding = _read_json(files["encoding.json"], local)
    return define_benchmark(scenario, instance, config_space, encoding)


def _read_json(file: RemoteFile, local: Path | None) -> Any:
    """Read a published file of JSON, from a local copy or a download."""
    return json.loads(_find_file(file, local).read_bytes())


def _find_file(file: RemoteFile, local: Path | None) -> Path:
    """Find a published file: in a local copy of YAHPO's data, in the cache, or by downloading it.

    Args:
        file: The file.
        local: Folder of the copy; None if there is none.

    Raises:
        DownloadError: The file in the copy is not the published one.
    """
    if local is not None:
        path = local / file.name
        if path.is_file():
            if hash_file(path) != file.sha256:
                raise DownloadError(f"{path} is not the published {file.name}")
            return path
    if not file.is_fetched:
        file.download()
    return file.open_path()


def _fit_and_write(
    request: Request,
    defined: Definition,
    evaluated: EvaluatedConfigurations,
    report: CardTexts,
    recipe: ForestRecipe,
    *,
    rng: np.random.Generator | None = None,
) -> Path:
    """Fit a forest to evaluated configurations and write the artifact; return its folder.

    The forest has an output for each evaluated fraction; tasks between these are interpolated.

    Args:
        request: Folder, seed, number of workers, and who is told the progress.
        defined: The benchmark.
        evaluated: The configurations, with their AUC at some training fractions.
        report: Texts of the card.
        recipe: Settings of the forest.
        rng: Random generator of the search for best values; default: by the seed of the request.
    """
    forest = ForestData(
        values=evaluated.values,
        targets=evaluated.auc,
        coding=space_coding(defined.space),
        recipe=recipe,
        rng=rng,
        mixes=find_task_mixes(evaluated.fractions, FRACTIONS),
    )
    report = replace(report, command=request.command(defined.name, "--from DATA"))
    return write_forest(request, defined, forest, report)


def _make_generator(scenario: str, instance: str) -> Generator:
    """Make the generator of a benchmark's artifact, whose only source depends on the scenario.

    Artifacts of xgboost and rpart do not come with the package: users generate them, into the
    folder of their own benchmarks.
    """
    generate: Callable[[str, str, Request], Path]
    home = artifacts_folder
    if scenario == "ranger":
        source_name = "network"
        summary = "YAHPO's v2 network, sampled at 20 fractions."
        generate = generate_from_v2_network
    elif scenario in PUBLISHED_INSTANCES:
        source_name = "evaluations"
        summary = "The authors' evaluations at five fractions; needs --from."
        generate = generate_from_evaluations
    else:
        source_name = "network"
        summary = "YAHPO's own network, sampled at 20 fractions."
        generate = generate_from_own_network
        home = local_folder
    source = EvaluationSource(
        summary,
        frozenset({Option.LOCAL, Option.SEED, Option.WORKERS, Option.CONFIGURATIONS}),
        partial(generate, scenario, instance),
        min_configurations=FOLDS,  # one for each fold of the cross-validation
    )
    return Generator(name_benchmark(scenario, instance), {source_name: source}, home=home)


GENERATORS = tuple(
    _make_generator(*benchmark)
    for benchmark in (*PAPER_BENCHMARKS, *FURTHER_BENCHMARKS, *GENERATED_BENCHMARKS)
)
