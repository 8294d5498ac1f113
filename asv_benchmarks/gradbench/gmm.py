"""The posterior of a mixture of Gaussians whose precisions have Wishart priors."""

import math

import numpy as np
from gradbench import wrap
from scipy.special import multigammaln

import varmat as vm


def log_wishart_prior(q, lower, gamma, m):
    k, d = q.shape
    n = d + m + 1
    squares = np.sum(np.exp(q) ** 2) + np.sum(lower**2)
    constant = n * d * math.log(gamma / math.sqrt(2.0)) - multigammaln(0.5 * n, d)
    return m * np.sum(q) - 0.5 * gamma**2 * squares + k * constant


def log_posterior(parameters, x, gamma, m):
    """Compute the log posterior; `q` and `l` are log diagonals and, column by column, the rest of
    the lower triangular factors of the precisions.
    """
    alpha, mu, q, lower = (parameters[name] for name in ("alpha", "mu", "q", "l"))
    n, d = x.shape
    columns, rows = np.triu_indices(d, 1)
    factors = np.zeros_like(lower, shape=(len(alpha), d, d))
    factors[:, rows, columns] = lower
    factors[:, np.arange(d), np.arange(d)] = np.exp(q)
    # The transposed factors are stacked side by side: one product serves all components.
    stacked = np.moveaxis(factors, 2, 0).reshape(d, -1)
    centres = np.sum(factors * mu[:, None, :], axis=2)
    residuals = (x @ stacked).reshape(n, len(alpha), d) - centres
    terms = alpha + np.sum(q, axis=1) - 0.5 * np.sum(residuals**2, axis=2)
    top = np.max(terms, axis=1)
    likelihood = np.sum(top + np.log(np.sum(np.exp(terms - top[:, None]), axis=1)))
    weights = n * np.log(np.sum(np.exp(alpha)))
    constant = -0.5 * n * d * math.log(2.0 * math.pi)
    return constant + likelihood - weights + log_wishart_prior(q, lower, gamma, m)


log_posterior_gradient = vm.recorded(log_posterior)


def prepare(input):
    parameters = {name: np.array(input[name]) for name in ("alpha", "mu", "q", "l")}
    return parameters, np.array(input["x"]), input["gamma"], input["m"]


def listed(gradient):
    return {name: x.tolist() for name, x in gradient.items()}


@wrap.multiple_runs(pre=prepare, post=float)
def objective(input):
    return log_posterior(*input)


@wrap.multiple_runs(pre=prepare, post=listed)
def jacobian(input):
    return log_posterior_gradient(*input)[1]
