"""Mistakes of a newcomer, and what the messages say: the name of the thing and the remedy first."""

import math

import numpy as np
import pytest
import scipy.stats

import varmat as vm

X, Y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])


def model(log_density, **parameters):
    return vm.Model(log_density, **parameters or {"mu": vm.real()})


def at_zero(log_density, **parameters):
    made = model(log_density, **parameters)
    return made.log_density(np.zeros(made.param_unc_num()))


def fill(b):
    mu = np.zeros(3)
    for i in range(3):
        mu[i] = b * Y[i]
    return np.sum(mu)


def normal(mu):
    return vm.normal_lpdf(Y, mu, 1.0)


LOST_NUMBER = "a Var cannot become a plain number, its derivative would be lost:"
LOST_ARRAY = LOST_NUMBER.replace("number", "array")
# What is written, and how the message begins.
MISTAKES = [
    # names
    (lambda: vm.norm_lpdf(Y, 0.0, 1.0), AttributeError,
     "module 'varmat' has no attribute 'norm_lpdf'. Did you mean normal_lpdf"),
    (lambda: vm.bernouli_lpmf(1, 0.5), AttributeError,
     "module 'varmat' has no attribute 'bernouli_lpmf'. Did you mean bernoulli_lpmf"),
    (lambda: vm.Normal(0.0, 1.0), AttributeError,
     "module 'varmat' has no attribute 'Normal'. Did you mean varmat.distributions.Normal?"),
    (lambda: vm.multi_normal_lpdf.pointwise, AttributeError,
     "multi_normal_lpdf has no pointwise, because its observations are not numbers"),
    (lambda: vm.gradiant(np.sum), AttributeError,
     "module 'varmat' has no attribute 'gradiant'. Did you mean gradient"),
    (lambda: vm.cholesky_decomp(X), AttributeError,
     "module 'varmat' has no attribute 'cholesky_decomp'. Did you mean cholesky_decompose"),
    (lambda: vm.normal_lpdf(Y, mu=0.0, sd=1.0), TypeError,
     "normal_lpdf: missing a required argument: 'sigma'; the signature is normal_lpdf(y, mu,"),
    # derivatives that would be lost
    (lambda: vm.gradient(fill, 1.0), TypeError,
     f"{LOST_NUMBER} make the array that is written into with np.zeros_like(variable, shape=...)"),
    (lambda: vm.gradient(lambda b: np.sum(np.array([b, 2.0 * b])), 1.0), TypeError,
     f"{LOST_ARRAY} use np.stack([...])"),
    (lambda: vm.gradient(lambda x: math.exp(x), 1.0), TypeError,
     f"{LOST_NUMBER} use NumPy's function instead of math's (np.exp, not math.exp)"),
    (lambda: vm.gradient(lambda x: float(x) ** 2, 1.0), TypeError, LOST_NUMBER),
    (lambda: vm.gradient(lambda m: np.sum(scipy.stats.norm.logpdf(Y, m, 1.0)), 0.0), TypeError,
     f"{LOST_ARRAY} SciPy's function takes plain numbers alone: use the varmat function"),
    # shapes and kinds
    (lambda: vm.gradient(lambda x: 2.0 * x, np.ones(3)), vm.ShapeError,
     "gradient: the result has shape (3,), but must be a scalar: sum it"),
    (lambda: at_zero(lambda b: vm.normal_lpdf(Y, X @ b, 1.0), b=vm.real(3)), vm.ShapeError,
     "matmul: b has shape (3,), but must have 2 rows, because a has shape (3, 2)!"),
    (lambda: vm.normal_lpdf(["a", "b"], 0.0, 1.0), TypeError,
     "normal_lpdf: y has dtype <U1, but must be real numbers"),
    # models
    (lambda: at_zero(lambda mu: -((Y - mu) ** 2)), vm.ShapeError,
     "log_density: the result has shape (3,), but must be a scalar: sum it"),
    (lambda: at_zero(lambda muu: vm.normal_lpdf(Y, muu, 1.0)), TypeError,
     "Model: the log density takes 'muu', but must take parameters and data: mu! Did you"),
    (lambda: model(normal, mu=vm.real), TypeError,
     "Model: mu is the function varmat.real, but must be what it returns: varmat.real()!"),
    (lambda: model(normal).optimize({"mo": 1.0}), TypeError,
     "initial_point: the dict has mo, but must have the parameters mu!"),
    (lambda: model(lambda s: vm.exponential_lpdf(s, 1.0), s=vm.positive()).optimize({"s": -1.0}),
     vm.DomainError, "initial_point: s: positive_free: Positive variable is -1.0, but must"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "kind", "beginning"), MISTAKES, ids=[text[:40] for *_, text in MISTAKES]
)
def test_what_a_mistake_says(write, kind, beginning):
    with pytest.raises(kind) as raised:
        write()
    assert str(raised.value).startswith(beginning)
