"""Statistics for libraries that lack them: functions that varmat has by name, written with NumPy's
functions.

Densities are written out, because the libraries' own functions check and broadcast, which takes
longer. Each density is a sum over all elements, with all constants.
"""

from __future__ import annotations

import math
from typing import Any

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def size_of(x: Any) -> int:
    return math.prod(getattr(x, "shape", ()))


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float))


class Formulas:
    """A mixin for the namespace of a library, which has NumPy's functions and the special
    functions.
    """

    def _log(self: Any, x: Any) -> Any:
        return math.log(x) if is_number(x) else self.log(x)

    def _gammaln(self: Any, x: Any) -> Any:
        return math.lgamma(x) if is_number(x) else self.gammaln(x)

    def _total(self: Any, x: Any, count: int) -> Any:
        """Return the sum of an argument that is broadcast to `count` elements."""
        if size_of(x) == 1:
            return count * (x if is_number(x) or not x.shape else self.sum(x))
        total = self.sum(x)
        return total if size_of(x) == count else (count / size_of(x)) * total

    # Densities of real variables

    def std_normal_lpdf(self: Any, y: Any) -> Any:
        return -0.5 * self.sum(y * y) - size_of(y) * HALF_LOG_TWO_PI

    def normal_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        z = (y - mu) / sigma
        return (
            -0.5 * self.sum(z * z)
            - self._total(self._log(sigma), size_of(z))
            - size_of(z) * HALF_LOG_TWO_PI
        )

    def student_t_lpdf(self: Any, y: Any, nu: Any, mu: Any, sigma: Any) -> Any:
        z = (y - mu) / sigma
        scale = (
            self._gammaln(0.5 * (nu + 1)) - self._gammaln(0.5 * nu) - 0.5 * self._log(math.pi * nu)
        )
        tails = self.sum(0.5 * (nu + 1) * self.log1p(z * z / nu))
        return self._total(scale, size_of(z)) - self._total(self._log(sigma), size_of(z)) - tails

    def cauchy_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        z = (y - mu) / sigma
        return (
            -self.sum(self.log1p(z * z))
            - self._total(self._log(sigma), size_of(z))
            - size_of(z) * math.log(math.pi)
        )

    def logistic_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        z = (y - mu) / sigma
        return -self.sum(z + 2 * self.log1p_exp(-z)) - self._total(self._log(sigma), size_of(z))

    def double_exponential_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        z = (y - mu) / sigma
        return (
            -self.sum(self.abs(z))
            - self._total(self._log(sigma), size_of(z))
            - size_of(z) * math.log(2)
        )

    # Densities of positive variables

    def exponential_lpdf(self: Any, y: Any, beta: Any) -> Any:
        z = beta * y
        return self._total(self._log(beta), size_of(z)) - self.sum(z)

    def gamma_lpdf(self: Any, y: Any, alpha: Any, beta: Any) -> Any:
        terms = (alpha - 1) * self._log(y) - beta * y
        return self.sum(terms) + self._total(
            alpha * self._log(beta) - self._gammaln(alpha), size_of(terms)
        )

    def inv_gamma_lpdf(self: Any, y: Any, alpha: Any, beta: Any) -> Any:
        terms = -(alpha + 1) * self._log(y) - beta / y
        return self.sum(terms) + self._total(
            alpha * self._log(beta) - self._gammaln(alpha), size_of(terms)
        )

    def lognormal_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        log_y = self._log(y)
        z = (log_y - mu) / sigma
        value = (
            -0.5 * self.sum(z * z)
            - self._total(self._log(sigma), size_of(z))
            - size_of(z) * HALF_LOG_TWO_PI
        )
        return value - self._total(log_y, size_of(z))

    def weibull_lpdf(self: Any, y: Any, alpha: Any, sigma: Any) -> Any:
        log_z = self._log(y) - self._log(sigma)
        terms = (alpha - 1) * log_z - self.exp(alpha * log_z)
        return self.sum(terms) + self._total(self._log(alpha) - self._log(sigma), size_of(terms))

    # Densities of bounded variables

    def uniform_lpdf(self: Any, y: Any, alpha: Any, beta: Any) -> Any:
        return -self._total(self._log(beta - alpha), size_of(y))

    def beta_lpdf(self: Any, theta: Any, alpha: Any, beta: Any) -> Any:
        terms = (alpha - 1) * self._log(theta) + (beta - 1) * self.log1p(-theta)
        constant = self._gammaln(alpha + beta) - self._gammaln(alpha) - self._gammaln(beta)
        return self.sum(terms) + self._total(constant, size_of(terms))

    def dirichlet_lpdf(self: Any, theta: Any, alpha: Any) -> Any:
        return (
            self.gammaln(self.sum(alpha))
            - self.sum(self.gammaln(alpha))
            + self.sum((alpha - 1) * self.log(theta))
        )

    # Probabilities of counts

    def bernoulli_lpmf(self: Any, n: Any, theta: Any) -> Any:
        return self.sum(n * self._log(theta) + (1 - n) * self.log1p(-theta))

    def bernoulli_logit_lpmf(self: Any, n: Any, alpha: Any) -> Any:
        return self.sum(n * alpha - self.log1p_exp(alpha))

    def binomial_logit_lpmf(self: Any, n: Any, trials: Any, alpha: Any) -> Any:
        chosen = self.sum(
            self.gammaln(trials + 1) - self.gammaln(n + 1) - self.gammaln(trials - n + 1)
        )
        return self.sum(n * alpha - trials * self.log1p_exp(alpha)) + chosen

    def poisson_log_lpmf(self: Any, n: Any, alpha: Any) -> Any:
        terms = n * alpha - self.exp(alpha)
        return self.sum(terms) - self._total(self.gammaln(n + 1), size_of(terms))

    def poisson_lpmf(self: Any, n: Any, rate: Any) -> Any:
        terms = n * self._log(rate) - rate
        return self.sum(terms) - self._total(self.gammaln(n + 1), size_of(terms))

    def neg_binomial_2_log_lpmf(self: Any, n: Any, eta: Any, phi: Any) -> Any:
        log_phi = self._log(phi)
        terms = n * eta + phi * log_phi - (n + phi) * self.logaddexp(eta, log_phi + 0 * eta)
        terms = terms + self.gammaln(n + phi) - self._gammaln(phi) - self.gammaln(n + 1)
        return self.sum(terms)

    # Generalised linear models

    def normal_id_glm_lpdf(self: Any, y: Any, x: Any, alpha: Any, beta: Any, sigma: Any) -> Any:
        return self.normal_lpdf(y, x @ beta + alpha, sigma)

    def bernoulli_logit_glm_lpmf(self: Any, y: Any, x: Any, alpha: Any, beta: Any) -> Any:
        return self.bernoulli_logit_lpmf(y, x @ beta + alpha)

    def poisson_log_glm_lpmf(self: Any, y: Any, x: Any, alpha: Any, beta: Any) -> Any:
        return self.poisson_log_lpmf(y, x @ beta + alpha)

    # Mixtures

    def log_mix(self: Any, theta: Any, first: Any, second: Any) -> Any:
        """Return the log density of a mixture of two densities, with the weight `theta` of the
        first.
        """
        return self.logaddexp(self.log(theta) + first, self.log1p(-theta) + second)

    # Several variables

    def multi_normal_cholesky_lpdf(self: Any, y: Any, mu: Any, factor: Any) -> Any:
        d = y - mu
        z = self.solve_triangular(factor, d.T if d.ndim > 1 else d)
        count = size_of(z) // factor.shape[0]
        return (
            -0.5 * self.sum(z * z)
            - count * self.sum(self.log(self.diagonal(factor)))
            - size_of(z) * HALF_LOG_TWO_PI
        )

    def multi_normal_lpdf(self: Any, y: Any, mu: Any, sigma: Any) -> Any:
        return self.multi_normal_cholesky_lpdf(y, mu, self.cholesky(sigma))

    # Matrices

    def log_determinant(self: Any, a: Any) -> Any:
        return self.linalg.slogdet(a)[1]

    def log_determinant_spd(self: Any, a: Any) -> Any:
        return 2 * self.sum(self.log(self.diagonal(self.cholesky(a))))

    def add_diag(self: Any, m: Any, d: Any) -> Any:
        return m + d * self.eye(m.shape[0])

    def crossprod(self: Any, m: Any) -> Any:
        return m.T @ m

    def tcrossprod(self: Any, m: Any) -> Any:
        return m @ m.T

    def multiply_lower_tri_self_transpose(self: Any, m: Any) -> Any:
        return self.tcrossprod(self.tril(m))

    def quad_form(self: Any, a: Any, b: Any) -> Any:
        return b.T @ a @ b

    def quad_form_sym(self: Any, a: Any, b: Any) -> Any:
        return b.T @ a @ b

    def trace_quad_form(self: Any, a: Any, b: Any) -> Any:
        return self.sum(b * (a @ b))

    def quad_form_diag(self: Any, m: Any, v: Any) -> Any:
        return v[:, None] * m * v

    def diag_pre_multiply(self: Any, v: Any, m: Any) -> Any:
        return v[:, None] * m

    def diag_post_multiply(self: Any, m: Any, v: Any) -> Any:
        return m * v

    def dot_self(self: Any, x: Any) -> Any:
        return self.sum(x * x)

    def dot_product(self: Any, a: Any, b: Any) -> Any:
        return self.sum(a * b)

    def gp_exp_quad_cov(self: Any, x: Any, sigma: Any, length_scale: Any) -> Any:
        d = (x[:, None] - x[None, :]) / length_scale
        return sigma**2 * self.exp(-0.5 * d * d)

    # Elementwise

    def fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        return x * y + z

    def log_expit(self: Any, x: Any) -> Any:
        return -self.log1p_exp(-x)

    def log_sum_exp(self: Any, x: Any, axis: Any = None) -> Any:
        return self.logsumexp(x, axis)
