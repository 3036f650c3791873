"""Advice from earlier tasks: streams of which it is known what the advice should be."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from bad_methods import Raises
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.adapters.advice import LOWEST_CORRELATION, SAMPLE_SIZE, compare_methods
from hpobench_ordered.analysis.samples import Resampling, independent_samples
from hpobench_ordered.analysis.significance import least_significant_difference
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    FailedRunsWarning,
    PoorSurrogateWarning,
    UnknownNameError,
)

SPACE = hbo.SearchSpace([hbo.Parameter.number(name, 0.0, 1.0) for name in "abc"])
METHODS = ("random-search", "bo", "simple-previous")


def stream(
    loss_of: Callable[[np.ndarray, int], np.ndarray],
    *,
    tasks: int = 5,
    n: int = 60,
    sign: float = 1.0,
) -> list[hbo.Evaluations]:
    """Evaluations of tasks, each of its own configurations."""
    history = []
    for task in range(tasks):
        u = np.random.default_rng(task).random((n, 3))
        direction = "minimize" if sign > 0 else "maximize"
        history.append(evaluations(task, u, sign * loss_of(u, task), direction))
    return history


def evaluations(task, values, objective, direction="minimize", **context):
    settings = {"space": SPACE, "direction": direction}
    return hbo.Evaluations(f"m{task}", context, values, objective, **settings)


def settled(u: np.ndarray, task: int) -> np.ndarray:
    """The best configuration stays, and most others are equally bad."""
    return -np.exp(-((u - 0.7) ** 2).sum(axis=1) / 0.1)


def jumping(u: np.ndarray, task: int) -> np.ndarray:
    """What is best on a task is worst on the next one."""
    return ((u - task % 2) ** 2).sum(axis=1)


def noise(u: np.ndarray, task: int) -> np.ndarray:
    return np.random.default_rng(task + 99).normal(size=len(u))


def get_advice(history: list[hbo.Evaluations], **options) -> hbo.Advice:
    chosen = {"methods": METHODS, "trials": 5, "seeds": range(3), "progress": False} | options
    direction = history[0].direction if history else "minimize"
    return hbo.advise(history, **{"space": SPACE, "direction": direction} | chosen)


@pytest.fixture(scope="module")
def settled_advice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return get_advice(stream(settled))


def test_copying_wins_where_the_best_stays(settled_advice):
    assert settled_advice.best == "simple-previous"
    assert "Copying wins" in settled_advice.sentences[-1]
    assert np.nanmean(settled_advice.copied) < 0.3
    assert settled_advice.sentences[0].startswith("After 5 trials simple-previous leaves least")


@pytest.mark.slow
def test_copying_is_not_enough_where_the_best_jumps():
    advice = get_advice(stream(jumping))
    assert "Copying is not enough" in advice.sentences[-1]
    assert np.nanmean(advice.copied) > 1  # worse than most
    assert advice.best == "bo"
    assert (advice.warning, len(advice.sentences)) == ("", 2)


@pytest.mark.slow
def test_poor_surrogate_is_warned_of():
    with pytest.warns(PoorSurrogateWarning, match="this advice is unreliable"):
        poor = get_advice(stream(noise), methods=["random-search"], seeds=[0])
    assert poor.sentences[0] == poor.warning
    assert len(poor.poor_tasks) == 5
    assert all(task.spearman < LOWEST_CORRELATION for task in poor.quality)


def test_shares_follow_from_the_runs(settled_advice):
    """The shares, by hand from the values of the trials."""
    frame = settled_advice.results.frame()
    assert set(frame["surrogate"]) == {"forest"}
    x = SPACE.decode(SPACE.sample_unit(np.random.default_rng(0), SAMPLE_SIZE))
    tasks = settled_advice.benchmark.tasks
    medians = {t.name: np.median(t.evaluate_many(x)) for t in tasks}
    best = {t.name: t.best_value for t in tasks}
    lowest = frame.groupby(["method", "task_name", "seed"])["value"].min().reset_index()
    lowest = lowest[lowest["task_name"] != "m0"]
    b, m = lowest["task_name"].map(best), lowest["task_name"].map(medians)
    lowest["left"] = (lowest["value"] - b) / (m - b)
    expected = lowest.groupby("method")["left"].mean()
    table = settled_advice.methods.set_index("method")
    assert table["left"].to_dict() == pytest.approx(expected.to_dict(), rel=0.02)
    assert table["left"].is_monotonic_increasing
    assert (table["first"] >= table["left"]).all()
    assert table.index[table["needs_history"]].tolist() == ["simple-previous"]


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 6))
def test_within_error_means_within_margin(entropy, tasks, methods):
    """Also where methods' own differences from the best vary more or less than the others'."""
    rng = np.random.default_rng(entropy)
    spread = np.exp(rng.normal(size=(methods, 1, 1, 1)))
    left = np.abs(rng.normal(size=(methods, 2, tasks, 3))) * spread
    table, margin = compare_methods(left, [f"m{a}" for a in range(methods)])
    within = table["is_within_error"].tolist()
    assert table["left"].is_monotonic_increasing and within == sorted(within, reverse=True)
    last = independent_samples(left, Resampling.TASKS, first_task=1)[..., -1]
    assert np.array_equal(margin, least_significant_difference(last), equal_nan=True)
    assert within[0] and (table["lower"].dropna() >= 0).all()
    assert table["behind"].tolist() == pytest.approx((table["left"] - table["left"][0]).tolist())


@pytest.fixture
def three_methods():
    """A comparison where b is just behind a, and c far behind; and its margin.

    By hand: residuals of +-.01 and 0, f = 4, s^2 = .0004 / 4, t = 2.132 and n = 3.
    """
    shares = np.array([0.1, 0.2, 0.3])
    wave = 0.01 * np.array([1.0, -1.0, 0.0])
    left = np.array([shares + wave, shares - wave, shares + 0.8])  # (methods, tasks)
    left = np.insert(left, 0, 9.0, axis=1)  # the first task, without a history, does not count
    table, margin = compare_methods(left[:, None, :, None], ["a", "b", "c"])
    return table.assign(needs_history=True), margin


def test_margin_is_least_significant_difference(three_methods):
    _, margin = three_methods
    assert margin == pytest.approx(2.1318 * np.sqrt(2 * 1e-4 / 3), rel=1e-4)


def test_advice_names_methods_within_error(settled_advice, three_methods):
    table, margin = three_methods
    sentence, _ = replace(settled_advice, methods=table, margin=margin).sentences
    assert sentence.endswith("Up to 0.02 more may be chance: b is within error of it.")


def test_advice_tells_if_none_is_close(settled_advice, three_methods):
    table, margin = three_methods
    a_and_c = table.iloc[[0, 2]]
    sentence, _ = replace(settled_advice, methods=a_and_c, margin=margin).sentences
    assert sentence.endswith("more may be chance: all other methods leave more.")


def test_no_share_is_below_that_of_the_best(monkeypatch):
    """A method may find better than the best known: then that is the best."""

    def poor_scale(benchmark: hbo.Benchmark, count: int) -> tuple[np.ndarray, np.ndarray]:
        u = SPACE.sample_unit(np.random.default_rng(0), count)
        losses = np.stack([t.evaluate_many(SPACE.decode(u)) for t in benchmark.tasks], axis=1)
        return np.median(losses, axis=0) - 1e-3, losses

    monkeypatch.setattr("hpobench_ordered.adapters.advice.best_and_random_losses", poor_scale)
    advice = get_advice(stream(jumping, tasks=4, n=20), surrogate="nearest", seeds=[0])
    assert (advice.methods[["left", "first"]] >= 0).all(axis=None)


def test_advice_does_not_depend_on_sign():
    options = {"surrogate": "nearest", "seeds": [0], "methods": ["random-search", "bo"]}
    minimised = get_advice(stream(settled, tasks=3, n=20), **options)
    maximised = get_advice(stream(settled, tasks=3, n=20, sign=-1.0), **options)
    assert minimised.methods.equals(maximised.methods)
    assert minimised.copied.tolist() == maximised.copied.tolist()


def test_few_tasks_have_no_interval():
    advice = get_advice(stream(settled, tasks=4, n=20), surrogate="nearest", seeds=[0])
    assert advice.methods[["lower", "upper"]].isna().all(axis=None)
    assert advice.margin > 0
    assert "nan" not in " ".join(advice.sentences)


def test_failures_are_left_out():
    history = stream(settled, tasks=4, n=20)
    failed = np.where(np.arange(20) // 3 == 1, np.nan, history[0].objective)
    history[0] = replace(history[0], objective=failed)
    history[3] = replace(history[3], objective=np.full(20, np.nan))
    found = get_advice(history, surrogate="nearest", seeds=[0], methods=["random-search"])
    assert [len(e) for e in found.benchmark.recorded()] == [17, 20, 20]


CONSTANT = stream(lambda u, _: np.zeros(len(u)))
EXTREME = stream(lambda u, _: 1e308 * (u[:, 0] - 0.5))  # the squares overflow


@pytest.mark.parametrize(
    ("history", "options", "error", "said"),
    [
        (stream(settled, tasks=2), {}, EvaluationsError, "at least 3 tasks, but got 2: 'm0', 'm1'"),
        ([], {}, EvaluationsError, "got 0: none"),
        (stream(settled, n=9), {}, EvaluationsError, "at least 10 different configurations"),
        (stream(settled), {"direction": "maximize"}, EvaluationsError, "does not fit the task"),
        (stream(settled), {"methods": ["bow"]}, UnknownNameError, "did you mean 'bo'"),
        (stream(settled), {"methods": "bo"}, ExperimentError, r"methods must be given as a list"),
        (stream(settled), {"trials": 0}, ExperimentError, "at least 1 trial per task"),
        (stream(settled), {"surrogate": "trees"}, EvaluationsError, "unknown surrogate 'trees'"),
        (CONSTANT, {"surrogate": "nearest"}, EvaluationsError, "is better than another"),
        (EXTREME, {}, EvaluationsError, "overflow"),
        (EXTREME, {"surrogate": "nearest"}, EvaluationsError, "overflow"),
    ],
)
def test_invalid_arguments_are_refused(history, options, error, said):
    with warnings.catch_warnings(), pytest.raises(error, match=said):
        warnings.simplefilter("ignore")
        get_advice(history, **options)


def test_stored_runs_are_continued(tmp_path):
    history = stream(settled, tasks=3, n=12)
    options = {"surrogate": "nearest", "methods": ["random-search"], "folder": tmp_path}
    first = get_advice(history, seeds=[0], **options)
    files = {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").iterdir()}
    again = get_advice(history, seeds=[0, 1], **options)
    assert files.items() <= {f: f.stat().st_mtime_ns for f in (tmp_path / "runs").iterdir()}.items()
    assert len(again.results.cells) == 2 * len(first.results.cells)


def test_failed_method_is_not_compared():
    history, chosen = stream(settled, tasks=3, n=12), {"surrogate": "nearest", "seeds": [0]}
    with pytest.warns(FailedRunsWarning):
        advice = get_advice(history, methods=["random-search", Raises], **chosen)
    assert advice.methods["method"].tolist() == ["random-search"]
    with pytest.warns(FailedRunsWarning), pytest.raises(ExperimentError, match="no run is finish"):
        get_advice(history, methods=[Raises], **chosen)


def test_tasks_may_be_on_the_same_configurations_and_have_contexts():
    """Then one forest stands for all of them."""
    u = np.random.default_rng(0).random((30, 3))
    history = [evaluations(t, u, settled(u, t), rows=10.0 * t) for t in range(3)]
    advice = get_advice(history, methods=["simple-previous"], seeds=[0])
    assert np.abs(advice.copied).max() < 0.2
    assert [task.context for task in advice.benchmark.tasks] == [e.context for e in history]
    assert "without any history" not in advice.sentences[-1]
