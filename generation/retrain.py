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

from hpobench_ordered.benchmarks.retrain import RETRAINING, VERSION, Retraining
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.plan import Trained
from hpobench_ordered.generation._custom.split import Kind
from hpobench_ordered.generation._custom.training import Metric
from hpobench_ordered.generation._custom.writing import OwnTrainings, definition_of, trained
from hpobench_ordered.generation._retrain.figures import comparisons, flatness
from hpobench_ordered.generation._retrain.plan import RetrainPlan, gather, limits_of, recorded
from hpobench_ordered.generation._retrain.streams import Stream, public_stream, read_stream
from hpobench_ordered.generation._retrain.training import (
    HALF_LIFE,
    OF_THE_DATA,
    WINDOW,
    RetrainTrainer,
)
from hpobench_ordered.generation.base import Generator, Option, Progress, Request, Source, silent
from hpobench_ordered.generation.custom import LICENCE, destination
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind as ParameterKind
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.pipeline import FOLDS

COMMAND = "retrain"
"""The subcommand of `hpobench-ordered generate` for a user's stream."""
CONFIGURATIONS, SEEDS = 320, 1
"""Configurations of this package's benchmarks, and seeds that values are averaged over."""
MORE = {
    "retrain-electricity-xgboost": (400, 1),
    "retrain-electricity-linear": (320, 2),
    "retrain-electricity-mlp": (200, 2),
    "retrain-bike-sharing-linear": (320, 3),
    "retrain-metro-traffic-linear": (320, 2),
}
"""The same for benchmarks that need more to rank configurations."""


RANDOM_FEATURES = "hpobench_ordered.generation._retrain.random_features:RandomFeatures"


@dataclass(frozen=True)
class Learner:
    """A learner and its search space."""

    models: Mapping[Kind, str]
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def window(least: int, most: int) -> Parameter:
    """Number of periods to train on."""
    return Parameter.number(WINDOW, least, most, integer=True)


def _models(path: str) -> dict[Kind, str]:
    return {Kind.CLASSIFICATION: f"{path}Classifier", Kind.REGRESSION: f"{path}Regressor"}


