"""Generates the benchmarks of learners on data sets, datasets-LEARNER.

Configurations are cross-validated on every data set (`_datasets.training`), and each finished
training is stored (`_training`). The evaluations are written beside the artifact as one Parquet
file (`_raw`), NAME-evaluations.parquet, and one forest with an output per task is fitted to that.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks.datasets import (
    DATASETS,
    FOREST,
    SOURCE,
    VERSION,
    LearnerOnDataSets,
)
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._datasets.data import MAX_ROWS, find_data_set
from hpobench_ordered.generation._datasets.figures import make_comparisons
from hpobench_ordered.generation._datasets.learners import LEARNERS
from hpobench_ordered.generation._datasets.training import DataSetTrainer
from hpobench_ordered.generation._fitting import ForestData, write_forest
from hpobench_ordered.generation._flows.datasets import FOLDS
from hpobench_ordered.generation._raw import (
    SECONDS,
    About,
    RawTable,
    make_raw_frame,
    name_config_columns,
    read_raw,
    write_raw,
)
from hpobench_ordered.generation._training import TrainingJob, run_trainings
from hpobench_ordered.generation.base import EvaluationSource, Generator, Option, Request
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS as FOLDS_OF_FOREST

CONFIGURATIONS = 300
"""Random configurations of each benchmark, beside the learner's default."""
SEEDS = {"tree": 6, "extra-trees": 2, "neighbours": 2, "gaussians": 2}
"""Number of seeds that values are means over; 1 for other learners."""
AREA_OF_GUESSING = 0.5
"""Area under the ROC curve that a learner counts with where it cannot be fitted."""
HISTORIES_ARE_DRAWN = (
    "Histories are random configurations, evaluated on the forest. They are not the trainings, as "
    "all data sets have the same configurations, which the forest knows by heart: copying the best "
    "of them would look better than it is."
)
"""Said on the card, as other benchmarks have their raw evaluations as histories."""
COSTS_ARE_NEAREST = (
    "Costs are the seconds of the nearest training, fits and predictions of all folds together, "
    "while trainings ran on every processor."
)
"""Said on the card of a benchmark with costs."""
REPEATED_CONFIGURATIONS = 32
"""Where values are of one seed, so many configurations are trained with a second one."""
FOREST_RECIPE = ForestRecipe(min_samples_leaf=1)
"""Down to single configurations, whose values hold little noise: with at least two of them in a
leaf, R2 and rank correlation were lower for all seven learners compared (medians over tasks)."""


class Training(NamedTuple):
    """A training: configuration number `config`, cross-validated on a data set with a seed."""

    data_set: str
    seed: int
    config: int


def generate_by_training(benchmark: LearnerOnDataSets, request: Request) -> Path:
    """Train on the data sets, fit the forest, and write the artifact; return its folder.

    Trainings that are stored already are not repeated.
    """
    learner = LEARNERS[benchmark.learner]
    files = {name: find_data_set(name, request.local) for name in benchmark.data_sets}
    n = request.configurations or CONFIGURATIONS
    configs = draw_configs(learner.space, n, seed=request.seed)
    plan = plan_trainings(benchmark, len(configs))
    outcomes = run_trainings(
        DataSetTrainer(benchmark.learner, files),
        [TrainingJob(f"{data_set}/{seed}", configs[number]) for data_set, seed, number in plan],
        request.path_beside("trainings"),
        workers=request.workers,
        progress=request.progress,
    )

    rows = make_rows(plan, configs, outcomes, averaged=SEEDS.get(benchmark.learner, 1))
    frame = make_raw_frame(rows, learner.space, {"failed": "int64", SECONDS: "float64"})
    about = About(
        benchmark=benchmark.name,
        source=f"own trainings on data sets of KEEL: {SOURCE}",
        licence="Apache-2.0",
        limits=_describe_limits(benchmark, n_failed=int(frame["failed"].sum())),
    )
    path = request.path_beside("evaluations.parquet")
    write_raw(path, frame, about)
    return _fit_and_write(benchmark, request, path)


def generate_from_evaluations(benchmark: LearnerOnDataSets, request: Request) -> Path:
    """Fit the forest to raw evaluations in a file, and write the artifact; return its folder.

    Raises:
        ExperimentError: The request has no file.
    """
    if request.local is None:
        raise ExperimentError(
            f"source 'evaluations' of {benchmark.name} needs a parquet file: {Option.LOCAL.value}"
        )
    return _fit_and_write(benchmark, request, request.local)


def draw_configs(space: SearchSpace, n: int, *, seed: int) -> list[Config]:
    """Return the default configuration and n random ones, which are used on every data set."""
    drawn = space.decode(space.sample_unit(np.random.default_rng(seed), n))
    return [space.default, *space.configs(drawn)]


def plan_trainings(benchmark: LearnerOnDataSets, number_of_configs: int) -> list[Training]:
    """List all trainings of a benchmark.

    Where values are of one seed, some configurations are trained with a second seed, which shows
    how much the folds and the random numbers of estimators matter.
    """
    number_of_seeds = SEEDS.get(benchmark.learner, 1)
    plan = []
    for data_set in benchmark.data_sets:
        for seed in range(number_of_seeds):
            plan += [Training(data_set, seed, config) for config in range(number_of_configs)]
        if number_of_seeds == 1:
            number_repeated = min(REPEATED_CONFIGURATIONS, number_of_configs)
            plan += [Training(data_set, 1, config) for config in range(number_repeated)]
    return plan


