"""Functions of a square matrix as a whole: the exponential and powers."""

from __future__ import annotations

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import check_square, fixed, misfit
from varmat.functions.linalg.matmul import matmul_reverse
from varmat.functions.linalg.systems import check_system, column, uncolumn
from varmat.plain_arrays import unbroadcast
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, array_valued

__all__ = ["expm", "matrix_exp", "matrix_exp_multiply", "matrix_power", "scale_matrix_exp_multiply"]


@operation(stacked=True)
@array_valued
def expm(a: Plain) -> Plain:
    """Compute the matrix exponential.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    Value and reverse rule by scaling and squaring [1]_; the adjoint is the Fréchet derivative at
    the transposed matrix. Forward mode, and the reverse rule of matrices with large elements, read
    it off the exponential of a block matrix. Also called ``varmat.matrix_exp``.

    References
    ----------
    .. [1] A. H. Al-Mohy and N. J. Higham, "Computing the Fréchet derivative of the matrix
           exponential, with an application to condition number estimation", SIAM Journal on Matrix
           Analysis and Applications 30, 2009.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.expm(a)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    check_square("expm", "a", np.shape(a))
    from scipy.linalg import expm as exponential

    return np.array(exponential(a))


# Up to this 1-norm SciPy's Fréchet derivative has all digits. Larger matrices that are far from
# normal are squared more often than they need: at 10^8 half of the digits are lost. The exponential
# of a block matrix keeps them, but is a little less exact for small matrices.
_SMALL_NORM = 100.0


@expm.reverse
def expm_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    from scipy.linalg import expm_frechet

    c = np.full(a.shape, np.nan)
    usable = np.isfinite(a).all((-2, -1)) & np.isfinite(g).all((-2, -1))  # others SciPy refuses
    x, t = a[usable].mT, g[usable]
    if not x.size or np.max(np.abs(x).sum(-2)) > _SMALL_NORM:
        c[usable] = expm_tangent(r, x)(t)
    else:
        c[usable] = [
            expm_frechet(*pair, compute_expm=False, check_finite=False)
            for pair in zip(x, t, strict=True)
        ]
    return c


@expm.tangent
def expm_tangent(r: Result, a: Operand) -> Linear:
    def push(t: Operand) -> Result:
        # A tangent much larger than the matrix would decide how often the block matrix is squared.
        scale = np.exp2(np.ceil(np.log2(np.max(np.abs(fixed(t)), initial=1.0))))
        return scale * frechet_derivative(expm, a, t / scale)

    return push


def frechet_derivative(function: Function, a: Operand, t: Operand) -> Result:
    """Compute the derivative of a function of a matrix along `t`: the upper right block of its
    value at the block matrix [[a, t], [0, a]].
    """
    n, a = np.shape(a)[-1], np.broadcast_to(a, np.shape(t))
    top = np.concatenate([a, t], axis=-1)
    bottom = np.concatenate([np.zeros(np.shape(t)), a], axis=-1)
    return function(np.concatenate([top, bottom], axis=-2))[..., :n, n:]


@implements(np.linalg.matrix_power)
@array_valued
def matrix_power(a: Operand, n: int) -> Result:
    """Raise a matrix to an integer power: `numpy.linalg.matrix_power`, as products of repeated
    squares.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    n : int
        A negative power is a power of the inverse.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `n` is negative and `a` singular; also a `numpy.linalg.LinAlgError`.
    TypeError
        If `n` is not an integer.

    Notes
    -----
    The derivative follows from the products: the adjoint of a square ``a @ a`` is ``g @ a.T + a.T @
    g``.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.matrix_power(a, 2)[0, 0], np.array([[2.0, 1.0], [3.0, 4.0]]))
    array([[4., 3.],
           [1., 0.]])
    """
    a = as_operand(a, "matrix_power: a")
    check_square("matrix_power", "a", np.shape(a))
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"matrix_power: n is {n!r}, but must be an integer!")
    n = int(n)  # the smallest of NumPy's has no opposite
    if n == 0:
        return np.where(False, a, np.eye(np.shape(a)[-1]))  # a variable, whose derivative is zero
    if n < 0:
        a, n = np.linalg.inv(a), -n
    power = None
    while True:
        if n & 1:
            power = a if power is None else power @ a
        n >>= 1
        if not n:
            return power
        a = a @ a


matrix_exp = alias("matrix_exp", expm)


# --- exponentials times matrices ---


@operation()
@array_valued
def scale_matrix_exp_multiply(t: Plain, a: Plain, b: Plain) -> Saved:
    """Compute ``expm(t * a) @ b``: the solution at time `t` of the linear differential equation
    with matrix `a` and start `b`.

    Parameters
    ----------
    t : scalar
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, m)

    Raises
    ------
    ShapeError
        If `t` is not a scalar, `a` is not square, or `b` has another number of rows.

    Notes
    -----
    The derivative with respect to `t` is ``a`` times the result; that with respect to `a` goes
    through the Fréchet derivative of the exponential, see `expm`, and is computed only if `a` is a
    variable.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a, b = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 3.0])
    >>> vm.scale_matrix_exp_multiply(vm.var(2.0), a, b)
    VarMat([7., 3.])
    """
    if np.ndim(t):
        raise misfit("scale_matrix_exp_multiply", "t", np.shape(t), "be a scalar")
    check_system("scale_matrix_exp_multiply", a, b)
    e = expm(t * a)
    return Saved(np.matmul(e, b), e=e)


@scale_matrix_exp_multiply.reverse
def scale_matrix_exp_multiply_reverse(
    g: Adjoint, r: Plain, t: Plain, a: Plain, b: Plain, e: Plain
) -> Adjoint:
    of_e, of_b = matmul_reverse(g, r, e, b)
    vector = b.ndim == 1
    return (
        lambda: np.sum(g * _applied(a, r, vector)),
        lambda: t * expm_reverse(unbroadcast(of_e(), e.shape), e, t * a),
        of_b,
    )


@scale_matrix_exp_multiply.tangent
def scale_matrix_exp_multiply_tangent(
    r: Result, t: Operand, a: Operand, b: Operand
) -> tuple[Linear, ...]:
    e, vector = expm(t * a), np.ndim(b) == 1
    return (
        lambda s: s * _applied(a, r, vector),
        lambda s: expm_tangent(e, t * a)(t * s) @ b,
        lambda s: _applied(e, s, False),
    )


def _applied(a: Operand, x: Operand, vector: bool) -> Result:
    """``a @ x`` for a matrix of columns or, in the last axis, vectors; differentiable."""
    return uncolumn(a @ column(x, vector), vector)


@array_valued
def matrix_exp_multiply(a: Operand, b: Operand) -> Result:
    """Compute ``expm(a) @ b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, m)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.

    Notes
    -----
    The exponential and its product with `b`, whose derivatives these are.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.matrix_exp_multiply(vm.var([[0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 3.0]))
    VarMat([7., 3.])
    """
    a, b = as_operand(a, "matrix_exp_multiply: a"), as_operand(b, "matrix_exp_multiply: b")
    check_system("matrix_exp_multiply", a, b)
    return expm(a) @ b
