"""Reads Optuna's studies: their trials as rows, and the search space of each.

Complete trials have their value. Failed ones are failed evaluations, or are left out if they failed
before all of their parameters were suggested. Pruned ones are left out, as an intermediate value is
not the objective; so are running and waiting ones.

The search space of a study is that which this package recorded with it, or else it is inferred from
the distributions of its trials: numbers keep their log scale, those with a step become ordinals,
and of a range that changed the smallest that contains all is taken. A parameter that not all trials
have is conditional: on the first other parameter, a categorical or an integer present in all of
these trials and more, whose value determines whether a trial has it.
"""

import fnmatch
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from hpobench_ordered._typing import Value
from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError, UnknownNameError
from hpobench_ordered.runtime.optuna_log import quiet
from hpobench_ordered.space import Compare, Comparison, Condition, Kind, Parameter, SearchSpace
from hpobench_ordered.space.change import SpaceChange
from hpobench_ordered.space.conversion import name_choice
from hpobench_ordered.space.differences import CHANGES_OF_RANGE, allows
from hpobench_ordered.space.optuna_space import (
    convert_distribution,
    get_only_value,
    merge_distributions,
)
from hpobench_ordered.tuning.reading.passwords import hide_password
from hpobench_ordered.tuning.reading.rows import (
    OpenedStudy,
    Reader,
    Rows,
    State,
    TaskRows,
)
from hpobench_ordered.tuning.reading.tables import check_renaming

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


SETTINGS_ENTRY = "hpobench_ordered:settings"
"""Attribute of a study that this package recorded: the settings, among them the search space."""
STATE_OF_TRIAL: Mapping[TrialState, State] = {
    TrialState.COMPLETE: State.COMPLETE,
    TrialState.FAIL: State.FAILED,
    TrialState.PRUNED: State.PRUNED,
    TrialState.RUNNING: State.UNFINISHED,
    TrialState.WAITING: State.UNFINISHED,
}


@dataclass(frozen=True)
class _StudyTrials:
    """The trials of a study, with their parameters renamed.

    Attributes:
        name: Name of the study.
        trials: All trials.
        recorded: The settings that this package recorded with it; empty if it did not.
    """

    name: str
    trials: Sequence[FrozenTrial]
    recorded: Mapping[str, Any]

    @property
    def recorded_space(self) -> SearchSpace | None:
        """The search space that this package recorded with the study; None if it did not."""
        description = self.recorded.get("space")
        return None if description is None else SearchSpace.from_json(description)

    @property
    def complete(self) -> list[FrozenTrial]:
        """The complete trials."""
        return [trial for trial in self.trials if trial.state is TrialState.COMPLETE]


def split_studies(
    studies: Sequence[OpenedStudy],
    reader: Reader,
    *,
    space: SearchSpace | None,
    rename: Mapping[str, str],
) -> list[TaskRows | None]:
    """Convert the trials of studies to rows, and choose the search space of each study.

    Args:
        studies: The studies, each of one objective.
        reader: Has the settings, and collects what cannot be used.
        space: The search space of the task at hand; None if it is that of the studies.
        rename: New names of parameters by their old ones.

    Returns:
        The rows of each study; None for a study without a complete trial.
    """
    for opened in studies:
        study = opened.study
        if len(study.directions) != 1:
            raise EvaluationsError(
                f"study {study.study_name!r} must have one objective, not {len(study.directions)}"
            )
    all_trials = _read_trials(studies, rename)
    positions = [i for i, of_study in enumerate(all_trials) if of_study.complete]
    any_range = reader.drop_invalid or reader.clip
    spaces = _choose_spaces([all_trials[i] for i in positions], space, any_range=any_range)
    space_of_position = dict(zip(positions, spaces, strict=True))

    rows_of_studies: list[TaskRows | None] = []
    for i, of_study in enumerate(all_trials):
        if i in space_of_position:
            rows = _to_rows(of_study, space_of_position[i])
            space_of_study = space_of_position[i]
            context = of_study.recorded.get("context", {})
            origin = studies[i].origin
            rows_of_studies.append(TaskRows(rows, space_of_study, context, origin))
        else:
            reader.unusable_tasks.append(f"study {of_study.name!r}")
            rows_of_studies.append(None)
    return rows_of_studies


