"""Linear algebra of complex matrices, and complex eigenvalues of real and complex ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from varmat.complexes.elementwise import answers_for, reciprocal
from varmat.complexes.operation import adjoint, complex_operation
from varmat.complexes.variable import complex_pair_valued, complex_valued, joined, parts
from varmat.core.dispatch import COMPLEX, SUPPORTED, implements, is_complex, plain
from varmat.core.operation import as_operand, is_differentiable
from varmat.functions.checks import check_square, check_values, misfit
from varmat.functions.linalg import determinants, matmul, solves, systems
from varmat.functions.linalg.eigenvalues import check_vectors, turn
from varmat.functions.linalg.lapack import MatrixError
from varmat.typing import Adjoint, Linear, Operand, Plain, Result

__all__ = ["eigendecompose", "eigenvalues", "eigenvectors"]

COMPLEX[matmul.matmul] = COMPLEX[np.matmul]
COMPLEX[np.linalg.matrix_power] = SUPPORTED[np.linalg.matrix_power]


# --- inverses, solutions, determinants ---


@complex_operation(np.linalg.inv, solves.inv)
def complex_inv(a: Operand) -> Result:
    """Invert a square matrix, or a stack of them."""
    check_square("inv", "a", np.shape(a))
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise MatrixError("inv: a is singular, but must be invertible!") from None


@complex_inv.pull
def complex_inv_pull(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    return lambda: -adjoint(r) @ g @ adjoint(r)


complex_inv.push(lambda r, a: lambda t: -(r @ t @ r))


def _inverse(a: Operand) -> Result:
    """Invert a matrix; nan if it is singular."""
    if is_differentiable(a):
        return np.linalg.inv(a)
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.full(a.shape, np.nan)


def _adjugate(a: Operand) -> Result:
    """Compute the determinant times the inverse; also defined for singular matrices."""
    u, s, vh = np.linalg.svd(a)
    eye = np.eye(s.shape[-1], dtype=bool)
    others = np.prod(np.where(eye, 1.0, s[..., None, :]), axis=-1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(phase)[..., None, None] * ((adjoint(vh) * others[..., None, :]) @ adjoint(u))


@complex_operation(np.linalg.det, determinants.det)
def complex_det(a: Operand) -> Result:
    """Compute the determinant of a square matrix, or of a stack of them."""
    check_square("det", "a", np.shape(a))
    return np.linalg.det(a)


@complex_det.pull
def complex_det_pull(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    return lambda: np.asarray(g)[..., None, None] * adjoint(_adjugate(a))


@complex_det.push
def complex_det_push(r: Plain, a: Plain) -> Linear:
    if is_differentiable(a):
        return lambda t: r * np.trace(np.linalg.inv(a) @ t, axis1=-2, axis2=-1)
    return lambda t: np.trace(_adjugate(a) @ t, axis1=-2, axis2=-1)


@complex_operation()
def complex_log_det(a: Operand) -> Result:
    """Compute the logarithm of the determinant of a square matrix, or of a stack of them."""
    check_square("slogdet", "a", np.shape(a))
    sign, size = np.linalg.slogdet(a)
    return size + 1j * np.angle(sign)


@complex_log_det.pull
def complex_log_det_pull(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    return lambda: np.asarray(g)[..., None, None] * adjoint(_inverse(a))


@complex_log_det.push
def complex_log_det_push(r: object, a: object) -> Linear:
    return lambda t: np.trace(_inverse(a) @ t, axis1=-2, axis2=-1)


@answers_for(np.linalg.slogdet)
def slogdet(a: Operand) -> Result:
    size, angle = parts(complex_log_det(a), "slogdet: a")
    return determinants.SlogdetResult(joined(np.cos(angle), np.sin(angle)), size)


@complex_operation()
def complex_solve(a: Operand, b: Operand) -> Result:
    """Solve a square system with the columns of a matrix as right-hand sides."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise MatrixError("solve: a is singular, but must be invertible!") from None


