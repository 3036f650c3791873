"""Evidence and figures that tests of reproduced papers make up."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.experiment.protocols import Protocol
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.papers.evidence import Evidence
from hpobench_ordered.papers.othpo.paper import drop_first_task
from hpobench_ordered.papers.paper import Check, Content, Exhibit, MethodComparison, claim_nothing


def make_figure(
    number: int,
    comparisons: Sequence[MethodComparison],
    make: Callable[..., Content],
    check: Check = claim_nothing,
) -> Exhibit:
    """A figure that is drawn by `make` from these comparisons, with made-up texts."""
    return Exhibit(
        number=number,
        caption=f"caption {number}.",
        paper_says=f"What figure {number} shows.",
        comparisons=tuple(comparisons),
        make_content=make,
        check=check,
    )


class InventedEvidence(Evidence):
    """Evidence from losses or regrets that a test makes up; nothing is read from a store."""

    def __init__(
        self,
        losses: Mapping[tuple[str, str], np.ndarray] | None = None,
        *,
        select_counted: Callable[[FloatArray], FloatArray] = drop_first_task,
    ) -> None:
        """Start with the losses of some runs, by benchmark and method; see `add_runs`.

        Args:
            losses: Default: none.
            select_counted: Selects the tasks that count. By default not the first one, which has no
                history.
        """
        store = Store(Path("nowhere"))
        super().__init__(store, cells={}, surrogates={}, select_counted=select_counted)
        for (benchmark, method), losses_of_method in (losses or {}).items():
            self.add_runs(benchmark, method, loss=losses_of_method)

    def add_runs(
        self,
        benchmark: str,
        method: str,
        *,
        protocol: Protocol | None = None,
        **measures: FloatArray,
    ) -> None:
        """Add all runs of a method on a benchmark, by default under the paper's protocol.

        Args:
            measures: The `loss` or `regret` of every trial, of shape (seeds, tasks, trials).
        """
        self._arrays[benchmark, method, protocol] = measures
