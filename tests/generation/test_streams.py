"""Streams: what the public ones may not give away, and how times of one's own are read.

Of the public ones no row repeats another, no feature gives the target away, and time ascends.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from hpobench_ordered.errors import ArtifactError, ExperimentError
from hpobench_ordered.generation._retrain.streams import (
    PUBLIC,
    TRAFFIC_LAGS,
    Stream,
    read_public_stream,
    read_stream,
)

A_DAY = {"electricity": 48, "weather": 1, "bike_sharing": 24, "metro_traffic": 24, "flights": 300}
SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in sorted(PUBLIC) if n != "bike_sharing"]


@pytest.fixture(scope="module", params=["bike_sharing", *SLOW])
def stream(request, shared):
    return read_public_stream(request.param, shared / "data" / "streams")


def _raw(name: str, shared: Path) -> pd.DataFrame:
    return pd.read_parquet(shared / "data" / "streams" / f"{name}.parquet")


def test_periods_are_consecutive_and_whole_and_hardly_a_row_repeats_the_one_before(stream):
    assert list(stream.names) == sorted(stream.names)
    in_period = np.diff(stream.starts)
    assert in_period.min() > 0.5 * np.median(in_period)
    columns = [stream.data.numbers, stream.data.categories, stream.data.target[:, None]]
    rows = np.hstack(columns).astype(float)
    assert (rows[1:] == rows[:-1]).all(axis=1).mean() < 0.03


def test_what_a_regression_predicts_is_no_feature(stream):
    """Rows of the hour before with another description of the weather are such: 15.7 % of them."""
    target = stream.data.target
    if len(np.unique(target)) > 2:
        assert (stream.data.numbers == target[:, None]).mean(axis=0).max() < 0.02
        assert (target[1:] == target[:-1]).mean() < 0.02


def test_no_simple_function_of_features_gives_the_target_away(stream):
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


def test_the_label_of_electricity_is_what_is_said(shared):
    """Price above the mean of the 48 before; and all that is measured is known a row later."""
    raw = _raw("electricity", shared)
    above = raw["nswprice"] > raw["nswprice"].shift(1).rolling(48).mean()
    assert (above == raw["target"])[48:].all()
    stream = read_public_stream("electricity", shared / "data" / "streams")
    last = len(stream.data)
    assert stream.data.target.tolist() == raw["target"][48 : 48 + last].tolist()
    market = raw[["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]]
    np.testing.assert_array_equal(stream.data.numbers[:, 2:7], market[47 : 47 + last])
    mean = raw["nswprice"].astype(float)[:48].mean()
    assert stream.data.numbers[0, 7] == pytest.approx(mean, rel=1e-5)
    rises = raw["nswprice"] > raw["nswprice"].shift(1)
    assert (rises == raw["target"]).mean() < 0.65  # not "whether the price rises"


def test_lags_of_traffic_are_hours(shared):
    """Traffic repeats itself after a day, and after a week but for hours that are missing."""
    stream = read_public_stream("metro_traffic", shared / "data" / "streams")
    target, before = stream.data.target, max(TRAFFIC_LAGS)
    lagged = stream.data.numbers[:, -len(TRAFFIC_LAGS) :]
    for lag, column in zip(TRAFFIC_LAGS, lagged.T, strict=True):
        np.testing.assert_array_equal(column[before:], target[before - lag : -lag])

    def correlation(lag: int) -> float:
        return float(np.corrcoef(target[lag:], target[:-lag])[0, 1])

    assert correlation(24) == pytest.approx(0.71, abs=0.005)
    assert correlation(168) == pytest.approx(0.57, abs=0.005)
    assert max(range(12, 37), key=correlation) == 24
    assert max(range(156, 181), key=correlation) in (167, 168)


@pytest.mark.parametrize("name", ["electricity", "weather", "bike_sharing", "flights"])
def test_rows_are_in_the_order_of_time(name, shared):
    raw = _raw(name, shared)
    if name == "electricity":  # half-hours of the week, from a Tuesday on
        found = (raw["day"] - 1) * 24 + raw["period"] * 23.5
        np.testing.assert_allclose(found, (24 + np.arange(len(raw)) / 2) % (7 * 24), atol=0.01)
    elif name == "weather":  # no times; a day is as warm as that of a year before, roughly
        temperature = raw["feat_1"].to_numpy()
        assert np.corrcoef(temperature[365:], temperature[:-365])[0, 1] > 0.8
        assert np.corrcoef(temperature[182:], temperature[:-182])[0, 1] < -0.7
    else:
        columns = {"bike_sharing": ["yr", "mth"], "flights": ["month", "day", "sched_dep_time"]}
        assert pd.MultiIndex.from_frame(raw[columns[name]]).is_monotonic_increasing


def _own(
    folder: Path, times: list[object], *, every: str, time_format: str | None = None
) -> Stream:
    """A stream of rows 0, 1, ... with these times."""
    path = folder / "own.csv"
    pd.DataFrame({"time": times, "x": 1.0, "row": range(len(times))}).to_csv(path, index=False)
    return read_stream(path, target="row", time="time", every=every, time_format=time_format)


def test_rows_are_sorted_by_the_calendar_whatever_a_period_is(tmp_path):
    """As text, 10/20/2023 is before 9/15/2023."""
    times: list[object] = ["1/20/2024", "10/20/2023", "9/15/2023", "12/31/2023"]
    for every in ("2", "year"):
        assert _own(tmp_path, times, every=every).data.target.tolist() == [2, 1, 3, 0]
        with pytest.raises(ArtifactError, match="1 rows have no 'time'"):
            _own(tmp_path, [*times, None], every=every)


def test_numbers_are_times_where_a_period_is_a_number_of_rows(tmp_path):
    assert _own(tmp_path, [10, 9, 100], every="1").data.target.tolist() == [1, 0, 2]
    with pytest.raises(ArtifactError, match="1 rows have no 'time'"):
        _own(tmp_path, [1, None, 2], every="1")
    with pytest.raises(ExperimentError, match=r"'time' holds numbers.* give their format"):
        _own(tmp_path, [20231231, 20240101], every="year")
    dated = _own(tmp_path, [20240101, 20231231], every="year", time_format="%Y%m%d")
    assert dated.names == ("2023", "2024")


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        ([1, 2, 2, 2, 3, 4], [4, 2]),  # a cut after two rows would part those of time 2
        ([1, 1, 1, 1, 1, 2, 3], [5, 1, 1]),
        ([1, 2, 3, 4, 5], [2, 2, 1]),
    ],
)
def test_rows_of_equal_time_are_in_one_period(tmp_path, times, sizes):
    stream = _own(tmp_path, times, every="2")
    assert np.diff(stream.starts).tolist() == sizes
    assert stream.names == tuple(str(number) for number in range(len(sizes)))


def test_whether_day_or_month_comes_first_is_never_guessed(tmp_path):
    unclear: list[object] = ["01/02/2024", "03/04/2024"]
    for every in ("1", "month"):
        with pytest.raises(ExperimentError, match=r"day or month first.*--time-format %d/%m/%Y"):
            _own(tmp_path, unclear, every=every)
    assert _own(tmp_path, unclear, every="month", time_format="%d/%m/%Y").names[0] == "2024-02"
    assert _own(tmp_path, unclear, every="month", time_format="%m/%d/%Y").names[0] == "2024-01"
    for clear in (["01/02/2024", "13/04/2024"], ["13/04/2024", "01/02/2024"]):
        assert _own(tmp_path, [*clear], every="month").names == ("2024-02", "2024-04")
    for year_first in (["2024-01-02", "2024-03-04"], ["2024/01/02 10:00", "2024/03/04 11:00"]):
        assert _own(tmp_path, [*year_first], every="month").names == ("2024-01", "2024-03")
    with pytest.raises(ArtifactError, match="cannot be read as dates"):
        _own(tmp_path, unclear, every="month", time_format="%Y")
