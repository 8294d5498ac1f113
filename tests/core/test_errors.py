"""Errors: their texts, and what happens when one is raised."""

import pickle

import numpy as np
import pytest
from comparing import refuses
from kinds import KINDS, PLAIN
from recordings import in_threads

import varmat as vm
from varmat.core import errors
from varmat.core.elementwise import ROWS

VECTOR, SHORT, MATRIX, SQUARE = (
    np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6]), np.full((2, 3), 0.5), np.eye(3),
)  # fmt: skip


def test_refusals_are_pickled():
    for kind in (vm.DomainError, vm.ShapeError):
        assert str(pickle.loads(pickle.dumps(kind("det: a is wrong")))) == "det: a is wrong"


@pytest.mark.parametrize("kind", ["VarMat", "MatVar", "Dual"])
def test_operands_that_do_not_broadcast(kind):
    x, y = KINDS[kind](PLAIN), KINDS[kind](SHORT)
    for f in (ROWS["multiply"], np.arctan2, vm.lchoose):
        message = r": operands have shapes \(2, 3\) and \(2,\), but must broadcast!$"
        for a, b in ((x, y), (x, SHORT), (PLAIN, y)):
            refuses(vm.ShapeError, f"^{getattr(f, 'name', f.__name__)}{message}", f, a, b)
    message = r"^fma: operands have shapes \(2, 3\) and \(2,\) and \(\), but must broadcast!$"
    refuses(vm.ShapeError, message, vm.fma, x, SHORT, 1.0)


def test_a_thread_counts_its_own_refusals():
    """A function that catches a refusal goes on in a way that holds at this point alone."""
    before = errors.refusals.of_values
    in_threads(lambda _: vm.DomainError("f: x is -1.0, but must be positive!"), [0])
    assert errors.refusals.of_values == before
    vm.DataError("f: y is -1.0, but must be positive!")
    assert errors.refusals.of_values == before + 1
    assert (vm.DomainError.is_recoverable, vm.DataError.is_recoverable) == (True, False)
