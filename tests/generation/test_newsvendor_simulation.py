import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.generation import newsvendor

WALK = [[7, 7, 7], [7, 5, 7], [5, 5, 9], [4, 7, 9], [5, 7, 11], [5, 7, 10], [6, 9, 10]]
WALK += [[4, 10, 11], [5, 11, 10]]


def mean_profit(prices: list[int], worth: list[int], noise: list[list[list[float]]]) -> float:
    """Serve one customer after another, by the words of the benchmark's description."""
    profits = []
    for replication in noise:
        shelf, till = [8, 6, 20], 0
        for customer in replication:
            utilities = [w - p / 2 + c for w, p, c in zip(worth, prices, customer, strict=True)]
            wanted = [i for i in range(3) if shelf[i] and utilities[i] > 0]
            if wanted:
                chosen = max(wanted, key=utilities.__getitem__)
                shelf[chosen] -= 1
                till += prices[chosen]
        profits.append(till - 5 * (8 + 6 + 20))
    return sum(profits) / len(profits)


@pytest.fixture(scope="module")
def noise():
    return newsvendor.draws()


def test_utilities_follow_the_authors_walk():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    walk = newsvendor.utilities(400)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(walk[:9], WALK)
    np.testing.assert_array_equal(newsvendor.utilities(), WALK)
    assert (walk.min(), walk.max()) == (1, 11)
    with pytest.raises(ValueError, match="at least 1"):
        newsvendor.utilities(0)


def test_draws_are_gumbel_noise_of_mean_zero(noise, monkeypatch):
    assert noise.shape == (10, 30, 3)
    np.testing.assert_array_equal(noise, newsvendor.draws())
    assert abs(noise.mean()) < 3 * math.pi / math.sqrt(6 * noise.size)
    assert noise.std() == pytest.approx(math.pi / math.sqrt(6), rel=0.1)
    monkeypatch.setitem(sys.modules, "mrg32k3a.mrg32k3a", None)
    with pytest.raises(MissingExtraError, match=r"\[generate\]"):
        newsvendor.draws()


@given(
    prices=st.lists(st.integers(0, 20), min_size=3, max_size=3),
    worth=st.lists(st.integers(1, 11), min_size=3, max_size=3),
)
def test_equals_serving_customer_by_customer(prices, worth):
    noise = newsvendor.draws()
    profit = newsvendor.simulate(np.array([prices]), np.array(worth), noise)
    assert profit.item() == mean_profit(prices, worth, noise.tolist())


def test_batch_equals_single_in_any_order(noise):
    prices = np.random.default_rng(0).integers(0, 21, (50, 3))
    worth = np.array(WALK[4])
    batch = newsvendor.simulate(prices, worth, noise)
    single = [newsvendor.simulate(row[None], worth, noise).item() for row in prices]
    np.testing.assert_array_equal(batch, single)
    np.testing.assert_array_equal(newsvendor.simulate(prices[::-1], worth, noise), batch[::-1])


def test_grid_holds_every_price_list_last_item_fastest():
    expected = np.stack(np.meshgrid(*[np.arange(21)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    np.testing.assert_array_equal(newsvendor.price_grid(20), expected)


def test_equals_what_the_authors_runs_recorded(shared, noise):
    recorded = json.loads((shared / "reference/newsvendor_recorded.json").read_text())
    walk = newsvendor.utilities()
    for task in range(len(walk)):
        rows = [row for row in recorded if row["task"] == task]
        profits = newsvendor.simulate(np.array([r["price"] for r in rows]), walk[task], noise)
        np.testing.assert_allclose(profits, [r["profit"] for r in rows], rtol=0, atol=1e-9)
