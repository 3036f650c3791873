"""Generates `newsvendor`: simulates every price vector on every task."""

from pathlib import Path

import numpy as np

from hpobench_ordered.benchmarks.newsvendor import HIGHEST_PRICE, NAME, definition
from hpobench_ordered.files.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.generation._newsvendor_simulation import (
    draws,
    price_grid,
    simulate,
    utilities,
)
from hpobench_ordered.generation.base import Generator, Request, Source
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.card import Card, versions_of
from hpobench_ordered.surrogates.table import TableSurrogate


def generate(request: Request) -> Path:
    """Simulate the whole grid and write the artifact."""
    described = definition()
    prices, noise = price_grid(HIGHEST_PRICE), draws()
    rows = []
    walk = utilities(len(described.tasks))
    for task, utility in enumerate(walk):
        rows.append(simulate(prices, utility, noise))
        request.progress("simulating", task + 1, len(walk))
    profits = np.stack(rows)
    shape = (len(rows), *(HIGHEST_PRICE + 1,) * prices.shape[1])
    surrogate = BundledSurrogate(
        name="table",
        summary="The simulator's value of every configuration.",
        model=TableSurrogate.from_values(profits.reshape(shape), lower=[0] * prices.shape[1]),
        best_values=profits.max(axis=1).tolist(),
    )
    card = Card(
        benchmark=NAME,
        surrogate=SurrogateType.TABLE,
        source=described.provenance.source,
        licence=described.provenance.licence,
        evaluations=profits.size,
        configurations=len(prices),
        folds=0,
        figures=(),
        limits=(
            "Every evaluation uses the same random numbers: there is no noise between evaluations.",
        ),
        command=f"hpobench-ordered generate {NAME}",
        versions=versions_of("numpy", "mrg32k3a"),
    )
    write_bundle(request.folder, described, [surrogate], card)
    return request.folder


GENERATORS = (
    Generator(
        name=NAME,
        sources={
            "simulation": Source("Simulates all 9 x 9261 price vectors.", frozenset(), generate)
        },
    ),
)
