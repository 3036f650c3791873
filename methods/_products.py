"""Matrix products and elementwise functions with the same bits on every processor.

The order of summation in BLAS depends on the processor, and fitting a network amplifies differences
in the last bit. Here sums are sequential along the inner dimension k, for all shapes.

The loops of `product` and of `add_transposed_product` are alike, but a function for both would
double their time.
"""

import math

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.compiled import exp_in_place
from hpobench_ordered.runtime.compiling import compiled

BLOCK_ROWS = 64
"""Number of matrix rows that are combined together: they stay in the first-level cache."""
CHUNK = 512
"""Number of array elements that are computed together."""


@compiled
def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Compute A B (m, d) of A (m, k) and B (k, d), summing over k in order.

    Row i of the result is the sum of k terms: term t is A_it times row t of B. To save loads and
    stores, the main loop computes two rows of the result at once, and four terms of each:
    a0, ..., a3 are the factors of the first row, b0, ..., b3 those of the second one, and P, Q, R,
    S the four rows of B. The second loop adds what is left over.
    """
    m, k = A.shape
    d = B.shape[1]
    result = np.zeros((m, d))
    paired_rows = m - m % 2  # without an odd last row
    whole_fours = k - k % 4  # without up to three last terms
    for i in range(0, paired_rows, 2):
        a, b = A[i], A[i + 1]
        row, next_row = result[i], result[i + 1]
        for t in range(0, whole_fours, 4):
            a0, a1, a2, a3 = a[t], a[t + 1], a[t + 2], a[t + 3]
            b0, b1, b2, b3 = b[t], b[t + 1], b[t + 2], b[t + 3]
            P, Q, R, S = B[t], B[t + 1], B[t + 2], B[t + 3]
            for j in range(d):
                p, q, r, s = P[j], Q[j], R[j], S[j]
                row[j] = row[j] + a0 * p + a1 * q + a2 * r + a3 * s
                next_row[j] = next_row[j] + b0 * p + b1 * q + b2 * r + b3 * s
    # What is left over: the last terms of paired rows, and all terms of an odd last row.
    for i in range(m):
        row = result[i]
        first_remaining = whole_fours if i < paired_rows else 0
        for t in range(first_remaining, k):
            factor, term = A[i, t], B[t]
            for j in range(d):
                row[j] += factor * term[j]
    return result


def transposed_product(A: FloatArray, B: FloatArray) -> FloatArray:
    """Compute A^T B (m, d) of A (k, m) and B (k, d), summing over the k rows in their order."""
    result = np.zeros((A.shape[1], B.shape[1]))
    add_transposed_product(result, A, B)
    return result


def gram(A: FloatArray) -> FloatArray:
    """Compute A^T A (m, m) of A (k, m); only the upper triangle is valid, as A^T A is symmetric."""
    result = np.zeros((A.shape[1], A.shape[1]))
    add_transposed_product(result, A, A, upper=True)
    return result


@compiled
def add_transposed_product(
    result: FloatArray, A: FloatArray, B: FloatArray, upper: bool = False
) -> None:
    """Add A^T B to a result, in place.

    If A and B are blocks of the rows of larger matrices, added one after the other, the order of
    summation is that of one product of all rows, provided that all blocks but the last have a
    multiple of 4 rows.

    Row i of A^T B is the sum over t of A_ti times row t of B. To save loads and stores, two rows i
    and i + 1 of the result are computed at once, and four terms t, ..., t + 3 of each sum: a0, ...,
    a3 are the factors A_ti of row i, b0, ..., b3 the factors of row i + 1, and P, Q, R, S the rows
    of B. What is left over follows one by one.

    Args:
        result: Shape (m, d).
        A: Shape (k, m).
        B: Shape (k, d).
        upper: Whether only the upper triangle of the result needs to be valid.
    """
    k, m = A.shape
    d = B.shape[1]
    paired_m = m - m % 2
    whole_k = k - k % 4
    for begin in range(0, whole_k, BLOCK_ROWS):  # blocks of rows that stay in the cache
        end = min(begin + BLOCK_ROWS, whole_k)
        for i in range(0, paired_m, 2):
            row, next_row = result[i], result[i + 1]
            first_column = i if upper else 0
            for t in range(begin, end, 4):
                P, Q, R, S = B[t], B[t + 1], B[t + 2], B[t + 3]
                a0, a1, a2, a3 = A[t, i], A[t + 1, i], A[t + 2, i], A[t + 3, i]
                b0, b1, b2, b3 = A[t, i + 1], A[t + 1, i + 1], A[t + 2, i + 1], A[t + 3, i + 1]
                for j in range(first_column, d):
                    p, q, r, s = P[j], Q[j], R[j], S[j]
                    row[j] = row[j] + a0 * p + a1 * q + a2 * r + a3 * s
                    next_row[j] = next_row[j] + b0 * p + b1 * q + b2 * r + b3 * s
    # What is left over: the last terms of all rows, and all other terms of an odd last row.
    for t in range(k):
        term = B[t]
        first_remaining = paired_m if t < whole_k else 0
        for i in range(first_remaining, m):
            row, factor = result[i], A[t, i]
            for j in range(d):
                row[j] += factor * term[j]


@compiled
def inner(a: FloatArray, b: FloatArray) -> float:
    """Compute a^T b of vectors (k,), with the bits of `np.sum(a * b)`.

    The last bits of a sum depend on the order of its terms, so this is the order of numpy. Vectors
    of more than 128 terms are divided into halves, and each half is summed in the same way. Shorter
    ones have eight partial sums, each of every eighth term, which are added in pairs; then the up
    to seven terms follow that are left over.
    """
    k = len(a)
    if k > 128:  # numpy's block size
        half = k // 2 - k // 2 % 8  # numpy's first half is a multiple of eight terms
        total: float = inner(a[:half], b[:half]) + inner(a[half:], b[half:])
        return total

    end_of_eights = k - k % 8
    partial_sums = np.zeros(8)
    for i in range(0, end_of_eights, 8):
        for j in range(8):
            partial_sums[j] += a[i + j] * b[i + j]
    pairs = partial_sums[::2] + partial_sums[1::2]
    total = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    for i in range(end_of_eights, k):
        total += a[i] * b[i]
    return total


@compiled
def exponentials(x: FloatArray) -> FloatArray:
    """Compute exp(x) (k,); numpy's own depends on the processor."""
    result = np.empty(len(x))
    for i in range(len(x)):
        result[i] = math.exp(x[i])
    return result


