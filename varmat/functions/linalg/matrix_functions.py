"""Functions of a square matrix as a whole: the exponential and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_square, fixed

__all__ = ["expm", "matrix_exp", "matrix_power"]


@operation(stacked=True)
def expm(a: Any) -> Any:
    """The matrix exponential.

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


# The 1-norm up to which SciPy's Fréchet derivative has all digits. Of matrices that are far from
# normal it squares more often than it need: at 10^8 half of them are lost. The exponential of a
# block matrix keeps them, and is a little less exact otherwise.
_SMALL_NORM = 100.0


@expm.reverse
def expm_reverse(g: Any, r: Any, a: Any) -> Any:
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
def expm_tangent(r: Any, a: Any) -> Any:
    n = np.shape(a)[-1]

    def push(t: Any) -> Any:
        # A tangent much larger than the matrix would decide how often the block matrix is squared.
        scale = np.exp2(np.ceil(np.log2(np.max(np.abs(fixed(t)), initial=1.0))))
        top = np.concatenate([np.broadcast_to(a, np.shape(t)), t / scale], axis=-1)
        bottom = np.concatenate([np.zeros(np.shape(t)), np.broadcast_to(a, np.shape(t))], axis=-1)
        return scale * expm(np.concatenate([top, bottom], axis=-2))[..., :n, n:]

    return push


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """A matrix to an integer power: `numpy.linalg.matrix_power`, as products of repeated squares.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    n : int
        A negative power is that of the inverse.

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
    The derivative is that of the products: the adjoint of a square ``a @ a`` is ``g @ a.T + a.T @
    g``.

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
            return np.copy(power) if power is a else power
        a = a @ a


matrix_exp = expm
