"""The vector of a model: the way from values to it, and bounds that depend on other parameters."""

import numpy as np
import pytest
from comparing import equal, refuses
from models.schools import SCHOOLS, Y

import varmat as vm


def test_from_values_to_the_vector():
    values = {"theta_trans": list(range(8)), "mu": 2, "tau": 3.0}
    expected = np.append(np.arange(8.0), [2.0, np.log(3.0)])
    equal(SCHOOLS.param_unconstrain(values), expected)
    equal(SCHOOLS.param_unconstrain([*range(8), 2, 3]), expected)
    equal(SCHOOLS.initial_point(values), expected)


@pytest.mark.parametrize(("values", "error", "message"), [
    ({"mu": 1.0, "tau": 1.0}, TypeError,
     r"the dict has no theta_trans, but must have the parameters theta_trans, mu"),
    ({"theta_trans": Y, "mu": 1.0, "tau": 1.0, "x": 1}, TypeError,
     r"param_unconstrain: the dict has x, but must have"),
    ({"theta_trans": Y[:3], "mu": 1.0, "tau": 1.0}, vm.ShapeError,
     r"theta_trans has shape \(3,\), but must have shape \(8,\)"),
    ({"theta_trans": Y, "mu": 1.0, "tau": -1.0}, vm.DomainError,
     r"tau: positive_free: .* is -1.0, but must be positive!"),
    ({"theta_trans": Y, "mu": "a", "tau": 1.0}, TypeError, r"param_unconstrain: mu has dtype"),
    (np.ones(3), vm.ShapeError,
     r"param_unconstrain: values has shape \(3,\), but must have shape \(10,\)!"),
])  # fmt: skip
def test_values_are_refused(values, error, message):
    refuses(error, message, lambda: SCHOOLS.param_unconstrain(values))


def zero(**_):
    return 0.0


@pytest.mark.parametrize(("make", "name", "known"), [
    (lambda: vm.Model(zero, a=vm.real(), b=vm.lower(lambda c: c), data={"y": 1.0}), "c", "a, y!"),
    (lambda: vm.Model(zero, b=vm.lower(lambda a: a), a=vm.real()), "a", "there are none!"),
    # A default does not help, because the name is that of a later parameter.
    (lambda: vm.Model(zero, a=vm.real(), b=vm.lower(lambda a, c=0.0: a + c), c=vm.real()), "c",
     "a!"),
])  # fmt: skip
def test_bounds_of_what_is_not_known_are_refused(make, name, known):
    message = rf"Model: a bound of b is a function of '{name}', but must be one of .*: {known}"
    refuses(TypeError, message, make)
