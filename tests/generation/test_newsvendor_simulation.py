"""The newsvendor: utilities and tastes as the authors draw them, and profits of a simulation."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.generation import newsvendor

PUBLISHED_UTILITIES = [
    [7, 7, 7],
    [7, 5, 7],
    [5, 5, 9],
    [4, 7, 9],
    [5, 7, 11],
    [5, 7, 10],
    [6, 9, 10],
    [4, 10, 11],
    [5, 11, 10],
]
"""The authors' utilities of the three items in the nine tasks."""


def serve_customers(
    prices: list[int], utilities: list[int], tastes: list[list[list[float]]]
) -> float:
    """Mean profit over days, by serving one customer after another as the benchmark is described.

    A customer buys the item of highest value that is in stock, if its value is positive.
    """
    profits = []
    for tastes_of_day in tastes:
        # Of the three items, every morning.
        stock = [8, 6, 20]
        cost_of_an_item = 5
        profit = -cost_of_an_item * sum(stock)
        for taste in tastes_of_day:
            values = [utilities[item] - prices[item] / 2 + taste[item] for item in range(3)]
            wanted = [item for item in range(3) if stock[item] > 0 and values[item] > 0]
            if wanted:
                bought = max(wanted, key=values.__getitem__)
                stock[bought] -= 1
                profit += prices[bought]
        profits.append(profit)
    return sum(profits) / len(profits)


@pytest.fixture(scope="module")
def tastes():
    """Random tastes of customers as the benchmark draws them, (days, customers, items)."""
    return newsvendor.draw_tastes()


def test_utilities_are_the_authors():
    """Utilities are a random walk over tasks from 1 to 11, which begins with the nine published."""
    utilities = newsvendor.draw_utilities(400)

    np.testing.assert_array_equal(utilities[:9], PUBLISHED_UTILITIES)
    assert utilities.min() == 1
    assert utilities.max() == 11


def test_tastes_are_gumbel_noise(tastes):
    """Tastes have mean and deviation of a Gumbel distribution of mean 0.

    Its standard deviation is pi / sqrt(6).
    """
    # Ten days of thirty customers, three items.
    assert tastes.shape == (10, 30, 3)
    deviation = math.pi / math.sqrt(6)
    standard_error = deviation / math.sqrt(tastes.size)
    assert abs(tastes.mean()) < 3 * standard_error
    assert tastes.std() == pytest.approx(deviation, rel=0.1)


@given(
    prices=st.lists(st.integers(0, 20), min_size=3, max_size=3),
    utilities=st.lists(st.integers(1, 11), min_size=3, max_size=3),
)
def test_profit_is_that_of_serving_customers(prices, utilities):
    """The fast simulation gives the profit of serving one customer after another."""
    tastes = newsvendor.draw_tastes()

    (profit,) = newsvendor.simulate(np.array([prices]), np.array(utilities), tastes)

    assert profit == serve_customers(prices, utilities, tastes.tolist())


@pytest.mark.parametrize("task", range(9))
def test_profits_are_the_authors_recorded(shared, tastes, task):
    """Profits that the authors' own program gave, recorded with the prices."""
    all_records = json.loads((shared / "reference/newsvendor_recorded.json").read_text())
    records = [record for record in all_records if record["task"] == task]
    prices = np.array([record["price"] for record in records])

    profits = newsvendor.simulate(prices, np.array(PUBLISHED_UTILITIES[task]), tastes)

    recorded_profits = [record["profit"] for record in records]
    np.testing.assert_allclose(profits, recorded_profits, rtol=0, atol=1e-9)
