"""A search of scikit-learn's kind that starts from the evaluations of earlier tasks."""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import joblib
import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.model_selection._split import _yields_constant_splits
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from hpobench_ordered._typing import Config
from hpobench_ordered._wording import join_words
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.errors import ContinuedSearchWarning, ExperimentError, StoreError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.tuning._settings import HASH_OF, as_json
from hpobench_ordered.tuning.optimiser import (
    DEFAULT_METHOD,
    Optimiser,
    open_recorder,
    optimiser,
)
from hpobench_ordered.tuning.reading.read import as_history
from hpobench_ordered.tuning.reading.rows import warn
from hpobench_ordered.tuning.reading.sources import Source, is_storage
from hpobench_ordered.tuning.sklearn._space import EstimatorSpace, EstimatorSpaceLike, read_space

if TYPE_CHECKING:
    from hpobench_ordered.tuning.recording import Recorder

FOLD_RESULTS = ("fit_time", "score_time", "test_scores", "train_scores")
"""What is kept of each fold, by scikit-learn's names."""
ALL_FITS_FAILED = "fits failed"
"""Part of scikit-learn's message if every fit of a call of `evaluate_candidates` failed."""
ADDRESS_PATTERN = re.compile(r" at 0x[0-9a-f]+")
"""Part of the text of an object that differs in every process."""
SEED_LIMIT = 2**31  # of seeds that are drawn

EvaluateCandidates = Callable[..., object]
"""scikit-learn's function of a list of candidates' parameters and, as `cv`, a splitter.

Since scikit-learn 1.9 it also takes, as `callback_ctx`, the context of the callbacks.
"""


@dataclass(frozen=True)
class Evaluation:
    """A configuration that was cross-validated.

    Attributes:
        config: The configuration.
        folds: For each fold, its times in seconds and its scores, by the names that scikit-learn
            has for them; [] if every fold failed.
        score: What the search maximises, the mean over the folds; NaN if the evaluation failed.
    """

    config: Config
    folds: Sequence[Mapping[str, Any]]
    score: float


@dataclass
class _Session:
    """What one call of `fit` passes between the methods that scikit-learn calls.

    Attributes:
        hashes: Hashes of what is cross-validated, by name; empty if nothing is recorded.
        new_folds: What scikit-learn's last call of `evaluate_candidates` gave for each fold.
        fold_count: Number of folds that it gave in all calls.
        failure: Its last error because every fit failed; None if there was none.
        cv_results: What becomes `cv_results_`; empty until all is evaluated.
    """

    hashes: dict[str, str] = field(default_factory=dict)
    new_folds: Sequence[Mapping[str, Any]] = ()
    fold_count: int = 0
    failure: ValueError | None = None
    cv_results: dict[str, Any] = field(default_factory=dict)


class _SplitOnce:
    """A splitter with the same folds at each call, also where another one shuffles anew.

    When the folds are made, it prints scikit-learn's line about a search.
    """

    def __init__(self, splitter: Any, *, n_candidates: int, verbose: int) -> None:
        """Store the splitter, which the first call of `split` calls.

        Args:
            splitter: Makes the folds.
            n_candidates: Number of candidates in all batches of the search.
            verbose: If it is 0, nothing is printed.
        """
        self._splitter = splitter
        self._n_candidates = n_candidates
        self._verbose = verbose
        # The folds of the first call of `split`; None before it.
        self._folds: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """Split the data at the first call; return these folds at all others.

        scikit-learn splits anew for each batch of candidates. All candidates of a search must have
        the same folds, or their scores could not be compared. Later calls ignore their arguments:
        they are the same in all calls of one search.
        """
        if self._folds is None:
            self._folds = list(self._splitter.split(X, y, **params))
            if self._verbose > 0:
                n_fits = self._n_candidates * len(self._folds)
                print(
                    f"Fitting {len(self._folds)} folds for each of {self._n_candidates} "
                    f"candidates, totalling {n_fits} fits"
                )
        return self._folds


