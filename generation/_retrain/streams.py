"""Streams: rows in the order of time, cut into consecutive periods.

Five public ones are read from parquet files; a user's from a table with a column of times.

Notation:
    n   rows
    P   periods
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.generation._custom.data import DataSet, read_table, split_table

if TYPE_CHECKING:
    import pandas as pd

PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
"""Calendar periods, and pandas' names of them."""


@dataclass(frozen=True)
class Stream:
    """Rows in the order of time.

    Attributes:
        data: The rows, (n,).
        names: Names of the periods, (P,).
        starts: First row of each period, and n, (P + 1,).
    """

    data: DataSet
    names: tuple[str, ...]
    starts: tuple[int, ...]

    def rows(self, first: int, last: int) -> slice:
        """The rows of periods `first` to `last`, inclusive."""
        return slice(self.starts[first], self.starts[last + 1])


def cut_into_periods(data: DataSet, period_of_row: Sequence[str]) -> Stream:
    """Cut rows into periods, wherever the name of the period changes from one row to the next.

    Raises:
        ExperimentError: Rows of a period are not adjacent.
    """
    names = np.asarray(period_of_row, dtype=str)
    is_start = np.append(True, names[1:] != names[:-1])  # where the name changes
    starts = np.flatnonzero(is_start)
    periods = names[starts].tolist()
    has_period_twice = len(set(periods)) < len(periods)
    if has_period_twice:
        raise ExperimentError(f"rows of {data.name} are not in the order of time")
    return Stream(data, tuple(periods), (*starts.tolist(), len(data)))


def read_stream(
    path: Path, *, target: str | None, time: str, every: str, time_format: str | None = None
) -> Stream:
    """Read a user's own stream from a CSV or parquet file.

    Args:
        path: The file.
        target: The column that is predicted; default: the last one.
        time: The column of times.
        every: A period's length: a number of rows, or one of `PERIODS`.
        time_format: Format of the times, as in `strftime`.

    Raises:
        ArtifactError: The times are missing or cannot be read.
        ExperimentError: The times are ambiguous, or there is only one period.
        UnknownNameError: There is no such column or period.
    """
    frame = read_table(path)
    if time not in frame.columns:
        raise UnknownNameError(f"column of {path}", time, frame.columns)
    is_number_of_rows = every.isdecimal() and int(every) > 0  # else the name of a calendar period
    if not is_number_of_rows and every not in PERIODS:
        raise UnknownNameError("period (or a number of rows)", every, PERIODS)

    times = _read_times(path, frame[time], time_format, may_be_numbers=is_number_of_rows)
    order = np.argsort(times.to_numpy(), kind="stable")
    times = times.iloc[order]
    frame = frame.iloc[order].drop(columns=time)

    if is_number_of_rows:
        period_of_row = _number_periods(times, int(every))
    else:
        period_of_row = _name_calendar_periods(times, every)
    stream = cut_into_periods(split_table(path, frame, target), period_of_row)
    if len(stream.names) < 2:
        raise ExperimentError(f"all rows of {path} are of one {every}, but at least two are needed")
    return stream


def _read_times(
    path: Path, column: "pd.Series[Any]", time_format: str | None, *, may_be_numbers: bool
) -> "pd.Series[Any]":
    """Read a column of times as dates without a zone, or as numbers.

    Numbers order the rows but have no calendar: they are allowed if periods are counted in rows.
    """
    import pandas as pd

    number_missing = int(column.isna().sum())
    if number_missing > 0:
        raise ArtifactError(f"{path}: {number_missing} rows have no {column.name!r}")

    has_numbers = pd.api.types.is_numeric_dtype(column)
    if has_numbers and time_format is None:
        if may_be_numbers:
            return column
        raise ExperimentError(
            f"{path}: column {column.name!r} holds numbers; give their format, such as "
            "--time-format %Y%m%d"
        )

    readings = _read_dates(path, column, time_format)  # one or two, with the month or day first
    is_ambiguous = not readings[0].equals(readings[-1])
    if is_ambiguous:
        raise ExperimentError(
            f"{path}: {column.name!r} holds dates such as {column.iloc[0]!r}; is it day or month "
            "first? Say so, such as --time-format %d/%m/%Y"
        )
    return readings[0]


def _read_dates(
    path: Path, column: "pd.Series[Any]", time_format: str | None
) -> list["pd.Series[Any]"]:
    """Read dates by a format, or both with the month and with the day first.

    Returns:
        The possible readings, one or two.
    """
    import pandas as pd

    # If the year comes first, the month is second.
    has_year_first = column.astype(str).str.match(r"\d{4}\D").all()
    is_clear = time_format is not None or has_year_first
    day_first_readings = (False,) if is_clear else (False, True)

    readings = []
    failure: Exception | None = None
    for day_first in day_first_readings:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # texts that are not dates are rejected below
                dates = pd.to_datetime(column, utc=True, dayfirst=day_first, format=time_format)
            readings.append(dates.dt.tz_localize(None))
        except (ValueError, TypeError) as error:
            failure = error
    if not readings:
        raise ArtifactError(f"{path}: column {column.name!r} cannot be read as dates: {failure}")
    return readings


