"""Drawings of a report: each takes finished statistics, and draws them."""
