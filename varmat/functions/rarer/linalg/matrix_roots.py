"""Square roots, logarithms, powers and signs of a matrix, and functions that are given by functions
of its eigenvalues.
"""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import fixed, in_the_name_of, misfit
from varmat.functions.linalg.lapack import MatrixError, check_finite
from varmat.functions.linalg.matrix_functions import expm, frechet_derivative
from varmat.functions.rarer.linalg.matrix_equations import check_one_square, solve_sylvester
from varmat.plain_arrays import scipy_linalg
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, array_valued

__all__ = ["fractional_matrix_power", "funm", "logm", "signm", "sqrtm"]


# Nodes and weights for integrals between 0 and 1.
_NODES, _WEIGHTS = (
    0.5 * (np.polynomial.legendre.leggauss(16)[0] + 1.0),
    0.5 * np.polynomial.legendre.leggauss(16)[1],
)
# Eigenvectors count as dependent if the ratio of their singular values is larger.
_DEPENDENT = 1e6
# Up to this distance from the identity this many nodes give the logarithm to all digits.
_NEAR = 0.25


def _real(function: str, a: np.ndarray, compute: Function) -> np.ndarray:
    """Compute the value of a function of SciPy; raise if it is complex."""
    check_one_square(function, "a", a)
    check_finite(function, a)
    if not a.size:
        return np.zeros(a.shape)
    try:
        r = compute(a)
    except MatrixError:
        raise
    except np.linalg.LinAlgError as error:
        raise MatrixError(f"{function}: {error}") from None
    if np.iscomplexobj(r):
        raise MatrixError(
            f"{function}: a has an eigenvalue on the negative real axis, so that the result would "
            "be complex!"
        )
    return np.array(r, dtype=float)


def _or_nan(function: Function, *args: Operand) -> np.ndarray:
    """Solve an equation; return nan if it has no solution, because then no derivative exists."""
    try:
        return np.array(function(*args))
    except MatrixError:
        return np.full(np.shape(args[-1]), np.nan)


@operation()
@array_valued
def sqrtm(a: Plain) -> Plain:
    """Compute the principal square root of a matrix: `scipy.linalg.sqrtm`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        A matrix without eigenvalues on the negative real axis.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the root would be complex, or `a` is not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`R = A^{1/2}`, :math:`dA = dR\\, R + R\\, dR`, so the adjoint solves :math:`R^T \\bar
    A + \\bar A R^T = \\bar R` [1]_. It does not exist for a singular matrix: nan.

    References
    ----------
    .. [1] N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 6.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.trace(vm.sqrtm(a)), np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[0.25      , 0.        ],
           [0.        , 0.16666667]])
    """
    return _real("sqrtm", a, _root)


def _root(a: np.ndarray) -> Result:
    r = scipy_linalg.sqrtm(a)
    # SciPy 1.15 gives complex numbers for real roots too, if eigenvalues of `a` are complex.
    if np.iscomplexobj(r) and np.abs(r.imag).max() <= 1e-13 * np.abs(r).max():
        r = r.real
    return r


@sqrtm.reverse
def sqrtm_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    return _or_nan(solve_sylvester, r.T, r.T, g)


@sqrtm.tangent
def sqrtm_tangent(r: Result, a: Operand) -> Linear:
    return lambda t: solve_sylvester(r, r, t)


