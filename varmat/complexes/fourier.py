"""Fourier transforms of real and complex variables: `numpy.fft`, and Stan's names.

A transform is linear, so its tangent is the transform of the tangent. Its reverse rule is the
conjugate transpose: the opposite transform with the other normalisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from varmat.complexes.operation import ComplexOperation, complex_operation
from varmat.complexes.variable import complex_valued, parts
from varmat.core.dispatch import COMPLEX, SUPPORTED, implements, is_complex
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_choice, misfit
from varmat.functions.rarer.signals.cosine_transforms import fitted
from varmat.typing import Adjoint, Axes, Function, Operand, Plain, Result, Setting, Shape

__all__ = ["fft", "fft2", "inv_fft", "inv_fft2"]

# Normalisation of a transform -> that of the opposite transform which is its conjugate transpose.
OPPOSITE: dict[Any, Any] = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _weights(shape: Shape, axis: int, n: int, inner: float) -> np.ndarray:
    """Return the weights of a half spectrum: one for the frequencies zero and n/2, and `inner` for
    those between, which represent two.
    """
    weights = np.full(n // 2 + 1, inner)
    weights[0] = 1.0
    if not n % 2:
        weights[-1] = 1.0
    return weights.reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))])


def _transform(name: str, opposite: Function, results: str = "c") -> ComplexOperation:
    """Make the operation of a transform of `numpy.fft`, which is imported when it is first used;
    `opposite` applies its conjugate transpose to all elements.
    """

    def function(a: Operand, *, n: int, axis: int, norm: Setting) -> Result:
        return getattr(np.fft, name)(a, n, axis, norm)

    function.__name__, function.__doc__ = f"complex_{name}", f"`numpy.fft.{name}`."
    op = complex_operation(results=results)(function)
    op.push(lambda r, a, **settings: lambda t: op(t, **settings))

    @op.pull
    def pull(g: Adjoint, r: Plain, a: Plain, n: int, axis: int, norm: Setting) -> Adjoint:
        return lambda: fitted(opposite(g, n, axis, OPPOSITE[norm]), a.shape[axis], axis)

    return op


def _of_half(g: Adjoint, n: int, axis: int, norm: Setting) -> Result:
    return np.fft.irfft(g * _weights(g.shape, axis, n, 0.5), n, axis, norm)


def _of_real(g: Adjoint, n: int, axis: int, norm: Setting) -> Result:
    return np.fft.rfft(g, n, axis, norm) * _weights(g.shape, axis, n, 2.0)


complex_fft = _transform("fft", lambda *args: np.fft.ifft(*args))
complex_ifft = _transform("ifft", lambda *args: np.fft.fft(*args))
complex_rfft = _transform("rfft", _of_half)
complex_irfft = _transform("irfft", _of_real, "r")


def _answer(name: str) -> Callable[[Function], Function]:
    """Let the decorated function answer for one of numpy.fft. That module is imported when it is
    first used.
    """
    return implements(f"numpy.fft.{name}", tables=(SUPPORTED, COMPLEX))


def _along(op: ComplexOperation, a: Operand, n: Operand, axis: int, norm: str | None) -> Result:
    """Transform along one axis, after checking the arguments."""
    name = op.name.removeprefix("complex_")
    if not np.ndim(a):
        raise ShapeError(f"{name}: a is a scalar, but must have at least one axis!")
    if op is complex_rfft and is_complex(a):
        raise TypeError(f"{name}: a is complex, but must be real; use np.fft.fft")
    norm = "backward" if norm is None else norm
    check_choice(name, "norm", norm, "backward", "ortho", "forward")
    axis = range(np.ndim(a))[axis]
    if n is None:
        n = 2 * (np.shape(a)[axis] - 1) if op is complex_irfft else np.shape(a)[axis]
    if n < 1:
        raise DomainError(f"{name}: n is {n}, but must be at least 1!")
    return op(a, n=int(n), axis=axis, norm=norm)


def _of_one_axis(op: ComplexOperation) -> Function:
    @_answer(op.name.removeprefix("complex_"))
    def answer(a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None) -> Result:
        return _along(op, a, n, axis, norm)

    return answer


_fft, _ifft, _rfft, _irfft = map(
    _of_one_axis, (complex_fft, complex_ifft, complex_rfft, complex_irfft)
)


@_answer("hfft")
def _hfft(a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None) -> Result:
    return _irfft(np.conjugate(a), n, axis, OPPOSITE.get(norm or "backward", norm))


@_answer("ihfft")
def _ihfft(a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None) -> Result:
    return np.conjugate(_rfft(a, n, axis, OPPOSITE.get(norm or "backward", norm)))


def _lengths_and_axes(a: Operand, s: Operand, axes: Any) -> list[tuple[Result, int]]:
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(-np.ndim(a), 0)
    lengths = [None] * len(axes) if s is None else [None if n == -1 else n for n in s]
    if len(lengths) != len(axes):
        raise ShapeError(
            f"fft: s has {len(lengths)} lengths, but must have one for each of {len(axes)} axes!"
        )
    return list(zip(lengths, axes, strict=True))


def _several(
    name: str, one: Operand, default: Operand, last: Operand = None, first_last: bool = True
) -> None:
    """Register a transform over several axes, in sequence; along the last one it may be another
    transform.
    """

    @_answer(name)
    def answer(
        a: Operand,
        s: int | Sequence[int] | None = None,
        axes: Axes = default,
        norm: str | None = None,
    ) -> Result:
        along = _lengths_and_axes(a, s, axes)
        if last is not None and first_last:
            a = last(a, *along.pop(), norm)
        for n, axis in reversed(along if last is None or first_last else along[:-1]):
            a = one(a, n, axis, norm)
        return a if last is None or first_last else last(a, *along[-1], norm)


_several("fftn", _fft, None)
_several("ifftn", _ifft, None)
_several("fft2", _fft, (-2, -1))
_several("ifft2", _ifft, (-2, -1))
_several("rfftn", _fft, None, _rfft)
_several("rfft2", _fft, (-2, -1), _rfft)
_several("irfftn", _ifft, None, _irfft, False)
_several("irfft2", _ifft, (-2, -1), _irfft, False)


def _shifted(name: str, sign: int) -> None:
    @_answer(name)
    def answer(x: Operand, axes: Axes = None) -> Result:
        axes = tuple(range(np.ndim(x))) if axes is None else tuple(np.atleast_1d(axes).tolist())
        half = [np.shape(x)[i] // 2 for i in axes]
        return np.roll(x, tuple(n if sign > 0 else -n for n in half), axes)


_shifted("fftshift", 1)
_shifted("ifftshift", -1)


# --- Stan's names ---


def _stan(name: str, x: Operand, axes: int, transform: Operand) -> Result:
    x = x if is_complex(x) else as_operand(x, f"{name}: the argument")
    if np.ndim(x) != axes:
        raise misfit(name, "the argument", np.shape(x), f"be a {('vector', 'matrix')[axes - 1]}")
    if not np.size(x):
        return x + 0j
    re, im = parts(x, f"{name}: the argument")
    return transform(re if im is None else x)


@complex_valued
def fft(v: Operand) -> Result:
    """Compute the discrete Fourier transform of a vector, without a factor: `numpy.fft.fft`.

    Parameters
    ----------
    v : array_like, shape (n,), real or complex

    Returns
    -------
    ComplexVar, shape (n,)

    Raises
    ------
    ShapeError
        If `v` is not a vector.

    Notes
    -----
    The adjoint is ``n`` times the inverse transform of the result's. An empty vector has an
    empty transform.

    References
    ----------
    Stan Functions Reference, "Complex matrix operations".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.fft(vm.var([1.0, 2.0, 3.0, 4.0]))
    ComplexVar([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _stan("fft", v, 1, _fft)


@complex_valued
def inv_fft(u: Operand) -> Result:
    """Compute the inverse of `fft`: `numpy.fft.ifft`.

    Parameters
    ----------
    u : array_like, shape (n,), real or complex

    Returns
    -------
    ComplexVar, shape (n,)

    Raises
    ------
    ShapeError
        If `u` is not a vector.

    Notes
    -----
    The adjoint is the transform of the result's adjoint divided by ``n``.

    References
    ----------
    Stan Functions Reference, "Complex matrix operations".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.real(vm.inv_fft(vm.var([10.0 + 0.0j, -2.0 + 2.0j, -2.0, -2.0 - 2.0j])))
    VarMat([1., 2., 3., 4.])
    """
    return _stan("inv_fft", u, 1, _ifft)


@complex_valued
def fft2(m: Operand) -> Result:
    """Compute the two-dimensional discrete Fourier transform of a matrix, without a factor:
    `numpy.fft.fft2`.

    Parameters
    ----------
    m : array_like, shape (m, n), real or complex

    Returns
    -------
    ComplexVar, shape (m, n)

    Raises
    ------
    ShapeError
        If `m` is not a matrix.

    Notes
    -----
    It is `fft` of all rows, and then of all columns, and so is the derivative.

    References
    ----------
    Stan Functions Reference, "Complex matrix operations".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.real(vm.fft2(vm.var([[1.0, 2.0], [3.0, 4.0]])))
    VarMat([[10., -2.],
            [-4.,  0.]])
    """
    return _stan("fft2", m, 2, COMPLEX["numpy.fft.fft2"])


@complex_valued
def inv_fft2(m: Operand) -> Result:
    """Compute the inverse of `fft2`: `numpy.fft.ifft2`.

    Parameters
    ----------
    m : array_like, shape (m, n), real or complex

    Returns
    -------
    ComplexVar, shape (m, n)

    Raises
    ------
    ShapeError
        If `m` is not a matrix.

    Notes
    -----
    It is `inv_fft` of all rows, and then of all columns, and so is the derivative.

    References
    ----------
    Stan Functions Reference, "Complex matrix operations".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.real(vm.inv_fft2(vm.var([[10.0, -2.0], [-4.0, 0.0 + 0.0j]])))
    VarMat([[1., 2.],
            [3., 4.]])
    """
    return _stan("inv_fft2", m, 2, COMPLEX["numpy.fft.ifft2"])
