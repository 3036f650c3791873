"""The search with scikit-learn's interface, whose history remembers earlier searches."""

import math
import signal
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import optuna
import pandas as pd
import pytest
from ConfigSpace import ConfigurationSpace
from joblib import parallel_config
from optuna.storages import InMemoryStorage
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, RandomizedSearchCV
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import hpobench_ordered as hbo
from hpobench_ordered.errors import (
    ContinuedSearchWarning,
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    InvalidSpaceError,
    StoreError,
)
from hpobench_ordered.tuning.optimiser import Optimiser
from hpobench_ordered.tuning.sklearn._space import read_parameter, read_space

optuna.logging.set_verbosity(optuna.logging.ERROR)

X, Y = make_classification(n_samples=60, n_features=5, flip_y=0.2, random_state=0)
"""Data that all searches are fitted to."""
SPACE = {"C": (1e-4, 1e3, "log"), "class_weight": [None, "balanced"]}
"""The search space of logistic regression."""


def make_search(history=None, task=None, *, estimator=None, space=SPACE, **options):
    """Make a search, by default of four logistic regressions on two folds."""
    defaults = {"n_iter": 4, "cv": 2, "random_state": 0}
    return hbo.OrderedSearchCV(
        estimator or LogisticRegression(), space, history=history, task=task, **(defaults | options)
    )


def read_scores_of_folds(search):
    """Read the test scores of all candidates, shape (candidates, folds)."""
    columns = [f"split{fold}_test_score" for fold in range(search.n_splits_)]
    return np.stack([search.cv_results_[column] for column in columns], axis=1)


def assert_same_candidates(first, second):
    """Check that two searches had the same candidates, with the same scores on all folds."""
    assert first.cv_results_["params"] == second.cv_results_["params"]
    np.testing.assert_array_equal(read_scores_of_folds(first), read_scores_of_folds(second))
    assert first.best_params_ == second.best_params_


class CountingClassifier(ClassifierMixin, BaseEstimator):
    """Scores best with `level` near 0.7; counts its fits, and fails below `fails_below`."""

    fit_count = 0

    def __init__(self, level=0.5, fails_below=0.0):
        self.level = level
        self.fails_below = fails_below

    def fit(self, X, y):
        """Count the fit of this class, and fail if the level is too low."""
        type(self).fit_count += 1
        if self.level < self.fails_below:
            raise ValueError(f"{self.level} is too low")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return -((self.level - 0.7) ** 2)


@pytest.fixture
def counter(monkeypatch):
    """The class `CountingClassifier`, with no fits yet."""
    monkeypatch.setattr(CountingClassifier, "fit_count", 0)
    return CountingClassifier


LEVELS = {"level": (0.0, 1.0)}
"""The search space of `CountingClassifier`."""


def score_high_level(model, X, y):
    return model.level


def score_low_level(model, X, y):
    return -model.level


OPPOSED_METRICS = {"high level": score_high_level, "low level": score_low_level}
"""Scorers of `CountingClassifier`: what is best by one is worst by the other."""


# scikit-learn's own checks and conventions


@pytest.mark.slow
@parametrize_with_checks(
    [make_search(space={"C": (0.1, 10.0, "log")}, n_iter=2)],
)
@pytest.mark.filterwarnings("default")
def test_passes_checks_of_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "options",
    [
        {"return_train_score": True},
        {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc"},
        {"scoring": {"a": "accuracy", "b": "neg_log_loss"}, "refit": False},
    ],
    ids=["train scores", "two metrics", "no refit"],
)
def test_results_are_like_those_of_sklearn(options):
    """A search has the columns, types and attributes of scikit-learn's, on the same space."""
    search = make_search(**options).fit(X, Y)
    same_space = {"C": stats.loguniform(1e-4, 1e3), "class_weight": [None, "balanced"]}
    search_of_sklearn = RandomizedSearchCV(
        LogisticRegression(), same_space, n_iter=4, cv=2, random_state=0, **options
    ).fit(X, Y)

    assert list(search.cv_results_) == list(search_of_sklearn.cv_results_)
    for name, expected in search_of_sklearn.cv_results_.items():
        column = search.cv_results_[name]
        assert type(column) is type(expected)
        assert getattr(column, "dtype", None) == getattr(expected, "dtype", None)

    arguments_of_sklearn = {"param_distributions"}
    own_arguments = {"space", "history", "task", "method", "batch_size"}
    common_attributes = vars(search).keys() - own_arguments
    assert common_attributes == vars(search_of_sklearn).keys() - arguments_of_sklearn


