"""Surrogates: regression models standing in for the real blackbox."""

from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType

__all__ = ["StoredSurrogate", "Surrogate", "SurrogateType"]
