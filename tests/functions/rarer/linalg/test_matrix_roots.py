"""Roots, logarithms, signs, trigonometric functions and funm of matrices: against 50 digits, and
along all routes.
"""

import re
import warnings

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from comparing import close
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


EXACT = {
    "sqrtm": (vm.sqrtm, mp.sqrtm, [GENERAL]),
    "sqrtm of a Jordan block": (vm.sqrtm, mp.sqrtm, [JORDAN]),
    "sqrtm of a small matrix": (vm.sqrtm, lambda a: mp.sqrtm(a).apply(mp.re), [1e-9 * GENERAL]),
    "logm": (vm.logm, mp.logm, [GENERAL]),
    "logm near the identity": (vm.logm, mp.logm, [np.eye(3) + 1e-6 * GENERAL]),
    "logm of a Jordan block": (vm.logm, mp.logm, [JORDAN]),
    "logm of a large matrix": (vm.logm, lambda a: mp.logm(a).apply(mp.re), [1e6 * GENERAL]),
    "signm": (vm.signm, lambda a: a * mp.inverse(mp.sqrtm(a * a)), [INDEFINITE]),
    "power": (lambda a: vm.fractional_matrix_power(a, 0.3),
              lambda a: mp.expm(mp.logm(a) * mp.mpf(0.3), "taylor"), [GENERAL]),
    "sinm and cosm": (lambda a: (vm.sinm(a), vm.cosm(a)), sine_and_cosine, [SMALL]),
    "tanm": (vm.tanm, lambda a: ratio(a, sine_and_cosine), [0.5 * SMALL]),
    "sinhm and coshm": (lambda a: (vm.sinhm(a), vm.coshm(a)), hyperbolic, [SMALL]),
    "sinhm of a small matrix": (vm.sinhm, lambda a: hyperbolic(a)[0], [1e-8 * SMALL]),
    "tanhm": (vm.tanhm, lambda a: ratio(a, hyperbolic), [SMALL]),
    "funm, complex eigenvalues": (lambda a: vm.funm(a, np.sin, np.cos), mp.sinm, [SMALL]),
    "funm, symmetric": (lambda a: vm.funm(a, np.exp, np.exp), lambda a: mp.expm(a, "taylor"),
                        [SPD / 4]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args) < (1e-12 if "logm" in name or "power" in name else 1e-13)


@pytest.mark.parametrize(
    "a", [np.eye(3), np.diag([2.0, 2.0, 1.0]), np.diag([2.0, 2.0 + 1e-9, 1.0])]
)
def test_funm_where_eigenvalues_are_equal_or_near(a):
    found = worst_error(lambda a: vm.funm(a, np.exp, np.exp), lambda a: mp.expm(a, "taylor"), [a])
    assert found < 1e-13


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
    expect_ad(lambda a: vm.funm(a, np.exp, np.exp), GENERAL)
    expect_ad(lambda a: vm.funm(a, np.exp, np.exp), np.empty((0, 0)))
    # Next to a matrix with equal eigenvalues there are matrices without independent eigenvectors,
    # so finite differences fail.
    alone = Tolerances(hessian=np.inf, finite_difference=np.inf)
    expect_ad(lambda a: vm.funm(a, np.exp, np.exp), np.diag([1.0, 1.0, 2.0]), tolerances=alone)


def test_values_of_scipy():
    a = np.random.default_rng(11).normal(size=(20, 20))
    spd = a @ a.T + np.eye(20)
    for name in ("sqrtm", "logm", "cosm", "sinm", "coshm", "signm"):
        x = spd if name in ("sqrtm", "logm") else 0.3 * a
        close(getattr(vm, name)(x), getattr(scipy.linalg, name)(x), 1e-9, 1e-11)


def test_the_root_of_a_singular_matrix_has_no_derivative():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # from SciPy 1.16 on
        assert np.isnan(vm.gradient(lambda a: np.trace(vm.sqrtm(a)), np.diag([1.0, 0.0]))).all()


COMPLEX = "a has an eigenvalue on the negative real axis, so that the result would be complex!"


@pytest.mark.parametrize(("f", "a", "message"), [
    (vm.sqrtm, VECTOR, "sqrtm: a has shape (3,), but must be a square matrix!"),
    (vm.sqrtm, -GENERAL, f"sqrtm: {COMPLEX}"),
    (vm.logm, -np.eye(2), f"logm: {COMPLEX}"),
    (vm.logm, np.diag([1.0, 0.0]), "logm: a is singular, but must be invertible!"),
    (vm.logm, np.diag([1.0, np.nan]),
     "logm: a has elements that are not finite, but must have finite ones!"),
    (vm.signm, np.array([[0.0, 1.0], [-1.0, 0.0]]),
     "signm: a has an eigenvalue on the imaginary axis, or too near to it!"),
    (vm.signm, np.zeros((2, 2)),
     "signm: a has an eigenvalue on the imaginary axis, or too near to it!"),
    (vm.cosm, np.ones((2, 3)), "cosm: a has shape (2, 3), but must be a square matrix!"),
    (lambda a: vm.funm(a, np.exp, np.exp), JORDAN,
     "funm: a has dependent eigenvectors, or nearly so, but must have independent ones!"),
    (lambda a: vm.funm(a, lambda x: 1j * x, lambda x: 1j), SMALL, f"funm: {COMPLEX}"),
])  # fmt: skip
def test_refusals(f, a, message):
    with pytest.raises(
        vm.DomainError if "shape" not in message else vm.ShapeError, match=f"^{re.escape(message)}$"
    ):
        f(vm.var(a))
