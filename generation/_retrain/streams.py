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
from hpobench_ordered.generation._custom.data import DataSet, data_set_of, read_table

if TYPE_CHECKING:
    import pandas as pd

PERIODS = {"day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
"""Calendar periods, and pandas' names of them."""


@dataclass(frozen=True)
class Stream:
    """Rows in the order of time."""

    data: DataSet
    names: tuple[str, ...]
    starts: tuple[int, ...]

    def rows(self, first: int, last: int) -> slice:
        """The rows of periods `first` to `last`, inclusive."""
        return slice(self.starts[first], self.starts[last + 1])


def cut(data: DataSet, periods: Sequence[str]) -> Stream:
    """Cut rows into periods; `periods` is the period of each row, equal ones adjacent."""
    names = np.asarray(periods, dtype=str)
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    found = names[starts].tolist()
    if len(set(found)) < len(found):
        raise ExperimentError(f"rows of {data.name} are not in the order of time")
    return Stream(data, tuple(found), (*starts.tolist(), len(data)))


def read_stream(
    path: Path, *, target: str | None, time: str, every: str, time_format: str | None = None
) -> Stream:
    """Read a user's own stream from a CSV or parquet file."""
    frame = read_table(path)
    if time not in frame.columns:
        raise UnknownNameError(f"column of {path}", time, frame.columns)
    is_rows = every.isdecimal() and int(every) > 0
    if not is_rows and every not in PERIODS:
        raise UnknownNameError("period (or a number of rows)", every, PERIODS)
    times = _times(path, frame[time], time_format, may_be_numbers=is_rows)
    order = np.argsort(times.to_numpy(), kind="stable")
    times, ordered = times.iloc[order], frame.iloc[order].drop(columns=time)
    names = _every_rows(times, int(every)) if is_rows else _calendar(times, every)
    stream = cut(data_set_of(path, ordered, target), names)
    if len(stream.names) < 2:
        raise ExperimentError(f"all rows of {path} are of one {every}, but at least two are needed")
    return stream


def _times(
    path: Path, column: "pd.Series[Any]", time_format: str | None, *, may_be_numbers: bool
) -> "pd.Series[Any]":
    """Dates without a zone, or numbers."""
    import pandas as pd

    if missing := int(column.isna().sum()):
        raise ArtifactError(f"{path}: {missing} rows have no {column.name!r}")
    has_numbers = pd.api.types.is_numeric_dtype(column)
    if has_numbers and time_format is None:
        if may_be_numbers:
            return column
        raise ExperimentError(
            f"{path}: column {column.name!r} holds numbers; give their format, such as "
            "--time-format %Y%m%d"
        )
    readings = _readings(path, column, time_format)
    if not readings[0].equals(readings[-1]):
        raise ExperimentError(
            f"{path}: {column.name!r} holds dates such as {column.iloc[0]!r}; is it day or month "
            "first? Say so, such as --time-format %d/%m/%Y"
        )
    return readings[0]


def _readings(
    path: Path, column: "pd.Series[Any]", time_format: str | None
) -> list["pd.Series[Any]"]:
    """The dates by a format, or both with the month and with the day first."""
    import pandas as pd

    # If the year comes first, the month is second.
    is_clear = time_format is not None or column.astype(str).str.match(r"\d{4}\D").all()
    readings, failure = [], None
    for day_first in (False,) if is_clear else (False, True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # texts that are not dates are rejected below
                read = pd.to_datetime(column, utc=True, dayfirst=day_first, format=time_format)
            readings.append(read.dt.tz_localize(None))
        except (ValueError, TypeError) as error:
            failure = error
    if not readings:
        raise ArtifactError(f"{path}: column {column.name!r} cannot be read as dates: {failure}")
    return readings


def _every_rows(times: "pd.Series[Any]", rows: int) -> list[str]:
    """Periods of `rows` rows; rows of equal time belong to the period of the first."""
    first = np.maximum.accumulate(np.where(times.ne(times.shift()), np.arange(len(times)), 0))
    numbers = np.unique(first // rows, return_inverse=True)[1]
    width = len(str(numbers[-1]))
    return [f"{number:0{width}d}" for number in numbers.tolist()]


def _calendar(times: "pd.Series[Any]", every: str) -> list[str]:
    periods = times.dt.to_period(PERIODS[every])
    named: list[str] = (
        (periods.dt.start_time.dt.date if every == "week" else periods).astype(str).tolist()
    )
    return named


DAY = 48
"""Half-hours."""
MARKET = ["nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
"""Columns that are measured during a half-hour, so known only afterwards."""


def _electricity(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Half-hours from 8 May 1996 to November 1998, with what is known before each.

    The target is whether the price is above its mean of the last 48 half-hours; the price itself
    would reveal it.
    """
    import pandas as pd

    hours = pd.date_range("1996-05-07", periods=len(frame), freq="30min")
    known = frame[["day", "period"]].join(frame[MARKET].shift(1))
    known["mean_of_a_day"] = known["nswprice"].rolling(DAY).mean()
    chosen = (hours < pd.Timestamp("1998-12-01")) & (np.arange(len(frame)) >= DAY)
    months = hours.to_period("M").astype(str).to_numpy()
    return known.assign(target=frame["target"])[chosen], months[chosen]


def _weather(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    return frame, _numbered("year", len(frame), 50)


def _bike_sharing(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    months = [f"{2011 + int(y)}-{int(m):02d}" for y, m in zip(frame.yr, frame.mth, strict=True)]
    return frame.drop(columns=["yr", "mth"]), np.array(months)


LAGS = (1, 2, 3, 24, 168)
"""Lags of traffic in rows, about hours, that are known at the time of prediction."""
HOUR = ["attr_1", "attr_2", "attr_3", "attr_4", "target"]
"""Columns that are equal in rows of the same hour; only the weather's description differs."""


def _metro_traffic(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Traffic predicted from earlier traffic, one row per hour; the file has no times.

    An hour with several descriptions of the weather has as many rows; the first is taken.
    """
    frame = frame[(frame[HOUR] != frame[HOUR].shift()).any(axis=1)]
    lagged = {f"lag_{lag}": frame["target"].shift(lag) for lag in LAGS}
    frame = frame.drop(columns="attr_6").rename(columns={"attr_5": "weather"})
    frame = frame.assign(**lagged, weather=frame["weather"].astype(int).astype(str))
    frame = frame.iloc[max(LAGS) :]
    return frame[[*frame.columns.drop("target"), "target"]], _numbered("period", len(frame), 50)


def _flights(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Every third departure that arrived; the target is a delay of over a quarter of an hour."""
    import pandas as pd

    days = pd.to_datetime({"year": 2013, "month": frame["month"], "day": frame["day"]})
    week = (days.dt.day_of_year - 1) // 7
    known = frame.assign(week=week, weekday=days.dt.day_of_week)
    known = known[known["arr_delay"].notna() & (week < 52)].iloc[::3]
    features = known[["weekday", "sched_dep_time", "hour", "carrier", "origin", "distance"]]
    late = (known["arr_delay"] > 15).astype(int)
    names = np.array([f"week-{number + 1:02d}" for number in known["week"]])
    return features.assign(late=late), names


def _numbered(noun: str, rows: int, periods: int) -> "NDArray[Any]":
    """Names of equally long periods if rows have no times."""
    numbers = np.arange(rows) * periods // rows
    return np.array([f"{noun}-{number + 1:02d}" for number in numbers.tolist()])


PUBLIC: Mapping[str, Callable[["pd.DataFrame"], tuple["pd.DataFrame", "NDArray[Any]"]]] = {
    "electricity": _electricity,
    "weather": _weather,
    "bike_sharing": _bike_sharing,
    "metro_traffic": _metro_traffic,
    "flights": _flights,
}
"""Functions that make features, target (the last column) and periods from the rows of a file."""


def public_stream(name: str, folder: Path) -> Stream:
    """Read one of the public streams from NAME.parquet in a folder."""
    path = folder / f"{name}.parquet"
    try:
        table, periods = PUBLIC[name](read_table(path))
    except (KeyError, AttributeError, ValueError) as error:
        raise ArtifactError(f"{path} is not the stream {name!r}: {error!r}") from None
    return cut(replace(data_set_of(path, table, None), name=name), periods.tolist())
