"""Riccati equations: against SciPy, the equations themselves and closed forms, and along all
routes.
"""

import numpy as np
import pytest
import scipy.linalg
from comparing import DOMAIN, SHAPE, close, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(17)
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 2))
Q = np.array([[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 1.0]])
R = np.array([[1.0, 0.2], [0.2, 0.8]])
NAMES = ["solve_continuous_are", "solve_discrete_are"]


@pytest.mark.parametrize("name", NAMES)
def test_values_of_scipy_and_all_routes(name):
    f = getattr(vm, name)
    close(f(vm.var(A), B, Q, R).val, getattr(scipy.linalg, name)(A, B, Q, R), 1e-12)
    a, b, q, r = A[:2, :2], B[:2, :1], Q[:2, :2], R[:1, :1]
    expect_ad(lambda a, b: f(a, b, q, r), a, b)
    expect_ad(lambda q, r: f(a, b, q, r), q, r)
    expect_ad_matvar(lambda q: f(a, b, q, r), q)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda a: vm.solve_continuous_are(a, B[:2], Q, R), SHAPE,
     "b has shape (2, 2), but must have shape (3, None)!"),
    (lambda a: vm.solve_discrete_are(a, B, Q, Q), SHAPE,
     "r has shape (3, 3), but must have shape (2, 2)!"),
    (lambda a: vm.solve_continuous_are(a, B, Q, 0.0 * R), DOMAIN,
     "there is no stabilising solution (Matrix r is numerically singular.)!"),
    (lambda a: vm.solve_discrete_are(0.0 * a + 2.0 * np.eye(3), 0.0 * B, Q, R),
     np.linalg.LinAlgError,
     "there is no stabilising solution (Failed to find a finite solution.)!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(A))
