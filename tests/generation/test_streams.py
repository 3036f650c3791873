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

# Rows a day of each public stream.
ROWS_PER_DAY = {
    "electricity": 48,
    "weather": 1,
    "bike_sharing": 24,
    "metro_traffic": 24,
    "flights": 300,
}
SLOW_NAMES = sorted(set(PUBLIC) - {"bike_sharing"})
# Measurements of the market for electricity.
MARKET_COLUMNS = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]


@pytest.fixture(
    scope="module",
    params=["bike_sharing", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_NAMES)],
)
def stream(request, shared):
    """Each public stream; all but the smallest in slow tests."""
    return read_public_stream(request.param, shared / "data" / "streams")


def read_file(name: str, shared: Path) -> pd.DataFrame:
    """The file of a public stream, as it was published."""
    return pd.read_parquet(shared / "data" / "streams" / f"{name}.parquet")


# -- public streams --------------------------------------------------------------------------------


def test_periods_ascend(stream):
    assert list(stream.names) == sorted(stream.names)


def test_periods_are_whole(stream):
    """A stream is cut into periods, such as months; the data cover each from its start to its end.

    A first month with data from the 20th on, for instance, would have few rows. So every period has
    at least half as many rows as most have.
    """
    rows_of_periods = np.diff(stream.starts)

    assert rows_of_periods.min() > 0.5 * np.median(rows_of_periods)


def test_hardly_a_row_repeats_the_last(stream):
    """Less than 3 % of the rows equal the row before in all features and the target."""
    columns = [stream.data.numbers, stream.data.categories, stream.data.target[:, None]]
    rows = np.hstack(columns).astype(float)

    is_repeated = (rows[1:] == rows[:-1]).all(axis=1)

    assert is_repeated.mean() < 0.03


def test_number_to_predict_is_no_feature(stream):
    """No feature equals the target in 2 % of the rows or more: fewer may be equal by chance.

    Nor does the target equal that of the row before, as it would in rows of the same hour with
    other weather. Labels, of which there are two, often equal features by chance and are left out.
    """
    target = stream.data.target
    is_label = len(np.unique(target)) == 2
    if is_label:
        return

    equals_target = stream.data.numbers == target[:, None]
    share_of_rows = equals_target.mean(axis=0)  # of each feature
    equals_row_before = target[1:] == target[:-1]
    assert share_of_rows.max() < 0.02
    assert equals_row_before.mean() < 0.02


def make_simple_functions(stream: Stream) -> np.ndarray:
    """Features, their differences, and how they differ from their means over the last day, (n, k).

    The label of electricity is whether the price is above its mean of the day before: with the
    price now as a feature, the last of these had an area under the curve of 1.
    """
    numbers = pd.DataFrame(stream.data.numbers).ffill().fillna(0)
    features = [numbers[j] for j in numbers]
    differences = [numbers[i] - numbers[j] for i, j in combinations(numbers, 2)]
    rows_per_day = ROWS_PER_DAY[stream.data.name]
    deviations = []
    for feature in features:
        mean_of_last_day = feature.shift(1).rolling(rows_per_day).mean()
        deviations.append(feature - mean_of_last_day)
    return np.stack([*features, *differences, *deviations], axis=1)


def test_simple_functions_do_not_reveal_target(stream):
    """No feature, difference of features or deviation from the last day's mean predicts it almost
    exactly: by the area under the curve for a label, by the correlation for a number, up to 0.95.
    """
    # Means over the last day need a whole day.
    first_row = ROWS_PER_DAY[stream.data.name] + 1
    functions = make_simple_functions(stream)[first_row:]
    target = stream.data.target[first_row:]

    is_label = len(np.unique(target)) == 2
    if is_label:
        areas = np.array([roc_auc_score(target, column) for column in functions.T])
        assert np.maximum(areas, 1 - areas).max() < 0.95
    else:
        # The last row of all correlations is that of the target.
        correlations = np.corrcoef(functions.T, target.astype(float))[-1, :-1]
        assert np.nanmax(np.abs(correlations)) < 0.95


def test_electricity_label_compares_with_mean(shared):
    """The label tells whether the price is above its mean over the 48 half-hours before."""
    frame = read_file("electricity", shared)

    price = frame["nswprice"]
    is_above_mean = price > price.shift(1).rolling(48).mean()
    has_whole_day_before = frame.index >= 48
    assert (is_above_mean == frame["target"])[has_whole_day_before].all()


