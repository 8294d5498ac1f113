"""Linear matrix equations: those of Sylvester and Lyapunov, continuous and discrete.

The adjoint of a solution solves the equation with the transposed matrices, so that the Schur
factors of the value serve it too."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.checks import misfit
from varmat.functions.linalg.lapack import MatrixError, check_finite, lapack
from varmat.plain_arrays import scipy_linalg
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_sylvester"]


def check_matrix_of(
    function: str, name: str, x: Operand, shape: tuple[int | None, int | None] = (None, None)
) -> None:
    """Raise unless `x` is a matrix with the numbers of rows and columns of `shape`; None: any."""
    result = np.shape(x)
    if len(result) != 2:
        raise misfit(function, name, result, "be a matrix")
    if any(m is not None and m != n for m, n in zip(shape, result, strict=True)):
        raise misfit(function, name, result, f"have shape {shape}")


def check_one_square(function: str, name: str, x: Operand) -> None:
    """Raise unless `x` is a single square matrix, not a stack."""
    if np.ndim(x) != 2 or np.shape(x)[0] != np.shape(x)[1]:
        raise misfit(function, name, np.shape(x), "be a square matrix")


def schur_factors(function: str, name: str, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the real Schur form of a matrix and its vectors."""
    check_finite(function, a, name)
    if not a.size:
        return a, a
    return scipy_linalg.schur(a, output="real")  # type: ignore[no-any-return]


def _solved(
    factors: Plain, q: np.ndarray, transposed: bool, same: bool = False
) -> tuple[np.ndarray, bool]:
    """Solve ``a x + x b = q`` from the Schur factors of `a` and of ``b.T``, or the equation with
    `a` and `b` transposed.

    With `same` the second factors belong to `b`. Also return whether the eigenvalues had to be
    moved for it."""
    (r, u), (s, v) = factors
    if not q.size:
        return np.zeros(q.shape), False
    y, scale, info = lapack().dtrsyl(
        r,
        s,
        u.T @ q @ v,
        trana="T" if transposed else "N",
        tranb="T" if transposed == same else "N",
    )
    return u @ (y * scale) @ v.T, info != 0


@operation()
@array_valued
def solve_sylvester(a: Plain, b: Plain, q: Plain) -> Saved:
    """Solve the Sylvester equation ``a @ x + x @ b = q``: `scipy.linalg.solve_sylvester`.

    Parameters
    ----------
    a : array_like, shape (m, m)
    b : array_like, shape (n, n)
    q : array_like, shape (m, n)

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If the matrices do not go together.
    DomainError
        If an eigenvalue of `a` is the opposite of one of `b`, or if `a` or `b` is not finite; also
        a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`A^T Z + Z B^T = \\bar X` the adjoints are :math:`\\bar Q = Z`, :math:`\\bar A = -Z
    X^T`, :math:`\\bar B = -X^T Z` [1]_. The Schur factors of the value serve the reverse pass.

    References
    ----------
    .. [1] R. H. Bartels and G. W. Stewart, "Solution of the matrix equation AX + XB = C",
           Communications of the ACM 15, 1972.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a, b = np.diag([1.0, 3.0]), np.diag([1.0, 2.0])
    >>> vm.gradient(lambda q: np.sum(vm.solve_sylvester(a, b, q)), np.ones((2, 2)))
    array([[0.5       , 0.33333333],
           [0.25      , 0.2       ]])
    """
    check_one_square("solve_sylvester", "a", a)
    check_one_square("solve_sylvester", "b", b)
    check_matrix_of("solve_sylvester", "q", q, (a.shape[0], b.shape[0]))
    first, same = (
        schur_factors("solve_sylvester", "a", a),
        a.shape == b.shape and bool((a == b).all()),
    )
    factors = (first, first if same else schur_factors("solve_sylvester", "b", b.T))
    x, moved = _solved(factors, q, False, same)
    if moved:
        raise MatrixError(
            "solve_sylvester: the sum of an eigenvalue of a and an eigenvalue of b is 0, so there "
            "is no unique solution!"
        )
    return Saved(x, factors=factors, same=same)


@solve_sylvester.reverse
def solve_sylvester_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, q: Plain, factors: Plain, same: bool
) -> tuple[Thunk, ...]:
    z = _solved(factors, g, True, same)[0]
    return lambda: -(z @ r.T), lambda: -(r.T @ z), lambda: z


@solve_sylvester.tangent
def solve_sylvester_tangent(r: Result, a: Operand, b: Operand, q: Operand) -> tuple[Linear, ...]:
    return (
        lambda t: -solve_sylvester(a, b, t @ r),
        lambda t: -solve_sylvester(a, b, r @ t),
        lambda t: solve_sylvester(a, b, t),
    )


