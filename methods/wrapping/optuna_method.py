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
from hpobench_ordered.space.optuna_space import build_config, suggest
from hpobench_ordered.space.parameters import Kind, Parameter


class OptunaMethod(Method):
    """Runs a sampler on a study of one task.

    Conditional hyperparameters are suggested only where they are active, ordinals as integers; a
    loss that is not finite is told as a failed trial.
    """

    def start_study(self, sampler: BaseSampler) -> Self:
        """Start the study that the sampler works on, in memory, and return this method.

        Only then can the method be asked. The constructor cannot start the study, as the
        constructors of all methods have the same arguments, without a sampler.
        """
        # Configurations that were asked for and not told yet, with their trials.
        self._pending: list[tuple[Config, Trial]] = []
        with quiet():
            self._study = optuna.create_study(sampler=sampler)
        return self

    def enqueue(self, config: Config) -> None:
        """Put a configuration in the queue of those that are suggested before the sampler's own."""
        any_loss = 0.0  # the trial is made for its parameters, as Optuna writes them
        params = self._make_finished_trial(config, any_loss).params
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
        """Finish the trial of a configuration, or add a trial if it was not asked for.

        A loss that is not finite means that the evaluation failed.
        """
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
        coded_values = self.space.row(config).tolist()
        for parameter, coded_value in zip(self.space.parameters, coded_values, strict=True):
            is_inactive = math.isnan(coded_value)
            if is_inactive:
                continue
            if _is_ordinal(parameter):
                params[parameter.name] = int(coded_value)  # the index of the choice
            else:
                params[parameter.name] = parameter.value(coded_value)
            distributions[parameter.name] = _make_distribution(parameter)

        if math.isfinite(loss):
            return create_trial(
                state=TrialState.COMPLETE, value=loss, params=params, distributions=distributions
            )
        return create_trial(state=TrialState.FAIL, params=params, distributions=distributions)


def _is_ordinal(parameter: Parameter) -> bool:
    """Whether a hyperparameter is an ordinal, a kind that Optuna does not have."""
    return parameter.kind is Kind.ORDINAL


def _suggest(trial: Trial, parameter: Parameter) -> Value:
    """Let a trial of Optuna suggest a value of a hyperparameter.

    For an ordinal it suggests the index of a choice, so that the sampler knows the order.
    """
    if _is_ordinal(parameter):
        last_index = len(parameter.choices) - 1
        index: int = trial.suggest_int(parameter.name, 0, last_index)
        return parameter.choices[index]
    return suggest(trial, parameter)


def _make_distribution(parameter: Parameter) -> BaseDistribution:
    """Make Optuna's distribution of the values that `_suggest` asks a trial for."""
    if _is_ordinal(parameter):
        last_index = len(parameter.choices) - 1
        return IntDistribution(0, last_index)
    return parameter.to_optuna()
