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
    return np.random.default_rng(0).integers(-1700, 3000, (2, *SHAPE)) / 10


@pytest.fixture
def table(values):
    return TableSurrogate.from_values(values, lower=LOWER)


def grid() -> np.ndarray:
    return (np.indices(SHAPE).reshape(3, -1).T + LOWER).astype(float)


def through_npz(table: TableSurrogate) -> TableSurrogate:
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


def test_offers_its_values_read_only(table, values):
    np.testing.assert_array_equal(table.values, values)
    for array in (table.values, table.codes):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0, 0, 0] = 1


def test_does_not_change_with_the_array_it_was_made_of(values):
    values = values + 1 / 3
    table = TableSurrogate.from_values(values, lower=LOWER)
    before = values[0, 0, 0, 0]
    values[:] = 0
    assert table.predict_one(grid()[0], 0) == before


def test_tenths_are_kept_as_small_integers(table):
    assert table.codes.dtype == np.int16
    assert table.divisor == 10


@given(
    codes=hnp.arrays(np.int32, (2, 3, 2), elements=st.integers(-(2**30), 2**30)),
    divisor=st.sampled_from([1, 10, 100, 1000]),
)
def test_scaled_integers_come_back_bit_by_bit(codes, divisor):
    values = codes / divisor
    table = TableSurrogate.from_values(values, lower=(0, 0))
    assert table.codes.dtype.kind == "i"
    assert table.values.tobytes() == values.tobytes()
    assert through_npz(table).values.tobytes() == values.tobytes()


@given(hnp.arrays(np.float64, (2, 3), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_values_come_back_bit_by_bit(values):
    table = TableSurrogate.from_values(values, lower=(5,))
    assert table.values.tobytes() == values.tobytes()
    assert pickle.loads(pickle.dumps(table)).values.tobytes() == values.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(values, bad):
    values[0, 1, 1, 1] = bad
    with pytest.raises(ValueError, match="finite"):
        TableSurrogate.from_values(values, lower=LOWER)


@pytest.mark.parametrize(
    "row", [[4, 0, 7], [-1, 0, 7], [0, 1, 7], [0, 0, 6.5], [0, 0, np.nan], [0, np.inf, 7]]
)
def test_configurations_off_the_grid_are_refused(table, row):
    values = np.array([[0, 0, 7], row], dtype=float)
    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict_one(values[1], 0)
    with pytest.raises(InvalidConfigError, match="not on the grid"):
        table.predict(values, 0)


def test_copies_are_read_only(table):
    for copy in (pickle.loads(pickle.dumps(table)), through_npz(table)):
        assert (copy.lower, copy.divisor) == (table.lower, table.divisor)
        assert not copy.codes.flags.writeable


@pytest.mark.parametrize(
    "change", [{"lower": np.zeros(2, dtype=np.int64)}, {"divisor": np.array(0)}]
)
def test_arrays_that_do_not_fit_are_refused(table, change):
    with pytest.raises(ArtifactError, match="not those of a table surrogate"):
        SurrogateType.TABLE.from_arrays(table.to_arrays() | change)
