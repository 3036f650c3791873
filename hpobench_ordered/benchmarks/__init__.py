"""Benchmarks, one module per family; each exports `SPECS`, and `FAMILIES` for patterns of names.

A module defines the names of benchmarks and where their surrogates come from. If surrogates are
fitted, the search space, tasks and values are in the benchmark's artifact, which the module of the
same name in `hpobench_ordered.generation` makes.
"""
