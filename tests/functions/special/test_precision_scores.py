"""What derivatives in a precision are made of, against 50 digits."""

import mpmath as mp
import numpy as np
import pytest
from comparing import close

import varmat as vm
from varmat.functions.special import precision_scores as scores

PRECISIONS = (1e-8, 0.3, 2.5, 11.999, 12.0, 14.999, 15.0, 60.0, 3e4, 1e9)


def in_digits(function, *columns):
    with mp.workdps(50):
        return np.array(
            [float(function(*map(mp.mpf, point))) for point in zip(*columns, strict=True)]
        )


def less_line(x, n):
    return mp.digamma(x + n) - mp.digamma(x) - n / x


def excess(s, x, z):
    if s == 1:
        return mp.digamma(x + z) - mp.digamma(x) - mp.log1p(z / x)
    return mp.zeta(s, x) - mp.zeta(s, x + z) - (x ** (1 - s) - (x + z) ** (1 - s)) / (s - 1)


@pytest.mark.parametrize("n", [2.0, 3.0, 40.0, 1000.0, 1e6])
def test_digamma_less_line(n):
    x = np.array(PRECISIONS)
    row = scores.digamma_less_line
    expected = in_digits(less_line, x, np.full(x.size, n))
    near, far = x < 12.0, x >= 12.0
    for part in (near, far, near | far):
        close(row(x[part], n), expected[part], 1e-13)
        close(row.ufunc.formula(x[part], n), expected[part], 1e-13)
    numbers = [row.scalar(each, n) for each in x.tolist()]
    close(numbers, expected, 1e-13)
    slopes = in_digits(
        lambda x, n: mp.psi(1, x + n) - mp.psi(1, x) + n / x**2, x, np.full(x.size, n)
    )
    found = vm.gradient(lambda x: np.sum(row(x, n)), x)
    close(found, slopes, 3e-12)


@pytest.mark.parametrize("n", [0.0, 1.0])
def test_digamma_less_line_of_few(n):
    """Exactly zero."""
    x, row = np.array(PRECISIONS), scores.digamma_less_line
    assert not np.any(row(x, n))
    assert not np.any(row.ufunc.formula(x, n))
    assert row.scalar(2.5, n) == row.scalar(25.0, n) == 0.0


@pytest.mark.parametrize("s", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("z", [1.0, 2.0, 300.0])
def test_zeta_excess_difference(s, z):
    x = np.array(PRECISIONS)
    values, slopes = (
        in_digits(lambda x, k=k: excess(mp.mpf(k), x, mp.mpf(z)), x) for k in (s, s + 1.0)
    )
    close(scores.zeta_excess(s, x, z), values, 3e-12)
    found = vm.gradient(lambda x: np.sum(scores.zeta_excess(s, x, z)), x)
    close(found, -s * slopes, 3e-12)


@pytest.mark.parametrize("phi", [3.0, 300.0])
def test_log1m_less_line(phi):
    """Of common probabilities, of rare ones, and of both."""
    row = scores.log1m_less_line
    for p in (
        np.array([[0.3, 0.9], [0.2, 1.0 - 1e-9]]),
        np.array([[1e-9, 1e-3], [0.019, 1e-5]]),
        np.array([0.09, 0.03]),
        np.array([[1e-9, 0.05], [0.5, 3e-3], [0.1, 0.9]]),
    ):
        y = -np.log1p(-p)
        expected = in_digits(lambda p: p + mp.log1p(-p), p.ravel()).reshape(p.shape)
        # The difference itself serves a small precision, beside terms that are larger.
        rtol = 1e-13 if phi < 100.0 else 1e-14
        for found in (row(p, y, phi), row(p.T, y.T, phi).T):
            close(found, expected, rtol)
        close(row(p, y, np.full(p.shape, phi)), expected, 1e-14)
        close(row.ufunc.formula(p, y, phi), expected, 1e-14)
        numbers = [row.scalar(*each, phi) for each in zip(p.flat, y.flat, strict=True)]
        close(numbers, expected.ravel(), 1e-14)
    assert vm.value_and_grad(row, (0, 1, 2))(0.5, 0.7, phi)[1] == (1.0, -1.0, 0.0)


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0, 30.0])
def test_third_derivatives(n):
    """The scores are derivatives: their second ones are the third ones of the log mass."""

    def score(mu, phi):
        rest = mp.digamma(n + phi) - mp.digamma(phi) - mp.log1p(mu / phi)
        return rest + (mu - n) / (mu + phi)

    def log_score(eta, phi):
        return score(mp.exp(eta), phi)

    def log_mean_score(eta, phi):
        return phi * (n - mp.exp(eta)) / (mp.exp(eta) + phi)

    for row, function in (
        (scores.neg_binomial_2_score, score),
        (scores.neg_binomial_2_log_score, log_score),
        (scores.neg_binomial_2_log_mean_score, log_mean_score),
    ):
        for point in ((0.6, 3.0), (1.7, 40.0)):
            with mp.workdps(50):
                orders = (2, 0), (1, 1), (1, 1), (0, 2)
                exact = [float(mp.diff(function, tuple(map(mp.mpf, point)), k)) for k in orders]
                value = float(function(*map(mp.mpf, point)))
            hessian = vm.hessian(lambda x, row=row: row(n, x[0], x[1]), np.array(point))
            close(np.ravel(hessian), exact, 1e-9)
            close(row(n, *point), value, 1e-12)
            close(row.ufunc.formula(n, *point), value, 1e-12)
