"""Horvath et al. (2021), "Hyperparameter Transfer Learning with Adaptive Complexity"."""

from hpobench_ordered.papers.abrac.paper import PAPERS

__all__ = ["PAPERS"]
