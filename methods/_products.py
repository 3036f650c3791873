"""Matrix products and functions of arrays, whose sums have one order on every processor.

Those of BLAS have not: of another last bit the fit of a network makes another network. Here sums
are taken one after the other along the inner dimension, whatever the shapes.
"""

import math

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.compiled import exp_in_place
from hpobench_ordered.runtime.compiling import compiled


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


@compiled
def add_transposed_product(result: FloatArray, A: FloatArray, B: FloatArray) -> None:
    """Add A^T B to a result (m, d); sums go on in their order if earlier k are multiples of 4."""
    (k, m), d = A.shape, B.shape[1]
    even, whole = m - m % 2, k - k % 4
    for t in range(0, whole, 4):
        P, Q, R, S = B[t], B[t + 1], B[t + 2], B[t + 3]
        for i in range(0, even, 2):
            target, other = result[i], result[i + 1]
            a0, a1, a2, a3 = A[t, i], A[t + 1, i], A[t + 2, i], A[t + 3, i]
            b0, b1, b2, b3 = A[t, i + 1], A[t + 1, i + 1], A[t + 2, i + 1], A[t + 3, i + 1]
            for j in range(d):
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
def exponentials(x: FloatArray) -> FloatArray:
    """exp(x) (k,); numpy's own depends on the processor."""
    result = np.empty(len(x))
    for i in range(len(x)):
        result[i] = math.exp(x[i])
    return result


@compiled
def log_diagonal(R: FloatArray) -> float:
    """Sum of the logarithms of a diagonal."""
    total = 0.0
    for i in range(len(R)):
        total += math.log(R[i, i])
    return total


def tanh_in_place(x: FloatArray) -> None:
    """Replace contiguous x by tanh(x); numpy's own depends on the processor."""
    flat = x.reshape(-1)
    decay = -2.0 * np.abs(flat)
    exp_in_place(decay, np.empty(len(decay)))
    _tanh_from_decay(flat, decay)


@compiled
def _tanh_from_decay(x: FloatArray, decay: FloatArray) -> None:
    for i in range(len(x)):
        x[i] = math.copysign((1.0 - decay[i]) / (1.0 + decay[i]), x[i])


@compiled
def mirror(upper: FloatArray) -> None:
    """Copy the upper triangle of a matrix (k, k) to the lower one."""
    for i in range(len(upper)):
        upper[i + 1 :, i] = upper[i, i + 1 :]
