"""Benchmarks, surrogates and methods for ordered transfer hyperparameter optimisation."""
