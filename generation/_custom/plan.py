"""The specification of a custom benchmark, and its plan of trainings.

Notation:
    n, d    configurations, hyperparameters
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.core.objective import Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.data import PREFIX, DataSet, read_data
from hpobench_ordered.generation._custom.estimators import built_in_space, read_space
from hpobench_ordered.generation._custom.model import Model, kind_of_estimator
from hpobench_ordered.generation._custom.split import Kind, kind_of_target, split
from hpobench_ordered.generation._custom.training import EstimatorTrainer, Failures, Metric
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.pipeline import FOLDS

COMMAND = "custom"
"""The subcommand of `hpobench-ordered generate`."""
CONFIGURATIONS = 200
VALIDATION = 0.25


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Specification of a benchmark of the user's trainings, without its tasks."""

    name: str
    model: str
    data: str
    target: str | None = None
    kind: Kind | None = None
    metric: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    space: Path | None = None
    configurations: int = CONFIGURATIONS
    failures: Failures = Failures.STOP
    seed: int = 0

    def options(self, **others: str | None) -> list[str]:
        """The options of the equivalent command."""
        data = self.data if self.data.startswith(PREFIX) else Path(self.data).name
        options = {
            "--model": self.model,
            "--data": data,
            "--target": self.target,
            "--kind": None if self.kind is None else self.kind.value,
            "--metric": self.metric,
            **{f"--{name}": value for name, value in others.items()},
            "--space": None if self.space is None else self.space.name,
            "--failures": None if self.failures is Failures.STOP else self.failures.value,
            "--name": self.name,
        }
        words = [f"{option} {shlex.quote(v)}" for option, v in options.items() if v is not None]
        settings = [f"{name}={value}" for name, value in self.fixed.items()]
        return [*words, *(f"--set {shlex.quote(setting)}" for setting in settings)]

    def kind_with(self, model: Model, config: Config, target: NDArray[Any]) -> Kind:
        """What is predicted: as specified, or inferred from model or target."""
        return self.kind or _kind(model, config) or kind_of_target(target)

    def search_space(
        self, model: Model, *, smallest: int, of_the_data: Sequence[str] = ()
    ) -> SearchSpace:
        """The search space: the user's file, or a built-in one."""
        if self.space is None:
            return built_in_space(model.key, smallest=smallest, leave_out=self.fixed)
        space = read_space(self.space)
        names = {*space.names, *space.constants}
        model.check_keywords(sorted(names.difference(of_the_data)))
        if both := sorted(names & set(self.fixed)):
            raise ExperimentError(f"{', '.join(both)}: both fixed and in the search space")
        return space

    def imported(self) -> Model:
        """Import the model; scikit-learn must be installed."""
        purpose = "generating a benchmark"
        import_extra("sklearn", package="scikit-learn", extra="generate", purpose=purpose)
        if self.configurations < FOLDS:
            raise ExperimentError(
                f"there must be at least {FOLDS} configurations, but got {self.configurations}"
            )
        return Model.imported(self.model, fixed=self.fixed, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Custom(Trained):
    """Specification of a custom benchmark."""

    sizes: Sequence[int]
    validation: float = VALIDATION

    def words(self) -> list[str]:
        """The words of the equivalent command, without the options common to all generation."""
        share = None if self.validation == VALIDATION else str(self.validation)
        return [COMMAND, *self.options(validation=share)]


@dataclass(frozen=True)
class Plan:
    """The trainings: n configurations on every size."""

    data: DataSet
    trainer: EstimatorTrainer
    space: SearchSpace
    values: FloatArray
    configs: list[Config]
    sizes: tuple[int, ...]

    @property
    def objective(self) -> Objective:
        """The objective on the validation part."""
        return self.trainer.metric.objective(len(self.trainer.split.validation))


def plan_of(custom: Custom) -> Plan:
    """Read data, model and search space, and draw the configurations."""
    model = custom.imported()
    data = read_data(custom.data, target=custom.target)
    sizes = tuple(sorted(set(custom.sizes)))
    space = custom.search_space(model, smallest=min(sizes, default=1))
    drawn = space.sample_unit(np.random.default_rng(custom.seed), custom.configurations)
    values = space.decode(drawn)
    configs = space.configs(values)
    kind = custom.kind_with(model, configs[0], data.target)
    parts = split(data, kind, validation=custom.validation, seed=custom.seed)
    parts.check_sizes(sizes)
    trainer = EstimatorTrainer(parts, model, Metric(kind, custom.metric), custom.failures)
    return Plan(data, trainer, space, values, configs, sizes)


def _kind(model: Model, config: Config) -> Kind | None:
    try:
        return kind_of_estimator(model.estimator(config))
    except Exception as error:  # a class may raise anything
        raise ExperimentError(
            f"{model.path} cannot be made with {config} and {dict(model.fixed)} "
            f"({type(error).__name__}: {error})"
        ) from error
