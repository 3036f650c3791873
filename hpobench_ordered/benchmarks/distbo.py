"""The benchmarks of distBO (Law et al. 2019): tasks whose training data methods may use.

The data of sections 5.1, 5.2 and appendix C.4 are drawn with a seed, and every evaluation trains a
model. The data of section 5.3 and appendix C.5 are real: the surrogate `forest` is fitted to
evaluations made for this package, and `trained` trains on the published data, which must be fetched
first.

In the paper all tasks but the target are sources, and every real task is the target in turn.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks import _distbo_data as data
from hpobench_ordered.benchmarks import _distbo_models as models
from hpobench_ordered.core.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.core.data import DataSource, TaskData
from hpobench_ordered.core.extras import SKLEARN, Extra
from hpobench_ordered.core.objective import Direction, Objective
from hpobench_ordered.core.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.bundle import RUNS, Recorded, bundled_spec, read_best_values
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.files.remote import RemoteFile
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.base import Surrogate

PAPER = "Law et al. (2019)"
LIVE, FOREST, TRAINED = "live", "forest", "trained"
SEEDS = "distbo-runs"
"""Subfolder of the user's own benchmarks with the source runs of seeds that are not packaged."""

# The ranges are those of appendix C. For Parkinson's it calls a bandwidth what section C.5 and its
# own first sentence call gamma, which is used. N_i = 125 of the counterexample are 50 + 75
# iterations.
_SIGMAS = range(1, data.FEATURES + 1)
_C = Parameter.number("C", 2.0**-7, 2.0**10, log=True)


@dataclass(frozen=True, slots=True)
class Source:
    """How the paper made the N_i evaluations of a source task (appendix C).

    Attributes:
        random: Number of random iterations.
        guided: Number of iterations of Bayesian optimisation after them.
    """

    random: int
    guided: int

    @property
    def evaluations(self) -> int:
        """N_i."""
        return self.random + self.guided


@dataclass(frozen=True, slots=True)
class Kind:
    """A benchmark, without its seed.

    Attributes:
        name: Its name, with seed 0.
        about: One line.
        section: Section of the paper.
        parameters: The hyperparameters.
        objective: The objective.
        source: How the paper made the evaluations of a source task.
        version: Its version.
    """

    name: str
    about: str
    section: str
    parameters: tuple[Parameter, ...]
    objective: Objective
    source: Source
    version: int = 1

    @property
    def paper(self) -> str:
        """The paper and the place in it."""
        return f"{PAPER}, {self.section}"


@dataclass(frozen=True, slots=True)
class Generated:
    """A benchmark whose data are drawn with a seed.

    Attributes:
        kind: The benchmark without its seed.
        sizes: Number of training points of every task, the target last.
        evaluate: Evaluates a configuration (d,), given seed and task.
        train: Training data, given seed and task.
        highest: Best value of every task if known exactly, else None.
    """

    kind: Kind
    sizes: tuple[int, ...]
    evaluate: Callable[..., float]
    train: Callable[[int, int], TaskData]
    highest: float | None = None

    def name(self, seed: int) -> str:
        """Name of the benchmark of that seed."""
        return f"{self.kind.name}-seed-{seed}" if seed else self.kind.name

    def spec(self, seed: int) -> BenchmarkSpec:
        """Spec of the benchmark with that seed."""
        name = self.name(seed)
        folder = runs_home() / name
        is_packaged = not seed
        artifact = Artifact.packaged(name) if is_packaged else Artifact(folder)
        is_there = artifact.folder.is_dir()
        return BenchmarkSpec(
            name=name,
            version=self.kind.version,
            summary=self.kind.about,
            define=partial(self.define, seed),
            surrogates=(
                SurrogateOption(
                    LIVE,
                    "A model trained each time." if self.highest is None else "The formula.",
                    partial(self.load, seed, artifact if is_there else None),
                    trains=self.highest is None,
                ),
            ),
            artifact=artifact if is_there else None,
            is_local=is_there and not is_packaged,
            history_size=self.kind.source.evaluations,
            recorded=Recorded(artifact, RUNS) if is_there else None,
            data=DataSource(partial(self.train, seed)),
        )

    def define(self, seed: int) -> Definition:
        """Search space, objective and tasks."""
        sources = len(self.sizes) - 1
        names = [*(f"source-{i}" for i in range(1, sources + 1)), "target"]
        return Definition(
            name=self.name(seed),
            version=self.kind.version,
            summary=self.kind.about,
            space=SearchSpace(self.kind.parameters),
            objective=self.kind.objective,
            tasks=tuple(
                TaskDefinition(task, {"train_size": size})
                for task, size in zip(names, self.sizes, strict=True)
            ),
            provenance=Provenance(
                paper=self.kind.paper,
                source=f"data drawn with seed {seed}",
                licence="Apache-2.0",
            ),
        )

    def load(
        self, seed: int, artifact: Artifact | None
    ) -> tuple[Surrogate, Sequence[float | None]]:
        """The trained surrogate, and the best known value of every task."""
        tasks = len(self.sizes)
        model = models.Trained(partial(self.evaluate, seed), len(self.kind.parameters), tasks)
        if self.highest is not None or artifact is None:
            return model, [self.highest] * tasks
        return model, read_best_values(artifact)


