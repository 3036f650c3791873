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
from hpobench_ordered.benchmarks.newsvendor import HIGHEST_PRICE, NAME, define_benchmark
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.generation.base import EvaluationSource, Generator, Request
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.surrogates.card import Card, find_versions
from hpobench_ordered.surrogates.table import TableSurrogate

N_ITEMS = 3
N_CUSTOMERS = 30
N_REPLICATIONS = 10
INITIAL_STOCK = (8, 6, 20)
UNIT_COST = 5
PRICE_WEIGHT = 0.5

FIRST_UTILITY = 7
"""Utility of every item in the first task."""
UTILITY_BOUNDS = (1, 11)
WALK_SEED = 13
TASTE_STREAM = (1, 2, 3)
"""Stream, substream and subsubstream of the generator of the customers' tastes."""


def draw_utilities(n_tasks: int = 9) -> IntArray:
    """Draw the utilities u of the items in each task, (T, J): a random walk from task to task.

    In the first task all utilities are 7. Each later task adds a whole number from -2 to 2 to the
    utility of every item, and clips it to 1..11. The steps come from NumPy's legacy generator under
    the authors' seed, because the recorded evaluations depend on it; more tasks continue the same
    walk.
    """
    rng = np.random.RandomState(WALK_SEED)
    utilities = np.empty((n_tasks, N_ITEMS), dtype=np.int64)
    utilities[0] = FIRST_UTILITY
    for task in range(1, n_tasks):
        steps = rng.randint(-2, 3, N_ITEMS)  # below 3
        utilities[task] = np.clip(utilities[task - 1] + steps, *UTILITY_BOUNDS)
    return utilities


def draw_tastes() -> FloatArray:
    """Draw the customers' tastes e, (R, C, J), the same for every evaluation.

    A taste is Gumbel noise of scale 1, shifted by Euler's gamma so that its mean is 0. It is the
    inverse distribution function of a uniform number of the generator MRG32k3a, which draws item by
    item, customer by customer, replication by replication, as the authors do.
    """
    mrg32k3a = import_extra(
        "mrg32k3a.mrg32k3a", package="mrg32k3a", extra="generate", purpose="simulating newsvendor"
    )
    # Stream, substream and subsubstream.
    rng = mrg32k3a.MRG32k3a(s_ss_sss_index=list(TASTE_STREAM))
    shape = (N_REPLICATIONS, N_CUSTOMERS, N_ITEMS)
    uniforms = [rng.random() for _ in range(math.prod(shape))]
    noise = [-math.log(-math.log(uniform)) - np.euler_gamma for uniform in uniforms]
    return np.array(noise).reshape(shape)


def compute_total_profits(prices: IntArray, utilities: IntArray, tastes: FloatArray) -> IntArray:
    """Simulate n price lists on a task, and return their profits summed over R replications, (n,).

    Prices, stock and cost are whole numbers, so the sums are exact. All price lists are simulated
    side by side, customer by customer.

    Args:
        prices: Whole prices p, (n, J).
        utilities: Utilities u of the items, (J,).
        tastes: Tastes e of C customers for J items in R replications, (R, C, J).
    """
    n = len(prices)
    price_lists = np.arange(n)
    price_of_item = np.ascontiguousarray(prices.T)  # (J, n)
    utility_at_price = (utilities - PRICE_WEIGHT * prices).T  # (J, n)
    initial_stock = np.repeat(np.array(INITIAL_STOCK)[:, None], n, axis=1)  # (J, n)

    # Every replication pays for the whole stock, sold or not.
    cost = UNIT_COST * sum(INITIAL_STOCK)
    total_profit = np.full(n, -cost * len(tastes), dtype=np.int64)
    for tastes_of_customers in tastes:  # of one replication
        stock = initial_stock.copy()
        for taste in tastes_of_customers:
            # Utility of each item to this customer at each list's price, (J, n); none if sold out.
            utility = np.where(stock > 0, utility_at_price + taste[:, None], -np.inf)
            best_item = utility.argmax(axis=0)  # at each list's prices, (n,)

            # The customer buys the best item where it has a positive utility.
            buys = utility[best_item, price_lists] > 0
            lists_with_sale = price_lists[buys]
            sold_item = best_item[buys]
            stock[sold_item, lists_with_sale] -= 1
            total_profit[lists_with_sale] += price_of_item[sold_item, lists_with_sale]
    return total_profit


def simulate(prices: IntArray, utilities: IntArray, tastes: FloatArray) -> FloatArray:
    """Simulate n price lists on a task, and return their mean profits over R replications, (n,).

    Profits are whole numbers, so that their sum is exact, and the mean is rounded once.

    Args:
        prices: Whole prices of J items, (n, J).
        utilities: Utilities of the items, (J,).
        tastes: Tastes of C customers for them in R replications, (R, C, J).
    """
    n_replications = len(tastes)
    return compute_total_profits(prices, utilities, tastes) / n_replications


def make_price_grid(highest: int) -> IntArray:
    """Make all lists of whole prices 0..highest of three items, a list in each row, (n, 3).

    The last item's price varies fastest.
    """
    prices_per_item = highest + 1
    prices_of_items = np.indices((prices_per_item,) * N_ITEMS, dtype=np.int64)
    return prices_of_items.reshape(N_ITEMS, -1).T


def generate(request: Request) -> Path:
    """Simulate the grid of all price lists on every task and write the artifact."""
    defined = define_benchmark()
    n_tasks = len(defined.tasks)
    prices = make_price_grid(HIGHEST_PRICE)
    tastes = draw_tastes()
    profits_of_tasks = []
    for task, utilities in enumerate(draw_utilities(n_tasks)):
        profits_of_tasks.append(simulate(prices, utilities, tastes))
        request.progress("simulating", task + 1, n_tasks)
    profits = np.stack(profits_of_tasks)  # (tasks, price lists)

    # An axis for the tasks, then one for the price of each item, from 0 to the highest.
    prices_per_item = HIGHEST_PRICE + 1
    table = profits.reshape(n_tasks, *(prices_per_item,) * N_ITEMS)
    surrogate = BundledSurrogate(
        name="table",
        summary="The simulator's value of every configuration.",
        model=TableSurrogate.from_values(table, lower=[0] * N_ITEMS),
        best_values=profits.max(axis=1).tolist(),
    )
    write_bundle(request.folder, defined, [surrogate], _make_card(defined, profits))
    return request.folder


def _make_card(defined: Definition, profits: FloatArray) -> Card:
    """Make the card of the benchmark from its definition and the profits, (tasks, price lists)."""
    _, n_price_lists = profits.shape
    return Card(
        benchmark=NAME,
        surrogate=SurrogateType.TABLE,
        source=defined.provenance.source,
        licence=defined.provenance.licence,
        evaluations=profits.size,
        configurations=n_price_lists,
        folds=0,  # an exact table is not cross-validated, so it has no figures
        figures=(),
        limits=(
            "Every evaluation uses the same random numbers: there is no noise between evaluations.",
        ),
        command=f"hpobench-ordered generate {NAME}",
        versions=find_versions("numpy", "mrg32k3a"),
    )


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
