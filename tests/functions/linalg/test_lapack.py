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
    (0, 3, 3), (2, 70, 70),
]  # fmt: skip
SHAPES += [(2, 256, 256)]
COLUMNS = [
    (0, 0), (3, 0), (3, 1), (3, 2), (64, 1), (70, 1), (70, 5), (130, 130), (2, 3, 1), (2, 70, 2),
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


@pytest.mark.parametrize("above", [np.inf, np.nan])
def test_elements_above_the_diagonal_do_not_matter(above):
    x = np.where(np.tri(70, dtype=bool), 1.0, above)
    equal(triangles.tril(x), np.tri(70))


@pytest.mark.parametrize("shape", COLUMNS)
@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_outer_products(shape, factor):
    x, y = RNG.normal(size=shape), RNG.normal(size=shape)
    expected = factor * (x @ y.mT)
    for x_, y_ in (
        (x, y),
        (np.asfortranarray(x), np.asfortranarray(y)),
        (x, np.repeat(y, 2, axis=-1)[..., ::2]),
    ):
        for found, exact in (
            (lapack.outer(x_, y_, factor), expected),
            (lapack.folded_outer(x_, y_, factor), folded(expected)),
            (lapack.lower_outer(x_, y_, factor), np.tril(expected)),
        ):
            close(found, exact, 1e-13, 1e-13)


@pytest.mark.parametrize("n", [0, 1, 3, 64, 70])
@pytest.mark.parametrize("factor", [1.0, -2.0])
def test_outer_products_of_vectors(n, factor):
    x, y = RNG.normal(size=n), RNG.normal(size=2 * n)[::-2]
    expected = factor * x[:, None] * y
    for found, exact in (
        (lapack.outer(x, y, factor), expected),
        (lapack.folded_outer(x, y, factor), folded(expected)),
        (lapack.lower_outer(x, y, factor), np.tril(expected)),
    ):
        assert found.base is None
        assert found.flags.c_contiguous
        close(found, exact, 1e-15, 1e-15)
    equal(lapack.outer(x, y[:1], factor), factor * x[:, None] * y[:1])


@pytest.mark.parametrize("n", [1, 3, 63, 64, 65, 130])
@pytest.mark.parametrize("columns", [None, 0, 1, 5, 200])
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


def test_no_inverse_of_many_small_triangles():
    with np.errstate(all="raise"):
        x = lapack.triangular_solve(np.zeros((9, 2, 2)), np.ones((9, 2, 1)), lower=True)
    assert not np.isfinite(x).any()


def test_logarithms_of_the_diagonal():
    x = np.abs(RNG.normal(size=(2, 3, 5, 5))) + 0.1
    close(lapack.log_diagonal(x), np.log(np.einsum("...ii->...i", x)).sum(axis=-1), 1e-14)
    close(lapack.log_diagonal(x[0, 0]), lapack.log_diagonal(x)[0, 0], 1e-14)
    assert lapack.log_diagonal(np.empty((0, 0))) == 0.0


@pytest.mark.parametrize("n", [2, 64, 70, 256])
def test_symmetric_of_any_size(n):
    """The check of symmetry neither refuses nor warns if squares of elements overflow."""
    a = np.full((n, n), 1e200)
    symmetric_arguments.check_symmetric("f", a)
    a[n - 1, 0] = -1e308
    a[0, n - 1] = 1e308
    message = r"f: a\[0, \d+\] is 1e\+308, but must be -1e\+308, as"
    refuses(vm.DomainError, message, symmetric_arguments.check_symmetric, "f", a)
    symmetric_arguments.check_symmetric("f", np.zeros((0, n, n)))
    symmetric_arguments.check_symmetric("f", np.full((2, n, n), 3.0)[..., ::-1, :])


@pytest.mark.parametrize("n", [3, 70, 256])
def test_symmetric_but_not_finite(n):
    for value, place in ((np.inf, (1, 0)), (np.inf, (1, 1)), (np.nan, (n - 1, 0))):
        a = np.eye(n)
        a[place] = a[place[::-1]] = value
        message = r"f: a\[\d+, \d+\] is (inf|nan), but must be finite!"
        refuses(vm.DomainError, message, symmetric_arguments.check_symmetric, "f", a)


def test_many_differences_within_the_tolerance():
    a = np.tril(np.full((80, 80), 0.9e-8), -1) + np.eye(80)
    symmetric_arguments.check_symmetric("f", a)
    a[79, 3] = 1.1e-8
    message = r"f: a\[3, 79\] is 0.0, but must be 1.1e-08, as a\[79, 3\] is"
    refuses(vm.DomainError, message, symmetric_arguments.check_symmetric, "f", a)


@pytest.mark.parametrize(
    "name", ["gp_exp_quad_cov", "gp_exponential_cov", "gp_matern32_cov", "gp_matern52_cov"]
)
def test_a_length_scale_below_every_distance(name):
    """Coincident points have the full variance as covariance, and distinct points have none,
    however short the scale.
    """
    x = np.array([0.0, 1.0, 1.0])
    for scale in (1e-160, 1e-320):
        with np.errstate(over="ignore"):
            found = getattr(vm, name)(x, 2.0, scale)
        equal(found, 4.0 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))