@operation()
@array_valued
def logm(a: Plain) -> Plain:
    """Compute the principal logarithm of a matrix: `scipy.linalg.logm`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        An invertible matrix without eigenvalues on the negative real axis.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the logarithm would be complex, or `a` is singular or not finite; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    The derivative along a matrix E is the upper right block of the logarithm of ``[[a, E], [0,
    a]]`` [1]_, and the adjoint that of the transposed matrix along the adjoint of the result.

    References
    ----------
    .. [1] N. J. Higham, Functions of Matrices, SIAM, 2008, equation 3.16.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.logm(a)[0, 0], np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    return _real("logm", a, _logarithm)


def _logarithm(a: np.ndarray) -> Result:
    remainder = a - np.eye(a.shape[0])
    if np.abs(remainder).sum(0).max() <= _NEAR:
        # The integral of x (1 + s x)^-1 between 0 and 1: nothing cancels.
        return sum(
            w * np.linalg.solve(np.eye(a.shape[0]) + s * remainder, remainder)
            for s, w in zip(_NODES, _WEIGHTS, strict=True)
        )
    sizes = np.abs(np.linalg.eigvals(a))
    if not sizes.min() > sizes.max() * a.shape[0] * 1e-17:
        raise MatrixError("logm: a is singular, but must be invertible!")
    # SciPy has all digits of matrices whose eigenvalues are around one.
    power = float(np.round(np.mean(np.log2(sizes))))
    return scipy_linalg.logm(a * np.exp2(-power)) + power * np.log(2.0) * np.eye(a.shape[0])


@logm.reverse
def logm_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    if not np.isfinite(g).all():
        return np.full(a.shape, np.nan)
    return np.array(logm_tangent(r.T, a.T)(g))


@logm.tangent
def logm_tangent(r: Result, a: Operand) -> Linear:
    def push(t: Operand) -> Result:
        # A tangent much larger or smaller than the matrix would decide how many roots are taken,
        # and cost digits.
        scale = np.exp2(
            np.round(
                np.log2(
                    np.max(np.abs(fixed(t)), initial=1e-300)
                    / np.max(np.abs(fixed(a)), initial=1e-300)
                )
            )
        )
        return scale * frechet_derivative(logm, a, t / scale)

    return push


@operation()
@array_valued
def signm(a: Plain) -> Plain:
    """Compute the sign of a matrix, with the eigenvalues 1 and -1 in place of those right and left
    of the imaginary axis.

    Parameters
    ----------
    a : array_like, shape (n, n)
        A matrix without eigenvalues on the imaginary axis.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` has an eigenvalue on the imaginary axis, or is not finite; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    `scipy.linalg.signm`. With :math:`N = S A`, the principal root of :math:`A^2`, the derivative
    solves :math:`N\\, dS + dS\\, N = dA - S\\, dA\\, S` [1]_.

    References
    ----------
    .. [1] N. J. Higham, Functions of Matrices, SIAM, 2008, theorem 5.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.signm(a)[0, 1], np.array([[2.0, 0.0], [0.0, -3.0]]))
    array([[0. , 0.4],
           [0. , 0. ]])
    """
    return _real("signm", a, _newton_sign)


def _newton_sign(a: np.ndarray) -> np.ndarray:
    """Newton's iteration ``s = (s + inv(s)) / 2``, scaled by the determinant while it is far from
    the end.
    """
    n, s = a.shape[0], a
    for _ in range(100):
        try:
            inverse = np.linalg.inv(s)
        except np.linalg.LinAlgError:
            break
        scale = np.exp(-np.linalg.slogdet(s)[1] / n)
        step = 0.5 * (scale * s + inverse / scale)
        change = np.abs(step - s).max()
        # from here on it converges without a scale, and to the last digit
        if change <= 1e-2 * np.abs(step).max():
            for _ in range(4):
                step = 0.5 * (step + np.linalg.inv(step))
            if np.abs(step @ step - np.eye(n)).max() < 1e-6:
                return np.array(step)
        s = step
    raise np.linalg.LinAlgError("a has an eigenvalue on the imaginary axis, or too near to it!")


@signm.reverse
def signm_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    n = (r @ a).T
    z = _or_nan(solve_sylvester, n, n, g)
    return z - r.T @ z @ r.T


@signm.tangent
def signm_tangent(r: Result, a: Operand) -> Linear:
    n = r @ a
    return lambda t: solve_sylvester(n, n, t - r @ t @ r)


@array_valued
def fractional_matrix_power(a: Operand, t: Operand) -> Result:
    """Raise a matrix to any real power, the principal one: `scipy.linalg.fractional_matrix_power`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        An invertible matrix without eigenvalues on the negative real axis.
    t : float
        The power; it may be a variable.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the power would be complex, or `a` is singular or not finite; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    The exponential of ``t * logm(a)``, and so is the derivative. For integer powers use
    `numpy.linalg.matrix_power`, for one half `sqrtm`: they are exact to more digits where elements
    of the logarithm are large.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.diag([4.0, 9.0])
    >>> vm.gradient(lambda a: vm.fractional_matrix_power(a, 1.5)[0, 0], a).round(12)
    array([[3., 0.],
           [0., 0.]])
    """
    a, t = as_operand(a, "fractional_matrix_power: a"), as_operand(t, "fractional_matrix_power: t")
    if np.ndim(t):
        raise misfit("fractional_matrix_power", "t", np.shape(t), "be a scalar")
    with in_the_name_of("fractional_matrix_power"):
        return expm(t * logm(a))


# --- functions of the eigenvalues ---


@array_valued
def funm(a: Operand, func: Function, derivative: Function) -> Result:
    """Compute a function of a matrix, given as a function of its eigenvalues: `scipy.linalg.funm`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        A matrix whose eigenvectors are independent.
    func : callable
        The function, of an array of real or complex numbers, real where its argument is.
    derivative : callable
        Its derivative, likewise.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the eigenvectors are not independent, or the result is complex; also a
        `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`A = V \\Lambda V^{-1}` the derivative along E is :math:`V (F \\circ V^{-1} E V)
    V^{-1}`, where F are the divided differences of the function at pairs of eigenvalues [1]_. Those
    of near ones are integrals of the derivative between them, so that equal eigenvalues do no harm.
    Second derivatives need eigenvalues that are different, and functions written with NumPy. For
    the exponential, the logarithm and the root use `expm`, `logm` and `sqrtm`, which need no
    eigenvectors.

    References
    ----------
    .. [1] N. J. Higham, Functions of Matrices, SIAM, 2008, theorem 3.11 (Daleckii and Krein).

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.funm(a, np.sin, np.cos)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    return eigenvalue_function(a, func=func, derivative=derivative)


