"""Public streams: no row repeats another, and no feature gives the target away."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation._retrain.streams import (
    PUBLIC_STREAMS,
    TRAFFIC_LAGS,
    Stream,
    read_public_stream,
)

# Rows a day of each public stream.
ROWS_PER_DAY = {
    "electricity": 48,
    "weather": 1,
    "bike_sharing": 24,
    "metro_traffic": 24,
    "flights": 300,
}
SLOW_NAMES = sorted(set(PUBLIC_STREAMS) - {"bike_sharing"})
# Measurements of the market for electricity.
COLUMNS_OF_ELECTRICITY_MARKET = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]


@pytest.fixture(
    scope="module",
    params=["bike_sharing", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_NAMES)],
)
def name(request):
    """The name of each public stream; all but the smallest in slow tests."""
    return request.param


@pytest.fixture(scope="module")
def stream(name, shared):
    """The public stream of this name."""
    return read_public_stream(name, shared / "data" / "streams")


def read_file(name: str, shared: Path) -> pd.DataFrame:
    """The file of a public stream, as it was published."""
    return pd.read_parquet(shared / "data" / "streams" / f"{name}.parquet")


def test_periods_ascend(stream):
    """Names of periods, such as months, are in the order of time."""
    assert list(stream.names) == sorted(stream.names)


def test_periods_are_whole(stream):
    """A stream is cut into periods, such as months; its data cover each of them as a whole.

    A first month with data from the 20th on, for instance, would have few rows. So every period has
    at least half as many rows as most have.
    """
    rows_of_periods = np.diff(stream.starts)

    assert rows_of_periods.min() > 0.5 * np.median(rows_of_periods)


def test_hardly_a_row_repeats_the_last(stream):
    """Less than 3 % of the rows equal the row before in all features and the target."""
    columns = [stream.rows.numbers, stream.rows.categories, stream.rows.target[:, None]]
    rows = np.hstack(columns).astype(float)

    is_repeated = (rows[1:] == rows[:-1]).all(axis=1)

    assert is_repeated.mean() < 0.03


def test_number_to_predict_is_no_feature(stream):
    """No feature equals the number to predict, but in up to 2 % of the rows, by chance.

    A label, of which there are two, often equals features by chance, so it tells nothing here.
    """
    target = stream.rows.target
    if is_label(target):
        return

    equals_target = stream.rows.numbers == target[:, None]
    share_of_rows_of_feature = equals_target.mean(axis=0)
    assert share_of_rows_of_feature.max() < 0.02


def test_number_to_predict_is_not_that_of_row_before(stream):
    """Less than 2 % of the rows have the target of the row before, which would give it away.

    More would if, say, an hour of traffic had several rows, which differ in weather alone.
    """
    target = stream.rows.target
    if is_label(target):
        return

    equals_row_before = target[1:] == target[:-1]
    assert equals_row_before.mean() < 0.02


def is_label(target: np.ndarray) -> bool:
    """Whether a stream's target is one of two labels, and not a number."""
    return len(np.unique(target)) == 2


def make_simple_functions(stream: Stream, rows_per_day: int) -> np.ndarray:
    """Make what might give the target away: simple functions of the features, (rows, functions).

    These are the features, their differences, and their deviations from their mean over the last
    day. The label of electricity is whether the price deviates upwards, so the deviation of the
    price would give it away, if the present price were a feature.
    """
    numbers = pd.DataFrame(stream.rows.numbers).ffill().fillna(0)
    features = [numbers[j] for j in numbers]
    differences = [numbers[i] - numbers[j] for i, j in combinations(numbers, 2)]
    deviations = []
    for feature in features:
        mean_of_last_day = feature.shift(1).rolling(rows_per_day).mean()
        deviations.append(feature - mean_of_last_day)
    return np.stack([*features, *differences, *deviations], axis=1)


def test_simple_functions_do_not_reveal_target(name, stream):
    """No simple function of the features predicts the target almost exactly.

    That is measured from 0 to 1, and at most 0.95: for a label by the area under the curve, for a
    number by the correlation.
    """
    # Means over the last day need a whole day.
    rows_per_day = ROWS_PER_DAY[name]
    first_row = rows_per_day + 1
    functions = make_simple_functions(stream, rows_per_day)[first_row:]
    target = stream.rows.target[first_row:]

    if is_label(target):
        areas = np.array([roc_auc_score(target, function) for function in functions.T])
        best = np.maximum(areas, 1 - areas).max()  # of a function or its negative
    else:
        correlations_of_all = np.corrcoef(functions.T, target.astype(float))
        correlations_with_target = correlations_of_all[-1, :-1]
        best = np.nanmax(np.abs(correlations_with_target))
    assert best < 0.95


# Of the stream's numbers, two that tell the time come first.
COLUMNS_OF_MEASUREMENTS = slice(2, 7)
COLUMN_OF_MEAN_PRICE = 7


def test_electricity_measurements_are_known_later(shared):
    """A row's measurements are those of the half-hour before, as the present are not known yet.

    The first day has no rows, as rows have the mean price of the day before.
    """
    frame = read_file("electricity", shared)
    day = 48  # half-hours

    data = read_public_stream("electricity", shared / "data" / "streams").rows

    n = len(data)
    assert data.target.tolist() == frame["target"][day : day + n].tolist()
    measurements = data.numbers[:, COLUMNS_OF_MEASUREMENTS]
    measurements_before = frame[COLUMNS_OF_ELECTRICITY_MARKET][day - 1 : day - 1 + n]
    np.testing.assert_array_equal(measurements, measurements_before)


def test_electricity_has_mean_price_of_day_before(shared):
    """A column has the mean price of the day before, with which the label compares the price."""
    frame = read_file("electricity", shared)
    day = 48  # half-hours

    data = read_public_stream("electricity", shared / "data" / "streams").rows

    mean_of_day_before = data.numbers[:, COLUMN_OF_MEAN_PRICE]
    # The first row is of the second day.
    mean_of_first_day = frame["nswprice"].astype(float)[:day].mean()
    assert mean_of_day_before[0] == pytest.approx(mean_of_first_day, rel=1e-5)


def test_traffic_lags_are_earlier_targets(shared):
    """The last columns are the targets of earlier rows, as many hours before as `TRAFFIC_LAGS`."""
    data = read_public_stream("metro_traffic", shared / "data" / "streams").rows
    lag_columns = data.numbers[:, -len(TRAFFIC_LAGS) :]

    # Rows whose earlier targets are all in the stream
    rows = np.arange(max(TRAFFIC_LAGS), len(data))
    for lag, column in zip(TRAFFIC_LAGS, lag_columns.T, strict=True):
        np.testing.assert_array_equal(column[rows], data.target[rows - lag])


def test_other_files_are_refused(tmp_path):
    """A file without the columns of the stream is refused."""
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "electricity.parquet")

    with pytest.raises(ArtifactError, match="is not the stream 'electricity'"):
        read_public_stream("electricity", tmp_path)
