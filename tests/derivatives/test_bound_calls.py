"""Recorded functions bound to arrays, and called from C."""

import ctypes
import gc

import numpy as np
import pytest
from comparing import close, refuses

import varmat as vm

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

POINTS = np.random.default_rng(2).normal(size=(7, 4))
OF_C = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p)


def f(x):
    return vm.normal_lpdf(x, 0.5, 2.0) + np.sum(np.exp(x))


def guarded(x):
    return vm.normal_lpdf(0.3, x[0], x[1])


def test_a_bound_call_reads_and_writes_its_arrays():
    g = vm.recorded(f)
    x, out = np.zeros(4), np.full(4, np.nan)
    call = g.bind(x, out)
    for point in POINTS:
        x[:] = point
        value, gradient = vm.value_and_grad(f)(point)
        assert call() == pytest.approx(value, rel=1e-14)
        close(out, gradient, 1e-14)


def test_a_bound_call_outlives_the_recording():
    x, out = POINTS[0].copy(), np.empty(4)
    call = vm.recorded(f).bind(x, out)
    gc.collect()
    assert call() == pytest.approx(f(POINTS[0]), rel=1e-14)


def test_where_the_program_ends_the_value_is_nan():
    g = vm.recorded(guarded)
    x, out = np.array([0.1, 1.0]), np.empty(2)
    call, of_c = g.bind(x, out), OF_C(g.address(2))
    assert np.isfinite(call())
    x[1] = -1.0
    assert np.isnan(call())
    assert np.isnan(of_c(x.ctypes.data, out.ctypes.data))
    refuses(vm.DomainError, None, g, x)


def test_a_function_of_c():
    g = vm.recorded(f)
    g(POINTS[0])
    of_c, out = OF_C(g.address(4)), np.empty(4)
    assert g.address(4) == g.address(4)
    for point in POINTS:
        value, gradient = vm.value_and_grad(f)(point)
        assert of_c(point.ctypes.data, out.ctypes.data) == pytest.approx(value, rel=1e-14)
        close(out, gradient, 1e-14)


@pytest.mark.parametrize(
    ("x", "out", "error", "text"),
    [
        (np.zeros(4), np.zeros(3), vm.ShapeError, r"out has shape \(3,\), but must have .*, as x!"),
        (np.zeros(4, int), np.zeros(4), TypeError, "x must be a vector of float64 in one piece!"),
        (np.zeros(8)[::2], np.zeros(4), TypeError, "x must be a vector of float64 in one piece!"),
        (np.zeros(4), np.broadcast_to(0.0, 4), TypeError, "out must be .*, which can be written!"),
        ([0.0], np.zeros(1), TypeError, "x must be a vector"),
    ],
)  # fmt: skip
def test_refused_arrays(x, out, error, text):
    refuses(error, f"^recorded.bind: {text}", vm.recorded(f).bind, x, out)


@pytest.mark.parametrize("g", [
    vm.recorded(f, runner="numpy"), vm.recorded(vm.grad(f)), vm.recorded(vm.hessian(f)),
], ids=["in NumPy", "no value", "a Hessian"])  # fmt: skip
def test_refused_functions(g):
    text = "must run natively for a single vector of shape"
    refuses(TypeError, f"^recorded.bind: recorded.*{text}", g.bind, np.ones(4), np.ones(4))
    refuses(TypeError, f"^recorded.address: recorded.*{text}", g.address, 4)


def test_an_address_needs_a_recording():
    refuses(TypeError, r"^recorded\.address: recorded", vm.recorded(f).address, 4)
