"""Generates benchmarks of retraining: retrain-STREAM-LEARNER, and those of the user's own streams.

Configurations are trained on every period of a stream (`_retrain.training`); every configuration
that is finished is stored (`_training`), and one forest with an output a task is fitted to all of
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from hpobench_ordered.benchmarks.retrain import FOREST, RETRAINING, VERSION, Retraining
from hpobench_ordered.core.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.core.objective import Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.files.artifact import check_writable
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.plan import Trained
from hpobench_ordered.generation._custom.results import Results
from hpobench_ordered.generation._custom.split import Kind
from hpobench_ordered.generation._custom.training import Metric
from hpobench_ordered.generation._fitting import write_forest
from hpobench_ordered.generation._raw import About, write_raw
from hpobench_ordered.generation._retrain.figures import comparisons, flatness
from hpobench_ordered.generation._retrain.learners import LEARNERS, window
from hpobench_ordered.generation._retrain.plan import RetrainPlan, retrain_plan
from hpobench_ordered.generation._retrain.results import gather, limits_of, recorded
from hpobench_ordered.generation._retrain.streams import public_stream, read_stream
from hpobench_ordered.generation._retrain.training import OF_THE_DATA, WINDOW
from hpobench_ordered.generation._training import run_trainings
from hpobench_ordered.generation.base import (
    Generator,
    Option,
    Progress,
    Request,
    Source,
    silent,
)
from hpobench_ordered.generation.custom import EVALUATIONS, check_new_name
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind as ParameterKind
from hpobench_ordered.surrogates.artifacts import Report
from hpobench_ordered.surrogates.card import versions_of
from hpobench_ordered.surrogates.coding import Coding, space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.pipeline import FOLDS

COMMAND = "retrain"
"""What follows `hpobench-ordered generate` for a stream of the user's own."""
CONFIGURATIONS, SEEDS = 320, 1
"""Configurations of this package's benchmarks, and seeds of which a value is the mean."""
MORE = {
    "retrain-electricity-xgboost": (400, 1),
    "retrain-electricity-linear": (320, 2),
    "retrain-electricity-mlp": (200, 2),
    "retrain-bike-sharing-linear": (320, 3),
    "retrain-metro-traffic-linear": (320, 2),
}
"""The same, where so few would say too little of which configuration is better."""


@dataclass(frozen=True, kw_only=True)
class Retrain(Trained):
    """All that decides a benchmark of retraining on a stream of the user's own."""

    time: str
    every: str
    window: tuple[int, int]
    time_format: str | None = None

    def words(self) -> list[str]:
        """The command's words that ask for this, but for those that every generation has."""
        least, most = self.window
        spoken = f"{most}" if least == most else f"{least}-{most}"
        times = {"time": self.time, "time-format": self.time_format}
        return [COMMAND, *self.options(**times, every=self.every, window=spoken)]


@dataclass(frozen=True)
class _Benchmark:
    """What is said of a benchmark."""

    name: str
    summary: str
    objective: Objective
    source: str
    licence: str
    words: Sequence[str]


