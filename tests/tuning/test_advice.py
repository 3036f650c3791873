"""Advice on the method to tune with, from earlier tasks of which the right advice is known.

Methods are compared by the share of the distance from a task's median loss to its best loss that
they leave: (their lowest loss - best) / (median - best). So 0 is the best configuration, and 1 no
better than half of all configurations.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from bad_methods import Raises
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.analysis.samples import Resampling, independent_samples
from hpobench_ordered.analysis.significance import least_significant_difference
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    FailedRunsWarning,
    PoorSurrogateWarning,
    UnknownNameError,
)
from hpobench_ordered.tuning.advice import LOWEST_CORRELATION, SAMPLE_SIZE, compare_methods

SPACE = hbo.SearchSpace([hbo.Parameter.number(name, 0.0, 1.0) for name in "abc"])
METHODS = ("random-search", "bo", "simple-previous")


def evaluate_tasks(
    loss_of: Callable[[np.ndarray, int], np.ndarray],
    *,
    tasks: int = 5,
    n: int = 60,
    direction: hbo.Direction = hbo.Direction.MINIMIZE,
) -> list[hbo.Evaluations]:
    """Evaluate n random configurations on each task; tasks are numbered from 0.

    `loss_of` maps configurations in the unit cube, (n, 3), and a task's number to losses, (n,).
    """
    history = []
    for task in range(tasks):
        seed = task  # so that every task has other configurations
        unit_values = np.random.default_rng(seed).random((n, 3))
        losses = loss_of(unit_values, task)
        # The sign is -1 if the objective is maximised: high values are low losses.
        objective = direction.sign * losses
        history.append(make_evaluations(task, unit_values, objective, direction))
    return history


def make_evaluations(task, values, objective, direction=hbo.Direction.MINIMIZE, **context):
    """Make the evaluations of a task with a context; task 0 is called m0, and so on."""
    return hbo.Evaluations(f"m{task}", context, values, objective, space=SPACE, direction=direction)


def loss_with_fixed_best(unit_values: np.ndarray, task: int) -> np.ndarray:
    """Losses from -1 to 0, which are lowest at (0.7, 0.7, 0.7), whatever the task."""
    squared_distance = ((unit_values - 0.7) ** 2).sum(axis=1)
    return -np.exp(-squared_distance / 0.1)


def loss_with_jumping_best(unit_values: np.ndarray, task: int) -> np.ndarray:
    """Losses that are lowest at (0, 0, 0) on even tasks, and at (1, 1, 1) on odd ones.

    So the best configuration of a task is the worst of the next one.
    """
    best_coordinate = task % 2
    return ((unit_values - best_coordinate) ** 2).sum(axis=1)


def random_loss(unit_values: np.ndarray, task: int) -> np.ndarray:
    """Losses that do not depend on the configuration, so that no surrogate can predict them."""
    # Configurations are drawn with the task's number as seed. Another seed is independent of them.
    seed_of_losses = task + 99
    return np.random.default_rng(seed_of_losses).normal(size=len(unit_values))


def get_advice(history: list[hbo.Evaluations], **options) -> hbo.Advice:
    """Ask for advice, by default on three methods with five trials and three seeds."""
    default_options = {
        "space": SPACE,
        "direction": history[0].direction if history else "minimize",
        "methods": METHODS,
        "trials": 5,
        "seeds": range(3),
        "progress": False,
    }
    return hbo.advise(history, **(default_options | options))


@pytest.fixture(scope="module")
def advice_with_fixed_best():
    """Advice on five tasks with the same best configuration, m0 to m4.

    A warning, such as of a poor surrogate, is an error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return get_advice(evaluate_tasks(loss_with_fixed_best))


def test_copying_wins_where_the_best_stays(advice_with_fixed_best):
    """The method simple-previous begins with the best configuration of the task before."""
    sentence_on_best, sentence_on_copying = advice_with_fixed_best.sentences
    assert advice_with_fixed_best.best == "simple-previous"
    assert sentence_on_best.startswith("After 5 trials simple-previous leaves least")
    assert "Copying wins" in sentence_on_copying


def test_copying_leaves_little_where_the_best_stays(advice_with_fixed_best):
    """`copied` is the share left by the best configuration of the task before.

    It is NaN on the first task, and not quite 0 on others, as surrogates are not exact.
    """
    share_left_on_tasks = advice_with_fixed_best.copied  # 0 is the best, 1 the median
    assert np.nanmean(share_left_on_tasks) < 0.3


