"""The interface through which finished runs are read, wherever they are."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.experiment.records import Failure

if TYPE_CHECKING:
    import pandas as pd

Cells = Mapping[str, Mapping[str, Any]]
"""What identifies runs (`plan.IDENTITY`), by key."""


class StoredRuns(ABC):
    """Finished runs that can be read: those of a store, the reference results, or both joined.

    A store also knows which runs were planned or failed; by default there are none.

    Attributes:
        folder: Where they are, as messages show it.
        has_all_trials: Whether all trials and their configurations are there, not only those that
            scores need.
    """

    folder: Path
    has_all_trials: bool

    @abstractmethod
    def cells(self, planned: Cells | None = None) -> Cells:
        """What identifies each finished run, by key.

        `planned` are runs of which it is known already what identifies them, so that their files
        need not be opened.
        """

    @abstractmethod
    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Trials of runs, by default of all, one row per trial; regret is NaN where unknown."""

    @abstractmethod
    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Configurations of runs on one benchmark, one row per trial; NaN where inactive."""

    @abstractmethod
    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, by default of all, one row per run, see `Records.timings`."""

    def keys(self) -> frozenset[str]:
        """Keys of the finished runs."""
        return frozenset(self.cells())

    def experiments(self) -> Mapping[str, Cells]:
        """What identifies each planned run, by experiment and key."""
        return {}

    def failures(self) -> Mapping[str, Failure]:
        """Failed runs, by key."""
        return {}

    def sessions(self) -> tuple[Mapping[str, Any], ...]:
        """Starts of the runner, in their order."""
        return ()
