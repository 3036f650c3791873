"""Generates benchmarks of retraining: retrain-STREAM-LEARNER, and those of the user's own streams.

Configurations are trained on every period of a stream (`_retrain.training`), each finished one is
stored (`_training`), and one forest with an output per task is fitted to all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.retrain import RETRAINING, VERSION, Retraining
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.plan import TrainingSpec
from hpobench_ordered.generation._custom.split import PredictionKind
from hpobench_ordered.generation._custom.training import Metric
from hpobench_ordered.generation._custom.writing import (
    OwnTrainings,
    define_benchmark,
    run_stored_trainings,
)
from hpobench_ordered.generation._retrain.figures import describe_flatness, make_comparisons
from hpobench_ordered.generation._retrain.plan import (
    RetrainPlan,
    describe_limits,
    gather_results,
    make_raw_evaluations,
)
from hpobench_ordered.generation._retrain.streams import Stream, read_public_stream, read_stream
from hpobench_ordered.generation._retrain.training import (
    HALF_LIFE,
    HYPERPARAMETERS_OF_DATA,
    WINDOW,
    RetrainTrainer,
    select_model_config,
)
from hpobench_ordered.generation.base import (
    EvaluationSource,
    Generator,
    Option,
    Progress,
    Request,
    silent,
)
from hpobench_ordered.generation.custom import LICENCE, choose_folder
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.pipeline import FOLDS

COMMAND = "retrain"
"""The subcommand of `hpobench-ordered generate` for a user's stream."""
CONFIGURATIONS = 320
"""Configurations of this package's benchmarks."""
SEEDS = 1
"""Seeds that values of this package's benchmarks are averaged over."""
CONFIGURATIONS_AND_SEEDS = {
    "retrain-electricity-xgboost": (400, 1),
    "retrain-electricity-linear": (320, 2),
    "retrain-electricity-mlp": (200, 2),
    "retrain-bike-sharing-linear": (320, 3),
    "retrain-metro-traffic-linear": (320, 2),
}
"""The same for benchmarks that need more to rank configurations."""


RANDOM_FEATURES = "hpobench_ordered.generation._retrain.random_features:RandomFeatures"


@dataclass(frozen=True)
class RetrainingLearner:
    """A learner and its search space.

    Attributes:
        models: The model of each kind of prediction, as MODULE:CLASS.
        parameters: The hyperparameters, without the window.
        fixed: Keywords with the same value in all configurations.
    """

    models: Mapping[PredictionKind, str]
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def window_parameter(least: int, most: int) -> Parameter:
    """Make the hyperparameter window: the number of periods to train on."""
    return Parameter.number(WINDOW, least, most, integer=True)


def _pair_of_models(path: str) -> dict[PredictionKind, str]:
    """Name a classifier and a regressor whose paths, MODULE:CLASS, differ only in their ending."""
    return {
        PredictionKind.CLASSIFICATION: f"{path}Classifier",
        PredictionKind.REGRESSION: f"{path}Regressor",
    }


LEARNERS = {
    "xgboost": RetrainingLearner(
        _pair_of_models("xgboost:XGB"),
        (
            Parameter.number("learning_rate", 0.01, 1, log=True),
            Parameter.number("n_estimators", 8, 128, log=True, integer=True),
            Parameter.number("max_depth", 1, 10, integer=True),
            Parameter.number("min_child_weight", 0.5, 64, log=True),
            Parameter.number("subsample", 0.2, 1),
            Parameter.number("colsample_bytree", 0.2, 1),
            Parameter.number("reg_lambda", 1e-3, 1e3, log=True),
        ),
        fixed={"tree_method": "hist", "max_bin": 64},
    ),
    "linear": RetrainingLearner(
        _pair_of_models(RANDOM_FEATURES),
        (
            Parameter.number("gamma", 1e-4, 1, log=True),
            Parameter.number("n_components", 16, 256, log=True, integer=True),
            Parameter.number("alpha", 1e-4, 1e3, log=True),
            Parameter.number(HALF_LIFE, 0.5, 16, log=True),
        ),
    ),
    "mlp": RetrainingLearner(
        _pair_of_models("sklearn.neural_network:MLP"),
        (
            Parameter.number("hidden_layer_sizes", 8, 128, log=True, integer=True),
            Parameter.choice("activation", ("relu", "tanh")),
            Parameter.number("alpha", 1e-6, 10, log=True),
            Parameter.number("learning_rate_init", 1e-4, 0.1, log=True),
            Parameter.number("batch_size", 16, 256, log=True, integer=True),
            Parameter.number("max_iter", 2, 12, log=True, integer=True),
        ),
    ),
}
"""Gradient boosting, a linear model of random features, and a network with one hidden layer."""


