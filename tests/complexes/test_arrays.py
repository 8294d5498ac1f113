"""Arrays of complex variables: part-by-part operations, products, sums and broadcasting."""

import numpy as np
import pytest
from comparing import close, equal
from complexes.pairs import of_pair, of_pairs, parts, recorded
from numpy.testing.overrides import get_overridable_numpy_array_functions

import varmat as vm
from varmat.core.dispatch import COMPLEX, is_complex
from varmat.stan import containers
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(3)
A, B, C, D = (RNG.normal(size=shape) for shape in ((2, 3), (2, 3), (3, 2), (3, 2)))
S, T = RNG.normal(size=(2, 3, 3))
V, W = np.array([0.7, -1.2, 0.3]), np.array([0.4, 0.9, -2.1])
EVEN = np.array([True, False, True])


def test_shapes():
    recorded(expect_ad(of_pair(lambda z: (
        z.T, z[0], z[:, 1], z[1, 2], z[:, [0, 2]], z.reshape(3, 2), np.ravel(z),
        np.swapaxes(z, 0, 1), np.flip(z), z[..., None], np.broadcast_to(z[0], (2, 3)),
        np.squeeze(z[:1]), np.moveaxis(z, 0, 1), np.rot90(z),
    )), A, B))  # fmt: skip


def test_joining_and_moving():
    recorded(expect_ad(of_pair(lambda z, x: (
        np.concatenate([z, x, z * 1j], axis=1), np.stack([z, x]), np.vstack([x, z]),
        np.append(z, 1j), np.repeat(z, 2), np.tile(z, 2), np.roll(z, 1), np.insert(z, 1, 2.0),
        np.delete(z, 0, axis=1), np.diff(z), np.split(z, 3, axis=1)[1],
        np.take(z, [2, 0], axis=1), np.diff(z, prepend=1j), np.pad(z, 1, constant_values=2j),
        np.where(x > 0.0, z, x), np.where(z, z, x), np.where(EVEN, 1j, z), np.atleast_2d(z[0]),
        np.select([x > 0.5, x > 0.0], [z, 2.0 * x], 1j),
    )), A, B, A + 0.3))  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", [
    lambda z, x: ((z,), {}), lambda z, x: ((z, x), {}), lambda z, x: ((x, z), {}),
    lambda z, x: ((z, z), {}), lambda z, x: ((z, 2.0, 1j), {}), lambda z, x: ((x, 2.0, z), {}),
    lambda z, x: ((z, x, x), {}), lambda z, x: ((z, None, 1j), {}), lambda z, x: ((x, x, z), {}),
    lambda z, x: ((0.7, np.arange(3.0), z, x[0], 1j), {}), lambda z, x: (([z, x],), {}),
    lambda z, x: ((np.array([-0.5, 0.7, 9.0]), np.arange(3.0), z), {"left": 2.0, "right": 1j}),
    lambda z, x: ((z,), {"to_end": x}), lambda z, x: ((z, 1, -1, x[:1], 2.0), {}),
    lambda z, x: ((z, None, None, None, False, 3.0), {}),
    lambda z, x: (([x], [z]), {}), lambda z, x: (([z], [x]), {}),
    lambda z, x: ((x,), {"where": z}), lambda z, x: ((EVEN * 1j,), {"where": z}),
    lambda z, x: ((z,), {"where": EVEN}), lambda z, x: ((z,), {"axis": 0}),
])  # fmt: skip
def test_functions_of_numpy_take_complex_variables_anywhere_as_complex_arrays_or_refuse(arguments):
    # One has arbitrary elements, one takes functions, and complex variables have memory of pairs.
    others = {np.empty_like, np.piecewise, np.shares_memory, np.may_share_memory}
    for function in get_overridable_numpy_array_functions() - others:

        def f(x, y, function=function):
            args, settings = arguments(x + 1j * y, x)
            result = function(*args, **settings)
            output = result if isinstance(result, (tuple, list)) else [result]
            return sum(np.sum(np.real(part) + 2.0 * np.imag(part)) for part in output) + x[0]

        try:
            found, expected = vm.value_and_grad(f, (0, 1))(V, W)[0], float(f(V, W))
        except (TypeError, ValueError, AttributeError, IndexError, KeyError):
            continue
        np.testing.assert_allclose(found, expected, 1e-13, err_msg=function.__name__)


