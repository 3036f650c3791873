"""Products and functions of arrays against numpy's, and the order of their sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._products import inner, product, tanh_in_place, transposed_product


def multiply_in_order(A: FloatArray, B: FloatArray) -> FloatArray:
    """The product A B, with the terms of each sum added one after the other."""
    total = np.zeros((len(A), B.shape[1]))
    for column, row in zip(A.T, B, strict=True):
        total += np.outer(column, row)
    return total


@pytest.mark.parametrize("m", [0, 1, 2, 5])
@pytest.mark.parametrize("k", [0, 1, 4, 7, 16])
@pytest.mark.parametrize("d", [1, 8, 13])
def test_products_are_summed_in_order(m, k, d):
    """Products of matrices (m, k) and (k, d), also where they have no rows or no terms."""
    rng = np.random.default_rng([m, k, d])
    A = rng.standard_normal((m, k))
    B = rng.standard_normal((k, d))
    # Equal to the bit, which depends on the order of the sums.
    assert_array_equal(product(A, B), multiply_in_order(A, B))
    assert_array_equal(transposed_product(A.T.copy(), B), multiply_in_order(A, B))


@pytest.mark.parametrize("k", [0, 1, 7, 8, 21, 128, 129, 1000, 5667])
def test_inner_products_equal_numpy(k):
    a, b = np.random.default_rng(k).standard_normal((2, k))
    assert inner(a, b) == np.sum(a * b)


def test_tanh_equals_numpy():
    """The function equals NumPy's tanh up to rounding, and keeps the sign of -0.0."""
    special_numbers = [0.0, -0.0, 1e-9, 500.0, -1e4]
    numbers = np.array([*np.linspace(-30, 30, 1001), *special_numbers])
    matrix = numbers.reshape(2, -1)
    expected = np.tanh(matrix)
    tanh_in_place(matrix)
    assert_allclose(matrix, expected, rtol=0, atol=4e-16)
    assert_array_equal(np.signbit(matrix), np.signbit(expected))
