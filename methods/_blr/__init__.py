"""Bayesian linear regression on features, learned or not: heads and marginal likelihood."""