@pytest.mark.slow
def test_copying_is_not_enough_where_the_best_jumps():
    """The best configuration of the task before is the worst; bo learns from its own trials."""
    advice = get_advice(evaluate_tasks(loss_with_jumping_best))

    _, sentence_on_copying = advice.sentences
    assert "Copying is not enough" in sentence_on_copying
    share_left_by_copying = np.nanmean(advice.copied)
    share_left_by_median = 1  # of random configurations
    assert share_left_by_copying > share_left_by_median
    assert advice.best == "bo"
    # The surrogates are good, so that there is nothing to warn of.
    assert advice.warning == ""


@pytest.mark.slow
def test_poor_surrogate_is_warned_of():
    """A surrogate of random losses cannot rank configurations in their true order."""
    history = evaluate_tasks(random_loss, tasks=5)

    with pytest.warns(PoorSurrogateWarning, match="this advice is unreliable"):
        advice = get_advice(history, methods=["random-search"], seeds=[0])

    # The sentences begin with the warning, and all five tasks are named as poor.
    first_sentence, *_ = advice.sentences
    assert first_sentence == advice.warning
    assert len(advice.poor_tasks) == 5
    rank_correlations = [task.spearman for task in advice.quality]
    lowest_of_good_surrogates = LOWEST_CORRELATION
    assert max(rank_correlations) < lowest_of_good_surrogates


def compute_medians_by_hand(benchmark: hbo.Benchmark) -> dict[str, float]:
    """Compute the median loss of random configurations on each task, by the task's name.

    The advice draws as many configurations with the same seed, so that medians are equal.
    """
    seed_of_advice = 0
    unit_values = SPACE.sample_unit(np.random.default_rng(seed_of_advice), SAMPLE_SIZE)
    configurations = SPACE.decode(unit_values)
    median_of_task = {}
    for task in benchmark.tasks:
        median_of_task[task.name] = float(np.median(task.evaluate_many(configurations)))
    return median_of_task


def test_shares_follow_from_the_runs(advice_with_fixed_best):
    """A method's share `left` is the mean of (lowest loss - best) / (median - best) of its runs."""
    median_of_task = compute_medians_by_hand(advice_with_fixed_best.benchmark)
    best_of_task = {task.name: task.best_value for task in advice_with_fixed_best.benchmark.tasks}

    # A run is of a method with a seed on a task. The first task has no history and does not count.
    trials = advice_with_fixed_best.results.frame()
    counting = trials[trials["task_name"] != "m0"]
    lowest_losses = counting.groupby(["method", "task_name", "seed"])["value"].min()
    runs = lowest_losses.reset_index(name="lowest_loss")
    best = runs["task_name"].map(best_of_task)
    median = runs["task_name"].map(median_of_task)
    runs["left"] = (runs["lowest_loss"] - best) / (median - best)
    expected = runs.groupby("method")["left"].mean()

    share_of_method = advice_with_fixed_best.methods.set_index("method")["left"]
    # Where a run or a random configuration has a lower loss than the best known one, the advice
    # takes that for the best. Here it changes shares by up to 2 %.
    assert share_of_method.to_dict() == pytest.approx(expected.to_dict(), rel=0.02)


def test_advice_replays_on_forests(advice_with_fixed_best):
    """Random forests are the surrogates unless another kind is asked for."""
    trials = advice_with_fixed_best.results.frame()
    assert set(trials["surrogate"]) == {"forest"}


def test_methods_are_sorted_by_share(advice_with_fixed_best):
    """The best comes first: the method with the smallest share left after the last trial."""
    share_after_last_trial = advice_with_fixed_best.methods["left"]
    assert share_after_last_trial.is_monotonic_increasing


def test_share_falls_from_first_trial(advice_with_fixed_best):
    """A method's best loss of all trials leaves at most what that of its first trial leaves."""
    table = advice_with_fixed_best.methods
    share_after_first_trial = table["first"]
    share_after_last_trial = table["left"]
    assert (share_after_first_trial >= share_after_last_trial).all()


def test_advice_tells_which_methods_need_history(advice_with_fixed_best):
    """Of random-search, bo and simple-previous, the last alone copies from earlier tasks."""
    table = advice_with_fixed_best.methods
    with_history = table.loc[table["needs_history"], "method"]
    assert with_history.tolist() == ["simple-previous"]


SHARES_OF_METHODS = st.builds(
    lambda entropy, tasks, methods: draw_shares(np.random.default_rng(entropy), tasks, methods),
    st.integers(0, 2**32),
    tasks=st.integers(2, 9),
    methods=st.integers(1, 6),
)
"""Shares left, of shape (methods, seeds, tasks, trials): see `draw_shares`."""


