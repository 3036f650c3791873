"""Generates the benchmarks of retraining, retrain-STREAM-LEARNER.

Configurations are trained on every period of a stream (`_retrain.training`), each finished one is
stored (`_training`), and one forest with an output per task is fitted to all of them.
"""

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.retrain import RETRAINING, VERSION, Retraining
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._fitting import FOREST, ForestData, write_forest
from hpobench_ordered.generation._retrain.figures import describe_flatness, make_comparisons
from hpobench_ordered.generation._retrain.learners import LEARNERS, WINDOW
from hpobench_ordered.generation._retrain.plan import (
    RetrainPlan,
    average_seeds,
    describe_limits,
    make_raw_evaluations,
)
from hpobench_ordered.generation._retrain.streams import read_public_stream
from hpobench_ordered.generation._retrain.training import RetrainTrainer
from hpobench_ordered.generation._training import run_trainings
from hpobench_ordered.generation.base import EvaluationSource, Generator, Option, Request
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.pipeline import FOLDS

CONFIGURATIONS = 320
"""Configurations of most benchmarks."""
SEEDS = 1
"""Seeds that the values of most benchmarks are averaged over."""
CONFIGURATIONS_AND_SEEDS = {
    "retrain-electricity-xgboost": (400, 1),
    "retrain-electricity-linear": (320, 2),
    "retrain-electricity-mlp": (200, 2),
    "retrain-bike-sharing-linear": (320, 3),
    "retrain-metro-traffic-linear": (320, 2),
}
"""Numbers of configurations and of seeds of the benchmarks where fewer rank too roughly."""


def make_plan(
    benchmark: Retraining, folder: Path, *, configurations: int | None = None, seed: int = 0
) -> RetrainPlan:
    """Plan the trainings of a benchmark.

    Args:
        benchmark: The benchmark.
        folder: Folder with the files of the streams.
        configurations: Number of configurations; default: as many as the packaged benchmark has.
        seed: Seed of the configurations, and the first one of the models.
    """
    stream = benchmark.stream
    learner = LEARNERS[benchmark.learner]
    parameters = list(learner.parameters)
    longest_window = benchmark.window
    if longest_window is None:  # then the window is a hyperparameter
        longest_window = stream.longest_window
        parameters.append(Parameter.number(WINDOW, 1, longest_window, integer=True))

    trainer = RetrainTrainer(
        read_public_stream(stream.name, folder),
        learner,
        is_regression=stream.is_regression,
        longest_window=longest_window,
    )
    # Some benchmarks need more configurations, or means over more seeds, than the others.
    default_configurations, number_of_seeds = CONFIGURATIONS_AND_SEEDS.get(
        benchmark.name, (CONFIGURATIONS, SEEDS)
    )
    return RetrainPlan(
        trainer,
        SearchSpace(parameters),
        configurations=configurations or default_configurations,
        seed=seed,
        averaged=number_of_seeds,
    )


def generate(benchmark: Retraining, request: Request) -> Path:
    """Train on the stream of a benchmark, fit the forest and write the artifact.

    Raises:
        ExperimentError: The request has no folder with the file of the stream.
    """
    if request.local is None:
        raise ExperimentError(
            f"{benchmark.name} needs a folder with {benchmark.stream.name}.parquet: "
            f"{Option.LOCAL.value} (the stream is from {benchmark.stream.source})"
        )
    plan = make_plan(
        benchmark, request.local, configurations=request.configurations, seed=request.seed
    )
    return train_and_write(plan, _define(benchmark, plan), request)


def _define(benchmark: Retraining, plan: RetrainPlan) -> Definition:
    """Define a benchmark, whose tasks are the periods that are predicted."""
    stream = benchmark.stream
    tasks = [TaskDefinition(name, context) for name, context in plan.trainer.contexts.items()]
    return Definition(
        name=benchmark.name,
        version=VERSION,
        summary=benchmark.summary,
        space=plan.space,
        objective=stream.objective,
        tasks=tuple(tasks),
        provenance=Provenance(
            paper="none",
            source=f"own trainings on the stream {stream.name}: {stream.source}",
            licence="Apache-2.0",
        ),
    )


def train_and_write(plan: RetrainPlan, defined: Definition, request: Request) -> Path:
    """Do the trainings of a plan, fit a forest to them and write the artifact; return its folder.

    Args:
        plan: The trainings.
        defined: The benchmark.
        request: Folder, seed, number of workers, and who is told the progress.
    """
    outcomes = run_trainings(
        plan.trainer,
        plan.list_jobs(),
        request.path_beside("trainings"),
        workers=request.workers,
        progress=request.progress,
    )
    # Means over seeds of all configurations, and the values of every seed of those repeated.
    values, repeated = average_seeds(plan, outcomes)
    coding = _make_coding(plan.space)
    comparisons = _compare_with_forest(plan, defined, values, repeated, coding, request.seed)
    report = CardTexts(
        source=defined.provenance.source,
        command=request.command(defined.name, f"{Option.LOCAL.value} STREAMS"),
        limits=(*describe_limits(plan), *describe_flatness(comparisons)),
        summaries={FOREST: "Random forest fitted to own trainings."},
        comparisons=comparisons,
    )
    forest = ForestData(plan.values, values, coding, ForestRecipe())
    evaluations = make_raw_evaluations(plan.values, values, repeated)
    return write_forest(request, defined, forest, report, evaluations=evaluations)


def _make_coding(space: SearchSpace) -> Coding:
    """Code configurations as inputs of a forest, with products and ratios of all pairs of numbers.

    Errors often depend on these, such as on the product of a learning rate and a number of trees.
    """
    names_of_numbers = [
        parameter.name for parameter in space.parameters if parameter.kind is not Kind.CATEGORICAL
    ]
    pairs = list(combinations(names_of_numbers, 2))
    return space_coding(space, products=pairs, ratios=pairs)


def _compare_with_forest(
    plan: RetrainPlan,
    defined: Definition,
    values: FloatArray,
    repeated: FloatArray,
    coding: Coding,
    seed: int,
) -> dict[str, Any]:
    """Compare trainings with each other and with a forest fitted to all of them, for the card.

    Args:
        plan: The plan, whose configurations have shape (n, d).
        defined: The benchmark.
        values: Their objective values on T tasks, (n, T).
        repeated: Values of m of them with each of S seeds, (S, m, T).
        coding: How configurations are coded as inputs of the forest.
        seed: Seed of the forest.
    """
    forest = fit_forest(plan.values, values, coding=coding, recipe=ForestRecipe(), seed=seed)
    predictions = [forest.predict(plan.values, task) for task in range(forest.n_tasks)]
    smooth_values = np.stack(predictions, axis=1)  # (n, T); a forest evens out noise

    compute_losses = defined.objective.losses
    return make_comparisons(
        compute_losses(values),
        compute_losses(smooth_values),
        compute_losses(repeated),
        averaged=plan.averaged,
    )


GENERATORS = tuple(
    Generator(
        benchmark.name,
        {
            "train": EvaluationSource(
                f"Trains on the stream {benchmark.stream.name}; --from is a folder with its file.",
                frozenset({Option.LOCAL, Option.SEED, Option.WORKERS, Option.CONFIGURATIONS}),
                partial(generate, benchmark),
                min_configurations=FOLDS,
            )
        },
    )
    for benchmark in RETRAINING
)
