"""`varmat.numpy.polynomial`: every function, with variables for coefficients and points.

The oracle is NumPy's own function at numbers of 50 digits, which takes arrays of objects too."""

import pickle
import subprocess
import sys
import types

import mpmath
import numpy
import pytest
from comparing import close, close_slopes, refuses

import varmat as vm
import varmat.numpy as np

BASES = {
    "polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm",
    "hermite_e": "herme", "laguerre": "lag",
}  # fmt: skip
C, D, X = numpy.array([1.2, -0.7, 0.4, 0.9]), numpy.array([0.5, 2.0]), numpy.array([0.3, 0.7, -0.2])
Y, Z = numpy.array([0.6, -0.1, 0.8]), numpy.array([0.2, 0.5, -0.9])
C2, C3 = numpy.arange(1.0, 7.0).reshape(2, 3), numpy.arange(1.0, 13.0).reshape(2, 3, 2)
ZERO, ENDS = numpy.zeros(1), numpy.array([1.5, -0.5, 0.0])
# Integers and lists of integers are orders and degrees; all else becomes variables.
CASES = {
    "val": [(X, C), (0.3, C), (X, C2.T), (X, ENDS), (X, ZERO)],
    "add": [(C, D), (D, C), (ENDS, C[:3]), (ENDS, ENDS), (ZERO, ZERO)],
    "sub": [(C, D), (D, C), (ENDS, ENDS), (ZERO, D)],
    "mul": [(C, D), (ENDS, ENDS), (ZERO, D), (D, ZERO), (ZERO, ENDS)],
    "div": [(C, D), (D, C), (C, D[:1]), (ENDS, D)],
    "pow": [(C, 3), (C, 0), (ENDS, 2), (ZERO, 3)],
    "mulx": [(C,), (ENDS,), (ZERO,)],
    "der": [(C,), (C, 2), (C2,), (ENDS,), (ZERO,)],
    "int": [(C,), (C, 2, [0.3, 0.1], 0.2, 1.5), (C2,), (ENDS,), (ZERO,), (ZERO, 2), (C, 0)],
    "fromroots": [(C,), (D,), (ENDS,), (ZERO,)],
    "line": [(0.5, 0.7), (0.5, 0.0), (0.0, 0.0)],
    "vander": [(X, 3), (0.3, 2), (X, 0)],
    "vander2d": [(X, Y, [1, 2])], "vander3d": [(X, Y, Z, [1, 2, 1])], "val2d": [(X, Y, C2)],
    "val3d": [(X, Y, Z, C3)], "grid2d": [(X, Y, C2)], "grid3d": [(X, Y, Z, C3)],
    "companion": [(C,), (D,)], "valfromroots": [(X, C), (0.3, C)],
    "2poly": [(C,), (ENDS,), (ZERO,)], "to": [(C,), (ENDS,), (ZERO,)],
}  # fmt: skip
# Compared in tests of their own, or of plain numbers only.
OTHERS = {"fit", "roots", "weight", "trim", "zero", "one", "x", "domain", "gauss", "pts1", "pts2"}
OTHERS |= {"interpolate"}


@pytest.fixture(autouse=True)
def clean_tape():
    vm.recover_memory()
    yield
    vm.recover_memory()


def ending(base, name):
    if name.startswith("poly2"):
        return "to"
    return name.removeprefix(BASES[base])


def modules(base):
    return getattr(np.polynomial, base), getattr(numpy.polynomial, base)


NAMES = [
    (base, name)
    for base in BASES
    for name in modules(base)[1].__all__
    if ending(base, name) in CASES
]


def is_order(x):
    return isinstance(x, int) or (isinstance(x, list) and isinstance(x[0], int))


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def filled(args, numbers):
    """The arguments with other numbers."""
    numbers, new = iter(numbers), []
    for x in args:
        if is_order(x):
            new.append(x)
        elif isinstance(x, float):
            new.append(next(numbers))
        else:
            flat = [next(numbers) for _ in range(numpy.size(x))]
            new.append(flat if isinstance(x, list) else np.reshape(np.array(flat), numpy.shape(x)))
    return new


def weighted(result):
    """One number, in which a coefficient that is left out counts as 0."""
    total = 0
    for i, part in enumerate(parts(result)):
        if numpy.ndim(part) == 0:
            total = total + (1.1 + i) * part
        else:
            weights = numpy.cos(numpy.arange(numpy.size(part)) + i) + 1.5
            total = total + np.sum(np.reshape(part, -1) * weights)
    return total


def moved(point, direction, step):
    return [mpmath.mpf(p) + step * d for p, d in zip(point, direction, strict=True)]


