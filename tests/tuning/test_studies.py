"""Studies of Optuna as history: which trials are read, on which space, in which order."""

import math
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations, Parameter, SearchSpace
from hpobench_ordered.data import check_history
from hpobench_ordered.errors import (
    EvaluationsError,
    HistoryWarning,
    InvalidSpaceError,
)
from hpobench_ordered.space import Compare, Comparison, Kind
from hpobench_ordered.space.optuna_space import convert_distributions, merge_distributions
from hpobench_ordered.tuning import OptunaSampler

DISTRIBUTIONS = {"rate": FloatDistribution(1e-4, 0.5, log=True), "depth": IntDistribution(1, 9)}
SPACE = convert_distributions(DISTRIBUTIONS)
CONDITIONAL_SPACE = SearchSpace(
    [
        Parameter.choice("kernel", ("linear", "poly", "radial")),
        Parameter.number("C", 1e-3, 1e3, log=True),
        Parameter.number("degree", 2, 5, integer=True),
        Parameter.number("gamma", 0, 1),
        Parameter.number("layers", 1, 3, integer=True),
        Parameter.number("units_2", 4, 64, integer=True, log=True),
        Parameter.number("units_3", 4, 64, integer=True, log=True),
    ],
    conditions={
        "degree": Compare(0, Comparison.EQUAL, (1.0,)),
        "gamma": Compare(0, Comparison.IN, (1.0, 2.0)),
        "units_2": Compare(4, Comparison.GREATER, (1.0,)),
        "units_3": Compare(4, Comparison.GREATER, (2.0,)),
    },
    constants={"trees": 100},
)


optuna.logging.set_verbosity(optuna.logging.ERROR)


def run_random_study(
    objective: Callable[[optuna.Trial], float],
    name: str = "May",
    *,
    trials: int = 10,
    **options: Any,
) -> optuna.Study:
    """Run a study of random trials; where the objective raises ValueError, the trial fails."""
    # Names of other lengths give other seeds, so that studies have other trials.
    sampler = optuna.samplers.RandomSampler(seed=len(name))
    study = optuna.create_study(study_name=name, sampler=sampler, **options)
    study.optimize(objective, n_trials=trials, catch=(ValueError,))
    return study


def suggest_rate_and_depth(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 0.5, log=True)
    return trial.suggest_int("depth", 1, 9) - math.log(rate)


def suggest_conditionally(trial: optuna.Trial) -> float:
    """Suggest from `CONDITIONAL_SPACE`, with its conditions; the value is the sum of numbers."""
    kernel = trial.suggest_categorical("kernel", ["linear", "poly", "radial"])
    value = trial.suggest_float("C", 1e-3, 1e3, log=True)
    if kernel == "poly":
        value += trial.suggest_int("degree", 2, 5)
    if kernel != "linear":
        value += trial.suggest_float("gamma", 0, 1)
    n_layers = trial.suggest_int("layers", 1, 3)
    for layer in range(2, n_layers + 1):
        value += trial.suggest_int(f"units_{layer}", 4, 64, log=True)
    trial.suggest_int("trees", 100, 100)  # a constant
    return value


def make_trial(params: dict[str, Any], value: float | None = 1.0, **options: Any) -> Any:
    """Make a trial, by default a finished one of a rate and a depth."""
    distributions = options.pop("distributions", DISTRIBUTIONS)
    return create_trial(params=params, distributions=distributions, value=value, **options)


def assert_trials_are_read(
    evaluations: Evaluations, trials: Sequence[optuna.trial.FrozenTrial]
) -> None:
    """Check that evaluations are those of the trials; failed ones have NaN."""
    configs = evaluations.space.configs(evaluations.values)
    assert configs == [evaluations.space.constants | trial.params for trial in trials]
    values = [math.nan if trial.state is TrialState.FAIL else trial.value for trial in trials]
    np.testing.assert_array_equal(evaluations.objective, values)
    losses = evaluations.direction.losses(np.array(values))
    np.testing.assert_array_equal(evaluations.losses, losses)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_trials_are_read_as_evaluations(direction):
    """Each study is a task, with the objective to minimise or to maximise."""
    studies = [
        run_random_study(suggest_rate_and_depth, name, direction=direction)
        for name in ("May", "June")
    ]

    history = hbo.read_history(studies)

    assert [evaluations.task for evaluations in history] == ["May", "June"]
    for evaluations, study in zip(history, studies, strict=True):
        assert evaluations.direction.value == direction
        assert evaluations.is_on(SPACE)
        assert_trials_are_read(evaluations, study.trials)


