"""Random functions: eager evaluation, every runner and the interpreter give the same values and
gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_functions import random_function

import varmat as vm
from varmat.derivatives.recorded import record
from varmat.testing.routes import runners_of


def check(seed: int, **settings: Any) -> None:
    f = random_function(seed, **settings)
    argnums = tuple(range(len(f.shapes)))
    points, eager = f.points(2), vm.value_and_grad(f, argnums)
    program = record(f, argnums, points[0], {})
    program.verify()
    runners = runners_of(program)
    with np.errstate(all="ignore"):
        for point in points:
            value, gradients = eager(*point)
            np.testing.assert_allclose(
                value,
                f(*map(np.copy, point)),
                rtol=1e-10,
                atol=1e-10,
                err_msg=f"the value by NumPy of {f}",
            )
            for name, run in runners.items():
                found, *made = run(list(point))
                message = f"the {name} runner and the eager pass of {f}"
                np.testing.assert_allclose(found, value, rtol=1e-10, atol=1e-10, err_msg=message)
                for g, expected in zip(made, gradients, strict=True):
                    scale = np.max(np.abs(expected), initial=0.0)
                    np.testing.assert_allclose(
                        g, expected, rtol=1e-9, atol=1e-10 * scale, err_msg=message
                    )


@pytest.mark.parametrize("statements", [3, 8, 15, 30])
@pytest.mark.parametrize("tens", range(4))
def test_small_arrays(statements: int, tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        check(1000 * statements + seed, statements=statements)


@pytest.mark.parametrize("seed", range(12))
def test_large_arrays(seed: int) -> None:
    check(seed, statements=8, large=True)
