"""Generates benchmarks of the user's own: any estimator on any data over growing training sets.

Configurations are trained on nested training sets (`_custom.split`, `_custom.training`), every
training is kept (`_training`), and one forest with an output a size is fitted to all of them
(`_forest`); the tasks are the sizes, in order. `xgboost-mnist` is an instance with its authors'
shuffle and settings: the same engine and forest, and a trainer that counts the same errors.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.artifact import check_writable, is_artifact
from hpobench_ordered.benchmark import Definition, Provenance, TaskDefinition
from hpobench_ordered.errors import (
    DuplicateNameError,
    ExperimentError,
    UnknownNameError,
    needed,
)
from hpobench_ordered.generation._custom.data import PREFIX, DataSet, read_data
from hpobench_ordered.generation._custom.estimators import built_in_space, read_space
from hpobench_ordered.generation._custom.model import Model, kind_of_estimator
from hpobench_ordered.generation._custom.results import Results
from hpobench_ordered.generation._custom.split import Kind, kind_of_target, split
from hpobench_ordered.generation._custom.training import (
    EstimatorTrainer,
    Failures,
    Forecast,
    Metric,
    TrainingError,
    described,
)
from hpobench_ordered.generation._fitting import FOREST, write_forest
from hpobench_ordered.generation._raw import About, write_raw
from hpobench_ordered.generation._training import Job, run_trainings
from hpobench_ordered.generation.base import Progress, Request, silent
from hpobench_ordered.objective import Objective
from hpobench_ordered.registry import benchmark_spec, generators, local_folder
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.artifacts import Report
from hpobench_ordered.surrogates.card import versions_of
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS

__all__ = ["Custom", "Failures", "Kind", "generate_custom"]

COMMAND = "custom"
"""What follows `hpobench-ordered generate`, in the place of a benchmark's name."""
EVALUATIONS = "-evaluations"
"""What the folder of trainings and the table of them have after the benchmark's name."""
CONFIGURATIONS = 200
VALIDATION = 0.25
VERSION = 1

_LICENCE = "that of the data"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TELLING = 5  # configurations that tell how long the others will take


@dataclass(frozen=True, kw_only=True)
class Custom:
    """All that decides a custom benchmark.

    Attributes:
        name: Name of the benchmark.
        model: What is trained: MODULE:CLASS, or a function that makes an estimator.
        data: A CSV, parquet or npz file, or "sklearn:NAME"; see `read_data`.
        sizes: Training-set sizes; each is a task.
        target: Column to be predicted; default: the last one.
        kind: What is predicted; default: told from the model, or else the target.
        metric: Name of a scorer of scikit-learn; default: the share of misclassified rows or
            the mean squared error.
        validation: Share of the rows that validate.
        fixed: Keywords of the model that every configuration gets.
        space: File of the search space in ConfigSpace's JSON; default: a built-in one.
        configurations: Number of configurations, the same at every size.
        failures: What becomes of a configuration that cannot be trained.
        seed: Seed of the split, the configurations, the model and the surrogate.
    """

    name: str
    model: str
    data: str
    sizes: Sequence[int]
    target: str | None = None
    kind: Kind | None = None
    metric: str | None = None
    validation: float = VALIDATION
    fixed: Mapping[str, Any] = field(default_factory=dict)
    space: Path | None = None
    configurations: int = CONFIGURATIONS
    failures: Failures = Failures.STOP
    seed: int = 0

    def words(self) -> list[str]:
        """The command's words that ask for this, but for those that every generation has."""
        data = self.data if self.data.startswith(PREFIX) else Path(self.data).name
        options = {
            "--model": self.model,
            "--data": data,
            "--target": self.target,
            "--kind": None if self.kind is None else self.kind.value,
            "--metric": self.metric,
            "--validation": None if self.validation == VALIDATION else str(self.validation),
            "--space": None if self.space is None else self.space.name,
            "--failures": None if self.failures is Failures.STOP else self.failures.value,
            "--name": self.name,
        }
        words = [f"{option} {shlex.quote(v)}" for option, v in options.items() if v is not None]
        settings = [f"{name}={value}" for name, value in self.fixed.items()]
        return [COMMAND, *words, *(f"--set {shlex.quote(setting)}" for setting in settings)]


