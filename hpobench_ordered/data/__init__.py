"""Benchmarks, tasks, objectives and histories, and their specs."""
