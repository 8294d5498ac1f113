"""The triangles and products of plain arrays that the rules of linear algebra share, against plain
NumPy.
"""

import itertools

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.functions.linalg import lapack, symmetric_arguments, triangles

RNG = np.random.default_rng(4)
# Sizes around that of a block, where the algorithm changes, and stacks.
SHAPES = [
    (0, 0), (1, 1), (3, 3), (64, 64), (65, 65), (130, 130), (256, 256), (2, 3, 3), (2, 0, 0),
    (0, 3, 3), (2, 70, 70), (2, 256, 256),
]  # fmt: skip


def folded(c):
    return np.tril(c + c.mT) - np.eye(c.shape[-1]) * c


@pytest.mark.parametrize("shape", SHAPES)
def test_triangles_and_transposes(shape):
    x = RNG.normal(size=shape)
    lower = np.tril(x)
    for k in (0, -1):
        equal(triangles.tril(x, k), np.tril(x, k))
        equal(triangles.clear_above(x.copy(), k), np.tril(x, k))
    for given in (lower, x):
        equal(triangles.mirrored(given.copy()), lower + np.tril(x, -1).mT)
    close(symmetric_arguments.to_triangle(x), folded(x), 1e-15, 1e-15)
    close(symmetric_arguments.to_triangle(x, lower=False), folded(x).mT, 1e-15, 1e-15)
    factor = RNG.normal(size=shape[:-2]) if len(shape) > 2 else 3.0
    r = triangles.transposed(x, factor)
    assert r.flags.c_contiguous
    equal(r, x.mT * np.asarray(factor)[..., None, None])


def test_gaps_between_rows_that_share_places_in_the_cache():
    for x in (np.ones((2, 64, 256)), RNG.normal(size=(512, 512))[64:128, :30]):
        spread = triangles.gapped(x)
        assert spread.strides[-2] % triangles.GAP
        equal(spread, x)
    for x in (np.ones((64, 255)), np.ones((64, 128))):
        assert triangles.gapped(x) is x


@pytest.mark.parametrize("n", [1, 64, 130])
@pytest.mark.parametrize("columns", [None, 0, 5])
def test_solves_on_both_sides_of_a_block(n, columns):
    """The operands have all kinds of layouts. The result is a new array in C order."""
    a = np.eye(n) + RNG.normal(size=(n, n)) / (4.0 * n)
    b = RNG.normal(size=n if columns is None else (n, columns))
    spd, vector = a @ a.T, columns is None
    for b_ in (b, np.asfortranarray(b), np.repeat(b, 2, axis=0)[::2], b[::-1][::-1]):
        for layout in (
            np.ascontiguousarray,
            np.asfortranarray,
            lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        ):
            lu, factor = lapack.lu_factor(layout(a)), lapack.cholesky_factor("f", layout(spd))
            assert lu is not None
            assert lu.lu.flags.c_contiguous
            assert factor.flags.c_contiguous
            for found, matrix in (
                (lapack.lu_solve(lu, b_, vector), a),
                (lapack.lu_solve(lu, b_, vector, trans=True), a.T),
                (lapack.cholesky_solve(factor, b_, vector), spd),
                (lapack.triangular_solve(layout(a), b_, True, vector=vector), np.tril(a)),
                (lapack.triangular_solve(layout(a), b_, False, trans=True, vector=vector),
                 np.triu(a).T),
            ):  # fmt: skip
                assert found.shape == b.shape
                assert found.flags.c_contiguous
                close(matrix @ found, b, 0.0, 1e-12)


@pytest.mark.parametrize(
    ("stack", "of_b"), [((30,), (30,)), ((4, 6), (6,)), ((20,), (3, 1)), ((2,), (2,)), ((30,), ())]
)
@pytest.mark.parametrize("n", [1, 2, 3, 15, 16])
@pytest.mark.parametrize("unit", [False, True])
def test_many_triangular_systems(stack, of_b, n, unit):
    """The other triangle is not read, nor is the diagonal if it is taken to be one."""
    a = RNG.normal(size=(*stack, n, n)) / n + 2.0 * np.eye(n)
    for lower, trans, right in itertools.product((True, False), repeat=3):
        matrix = np.tril(a) if lower else np.triu(a)
        given = np.where(matrix == 0.0, np.nan, a)
        if unit:
            matrix[..., range(n), range(n)] = 1.0
            given[..., range(n), range(n)] = np.nan
        matrix = matrix.mT if trans else matrix
        b = RNG.normal(size=(*of_b, 5, n) if right else (*of_b, n, 5))
        x = lapack.triangular_solve(given, b, lower, trans, unit, right=right)
        assert x.flags.c_contiguous
        close(x @ matrix if right else matrix @ x, np.broadcast_to(b, x.shape), 0.0, 1e-12)
        if not right:
            x = lapack.triangular_solve(given, b[..., 0], lower, trans, unit, vector=True)
            assert x.flags.c_contiguous
            close((matrix @ x[..., None])[..., 0], np.broadcast_to(b[..., 0], x.shape), 0.0, 1e-12)


@pytest.mark.parametrize("n", [2, 64, 70, 256])
def test_symmetric_of_any_size(n):
    """The check of symmetry neither refuses nor warns if squares of elements overflow."""
    check = symmetric_arguments.check_symmetric
    a = np.full((n, n), 1e200)
    check("f", a)
    a[n - 1, 0] = -1e308
    a[0, n - 1] = 1e308
    refuses(
        vm.DomainError, rf"f: a\[0, {n - 1}\] is 1e\+308, but must be -1e\+308, as", check, "f", a
    )
    check("f", np.zeros((0, n, n)))
    check("f", np.full((2, n, n), 3.0)[..., ::-1, :])
    for value, place in ((np.inf, (1, 0)), (np.inf, (1, 1)), (np.nan, (n - 1, 0))):
        a = np.eye(n)
        a[place] = a[place[::-1]] = value
        refuses(
            vm.DomainError, r"f: a\[\d+, \d+\] is (inf|nan), but must be finite!", check, "f", a
        )


def test_many_differences_within_the_tolerance():
    a = np.tril(np.full((80, 80), 0.9e-8), -1) + np.eye(80)
    symmetric_arguments.check_symmetric("f", a)
    a[79, 3] = 1.1e-8
    message = r"f: a\[3, 79\] is 0.0, but must be 1.1e-08, as a\[79, 3\] is"
    refuses(vm.DomainError, message, symmetric_arguments.check_symmetric, "f", a)
