"""Law et al. (2019), "Hyperparameter Learning via Distributional Transfer"."""

from hpobench_ordered.papers.distbo.paper import PAPERS

__all__ = ["PAPERS"]
