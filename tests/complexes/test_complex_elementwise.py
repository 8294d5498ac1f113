"""Elementwise functions of complex variables, tested with the harness. Holomorphic functions are
also compared with 50-digit arithmetic.
"""

import mpmath
import numpy as np
import pytest
from comparing import close, equal, refuses
from complexes.pairs import of_pair, of_pairs, parts, recorded

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

A, B = np.array([0.7, -1.2, 0.3]), np.array([0.4, 0.9, -2.1])
DIGITS = 60

# NumPy's function -> the function and its derivative in mpmath.
HOLOMORPHIC = {
    np.exp: (mpmath.exp, mpmath.exp),
    np.exp2: (lambda z: mpmath.mpf(2) ** z, lambda z: mpmath.log(2) * mpmath.mpf(2) ** z),
    np.expm1: (mpmath.expm1, mpmath.exp),
    np.log: (mpmath.log, lambda z: 1 / z),
    np.log2: (lambda z: mpmath.log(z) / mpmath.log(2), lambda z: 1 / z / mpmath.log(2)),
    np.log10: (lambda z: mpmath.log(z) / mpmath.log(10), lambda z: 1 / z / mpmath.log(10)),
    np.log1p: (lambda z: mpmath.log(1 + z), lambda z: 1 / (1 + z)),
    np.sqrt: (mpmath.sqrt, lambda z: 0.5 / mpmath.sqrt(z)),
    np.square: (lambda z: z * z, lambda z: 2 * z),
    np.reciprocal: (lambda z: 1 / z, lambda z: -1 / z**2),
    np.sin: (mpmath.sin, mpmath.cos),
    np.cos: (mpmath.cos, lambda z: -mpmath.sin(z)),
    np.tan: (mpmath.tan, lambda z: mpmath.sec(z) ** 2),
    np.sinh: (mpmath.sinh, mpmath.cosh),
    np.cosh: (mpmath.cosh, mpmath.sinh),
    np.tanh: (mpmath.tanh, lambda z: mpmath.sech(z) ** 2),
    np.arcsin: (mpmath.asin, lambda z: 1 / (mpmath.sqrt(1 - z) * mpmath.sqrt(1 + z))),
    np.arccos: (mpmath.acos, lambda z: -1 / (mpmath.sqrt(1 - z) * mpmath.sqrt(1 + z))),
    np.arctan: (mpmath.atan, lambda z: 1 / (1 + z * z)),
    np.arcsinh: (mpmath.asinh, lambda z: 1 / (mpmath.sqrt(1 + 1j * z) * mpmath.sqrt(1 - 1j * z))),
    np.arccosh: (mpmath.acosh, lambda z: 1 / (mpmath.sqrt(z - 1) * mpmath.sqrt(z + 1))),
    np.arctanh: (mpmath.atanh, lambda z: 1 / ((1 - z) * (1 + z))),
}
BULK = [0.7 + 0.4j, -1.2 + 0.9j, 0.3 - 2.1j, -2.5 - 0.1j, 3.1 + 1e-3j, 1e-3 - 2e-3j]
# Points near branch points, near zero, and so far out that squares and products of exponentials
# overflow.
TAILS = [
    1e-8 + 1e-9j, -1 - 1e-9j, 1 + 1e-9j, 1e-9 + 1j, -1e-9 - 1j, 1.5707963 + 1e-7j, 300 + 2j,
    -360 + 1j, 2 + 300j, 1 - 360j, 1e8 + 1e8j, -1e100 + 1j,
]  # fmt: skip


def error(found, exact):
    exact = complex(exact)
    return (
        abs(found - exact) / abs(exact)
        if exact and np.isfinite(exact) and abs(exact) > 1e-290
        else 0.0
    )


@pytest.mark.parametrize("points", [BULK, TAILS], ids=["bulk", "tails"])
@pytest.mark.parametrize("f", HOLOMORPHIC, ids=lambda f: f.__name__)
def test_holomorphic_functions_have_all_digits(f, points):
    value, derivative = HOLOMORPHIC[f]
    z = np.array(points)
    with np.errstate(all="ignore"):
        found = f(vm.var(z)).val
        real, imag = (
            vm.gradient(lambda z, part=part: np.sum(part(f(z))), z) for part in (np.real, np.imag)
        )
    # NumPy's exp2 multiplies by log(2), which loses digits in the tails.
    bar = 3e-14 if f is np.exp2 else 2e-15
    with mpmath.workdps(DIGITS):
        for i, point in enumerate(points):
            exact, slope = value(mpmath.mpc(point)), derivative(mpmath.mpc(point))
            assert error(found[i], exact) < bar
            # The gradient is d/dRe + i d/dIm. For the real part of f that is the conjugate of f',
            # and for the imaginary part it is i times the conjugate.
            assert error(real[i], mpmath.conj(slope)) < bar
            assert error(imag[i], 1j * mpmath.conj(slope)) < bar


@pytest.mark.parametrize("f", [
    *HOLOMORPHIC, np.absolute, np.angle, np.conjugate, np.negative, np.sign,
], ids=lambda f: f.__name__)  # fmt: skip
def test_all_routes_agree(f):
    recorded(expect_ad(of_pair(f), A, B))


