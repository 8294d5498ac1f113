"""Products, factorisations and solves of small matrices in native code."""

import numpy as np
import pytest
from comparing import close
from layouts import returning, run_all, with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.kernels.matrices import CHOLESKY, SolveTriangular
from varmat.programs.run import has_native, runner_for

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")


@pytest.mark.parametrize("n", [1, 5, 16, 17])
def test_a_matrix_without_a_factor_gives_nan(n):
    builder, a = with_arguments((n, n))
    for pivot in (0.0, -1.0):
        given = np.diag([*np.ones(n - 1), pivot])
        with np.errstate(all="ignore"):
            found = run_all(returning(builder, builder.call(CHOLESKY, a)), given)
        assert all(np.isnan(x).all() for (x,) in found.values())


@pytest.mark.parametrize("n", range(1, 17))
def test_matrices_of_every_small_size(n):
    """Factors, solves with one and several columns, and products, of matrices in any order."""
    rng = np.random.default_rng(n)
    a, x = rng.normal(size=(n, n)), rng.normal(size=(n, 3))
    spd = a @ a.T + np.eye(n)
    builder = Builder()
    matrices = [builder.argument((n, n)) for _ in range(2)]
    column, b = builder.argument((n,)), builder.argument((n, 3))
    whole = builder.transposed(matrices[0])
    factor = builder.call(CHOLESKY, whole)
    values = [
        factor,
        *(builder.call(SolveTriangular(t), factor, v) for t in (False, True) for v in (column, b)),
        *(builder.matmul(y, z) for y in (matrices[1], builder.transposed(matrices[1]))
          for z in (whole, b, column)),
    ]  # fmt: skip
    runner = runner_for(builder.program([builder.constant(0.0), *values]), "native")
    lower = np.linalg.cholesky(spd)
    expected = [
        lower,
        *(np.linalg.solve(m, v) for m in (lower, lower.T) for v in (x[:, 0], x)),
        *(y @ z for y in (a, a.T) for z in (spd, x, x[:, 0])),
    ]
    for made, true in zip(runner([spd.T, a, x[:, 0].copy(), x])[1:], expected, strict=True):
        close(made, true, 1e-11, 1e-12)
