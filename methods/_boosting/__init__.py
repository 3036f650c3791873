"""Gradient boosted trees for every method that needs them."""
