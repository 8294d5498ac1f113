"""NumPy's functions that write into their first argument, with variables."""

import numpy
import pytest
from comparing import equal, refuses

import varmat as vm
import varmat.numpy as np
from varmat.testing import expect_ad

POINT = numpy.array([0.5, -2.0, 3.0, 7.0])
DATA = numpy.arange(12.0).reshape(3, 4)
MASK = DATA % 3 != 1
ORDER = numpy.array([[0, 2, 1, 3], [3, 3, 0, 1], [2, 0, 1, 1]])

WRITES = {
    "place": lambda z, x: np.place(z, MASK, x),
    "place more": lambda z, x: np.place(z, DATA > 9.0, x * 2.0),
    "place data": lambda z, x: np.place(z, MASK, [1.0, 2.0]),
    "place nothing": lambda z, x: np.place(z, DATA < 0.0, x),
    "putmask": lambda z, x: np.putmask(z, MASK, x[:3]),
    "putmask whole": lambda z, x: np.putmask(z, MASK, np.outer(x[:3], x)),
    "copyto": lambda z, x: np.copyto(z, x),
    "copyto where": lambda z, x: np.copyto(z, x, where=MASK),
    "copyto column": lambda z, x: np.copyto(z, x[:3, None], where=MASK[:1]),
    "copyto a number": lambda z, x: np.copyto(z, x[1], where=MASK),
    "fill_diagonal": lambda z, x: np.fill_diagonal(z, x[2]),
    "fill_diagonal values": lambda z, x: np.fill_diagonal(z, x[:2]),
    "fill_diagonal wrap": lambda z, x: np.fill_diagonal(z.T, x, wrap=True),
    "put": lambda z, x: np.put(z, [3, 5, -1, 3], x),
    "put few": lambda z, x: np.put(z, [3, 5, 7], x[:2]),
    "put clip": lambda z, x: np.put(z, [30, -5], x, mode="clip"),
    "put wrap": lambda z, x: np.put(z, [30, -5], x[0], mode="wrap"),
    "put_along_axis": lambda z, x: np.put_along_axis(z, ORDER, x, 1),
    "put_along_axis 0": lambda z, x: np.put_along_axis(z, ORDER[:, :1] % 3, x[3], 0),
    "put_along_axis flat": lambda z, x: np.put_along_axis(z, ORDER[0], x, None),
    "part": lambda z, x: np.place(z[:, ::2], MASK[:, ::2], x),
}
STARTS = {
    "waiting": lambda x: np.array(DATA),            "fortran": lambda x: np.array(DATA, order="F"),
    "variable": lambda x: DATA + x * 0.0,           "was waiting": lambda x: np.full((3, 4), x[1]),
}  # fmt: skip


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", WRITES)
def test_they_write_what_numpy_writes(name, start):
    """Elements keep their derivative where nothing is written, and lose it elsewhere."""

    def f(x):
        z = STARTS[start](x)
        before = z * z
        WRITES[name](z, x)
        return before, z * z

    if (name, start) != ("put_along_axis flat", "fortran"):  # NumPy refuses it
        expect_ad(f, POINT)


def test_writes_into_a_vector():
    def f(x):
        z, y = np.sin(x), np.array(DATA[0])
        np.put_along_axis(z, numpy.array([1, 0]), x[:2] ** 2, 0)
        try:
            y.put([1, 2], x)
        except AttributeError:  # variables have no method put
            np.put(y, [1, 2], x)
        return z, y * y

    expect_ad(f, POINT)


def test_what_numpy_refuses_is_refused():
    with vm.nested() as tape:
        x, z = vm.var(POINT), vm.var(DATA)
        for error, call in (
            (vm.ShapeError, lambda: np.place(z, MASK[0], x)),
            (vm.ShapeError, lambda: np.putmask(z, MASK[0], x)),
            (vm.DomainError, lambda: np.place(z, MASK, [])),
            (IndexError, lambda: np.put(z, [12], x)),
            (vm.ShapeError, lambda: np.put_along_axis(z, ORDER[0], x, 0)),
            (ValueError, lambda: np.fill_diagonal(x, 1.0)),
            (ValueError, lambda: np.copyto(z, x[:3])),
        ):
            refuses(error, None, call)
        assert not tape
        equal(vm.value(z), DATA)


def test_an_array_without_axes():
    def f(x):
        z, y = np.zeros(()), np.ones(())
        np.place(z, True, x)
        np.copyto(y, x[1], where=False)
        np.putmask(y, numpy.array(True), x[2])
        return z * y + z[()]

    assert f(POINT) == vm.value_and_grad(f)(POINT)[0] == 2.0
    equal(vm.gradient(f, POINT), [4.0, 0.0, 0.5, 0.0])