class _SubtasksOfAllBatches:
    """A context of scikit-learn's callbacks that numbers the fits of all batches consecutively.

    scikit-learn numbers the fits of each call of `evaluate_candidates` from 0, but the numbers of
    a context's subtasks must differ.
    """

    def __init__(self, context: Any) -> None:
        """Store the context of the search, which has no subtasks yet."""
        self._context = context
        self._n_subtasks = 0

    def subcontext(self, *, task_name: str, task_id: int) -> Any:
        """Make the context of a fit; its number in the batch, `task_id`, is not used."""
        del task_id
        context = self._context.subcontext(task_name=task_name, task_id=self._n_subtasks)
        self._n_subtasks += 1
        return context


class OrderedSearchCV(BaseSearchCV):  # type: ignore[misc]  # mypy does not follow scikit-learn
    """Search over hyperparameters that starts from earlier searches, with cross-validation.

    For a model that is tuned again and again, on the data of each month, say. Every evaluation is
    recorded at once in `history`; the search of a new task starts from the evaluations of the
    earlier ones, and an interrupted search goes on where it stopped. It is used like
    `sklearn.model_selection.RandomizedSearchCV`, whose other arguments and attributes it has.

    Parameters
    ----------
    estimator : estimator object
        The model, or pipeline, that is tuned. It needs a ``score`` function unless `scoring` is
        passed.

    space : dict, list of dicts, SearchSpace or ConfigSpace.ConfigurationSpace
        What is tuned. A dict has names of the estimator's parameters (``step__parameter`` in a
        pipeline) as keys. Its values are:

        - ``(low, high)`` or ``(low, high, "log")``: a range, both ends included, of integers if
          both are integers;
        - a list, array, range or any other tuple: choices, which may be any objects; they are
          ordered if they are increasing numbers;
        - a distribution of `scipy.stats`: ``uniform``, ``loguniform`` and ``randint`` are ranges.
          Of any other distribution, such as ``expon``, only the range of its middle 99 % is used,
          on the scale, linear or log, whose middle is nearer to the median;
        - a dimension of scikit-optimize; a distribution of Optuna;
        - a number, text or boolean: a constant.

        In a list, each dict is one of the alternatives. Its number, from 1, is recorded as the
        hyperparameter ``alternative``.

    history : str, path-like or optuna storage, default=None
        The Optuna storage in which evaluations are recorded, a study for each task, and those of
        earlier tasks are found: a SQLite file such as ``"churn.db"`` or a journal file such as
        ``"churn.log"``, which need not exist yet, or a URL such as ``"postgresql://..."``. Studies
        that Optuna's samplers made can be used. All studies in it are taken for tunings of the
        same model.

        Without a `task` nothing is recorded, and `history` may be whatever
        `hpobench_ordered.read_history` gives or reads without further arguments: tables, files,
        evaluations. `hpobench_ordered.record_history` puts them into a storage.

    task : str, default=None
        Name of this task, such as ``"2026-07"``, under which it is recorded in `history`. Tasks
        that were begun before it are its earlier tasks, in that order. If the task has evaluations
        there already, the search goes on after them and says so (see Notes).

    method : str, class or MethodSpec, default="ordered-gp"
        The method that suggests the candidates, see `hpobench_ordered.list_methods`. The default
        learns from the earlier tasks, and is Bayesian optimisation if there are none.

    n_iter : int, default=10
        Number of candidates in all, those included that were evaluated before. If the space has
        fewer configurations, it is their number, and `fit` warns.

    batch_size : int, default=1
        Number of candidates that are suggested at once, before any of them is evaluated, and then
        are evaluated in parallel. The suggestions depend on it, but not on `n_jobs`. The folds of
        one candidate run in parallel in any case; more than one candidate is needed only if there
        are more processors than folds.

    scoring : str, callable, list, tuple or dict, default=None
        As in scikit-learn. If there are several metrics, the search maximises the one that `refit`
        names, or else the first one.

    n_jobs : int, default=None
        Number of fits in parallel. The result does not depend on it.

    refit : bool, str or callable, default=True
        As in scikit-learn: whether, or by which metric, the best candidate is fitted to all data.

    cv : int, cross-validation generator or an iterable, default=None
        As in scikit-learn. All candidates have the same folds. With a `history`, a splitter that
        shuffles needs an integer as ``random_state``.

    verbose : int, default=0
        As in scikit-learn.

    pre_dispatch : int or str, default='2*n_jobs'
        As in scikit-learn.

    random_state : int, RandomState instance, numpy.random.Generator or None, default=None
        Seed of the method. Unless it is an integer, a search that goes on has the seed that it was
        begun with.

    error_score : 'raise' or numeric, default=np.nan
        Score of a fold whose fit fails, or "raise" to raise the error. A candidate with a score
        of NaN is recorded as failed.

    return_train_score : bool, default=False
        As in scikit-learn.

    Attributes
    ----------
    cv_results_ : dict of numpy (masked) ndarrays
        As in scikit-learn, each array of shape (n_candidates,), in the order of evaluation; also
        of the candidates of this task that were evaluated in an interrupted search.

    best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_
        As in scikit-learn, as all its other attributes.

    Raises
    ------
    UnknownNameError
        In ``fit``, as the following: there is no method of that name.

    InvalidSpaceError
        A parameter of `space` cannot be read.

    ExperimentError
        There is a `task`, but `history` is no storage; `cv` shuffles without a seed; or the method
        needs more earlier tasks.

    MissingExtraError
        `history` is an Optuna storage, and Optuna is not installed.

    EvaluationsError
        The earlier tasks do not fit: they have other hyperparameters, for example, and the method
        does not support that.

    StoreError
        The task was begun with other data, folds or settings; the message says what differs. Or
        the storage cannot be written, or another process works on the task.

    Warns
    -----
    ContinuedSearchWarning
        The task has evaluations already.

    HistoryWarning
        Evaluations of earlier tasks are left out, as they are outside of `space`, or the method
        does not use them. Or earlier tasks had another `scoring`.

    UserWarning
        `space` has fewer than `n_iter` configurations, as in scikit-learn.

    See Also
    --------
    sklearn.model_selection.RandomizedSearchCV : Without a memory.

    Notes
    -----
    A search is repeated if it goes on: the method is asked again for every candidate, and those
    that were evaluated are not evaluated again. So it ends as it would have ended undisturbed. If
    all `n_iter` candidates were recorded, nothing is left to do but to fit the best one to all
    data (and to cross-validate it once more, as scikit-learn's ``fit`` needs an evaluation; the
    result is not used). A larger `n_iter` makes the search go on.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import hpobench_ordered as hbo
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"C": (1e-3, 1e3, "log"), "class_weight": [None, "balanced"]}
    >>> model = LogisticRegression(max_iter=1000)
    >>> for month in ("May", "June"):
    ...     search = hbo.OrderedSearchCV(
    ...         model, space, history="iris.db", task=month, n_iter=5, random_state=0
    ...     ).fit(X, y)
    >>> sorted(search.best_params_), len(search.cv_results_["params"])
    (['C', 'class_weight'], 5)
    """

    # scikit-learn's `__init__` stores these arguments.
    cv: Any
    verbose: int

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012  as in scikit-learn
        **BaseSearchCV._parameter_constraints,
        "history": "no_validation",  # the reader says what is wrong with it
        "task": [str, None],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        estimator: Any,
        space: EstimatorSpaceLike,
        *,
        history: "Source | Sequence[Evaluations] | None" = None,
        task: str | None = None,
        method: object = DEFAULT_METHOD,
        n_iter: int = 10,
        batch_size: int = 1,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        # As scikit-learn wants it, arguments are only stored here, and checked by `fit`.
        self.space = space
        self.history = history
        self.task = task
        self.method = method
        self.n_iter = n_iter
        self.batch_size = batch_size
        self.random_state = random_state
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search, and fit the best candidate to all data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Targets; None for unsupervised learning.

        **params : dict of str -> object
            As in scikit-learn: ``groups`` for the splitter, and parameters such as
            ``sample_weight`` for the estimator's ``fit``.

        Returns
        -------
        self : OrderedSearchCV
            The fitted search.
        """
        # A generator of folds can be read once; during the search, `cv` is the splitter made of it.
        cv = self.cv
        self.cv = check_cv(cv, y, classifier=is_classifier(self.estimator))
        # scikit-learn's `fit` calls `_run_search` and `_format_results`, which use the session.
        self._session = _Session()
        if self.task is not None:  # a search that goes on checks that the data are the same
            self._session.hashes["X, y or parameters of fit"] = joblib.hash((X, y, params))
        try:
            super().fit(X, y, **params)
        finally:
            self.cv = cv
            del self._session
        return self

    def _run_search(
        self, evaluate_candidates: EvaluateCandidates, *, callback_ctx: Any = None
    ) -> None:
        """Ask the method for candidates and evaluate those that have not been recorded yet.

        scikit-learn's `fit` calls this method.

        Args:
            evaluate_candidates: Cross-validates candidates.
            callback_ctx: The context of the callbacks; None before scikit-learn 1.9.
        """
        candidates = read_space(self.space)
        # Setting the parameters of random candidates raises an error if a parameter is misspelt.
        # Otherwise the task would already be recorded with the wrong space.
        for config in candidates.sample_alternatives(np.random.default_rng(0)):
            clone(self.estimator).set_params(**candidates.params(config))
        recorder = None
        if self.task is not None:
            self._hash_splitter()
            recorder = open_recorder(self.history, self.task, Direction.MAXIMIZE)
        n_iter = self._limit_n_iter(candidates.size)
        tuner = self._make_optimiser(candidates.space, recorder, n_iter)
        evaluations: list[Evaluation] = []
        if recorder is not None:
            self._resume(tuner, recorder)
            evaluations = _read_evaluations(recorder)
            self._warn_if_continued(len(evaluations), n_iter)

        n_new = max(n_iter - len(evaluations), 0)
        splitter = _SplitOnce(self.cv, n_candidates=n_new, verbose=self.verbose)
        evaluate = partial(evaluate_candidates, cv=splitter)
        with self._silence_batches():
            with self._report_progress(evaluate, callback_ctx, n_new) as evaluate_and_report:
                evaluations += self._evaluate_new(
                    tuner, candidates, evaluate_and_report, range(len(evaluations), n_iter)
                )
            # There are no new folds if all candidates were recorded before or failed in this call.
            has_new_folds = self._session.fold_count > 0
            if not has_new_folds:
                self._evaluate_best_again(evaluations, candidates, evaluate)
        self._fill_cv_results(evaluations, candidates)

    @contextmanager
    def _silence_batches(self) -> Iterator[None]:
        """Keep scikit-learn from printing a line for each batch, as `_SplitOnce` prints it once.

        scikit-learn reads `verbose` for this line alone: what its fits print was decided before.
        """
        verbose = self.verbose
        self.verbose = 0
        try:
            yield
        finally:
            self.verbose = verbose

    @contextmanager
    def _report_progress(
        self, evaluate_candidates: EvaluateCandidates, callback_ctx: Any, n_candidates: int
    ) -> Iterator[EvaluateCandidates]:
        """Report to scikit-learn's callbacks when the search and each of its fits begin and end.

        Args:
            evaluate_candidates: Cross-validates candidates.
            callback_ctx: The context of the callbacks; None before scikit-learn 1.9.
            n_candidates: Number of candidates in all batches.

        Yields:
            `evaluate_candidates` that also reports.
        """
        if callback_ctx is None:
            yield evaluate_candidates
            return
        search_ctx = callback_ctx.subcontext(
            task_name="search",
            max_subtasks=n_candidates * self.n_splits_,
            sequential_subtasks=False,
        ).call_on_fit_task_begin(estimator=self)
        yield partial(evaluate_candidates, callback_ctx=_SubtasksOfAllBatches(search_ctx))
        search_ctx.call_on_fit_task_end(estimator=self)

    def _evaluate_new(
        self,
        tuner: Optimiser,
        candidates: EstimatorSpace,
        evaluate_candidates: EvaluateCandidates,
        numbers: range,
    ) -> list[Evaluation]:
        """Ask the method for candidates, evaluate them in batches, and tell it their scores.

        Args:
            tuner: The optimiser of the task.
            candidates: The search space.
            evaluate_candidates: Cross-validates candidates.
            numbers: Numbers of the candidates that have not been evaluated yet; those of the
                recorded ones come before.
        """
        evaluations: list[Evaluation] = []
        while len(evaluations) < len(numbers):
            # The first candidates are those that an interrupted search had asked for. If it had
            # evaluated a part of its batch, this batch is only the rest of it.
            number = numbers[len(evaluations)]
            batch = tuner.pending
            n_left_of_batch = self.batch_size - number % self.batch_size
            n_new = min(n_left_of_batch, numbers.stop - number) - len(batch)
            batch += [tuner.ask() for _ in range(n_new)]
            new = self._evaluate(batch, candidates, evaluate_candidates)
            for evaluation in new:
                results = {"config": evaluation.config, "folds": list(evaluation.folds)}
                tuner.tell_with_results(evaluation.config, evaluation.score, as_json(results))
            evaluations += new
        return evaluations

    def _hash_splitter(self) -> None:
        """Add a hash of the splitter to the settings that are recorded.

        A search that continues this one compares the hashes, to check that it has the same folds.

        Raises:
            ExperimentError: The splitter gives other folds at each call.
        """
        splitter = self.cv  # made by `fit`
        if not _yields_constant_splits(splitter):
            raise ExperimentError(
                f"cv={splitter} splits otherwise each time, so that a search with a history could "
                "not go on: give it an integer as random_state"
            )
        self._session.hashes["folds (cv)"] = joblib.hash(splitter)

    def _limit_n_iter(self, n_configs: float) -> int:
        """Return `n_iter`, or the number of configurations of the space if there are fewer.

        Warns:
            UserWarning: There are fewer configurations. The text is that of scikit-learn's
                `RandomizedSearchCV`.
        """
        if self.n_iter <= n_configs:
            return self.n_iter

        size = int(n_configs)
        warnings.warn(
            f"The total space of parameters {size} is smaller than n_iter={self.n_iter}. Running "
            f"{size} iterations. For exhaustive searches, use GridSearchCV.",
            UserWarning,
            stacklevel=6,  # the caller of `fit`
        )
        return size

    def _make_optimiser(
        self, space: SearchSpace, recorder: "Recorder | None", n_iter: int
    ) -> Optimiser:
        """Make the optimiser of the task.

        If the record holds an interrupted search of this task, the optimiser has the seed and the
        budget of that search. The earlier tasks of the record are its history.
        """
        settings_before: Mapping[str, Any] = {}
        if recorder is not None:
            settings_before = recorder.settings
            history = recorder.read_earlier(space)
            self._warn_if_other_metric(recorder.settings_of_earlier)
        elif self.history is None:
            history = ()
        elif is_storage(self.history):
            raise ExperimentError(
                f"history={str(self.history)!r} needs the name of this task, such as "
                "task='2026-07'; `read_history` only reads a storage"
            )
        else:
            history = as_history(self.history, space, Direction.MAXIMIZE)
        return optimiser(
            self.method,
            space=space,
            direction="maximize",
            history=history,
            budget=settings_before.get("budget", n_iter),
            seed=self._choose_seed(settings_before.get("seed")),
        )

    def _warn_if_other_metric(self, settings_of_earlier: Mapping[str, Mapping[str, Any]]) -> None:
        """Warn of earlier searches whose scores are of another metric.

        Args:
            settings_of_earlier: Settings of each earlier task, by its name.
        """
        scoring = _describe(self.scoring)
        others: list[str] = []
        for task, settings in settings_of_earlier.items():
            other_scoring = settings.get("scoring", scoring)
            if other_scoring != scoring:
                others.append(f"{task!r} by {other_scoring}")
        if others:
            listing = join_words(others)
            warn(f"earlier tasks were scored by another metric than {scoring}: {listing}")

    def _choose_seed(self, seed_before: int | None) -> int:
        """Return `random_state` if it is an integer, else the earlier seed, else a random seed.

        `seed_before` is the seed of an interrupted search; None if there was none.
        """
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        if seed_before is not None:
            return seed_before
        if isinstance(self.random_state, np.random.Generator):
            return int(self.random_state.integers(SEED_LIMIT))
        return int(check_random_state(self.random_state).randint(SEED_LIMIT))

    def _resume(self, tuner: Optimiser, recorder: "Recorder") -> None:
        """Record the settings of a new task, or repeat the recorded events of a task with `tuner`.

        Raises:
            StoreError: The task was begun with other settings.
        """
        # Only the name of a metric in `refit` has an effect on the suggestions.
        metric = self.refit if isinstance(self.refit, str) else None
        settings = {
            **tuner.settings,
            "batch_size": self.batch_size,
            "estimator": _describe(self.estimator),
            "scoring": _describe(self.scoring),
            "refit": metric,
            "return_train_score": self.return_train_score,
        }
        settings |= {f"{HASH_OF}{name}": digest for name, digest in self._session.hashes.items()}
        recorder.begin(as_json(settings))
        tuner.resume(recorder)

    def _warn_if_continued(self, n_recorded: int, n_iter: int) -> None:
        """Warn if the task has recorded evaluations, so that fewer than `n_iter` are made now."""
        place = f"task {self.task!r} in {self.history}"
        if n_recorded >= n_iter:
            _warn(
                f"{place} has {n_recorded} evaluations already, so no candidate is evaluated: "
                "a larger n_iter makes the search go on, another task begins a new one"
            )
        elif n_recorded:
            _warn(
                f"{place} has {n_recorded} evaluations already: the search goes on with the other "
                f"{n_iter - n_recorded} of {n_iter}"
            )

    def _evaluate(
        self,
        configs: Sequence[Config],
        candidates: EstimatorSpace,
        evaluate_candidates: EvaluateCandidates,
    ) -> list[Evaluation]:
        """Cross-validate configurations in parallel.

        scikit-learn's `evaluate_candidates` calls `_format_results`, which keeps the results of all
        folds in `_session.new_folds`, configuration by configuration.
        """
        if not configs:
            return []
        try:
            evaluate_candidates([candidates.params(config) for config in configs])
        except ValueError as error:
            # scikit-learn gives up if all fits failed, but the next candidates may well succeed.
            # With error_score="raise", the error is that of a single fit, whatever its text says.
            if self.error_score == "raise" or ALL_FITS_FAILED not in str(error):
                raise
            warnings.warn(str(error), FitFailedWarning, stacklevel=2)
            self._session.failure = error
            return [Evaluation(config, [], float(self.error_score)) for config in configs]

        evaluations: list[Evaluation] = []
        new_folds = self._session.new_folds
        n_splits = len(new_folds) // len(configs)  # all configurations have equally many folds
        for number, config in enumerate(configs):
            first = number * n_splits
            folds = new_folds[first : first + n_splits]
            evaluations.append(Evaluation(config, folds, self._mean_score(folds)))
        return evaluations

    def _mean_score(self, folds: Sequence[Mapping[str, Any]]) -> float:
        """Compute the score that the search maximises: the mean over the folds of a candidate.

        With several metrics, it is the score of the metric that `refit` names, else of the first
        one. It is NaN if any fold failed.
        """
        scores: list[float] = []
        for fold in folds:
            score = fold["test_scores"]
            if isinstance(score, Mapping):  # a score for each of several metrics
                metric = self.refit if isinstance(self.refit, str) else next(iter(score))
                score = score[metric]
            scores.append(score)
        mean = float(np.mean(scores))
        return mean if math.isfinite(mean) else math.nan

    def _evaluate_best_again(
        self,
        evaluations: Sequence[Evaluation],
        candidates: EstimatorSpace,
        evaluate_candidates: EvaluateCandidates,
    ) -> None:
        """Evaluate the best candidate once more, as `fit` needs at least one new result.

        scikit-learn's `fit` reads from the first new result whether there are several metrics. It
        would fail if all results were recorded by an earlier search.

        Raises:
            ValueError: All candidates failed, so there is no best one.
        """
        succeeded = [evaluation for evaluation in evaluations if not math.isnan(evaluation.score)]
        if not succeeded:
            # If candidates failed in this call of `fit`, `failure` is scikit-learn's own error.
            raise self._session.failure or ValueError(
                f"all {len(evaluations)} candidates of task {self.task!r} in {self.history} "
                f"{ALL_FITS_FAILED} before; choose another name for the task to evaluate new ones"
            )
        best = max(succeeded, key=lambda evaluation: evaluation.score)
        evaluate_candidates([candidates.params(best.config)])

    def _format_results(
        self,
        candidate_params: Sequence[Mapping[str, Any]],
        n_splits: int,
        out: Sequence[Mapping[str, Any]],
        more_results: object = None,
    ) -> dict[str, Any]:
        """Keep the results of the new folds; `evaluate_candidates` calls this at its end.

        Args:
            candidate_params: All candidates of this call of `fit`.
            n_splits: Number of folds of each candidate.
            out: Results of the folds of all candidates, candidate by candidate.
            more_results: Part of scikit-learn's interface; other searches give some, this one none.

        Returns:
            The same dictionary at each call, which `_fill_cv_results` fills at the end, also with
            the candidates that scikit-learn does not know: those that were recorded or failed.
        """
        session = self._session
        new_folds = out[session.fold_count :]  # after those of the earlier batches
        session.new_folds = [_select_results(fold) for fold in new_folds]
        session.fold_count = len(out)
        return session.cv_results

    def _fill_cv_results(
        self, evaluations: Sequence[Evaluation], candidates: EstimatorSpace
    ) -> None:
        """Fill the dictionary that becomes `cv_results_` with all evaluations, in their order."""
        # If every fit of a candidate failed, there are no results of its folds. Made-up results of
        # failed folds stand for them, with the same entries as the folds of other candidates.
        any_fold = next(e.folds[0] for e in evaluations if e.folds)
        # Even with "raise" a failed candidate may be there: recorded by an interrupted search that
        # had another `error_score`.
        error_score = math.nan if self.error_score == "raise" else float(self.error_score)
        failed_fold = _fail_fold(any_fold, error_score)
        n_splits = max(len(e.folds) for e in evaluations)
        folds: list[Mapping[str, Any]] = []
        for evaluation in evaluations:
            folds += evaluation.folds or [failed_fold] * n_splits
        params = [candidates.params(evaluation.config) for evaluation in evaluations]
        cv_results = super()._format_results(params, n_splits, folds)
        self._session.cv_results.update(cv_results)


def _select_results(fold: Mapping[str, Any]) -> dict[str, Any]:
    """Select the results of a fold that are recorded (`FOLD_RESULTS`)."""
    return {name: fold[name] for name in FOLD_RESULTS if name in fold}


def _fail_fold(fold: Mapping[str, Any], error_score: float) -> dict[str, Any]:
    """Make the results of a failed fold, with the entries that another fold has.

    Times are 0, and all scores are `error_score`.
    """
    failed: dict[str, Any] = {}
    for name, result in fold.items():
        if name.endswith("_time"):
            failed[name] = 0.0
        elif isinstance(result, Mapping):  # scores of several metrics
            failed[name] = dict.fromkeys(result, error_score)
        else:
            failed[name] = error_score
    return failed


def _describe(value: object) -> str:
    """Describe an argument as text, without addresses in memory, which differ between processes."""
    return ADDRESS_PATTERN.sub("", repr(value))


def _read_evaluations(recorder: "Recorder") -> list[Evaluation]:
    """Read the evaluations that a search recorded, in the order in which they were evaluated.

    Raises:
        StoreError: Something else than a search of this kind recorded them.
    """
    evaluations: list[Evaluation] = []
    for event in recorder.events:
        if not event.is_told:
            continue
        recorded = recorder.trials[event.trial]
        if recorded.results is None:
            raise StoreError(
                f"{recorder.place} was not tuned by an OrderedSearchCV; choose another name for "
                "this one"
            )
        score = math.nan if recorded.value is None else recorded.value
        folds = recorded.results["folds"]
        evaluations.append(Evaluation(recorded.results["config"], folds, score))
    return evaluations


def _warn(message: str) -> None:
    """Issue a ContinuedSearchWarning."""
    warnings.warn(message, ContinuedSearchWarning, stacklevel=7)  # the caller of `fit`