@dataclass(frozen=True, slots=True)
class Real:
    """A benchmark on published data.

    Attributes:
        kind: The benchmark.
        tasks: Names of the tasks.
        evaluate: Trains on a task with a configuration (d,).
        split: Training and test data of a task.
        files: The published data files.
        provenance: Source of the data.
        extra: Extra that must be installed for training.
    """

    kind: Kind
    tasks: tuple[str, ...]
    evaluate: Callable[..., float]
    split: Callable[[int], data.Split]
    files: tuple[RemoteFile, ...]
    origin: str
    licence: str
    extra: Extra | None = None

    def spec(self) -> BenchmarkSpec:
        """Its spec."""
        bundled = bundled_spec(
            self.kind.name,
            version=self.kind.version,
            summary=self.kind.about,
            surrogates={FOREST: "Random forest fitted to own trainings."},
            more=(
                SurrogateOption(
                    TRAINED,
                    "The model itself, trained at every evaluation.",
                    self.load,
                    self.files,
                    self.extra,
                    trains=True,
                ),
            ),
            has_runs=True,
        )
        source = DataSource(self.train, self.files)
        return replace(bundled, history_size=self.kind.source.evaluations, data=source)

    def define(self) -> Definition:
        """Search space, objective and tasks, for the artifact; reads the data.

        Raises:
            NotFetchedError: The data must be fetched first.
        """
        return Definition(
            name=self.kind.name,
            version=self.kind.version,
            summary=self.kind.about,
            space=SearchSpace(self.kind.parameters),
            objective=self.kind.objective,
            tasks=tuple(
                TaskDefinition(name, {"train_size": len(self.train(task))})
                for task, name in enumerate(self.tasks)
            ),
            provenance=Provenance(self.kind.paper, self.origin, self.licence),
        )

    def load(self) -> tuple[Surrogate, Sequence[float | None]]:
        """The trained surrogate; best values are only searched on the forest."""
        model = models.Trained(self.evaluate, len(self.kind.parameters), len(self.tasks))
        return model, [None] * len(self.tasks)

    def train(self, task: int) -> TaskData:
        """Training data of a task."""
        return self.split(task).train


def _counterexample_train(seed: int, task: int) -> TaskData:
    return data.counterexample_data(seed, task).train


def _classification_train(experiment: str, seed: int, task: int) -> TaskData:
    return data.classification_data(seed, experiment, task).train


def _classification_value(experiment: str, seed: int, task: int, row: FloatArray) -> float:
    return models.classification_value(seed, experiment, task, row)


def _bandwidths(lowest: float) -> tuple[Parameter, ...]:
    return tuple(Parameter.number(f"sigma_{j}", lowest, 2.0**5, log=True) for j in _SIGMAS)


def _classification(experiment: str, target: str) -> Generated:
    return Generated(
        Kind(
            f"distbo-classification-{experiment}",
            "Kernel logistic regression on ten generated tasks, and a target whose bandwidths are "
            f"{target}.",
            "appendix C.4",
            (_C, *_bandwidths(2.0**-3)),
            Objective("auc", "on 5000 test points", Direction.MAXIMIZE),
            Source(75, 75),
            version=2,  # since then all tasks share the random frequencies and phases
        ),
        (data.POINTS,) * (data.CLASSIFICATION_SOURCES + 1),
        partial(_classification_value, experiment),
        partial(_classification_train, experiment),
    )


