"""Kernels of our own, for what NumPy and SciPy have no loop; needs numba.

Each has the signature of NumPy's inner loops, and is compiled by `compiled.own_kernel`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from varmat.programs.run.addresses import bytes_at, doubles_at, words_at

if TYPE_CHECKING:
    from varmat.programs.run.addresses import Words


def select(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Elements of one of two arrays, by a condition."""
    condition, x, y, out = args[0], args[1], args[2], args[3]
    for _ in range(dims[0]):
        doubles_at(out)[0] = doubles_at(x)[0] if bytes_at(condition)[0] else doubles_at(y)[0]
        condition += steps[0]
        x += steps[1]
        y += steps[2]
        out += steps[3]


def gather(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Elements at places."""
    x, index, out = doubles_at(args[0]), words_at(args[1]), doubles_at(args[2])
    for i in range(dims[0]):
        out[i] = x[index[i]]


def scatter(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Add elements at places."""
    part, index, out = args[0], words_at(args[1]), doubles_at(args[2])
    for i in range(dims[0]):
        out[index[i]] += doubles_at(part)[0]
        part += dims[1]


def solve(args: Words, dims: Words, steps: Words, data: int) -> None:
    """A lower triangular system, over the right hand side; rows of it lie one after the other."""
    a, b, n, columns, transposed = (
        doubles_at(args[0]),
        doubles_at(args[1]),
        dims[0],
        dims[1],
        dims[2],
    )
    if transposed:
        for step in range(n):
            i = n - 1 - step
            pivot = a[i * n + i]
            for c in range(columns):
                b[i * columns + c] /= pivot
            for j in range(i):
                factor = a[i * n + j]
                for c in range(columns):
                    b[j * columns + c] -= factor * b[i * columns + c]
    else:
        for i in range(n):
            for j in range(i):
                factor = a[i * n + j]
                for c in range(columns):
                    b[i * columns + c] -= factor * b[j * columns + c]
            pivot = a[i * n + i]
            for c in range(columns):
                b[i * columns + c] /= pivot


def chain(args: Words, dims: Words, steps: Words, data: int) -> None:
    """The filter of a hidden Markov chain and, backwards, the smoother: see
    `varmat.densities.hmm.Chain`.
    """
    times, states = dims[0], dims[1]
    w, gamma, rho, value = (
        doubles_at(args[0]),
        doubles_at(args[1]),
        doubles_at(args[2]),
        doubles_at(args[3]),
    )
    a, in_gamma, in_rho = doubles_at(args[4]), doubles_at(args[5]), doubles_at(args[6])
    scales, b = doubles_at(args[7]), doubles_at(args[8])
    total = 0.0
    for t in range(times):
        here = t * states
        scale = 0.0
        for j in range(states):
            x = rho[j]
            if t:
                x = 0.0
                for i in range(states):
                    x += a[here - states + i] * gamma[i * states + j]
            a[here + j] = x * w[here + j]
            scale += a[here + j]
        scales[t] = scale
        total += math.log(scale)
        for j in range(states):
            a[here + j] /= scale
    value[0] = total
    for i in range(states * states):
        in_gamma[i] = 0.0
    for j in range(states):
        b[j] = 1.0
    for step in range(times):
        here = (times - 1 - step) * states
        for j in range(states):
            b[states + j] = w[here + j] * b[j] / scales[times - 1 - step]
            a[here + j] *= b[j]
        for i in range(states):
            if here:
                x = 0.0
                for j in range(states):
                    x += gamma[i * states + j] * b[states + j]
                    in_gamma[i * states + j] += a[here - states + i] * b[states + j]
                b[i] = x
            else:
                in_rho[i] = b[states + i]


def sparse_product(args: Words, dims: Words, steps: Words, data: int) -> None:
    """A sparse matrix, or its transpose, times a vector or the columns of a matrix."""
    x, columns, starts = doubles_at(args[0]), words_at(args[1]), words_at(args[2])
    b, out = doubles_at(args[3]), doubles_at(args[4])
    rows, width, transposed, size = dims[0], dims[1], dims[2], dims[3]
    if width == 1 and not transposed:
        for i in range(rows):
            total = 0.0
            for p in range(starts[i], starts[i + 1]):
                total += x[p] * b[columns[p]]
            out[i] = total
        return
    for i in range(size):
        out[i] = 0.0
    for i in range(rows):
        for p in range(starts[i], starts[i + 1]):
            factor = x[p]
            source, target = (i, columns[p]) if transposed else (columns[p], i)
            for k in range(width):
                out[target * width + k] += factor * b[source * width + k]


def times_rows(args: Words, dims: Words, steps: Words, data: int) -> None:
    """The rows of a matrix times a vector, one after the other: as memory is read fastest."""
    row, b, out, columns = args[0], doubles_at(args[1]), doubles_at(args[2]), steps[1]
    for i in range(dims[0]):
        x, total = doubles_at(row), 0.0
        for j in range(columns):
            total += x[j] * b[j]
        out[i] = total
        row += steps[0]


def add_rows(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Add the rows of a matrix, each times an element of a vector; four at once, for they are in
    the cache.
    """
    row, w, out, stride, columns = (
        args[0],
        doubles_at(args[1]),
        doubles_at(args[2]),
        steps[0],
        steps[1],
    )
    whole = dims[0] // 4 * 4
    for i in range(0, whole, 4):
        x, y, z, v = (
            doubles_at(row),
            doubles_at(row + stride),
            doubles_at(row + 2 * stride),
            doubles_at(row + 3 * stride),
        )
        a, b, c, d = w[i], w[i + 1], w[i + 2], w[i + 3]
        for j in range(columns):
            out[j] += a * x[j] + b * y[j] + c * z[j] + d * v[j]
        row += 4 * stride
    for i in range(whole, dims[0]):
        x, a = doubles_at(row), w[i]
        for j in range(columns):
            out[j] += a * x[j]
        row += stride


def sampled_product(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Inner products of rows of one matrix with rows of another."""
    x, y, out = doubles_at(args[0]), doubles_at(args[1]), doubles_at(args[4])
    rows, columns = words_at(args[2]), words_at(args[3])
    width = dims[1]
    for p in range(dims[0]):
        total = 0.0
        for k in range(width):
            total += x[rows[p] * width + k] * y[columns[p] * width + k]
        out[p] = total


OWN = {
    "select": select, "gather": gather, "scatter": scatter, "solve": solve, "chain": chain,
    "sparse_product": sparse_product, "sampled_product": sampled_product,
    "times_rows": times_rows, "add_rows": add_rows,
}  # fmt: skip
# Whose sums may be taken in any order, as those of BLAS are.
IN_ANY_ORDER = ("times_rows", "add_rows")
