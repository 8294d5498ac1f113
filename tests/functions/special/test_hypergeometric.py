"""Generalised hypergeometric functions: digits, routes, and refusals."""

from functools import partial
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import recordings
import stan
from comparing import DOMAIN, SHAPE, close, refuses, refuses_as

import varmat as vm
from varmat.testing import coverage, expect_ad, expect_ad_matvar

A, B = np.array([0.5, 1.2]), np.array([2.3, 1.7])

# Upper parameters, lower parameters, and the argument. The last points have cancelling terms, zeros
# and slow series.
POINTS = [
    ([0.5, 1.2], [2.3, 1.7], 0.6), ([0.5, 1.2, 0.8], [2.3, 1.7], -0.7), ([], [2.5], 3.0),
    ([1.3], [-2.5], 1.5), ([-2.0, 1.5], [0.7], 0.4), ([2.5, 1.5], [1e-3, 1e4], 40.0),
    ([1e-10], [1e10], -1e3),
]  # fmt: skip
TAILS = [
    ([0.5, 1.2], [2.3, 1.7], -60.0), ([-40.5], [0.3], 200.0), ([0.5, 1.2, 0.8], [2.3, 1.7], 0.95),
    # The second term is negligible beside the first, but later terms dominate.
    ([1e-30], [1.0], 200.0), ([1e-30, 50.0], [1.0], 0.9), ([1.3], [2.5], -700.0),
]  # fmt: skip


def of_numbers(p):
    return lambda *c: mpmath.hyper(c[:p], c[p:-1], c[-1])


@pytest.mark.parametrize(("above", "below", "z"), [*POINTS, *TAILS])
def test_against_fifty_digits(above, below, z):
    f = vm.value_and_grad(vm.hypergeometric_pFq, argnums=(0, 1, 2))
    found, gradients = f(np.array(above), np.array(below), z)
    point, n = (*above, *below, z), len(above) + len(below) + 1
    with mpmath.workdps(60):
        numbers = [mpmath.mpf(x) for x in point]

        def scaled(*t):  # steps are relative to the numbers, which may be small
            return of_numbers(len(above))(*(x * c for x, c in zip(numbers, t, strict=True)))

        exact = [scaled(*[1] * n)]
        for i, x in enumerate(numbers):
            exact.append(mpmath.diff(scaled, (1,) * n, tuple(int(i == j) for j in range(n))) / x)
    ours = [found, *np.concatenate([np.ravel(g) for g in gradients])]
    error = max(abs(a / float(b) - 1.0) for a, b in zip(ours, exact, strict=True))
    assert error <= 1e-15
    column = "tails" if (above, below, z) in TAILS else "mpmath"
    coverage.note(vm.hypergeometric_pFq, **{column: error})


def test_second_and_third_derivatives():
    c = np.array([*A, *B, 0.6])

    def f(c):
        return vm.hypergeometric_pFq(c[:2], c[2:4], c[4])

    def exact(*axes):
        with mpmath.workdps(60):
            orders = tuple(axes.count(i) for i in range(5))
            return float(mpmath.diff(of_numbers(2), tuple(map(mpmath.mpf, c)), orders))

    hessian, third = vm.hessian(f, c), vm.grad_hessian(f, c[:])
    for i, j in ((0, 0), (0, 1), (2, 4), (3, 3), (4, 4)):
        close(hessian[i, j], exact(i, j), 1e-14)
    close(third[0, 2, 4], exact(0, 2, 4), 1e-14)


def test_all_routes():
    expect_ad(vm.hypergeometric_pFq, A[:1], B[:1], 0.3)
    expect_ad_matvar(vm.hypergeometric_pFq, A, B[:1], 0.3)
    for f, a in ((vm.hypergeometric_2F2, A), (vm.hypergeometric_3F2, np.array([0.5, 1.2, 0.8]))):
        bound = partial(f, a, B)
        expect_ad(bound, 0.3)
        expect_ad_matvar(bound, 0.3)
    points = [(np.array([0.5, 2.0, 0.3]),), (np.array([1.5, 3.0, -9.0]),)]
    recordings.agree(lambda c: vm.hypergeometric_pFq(c[:1], c[1:2], c[2]), *points)