@operation()
@array_valued
def solve_continuous_lyapunov(a: Plain, q: Plain) -> Saved:
    """Solve the Lyapunov equation ``a @ x + x @ a.T = q``:
    `scipy.linalg.solve_continuous_lyapunov`.

    Parameters
    ----------
    a, q : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If the matrices are not square, or of different size.
    DomainError
        If two eigenvalues of `a` are opposite, or `a` is not finite; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`A^T Z + Z A = \\bar X` the adjoints are :math:`\\bar Q = Z` and :math:`\\bar A = -(Z
    X^T + Z^T X)`. The stationary covariance of the process ``dy = a y dt + dw`` is that with ``q =
    -np.cov(dw)``.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 7.6.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.diag([-1.0, -2.0])
    >>> vm.gradient(lambda a: vm.solve_continuous_lyapunov(a, -np.eye(2))[0, 0], a)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    check_one_square("solve_continuous_lyapunov", "a", a)
    check_matrix_of("solve_continuous_lyapunov", "q", q, a.shape)
    factor = schur_factors("solve_continuous_lyapunov", "a", a)
    x, moved = _solved((factor, factor), q, False)
    if moved:
        raise MatrixError(
            "solve_continuous_lyapunov: the sum of two eigenvalues of a is 0, so there is no "
            "unique solution!"
        )
    return Saved(x, factor=factor)


@solve_continuous_lyapunov.reverse
def solve_continuous_lyapunov_reverse(
    g: Adjoint, r: Plain, a: Plain, q: Plain, factor: Plain
) -> tuple[Thunk, ...]:
    z = _solved((factor, factor), g, True)[0]
    return lambda: -(z @ r.T + z.T @ r), lambda: z


@solve_continuous_lyapunov.tangent
def solve_continuous_lyapunov_tangent(r: Result, a: Operand, q: Operand) -> tuple[Linear, ...]:
    return (
        lambda t: -solve_continuous_lyapunov(a, t @ r + r @ t.T),
        lambda t: solve_continuous_lyapunov(a, t),
    )


@operation()
@array_valued
def solve_discrete_lyapunov(a: Plain, q: Plain, method: str | None = None) -> Plain:
    """Solve the equation ``x = a @ x @ a.T + q``: `scipy.linalg.solve_discrete_lyapunov`.

    Parameters
    ----------
    a, q : array_like, shape (n, n)
    method : {'direct', 'bilinear'}, optional
        Whether to solve one large linear system, or a continuous equation; by default the former up
        to ``n = 9``.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If the matrices are not square, or of different size.
    DomainError
        If `method` is unknown, or the product of two eigenvalues of `a` is one; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`Z = A^T Z A + \\bar X` the adjoints are :math:`\\bar Q = Z` and :math:`\\bar A = Z A
    X^T + Z^T A X`. It is the stationary covariance of the autoregression ``y[t] = a y[t - 1] +
    e[t]`` with ``q`` that of ``e``.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 7.6.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.solve_discrete_lyapunov(a, np.eye(2))[0, 0], np.diag([0.5, 0.25]))
    array([[1.77777778, 0.        ],
           [0.        , 0.        ]])
    """
    check_one_square("solve_discrete_lyapunov", "a", a)
    check_matrix_of("solve_discrete_lyapunov", "q", q, a.shape)
    if method not in (None, "direct", "bilinear"):
        raise MatrixError(
            f"solve_discrete_lyapunov: method is {method!r}, but must be 'direct' or 'bilinear'!"
        )
    return _discrete(a, q, method)


def _discrete(a: Operand, q: Operand, method: str | None) -> Result:
    if not a.size:
        return np.zeros(a.shape)
    rule = "the product of two eigenvalues of a is one, or something not finite"
    try:
        with np.errstate(all="ignore"):
            x = np.array(scipy_linalg.solve_discrete_lyapunov(a, q, method))
    except (np.linalg.LinAlgError, ValueError):
        raise MatrixError(f"solve_discrete_lyapunov: {rule}!") from None
    if not np.isfinite(x).all():  # SciPy 1.15 does not raise
        raise MatrixError(f"solve_discrete_lyapunov: {rule}!")
    return x


@solve_discrete_lyapunov.reverse
def solve_discrete_lyapunov_reverse(
    g: Adjoint, r: Plain, a: Plain, q: Plain, method: str | None
) -> tuple[Thunk, ...]:
    z = _discrete(a.T, g, method)
    return lambda: z @ a @ r.T + z.T @ a @ r, lambda: z


@solve_discrete_lyapunov.tangent
def solve_discrete_lyapunov_tangent(
    r: Result, a: Operand, q: Operand, method: str | None
) -> tuple[Linear, ...]:
    def of_a(t: Operand) -> Result:
        return solve_discrete_lyapunov(a, t @ r @ a.T + a @ r @ t.T, method=method)

    return of_a, lambda t: solve_discrete_lyapunov(a, t, method=method)
