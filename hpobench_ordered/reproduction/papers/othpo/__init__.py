"""Hellan et al. (2023), "Obeying the Order"."""

from hpobench_ordered.reproduction.papers.othpo.paper import PAPERS

__all__ = ["PAPERS"]