def test_functions_with_other_names():
    for x in (-0.9, 0.3, 0.8):
        for c, d in pairwise((0.5, 1.7, 3.1)):
            close(vm.hypergeometric_pFq([c], [], x), vm.hypergeometric_1F0(c, x), 1e-14)
            expected = vm.hypergeometric_2F1(c, d, 2.2, x)
            close(vm.hypergeometric_pFq([c, d], [2.2], x), expected, 1e-13)
            close(vm.hypergeometric_pFq([c], [d], x), vm.hyp1f1(c, d, x), 1e-13)
            close(vm.hypergeometric_3F2([c, d, 2.2], [2.2, 1.1], x), vm.hyp2f1(c, d, 1.1, x), 1e-13)
    assert vm.hypergeometric_pFq([-1.0], [3.0], 3.0) == 0.0
    assert vm.hypergeometric_pFq([1.0, 2.0], [0.5], 0.0) == 1.0
    assert vm.hypergeometric_pFq([0.0], [0.5], 100.0) == 1.0


@pytest.mark.parametrize(
    "entry", [each for each in stan.entries("series_and_forms") if each.id.startswith("hyper")]
)
def test_stan(entry):
    stan.check(getattr(vm, entry["function"]), entry, rtol=1e-13)


REFUSALS = [
    (lambda: vm.hypergeometric_pFq(0.5, B, 0.6), SHAPE, "a has shape (), but must be a vector!"),
    (lambda: vm.hypergeometric_pFq(A, B, A), SHAPE, "z has shape (2,), but must be a scalar!"),
    (lambda: vm.hypergeometric_2F2(A, [1.0], 0.5), SHAPE,
     "b has shape (1,), but must be a vector of 2 parameters!"),
    (lambda: vm.hypergeometric_3F2(A, B, 0.5), SHAPE, "a has shape (2,), but must"),
    (lambda: vm.hypergeometric_pFq(A, [2.0, -3.0], 0.5), DOMAIN,
     "b[1] is -3.0, but must not be 0 or a negative integer!"),
    (lambda: vm.hypergeometric_3F2([0.5, 1.2, 0.8], B, vm.var(-1.0)), DOMAIN,
     "z is -1.0, but must be between -1 and 1 where there is one parameter more above!"),
    (lambda: vm.hypergeometric_pFq([0.5, 1.2, 0.8], [1.0], 0.1), DOMAIN,
     "z is 0.1, but must be 0 where there are 3 parameters above and 1 below!"),
    (lambda: vm.hypergeometric_pFq([np.nan], B, 0.1), DOMAIN, "a[0] is nan, but must be finite!"),
    (lambda: vm.hypergeometric_pFq(A, B, np.inf), DOMAIN, "z is inf, but must be finite!"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), REFUSALS)
def test_refusals(call, error, text):
    refuses_as(error, text, call)


def test_series_that_are_too_slow_are_refused(monkeypatch):
    module = "varmat.functions.special.generalised_hypergeometric"
    monkeypatch.setattr(f"{module}._TERMS", 50)
    message = r"^hypergeometric_3F2: z is 0.99, but must be .* converges in 50 terms!"
    refuses(vm.DomainError, message, vm.hypergeometric_3F2, [0.5, 1.3, 0.8], B, 0.99)
    monkeypatch.setattr(f"{module}._TERMS", 5000)
    monkeypatch.setattr(f"{module}._MOST_DIGITS", 60)
    message = r"^hypergeometric_pFq: z is -300.5, but must be such that the terms of the series do"
    refuses(vm.DomainError, message, vm.hypergeometric_pFq, [1.3], [2.5], -300.5)


@pytest.mark.parametrize(
    "entry", [each for each in stan.entries("series_and_forms", throws=True) if "pFq" in each.id]
)
def test_what_stan_refuses(entry):
    with pytest.raises((vm.DomainError, vm.ShapeError), match=r"^hypergeometric_pFq: .* but must "):
        vm.hypergeometric_pFq(*stan.arguments(entry))