def draw_shares(rng: np.random.Generator, tasks: int, methods: int) -> np.ndarray:
    """Draw shares of the distance to the best that methods leave, each at least 0.

    The shape is (methods, 2 seeds, tasks, 3 trials). Some methods leave more than others.
    """
    size_for_method = np.exp(rng.normal(size=(methods, 1, 1, 1)))
    return np.abs(rng.normal(size=(methods, 2, tasks, 3))) * size_for_method


def compare_numbered_methods(shares):
    """Compare methods called m0, m1 and so on; return their table, and the margin of error."""
    names = [f"m{number}" for number in range(len(shares))]
    return compare_methods(shares, names)


@given(SHARES_OF_METHODS)
def test_methods_within_error_come_first(shares):
    """The table begins with the methods within error of the best one, which is itself one of them.

    Within error are those that leave at most the margin of error more.
    """
    table, _ = compare_numbered_methods(shares)
    assert table["left"].is_monotonic_increasing
    is_within_error = table["is_within_error"].tolist()
    true_before_false = sorted(is_within_error, reverse=True)
    assert is_within_error == true_before_false
    is_best_within_error = is_within_error[0]
    assert is_best_within_error


@given(SHARES_OF_METHODS)
def test_margin_is_of_the_last_trial(shares):
    """The margin of error is the least significant difference of shares after the last trial.

    There is a sample for each task but the first, which has no history: the mean over seeds.
    """
    _, margin = compare_numbered_methods(shares)

    means_over_seeds = independent_samples(shares, Resampling.TASKS, first_task=1)
    samples_after_last_trial = means_over_seeds[..., -1]  # (tasks, methods)
    expected = least_significant_difference(samples_after_last_trial)
    # A single method differs from nothing: both figures are NaN.
    assert np.array_equal(margin, expected, equal_nan=True)


@given(SHARES_OF_METHODS)
def test_methods_are_behind_the_best(shares):
    """`behind` is how much more a method leaves than the best one, which comes first."""
    table, _ = compare_numbered_methods(shares)
    share_of_best = table["left"][0]
    expected = table["left"] - share_of_best
    assert table["behind"].tolist() == pytest.approx(expected.tolist())


@given(SHARES_OF_METHODS)
def test_intervals_of_shares_are_not_negative(shares):
    """A share cannot be below 0, that of the best; so neither can the lower end of its interval."""
    table, _ = compare_numbered_methods(shares)
    lower_ends = table["lower"].dropna()  # there are none of fewer than five tasks
    assert (lower_ends >= 0).all()


@pytest.fixture
def three_methods():
    """A table that compares the methods a, b and c, and the margin of error.

    Their mean shares on three tasks are 0.2 of a and b, and 1.0 of c, which is far behind.
    """
    # The first of four tasks does not count, as it has no history: its shares may be anything.
    any_share = 9.0
    shares = np.array(
        [
            [any_share, 0.11, 0.19, 0.3],
            [any_share, 0.09, 0.21, 0.3],
            [any_share, 0.9, 1.0, 1.1],
        ]
    )
    shares_of_one_seed_and_trial = shares[:, None, :, None]  # (methods, 1, tasks, 1)
    table, margin = compare_methods(shares_of_one_seed_and_trial, ["a", "b", "c"])
    return table.assign(needs_history=True), margin


def test_margin_is_least_significant_difference(three_methods):
    """It is a quantile of Student's t times the standard error of a difference of two means.

    The error follows from residuals: shares less the effects of their method and of their task.
    """
    _, margin = three_methods
    # Of the three methods on the three tasks that count, which `three_methods` shows.
    residuals = np.array([[0.01, -0.01, 0], [-0.01, 0.01, 0], [0, 0, 0]])
    n_methods, n_tasks = residuals.shape
    degrees_of_freedom = (n_methods - 1) * (n_tasks - 1)
    mean_square = (residuals**2).sum() / degrees_of_freedom
    standard_error = np.sqrt(2 * mean_square / n_tasks)
    quantile = 2.1318  # one-sided, of 95 %, with four degrees of freedom
    assert margin == pytest.approx(quantile * standard_error, rel=1e-4)


def test_advice_names_methods_within_error(advice_with_fixed_best, three_methods):
    """The margin of error is 0.0174. The method b is behind a by less than that, and c by more."""
    table, margin = three_methods

    advice = replace(advice_with_fixed_best, methods=table, margin=margin)

    first_sentence, *_ = advice.sentences
    assert first_sentence.endswith("Up to 0.02 more may be chance: b is within error of it.")


