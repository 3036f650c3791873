"""Compares our own trainings of XGBoost with the published evaluations.

The published evaluations were made by XGBoost 1.x. What a current version does differently by
default, and what that changes, is measured on a sample and quoted in the benchmark's card.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.benchmarks.xgboost_mnist import SIZES, space
from hpobench_ordered.generation._mnist import MnistSplit
from hpobench_ordered.generation._xgboost_training import (
    AS_PUBLISHED,
    CURRENT_DEFAULTS,
    XGBoostTrainer,
    train_many,
)
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates.card import versions_of

SAMPLE_SIZES = (56, 155, 433, 934, 2012)
"""Default training-set sizes of the comparison."""
SAMPLE_CONFIGURATIONS = 20
FEWEST = 3
"""Fewest configurations of a sample that includes a large min_child_weight."""
HEAVY = 4.0
"""Smallest min_child_weight that has an effect at small sizes."""

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "tree_method=exact, base_score=0.5": AS_PUBLISHED,
    "current defaults": CURRENT_DEFAULTS,
}

EXPLANATION = (
    "The published evaluations are those of XGBoost 1.x: tree_method exact, and a base_score of "
    "0.5 for every class. Version 2.0 made hist the default tree method, and version 3.1 made the "
    "default base_score of a multi-class model the log frequencies of the classes. The latter "
    "decides wherever the trees do not outweigh the intercept: where learning_rate x n_estimators "
    "is small, and where min_child_weight is large for the training set. From equal margins the "
    "root of a tree has the hessian sum 2 x 0.1 x 0.9 x size; below min_child_weight XGBoost gives "
    "it weight 0, all classes tie, and class 0 is predicted for every image, whereas with an "
    "estimated base_score the most frequent class is. Training here therefore sets both "
    "explicitly."
)


def compare(
    request: Request, split: MnistSplit, values: FloatArray, errors: FloatArray
) -> dict[str, Any]:
    """Compare the error counts of a sample of the published configurations, as JSON for the card.

    `values` are the published configurations, (1000, 4), `errors` their error counts, (1000, 28).
    Trainings are stored beside the artifact's folder, so that the comparison can be resumed.
    """
    sizes = list(request.sizes or SAMPLE_SIZES)
    count = request.configurations or SAMPLE_CONFIGURATIONS
    chosen = choose(values, count, np.random.default_rng(request.seed))
    published = errors[chosen][:, [SIZES.index(size) for size in sizes]]
    compared = {}
    for name, settings in SETTINGS.items():
        ours = train_many(
            XGBoostTrainer(split, settings),
            space().configs(values[chosen]),
            sizes,
            request.folder.with_name(f"{request.folder.name}-evaluations"),
            workers=request.workers,
            progress=lambda _, done, total, name=name: request.progress(name, done, total),
        )
        difference = np.abs(ours - published) / published
        compared[name] = _summaries(difference, sizes, values[chosen, 1] >= HEAVY)
    return {
        "configurations": len(chosen),
        "min_child_weight of at least 4": int(np.sum(values[chosen, 1] >= HEAVY)),
        "sizes": sizes,
        "versions": versions_of("xgboost", "xgboost-cpu"),
        "relative differences of error counts from the published ones": compared,
        "explanation": " ".join([*map(_sentence, compared, compared.values()), EXPLANATION]),
    }


def _sentence(name: str, summaries: Mapping[str, Any]) -> str:
    total = summaries["all"]
    return (
        f"With {name}, {total['identical']} of {total['compared']} error counts are identical, "
        f"half are within {total['median']:.2%} and all within {total['max']:.2%}."
    )


def choose(values: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Choose indices of configurations, about two fifths with a large min_child_weight."""
    heavy = np.flatnonzero(values[:, 1] >= HEAVY)
    others = np.setdiff1d(np.arange(len(values)), heavy)
    n_heavy = max(2 * count // 5, count - len(others))
    few = rng.choice(heavy, min(len(heavy), n_heavy), replace=False)
    return np.sort(np.concatenate([few, rng.choice(others, count - len(few), replace=False)]))


def _summaries(
    difference: FloatArray, sizes: Sequence[int], is_heavy: BoolArray
) -> Mapping[str, Any]:
    """Summarise differences, (n, S): all, by size, and by min_child_weight."""
    groups = {"all": difference}
    groups |= {f"size {size}": column for size, column in zip(sizes, difference.T, strict=True)}
    groups[f"min_child_weight >= {HEAVY:g}"] = difference[is_heavy]
    groups[f"min_child_weight < {HEAVY:g}"] = difference[~is_heavy]
    return {
        name: {
            "compared": group.size,
            "identical": int(np.sum(group == 0)),
            "median": round(float(np.median(group)), 5),
            "max": round(float(np.max(group)), 5),
        }
        for name, group in groups.items()
    }