def test_unfinished_trials_are_left_out():
    """Left out are trial 1, which suggested nothing, the pruned trial 2, and two not finished.

    Trials 3 and 4 failed after their suggestions, and are read as failures.
    """

    def end_in_different_ways(trial: optuna.Trial) -> float:
        """Suggest, but in trial 1; trials 1 and 3 fail, 2 is pruned, and 4 has the value NaN."""
        if trial.number == 1:
            raise ValueError("failed before anything was suggested")
        value = suggest_rate_and_depth(trial)
        trial.report(value, step=0)
        if trial.number == 2:
            raise optuna.TrialPruned
        if trial.number == 3:
            raise ValueError("failed afterwards")
        if trial.number == 4:
            return math.nan  # a failure for Optuna
        return value

    study = run_random_study(end_in_different_ways, trials=8)
    study.enqueue_trial({"rate": 0.1, "depth": 2})  # stays waiting
    study.add_trial(make_trial({"rate": 0.1, "depth": 3}, None, state=TrialState.RUNNING))

    with pytest.warns(HistoryWarning) as caught:
        (may,) = hbo.read_history([study])

    messages = [str(warning.message) for warning in caught]
    assert messages[0].startswith("1 evaluation pruned, and left out")
    assert messages[1] == "2 evaluations not finished, and left out"
    numbers_read = (0, 3, 4, 5, 6, 7)
    has_failed = [False, True, True, False, False, False]
    assert_trials_are_read(may, [study.trials[number] for number in numbers_read])
    assert np.isinf(may.losses).tolist() == has_failed


@pytest.mark.parametrize("space", [CONDITIONAL_SPACE, None], ids=["space", "inferred"])
def test_inactive_parameters_are_nan(space):
    """The conditional space is given, or inferred from the trials."""
    study = run_random_study(suggest_conditionally, trials=60)
    (may,) = hbo.read_history([study], space=space)
    assert_trials_are_read(may, study.trials)
    for name, column in zip(may.names, may.values.T, strict=True):
        is_inactive = [name not in trial.params for trial in study.trials]
        assert np.isnan(column).tolist() == is_inactive


def test_conditions_and_constants_are_inferred():
    """Trials alone show what was suggested under which condition, and what never varied."""
    studies = [run_random_study(suggest_conditionally, name, trials=60) for name in ("May", "June")]
    expected = describe_conditions(CONDITIONAL_SPACE)
    expected["degree"] = "kernel in poly"  # the same as "kernel = poly", but inferred as a set
    for evaluations in hbo.read_history(studies):
        assert describe_conditions(evaluations.space) == expected
        assert evaluations.space.constants == {"trees": 100}


def describe_conditions(space: SearchSpace) -> dict[str, str]:
    """Describe on what each hyperparameter depends, by its name."""
    return {name: space.describe_condition(name) for name in space.names}


def test_unexplained_condition_is_refused():
    """Whether a trial has a hyperparameter must depend on the values of others, not on time."""

    def suggest_more_in_odd_trials(trial: optuna.Trial) -> float:
        """Suggest n, and in odd trials another hyperparameter, which no value of n explains."""
        if trial.number % 2 == 1:
            trial.suggest_float("now and then", 0, 1)
        return trial.suggest_int("n", 1, 2)

    with pytest.raises(EvaluationsError, match=r"'now and then' was suggested in 5 of 10 trials"):
        hbo.read_history([run_random_study(suggest_more_in_odd_trials)])


@given(
    low=st.floats(-10, 10).map(lambda x: round(x, 2)),
    step=st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.7, 1.0, 2.5]),
    n_steps=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_every_step_of_a_float_is_read(low, step, n_steps, seed):
    """A float with steps is read as an ordinal, whose choices are the steps."""
    high = round(low + n_steps * step, 2)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(lambda trial: trial.suggest_float("x", low, high, step=step), n_trials=10)

    with warnings.catch_warnings(action="ignore"):  # steps may be repeated
        (evaluations,) = hbo.read_history([study])

    (parameter,) = evaluations.space.parameters
    assert parameter.kind is Kind.ORDINAL
    # Choices are `low` and the steps; the last one is missing where `high` was rounded down.
    assert len(parameter.choices) in (1 + n_steps, n_steps)
    values_read = [config["x"] for config in evaluations.space.configs(evaluations.values)]
    values_suggested = list(dict.fromkeys(trial.params["x"] for trial in study.trials))
    np.testing.assert_allclose(values_read, values_suggested, rtol=1e-9)


def test_changed_range_contains_all_trials():
    """The upper end of the range grows in a study, from 1 in the first trial to 5 in the fifth."""
    study = run_random_study(lambda trial: trial.suggest_float("x", 0, 1 + trial.number), trials=5)
    (evaluations,) = hbo.read_history([study])
    assert evaluations.space.parameters == (Parameter.number("x", 0, 5),)
    assert_trials_are_read(evaluations, study.trials)


