"""Compiled parts of `product_gp`, whose sums have the same order on every processor.

=======  =======  =================================================================================
symbol   shape    meaning
=======  =======  =================================================================================
N, T     scalar   evaluations of all tasks, tasks
p        scalar   features
U        (N, p)   features divided by the length scales
r        (N, N)   Euclidean distances of the rows of U
decay    (N, N)   exp(-sqrt(3) r)
k        (N, N)   Matern-3/2, (1 + sqrt(3) r) decay
P        (T, T)   covariance of the tasks
W        (N, N)   K^-1 - a a^T, with the covariance K and a = K^-1 (y - mu) of `product_gp`
nll      scalar   minus log likelihood;  nu: signal variance
=======  =======  =================================================================================
"""

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp.compiled import exp_in_place
from hpobench_ordered.runtime.compiling import compiled


@compiled
def matern32(U: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute Matern-3/2 correlations of rows of U (n, p) and V (m, p).

    With the Euclidean distance r of two rows, it is (1 + sqrt(3) r) exp(-sqrt(3) r).

    Returns:
        The correlations, and their second factor exp(-sqrt(3) r), which derivatives need, each
        (n, m).
    """
    n, p = U.shape
    m = V.shape[0]
    V_columns = V.T.copy()  # contiguous, so that the loops over m are vectorised
    k = np.zeros((n, m))
    decay = np.empty((n, m))
    scratch = np.empty(m)  # working space
    for i in range(n):
        k_row = k[i]
        # The entries become r^2 here, then sqrt(3) r, and at last correlations.
        for c in range(p):
            u = U[i, c]
            column = V_columns[c]
            for j in range(m):
                k_row[j] += (u - column[j]) * (u - column[j])

        decay_row = decay[i]
        for j in range(m):
            k_row[j] = np.sqrt(3.0 * k_row[j])
            decay_row[j] = -k_row[j]
        exp_in_place(decay_row, scratch)
        for j in range(m):
            k_row[j] = (1.0 + k_row[j]) * decay_row[j]
    return k, decay


@compiled
def matern32_gradient(U: FloatArray, decay: FloatArray, G: FloatArray) -> FloatArray:
    """Compute the gradient, for rows u_i of U (n, p), of the sum of G_ij k(u_i, u_j) over i and j.

    k is the Matern-3/2 correlation, with dk / du_i = -3 decay (u_i - u_j). As G is symmetric, each
    pair occurs twice in the sum, which gives the factor -6.

    Args:
        U: Features divided by the length scales, shape (n, p).
        decay: exp(-sqrt(3) r) with the distances r of rows of U, shape (n, n).
        G: Symmetric weights, shape (n, n).
    """
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
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the gradient of minus the log likelihood, nll, and the diagonal of W.

    The covariance K is nu k(u_i, u_j) P[task_i, task_j], with noise on the diagonal, and
    W = K^-1 - a a^T is 2 d nll / d K. So the gradient of 2 nll / nu with respect to P has sums of
    W k over the evaluations of two tasks, and that with respect to log length scales has sums of
    W P dk. Sums go along columns, so that the compiler vectorises them.

    Args:
        U: Features divided by the length scales, shape (N, p).
        task: Task of each evaluation, ascending, shape (N,).
        P: Covariance of the tasks, shape (T, T).
        k: Matern-3/2 correlations, shape (N, N).
        decay: exp(-sqrt(3) r) with the distances r of rows of U, shape (N, N).
        inverse: K^-1, of which only the upper triangle is used, shape (N, N).
        a: K^-1 (y - mu), with the losses y and their mean mu, shape (N,).

    Returns:
        Gradients of 2 nll / nu, with respect to P (T, T), symmetric, and to the log length scale of
        each feature (p,), and the diagonal of W, (N,).
    """
    N, p = U.shape
    U_columns = U.T.copy()
    grad_P = np.zeros(P.shape)
    grad_length_of_column = np.zeros((p, N))  # summed over rows; over columns in the end
    weighted = np.empty(N)
    W_diagonal = np.empty(N)
    first_row = 0
    while first_row < N:  # over tasks, whose rows stand together
        row_task = task[first_row]
        W_k_sums = np.zeros(N)  # sum of W k over the task's rows
        end_row = first_row
        while end_row < N and task[end_row] == row_task:
            i = end_row
            end_row += 1
            W_diagonal[i] = inverse[i, i] - a[i] * a[i]
            grad_P[row_task, row_task] += W_diagonal[i] * k[i, i]
            for j in range(i + 1, N):
                weighted[j] = inverse[i, j] - a[i] * a[j]  # W_ij
                W_k_sums[j] += weighted[j] * k[i, j]
                weighted[j] *= decay[i, j] * P[row_task, task[j]]
            for c in range(p):
                u, column, grad_length = U_columns[c, i], U_columns[c], grad_length_of_column[c]
                for j in range(i + 1, N):
                    grad_length[j] += weighted[j] * (u - column[j]) * (u - column[j])
        for j in range(first_row, N):  # an entry above W's diagonal stands for two
            grad_P[row_task, task[j]] += W_k_sums[j]
            grad_P[task[j], row_task] += W_k_sums[j]
        first_row = end_row

    grad_log_length = np.empty(p)
    for c in range(p):
        # 3 from the derivative of Matern-3/2, and 2 for the pairs below the diagonal.
        grad_log_length[c] = 6.0 * np.sum(grad_length_of_column[c])
    return grad_P, grad_log_length, W_diagonal


@compiled
def forward(R: FloatArray, B: FloatArray) -> FloatArray:
    """Solve R^T X = B for X (n, m), with upper R (n, n) and B (n, m), by forward substitution.

    Row i of X is (row i of B - sum over k < i of R_ki times row k of X) / R_ii.
    """
    n, m = B.shape
    X = B.copy()
    for i in range(n):
        row = X[i]
        for k in range(i):  # rows above, which are solved
            factor = R[k, i]
            solved_row = X[k]
            for j in range(m):
                row[j] -= factor * solved_row[j]
        scale = 1.0 / R[i, i]
        for j in range(m):
            row[j] *= scale
    return X
