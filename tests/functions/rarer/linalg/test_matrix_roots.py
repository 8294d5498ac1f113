"""Roots, logarithms, signs, trigonometric functions and funm of matrices: against 50 digits, and
along all routes.
"""

import warnings

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from comparing import DOMAIN, SHAPE, refuses_as
from functions.matrices import GENERAL, SPD, VECTOR, worst_error

import varmat as vm
from varmat.testing import Tolerances, expect_ad, expect_ad_matvar

INDEFINITE = GENERAL - 2.0 * np.eye(3)
SMALL = np.array([[1.3, -0.4], [0.7, 0.9]])
JORDAN = np.array([[2.0, 1.0], [0.0, 2.0]])


def sine_and_cosine(a):
    return mp.sinm(a), mp.cosm(a)


def hyperbolic(a):
    plus, minus = mp.expm(a, "taylor"), mp.expm(-a, "taylor")
    return (plus - minus) / 2, (plus + minus) / 2


def ratio(a, of):
    sine, cosine = of(a)
    return mp.inverse(cosine) * sine


def by_funm(a):
    return vm.funm(a, np.exp, np.exp)


EXACT = [
    *((vm.sqrtm, mp.sqrtm, a) for a in (GENERAL, JORDAN)),
    (vm.sqrtm, lambda a: mp.sqrtm(a).apply(mp.re), 1e-9 * GENERAL),
    *((vm.logm, mp.logm, a) for a in (GENERAL, np.eye(3) + 1e-6 * GENERAL, JORDAN)),
    (vm.logm, lambda a: mp.logm(a).apply(mp.re), 1e6 * GENERAL),
    (vm.signm, lambda a: a * mp.inverse(mp.sqrtm(a * a)), INDEFINITE),
    (lambda a: vm.fractional_matrix_power(a, 0.3),
     lambda a: mp.expm(mp.logm(a) * mp.mpf(0.3), "taylor"), GENERAL),
    (lambda a: (vm.sinm(a), vm.cosm(a)), sine_and_cosine, SMALL),
    (vm.tanm, lambda a: ratio(a, sine_and_cosine), 0.5 * SMALL),
    (lambda a: (vm.sinhm(a), vm.coshm(a)), hyperbolic, SMALL),
    (vm.sinhm, lambda a: hyperbolic(a)[0], 1e-8 * SMALL),
    (vm.tanhm, lambda a: ratio(a, hyperbolic), SMALL),
    (lambda a: vm.funm(a, np.sin, np.cos), mp.sinm, SMALL),
    *((by_funm, lambda a: mp.expm(a, "taylor"), a) for a in (
        SPD / 4, np.eye(3), np.diag([2.0, 2.0, 1.0]), np.diag([2.0, 2.0 + 1e-9, 1.0]))),
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "a"), EXACT)
def test_against_50_digits(f, exact, a):
    bound = 1e-12 if exact is mp.logm or a is GENERAL or np.max(a) > 1e3 else 1e-13
    assert worst_error(f, exact, [a]) < bound


@pytest.mark.parametrize(
    ("name", "a"),
    [("sqrtm", GENERAL), ("signm", GENERAL), ("logm", SMALL), ("cosm", SMALL), ("tanhm", SMALL)],
)
def test_by_all_routes(name, a):
    f = getattr(vm, name)
    for each in (a, np.array([[0.7]]), np.empty((0, 0))):
        expect_ad(f, each)
    expect_ad_matvar(f, SMALL)


def test_the_others_by_all_routes():
    # Each of these elements depends on the whole matrix.
    expect_ad(
        lambda a: (vm.sinm(a)[0, 1], vm.tanm(a)[1, 0], vm.sinhm(a)[0, 0], vm.coshm(a)[1, 1]), SMALL
    )
    expect_ad(vm.fractional_matrix_power, SMALL, 0.7)
    expect_ad(lambda a: vm.funm(a, np.sin, np.cos), SMALL)
    expect_ad(by_funm, GENERAL)
    expect_ad(by_funm, np.empty((0, 0)))
    # Next to a matrix with equal eigenvalues there are matrices without independent eigenvectors,
    # so finite differences fail.
    alone = Tolerances(hessian=np.inf, finite_difference=np.inf)
    expect_ad(by_funm, np.diag([1.0, 1.0, 2.0]), tolerances=alone)


def test_the_root_of_a_singular_matrix_has_no_derivative():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # from SciPy 1.16 on
        assert np.isnan(vm.gradient(lambda a: np.trace(vm.sqrtm(a)), np.diag([1.0, 0.0]))).all()


COMPLEX = "a has an eigenvalue on the negative real axis, so that the result would be complex!"


@pytest.mark.parametrize(("f", "a", "text"), [
    (vm.sqrtm, VECTOR, "a has shape (3,), but must be a square matrix!"),
    (vm.sqrtm, -GENERAL, COMPLEX), (vm.logm, -np.eye(2), COMPLEX),
    (vm.logm, np.diag([1.0, 0.0]), "a is singular, but must be invertible!"),
    (vm.logm, np.diag([1.0, np.nan]),
     "a has elements that are not finite, but must have finite ones!"),
    *((vm.signm, a, "a has an eigenvalue on the imaginary axis, or too near to it!")
      for a in (np.array([[0.0, 1.0], [-1.0, 0.0]]), np.zeros((2, 2)))),
    (vm.cosm, np.ones((2, 3)), "a has shape (2, 3), but must be a square matrix!"),
    (lambda a: vm.funm(a, np.exp, np.exp), JORDAN,
     "a has dependent eigenvectors, or nearly so, but must have independent ones!"),
    (lambda a: vm.funm(a, lambda x: 1j * x, lambda x: 1j), SMALL, COMPLEX),
])  # fmt: skip
def test_refusals(f, a, text):
    refuses_as(SHAPE if "shape" in text else DOMAIN, text, f, vm.var(a))
