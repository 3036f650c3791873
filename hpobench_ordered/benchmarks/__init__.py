"""Benchmarks, one module per family; each exports its `SPECS`, and `FAMILIES` where there are more.

A module here says what a benchmark is called and where its surrogates come from. Where these are
fitted, the search space, tasks and values are in its artifact, which the module of the same name in
`hpobench_ordered.generation` makes.
"""