def _number_periods(times: "pd.Series[Any]", rows: int) -> list[str]:
    """Number the periods, `rows` rows each; rows of equal time are in the period of their first."""
    # `times` are sorted, so rows of equal time are adjacent.
    is_new_time = times.ne(times.shift())
    first_row_of_time = np.maximum.accumulate(np.where(is_new_time, np.arange(len(times)), 0))

    # Rows of equal time may take up a whole period, whose number is then missing: `numbers` are
    # consecutive again.
    _, numbers = np.unique(first_row_of_time // rows, return_inverse=True)
    width = len(str(numbers[-1]))
    return [f"{number:0{width}d}" for number in numbers.tolist()]


def _name_calendar_periods(times: "pd.Series[Any]", every: str) -> list[str]:
    """Name the day, week, ... of each time; a week by its first day."""
    periods = times.dt.to_period(PERIODS[every])
    if every == "week":
        periods = periods.dt.start_time.dt.date
    names: list[str] = periods.astype(str).tolist()
    return names


HALF_HOURS_PER_DAY = 48
MARKET_COLUMNS = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
"""Columns that are measured during a half-hour, so known only afterwards."""


def _prepare_electricity(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Prepare a row for each half-hour from 8 May 1996 to November 1998, with what is known then.

    The target is whether the price is above its mean of the last 48 half-hours. The price itself
    would reveal it, so the market's columns are those of the half-hour before.

    Returns:
        Features and target, and the month of each row, its period.
    """
    import pandas as pd

    half_hours = pd.date_range("1996-05-07", periods=len(frame), freq="30min")
    market_before = frame[MARKET_COLUMNS].shift(1)  # of the row before
    features = frame[["day", "period"]].join(market_before)
    features["mean_of_a_day"] = features["nswprice"].rolling(HALF_HOURS_PER_DAY).mean()

    has_mean = np.arange(len(frame)) >= HALF_HOURS_PER_DAY  # not on the first day, 7 May
    is_used = has_mean & (half_hours < pd.Timestamp("1998-12-01"))
    months = half_hours.to_period("M").astype(str).to_numpy()
    return features.assign(target=frame["target"])[is_used], months[is_used]


def _prepare_weather(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Return all columns, and each row's period: one of 50 years, as the file has no times."""
    return frame, _cut_evenly("year", len(frame), periods=50)


def _prepare_bike_sharing(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Return the features and each row's month, which is its period and no feature."""
    # Years count from 0, for 2011.
    months = [
        f"{2011 + int(year)}-{int(month):02d}"
        for year, month in zip(frame.yr, frame.mth, strict=True)
    ]
    return frame.drop(columns=["yr", "mth"]), np.array(months)


TRAFFIC_LAGS = (1, 2, 3, 24, 168)
"""Lags of traffic in rows, about hours, that are known at the time of prediction."""
HOURLY_COLUMNS = ["attr_1", "attr_2", "attr_3", "attr_4", "target"]
"""Columns that are equal in rows of the same hour; only the weather's description differs."""


def _prepare_metro_traffic(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Prepare to predict traffic from earlier traffic, with one row per hour.

    An hour with several descriptions of the weather has as many rows, of which the first is used.

    Returns:
        Features and target, and each row's period: one of 50 of equal length, as the file has no
        times.
    """
    hours = frame[HOURLY_COLUMNS]
    is_new_hour = (hours != hours.shift()).any(axis=1)
    frame = frame[is_new_hour]

    lagged = {f"lag_{lag}": frame["target"].shift(lag) for lag in TRAFFIC_LAGS}
    # Both attr_5 and attr_6 describe the weather; the first is a feature.
    frame = frame.drop(columns="attr_6").rename(columns={"attr_5": "weather"})
    frame = frame.assign(**lagged, weather=frame["weather"].astype(int).astype(str))
    frame = frame.iloc[max(TRAFFIC_LAGS) :]

    target_last = [*frame.columns.drop("target"), "target"]
    return frame[target_last], _cut_evenly("period", len(frame), periods=50)


def _prepare_flights(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Prepare every third departure that arrived, to predict a delay of over 15 minutes.

    Returns:
        Features and target, and the week of each row, its period; a 53rd would not be whole.
    """
    import pandas as pd

    days = pd.to_datetime({"year": 2013, "month": frame["month"], "day": frame["day"]})
    week = (days.dt.day_of_year - 1) // 7
    frame = frame.assign(week=week, weekday=days.dt.day_of_week)

    has_arrived = frame["arr_delay"].notna()
    is_whole_week = week < 52
    frame = frame[has_arrived & is_whole_week].iloc[::3]

    features = frame[["weekday", "sched_dep_time", "hour", "carrier", "origin", "distance"]]
    is_late = (frame["arr_delay"] > 15).astype(int)
    names = np.array([f"week-{number + 1:02d}" for number in frame["week"]])
    return features.assign(late=is_late), names


def _cut_evenly(noun: str, rows: int, periods: int) -> "NDArray[Any]":
    """Name the period of each row, where rows have no times and periods are equally long."""
    numbers = np.arange(rows) * periods // rows  # 0 to periods - 1, each about rows / periods times
    return np.array([f"{noun}-{number + 1:02d}" for number in numbers.tolist()])


PUBLIC_STREAMS: Mapping[str, Callable[["pd.DataFrame"], tuple["pd.DataFrame", "NDArray[Any]"]]] = {
    "electricity": _prepare_electricity,
    "weather": _prepare_weather,
    "bike_sharing": _prepare_bike_sharing,
    "metro_traffic": _prepare_metro_traffic,
    "flights": _prepare_flights,
}
"""Functions that make features, target (the last column) and periods from the rows of a file."""


def read_public_stream(name: str, folder: Path) -> Stream:
    """Read one of the public streams from NAME.parquet in a folder."""
    path = folder / f"{name}.parquet"
    try:
        prepare = PUBLIC_STREAMS[name]
        frame, period_of_row = prepare(read_table(path))
    except (KeyError, AttributeError, ValueError) as error:
        raise ArtifactError(f"{path} is not the stream {name!r}: {error!r}") from None
    data = split_table(path, frame, target=None)  # the target is the last column
    data = replace(data, name=name)
    return cut_into_periods(data, period_of_row.tolist())