def silently(message: str) -> None:
    """Show no message."""


def generate_custom(
    custom: Custom,
    *,
    output: Path | None = None,
    replace: bool = False,
    workers: int = 1,
    progress: Progress = silent,
    tell: Callable[[str], None] = silently,
) -> Path:
    """Train, fit the forest and write the artifact; `load` then finds the benchmark by its name.

    Finished trainings are kept beside the artifact, in a folder of its name and "-evaluations".
    Calling this again continues, and more configurations or other sizes train only what is new.

    Args:
        custom: What is asked for.
        output: Folder that gets the artifact, in a folder of the benchmark's name; default:
            `registry.local_folder()`, where the benchmark is found by its name.
        replace: Whether a benchmark of that name that was generated before may be replaced.
        workers: Number of processes.
        progress: Told how far the work is.
        tell: Told how long the training will take, if that is long.

    Returns:
        Folder of the artifact.

    Raises:
        DuplicateNameError: There is a benchmark of that name.
        ExperimentError: What is asked for cannot be done: name, sizes, model, target.
        UnknownNameError: No such class, keyword, column, data set or metric.
        InvalidSpaceError: The file of the search space does not hold one.
        ArtifactError: The data cannot be read, or the artifact not be written.
        TrainingError: A configuration could not be trained.
        StoreError: Trainings cannot be kept, or one that was kept is damaged.
        MissingExtraError: scikit-learn is not installed.
    """
    folder = (local_folder() if output is None else output) / custom.name
    _check_name(custom.name, folder, replace=replace)
    check_writable(folder)
    plan = _plan(custom)
    jobs = [Job(str(size), config) for config in plan.configs for size in plan.sizes]
    kept = folder.with_name(f"{folder.name}{EVALUATIONS}")
    outcomes = run_trainings(
        plan.trainer,
        jobs,
        kept,
        workers=workers,
        progress=Forecast(progress, tell, after=_TELLING * len(plan.sizes)),
    )
    results = Results.of(outcomes, len(plan.sizes))
    _check_results(plan, results)
    request = Request(
        folder=folder,
        seed=custom.seed,
        workers=workers,
        sizes=plan.sizes,
        configurations=custom.configurations,
        progress=progress,
    )
    _write_raw(kept.with_name(f"{kept.name}.parquet"), custom, plan, results)
    return _write(request, custom, plan, results)


@dataclass(frozen=True)
class _Plan:
    """What is trained: n configurations on S sizes.

    Attributes:
        data: Where the split comes from.
        trainer: Trains one configuration on one size.
        space: Search space.
        values: Configurations as coded by the space, shape (n, d).
        configs: The same as dicts.
        sizes: Training-set sizes, ascending.
    """

    data: DataSet
    trainer: EstimatorTrainer
    space: SearchSpace
    values: FloatArray
    configs: list[Config]
    sizes: tuple[int, ...]

    @property
    def objective(self) -> Objective:
        """What is measured on the validation part."""
        return self.trainer.metric.objective(len(self.trainer.split.validation))


def _plan(custom: Custom) -> _Plan:
    needed("sklearn", package="scikit-learn", extra="generate", purpose="generating a benchmark")
    if custom.configurations < FOLDS:
        raise ExperimentError(
            f"at least {FOLDS} configurations are needed, got {custom.configurations}"
        )
    model = Model.imported(custom.model, fixed=custom.fixed, seed=custom.seed)
    data = read_data(custom.data, target=custom.target)
    sizes = tuple(sorted(set(custom.sizes)))
    space = _space(custom, model, sizes)
    drawn = space.sample_unit(np.random.default_rng(custom.seed), custom.configurations)
    values = space.decode(drawn)
    configs = space.configs(values)
    kind = custom.kind or _kind(model, configs[0]) or kind_of_target(data.target)
    parts = split(data, kind, validation=custom.validation, seed=custom.seed)
    parts.check_sizes(sizes)
    trainer = EstimatorTrainer(parts, model, Metric(kind, custom.metric), custom.failures)
    return _Plan(data, trainer, space, values, configs, sizes)


