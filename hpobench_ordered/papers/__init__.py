"""Reproduction of papers: runs their experiments, draws their figures, checks their claims."""

from collections.abc import Mapping
from functools import cache

from hpobench_ordered.data.exports import collect_specs
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.papers.paper import Paper
from hpobench_ordered.papers.reproduce import reproduce
from hpobench_ordered.papers.result import Reproduction

__all__ = ["Paper", "Reproduction", "list_papers", "paper", "reproduce"]

PAPERS = "hpobench_ordered.papers"


def list_papers() -> list[str]:
    """Names of all papers that can be reproduced, sorted."""
    return sorted(_papers())


def paper(name: str) -> Paper:
    """Find a paper by name."""
    try:
        return _papers()[name]
    except KeyError:
        raise UnknownNameError("paper", name, _papers()) from None


@cache
def _papers() -> Mapping[str, Paper]:
    return collect_specs(PAPERS, "PAPERS", Paper)