def _read_trials(studies: Sequence[OpenedStudy], rename: Mapping[str, str]) -> list[_StudyTrials]:
    """Read the trials of each study, and rename their parameters.

    Choices that are no texts, numbers or booleans, such as tuples, are converted to text.
    """
    trials_of_study: list[list[FrozenTrial]] = []
    parameters_of_studies: list[set[str]] = []  # names of the parameters of each study
    for opened in studies:
        trials = opened.list_trials()
        trials_of_study.append(trials)
        parameters: set[str] = set()
        for trial in trials:
            parameters.update(trial.params)
        parameters_of_studies.append(parameters)
    check_renaming(rename, *parameters_of_studies)

    read: list[_StudyTrials] = []
    for opened, trials in zip(studies, trials_of_study, strict=True):
        prepared = [_prepare_trial(trial, rename) for trial in trials]
        recorded = dict(opened.study.user_attrs.get(SETTINGS_ENTRY, {}))
        if rename:  # the recorded space has the old names, so it cannot be used
            recorded.pop("space", None)
        read.append(_StudyTrials(opened.study.study_name, prepared, recorded))
    return read


def _prepare_trial(trial: FrozenTrial, rename: Mapping[str, str]) -> FrozenTrial:
    """Copy a trial, with its parameters renamed, and with choices such as tuples as text.

    Args:
        trial: The trial.
        rename: A mapping of old to new names. Parameters that are not in it keep their names.
    """
    prepared = copy(trial)
    prepared.params = {
        rename.get(name, name): name_choice(name, value) for name, value in trial.params.items()
    }
    prepared.distributions = {
        rename.get(name, name): distribution for name, distribution in trial.distributions.items()
    }
    return prepared


def load_studies(storage: "str | BaseStorage", pattern: str) -> list[Study]:
    """Load the studies of a storage whose names match a pattern.

    The studies are sorted by the start of their first trials. Studies without a trial come last, by
    name.
    """
    try:
        with quiet():
            checked_storage = optuna.storages.get_storage(storage)
            summaries = optuna.get_all_study_summaries(
                storage=checked_storage, include_best_trial=False
            )
            starts = {summary.study_name: summary.datetime_start for summary in summaries}
            names = [name for name in starts if fnmatch.fnmatchcase(name, pattern)]
            names.sort(key=lambda name: (starts[name] or datetime.max, name))
            studies: list[Study] = []
            for name in names:
                study = optuna.load_study(study_name=name, storage=checked_storage)
                # This reads all trials, so that damaged ones raise an error here and not later.
                study.get_trials(deepcopy=False)
                studies.append(study)
    except Exception as error:  # the class depends on the database driver
        first_line = str(error).partition("\n")[0]
        raise EvaluationsError(
            f"the storage {hide_password(storage)!r} cannot be read: {first_line}"
        ) from error
    if not names:
        raise UnknownNameError("study", pattern, starts)
    return studies


def _to_rows(of_study: _StudyTrials, space: SearchSpace) -> Rows:
    """Convert the trials of a study to rows, with a column for each parameter of a space.

    A trial without a parameter has None in its column.
    """
    trials = of_study.trials
    columns: dict[str, NDArray[np.object_]] = {}
    for parameter in (*space.names, *space.constants):
        # A value may be a list, which `np.array` would turn into a second dimension.
        column = np.empty(len(trials), dtype=object)
        column[:] = [trial.params.get(parameter) for trial in trials]
        columns[parameter] = column

    labels: list[str] = []
    values: list[float | None] = []
    states: list[State] = []
    for trial in trials:
        labels.append(f"trial {trial.number} of study {of_study.name!r}")
        values.append(trial.value)
        states.append(STATE_OF_TRIAL[trial.state])
    return Rows(of_study.name, labels, columns, values, states)


