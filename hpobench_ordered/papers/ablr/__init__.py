"""Perrone et al. (2018), "Scalable Hyperparameter Transfer Learning"."""

from hpobench_ordered.papers.ablr.paper import PAPERS

__all__ = ["PAPERS"]
