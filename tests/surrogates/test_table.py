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
LOWER = (0, -2, 7)


@pytest.fixture
def values():
    """Values in tenths of two tasks on a grid of 4 x 3 x 5."""
    return np.random.default_rng(0).integers(-1700, 3000, (2, *SHAPE)) / 10


@pytest.fixture
def table(values):
    return TableSurrogate.from_values(values, lower=LOWER)


def grid() -> np.ndarray:
    """All configurations of the grid, in the order of the values."""
    return (np.indices(SHAPE).reshape(3, -1).T + LOWER).astype(float)


def through_npz(table: TableSurrogate) -> TableSurrogate:
    """A table that was stored as a file and read back."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **table.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return SurrogateType.TABLE.from_arrays(arrays)


@pytest.mark.parametrize("task", [0, 1])
def test_looks_up_every_configuration(table, values, task):
    np.testing.assert_array_equal(table.predict(grid(), task), values[task].ravel())
    for row, expected in zip(grid(), values[task].ravel(), strict=True):
        predicted = table.predict_one(row, task)
        assert type(predicted) is float
        assert predicted == expected


def test_a_table_is_a_read_only_copy(table, values):
    np.testing.assert_array_equal(table.values, values)
    assert (table.codes.dtype, table.divisor) == (np.int16, 10)  # tenths
    for copy in (table, pickle.loads(pickle.dumps(table)), through_npz(table)):
        assert (copy.lower, copy.divisor) == (table.lower, table.divisor)
        for array in (copy.values, copy.codes):
            with pytest.raises(ValueError, match="read-only"):
                array[0, 0, 0, 0] = 1
    thirds = values / 3
    of_thirds, before = TableSurrogate.from_values(thirds, lower=LOWER), thirds[0, 0, 0, 0]
    # Changing the original changes no table.
    thirds[:] = 0
    assert of_thirds.predict_one(grid()[0], 0) == before
    for bad in (np.nan, np.inf):
        values[0, 1, 1, 1] = bad
        with pytest.raises(ValueError, match="finite"):
            TableSurrogate.from_values(values, lower=LOWER)


@given(
    codes=hnp.arrays(np.int32, (2, 3, 2), elements=st.integers(-(2**30), 2**30)),
    divisor=st.sampled_from([1, 10, 100, 1000]),
)
def test_scaled_integers_come_back_bit_by_bit(codes, divisor):
    values = codes / divisor
    table = TableSurrogate.from_values(values, lower=(0, 0))
    # They are stored as integers.
    assert table.codes.dtype.kind == "i"
    assert table.values.tobytes() == values.tobytes()
    assert through_npz(table).values.tobytes() == values.tobytes()


@given(hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_values_come_back_bit_by_bit(values):
    table = TableSurrogate.from_values(values, lower=(5,))
    assert table.values.tobytes() == values.tobytes()
    assert pickle.loads(pickle.dumps(table)).values.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "row", [[4, 0, 7], [-1, 0, 7], [0, 1, 7], [0, 0, 7.5], [0, 0, np.nan], [0, np.inf, 7]]
)
def test_configurations_off_the_grid_are_refused(table, row):
    """The grid is 0 to 3, -2 to 0, 7 to 11."""
    values = np.array([[0, 0, 7], row], dtype=float)
    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict_one(values[1], 0)
    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict(values, 0)


@pytest.mark.parametrize(
    "change", [{"lower": np.zeros(2, dtype=np.int64)}, {"divisor": np.array(0)}]
)
def test_arrays_that_do_not_fit_are_refused(table, change):
    with pytest.raises(ArtifactError, match="not those of a table surrogate"):
        SurrogateType.TABLE.from_arrays(table.to_arrays() | change)
