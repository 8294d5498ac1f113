"""`ComplexVar`: a complex variable, which is a pair of real ones.

It is not on a tape: operations on its two parts are recorded. So reverse and forward mode, second
derivatives and recordings work as for real variables. The adjoint of a complex variable is ``d/dRe
+ i d/dIm`` of the real result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.core.array_methods import ArrayMethods, Container, is_foreign
from varmat.core.dispatch import COMPLEX, ComplexKind, is_complex
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import as_operand, is_differentiable
from varmat.core.variables import var
from varmat.functions.checks import misfit
from varmat.plain_arrays import scalar_item
from varmat.typing import DTypeLike, Function, Index, Operand, Result, Setting, Settings

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec, TypeAlias

    from varmat.call_types import StructuredCall, VarOrVarMat
    from varmat.core.variables import Var, VarMat

    P = ParamSpec("P")
    _Of: TypeAlias = Callable[Concatenate[Any, P], Any]
    _Complexes: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[np.complex128]]

__all__ = ["ComplexVar"]

COMPLEX128 = np.dtype(np.complex128)
_REAL = (ArrayMethods, MatVar)


# What type checkers read: see `varmat.typing`.


def complex_valued(
    function: _Of[P],
) -> StructuredCall[P, Var | VarMat | ComplexVar, ComplexVar, Any]:
    """Declare that a function of variables, real or complex, is a `ComplexVar`."""
    return function  # type: ignore[return-value]


def complex_pair_valued(
    function: _Of[P],
) -> StructuredCall[
    P, Var | VarMat | ComplexVar, tuple[ComplexVar, ComplexVar], tuple[_Complexes, _Complexes]
]:
    """Declare that a function of variables, real or complex, is two `ComplexVar`."""
    return function  # type: ignore[return-value]


def real_valued(function: _Of[P]) -> StructuredCall[P, ComplexVar, VarOrVarMat, Any]:
    """Declare that a function of a complex variable is real."""
    return function  # type: ignore[return-value]


class ComplexVar(Container, ComplexKind, ArrayMethods):
    """A complex variable, a scalar or an array: a pair of real variables.

    It is made by `varmat.var` of complex numbers, by `varmat.to_complex`, and by operations of real
    variables with complex numbers. It has the operators, attributes and methods of a complex
    ndarray.

    Attributes
    ----------
    real, imag : Var or VarMat
        The two parts. Parts of an array are views: assigning to their elements assigns to the
        array.
    val : complex or ndarray
        The value.
    adj : complex or ndarray
        The adjoint: the derivative of the real result with respect to the real part, plus `i` times
        the one with respect to the imaginary part.

    Notes
    -----
    With this convention, as in Stan and PyTorch, ``z - rate * z.adj`` is a step of steepest
    descent. The adjoint of a holomorphic function `f` is the result's adjoint times the conjugate
    of ``f'(z)``. JAX has the conjugate of it.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> z = vm.var(3.0 + 4.0j)
    >>> np.abs(z).grad()
    >>> z.adj
    (0.6+0.8j)
    >>> w = vm.var([1.0 + 1.0j, 2.0 - 1.0j])
    >>> np.real(np.sum(w * w)).grad()
    >>> w.adj
    array([2.-2.j, 4.+2.j])
    """

    __slots__ = ("_im", "_re")
    dtype: np.dtype = COMPLEX128
    itemsize = 16

    def __init__(self, re: object, im: object) -> None:
        if not (isinstance(re, _REAL) and isinstance(im, _REAL) and re.shape == im.shape):
            raise TypeError(
                "ComplexVar: the parts must be real variables of the same shape; "
                "varmat.to_complex(re, im) converts them"
            )
        self._re: Operand = re
        self._im: Operand = im

    @property
    def shape(self) -> Result:
        return self._re.shape

    @property
    def nbytes(self) -> int:
        return 16 * self.size

    @property
    def _plain(self) -> Result:
        return paired(dispatch.plain(self._re), dispatch.plain(self._im))

    @property
    def val(self) -> Result:
        value = self._plain
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        return value

    @property
    def adj(self) -> Result:
        return paired(self._re.adj, self._im.adj)

    @property
    def real(self) -> Result:
        return self._re

    @real.setter
    def real(self, value: Operand) -> None:
        self._re[...] = value

    @property
    def imag(self) -> Result:
        return self._im

    @imag.setter
    def imag(self, value: Operand) -> None:
        self._im[...] = value

    def conj(self) -> Result:
        return np.conjugate(self)

    conjugate = conj

    def astype(
        self, dtype: DTypeLike | None, *args: Setting, copy: bool = True, **kwargs: Setting
    ) -> Result:
        if np.dtype(dtype) != COMPLEX128:
            raise TypeError(
                f"astype: complex variables are complex128 only, not {np.dtype(dtype)}; use "
                "np.real, np.imag or np.abs"
            )
        return np.copy(self) if copy else self

    def __getitem__(self, index: Index) -> Result:
        if not self.shape:
            return scalar_item(self, index)
        return ComplexVar(self._re[index], self._im[index])

    def __setitem__(self, index: object, source: object) -> None:
        re, im = parts(source, "the assigned value")
        self._re[index] = re
        self._im[index] = 0.0 if im is None else im

    def __array__(self, *args: Operand, **kwargs: Setting) -> Result:
        raise TypeError(
            "a ComplexVar cannot become a plain array, its derivative would be lost: use np.real, "
            "np.imag or np.abs of it where real numbers are expected, np.stack([...]) or "
            "np.concatenate for an array of variables, varmat.value(z) for the plain numbers"
        )

    def __array_ufunc__(
        self, ufunc: Function, method: str, *inputs: Operand, **kwargs: Setting
    ) -> Result:
        if any(map(is_foreign, inputs)):
            return NotImplemented
        out, *_ = kwargs.pop("out", (None,))
        implementation = COMPLEX.get(ufunc if method == "__call__" else (ufunc, method))
        if implementation is None and method == "outer" and ufunc in COMPLEX:
            a, b = inputs
            inputs, implementation = (
                (np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b),
                COMPLEX[ufunc],
            )
        if implementation is None:
            raise _unknown(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")
        settings = {
            name: x
            for name, x in kwargs.items()
            if name not in ("dtype", "casting", "order", "subok")
        }
        if method == "__call__":
            dispatch.refuse_settings(ufunc, settings)
        result = implementation(*inputs, **settings)
        if out is None:
            return result
        dispatch.refuse_plain_out(ufunc, out)
        out[...] = result
        return out

    def __array_function__(
        self, function: Function, types: Operand, args: Operand, kwargs: Settings
    ) -> Result:
        name = dispatch.full_name(function)
        implementation = COMPLEX.get(function) or COMPLEX.get(name)
        if implementation is not None:
            return implementation(*args, **kwargs)
        if function in ON_VALUES:
            return function(*dispatch.plain(args), **dispatch.plain(kwargs))
        raise _unknown(name)

    def __repr__(self) -> str:
        value = self._plain
        text = (
            np.array2string(value, separator=", ", prefix="ComplexVar(")
            if self.shape
            else repr(value)
        )
        return f"ComplexVar({text})"

    def __eq__(self, other: Operand) -> Result:
        return np.equal(self, other)

    def __ne__(self, other: Operand) -> Result:
        return np.not_equal(self, other)

    def _no_order(self, other: Operand) -> Result:
        raise TypeError("complex numbers have no order; compare np.real, np.imag or np.abs of them")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order
    __hash__ = ArrayMethods.__hash__


# Functions of NumPy of plain values, whose results have no derivative.
ON_VALUES: frozenset[Function] = frozenset({
    np.allclose, np.isclose, np.array_equal, np.array_equiv, np.isreal, np.iscomplex,
     np.count_nonzero, np.nonzero,
    np.flatnonzero, np.argwhere, np.all, np.any, np.array_repr, np.array_str, np.array2string,
     np.result_type, np.can_cast,
    np.common_type, np.min_scalar_type, np.may_share_memory, np.shares_memory,
})  # fmt: skip


def _unknown(name: str) -> TypeError:
    instead = "write it with np.real and np.imag, or np.abs and np.angle, of them"
    return TypeError(f"{name} is not there for complex variables; {instead}")


def _operator(ufunc: Function, reflected: bool) -> Result:
    def operate(self: Operand, other: Operand) -> Result:
        if is_foreign(other):
            return NotImplemented
        return COMPLEX[ufunc](other, self) if reflected else COMPLEX[ufunc](self, other)

    return operate


def _in_place(ufunc: Function) -> Result:
    def operate(self: Operand, other: Operand) -> Result:
        result = COMPLEX[ufunc](self, other)
        if not self.shape:
            return result
        self[...] = result
        return self

    return operate


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
     "matmul": np.matmul,
}.items():  # fmt: skip
    setattr(ComplexVar, f"__{_name}__", _operator(_ufunc, False))
    setattr(ComplexVar, f"__r{_name}__", _operator(_ufunc, True))
    setattr(ComplexVar, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute}.items():
    setattr(ComplexVar, f"__{_name}__", lambda self, ufunc=_ufunc: COMPLEX[ufunc](self))


def paired(re: Operand, im: Operand) -> Result:
    """Return the plain complex number or array of plain parts."""
    if not np.ndim(re) and not np.ndim(im):
        # for arrays without axes Python would add i times the second, and lose signs of zeros
        return complex(float(re), float(im))
    result = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), COMPLEX128)
    result.real, result.imag = re, im
    return result


def parts(x: Operand, name: str) -> tuple[Result, Result]:
    """Return real and imaginary part, each a float, an array or a real variable. The imaginary part
    of a real operand is None.
    """
    x = dispatch.settled(x)
    if isinstance(x, ComplexVar):
        return x.real, x.imag
    if not is_complex(x):
        return as_operand(x, name), None
    if isinstance(x, (list, tuple)) and is_differentiable(x):
        return parts(np.stack([joined(*parts(item, name)) for item in x]), name)
    array = np.asarray(x, COMPLEX128)
    if not array.ndim:
        return float(array.real), float(array.imag)
    return np.array(array.real, order="C"), np.array(array.imag, order="C")


def joined(re: Operand, im: Operand) -> Result:
    """Return the complex variable, or complex data, with two given parts; the real part itself if
    `im` is None.
    """
    if im is None:
        return re
    if isinstance(re, (tuple, list)):
        return type(re)(joined(*pair) for pair in zip(re, im, strict=True))
    if not is_differentiable(re):
        if not is_differentiable(im):
            return paired(re, im)
        re = like(im, re)
    elif not is_differentiable(im):
        im = like(re, im)
    if isinstance(re, MatVar) is not isinstance(im, MatVar):
        re, im = to_varmat(re), to_varmat(im)
    if np.shape(re) != np.shape(im):
        shape = np.broadcast_shapes(np.shape(re), np.shape(im))
        re, im = (
            x if np.shape(x) == shape else np.copy(np.broadcast_to(x, shape)) for x in (re, im)
        )
    return ComplexVar(re, im)


def like(variable: Operand, x: Operand) -> Result:
    """Make data a variable of the same kind as another, with derivative zero in that one."""
    return np.where(True, x, variable)


@complex_valued
def to_complex(re: Operand = 0.0, im: Operand = 0.0) -> Result:
    """Return the complex number with given real and imaginary part.

    Parameters
    ----------
    re, im : array_like
        Arrays whose shapes broadcast.

    Returns
    -------
    ComplexVar, or complex numbers if both are data

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    TypeError
        If an argument is complex.

    Notes
    -----
    The parts of the adjoint are the adjoints of the arguments.

    References
    ----------
    Stan Functions Reference, "Complex-valued basic functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.to_complex(vm.var([1.0, 2.0]), 3.0)
    ComplexVar([1.+3.j, 2.+3.j])
    """
    re, im = as_operand(re, "to_complex: re"), as_operand(im, "to_complex: im")
    for name, x in (("re", re), ("im", im)):
        if is_complex(x):
            raise TypeError(f"to_complex: {name} is complex, but must be real numbers!")
    try:
        np.broadcast_shapes(np.shape(re), np.shape(im))
    except ValueError:
        raise misfit(
            "to_complex", "im", np.shape(im), f"fit the shape of re, {np.shape(re)}"
        ) from None
    # Copied, because assigning into the result must not change the arguments.
    return joined(*(np.copy(x) if np.shape(x) and is_differentiable(x) else x for x in (re, im)))


def _leaf(x: object) -> ComplexVar:
    """Make the variable that `varmat.var` makes of complex numbers."""
    if is_differentiable(x):
        raise TypeError("var: the argument is a variable already; varmat.value(x) gives its values")
    re, im = parts(x, "var: the argument")
    return ComplexVar(var(re), var(im))


COMPLEX[var] = _leaf
COMPLEX[np.shape] = lambda a: a.shape
COMPLEX[np.ndim] = lambda a: len(a.shape)
COMPLEX[np.size] = lambda a, axis=None: a.size if axis is None else a.shape[axis]
COMPLEX[np.isrealobj], COMPLEX[np.iscomplexobj] = lambda x: False, lambda x: True
