"""Tables: exact lookup of every configuration of a grid, and compact storage without loss."""

import io
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hpobench_ordered.errors import ArtifactError, InvalidConfigError
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.table import TableSurrogate

SHAPE = (4, 3, 5)
"""Numbers of values of three hyperparameters."""
LOWER = (0, -2, 7)
"""Their lowest values, so that they are from 0 to 3, -2 to 0 and 7 to 11."""


@pytest.fixture
def values():
    """Random values, in whole tenths, of two tasks on the grid of 4 x 3 x 5 configurations."""
    return np.random.default_rng(0).integers(-1700, 3000, (2, *SHAPE)) / 10


@pytest.fixture
def table(values):
    """The surrogate that looks up these values."""
    return TableSurrogate.from_values(values, lower=LOWER)


def list_configurations() -> np.ndarray:
    """All 60 configurations of the grid, (60, 3), in the order in which tables store values."""
    indices = np.indices(SHAPE).reshape(3, -1).T
    return (indices + LOWER).astype(float)


def store_and_read(table: TableSurrogate) -> TableSurrogate:
    """A copy that was stored as an array file and read back."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **table.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return SurrogateType.TABLE.from_arrays(arrays)


@pytest.mark.parametrize("task", [0, 1])
def test_batches_are_looked_up(table, values, task):
    """All configurations together have the values that the table was made from."""
    predicted = table.predict(list_configurations(), task)

    np.testing.assert_array_equal(predicted, values[task].ravel())


@pytest.mark.parametrize("task", [0, 1])
def test_single_configurations_are_looked_up(table, values, task):
    """Each configuration has the value that the table was made from, as a number of Python."""
    for row, expected in zip(list_configurations(), values[task].ravel(), strict=True):
        predicted = table.predict_one(row, task)

        assert type(predicted) is float
        assert predicted == expected


def copy_by_pickle(table: TableSurrogate) -> TableSurrogate:
    copy: TableSurrogate = pickle.loads(pickle.dumps(table))
    return copy


@pytest.mark.parametrize("make_copy", [copy_by_pickle, store_and_read])
def test_copies_have_same_grid_and_divisor(table, make_copy):
    """A copy has the same lowest values of hyperparameters, and the same divisor of codes."""
    copy = make_copy(table)

    assert copy.lower == table.lower
    assert copy.divisor == table.divisor


def test_table_keeps_its_values(values):
    """A table does not change with the array that it was made from.

    Values with many decimals, such as thirds, are stored as they are, not as integers: the table
    could share the array by mistake.
    """
    thirds = values / 3
    table = TableSurrogate.from_values(thirds, lower=LOWER)
    first_value = float(thirds[0, 0, 0, 0])

    thirds[:] = 0

    assert table.predict_one(list_configurations()[0], 0) == first_value


@pytest.mark.parametrize("not_finite", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(values, not_finite):
    """A table needs a finite value for each configuration; one is infinite or NaN here."""
    values[0, 1, 1, 1] = not_finite

    with pytest.raises(ValueError, match="finite"):
        TableSurrogate.from_values(values, lower=LOWER)


@given(
    integers=hnp.arrays(np.int32, (2, 3, 2), elements=st.integers(-(2**30), 2**30)),
    divisor=st.sampled_from([1, 10, 100, 1000]),
)
def test_decimals_are_stored_as_integers_exactly(integers, divisor):
    """Integers divided by 1, 10, 100 or 1000 come back to the last bit.

    They are values of two tasks on a grid of 3 x 2 configurations.
    """
    values = integers / divisor

    table = TableSurrogate.from_values(values, lower=(0, 0))

    assert np.issubdtype(table.codes.dtype, np.signedinteger)
    assert table.values.tobytes() == values.tobytes()
    assert store_and_read(table).values.tobytes() == values.tobytes()


@given(hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_values_are_stored_exactly(values):
    """Finite values come back to the last bit, whether they have few decimals or many.

    They are values of two tasks on a grid of one hyperparameter, from 5 to 7.
    """
    table = TableSurrogate.from_values(values, lower=(5,))

    assert table.values.tobytes() == values.tobytes()
    assert copy_by_pickle(table).values.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "config", [[4, 0, 7], [-1, 0, 7], [0, 1, 7], [0, 0, 7.5], [0, 0, np.nan], [0, np.inf, 7]]
)
def test_configurations_off_the_grid_are_refused(table, config):
    """A configuration off the grid is refused alone, and in a batch.

    The grid has the whole numbers from 0 to 3, from -2 to 0 and from 7 to 11.
    """
    config_on_grid = [0, 0, 7]
    batch = np.array([config_on_grid, config], dtype=float)

    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict_one(batch[1], 0)
    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict(batch, 0)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"lower": np.zeros(2, dtype=np.int64)}, id="two hyperparameters, not three"),
        pytest.param({"divisor": np.array(0)}, id="division by 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(table, change):
    """A table is not read if one of its stored arrays does not fit the others."""
    with pytest.raises(ArtifactError, match="not those of a table surrogate"):
        SurrogateType.TABLE.from_arrays(table.to_arrays() | change)