@dataclass(frozen=True, kw_only=True)
class Retrain(TrainingSpec):
    """Specification of a benchmark of retraining on a user's stream."""

    time: str
    every: str
    window: tuple[int, int]
    time_format: str | None = None

    def list_words(self) -> list[str]:
        """List the words of the command that generates this benchmark, from its name on.

        They are such as `retrain`, `--time day`, `--window 2-6`. The options `--configurations` and
        `--seed` are not among them: `Request.command` adds these for all kinds of benchmarks.
        """
        least, most = self.window  # numbers of periods that a model may be trained on
        window = f"{least}-{most}"
        if least == most:
            window = f"{most}"
        options = {
            "time": self.time,
            "time-format": self.time_format,
            "every": self.every,
            "window": window,
        }
        return [COMMAND, *self.list_options(**options)]

    def read_stream(self) -> Stream:
        """Read the rows in the order of time, cut into periods of the specified length."""
        return read_stream(
            Path(self.data),
            target=self.target,
            time=self.time,
            every=self.every,
            time_format=self.time_format,
        )


def make_plan(
    benchmark: Retraining, folder: Path, *, configurations: int | None = None, seed: int = 0
) -> RetrainPlan:
    """Plan the trainings of one of this package's benchmarks, on the streams in a folder."""
    stream = benchmark.stream
    learner = LEARNERS[benchmark.learner]
    if stream.is_regression:
        metric = Metric(PredictionKind.REGRESSION, "neg_mean_absolute_error")
    else:
        metric = Metric(PredictionKind.CLASSIFICATION, "roc_auc")

    parameters = list(learner.parameters)
    longest_window = benchmark.window
    if longest_window is None:  # then the window is a hyperparameter
        longest_window = stream.longest_window
        parameters.append(window_parameter(1, longest_window))

    trainer = RetrainTrainer(
        read_public_stream(stream.name, folder),
        Model.from_path(learner.models[metric.kind], fixed=learner.fixed, seed=seed),
        metric,
        longest_window=longest_window,
    )
    # Some benchmarks need more configurations, or means over more seeds, than the others.
    default_configurations, averaged = CONFIGURATIONS_AND_SEEDS.get(
        benchmark.name, (CONFIGURATIONS, SEEDS)
    )
    return RetrainPlan(
        trainer,
        SearchSpace(parameters),
        configurations=configurations or default_configurations,
        seed=seed,
        averaged=averaged,
    )


def generate(benchmark: Retraining, request: Request) -> Path:
    """Train on the stream of one of this package's benchmarks, fit, and write the artifact."""
    if request.local is None:
        raise ExperimentError(
            f"{benchmark.name} needs a folder with {benchmark.stream.name}.parquet: "
            f"{Option.LOCAL.value} (the stream is from {benchmark.stream.source})"
        )
    plan = make_plan(
        benchmark, request.local, configurations=request.configurations, seed=request.seed
    )
    defined = define_benchmark(
        benchmark.name,
        benchmark.summary,
        plan.space,
        benchmark.stream.objective,
        plan.trainer.contexts,
        source=f"own trainings on the stream {benchmark.stream.name}: {benchmark.stream.source}",
        licence="Apache-2.0",
        version=VERSION,
    )
    command_words = (benchmark.name, f"{Option.LOCAL.value} STREAMS")
    names_of_numbers = [
        parameter.name
        for parameter in plan.space.parameters
        if parameter.kind is not Kind.CATEGORICAL
    ]
    pairs = list(combinations(names_of_numbers, 2))  # products and ratios often matter
    coding = space_coding(plan.space, products=pairs, ratios=pairs)
    return _train_and_write(plan, defined, request, command_words, coding)


