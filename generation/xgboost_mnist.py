"""Generates `xgboost-mnist`: from the published evaluations, or by training XGBoost on MNIST."""

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks.xgboost_mnist import (
    NAME,
    PUBLISHED,
    SIZES,
    define_benchmark,
    make_space,
    read_published,
)
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._fitting import FOREST, ForestData, write_forest
from hpobench_ordered.generation._mnist import load_mnist, split_images
from hpobench_ordered.generation._xgboost_training import XGBoostTrainer, train_configs
from hpobench_ordered.generation.base import EvaluationSource, Generator, Option, Request
from hpobench_ordered.surrogates.artifacts import CardTexts
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.pipeline import FOLDS

TRAINED_CONFIGURATIONS = 1000
WEIGHT_OF_SIZE = {SIZES[0]: 2.5, SIZES[1]: 1.5}
"""Weights of the two smallest sizes in choosing splits, as they differ from the 26 others."""
LIMITS = (
    "Validation errors of one split of MNIST and one seed: they hold no noise between repetitions.",
    "At the smallest sizes many configurations predict one class alone and tie; ranks are least "
    "certain there.",
)
COMPARISON_FILE = f"{NAME}-comparison.json"
"""Published error counts beside those of our own trainings, a record that the card quotes."""


def generate_from_published(request: Request) -> Path:
    """Fit the forest to the authors' evaluations and write the artifact.

    The card compares some of them with our own trainings of the same configurations.
    """
    values, errors = _read_published_evaluations(request.local)
    packaged_comparison = resources.files("hpobench_ordered") / "artifacts" / COMPARISON_FILE
    return _fit_and_write(
        request,
        values,
        errors,
        sizes=SIZES,
        source=(
            "the authors' evaluations, github.com/sighellan/syne-tune, commit "
            "f4034662d84cf27dfee34de9695c89af5d7238c5"
        ),
        command=request.command(NAME, "--source published"),
        comparisons={"own trainings": json.loads(packaged_comparison.read_bytes())},
    )


def generate_by_training(request: Request) -> Path:
    """Train XGBoost on MNIST with random configurations, fit the forest and write the artifact."""
    _check_sizes(request)
    sizes = request.sizes or SIZES
    count = request.configurations or TRAINED_CONFIGURATIONS
    space = make_space()
    values = space.decode(space.sample_unit(np.random.default_rng(request.seed), count))
    images, classes = load_mnist(request.local)
    errors = train_configs(
        XGBoostTrainer(split_images(images, classes)),
        space.configs(values),
        sizes,
        request.path_beside("trainings"),
        workers=request.workers,
        progress=request.progress,
    )
    # The command on the card has DATA in place of the user's own file.
    local_words = () if request.local is None else (f"{Option.LOCAL.value} DATA",)
    return _fit_and_write(
        request,
        values,
        errors,
        sizes=sizes,
        source="own trainings of XGBoost",
        command=request.command(NAME, "--source train", *local_words),
        comparisons={},
    )


def _check_sizes(request: Request) -> None:
    """Raise an `ExperimentError` if a requested training-set size is none of the benchmark's."""
    for size in request.sizes or ():
        if size not in SIZES:
            raise ExperimentError(f"{size} is not a training-set size of {NAME}: {list(SIZES)}")


def _read_published_evaluations(local: Path | None) -> tuple[FloatArray, FloatArray]:
    """Read the authors' configurations, (1000, 4), and error counts, (1000, 28).

    Args:
        local: A copy of the authors' file, which is stored in the cache of downloads; None to use
            the stored file, or to download it.
    """
    if local is not None:
        PUBLISHED.store(local)
    elif not PUBLISHED.is_fetched:
        PUBLISHED.download()
    return read_published(PUBLISHED.open_path())


def _fit_and_write(
    request: Request,
    values: FloatArray,
    errors: FloatArray,
    *,
    sizes: tuple[int, ...],
    source: str,
    command: str,
    comparisons: dict[str, Any],
) -> Path:
    """Fit the forest to error counts and write the artifact; return its folder.

    Args:
        request: Folder, seed, number of workers, and who is told the progress.
        values: Configurations coded as values, (n, 4).
        errors: Their error counts at S training-set sizes, which are the tasks, (n, S).
        sizes: The training-set sizes, (S,).
        source: Where the evaluations come from; up to a comma, its name without its address.
        command: The command that generates the artifact again.
        comparisons: Comparisons for the card, by name.
    """
    defined = define_benchmark()
    tasks = [task for task in defined.tasks if task.context["train_size"] in sizes]
    # In choosing splits the two smallest sizes count more, as they differ from all others.
    weights = [WEIGHT_OF_SIZE.get(size, 1.0) for size in sizes]
    name_of_source, _, _ = source.partition(",")
    report = CardTexts(
        source=source,
        command=command,
        limits=LIMITS,
        summaries={FOREST: f"Random forest fitted to {name_of_source}."},
        comparisons=comparisons,
    )
    # Errors depend on the product of rate and number of trees, and on the weight without logarithm.
    coding = space_coding(
        make_space(), products=[("learning_rate", "n_estimators")], also_raw=["min_child_weight"]
    )
    forest = ForestData(values, errors, coding, ForestRecipe(output_weights=tuple(weights)))
    return write_forest(request, replace(defined, tasks=tuple(tasks)), forest, report)


GENERATORS = (
    Generator(
        name=NAME,
        sources={
            "published": EvaluationSource(
                "The authors' 28 000 evaluations; --from takes a copy.",
                frozenset({Option.LOCAL, Option.SEED, Option.WORKERS}),
                generate_from_published,
            ),
            "train": EvaluationSource(
                "Trains XGBoost on MNIST; --from takes an npz file of the images.",
                frozenset(Option) - {Option.TASKS},
                generate_by_training,
                min_configurations=FOLDS,
            ),
        },
    ),
)
