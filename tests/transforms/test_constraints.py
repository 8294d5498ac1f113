"""Constraint transforms against Stan Math and against arithmetic with many digits."""

import mpmath as mp
import numpy as np
import pytest
import stan

import varmat as vm

X = np.array([-1.2, 0.4, 2.3])
X6 = np.array([-1.2, 0.4, 2.3, 0.1, -0.6, 0.9])


def flat(result):
    """A value and a log-Jacobian as one vector; differentiable."""
    return np.concatenate([np.reshape(result[0], -1), np.reshape(result[1], 1)])


# --- Stan ---


FILES = ("constraints", "lkj_constraints")


@pytest.mark.parametrize("entry", [each for file in FILES for each in stan.entries(file)])
def test_stan(entry):
    f = getattr(vm, entry["function"])
    if not entry.get("jacobian"):
        stan.check(f, entry, rtol=2e-14, fold=stan.lower)
        return
    entry = {key: item for key, item in entry.items() if key != "tuple"}
    for key in ("output", "weights"):
        value, log_jacobian = entry[key]
        entry[key] = [*np.ravel(stan.number(value)).tolist(), log_jacobian]
    stan.check(lambda *args: flat(f(*args, jacobian=True)), entry, rtol=1e-14)


@pytest.mark.parametrize("entry", stan.entries("constraints", throws=True))
def test_what_stan_refuses(entry):
    with pytest.raises((vm.DomainError, vm.ShapeError), match=r"^[a-z_]+: .* but must "):
        getattr(vm, entry["function"])(*stan.arguments(entry))


# --- 50 digits ---


def mp_stick_breaking(x):
    stick, pieces, log_jacobian = mp.mpf(1), [], mp.mpf(0)
    for k, a in enumerate(x):
        z = 1 / (1 + mp.exp(-a) * (len(x) - k))
        pieces.append(stick * z)
        log_jacobian += mp.log(stick) + mp.log(z) + mp.log(1 - z)
        stick *= 1 - z
    return [*pieces, stick], log_jacobian


def mp_ordered(x):
    return [x[0] + sum(map(mp.exp, x[1 : k + 1])) for k in range(len(x))], sum(x[1:], mp.mpf(0))


def mp_positive_ordered(x):
    return [sum(map(mp.exp, x[: k + 1])) for k in range(len(x))], sum(x)


def mp_sum_to_zero(x):
    n = len(x)
    y = [mp.mpf(0)] * (n + 1)
    for j in range(1, n + 1):
        w = x[j - 1] / mp.sqrt(j * (j + 1))
        y = [y[k] + (w if k < j else -j * w if k == j else 0) for k in range(n + 1)]
    return y, mp.mpf(0)


def mp_unit(x):
    squared = mp.fdot(x, x)
    return [a / mp.sqrt(squared) for a in x], -squared / 2


def mp_factor(x, places, size):
    """The Cholesky factor of partial correlations as Stan defines it, and their log-Jacobian."""
    z = dict(zip(places, map(mp.tanh, x), strict=True))
    factor, log_jacobian = mp.zeros(size), -2 * sum(mp.log(mp.cosh(a)) for a in x)
    for i in range(size):
        rest = mp.mpf(1)
        for j in range(i):
            log_jacobian += mp.log(rest) / 2 if j else 0
            factor[i, j] = z[i, j] * mp.sqrt(rest)
            # 1 - sum of squares might lose all digits.
            rest /= mp.cosh(x[places.index((i, j))]) ** 2
        factor[i, i] = mp.sqrt(rest)
    return factor, log_jacobian


def mp_cholesky_corr(x):
    factor, log_jacobian = mp_factor(x, [(i, j) for i in range(4) for j in range(i)], 4)
    return list(factor), log_jacobian


def mp_corr_matrix(x):
    factor, log_jacobian = mp_factor(x, [(i, j) for j in range(4) for i in range(j + 1, 4)], 4)
    # The elements below the diagonal give one factor L[j, j] for each later row.
    return list(factor * factor.T), log_jacobian + sum(
        (3 - j) * mp.log(factor[j, j]) for j in range(1, 3)
    )


def mp_trapezoid(x, rows, columns):
    factor, items, log_jacobian = mp.zeros(rows, columns), iter(x), mp.mpf(0)
    for i in range(rows):
        for j in range(min(i + 1, columns)):
            item = next(items)
            factor[i, j] = mp.exp(item) if i == j else item
            log_jacobian += item if i == j else 0
    return factor, log_jacobian