@compiled
def sum_log_diagonal(R: FloatArray) -> float:
    """Sum the logarithms of the diagonal of R (k, k): half the log determinant of R^T R."""
    total = 0.0
    for i in range(len(R)):
        total += math.log(R[i, i])
    return total


@compiled
def tanh_in_place(values: FloatArray) -> None:
    """Replace contiguous values by their tanh; numpy's own depends on the processor.

    tanh(x) = sign(x) (1 - e) / (1 + e) with e = exp(-2 |x|), which does not overflow.
    """
    x = values.reshape(-1)  # one dimension; a view, as the values are contiguous
    e_of_chunk = np.empty(CHUNK)
    scratch = np.empty(CHUNK)  # working space of `exp_in_place`
    for begin in range(0, len(x), CHUNK):  # chunks stay in the cache
        chunk = x[begin : begin + CHUNK]
        e = e_of_chunk[: len(chunk)]
        for i in range(len(chunk)):
            e[i] = -2.0 * abs(chunk[i])
        exp_in_place(e, scratch)
        for i in range(len(chunk)):
            chunk[i] = math.copysign((1.0 - e[i]) / (1.0 + e[i]), chunk[i])


@compiled
def backpropagate_tanh(grad_outputs: FloatArray, outputs: FloatArray) -> FloatArray:
    """Propagate a gradient back through tanh, from its outputs to its inputs.

    The derivative of tanh is 1 - tanh^2.

    Args:
        grad_outputs: Gradient with respect to the outputs, shape (m, d).
        outputs: The outputs of tanh, shape (m, d).

    Returns:
        The gradient with respect to the inputs, shape (m, d).
    """
    grad_inputs = np.empty(outputs.shape)
    # Loops, as numba compiles this.
    for i in range(len(outputs)):
        for j in range(outputs.shape[1]):
            derivative = 1.0 - outputs[i, j] * outputs[i, j]
            grad_inputs[i, j] = grad_outputs[i, j] * derivative
    return grad_inputs


@compiled
def mirror_upper_triangle(upper: FloatArray) -> None:
    """Copy the upper triangle of a matrix (k, k) to the lower one."""
    for i in range(len(upper)):
        upper[i + 1 :, i] = upper[i, i + 1 :]
