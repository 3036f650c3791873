"""Experiments: deterministic plans, one runner, one store."""
