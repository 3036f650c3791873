"""The public streams: no row repeats another, no feature gives the target away, time ascends."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.generation._retrain.streams import LAGS, PUBLIC, Stream, public_stream

NAMES = sorted(PUBLIC)
A_DAY = {"electricity": 48, "weather": 1, "bike_sharing": 24, "metro_traffic": 24, "flights": 300}


@pytest.fixture(scope="module", params=NAMES)
def stream(request: pytest.FixtureRequest, shared: Path) -> Stream:
    return public_stream(request.param, shared / "data" / "streams")


def _raw(name: str, shared: Path) -> pd.DataFrame:
    return pd.read_parquet(shared / "data" / "streams" / f"{name}.parquet")


def test_hardly_a_row_repeats_the_one_before(stream: Stream) -> None:
    columns = [stream.data.numbers, stream.data.categories, stream.data.target[:, None]]
    rows = np.hstack(columns).astype(float)
    assert (rows[1:] == rows[:-1]).all(axis=1).mean() < 0.03


def test_what_a_regression_predicts_is_no_feature(stream: Stream) -> None:
    """Rows of the hour before with another description of the weather are such: 15.7 % of them."""
    target = stream.data.target
    if len(np.unique(target)) > 2:
        assert (stream.data.numbers == target[:, None]).mean(axis=0).max() < 0.02
        assert (target[1:] == target[:-1]).mean() < 0.02


def test_no_simple_function_of_features_gives_the_target_away(stream: Stream) -> None:
    """Features, their differences, and how they differ from their means over the last day.

    The label of electricity is whether the price is above its mean of the day before: with the
    price now as a feature, the last of these had an area under the curve of 1.
    """
    numbers = pd.DataFrame(stream.data.numbers).ffill().fillna(0)
    day = A_DAY[stream.data.name]
    known = [
        *(numbers[j] for j in numbers),
        *(numbers[i] - numbers[j] for i, j in combinations(numbers, 2)),
        *(numbers[j] - numbers[j].shift(1).rolling(day).mean() for j in numbers),
    ]
    table = np.stack([column[day + 1 :] for column in known], axis=1)
    target = stream.data.target[day + 1 :]
    if len(np.unique(target)) == 2:
        areas = np.array([roc_auc_score(target, column) for column in table.T])
        assert np.maximum(areas, 1 - areas).max() < 0.95
    else:
        correlations = np.corrcoef(table.T, target.astype(float))[-1, :-1]
        assert np.nanmax(np.abs(correlations)) < 0.95


def test_the_label_of_electricity_is_what_is_said(shared: Path) -> None:
    """Price above the mean of the 48 before; and all that is measured is known a row later."""
    raw = _raw("electricity", shared)
    above = raw["nswprice"] > raw["nswprice"].shift(1).rolling(48).mean()
    assert (above == raw["target"])[48:].all()
    stream = public_stream("electricity", shared / "data" / "streams")
    last = len(stream.data)
    assert stream.data.target.tolist() == raw["target"][48 : 48 + last].tolist()
    market = raw[["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]]
    np.testing.assert_array_equal(stream.data.numbers[:, 2:7], market[47 : 47 + last])
    mean = raw["nswprice"].astype(float)[:48].mean()
    assert stream.data.numbers[0, 7] == pytest.approx(mean, rel=1e-5)
    rises = raw["nswprice"] > raw["nswprice"].shift(1)
    assert (rises == raw["target"]).mean() < 0.65  # not "whether the price rises"


def test_lags_of_traffic_are_hours(shared: Path) -> None:
    """Traffic repeats itself after a day, and after a week but for hours that are missing."""
    stream = public_stream("metro_traffic", shared / "data" / "streams")
    target, before = stream.data.target, max(LAGS)
    lagged = stream.data.numbers[:, -len(LAGS) :]
    for lag, column in zip(LAGS, lagged.T, strict=True):
        np.testing.assert_array_equal(column[before:], target[before - lag : -lag])

    def correlation(lag: int) -> float:
        return float(np.corrcoef(target[lag:], target[:-lag])[0, 1])

    assert correlation(24) == pytest.approx(0.71, abs=0.005)
    assert correlation(168) == pytest.approx(0.57, abs=0.005)
    assert max(range(12, 37), key=correlation) == 24
    assert max(range(156, 181), key=correlation) in (167, 168)


@pytest.mark.parametrize("name", ["electricity", "bike_sharing", "flights"])
def test_rows_are_in_the_order_of_time(name: str, shared: Path) -> None:
    raw = _raw(name, shared)
    if name == "electricity":  # half-hours of the week, from a Tuesday on
        found = (raw["day"] - 1) * 24 + raw["period"] * 23.5
        np.testing.assert_allclose(found, (24 + np.arange(len(raw)) / 2) % (7 * 24), atol=0.01)
        return
    columns = {"bike_sharing": ["yr", "mth"], "flights": ["month", "day", "sched_dep_time"]}
    assert raw[columns[name]].apply(tuple, axis=1).is_monotonic_increasing


def test_the_days_of_weather_are_in_the_order_of_the_seasons(shared: Path) -> None:
    """The file has no times; the temperature of a day is that of a year before, roughly."""
    temperature = _raw("weather", shared)["feat_1"].to_numpy()
    assert np.corrcoef(temperature[365:], temperature[:-365])[0, 1] > 0.8
    assert np.corrcoef(temperature[182:], temperature[:-182])[0, 1] < -0.7


def test_periods_are_consecutive_and_whole(stream: Stream) -> None:
    assert list(stream.names) == sorted(stream.names)
    rows = np.diff(stream.starts)
    assert rows.min() > 0.5 * np.median(rows)
