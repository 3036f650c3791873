"""Generates the distBO benchmarks (`benchmarks.distbo`): source runs, best values and forests.

A source run is the history of one source task in the paper: random configurations, then Bayesian
optimisation without transfer (Law et al. 2019, section 5 and appendix C), with real trainings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.distbo import (
    FOREST,
    GENERATED,
    REAL,
    GeneratedBenchmark,
    RealBenchmark,
    SourceBudget,
    parse_seeded_name,
    runs_home,
)
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.core.surrogate import Surrogate
from hpobench_ordered.files.raw_evaluations import RawEvaluations
from hpobench_ordered.generation import base
from hpobench_ordered.generation._fitting import ForestData, write_forest
from hpobench_ordered.generation._flows.designs import sobol
from hpobench_ordered.generation._training import TrainingJob, run_trainings
from hpobench_ordered.generation.base import Generator, GeneratorFamily, Option, Request
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.bundle import write_runs
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS

CONFIGURATIONS = {"distbo-parkinsons": 256, "distbo-protein-svm": 80, "distbo-protein-forest": 200}
RECIPES = {
    "distbo-parkinsons": ForestRecipe(trees=24),
    "distbo-protein-svm": ForestRecipe(trees=32),
    "distbo-protein-forest": ForestRecipe(trees=60),
}
SHARES = ("min_samples_split", "min_samples_leaf")
"""Shares of the rows: where they are not small, a forest predicts the larger class."""
DRAWS = 100
"""Configurations of the Sobol sequence that the search for a best value starts with."""
ROUNDS, MOVES = 20, 10
"""Rounds of moves from the best configuration so far, and moves in each."""
STEP, SHRINKAGE = 0.2, 0.8
"""Standard deviation of a move in the unit cube in the first round, and its factor a round."""
TRAININGS = "-trainings"
"""Suffix of the folder of finished trainings, after that of the artifact."""
_SEARCH_STREAM = 1


class SourceMethod(BayesianOptimisation):
    """The method of the source runs: `bo` on a single task with random candidates only."""

    searches_near_best = False


def source_runs(
    defined: Definition, model: Surrogate, source: SourceBudget, request: Request
) -> list[RawEvaluations]:
    """Make the source run of every task, determined by seed and task."""
    runs = []
    for task in range(len(defined.tasks)):
        runs.append(_source_run(defined, model, source, task, request.seed))
        request.progress("source runs", task + 1, len(defined.tasks))
    return runs


def _source_run(
    defined: Definition, model: Surrogate, source: SourceBudget, task: int, seed: int
) -> RawEvaluations:
    space, objective = defined.space, defined.objective
    rng = np.random.default_rng([seed, task])
    values = np.empty((source.evaluations, space.dimension))
    measured = np.empty(source.evaluations)
    values[: source.random] = space.decode(space.sample_unit(rng, source.random))
    measured[: source.random] = model.predict(values[: source.random], task)
    method = SourceMethod(
        space=space,
        rng=rng,
        history=(),
        context=dict(defined.tasks[task].context),
        budget=source.evaluations,
    )
    with one_thread():
        for n in range(source.evaluations):
            if n >= source.random:
                values[n] = space.row(method.ask())
                measured[n] = model.predict_one(values[n], task)
            method.tell(space.configs(values[n : n + 1])[0], objective.loss(float(measured[n])))
    training = np.arange(source.evaluations)
    return RawEvaluations(values, measured, np.full(len(training), np.nan), training)


def _best_value(
    defined: Definition, model: Surrogate, run: RawEvaluations, task: int, seed: int
) -> float:
    """Best value of a task: of its source run, a Sobol sequence, and moves from the best."""
    space, sign = defined.space, defined.objective.direction.sign
    rng = np.random.default_rng([seed, task, _SEARCH_STREAM])
    values = np.concatenate([run.values, space.decode(sobol(space.dimension, DRAWS, rng))])
    measured = np.concatenate([run.objective, model.predict(values[len(run) :], task)])
    best = int(np.argmin(sign * measured))
    incumbent, value = space.encode(values[best : best + 1]), float(measured[best])
    for number in range(ROUNDS):
        steps = rng.standard_normal((MOVES, space.dimension))
        moved = np.clip(incumbent + STEP * SHRINKAGE**number * steps, 0.0, 1.0)
        measured = model.predict(space.decode(moved), task)
        best = int(np.argmin(sign * measured))
        if sign * measured[best] < sign * value:
            incumbent, value = moved[best : best + 1], float(measured[best])
    return value


def generate_runs(generated: GeneratedBenchmark, seed: int, request: Request) -> Path:
    """Make source runs and best known values of a benchmark whose data are drawn by a seed."""
    from joblib import Parallel, delayed

    defined = generated.define(seed)
    tasks = range(len(defined.tasks))
    parallel = Parallel(n_jobs=request.workers, return_as="generator")
    made = list[tuple[RawEvaluations, float]]()
    calls = (delayed(_run_and_best)(generated, seed, task, request.seed) for task in tasks)
    for one in parallel(calls):
        made.append(one)
        request.progress("source runs and best values", len(made), len(tasks))
    runs, known = zip(*made, strict=True)
    write_runs(request.folder, defined, runs, known)
    return request.folder


def _run_and_best(
    generated: GeneratedBenchmark, seed: int, task: int, drawn: int
) -> tuple[RawEvaluations, float]:
    """Source run and best known value of a task."""
    defined, (model, _) = generated.define(seed), generated.load(seed, None)
    run = _source_run(defined, model, generated.outline.source_budget, task, drawn)
    if generated.highest is not None:
        return run, generated.highest
    return run, _best_value(defined, model, run, task, drawn)


@dataclass(frozen=True, slots=True)
class TaskTrainer:
    """Trains a configuration on all tasks of a benchmark with published data."""

    real: RealBenchmark

    @property
    def identity(self) -> Mapping[str, Any]:
        """All settings besides the job that determine an outcome."""
        return {"benchmark": self.real.outline.name, "version": self.real.outline.version}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Values on all tasks."""
        model, _ = self.real.load()
        row = SearchSpace(self.real.outline.parameters).row(config)
        tasks = range(len(self.real.tasks))
        return {"values": [model.predict_one(row, task) for task in tasks]}