@complex_solve.pull
def complex_solve_pull(g: Adjoint, r: Plain, a: Plain, b: Plain) -> Adjoint:
    c = np.linalg.solve(adjoint(a), g)
    return lambda: -c @ adjoint(r), lambda: c


@complex_solve.push
def complex_solve_push(r: Plain, a: Plain, b: Plain) -> tuple[Linear, ...]:
    return lambda t: -np.linalg.solve(a, t @ r), lambda t: np.linalg.solve(a, t)


@answers_for(np.linalg.solve, solves.solve)
def solve(a: Operand, b: Operand) -> Result:
    systems.check_system("solve", a, b)
    if np.ndim(b) == 1:
        return complex_solve(a, np.reshape(b, (-1, 1)))[..., 0]
    return complex_solve(a, b)


# --- eigenvalues and eigenvectors ---


def _inverse_gaps(w: Operand) -> Result:
    """Compute ``1 / (w_j - w_i)``, and zero for values equal up to rounding; differentiable."""
    values = plain(w)
    tolerance = (
        values.shape[-1] * np.finfo(float).eps * np.max(np.abs(values), axis=-1, initial=0.0)
    )
    same = np.abs(values[..., None, :] - values[..., :, None]) <= tolerance[..., None, None]
    return np.where(
        same, 0.0, reciprocal(np.where(same, 1.0 + 0.0j, w[..., None, :] - w[..., :, None]))
    )


_OF_MATRIX = "matrix_exp, matrix_power, inverse or the determinant"


@complex_operation(results="cc")
def complex_eig(a: Operand) -> Result:
    """Compute eigenvalues and right eigenvectors of a square matrix, or of a stack of them."""
    check_square("eig", "a", np.shape(a))
    _check_finite("eig", a)
    w, v = np.linalg.eig(a)
    return w.astype(np.complex128), v.astype(np.complex128)


def _largest(v: Operand) -> Result:
    """Find the index of the largest element of each vector, which LAPACK makes real."""
    return np.argmax(np.abs(plain(v)), axis=-2)[..., None, :]


# Let P = V^-1 dA V. The values change by diag(P), the vectors by U = V (F o P), F_ij = 1 / (w_j -
# w_i), up to multiples of themselves. LAPACK's normalisation determines these: the length stays
# one, and the phase of the largest element stays zero.
@complex_eig.push
def complex_eig_push(r: Plain, a: Plain) -> Linear:
    w, v = r
    inverse, gaps, place = _inverse(v), _inverse_gaps(w), _largest(v)
    conjugate, top = np.conjugate(v), np.take_along_axis(v, place, -2)
    top = np.conjugate(top) / np.square(np.abs(top))

    def push(t: Operand) -> Result:
        p = inverse @ t @ v
        u = v @ turn(gaps, p)
        length = np.real(np.sum(conjugate * u, axis=-2, keepdims=True))
        phase = np.imag(top * np.take_along_axis(u, place, -2))
        return np.diagonal(p, axis1=-2, axis2=-1), u - v * joined(length, phase)

    return push


@complex_eig.pull
def complex_eig_pull(g: Adjoint, r: Plain, a: Plain, seen: Sequence[bool]) -> Adjoint:
    (gw, gv), (w, v) = g, r
    place = _largest(v)
    inner = np.sum(np.conjugate(gv) * v, axis=-2, keepdims=True)
    gu = gv - v * inner.real
    top = np.take_along_axis(v, place, -2)
    change = np.take_along_axis(gu, place, -2) + 1j * inner.imag * top / np.square(np.abs(top))
    np.put_along_axis(gu, place, change, -2)
    gaps, inside = np.conjugate(_inverse_gaps(w)), adjoint(v) @ gu
    if seen[2] or seen[3]:
        # Adjoints of the vectors and of their inverse mix, and cancel.
        check_vectors("eig", "eigenvalues", _OF_MATRIX, gaps, np.ones(gv.shape))
    inside = gaps * inside + gw[..., None] * np.eye(w.shape[-1])
    return lambda: adjoint(_inverse(v)) @ inside @ adjoint(v)


