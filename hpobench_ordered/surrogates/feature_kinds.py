"""The kinds of features that a coding makes of hyperparameters."""

from enum import IntEnum


class FeatureKind(IntEnum):
    """What a feature is, before it is standardised. The numbers are part of stored artifacts."""

    IDENTITY = 0
    """The hyperparameter itself."""
    LOG = 1
    """Its natural logarithm."""
    LOG_PRODUCT = 2
    """Log of a product of two hyperparameters, such as learning_rate x n_estimators."""
    ONE_HOT = 3
    """1 if a categorical hyperparameter takes one particular choice, else 0."""
    LOG_RATIO = 4
    """Log of one hyperparameter over another, such as subsample / min_child_weight."""
