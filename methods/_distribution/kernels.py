"""Compiled parts of `product_gp`, whose sums have one order on every processor; in its notation."""

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp.compiled import exp_in_place
from hpobench_ordered.runtime.compiling import compiled


@compiled
def matern32(U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Matern-3/2 of rows of U (n, p) and V (m, p), and exp(-sqrt(3) r), each (n, m)."""
    (n, p), m = U.shape, V.shape[0]
    columns = V.T.copy()
    k, decay, scratch = np.zeros((n, m)), np.empty((n, m)), np.empty(m)
    for i in range(n):
        row, fading = k[i], decay[i]
        for c in range(p):
            u, column = U[i, c], columns[c]
            for j in range(m):
                row[j] += (u - column[j]) * (u - column[j])
        for j in range(m):
            row[j] = np.sqrt(3.0 * row[j])
            fading[j] = -row[j]
        exp_in_place(fading, scratch)
        for j in range(m):
            row[j] = (1.0 + row[j]) * fading[j]
    return k, decay


@compiled
def matern32_gradient(U: FloatArray, decay: FloatArray, G: FloatArray) -> FloatArray:
    """Derivatives (n, p) of the sum of G k over all pairs by U (n, p), for symmetric G (n, n)."""
    n, p = U.shape
    gradient = np.zeros((n, p))
    for i in range(n):
        for j in range(n):
            weight = -6.0 * G[i, j] * decay[i, j]
            for c in range(p):
                gradient[i, c] += weight * (U[i, c] - U[j, c])
    return gradient


@compiled
def likelihood_gradient(
    U: FloatArray,
    task: IntArray,
    P: FloatArray,
    k: FloatArray,
    decay: FloatArray,
    inverse: FloatArray,
    a: FloatArray,
) -> tuple[FloatArray, FloatArray, float]:
    """Derivatives of 2 nll / nu by P (T, T) and by log lengths of features (p,), and tr W.

    `inverse` is K^-1, of which the upper triangle counts. Sums go along columns, so that the
    compiler vectorises them.
    """
    N, p = U.shape
    columns = U.T.copy()
    by_tasks, by_length, trace = np.zeros(P.shape), np.zeros((p, N)), 0.0
    begin, weighted = 0, np.empty(N)
    while begin < N:
        own, end = task[begin], begin
        sums = np.zeros(N)
        while end < N and task[end] == own:
            i, end = end, end + 1
            W = inverse[i, i] - a[i] * a[i]
            trace += W
            by_tasks[own, own] += W * k[i, i]
            for j in range(i + 1, N):
                weighted[j] = inverse[i, j] - a[i] * a[j]
                sums[j] += weighted[j] * k[i, j]
                weighted[j] *= decay[i, j] * P[own, task[j]]
            for c in range(p):
                u, others, row = columns[c, i], columns[c], by_length[c]
                for j in range(i + 1, N):
                    row[j] += weighted[j] * (u - others[j]) * (u - others[j])
        for j in range(begin, N):
            by_tasks[own, task[j]] += sums[j]
            by_tasks[task[j], own] += sums[j]
        begin = end
    lengths = np.empty(p)
    for c in range(p):
        lengths[c] = 6.0 * np.sum(by_length[c])
    return by_tasks, lengths, trace


@compiled
def forward(R: FloatArray, B: FloatArray) -> FloatArray:
    """R^-T B (n, m) of upper R (n, n)."""
    n, m = B.shape
    X = B.copy()
    for i in range(n):
        row = X[i]
        for k in range(i):
            factor, above = R[k, i], X[k]
            for j in range(m):
                row[j] -= factor * above[j]
        scale = 1.0 / R[i, i]
        for j in range(m):
            row[j] *= scale
    return X
