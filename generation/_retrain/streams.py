"""Public streams: rows in the order of time, cut into consecutive periods.

Notation:
    n   rows
    P   periods
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation._retrain.tables import Rows

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Stream:
    """Rows in the order of time.

    Attributes:
        rows: The rows, (n,).
        names: Names of the periods, (P,).
        starts: First row of each period, and n, (P + 1,).
    """

    rows: Rows
    names: tuple[str, ...]
    starts: tuple[int, ...]

    @classmethod
    def from_frame(cls, frame: "pd.DataFrame", period_of_row: "NDArray[Any]") -> "Stream":
        """Cut a table, whose last column is the target, into periods.

        Args:
            frame: The rows in the order of time, (n,).
            period_of_row: Name of each row's period, (n,). A new period begins wherever it changes.
        """
        differs_from_row_before = period_of_row[1:] != period_of_row[:-1]
        is_start = np.append(True, differs_from_row_before)
        starts = np.flatnonzero(is_start)
        names = period_of_row[starts].tolist()
        starts_and_end = (*starts.tolist(), len(frame))  # the end closes the last period
        return cls(Rows.from_frame(frame), tuple(names), starts_and_end)

    def select(self, first: int, last: int) -> slice:
        """Return the slice of the rows of the periods `first` to `last`, inclusive."""
        return slice(self.starts[first], self.starts[last + 1])


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
    market_of_row_before = frame[MARKET_COLUMNS].shift(1)
    features = frame[["day", "period"]].join(market_of_row_before)
    features["mean_of_a_day"] = features["nswprice"].rolling(HALF_HOURS_PER_DAY).mean()

    has_mean = np.arange(len(frame)) >= HALF_HOURS_PER_DAY  # not on the first day, 7 May
    is_used = has_mean & (half_hours < pd.Timestamp("1998-12-01"))
    months = half_hours.to_period("M").astype(str).to_numpy()
    return features.assign(target=frame["target"])[is_used], months[is_used]


def _prepare_weather(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Return all columns, the last of which is the target, and the year of each row, its period.

    The file has 50 years of measurements but no times, so that years have equal numbers of rows.
    """
    return frame, _cut_evenly("year", len(frame), periods=50)


def _prepare_bike_sharing(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Return the features and the target, and each row's month, which is its period and no feature.

    The file's column `yr` counts years from 0, for 2011.
    """
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
    is_new_hour = (hours != hours.shift()).any(axis=1)  # differs from the row before
    frame = frame[is_new_hour]

    lagged = {f"lag_{lag}": frame["target"].shift(lag) for lag in TRAFFIC_LAGS}
    # Both attr_5 and attr_6 describe the weather; the first is a feature.
    frame = frame.drop(columns="attr_6").rename(columns={"attr_5": "weather"})
    # The number of the weather is a category, so a text.
    frame = frame.assign(**lagged, weather=frame["weather"].astype(int).astype(str))
    frame = frame.iloc[max(TRAFFIC_LAGS) :]  # without rows that lack a lag

    target_last = [*frame.columns.drop("target"), "target"]
    return frame[target_last], _cut_evenly("period", len(frame), periods=50)


def _prepare_flights(frame: "pd.DataFrame") -> tuple["pd.DataFrame", "NDArray[Any]"]:
    """Prepare every third departure that arrived, to predict a delay of over 15 minutes.

    Returns:
        Features and target, and the week of each row, its period.
    """
    import pandas as pd

    days = pd.to_datetime({"year": 2013, "month": frame["month"], "day": frame["day"]})
    week = (days.dt.day_of_year - 1) // 7
    frame = frame.assign(week=week, weekday=days.dt.day_of_week)

    has_arrived = frame["arr_delay"].notna()
    is_whole_week = week < 52  # the 53rd has one day
    frame = frame[has_arrived & is_whole_week].iloc[::3]

    features = frame[["weekday", "sched_dep_time", "hour", "carrier", "origin", "distance"]]
    is_late = (frame["arr_delay"] > 15).astype(int)
    names = np.array([f"week-{number + 1:02d}" for number in frame["week"]])
    return features.assign(late=is_late), names


def _cut_evenly(noun: str, rows: int, periods: int) -> "NDArray[Any]":
    """Name the period of each row such that all periods have about the same number of rows.

    Args:
        noun: Beginning of the names, such as "year" for "year-01", "year-02" and so on.
        rows: Number of rows.
        periods: Number of periods.
    """
    period_of_row = np.arange(rows) * periods // rows  # 0 to periods - 1, ascending
    return np.array([f"{noun}-{period + 1:02d}" for period in period_of_row.tolist()])


PUBLIC_STREAMS: Mapping[str, Callable[["pd.DataFrame"], tuple["pd.DataFrame", "NDArray[Any]"]]] = {
    "electricity": _prepare_electricity,
    "weather": _prepare_weather,
    "bike_sharing": _prepare_bike_sharing,
    "metro_traffic": _prepare_metro_traffic,
    "flights": _prepare_flights,
}
"""Functions that make features, target (the last column) and periods from the rows of a file."""


def read_public_stream(name: str, folder: Path) -> Stream:
    """Read one of the public streams from the file NAME.parquet in a folder, and prepare its rows.

    Raises:
        ArtifactError: There is no such file, or it holds other data.
    """
    import pandas as pd

    path = folder / f"{name}.parquet"
    prepare = PUBLIC_STREAMS[name]
    try:
        frame, period_of_row = prepare(pd.read_parquet(path))
    except (OSError, KeyError, AttributeError, ValueError) as error:
        raise ArtifactError(f"{path} is not the stream {name!r}: {error!r}") from None
    return Stream.from_frame(frame, period_of_row)
