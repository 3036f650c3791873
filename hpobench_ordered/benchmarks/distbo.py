"""The benchmarks of distBO (Law et al. 2019): tasks whose training data methods may use.

The data of sections 5.1, 5.2 and appendix C.4 are drawn with a seed, and every evaluation trains a
model. The data of section 5.3 and appendix C.5 are real: each seed splits them in another way, and
the surrogate `trained` trains on the published data, which must be fetched first. For the split of
seed 0, the surrogate `forest` is fitted to evaluations made for this package.

In the paper all tasks but the target are sources, and every real task is the target in turn.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks import _distbo_data as data
from hpobench_ordered.benchmarks import _distbo_models as models
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.data.extras import SKLEARN, Extra
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataSource, TaskData
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.bundle import (
    RUNS,
    RecordedHistory,
    bundled_spec,
    read_best_values,
    read_evaluations,
)

PAPER = "Law et al. (2019)"

# Names of surrogates.
LIVE = "live"
FOREST = "forest"
TRAINED = "trained"

SEEDS_FOLDER = "distbo-runs"
"""Subfolder of the user's own benchmarks with the source runs of seeds that are not packaged."""

# The ranges are those of appendix C. For Parkinson's it calls a bandwidth what section C.5 and its
# own first sentence call gamma, which is used. N_i = 125 of the counterexample are 50 + 75
# iterations.
_FEATURE_NUMBERS = range(1, data.FEATURES + 1)
_C = Parameter.number("C", 2.0**-7, 2.0**10, log=True)


@dataclass(frozen=True, slots=True)
class SourceBudget:
    """How the paper made the N_i evaluations of a source task (appendix C).

    Attributes:
        random: Number of random iterations.
        guided: Number of iterations of Bayesian optimisation after them.
    """

    random: int
    guided: int

    @property
    def evaluations(self) -> int:
        """Number of evaluations of a source task, N_i in the paper."""
        return self.random + self.guided


@dataclass(frozen=True, slots=True)
class BenchmarkOutline:
    """A benchmark, without its seed.

    Attributes:
        name: Its name, with seed 0.
        summary: One line.
        section: Section of the paper.
        parameters: The hyperparameters.
        objective: The objective.
        source_budget: How the paper made the evaluations of a source task.
        version: Its version.
        highest: Best value of every task if known exactly, else None.
    """

    name: str
    summary: str
    section: str
    parameters: tuple[Parameter, ...]
    objective: Objective
    source_budget: SourceBudget
    version: int = 1
    highest: float | None = None

    @property
    def paper(self) -> str:
        """The paper that the benchmark comes from, and the section that describes it."""
        return f"{PAPER}, {self.section}"


