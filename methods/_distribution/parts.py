"""Parts of the distribution of a data set that an embedding may describe.

Law et al. (2019), section 4.1. They are in a module of their own, which needs no networks.
"""

from enum import Enum


class Embedded(Enum):
    """Part of a distribution that is embedded."""

    MARGINAL = "features alone"
    CONDITIONAL = "labels given the features"
    CONCATENATED = "features, and labels given the features"
    JOINT = "features and labels"
    PAIRS = "features and labels, as one vector for each point"
    CLASSES = "features and classes"