def generate_forest(real: RealBenchmark, request: Request) -> Path:
    """Train on published data, fit a forest, make source runs, and write the artifact."""
    for file in real.files:
        if request.local is not None:
            file.store(request.local / Path(file.name).name)
        elif not file.is_fetched:
            file.download()
    name, defined = real.outline.name, real.define()
    n = request.configurations or CONFIGURATIONS[name]
    values = _configurations(defined.space, n, request.seed)
    folder = request.folder.with_name(f"{request.folder.name}{TRAININGS}")
    outcomes = run_trainings(
        TaskTrainer(real),
        [TrainingJob("tasks", config) for config in defined.space.configs(values)],
        folder,
        workers=request.workers,
        progress=request.progress,
    )
    targets = np.array([outcome["values"] for outcome in outcomes], dtype=np.float64)
    runs = source_runs(defined, real.load()[0], real.outline.source_budget, request)
    report = CardTexts(
        source=defined.provenance.source,
        command=request.command(name, f"{Option.LOCAL.value} DATA"),
        limits=(
            "Every configuration was trained once, on one split of each task's data, 60 % to train "
            "on and 40 % to measure the model.",
            "The history is of models that were really trained; the surrogate `trained` trains "
            "those of the target, too.",
        ),
        summaries={FOREST: "Random forest fitted to own trainings."},
    )
    forest = ForestData(values, targets, space_coding(_log_scaled(defined.space)), RECIPES[name])
    return write_forest(request, defined, forest, report, runs=runs)


def _configurations(space: SearchSpace, n: int, seed: int) -> FloatArray:
    """Configurations to train, (n, d): a grid for one hyperparameter, else a Sobol sequence.

    Every second one has the shares of rows on a log scale.
    """
    if space.dimension == 1:
        return space.decode(np.linspace(0.0, 1.0, n)[:, None])
    unit = sobol(space.dimension, n, np.random.default_rng(seed))
    is_even = np.arange(n)[:, None] % 2 == 0
    return np.where(is_even, space.decode(unit), _log_scaled(space).decode(unit))


def _log_scaled(space: SearchSpace) -> SearchSpace:
    """The space with shares of the rows on a log scale."""
    return SearchSpace(
        [replace(p, log=p.log or p.name in SHARES, default=None) for p in space.parameters]
    )


def _runs_generator(generated: GeneratedBenchmark, seed: int) -> Generator:
    source = base.EvaluationSource(
        "Trains the models of every task's source run, and searches best values.",
        frozenset({Option.SEED, Option.WORKERS}),
        partial(generate_runs, generated, seed),
    )
    home = runs_home if seed else base.artifacts_folder
    return Generator(generated.name(seed), {"train": source}, home=home)


def _forest_generator(real: RealBenchmark) -> Generator:
    source = base.EvaluationSource(
        "Trains on the published data; --from is a folder that holds them.",
        frozenset({Option.LOCAL, Option.SEED, Option.WORKERS, Option.CONFIGURATIONS}),
        partial(generate_forest, real),
        min_configurations=FOLDS,
    )
    return Generator(real.outline.name, {"train": source})


def _further_seed(name: str) -> Generator | None:
    """The generator of the source runs of a further seed."""
    found = parse_seeded_name(name)
    return None if found is None else _runs_generator(*found)


GENERATORS = (
    *(_runs_generator(generated, 0) for generated in GENERATED.values()),
    *(_forest_generator(real) for real in REAL.values()),
)
FAMILIES = (GeneratorFamily(f"NAME-seed-SEED, NAME one of {', '.join(GENERATED)}", _further_seed),)