def test_matrices_and_parts_of_them():
    recorded(expect_ad(of_pair(lambda z: (
        np.trace(z), np.diagonal(z), np.diag(z[0]), np.tril(z), np.triu(z, 1), z.mT,
    )), S, T))  # fmt: skip


def test_sums_and_products_of_elements():
    recorded(expect_ad(of_pair(lambda z: (
        np.sum(z), np.sum(z, axis=0), z.mean(axis=1), np.cumsum(z, axis=1), np.prod(z),
        np.prod(z, axis=0), np.cumprod(z, axis=1), np.sum(z, initial=1j), np.add.reduce(z),
        np.average(z, axis=1, weights=[1.0, 2.0, 0.5]), np.gradient(z, axis=1),
        np.interp(0.7, [0.0, 1.0, 2.0], z[0]), np.multiply.reduce(z, axis=1),
        np.prod(z, axis=1, keepdims=True), np.var(z), np.std(z, axis=1, ddof=1),
        np.linalg.norm(z), np.linalg.norm(z, 1, axis=0),
    )), A, B))  # fmt: skip


@pytest.mark.parametrize("zeros", [1, 2])
def test_products_with_zeros(zeros):
    re, im = np.array([1.5, 1.0, 2.0, -0.5]), np.array([-0.5, 1.0, -2.0, 1.0])
    re[:zeros] = im[:zeros] = 0.0
    expect_ad(of_pair(np.prod), re, im)


def test_matrix_products():
    recorded(expect_ad(of_pairs(np.matmul), A, B, C, D))
    recorded(expect_ad(of_pair(lambda z, x: (
        z @ x, x @ z, np.vdot(x, z.T), np.outer(x[0], z[0]), z @ C, z[0] @ z[1],
        np.dot(C[:, 0], z.T), (C + 1j * D) @ z, [1j, 2.0] @ z,
    )), A, B, C))  # fmt: skip


def test_other_products():
    def f(z):
        w = z[::-1] * (2.0 - 1j) + 0.5
        return (
            np.vdot(z, w), np.outer(z, w), np.inner(z, w), np.kron(z, w), np.tensordot(z, w, 0),
            np.einsum("i,j->ji", z, w), np.convolve(z, w), np.correlate(z, w),
            np.multiply.outer(z, w), np.cross(z, w), np.einsum("i,i,j->j", z, w, z),
            np.einsum("i->", z), np.linalg.multi_dot([z, S, w]), np.vecdot(z, w),
        )  # fmt: skip

    recorded(expect_ad(of_pair(f), V, W))


def test_polynomials():
    recorded(expect_ad(of_pair(lambda z: (
        np.polyval(z, 0.5 + 1j), np.polyval([1.0, 2.0, 1j], z), np.vander(z, 3),
    )), V, W))  # fmt: skip


def test_assignment():
    def f(z):
        x = np.abs(z)
        w = z.copy()
        w[:2] = w[1:] * 2j
        w[0] = x[0]
        w.imag[2] = x[1]
        w.real += 1.0
        w *= z
        return w, np.full_like(z, 1.0 + 1j) * z, np.ones_like(z) * z

    recorded(expect_ad(of_pair(f), V, W))


def test_arrays_to_write_into():
    def f(x):
        v, w = np.zeros_like(x, dtype=complex), np.empty_like(x * 1j)
        v[0] = 1j * x[1]
        v[1:] = x[1:]
        w[...] = x.astype(complex) * v
        return parts(v + w)

    recorded(expect_ad(f, V))


def test_assigning_into_a_complex_variable_leaves_its_parts_alone():
    x = vm.var([1.0, 2.0])
    z = vm.to_complex(x, x)
    w = np.conj(z)
    z[0] = 5j
    w[1] = 1.0
    assert [*x.val, *z.val, *w.val] == [1.0, 2.0, 5j, 2.0 + 2.0j, 1.0 - 1.0j, 1.0]


def test_empty_arrays():
    f = of_pair(lambda z: (np.exp(z), z + 1j, z * 2.0, np.sum(z), z @ z, np.concatenate([z, z])))
    recorded(expect_ad(f, np.zeros(0), np.zeros(0)))


