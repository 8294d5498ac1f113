"""`varmat.numpy`: NumPy with functions that make arrays of variables, and `patched`."""

import copy
import pickle
import sys
import threading
import types

import numpy
import pandas
import pytest
from comparing import close, refuses
from test_docs import run_doctest

import varmat as vm
import varmat.numpy as np
from varmat.numpy import making, reducing
from varmat.numpy.buffers import Buffer
from varmat.testing import expect_ad, expect_ad_matvar

POINT = numpy.array([1.3, 0.7])
DATA = numpy.array([[1.0, 2.0, -3.0], [0.5, -1.0, 4.0]])


@pytest.fixture(autouse=True)
def clean_tape():
    vm.recover_memory()
    yield
    vm.recover_memory()


# --- NumPy's own functions ---


def test_everything_else_is_numpys_own():
    assert {
        name
        for name in dir(numpy)
        if not name.startswith("_") and getattr(np, name) is not getattr(numpy, name)
    } == {*making.__all__, *reducing.__all__, "ma", "polynomial"}
    assert np.ma.MaskedArray is numpy.ma.MaskedArray
    assert np.sin is numpy.sin
    assert np.linalg is numpy.linalg
    assert np.random is numpy.random
    assert np.ndarray is numpy.ndarray
    assert {*dir(numpy)} | {"patched"} <= {*dir(np)}
    exec("from varmat.numpy import *", namespace := {})
    assert {*numpy.__all__, "patched"} <= {*namespace}
    assert namespace["array"] is np.array
    with pytest.raises(AttributeError, match="no_such_name"):
        np.no_such_name  # noqa: B018


