"""Gain of a search that remembers: gradient boosting, tuned by cross-validation every month.

Six months of the electricity stream are tuned with `OrderedSearchCV`, 20 candidates each, and then
the seventh, beside scikit-learn's searches; that is repeated with other months and other seeds.

    python docs/experiments/search_cv.py shared/data/streams 12  # folder, repetitions
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn import model_selection
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  scikit-learn wants it
from threadpoolctl import threadpool_limits

import hpobench_ordered as hbo
from hpobench_ordered.analysis.samples import two_standard_errors
from hpobench_ordered.generation._retrain.streams import Stream, read_public_stream

EARLIER_MONTHS, CANDIDATES, SHOWN = 6, 20, (1, 5, 20)
EVERY = 3  # half-hours between rows: about 480 a month
SPACE = {
    "learning_rate": loguniform(0.01, 1.0),
    "max_leaf_nodes": randint(2, 64),
    "min_samples_leaf": randint(2, 101),
    "l2_regularization": loguniform(1e-3, 100.0),
    "max_features": uniform(0.1, 0.9),
}
MODEL = HistGradientBoostingClassifier(max_iter=40, random_state=0)
FOLDS = {"cv": model_selection.TimeSeriesSplit(3), "scoring": "roc_auc"}


def halve(X: np.ndarray, y: np.ndarray, cost: int, options: dict[str, object]) -> float:
    """Score on all rows of what successive halving chooses at the cost of some candidates."""
    rows = {"n_candidates": 3 * cost, "min_resources": len(X) // 9}  # ninths, thirds, all rows
    search = model_selection.HalvingRandomSearchCV(MODEL, SPACE, **rows, **options).fit(X, y)
    model = clone(MODEL).set_params(**search.best_params_)
    return float(model_selection.cross_val_score(model, X, y, **FOLDS).mean())


def tune(stream: Stream, last: int, seed: int, folder: Path) -> list[list[float]]:
    """Best scores of five ways of tuning a month after 1, 5 and 20 candidates."""
    options = {**FOLDS, "random_state": seed, "refit": False}
    limited = {**options, "n_iter": CANDIDATES}
    for month in range(last - EARLIER_MONTHS, last + 1):
        rows = stream.select(month, month + 1)
        X, y = stream.rows.numbers[rows][::EVERY], stream.rows.target[rows][::EVERY]
        memory = {"history": folder / "months.db", "task": stream.names[month]}
        if month == last:  # another method with the same history
            (folder / "other.db").write_bytes(memory["history"].read_bytes())
        remembering = hbo.OrderedSearchCV(MODEL, SPACE, **memory, **limited).fit(X, y)

    memory |= {"history": folder / "other.db", "method": "simple-ordered"}
    best_first = hbo.OrderedSearchCV(MODEL, SPACE, **memory, **limited).fit(X, y)
    forgetting = hbo.OrderedSearchCV(MODEL, SPACE, **limited).fit(X, y)
    at_random = model_selection.RandomizedSearchCV(MODEL, SPACE, **limited).fit(X, y)
    scores = []
    for search in (remembering, best_first, forgetting, at_random):
        best = np.maximum.accumulate(search.cv_results_["mean_test_score"])
        scores.append([best[count - 1] for count in SHOWN])
    # Nothing can be halved at the cost of one candidate.
    return [*scores, [np.nan, *(halve(X, y, cost, options) for cost in SHOWN[1:])]]


if __name__ == "__main__":
    stream, scores = read_public_stream("electricity", Path(sys.argv[1])), []
    for seed in range(int(sys.argv[2])):
        last = EARLIER_MONTHS + (2 * seed) % (len(stream.names) - EARLIER_MONTHS)
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            scores.append(tune(stream, last, seed, Path(folder)))
    values = np.array(scores)  # (repetitions, ways, counts); then gains over RandomizedSearchCV
    print("ordered-gp, simple-ordered, no history, RandomizedSearchCV, halving; after", SHOWN)
    for shown in (values, values - values[:, [3]]):
        errors = two_standard_errors(np.moveaxis(shown, 1, 0)) / 2
        print(np.round(shown.mean(axis=0), 4), np.round(errors, 4), sep="\n")