def plan_of(
    benchmark: Retraining, folder: Path, *, configurations: int | None = None, seed: int = 0
) -> RetrainPlan:
    """What is trained for one of this package's benchmarks, on the streams in a folder."""
    stream, learner = benchmark.stream, LEARNERS[benchmark.learner]
    kind = Kind.REGRESSION if stream.is_regression else Kind.CLASSIFICATION
    scorer = "neg_mean_absolute_error" if stream.is_regression else "roc_auc"
    longest = benchmark.window or stream.longest
    usual, averaged = MORE.get(benchmark.name, (CONFIGURATIONS, SEEDS))
    windows = () if benchmark.window else (window(1, longest),)
    return retrain_plan(
        public_stream(stream.name, folder),
        Model.imported(learner.models[kind], fixed=learner.fixed, seed=seed),
        SearchSpace([*learner.parameters, *windows]),
        Metric(kind, scorer),
        longest=longest,
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
    described_as = _Benchmark(
        benchmark.name,
        benchmark.summary,
        benchmark.stream.objective,
        f"own trainings on the stream {benchmark.stream.name}: {benchmark.stream.source}",
        "Apache-2.0",
        (benchmark.name, f"{Option.LOCAL.value} STREAMS"),
    )
    numbers = [p.name for p in plan.space.parameters if p.kind is not ParameterKind.CATEGORICAL]
    pairs = list(combinations(numbers, 2))  # what matters is often a product or a ratio
    coding = space_coding(plan.space, products=pairs, ratios=pairs)
    return _generate(plan, described_as, request, coding)


def generate_retrain(
    asked: Retrain,
    *,
    output: Path | None = None,
    replace: bool = False,
    workers: int = 1,
    progress: Progress = silent,
) -> Path:
    """Train on a stream of the user's own, fit the forest and write the artifact.

    Arguments, what is stored, what can be continued and errors are those of `generate_custom`.
    """
    folder = (local_folder() if output is None else output) / asked.name
    check_new_name(asked.name, folder, replace=replace)
    check_writable(folder)
    model, (least, most) = asked.imported(), asked.window
    stream = read_stream(
        Path(asked.data),
        target=asked.target,
        time=asked.time,
        every=asked.every,
        time_format=asked.time_format,
    )
    smallest = int(np.diff(stream.starts).min()) * least
    space = asked.search_space(model, smallest=smallest, of_the_data=OF_THE_DATA)
    if least < most and WINDOW not in space.names:
        space = SearchSpace(
            [*space.parameters, window(least, most)],
            conditions=space.conditions,
            constants=space.constants,
        )
    first = space.configs(space.decode(space.sample_unit(np.random.default_rng(0), 1)))[0]
    own = {name: value for name, value in first.items() if name not in OF_THE_DATA}
    kind = asked.kind_with(model, own, stream.data.target)
    metric = Metric(kind, asked.metric)
    plan = retrain_plan(
        stream,
        model,
        space,
        metric,
        longest=most,
        configurations=asked.configurations,
        failures=asked.failures,
        seed=asked.seed,
    )
    periods = f"{stream.names[most]} to {stream.names[-1]}"
    described_as = _Benchmark(
        asked.name,
        f"{model.name} trained again on {stream.data.name}, {periods}.",
        metric.objective(stream.starts[-1] - stream.starts[-2]),
        f"own trainings of {asked.model} on {stream.data.origin}",
        "that of the data",
        asked.words(),
    )
    request = Request(
        folder=folder,
        seed=asked.seed,
        workers=workers,
        configurations=asked.configurations,
        progress=progress,
    )
    return _generate(plan, described_as, request, space_coding(plan.space))


def _generate(plan: RetrainPlan, benchmark: _Benchmark, request: Request, coding: Coding) -> Path:
    trainings = request.folder.with_name(f"{request.folder.name}{EVALUATIONS}")
    outcomes = run_trainings(
        plan.trainer, plan.jobs(), trainings, workers=request.workers, progress=request.progress
    )
    results, repeated = gather(plan, outcomes)
    defined, limits, recipe = _definition(plan, benchmark), limits_of(plan, results), ForestRecipe()
    _write_raw(trainings.with_name(f"{trainings.name}.parquet"), plan, defined, results, limits)
    values, losses = results.filled(defined.objective), defined.objective.losses
    forest = fit_forest(plan.values, values, coding=coding, recipe=recipe, seed=request.seed)
    smooth = np.stack([forest.predict(plan.values, k) for k in range(forest.n_tasks)], axis=1)
    seeds = None if repeated is None else losses(repeated)
    compared = comparisons(losses(values), losses(smooth), seeds, averaged=plan.averaged)
    report = Report(
        source=benchmark.source,
        command=request.command(*benchmark.words),
        limits=(*limits, *flatness(compared)),
        summaries={FOREST: "Random forest fitted to own trainings."},
        comparisons=compared,
    )
    return write_forest(
        request,
        defined,
        plan.values,
        values,
        report,
        coding=coding,
        recipe=recipe,
        evaluations=recorded(plan.values, values, repeated),
    )


def _definition(plan: RetrainPlan, benchmark: _Benchmark) -> Definition:
    trainer = plan.trainer
    return Definition(
        name=benchmark.name,
        version=VERSION,
        summary=benchmark.summary,
        space=plan.space,
        objective=benchmark.objective,
        tasks=tuple(
            TaskDefinition(trainer.stream.names[task], {"period": float(task)})
            for task in trainer.tasks
        ),
        provenance=Provenance(paper="none", source=benchmark.source, licence=benchmark.licence),
    )


def _write_raw(
    path: Path, plan: RetrainPlan, defined: Definition, results: Results, limits: Sequence[str]
) -> None:
    about = About(
        benchmark=defined.name,
        source=defined.provenance.source,
        licence=defined.provenance.licence,
        limits=tuple(limits),
        contexts={task.name: dict(task.context) for task in defined.tasks},
        versions=versions_of("hpobench-ordered", "scikit-learn", "xgboost"),
    )
    configs, tasks = plan.space.configs(plan.values), [task.name for task in defined.tasks]
    write_raw(path, results.frame(defined.objective, plan.space, configs, tasks), about)


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