def make_rows(
    plan: Sequence[Training],
    configs: Sequence[Config],
    outcomes: Sequence[Mapping[str, Any]],
    *,
    averaged: int,
) -> list[dict[str, Any]]:
    """Make a row of the table of raw evaluations for each data set and configuration.

    The value is the mean over the first `averaged` seeds, of which `failed` counts those where the
    learner could not be fitted. The spread is the standard deviation over all seeds, and null if
    there is only one.

    Args:
        plan: The trainings.
        configs: All configurations.
        outcomes: The outcome of each training.
        averaged: Number of seeds that values are means over.
    """
    outcomes_of_row = defaultdict(list)  # in the order of seeds
    for training, outcome in zip(plan, outcomes, strict=True):
        outcomes_of_row[training.data_set, training.config].append(outcome)

    rows = []
    for (data_set, number), outcomes_of_seeds in outcomes_of_row.items():
        areas = np.array([outcome["value"] for outcome in outcomes_of_seeds], dtype=np.float64)
        has_failed = np.isnan(areas)
        values = np.where(has_failed, AREA_OF_GUESSING, areas)
        seconds = [outcome["seconds"] for outcome in outcomes_of_seeds[:averaged]]
        row = {
            "task": data_set,
            "training": number,
            **name_config_columns(configs[number]),
            "value": values[:averaged].mean(),
            "spread": values.std(ddof=1) if len(values) > 1 else np.nan,
            "failed": has_failed[:averaged].sum(),
            SECONDS: np.mean(seconds),
        }
        rows.append(row)
    return rows


def _describe_limits(benchmark: LearnerOnDataSets, *, n_failed: int) -> tuple[str, ...]:
    """Describe for the card how values were made, which limits their use.

    Args:
        benchmark: The benchmark.
        n_failed: Number of trainings in which the learner could not be fitted.
    """
    seeds = SEEDS.get(benchmark.learner, 1)
    if seeds == 1:
        how_often = "once"
    else:
        how_often = f"{seeds} times, each with other folds and another seed of the learner"
    limits = [
        f"Every configuration is {FOLDS}-fold cross-validated {how_often}, "
        "on the same folds as all others; "
        f"data sets with more than {MAX_ROWS} rows are reduced to these.",
        "Every data set has the same configurations, the first of which is the learner's default.",
    ]
    if n_failed:
        limits.append(
            f"{n_failed} trainings failed, and count with the area of guessing, {AREA_OF_GUESSING}."
        )
    return tuple(limits)


def _fit_and_write(benchmark: LearnerOnDataSets, request: Request, path: Path) -> Path:
    """Fit the forest to the raw evaluations in a file, and write the artifact; return its folder.

    Raises:
        ArtifactError: The file does not hold such evaluations.
        ExperimentError: Tasks have different configurations.
    """
    space = LEARNERS[benchmark.learner].space
    table = read_raw(path, benchmark=benchmark.name, space=space)
    evaluations = list(table.tasks.values())
    values = evaluations[0].values
    for name, raw in table.tasks.items():
        if not np.array_equal(raw.values, values, equal_nan=True):
            raise ExperimentError(f"{path}: {name} has other configurations than the first task")
    targets = np.stack([raw.objective for raw in evaluations], axis=1)  # (n, T)

    limits = [*table.about.limits, HISTORIES_ARE_DRAWN]
    seconds = None
    if table.seconds:
        seconds = np.stack([table.seconds[name] for name in table.tasks], axis=1)  # (n, T)
        limits.append(COSTS_ARE_NEAREST)

    defined = _define(benchmark, table, space)
    comparisons = make_comparisons(
        defined.objective.losses(targets),
        np.stack([raw.spread for raw in evaluations], axis=1),
        averaged=SEEDS.get(benchmark.learner, 1),
    )
    # The card has the command that trains, wherever the evaluations are from.
    n_random = len(values) - 1  # beside the default
    configurations = None if n_random == CONFIGURATIONS else n_random
    training_request = replace(request, configurations=configurations)
    texts = CardTexts(
        source=table.about.source,
        command=training_request.command(benchmark.name, f"{Option.LOCAL.value} DATA"),
        limits=limits,
        summaries={FOREST: "Random forest fitted to own trainings."},
        comparisons=comparisons,
    )
    forest = ForestData(values, targets, space_coding(space), FOREST_RECIPE)
    return write_forest(request, defined, forest, texts, seconds=seconds)


def _define(benchmark: LearnerOnDataSets, table: RawTable, space: SearchSpace) -> Definition:
    """Define the benchmark, whose tasks are data sets; nothing is known of them beforehand."""
    return Definition(
        name=benchmark.name,
        version=VERSION,
        summary=benchmark.summary,
        space=space,
        objective=Objective("auc", "area under the ROC curve, cross-validated", Direction.MAXIMIZE),
        tasks=tuple(TaskDefinition(name, {}) for name in table.tasks),
        provenance=Provenance(paper="none", source=table.about.source, licence=table.about.licence),
    )


def _make_sources(benchmark: LearnerOnDataSets) -> dict[str, EvaluationSource]:
    """Make the sources of evaluations: trainings, which are the default, and a file of them."""
    options = frozenset({Option.LOCAL, Option.SEED, Option.WORKERS})
    return {
        "train": EvaluationSource(
            "Trains on data sets, which are downloaded unless --from is a folder of their files.",
            options | {Option.CONFIGURATIONS},
            partial(generate_by_training, benchmark),
            min_configurations=FOLDS_OF_FOREST,
        ),
        "evaluations": EvaluationSource(
            "Fits to raw evaluations; --from takes their parquet file.",
            options,
            partial(generate_from_evaluations, benchmark),
        ),
    }


GENERATORS = tuple(Generator(benchmark.name, _make_sources(benchmark)) for benchmark in DATASETS)
