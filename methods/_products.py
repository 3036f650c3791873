"""Matrix products and elementwise functions with the same bits on every processor.

The order of summation in BLAS depends on the processor, and fitting a network amplifies differences
in the last bit. Here sums are sequential along the inner dimension, for all shapes.
"""

import math

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.compiled import exp_in_place
from hpobench_ordered.runtime.compiling import compiled

ROWS, CHUNK = 64, 512
"""Number of matrix rows, and of array elements, that are computed together."""


@compiled
def product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A B (m, d) of A (m, k) and B (k, d)."""
    (m, k), d = A.shape, B.shape[1]
    result = np.zeros((m, d))
    even, whole = m - m % 2, k - k % 4
    for i in range(0, even, 2):  # two rows of A and four of B at once: fewer loads and stores
        a, b, target, other = A[i], A[i + 1], result[i], result[i + 1]
        for t in range(0, whole, 4):
            a0, a1, a2, a3 = a[t], a[t + 1], a[t + 2], a[t + 3]
            b0, b1, b2, b3 = b[t], b[t + 1], b[t + 2], b[t + 3]
            P, Q, R, S = B[t], B[t + 1], B[t + 2], B[t + 3]
            for j in range(d):
                p, q, r, s = P[j], Q[j], R[j], S[j]
                target[j] = target[j] + a0 * p + a1 * q + a2 * r + a3 * s
                other[j] = other[j] + b0 * p + b1 * q + b2 * r + b3 * s
    for i in range(m):
        target = result[i]
        for t in range(whole if i < even else 0, k):
            scale, source = A[i, t], B[t]
            for j in range(d):
                target[j] += scale * source[j]
    return result


def transposed_product(A: FloatArray, B: FloatArray) -> FloatArray:
    """A^T B (m, d) of A (k, m) and B (k, d), for large k."""
    result = np.zeros((A.shape[1], B.shape[1]))
    add_transposed_product(result, A, B)
    return result


def gram(A: FloatArray) -> FloatArray:
    """A^T A (m, m) of A (k, m); only the upper triangle is valid."""
    result = np.zeros((A.shape[1], A.shape[1]))
    add_transposed_product(result, A, A, upper=True)
    return result


@compiled
def add_transposed_product(
    result: FloatArray, A: FloatArray, B: FloatArray, upper: bool = False
) -> None:
    """Add A^T B to a result (m, d); if `upper`, only its upper triangle is valid.

    The order of summation is that of one product of all rows if earlier k are multiples of 4.
    """
    (k, m), d = A.shape, B.shape[1]
    even, whole = m - m % 2, k - k % 4
    for begin in range(0, whole, ROWS):  # rows of A and B that stay in the first-level cache
        for i in range(0, even, 2):
            target, other, first = result[i], result[i + 1], i if upper else 0
            for t in range(begin, min(begin + ROWS, whole), 4):
                P, Q, R, S = B[t], B[t + 1], B[t + 2], B[t + 3]
                a0, a1, a2, a3 = A[t, i], A[t + 1, i], A[t + 2, i], A[t + 3, i]
                b0, b1, b2, b3 = A[t, i + 1], A[t + 1, i + 1], A[t + 2, i + 1], A[t + 3, i + 1]
                for j in range(first, d):
                    p, q, r, s = P[j], Q[j], R[j], S[j]
                    target[j] = target[j] + a0 * p + a1 * q + a2 * r + a3 * s
                    other[j] = other[j] + b0 * p + b1 * q + b2 * r + b3 * s
    for t in range(k):
        source = B[t]
        for i in range(even if t < whole else 0, m):
            target, scale = result[i], A[t, i]
            for j in range(d):
                target[j] += scale * source[j]


@compiled
def inner(a: FloatArray, b: FloatArray) -> float:
    """a^T b of vectors (k,), in the order of `np.sum(a * b)`: the sum of the sums of its halves."""
    k = len(a)
    if k > 128:
        half = k // 2 - k // 2 % 8
        total: float = inner(a[:half], b[:half]) + inner(a[half:], b[half:])
        return total
    whole, sums = k - k % 8, np.zeros(8)
    for i in range(0, whole, 8):
        for j in range(8):
            sums[j] += a[i + j] * b[i + j]
    pairs = sums[::2] + sums[1::2]
    total = (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
    for i in range(whole, k):
        total += a[i] * b[i]
    return total


@compiled
def exponentials(x: FloatArray) -> FloatArray:
    """exp(x) (k,); numpy's own depends on the processor."""
    result = np.empty(len(x))
    for i in range(len(x)):
        result[i] = math.exp(x[i])
    return result


@compiled
def sum_log_diagonal(R: FloatArray) -> float:
    """Sum of the logarithms of a diagonal."""
    total = 0.0
    for i in range(len(R)):
        total += math.log(R[i, i])
    return total


@compiled
def tanh_in_place(values: FloatArray) -> None:
    """Replace contiguous values by their tanh; numpy's own depends on the processor."""
    x = values.reshape(-1)
    decay, scratch = np.empty(CHUNK), np.empty(CHUNK)
    for begin in range(0, len(x), CHUNK):
        some = x[begin : begin + CHUNK]
        fading = decay[: len(some)]
        for i in range(len(some)):
            fading[i] = -2.0 * abs(some[i])
        exp_in_place(fading, scratch)
        for i in range(len(some)):
            some[i] = math.copysign((1.0 - fading[i]) / (1.0 + fading[i]), some[i])


@compiled
def backpropagate_tanh(slopes: FloatArray, outputs: FloatArray) -> FloatArray:
    """Derivatives (m, d) with respect to tanh's inputs from those with respect to its outputs."""
    result = np.empty(outputs.shape)
    for i in range(len(outputs)):
        for j in range(outputs.shape[1]):
            result[i, j] = slopes[i, j] * (1.0 - outputs[i, j] * outputs[i, j])
    return result


@compiled
def mirror_upper_triangle(upper: FloatArray) -> None:
    """Copy the upper triangle of a matrix (k, k) to the lower one."""
    for i in range(len(upper)):
        upper[i + 1 :, i] = upper[i, i + 1 :]
