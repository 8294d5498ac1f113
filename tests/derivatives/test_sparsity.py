"""Sparse Jacobians: their elements, their patterns, and how many directions they take."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from comparing import close, equal, refuses

import varmat as vm
from varmat.derivatives.sparsity import colours_of

X = np.linspace(0.1, 2.0, 30)
MATRIX = scipy.sparse.random_array((40, 30), density=0.05, rng=np.random.default_rng(1)).tocsr()
INDEX = np.array([1, 1, 4, 29, 0])


def _filter(x):
    level, found = x[0], []
    for i in range(1, 20):
        level = 0.5 * level + x[i]
        found.append(level * x[i])
    return np.stack(found)


def _heat(x):
    u = x.reshape(5, 6)
    rate = np.zeros_like(u)
    rate[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] - 3.0 * u[1:-1, 1:-1] ** 2
    return rate


def _walk(x):
    return vm.scan(lambda carry, step: (0.5 * carry + step, carry * step), x[0], x[1:])[1]


# The elements of a pattern; None where it may have more than those that are not zero.
FUNCTIONS = {
    "differences": (lambda x: np.diff(x**2), 58),
    "neighbours": (lambda x: np.exp(x[1:-1]) * x[2:] - x[:-2], 84),
    "cumulative": (lambda x: np.cumsum(x[:10]), 100),
    "rows": (lambda x: np.sum(x.reshape(5, 6), axis=1), 30),
    "columns": (lambda x: np.max(x.reshape(5, 6), axis=0), 30),
    "transposed": (lambda x: x.reshape(5, 6).T * np.arange(5.0), 30),
    "choice": (lambda x: np.where(x > 1.0, x, x**2), 30),
    "sparse": (lambda x: np.sin(MATRIX @ x), MATRIX.nnz),
    "sparse transposed": (lambda x: MATRIX.T @ np.concatenate([x, x[:10]]), None),
    "dense": (lambda x: np.sin(MATRIX.toarray() @ x), MATRIX.nnz),
    "matrices": (lambda x: x.reshape(5, 6) @ x[:6], None),
    "gathered": (lambda x: x[INDEX] * x[0], 9),
    "loop": (_filter, 209),
    "scan": (_walk, None),
    "assigned": (_heat, None),
    "joined": (lambda x: np.concatenate([np.sin(x), x[::-1] * x]), 90),
    "solved": (lambda x: np.linalg.solve(np.diag(X) + 1.0, x), 900),
    "number": (lambda x: np.sum(x[3:7] ** 2), 4),
    "gradient": (vm.grad(lambda x: np.sum(x[1:] ** 2 * x[:-1])), None),
    "constant": (lambda x: 0.0 * x + 1.0, None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sparse_jacobian_is_the_jacobian(name):
    f, count = FUNCTIONS[name]
    jacobian = vm.sparse_jacobian(f)
    for x in (X, X[::-1].copy()):
        found, expected = jacobian(x), vm.jacobian(f, x).reshape(-1, x.size)
        close(found.toarray(), expected, 1e-13, 1e-14)
        assert isinstance(found, scipy.sparse.csr_array)
        assert found.has_sorted_indices
        assert count is None or found.nnz == count


@pytest.mark.parametrize("seed", range(40))
def test_compositions_of_operations_have_the_pattern_of_their_jacobian(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(200)
    steps = [
        lambda x: x[1:] * x[:-1],
        lambda x: np.exp(-x) + x[::-1],
        lambda x: x[order[order < x.size][: max(2, x.size // 2)]],
        lambda x: np.concatenate([x[2:], np.sin(x)]),
        lambda x: np.ravel(
            x[: x.size // 2 * 2].reshape(-1, 2) @ np.array([[1.0, 0.0], [2.0, 1.0]])
        ),
        lambda x: np.sum(x[: x.size // 2 * 2].reshape(2, -1), axis=0),
        lambda x: np.where(x > 0.5, x, x[0] * x),
        lambda x: np.maximum(x, np.roll(x, 1)),
        lambda x: np.outer(x, x[:3])[:, 1],
    ]
    chosen = rng.integers(len(steps), size=4)

    def f(x):
        for k in chosen:
            x = steps[k](x)
        return x

    x = rng.random(12)
    jacobian = vm.sparse_jacobian(f)(x)
    expected = vm.jacobian(f, x)
    close(jacobian.toarray(), expected, 1e-12, 1e-13)
    assert jacobian.nnz <= expected.size


def test_a_band_takes_as_many_directions_as_it_is_wide():
    jacobian = vm.sparse_jacobian(lambda x: x[2:] * x[1:-1] - x[:-2])
    pattern = jacobian(np.arange(400.0)).astype(bool)
    colours = colours_of(pattern)
    assert sorted({*colours.tolist()}) == [0, 1, 2]
    dense = pattern.toarray()
    assert all(dense[:, colours == k].sum(axis=1).max() == 1 for k in range(3))
    steps = jacobian.program.steps
    assert next(step.kernel.trips for step in steps if step.kernel.name == "loop") == 3


def test_one_full_row_is_no_reason_to_take_a_direction_for_each_column():
    jacobian = vm.sparse_jacobian(lambda x: np.concatenate([x**2, np.sum(x)[np.newaxis]]))
    equal(jacobian(X).toarray(), np.vstack([np.diag(2.0 * X), np.ones(X.size)]))
    steps = jacobian.program.steps
    assert next(step.kernel.trips for step in steps if step.kernel.name == "loop") == 2


def test_further_arguments_and_least_squares():
    def residuals(x, data):
        return np.concatenate([x - data, 3.0 * np.diff(x)])

    data = np.sin(X)
    jacobian = vm.sparse_jacobian(residuals)
    found = scipy.optimize.least_squares(residuals, np.zeros(30), jacobian, args=(data,))
    difference = np.diff(np.eye(30), axis=0)
    expected = np.linalg.solve(np.eye(30) + 9.0 * difference.T @ difference, data)
    close(found.x, expected, 1e-6)


def test_a_branch_on_values_is_refused():
    def f(x):
        return x[1:] if x[0] > 0.0 else 2.0 * x[1:]

    refuses(vm.TapeError, "would always take the same branch", vm.sparse_jacobian(f), np.ones(3))


@pytest.mark.parametrize(("call", "text"), [
    (lambda: vm.sparse_jacobian(3.0), "sparse_jacobian: the argument is a float, but"),
    (lambda: vm.sparse_jacobian(np.sin)("a"), "sparse_jacobian: x"),
    (lambda: vm.sparse_jacobian(lambda x: x[0])((1.0, 2.0)), "x is a structure, but must be"),
    (lambda: vm.sparse_jacobian(lambda x: (x, x))(X), "the result is a structure, but must"),
    (lambda: vm.sparse_jacobian(np.sin).map(X), "sparse_jacobian: map is not supported"),
])  # fmt: skip
def test_refusals(call, text):
    refuses(TypeError, text, call)
