"""Gradients of weighted sums, and 50-digit directional derivatives, for tests of linear algebra."""

import mpmath as mp
import numpy as np
from comparing import refuses_as

import varmat as vm
from varmat.testing import coverage

GENERAL = np.array([[2.1, -0.4, 0.7], [0.3, 1.6, -1.1], [-0.8, 0.5, 2.9]])
SPD = GENERAL @ GENERAL.T
TALL = np.array(
    [[1.23, -0.71, 0.12], [0.44, 2.15, -0.66], [-1.37, 0.28, 0.99], [0.61, -0.53, 1.78]]
)
WIDE = np.ascontiguousarray(TALL.T)
VECTOR = np.array([0.7, -1.2, 2.3])
COLUMNS = np.array([[0.4, -1.1], [1.3, 0.2], [-0.6, 2.2]])
GENERALS = np.stack([GENERAL, GENERAL.T + 0.25])
SPDS = np.stack([SPD, SPD + np.eye(3)])
TALLS = np.stack([TALL, 0.517 - 1.1 * TALL[::-1]])
COLUMN_STACK = np.stack([COLUMNS, -2.0 * COLUMNS[::-1]])
# A stack of stacks of matrices, large enough to be factorised one by one.
LARGES = (lambda b: b @ np.swapaxes(b, -1, -2) / 20 + 2.0 * np.eye(20))(
    np.cos(np.arange(2 * 3 * 400.0)).reshape(2, 3, 20, 20)
)


def results_of(y):
    return list(y) if isinstance(y, tuple) else [y]


def weights_for(values):
    """Return fixed weights without symmetry, one array per result."""
    start, weights = 1, []
    for value in values:
        size = int(np.size(value))
        weights.append(
            np.reshape(np.cos(1.7 * np.arange(start, start + size)) + 0.3, np.shape(value))
        )
        start += size
    return weights


def gradients(f, args, weights=None, wanted=None):
    """Return the results and the gradients of their weighted sum."""
    with vm.nested():
        variables = [vm.var(x) if wanted is None or wanted[i] else x for i, x in enumerate(args)]
        results = results_of(f(*variables))
        values = [vm.value(y) for y in results]
        weights = weights_for(values) if weights is None else weights
        total = sum(np.sum(w * y) for w, y in zip(weights, results, strict=True))
        return values, total.grad(
            [x for i, x in enumerate(variables) if wanted is None or wanted[i]]
        )


def to_mp(x):
    x = np.asarray(x)
    return mp.matrix(x.tolist()) if x.ndim else mp.mpf(float(x))


def flat(x):
    """Return the elements in row-major order."""
    if isinstance(x, (tuple, list)):
        return [item for part in x for item in flat(part)]
    return (
        [x[i, j] for i in range(x.rows) for j in range(x.cols)] if isinstance(x, mp.matrix) else [x]
    )


def worst_error(f, exact, args, symmetric=False):
    """Return the largest relative error of the values and of the directional derivatives, against
    50-digit arithmetic.
    """
    values, adjoints = gradients(f, args)
    weights = np.concatenate([np.ravel(w) for w in weights_for(values)])
    with mp.workdps(50):
        expected = np.array([float(item) for item in flat(exact(*map(to_mp, args)))])
        value = np.concatenate([np.ravel(v) for v in values])
        error = float(np.max(np.abs(value - expected)) / np.max(np.abs(expected)))
        for i, (x, adjoint) in enumerate(zip(args, adjoints, strict=True)):
            d = np.sin(2.3 * np.arange(np.size(x)) + 0.4).reshape(np.shape(x))
            d = d + d.T if symmetric and d.ndim == 2 and d.shape[0] == d.shape[1] else d

            def along(t, i=i, d=d):
                moved = [
                    to_mp(x) + t * to_mp(d) if j == i else to_mp(x) for j, x in enumerate(args)
                ]
                return mp.fdot(weights.tolist(), flat(exact(*moved)))

            slope = float(mp.diff(along, 0))
            error = max(
                error, abs(np.sum(adjoint * d) - slope) / float(np.sum(np.abs(adjoint * d)))
            )
    coverage.note(f, args, mpmath=error)
    return error


def symmetric(f):
    """Turn `f` into a function of the lower triangle of its first argument, which is made
    symmetric.
    """

    def of_triangle(a, *others):
        return f(np.where(np.tri(np.shape(a)[-1], dtype=bool), a, np.swapaxes(a, -1, -2)), *others)

    return of_triangle


def lower_triangular(f):
    """Turn `f` into a function of the lower triangle of its argument."""
    return lambda a: f(np.tril(a))


def refuses(f, args, error, message):
    """Demand that data and a variable are refused, and that nothing is recorded."""
    with vm.nested() as tape:
        for given in (args, (vm.var(args[0]), *args[1:])):
            refuses_as(error, message, f, *given)
        assert not tape


def value_and_adjoints(f, *args, weights=1.0):
    """Return the value, and the adjoints of all arguments for the sum of the result times
    `weights`.
    """
    with vm.nested():
        variables = [vm.var(x) for x in args]
        y = f(*variables)
        adjoints = np.sum(y * weights).grad(variables)
        return vm.value(y), adjoints


def adjoint(f, x, weights=1.0):
    return value_and_adjoints(f, x, weights=weights)[1][0]