def test_advice_tells_if_none_is_close(advice_with_fixed_best, three_methods):
    """Of methods a and c, c leaves 0.8 more, far above the margin of error, 0.0174."""
    table, margin = three_methods
    a_and_c = table[table["method"] != "b"]

    advice = replace(advice_with_fixed_best, methods=a_and_c, margin=margin)

    first_sentence, *_ = advice.sentences
    assert first_sentence.endswith("more may be chance: all other methods leave more.")


def test_no_share_is_below_that_of_the_best(monkeypatch):
    """Where a method finds a lower loss than the best known one, its loss is taken for the best.

    Otherwise its share left, (its loss - best) / (median - best), would be negative. Here all
    methods find lower ones, as the best known loss is made hardly lower than the median.
    """

    def claim_poor_best(benchmark: hbo.Benchmark, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return best known losses that are poor, (tasks,), and losses of random configurations.

        It replaces `best_and_random_losses` of the package, whose best known losses are lower.
        """
        values = SPACE.decode(SPACE.sample_unit(np.random.default_rng(0), count))
        random_losses = np.stack([task.evaluate_many(values) for task in benchmark.tasks], axis=1)
        hardly_below_median = np.median(random_losses, axis=0) - 1e-3
        return hardly_below_median, random_losses

    monkeypatch.setattr("hpobench_ordered.tuning.advice.best_and_random_losses", claim_poor_best)
    history = evaluate_tasks(loss_with_jumping_best, tasks=4, n=20)

    advice = get_advice(history, surrogate="nearest", seeds=[0])

    shares_after_last_and_first_trial = advice.methods[["left", "first"]]
    assert (shares_after_last_and_first_trial >= 0).all(axis=None)


def test_advice_does_not_depend_on_sign():
    """Losses to minimise, and their negative values to maximise, give the same advice."""
    options = {"surrogate": "nearest", "seeds": [0], "methods": ["random-search", "bo"]}
    history_to_minimise = evaluate_tasks(loss_with_fixed_best, tasks=3, n=20)
    history_to_maximise = evaluate_tasks(
        loss_with_fixed_best, tasks=3, n=20, direction=hbo.Direction.MAXIMIZE
    )

    minimised = get_advice(history_to_minimise, **options)
    maximised = get_advice(history_to_maximise, **options)

    assert minimised.methods.equals(maximised.methods)
    assert minimised.copied.tolist() == maximised.copied.tolist()


def test_few_tasks_have_no_interval():
    """An interval needs five tasks; of four the first does not count, which leaves three.

    The sentences leave it out, and the margin of error needs no interval.
    """
    history = evaluate_tasks(loss_with_fixed_best, tasks=4, n=20)

    advice = get_advice(history, surrogate="nearest", seeds=[0])

    ends_of_intervals = advice.methods[["lower", "upper"]]
    assert ends_of_intervals.isna().all(axis=None)
    assert "nan" not in " ".join(advice.sentences)
    assert advice.margin > 0


def test_failures_are_left_out():
    """Evaluations that failed have the objective NaN; a task of which all failed is left out.

    Of four tasks, three evaluations of the first failed, and all of the last.
    """
    first, second, third, last = evaluate_tasks(loss_with_fixed_best, tasks=4, n=20)
    objective = first.objective.copy()
    objective[3:6] = np.nan
    first_with_failures = replace(first, objective=objective)
    last_failed = replace(last, objective=np.full(20, np.nan))
    history = [first_with_failures, second, third, last_failed]

    advice = get_advice(history, surrogate="nearest", seeds=[0], methods=["random-search"])

    counts = [len(evaluations) for evaluations in advice.benchmark.recorded()]
    assert counts == [20 - 3, 20, 20]


HISTORY_OF_EQUAL_LOSSES = evaluate_tasks(lambda unit_values, _: np.zeros(len(unit_values)))
"""No configuration is better than another."""
HISTORY_OF_HUGE_LOSSES = evaluate_tasks(lambda unit_values, _: 1e308 * (unit_values[:, 0] - 0.5))
"""The squares of these losses are beyond the largest number that a float can hold."""


@pytest.mark.parametrize(
    ("history", "options", "error", "message"),
    [
        (
            evaluate_tasks(loss_with_fixed_best, tasks=2),
            {},
            EvaluationsError,
            "at least 3 tasks, but got 2: 'm0', 'm1'",
        ),
        ([], {}, EvaluationsError, "got 0: none"),
        (
            evaluate_tasks(loss_with_fixed_best, n=9),
            {},
            EvaluationsError,
            "at least 10 different configurations",
        ),
        (
            evaluate_tasks(loss_with_fixed_best),
            {"direction": "maximize"},
            EvaluationsError,
            "does not fit the task",
        ),
        (
            evaluate_tasks(loss_with_fixed_best),
            {"methods": ["bow"]},
            UnknownNameError,
            "did you mean 'bo'",
        ),
        (
            evaluate_tasks(loss_with_fixed_best),
            {"methods": "bo"},
            ExperimentError,
            r"methods must be given as a list",
        ),
        (
            evaluate_tasks(loss_with_fixed_best),
            {"trials": 0},
            ExperimentError,
            "at least 1 trial per task",
        ),
        (
            evaluate_tasks(loss_with_fixed_best),
            {"surrogate": "trees"},
            EvaluationsError,
            "unknown surrogate 'trees'",
        ),
        (
            HISTORY_OF_EQUAL_LOSSES,
            {"surrogate": "nearest"},
            EvaluationsError,
            "is better than another",
        ),
        (HISTORY_OF_HUGE_LOSSES, {}, EvaluationsError, "overflow"),
        (HISTORY_OF_HUGE_LOSSES, {"surrogate": "nearest"}, EvaluationsError, "overflow"),
    ],
)
def test_invalid_arguments_are_refused(history, options, error, message):
    """The history or one of the options is of no use, as the message says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that surrogates are poor, which is not tested here
        with pytest.raises(error, match=message):
            get_advice(history, **options)


def read_times_of_writing(folder):
    """Read when each file of runs in a store's folder was written, in nanoseconds, by its path."""
    return {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}


def test_stored_runs_are_continued(tmp_path):
    """Advice with a further seed keeps the stored runs of the first one."""
    history = evaluate_tasks(loss_with_fixed_best, tasks=3, n=12)
    options = {"surrogate": "nearest", "methods": ["random-search"], "folder": tmp_path}
    one_seed = get_advice(history, seeds=[0], **options)
    times_before = read_times_of_writing(tmp_path)

    two_seeds = get_advice(history, seeds=[0, 1], **options)

    # Files of the second seed were added; those of the first were not written anew.
    times_after = read_times_of_writing(tmp_path)
    assert times_before.items() <= times_after.items()
    assert len(two_seeds.results.cells) == 2 * len(one_seed.results.cells)


def test_failed_method_is_not_compared():
    """The method `Raises` fails in its first trial."""
    history = evaluate_tasks(loss_with_fixed_best, tasks=3, n=12)
    methods = ["random-search", Raises]

    with pytest.warns(FailedRunsWarning):
        advice = get_advice(history, methods=methods, surrogate="nearest", seeds=[0])

    assert advice.methods["method"].tolist() == ["random-search"]


def test_failed_methods_alone_are_refused():
    """The only method, `Raises`, fails in its first trial: a warning, and then the error."""
    history = evaluate_tasks(loss_with_fixed_best, tasks=3, n=12)
    expected_error = pytest.raises(ExperimentError, match="no run is finished")
    with pytest.warns(FailedRunsWarning), expected_error:
        get_advice(history, methods=[Raises], surrogate="nearest", seeds=[0])


@pytest.fixture
def advice_on_shared_configurations():
    """Advice on three tasks that were all evaluated on the same configurations.

    Only then a single random forest, with an output for each task, is the surrogate of all tasks.
    """
    values = np.random.default_rng(0).random((30, 3))
    history = []
    for task in range(3):
        losses = loss_with_fixed_best(values, task)
        rows_of_data = 10.0 * task  # the context
        history.append(make_evaluations(task, values, losses, rows=rows_of_data))
    return get_advice(history, methods=["simple-previous"], seeds=[0])


def test_tasks_may_be_on_the_same_configurations(advice_on_shared_configurations):
    """The best configuration is the same on all tasks, so that copying it leaves nearly nothing.

    It is not quite nothing, as the surrogate is not exact.
    """
    share_left_on_tasks = advice_on_shared_configurations.copied  # 0 is the best, 1 the median
    assert np.abs(share_left_on_tasks).max() < 0.2


def test_history_methods_alone_are_not_compared(advice_on_shared_configurations):
    """The sentence on copying compares it with the best method that needs no history.

    Here the only method, simple-previous, needs one, so that there is nothing to compare with.
    """
    _, sentence_on_copying = advice_on_shared_configurations.sentences
    assert "without any history" not in sentence_on_copying


def test_tasks_keep_their_contexts(advice_on_shared_configurations):
    tasks = advice_on_shared_configurations.benchmark.tasks
    assert [task.context for task in tasks] == [{"rows": 0.0}, {"rows": 10.0}, {"rows": 20.0}]