@pytest.mark.parametrize(("base", "name"), NAMES)
def test_values_and_derivatives(base, name):
    mine, theirs = (getattr(module, name) for module in modules(base))
    rng = numpy.random.default_rng(7)
    for args in CASES[ending(base, name)]:
        point = numpy.concatenate([numpy.ravel(x) for x in args if not is_order(x)])
        direction = rng.normal(size=point.size)

        def f(x, args=args):
            return weighted(mine(*filled(args, x)))

        with mpmath.workdps(60):
            step = mpmath.mpf(10) ** -20
            both = [filled(args, moved(point, direction, s)) for s in (step, -step)]
            ends = [weighted(theirs(*each)) for each in both]
            exact, slope = float(ends[0] + ends[1]) / 2, float((ends[0] - ends[1]) / (2 * step))
        found, gradient = vm.value_and_grad(f)(point)
        scale = numpy.sum(abs(gradient * direction)) + abs(exact) + 1e-25
        assert abs(found - exact) <= 1e-12 * scale
        assert abs(gradient @ direction - slope) <= 1e-12 * scale, args
        assert abs(vm.jvp(f, (point,), (direction,))[1] - slope) <= 1e-12 * scale
        recorded = vm.recorded(f, runner="numpy")(point)
        close_slopes(recorded, (found, gradient), 1e-12, 1e-13 * scale)
        plain = zip(parts(mine(*args)), parts(theirs(*args)), strict=True)
        assert all(type(a) is type(b) and numpy.array_equal(a, b) for a, b in plain)


@pytest.mark.parametrize("base", BASES)
def test_no_function_is_left_out(base):
    left = {ending(base, name) for name in modules(base)[1].__all__} - {*CASES} - OTHERS
    functions = {name for name in left if not hasattr(np.polynomial, name)}
    assert len(left - functions) == 1  # the class
    if functions and tuple(map(int, numpy.__version__.split(".")[:2])) > (2, 4):
        pytest.skip(f"functions of a later NumPy, made of the same code: {functions}")
    assert not functions


@pytest.mark.parametrize("base", BASES)
def test_roots(base):
    """The derivative of a root r is -B_k(r) / p'(r), where B_k is the basis."""
    short, mine, theirs = BASES[base], *modules(base)
    find = getattr(mine, f"{short}roots")
    c = getattr(theirs, f"{short}fromroots")([0.4, 1.3, -0.8]) * 1.7
    for order, root in enumerate([-0.8, 0.4, 1.3]):
        value, gradient = vm.value_and_grad(lambda c, i=order: np.real(find(c)[i]))(c)
        close(value, root, 1e-11)
        slope = getattr(theirs, f"{short}val")(root, getattr(theirs, f"{short}der")(c))
        basis = getattr(theirs, f"{short}vander")([root], 3)[0]
        numpy.testing.assert_allclose(gradient, -basis / slope, rtol=1e-9, atol=1e-11)
    c[-1] = 0.0
    with pytest.raises(ValueError, match=rf"{short}roots: c\[-1\] is a variable with the value 0"):
        vm.gradient(lambda c: np.real(find(c)[0]), c)
    # Of a line, whose root is real.
    exact = -getattr(theirs, f"{short}vander")(find(c[:2]), 1)[0]
    exact /= getattr(theirs, f"{short}der")(c[:2])[0]
    numpy.testing.assert_allclose(vm.gradient(lambda c: find(c)[0], c[:2]), exact, rtol=1e-13)


@pytest.mark.parametrize("base", BASES)
def test_fit(base):
    """Against the solution of the normal equations at 50 digits."""
    fit, vander = getattr(np.polynomial, base), f"{BASES[base]}vander"
    fit, vander = getattr(fit, f"{BASES[base]}fit"), getattr(modules(base)[1], vander)
    x, w = numpy.linspace(-0.8, 1.1, 6), numpy.linspace(1.0, 2.0, 6)
    y = numpy.exp(x)

    def exact(numbers):
        x, y, w = numpy.reshape(numpy.array(numbers), (3, 6))
        a = mpmath.matrix((vander(x, 2) * w[:, None]).tolist())
        return numpy.array([*mpmath.lu_solve(a.T * a, a.T * mpmath.matrix((y * w).tolist()))])

    point, rng = numpy.concatenate([x, y, w]), numpy.random.default_rng(3)
    direction = rng.normal(size=18)
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -18
        up, down = (exact(moved(point, direction, s)) for s in (h, -h))
        value, slope = (up + down) / 2, (up - down) / (2 * h)

    def fitted(p, degrees=2):
        return fit(p[:6], p[6:12], degrees, w=p[12:])

    found, tangent = vm.jvp(fitted, (point,), (direction,))
    close(found, value.astype(float), 1e-12)
    close(tangent, slope.astype(float), 1e-11)
    gradient = vm.gradient(lambda p: fitted(p, [0, 2]) @ [1.0, 0.0, 2.0], point)
    again = vm.jvp(lambda p: fitted(p, [0, 2]), (point,), (direction,))[1]
    close(gradient @ direction, again @ [1.0, 0.0, 2.0], 1e-11)