def _eigenvectors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, vectors and the inverse of these."""
    if (a == a.T).all():
        values, vectors = np.linalg.eigh(a)
        return values, vectors, vectors.T
    values, vectors = np.linalg.eig(a)
    sizes = np.linalg.svd(vectors, compute_uv=False)
    if not sizes[0] < _DEPENDENT * sizes[-1]:
        raise np.linalg.LinAlgError(
            "a has dependent eigenvectors, or nearly so, but must have independent ones!"
        )
    return values, vectors, np.linalg.inv(vectors)


@operation()
def eigenvalue_function(a: Plain, *, func: Function, derivative: Function) -> Plain:
    """`funm`."""

    def compute(a: np.ndarray) -> Result:
        values, vectors, inverse = _eigenvectors(a)
        r = (vectors * func(values)) @ inverse
        return r.real if np.abs(r.imag).max() <= 1e-10 * np.abs(r).max() else r

    check_one_square("funm", "a", a)
    return _real("funm", a, compute)


def _divided_differences(values: Plain, func: Function, derivative: Function) -> Result:
    """Compute the divided differences of all pairs of eigenvalues; differentiable. Those that would
    cancel are integrals of the derivative.
    """
    x, y = np.reshape(values, (-1, 1)), np.reshape(values, (1, -1))
    f = func(values)
    rise, run = np.reshape(f, (-1, 1)) - np.reshape(f, (1, -1)), x - y
    sizes, heights = np.abs(fixed_complex(values)), np.abs(fixed_complex(f))
    near = np.abs(fixed_complex(run)) <= 1e-2 * np.maximum.outer(sizes, sizes)
    near |= np.abs(fixed_complex(rise)) <= 1e-2 * np.maximum.outer(heights, heights)
    integral = sum(w * derivative(y + s * run) for s, w in zip(_NODES, _WEIGHTS, strict=True))
    return np.where(near, integral, rise / np.where(near, 1.0, run))


def fixed_complex(x: Operand) -> Result:
    """Return the plain value, of a complex variable too."""
    value = getattr(x, "val", x)
    return getattr(value, "val", value)


@eigenvalue_function.reverse
def eigenvalue_function_reverse(
    g: Adjoint, r: Plain, a: Plain, func: Function, derivative: Function
) -> Adjoint:
    if not a.size:
        return np.zeros(a.shape)
    values, vectors, inverse = _eigenvectors(a)
    inner = _divided_differences(values, func, derivative) * (vectors.T @ g @ inverse.T)
    return np.ascontiguousarray((inverse.T @ inner @ vectors.T).real)


@eigenvalue_function.tangent
def eigenvalue_function_tangent(
    r: Result, a: Operand, func: Function, derivative: Function
) -> Linear:
    if not np.size(a):
        return lambda t: t
    if type(a) is np.ndarray:
        values, vectors, inverse = _eigenvectors(a)
    else:
        values, vectors = np.linalg.eig(a)
        inverse = np.linalg.inv(vectors)
    differences = _divided_differences(values, func, derivative)
    return lambda t: np.real(vectors @ (differences * (inverse @ t @ vectors)) @ inverse)