LEARNERS = {
    "xgboost": Learner(
        _models("xgboost:XGB"),
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
    "linear": Learner(
        _models(RANDOM_FEATURES),
        (
            Parameter.number("gamma", 1e-4, 1, log=True),
            Parameter.number("n_components", 16, 256, log=True, integer=True),
            Parameter.number("alpha", 1e-4, 1e3, log=True),
            Parameter.number(HALF_LIFE, 0.5, 16, log=True),
        ),
    ),
    "mlp": Learner(
        _models("sklearn.neural_network:MLP"),
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
class Retrain(Trained):
    """Specification of a benchmark of retraining on a user's stream."""

    time: str
    every: str
    window: tuple[int, int]
    time_format: str | None = None

    def words(self) -> list[str]:
        """The words of the equivalent command, without the options common to all generation."""
        least, most = self.window
        spoken = f"{most}" if least == most else f"{least}-{most}"
        times = {"time": self.time, "time-format": self.time_format}
        return [COMMAND, *self.options(**times, every=self.every, window=spoken)]

    def stream(self) -> Stream:
        """Read the data and cut them into periods."""
        return read_stream(
            Path(self.data),
            target=self.target,
            time=self.time,
            every=self.every,
            time_format=self.time_format,
        )


def plan_of(
    benchmark: Retraining, folder: Path, *, configurations: int | None = None, seed: int = 0
) -> RetrainPlan:
    """The trainings of one of this package's benchmarks, on the streams in a folder."""
    stream, learner = benchmark.stream, LEARNERS[benchmark.learner]
    kind = Kind.REGRESSION if stream.is_regression else Kind.CLASSIFICATION
    scorer = "neg_mean_absolute_error" if stream.is_regression else "roc_auc"
    longest = benchmark.window or stream.longest_window
    usual, averaged = MORE.get(benchmark.name, (CONFIGURATIONS, SEEDS))
    windows = () if benchmark.window else (window(1, longest),)
    trainer = RetrainTrainer(
        public_stream(stream.name, folder),
        Model.imported(learner.models[kind], fixed=learner.fixed, seed=seed),
        Metric(kind, scorer),
        longest=longest,
    )
    return RetrainPlan(
        trainer,
        SearchSpace([*learner.parameters, *windows]),
        configurations=configurations or usual,
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
    plan = plan_of(
        benchmark, request.local, configurations=request.configurations, seed=request.seed
    )
    defined = definition_of(
        benchmark.name,
        benchmark.summary,
        plan.space,
        benchmark.stream.objective,
        plan.trainer.contexts,
        source=f"own trainings on the stream {benchmark.stream.name}: {benchmark.stream.source}",
        licence="Apache-2.0",
        version=VERSION,
    )
    words = (benchmark.name, f"{Option.LOCAL.value} STREAMS")
    numbers = [p.name for p in plan.space.parameters if p.kind is not ParameterKind.CATEGORICAL]
    pairs = list(combinations(numbers, 2))  # products and ratios often matter
    coding = space_coding(plan.space, products=pairs, ratios=pairs)
    return _generate(plan, defined, request, words, coding)


def generate_retrain(
    asked: Retrain,
    *,
    output: Path | None = None,
    replace: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Path:
    """Train on a stream of the user's own, fit the forest and write the artifact.

    As `generate_custom`.
    """
    folder = destination(asked.name, output, replace=replace)
    model, most, stream = asked.imported(), asked.window[1], asked.stream()
    space = _space(asked, model, stream)
    metric = Metric(_kind(asked, model, space, stream), asked.metric)
    plan = RetrainPlan(
        RetrainTrainer(stream, model, metric, longest=most, failures=asked.failures),
        space,
        configurations=asked.configurations,
        seed=asked.seed,
    )
    request = Request(
        folder=folder,
        seed=asked.seed,
        workers=workers,
        configurations=asked.configurations,
        progress=progress,
    )
    periods = f"{stream.names[most]} to {stream.names[-1]}"
    defined = definition_of(
        asked.name,
        f"{model.name} trained again on {stream.data.name}, {periods}.",
        plan.space,
        metric.objective(stream.starts[-1] - stream.starts[-2]),
        plan.trainer.contexts,
        source=f"own trainings of {asked.model} on {stream.data.origin}",
        licence=LICENCE,
        version=VERSION,
    )
    return _generate(plan, defined, request, asked.words(), space_coding(plan.space))


def _space(asked: Retrain, model: Model, stream: Stream) -> SearchSpace:
    """The search space of the model, and the window where that is a range."""
    least, most = asked.window
    smallest = int(np.diff(stream.starts).min()) * least
    space = asked.search_space(model, smallest=smallest, of_the_data=OF_THE_DATA)
    if least == most or WINDOW in space.names:
        return space
    parameters = [*space.parameters, window(least, most)]
    return SearchSpace(parameters, conditions=space.conditions, constants=space.constants)


def _kind(asked: Retrain, model: Model, space: SearchSpace, stream: Stream) -> Kind:
    first = space.configs(space.decode(space.sample_unit(np.random.default_rng(0), 1)))[0]
    own = {name: value for name, value in first.items() if name not in OF_THE_DATA}
    return asked.kind_with(model, own, stream.data.target)


def _generate(
    plan: RetrainPlan, defined: Definition, request: Request, words: Sequence[str], coding: Coding
) -> Path:
    results, repeated = gather(plan, trained(plan.trainer, plan.jobs(), request))
    source, limits = defined.provenance.source, limits_of(plan, results)
    trainings = OwnTrainings(defined, plan.values, results, source, limits)
    trainings.store(request, "scikit-learn", "xgboost")
    values, losses = results.filled(defined.objective), defined.objective.losses
    recipe = ForestRecipe()
    forest = fit_forest(plan.values, values, coding=coding, recipe=recipe, seed=request.seed)
    smooth = np.stack([forest.predict(plan.values, k) for k in range(forest.n_tasks)], axis=1)
    seeds = None if repeated is None else losses(repeated)
    compared = comparisons(losses(values), losses(smooth), seeds, averaged=plan.averaged)
    return trainings.write(
        request,
        coding,
        words,
        more_limits=flatness(compared),
        comparisons=compared,
        evaluations=recorded(plan.values, values, repeated),
    )


GENERATORS = tuple(
    Generator(
        benchmark.name,
        {
            "train": Source(
                f"Trains on the stream {benchmark.stream.name}; --from is a folder with its file.",
                frozenset({Option.LOCAL, Option.SEED, Option.WORKERS, Option.CONFIGURATIONS}),
                partial(generate, benchmark),
                fewest=FOLDS,
            )
        },
    )
    for benchmark in RETRAINING
)
