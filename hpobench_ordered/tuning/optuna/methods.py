"""Optuna's samplers as methods."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.errors import ExperimentError, MethodError
from hpobench_ordered.experiment.user_methods._naming import (
    SEED,
    SEED_LIMIT,
    derive_name,
    pop_pending,
    read_summary,
)
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.tuning._optuna_log import quiet
from hpobench_ordered.tuning._optuna_space import define_by_run, distribution, suggest


def optuna_method(
    sampler: type[BaseSampler] | Callable[[int], BaseSampler],
    *,
    name: str | None = None,
    history: bool = False,
) -> MethodSpec:
    """Describe an Optuna sampler as a method.

    Every task gets a study of its own, in memory, with a sampler seeded from the method's `rng`.
    Conditional hyperparameters are suggested only where they are active, ordinals as integers; a
    loss that is not finite is told as a failed trial.

    Args:
        sampler: The sampler's class; or a function of a seed that makes a sampler with settings.
        name: Its name; default: "optuna." and the class's name, or the function's name.
        history: Whether the evaluations of earlier tasks are added to the study as finished trials,
            as if they were of this task; else the method learns only from its own trials.

    Raises:
        ExperimentError: `sampler` is neither a class nor a function, the class takes no seed, or
            a lambda has no `name`.
    """
    if not callable(sampler):
        raise ExperimentError(
            f"sampler must be a sampler class or a function of a seed, but got {sampler!r}"
        )
    if isinstance(sampler, type) and SEED not in inspect.signature(sampler).parameters:
        raise ExperimentError(
            f"{sampler.__name__} takes no seed; pass a function of a seed that makes it"
        )
    # A study has one search space, so a history on another one cannot be added to it.
    supports_changed_spaces = not history
    return MethodSpec(
        name=name or _name_sampler(sampler),
        method=FromSampler(sampler, history),
        summary=read_summary(sampler),
        source=f"optuna {optuna.__version__}",
        uses_history=history,
        changed_spaces=supports_changed_spaces,
    )


@dataclass(frozen=True)
class FromSampler:
    """Makes an `OptunaMethod` with a sampler class or function; `history` fills the study."""

    sampler: type[BaseSampler] | Callable[[int], BaseSampler]
    history: bool

    def __call__(
        self,
        *,
        space: SearchSpace,
        rng: np.random.Generator,
        history: Sequence[Evaluations],
        context: Mapping[str, float],
        budget: int,
    ) -> Method:
        """Make the method of one task, with a sampler that is seeded from `rng`."""
        seed = int(rng.integers(SEED_LIMIT))
        with quiet():
            make_sampler = cast("Callable[..., object]", self.sampler)
            is_class = isinstance(self.sampler, type)  # which has other arguments before the seed
            sampler = make_sampler(seed=seed) if is_class else make_sampler(seed)
        method = OptunaMethod(space=space, rng=rng, history=history, context=context, budget=budget)
        return method.start_study(sampler, adds_history=self.history)


class OptunaMethod(Method):
    """Runs a sampler on a study of one task."""

    def start_study(self, sampler: object, *, adds_history: bool = False) -> Self:
        """Start the study, and add the history to it as trials if that is wanted.

        This is no part of the constructor, which has the same arguments for all methods.

        Returns:
            The method itself, which can now be asked.

        Raises:
            MethodError: `sampler` is not one of Optuna's; a user's function may return anything.
        """
        if not isinstance(sampler, BaseSampler):
            raise MethodError(
                f"the function must return an Optuna sampler, but returned {sampler!r}"
            )
        # Trials that were asked for and not told yet, with their configurations.
        self._pending: list[tuple[Config, Trial]] = []
        with quiet():
            self._study = optuna.create_study(sampler=sampler)
            if adds_history:
                for evaluations in self.history:
                    self._add_trials(evaluations)
        return self

    def _add_trials(self, evaluations: Evaluations) -> None:
        """Add the evaluations of an earlier task to the study."""
        configs = self.space.configs(evaluations.values)
        for config, loss in zip(configs, evaluations.losses.tolist(), strict=True):
            self._study.add_trial(self._make_finished_trial(config, loss))

    def enqueue(self, config: Config) -> None:
        """Have a configuration suggested before all that the sampler chooses, as Optuna does."""
        params = self._make_finished_trial(config, 0.0).params
        with quiet():
            self._study.enqueue_trial(params)

    def ask(self) -> Config:
        """Start a trial of the study, and return what the sampler suggests for it."""
        with quiet():
            trial = self._study.ask()
            config = define_by_run(self.space, lambda parameter: _suggest(trial, parameter))
        self._pending.append((config, trial))
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Finish the trial of a configuration; add a trial if it was not asked for."""
        trial = pop_pending(self._pending, config)  # None if it was not asked for
        with quiet():
            if trial is None:
                self._study.add_trial(self._make_finished_trial(config, loss))
            elif math.isfinite(loss):
                self._study.tell(trial, loss)
            else:
                self._study.tell(trial, state=TrialState.FAIL)

    def _make_finished_trial(self, config: Config, loss: float) -> FrozenTrial:
        """Make the finished trial of a configuration, a failed one if the loss is not finite."""
        params: dict[str, Value] = {}
        distributions: dict[str, BaseDistribution] = {}
        row = self.space.row(config).tolist()
        for parameter, coded in zip(self.space.parameters, row, strict=True):
            if math.isnan(coded):  # inactive
                continue
            is_ordinal = _is_ordinal(parameter)  # the study has its index, not its value
            params[parameter.name] = int(coded) if is_ordinal else parameter.value(coded)
            distributions[parameter.name] = _distribution(parameter)

        is_finite = math.isfinite(loss)
        return create_trial(
            state=TrialState.COMPLETE if is_finite else TrialState.FAIL,
            value=loss if is_finite else None,
            params=params,
            distributions=distributions,
        )


def _name_sampler(sampler: type[BaseSampler] | Callable[[int], BaseSampler]) -> str:
    """Name of a sampler: "optuna." and its class for Optuna's own ones, else its own name."""
    name = getattr(sampler, "__name__", "")
    is_optunas_own = getattr(optuna.samplers, name, None) is sampler
    if is_optunas_own:
        return f"optuna.{name}"
    return derive_name(sampler)


def _is_ordinal(parameter: Parameter) -> bool:
    """Whether a hyperparameter has ordered choices, which Optuna does not know."""
    return parameter.kind is Kind.ORDINAL


def _suggest(trial: Trial, parameter: Parameter) -> Value:
    """Suggest a native value; of an ordinal by its index, so that the sampler knows the order."""
    if not _is_ordinal(parameter):
        return suggest(trial, parameter)
    index: int = trial.suggest_int(parameter.name, 0, len(parameter.choices) - 1)
    return parameter.choices[index]


def _distribution(parameter: Parameter) -> BaseDistribution:
    """The distribution that `_suggest` draws from."""
    if not _is_ordinal(parameter):
        return distribution(parameter)
    return IntDistribution(0, len(parameter.choices) - 1)
