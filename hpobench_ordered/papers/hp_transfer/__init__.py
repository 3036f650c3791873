"""Stoll et al. (2020), "Hyperparameter Transfer Across Developer Adjustments"."""

from hpobench_ordered.papers.hp_transfer.paper import PAPERS

__all__ = ["PAPERS"]