SPD = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
ROWS = np.array([1.0, -2.0, 0.5])
FACTORISED = {
    "solve": lambda a: np.sum(np.linalg.solve(a, ROWS) ** 2),
    "inv": lambda a: np.sum(np.linalg.inv(a) ** 2),
    "det": lambda a: np.linalg.det(a) ** 2,
    "slogdet": lambda a: np.linalg.slogdet(a).logabsdet ** 2,
    "log_determinant": lambda a: vm.log_determinant(a) ** 2,
    "log_determinant_spd": lambda a: vm.log_determinant_spd(a) ** 2,
    "cholesky": lambda a: np.sum(np.linalg.cholesky(a) ** 3),
    "mdivide_left_spd": lambda a: np.sum(vm.mdivide_left_spd(a, ROWS) ** 2),
    "inverse_spd": lambda a: np.sum(vm.inverse_spd(a) ** 2),
    "lstsq": lambda a: np.sum(np.linalg.lstsq(a, ROWS)[0] ** 2),
    "svd": lambda a: np.sum(np.linalg.svdvals(a) ** 3),
    "multi_normal_lpdf": lambda a: vm.multi_normal_lpdf(ROWS, 0.0, a),
    "multi_normal_prec_lpdf": lambda a: vm.multi_normal_prec_lpdf(ROWS, 0.0, a),
    "multi_student_t_lpdf": lambda a: vm.multi_student_t_lpdf(ROWS, 4.0, 0.0, a),
    "wishart_lpdf": lambda a: vm.wishart_lpdf(a, 5.0, a),
    "lkj_corr_lpdf": lambda a: vm.lkj_corr_lpdf(
        0.3 * a + np.diag(1.0 - 0.3 * np.diagonal(SPD)), 2.0
    ),
}


@pytest.mark.parametrize(("name", "f"), FACTORISED.items(), ids=FACTORISED)
def test_value_gradient_and_tangent_share_one_factorisation(name, f, monkeypatch):
    counts = []

    def counting(function):
        return lambda *args, **named: counts.append(function) or function(*args, **named)

    module, routine = (np.linalg, "svd") if name in ("lstsq", "svd") else (lapack, "_factorised")
    monkeypatch.setattr(module, routine, counting(getattr(module, routine)))
    t = SPD @ SPD
    for functional in (
        vm.gradient,
        lambda f, a: vm.jvp(f, (a,), (t,)),
        lambda f, a: vm.hessian_times_vector(f, a, t),
    ):
        counts.clear()
        functional(f, SPD)
        assert len(counts) == (2 if name == "wishart_lpdf" else 1), counts