@dataclass(frozen=True, slots=True)
class SeededBenchmark(ABC):
    """A benchmark of which every seed has other data: other draws, or another split.

    Attributes:
        outline: The benchmark without its seed.
        evaluate: Evaluates a configuration (d,), given seed and task, by training a model.
        training_data: Training data, given seed and task.
        files: The published data files that must be fetched first.
    """

    outline: BenchmarkOutline
    evaluate: Callable[..., float]
    training_data: Callable[[int, int], TaskData]
    files: tuple[RemoteFile, ...] = field(kw_only=True, default=())

    @property
    @abstractmethod
    def number_of_tasks(self) -> int:
        """Number of tasks."""

    @abstractmethod
    def define(self, seed: int) -> Definition:
        """Make the definition of the benchmark with a seed: search space, objective and tasks."""

    @abstractmethod
    def make_option(self, seed: int, artifact: Artifact | None) -> SurrogateOption:
        """Make the option of the surrogate that trains a model at every evaluation.

        Args:
            seed: Seed of the data.
            artifact: Holds the best known values; None if there are none.
        """

    @abstractmethod
    def spec(self, seed: int) -> BenchmarkSpec:
        """Make the spec of the benchmark with a seed."""

    def name(self, seed: int) -> str:
        """Name the benchmark of a seed; the benchmark of seed 0 has a name without its seed."""
        if seed == 0:
            return self.outline.name
        return f"{self.outline.name}-seed-{seed}"

    def spec_of_trainings(self, seed: int) -> BenchmarkSpec:
        """Make the spec of the benchmark of a seed, whose only surrogate trains models.

        The history of its tasks is recorded in an artifact. If there is none, random evaluations
        take its place, as many as in the paper.
        """
        artifact = self.find_artifact(seed)
        return BenchmarkSpec(
            name=self.name(seed),
            version=self.outline.version,
            summary=self.outline.summary,
            define=partial(self.define, seed),
            surrogates=(self.make_option(seed, artifact),),
            artifact=artifact,
            is_local=artifact is not None and seed != 0,
            history_size=self.outline.source_budget.evaluations,
            recorded=None if artifact is None else RecordedHistory(artifact, RUNS),
            data=self.make_data_source(seed),
        )

    def make_data_source(self, seed: int) -> DataSource:
        """Make the source of the tasks' training data."""
        return DataSource(partial(self.training_data, seed), self.files)

    def find_artifact(self, seed: int) -> Artifact | None:
        """Find the artifact with the tasks' histories for a seed; None if there is none.

        The artifact of seed 0 comes with the package. Users generate those of other seeds.
        """
        if seed == 0:
            artifact = Artifact.packaged(self.outline.name)
        else:
            artifact = Artifact(runs_home() / self.name(seed))
        return artifact if artifact.folder.is_dir() else None

    def load(
        self, seed: int, artifact: Artifact | None
    ) -> tuple[Surrogate, Sequence[float | None]]:
        """Make the surrogate that trains models, and look up the best known value of every task.

        Best values follow from a formula, or from the artifact. Otherwise they are None.

        Args:
            seed: Seed of the data.
            artifact: Holds the tasks' histories; None if there is none.
        """
        number_of_tasks = self.number_of_tasks
        surrogate = models.TrainedSurrogate(
            partial(self.evaluate, seed),
            dimension=len(self.outline.parameters),
            n_tasks=number_of_tasks,
        )
        if self.outline.highest is not None:
            return surrogate, [self.outline.highest] * number_of_tasks
        if artifact is not None:
            return surrogate, self.find_best_values(artifact)
        return surrogate, [None] * number_of_tasks

    def find_best_values(self, artifact: Artifact) -> list[float]:
        """Find the best known value of every task that models were trained on."""
        return read_best_values(artifact)


@dataclass(frozen=True, slots=True)
class GeneratedBenchmark(SeededBenchmark):
    """A benchmark whose data are drawn with a seed.

    Attributes:
        sizes: Number of training points of every task, the target last.
    """

    sizes: tuple[int, ...]

    @property
    def number_of_tasks(self) -> int:
        """Number of tasks, the target included."""
        return len(self.sizes)

    def spec(self, seed: int) -> BenchmarkSpec:
        """Make the spec of the benchmark whose data are drawn with a seed."""
        return self.spec_of_trainings(seed)

    def make_option(self, seed: int, artifact: Artifact | None) -> SurrogateOption:
        """Make the option of the only surrogate, which is a formula or trains a model each time."""
        # Only a formula has a best value that is known exactly; that of trained models is not.
        is_formula = self.outline.highest is not None
        return SurrogateOption(
            LIVE,
            "The formula." if is_formula else "A model trained each time.",
            partial(self.load, seed, artifact),
            trains=not is_formula,
        )

    def define(self, seed: int) -> Definition:
        """Define the benchmark of a seed: search space, objective, and tasks with the target last.

        The context of a task is its number of training points.
        """
        *source_sizes, target_size = self.sizes
        tasks = [
            TaskDefinition(f"source-{number}", {"train_size": size})
            for number, size in enumerate(source_sizes, start=1)
        ]
        tasks.append(TaskDefinition("target", {"train_size": target_size}))
        return Definition(
            name=self.name(seed),
            version=self.outline.version,
            summary=self.outline.summary,
            space=SearchSpace(self.outline.parameters),
            objective=self.outline.objective,
            tasks=tuple(tasks),
            provenance=Provenance(
                paper=self.outline.paper,
                source=f"data drawn with seed {seed}",
                licence="Apache-2.0",
            ),
        )