class EigResult(NamedTuple):
    """As NumPy's."""

    eigenvalues: Result
    eigenvectors: Result


@implements(np.linalg.eig)
@answers_for(np.linalg.eig)
def eig(a: object) -> EigResult:
    """Compute eigenvalues and eigenvectors of a square matrix, or of a stack of them; always
    complex, unlike NumPy's.

    Parameters
    ----------
    a : array_like, shape (..., n, n), real or complex

    Returns
    -------
    eigenvalues : ComplexVar, shape (..., n)
        In the order of LAPACK.
    eigenvectors : ComplexVar, shape (..., n, n)
        In columns, of length one, with the largest element real.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`P = V^{-1} dA\\, V` the eigenvalues change by the diagonal of `P` [1]_. The vectors
    change by :math:`V (F \\circ P)`, :math:`F_{ij} = 1 / (\\lambda_j - \\lambda_i)`, and by the
    multiples of themselves that keep their length, and the phase of the largest element. Between
    equal eigenvalues vectors have no derivative: an adjoint that needs it, also one within a second
    derivative, raises a `DomainError`, and tangents are nan. At a matrix without a basis of
    eigenvectors nothing has one, and results are large, or nan.

    References
    ----------
    .. [1] Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
           algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[0.0, -1.0], [4.0, 0.0]])
    >>> vm.gradient(lambda a: np.imag(np.linalg.eig(a).eigenvalues[0]), a).round(12)
    array([[ 0.  , -1.  ],
           [ 0.25,  0.  ]])
    """
    return EigResult(*complex_eig(a if is_complex(a) else as_operand(a, "eig: a")))


@implements(np.linalg.eigvals)
@answers_for(np.linalg.eigvals)
def eigvals(a: Operand) -> Result:
    return eig(a).eigenvalues


def _lower_as_hermitian(t: Operand, lower: bool) -> Result:
    """Return the Hermitian matrix given by one of its triangles; differentiable."""
    t = t if lower else adjoint(t)
    below, diagonal = np.tril(t, -1), np.real(t) * np.eye(np.shape(t)[-1])
    return below + adjoint(below) + diagonal


@complex_operation(results="rc")
def complex_eigh(a: Operand, *, lower: bool) -> Result:
    """Compute eigenvalues and eigenvectors of a Hermitian matrix, or of a stack of them."""
    check_square("eigh", "a", np.shape(a))
    return np.linalg.eigh(a, "L" if lower else "U")


# As for symmetric matrices, see `numpy.linalg.eigh` there. LAPACK chooses the phases of the vectors
# in no documented way.
@complex_eigh.push
def complex_eigh_push(r: Plain, a: Plain, lower: bool) -> Linear:
    w, v = r
    gaps = np.real(_inverse_gaps(joined(w, np.zeros(np.shape(w)))))

    def push(t: Operand) -> Result:
        p = adjoint(v) @ _lower_as_hermitian(t, lower) @ v
        return np.real(np.diagonal(p, axis1=-2, axis2=-1)), v @ turn(gaps, p)

    return push


@complex_eigh.pull
def complex_eigh_pull(g: Adjoint, r: Plain, a: Plain, lower: bool, seen: Sequence[bool]) -> Adjoint:
    (gw, gv), (w, v) = g, r
    gaps, inside = _inverse_gaps(w).real, adjoint(v) @ gv
    if seen[1] or seen[2]:
        check_vectors("eigh", "eigenvalues", _OF_MATRIX, gaps, gv)
    inside = gaps * inside + gw[..., None] * np.eye(w.shape[-1])
    c = v @ inside @ adjoint(v)
    folded = np.tril(c, -1) + adjoint(np.triu(c, 1)) + c.real * np.eye(w.shape[-1])
    return lambda: folded if lower else adjoint(folded)


class EighResult(NamedTuple):
    """As NumPy's."""

    eigenvalues: Result
    eigenvectors: Result


