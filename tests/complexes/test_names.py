"""Stan's names for functions of complex numbers, with the values and gradients of Stan Math."""

import numpy as np
import pytest
import stan
from comparing import SHAPE, close, equal, refuses_as
from complexes.pairs import of_pair, parts, recorded

import varmat as vm
from varmat.testing import expect_ad

A, B = np.array([0.7, -1.2, 0.3]), np.array([0.4, 0.9, -2.1])

# Stan's name -> the expression here, where the name differs.
NUMPY = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "add": np.add, "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh,
    "divide": np.divide, "exp": np.exp, "log": np.log, "log10": np.log10, "multiply": vm.multiply,
    "pow": np.power, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "subtract": np.subtract,
    "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip


def complexes(x):
    """Turn nested lists of [real part, imaginary part] into complex numbers."""
    x = np.asarray(x, float)
    return x[..., 0] + 1j * x[..., 1]


def arguments(entry):
    return [
        complexes(x) if kind.startswith("complex") else np.asarray(x, float)[()]
        for (x, _), kind in zip(entry["args"], entry["types"], strict=True)
    ]


def objective(f, entry):
    """Return the weighted sum of the real and imaginary parts of the results, as the entries define
    it.
    """

    def total(*args):
        results = f(*args)
        results = results if isinstance(results, tuple) else (results,)
        weights = entry["weights"] if len(results) > 1 else [entry["weights"]]
        terms = []
        for r, w in zip(results, weights, strict=True):
            if w is None:
                terms.append(r)
            elif np.iscomplexobj(r):
                w = np.asarray(w)
                terms.append(np.sum(np.real(r) * w[..., 0]) + np.sum(np.imag(r) * w[..., 1]))
            else:
                terms.append(np.sum(r * np.asarray(w)))
        return sum(terms)

    return total


# Eigenvectors and Schur factors are unique only up to phases, and Stan's phases differ from ours.
PHASES = (
    "eigenvectors", "eigendecompose", "complex_schur_decompose_u", "complex_schur_decompose_t",
)  # fmt: skip


@pytest.mark.parametrize(
    "entry", [e for e in stan.entries("complex") if e.values[0]["function"] not in PHASES]
)
def test_values_and_gradients_of_stan(entry):
    f = NUMPY.get(entry["function"]) or getattr(vm, entry["function"])
    args, places = arguments(entry), tuple(range(len(entry["args"])))
    value, found = vm.value_and_grad(objective(f, entry), places)(*args)
    expected = objective(
        lambda: (
            complexes(entry["output"]) if np.iscomplexobj(f(*args)) else np.asarray(entry["output"])
        ),
        entry,
    )()
    close(value, expected, 1e-13)
    for g, (_, exact), kind in zip(found, entry["args"], entry["types"], strict=True):
        exact = complexes(exact) if kind.startswith("complex") else np.asarray(exact, float)
        close(g, exact, 1e-11, 1e-13)


@pytest.mark.parametrize(
    "entry", [e for e in stan.entries("complex") if e.values[0]["function"] in PHASES]
)
def test_moduli_of_stan(entry):
    """The moduli do not depend on the phases."""
    found = getattr(vm, entry["function"])(*arguments(entry))
    first = complexes(entry["output"][0] if isinstance(found, tuple) else entry["output"])
    close(np.abs(found[0] if isinstance(found, tuple) else found), np.abs(first), 1e-12, 1e-15)


@pytest.mark.parametrize("entry", stan.entries("complex", throws=True))
def test_what_stan_refuses(entry):
    with pytest.raises(ValueError, match=f"^{entry['function']}: "):
        getattr(vm, entry["function"])(*arguments(entry))


def test_all_routes_agree():
    recorded(expect_ad(of_pair(lambda z: (
        vm.arg(z), vm.norm(z), vm.proj(z), vm.conj(z), vm.get_real(z), vm.get_imag(z),
        vm.polar(np.abs(z), np.imag(z)),
    )), A, B))  # fmt: skip
    recorded(expect_ad(lambda r, theta: parts(vm.polar(r, theta)), A, B[:, None]))
    recorded(expect_ad(lambda a, b: parts(vm.to_complex(a, b)), A, B[:, None]))


def test_real_arguments():
    for x in (A, vm.var(A)):
        equal(vm.value(vm.arg(x)), [0.0, np.pi, 0.0])
        equal(vm.value(vm.norm(x)), A**2)
        equal(vm.get_imag(x), [0.0] * 3)
        for f in (vm.proj, vm.conj):
            assert f(x).dtype == np.complex128
            equal(vm.value(f(x)), A)


def test_projections_of_infinities():
    z = np.array(
        [complex(-np.inf, -2.0), complex(1.0, np.inf), complex(np.nan, np.inf), 1.0 - 2.0j]
    )
    found = vm.proj(vm.var(z)).val
    equal(found.real, [np.inf, np.inf, np.inf, 1.0])
    equal(found.imag, [-0.0, 0.0, 0.0, -2.0])
    assert np.signbit(found.imag[0])
    expected = [0.0, 0.0, 0.0, 1.0]
    equal(vm.gradient(lambda z: np.real(vm.proj(z)[3]) + np.imag(vm.proj(z)[0]), z), expected)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.to_complex(1j, 2.0), TypeError,
     "re has dtype complex128, but must be real numbers (float64, or what converts to it)"),
    (lambda: vm.to_complex(2.0, vm.var(1j)), TypeError, "im is complex, but must be real numbers!"),
    (lambda: vm.to_complex([1.0, 2.0], vm.var([1.0, 2.0, 3.0])), SHAPE,
     "im has shape (3,), but must fit the shape of re, (2,)!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call)