def _choose_spaces(
    studies: Sequence[_StudyTrials], space_at_hand: SearchSpace | None, *, any_range: bool
) -> list[SearchSpace]:
    """Choose the search space of each study, from its complete trials.

    Args:
        studies: The studies.
        space_at_hand: Search space of the task at hand; None if it is not known.
        any_range: Whether a study also fits the space at hand if only ranges of numbers differ.

    Returns:
        The space at hand for a study that fits it, else the study's own space. If the space at hand
        is not known, the common space of all studies or, if there is none, each study's own.
    """
    if space_at_hand is None:
        common = _find_common_space(studies)
        if common is not None:
            return [common] * len(studies)
        return [_find_own_space(of_study) for of_study in studies]

    spaces: list[SearchSpace] = []
    for of_study in studies:
        if _fits(of_study.complete, space_at_hand):
            spaces.append(space_at_hand)
            continue
        own_space = _find_own_space(of_study)
        changes_by_parameter = SpaceChange(own_space, space_at_hand).changes
        kinds_of_changes = set(chain(*changes_by_parameter.values()))
        differs_in_ranges_only = kinds_of_changes <= CHANGES_OF_RANGE
        fits_in_any_range = any_range and differs_in_ranges_only
        spaces.append(space_at_hand if fits_in_any_range else own_space)
    return spaces


def _find_own_space(of_study: _StudyTrials) -> SearchSpace:
    """Return the recorded search space of a study, or infer it from complete trials if none is."""
    if of_study.recorded_space is not None:
        return of_study.recorded_space
    return _infer_space(of_study.name, of_study.complete)


def _find_common_space(studies: Sequence[_StudyTrials]) -> SearchSpace | None:
    """Find the search space that all studies share; None if there is none."""
    if studies and _have_same_recorded_space(studies):
        return studies[0].recorded_space
    return _infer_common_space([of_study.complete for of_study in studies])


def _have_same_recorded_space(studies: Sequence[_StudyTrials]) -> bool:
    """Whether this package recorded the same search space with all studies, up to defaults."""
    first = studies[0].recorded_space
    if first is None:
        return False
    for of_study in studies[1:]:
        space = of_study.recorded_space
        if space is None or not first.codes_as(space):
            return False
    return True


def _fits(trials: Iterable[FrozenTrial], space: SearchSpace) -> bool:
    """Whether each trial has the ranges of the space, and a value of every active parameter."""
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if not has_same_range(space, name, distribution):
                return False
        if _lacks_parameter(trial.params, space):
            return False
    return True


def has_same_range(space: SearchSpace, name: str, distribution: BaseDistribution) -> bool:
    """Whether a distribution has the range or choices that the space has for this parameter.

    For a constant of the space, the distribution must have the constant as its only value.
    """
    suggested = convert_distribution(name, distribution)
    if name in space.constants:
        has_single_value = suggested.size == 1
        return has_single_value and get_only_value(suggested) == space.constants[name]
    if name not in space.names:
        return False

    parameter = space[name]
    # `choices` is empty for a range of numbers.
    is_either_categorical = parameter.choices or suggested.choices
    if is_either_categorical:
        return set(parameter.choices) == set(suggested.choices)
    range_of = attrgetter("kind", "lower", "upper", "log")
    return bool(range_of(parameter) == range_of(suggested))


def _lacks_parameter(params: Mapping[str, object], space: SearchSpace) -> bool:
    """Whether an active hyperparameter of the space is missing from a trial's parameters.

    A hyperparameter with a condition is active if the condition holds for the codes of its parents.
    """
    codes = [math.nan] * space.dimension  # stay NaN where inactive or out of range
    for column, condition in space.ordered_conditions.items():  # parents come first
        parameter = space.parameters[column]
        is_active = condition is None or condition.holds_for(codes)
        if not is_active:
            continue
        if parameter.name not in params:
            return True
        value = cast("Value", params[parameter.name])
        if allows(parameter, value):
            codes[column] = parameter.code(value)
    return False


def _infer_common_space(
    trials_of_studies: Sequence[Sequence[FrozenTrial]],
) -> SearchSpace | None:
    """Infer the search space that all studies share, from complete trials; None if there is none.

    There is none in two cases:

    - The range or choices of a parameter differ between trials.
    - Some studies have a parameter in every trial, and all others have it in no trial: it is a part
      of some spaces only. If it is in some trials of a study, it is conditional, and may be a part
      of all spaces.
    """
    all_trials = list(chain(*trials_of_studies))
    text_of_distribution: dict[str, str] = {}
    for trial in all_trials:
        for name, distribution in trial.distributions.items():
            # Texts are compared, as the choices True and 1 are equal but must not be confused.
            text = repr(distribution)
            if text_of_distribution.setdefault(name, text) != text:
                return None

    for name in text_of_distribution:
        # One boolean for each study.
        is_in_every_trial = [_is_in_all(name, trials) for trials in trials_of_studies]
        is_in_no_trial = [_is_in_none(name, trials) for trials in trials_of_studies]
        is_unconditional = np.logical_or(is_in_every_trial, is_in_no_trial).all()
        is_missing_somewhere = not all(is_in_every_trial)
        if is_unconditional and is_missing_somewhere:
            return None

    try:
        return _infer_space("all studies", all_trials)  # the name is only for the error's message
    except EvaluationsError:
        return None