@pytest.mark.parametrize(
    "second", [FloatDistribution(1, 9, log=True), CategoricalDistribution([1, 9])]
)
def test_other_scale_or_type_is_refused(second):
    with pytest.raises(InvalidSpaceError, match="'x' was suggested from FloatDistribution"):
        merge_distributions("x", FloatDistribution(1, 9), second)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (IntDistribution(1, 100), IntDistribution(1, 91, step=10), IntDistribution(1, 100)),
        (
            IntDistribution(0, 50, step=10),
            IntDistribution(0, 100, step=10),
            IntDistribution(0, 100, step=10),
        ),
        (
            FloatDistribution(0, 1, step=0.5),
            FloatDistribution(0, 2, step=0.25),
            FloatDistribution(0, 2),
        ),
    ],
)
def test_step_may_be_added_or_changed(first, second, merged):
    """Within a study, as between studies; all trials fit the merged range."""
    assert merge_distributions("x", first, second) == merged


def test_step_added_next_month_keeps_the_best():
    """January's best depth, 78, is tried first, at the nearest step of February, 81."""
    depth = {"depth": IntDistribution(1, 100)}
    january = optuna.create_study(study_name="January")
    for value in (30, 78, 15):
        january.add_trial(make_trial({"depth": value}, abs(value - 78.0), distributions=depth))
    february = {"depth": IntDistribution(1, 91, step=10)}

    with pytest.warns(HistoryWarning, match="another search space"):
        sampler = OptunaSampler("simple-ordered", space=february, history=[january])

    assert optuna.create_study(sampler=sampler).ask(february).params == {"depth": 81}


def suggest_and_fail(trial: optuna.Trial) -> float:
    suggest_rate_and_depth(trial)
    raise ValueError


def test_study_without_complete_trial_is_named():
    """All trials of the second study, `now`, failed."""
    studies = [run_random_study(suggest_rate_and_depth), run_random_study(suggest_and_fail, "now")]
    with pytest.warns(HistoryWarning, match="no evaluations of study 'now'"):
        (may,) = hbo.read_history(studies, contexts={"May": {"size": 3.0}})
    assert (may.task, may.context) == ("May", {"size": 3.0})


def run_study_with_rate_out_of_range():
    """Run a study of four trials, the first with a rate of 3, the others with at most 0.5."""
    study = optuna.create_study(study_name="May")
    study.enqueue_trial({"rate": 3.0, "depth": 2})
    study.optimize(suggest_rate_and_depth, n_trials=4)
    return study


@pytest.mark.filterwarnings("ignore:Fixed parameter:UserWarning")
def test_enqueued_value_out_of_range_is_refused():
    with pytest.raises(EvaluationsError, match=r"'rate' must be .*: trial 0 of study .* \(3.0"):
        hbo.read_history([run_study_with_rate_out_of_range()])


@pytest.mark.filterwarnings("ignore:Fixed parameter:UserWarning")
def test_enqueued_value_out_of_range_is_clipped():
    """The first trial has the rate 3 and the depth 2, the others rates of at most 0.5."""
    study = run_study_with_rate_out_of_range()
    with pytest.warns(HistoryWarning, match="1 of 'rate'"):
        (may,) = hbo.read_history([study], clip=True)
    rate_and_depth_of_first = may.values[0]
    assert rate_and_depth_of_first.tolist() == [0.5, 2.0]


def make_objective_of_rate(low: float, high: float, log: bool = True, name: str = "rate"):
    """Make an objective of a rate in another range, or of another name, and of the depth."""

    def suggest_and_add(trial: optuna.Trial) -> float:
        rate = trial.suggest_float(name, low, high, log=log)
        return rate + trial.suggest_int("depth", 1, 9)

    return suggest_and_add


def suggest_rate_depth_and_x(trial: optuna.Trial) -> float:
    return suggest_rate_and_depth(trial) + trial.suggest_float("x", 0, 1)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (make_objective_of_rate(1e-4, 0.5, name="rates"), r"rate: new .*rates: removed"),
        (make_objective_of_rate(1e-4, 3), "rate: from 0.0001 to 3, now from 0.0001 to 0.5"),
        (
            make_objective_of_rate(-4, -0.4, log=False),
            "rate: from -4 to -0.4 on a linear .* 0.5 on a log scale",
        ),
    ],
)
def test_other_space_is_warned_of(objective, message):
    """The sampler warns of an earlier study on another space; `check_history` refuses it."""
    same_space = run_random_study(suggest_rate_and_depth, "May")
    other_space = run_random_study(objective, "other")

    history = hbo.read_history([same_space, other_space], space=SPACE)

    with pytest.warns(HistoryWarning, match=f"'other': .*{message}"):
        OptunaSampler("simple-ordered", space=SPACE, history=history)
    with pytest.raises(
        EvaluationsError, match=f"'other': it is on another search space.*{message}"
    ):
        check_history(history, SPACE, "minimize")


