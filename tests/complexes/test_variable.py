"""`ComplexVar`: making one, reading it, and using it with the rest of the library."""

import copy
import re

import numpy as np
import pytest
from comparing import close, equal, refuses
from recordings import EVERY_RUNNER, agree

import varmat as vm

Z = np.array([1.0 + 2.0j, 3.0 - 1.0j])


def test_attributes_of_a_complex_variable():
    z = vm.var(Z)
    assert isinstance(z, vm.ComplexVar)
    found = (z.shape, z.ndim, z.size, z.dtype, z.itemsize, z.nbytes, len(z))
    assert found == ((2,), 1, 2, np.complex128, 16, 32, 2)
    found = (np.shape(z), np.ndim(z), np.size(z), np.iscomplexobj(z), np.isrealobj(z))
    assert found == ((2,), 1, 2, True, False)
    assert repr(z) == "ComplexVar([1.+2.j, 3.-1.j])"
    assert repr(z[0]) == str(z[0]) == "ComplexVar((1+2j))"
    assert f"{z[0]:.1f}" == "1.0+2.0j"
    assert type(z[0].val) is type(vm.value(z[0])) is complex
    assert (3.0 - 1.0j) in z
    assert 3.0 not in z
    equal(z.val, Z)
    assert not z.val.flags.writeable
    equal(vm.value({"z": z})["z"], Z)
    assert [each.val for each in z] == [each.val for each in z.tolist()] == [*Z]
    assert type(z.real) is type(z.imag) is vm.VarMat
    assert type(vm.var(1j).real) is vm.Var
    equal(copy.deepcopy(z).val, Z)


def test_how_it_is_made():
    for x in (
        1j,                           np.complex128(1j),            np.complex64(1j),
        [1.0, 2j],                    [[1j, 2.0]],                  np.array([1j], np.complex64),
        np.zeros(0, complex),
    ):  # fmt: skip
        z = vm.var(x)
        assert isinstance(z, vm.ComplexVar)
        equal(z.val, np.asarray(x, np.complex128))
    for x in (vm.var(2.0), vm.var([2.0, 3.0])):
        assert isinstance(x * 1j, vm.ComplexVar)
        assert isinstance(1j + x, vm.ComplexVar)
        assert isinstance(x.astype(complex), vm.ComplexVar)
    for re_, im in ((1.0, 2.0), (vm.var(1.0), 2.0), (vm.var(1.0), vm.var([1.0]))):
        message = (
            r"^ComplexVar: the parts must be real variables of the same shape; varmat\.to_complex"
        )
        refuses(TypeError, message, vm.ComplexVar, re_, im)


def test_the_adjoint_adds_i_times_the_derivative_in_the_imaginary_part():
    """The oracle is central differences in the real and the imaginary part."""
    f, h = (lambda z: np.real(np.exp(z) * np.conj(z) ** 2) + np.abs(z)), 1e-6
    z = 0.7 - 0.4j
    by_parts = [(f(z + step) - f(z - step)) / (2.0 * h) for step in (h, 1j * h)]
    v = vm.var(z)
    f(v).grad()
    close(v.adj, complex(*by_parts), 1e-9)
    assert (v.real.adj, v.imag.adj) == (v.adj.real, v.adj.imag)
    close(vm.gradient(f, z), v.adj, 1e-15)


def test_steepest_descent():
    z, target = np.zeros(2, complex), Z
    for _ in range(60):
        z = z - 0.2 * vm.gradient(lambda z: np.sum(vm.norm(z - target)), z)
    close(z, target, 1e-12)


def test_gradients_with_respect_to_complex_arguments():
    value, gradient = vm.value_and_grad(lambda z: np.sum(vm.norm(z)))(Z)
    assert value == 15.0
    equal(gradient, 2.0 * Z)
    assert gradient.dtype == np.complex128
    assert gradient.flags.c_contiguous
    found = vm.gradient(lambda p: np.real(p["a"] * p["b"][0]), {"a": 2.0, "b": [1j, 3.0]})
    assert found == {"a": 0.0, "b": [2.0 + 0.0j, 0.0]}
    assert [type(x) for x in (found["a"], *found["b"])] == [float, complex, float]
    first, second = vm.grad(lambda z, w: np.imag(np.sum(z * w)), argnums=(0, 1))(Z, 1j * Z)
    equal(first, 1j * np.conj(1j * Z))
    equal(second, 1j * np.conj(Z))
    one, other = vm.grad(lambda z: np.sum(vm.norm(z)), argnums=(0, 0))(Z)
    equal(one, other)
    assert one is not other
    assert vm.gradient(lambda z: 1.0, 1j) == 0.0


def test_second_derivatives_by_parts():
    hessian = vm.hessian(lambda x: np.real(np.exp(vm.to_complex(x[0], x[1]))), np.array([0.3, 0.4]))
    w = np.exp(0.3 + 0.4j)
    close(hessian, [[w.real, -w.imag], [-w.imag, -w.real]], 1e-14)


