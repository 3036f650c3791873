"""A space whose configurations have all been suggested."""

import warnings

import pytest

import hpobench_ordered as hbo
from hpobench_ordered import Parameter, SearchSpace
from hpobench_ordered.errors import ExhaustedSpaceWarning
from hpobench_ordered.space import Compare, Comparison

FLAT = SearchSpace(
    [Parameter.choice("kind", ("a", "b")), Parameter.number("n", 1, 2, integer=True)]
)
CONDITIONAL = SearchSpace(FLAT.parameters, conditions={"n": Compare(0, Comparison.EQUAL, (1.0,))})


@pytest.mark.parametrize(("space", "size"), [(FLAT, 4), (CONDITIONAL, 3)])
def test_used_up_space_is_warned_of_once(space, size):
    tuner = hbo.optimiser("bo", space=space, direction="minimize")
    for number in range(size):
        tuner.tell(tuner.ask(), float(number))

    with pytest.warns(ExhaustedSpaceWarning, match=f"after {size} different ones") as caught:
        tuner.ask()

    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(action="error"):
        tuner.ask()
