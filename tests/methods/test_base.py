"""What the registry knows of a method."""

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.methods.random_search import RandomSearch


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1"])
def test_versions_are_integers_from_1_on(version):
    """True is no version, although it is an integer to Python."""
    with pytest.raises(ValueError, match=f"must be an integer .* got {version!r}"):
        hbo.MethodSpec("mine", RandomSearch, "", "", version=version)