@dataclass(frozen=True, slots=True)
class RealBenchmark(SeededBenchmark):
    """A benchmark on published data, which are split at random: each seed is another split.

    Seed 0 comes with the package, and also with a forest fitted to trainings on its split.

    Attributes:
        tasks: Names of the tasks.
        origin: Where the evaluations come from, in words, for the provenance.
        licence: Licence of the evaluations.
        extra: Extra that must be installed for training.
    """

    tasks: tuple[str, ...]
    origin: str
    licence: str
    extra: Extra | None = None

    @property
    def number_of_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    def spec(self, seed: int) -> BenchmarkSpec:
        """Make the spec of the benchmark whose data are split with a seed.

        Seed 0 has two surrogates: a forest that comes with the package, and the trained model
        itself. Other seeds have only the model.
        """
        if seed != 0:
            return self.spec_of_trainings(seed)
        bundled = bundled_spec(
            self.outline.name,
            version=self.outline.version,
            summary=self.outline.summary,
            surrogates={FOREST: "Random forest fitted to own trainings."},
            more=(self.make_option(seed, Artifact.packaged(self.outline.name)),),
            has_runs=True,
        )
        return replace(
            bundled,
            history_size=self.outline.source_budget.evaluations,
            data=self.make_data_source(seed),
        )

    def make_option(self, seed: int, artifact: Artifact | None) -> SurrogateOption:
        """Make the option of the surrogate that trains a model at every evaluation."""
        return SurrogateOption(
            TRAINED,
            "The model itself, trained at every evaluation.",
            partial(self.load, seed, artifact),
            self.files,
            self.extra,
            trains=True,
        )

    def find_best_values(self, artifact: Artifact) -> list[float]:
        """Find the best value in the recorded history of every task.

        The artifact also has best values, but these were searched on the forest.
        """
        runs = read_evaluations(artifact, RUNS)
        return [find_best_value(run, self.outline.objective) for run in runs]

    def define(self, seed: int) -> Definition:
        """Define the benchmark of a seed for its artifact: search space, objective and tasks.

        The context of a task is its number of training points, which are counted in the data.

        Raises:
            NotFetchedError: The data must be fetched first.
        """
        tasks = []
        for task, name in enumerate(self.tasks):
            number_of_points = len(self.training_data(seed, task))
            tasks.append(TaskDefinition(name, {"train_size": number_of_points}))
        split = "" if seed == 0 else f", split with seed {seed}"
        return Definition(
            name=self.name(seed),
            version=self.outline.version,
            summary=self.outline.summary,
            space=SearchSpace(self.outline.parameters),
            objective=self.outline.objective,
            tasks=tuple(tasks),
            provenance=Provenance(self.outline.paper, f"{self.origin}{split}", self.licence),
        )


def find_best_value(run: RawEvaluations, objective: Objective) -> float:
    """Find the best objective value among evaluations."""
    losses = objective.losses(run.objective)  # minimised, whatever the objective's direction
    best_row = int(losses.argmin())
    return float(run.objective[best_row])


# Functions, not lambdas, as benchmarks are pickled for worker processes.
def _draw_counterexample_training_data(seed: int, task: int) -> TaskData:
    """Draw the training data of a task of the counterexample."""
    return data.draw_counterexample_data(seed, task).train


def _read_parkinsons_training_data(seed: int, task: int) -> TaskData:
    """Read the training data of a patient, in the split with a seed."""
    return data.read_parkinsons_data(seed, task).train


def _read_protein_training_data(seed: int, task: int) -> TaskData:
    """Read the training data of a protein, in the split with a seed."""
    return data.read_protein_data(seed, task).train


def _draw_classification_training_data(experiment: str, seed: int, task: int) -> TaskData:
    """Draw the training data of a task of experiment "a" or "b"; it comes first, for `partial`."""
    return data.draw_classification_data(seed, experiment, task).train