def test_pairs_of_matvars():
    expect_ad_matvar(
        of_pairs(lambda z, w: (z @ w, np.sum(z * w.T), np.concatenate([z, w.T]))), A, B, C, D
    )


def test_functions_of_the_library():
    z = vm.var(V + 1j * W)
    plain = V + 1j * W
    square = np.outer(plain, plain)
    for found, expected in [
        (vm.mean(z), plain.mean()), (vm.prod(z), plain.prod()),
        (vm.cumulative_sum(z), plain.cumsum()), (vm.reverse(z), plain[::-1]),
        (vm.multiply(z, z), plain @ plain), (vm.multiply(2.0, z), 2.0 * plain),
        (vm.to_vector(np.outer(z, z)), square.ravel()), (vm.diag_matrix(z), np.diag(plain)),
        (vm.add_diag(np.outer(z, z), z), square + np.diag(plain)),
        (containers.rep_vector(z[0], 2), plain[[0, 0]]), (vm.append_row(z, z), [*plain] * 2),
        (vm.diag_pre_multiply(z, S), plain[:, None] * S),
        (vm.diag_post_multiply(S, z), S * plain), (vm.trace(np.outer(z, z)), plain @ plain),
        (vm.rows_dot_product(np.outer(z, z), S), np.sum(square * S, axis=1)),
    ]:  # fmt: skip
        close(vm.value(found), expected, 1e-14)


def test_data_alone_stays_data():
    for function, answer in COMPLEX.items():
        if isinstance(function, np.ufunc) and function.nin == 2 and function.signature is None:
            found = answer(np.array([1.0 + 1.0j]), np.array([2.0 - 1.0j]))
            np.testing.assert_allclose(
                found, function(1.0 + 1.0j, 2.0 - 1.0j), rtol=1e-14, err_msg=function.__name__
            )
    assert parts(vm.to_complex(1.0, 2.0)) == (1.0, 2.0)
    assert is_complex([1.0, [2j]])
    assert not is_complex([1.0, [2.0]])


def test_stans_inner_products():
    """As in Stan, `dot_product` takes the conjugate of the first vector, and those of rows and
    columns take none; a product with itself is a sum of squared moduli.
    """
    first, second = np.array([1.0 + 3.0j, 2.0 - 4.0j]), np.array([0.5 - 1.0j, 2.0j])
    z, w = vm.var(first), vm.var(second)
    for a, b in (
        (z, w),           (first, w),       (z, second),      (first.real, w),  (z, second.imag),
        (first, second),
    ):  # fmt: skip
        assert vm.value(vm.dot_product(a, b)) == np.vdot(vm.value(a), vm.value(b))
    assert vm.value(vm.columns_dot_product(z, w))[0] == np.sum(first * second)
    for a in (z, first):
        assert vm.value(vm.dot_self(a)) == 30.0
    equal(vm.value(vm.rows_dot_self(z)), [10.0, 20.0])
    equal(vm.value(vm.columns_dot_self(z)), [30.0])
    equal(vm.gradient(vm.dot_self, first), 2.0 * first)
    expect_ad(lambda x: np.real(vm.dot_product(x[0] + 1j * x[1], second)), np.ones((2, 2)))
    expect_ad(lambda x: vm.dot_self(x[0] + 1j * x[1]), np.ones((2, 2)))
    with pytest.raises(vm.ShapeError, match=r"^dot_product: b has shape \(1,\), but must be"):
        vm.dot_product(z, second[:1])


def test_the_standard_deviation_of_equal_numbers():
    """Its derivative is zero, as that of real numbers, and not nan."""
    z = np.array([[1.0 + 2.0j, 1.0 + 2.0j], [3.0j, 4.0]])

    def f(z):
        return np.sum(np.std(z, axis=1))

    slope = vm.gradient(f, z)
    equal(slope[0], 0.0)
    close(slope[1], vm.gradient(np.std, z[1]), 1e-15)
    assert vm.gradient(np.std, 1.0 + 2.0j) == 0.0
    close(np.std(z[1]), float(vm.value(np.std(vm.var(z[1])))), 1e-15)
