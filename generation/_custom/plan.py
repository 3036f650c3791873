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
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.data import SKLEARN_PREFIX, DataSet, read_data
from hpobench_ordered.generation._custom.estimators import built_in_space, read_space
from hpobench_ordered.generation._custom.model import Model, infer_kind_of_estimator
from hpobench_ordered.generation._custom.split import (
    PredictionKind,
    infer_kind_of_target,
    split_data,
)
from hpobench_ordered.generation._custom.training import EstimatorTrainer, Failures, Metric
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.pipeline import FOLDS

COMMAND = "custom"
"""The subcommand of `hpobench-ordered generate`."""
CONFIGURATIONS = 200
"""Default number of configurations."""
VALIDATION_SHARE = 0.25
"""Default share of the rows that validate."""


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """Specification of a benchmark of the user's trainings, without its tasks."""

    name: str
    model: str
    data: str
    target: str | None = None
    kind: PredictionKind | None = None
    metric: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    space: Path | None = None
    configurations: int = CONFIGURATIONS
    failures: Failures = Failures.STOP
    seed: int = 0

    def list_options(self, **others: str | None) -> list[str]:
        """List the options of the command that generates this benchmark, with their values.

        Args:
            others: Values of further options; an option of None is left out.
        """
        # The command is shown on the benchmark's card, which shall name no folders of a computer.
        is_bundled = self.data.startswith(SKLEARN_PREFIX)
        data = self.data if is_bundled else Path(self.data).name
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
        words = [
            f"{option} {shlex.quote(value)}"
            for option, value in options.items()
            if value is not None
        ]
        for name, value in self.fixed.items():
            words.append("--set " + shlex.quote(f"{name}={value}"))
        return words

    def decide_kind(self, model: Model, config: Config, target: NDArray[Any]) -> PredictionKind:
        """Decide what is predicted: as specified, or inferred from the model, or the target.

        Args:
            model: The model.
            config: Any configuration, to make an estimator that may say what it predicts.
            target: What is predicted, (n,).
        """
        return self.kind or _infer_kind_of_model(model, config) or infer_kind_of_target(target)

    def make_space(
        self, model: Model, *, smallest_size: int, names_outside_model: Sequence[str] = ()
    ) -> SearchSpace:
        """Make the search space: the user's file, or a built-in one.

        Args:
            model: The model, whose keywords are the hyperparameters.
            smallest_size: Rows of the smallest training set.
            names_outside_model: Hyperparameters that are not the model's, but of the data that it
                is trained on.

        Raises:
            ExperimentError: A hyperparameter is fixed, too.
            UnknownNameError: The model has no such keyword.
        """
        if self.space is None:
            return built_in_space(model.key, smallest_size=smallest_size, leave_out=self.fixed)

        space = read_space(self.space)
        names = {*space.names, *space.constants}
        keywords = names.difference(names_outside_model)
        model.check_keywords(sorted(keywords))
        fixed_too = sorted(names & set(self.fixed))
        if fixed_too:
            raise ExperimentError(f"{', '.join(fixed_too)}: both fixed and in the search space")
        return space

    def import_model(self) -> Model:
        """Import the model, after checking that its trainings can become a benchmark.

        Raises:
            ExperimentError: There are too few configurations for the forest's cross-validation.
        """
        purpose = "generating a benchmark"
        import_extra("sklearn", package="scikit-learn", extra="generate", purpose=purpose)
        if self.configurations < FOLDS:
            raise ExperimentError(
                f"there must be at least {FOLDS} configurations, but got {self.configurations}"
            )
        return Model.from_path(self.model, fixed=self.fixed, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Custom(TrainingSpec):
    """Specification of a custom benchmark."""

    sizes: Sequence[int]
    validation: float = VALIDATION_SHARE

    def list_words(self) -> list[str]:
        """List the words of the command that generates this benchmark, from its name on.

        Sizes, configurations and seed are not among them: `Request.command` adds these for all
        kinds of benchmarks.
        """
        # An option whose value is None is left out, as the default share for validation is here.
        share = None if self.validation == VALIDATION_SHARE else str(self.validation)
        return [COMMAND, *self.list_options(validation=share)]


@dataclass(frozen=True)
class CustomPlan:
    """The trainings: n configurations on every size.

    Attributes:
        data: The data.
        trainer: Trains a configuration on a training set.
        space: The search space.
        values: Configurations coded as values, (n, d).
        configs: The same configurations by name, (n,).
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
        """The objective on the validation part."""
        return self.trainer.metric.objective(len(self.trainer.split.validation))


def make_plan(custom: Custom) -> CustomPlan:
    """Read data, model and search space, and draw the configurations."""
    model = custom.import_model()
    data = read_data(custom.data, target=custom.target)

    sizes = tuple(sorted(set(custom.sizes)))
    # Without sizes `check_sizes` below raises the error.
    space = custom.make_space(model, smallest_size=min(sizes, default=1))
    rng = np.random.default_rng(custom.seed)
    values = space.decode(space.sample_unit(rng, custom.configurations))
    configs = space.configs(values)

    kind = custom.decide_kind(model, configs[0], data.target)
    split = split_data(data, kind, validation=custom.validation, seed=custom.seed)
    split.check_sizes(sizes)
    trainer = EstimatorTrainer(split, model, Metric(kind, custom.metric), custom.failures)
    return CustomPlan(data, trainer, space, values, configs, sizes)


def _infer_kind_of_model(model: Model, config: Config) -> PredictionKind | None:
    """What the estimator of a configuration predicts; None if unknown."""
    try:
        return infer_kind_of_estimator(model.make_estimator(config))
    except Exception as error:  # a class may raise anything
        raise ExperimentError(
            f"{model.path} cannot be made with {config} and {dict(model.fixed)} "
            f"({type(error).__name__}: {error})"
        ) from error