def _check_name(name: str, folder: Path, *, replace: bool) -> None:
    if _NAME.fullmatch(name) is None:
        raise ExperimentError(
            f"a benchmark's name is letters, digits and . _ - after the first, got {name!r}"
        )
    if is_artifact(folder) and name not in generators():
        if not replace:
            raise DuplicateNameError(
                f"there is a benchmark {name!r} in {folder}; replace it (--replace), or choose "
                "another name"
            )
    elif _is_registered(name):
        raise DuplicateNameError(f"there is a benchmark {name!r} already; choose another name")


def _is_registered(name: str) -> bool:
    try:
        benchmark_spec(name)
    except UnknownNameError:
        return False
    return True


def _space(custom: Custom, model: Model, sizes: Sequence[int]) -> SearchSpace:
    if custom.space is None:
        return built_in_space(model.key, smallest=min(sizes, default=1), without=custom.fixed)
    space = read_space(custom.space)
    names = {*space.names, *space.constants}
    model.check_keywords(sorted(names))
    both = sorted(names & set(custom.fixed))
    if both:
        raise ExperimentError(f"{', '.join(both)}: fixed, and in the search space too")
    return space


def _kind(model: Model, config: Config) -> Kind | None:
    try:
        return kind_of_estimator(model.estimator(config))
    except Exception as error:  # whatever a class may raise
        raise ExperimentError(
            f"{model.path} cannot be made with {config} and {dict(model.fixed)} "
            f"({type(error).__name__}: {error})"
        ) from error


def _check_results(plan: _Plan, results: Results) -> None:
    """Check that failures may count as worst, and that there is a worst value.

    Raises:
        TrainingError: One failed that counted as worst when it was trained but does not now; or all
            of a size did.
    """
    for (i, j), failure in results.failures.items():
        has_no_worst = bool(np.isnan(results.values[:, j]).all())
        if has_no_worst or plan.trainer.failures is Failures.STOP:
            where = str(plan.sizes[j])
            raise TrainingError(described(plan.trainer.model, plan.configs[i], where, failure))


def _write_raw(path: Path, custom: Custom, plan: _Plan, results: Results) -> None:
    tasks = [str(size) for size in plan.sizes]
    about = About(
        benchmark=custom.name,
        source=_source(custom, plan),
        licence=_LICENCE,
        limits=tuple(_limits(plan, results)),
        contexts={task: {"train_size": float(task)} for task in tasks},
        versions=versions_of("hpobench-ordered", "scikit-learn"),
    )
    write_raw(path, results.frame(plan.objective, plan.space, plan.configs, tasks), about)


def _write(request: Request, custom: Custom, plan: _Plan, results: Results) -> Path:
    report = Report(
        source=_source(custom, plan),
        command=request.command(*custom.words()),
        limits=_limits(plan, results),
        summaries={FOREST: "Random forest fitted to own trainings."},
    )
    return write_forest(
        request,
        _definition(custom, plan),
        plan.values,
        results.filled(plan.objective),
        report,
        coding=space_coding(plan.space),
        recipe=ForestRecipe(),
    )


def _source(custom: Custom, plan: _Plan) -> str:
    return f"own trainings of {custom.model} on {plan.data.origin}"


def _limits(plan: _Plan, results: Results) -> list[str]:
    parts, failed = plan.trainer.split, len(results.failures)
    limits = [
        f"One split ({len(parts.pool)} rows to train on, {len(parts.validation)} to validate) and "
        "one seed: values hold no noise between repetitions."
    ]
    if failed:
        limits.append(
            f"{failed} of {results.values.size} trainings failed and have the worst value of their "
            "size."
        )
    return limits


def _definition(custom: Custom, plan: _Plan) -> Definition:
    trainer, sizes = plan.trainer, plan.sizes
    return Definition(
        name=custom.name,
        version=VERSION,
        summary=f"{trainer.model.name} on {plan.data.name}, {sizes[0]} to {sizes[-1]} rows.",
        space=plan.space,
        objective=plan.objective,
        tasks=tuple(TaskDefinition(str(size), {"train_size": size}) for size in sizes),
        provenance=Provenance(
            paper="none",
            source=f"own trainings of {trainer.model.name} on {plan.data.name}",
            licence=_LICENCE,
        ),
    )
