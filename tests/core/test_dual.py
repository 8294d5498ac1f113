"""Dual numbers: parts that do not fit each other are refused."""

import copy

import numpy as np
import pytest
from comparing import refuses

import varmat as vm

VECTOR = np.array([1.0, 2.0, 3.0])


def dual(*directions):
    return vm.Dual(VECTOR, np.ones((*directions, 3)))


def assigned(x, source):
    x[:] = source


@pytest.mark.parametrize(("use", "message"), [
    (lambda: vm.Dual(VECTOR, 1.0),
     r"Dual: tan has shape \(\), but must have the shape of val, \(3,\), or one more leading axis"),
    (lambda: vm.Dual(1.0, np.ones((2, 3))),
     r"Dual: tan has shape \(2, 3\), but must have the shape of val, \(\)"),
    (lambda: vm.Dual(vm.var(VECTOR), np.ones((2, 2, 3))),
     r"Dual: tan has shape \(2, 2, 3\), but must have"),
    (lambda: dual() * dual(2), r"multiply: duals with \['2', 'None'\] directions meet"),
    (lambda: np.linalg.norm(dual(2) + dual(3)), r"add: duals with \['2', '3'\] directions meet"),
    (lambda: assigned(dual(2), dual()),
     "setitem: a dual with None directions cannot be assigned into one with 2"),
    (lambda: assigned(dual(), dual(3)),
     "setitem: a dual with 3 directions cannot be assigned into one with None"),
])  # fmt: skip
def test_parts_that_do_not_fit(use, message):
    refuses(vm.ShapeError, f"^{message}", use)


def test_text_and_refusals_of_duals():
    x = vm.Dual(2.0, 1.0)
    assert repr(x) == "Dual(2.0, 1.0)"
    assert copy.deepcopy(x.level) is x.level

    def deeper(t):
        """Write something that depends on the inner derivative into an array of the outer one."""
        a = t * VECTOR
        return vm.jvp(lambda s: assigned(a, s * t), (1.0,), (1.0,))

    with pytest.raises(TypeError, match="has derivatives that the array has no place for"):
        vm.jvp(deeper, (1.0,), (1.0,))