def _evaluate_classification(experiment: str, seed: int, task: int, row: FloatArray) -> float:
    """Evaluate a configuration (d,) in experiment "a" or "b"; it comes first, for `partial`."""
    return models.evaluate_classification(seed, experiment, task, row)


def _make_bandwidth_parameters(lowest: float) -> tuple[Parameter, ...]:
    """Make the kernel's bandwidth for each feature a hyperparameter, from `lowest` to 2^5."""
    names = [f"sigma_{feature}" for feature in _FEATURE_NUMBERS]
    return tuple(Parameter.number(name, lowest, 2.0**5, log=True) for name in names)


TOY = GeneratedBenchmark(
    BenchmarkOutline(
        name="distbo-toy",
        summary="exp(-(theta - mean)^2 / 2), mean that of the task's points, exact values.",
        section="section 5.1",
        parameters=(Parameter.number("theta", -8, 8),),
        objective=Objective("value", "of the function", Direction.MAXIMIZE),
        source_budget=SourceBudget(random=10, guided=20),
        highest=1.0,
    ),
    sizes=(data.TOY_POINTS,) * len(data.TOY_CENTRES),
    evaluate=models.evaluate_toy,
    training_data=data.draw_toy_data,
)
COUNTEREXAMPLE = GeneratedBenchmark(
    BenchmarkOutline(
        name="distbo-counterexample",
        summary="Kernel ridge regression on tasks that no statistic of one or two features tells "
        "apart.",
        section="section 5.2",
        parameters=(
            Parameter.number("alpha", 1e-8, 0.1, log=True),
            *_make_bandwidth_parameters(2.0**-7),
        ),
        objective=Objective("r2", "on 5000 test points", Direction.MAXIMIZE),
        source_budget=SourceBudget(random=50, guided=75),
    ),
    sizes=(data.POINTS,) * len(data.COUNTEREXAMPLE_PROCESSES),
    evaluate=models.evaluate_counterexample,
    training_data=_draw_counterexample_training_data,
)


def _make_classification_benchmark(
    experiment: str, bandwidths_of_target: str
) -> GeneratedBenchmark:
    """Make the benchmark of experiment "a" or "b" of appendix C.4.

    Args:
        experiment: "a" or "b".
        bandwidths_of_target: What the bandwidths of the target are, in words, for the summary.
    """
    return GeneratedBenchmark(
        BenchmarkOutline(
            name=f"distbo-classification-{experiment}",
            summary="Kernel logistic regression on ten generated tasks, and a target whose "
            f"bandwidths are {bandwidths_of_target}.",
            section="appendix C.4",
            parameters=(_C, *_make_bandwidth_parameters(2.0**-3)),
            objective=Objective("auc", "on 5000 test points", Direction.MAXIMIZE),
            source_budget=SourceBudget(random=75, guided=75),
            version=2,  # since then all tasks share the random frequencies and phases
        ),
        sizes=(data.POINTS,) * (data.CLASSIFICATION_SOURCES + 1),
        evaluate=partial(_evaluate_classification, experiment),
        training_data=partial(_draw_classification_training_data, experiment),
    )


GENERATED = {
    benchmark.outline.name: benchmark
    for benchmark in (
        TOY,
        COUNTEREXAMPLE,
        _make_classification_benchmark("a", "those of one of these"),
        _make_classification_benchmark("b", "others than all of these"),
    )
}

