"""Stan's names for functions of complex numbers that NumPy lacks or calls otherwise."""

from __future__ import annotations

import numpy as np

from varmat.complexes.variable import (
    ComplexVar,
    complex_valued,
    joined,
    parts,
    real_valued,
    to_complex,
)
from varmat.core.operation import as_operand
from varmat.functions.checks import broadcastable, misfit
from varmat.typing import Operand, Result

__all__ = [
    "ComplexVar",
    "arg",
    "conj",
    "get_imag",
    "get_real",
    "norm",
    "polar",
    "proj",
    "to_complex",
]


def _parts(name: str, z: Operand) -> tuple[Result, Result]:
    """Return real and imaginary part; the imaginary part of a real number is zero."""
    re, im = parts(z, f"{name}: z")
    return re, np.zeros(np.shape(re)) if im is None and np.shape(re) else 0.0 if im is None else im


@real_valued
def get_real(z: Operand) -> Result:
    """Return the real part: `numpy.real`.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    Var or VarMat, of the shape of `z`

    Notes
    -----
    The adjoint is the one of the real part of `z`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.get_real(vm.var(3.0 + 4.0j))
    Var(3.0)
    """
    return _parts("get_real", z)[0]


@real_valued
def get_imag(z: Operand) -> Result:
    """Return the imaginary part: `numpy.imag`.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    Var or VarMat, of the shape of `z`

    Notes
    -----
    The adjoint is the one of the imaginary part of `z`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.get_imag(vm.var(3.0 + 4.0j))
    Var(4.0)
    """
    return _parts("get_imag", z)[1]


@complex_valued
def conj(z: Operand) -> Result:
    """Return the complex conjugate: `numpy.conj`.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    ComplexVar, of the shape of `z`

    Notes
    -----
    The contribution to the adjoint is the conjugate of the adjoint of the result.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.conj(vm.var(3.0 + 4.0j))
    ComplexVar((3-4j))
    """
    return np.conjugate(joined(*_parts("conj", z)))


@real_valued
def arg(z: Operand) -> Result:
    """Compute the phase of a complex number, between -pi and pi: `numpy.angle`.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    Var or VarMat, of the shape of `z`

    Notes
    -----
    The contribution to the adjoint is :math:`i z / |z|^2` times the result's. At 0 it is nan.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.arg, 3.0 + 4.0j)
    (-0.16+0.12j)
    """
    re, im = _parts("arg", z)
    return np.arctan2(im, re)


@real_valued
def norm(z: Operand) -> Result:
    """Compute the squared modulus, in Stan the norm of a complex number, element by element.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    Var or VarMat, of the shape of `z`

    Notes
    -----
    The contribution to the adjoint is ``2 z`` times the result's adjoint.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.norm, 3.0 + 4.0j)
    (6+8j)
    """
    re, im = _parts("norm", z)
    return np.square(re) + np.square(im)


@complex_valued
def polar(r: Operand, theta: Operand) -> Result:
    """Return the complex number with given modulus and phase.

    Parameters
    ----------
    r, theta : array_like
        Arrays whose shapes broadcast.

    Returns
    -------
    ComplexVar

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    With :math:`w = e^{i\\theta}` the derivatives are `w` and :math:`i r w`.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.polar(vm.var(2.0), 0.0)
    ComplexVar((2+0j))
    """
    r, theta = as_operand(r, "polar: r"), as_operand(theta, "polar: theta")
    if not broadcastable(np.shape(r), np.shape(theta)):
        raise misfit("polar", "theta", np.shape(theta), f"broadcast with r, of shape {np.shape(r)}")
    return joined(r * np.cos(theta), r * np.sin(theta))


@complex_valued
def proj(z: Operand) -> Result:
    """Project onto the Riemann sphere: return `z` itself, and one infinity for all complex numbers
    with an infinite part.

    Parameters
    ----------
    z : array_like, real or complex

    Returns
    -------
    ComplexVar, of the shape of `z`

    Notes
    -----
    Where `z` is finite the adjoint is the result's, elsewhere it is zero.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.proj(complex(-np.inf, -2.0))
    (inf-0j)
    """
    re, im = _parts("proj", z)
    infinite = np.logical_or(np.abs(re) == np.inf, np.abs(im) == np.inf)
    return joined(np.where(infinite, np.inf, re), np.where(infinite, np.copysign(0.0, im), im))