def mp_cholesky_factor(x):
    factor, log_jacobian = mp_trapezoid(x, 4, 2)
    return list(factor), log_jacobian


def mp_cov_matrix(x):
    factor, log_jacobian = mp_trapezoid(x, 3, 3)
    log_jacobian += 3 * mp.log(2) + sum((3 - i) * mp.log(factor[i, i]) for i in range(3))
    return list(factor * factor.T), log_jacobian


def mp_each(value, log_slope):
    return lambda x: ([value(a) for a in x], sum(log_slope(a) for a in x))


def mp_logistic(x):
    return 1 / (1 + mp.exp(-x))


def mp_log_slope(x):
    return mp.log(mp_logistic(x) * mp_logistic(-x))


# Name -> arguments after x, the exact function, points. Each function is asked for its log-Jacobian
# too.
EXACT = {
    "lb_constrain": ((1.0,), mp_each(lambda a: mp.exp(a) + 1, lambda a: a), [X, [-40.0, 700.0]]),
    "ub_constrain": ((3.0,), mp_each(lambda a: 3 - mp.exp(a), lambda a: a), [X, [-40.0, 700.0]]),
    # Close to the upper bound 0 the result is as exact as close to the lower one.
    "lub_constrain": ((-1.0, 0.0), mp_each(lambda a: -mp_logistic(-a), mp_log_slope),
                      [X, [-700.0, -40.0, 1e-9, 40.0, 700.0]]),
    "prob_constrain": ((), mp_each(mp_logistic, mp_log_slope),
                       [X, [-700.0, -40.0, 1e-9, 40.0, 700.0]]),
    "corr_constrain": ((), mp_each(mp.tanh, lambda a: -2 * mp.log(mp.cosh(a))),
                       [X, [1e-7], [-700.0, 1e-9, 20.0]]),
    "ordered_constrain": ((), mp_ordered, [X6, [-700.0, -700.0, 700.0]]),
    "positive_ordered_constrain": ((), mp_positive_ordered, [X6, [-700.0, -600.0, 700.0]]),
    "simplex_constrain": ((), mp_stick_breaking,
                          [X6, [-700.0, 0.0], [700.0, -1.0], [40.0, -40.0, 40.0],
                           [-300.0, 300.0, -300.0]]),
    "sum_to_zero_constrain": ((), mp_sum_to_zero, [X6, [700.0, 1.0, -700.0]]),
    "unit_vector_constrain": ((), mp_unit, [X6, [700.0, 1e-3, -700.0], [1e-140, 1e-140]]),
    "cholesky_corr_constrain": ((4,), mp_cholesky_corr,
                                [X6, [20.0, -20.0, 300.0, -1e-9, -300.0, 5.0],
                                 [1e-5, 0.0, 0.0, 0.0, 0.0, 0.0],
                                 [-700.0, 0.0, 700.0, 1.0, 0.0, -700.0]]),
    "corr_matrix_constrain": ((4,), mp_corr_matrix, [X6, 4.0 * X6]),
    "cholesky_factor_constrain": ((4, 2), mp_cholesky_factor,
        [[*X6, 0.3], [-700.0, 1.0, 700.0, 2.0, 3.0, 4.0, 5.0]]),
    "cov_matrix_constrain": ((3,), mp_cov_matrix, [X6, 30.0 * X6]),
}  # fmt: skip
# Elements of these are sums that may lose digits. They are as exact as the largest one.
SUMS = {"ub_constrain", "sum_to_zero_constrain", "corr_matrix_constrain", "cov_matrix_constrain"}
POINTS = [(name, x) for name, (_, _, points) in EXACT.items() for x in points]


@pytest.mark.parametrize(("name", "x"), POINTS)
def test_values_to_the_last_digits(name, x):
    settings, exact, _ = EXACT[name]
    y, log_jacobian = getattr(vm, name)(np.array(x), *settings, jacobian=True)
    with mp.workdps(700):  # for 1 - z far out
        expected, expected_log_jacobian = exact([mp.mpf(float(a)) for a in x])
        expected, expected_log_jacobian = (
            np.array([float(a) for a in expected]),
            float(expected_log_jacobian),
        )
    scale = np.max(np.abs(expected)) if name in SUMS else np.abs(expected)
    # The argument of the exponential is a difference, which is rounded.
    tolerance = 4e-15 + (2.3e-16 * np.max(np.abs(x)) if name == "simplex_constrain" else 0.0)
    assert np.all(np.abs(np.ravel(y) - expected) <= tolerance * scale)
    assert abs(log_jacobian - expected_log_jacobian) <= 4e-15 * abs(expected_log_jacobian)
