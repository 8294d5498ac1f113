"""Reductions: values and gradients of Stan Math, and the conventions in which varmat differs from
Stan.
"""

import math

import numpy as np
import pytest
import stan
from comparing import refuses

import varmat as vm

NUMPY = {
    "cumulative_sum": np.cumsum, "max": np.max, "mean": np.mean, "min": np.min, "prod": np.prod,
    "sum": np.sum,
}  # fmt: skip
THIRD, NAN = 1.0 / 3.0, math.nan
# Our value and gradient for entries with another convention. We treat nan as NumPy does, share the
# derivative among ties, take the smallest subgradient of a norm at the origin, and take the limit
# for sums of exponentials at infinity.
DIFFERENT = {
    "log_sum_exp#13": (math.inf, [0.0, 1.0, 0.0]), "max#5": (NAN, [0.0, 1.0, 0.0]),
    "max#11": (2.0, [THIRD, THIRD, THIRD]),        "min#4": (2.0, [THIRD, THIRD, THIRD]),
    "min#5": (NAN, [0.0, 1.0, 0.0]),               "min#7": (0.0, [0.5, 0.0, 0.5]),
    "min#11": (2.0, [THIRD, THIRD, THIRD]),        "min#12": (NAN, [0.0, 1.0, 0.0]),
    "norm2#2": (0.0, [0.0, 0.0]),
}  # fmt: skip
# The maximum of an empty array is -inf in Stan and an error in NumPy.
EMPTY = "max#10"


def named(entry):
    return NUMPY.get(entry["function"]) or getattr(vm, entry["function"])


def selected(pick):
    return [parameter for parameter in stan.entries("stan_reductions") if pick(parameter.id)]


@pytest.mark.parametrize("entry", selected(lambda name: name not in {*DIFFERENT, EMPTY}))
def test_against_stan(entry):
    # At +-1000 Stan's gradient of log_sum_exp is off by 1.2e-14. Ours agrees with 50 digits.
    stan.check(named(entry), entry, rtol=1.3e-14)


@pytest.mark.parametrize("entry", selected(DIFFERENT.__contains__))
def test_conventions(entry):
    value, gradient = DIFFERENT[entry["id"]]
    stan.check(
        named(entry),
        entry | {"output": value, "args": [[entry["args"][0][0], gradient]]},
        rtol=1e-15,
    )
    refuses(AssertionError, "disagree", lambda: stan.check(named(entry), entry, rtol=1e-3))


@pytest.mark.parametrize(
    "entry", selected(EMPTY.__eq__) + stan.entries("stan_reductions", throws=True)
)
def test_nothing_to_reduce(entry):
    x = vm.var(np.empty(0))
    if entry["function"] == "mean":  # the mean of an empty array is nan, as in NumPy
        with np.errstate(invalid="ignore"):
            assert math.isnan(vm.value(np.mean(x)))
        return
    message = rf"{entry['function']}: . has shape \(0,\), but must not be empty"
    refuses(vm.ShapeError, message, lambda: named(entry)(x))