def test_scores_are_those_of_the_candidates():
    """Each score is that of scikit-learn's own search with this candidate alone."""
    search = make_search(scoring="roc_auc").fit(X, Y)
    candidates = search.cv_results_["params"]
    scores = search.cv_results_["mean_test_score"]

    for params, score in zip(candidates, scores, strict=True):
        only_candidate = {name: [value] for name, value in params.items()}
        search_of_sklearn = RandomizedSearchCV(
            LogisticRegression(), only_candidate, n_iter=1, cv=2, scoring="roc_auc"
        )
        assert search_of_sklearn.fit(X, Y).best_score_ == score
    assert search.best_score_ == scores.max()


def test_pipeline_is_tuned():
    """The steps and their parameters are named as in scikit-learn, with two underscores."""
    pipeline = Pipeline([("scaler", StandardScaler()), ("model", LogisticRegression())])
    space = {
        "model__C": (1e-3, 1e3, "log"),
        "scaler": [StandardScaler(), "passthrough"],
        "model__fit_intercept": True,
    }
    search = make_search(estimator=pipeline, space=space).fit(X, Y)
    assert search.best_params_["model__C"] == search.best_estimator_["model"].C
    scalers = {str(params["scaler"]) for params in search.cv_results_["params"]}
    assert scalers == {"StandardScaler()", "passthrough"}


def test_refit_names_what_is_maximised(counter):
    """Levels are from 0 to 1; one metric is best at the highest level, the other at the lowest."""
    options = {"estimator": counter(), "space": LEVELS, "scoring": OPPOSED_METRICS, "n_iter": 12}
    highest = make_search(refit="high level", **options).fit(X, Y)
    lowest = make_search(refit="low level", **options).fit(X, Y)
    assert highest.best_params_["level"] > 0.99
    assert lowest.best_params_["level"] < 0.01


def test_first_metric_is_maximised_without_refit(counter):
    """Levels are from 0 to 1; the first metric is best at the highest level."""
    search = make_search(
        estimator=counter(), space=LEVELS, scoring=OPPOSED_METRICS, refit=False, n_iter=12
    ).fit(X, Y)
    scores_by_first_metric = search.cv_results_["mean_test_high level"]
    assert not hasattr(search, "best_params_")  # without a refit there is no best candidate
    assert scores_by_first_metric.max() > 0.99


def test_sample_weights_reach_the_model():
    """Only points of class 1 have weight, so that the model predicts it for all."""
    weights = np.where(Y == 1, 1.0, 0.0)  # so that 1 is the most frequent class
    model = DummyClassifier(strategy="most_frequent")
    space = {"random_state": (0, 5)}  # which changes nothing; a search needs something to tune
    search = make_search(estimator=model, space=space).fit(X, Y, sample_weight=weights)
    assert (search.predict(X) == 1).all()


def test_folds_are_the_same_for_all_candidates():
    """Only other folds could change scores, as all candidates act alike.

    They differ in the random state alone, which a dummy classifier does not use.
    """
    new_folds_at_every_split = KFold(3, shuffle=True)  # as there is no seed
    search = make_search(
        estimator=DummyClassifier(), space={"random_state": (0, 50)}, cv=new_folds_at_every_split
    ).fit(X, Y)

    scores = read_scores_of_folds(search)  # (candidates, folds)
    scores_of_first = scores[0]
    assert (scores == scores_of_first).all()


def test_small_space_ends_the_search_as_in_sklearn():
    """Of two configurations each is evaluated once, although three are asked for."""
    space = {"class_weight": [None, "balanced"]}
    search = make_search(space=space, n_iter=3)
    of_sklearn = RandomizedSearchCV(LogisticRegression(), space, n_iter=3, cv=2, random_state=0)
    with pytest.warns(UserWarning) as warnings_of_sklearn:
        of_sklearn.fit(X, Y)
    with pytest.warns(UserWarning) as own_warnings:
        search.fit(X, Y)

    message = str(warnings_of_sklearn[0].message)
    assert [str(warning.message) for warning in own_warnings] == [message]
    assert own_warnings[0].filename == __file__  # the line that called `fit`
    weights = [params["class_weight"] for params in search.cv_results_["params"]]
    assert len(weights) == 2
    assert set(weights) == {None, "balanced"}


