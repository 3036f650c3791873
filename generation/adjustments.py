"""Generates `svm-a`, `svm-b`, `xgb-a`, `xgb-b`: searches best values on the flows' forests.

The forests are those of `openml-svm` and `openml-xgboost`; the artifacts hold only the definition,
the best known values before and after the adjustment, and a card.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from hpobench_ordered.benchmarks._adjustment import (
    BEST_VALUES,
    SEARCHED_ON,
    SpaceAdjustment,
    Steps,
    look_up_surrogate_hash,
)
from hpobench_ordered.benchmarks.adjustments import FLOW_SURROGATE, SEARCHED
from hpobench_ordered.data.artifact import ArtifactWriter
from hpobench_ordered.data.best import DRAWS, NOT_OPTIMAL, search_best_values
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation.base import EvaluationSource, Generator, Option, Request
from hpobench_ordered.surrogates.bundle import BENCHMARK, CARD, definition_to_json, read_card
from hpobench_ordered.surrogates.card import Card, find_versions

LIMIT_OF_SEARCH = (
    f"Best known values are the best of {DRAWS} random configurations and a local refinement, on "
    "the forest itself; a longer search may find better ones."
)


def generate(adjustment: SpaceAdjustment, request: Request) -> Path:
    """Search the best values before and after an adjustment, write the artifact, return its folder.

    Step 1 is the search space before the adjustment, step 2 that after it. The artifact has no
    surrogate: the forest is in the artifact of the flow that the adjustment is based on.
    """
    # The best values that come with the forest are those in the flow's own, larger search space.
    forest, _best_values_of_flow = adjustment.base.option(FLOW_SURROGATE).load()
    rng = np.random.default_rng(request.seed)
    before = _search_best_values(adjustment, Steps.STEP_1, forest, request, rng)
    after = _search_best_values(adjustment, Steps.STEP_2, forest, request, rng)
    best_values = {
        # The hash of the forest, to notice if values were searched on another one.
        SEARCHED_ON: look_up_surrogate_hash(adjustment.base, FLOW_SURROGATE),
        Steps.STEP_1.name: before,
        Steps.STEP_2.name: after,
    }

    content = {
        **definition_to_json(adjustment.define(Steps.STEP_2)),
        "surrogates": {},
        BEST_VALUES: {FLOW_SURROGATE: best_values},
    }
    with ArtifactWriter(request.folder) as writer:
        writer.write_json(BENCHMARK, content)
        writer.write_json(CARD, _make_card(adjustment, request).to_json())
    return request.folder


def _search_best_values(
    adjustment: SpaceAdjustment,
    step: Steps,
    forest: Surrogate,
    request: Request,
    rng: np.random.Generator,
) -> list[float]:
    """Search the best value of every task, before or after an adjustment of the search space.

    Args:
        adjustment: An adjustment replaces one search space with another. Both are parts of a
            larger one: that of the flow, an algorithm whose evaluations OpenML has recorded.
        step: Which of the two search spaces: that before the adjustment (step 1) or after it.
        forest: The forest that is searched, which predicts values on the flow's search space.
        request: Its `progress` is called after every task.
        rng: Draws the configurations of the search.
    """
    benchmark_of_step = adjustment.define(step)
    n_tasks = len(benchmark_of_step.tasks)
    forest_on_space_of_step = adjustment.embed(step, forest)
    search = search_best_values(
        forest_on_space_of_step,
        benchmark_of_step.space,
        benchmark_of_step.objective,
        n_tasks=n_tasks,
        rng=rng,
    )
    best_values = []
    for best_value in search:  # one task each, after seconds of searching
        best_values.append(best_value)
        request.progress("best values", len(best_values), n_tasks)
    return best_values


def _make_card(adjustment: SpaceAdjustment, request: Request) -> Card:
    """Make the card: that of the flow's forest, with the tasks of the adjustment alone.

    Raises:
        ArtifactError: The flow has no artifact.
    """
    if adjustment.base.artifact is None:
        raise ArtifactError(f"{adjustment.base.id} has no artifact with a card")

    card = read_card(adjustment.base.artifact)
    # The figures of a card say how good the forest is on each task of the flow.
    figures = [figure for figure in card.figures if figure.name in adjustment.tasks]
    # `LIMIT_OF_SEARCH` takes the place of what the flow's card says about its best values.
    other_limits = [limit for limit in card.limits if limit != NOT_OPTIMAL]
    return replace(
        card,
        benchmark=adjustment.name,
        figures=tuple(figures),
        limits=(
            f"The forest is that of {adjustment.base.id}: this artifact holds best values only, "
            "and sources and limits are those of all of its tasks.",
            *other_limits,
            LIMIT_OF_SEARCH,
        ),
        command=request.command(adjustment.name),
        versions=find_versions("hpobench-ordered", "numpy"),
        seed=request.seed,
        size=0,  # there is no file of a surrogate
        comparisons={},
    )


GENERATORS = tuple(
    Generator(
        adjustment.name,
        {
            "forests": EvaluationSource(
                f"Best values on the forest of {adjustment.base.name}.",
                frozenset({Option.SEED}),
                partial(generate, adjustment),
            )
        },
    )
    for adjustment in SEARCHED
)