@pytest.mark.parametrize(
    "f", [np.exp, np.log1p, np.tan, np.absolute, np.conjugate], ids=lambda f: f.__name__
)
def test_pairs_of_matvars(f):
    expect_ad_matvar(of_pair(f), A[:2], B[:2])


def test_scalars():
    expect_ad(of_pair(lambda z: np.exp(z) * z / (1.0 + z) ** 2 - 1j * z), 0.3, 0.4)


def test_arithmetic_of_complex_and_real_variables():
    recorded(expect_ad(of_pair(lambda z, x: (
        z + x, x + z, z - x, x - z, z * x, x * z, z / x, x / z, z**x, x**z,
    )), A[:2], B[:2], np.array([1.5, 2.3])))  # fmt: skip


def test_arithmetic_of_two_complex_variables():
    f = of_pairs(lambda z, w: (z + w, z - w, z * w, z / w, z**w))
    recorded(expect_ad(f, A[:2], B[:2], 0.5, 1.2))


def test_arithmetic_with_complex_data():
    c = np.array([1.0 + 2.0j, -0.5j])
    f = of_pair(
        lambda z: (z + 1j, 1j - z, z * c, c / z, z / c, 2.0 * z, z**2, z**-1.5, z**c, 2**z, 1j**z)
    )
    recorded(expect_ad(f, A[:2], B[:2]))

    def g(x):
        return parts((x + 1j, x * 1j, 1j / x, x**1j, c**x, np.exp(1j * x), x - c, c * x, +(1j * x)))

    recorded(expect_ad(g, np.array([0.5, 2.0])))


def test_powers_at_zero():
    exponents = np.array([0.0, 1.0, 2.0])
    f = of_pair(lambda z: np.power(z, exponents))
    found = vm.gradient(lambda z: np.real(np.sum(np.power(z, exponents))), np.zeros(3, complex))
    equal(found, [0.0, 1.0, 0.0])
    equal(vm.jvp(f, (np.zeros(3), np.zeros(3)), (np.ones(3), np.zeros(3)))[1][0], [0.0, 1.0, 0.0])
    equal(vm.gradient(lambda y: np.real(np.sum(np.power(0j, y))), np.array([1.0, 2.0])), [0.0, 0.0])


# Points on the branch cuts, approached from both sides.
CUTS = [complex(x, y) for x in (-2.0, 2.0, 0.5) for y in (0.0, -0.0)] + [
    complex(x, y) for x in (0.0, -0.0) for y in (-2.0, 2.0)
]


@pytest.mark.parametrize(
    "f",
    [f for f in HOLOMORPHIC if f.__name__.startswith(("arc", "log", "sqrt"))],
    ids=lambda f: f.__name__,
)
def test_branch_cuts_are_those_of_numpy(f):
    """On both sides of a cut the value is NumPy's. The derivative on the cut is the limit from the
    side on which the point lies.
    """
    for z in CUTS:
        expected = f(np.complex128(z))
        if f is not np.log1p:
            equal(f(vm.var(z)).val, expected)
        inside = complex(z.real + np.copysign(1e-12, z.real), z.imag + np.copysign(1e-12, z.imag))
        slope = vm.gradient(lambda z: np.real(f(z)), z)
        close(slope, vm.gradient(lambda z: np.real(f(z)), inside), 1e-10)


def test_signs_of_zeros_are_those_of_numpy():
    """The sign of a zero decides on which side of a branch cut a value lies."""
    for x in (-1.0, 1.0, 0.0, -0.0):
        for c in (1.0 + 0.0j, complex(1.0, -0.0), -1.0 + 0.0j, 1j, complex(-0.0, -1.0)):
            for f in (
                lambda x, c: x * c, lambda x, c: x + c, lambda x, c: x - c, lambda x, c: c - x,
            ):  # fmt: skip
                expected, found = f(np.complex128(x), np.complex128(c)), f(vm.var(x), c).val
                assert np.array_equal(
                    np.signbit([expected.real, expected.imag]), np.signbit([found.real, found.imag])
                ), (x, c)


def test_what_is_not_finite():
    with np.errstate(all="ignore"):
        z = vm.var(np.array([complex(np.inf, 1.0), complex(np.nan, 0.0), 1.0 + 1.0j]))
        equal(np.isfinite(z), [False, False, True])
        equal(np.isnan(z), [False, True, False])
        equal(np.isinf(z), [True, False, False])


def test_comparisons():
    z, w = vm.var([1.0 + 1.0j, 2.0]), np.array([1.0 + 1.0j, 3.0])
    equal(z == w, [True, False])
    equal(z != w, [False, True])
    equal(w == z, [True, False])
    equal(vm.var([1.0, 2.0]) == z, [False, True])
    assert vm.var(1.0 + 0j) == 1.0
    refuses(TypeError, r"^complex numbers have no order; compare np\.real", lambda: z < 1.0)
    f = vm.recorded(lambda x: np.sum(np.where(x * 1j == 2j, 3.0 * x, x)))
    f(np.array([1.0, 1.0]))
    assert f(np.array([1.0, 2.0]))[0] == 7.0


def test_moduli_and_signs_at_zero():
    assert vm.gradient(np.absolute, 0j) == 0.0
    assert np.sign(vm.var(0j)).val == 0.0