@answers_for(np.linalg.eigh)
def eigh(a: Operand, UPLO: Operand = "L") -> EighResult:  # noqa: N803 - NumPy's name
    return EighResult(*complex_eigh(a, lower=UPLO.upper() == "L"))


@answers_for(np.linalg.eigvalsh)
def eigvalsh(a: Operand, UPLO: Operand = "L") -> Result:  # noqa: N803 - NumPy's name
    return eigh(a, UPLO)[0]


# --- Stan's names ---


def _check_finite(function: str, a: Operand) -> None:
    if not np.isfinite(a).all():
        raise MatrixError(
            f"{function}: a has elements that are not finite, but must have finite ones for "
            "eigenvalues!"
        )


def square_matrix(function: str, a: Operand) -> Result:
    a = a if is_complex(a) else as_operand(a, f"{function}: a")
    check_square(function, "a", np.shape(a))
    if not np.size(a):
        raise misfit(function, "a", np.shape(a), "have at least one row")
    finite = partial(_check_finite, function)
    for part in parts(a, f"{function}: a"):
        if part is not None:
            check_values(finite, part)
    return a


@complex_pair_valued
def eigendecompose(a: Operand) -> tuple[Result, Result]:
    """Compute eigenvectors and eigenvalues of a square matrix, in this order: `numpy.linalg.eig`
    has the other one.

    Parameters
    ----------
    a : array_like, shape (..., n, n), real or complex

    Returns
    -------
    eigenvectors : ComplexVar, shape (..., n, n)
        In columns, of length one, with the largest element real. Stan's have other phases.
    eigenvalues : ComplexVar, shape (..., n)
        In the order of LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not square, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The derivatives are as for `numpy.linalg.eig`.

    References
    ----------
    * Stan Functions Reference, "Complex matrix operations".
    * Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
      algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vectors, values = vm.eigendecompose(vm.var([[0.0, -1.0], [1.0, 0.0]]))
    >>> values
    ComplexVar([0.+1.j, 0.-1.j])
    """
    values, vectors = complex_eig(square_matrix("eigendecompose", a))
    return vectors, values


@complex_valued
def eigenvalues(a: Operand) -> Result:
    """Compute the eigenvalues of a square matrix: `numpy.linalg.eigvals`, always complex.

    Parameters
    ----------
    a : array_like, shape (..., n, n), real or complex

    Returns
    -------
    ComplexVar, shape (..., n)
        In the order of LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not square, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The contribution to the adjoint is :math:`V^{-H} \\mathrm{diag}(\\bar\\lambda)\\, V^H`, or its
    real part. Between eigenvalues that are equal second derivatives are refused.

    References
    ----------
    * Stan Functions Reference, "Complex matrix operations".
    * Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
      algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[0.0, -1.0], [4.0, 0.0]])
    >>> vm.gradient(lambda a: np.sum(np.abs(vm.eigenvalues(a))), a).round(12) + 0.0
    array([[ 0. , -2. ],
           [ 0.5,  0. ]])
    """
    return complex_eig(square_matrix("eigenvalues", a))[0]


@complex_valued
def eigenvectors(a: Operand) -> Result:
    """Compute the eigenvectors of a square matrix, in columns in the order of `eigenvalues`: the
    first of `eigendecompose`.

    Parameters
    ----------
    a : array_like, shape (..., n, n), real or complex

    Returns
    -------
    ComplexVar, shape (..., n, n)
        In columns, of length one, with the largest element real. Stan's have other phases.

    Raises
    ------
    ShapeError
        If `a` is not square, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The derivatives are as for `numpy.linalg.eig`.

    References
    ----------
    * Stan Functions Reference, "Complex matrix operations".
    * Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
      algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.abs(vm.eigenvectors(vm.var([[0.0, -1.0], [1.0, 0.0]])))[0]
    VarMat([0.70710678, 0.70710678])
    """
    return complex_eig(square_matrix("eigenvectors", a))[1]
