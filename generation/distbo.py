"""Generates the distBO benchmarks (`benchmarks.distbo`): source runs, best values and forests.

A source run is the history of one source task in the paper: random configurations, then Bayesian
optimisation without transfer (Law et al. 2019, section 5 and appendix C), with real trainings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.benchmarks.distbo import (
    FOREST,
    SEEDED,
    RealBenchmark,
    SeededBenchmark,
    SourceBudget,
    find_best_value,
    parse_seeded_name,
    runs_home,
)
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.generation import base
from hpobench_ordered.generation._fitting import ForestData, write_forest
from hpobench_ordered.generation._flows.designs import draw_sobol
from hpobench_ordered.generation._training import TrainingJob, run_trainings
from hpobench_ordered.generation.base import Generator, GeneratorFamily, Option, Request
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import NO_DEFAULT
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
SOBOL_CONFIGURATIONS = 100
"""Configurations of the Sobol sequence that the search for a best value starts with."""
ROUNDS = 20
"""Rounds of moves from the best configuration so far."""
MOVES_PER_ROUND = 10
FIRST_STEP = 0.2
"""Standard deviation of a move in the unit cube in the first round."""
SHRINKAGE = 0.8
"""Factor of the standard deviation from one round to the next."""
RUN_STREAM, SEARCH_STREAM = 0, 1
"""Parts of seeds, so that a source run and the search for a best value draw different numbers."""
PACKAGED_SEED = 0
"""Seed of the data that come with the package."""


class SourceMethod(BayesianOptimisation):
    """The method of the source runs: `bo` on a single task with random candidates only."""

    searches_near_best = False


def make_runs(
    benchmark: SeededBenchmark, seed: int, request: Request
) -> tuple[list[RawEvaluations], list[float]]:
    """Make the source run of every task, which is its history in the paper, and best known values.

    They are determined by the seed of the data, `seed`, and that of the request.
    """
    from joblib import Parallel, delayed

    number_of_tasks = benchmark.number_of_tasks
    parallel = Parallel(n_jobs=request.workers, return_as="generator")
    calls = (
        delayed(_make_run_and_best_value)(benchmark, seed, task, request.seed)
        for task in range(number_of_tasks)
    )
    runs: list[RawEvaluations] = []
    best_values: list[float] = []
    for run, best_value in parallel(calls):
        runs.append(run)
        best_values.append(best_value)
        request.progress("source runs and best values", len(runs), number_of_tasks)
    return runs, best_values


def _make_run_and_best_value(
    benchmark: SeededBenchmark, seed: int, task: int, run_seed: int
) -> tuple[RawEvaluations, float]:
    """Make the source run of a task, and find its best known value.

    Args:
        benchmark: The benchmark.
        seed: Seed of the task's data.
        task: Number of the task.
        run_seed: Seed of the run, and of the search for the best value.
    """
    defined = benchmark.define(seed)
    model, _ = benchmark.load(seed, artifact=None)  # there is no artifact yet
    # The seed of the data comes last: other data have another history.
    rng = np.random.default_rng([run_seed, task, RUN_STREAM, seed])
    run = _make_source_run(defined, model, benchmark.outline.source_budget, task, rng)
    if benchmark.outline.highest is not None:  # the best value is known from a formula
        return run, benchmark.outline.highest
    if not _is_searched(benchmark, seed, task):
        return run, find_best_value(run, defined.objective)
    search_rng = np.random.default_rng([run_seed, task, SEARCH_STREAM, seed])
    return run, _search_best_value(defined, model, run, task, search_rng)


def _is_searched(benchmark: SeededBenchmark, seed: int, task: int) -> bool:
    """Whether a best value is searched; else that of the source run is the best one known.

    A search takes twice as many trainings as a source run. It is made on generated data of the
    package, and for other seeds on the target, which comes last: the paper optimises no other task.
    """
    if isinstance(benchmark, RealBenchmark):
        return False
    is_target = task == benchmark.number_of_tasks - 1
    return seed == PACKAGED_SEED or is_target


def _make_source_run(
    defined: Definition,
    model: Surrogate,
    budget: SourceBudget,
    task: int,
    rng: np.random.Generator,
) -> RawEvaluations:
    """Evaluate random configurations, then those that Bayesian optimisation suggests.

    Args:
        defined: The benchmark.
        model: Evaluates configurations.
        budget: Numbers of evaluations: `evaluations` in all, the first `random` at random.
        task: Number of the task.
        rng: Draws configurations.
    """
    space = defined.space
    values = np.empty((budget.evaluations, space.dimension))
    objective = np.empty(budget.evaluations)
    # The first ones at random, all at once.
    values[: budget.random] = space.decode(space.sample_unit(rng, budget.random))
    objective[: budget.random] = model.predict(values[: budget.random], task)

    method = SourceMethod(
        space=space,
        rng=rng,
        history=(),
        context=dict(defined.tasks[task].context),
        budget=budget.evaluations,
    )
    # One by one: the method suggests an evaluation after it was told of all those before.
    with one_thread():  # always the same bits, on any machine's number of threads
        for trial in range(budget.evaluations):
            is_guided = trial >= budget.random
            if is_guided:
                values[trial] = space.row(method.ask())
                objective[trial] = model.predict_one(values[trial], task)
            (config,) = space.configs(values[[trial]])
            method.tell(config, defined.objective.loss(float(objective[trial])))

    unknown_spread = np.full(budget.evaluations, np.nan)
    return RawEvaluations(values, objective, unknown_spread, np.arange(budget.evaluations))


def _search_best_value(
    defined: Definition,
    model: Surrogate,
    run: RawEvaluations,
    task: int,
    rng: np.random.Generator,
) -> float:
    """Search the best value of a task, and return the best that was found.

    The search starts from the best configuration, the incumbent, of the source run and a Sobol
    sequence. Each round makes random moves from the incumbent in the unit cube, which become
    smaller from round to round; a better configuration becomes the incumbent.

    Args:
        defined: The benchmark.
        model: Evaluates configurations.
        run: The source run of the task.
        task: Number of the task.
        rng: Draws configurations and moves.
    """
    space = defined.space
    compute_losses = defined.objective.losses  # to be minimised

    sobol_values = space.decode(draw_sobol(space.dimension, SOBOL_CONFIGURATIONS, rng))
    values = np.concatenate([run.values, sobol_values])
    objective = np.concatenate([run.objective, model.predict(sobol_values, task)])
    best_row = int(np.argmin(compute_losses(objective)))
    incumbent = space.encode(values[[best_row]])
    best_value = float(objective[best_row])

    for number in range(ROUNDS):
        deviation = FIRST_STEP * SHRINKAGE**number
        directions = rng.standard_normal((MOVES_PER_ROUND, space.dimension))
        moved = np.clip(incumbent + deviation * directions, 0.0, 1.0)
        moved_objective = model.predict(space.decode(moved), task)
        best_row = int(np.argmin(compute_losses(moved_objective)))
        value = float(moved_objective[best_row])
        if defined.objective.loss(value) < defined.objective.loss(best_value):
            incumbent = moved[[best_row]]
            best_value = value
    return best_value


def generate_runs(benchmark: SeededBenchmark, seed: int, request: Request) -> Path:
    """Make source runs and best known values of a benchmark with the data of a seed."""
    _fetch_files(benchmark, request.local)
    runs, best_values = make_runs(benchmark, seed, request)
    write_runs(request.folder, benchmark.define(seed), runs, best_values)
    return request.folder


@dataclass(frozen=True, slots=True)
class TaskTrainer:
    """Trains a configuration on all tasks of a benchmark with published data."""

    benchmark: RealBenchmark

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an outcome besides the configuration: the benchmark and its version."""
        outline = self.benchmark.outline
        return {"benchmark": outline.name, "version": outline.version}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train on all tasks, and return the values.

        `where` is part of the interface of trainers, and has no meaning here.
        """
        # It trains a configuration to evaluate it.
        model, _ = self.benchmark.load(PACKAGED_SEED, artifact=None)
        row = SearchSpace(self.benchmark.outline.parameters).row(config)
        tasks = range(len(self.benchmark.tasks))
        return {"values": [model.predict_one(row, task) for task in tasks]}


def generate_forest(benchmark: RealBenchmark, request: Request) -> Path:
    """Train on published data, fit a forest, make source runs, and write the artifact."""
    _fetch_files(benchmark, request.local)
    name = benchmark.outline.name
    defined = benchmark.define(PACKAGED_SEED)
    n = request.configurations or CONFIGURATIONS[name]
    values = _design_configurations(defined.space, n, request.seed)
    targets = _train_on_all_tasks(benchmark, defined.space.configs(values), request)

    runs, _ = make_runs(benchmark, PACKAGED_SEED, request)
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
    coding = space_coding(_put_shares_on_log_scale(defined.space))
    forest = ForestData(values, targets, coding, RECIPES[name])
    return write_forest(request, defined, forest, report, runs=runs)


def _train_on_all_tasks(
    benchmark: RealBenchmark, configs: Sequence[Config], request: Request
) -> FloatArray:
    """Train n configurations on all T tasks, and return the objective values, (n, T).

    Finished trainings are stored in a folder beside the artifact.
    """
    outcomes = run_trainings(
        TaskTrainer(benchmark),
        # A job trains on all tasks, so that the first argument, its place, is the same for all.
        [TrainingJob("tasks", config) for config in configs],
        request.path_beside("trainings"),
        workers=request.workers,
        progress=request.progress,
    )
    return np.array([outcome["values"] for outcome in outcomes], dtype=np.float64)


def _fetch_files(benchmark: SeededBenchmark, local: Path | None) -> None:
    """Put the published data into the cache, from a local folder or by a download."""
    for file in benchmark.files:
        if local is not None:
            file.store(local / Path(file.name).name)
        elif not file.is_fetched:
            file.download()


def _design_configurations(space: SearchSpace, n: int, seed: int) -> FloatArray:
    """Choose n configurations to train, (n, d): a grid of one hyperparameter, or a Sobol sequence.

    Every second configuration of the sequence has shares of the rows on a log scale: small shares
    matter most, and few are drawn on a linear one.
    """
    if space.dimension == 1:
        grid = np.linspace(0.0, 1.0, n)[:, None]
        return space.decode(grid)

    points = draw_sobol(space.dimension, n, np.random.default_rng(seed))  # in the unit cube
    on_linear_scale = space.decode(points)
    on_log_scale = _put_shares_on_log_scale(space).decode(points)
    is_even_row = np.arange(n)[:, None] % 2 == 0
    return np.where(is_even_row, on_linear_scale, on_log_scale)


def _put_shares_on_log_scale(space: SearchSpace) -> SearchSpace:
    """Return the same space, but with hyperparameters that are shares of rows on a log scale.

    It has no default configuration: it only serves to draw configurations and to code them.
    """
    parameters = []
    for parameter in space.parameters:
        is_log = parameter.log or parameter.name in SHARES
        parameters.append(replace(parameter, log=is_log, default=NO_DEFAULT))
    return SearchSpace(parameters)


def _make_generator(benchmark: SeededBenchmark, seed: int) -> Generator:
    """Make the generator of a benchmark with the data of a seed.

    The artifacts of seed 0 come with the package, on published data together with a forest. Those
    of other seeds hold source runs, and are stored in the user's own folder.
    """
    if isinstance(benchmark, RealBenchmark) and seed == PACKAGED_SEED:
        source = base.EvaluationSource(
            "Trains on the published data; --from is a folder that holds them.",
            frozenset({Option.LOCAL, Option.SEED, Option.WORKERS, Option.CONFIGURATIONS}),
            partial(generate_forest, benchmark),
            min_configurations=FOLDS,
        )
        return Generator(benchmark.outline.name, {"train": source})

    options = {Option.SEED, Option.WORKERS}
    if benchmark.files:
        options.add(Option.LOCAL)
    source = base.EvaluationSource(
        "Trains the models of every task's source run, and searches best values.",
        frozenset(options),
        partial(generate_runs, benchmark, seed),
    )
    home = base.artifacts_folder if seed == PACKAGED_SEED else runs_home
    return Generator(benchmark.name(seed), {"train": source}, home=home)


def _find_generator_of_seed(name: str) -> Generator | None:
    """Make the generator of a name with a seed, "NAME-seed-SEED"; None for other names."""
    benchmark_and_seed = parse_seeded_name(name)
    if benchmark_and_seed is None:
        return None
    benchmark, seed = benchmark_and_seed
    return _make_generator(benchmark, seed)


GENERATORS = tuple(_make_generator(benchmark, PACKAGED_SEED) for benchmark in SEEDED.values())
FAMILIES = (
    GeneratorFamily(f"NAME-seed-SEED, NAME one of {', '.join(SEEDED)}", _find_generator_of_seed),
)
