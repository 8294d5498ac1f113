"""`MatVar`, the compatibility type: an array of scalar variables (an array of structs)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.core.array_methods import ArrayMethods
from varmat.core.data import data
from varmat.core.errors import ShapeError
from varmat.core.operators import ReflectedOperators
from varmat.core.tape import Rule, current_tape
from varmat.core.variables import VARIABLES, Outputs, Var, Variable, make_leaf, make_result, tape_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from varmat.typing import Index, Operand, Setting

__all__ = ["MatVar", "matvar", "to_matvar", "to_varmat"]


class MatVar(ReflectedOperators, np.ndarray[Any, Any]):
    """An ndarray of dtype object with one `Var` per element; made by `matvar`.

    Elementwise functions, sums and products work scalar by scalar and record one entry per scalar
    operation. Plain numbers may stand among the elements; they are constants.

    Attributes
    ----------
    val, adj : ndarray
        The values and the adjoints of the elements, gathered.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.matvar([1.0, 2.0])
    >>> type(np.exp(x)).__name__, type(x[0]).__name__
    ('MatVar', 'Var')
    """

    __array_priority__ = 900.0
    __pandas_priority__ = ArrayMethods.__pandas_priority__
    __array_ufunc__ = dispatch.array_ufunc
    __array_function__: Any = dispatch.array_function

    @property
    def val(self) -> np.ndarray:
        return _gather(self, "val")

    @property
    def adj(self) -> np.ndarray:
        return _gather(self, "adj")

    _plain = val

    def astype(self, dtype: DTypeLike | None, *args: Setting, **kwargs: Setting) -> Operand:
        method: Any = np.ndarray.astype if np.dtype(dtype) == object else ArrayMethods.astype
        return method(self, dtype, *args, **kwargs)

    def __setitem__(self, index: Index, source: Operand) -> None:
        # NumPy would ask a Var for an array when it is assigned to several elements. An integer
        # index of a vector names one element, which need not be read to see that.
        if (
            type(source) is Var
            and (type(index) is not int or self.ndim > 1)
            and isinstance(self[index], np.ndarray)
        ):
            source = object_array([source], ())
        np.ndarray.__setitem__(self, index, source)


for _name in [
    "all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "dot",
    "flat", "max", "mean", "min", "prod", "round", "std", "sum", "trace",
    "var",
]:  # fmt: skip
    setattr(MatVar, _name, getattr(ArrayMethods, _name))


def _gather(x: MatVar, slot: str) -> np.ndarray:
    flat = (
        getattr(item, slot) if type(item) is Var else item if slot == "val" else 0.0
        for item in x.ravel()
    )
    return np.fromiter(flat, np.float64, x.size).reshape(x.shape)


def matvar(x: ArrayLike) -> MatVar:
    """Make a `MatVar`: a new scalar variable for every element.

    Parameters
    ----------
    x : array_like of real numbers, or of Var
        An array that already holds `Var` is used without a copy.

    Returns
    -------
    MatVar

    Raises
    ------
    TypeError
        If the argument is a variable already, or `var` raises.
    ShapeError
        If a list has parts of different shapes.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.matvar([[1.0, 2.0]])
    >>> np.sum(x * x).grad()
    >>> x.adj
    array([[2., 4.]])
    """
    if isinstance(x, ArrayMethods):
        raise TypeError(
            "matvar: the argument is a variable already; varmat.to_matvar(x) converts it, recorded "
            "on the tape"
        )
    if isinstance(x, np.ndarray) and x.dtype == object:
        for item in x.flat:
            _element(item)
        return x.view(MatVar)
    if isinstance(x, (list, tuple)):
        if any(type(item) is Var for item in x):
            return object_array([_element(item) for item in x], (len(x),))
        if not all(isinstance(item, (float, int)) for item in x):
            parts = [matvar(item) for item in x]
            if len({part.shape for part in parts}) > 1:
                kind = type(x).__name__
                raise ShapeError(
                    f"matvar: the argument is a {kind} with parts of different shapes, but must be "
                    "an array!"
                )
            return np.stack(parts).view(MatVar)
    values = np.asarray(data(x, "matvar: the argument"))
    tape = current_tape()
    return object_array([make_leaf(item, tape) for item in values.ravel().tolist()], values.shape)


def _element(x: object) -> Operand:
    """Check an element of a matvar: a `Var`, or a number, which is a constant."""
    number = x if type(x) is Var else data(x, "matvar: an element of the argument")
    if np.ndim(number):
        raise ShapeError(
            f"matvar: an element of the argument has shape {np.shape(number)}, but must be a "
            "scalar!"
        )
    return number


def object_array(items: Sequence[object], shape: tuple[int, ...]) -> MatVar:
    # Item by item: given a list, NumPy would ask every Var for an array.
    return np.fromiter(items, dtype=object, count=len(items)).reshape(shape).view(MatVar)


def as_objects(operands: Sequence[object]) -> list[Any]:
    """Wrap operands for NumPy's loops over objects, hidden from its dispatch."""
    # NumPy would call __array_ufunc__ of a bare Var; inside an object array it is an item.
    items = [object_array([x], ()) if type(x) is Var else x for x in operands]
    return [x.view(np.ndarray) if isinstance(x, MatVar) else x for x in items]


def to_varmat(x: Operand) -> Operand:
    """Convert a `MatVar` to a `VarMat`, recorded on the tape; other arguments are returned as they
    are.

    Parameters
    ----------
    x : MatVar, any shape, or anything else

    Returns
    -------
    VarMat, or the argument
        An ndarray if no element is a variable.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.matvar([1.0, 2.0])
    >>> np.sum(vm.to_varmat(x) ** 2).grad()
    >>> x.adj
    array([2., 4.])
    """
    if not isinstance(x, MatVar):
        return x
    items = x.ravel().tolist()
    tape = tape_of(items)
    if tape is None:
        return x.val
    result = make_result(x.val, tape)
    tape.append((_TO_VARMAT, result, items, None))
    return result


def _to_varmat_chain(result: Variable, items: Sequence[Operand], _: None) -> None:
    for item, c in zip(items, np.ravel(result._adj).tolist(), strict=True):
        if type(item) is Var:
            item._take(c)


def to_matvar(x: Operand) -> Operand:
    """Convert a `VarMat` to a `MatVar`, recorded on the tape; other arguments are returned as they
    are.

    Parameters
    ----------
    x : VarMat, any shape, or anything else

    Returns
    -------
    MatVar, or the argument

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var([1.0, 2.0])
    >>> y = vm.to_matvar(x)
    >>> (y[0] * y[1]).grad()
    >>> x.adj
    array([2., 1.])
    """
    if type(x) not in VARIABLES or type(x) is Var:
        return x
    tape = x._tape.top
    items = [make_result(item, tape) for item in x._val.ravel().tolist()]
    tape.append((_TO_MATVAR, Outputs(items), x, None))
    return object_array(items, x.shape)


_TO_VARMAT = Rule(
    "to_varmat",
    _to_varmat_chain,
    None,
    lambda result, items, _: np.reshape(np.stack(items), result.shape),
)
_TO_MATVAR = Rule(
    "to_matvar",
    lambda result, x, _: x._take(np.array([item.adj for item in result]).reshape(x.shape)),
    None,
    lambda result, x, _: tuple(np.ravel(x)[i] for i in range(len(result))),
)
