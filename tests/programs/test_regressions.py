"""Regressions with long matrices: products with a matrix, and densities of linear models, by the
interpreter and by every runner.
"""

import numpy as np
import pytest
from comparing import near
from recordings import agree

import varmat as vm
from varmat.programs.ir.interpret import interpret

ROWS, COLUMNS = 203, 3
RNG = np.random.default_rng(5)
X = RNG.normal(size=(ROWS, COLUMNS))
WIDE = RNG.normal(size=(ROWS, COLUMNS + 4))
Y = RNG.normal(size=ROWS)
COUNTS = RNG.poisson(2.0, size=ROWS)
BITS = COUNTS > 2
TWELVE = 1e-12
A, B = np.array([0.3, -0.8, 1.1, 0.4]), np.array([-0.6, 0.5, 0.2, 0.1])


def squares(eta):
    return -0.5 * np.sum((Y - eta) ** 2)


@pytest.mark.parametrize("f", [
    lambda x: squares(X @ x[:3] + x[3]),
    lambda x: squares(x[:3] @ np.asfortranarray(X.T)),
    lambda x: squares(np.asfortranarray(X) @ x[:3]),
    lambda x: squares(WIDE[:, 2:5] @ x[:3]),
    lambda x: squares(WIDE.T[2:5].T @ x[:3]),
    lambda x: squares(np.ones((ROWS, 1)) @ x[:1]),
    lambda x: squares((WIDE[:, :3] * x[3]) @ x[:3]),
    lambda x: squares(X @ x[:3]) + np.max(X @ x[:3]) * x[3],
    lambda x: vm.normal_lpdf(Y, X @ x[:3], np.exp(x[3])),
], ids=["rows", "columns", "columns in one piece", "part of a matrix", "part of a transpose",
        "one column", "computed", "read elsewhere", "density"])  # fmt: skip
def test_products_with_a_long_matrix(f):
    recorded = agree(f, (A,), (B,), rtol=TWELVE)
    near(interpret(recorded.program, B), vm.value_and_grad(f)(B), 1e-13)


def test_a_matrix_that_is_an_argument():
    agree(lambda x, b: squares(x @ b), (X, A[:3]), (2.0 * X, B[:3]), argnums=(0, 1), rtol=TWELVE)


def test_long_arrays_without_a_matrix():
    y = np.linspace(0.0, 1.0, 400_000)
    agree(lambda x: np.sum(np.sin(y * x[0])), (A,), (B,), rtol=1e-11)


SIGMA = np.exp(0.3)
REGRESSIONS = {
    "normal": lambda x: vm.normal_id_glm_lpdf(Y, X, x[3], x[:3], SIGMA),
    "normal, scale": lambda x: vm.normal_id_glm_lpdf(Y, X, 0.0, x[:3], np.exp(x[3])),
    "bernoulli": lambda x: vm.bernoulli_logit_glm_lpmf(BITS, X, x[3], x[:3]),
    "poisson": lambda x: vm.poisson_log_glm_lpmf(COUNTS, X, x[3], x[:3]),
    "binomial": lambda x: vm.binomial_logit_glm_lpmf(COUNTS, 12, X, x[3], x[:3]),
    "negative binomial": lambda x: vm.neg_binomial_2_log_glm_lpmf(
        COUNTS, X, 0.5, x[:3], np.exp(x[3])
    ),
    "ordered": lambda x: vm.ordered_logistic_glm_lpmf(1 + BITS, X, x[:3], x[3:]),
}


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_do_not_call_python(name):
    recorded = agree(REGRESSIONS[name], (A,), (B,), rtol=TWELVE)
    assert recorded.program.counts()["matmul"] >= 2
    assert not recorded.program.python_steps()