_PROTEIN_ORIGIN = "own trainings on the proteins of Gaulton et al. (2016), github.com/hcllaw/distBO"
PARKINSONS = RealBenchmark(
    BenchmarkOutline(
        name="distbo-parkinsons",
        summary="Kernel ridge regression of 42 patients' symptoms from their voices.",
        section="appendix C.5",
        parameters=(
            Parameter.number("alpha", 1e-10, 0.1, log=True),
            Parameter.number("gamma", 2.0**-7, 2.0**5, log=True),
        ),
        objective=Objective("r2", "on 40 % of the recordings", Direction.MAXIMIZE),
        source_budget=SourceBudget(random=10, guided=20),
    ),
    tasks=tuple(f"patient-{number}" for number in range(1, data.PATIENTS + 1)),
    evaluate=models.evaluate_parkinsons,
    training_data=_read_parkinsons_training_data,
    files=(data.PARKINSONS_FILE,),
    origin="own trainings on Parkinson's telemonitoring (Tsanas et al. 2009), UCI",
    licence="CC-BY-4.0",
)
PROTEIN_SVM = RealBenchmark(
    BenchmarkOutline(
        name="distbo-protein-svm",
        summary="Support vector machine, Jaccard kernel: which molecules bind to a protein.",
        section="section 5.3 and appendix C.6",
        parameters=(_C,),
        objective=Objective("accuracy", "on 40 % of the molecules", Direction.MAXIMIZE),
        source_budget=SourceBudget(random=10, guided=10),
    ),
    tasks=tuple(data.PROTEINS),
    evaluate=models.evaluate_svm,
    training_data=_read_protein_training_data,
    files=data.PROTEIN_FILES,
    origin=_PROTEIN_ORIGIN,
    licence="BSD-3-Clause",
    extra=SKLEARN,
)
PROTEIN_FOREST = RealBenchmark(
    BenchmarkOutline(
        name="distbo-protein-forest",
        summary="Random forest: which molecules bind to a protein.",
        section="section 5.3 and appendix C.6",
        parameters=(
            Parameter.number("n_trees", 1, 200, integer=True),
            Parameter.number("max_depth", 1, 32, integer=True),
            Parameter.number("min_samples_split", 0.01, 1.0),
            Parameter.number("min_samples_leaf", 0.01, 0.5),
        ),
        objective=Objective("accuracy", "on 40 % of the molecules", Direction.MAXIMIZE),
        source_budget=SourceBudget(random=10, guided=10),
    ),
    tasks=tuple(data.PROTEINS),
    evaluate=models.evaluate_forest,
    training_data=_read_protein_training_data,
    files=data.PROTEIN_FILES,
    origin=_PROTEIN_ORIGIN,
    licence="BSD-3-Clause",
    extra=SKLEARN,
)
REAL = {
    benchmark.outline.name: benchmark for benchmark in (PARKINSONS, PROTEIN_SVM, PROTEIN_FOREST)
}


SEEDED: dict[str, SeededBenchmark] = {**GENERATED, **REAL}
"""All benchmarks, by name without a seed."""


@dataclass(frozen=True, slots=True)
class DistboFamily:
    """All seeds of the benchmarks."""

    pattern: str

    def spec(self, name: str) -> BenchmarkSpec | None:
        """Make the spec of a benchmark named like "distbo-toy-seed-3"; None for other names."""
        benchmark_and_seed = parse_seeded_name(name)
        if benchmark_and_seed is None:
            return None
        benchmark, seed = benchmark_and_seed
        return benchmark.spec(seed)

    def files(self) -> tuple[RemoteFile, ...]:
        """List the files of the family: none, as those of the packaged benchmarks suffice."""
        return ()


def parse_seeded_name(name: str) -> tuple[SeededBenchmark, int] | None:
    """Split a name like "distbo-toy-seed-3" into benchmark and seed; None for other names."""
    benchmark_pattern = "|".join(SEEDED)
    seed_pattern = "0|[1-9][0-9]{0,17}"  # at most 18 digits, so that it fits into 64 bits
    match = re.fullmatch(f"({benchmark_pattern})-seed-({seed_pattern})", name)
    if match is None:
        return None
    benchmark_name, seed = match.groups()
    return SEEDED[benchmark_name], int(seed)


def runs_home() -> Path:
    """Return the folder of the artifacts that users generate for seeds other than 0."""
    return local_folder() / SEEDS_FOLDER


SPECS = tuple(benchmark.spec(0) for benchmark in SEEDED.values())
FAMILIES = (DistboFamily(f"NAME-seed-SEED, NAME one of {', '.join(SEEDED)}"),)
SUITES = tuple(("distbo", spec.name) for spec in SPECS)