GENERATED = {
    generated.kind.name: generated
    for generated in (
        Generated(
            Kind(
                "distbo-toy",
                "exp(-(theta - mean)^2 / 2), mean that of the task's points, exact values.",
                "section 5.1",
                (Parameter.number("theta", -8, 8),),
                Objective("value", "of the function", Direction.MAXIMIZE),
                Source(10, 20),
            ),
            (data.TOY_POINTS,) * len(data.TOY_CENTRES),
            models.toy_value,
            data.toy_data,
            highest=1.0,
        ),
        Generated(
            Kind(
                "distbo-counterexample",
                "Kernel ridge regression on tasks that no statistic of one or two features tells "
                "apart.",
                "section 5.2",
                (Parameter.number("alpha", 1e-8, 0.1, log=True), *_bandwidths(2.0**-7)),
                Objective("r2", "on 5000 test points", Direction.MAXIMIZE),
                Source(50, 75),
            ),
            (data.POINTS,) * len(data.COUNTEREXAMPLE_PROCESSES),
            models.counterexample_value,
            _counterexample_train,
        ),
        _classification("a", "those of one of these"),
        _classification("b", "others than all of these"),
    )
}

_PROTEIN = "the proteins of Gaulton et al. (2016), github.com/hcllaw/distBO"
REAL = {
    real.kind.name: real
    for real in (
        Real(
            Kind(
                "distbo-parkinsons",
                "Kernel ridge regression of 42 patients' symptoms from their voices.",
                "appendix C.5",
                (
                    Parameter.number("alpha", 1e-10, 0.1, log=True),
                    Parameter.number("gamma", 2.0**-7, 2.0**5, log=True),
                ),
                Objective("r2", "on 40 % of the recordings", Direction.MAXIMIZE),
                Source(10, 20),
            ),
            tuple(f"patient-{i}" for i in range(1, data.PATIENTS + 1)),
            models.parkinsons_value,
            data.parkinsons_data,
            (data.PARKINSONS_FILE,),
            "own trainings on Parkinson's telemonitoring (Tsanas et al. 2009), UCI",
            "CC-BY-4.0",
        ),
        Real(
            Kind(
                "distbo-protein-svm",
                "Support vector machine, Jaccard kernel: which molecules bind to a protein.",
                "section 5.3 and appendix C.6",
                (_C,),
                Objective("accuracy", "on 40 % of the molecules", Direction.MAXIMIZE),
                Source(10, 10),
            ),
            tuple(data.PROTEINS),
            models.svm_value,
            data.protein_data,
            data.PROTEIN_FILES,
            f"own trainings on {_PROTEIN}",
            "BSD-3-Clause",
            SKLEARN,
        ),
        Real(
            Kind(
                "distbo-protein-forest",
                "Random forest: which molecules bind to a protein.",
                "section 5.3 and appendix C.6",
                (
                    Parameter.number("n_trees", 1, 200, integer=True),
                    Parameter.number("max_depth", 1, 32, integer=True),
                    Parameter.number("min_samples_split", 0.01, 1.0),
                    Parameter.number("min_samples_leaf", 0.01, 0.5),
                ),
                Objective("accuracy", "on 40 % of the molecules", Direction.MAXIMIZE),
                Source(10, 10),
            ),
            tuple(data.PROTEINS),
            models.forest_value,
            data.protein_data,
            data.PROTEIN_FILES,
            f"own trainings on {_PROTEIN}",
            "BSD-3-Clause",
            SKLEARN,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class DistboFamily:
    """All seeds of the generated benchmarks; seed 0 if the name has none."""

    pattern: str

    def spec(self, name: str) -> BenchmarkSpec | None:
        """The benchmark of that name; None if the name does not follow the pattern."""
        found = seeded(name)
        return None if found is None else found[0].spec(found[1])

    def files(self) -> tuple[RemoteFile, ...]:
        """No files need to be fetched."""
        return ()


def seeded(name: str) -> tuple[Generated, int] | None:
    """The generated benchmark and seed of a name; None for other names."""
    match = re.fullmatch(rf"({'|'.join(GENERATED)})-seed-(0|[1-9][0-9]{{0,17}})", name)
    return None if match is None else (GENERATED[match[1]], int(match[2]))


def runs_home() -> Path:
    """Folder of generated artifacts, for seeds that do not come with the package."""
    return local_folder() / SEEDS


SPECS = (
    *(generated.spec(0) for generated in GENERATED.values()),
    *(real.spec() for real in REAL.values()),
)
FAMILIES = (DistboFamily(f"NAME-seed-SEED, NAME one of {', '.join(GENERATED)}"),)
SUITES = tuple(("distbo", spec.name) for spec in SPECS)