def test_electricity_label_is_no_rise(shared):
    """Many descriptions of the data say that the label tells whether the price rises.

    That agrees with the label in less than 65 % of the rows, where chance gives 50 %.
    """
    frame = read_file("electricity", shared)

    rises = frame["nswprice"] > frame["nswprice"].shift(1)
    assert (rises == frame["target"]).mean() < 0.65


def test_electricity_measurements_are_known_later(shared):
    """A row has the measurements of the half-hour before, and the mean price of the day before.

    So the first day has no rows.
    """
    frame = read_file("electricity", shared)
    day = 48  # half-hours

    data = read_public_stream("electricity", shared / "data" / "streams").data

    n = len(data)
    assert data.target.tolist() == frame["target"][day : day + n].tolist()
    # Two columns of time come first, then five measurements, then the mean price.
    measurements = data.numbers[:, 2:7]
    measurements_before = frame[MARKET_COLUMNS][day - 1 : day - 1 + n]
    np.testing.assert_array_equal(measurements, measurements_before)
    mean_of_day_before = data.numbers[:, 7]
    mean_of_first_day = frame["nswprice"].astype(float)[:day].mean()
    assert mean_of_day_before[0] == pytest.approx(mean_of_first_day, rel=1e-5)


def test_traffic_lags_are_earlier_targets(shared):
    """The last columns are the targets so many rows, hours, earlier."""
    data = read_public_stream("metro_traffic", shared / "data" / "streams").data
    longest_lag = max(TRAFFIC_LAGS)
    lag_columns = data.numbers[:, -len(TRAFFIC_LAGS) :]

    for lag, column in zip(TRAFFIC_LAGS, lag_columns.T, strict=True):
        # The first rows have no targets of their own stream before them.
        earlier_targets = data.target[longest_lag - lag : -lag]
        np.testing.assert_array_equal(column[longest_lag:], earlier_targets)


@pytest.mark.parametrize(
    ("lags", "expected_lags", "correlation"),
    [(range(12, 37), {24}, 0.71), (range(156, 181), {167, 168}, 0.57)],
    ids=["day", "week"],
)
def test_traffic_repeats_itself(shared, lags, expected_lags, correlation):
    """After a day of 24 rows, and after a week, of 168 rows but for hours that are missing.

    So rows are in the order of time.
    """
    target = read_public_stream("metro_traffic", shared / "data" / "streams").data.target

    correlation_of_lag = {
        lag: float(np.corrcoef(target[lag:], target[:-lag])[0, 1]) for lag in lags
    }

    # The lag of highest correlation, and its value in this file.
    assert correlation_of_lag[max(expected_lags)] == pytest.approx(correlation, abs=0.005)
    assert max(correlation_of_lag, key=correlation_of_lag.__getitem__) in expected_lags


def test_electricity_ascends_in_half_hours(shared):
    frame = read_file("electricity", shared)

    # `day` is from 1 to 7, `period` from 0 to 1; the data begin on day 2.
    hour_of_week = (frame["day"] - 1) * 24 + frame["period"] * 23.5
    since_tuesday = 24 + np.arange(len(frame)) / 2
    np.testing.assert_allclose(hour_of_week, since_tuesday % (7 * 24), atol=0.01)


def test_weather_repeats_after_a_year(shared):
    """The file has no times; a day is as warm as that of a year before, roughly."""
    temperature = read_file("weather", shared)["feat_1"].to_numpy()

    correlation_after_year = np.corrcoef(temperature[365:], temperature[:-365])[0, 1]
    correlation_after_half_a_year = np.corrcoef(temperature[182:], temperature[:-182])[0, 1]
    assert correlation_after_year > 0.8
    assert correlation_after_half_a_year < -0.7


@pytest.mark.parametrize(
    ("name", "columns"),
    [("bike_sharing", ["yr", "mth"]), ("flights", ["month", "day", "sched_dep_time"])],
)
def test_times_ascend(shared, name, columns):
    """In the columns that tell the time, such as year and month."""
    frame = read_file(name, shared)

    assert pd.MultiIndex.from_frame(frame[columns]).is_monotonic_increasing