def test_functions_are_pickled_by_name():
    for name in (*making.__all__, *reducing.__all__):
        if name not in ("r_", "c_"):
            assert pickle.loads(pickle.dumps(getattr(np, name))) is getattr(np, name)
    assert copy.copy(np.r_)[1.0, 2.0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("thing", [np, np.patched])
def test_examples_run(thing):
    run_doctest(thing.__doc__, thing.__name__)


@pytest.mark.parametrize("make", [
    lambda m: m.zeros((2, 3)), lambda m: m.ones(3, dtype=int), lambda m: m.full((2, 2), 0.5),
    lambda m: m.full(3, 1), lambda m: m.zeros(()), lambda m: m.eye(2, 3, k=1),
    lambda m: m.identity(2), lambda m: m.array([1, 2]),
    lambda m: m.array([[1.0, 2.0]], order="F", ndmin=3),
    lambda m: m.asarray(DATA),
    lambda m: m.asarray([1.0, 2.0], dtype=np.float32),
    lambda m: m.ascontiguousarray(DATA.T),
    lambda m: m.asfortranarray(DATA),
    lambda m: m.zeros_like(DATA, dtype=bool),
    lambda m: m.ones_like(DATA, shape=4),
    lambda m: m.full_like(DATA, 2), lambda m: m.empty((0, 2)), lambda m: m.empty_like(DATA[:0]),
    lambda m: m.r_[1.0, 2:4, [5.0]],
    lambda m: m.r_["0,2", [1, 2], [3, 4]],
    lambda m: m.c_[[1, 2], [3.0, 4.0]], lambda m: m.copy(DATA), lambda m: m.atleast_2d([1.0, 2.0]),
    lambda m: m.asanyarray(numpy.ma.array([1.0])),
    lambda m: m.require([1.0], float, "W"),
    lambda m: m.array(["a", "b"]), lambda m: m.array([1, None]),
    lambda m: m.array([[1.0], [2 + 1j]]),
])  # fmt: skip
def test_outside_a_differentiation_results_are_numpys(make):
    ours, theirs = make(np), make(numpy)
    assert type(ours) is type(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.strides == theirs.strides
    numpy.testing.assert_array_equal(ours, theirs)


def test_identity_and_copies_are_numpys():
    assert np.asarray(DATA) is DATA
    assert np.array(DATA, copy=None) is DATA
    assert np.asanyarray(DATA) is DATA
    with vm.nested():
        assert np.asarray(DATA) is DATA
        assert np.array(DATA, copy=None) is DATA
        assert np.require(DATA) is DATA
        assert not np.may_share_memory(np.array(DATA), DATA)


@pytest.mark.parametrize("dtype", [int, bool, object, "U3", numpy.int32])
def test_arrays_of_other_types_stay_plain(dtype):
    with vm.nested():
        x = vm.var(2.0)
        for made in (
            np.zeros(3, dtype),          np.ones((1, 2), dtype),      np.zeros_like([1.0], dtype),
            np.empty(2, dtype=dtype),
        ):  # fmt: skip
            assert type(made) is numpy.ndarray
            assert made.dtype == numpy.dtype(dtype)
        boxes = np.empty(2, object)
        boxes[0] = x
        assert boxes[0] is x
        counts = np.zeros(2, int)
        with pytest.raises(TypeError, match="a Var cannot become a plain number"):
            counts[0] = x


# --- arrays of variables ---


def lists(x):
    return np.array([[x[0], 1.0, 2], [3.0, x[1] * x[0], x[0]]])


def rows(x):
    return np.array([x, 2.0 * x, numpy.array([1.0, 2.0]), (x[1], 3)], dtype=float)


def ends(x):
    return np.r_[0.0, x, 1:3, x[1]] * 1.0


def columns(x):
    return np.c_[x, [3.0, 4.0], np.array([x, x])]


def filled(x):
    ones = np.full_like(DATA[:, :2], x, dtype=float)[:, :1]
    return np.full((2, 3), x[0]) * ones + np.full(2, x)[:1]


def handed_through(x):
    y = np.asarray(np.asanyarray(np.ascontiguousarray(np.asfortranarray(x, float), "d")))
    y = np.require(y, float, ["C", "W"]) + np.atleast_1d([x[0]], y[1])[0]
    return y + np.atleast_2d([x[0], x[1]])[0] + np.copy([x[0], 2.0])


def reductions_of_lists(x):
    z = [x[0] * x[1], 3.0, x[1] ** 2]
    total = np.sum(z) + np.mean([x, x * 2.0]) + np.prod((x[0], x[1]))
    total = total + np.std([x[0], x[1]], ddof=1)
    return total + np.sum(np.cumsum([x, x], axis=1))


def first_row(x):
    z = np.zeros((2, 2))
    z[0] = x
    z[1, 0] = z[0, 1] + 1.0
    return z * 3.0


def twice_indexed(x):
    z = np.zeros((2, 2))
    z[0][1] = x[0]
    row = z[1]
    row[0] = x[1] ** 2
    z.T[1][1] = x[0]
    z.reshape(4)[2] *= x[0]
    np.ravel(z)[0] = x[1]
    return z * z


def in_place(x):
    z = np.ones(2) * 0.5
    z += x
    z[:1] *= x[1]
    z **= 2
    np.multiply(z, x, out=z)
    np.exp(x, out=z[::-1])
    np.add(z, 1.0, out=z, where=[True, False])
    return z + 0.0


def data_first(x):
    z = np.empty((3, 2))
    z[:] = 1.5
    z[1] = [2.0, 3.0]
    product = z @ x  # uses the values of this moment
    z[1] = x
    z[2] = -1.0
    return np.concatenate([product, z.ravel()])


def derived(x):
    a = np.eye(2) * 2.0
    a[0, 1] = x[0]
    b = np.zeros_like(a)
    b[1] = a[0] * x[1]
    c = np.copy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    c[:, 0] = x
    d = np.zeros(2).copy()
    d[1:] = x[:1]
    return a @ b @ c + d


def by_places(x):
    z = np.zeros((2, 3))
    z[np.arange(2), [0, 2]] = x
    z[z == 0.0] = x[0]
    z[np.diag_indices(2)] += x
    return z[:, ::-1] * z[[1, 0]]


def iterated(x):
    z = np.zeros((2, 2))
    for i, row in enumerate(z):
        for j in range(len(row)):
            row[j] = x[i] * (j + 1)
    total = 0.0
    for row in z:
        a, b = row
        total = total + a * b
    return total


def methods(x):
    z = np.ones((2, 2))
    z[0] = x
    total = z.sum() + z.mean(axis=0) @ z.T.dot(x) + z.max() * z.flatten()[1]
    return total + z.flat[0] + z.cumsum()[-1] + z.trace()


PROGRAMS = [
    lists, rows, ends, columns, filled, handed_through, reductions_of_lists, first_row,
    twice_indexed, in_place, data_first, derived, by_places, iterated, methods,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_all_routes_agree(f):
    expect_ad(f, POINT)


def test_matvars_make_matvars():
    expect_ad_matvar(first_row, POINT)
    with vm.nested():
        x = vm.matvar(POINT)
        assert type(np.asarray(x)) is vm.MatVar
        assert type(np.array([x[0], x[1]])) is vm.VarMat
        assert type(np.array(x, dtype=float)) is vm.VarMat
        assert type(np.array([x, x])) is vm.MatVar


def refilled(x):
    """Data that met a variable change afterwards."""
    z, total = np.zeros(2), 0.0
    for i in range(3):
        z[:] = i
        total = total + np.sum(z * x) + np.dot(x, z) + vm.dot_product(z, x)
        total = total + np.sum(z.clip(x - 10.0, 10.0 * x)) + z.dot(x)
        z += 1.0
    return total


def test_data_that_met_a_variable_may_change():
    numpy.testing.assert_array_equal(vm.gradient(refilled, POINT), [12.0, 12.0])


def test_complex_variables():
    def f(x):
        z = np.zeros(3, complex)
        z[0] = x[0] + 2j
        z[1:] = np.array([x[1] * 1j, 3.0])
        w = np.array([z[0], z[1] * z[0], 1j])
        v = np.zeros(2, complex)
        v[1] = x[0]
        return np.sum(np.abs(z * w) ** 2) + np.real(np.array(x, complex) @ v)

    slopes = [(f(POINT + h) - f(POINT - h)) / 2e-6 for h in 1e-6 * numpy.eye(2)]
    close(vm.gradient(f, POINT), slopes, 1e-8)


def test_a_direction_may_come_after_a_variable():
    """In forward over reverse mode, a value that is constant in the direction may be assigned
    first. Parts that were taken before it follow.
    """

    def f(x):
        constant = vm.value(x)
        z = np.zeros((2, 2))
        row = z[0]
        z[1] = constant[0]
        row[0] = x[0] ** 2
        row[1] = x[1] * row[0]
        return np.sum(z**2)

    def plain(x):
        return x[0] ** 4 + x[1] ** 2 * x[0] ** 4

    numpy.testing.assert_allclose(vm.hessian(f, POINT), vm.hessian(plain, POINT), rtol=1e-14)
    with vm.nested():
        z, u = np.zeros(2), vm.var(2.0)
        part = z[1:]
        z[0] = u
        z[1] = vm.Dual(u * 3.0, u)
        assert type(z._settled) is vm.Dual
        assert type(part._settled) is vm.Dual
        part[0] = vm.Dual(u, 1.0)
        assert vm.value(z).tolist() == [2.0, 2.0]
        (z[0] * z[1]).tan.grad()
        assert u.adj == 1.0


def test_dtypes_of_variables():
    with vm.nested():
        x = vm.var(POINT)
        assert np.asarray(x, dtype=numpy.float64) is x
        assert np.array(x) is not x
        assert np.array(x, copy=None) is x
        assert np.array(x, ndmin=3).shape == (1, 1, 2)
        boxes = np.array([x[0], 2.0], dtype=object)
        assert type(boxes) is numpy.ndarray
        assert boxes.dtype == object
        assert type(boxes[0]) is vm.Var
        assert np.array([x[0], 2.0], dtype=complex).dtype == complex
        assert type(np.asarray(boxes, dtype=float)) is vm.VarMat
        for call, message in [
            (lambda: np.array([x[0], 2.0], dtype=np.float32),
             r"^array: dtype is float32, but must be float64!$"),
            (lambda: np.array([x[0], 2.0], copy=False),
             r"^array: copy is False, but an array of the parts of a list is a new one$"),
            (lambda: np.array([x, 2.0]),
             r"^stack: arrays have shapes \(2,\) and \(\), but must go together!$"),
            (lambda: np.r_["r", x], r"^np.r_: 'r' is given with variables, but must be left out"),
        ]:  # fmt: skip
            refuses((TypeError, ValueError), message, call)
        assert np.c_[x].shape == (2, 1)
        assert np.r_[x[0]].shape == (1,)
        assert np.ones_like(x).tolist() == [1.0, 1.0]
        assert np.full_like([x[0], 1.0], 2.5).tolist() == [2.5, 2.5]
        # The dtype is that of the array, as in NumPy.
        assert np.full_like(np.array([3, 4]), x[0]).tolist() == [int(vm.value(x[0]))] * 2
        assert np.full_like(np.array([True]), x[0] * 0.0).tolist() == [False]


# --- what stays plain ---

EXPRESSIONS = [
    lambda z: z + 1, lambda z: 2.0 / (z + 7.0), lambda z: z @ z.T, lambda z: -z, lambda z: abs(z),
    lambda z: z > 0, lambda z: z == z, lambda z: numpy.exp(z), lambda z: numpy.sum(z, axis=0),
    lambda z: z.sum(), lambda z: z.mean(1), lambda z: z.std(), lambda z: z.T,
    lambda z: z.reshape(3, 2), lambda z: z.ravel(), lambda z: z[1], lambda z: z[:, 1:],
    lambda z: z[z > 0], lambda z: z[[1, 0]], lambda z: z[..., None], lambda z: z.astype(int),
    lambda z: z.copy(), lambda z: numpy.concatenate([z, z]), lambda z: z.argmax(),
    lambda z: numpy.linalg.svd(z)[1], lambda z: numpy.linalg.norm(z),
    lambda z: numpy.split(z, 3, axis=1)[1],
    lambda z: z.tolist(), lambda z: numpy.where(z > 0, z, 0), lambda z: float(z[0, 0]),
    lambda z: int(z[0, 1]), lambda z: list(z[0]), lambda z: 2.0 in z, lambda z: divmod(z, 2.0)[1],
    lambda z: numpy.modf(z)[0], lambda z: numpy.add.reduce(z),
    lambda z: numpy.multiply.outer(z, z),
    lambda z: numpy.add.accumulate(z, 1),
    lambda z: z.dot([1.0, 2.0, 3.0]), lambda z: numpy.asarray(z), lambda z: pandas.DataFrame(z),
    lambda z: pandas.Series([1.0, 2.0]) * z[:, 0],
    lambda z: z.shape,
    lambda z: (z.ndim, z.size, z.dtype, len(z), z.nbytes),
    lambda z: numpy.interp(0.5, z[0][:2], z[1][:2]),
    lambda z: numpy.einsum("ij,ij->i", z, z),
    lambda z: z.clip(0, 1), lambda z: str(z), lambda z: repr(z), lambda z: f"{z[0, 0]:.2f}",
    lambda z: z.swapaxes(0, 1), lambda z: numpy.atleast_3d(z), lambda z: z.squeeze(),
    lambda z: numpy.moveaxis(z, 0, 1),
    lambda z: numpy.broadcast_to(z, (2, 2, 3)),
    lambda z: copy.copy(z), lambda z: copy.deepcopy(z),
    lambda z: pickle.loads(pickle.dumps(z)),
    lambda z: numpy.array_equal(z, z), lambda z: numpy.allclose(z, z), lambda z: z.item(1),
    lambda z: numpy.float64(2.0) * z, lambda z: DATA * z, lambda z: DATA @ z.T,
    lambda z: numpy.dot(DATA, z.T), lambda z: z.flatten(), lambda z: numpy.stack([z, DATA]),
    lambda z: [*z.flat], lambda z: numpy.sort(z), lambda z: z.diagonal(), lambda z: z.real,
    lambda z: z.any(), lambda z: bool(z[0, 0]), lambda z: z[0, 0] ** 2, lambda z: round(z[0, 0]),
    lambda z: numpy.shape(z), lambda z: numpy.flip(z),
]  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_without_variables_an_array_is_an_array(expression):
    expected = expression(DATA.copy())
    with vm.nested() as tape:
        z = np.zeros((2, 3))
        z[:] = DATA
        result = expression(z)
        assert not tape
        assert not tape.leaves
    several = isinstance(expected, (tuple, list))
    for ours, theirs in zip(result, expected, strict=True) if several else [(result, expected)]:
        assert str(ours) == str(theirs)
        assert vm.value(ours) is ours or numpy.array_equal(vm.value(ours), theirs)
        numpy.testing.assert_array_equal(ours, theirs)


def test_writing_into_parts_writes_into_the_whole():
    with vm.nested():
        z = np.zeros((3, 2))
        z[1][0] = 1.0
        z.T[1, 2] = 2.0
        z.reshape(-1)[1] = 3.0
        z.flat[0] = 4.0
        np.flipud(z)[0, 0] = 5.0
        z[1:].fill(6.0)
        numpy.add.at(z, ([0, 0], [0, 0]), 1.0)
        z[0].sort()
        z[0, :] += [1.0, 1.0]
        assert z.tolist() == [[4.0, 7.0], [6.0, 6.0], [6.0, 6.0]]
        with pytest.raises(ValueError, match="read-only"):
            np.broadcast_to(z, (2, 3, 2))[0, 0, 0] = vm.var(1.0)
        with pytest.raises(ValueError, match="read-only"):
            np.lib.stride_tricks.sliding_window_view(z, (2, 2))[0, 0, 0, 0] = vm.var(1.0)


def test_functions_that_write_into_their_argument():
    def f(x):
        z = np.zeros((2, 2))
        z[0, 0] = z[1, 1] = x[0]
        y = np.ones(3)
        np.put(y, [0, 2], 5.0)
        np.copyto(y, [1.0, 2.0, 3.0], where=[True, False, True])
        np.add.at(y, [1, 1], 1.0)
        return np.sum(z) * y[0] + np.sum(y)

    assert f(POINT) == vm.value_and_grad(f)(POINT)[0] == 2.6 + 1.0 + 3.0 + 3.0
    numpy.testing.assert_array_equal(vm.gradient(f, POINT), [2.0, 0.0])
    with vm.nested():
        x, z, plain = vm.var(POINT), np.zeros(2), numpy.zeros(2)
        for write in (
            lambda: np.copyto(plain, x),
            lambda: np.put(plain, [0], x[0]),
            lambda: np.place(plain, [True, False], x),
            lambda: np.putmask(plain, [True, False], x),
            lambda: np.put_along_axis(plain, numpy.array([0, 1]), x, 0),
        ):
            refuses(TypeError, "cannot be written into a plain array", write)
        np.clip(x, 0.0, 1.0, out=z)
        counts = np.zeros(2)
        np.add.at(counts, [1, 1], x)
        np.sum(z + 5.0 * counts).grad()
        assert x.adj.tolist() == [5.0, 6.0]


@pytest.mark.parametrize("dtype", [None, float])
def test_an_array_of_an_array_is_a_copy(dtype):
    def f(x):
        a = np.zeros((2, 2))
        a[0, 0] = x
        b = np.array(a[0], dtype)
        b[0] = 3.0 * x
        return a[0, 0] + 10.0 * b[0]

    assert vm.value_and_grad(f)(2.0) == (62.0, 31.0)


def test_variables_and_arrays_that_wait_meet():
    """They meet on both sides of an operator, in place, and in functions of the library."""
    import scipy.sparse

    for f in (
        lambda x, z: x * z, lambda x, z: z * x, lambda x, z: z - x, lambda x, z: x @ z,
        lambda x, z: z @ x, lambda x, z: x[0] ** z, lambda x, z: np.maximum(x, z),
        lambda x, z: np.stack([z, x]),
        lambda x, z: np.where([True, False], x, z),
        lambda x, z: vm.dot_product(x, z),
        lambda x, z: vm.normal_lpdf(z, x, 1.0),
        lambda x, z: np.hypot(z, x),
        lambda x, z: scipy.sparse.csr_array([[1.0, 2.0], [0.0, 3.0]]) @ z * x,
        lambda x, z: np.abs((x + 1j) * z), lambda x, z: np.abs(z * (x + 1j)),
        lambda x, z: np.outer(z, x), lambda x, z: np.concatenate([x, z]), lambda x, z: np.dot(z, x),
    ):  # fmt: skip
        for waiting in (True, False):

            def g(x, f=f, waiting=waiting):
                z = np.ones(2)
                z[:] = [3.0, 4.0] if waiting else 2.0 * x
                y = x * 1.0
                y += z
                y[:1] *= z[1:]
                return np.sum(f(y, z))

            steps = 1e-6 * numpy.eye(2)
            rough = [(g(POINT + h) - g(POINT - h)) / 2e-6 for h in steps]
            numpy.testing.assert_allclose(vm.gradient(g, POINT), rough, rtol=1e-7)
            close(vm.jvp(g, (POINT,), (POINT,))[1], rough @ POINT, 1e-7)


def test_a_part_of_a_variable_takes_what_waits_in_place():
    with vm.nested():
        m = vm.var(numpy.ones((2, 2)))
        row = (m * 1.0)[0]
        whole = row.root
        row += np.ones(2)
        assert vm.value(whole).tolist() == [[2.0, 2.0], [1.0, 1.0]]
        message = "a ComplexVar cannot be written into an array of real numbers"
        refuses(TypeError, message, np.zeros(2).__setitem__, 0, m[0, 0] * 1j)
        z = np.zeros(2, complex)
        z.imag[0] = m[0, 0]
        assert vm.value(z).tolist() == [1j * vm.value(m)[0, 0], 0.0]
        refuses(TypeError, "view: dtype is float64, but must be left out", lambda: z.view(float))
        for bytes_of in (np.zeros(2).view(int), np.zeros(2).view(complex)):
            with pytest.raises(TypeError, match="whose bytes are read as other numbers"):
                bytes_of[...] = m[0, 0]
        other = np.zeros(2)
        seen, other[0] = other.view(int), m[0, 0]
        refuses(TypeError, "whose bytes are read as other numbers", lambda: seen + 1)


def test_results_are_plain_arrays():
    def f(x):
        return np.array([1.0, 2.0])

    def g(x):
        z = np.zeros(2)
        z[0] = x[0]
        return z

    numpy.testing.assert_array_equal(vm.jacobian(f, POINT), numpy.zeros((2, 2)))
    numpy.testing.assert_array_equal(vm.jacobian(g, POINT), [[1.0, 0.0], [0.0, 0.0]])
    for function in (f, g):
        value, pullback = vm.vjp(function, POINT)
        assert type(value) is numpy.ndarray
        pullback(numpy.ones(2))
        value, tangent = vm.jvp(function, (POINT,), (POINT,))
        assert type(value) is type(tangent) is numpy.ndarray
    value, tangent = vm.jvp(lambda x: {"a": g(x), "b": [f(x)]}, (POINT,), (POINT,))
    assert type(value["a"]) is type(value["b"][0]) is numpy.ndarray


def test_kept_arrays_are_plain_or_stale():
    kept = []

    def f(x):
        data, variable = np.zeros(2), np.zeros(2)
        data[0] = 3.0
        variable[0] = x[0]
        kept.extend([data, variable, variable[:1]])
        return np.sum(variable)

    vm.gradient(f, POINT)
    data, variable, part = kept
    numpy.testing.assert_array_equal(data + 1.0, [4.0, 1.0])
    assert type(numpy.asarray(data)) is numpy.ndarray
    assert type(pickle.loads(pickle.dumps(data))) is numpy.ndarray
    for each in (variable, part):
        refuses(vm.TapeError, "this variable is stale", lambda each=each: each * 2.0)
        with pytest.raises(vm.TapeError, match="this variable is stale"):
            each[0] = 1.0
        refuses(TypeError, "cannot become a plain array", numpy.asarray, each)


def test_an_array_with_variables_is_refused_where_their_derivative_would_be_lost():
    with vm.nested():
        x = vm.var(POINT)
        z = np.zeros(2)
        z[0] = x[0]
        message = "cannot become a plain array, its derivative would be lost"
        refuses(TypeError, message, numpy.asarray, z)
        refuses(TypeError, "cannot become a plain number", float, z[:1])
        refuses(TypeError, "belongs to its tape and cannot be pickled", lambda: pickle.dumps(z))
        with pytest.raises(TypeError, match="a variable cannot be written into a plain array"):
            numpy.add(z, 1.0, out=numpy.zeros(2))
        with pytest.raises(TypeError, match="cannot become a plain array"):
            numpy.zeros(2)[:] = z
        refuses(TypeError, "unhashable", hash, np.zeros(2))
        with pytest.raises(vm.ShapeError, match="shape"):
            z[:] = vm.var(numpy.ones(3))
        with pytest.raises(AttributeError):
            z.no_such_name  # noqa: B018
        with pytest.raises(TypeError, match="the assigned value has dtype object"):
            z[:] = vm.matvar(POINT)
        y = vm.var(numpy.zeros(4))
        y[1:3] = z
        y[0] = np.ones(1)[0]
        np.sum(y).grad()
        assert x.adj.tolist() == [1.0, 0.0]
        assert vm.value(z).tolist() == [1.3, 0.0]
        assert repr(z).startswith("VarMat(")
        assert vm.normal_lpdf(z, np.zeros(2), 1.0).shape == ()


def test_scopes_inside_one_another():
    def outer(x):
        z = np.zeros(2)
        inner = vm.gradient(lambda y: np.sum(np.array([y[0], y[1]]) ** 2) + np.zeros(2)[0], POINT)
        z[:] = inner
        z[0] *= x[0]
        return np.sum(z)

    numpy.testing.assert_array_equal(vm.gradient(outer, POINT), [2.6, 0.0])

    def written_inside(x):
        z = np.zeros(2)

        def inner(y):
            z[0] = y[0]
            return np.sum(z)

        vm.gradient(inner, POINT)
        return np.sum(z * x)

    refuses(vm.TapeError, "this variable is stale", vm.gradient, written_inside, POINT)


def test_threads_differentiate_on_their_own():
    found = {}

    def other():
        found["plain"] = np.zeros(2)
        found["gradient"] = vm.gradient(first_sum, POINT)

    def first_sum(x):
        z = np.zeros(2)
        z[0] = x[0]
        return np.sum(z)

    with vm.nested():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert type(np.zeros(2)) is Buffer
    assert type(found["plain"]) is numpy.ndarray
    numpy.testing.assert_array_equal(found["gradient"], [1.0, 0.0])


def test_a_variable_in_the_thread_is_enough():
    assert type(np.zeros(2)) is numpy.ndarray
    x = vm.var(2.0)
    z = np.zeros(2)
    z[1] = x
    np.sum(z * z).grad()
    assert x.adj == 4.0
    vm.recover_memory()
    assert type(np.zeros(2)) is numpy.ndarray
    duals = np.array([vm.Dual(1.0, 2.0), 3.0])
    assert duals.tan.tolist() == [2.0, 0.0]


# --- other people's modules ---

LIBRARY = """
import numpy as np, numpy
from numpy import array as as_array, zeros, exp, r_

def f(x):
    z = zeros(2)
    z[0] = x[0]
    both = numpy.sum(as_array([x[1], exp(x[0])])) + np.sum(r_[x, 1.0])
    return np.sum(np.asarray([x[0], x[1]]) * z) + both
"""


def library(name, text=LIBRARY):
    module = types.ModuleType(name)
    exec(text, vars(module))
    return module


def test_patched_differentiates_other_peoples_code():
    module = library("library")
    before = dict(vars(module))
    refuses(TypeError, "cannot become a plain number", vm.gradient, module.f, POINT)
    with vm.numpy.patched(module):
        assert module.np is module.numpy is np
        assert module.zeros is np.zeros
        assert module.exp is numpy.exp
        gradient = vm.gradient(module.f, POINT)
    assert vars(module) == before
    numpy.testing.assert_allclose(gradient, [2 * 1.3 + numpy.exp(1.3) + 1.0, 2.0], rtol=1e-15)
    assert numpy.array is not np.array


def test_patched_takes_packages_and_puts_everything_back(monkeypatch):
    package = library("package")
    inside = library("package.inside")
    beside = library("package_beside")
    package.__path__ = []
    for module in (package, inside, beside):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def stopped():
        with vm.numpy.patched(package):
            assert package.np is inside.np is np
            assert beside.np is numpy
            with vm.numpy.patched(inside, beside):
                assert beside.np is np
            assert inside.np is np
            assert beside.np is numpy
            raise RuntimeError("stop")

    refuses(RuntimeError, r"^stop$", stopped)
    assert package.np is inside.np is numpy
    message = r"^patched: a str is given, but must be a module!$"
    refuses(TypeError, message, vm.numpy.patched("package").__enter__)
    for module in (numpy, numpy.linalg, vm):
        block = vm.numpy.patched(package, module)
        refuses(ValueError, "but must be a module that uses NumPy", block.__enter__)
    assert package.np is numpy


def test_patched_in_two_threads():
    module, entered, leave = library("library"), threading.Event(), threading.Event()

    def hold():
        with vm.numpy.patched(module):
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    with vm.numpy.patched(module):
        thread.start()
        assert entered.wait(10)
    assert module.np is np
    leave.set()
    thread.join()
    assert module.np is numpy
    assert module.zeros is numpy.zeros
