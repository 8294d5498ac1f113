"""`numpy.einsum` of symbols: views, sums and products of matrices."""

import numpy as np
import pytest
from comparing import refuses
from layouts import X, Y, check_traced, traced

from varmat.programs.build.symbol import UntraceableError

# Functions of a matrix, a vector and a number.
TRACED = {
    "einsum": lambda x, y, s:
        np.einsum("ij,kj->ki", x, x) + np.einsum("ij,ij->", x, x) * np.einsum("ij,j->i", x, y)
        + np.einsum("ij->i", x) + np.einsum("ij,kj,k->i", x, x, y[:2])
        + np.einsum("i,j->ji", y[:2], x[:, 1]) + np.einsum("...i,i->...", x, y)
        + np.einsum("jj->", x[:, :2]) + np.einsum("ij,ij->i", x, 2.0 * x)
        + np.einsum("jj->j", x[:, 1:]),
    "einsum of stacks": lambda x, y, s:
        np.einsum("nij,njk->nik", np.stack([x, x * s]), np.stack([x.T, x.T]))
        + np.einsum("nij,n->ij", np.stack([x[:, :2]] * 2), y[:2]),
    "stacks and one of them": lambda x, y, s: np.einsum("...i,...i->...", np.stack([x] * 3), x * s),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_symbols_do_what_arrays_do(name):
    check_traced(TRACED[name])


@pytest.mark.parametrize(("f", "steps"), [
    (lambda x, y, s: np.einsum("ij->ji", x), []),
    (lambda x, y, s: np.einsum("ii->i", x[:, 1:]), []),
    (lambda x, y, s: np.einsum("ij,kj->ik", x, x), ["matmul"]),
    (lambda x, y, s: np.einsum("ij,j->i", x, y), ["matmul"]),
    (lambda x, y, s: np.einsum("ij,j->ij", x, y), ["multiply"]),
    (lambda x, y, s: np.einsum("ij->j", x), ["add.reduce"]),
    # The product of the vectors comes first, because it is the smallest.
    (lambda x, y, s: np.einsum("ij,i,i->j", x, y[:2], y[1:]), ["matmul", "multiply"]),
])  # fmt: skip
def test_a_contraction_is_as_few_steps_as_can_be(f, steps):
    assert sorted(step.kernel.name for step in check_traced(f).steps) == steps


def test_the_smallest_products_come_first():
    program = check_traced(
        lambda x, y, s: np.einsum("ij,jk,k->i", x, np.stack([y] * 8, axis=1), np.stack([s] * 8))
    )
    made = [step.results[0].shape for step in program.steps if step.kernel.name == "matmul"]
    assert made == [(3,), (2,)]


@pytest.mark.parametrize("f", [
    lambda x, y: np.einsum("ij,j", x, y),
    lambda x, y: np.einsum("ij,j->i", x, y[:1]),
    lambda x, y: np.einsum("ij->i", x, y),
], ids=["no output", "an axis of length one", "one operand too many"])  # fmt: skip
def test_other_contractions_are_refused(f):
    refuses(UntraceableError, None, traced, f, X, Y)