def test_generator_of_folds_is_read_once():
    """The folds of a generator are those of its splitter."""
    with_splitter = make_search(cv=KFold(3)).fit(X, Y)
    with_generator = make_search(cv=KFold(3).split(X)).fit(X, Y)
    assert_same_candidates(with_splitter, with_generator)


def test_verbose_search_prints_one_line(capsys):
    """The line is that of scikit-learn's search, although candidates are evaluated one by one."""
    make_search(verbose=1).fit(X, Y)
    own_line = capsys.readouterr().out
    RandomizedSearchCV(
        LogisticRegression(), {"C": stats.loguniform(1, 9)}, n_iter=4, cv=2, verbose=1
    ).fit(X, Y)
    assert own_line == capsys.readouterr().out
    assert own_line == "Fitting 2 folds for each of 4 candidates, totalling 8 fits\n"


class RecordingCallback:
    """A callback of scikit-learn that records what begins and ends, and its size."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.events.append("teardown")


@pytest.mark.skipif(not hasattr(BaseSearchCV, "set_callbacks"), reason="scikit-learn before 1.9")
@pytest.mark.parametrize("batch_size", [1, 3])
def test_callbacks_see_what_those_of_sklearn_see(batch_size):
    """The events of four candidates on two folds, also if they are evaluated one by one."""
    search_of_sklearn = RandomizedSearchCV(
        LogisticRegression(), {"C": stats.loguniform(1, 9)}, n_iter=4, cv=2
    )
    events = []
    for search in (make_search(batch_size=batch_size), search_of_sklearn):
        callback = RecordingCallback()
        search.set_callbacks(callback).fit(X, Y)
        events.append(callback.events)
    own_events, events_of_sklearn = events
    assert own_events == events_of_sklearn


# failures


def test_failing_fit_is_raised_if_asked(counter):
    """With `error_score="raise"`, the error of a failing fit ends the search."""
    search = make_search(estimator=counter(fails_below=1.0), space=LEVELS, error_score="raise")
    with pytest.raises(ValueError, match="is too low"):
        search.fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
@pytest.mark.parametrize("task", [None, "May"])
def test_failed_candidates_do_not_end_the_search(counter, task):
    """Of eight candidates those fail whose level is below 0.5; their scores are NaN.

    The search is recorded if there is a task.
    """
    history = None if task is None else InMemoryStorage()
    search = make_search(
        history, task, estimator=counter(fails_below=0.5), space=LEVELS, n_iter=8
    ).fit(X, Y)

    has_failed = search.cv_results_["param_level"].astype(float) < 0.5
    scores = search.cv_results_["mean_test_score"]
    ranks = search.cv_results_["rank_test_score"]
    assert 0 < has_failed.sum() < 8  # some of them, but not all
    np.testing.assert_array_equal(np.isnan(scores), has_failed)
    assert ranks[has_failed].min() > 1  # none of them is the best


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_numeric_error_score_is_a_score(counter):
    """Candidates fail whose level, from 0 to 1, is below 0.5; all of them have the error score."""
    search = make_search(
        estimator=counter(fails_below=0.5), space=LEVELS, n_iter=8, error_score=-5
    ).fit(X, Y)
    has_failed = search.cv_results_["param_level"].astype(float) < 0.5
    has_error_score = search.cv_results_["mean_test_score"] == -5
    np.testing.assert_array_equal(has_error_score, has_failed)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_error_if_all_candidates_fail(counter):
    """Levels are from 0 to 1, so that all fail.

    The search ends after the first candidate, which is fitted on two folds.
    """
    search = make_search(estimator=counter(fails_below=1.0), space=LEVELS)
    with pytest.raises(ValueError, match=r"All the 2 fits failed(.|\n)*is too low"):
        search.fit(X, Y)


# the record


def test_next_task_starts_from_the_best():
    """A search in June, on other data, begins with the best candidate of the search in May."""
    storage = InMemoryStorage()
    may = make_search(storage, "May", n_iter=8).fit(X, Y)
    june = make_search(storage, "June", n_iter=2).fit(X[:50], Y[:50])
    first_candidate = june.cv_results_["params"][0]
    assert first_candidate == may.best_params_


def test_second_fit_evaluates_nothing(counter, tmp_path):
    """A repeated search evaluates no new candidate if all four are recorded.

    The seed is recorded, too, so that `random_state=None` is no other seed.
    """
    options = {"estimator": counter(), "space": LEVELS, "random_state": None}
    first = make_search(tmp_path / "tuning.db", "May", **options).fit(X, Y)

    counter.fit_count = 0
    with pytest.warns(ContinuedSearchWarning, match="has 4 evaluations already, so no candidate"):
        second = make_search(tmp_path / "tuning.db", "May", **options).fit(X, Y)
    assert_same_candidates(first, second)
    # Fits on the two folds of the best candidate, and its refit.
    assert counter.fit_count == 2 + 1


def test_larger_n_iter_goes_on(counter):
    """A recorded search of three candidates that is repeated with five evaluates only two."""
    storage = InMemoryStorage()
    options = {"estimator": counter(), "space": LEVELS}
    make_search(storage, "May", n_iter=3, **options).fit(X, Y)

    counter.fit_count = 0
    with pytest.warns(ContinuedSearchWarning, match="goes on with the other 2 of 5"):
        longer = make_search(storage, "May", n_iter=5, **options).fit(X, Y)
    assert counter.fit_count == 2 * 2 + 1  # two new candidates on two folds, and the refit
    undisturbed = make_search(n_iter=5, **options).fit(X, Y)
    assert_same_candidates(longer, undisturbed)


def test_results_survive_the_record(tmp_path):
    """A search that reads its evaluations from the record has the same results as the first one."""
    options = {"scoring": ["accuracy", "roc_auc"], "refit": "roc_auc", "return_train_score": True}
    first = make_search(tmp_path / "tuning.db", "May", **options).fit(X, Y)
    with pytest.warns(ContinuedSearchWarning):
        second = make_search(tmp_path / "tuning.db", "May", **options).fit(X, Y)
    assert list(first.cv_results_) == list(second.cv_results_)
    for name, column in first.cv_results_.items():
        np.testing.assert_array_equal(second.cv_results_[name], column)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"random_state": 1}, "seed was 0, now 1"),
        ({"method": "random-search"}, "method was 'bo', now 'random-search'"),
        ({"space": {"C": (1e-4, 1e4, "log")}}, "the search space differs"),
        ({"estimator": LogisticRegression(tol=1e-3)}, "estimator was .* now .*tol=0.001"),
        ({"scoring": "roc_auc"}, "scoring was 'None', now \"'roc_auc'\""),
        ({"cv": 3}, "other folds"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_task_with_other_settings_is_refused(changed, message):
    """The task was begun with another value of one setting."""
    options = {"history": InMemoryStorage(), "task": "May", "method": "bo", "n_iter": 2}
    make_search(**options).fit(X, Y)
    with pytest.raises(StoreError, match=f"begun with other settings: .*{message}"):
        make_search(**(options | changed)).fit(X, Y)


def test_earlier_task_with_another_metric_is_noticed():
    storage = InMemoryStorage()
    make_search(storage, "May").fit(X, Y)
    make_search(storage, "June").fit(X, Y)  # without a warning
    july = make_search(storage, "July", scoring="roc_auc")
    with pytest.warns(HistoryWarning, match="metric than 'roc_auc': 'May' by None, 'June' by None"):
        july.fit(X, Y)


def test_task_with_other_data_is_refused():
    """Scores on other data, here without the last point, cannot be compared."""
    search = make_search(InMemoryStorage(), "May").fit(X, Y)
    with pytest.raises(StoreError, match="other X, y or parameters of fit"):
        search.fit(X[:-1], Y[:-1])


@pytest.mark.parametrize(
    "make_task",
    [
        lambda storage: optuna.create_study(
            study_name="May", storage=storage, direction="maximize"
        ).optimize(lambda trial: trial.suggest_float("C", 0.1, 1), n_trials=1),
        lambda storage: hbo.optimiser(
            "bo", space={"C": (0.1, 1.0)}, direction="maximize", history=storage, task="May"
        ).tell({"C": 0.5}, 0.5),
    ],
    ids=["study of Optuna", "optimiser"],
)
def test_task_of_another_kind_is_not_continued(make_task):
    """It lacks the scores of single folds, which a search would have recorded."""
    storage = InMemoryStorage()
    make_task(storage)
    with pytest.raises(StoreError, match=r"tuned by another program|begun with other settings"):
        make_search(storage, "May").fit(X, Y)


# interrupted searches


@pytest.mark.parametrize("n_calls_before", [1, 4])
@pytest.mark.parametrize("method_name", ["ask", "tell_with_results"])
def test_interrupted_batches_end_like_undisturbed_ones(
    counter, monkeypatch, method_name, n_calls_before
):
    """A search of eight candidates, in batches of three, is killed when it asks or tells."""
    storage = InMemoryStorage()
    options = {"estimator": counter(), "space": LEVELS, "n_iter": 8, "batch_size": 3}
    undisturbed = make_search(**options).fit(X, Y)
    original = getattr(Optimiser, method_name)
    calls = []

    def kill_later(self, *args):
        if len(calls) == n_calls_before:
            raise KeyboardInterrupt
        calls.append(args)
        return original(self, *args)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Optimiser, method_name, kill_later)
        make_search(storage, "May", **options).fit(X, Y)

    with warnings.catch_warnings(action="ignore", category=ContinuedSearchWarning):
        continued = make_search(storage, "May", **options).fit(X, Y)
    assert_same_candidates(continued, undisturbed)


SCRIPT_OF_TWO_SEARCHES = """
import os, signal, sys
import pandas as pd
import hpobench_ordered as hbo
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

