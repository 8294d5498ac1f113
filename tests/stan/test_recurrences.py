"""Loops of Stan programs that hand numbers on, as one scan of a recording."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from recordings import as_eager

import varmat as vm

LOOPS = {
    "assigned twice":
        "vector[T] x = e; for (t in 2:T) { x[t] = a * x[t - 1]; x[t] += e[t] * x[t - 1]; }",
    "initial element":
        "vector[T] x = e; for (t in 4:T) x[t] = x[t] * a + x[t - 3] - x[t - 1] * b;",
    "two arrays": ("vector[T] x = e; array[T] real z = rep_array(a, T); for (t in 3:T) { "
        "x[t] = a * z[t - 1] + e[t]; z[t] = tanh(x[t] + z[t - 2] * x[t - 1]); }"),
    "branch":
        "vector[T] x = e; for (t in 2:T) if (x[t - 1] > 0) x[t] = a * x[t - 1]; else x[t] += b;",
    "undefined elements": ("vector[T] x = e; vector[T] z; for (t in 2:T) { "
        "z[t] = a * e[t]; if (t > 2) z[t] += b * z[t - 1]; x[t] = z[t]; }"),
    "number and array": ("vector[T] x = e; real s = a; for (t in 2:T) { "
        "s = 0.5 * s + x[t - 1]; x[t] = b * s + e[t]; target += sin(x[t]); }"),
    "data": "vector[T] x = y; for (t in 2:T) { x[t] += x[t - 1]; target += b * x[t]; }",
}  # fmt: skip
# These are passes whose equal operations are found again.
PASSES = {
    "other element": "vector[T] x = e; for (t in 1:T - 1) x[t + 1] = a * x[t] + e[t];",
    "several elements": "vector[T] x = e; for (t in 5:T) x[t] = a * sum(x[t - 3:t - 1]) + e[t];",
    "backwards":
        "vector[T] x = e; for (i in 2:T) { int t = T - i + 1; x[t] = a * x[t + 1] + e[t]; }",
    "counts":
        "vector[T] x = e; for (t in 2:T) { x[t] = a * x[t - 1] + e[t]; k[t] ~ poisson_log(x[t]); }",
}  # fmt: skip


@pytest.mark.parametrize("name", [*LOOPS, *PASSES])
def test_recorded_loops_agree_with_their_passes(name: str) -> None:
    loop = (LOOPS | PASSES)[name]
    program = vm.stan.Program(f"""
        data {{ int T; vector[T] y; array[T] int k; }}
        parameters {{ real a; real b; vector[T] e; }}
        model {{ {loop} y ~ normal(x, 1); }}
    """)
    rng = np.random.default_rng(5)
    model: Any = program.model(
        {"T": 60, "y": rng.normal(size=60), "k": rng.integers(0, 5, 60).tolist()}
    )
    form = "one loop, whose body is written once" if name in LOOPS else "operations are in loops"
    assert model.representation().loops[0].endswith(form)
    for _ in range(3):
        q = 0.4 * rng.normal(size=62)
        as_eager(model, q, atol=1e-13)


def test_loops_with_too_few_iterations_after_the_first_elements() -> None:
    program = vm.stan.Program("""
        data { int T; }
        parameters { real a; }
        model {
          vector[T] x = rep_vector(a, T);
          for (t in 4:T) x[t] = x[t - 3] * a;
          target += sum(x);
        }
    """)
    for size in range(3, 30):
        model = program.model({"T": size})
        expected = sum(0.5 ** (1 + i // 3) for i in range(size))
        assert_allclose(model.log_density(np.array([0.5])), expected, rtol=1e-14)