# -- streams of users' own -------------------------------------------------------------------------


@pytest.fixture
def read_own(tmp_path):
    """A function that reads a stream of the user's own, given its times.

    The target of a row is its number in the file, so that it tells the order.
    """

    def read(times: list[object], *, every: str, time_format: str | None = None) -> Stream:
        path = tmp_path / "own.csv"
        frame = pd.DataFrame({"time": times, "x": 1.0, "row": range(len(times))})
        frame.to_csv(path, index=False)
        return read_stream(path, target="row", time="time", every=every, time_format=time_format)

    return read


@pytest.mark.parametrize("every", ["2", "year"])
def test_dates_are_sorted_by_the_calendar(read_own, every):
    """As text, 10/20/2023 is before 9/15/2023."""
    stream = read_own(["1/20/2024", "10/20/2023", "9/15/2023", "12/31/2023"], every=every)

    # The target numbers the rows.
    assert stream.data.target.tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    ("times", "every"),
    [
        (["1/20/2024", None], "2"),
        (["1/20/2024", None], "year"),
        ([1, None, 2], "1"),
    ],
)
def test_missing_times_are_refused(read_own, times, every):
    with pytest.raises(ArtifactError, match="1 rows have no 'time'"):
        read_own(times, every=every)


def test_numbers_are_times_for_row_periods(read_own):
    """If periods are so many rows, times need not be dates."""
    stream = read_own([10, 9, 100], every="1")

    # Sorted by time: 9 (row 1), 10 (row 0), 100 (row 2).
    assert stream.data.target.tolist() == [1, 0, 2]


def test_numbers_need_a_format_for_dates(read_own):
    """20231231 could be a date or a number of seconds."""
    with pytest.raises(ExperimentError, match=r"'time' holds numbers.* give their format"):
        read_own([20231231, 20240101], every="year")


def test_numbers_with_format_are_dates(read_own):
    stream = read_own([20240101, 20231231], every="year", time_format="%Y%m%d")

    assert stream.names == ("2023", "2024")


@pytest.mark.parametrize(
    ("times", "sizes"),
    [
        ([1, 2, 2, 2, 3, 4], [4, 2]),  # a cut after two rows would part those of time 2
        ([1, 1, 1, 1, 1, 2, 3], [5, 1, 1]),
        ([1, 2, 3, 4, 5], [2, 2, 1]),
    ],
)
def test_rows_of_equal_time_stay_together(read_own, times, sizes):
    """Periods of two rows, or more if a cut would part rows of equal time."""
    stream = read_own(times, every="2")

    assert np.diff(stream.starts).tolist() == sizes
    assert stream.names == tuple(str(number) for number in range(len(sizes)))


AMBIGUOUS = ["01/02/2024", "03/04/2024"]


@pytest.mark.parametrize("every", ["1", "month"])
def test_ambiguous_dates_need_a_format(read_own, every):
    """01/02/2024 is in January or in February."""
    with pytest.raises(ExperimentError, match=r"day or month first.*--time-format %d/%m/%Y"):
        read_own(AMBIGUOUS, every=every)


@pytest.mark.parametrize(
    ("time_format", "first_period"), [("%d/%m/%Y", "2024-02"), ("%m/%d/%Y", "2024-01")]
)
def test_format_decides_what_comes_first(read_own, time_format, first_period):
    """01/02/2024 is in February if the day comes first, else in January."""
    stream = read_own(AMBIGUOUS, every="month", time_format=time_format)

    assert stream.names[0] == first_period


@pytest.mark.parametrize(
    ("times", "names"),
    [
        (["01/02/2024", "13/04/2024"], ("2024-02", "2024-04")),
        (["13/04/2024", "01/02/2024"], ("2024-02", "2024-04")),
        (["2024-01-02", "2024-03-04"], ("2024-01", "2024-03")),
        (["2024/01/02 10:00", "2024/03/04 11:00"], ("2024-01", "2024-03")),
    ],
)
def test_clear_dates_need_no_format(read_own, times, names):
    assert read_own(times, every="month").names == names


def test_wrong_format_is_refused(read_own):
    with pytest.raises(ArtifactError, match="cannot be read as dates"):
        read_own(AMBIGUOUS, every="month", time_format="%Y")
