"""Functions of Stan's library in loops, at values where a part of a formula is zero or infinite:
recordings give the derivatives that the functions give by themselves.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from random_loops import refused

import varmat as vm
from varmat.stan import evaluate, loops, types
from varmat.stan.recurrences import Recurrence
from varmat.stan.signatures import names, signatures
from varmat.stan.vectorized import VectorizedLoop

EDGES = (0.0, 1.0, -1.0, 0.5, 40.0, -800.0)
MOST = 18  # points of one function
# At poles, beside which these are defined, and at no edge.
POLES = {"beta", "lbeta", "lchoose"}
NOWHERE = {"lambert_wm1"}
OTHERS = ("_lpmf", "_lupdf", "_cdf", "_lcdf", "_lccdf", "_jacobian", "_rng")
# Functions of vectors, and functions of what saturates. In braces are elements of x.
FORMULAS = """\
log_mix(inv_logit({0}), {1}, {2}); log_mix(softmax(x), x); log_mix(softmax(x), tanh(x));
log_mix(softmax(30 * x), inv_logit(-x)); log_sum_exp(x); log_sum_exp({0}, {1});
sum(softmax(x) .* x); sum(inv_logit(log_softmax(x))); log1m(inv_logit({0})) * {1};
log(inv_logit({0})) + {1}; log1m_exp(log_inv_logit({0}));
lmultiply(inv_logit({0}), inv_logit({1})); log_diff_exp({0}, fmin({0} - 1, {1}));
inv_logit({0})^inv_logit({1}); prod(inv_logit(x)) * {0}; squared_distance(x, x .* x);
dot_self(x); max(x + [0, 0.1, 0.2]') * {0}; min(x - [0, 0.1, 0.2]') + {1};
mean(cumulative_sum(x)); sum(exp(fmin(x, 5)));
normal_lpdf({0} | {1}, exp(fmax(fmin({2}, 5), -5))); bernoulli_lpmf(1 | inv_logit({0}));
bernoulli_lpmf(0 | inv_logit({0})); bernoulli_logit_lpmf(1 | {0});
binomial_lpmf(2 | 2, inv_logit({0})); poisson_log_lpmf(0 | {0});
categorical_lpmf(2 | softmax(x)); categorical_logit_lpmf(2 | x);
beta_lpdf(inv_logit({0}) | 1, 1); neg_binomial_2_log_lpmf(0 | {0}, 2);
poisson_lpmf(0 | inv_logit({0})); lognormal_lpdf(exp(fmin({0}, 5)) | {1}, 1);
(({0} > {1}) ? log({0} - {1}) : {2}); (({0} > {1}) ? sqrt({0} - {1}) : {2});
(({0} > {1}) ? {2} : exp(800 * ({0} - {1})));
((x[i % 3 + 1] > {1}) ? sqrt(x[i % 3 + 1] - {1}) : {2}); (({0} > {1}) ? {2} / ({0} - {1}) : {2})"""


def calls():
    """A call of each function of real numbers, with the elements of a vector as arguments."""
    for name in sorted(names() - POLES - NOWHERE):
        for each in () if name.endswith(OTHERS) else signatures(name):
            count = len(each.arguments)
            if (
                each.result == types.REAL
                and 1 <= count <= 3
                and not each.variadic
                and all(types.REAL in [x.type for x in given] for given in each.arguments)
                and not any(x.data for given in each.arguments for x in given)
            ):
                x = [f"x[{i + 1}]" for i in range(count)]
                bar = " | " if name.endswith("_lpdf") else ", "
                yield f"{name}({bar.join([x[0], ', '.join(x[1:])][:count])})"
                break
    for formula in FORMULAS.replace("\n", " ").split(";"):
        yield formula.strip().format("x[1]", "x[2]", "x[3]")


@pytest.mark.parametrize("is_lowered", [True, False], ids=["statements", "arrays"])
@pytest.mark.parametrize("call", [*calls()])
def test_derivatives_at_edges(call, is_lowered, monkeypatch):
    if is_lowered:
        monkeypatch.setattr(evaluate, "FEW", 0)
        monkeypatch.setattr(loops, "TRACED", -1)
        for kind in (VectorizedLoop, Recurrence):
            monkeypatch.setattr(kind, "of_loop", refused)
    model = vm.stan.Program(
        "data {int N;} parameters {vector[3] x;} model {for (i in 1:N) {"
        f"target += 0.3 * i * {call} + 0.1 * i * x[1];}}}}"
    ).model({"N": 5})
    eager = vm.value_and_grad(model._target)
    count = max((i + 1 for i in range(3) if f"x[{i + 1}]" in call), default=3)
    count = 3 if "x)" in call or "x," in call else count
    compared = 0
    for point in np.random.default_rng(1).permutation([*itertools.product(EDGES, repeat=count)]):
        q = np.array([*point, *[0.25] * (3 - count)])
        try:
            value, gradient = eager(q, True, True)
        except vm.DomainError:
            continue
        if np.isfinite(value):
            found, slopes = model.log_density_gradient(q)
            assert found == pytest.approx(value, rel=1e-11, abs=1e-11), point
            np.testing.assert_allclose(slopes, gradient, 1e-9, 1e-11, err_msg=str(point))
            compared += 1
            if compared == MOST:
                break
    assert compared
