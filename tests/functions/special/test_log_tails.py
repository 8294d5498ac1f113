"""Logarithms of incomplete functions: numbers beside arrays, and the quick ways to compute them."""

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import log_betaincc

import varmat as vm
from varmat.functions.special import log_incomplete

GAMMAS = [
    (2.5, np.array([0.1, 3.0, 900.0])),
    (np.array([0.4, 12.0, 45.0]), 7.0),
    (60.0, np.array([2.0, 61.0])),
]
BETAS = [
    (2.5, 3.0, np.array([0.1, 0.99, 1e-300])), (np.array([0.4, 12.0, 45.0]), 2.0, 0.3),
     (30.0, np.array([0.5, 30.0]), 0.7),
    (2.0, np.array([1.0, 3.0]), 1.0), (np.array([1.0, 3.0]), 2.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("shapes", [
    (0.0878, 39.3, 2e-12), (26.2, 132.8, 0.187), (0.5, 50.0, 0.02), (3.0, 1e5, 1e-5),
    (0.3, 400.0, 1e-9), (2.0, 3.0, 0.8),
])  # fmt: skip
def test_the_complement_keeps_its_digits(shapes):
    """It keeps them even if 1 minus the argument has lost some, and in an array whose elements are
    computed in different ways.
    """
    with mpmath.workdps(50):
        true = float(log_betaincc(*map(mpmath.mpf, shapes)))
    close(vm.log_betaincc(*shapes), true, 2e-12)
    several = vm.log_betaincc(
        *(np.array([x, y]) for x, y in zip(shapes, (0.7, 2.0, 0.4), strict=True))
    )
    close(several[0], true, 2e-12)


@pytest.mark.parametrize("name", ["log_gammainc", "log_gammaincc", "log_betainc", "log_betaincc"])
def test_numbers_beside_arrays(name):
    """A part that is computed once for a number equals what is computed for each element."""
    for args in GAMMAS if "gamma" in name else BETAS:
        full = np.broadcast_arrays(*args)
        for function, given, whole in (
            (getattr(vm, name), args, full),
            (getattr(log_incomplete, f"{name}_derivative"), (1.0, *args), (1.0, *full)),
        ):
            each = [
                function(*(float(v[i]) if np.ndim(v) else v for v in whole))
                for i in range(full[0].size)
            ]
            for found in (function(*given), function(*whole)):
                np.testing.assert_allclose(found, each, rtol=1e-13, err_msg=f"{name}{args}")