@pytest.mark.parametrize("space", [SPACE, None], ids=["space", "inferred"])
@pytest.mark.parametrize(
    "objective",
    [
        make_objective_of_rate(1e-4, 0.5, name="rates"),
        suggest_rate_depth_and_x,
        make_objective_of_rate(1e-4, 3),
        make_objective_of_rate(-4, -0.4, log=False),
    ],
    ids=["other name", "added", "wider", "other scale"],
)
def test_trials_on_other_space_are_read(objective, space):
    """Each study keeps its own space."""
    same_space = run_random_study(suggest_rate_and_depth, "May")
    other_space = run_random_study(objective, "other")

    history = hbo.read_history([same_space, other_space], space=space)

    evaluations_of = {evaluations.task: evaluations for evaluations in history}
    assert evaluations_of["May"].is_on(SPACE)
    assert not evaluations_of["other"].is_on(SPACE)
    assert_trials_are_read(evaluations_of["other"], other_space.trials)


def run_study_of_two_objectives():
    """Run a study with one objective to minimise and one to maximise."""
    study = optuna.create_study(study_name="two", directions=["minimize", "maximize"])
    study.optimize(lambda trial: (suggest_rate_and_depth(trial), 0.0), n_trials=2)
    return study


STUDY_OF_MAY = run_random_study(suggest_rate_and_depth)


@pytest.mark.parametrize(
    ("studies", "message"),
    [
        (
            [STUDY_OF_MAY, run_random_study(suggest_rate_and_depth, "June", direction="maximize")],
            "'May' to minimize, 'June' to max",
        ),
        ([STUDY_OF_MAY, STUDY_OF_MAY], "earlier tasks have the same name: 'May'"),
        ([run_study_of_two_objectives()], "study 'two' must have one objective, not 2"),
    ],
)
def test_invalid_studies_are_refused(studies, message):
    with pytest.raises(EvaluationsError, match=message):
        hbo.read_history(studies)


@pytest.fixture
def storage_by_date(tmp_path):
    """URL of a storage of four studies that were created in another order than they were run in.

    Each study has a trial of day 9 of its month, and then one of day 5. The rate tells the month,
    from 0.01 in January to 0.04 in April, and the depth the day.
    """
    url = f"sqlite:///{tmp_path / 'tuning.db'}"
    for name, month in (("churn-b", 2), ("churn-a", 3), ("fraud", 4), ("churn-c", 1)):
        study = optuna.create_study(study_name=name, storage=url)
        for day in (9, 5):
            trial = make_trial({"rate": 0.01 * month, "depth": day}, value=float(month))
            trial.datetime_start = datetime(2026, month, day)
            trial.datetime_complete = trial.datetime_start
            study.add_trial(trial)
    return url


def test_studies_come_by_date(storage_by_date):
    """Tasks are in the order of dates, the trials of a task in that of their numbers."""
    history = hbo.read_history(storage_by_date, SPACE, studies="churn-*")

    january, february, march = history
    assert [evaluations.task for evaluations in history] == ["churn-c", "churn-b", "churn-a"]
    # Rate and depth: the trial of day 9 is the first one.
    assert january.values.tolist() == [[0.01, 9], [0.01, 5]]
    assert february.values.tolist() == [[0.02, 9], [0.02, 5]]
    assert march.values.tolist() == [[0.03, 9], [0.03, 5]]


def test_parameter_of_some_studies_is_unconditional():
    """A hyperparameter of one study alone is no condition: each study has its own space."""
    may = optuna.create_study(study_name="May")
    june = optuna.create_study(study_name="June")
    may.add_trial(make_trial({"rate": 0.1, "depth": 7}))
    only_depth = {"depth": DISTRIBUTIONS["depth"]}
    june.add_trial(make_trial({"depth": 2}, distributions=only_depth))

    history = hbo.read_history([may, june])

    assert [evaluations.names for evaluations in history] == [("rate", "depth"), ("depth",)]


def suggest_kind_and_x(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", ["a", "b"])
    return trial.suggest_float("x", 0, 1) + (kind == "a")


X_AND_KIND = {"x": FloatDistribution(0, 1), "kind": CategoricalDistribution(["b", "a"])}
"""The distributions of `suggest_kind_and_x`: hyperparameters and choices in another order."""


def test_history_in_other_order_is_used():
    """The method simple-previous begins with the best configuration of the last task.

    Here that task had the same hyperparameters and choices, but in another order.
    """
    earlier = run_random_study(suggest_kind_and_x, trials=30)
    (evaluations,) = hbo.read_history([earlier])
    assert not evaluations.is_on(convert_distributions(X_AND_KIND))

    sampler = OptunaSampler("simple-previous", space=X_AND_KIND, history=[evaluations])
    first_trial = optuna.create_study(sampler=sampler).ask(X_AND_KIND)

    assert first_trial.params == earlier.best_params