def _infer_space(study: str, trials: Sequence[FrozenTrial]) -> SearchSpace:
    """Infer the search space of a study from its complete trials.

    A parameter with a single value becomes a constant. A parameter that some trials lack gets a
    condition on another parameter.

    Args:
        study: Name of the study, for the message.
        trials: The complete trials.

    Raises:
        EvaluationsError: The distributions of a parameter contradict each other, or no condition
            explains why some trials lack a parameter.
    """
    try:
        constants: dict[str, Value] = {}
        tunable: list[Parameter] = []
        for name, distribution in _merge_all_distributions(trials).items():
            parameter = convert_distribution(name, distribution)
            if parameter.size > 1:  # number of different values
                tunable.append(parameter)
            elif _is_in_all(name, trials):
                # A constant that some trials lack is left out: constants cannot have conditions.
                constants[name] = get_only_value(parameter)

        conditions: dict[str, Condition] = {}
        for parameter in tunable:
            if not _is_in_all(parameter.name, trials):
                conditions[parameter.name] = _infer_condition(parameter.name, tunable, trials)
        return SearchSpace(tunable, conditions=conditions, constants=constants)
    except InvalidSpaceError as error:
        raise EvaluationsError(
            f"the search space of study {study!r} cannot be inferred: {error}; give a search space"
        ) from None


def _merge_all_distributions(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Merge the distributions of each parameter to the smallest one that contains them all."""
    merged: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            earlier = merged.get(name, distribution)
            if distribution == earlier:
                merged[name] = distribution
            else:
                merged[name] = merge_distributions(name, earlier, distribution)
    return merged


def _is_in_all(name: str, trials: Iterable[FrozenTrial]) -> bool:
    """Whether every trial has a parameter of this name."""
    return all(name in trial.params for trial in trials)


def _is_in_none(name: str, trials: Iterable[FrozenTrial]) -> bool:
    """Whether no trial has a parameter of this name."""
    return not any(name in trial.params for trial in trials)


def _list_codes_in_range(parameter: Parameter, trials: Iterable[FrozenTrial]) -> set[float]:
    """List the codes of a parameter's values in some trials, without values out of its range."""
    values = [trial.params[parameter.name] for trial in trials]
    return {parameter.code(value) for value in values if allows(parameter, value)}


def _infer_condition(
    child: str, parameters: Sequence[Parameter], trials: Sequence[FrozenTrial]
) -> Condition:
    """Infer the condition under which a parameter is suggested.

    The condition compares another parameter, the parent, with some values. The parent is the first
    parameter that is in all trials with the child, and whose values separate these trials from
    those without the child.
    """
    with_child = [trial for trial in trials if child in trial.params]
    without_child = [trial for trial in trials if child not in trial.params]
    for column, parent in enumerate(parameters):
        # A trial without the parent says nothing about its values.
        comparable = [trial for trial in without_child if parent.name in trial.params]
        if not comparable or not _is_in_all(parent.name, with_child):
            continue

        codes_with = _list_codes_in_range(parent, with_child)
        codes_without = _list_codes_in_range(parent, comparable)
        if not codes_with or not codes_without:
            continue

        if parent.choices and codes_with.isdisjoint(codes_without):
            return Compare(column, Comparison.IN, tuple(sorted(codes_with)))
        # An integer determines it if the child was suggested only above, or only below, all
        # values of the trials without the child.
        if parent.kind is Kind.INTEGER and max(codes_without) < min(codes_with):
            return Compare(column, Comparison.GREATER, (max(codes_without),))
        if parent.kind is Kind.INTEGER and max(codes_with) < min(codes_without):
            return Compare(column, Comparison.LESS, (min(codes_without),))

    raise InvalidSpaceError(
        f"{child!r} was suggested in {len(with_child)} of {len(trials)} trials, and the value of "
        "no other parameter determines in which"
    )
