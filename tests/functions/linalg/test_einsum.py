"""Einstein sums."""

import numpy as np
import pytest
from comparing import close, equal
from functions.factors import both, numbers
from functions.matrices import value_and_adjoints

import varmat as vm

EINSUM = {
    "ij,jk->ik": [(2, 3), (3, 2)], "ij , jk": [(2, 3), (3, 2)], "ba": [(2, 3)], "ii": [(3, 3)],
    "ii->i": [(3, 3)], "iij->j": [(2, 2, 3)], "iij,jj->ij": [(2, 2, 3), (3, 3)], "ij->j": [(2, 3)],
    "ij->": [(2, 3)], "i->i": [(3,)], "->": [()], "i,i": [(3,), (3,)], ",ij": [(), (2, 2)],
    "i,ij,j": [(2,), (2, 3), (3,)], "a,b,c->abc": [(2,), (2,), (2,)], "ij,kl->": [(2, 2), (2, 2)],
    "ij,ij->ij": [(1, 3), (2, 3)], "...ij,...jk->...ik": [(2, 2, 3), (3, 2)],
    "...i,...i": [(2, 3), (3,)], "i...->...": [(2, 3)], "...i->i...": [(2, 3, 2)],
    "ij->j#empty": [(0, 3)], "ii,i->i": [(1, 1), (3,)], "iij,i->j": [(1, 1, 2), (3,)],
    "kii,ijj->kj": [(2, 1, 1), (3, 2, 2)],
}  # fmt: skip


@pytest.mark.parametrize("subscripts", EINSUM)
def test_einsum(subscripts):
    both(lambda *a: np.einsum(subscripts.partition("#")[0], *a), *EINSUM[subscripts])


def test_large_einsum():
    a, b, c = numbers(40, 50), numbers(50, 60), numbers(60)
    value, adjoints = value_and_adjoints(lambda *v: np.einsum("ij,jk,k->i", *v), a, b, c)
    close(value, a @ (b @ c), 1e-12)
    close(adjoints, (np.tile(b @ c, (40, 1)), np.outer(a.sum(0), c), a.sum(0) @ b), 1e-11)


@pytest.mark.parametrize("subscripts", ["...i,...i", "...i,i..."])
def test_einsum_with_several_axes_in_an_implied_ellipsis(subscripts):
    a = np.arange(8.0).reshape(2, 2, 2)
    value = vm.value(np.einsum(subscripts, vm.var(a), a))
    equal(value, np.einsum(subscripts, a, a))
