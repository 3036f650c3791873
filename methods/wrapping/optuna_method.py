"""Optuna's samplers as methods."""

import math
from typing import Self

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.wrapping.naming import pop_pending
from hpobench_ordered.runtime.optuna_log import quiet
from hpobench_ordered.space.optuna_space import build_config, make_distribution, suggest
from hpobench_ordered.space.parameters import Kind, Parameter


class OptunaMethod(Method):
    """Runs a sampler on a study of one task.

    Conditional hyperparameters are suggested only where they are active, ordinals as integers; a
    loss that is not finite is told as a failed trial.
    """

    def start_study(self, sampler: BaseSampler) -> Self:
        """Start a study in memory with a sampler, and return this method, which can now be asked.

        The constructor cannot do this, as constructors of all methods have the same arguments.
        """
        # Trials that were asked for and not told yet, with their configurations.
        self._pending: list[tuple[Config, Trial]] = []
        with quiet():
            self._study = optuna.create_study(sampler=sampler)
        return self

    def enqueue(self, config: Config) -> None:
        """Have a configuration suggested before all that the sampler chooses, as Optuna does."""
        params = self._make_finished_trial(config, 0.0).params
        with quiet():
            self._study.enqueue_trial(params)

    def ask(self) -> Config:
        """Start a trial of the study, and return what the sampler suggests for it."""
        with quiet():
            trial = self._study.ask()
            config = build_config(self.space, lambda parameter: _suggest(trial, parameter))
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
            is_ordinal = _is_ordinal(parameter)  # the study has the index of an ordinal's choice
            params[parameter.name] = int(coded) if is_ordinal else parameter.value(coded)
            distributions[parameter.name] = _distribution(parameter)

        is_finite = math.isfinite(loss)
        return create_trial(
            state=TrialState.COMPLETE if is_finite else TrialState.FAIL,
            value=loss if is_finite else None,
            params=params,
            distributions=distributions,
        )


def _is_ordinal(parameter: Parameter) -> bool:
    """Whether a hyperparameter has ordered choices, which Optuna does not know."""
    return parameter.kind is Kind.ORDINAL


def _suggest(trial: Trial, parameter: Parameter) -> Value:
    """Let a trial suggest a native value of a hyperparameter.

    An ordinal is suggested by the index of its choice, so that the sampler knows the order.
    """
    if not _is_ordinal(parameter):
        return suggest(trial, parameter)
    index: int = trial.suggest_int(parameter.name, 0, len(parameter.choices) - 1)
    return parameter.choices[index]


def _distribution(parameter: Parameter) -> BaseDistribution:
    """The distribution that `_suggest` draws from."""
    if not _is_ordinal(parameter):
        return make_distribution(parameter)
    return IntDistribution(0, len(parameter.choices) - 1)
