"""Generates `newsvendor`: simulates every price vector on every task.

Simulation of the dynamic newsvendor (OTHPO paper, section 4; SimOpt's Dynamic News problem).

A retailer sells three items from a fixed initial stock to customers who arrive one after another.
Each customer buys the item in stock of the highest utility, if that utility is positive. The
tasks differ in how useful the items are to the customers.

Notation:
    T           number of tasks
    R, C, J     replications (10), customers (30), items (3)
    u_tj        utility of item j in task t, before price and taste
    p_j         price of item j
    e_rcj       taste of customer c for item j in replication r: Gumbel noise of mean 0
    U_rcj       u_tj - p_j / 2 + e_rcj, utility of item j to the customer
    s_j, k      initial stock of item j, cost of one unit of it
    profit      (1 / R) sum_r (sum_j p_j sold_rj - k sum_j s_j)
"""

import math
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.benchmarks.newsvendor import HIGHEST_PRICE, NAME, definition
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.generation.base import EvaluationSource, Generator, Request
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.surrogates.card import Card, versions_of
from hpobench_ordered.surrogates.table import TableSurrogate

N_ITEMS = 3
N_CUSTOMERS = 30
N_REPLICATIONS = 10
INITIAL_STOCK = (8, 6, 20)
UNIT_COST = 5
PRICE_WEIGHT = 0.5

_FIRST_UTILITY = 7
_UTILITY_BOUNDS = (1, 11)
_WALK_SEED = 13
_STREAM = (1, 2, 3)


def utilities(n_tasks: int = 9) -> IntArray:
    """Utilities u, (T, J), of the items in `n_tasks` tasks: a random walk from task to task.

    Each task adds -2..2 to every item's utility, clipped to 1..11. The steps come from NumPy's
    legacy generator under the authors' seed, because the recorded evaluations depend on it; more
    tasks continue the same walk.
    """
    if n_tasks < 1:
        raise ValueError(f"n_tasks must be at least 1, but got {n_tasks}")
    rng = np.random.RandomState(_WALK_SEED)
    walk = np.empty((n_tasks, N_ITEMS), dtype=np.int64)
    walk[0] = _FIRST_UTILITY
    for task in range(1, n_tasks):
        walk[task] = np.clip(walk[task - 1] + rng.randint(-2, 3, N_ITEMS), *_UTILITY_BOUNDS)
    return walk


def draws() -> FloatArray:
    """Draw the customers' tastes e, (R, C, J), the same for every evaluation.

    Gumbel noise of scale 1 and location minus Euler's gamma, so of mean 0, by inverse transform of
    MRG32k3a's uniforms, item by item, customer by customer, replication by replication.
    """
    mrg32k3a = import_extra(
        "mrg32k3a.mrg32k3a", package="mrg32k3a", extra="generate", purpose="simulating newsvendor"
    )
    rng = mrg32k3a.MRG32k3a(s_ss_sss_index=list(_STREAM))
    shape = (N_REPLICATIONS, N_CUSTOMERS, N_ITEMS)
    noise = [-math.log(-math.log(rng.random())) - np.euler_gamma for _ in range(math.prod(shape))]
    return np.array(noise).reshape(shape)


def total_profits(prices: IntArray, utilities: IntArray, draws: FloatArray) -> IntArray:
    """R times the profit, (n,), of whole prices, (n, J), on a task with utilities (J,).

    Prices, stock and cost are whole numbers, so the total over the replications is exact.
    """
    n = len(prices)
    stock = np.repeat(np.array(INITIAL_STOCK)[:, None], n, axis=1)
    cost = UNIT_COST * sum(INITIAL_STOCK)
    appeal = (utilities - PRICE_WEIGHT * prices).T
    price = np.ascontiguousarray(prices.T)
    total = np.full(n, -cost * len(draws), dtype=np.int64)
    everyone = np.arange(n)
    for replication in draws:
        left = stock.copy()
        for taste in replication:
            utility = np.where(left > 0, appeal + taste[:, None], -np.inf)
            choice = utility.argmax(axis=0)
            buyers = everyone[utility[choice, everyone] > 0]
            bought = choice[buyers]
            left[bought, buyers] -= 1
            total[buyers] += price[bought, buyers]
    return total


def simulate(prices: IntArray, utilities: IntArray, draws: FloatArray) -> FloatArray:
    """Mean profit (n,) of price lists (n, J) on one task: the float64 nearest to the exact mean."""
    return total_profits(prices, utilities, draws) / len(draws)


def price_grid(highest: int) -> IntArray:
    """Return all price lists of whole prices 0..highest, last item fastest, shape (n, J)."""
    axes = np.indices((highest + 1,) * N_ITEMS, dtype=np.int64)
    return axes.reshape(N_ITEMS, -1).T


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
            "simulation": EvaluationSource(
                "Simulates all 9 x 9261 price vectors.", frozenset(), generate
            )
        },
    ),
)