# --- the classes ---

KINDS = ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"]
# Methods and operators, as functions of the class, the coefficients and a point.
USES = {
    "call": lambda k, c, x: k(c)(x),
    "domain": lambda k, c, x: k(c, domain=[c[0], 3.0], window=[0.0, c[1]])(x),
    "add": lambda k, c, x: (k(c) + k(c[:2]))(x),
    "numbers": lambda k, c, x: (c[0] * (2.0 - k(c)) / c[2] + c[1])(x),
    "product": lambda k, c, x: (k(c) * k(c[:2]) ** 2)(x),
    "remainder": lambda k, c, x: (k(c) % k(c[:2]))(x) + (k(c) // k(c[:2]))(x),
    "divmod": lambda k, c, x: sum(p(x) for p in divmod(k(c), k(c[1:3]))),
    "composition": lambda k, c, x: k(c)(k(c[:2]))(x),
    "deriv": lambda k, c, x: k(c, domain=[0.0, c[0]]).deriv(2)(x),
    "integ": lambda k, c, x: k(c).integ(2, [c[0], 1.0], lbnd=c[1])(x),
    "convert": lambda k, c, x: k(c).convert(kind=np.polynomial.Legendre, domain=[0, 2])(x),
    "cast": lambda k, c, x: np.polynomial.Chebyshev.cast(k(c))(x),
    "fromroots": lambda k, c, x: k.fromroots(c, domain=[0, 2])(x),
    "fit": lambda k, c, x: k.fit(c, c**2, 1)(x),
    "linspace": lambda k, c, x: k(c, domain=[0, c[1]]).linspace(3)[1] + x,
    "identity": lambda k, c, x: (k.identity() * k.basis(2) * c[0])(x),
    "cut": lambda k, c, x: k(c).cutdeg(1)(x) + k(c).truncate(3)(x) + k(c).trim(0.5)(x),
    "copy": lambda k, c, x: k(c).copy()(x) + sum(k(c)) + k(c).degree() * len(k(c)),
    "unary": lambda k, c, x: (-k(c))(x) * (+k(c))(x),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
def test_classes(kind, use):
    mine, theirs = getattr(np.polynomial, kind), getattr(numpy.polynomial, kind)
    point, rng = numpy.array([1.2, -0.7, 0.4, 0.9, 0.3]), numpy.random.default_rng(11)
    direction = rng.normal(size=5)

    def f(p, k=mine):
        return np.sum(USES[use](k, p[:4], p[4]))

    value, gradient = vm.value_and_grad(f)(point)
    close(value, f(point, theirs), 1e-12)
    h = 1e-3 * direction  # a difference of the order 6
    differences = [f(point + i * h, theirs) - f(point - i * h, theirs) for i in (1, 2, 3)]
    slope = numpy.array([0.75, -0.15, 1 / 60]) @ differences / 1e-3
    scale = numpy.sum(abs(gradient * direction))
    assert gradient @ direction == pytest.approx(slope, rel=1e-8, abs=1e-9 * scale)
    close(vm.jvp(f, (point,), (direction,))[1], gradient @ direction, 1e-11)


def test_a_coefficient_that_happens_to_be_zero_stays():
    p = np.polynomial.Polynomial

    def f(c):
        return (p(c) + p([1.0]))(2.0) + (p(c) * p([0.0, 1.0]))(2.0)

    numpy.testing.assert_array_equal(vm.gradient(f, numpy.zeros(3)), [3.0, 6.0, 12.0])
    assert len(p([1.0, 2.0]) + p([0.0, -2.0])) == 1


def test_polynomials_of_both_kinds_meet():
    ours, theirs = np.polynomial.Polynomial, numpy.polynomial.Polynomial([1.0, 2.0])
    for operate, expected in [
        (lambda p: p + theirs, 2.0), (lambda p: theirs + p, 2.0), (lambda p: theirs - p, -2.0),
        (lambda p: theirs * p, 10.0),
        (lambda p: divmod(theirs * ours([0.0, 1.0]), p)[0], -11.0 / 27.0),
    ]:  # fmt: skip
        slopes = vm.gradient(lambda c, g=operate: g(ours(c))(2.0), numpy.array([1.0, 3.0]))
        h = numpy.array([0.0, 1e-6])
        ends = [operate(ours([1.0, 3.0] + s * h))(2.0) for s in (1, -1)]
        close(slopes[1], expected, 1e-6)
        close(slopes[1], (ends[0] - ends[1]) / 2e-6, 1e-6)
    assert (theirs + ours([2.0, 1.0])) == theirs + numpy.polynomial.Polynomial([2.0, 1.0])
    assert isinstance(ours([1.0]), numpy.polynomial.Polynomial)
    other = numpy.polynomial.Polynomial([1.0], domain=[0, 5])
    for wrong in (other, numpy.polynomial.Chebyshev([1.0, 2.0])):
        for add in (lambda a, b: a + b, lambda a, b: b + a):
            refuses(TypeError, None, add, ours([1.0, 2.0]), wrong)


def test_printing_and_pickling():
    with vm.nested():
        p = np.polynomial.Polynomial(vm.var(numpy.array([1.0, -2.0])))
        theirs = numpy.polynomial.Polynomial([1.0, -2.0])
        assert (repr(p), str(p), f"{p:ascii}") == (repr(theirs), str(theirs), f"{theirs:ascii}")
        np.polynomial.set_default_printstyle("ascii")
        try:
            assert str(p) == str(theirs) == f"{theirs:ascii}"
        finally:
            np.polynomial.set_default_printstyle("unicode")
    again = pickle.loads(pickle.dumps(np.polynomial.Chebyshev([1.0, 2.0])))
    assert type(again) is np.polynomial.Chebyshev
    assert again == np.polynomial.Chebyshev([1.0, 2.0])


CODE = """
import numpy as np
from numpy.polynomial import Chebyshev, polynomial as P
from numpy.polynomial.legendre import legval

def f(c):
    p = np.polynomial.Polynomial(c)
    return p.deriv()(0.3) + Chebyshev(c)(0.2) + P.polyval(0.5, c) + legval(0.1, c)
"""


def test_patched():
    library = types.ModuleType("library")
    exec(CODE, vars(library))
    c, h = numpy.array([1.2, -0.7, 0.4]), numpy.eye(3)
    expected = [library.f(row) for row in h]  # a linear function
    with np.patched(library):
        numpy.testing.assert_allclose(vm.gradient(library.f, c), expected, rtol=1e-14)
    assert library.Chebyshev is numpy.polynomial.Chebyshev


def test_it_is_imported_when_it_is_used():
    code = """import sys, varmat.numpy
assert "varmat.numpy.polynomial" not in sys.modules
from varmat.numpy.polynomial.chebyshev import chebval
assert sys.modules["numpy.polynomial.chebyshev"].np is sys.modules["numpy"]
assert chebval(0.5, [1.0, 2.0]) == 2.0"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_complex_coefficients():
    """A polynomial with a complex coefficient, at a complex point."""

    def f(c):
        p = np.polynomial.Legendre([c[0], c[1] * 1j, 2.0])
        return np.real((p * p).deriv()(0.3 + c[2] * 1j))

    point = numpy.array([0.7, -0.4, 0.6])
    differences = [(f(point + h) - f(point - h)) / 2e-5 for h in 1e-5 * numpy.eye(3)]
    numpy.testing.assert_allclose(vm.gradient(f, point), differences, rtol=1e-8)


def test_forward_over_reverse_and_matvars():
    def f(c):
        return np.polynomial.Hermite(c)(c[0]) + np.sum((np.polynomial.Laguerre(c) ** 2).coef)

    point = numpy.array([0.7, -0.4, 0.6])
    h = 1e-5 * numpy.eye(3)
    differences = [(vm.gradient(f, point + d) - vm.gradient(f, point - d)) / 2e-5 for d in h]
    numpy.testing.assert_allclose(vm.hessian(f, point), differences, rtol=1e-7, atol=1e-7)
    with vm.nested():
        c = vm.matvar(point)
        f(c).grad()
        found = [x.adj for x in c]
    numpy.testing.assert_allclose(found, vm.gradient(f, point), rtol=1e-13)


def test_other_functions():
    cheb = np.polynomial.chebyshev
    found = vm.jacobian(lambda a: cheb.chebinterpolate(lambda x: a * x**2, 2), 0.7)
    numpy.testing.assert_allclose(found, [0.5, 0.0, 0.5], atol=1e-15)
    for base, slope in [
        ("chebyshev", 0.3 / (1 - 0.09) ** 1.5),  ("legendre", 0.0),
        ("hermite", -0.6 * numpy.exp(-0.09)),    ("hermite_e", -0.3 * numpy.exp(-0.045)),
        ("laguerre", -numpy.exp(-0.3)),
    ]:  # fmt: skip
        weight = getattr(getattr(np.polynomial, base), f"{BASES[base]}weight")
        close(vm.gradient(weight, 0.3), slope, 1e-13)
        for name in ("zero", "one", "x", "domain"):
            mine, theirs = (getattr(each, BASES[base] + name) for each in modules(base))
            numpy.testing.assert_array_equal(mine, theirs)
