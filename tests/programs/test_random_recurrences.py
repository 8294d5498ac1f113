"""Random time series models, in Stan and in NumPy, beside derivatives by complex steps."""

import numpy as np
from comparing import near
from random_recurrences import complex_steps, disagreement, kind_disagreement, scalar_disagreement

import varmat as vm
from varmat.programs.record import iterations

SEASONAL = """
data { int n; vector[n] y; matrix[n, 1] x; }
parameters { real<lower=0> s; real mu0; vector[1] b; vector[2] c; }
model {
  vector[n] mu; vector[n] e;
  mu = x * b;
  for (i in 1:n) {
    mu[i] += mu0;
    if (i > 1) mu[i] += e[i - 1] * c[1];
    if (i > 4) mu[i] += e[i - 4] * c[2];
    e[i] = y[i] - mu[i];
  }
  target += normal_lpdf(e | 0, s);
}
"""


def test_parameters_of_one_entry_are_no_carried_values():
    """The entry that makes all parameters, and its second result, have the numbers by which a loop
    knows a value of its own of one iteration before.
    """
    rng = np.random.default_rng(1)
    n, y, x, q = 40, *rng.normal(size=(2, 40)), rng.normal(size=5)

    def log_density(q):
        mu, e = x * q[2] + q[1], np.zeros(n, complex)
        for i in range(n):
            mu[i] += e[i - 1] * q[3] if i > 0 else 0
            mu[i] += e[i - 4] * q[4] if i > 3 else 0
            e[i] = y[i] - mu[i]
        return np.sum(-0.5 * (e / np.exp(q[0])) ** 2 - q[0] - 0.5 * np.log(2 * np.pi)) + q[0]

    model = vm.stan.Program(SEASONAL).model({"n": n, "y": y, "x": x[:, None]})
    found = model.log_density_gradient(q, propto=False)
    near(found, complex_steps(log_density, q), 1e-13)


def test_random_models():
    found = [disagreement(seed) for seed in range(16)]
    assert not "".join(text for text, _ in found)
    # Else it would be step by step evaluation that is tested.
    assert sum(count for _, count in found) > len(found)


def test_random_loops_that_hand_numbers_on():
    found = [scalar_disagreement(seed) for seed in range(8)]
    assert not "".join(text for text, _ in found)
    assert sum(is_scan for _, is_scan in found) > len(found) // 2


def test_random_loops_that_branch_on_data(monkeypatch):
    monkeypatch.setattr(iterations, "LONG", 100)
    # In the last one, products of arrays stand between a loop and what it begins with.
    found = [kind_disagreement(seed) for seed in (0, 1, 3, 8, 285)]
    assert not "".join(text for text, _ in found)
    assert sum(is_found for _, is_found in found) >= 3
