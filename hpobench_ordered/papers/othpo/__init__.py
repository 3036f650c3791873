"""Hellan et al. (2023), "Obeying the Order"."""

from hpobench_ordered.papers.othpo.paper import PAPERS

__all__ = ["PAPERS"]
