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
    train_configs,
)
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates.card import versions_of

SAMPLE_SIZES = (56, 155, 433, 934, 2012)
"""Default training-set sizes of the comparison."""
SAMPLE_CONFIGURATIONS = 20
MIN_CONFIGURATIONS = 3
"""Fewest configurations of a sample that includes a large min_child_weight."""
LARGE_CHILD_WEIGHT = 4.0
"""Smallest min_child_weight that has an effect at small sizes."""
CHILD_WEIGHT_COLUMN = 1
"""Column of min_child_weight in coded configurations."""

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
    """Compare the error counts of a sample of the published configurations.

    Trainings are stored beside the artifact's folder, so that the comparison can be resumed.

    Args:
        request: The request.
        split: MNIST.
        values: The published configurations, (1000, 4).
        errors: Their error counts, (1000, 28).

    Returns:
        The comparison as JSON for the card.
    """
    sizes = list(request.sizes or SAMPLE_SIZES)
    columns = [SIZES.index(size) for size in sizes]
    number = request.configurations or SAMPLE_CONFIGURATIONS
    rows = choose_configurations(values, number, np.random.default_rng(request.seed))
    published = errors[rows][:, columns]
    has_large_weight = values[rows, CHILD_WEIGHT_COLUMN] >= LARGE_CHILD_WEIGHT

    summaries_of_settings = {}
    for name, settings in SETTINGS.items():
        own = train_configs(
            XGBoostTrainer(split, settings),
            space().configs(values[rows]),
            sizes,
            request.folder.with_name(f"{request.folder.name}-evaluations"),
            workers=request.workers,
            progress=lambda _, done, total, name=name: request.progress(name, done, total),
        )
        difference = np.abs(own - published) / published
        summaries_of_settings[name] = _summarise_groups(difference, sizes, has_large_weight)

    sentences = [
        _describe_differences(name, summaries) for name, summaries in summaries_of_settings.items()
    ]
    return {
        "configurations": len(rows),
        "min_child_weight of at least 4": int(np.sum(has_large_weight)),
        "sizes": sizes,
        "versions": versions_of("xgboost", "xgboost-cpu"),
        "relative differences of error counts from the published ones": summaries_of_settings,
        "explanation": " ".join([*sentences, EXPLANATION]),
    }


def _describe_differences(name: str, summaries: Mapping[str, Any]) -> str:
    """Describe how far own error counts are from the published ones, in one sentence.

    Args:
        name: Name of the settings of XGBoost.
        summaries: Summaries of relative differences by group of trainings, such as "all".
    """
    total = summaries["all"]
    return (
        f"With {name}, {total['identical']} of {total['compared']} error counts are identical, "
        f"half are within {total['median']:.2%} and all within {total['max']:.2%}."
    )


def choose_configurations(values: FloatArray, number: int, rng: np.random.Generator) -> IntArray:
    """Choose rows of configurations, about two fifths with a large min_child_weight.

    These depend most on the version of XGBoost.
    """
    has_large_weight = values[:, CHILD_WEIGHT_COLUMN] >= LARGE_CHILD_WEIGHT
    large = np.flatnonzero(has_large_weight)
    others = np.flatnonzero(~has_large_weight)

    # Where one group is too small for its share, the other makes up for it.
    two_fifths = 2 * number // 5
    least_large = number - len(others)  # if all others are chosen
    n_large = min(max(two_fifths, least_large), len(large))
    chosen_large = rng.choice(large, n_large, replace=False)
    chosen_others = rng.choice(others, number - n_large, replace=False)
    return np.sort(np.concatenate([chosen_large, chosen_others]))


def _summarise_groups(
    difference: FloatArray, sizes: Sequence[int], has_large_weight: BoolArray
) -> Mapping[str, Any]:
    """Summarise relative differences of error counts: all, by size, and by min_child_weight.

    Args:
        difference: Differences of n configurations on S training-set sizes, (n, S).
        sizes: The sizes, (S,).
        has_large_weight: Whether each configuration has a large min_child_weight, (n,).
    """
    groups = {"all": difference}
    for size, column in zip(sizes, difference.T, strict=True):
        groups[f"size {size}"] = column
    groups[f"min_child_weight >= {LARGE_CHILD_WEIGHT:g}"] = difference[has_large_weight]
    groups[f"min_child_weight < {LARGE_CHILD_WEIGHT:g}"] = difference[~has_large_weight]
    return {name: _summarise(group) for name, group in groups.items()}


def _summarise(difference: FloatArray) -> Mapping[str, Any]:
    """Count relative differences and those that are 0, and give their median and largest."""
    return {
        "compared": difference.size,
        "identical": int(np.sum(difference == 0)),
        "median": round(float(np.median(difference)), 5),
        "max": round(float(np.max(difference)), 5),
    }