def generate_retrain(
    spec: Retrain,
    *,
    output: Path | None = None,
    replace: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Path:
    """Train on a stream of the user's own, fit the forest and write the artifact.

    Finished trainings are stored beside the artifact, so that calling this again continues.
    """
    folder = choose_folder(spec.name, output, replace=replace)
    plan = _make_own_plan(spec)
    request = Request(
        folder=folder,
        seed=spec.seed,
        workers=workers,
        configurations=spec.configurations,
        progress=progress,
    )
    defined = _define_own(spec, plan)
    return _train_and_write(plan, defined, request, spec.list_words(), space_coding(plan.space))


def _make_own_plan(spec: Retrain) -> RetrainPlan:
    """Plan the trainings on a user's own stream."""
    model = spec.import_model()
    stream = spec.read_stream()
    space = _make_space(spec, model, stream)

    # What the model predicts is asked of an estimator, which needs some configuration.
    rng = np.random.default_rng(0)
    (any_config,) = space.configs(space.decode(space.sample_unit(rng, 1)))
    kind = spec.decide_kind(model, select_model_config(any_config), stream.data.target)
    _, longest_window = spec.window
    trainer = RetrainTrainer(
        stream,
        model,
        Metric(kind, spec.metric),
        longest_window=longest_window,
        failures=spec.failures,
    )
    return RetrainPlan(trainer, space, configurations=spec.configurations, seed=spec.seed)


def _make_space(spec: Retrain, model: Model, stream: Stream) -> SearchSpace:
    """Make the search space of the model, with the window as a hyperparameter if it is a range."""
    least, most = spec.window  # numbers of periods to train on
    rows_of_periods = np.diff(stream.starts)  # `starts` are the first rows of periods
    space = spec.make_space(
        model,
        smallest_size=int(rows_of_periods.min()) * least,
        names_outside_model=HYPERPARAMETERS_OF_DATA,  # window and half-life
    )
    is_window_fixed = least == most
    has_window = WINDOW in space.names  # in the user's own search space
    if is_window_fixed or has_window:
        return space

    parameters = [*space.parameters, window_parameter(least, most)]
    return SearchSpace(parameters, conditions=space.conditions, constants=space.constants)


def _define_own(spec: Retrain, plan: RetrainPlan) -> Definition:
    """Define a benchmark on a user's own stream."""
    trainer = plan.trainer
    stream = trainer.stream
    # The first periods only serve to train; each of the others is a task.
    first_period = stream.names[trainer.longest_window]
    last_period = stream.names[-1]
    # `starts` has the first row of each period and, last, the number of rows.
    rows_of_last_period = stream.starts[-1] - stream.starts[-2]
    return define_benchmark(
        spec.name,
        f"{trainer.model.name} trained again on {stream.data.name}, {first_period} to "
        f"{last_period}.",
        plan.space,
        trainer.metric.objective(rows_of_last_period),
        trainer.contexts,
        source=f"own trainings of {spec.model} on {stream.data.origin}",
        licence=LICENCE,
        version=VERSION,
    )


def _train_and_write(
    plan: RetrainPlan, defined: Definition, request: Request, words: Sequence[str], coding: Coding
) -> Path:
    """Train, store the table of all trainings, fit the forest and write the artifact.

    Args:
        plan: The trainings.
        defined: The benchmark.
        request: Folder, seed, number of workers, and who is told the progress.
        words: Words of the command that generates the benchmark, for the card.
        coding: How configurations are coded as inputs of the forest.
    """
    outcomes = run_stored_trainings(plan.trainer, plan.jobs(), request)
    # Means over seeds of all configurations, and the values of every seed of those repeated.
    results, repeated = gather_results(plan, outcomes)
    trainings = OwnTrainings(
        defined=defined,
        values=plan.values,
        results=results,
        source=defined.provenance.source,
        limits=describe_limits(plan, results),
    )
    trainings.write_table(request, "scikit-learn", "xgboost")

    values = results.fill_failures(defined.objective)
    comparisons = _compare_with_forest(plan, defined, values, repeated, coding, request.seed)
    return trainings.write_artifact(
        request,
        coding,
        words,
        more_limits=describe_flatness(comparisons),
        comparisons=comparisons,
        evaluations=make_raw_evaluations(plan.values, values, repeated),
    )


def _compare_with_forest(
    plan: RetrainPlan,
    defined: Definition,
    values: FloatArray,
    repeated: FloatArray | None,
    coding: Coding,
    seed: int,
) -> dict[str, Any]:
    """Compare trainings with each other and with a forest fitted to all of them.

    Args:
        plan: The plan, whose configurations have shape (n, d).
        defined: The benchmark.
        values: Their objective values on T tasks, (n, T).
        repeated: Values of m of them with each of S seeds, (S, m, T); None if nothing was repeated.
        coding: How configurations are coded as inputs of the forest.
        seed: Seed of the forest.
    """
    forest = fit_forest(plan.values, values, coding=coding, recipe=ForestRecipe(), seed=seed)
    predictions = [forest.predict(plan.values, task) for task in range(forest.n_tasks)]
    smooth_values = np.stack(predictions, axis=1)  # a forest evens out noise

    compute_losses = defined.objective.losses
    return make_comparisons(
        compute_losses(values),
        compute_losses(smooth_values),
        None if repeated is None else compute_losses(repeated),
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