def damped(x):
    """Return a loss of a damped oscillation, written with complex numbers."""
    rate = -np.exp(x[0]) + 1j * np.exp(x[1])
    signal = np.real(np.exp(rate * np.linspace(0.0, 3.0, 7)) * (x[2] + 1j * x[3]))
    return np.sum((signal - np.linspace(1.0, 0.0, 7)) ** 2) + np.sum(
        np.abs(np.fft.rfft(signal))
    ) / vm.norm(np.sinh(rate))


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_recordings(runner):
    agree(
        damped,
        *[(np.array([0.1, 0.5, 1.0, -0.3]) + step,) for step in (0.0, 0.2, -0.4)],
        rtol=1e-12,
        runners=[runner],
    )
    x = np.array([0.1, 0.5, 1.0, -0.3])
    close(vm.recorded(vm.hessian(damped), runner=runner)(x), vm.hessian(damped, x), 1e-11)


def test_functions_written_as_arithmetic_call_no_python():
    f = vm.recorded(
        lambda x: np.sum(np.abs(np.exp(1j * x) * np.sin(x + 2j) + x**2 * (1 - 1j)) ** 2)
    )
    f(np.array([0.3, 0.4]))
    assert "complex_" not in str(f.program)


@pytest.mark.parametrize(("call", "message"), [
    (lambda z, x: vm.gradient(lambda z: z * 2.0, 1j),
     ("gradient: the result is complex, but must be real numbers; take np.real, np.imag or np.abs "
     "of it")),
    (lambda z, x: vm.jacobian(lambda x: x * 1j, np.ones(2)),
     ("jacobian: the result is complex, but must be real numbers; take np.real, np.imag or np.abs "
     "of it")),
    (lambda z, x: vm.jacobian(np.abs, Z),
     ("jacobian: x has dtype complex128, but must be real numbers (float64, or what converts to "
     "it)")),
    (lambda z, x: vm.recorded(np.abs)(1j),
     ("recorded: argument 1 has dtype complex128, but must be real numbers (float64, or what "
     "converts to it)")),
    (lambda z, x: vm.normal_lpdf(z, 0.0, 1.0),
     ("normal_lpdf: an operand is a complex variable, but must be real; use np.real, np.imag or "
     "np.abs of it")),
    (lambda z, x: vm.expit(z),
     ("expit: an operand is a complex variable, but must be real; use np.real, np.imag or np.abs "
      "of "
     "it")),
    (lambda z, x: vm.expit(1j),
     ("expit: operand 1 has dtype complex128, but must be real numbers (float64, or what converts "
     "to it)")),
    (lambda z, x: np.sort(z),
     ("numpy.sort is not there for complex variables; write it with np.real and np.imag, or np.abs "
     "and np.angle, of them")),
    (lambda z, x: np.maximum(z, x),
     ("maximum is not there for complex variables; write it with np.real and np.imag, or np.abs "
      "and "
     "np.angle, of them")),
    (lambda z, x: np.maximum.reduce(z),
     ("maximum.reduce is not there for complex variables; write it with np.real and np.imag, or "
     "np.abs and np.angle, of them")),
    (lambda z, x: z > 1.0,
     "complex numbers have no order; compare np.real, np.imag or np.abs of them"),
    (lambda z, x: z.astype(float),
     "astype: complex variables are complex128 only, not float64; use np.real, np.imag or np.abs"),
    (lambda z, x: vm.var(z),
     "var: the argument is a variable already; varmat.value(x) gives its values"),
    (lambda z, x: vm.Dual(z, z),
     ("Dual: val is complex, but must be real; combine two duals into a complex variable with "
     "varmat.to_complex(re, im)")),
    (lambda z, x: x.__setitem__(0, 1j),
     ("the assigned value has dtype complex128, but must be real numbers (float64, or what "
      "converts "
     "to it)")),
    (lambda z, x: x.__setitem__(0, z[0]),
     ("a ComplexVar cannot be assigned into a VarMat; make both of the same kind, with "
      "np.zeros_like(variable) for an array to write into")),
    (lambda z, x: np.sum(z, out=np.zeros(())),
     "sum: out is given, but must be left out for complex variables!"),
    (lambda z, x: np.sum(z, dtype=float),
     "sum: dtype is given, but must be complex128 for complex variables!"),
    (lambda z, x: np.exp(z, where=[True, False]),
     "exp: where is given, but must be left out; use np.where on the result!"),
    (lambda z, x: np.average(x, weights=z), "average: weights are complex, but must be real!"),
    (lambda z, x: np.einsum(z, [0]),
     "einsum: the subscripts must be a string for complex variables!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses(TypeError, f"^{re.escape(message)}$", call, vm.var(Z), vm.var([1.0, 2.0]))


@pytest.mark.parametrize("call", [complex, float, int, bool, hash, np.asarray])
def test_no_derivative_is_dropped_in_silence(call):
    if call is bool:
        assert bool(vm.var(1j))
        return
    refuses(TypeError, r"^a ComplexVar cannot ", call, vm.var(1j))


def test_in_place_into_plain_arrays_is_refused():
    x = np.zeros(2, complex)
    with pytest.raises(TypeError, match="a variable cannot be written into a plain array"):
        x += vm.var(Z)
    with pytest.raises(TypeError, match=r"^a ComplexVar cannot become a plain number"):
        x[0] = vm.var(1j)


def test_refusals_record_nothing():
    with vm.nested() as tape:
        z = vm.var(Z)
        for call in (
            lambda: z @ np.ones(3),   lambda: np.linalg.inv(z), lambda: z + np.ones(3),
            lambda: np.exp(z, z, z),
        ):  # fmt: skip
            refuses((ValueError, TypeError), None, call)
        assert not [entry[0].name for entry in tape]


def test_other_libraries_are_asked():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "theirs"

    assert vm.var(1j) + Other() == "theirs"
