"""`ComplexVar`: making one, reading it, and using it with the rest of the library."""

import copy

import numpy as np
import pytest
from comparing import close, equal, refuses, refuses_as

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
        message = r"^ComplexVar: the parts must be real variables of the same shape; varmat\."
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


def test_functions_written_as_arithmetic_call_no_python():
    f = vm.recorded(
        lambda x: np.sum(np.abs(np.exp(1j * x) * np.sin(x + 2j) + x**2 * (1 - 1j)) ** 2)
    )
    f(np.array([0.3, 0.4]))
    assert "complex_" not in str(f.program)


PARTS = "use np.real, np.imag or np.abs of it"
NUMBERS = "has dtype complex128, but must be real numbers (float64, or what converts to it)"
ABSENT = ("is not there for complex variables; write it with np.real and np.imag, or np.abs and "
          "np.angle, of them")  # fmt: skip


@pytest.mark.parametrize(("call", "message"), [
    *((call, f"the result is complex, but must be real numbers; {PARTS.replace('use', 'take')}")
      for call in (lambda z, x: vm.gradient(lambda z: z * 2.0, 1j),
                   lambda z, x: vm.jacobian(lambda x: x * 1j, np.ones(2)))),
    (lambda z, x: vm.jacobian(np.abs, Z), f"x {NUMBERS}"),
    (lambda z, x: vm.recorded(np.abs)(1j), f"argument 1 {NUMBERS}"),
    (lambda z, x: vm.expit(1j), f"operand 1 {NUMBERS}"),
    (lambda z, x: x.__setitem__(0, 1j), f"the assigned value {NUMBERS}"),
    *((call, f"an operand is a complex variable, but must be real; {PARTS}")
      for call in (lambda z, x: vm.normal_lpdf(z, 0.0, 1.0), lambda z, x: vm.expit(z))),
    (lambda z, x: np.sort(z), f"numpy.sort {ABSENT}"),
    (lambda z, x: np.maximum(z, x), f"maximum {ABSENT}"),
    (lambda z, x: np.maximum.reduce(z), f"maximum.reduce {ABSENT}"),
    (lambda z, x: z > 1.0,
     "complex numbers have no order; compare np.real, np.imag or np.abs of them"),
    (lambda z, x: z.astype(float),
     "complex variables are complex128 only, not float64; use np.real, np.imag or np.abs"),
    (lambda z, x: vm.var(z),
     "the argument is a variable already; varmat.value(x) gives its values"),
    (lambda z, x: vm.Dual(z, z),
     ("val is complex, but must be real; combine two duals into a complex variable with "
      "varmat.to_complex(re, im)")),
    (lambda z, x: x.__setitem__(0, z[0]),
     ("a ComplexVar cannot be assigned into a VarMat; make both of the same kind, with "
      "np.zeros_like(variable) for an array to write into")),
    (lambda z, x: np.sum(z, out=np.zeros(())),
     "out is given, but must be left out for complex variables!"),
    (lambda z, x: np.sum(z, dtype=float),
     "dtype is given, but must be complex128 for complex variables!"),
    (lambda z, x: np.exp(z, where=[True, False]),
     "where is given, but must be left out; use np.where on the result!"),
    (lambda z, x: np.average(x, weights=z), "weights are complex, but must be real!"),
    (lambda z, x: np.einsum(z, [0]), "the subscripts must be a string for complex variables!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses_as(TypeError, message, call, vm.var(Z), vm.var([1.0, 2.0]))


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