class Killing(LogisticRegression):
    def fit(self, X, y):
        with open("fits.txt", "a+") as file:
            file.write("x")
            if file.tell() == {killed_at}:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)

X, y = make_classification(n_samples=60, n_features=5, flip_y=0.2, random_state=0)
X = pd.DataFrame(X, columns=list("abcde"))
space = {{"C": (1e-4, 1e3, "log"), "class_weight": [None, "balanced"]}}
for task, n in (("May", 4), ("June", 5)):
    hbo.OrderedSearchCV(
        Killing(), space, history="tuning.db", task=task, n_iter=n, cv=2, random_state=0
    ).fit(X[: 10 * n], y[: 10 * n])
"""
NEVER = 0  # the fits are counted from 1


def search_in_process(folder, killed_at):
    """Search in May, then in June, in a process that may kill itself; return the exit code."""
    script = SCRIPT_OF_TWO_SEARCHES.format(killed_at=killed_at)
    return subprocess.run([sys.executable, "-c", script], check=False, cwd=folder).returncode


def read_records(storage):
    """Read task, configuration and score of each evaluation in a storage, in their order.

    Configurations are texts, in which NaN equals itself.
    """
    records = []
    for task in optuna.get_all_study_names(storage):
        study = optuna.load_study(study_name=task, storage=storage)
        records += [(task, repr(trial.params), trial.value) for trial in study.trials]
    return records


@pytest.mark.long
def test_killed_search_ends_like_an_undisturbed_one(tmp_path):
    """Processes are killed in fits 2, 6, 13 and 17; a killed candidate is fitted again.

    Fits are counted over all processes. An undisturbed one needs twenty: each of four candidates in
    May and of five in June is fitted on two folds, and the best one of each month once more.
    """
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    assert search_in_process(undisturbed, NEVER) == 0

    killed = tmp_path / "killed"
    killed.mkdir()
    for killed_at in (2, 6, 13, 17):
        assert search_in_process(killed, killed_at) == -signal.SIGKILL
    assert search_in_process(killed, NEVER) == 0

    records = read_records(f"sqlite:///{killed}/tuning.db")
    assert len(records) == 4 + 5  # candidates in May and in June
    assert records == read_records(f"sqlite:///{undisturbed}/tuning.db")


def test_n_jobs_does_not_change_the_search():
    """One thread or two fit the candidates of a batch; processes would take long to start."""
    options = {"task": "May", "n_iter": 7, "batch_size": 3}
    storage_of_one, storage_of_two = InMemoryStorage(), InMemoryStorage()
    with_one_job = make_search(storage_of_one, n_jobs=1, **options).fit(X, Y)
    with parallel_config(backend="threading"):
        with_two_jobs = make_search(storage_of_two, n_jobs=2, **options).fit(X, Y)
    assert_same_candidates(with_one_job, with_two_jobs)
    assert read_records(storage_of_one) == read_records(storage_of_two)


@pytest.fixture
def calls_of_optimiser(monkeypatch):
    """A list that gets "ask" or "tell" for each call of such a method of any optimiser."""
    calls = []
    ask, tell = Optimiser.ask, Optimiser.tell_with_results

    def record_ask(self):
        calls.append("ask")
        return ask(self)

    def record_tell(self, *args):
        calls.append("tell")
        return tell(self, *args)

    monkeypatch.setattr(Optimiser, "ask", record_ask)
    monkeypatch.setattr(Optimiser, "tell_with_results", record_tell)
    return calls


def test_batch_size_counts_suggestions_at_once(calls_of_optimiser):
    """Three candidates are suggested before the first of them has a score, then the other two."""
    make_search(n_iter=5, batch_size=3).fit(X, Y)
    assert calls_of_optimiser == ["ask"] * 3 + ["tell"] * 3 + ["ask"] * 2 + ["tell"] * 2


# histories of other origin


TABLE = pd.DataFrame({"task": "May", "C": [0.01, 0.5, 20.0], "objective": [0.6, 0.8, 0.7]})
"""Evaluations of logistic regressions, of which C = 0.5 is the best."""
SPACE_OF_C = {"C": (1e-4, 1e3, "log")}


def test_table_is_history_without_a_task():
    """The only candidate of the search is the best of the table."""
    search = make_search(TABLE, space=SPACE_OF_C, n_iter=1).fit(X, Y)
    assert search.best_params_ == {"C": 0.5}


def test_choices_of_several_types_are_history(tmp_path):
    """Choices may be a text, a number, None, or an object that is recorded as its text."""
    space = {
        "model__C": (0.1, 10.0),
        "model__class_weight": [None, "balanced"],
        "model__random_state": [1, None, 3],
        "scaler": [StandardScaler(), "passthrough"],
    }
    pipeline = Pipeline([("scaler", StandardScaler()), ("model", LogisticRegression())])
    options = {"space": space, "estimator": pipeline, "n_iter": 6}
    may = make_search(tmp_path / "tuning.db", "May", **options).fit(X, Y)
    june = make_search(tmp_path / "tuning.db", "June", **options).fit(X, Y)
    first_candidate = june.cv_results_["params"][0]
    assert str(first_candidate) == str(may.best_params_)


# arguments


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"history": "new.db"}, ExperimentError, "needs the name of this task"),
        ({"task": "May"}, ExperimentError, "recorded in an Optuna storage"),
        (
            {"history": TABLE, "task": "May"},
            ExperimentError,
            "`record_history` puts what `read_history` reads into a storage",
        ),
        (
            {"history": "new.db", "task": "May", "cv": KFold(shuffle=True)},
            ExperimentError,
            "splits otherwise each time.*random_state",
        ),
        ({"n_iter": 0}, ValueError, "'n_iter' parameter of OrderedSearchCV must be an int"),
        (
            {"space": {"C": stats.multivariate_normal()}},
            InvalidSpaceError,
            "only those of one number .* got multivariate_normal",
        ),
        ({"space": {"C": (0.1, 1.0, "lg")}}, InvalidSpaceError, "a range .* but got"),
        ({"space": [{"C": (0.1, 1.0)}, 3]}, EvaluationsError, "must have dicts .* got int"),
        (
            {"space": [{"C": (0.1, 1.0)}, {"D": (0.0, 1.0)}]},
            ValueError,
            "Invalid parameter 'D'",
        ),
        ({"space": {"D": (0.0, 1.0)}}, ValueError, "Invalid parameter 'D'"),
    ],
    ids=lambda value: repr(list(value)) if isinstance(value, dict) else None,
)
def test_wrong_arguments_are_explained(options, error, message):
    with pytest.raises(error, match=message):
        make_search(**options).fit(X, Y)


class ModelOfSixParameters(CountingClassifier):
    """A model that takes no time to fit, and whose score depends on a and b alone."""

    def __init__(self, a=0, b=0, c=0, d=0, e=0, f=0):
        self.a, self.b, self.c, self.d, self.e, self.f = a, b, c, d, e, f

    def fit(self, X, y):
        return self

    def score(self, X, y):
        return -((self.a - 0.5) ** 2) - self.b


def record_2000_evaluations(space):
    """A storage of 20 tasks with 100 random evaluations each of `ModelOfSixParameters`."""
    rng = np.random.default_rng(0)
    names_of_tasks = [f"task {number}" for number in range(20)]
    frame = pd.DataFrame({"task": np.repeat(names_of_tasks, 100)})
    for name in space:
        frame[name] = rng.random(len(frame))
    frame["objective"] = -((frame["a"] - 0.5) ** 2) - frame["b"]
    storage = InMemoryStorage()
    hbo.record_history(hbo.read_history(frame, space, direction="maximize"), storage)
    return storage


@pytest.mark.long  # it measures a time, while other tests run
def test_suggestion_after_2000_evaluations_takes_less_than_a_second():
    """The time is the average over 20 suggestions of a search with 2000 earlier evaluations."""
    space = dict.fromkeys("abcdef", (0.0, 1.0))
    n_suggestions = 20
    search = make_search(
        record_2000_evaluations(space),
        "task 20",
        estimator=ModelOfSixParameters(),
        space=space,
        n_iter=n_suggestions,
    )

    start = time.process_time()
    search.fit(X, Y)
    seconds = time.process_time() - start

    assert seconds / n_suggestions < 1


# search spaces


class Dimension(SimpleNamespace):
    """A dimension of scikit-optimize, which is not installed."""

    __module__ = "skopt.space.space"


class Real(Dimension):
    pass


class Categorical(Dimension):
    pass


Real.__module__ = Categorical.__module__ = "skopt.space.space"


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ((1, 9), hbo.Parameter.number("x", 1, 9, integer=True)),
        ((1e-3, 1, "log"), hbo.Parameter.number("x", 1e-3, 1, log=True)),
        ([1e-3, 1, "log"], hbo.Parameter.number("x", 1e-3, 1, log=True)),
        (["a", "b"], hbo.Parameter.choice("x", ("a", "b"))),
        ({"choices": [3, 1]}, hbo.Parameter.choice("x", (3, 1))),
        ([2, 3], hbo.Parameter.choice("x", (2, 3), ordered=True)),
        ([1, 3, 9], hbo.Parameter.choice("x", (1, 3, 9), ordered=True)),
        (range(1, 4), hbo.Parameter.choice("x", (1, 2, 3), ordered=True)),
        (np.array([0.1, 1.0]), hbo.Parameter.choice("x", (0.1, 1.0), ordered=True)),
        ([False, True], hbo.Parameter.choice("x", (False, True))),
        (("a", "b"), hbo.Parameter.choice("x", ("a", "b"))),
        ((False, True), hbo.Parameter.choice("x", (False, True))),
        ((None, "a"), hbo.Parameter.choice("x", (None, "a"))),
        ((1, 3, 9), hbo.Parameter.choice("x", (1, 3, 9), ordered=True)),
        (stats.uniform(1, 4), hbo.Parameter.number("x", 1, 5)),
        (stats.loguniform(1, 4), hbo.Parameter.number("x", 1, 4, log=True)),
        (stats.randint(1, 4), hbo.Parameter.number("x", 1, 3, integer=True)),
        (
            optuna.distributions.IntDistribution(1, 8, log=True),
            hbo.Parameter.number("x", 1, 8, log=True, integer=True),
        ),
        (
            optuna.distributions.CategoricalDistribution(["a", "b"]),
            hbo.Parameter.choice("x", ("a", "b")),
        ),
        (
            Real(low=1.0, high=4.0, prior="log-uniform"),
            hbo.Parameter.number("x", 1, 4, log=True),
        ),
        (Categorical(categories=("a", "b")), hbo.Parameter.choice("x", ("a", "b"))),
    ],
)
def test_descriptions_of_parameters_are_read(description, expected):
    parameter, _ = read_parameter("x", description)
    assert parameter == expected


QUANTILE_OF_NORMAL = 2.5758293035489
"""The quantile of the standard normal distribution at 0.995."""


@pytest.mark.parametrize(
    ("distribution", "low", "high", "is_log"),
    [
        (stats.expon(scale=100), -100 * math.log(0.995), -100 * math.log(0.005), True),
        (stats.norm(1, 2), 1 - 2 * QUANTILE_OF_NORMAL, 1 + 2 * QUANTILE_OF_NORMAL, False),
        (
            stats.lognorm(0.5),
            math.exp(-0.5 * QUANTILE_OF_NORMAL),
            math.exp(0.5 * QUANTILE_OF_NORMAL),
            True,
        ),
        (stats.triang(0.5, 0, 1), 0.05, 0.95, False),
    ],
    ids=["exponential", "normal", "lognormal", "triangular"],
)
def test_distribution_becomes_its_middle(distribution, low, high, is_log):
    """A range has 99 % of the distribution, and the scale whose middle is near the median."""
    parameter, _ = read_parameter("x", distribution)
    assert parameter.lower == pytest.approx(low)
    assert parameter.upper == pytest.approx(high)
    assert parameter.log == is_log


def test_distribution_of_integers_becomes_integers():
    """The quantiles at 0.005 and 0.995 of a binomial distribution of ten fair coins."""
    parameter, _ = read_parameter("x", stats.binom(10, 0.5))
    assert parameter == hbo.Parameter.number("x", 1, 9, integer=True)


def test_choices_may_be_any_objects():
    """The search space has their texts, from which the parameters of a model are read back."""
    model_space = read_space({"hidden_layer_sizes": [(10,), (10, 5), None]})
    assert model_space.space["hidden_layer_sizes"].choices == ("(10,)", "(10, 5)", None)
    config = {"hidden_layer_sizes": "(10, 5)"}
    assert model_space.params(config) == {"hidden_layer_sizes": (10, 5)}


def test_object_without_a_text_is_refused():
    with pytest.raises(InvalidSpaceError, match="needs a `__repr__`"):
        read_space({"model": [object(), None]})


KERNELS = [
    {"kernel": ["rbf"], "C": (0.1, 10.0, "log"), "gamma": (0.01, 1.0, "log")},
    {"kernel": ["linear"], "C": (0.1, 10.0, "log")},
    {"kernel": ["poly"], "C": (1.0, 2.0), "degree": [2, 3, 4]},
]
"""Alternatives of a support vector machine: gamma and degree belong to one kernel each."""


def test_each_dict_is_an_alternative(tmp_path):
    """Each candidate has the parameters of one dict; the next search starts from the best one."""
    may = make_search(tmp_path / "svm.db", "May", estimator=SVC(), space=KERNELS, n_iter=9)
    may.fit(X, Y)

    names_of_kernel = {
        "rbf": {"kernel", "C", "gamma"},
        "linear": {"kernel", "C"},
        "poly": {"kernel", "C", "degree"},
    }
    candidates = may.cv_results_["params"]
    assert {params["kernel"] for params in candidates} == set(names_of_kernel)
    for params in candidates:
        assert set(params) == names_of_kernel[params["kernel"]]

    june = make_search(tmp_path / "svm.db", "June", estimator=SVC(), space=KERNELS, n_iter=1)
    assert june.fit(X, Y).best_params_ == may.best_params_


def test_hyperparameters_described_alike_are_shared():
    """The range of C is the same in the first two dicts, and another one in the third."""
    space = read_space(KERNELS).space
    assert space.names == ("alternative", "C", "gamma", "C (3)", "degree")
    assert space.describe_condition("C") == "alternative in 1, 2"
    assert space.describe_condition("C (3)") == "alternative in 3"


def test_alternatives_of_objects_are_tuned():
    """The steps of a pipeline are the alternatives, each with its own parameters."""
    pipeline = Pipeline([("model", LogisticRegression())])
    space = [
        {"model": [LogisticRegression()], "model__C": (0.1, 10.0, "log")},
        {"model": [DummyClassifier()]},
    ]
    search = make_search(estimator=pipeline, space=space, n_iter=6).fit(X, Y)
    models = {type(params["model"]) for params in search.cv_results_["params"]}
    assert models == {LogisticRegression, DummyClassifier}
    assert isinstance(search.best_estimator_["model"], LogisticRegression)


def test_size_is_that_of_all_alternatives():
    """Of 6 + 3 configurations each is evaluated once, although twelve are asked for."""
    space = [
        {"kernel": ["rbf"], "C": [1.0, 2.0, 3.0], "gamma": ["scale", "auto"]},
        {"kernel": ["linear"], "C": [1.0, 2.0, 3.0]},
    ]
    search = make_search(estimator=SVC(), space=space, n_iter=12)
    with pytest.warns(UserWarning, match="total space of parameters 9 is smaller than n_iter=12"):
        search.fit(X, Y)
    candidates = {str(params) for params in search.cv_results_["params"]}
    assert len(candidates) == 9


def test_configspace_is_a_space():
    space = ConfigurationSpace({"alpha": (0.1, 10.0)})
    search = make_search(estimator=Ridge(), space=space).fit(X, Y)
    assert 0.1 <= search.best_params_["alpha"] <= 10
