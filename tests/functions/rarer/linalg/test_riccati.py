"""Riccati equations: against SciPy, the equations themselves and closed forms, and along all
routes.
"""

import re

import numpy as np
import pytest
import scipy.linalg
from comparing import close, refuses

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


def test_the_residual_stays_zero():
    def continuous(a, b, q, r):
        x = vm.solve_continuous_are(a, b, q, r)
        return a.T @ x + x @ a - x @ b @ np.linalg.solve(r, b.T @ x) + 0.5 * (q + q.T)

    def discrete(a, b, q, r):
        x = vm.solve_discrete_are(a, b, q, r)
        bxa = b.T @ x @ a
        return a.T @ x @ a - bxa.T @ np.linalg.solve(r + b.T @ x @ b, bxa) + q - x

    for f in (continuous, discrete):
        value, rate = vm.jvp(f, (A, B, Q, R), (np.sin(A), np.cos(B), np.eye(3), 0.0 * R))
        close(value, np.zeros((3, 3)), 1e-7, 1e-12)
        close(rate, np.zeros((3, 3)), 1e-7, 1e-11)


def test_the_solution_for_one_element_is_a_root():
    """For one element the solution is a root of ``2 a x - b^2 x^2 / r + q = 0``."""

    def root(a, b, q, r):
        return r * (a + np.sqrt(a * a + b * b * q / r)) / (b * b)

    def found(*args):
        return vm.solve_continuous_are(*(np.reshape(x, (1, 1)) for x in args))[0, 0]

    args = (0.4, 1.3, 0.7, 2.0)
    for x, y in zip(
        *(vm.value_and_grad(f, (0, 1, 2, 3))(*args)[1] for f in (found, root)), strict=True
    ):
        close(x, y, 1e-13)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda a: vm.solve_continuous_are(a, B[:2], Q, R), vm.ShapeError,
     "solve_continuous_are: b has shape (2, 2), but must have shape (3, None)!"),
    (lambda a: vm.solve_discrete_are(a, B, Q, Q), vm.ShapeError,
     "solve_discrete_are: r has shape (3, 3), but must have shape (2, 2)!"),
    (lambda a: vm.solve_continuous_are(a, B, Q, 0.0 * R), vm.DomainError,
     "solve_continuous_are: there is no stabilising solution ("),
    (lambda a: vm.solve_discrete_are(0.0 * a + 2.0 * np.eye(3), 0.0 * B, Q, R),
     np.linalg.LinAlgError, "solve_discrete_are: there is no stabilising solution ("),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses(error, f"^{re.escape(message)}", call, vm.var(A))
